//! 2026-07-28: what every result carries, and errors (RSL, CAC, ERR).

use serde_json::{Value, json};

use super::fixture::asks;
use super::{refused, verdict};
use crate::check::{Check, Revisions, Verdict};
use crate::cx::{CAPABILITIES, SERVER_INFO, VERSION};
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

pub(super) fn checks() -> Vec<Check> {
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
        Check::should("error-undeclared", &["ERR-13", "CMP-05"], Revisions::MODERN,
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
