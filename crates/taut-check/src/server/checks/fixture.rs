//! What the tools of the official conformance fixture show.

use serde_json::{Value, json};

use super::{fail, result, short, verdict};
use crate::check::{Check, Revisions, Verdict};
use crate::cx::Cx;
use crate::ours::Revision;
use crate::seen::{Step, is_request};

/// A tool of the official fixture.
pub(super) fn fixture(cx: &Cx<'_>, tool: &str) -> Result<(), String> {
    if !cx.fixture {
        return Err("needs --fixture".to_owned());
    }
    cx.survey.tool(tool).map(|_| ()).ok_or_else(|| format!("the server has no tool {tool}"))
}

/// A call that asks back, with the capabilities that it needs: a tool of the fixture, or an allowed call that was
/// refused because the request did not declare them.
pub(super) fn asking(cx: &Cx<'_>, tool: &str, caps: Value) -> Result<(Value, Value), String> {
    let Err(why) = fixture(cx, tool) else {
        return Ok((json!({ "name": tool, "arguments": {} }), caps));
    };
    let allowed = cx.survey.calls.iter().find_map(|call| {
        let error = call.reply.as_ref()?.get("error").filter(|error| error["code"] == -32021)?;
        let needed =
            error["data"].get("requiredCapabilities").filter(|needed| needed.is_object())?;
        Some((json!({ "name": call.tool, "arguments": call.args }), needed.clone()))
    });
    let asks = super::asked::calls(cx).into_iter().next().map(|call| {
        let params = json!({ "name": call.tool, "arguments": call.args });
        (params, crate::cx::askable(cx.revision))
    });
    allowed.or(asks).ok_or_else(|| format!("{why}, and no allowed call asks back"))
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
            .sent("the fixture's `test_missing_capability` without capabilities, after a request that declares them; allowed calls that ask, without capabilities and with all")
            .hosts("A client cannot tell what it lacks.")
            .probe(
                |cx| {
                    let asked = super::asked::bare_and_full(cx);
                    if let Err(why) = fixture(cx, "test_missing_capability") {
                        return if asked.is_empty() { Err(format!("{why}, and no allowed call asks back")) } else { Ok(asked) };
                    }
                    let mut steps = vec![
                        cx.request_with(0, "tools/list", Value::Null, &json!({ "sampling": {}, "elicitation": {}, "roots": {} })), Step::Await(cx.id(0)),
                        cx.request(1, "tools/call", json!({ "name": "test_missing_capability", "arguments": {} })),
                    ];
                    steps.extend(asked);
                    Ok(steps)
                },
                |cx, seen| {
                    if let Some(what) = super::asked::other_refusal(cx, seen) {
                        return fail(seen, what);
                    }
                    if fixture(cx, "test_missing_capability").is_err() {
                        return verdict(super::alive(seen));
                    }
                    if let Err(verdict) = super::refused(seen, &cx.id(1), &[-32021]) {
                        return verdict;
                    }
                    match seen.reply(&cx.id(1)).and_then(|reply| reply.pointer("/error/data/requiredCapabilities")) {
                        Some(needed) if needed.as_object().is_some_and(|members| !members.is_empty()) => Verdict::Pass,
                        Some(needed) if needed.is_object() => fail(seen, "data.requiredCapabilities names no capability"),
                        _ => fail(seen, "the error has no object data.requiredCapabilities"),
                    }
                },
            ),
        Check::must("capability-named", &["ERR-07"], Revisions::MODERN,
            "An error -32021 names what the client lacks, in an object data.requiredCapabilities.")
            .hosts("A client cannot tell what it lacks.")
            .scan(|_, all| {
                let odd = all.received().filter(|(value, _)| {
                    let needed = value.pointer("/error/data/requiredCapabilities").and_then(Value::as_object);
                    value["error"]["code"] == -32021 && needed.is_none_or(serde_json::Map::is_empty)
                });
                Verdict::from_faults(odd.map(|(value, frame)| (format!("data is {}", short(&value["error"]["data"])), frame.text())).collect())
            }),
        Check::must("input-state", &["MRTR-09", "SEC-08"], Revisions::MODERN, "A requestState that was changed is refused.")
            .sent("the fixture's `test_input_required_result_tampered_state`, and its own state with one character changed")
            .hosts("A client, or who reads its traffic, rewrites what the server believes.")
            .fresh(
                |cx| {
                    fixture(cx, "test_input_required_result_tampered_state")?;
                    let call = json!({ "name": TAMPERED, "arguments": {} });
                    Ok(vec![Step::Open(json!({})), cx.request_with(0, "tools/call", call, &every()),
                        Step::Follow(cx.id(0), cx.id(1), forged), Step::Await(cx.id(1))])
                },
                |cx, seen| match seen.reply(&cx.id(1)) {
                    None if !seen.own.contains(&cx.id(1)) => Verdict::skip("the tool gave no requestState"),
                    Some(reply) if reply.get("error").is_some() => Verdict::Pass,
                    Some(reply) => fail(seen, format!("a forged state was taken: {}", short(reply))),
                    None => super::unanswered(seen, &cx.id(1)),
                },
            ),
        Check::should("input-flows", &["STD-26", "MRTR-05", "MRTR-12"], Revisions::MODERN,
            "Two calls that ask back may be under way at once, and an answer that nobody asked for does no harm.")
            .sent("the fixture's `test_input_required_result_elicitation` twice, and the answers in the other order with one more key")
            .hosts("A gateway serves two users with one process.")
            .after(&["input-shape"])
            .probe(
                |cx| {
                    fixture(cx, FLOW)?;
                    let call = || json!({ "name": FLOW, "arguments": {} });
                    Ok(vec![cx.request_with(0, "tools/call", call(), &every()), cx.request_with(1, "tools/call", call(), &every()), Step::Await(cx.id(0)),
                        Step::Follow(cx.id(1), cx.id(2), answered_and_more), Step::Await(cx.id(2)),
                        Step::Follow(cx.id(0), cx.id(3), answered_and_more), Step::Await(cx.id(3))])
                },
                |cx, seen| {
                    if !seen.own.contains(&cx.id(2)) || !seen.own.contains(&cx.id(3)) {
                        return Verdict::skip("the tool did not ask");
                    }
                    verdict([2, 3].iter().try_for_each(|n| match result(seen, &cx.id(*n))? {
                        result if result["resultType"] != "input_required" => Ok(()),
                        result => Err(fail(seen, format!("the answer did not finish the call: {}", short(result)))),
                    }))
                },
            ),
        Check::should("tools-change-fixture", &["TOL-24", "RES-15"], Revisions::LEGACY,
            "A server that declares `listChanged` tells when the list of tools or prompts has changed.")
            .sent("the fixture's `test_trigger_tool_change` and `test_trigger_prompt_change`")
            .hosts("The user of a host sees tools that are gone, and not the new ones.")
            .fresh(
                |cx| {
                    let known = triggers(cx)?;
                    let mut steps = vec![Step::Open(json!({}))];
                    for (n, (tool, _, method)) in (0..).zip(known) {
                        steps.extend([cx.request(n, "tools/call", json!({ "name": tool, "arguments": {} })), Step::Await(cx.id(n)), Step::Hear(method), Step::Listen(80)]);
                    }
                    steps.push(Step::Barrier);
                    Ok(steps)
                },
                |cx, seen| match triggers(cx).unwrap_or_default().iter().find(|(_, _, method)| !seen.notifications().any(|note| note["method"] == *method)) {
                    Some((tool, _, method)) => fail(seen, format!("{method} did not come after {tool}")),
                    None => Verdict::Pass,
                },
            ),
        Check::must("init-undeclared-fixture", &["LIF-12", "LIF-17"], Revisions::LEGACY,
            "A server that does not declare `listChanged` does not tell of changes.")
            .weaker(Revisions::BEFORE_0618)
            .sent("the fixture's `test_trigger_tool_change` and `test_trigger_prompt_change`, where the change is not declared")
            .hosts("A client drops what the server did not declare, and shows an old list.")
            .probe(
                |cx| {
                    let silent = undeclared_triggers(cx)?;
                    let mut steps: Vec<Step> = (0..).zip(&silent).flat_map(|(n, (tool, _))| [cx.request(n, "tools/call", json!({ "name": tool, "arguments": {} })), Step::Await(cx.id(n))]).collect();
                    steps.extend([Step::Barrier, Step::Listen(100)]);
                    Ok(steps)
                },
                |cx, seen| {
                    let silent = undeclared_triggers(cx).unwrap_or_default();
                    match seen.notifications().find(|note| silent.iter().any(|(_, method)| note["method"] == *method)) {
                        Some(note) => fail(seen, format!("{} came, and listChanged is not declared", note["method"])),
                        None => verdict(super::alive(seen)),
                    }
                },
            ),
        Check::should("listen-change-fixture", &["TOL-25", "RES-15", "SUB-03", "SUB-04", "SUB-06"], Revisions::MODERN,
            "A change is told to each subscription that asked for it, with its id, and to no other.")
            .sent("two subscriptions, one for changes of tools and one for changes of prompts, and each once more; then the fixture's tools that change them")
            .hosts("The user of a host sees tools that are gone, and not the new ones.")
            .after(&["listen-ack", "listen-answer", "listen-subset", "listen-unasked"])
            .fresh(
                |cx| {
                    let known = triggers(cx)?;
                    let mut steps = vec![Step::Open(json!({}))];
                    for (n, (_, filter, _)) in (0..).zip(known.iter().chain(&known)) {
                        let filter = json!({ "notifications": { *filter: true } });
                        steps.extend([cx.request(n, "subscriptions/listen", filter), Step::Hear("notifications/subscriptions/acknowledged")]);
                    }
                    steps.extend([Step::Barrier, Step::Listen(60)]);
                    for (n, (tool, _, method)) in (10..).zip(known) {
                        steps.extend([cx.request(n, "tools/call", json!({ "name": tool, "arguments": {} })), Step::Await(cx.id(n)), Step::Hear(method), Step::Listen(80)]);
                    }
                    steps.push(Step::Barrier);
                    Ok(steps)
                },
                |cx, seen| {
                    if let Some(refusal) = super::listen::refusal(cx, seen, &cx.id(0)) {
                        return refusal;
                    }
                    let known = triggers(cx).unwrap_or_default();
                    verdict((0..).zip(known.iter().chain(&known)).try_for_each(|(n, (tool, _, method))| {
                        let told: Vec<_> = seen.notifications().filter(|note| note["method"] == *method)
                            .map(|note| note["params"]["_meta"].get(crate::cx::SUBSCRIPTION)).collect();
                        match told.first() {
                            None => Err(fail(seen, format!("{method} did not come after {tool}"))),
                            Some(_) if told.contains(&Some(&cx.id(n))) => Ok(()),
                            Some(_) => Err(fail(seen, format!("{method} was not told to the subscription {}", cx.id(n)))),
                        }
                    }))
                },
            ),
        Check::must("input-shape", &["MRTR-02", "MRTR-03", "MRTR-04", "MRTR-14", "CAP-03", "ELI-02", "ELI-04", "SAM-02"], Revisions::MODERN,
            "A result that asks back has questions or a state, asks only for what was declared, and has no cache hints.")
            .sent("the fixture's `test_input_required_result_elicitation` with `elicitation: {}` declared, or an allowed call with what it needs")
            .hosts("A client cannot answer it, so the call never ends.")
            .probe(
                |cx| {
                    let (params, caps) = asking(cx, FLOW, json!({ "elicitation": {} }))?;
                    Ok(vec![cx.request_with(0, "tools/call", params, &caps)])
                },
                |cx, seen| match result(seen, &cx.id(0)) {
                    Ok(result) if result["resultType"] == "input_required" => {
                        let caps = asking(cx, FLOW, json!({ "elicitation": {} })).map(|(_, caps)| caps).unwrap_or_default();
                        asks(result, &caps).map_or(Verdict::Pass, |what| fail(seen, what))
                    }
                    Ok(_) if fixture(cx, FLOW).is_err() => Verdict::skip("the allowed call did not ask"),
                    Ok(result) => fail(seen, format!("it did not ask: {}", short(result))),
                    Err(verdict) => verdict,
                },
            ),
        Check::must("input-ask-legacy", &["ELI-02", "SAM-02"], Revisions::LEGACY,
            "A question to the client fits its schema, and the call goes on with the answer.")
            .sent("the fixture's `test_elicitation` and `test_sampling`, or allowed calls that ask, from a client that declares all that they need")
            .hosts("A client cannot answer it, so the call never ends.")
            .after(&["rpc-own-null"])
            .fresh(
                |cx| {
                    let all = [("test_elicitation", json!({ "message": "taut-check" })), ("test_sampling", json!({ "prompt": "taut-check" }))];
                    if let Err(why) = fixture(cx, all[0].0).or_else(|_| fixture(cx, all[1].0)) {
                        return super::asked::answered(cx).ok_or_else(|| format!("{why}, and no allowed call asks back"));
                    }
                    // Questions to the user came with 2025-06-18.
                    let forms = ["2025-06-18", "2025-11-25"].contains(&cx.revision.as_str());
                    if !forms {
                        fixture(cx, all[1].0)?;
                        return Ok(vec![Step::Open(json!({ "sampling": {} })), cx.request(1, "tools/call", json!({ "name": all[1].0, "arguments": all[1].1 })), Step::Await(cx.id(1))]);
                    }
                    fixture(cx, all[0].0).or_else(|why| fixture(cx, all[1].0).map_err(|_| why))?;
                    let mut steps = vec![Step::Open(json!({ "sampling": {}, "elicitation": {} }))];
                    for (n, (tool, args)) in (0..).zip(all).filter(|(_, (tool, _))| cx.survey.tool(tool).is_some()) {
                        steps.extend([cx.request(n, "tools/call", json!({ "name": tool, "arguments": args })), Step::Await(cx.id(n))]);
                    }
                    Ok(steps)
                },
                |cx, seen| {
                    let odd = seen.got().filter(|value| is_request(value)).find_map(|value| crate::schema::objection(cx.revision, value, None));
                    match odd {
                        Some(what) => fail(seen, format!("a question does not fit: {what}")),
                        None => verdict((0..2).filter(|n| seen.own.contains(&cx.id(*n))).try_for_each(|n| result(seen, &cx.id(n)).map(|_| ()))),
                    }
                },
            ),
    ]
}

/// Tools of the fixture that change a list: the tool, the filter that asks for the change, and how it is told.
fn triggers(cx: &Cx<'_>) -> Result<Vec<(&'static str, &'static str, &'static str)>, String> {
    fixture(cx, TRIGGERS[0].0).or_else(|why| fixture(cx, TRIGGERS[1].0).map_err(|_| why))?;
    let known = TRIGGERS
        .into_iter()
        .filter(|(tool, flag, ..)| cx.survey.tool(tool).is_some() && cx.survey.declares(flag));
    let known: Vec<_> = known.map(|(tool, _, filter, method)| (tool, filter, method)).collect();
    if known.is_empty() { Err("the server declares no listChanged".to_owned()) } else { Ok(known) }
}

/// The fixture's tools that change a list whose changes are not declared, and what would tell it.
fn undeclared_triggers(cx: &Cx<'_>) -> Result<Vec<(&'static str, &'static str)>, String> {
    fixture(cx, TRIGGERS[0].0).or_else(|why| fixture(cx, TRIGGERS[1].0).map_err(|_| why))?;
    let silent = TRIGGERS
        .into_iter()
        .filter(|(tool, flag, ..)| cx.survey.tool(tool).is_some() && !cx.survey.declares(flag));
    let silent: Vec<_> = silent.map(|(tool, _, _, method)| (tool, method)).collect();
    if silent.is_empty() { Err("the server declares listChanged".to_owned()) } else { Ok(silent) }
}

/// The fixture's tools that change a list: what is declared for it, asked for, and told.
const TRIGGERS: [(&str, &str, &str, &str); 2] = [
    (
        "test_trigger_tool_change",
        "tools/listChanged",
        "toolsListChanged",
        "notifications/tools/list_changed",
    ),
    (
        "test_trigger_prompt_change",
        "prompts/listChanged",
        "promptsListChanged",
        "notifications/prompts/list_changed",
    ),
];

const TAMPERED: &str = "test_input_required_result_tampered_state";
const FLOW: &str = "test_input_required_result_elicitation";

/// Every capability that a question may need.
pub(super) fn every() -> Value {
    json!({ "elicitation": { "form": {} }, "sampling": {}, "roots": {} })
}

/// A state with one character in its middle changed.
fn tampered(state: &str) -> String {
    let middle = state.chars().count() / 2;
    let other = |c: char| if c == 'A' { 'B' } else { 'A' };
    state.chars().enumerate().map(|(at, c)| if at == middle { other(c) } else { c }).collect()
}

/// The call again, with answers to what its result asks, and the state as it is made of the one that came.
pub(super) fn answered(
    reply: &Value,
    id: &Value,
    request: &Value,
    state: fn(&str) -> String,
) -> Option<Value> {
    let result = reply.get("result").filter(|result| result["resultType"] == "input_required")?;
    let mut again = request.clone();
    again["id"] = id.clone();
    again["params"]["inputResponses"] = json!({});
    for (key, entry) in result["inputRequests"].as_object().into_iter().flatten() {
        let asked = json!({ "id": 0, "method": entry["method"], "params": entry["params"] });
        again["params"]["inputResponses"][key] =
            crate::server::answers::reply_to(&asked, &every())["result"].clone();
    }
    let members = again["params"].as_object_mut()?;
    members.remove("requestState");
    if let Some(text) = result["requestState"].as_str() {
        members.insert("requestState".to_owned(), json!(state(text)));
    }
    Some(again)
}

/// The same, with one more answer that nobody asked for.
fn answered_and_more(reply: &Value, id: &Value, request: &Value) -> Option<Value> {
    let mut again = answered(reply, id, request, str::to_owned)?;
    again["params"]["inputResponses"]["taut-check"] = json!({ "action": "cancel" });
    Some(again)
}

/// The same, with a state that was changed; nothing without a state.
fn forged(reply: &Value, id: &Value, request: &Value) -> Option<Value> {
    answered(reply, id, request, tampered)
        .filter(|again| again["params"].get("requestState").is_some())
}

/// What a question asks for that the client did not declare, within a capability that it did.
pub(super) fn undeclared(method: &Value, params: &Value, caps: &Value) -> Option<&'static str> {
    let (sampling, elicitation) = (&caps["sampling"], &caps["elicitation"]);
    match method.as_str()? {
        "elicitation/create" if params["mode"] == "url" && elicitation.get("url").is_none() => {
            Some("asks in the mode url, which was not declared")
        }
        // `{}` alone means forms (CAP-03).
        "elicitation/create"
            if params["mode"] != "url"
                && elicitation.get("url").is_some()
                && elicitation.get("form").is_none() =>
        {
            Some("asks with a form, and only the mode url was declared")
        }
        "sampling/createMessage" if sampling.get("tools").is_none() => {
            let tools = params.get("tools").is_some() || params.get("toolChoice").is_some();
            tools.then_some("has tools for sampling, which were not declared")
        }
        _ => None,
    }
}

/// What is wrong with a result that asks back, of a request with these capabilities.
pub(super) fn asks(result: &Value, caps: &Value) -> Option<String> {
    let (requests, state) = (result.get("inputRequests"), result.get("requestState"));
    let asks = requests
        .is_some_and(|requests| requests.as_object().is_none_or(|entries| !entries.is_empty()));
    if !asks && state.is_none() {
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
        let undeclared = undeclared(&entry["method"], &entry["params"], caps);
        undeclared.map(|what| format!("{key} {what}")).or_else(|| {
            let name = crate::schema::method_definition(entry["method"].as_str()?)?;
            crate::schema::misfit(Revision::MODERN, name, entry)
                .map(|what| format!("{key} does not fit: {what}"))
        })
    })
}
