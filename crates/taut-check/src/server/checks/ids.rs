//! Ids of errors and of calls: 0 and the empty string are ids like any other (RPC).

use serde_json::{Value, json};

use super::rpc::QUIET;
use super::{fail, short, verdict};
use crate::check::{Check, Revisions, Verdict};
use crate::cx::Cx;
use crate::seen::Step;

/// Ids that look like none where a program asks only whether they are there.
fn empty() -> [Value; 2] {
    [json!(0), json!("")]
}

/// The request that is sent with each of these ids: an allowed call, or the first list.
fn asked(cx: &Cx<'_>) -> Result<(&'static str, Value), String> {
    let all = super::samples(cx);
    let call = all.iter().find(|(method, _)| *method == "tools/call");
    call.or_else(|| all.first()).cloned().ok_or_else(|| "the server has no list".to_owned())
}

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::must("rpc-error-id", &["RPC-06"], Revisions::ALL,
            "An error repeats the id of its request, too, with the same JSON type.")
            .sent("requests for a method, and for a tool, that do not exist, with integers, strings and strings of digits as ids")
            .hosts("A client cannot tell which request failed, and waits for its timeout.")
            .probe(
                |cx| {
                    let ask = |id: &Value, method: &str, params: Value| Step::Send(cx.request_as(id, method, params));
                    let [number, text, small, tool] = failing(cx);
                    let none = json!({ "name": "taut-check-no-such-tool", "arguments": {} });
                    let mut steps = vec![ask(&number, "taut-check/none", Value::Null), ask(&text, "taut-check/none", Value::Null), ask(&small, "taut-check/none", Value::Null)];
                    steps.push(ask(&digits(cx)[0], "taut-check/none", Value::Null));
                    let tools = [tool, digits(cx)[1].clone()].into_iter().filter(|_| cx.survey.declares("tools"));
                    steps.extend(tools.map(|id| ask(&id, "tools/call", none.clone())));
                    Ok(steps)
                },
                |cx, seen| {
                    let lost = failing(cx).into_iter().find(|id| seen.own.contains(id) && seen.reply(id).is_none());
                    match (lost, super::idless(seen)) {
                        (Some(id), Some(error)) => fail(seen, format!("the error for request {id} has no id: {}", short(error))),
                        // What else may be wrong with it is judged by other checks.
                        _ => match digits(cx).into_iter().find_map(|id| seen.reply(&id).filter(|reply| reply["id"] != id)) {
                            Some(reply) => fail(seen, format!("the id was a string of digits, and came back as {}", reply["id"])),
                            None => Verdict::Pass,
                        },
                    }
                },
            ),
        Check::must("rpc-error-zero", &["RPC-06", "RPC-29"], Revisions::LEGACY,
            "An error repeats the id 0 and the empty string, too.")
            .sent("requests for a method that does not exist, with the ids 0 and \"\"")
            .hosts("0 is the first id of the TypeScript and Python SDKs; a server that takes it for none loses the error.")
            .after(&["rpc-error-id", "rpc-id-forms"])
            .once()
            .fresh(
                |cx| {
                    let ask = |id: Value| Step::Send(cx.request_as(&id, "taut-check/none", Value::Null));
                    Ok(vec![Step::Open(json!({})), ask(json!(0)), ask(json!("")), Step::Barrier, Step::Listen(QUIET)])
                },
                |_, seen| verdict([json!(0), json!("")].iter().try_for_each(|id| super::refused_somehow(seen, id))),
            ),
        Check::must(
            "rpc-id-call",
            &["RPC-29", "RPC-06"],
            Revisions::ALL,
            "A call with the id 0, or with the empty string, is answered like any other.",
        )
        .sent("an allowed call, or the first list, with the ids 0, \"\" and another")
        .hosts("0 is the first id of some hosts; a server that takes it for none never answers.")
        .after(&["rpc-id-forms", "rpc-id-methods"])
        .once()
        .fresh(
            |cx| {
                let (method, params) = asked(cx)?;
                let send = |id: &Value| Step::Send(cx.request_as(id, method, params.clone()));
                let mut steps = vec![Step::Open(json!({}))];
                steps.extend(empty().iter().flat_map(|id| [send(id), Step::Await(id.clone())]));
                steps.extend([send(&cx.id(0)), Step::Await(cx.id(0)), Step::Barrier]);
                Ok(steps)
            },
            |cx, seen| {
                let served = seen.result(&cx.id(0)).is_some();
                verdict(empty().iter().try_for_each(|id| match seen.reply(id) {
                    None => Err(super::unanswered(seen, id)),
                    Some(reply) if served && reply["error"].is_object() => Err(fail(
                        seen,
                        format!("the id {id} was refused, and another served: {}", short(reply)),
                    )),
                    Some(_) => Ok(()),
                }))
            },
        ),
    ]
}

/// Ids of requests that fail.
fn failing(cx: &Cx<'_>) -> [Value; 4] {
    // 0 is used by other probes, and no id is used twice in a session of an older revision.
    let small = if cx.modern() { json!(0) } else { json!(-2) };
    [cx.id(0), json!("taut-check-error"), small, json!("taut-check-tool")]
}

/// Ids of others that fail: strings of digits. No number of these digits is sent.
fn digits(cx: &Cx<'_>) -> [Value; 2] {
    [60, 61].map(|n| json!(cx.id(n).to_string()))
}
