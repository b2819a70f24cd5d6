//! Allowed calls that ask the client back: what they may ask for, and how the server serves others meanwhile (CAP, CAN, PNG).

use serde_json::{Value, json};

use super::fixture::asks;
use super::{fail, short};
use crate::check::{Check, Revisions, Sends, Verdict};
use crate::cx::{Called, Cx, askable};
use crate::seen::{Seen, Step, is_request};

/// Allowed calls that ask, at most. Each is made some ten times.
const MOST: usize = 4;

/// Where the ids of these calls begin within a probe, and how many each may use.
const FIRST: i64 = 40;
const EACH: i64 = 10;

/// The allowed calls that ask a client which declares everything.
pub(super) fn calls<'a>(cx: &Cx<'a>) -> Vec<&'a Called> {
    cx.survey.calls.iter().filter(|call| !call.asks.is_empty()).take(MOST).collect()
}

fn params(call: &Called) -> Value {
    json!({ "name": call.tool, "arguments": call.args })
}

/// Those that ask nothing as long as nothing is declared, with the first of their ids: `input-asks` tells of the others.
fn numbered<'a>(cx: &Cx<'a>) -> impl Iterator<Item = (i64, &'a Called)> + use<'a> {
    let asks = |call: &&Called| call.result().is_some_and(has_questions);
    (0..).map(|n| FIRST + n * EACH).zip(calls(cx).into_iter().filter(move |call| !asks(call)))
}

/// Each call with nothing declared, and with everything.
pub(super) fn bare_and_full(cx: &Cx<'_>) -> Vec<Step> {
    let both = |(n, call): (i64, &Called)| {
        let bare = cx.request_with(n, "tools/call", params(call), &json!({}));
        let full = cx.request_with(n + 1, "tools/call", params(call), &askable(cx.revision));
        [bare, Step::Await(cx.id(n)), full, Step::Await(cx.id(n + 1))]
    };
    numbered(cx).flat_map(both).collect()
}

/// The first call that asks where it may, and is refused otherwise, but not as a missing capability is (CAP-02).
pub(super) fn other_refusal(cx: &Cx<'_>, seen: &Seen<'_>) -> Option<String> {
    numbered(cx).find_map(|(n, call)| {
        seen.result(&cx.id(n + 1)).filter(|result| has_questions(result))?;
        let reply = seen.reply(&cx.id(n))?;
        let refused = reply["error"]["code"].as_i64().is_some_and(|code| code != -32021)
            || reply["result"]["isError"] == true;
        let told = reply.get("error").or_else(|| reply.get("result")).map(short);
        refused.then(|| {
            format!(
                "{} asks the client, and without capabilities it is no error -32021 but {}",
                call.tool,
                told.unwrap_or_default()
            )
        })
    })
}

fn has_questions(result: &Value) -> bool {
    let asked = result["inputRequests"].as_object();
    result["resultType"] == "input_required" && asked.is_some_and(|all| !all.is_empty())
}

/// What each call is made with after everything: a server may remember nothing of it.
fn less() -> [Value; 5] {
    [
        json!({}),
        json!({ "elicitation": { "url": {} } }),
        json!({ "elicitation": {} }),
        json!({ "sampling": {} }),
        json!({ "roots": {} }),
    ]
}

/// Each call with everything declared, and then with less.
pub(super) fn declaring_less(cx: &Cx<'_>) -> Vec<Step> {
    let every = |(n, call): (i64, &Called)| {
        let caps = [askable(cx.revision)].into_iter().chain(less());
        let calls = (n..).zip(caps).flat_map(|(n, caps)| {
            [cx.request_with(n, "tools/call", params(call), &caps), Step::Await(cx.id(n))]
        });
        calls.collect::<Vec<_>>()
    };
    numbered(cx).flat_map(every).collect()
}

/// The first question for which less was declared than it needs.
pub(super) fn asks_beyond(cx: &Cx<'_>, seen: &Seen<'_>) -> Option<String> {
    numbered(cx).find_map(|(first, call)| {
        (first + 1..).zip(less()).find_map(|(n, caps)| {
            let result = seen.result(&cx.id(n)).filter(|result| has_questions(result))?;
            let what = asks(result, &caps)?;
            Some(format!("{}, with {caps} declared: {what}", call.tool))
        })
    })
}

/// Each call in a session whose client declares all that they ask for; nothing if none asks.
pub(super) fn answered(cx: &Cx<'_>) -> Option<Vec<Step>> {
    let all = calls(cx);
    let mut steps = vec![Step::Open(askable(cx.revision))];
    for (n, call) in (0..).zip(&all) {
        steps.extend([cx.request(n, "tools/call", params(call)), Step::Await(cx.id(n))]);
    }
    (!all.is_empty()).then_some(steps)
}

/// The questions that a person or a model takes time to answer, with what a client declares for them.
const WAITING: [(&str, &str); 2] =
    [("elicitation/create", "elicitation"), ("sampling/createMessage", "sampling")];

/// A session that declares what one call asks for, makes that call and leaves its question without an answer; then more.
fn waiting(cx: &Cx<'_>, more: Vec<Step>) -> Sends {
    let all = calls(cx);
    let found = WAITING.iter().find_map(|(method, capability)| {
        let call = all.iter().find(|call| call.asks.iter().any(|asked| asked == method))?;
        Some((*method, *capability, *call))
    });
    let none = || "no allowed call asks the user or the model: allow one with --call".to_owned();
    let (method, capability, call) = found.ok_or_else(none)?;
    let caps = json!({ capability: {} });
    let mut steps = vec![Step::Open(caps), Step::Mute];
    steps.extend([cx.request(0, "tools/call", params(call)), Step::Hear(method)]);
    steps.extend(more);
    Ok(steps)
}

/// Whether the call waits for its answer.
fn waits(seen: &Seen<'_>) -> bool {
    let asks = |value: &Value| WAITING.iter().any(|(method, _)| value["method"] == *method);
    seen.got().any(|value| is_request(value) && asks(value))
}

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::must("ping-asking", &["PNG-01", "PNG-06"], Revisions::LEGACY,
            "A ping is answered while a call waits for the answer of the client.")
            .sent("an allowed call that asks, and a ping before its question is answered")
            .hosts("A host takes the server for dead, and ends it, while its user still fills in a form.")
            .after(&["ping"])
            .once()
            .fresh(
                |cx| waiting(cx, vec![cx.request(1, "ping", Value::Null), Step::Await(cx.id(1))]),
                |cx, seen| match seen.reply(&cx.id(1)) {
                    _ if !waits(seen) => Verdict::skip("the call did not ask"),
                    Some(_) => Verdict::Pass,
                    None => fail(seen, "a ping had no answer while a call waited for the client"),
                },
            ),
        Check::should("cancel-asking", &["CAN-03"], Revisions::LEGACY,
            "A call that was cancelled while it waited for the client gets no answer.")
            .sent("an allowed call that asks, and its cancellation before its question is answered")
            .hosts("The answer of a cancelled call reaches a host that has forgotten the call.")
            .after(&["cancel-silent"])
            .once()
            .fresh(
                |cx| waiting(cx, vec![cx.note("notifications/cancelled", json!({ "requestId": cx.id(0) })), Step::Barrier, Step::Listen(300)]),
                |cx, seen| match seen.reply(&cx.id(0)) {
                    _ if !waits(seen) => Verdict::skip("the call did not ask"),
                    Some(reply) => fail(seen, format!("the cancelled call was answered: {}", short(reply))),
                    None => super::verdict(super::alive(seen)),
                },
            ),
        Check::should("frame-exit-asking", &["STD-17"], Revisions::LEGACY,
            "The server exits soon after its stdin ends, also while a call waits for the client.")
            .sent("an allowed call that asks, then the end of stdin instead of an answer; 8 seconds are allowed")
            .hosts("A host that is closed while a form is open leaves a process behind.")
            .after(&["frame-exit"])
            .once()
            .fresh(
                |cx| waiting(cx, vec![Step::Close]),
                |_, seen| match seen.gone {
                    _ if !waits(seen) => Verdict::skip("the call did not ask"),
                    Some(_) => Verdict::Pass,
                    None => fail(seen, "it still ran when the time was over"),
                },
            ),
    ]
}
