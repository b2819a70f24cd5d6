//! What the tools of the official conformance fixture show.

use serde_json::{Value, json};

use super::{fail, result, short, verdict};
use crate::check::{Check, Revisions, Verdict};
use crate::cx::Cx;
use crate::seen::Step;

/// A tool of the official fixture.
fn fixture(cx: &Cx<'_>, tool: &str) -> Result<(), String> {
    if !cx.fixture {
        return Err("needs --fixture".to_owned());
    }
    cx.survey.tool(tool).map(|_| ()).ok_or_else(|| format!("the server has no tool {tool}"))
}

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::should("tools-failure", &["TOL-06", "RPC-19"], Revisions::ALL, "A failure inside a tool is a result with isError and words.")
            .sent("the fixture's `test_error_handling`")
            .hosts("A model sees an error of the protocol and cannot tell what went wrong.")
            .probe(
                |cx| {
                    fixture(cx, "test_error_handling")?;
                    Ok(vec![cx.request(0, "tools/call", json!({ "name": "test_error_handling", "arguments": {} }))])
                },
                |cx, seen| match result(seen, &cx.id(0)) {
                    Ok(result) if result["isError"] == true && result["content"][0]["text"].is_string() => Verdict::Pass,
                    Ok(result) => fail(seen, format!("the result is {}", short(result))),
                    Err(verdict) => verdict,
                },
            ),
        Check::must("progress-fixture", &["PRG-04", "PRG-09"], Revisions::ALL, "Progress that was asked for has the token and rises.")
            .sent("the fixture's `test_tool_with_progress` with the token 4711")
            .hosts("A progress bar that does not move.")
            .after(&["progress-known", "progress-rises"])
            .probe(
                |cx| {
                    fixture(cx, "test_tool_with_progress")?;
                    Ok(vec![cx.request(0, "tools/call", json!({ "name": "test_tool_with_progress", "arguments": {}, "_meta": { "progressToken": 4711 } })), Step::Await(cx.id(0))])
                },
                |cx, seen| {
                    if let Err(verdict) = result(seen, &cx.id(0)) {
                        return verdict;
                    }
                    let steps = seen.notifications().filter(|value| value["params"]["progressToken"] == 4711).count();
                    if steps >= 3 { Verdict::Pass } else { fail(seen, format!("{steps} notifications came, 3 are due")) }
                },
            ),
        Check::must("capability-needed", &["CAP-02", "CAP-01", "ERR-07"], Revisions::MODERN,
            "What needs a capability that the request does not declare is refused with -32021, which names it in an object.")
            .sent("the fixture's `test_missing_capability` without capabilities, after a request that declares them")
            .hosts("A client cannot tell what it lacks.")
            .probe(
                |cx| {
                    fixture(cx, "test_missing_capability")?;
                    Ok(vec![
                        cx.request_with(0, "tools/list", Value::Null, &json!({ "sampling": {}, "elicitation": {}, "roots": {} })), Step::Await(cx.id(0)),
                        cx.request(1, "tools/call", json!({ "name": "test_missing_capability", "arguments": {} })),
                    ])
                },
                |cx, seen| {
                    if let Err(verdict) = super::refused(seen, &cx.id(1), &[-32021]) {
                        return verdict;
                    }
                    match seen.reply(&cx.id(1)).and_then(|reply| reply.pointer("/error/data/requiredCapabilities")) {
                        Some(needed) if needed.is_object() => Verdict::Pass,
                        _ => fail(seen, "the error has no object data.requiredCapabilities"),
                    }
                },
            ),
        Check::must("input-state", &["MRTR-09", "SEC-08"], Revisions::MODERN, "A requestState that was changed is refused.")
            .sent("the fixture's `test_input_required_result_tampered_state`, and its state with other characters")
            .hosts("A client, or who reads its traffic, rewrites what the server believes.")
            .fresh(
                |cx| {
                    fixture(cx, "test_input_required_result_tampered_state")?;
                    let forged = json!({ "name": "test_input_required_result_tampered_state", "arguments": {},
                        "inputResponses": { "user_name": { "action": "accept", "content": { "name": "x" } } }, "requestState": "taut-check-forged" });
                    Ok(vec![Step::Open(json!({})),
                        cx.request_with(0, "tools/call", forged, &json!({ "elicitation": { "form": {} } })), Step::Await(cx.id(0))])
                },
                |cx, seen| match seen.reply(&cx.id(0)) {
                    Some(reply) if reply.get("error").is_some() => Verdict::Pass,
                    Some(reply) => fail(seen, format!("a forged state was taken: {}", short(reply))),
                    None => super::unanswered(seen, &cx.id(0)),
                },
            ),
        Check::must("input-shape", &["MRTR-02", "MRTR-03", "MRTR-04", "MRTR-14", "CAP-03"], Revisions::MODERN,
            "A result that asks back has questions or a state, asks only for what was declared, and has no cache hints.")
            .sent("the fixture's `test_input_required_result_elicitation` with `elicitation: {}` declared")
            .hosts("A client cannot answer it, so the call never ends.")
            .probe(
                |cx| {
                    fixture(cx, "test_input_required_result_elicitation")?;
                    let params = json!({ "name": "test_input_required_result_elicitation", "arguments": {} });
                    Ok(vec![cx.request_with(0, "tools/call", params, &json!({ "elicitation": {} }))])
                },
                |cx, seen| match result(seen, &cx.id(0)) {
                    Ok(result) if result["resultType"] == "input_required" => match asks(result, &json!({ "elicitation": {} })) {
                        None => Verdict::Pass,
                        Some(what) => fail(seen, what),
                    },
                    Ok(result) => fail(seen, format!("it did not ask: {}", short(result))),
                    Err(verdict) => verdict,
                },
            ),
        Check::must("input-ask-legacy", &["ELI-02", "SAM-02"], Revisions::STRUCTURED_LEGACY,
            "A question to the client fits its schema, and the call goes on with the answer.")
            .sent("the fixture's `test_elicitation` and `test_sampling` from a client that declares both")
            .hosts("A client cannot answer it, so the call never ends.")
            .fresh(
                |cx| {
                    fixture(cx, "test_elicitation")?;
                    fixture(cx, "test_sampling")?;
                    Ok(vec![
                        Step::Open(json!({ "sampling": {}, "elicitation": {} })),
                        cx.request(0, "tools/call", json!({ "name": "test_elicitation", "arguments": { "message": "taut-check" } })), Step::Await(cx.id(0)),
                        cx.request(1, "tools/call", json!({ "name": "test_sampling", "arguments": { "prompt": "taut-check" } })), Step::Await(cx.id(1)),
                    ])
                },
                |cx, seen| verdict((0..2).try_for_each(|n| result(seen, &cx.id(n)).map(|_| ()))),
            ),
    ]
}

/// What is wrong with a result that asks back, of a request with these capabilities.
pub(super) fn asks(result: &Value, caps: &Value) -> Option<String> {
    let (requests, state) = (result.get("inputRequests"), result.get("requestState"));
    if requests.is_none() && state.is_none() {
        return Some("it has neither inputRequests nor requestState".to_owned());
    }
    if state.is_some_and(|state| !state.is_string()) {
        return Some("requestState is no string".to_owned());
    }
    if result.get("ttlMs").is_some() || result.get("cacheScope").is_some() {
        return Some("it has cache hints".to_owned());
    }
    let requests = requests?;
    let Some(entries) = requests.as_object() else {
        return Some("inputRequests is no object".to_owned());
    };
    entries.iter().find_map(|(key, entry)| {
        let needed = match entry["method"].as_str().unwrap_or_default() {
            "elicitation/create" => "elicitation",
            "sampling/createMessage" => "sampling",
            "roots/list" => "roots",
            other => return Some(format!("{key} asks {other:?}")),
        };
        if entry.get("id").is_some() || entry.get("jsonrpc").is_some() {
            return Some(format!("{key} is a whole request, with an id or jsonrpc"));
        }
        if caps.get(needed).is_none() {
            return Some(format!("{key} asks for {needed}, which was not declared"));
        }
        let url = entry["params"]["mode"] == "url" && caps["elicitation"].get("url").is_none();
        url.then(|| format!("{key} asks for the mode url, which was not declared"))
    })
}
