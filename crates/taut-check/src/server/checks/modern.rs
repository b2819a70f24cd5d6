//! 2026-07-28: what every request carries, what every result carries, and what is gone.

use serde_json::{Value, json};

use super::fixture::asks;
use super::{fail, refused, result, short, verdict};
use crate::check::{Check, Revisions, Verdict};
use crate::cx::{CAPABILITIES, CLIENT_INFO, Cx, SERVER_INFO, VERSION};
use crate::seen::{Step, is_count};

/// Results that may be kept for a while.
const CACHED: [&str; 6] = [
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
];

/// The versions that `server/discover` lists.
fn listed_versions<'a>(cx: &Cx<'a>) -> Vec<&'a str> {
    let opened = cx.survey.opened.as_ref().map(|opened| &opened["supportedVersions"]);
    opened.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Those of them that no handshake can agree on, without the one in use.
fn newer_versions<'a>(cx: &Cx<'a>) -> Vec<&'a str> {
    listed_versions(cx).into_iter().filter(|one| *one > cx.revision.as_str()).take(5).collect()
}

/// A request with this `_meta` and no other.
fn with_meta(cx: &Cx<'_>, n: i64, method: &str, meta: &Value) -> Step {
    Step::Send(
        json!({ "jsonrpc": "2.0", "id": cx.id(n), "method": method, "params": { "_meta": meta } }),
    )
}

/// The same, with params beside it.
fn with_params(cx: &Cx<'_>, n: i64, method: &str, mut params: Value, meta: &Value) -> Step {
    params["_meta"] = meta.clone();
    Step::Send(json!({ "jsonrpc": "2.0", "id": cx.id(n), "method": method, "params": params }))
}

/// Requests that a server may refuse for what was made up in them.
const UNSURE: [&str; 4] =
    ["subscriptions/listen", "resources/read", "prompts/get", "completion/complete"];

/// A request of each kind that the server has, which would be served with full `_meta`.
fn every_kind(cx: &Cx<'_>) -> Vec<(&'static str, Value)> {
    let survey = cx.survey;
    let mut all = vec![("server/discover", json!({}))];
    all.extend(super::samples(cx));
    if ["tools/listChanged", "prompts/listChanged", "resources/listChanged"]
        .iter()
        .any(|flag| survey.declares(flag))
    {
        all.push((
            "subscriptions/listen",
            json!({ "notifications": { "toolsListChanged": true } }),
        ));
    }
    all
}

pub(super) fn checks() -> Vec<Check> {
    let mut all = envelope();
    all.extend(answers());
    all
}

fn envelope() -> Vec<Check> {
    vec![
        Check::must("discover-result", &["DIS-01", "DIS-02"], Revisions::MODERN,
            "`server/discover` gives supportedVersions with the version in use, capabilities, ttlMs and cacheScope.")
            .hosts("Claude Code, Copilot and all Python clients ask it first, and judge the server by it.")
            .scan(|cx, all| {
                let mut faults = Vec::new();
                for answer in all.answers().filter(|answer| answer.method == "server/discover") {
                    let Some(result) = answer.result() else { continue };
                    let versions = result["supportedVersions"].as_array();
                    let what = match versions {
                        None => "supportedVersions is no array".to_owned(),
                        Some(list) if !list.iter().all(Value::is_string) => "a version is no string".to_owned(),
                        Some(list) if !list.contains(&json!(cx.revision.as_str())) => "supportedVersions lacks the version in use".to_owned(),
                        Some(_) if !result["capabilities"].is_object() => "capabilities are no object".to_owned(),
                        Some(_) if result.get("instructions").is_some_and(|text| !text.is_string()) => "instructions are no string".to_owned(),
                        Some(_) if result.get("serverInfo").is_some() => "serverInfo stands beside supportedVersions; its place is `_meta`".to_owned(),
                        _ => continue,
                    };
                    faults.push((what, answer.line.text()));
                }
                Verdict::from_faults(faults)
            }),
        Check::must("meta-required", &["MET-02", "DIS-04", "ERA-05"], Revisions::MODERN,
            "A request whose `_meta` lacks the client's capabilities is refused with -32602.")
            .sent("`server/discover`, each declared list, an allowed call and others with the version alone")
            .hosts("A gateway that drops a field would be served with capabilities that nobody declared.")
            .probe(
                |cx| {
                    let meta = json!({ VERSION: cx.revision.as_str() });
                    Ok(every_kind(cx).into_iter().zip(0..).map(|((method, params), n)| with_params(cx, n, method, params, &meta)).chain([Step::Barrier]).collect())
                },
                |cx, seen| verdict(every_kind(cx).iter().zip(0..).try_for_each(|((method, _), n)| {
                    let acknowledged = *method == "subscriptions/listen" && seen.notifications().any(|note| note["params"]["_meta"].get(crate::cx::SUBSCRIPTION) == Some(&cx.id(n)));
                    match acknowledged {
                        true => Err(fail(seen, "subscriptions/listen was served")),
                        false => refused(seen, &cx.id(n), &[-32602]),
                    }
                })),
            ),
        Check::must("meta-version-required", &["MET-02"], Revisions::MODERN,
            "A request whose `_meta` lacks the version, or is no object, is refused.")
            .sent("`server/discover` with the capabilities alone, with an empty `_meta`, with a progressToken alone, with a list and a text for it, with empty params and without any")
            .hosts("A server that guesses the version answers in a form that the client cannot read.")
            .fresh(
                |cx| Ok(vec![Step::Open(json!({})),
                    with_meta(cx, 0, "server/discover", &json!({ CAPABILITIES: {} })),
                    with_meta(cx, 1, "server/discover", &json!({})),
                    Step::Send(json!({ "jsonrpc": "2.0", "id": cx.id(2), "method": "server/discover", "params": {} })),
                    Step::Send(json!({ "jsonrpc": "2.0", "id": cx.id(3), "method": "server/discover" })), Step::Await(cx.id(3)),
                    with_meta(cx, 4, "server/discover", &json!([])), with_meta(cx, 5, "server/discover", &json!("2026-07-28")),
                    with_meta(cx, 6, "server/discover", &json!({ "progressToken": 1 })), Step::Await(cx.id(6)),
                ]),
                // A server that also speaks an older revision may take it for a request of that.
                |cx, seen| verdict((0..7).try_for_each(|n| {
                    let codes: &[i64] = if cx.survey.dual { &[-32602, -32601, -32600] } else { &[-32602] };
                    refused(seen, &cx.id(n), codes)
                })),
            ),
        Check::must("meta-types", &["MET-06"], Revisions::MODERN, "Fields of `_meta` with the wrong type are refused with -32602.")
            .sent("requests with the version 5, null and \"\", and with the capabilities [] and null")
            .hosts("A server that goes on believes something that nobody said.")
            .after(&["version-unknown"])
            .probe(
                |cx| {
                    let version = cx.revision.as_str();
                    Ok(vec![
                        with_meta(cx, 0, "server/discover", &json!({ VERSION: 5, CAPABILITIES: {} })),
                        with_meta(cx, 1, "server/discover", &json!({ VERSION: null, CAPABILITIES: {} })),
                        with_meta(cx, 2, "server/discover", &json!({ VERSION: version, CAPABILITIES: [] })),
                        with_meta(cx, 3, "server/discover", &json!({ VERSION: version, CAPABILITIES: null })),
                        with_meta(cx, 4, "server/discover", &json!({ VERSION: "", CAPABILITIES: {} })),
                    ])
                },
                |cx, seen| verdict((0..4).try_for_each(|n| refused(seen, &cx.id(n), &[-32602])).and_then(|()| refused(seen, &cx.id(4), &[-32602, -32022]))),
            ),
        Check::must("meta-client-info", &["MET-03", "MET-04"], Revisions::MODERN, "A request without clientInfo is served.")
            .sent("`server/discover`, each declared list and an allowed call without clientInfo")
            .hosts("A client may leave it out.")
            .probe(
                |cx| {
                    let meta = json!({ VERSION: cx.revision.as_str(), CAPABILITIES: {} });
                    let kinds = every_kind(cx).into_iter().zip(0..).filter(|((method, _), _)| !UNSURE.contains(method));
                    Ok(kinds.map(|((method, params), n)| with_params(cx, n, method, params, &meta)).collect())
                },
                |cx, seen| verdict(every_kind(cx).iter().zip(0..).filter(|(_, n)| seen.own.contains(&cx.id(*n)))
                    // Others say what else may be wrong with it.
                    .filter(|(_, n)| *n == 0 || seen.code(&cx.id(*n)) == Some(-32602))
                    .try_for_each(|(_, n)| result(seen, &cx.id(n)).map(|_| ()))),
            ),
        Check::must("meta-client-same", &["MET-04"], Revisions::MODERN, "What a client calls itself changes nothing: it gets the same tools.")
            .sent("`tools/list` without clientInfo, and as `taut-check-other`")
            .hosts("A server that knows some hosts by name hides tools from all others, and from new versions of the same.")
            .after(&["meta-client-info"])
            .probe(
                |cx| {
                    super::needs(cx, "tools")?;
                    let mut meta = json!({ VERSION: cx.revision.as_str(), CAPABILITIES: {} });
                    let without = with_meta(cx, 0, "tools/list", &meta);
                    meta[CLIENT_INFO] = json!({ "name": "taut-check-other", "version": "0.0.1" });
                    let usual = |n: i64| cx.request(n, "tools/list", Value::Null);
                    let all = [usual(40), without, with_meta(cx, 20, "tools/list", &meta), usual(60)];
                    // Each with its further pages, and one more.
                    let more = i64::try_from(cx.survey.tools.pages.len()).unwrap_or(1).min(15);
                    Ok(all.into_iter().zip([40, 0, 20, 60]).flat_map(|(first, n)| {
                        [first].into_iter().chain((n..n + more).map(|n| Step::Follow(cx.id(n), cx.id(n + 1), super::tools::next_page)))
                    }).collect())
                },
                |cx, seen| {
                    let names = |n: i64| {
                        let mut all = super::tools::names(result(seen, &cx.id(n))?, false);
                        let more = (n + 1..n + 20).map_while(|n| seen.result(&cx.id(n)));
                        all.extend(more.flat_map(|page| super::tools::names(page, false)));
                        all.sort();
                        Ok(all)
                    };
                    verdict(names(40).and_then(|usual| {
                        // One that lists other tools each time says nothing of names.
                        let steady = names(60)? == usual;
                        let same = names(0)? == usual && names(20)? == usual;
                        (same || !steady).then_some(()).ok_or_else(|| fail(seen, "a client of another name gets other tools"))
                    }))
                },
            ),
        Check::must("meta-foreign", &["MET-07", "MET-08", "TRC-02"], Revisions::MODERN, "Trace context and keys of others in `_meta` do no harm.")
            .sent("`server/discover` with traceparent, tracestate, baggage and two keys of a host")
            .hosts("Claude Code and Codex send keys of their own with every call.")
            .probe(
                |cx| {
                    let mut meta = cx.meta();
                    meta["traceparent"] = json!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
                    meta["tracestate"] = json!("vendor=opaque");
                    meta["baggage"] = json!("k=v");
                    meta["claudecode/toolUseId"] = json!("toolu_1");
                    meta["x-codex-turn-metadata"] = json!({ "a": [1, 2] });
                    Ok(vec![with_meta(cx, 0, "server/discover", &meta)])
                },
                |cx, seen| verdict(result(seen, &cx.id(0)).map(|_| ())),
            ),
        Check::must("version-unknown", &["VER-01", "ERR-08", "DIS-04"], Revisions::MODERN,
            "An unknown version is refused with -32022, which says what is supported and what was asked for.")
            .sent("`server/discover`, each declared list, an allowed call and others for 1900-01-01; `server/discover` for 2099-01-01")
            .hosts("A client cannot choose another version, and gives up.")
            .after(&["discover-result", "rpc-error-shape"])
            .probe(
                |cx| {
                    let meta = |version: &str| json!({ VERSION: version, CAPABILITIES: {}, CLIENT_INFO: { "name": "taut-check", "version": "1" } });
                    let old = every_kind(cx).into_iter().zip(1..).map(|((method, params), n)| with_params(cx, n, method, params, &meta("1900-01-01")));
                    Ok([with_meta(cx, 0, "server/discover", &meta("2099-01-01"))].into_iter().chain(old).chain([Step::Barrier]).collect())
                },
                |cx, seen| verdict((0..=every_kind(cx).len()).try_for_each(|n| {
                    let asked = if n == 0 { "2099-01-01" } else { "1900-01-01" };
                    let id = cx.id(i64::try_from(n).unwrap_or(0));
                    refused(seen, &id, &[-32022])?;
                    let data = seen.reply(&id).map(|reply| &reply["error"]["data"]).unwrap_or(&Value::Null);
                    let supported = data["supported"].as_array();
                    let named = supported.is_some_and(|list| list.contains(&json!(cx.revision.as_str())));
                    if !named || data["requested"] != asked {
                        return Err(fail(seen, format!("data is {}, and needs supported and requested", short(data))));
                    }
                    // What is offered here and not there is offered by mistake.
                    let known = listed_versions(cx);
                    let other = supported.into_iter().flatten().filter_map(Value::as_str).find(|one| !known.contains(one));
                    match other {
                        Some(other) => Err(fail(seen, format!("{other} is offered, and server/discover does not list it"))),
                        None => Ok(()),
                    }
                })),
            ),
        Check::must("discover-versions", &["DIS-02", "VER-01"], Revisions::MODERN,
            "Every version that `server/discover` lists can be used: in `_meta`, or in the handshake of an older revision.")
            .sent("`server/discover` for each listed version that is newer than 2026-07-28")
            .hosts("A client chooses the newest that it knows, and is refused.")
            .after(&["discover-result"])
            .probe(
                |cx| Ok(newer_versions(cx).into_iter().zip(0..).map(|(version, n)| with_meta(cx, n, "server/discover", &json!({ VERSION: version, CAPABILITIES: {} }))).collect()),
                |cx, seen| {
                    let survey = cx.survey;
                    let older = listed_versions(cx).into_iter().find(|one| {
                        survey.tried.iter().any(|tried| tried == one) && !survey.opens.iter().any(|opens| opens == one)
                    });
                    if let Some(version) = older {
                        return fail(seen, format!("{version} is listed, and the handshake does not agree on it"));
                    }
                    let refused = newer_versions(cx).into_iter().zip(0..).find(|(_, n)| seen.code(&cx.id(*n)) == Some(-32022));
                    match refused {
                        Some((version, _)) => fail(seen, format!("{version} is listed, and refused with -32022")),
                        None => Verdict::Pass,
                    }
                },
            ),
        Check::must("version-mixed", &["VER-03", "STD-25"], Revisions::MODERN, "Each request is judged by its own version.")
            .sent("a good request, one for 1900-01-01, and a good one")
            .hosts("One odd request through a gateway would end the server for all.")
            .after(&["version-unknown"])
            .probe(
                |cx| Ok(vec![
                    cx.request(0, "server/discover", Value::Null),
                    with_meta(cx, 1, "server/discover", &json!({ VERSION: "1900-01-01", CAPABILITIES: {} })), Step::Await(cx.id(1)),
                    cx.request(2, "server/discover", Value::Null),
                ]),
                |cx, seen| verdict(result(seen, &cx.id(0)).map(|_| ()).and_then(|()| result(seen, &cx.id(2)).map(|_| ()))
                    .and_then(|()| super::refused_somehow(seen, &cx.id(1)))),
            ),
    ]
}

fn answers() -> Vec<Check> {
    vec![
        Check::must("result-type", &["RSL-01"], Revisions::MODERN, "Every result has a string `resultType`.")
            .hosts("Clients of 2026-07-28 tell by it whether a call is finished.")
            .scan(|_, all| {
                let odd = all.answers().filter(|answer| judged(answer) && answer.result().is_some_and(|result| result.is_object() && !result["resultType"].is_string()));
                Verdict::from_faults(odd.map(|answer| (format!("the result of {} has no resultType", answer.method), answer.line.text())).collect())
            }),
        Check::must("result-type-known", &["RSL-04", "MRTR-01"], Revisions::MODERN,
            "`resultType` is complete, or input_required for tools/call, prompts/get and resources/read.")
            .hosts("Clients have to treat any other value as an invalid answer.")
            .after(&["tasks-opt-in", "tasks-state", "tasks-acknowledged"])
            .scan(|_, all| {
                let odd = all.answers().filter(|answer| match answer.reply["result"]["resultType"].as_str() {
                    None | Some("complete") => false,
                    Some("input_required") => !["tools/call", "prompts/get", "resources/read"].contains(&answer.method),
                    Some("task") => answer.method != "tools/call" || !super::handles::asked(answer.params),
                    Some(_) => true,
                });
                Verdict::from_faults(odd.map(|answer| (format!("{} gave resultType {}", answer.method, answer.reply["result"]["resultType"]), answer.line.text())).collect())
            }),
        Check::must("input-asks", &["MRTR-02", "MRTR-03", "MRTR-04", "MRTR-14", "CAP-01", "ELI-02", "ELI-04", "SAM-02", "SAM-05"], Revisions::MODERN,
            "A server asks back only for what the request declared, in the form of inputRequests.")
            .hosts("A client cannot answer what it did not declare, so the call never ends.")
            .scan(|_, all| {
                let mut faults = Vec::new();
                for answer in all.answers() {
                    let Some(result) = answer.result().filter(|result| result["resultType"] == "input_required") else { continue };
                    let caps = answer.params["_meta"].get(CAPABILITIES).unwrap_or(&Value::Null);
                    faults.extend(asks(result, caps).map(|what| (what, answer.line.text())));
                }
                Verdict::from_faults(faults)
            }),
        Check::should("meta-server-info", &["MET-05"], Revisions::MODERN, "Every result names the server in `_meta`.")
            .hosts("A host that never asked `server/discover` cannot say who answered.")
            .scan(|_, all| {
                let odd = all.answers().filter(|answer| {
                    let info = &answer.reply["result"]["_meta"][SERVER_INFO];
                    judged(answer) && answer.result().is_some() && (!info["name"].is_string() || !info["version"].is_string())
                });
                Verdict::from_faults(odd.map(|answer| (format!("the result of {} does not name the server", answer.method), answer.line.text())).collect())
            }),
        Check::must("cache-hints", &["CAC-01", "CAC-02"], Revisions::MODERN,
            "Lists, `server/discover` and `resources/read` say how long they hold (ttlMs, 0 or more) and for whom (cacheScope).")
            .hosts("Clients that validate refuse the whole list.")
            .scan(|_, all| {
                let mut faults = Vec::new();
                for answer in all.answers().filter(|answer| CACHED.contains(&answer.method) && own(answer.params)) {
                    let Some(result) = answer.result().filter(|result| result["resultType"] != "input_required") else { continue };
                    let what = if !is_count(&result["ttlMs"]) {
                        format!("{}: ttlMs is {}", answer.method, result["ttlMs"])
                    } else if !["public", "private"].iter().any(|scope| result["cacheScope"] == *scope) {
                        format!("{}: cacheScope is {}", answer.method, result["cacheScope"])
                    } else {
                        continue;
                    };
                    faults.push((what, answer.line.text()));
                }
                Verdict::from_faults(faults)
            }),
        Check::must("cache-pages", &["CAC-07"], Revisions::MODERN, "All pages of a list have one cacheScope.")
            .hosts("A shared cache serves the private part of a list to others.")
            .after(&["cache-hints"])
            .scan(|cx, _| {
                let odd = super::lists(cx).into_iter().find(|(_, _, listing)| listing.pages.windows(2).any(|pair| pair[0]["cacheScope"] != pair[1]["cacheScope"]));
                match odd {
                    Some((method, ..)) => Verdict::fail(format!("pages of {method} differ in cacheScope")),
                    None => Verdict::Pass,
                }
            }),
        Check::must("error-codes", &["ERR-06", "ERR-09", "ERR-10"], Revisions::MODERN,
            "Of -32020 to -32099 only -32021 and -32022 are used on stdio.")
            .hosts("-32042 and others have no meaning any more, or another one.")
            .scan(|_, all| {
                let odd = all.received().filter(|(value, _)| value["error"]["code"].as_i64().is_some_and(|code| (-32099..=-32020).contains(&code) && code != -32021 && code != -32022));
                Verdict::from_faults(odd.map(|(value, frame)| (format!("the code {} was used", value["error"]["code"]), frame.text())).collect())
            }),
        Check::should("error-codes-avoided", &["ERR-11"], Revisions::MODERN, "Codes from -32019 to -32000 are avoided.")
            .hosts("Clients read no meaning into them.")
            .after(&["resources-missing-modern"])
            .scan(|_, all| {
                let mut faults = Vec::new();
                for (session, _) in &all.sessions {
                    // What a server says to itself while it ends is no answer that anybody reads.
                    let closed = session.entries.iter().position(|entry| matches!(entry.what, crate::process::What::Closed));
                    for (at, value, frame) in session.received() {
                        let code = value["error"]["code"].as_i64().filter(|code| (-32019..=-32000).contains(code));
                        if let Some(code) = code.filter(|_| closed.is_none_or(|closed| at < closed)) {
                            faults.push((format!("the code {code} was used"), frame.text()));
                        }
                    }
                }
                Verdict::from_faults(faults)
            }),
        Check::must("error-undeclared", &["ERR-13", "CMP-05"], Revisions::MODERN,
            "A method behind a capability that is not declared is refused with -32601.")
            .sent("the methods of each capability that is not declared")
            .hosts("An empty list looks like a feature that is there.")
            .probe(
                |cx| {
                    let steps: Vec<Step> = behind().into_iter().zip(0..).filter(|((capability, ..), _)| !cx.survey.declares(capability))
                        .map(|((_, method, params), n)| cx.request(n, method, params)).collect();
                    if steps.is_empty() { Err("the server declares everything".to_owned()) } else { Ok(steps) }
                },
                |cx, seen| verdict((0..8).filter(|n| seen.own.contains(&cx.id(*n))).try_for_each(|n| refused(seen, &cx.id(n), &[-32601]))),
            ),
        Check::must("extension-shape", &["EXT-01", "EXT-03"], Revisions::MODERN,
            "`capabilities.extensions` maps prefixed names to objects.")
            .hosts("A client that looks for an extension does not find it.")
            .after(&["init-capability-shape"])
            .scan(|_, all| {
                let mut faults = Vec::new();
                for answer in all.answers().filter(|answer| answer.method == "server/discover") {
                    let Some(extensions) = answer.result().and_then(|result| result["capabilities"].get("extensions")) else { continue };
                    let odd = |(name, value): &(&String, &Value)| !name.contains('/') || !value.is_object();
                    let what = match extensions.as_object().map(|members| members.iter().find(odd)) {
                        None => "extensions is no object".to_owned(),
                        Some(Some((name, _))) => format!("the extension {name:?} has no prefix, or is no object"),
                        Some(None) => continue,
                    };
                    faults.push((what, answer.line.text()));
                }
                Verdict::from_faults(faults)
            }),
    ]
}

/// Each capability with the methods behind it, and params that fit.
fn behind() -> [(&'static str, &'static str, Value); 8] {
    let complete = json!({ "ref": { "type": "ref/prompt", "name": "x" }, "argument": { "name": "a", "value": "" } });
    [
        ("tools", "tools/list", Value::Null),
        ("resources", "resources/list", Value::Null),
        ("prompts", "prompts/list", Value::Null),
        ("completions", "completion/complete", complete),
        ("tools", "tools/call", json!({ "name": "taut-check-no-such-tool", "arguments": {} })),
        ("resources", "resources/templates/list", Value::Null),
        ("resources", "resources/read", json!({ "uri": "taut-check://no-such-resource" })),
        ("prompts", "prompts/get", json!({ "name": "taut-check-no-such-prompt" })),
    ]
}

/// Whether an answer has to have what every result of 2026-07-28 has. What the revision does not have may
/// be answered by a server of both eras as in the older one; other checks judge that.
fn judged(answer: &crate::seen::Answered<'_>) -> bool {
    const GONE: [&str; 7] = [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/list",
        "tasks/result",
    ];
    own(answer.params) && !GONE.contains(&answer.method)
}

/// Whether a request is one of 2026-07-28.
pub(super) fn own(params: &Value) -> bool {
    params["_meta"][VERSION] == "2026-07-28"
}
