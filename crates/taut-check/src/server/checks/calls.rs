//! What needs a call: results of tools, and the tools of the official fixture.

use serde_json::{Value, json};

use super::lists::is_base64;
use super::{alive, fail, kind, result, short, verdict};
use crate::check::{Check, Revisions, Verdict};
use crate::cx::Cx;
use crate::ours::Validator;
use crate::seen::{All, Answered, Step};

/// Judges the results of calls, over everything that was said.
fn scan_results(all: &All<'_>, wrong: impl Fn(&Answered<'_>, &Value) -> Option<String>) -> Verdict {
    let mut any = false;
    let mut faults = Vec::new();
    for answer in all.answers().filter(|answer| answer.method == "tools/call") {
        let complete = |result: &&Value| !["input_required", "task"].iter().any(|other| result["resultType"] == *other) && result.get("task").is_none();
        let Some(result) = answer.result().filter(complete) else { continue };
        any = true;
        faults.extend(wrong(answer, result).map(|what| (what, answer.line.text())));
    }
    match any {
        true => Verdict::from_faults(faults),
        false => Verdict::skip("no call is allowed: --call TOOL --args JSON, or --fixture"),
    }
}

/// A tool of the official fixture.
fn fixture(cx: &Cx<'_>, tool: &str) -> Result<(), String> {
    if !cx.fixture {
        return Err("needs --fixture".to_owned());
    }
    cx.survey.tool(tool).map(|_| ()).ok_or_else(|| format!("the server has no tool {tool}"))
}

pub(super) fn checks() -> Vec<Check> {
    let mut all = results();
    all.extend(calling());
    all.extend(fixtures());
    all
}

fn results() -> Vec<Check> {
    vec![
        Check::must("tools-content", &["TOL-04"], Revisions::ALL, "The result of a call has an array `content`, maybe empty.")
            .hosts("The official SDKs refuse the answer, and the call fails although the tool worked.")
            .scan(|_, all| scan_results(all, |_, result| {
                (!result["content"].is_array()).then(|| format!("`content` is {}", kind(&result["content"])))
            })),
        Check::must("tools-content-types", &["TOL-20", "PRM-07"], Revisions::ALL,
            "Content blocks are of the types that the revision has, with what each needs.")
            .hosts("One block of an unknown type makes the official SDKs refuse the whole answer.")
            .after(&["tools-content"])
            .scan(|cx, all| scan_results(all, |_, result| {
                let revision = cx.revision.as_str();
                result["content"].as_array()?.iter().find_map(|block| {
                    let right = match block["type"].as_str()? {
                        "text" => block["text"].is_string(),
                        "image" => data(block),
                        "audio" => revision >= "2025-03-26" && data(block),
                        "resource" => block["resource"]["uri"].is_string(),
                        "resource_link" => revision >= "2025-06-18" && block["uri"].is_string() && block["name"].is_string(),
                        _ => false,
                    };
                    (!right).then(|| format!("a block does not fit: {}", short(block)))
                }).or_else(|| {
                    let untyped = result["content"].as_array()?.iter().find(|block| !block["type"].is_string())?;
                    Some(format!("a block has no type: {}", short(untyped)))
                })
            })),
        Check::must("tools-structured", &["TOL-10"], Revisions::STRUCTURED_LEGACY, "`structuredContent` is an object in these revisions.")
            .hosts("The official SDKs refuse the answer.")
            .scan(|_, all| scan_results(all, |_, result| {
                let data = result.get("structuredContent")?;
                (!data.is_object()).then(|| format!("`structuredContent` is {}", kind(data)))
            })),
        Check::must("tools-conform", &["TOL-12"], Revisions::SINCE_0618,
            "The structured result of a tool with an outputSchema fits that schema.")
            .hosts("TypeScript and Python clients validate it and fail the call.")
            .after(&["tools-structured", "tools-output-schema"])
            .scan(|cx, all| scan_results(all, |answer, result| {
                let tool = cx.survey.tool(answer.params["name"].as_str()?)?;
                let schema = tool.get("outputSchema").filter(|_| result["isError"] != true)?;
                let Some(data) = result.get("structuredContent") else {
                    return Some("the tool has an outputSchema, and its result has no structuredContent".to_owned());
                };
                let validator = Validator::new(&schema.to_string()).ok()?;
                validator.validate(&data.to_string()).err().map(|fault| format!("structuredContent does not fit: {fault}"))
            })),
        Check::should("tools-text-copy", &["TOL-14"], Revisions::SINCE_0618,
            "A structured result is also given as JSON in a text block.")
            .hosts("Hosts that do not know structuredContent show the model an empty result.")
            .after(&["tools-content"])
            .scan(|_, all| scan_results(all, |_, result| {
                let data = result.get("structuredContent")?;
                let mut texts = result["content"].as_array()?.iter().filter_map(|block| block["text"].as_str());
                let same = texts.any(|text| serde_json::from_str::<Value>(text).is_ok_and(|value| value == *data));
                (!same).then(|| "no text block has the structured result as JSON".to_owned())
            })),
        Check::must("tools-is-error", &["TOL-06", "TOL-32"], Revisions::ALL, "`isError` is a boolean, or is left out.")
            .hosts("The official SDKs refuse the answer.")
            .scan(|_, all| scan_results(all, |_, result| {
                let flag = result.get("isError")?;
                (!flag.is_boolean()).then(|| format!("`isError` is {}", kind(flag)))
            })),
    ]
}

fn data(block: &Value) -> bool {
    block["data"].as_str().is_some_and(is_base64) && block["mimeType"].is_string()
}

fn calling() -> Vec<Check> {
    vec![
        Check::must("tools-text", &["STD-02", "STD-12", "STD-01"], Revisions::ALL,
            "Text comes back as it was sent: any script, newlines, separators, quotes.")
            .sent("an allowed call that gives back one of its arguments, with other texts")
            .hosts("Every text that is not plain English.")
            .probe(
                |cx| {
                    let call = cx.survey.call(|call| call.echoes.is_some())?;
                    Ok(texts().iter().enumerate().map(|(n, text)| {
                        let mut args = call.args.clone();
                        args[call.echoes.as_deref().unwrap_or_default()] = json!(text);
                        cx.request(i64::try_from(n).unwrap_or(0), "tools/call", json!({ "name": call.tool, "arguments": args }))
                    }).collect())
                },
                |cx, seen| verdict(texts().iter().enumerate().try_for_each(|(n, text)| {
                    let result = result(seen, &cx.id(i64::try_from(n).unwrap_or(0)))?;
                    let same = result["content"].as_array().is_some_and(|blocks| blocks.iter().any(|block| block["text"] == *text));
                    same.then_some(()).ok_or_else(|| fail(seen, format!("{text:?} came back as {}", short(result))))
                })),
            ),
        Check::should("tools-bad-arguments", &["TOL-08"], Revisions::SINCE_1125,
            "Arguments that do not fit the inputSchema give a result with isError, so that a model can correct itself.")
            .sent("an allowed call without one of its required arguments")
            .hosts("A model sees an error of the protocol, or nothing at all, and cannot correct its call.")
            .probe(
                bad_arguments,
                |cx, seen| match result(seen, &cx.id(0)) {
                    Ok(result) if result["isError"] == true => Verdict::Pass,
                    Ok(result) => fail(seen, format!("it was called without a required argument: {}", short(result))),
                    // The schema of 2026-07-28 still shows it as an example.
                    Err(_) if seen.code(&cx.id(0)) == Some(-32602) && cx.modern() => Verdict::Pass,
                    Err(verdict) => verdict,
                },
            ),
        Check::should("tools-bad-arguments-old", &["TOL-07"], Revisions::LEGACY,
            "Arguments that do not fit the inputSchema are refused, as an error or as a result with isError.")
            .sent("an allowed call without one of its required arguments")
            .hosts("A tool runs on input that it did not ask for.")
            .after(&["tools-bad-arguments"])
            .probe(
                bad_arguments,
                |cx, seen| match result(seen, &cx.id(0)) {
                    Ok(result) if result["isError"] != true => fail(seen, "it was called without a required argument"),
                    Err(verdict) if seen.code(&cx.id(0)).is_none() => verdict,
                    _ => Verdict::Pass,
                },
            ),
        Check::must("tools-arguments-type", &["TOL-09"], Revisions::ALL, "`arguments` that are no object are refused.")
            .sent("an allowed call with a text and with a list as arguments")
            .hosts("No host sends it; a tool that runs all the same runs on nothing.")
            .probe(
                |cx| {
                    let call = cx.survey.call(|_| true)?;
                    Ok(vec![
                        cx.request(0, "tools/call", json!({ "name": call.tool, "arguments": "text" })),
                        cx.request(1, "tools/call", json!({ "name": call.tool, "arguments": ["list"] })),
                    ])
                },
                |cx, seen| verdict((0..2).try_for_each(|n| match result(seen, &cx.id(n)) {
                    Ok(result) if result["isError"] != true => Err(fail(seen, "the tool ran")),
                    Err(verdict) if seen.code(&cx.id(n)).is_none() => Err(verdict),
                    _ => Ok(()),
                })),
            ),
        Check::must("progress-asked", &["PRG-01", "PRG-07", "PRG-08", "PRG-09"], Revisions::ALL,
            "A call with a progressToken works like one without, and any progress has that token.")
            .sent("each allowed call with the tokens 17 and \"17\"")
            .hosts("Most hosts send a token with every call.")
            .after(&["progress-known"])
            .probe(
                |cx| {
                    let call = cx.survey.call(|_| true)?;
                    let with = |n: i64, token: Value| cx.request(n, "tools/call", json!({ "name": call.tool, "arguments": call.args, "_meta": { "progressToken": token } }));
                    Ok(vec![with(0, json!(17)), Step::Await(cx.id(0)), with(1, json!("17")), Step::Await(cx.id(1))])
                },
                |cx, seen| verdict((0..2).try_for_each(|n| result(seen, &cx.id(n)).map(|_| ()))),
            ),
        Check::must("tasks-ignored", &["TSK-02"], Revisions::ONLY_1125,
            "A server without tasks ignores `task` in a call and answers as always.")
            .sent("an allowed call with `task: {ttl: 60000}`")
            .hosts("A client that tries tasks with every server loses the call.")
            .probe(
                |cx| {
                    let call = cx.survey.call(|_| true)?;
                    if cx.survey.declares("tasks") {
                        return Err("the server declares tasks".to_owned());
                    }
                    Ok(vec![cx.request(0, "tools/call", json!({ "name": call.tool, "arguments": call.args, "task": { "ttl": 60_000 } }))])
                },
                |cx, seen| match result(seen, &cx.id(0)) {
                    Ok(result) if result.get("content").is_some() => Verdict::Pass,
                    Ok(result) => fail(seen, format!("the result is {}", short(result))),
                    Err(verdict) => verdict,
                },
            ),
        Check::must("tasks-opt-in", &["TSX-01"], Revisions::MODERN,
            "A client that did not declare the tasks extension never gets a task.")
            .hosts("A client that does not know tasks takes the handle for the result.")
            .scan(|_, all| {
                let odd = all.answers().filter(|answer| answer.reply["result"]["resultType"] == "task");
                Verdict::from_faults(odd.map(|answer| ("a call gave a task".to_owned(), answer.line.text())).collect())
            }),
        Check::should("input-stray", &["MRTR-12"], Revisions::MODERN,
            "Answers to questions that were never put are ignored.")
            .sent("an allowed call with `inputResponses` for an unknown key")
            .hosts("A client that repeats a call after a restart loses it.")
            .probe(
                |cx| {
                    let call = cx.survey.call(|_| true)?;
                    let params = json!({ "name": call.tool, "arguments": call.args, "inputResponses": { "taut-check": { "action": "cancel" } } });
                    Ok(vec![cx.request(0, "tools/call", params)])
                },
                |cx, seen| match result(seen, &cx.id(0)) {
                    Ok(_) => Verdict::Pass,
                    // "Malformed" may be read to mean this, too.
                    Err(_) if seen.code(&cx.id(0)) == Some(-32602) => Verdict::Pass,
                    Err(verdict) => verdict,
                },
            ),
    ]
}

fn texts() -> [&'static str; 6] {
    ["grün und blau", "漢字かな交じり文 🎈", "line\nbreak\r\nand\ttab", "a\u{2028}b\u{2029}c\u{85}d", "{\"a\":\"\\\\\"}", "עברית e\u{301}"]
}

fn bad_arguments(cx: &Cx<'_>) -> crate::check::Sends {
    let required = |call: &crate::cx::Called| {
        let tool = cx.survey.tool(&call.tool)?;
        let names = tool["inputSchema"]["required"].as_array()?.iter();
        names.filter_map(Value::as_str).find(|name| call.args.get(*name).is_some()).map(str::to_owned)
    };
    let call = cx.survey.call(|call| required(call).is_some())?;
    let mut args = call.args.clone();
    if let (Some(name), Some(members)) = (required(call), args.as_object_mut()) {
        members.remove(&name);
    }
    Ok(vec![cx.request(0, "tools/call", json!({ "name": call.tool, "arguments": args }))])
}

fn fixtures() -> Vec<Check> {
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
                    None => alive(seen).err().unwrap_or_else(|| fail(seen, "it was not answered")),
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
    let Some(entries) = requests.as_object() else { return Some("inputRequests is no object".to_owned()) };
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
