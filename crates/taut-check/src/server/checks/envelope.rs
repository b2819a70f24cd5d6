//! 2026-07-28: what every request carries in `_meta`, and the versions (MET, VER, DIS).

use serde_json::{Value, json};

use super::{fail, refused, result, short, verdict};
use crate::check::{Check, Revisions, Verdict};
use crate::cx::{CAPABILITIES, CLIENT_INFO, Cx, SUBSCRIPTION, VERSION};
use crate::seen::{Seen, Step};

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

/// Whether a subscription was acknowledged.
fn acknowledged(cx: &Cx<'_>, seen: &Seen<'_>, n: i64) -> bool {
    seen.notifications().any(|note| note["params"]["_meta"].get(SUBSCRIPTION) == Some(&cx.id(n)))
}

/// Passes if the n-th request was refused with -32602. A subscription that was acknowledged was served.
fn malformed(cx: &Cx<'_>, seen: &Seen<'_>, n: i64, method: &str) -> Result<(), Verdict> {
    match method == "subscriptions/listen" && acknowledged(cx, seen, n) {
        true => Err(fail(seen, "subscriptions/listen was served")),
        false => refused(seen, &cx.id(n), &[-32602]),
    }
}

/// Where the requests of `meta-types` begin that have the version 5, and those that have null for the capabilities.
const TYPED: [i64; 2] = [20, 40];

/// Where the requests begin that are served with clientInfo.
const FULL: i64 = 40;

/// What is no clientInfo, with each list that the server gave.
fn odd_clients(cx: &Cx<'_>) -> Vec<(&'static str, Value)> {
    let given = super::lists(cx).into_iter().filter(|(_, _, list)| !list.pages.is_empty());
    let methods = ["server/discover"].into_iter().chain(given.map(|(method, ..)| method));
    let odd = [json!("taut-check"), json!(5), json!([]), json!({ "name": "taut-check" })];
    methods.flat_map(|method| odd.clone().map(|client| (method, client))).collect()
}

/// The cancellation of the n-th request, if it is a subscription.
fn over(cx: &Cx<'_>, n: i64, method: &str) -> Option<Step> {
    (method == "subscriptions/listen")
        .then(|| cx.note("notifications/cancelled", json!({ "requestId": cx.id(n) })))
}

pub(super) fn checks() -> Vec<Check> {
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
                |cx, seen| verdict(every_kind(cx).iter().zip(0..).try_for_each(|((method, _), n)| malformed(cx, seen, n, method))),
            ),
        Check::must("meta-version-required", &["MET-02"], Revisions::MODERN,
            "A request whose `_meta` lacks the version, or is no object, is refused.")
            .sent("`server/discover`, each declared list, an allowed call and others with the capabilities alone; `server/discover` with an empty `_meta`, with a progressToken alone, with a list and a text for it, with empty params and without any")
            .hosts("A server that guesses the version answers in a form that the client cannot read.")
            .fresh(
                |cx| Ok(vec![Step::Open(json!({})),
                    with_meta(cx, 0, "server/discover", &json!({ CAPABILITIES: {} })),
                    with_meta(cx, 1, "server/discover", &json!({})),
                    Step::Send(json!({ "jsonrpc": "2.0", "id": cx.id(2), "method": "server/discover", "params": {} })),
                    Step::Send(json!({ "jsonrpc": "2.0", "id": cx.id(3), "method": "server/discover" })), Step::Await(cx.id(3)),
                    with_meta(cx, 4, "server/discover", &json!([])), with_meta(cx, 5, "server/discover", &json!("2026-07-28")),
                    with_meta(cx, 6, "server/discover", &json!({ "progressToken": 1 })), Step::Await(cx.id(6)),
                ].into_iter().chain(every_kind(cx).into_iter().zip(10..).map(|((method, params), n)| with_params(cx, n, method, params, &json!({ CAPABILITIES: {} })))).chain([Step::Barrier]).collect()),
                // A server that also speaks an older revision may take it for a request of that.
                |cx, seen| verdict((0..7).try_for_each(|n| {
                    let codes: &[i64] = if cx.survey.dual { &[-32602, -32601, -32600] } else { &[-32602] };
                    refused(seen, &cx.id(n), codes)
                }).and_then(|()| every_kind(cx).iter().zip(10..).try_for_each(|((method, _), n)| match seen.result(&cx.id(n)) {
                    // It may be one that an older revision has, and be served as such.
                    Some(result) if cx.survey.dual && result.get("resultType").is_none() => Ok(()),
                    None if cx.survey.dual && seen.code(&cx.id(n)).is_some() => Ok(()),
                    _ => malformed(cx, seen, n, method),
                }))),
            ),
        Check::must("meta-types", &["MET-06"], Revisions::MODERN, "Fields of `_meta` with the wrong type are refused with -32602.")
            .sent("`server/discover` with the version 5, null and \"\", and with the capabilities [] and null; each declared list, an allowed call and others with the version 5, and with the capabilities null")
            .hosts("A server that goes on believes something that nobody said.")
            .after(&["version-unknown"])
            .probe(
                |cx| {
                    let version = cx.revision.as_str();
                    let wrong = [json!({ VERSION: 5, CAPABILITIES: {} }), json!({ VERSION: version, CAPABILITIES: null })];
                    let kinds = wrong.into_iter().zip(TYPED).flat_map(|(meta, first)| {
                        every_kind(cx).into_iter().zip(first..).map(move |((method, params), n)| with_params(cx, n, method, params, &meta))
                    });
                    Ok([
                        with_meta(cx, 0, "server/discover", &json!({ VERSION: 5, CAPABILITIES: {} })),
                        with_meta(cx, 1, "server/discover", &json!({ VERSION: null, CAPABILITIES: {} })),
                        with_meta(cx, 2, "server/discover", &json!({ VERSION: version, CAPABILITIES: [] })),
                        with_meta(cx, 3, "server/discover", &json!({ VERSION: version, CAPABILITIES: null })),
                        with_meta(cx, 4, "server/discover", &json!({ VERSION: "", CAPABILITIES: {} })),
                    ].into_iter().chain(kinds).collect())
                },
                |cx, seen| verdict((0..4).try_for_each(|n| refused(seen, &cx.id(n), &[-32602])).and_then(|()| refused(seen, &cx.id(4), &[-32602, -32022]))
                    .and_then(|()| TYPED.iter().flat_map(|first| every_kind(cx).into_iter().zip(*first..)).try_for_each(|((method, _), n)| malformed(cx, seen, n, method)))),
            ),
        Check::advice("meta-client-type", &["MET-06"], Revisions::MODERN, "A clientInfo that does not fit its schema is refused with -32602.")
            .sent("`server/discover` and each declared list with a text, with 5, with [] and with no version for clientInfo")
            .hosts("The schema wants a name and a version; a server that never looks at it shows that it checks no schema. The text of the specification asks for the refusal of what is required alone.")
            .after(&["meta-types"])
            .probe(
                |cx| Ok(odd_clients(cx).into_iter().zip(0..).map(|((method, client), n)| {
                    with_meta(cx, n, method, &json!({ VERSION: cx.revision.as_str(), CAPABILITIES: {}, CLIENT_INFO: client }))
                }).collect()),
                |cx, seen| verdict(odd_clients(cx).iter().zip(0..).try_for_each(|((method, client), n)| match seen.code(&cx.id(n)) {
                    Some(-32602) => Ok(()),
                    _ => Err(fail(seen, format!("{method} was not refused with -32602, where clientInfo is {client}"))),
                })),
            ),
        Check::must("meta-client-info", &["MET-03", "MET-04"], Revisions::MODERN, "A request without clientInfo is served.")
            .sent("`server/discover`, each declared list, an allowed call and others without clientInfo, and with it")
            .hosts("A client may leave it out.")
            .probe(
                |cx| {
                    let meta = json!({ VERSION: cx.revision.as_str(), CAPABILITIES: {} });
                    let mut steps = Vec::new();
                    for ((method, params), n) in every_kind(cx).into_iter().zip(0..) {
                        steps.push(with_params(cx, n, method, params.clone(), &meta));
                        if UNSURE.contains(&method) {
                            steps.push(cx.request(FULL + n, method, params));
                        }
                    }
                    steps.push(Step::Barrier);
                    steps.extend(every_kind(cx).into_iter().zip(0..).flat_map(|((method, _), n)| [over(cx, n, method), over(cx, FULL + n, method)]).flatten());
                    Ok(steps)
                },
                |cx, seen| verdict(every_kind(cx).iter().zip(0..)
                    // Others say what else may be wrong with it.
                    .filter(|(_, n)| *n == 0 || seen.code(&cx.id(*n)) == Some(-32602))
                    .filter(|((method, _), n)| !UNSURE.contains(method) || acknowledged(cx, seen, FULL + n) || seen.result(&cx.id(FULL + n)).is_some())
                    .try_for_each(|(_, n)| result(seen, &cx.id(n)).map(|_| ()))),
            ),
        Check::should("meta-client-same", &["MET-04"], Revisions::MODERN, "What a client calls itself changes nothing: it gets the same tools.")
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
