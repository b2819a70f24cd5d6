//! Cancellation (CAN).

use serde_json::{Value, json};

use super::{alive, fail, short, silent, verdict};
use crate::check::{Check, Revisions, Sends, Verdict};
use crate::cx::{Cx, LOG_LEVEL};
use crate::seen::{Seen, Step, is_response};

/// The ids of four calls, of which all but the last are cancelled.
fn ids(cx: &Cx<'_>) -> [Value; 4] {
    [json!(0), json!("taut-check"), json!(""), cx.id(0)]
}

/// The progress tokens of two calls that are cancelled. A server that changes a text would change these (PRG-09).
const TOKENS: [&str; 2] = ["Taut-Check \u{fc} 1", "Taut-Check \u{fc} 2"];

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::must("cancel-unknown", &["CAN-04", "CAN-06", "RPC-11", "MET-09"], Revisions::ALL,
            "Cancelling what is unknown or finished does nothing.")
            .sent("a request, and its cancellation after the answer; then one for an id that was never used, one for the handshake, and one for an id that is used only afterwards")
            .hosts("opencode cancels after every call that worked.")
            .silent()
            .after(&["rpc-once", "rpc-notification-silent"])
            .probe(
                |cx| Ok(vec![
                    Step::Send(cx.harmless_as(&cx.id(0))), Step::Await(cx.id(0)),
                    cx.note("notifications/cancelled", json!({ "requestId": cx.id(0), "reason": "AbortError" })),
                    cx.note("notifications/cancelled", json!({ "requestId": "never-used" })),
                    cx.note("notifications/cancelled", json!({ "requestId": crate::server::session::OPENING })),
                    cx.note("notifications/cancelled", json!({ "requestId": cx.id(1) })),
                    Step::Barrier, Step::Send(cx.harmless_as(&cx.id(1))), Step::Await(cx.id(1)),
                ]),
                |cx, seen| match seen.replies(&cx.id(0)).len() {
                    1 if seen.reply(&cx.id(1)).is_none() => match silent(seen) {
                        Ok(()) => fail(seen, "a request was not answered whose id was cancelled before it was sent"),
                        Err(verdict) => verdict,
                    },
                    1 => verdict(silent(seen)),
                    n => fail(seen, format!("the request was answered {n} times")),
                },
            ),
        Check::should("cancel-malformed", &["CAN-07"], Revisions::ALL,
            "A malformed cancellation is ignored.")
            .sent("cancellations without params, with null, an object and an array as requestId, and with a reason that is no text")
            .hosts("A server that ends here ends with a host's bug.")
            .silent()
            .after(&["rpc-notification-silent", "cancel-unknown"])
            .probe(
                |cx| Ok(vec![
                    cx.note("notifications/cancelled", Value::Null),
                    cx.note("notifications/cancelled", json!({})),
                    cx.note("notifications/cancelled", json!({ "requestId": null })),
                    cx.note("notifications/cancelled", json!({ "requestId": { "a": 1 } })),
                    cx.note("notifications/cancelled", json!({ "requestId": [1] })),
                    cx.note("notifications/cancelled", json!({ "requestId": "never-used", "reason": 5 })),
                ]),
                |_, seen| verdict(silent(seen)),
            ),
        Check::should("cancel-malformed-busy", &["CAN-07"], Revisions::ALL,
            "A malformed cancellation stops no call.")
            .sent("an allowed call that takes at least 300 ms, and cancellations without params, without a requestId and with null for it")
            .hosts("The bug of one host would end the calls that another one waits for.")
            .after(&["cancel-malformed"])
            .probe(
                |cx| {
                    let call = cx.survey.slow_call()?;
                    Ok(vec![
                        cx.request(0, "tools/call", json!({ "name": call.tool, "arguments": call.args })),
                        Step::Listen(40),
                        cx.note("notifications/cancelled", Value::Null),
                        cx.note("notifications/cancelled", json!({})),
                        cx.note("notifications/cancelled", json!({ "requestId": null })),
                        Step::Await(cx.id(0)),
                    ])
                },
                |cx, seen| verdict(super::result(seen, &cx.id(0)).map(|_| ())),
            ),
        Check::should("cancel-unknown-busy", &["CAN-04", "CAN-03", "CAN-10"], Revisions::ALL,
            "The cancellation of what is unknown or finished stops no call.")
            .sent("a request; an allowed call that takes at least 300 ms, and during it the cancellations of the request that was answered and of ids that were never used")
            .hosts("opencode cancels after every call that worked, and would end the calls that still run.")
            .after(&["cancel-unknown", "cancel-malformed-busy"])
            .probe(
                |cx| {
                    let call = cx.survey.slow_call()?;
                    let cancel = |id: Value| cx.note("notifications/cancelled", json!({ "requestId": id }));
                    Ok(vec![
                        Step::Send(cx.harmless_as(&cx.id(0))), Step::Await(cx.id(0)),
                        cx.request(1, "tools/call", json!({ "name": call.tool, "arguments": call.args })),
                        Step::Listen(40), cancel(cx.id(0)), cancel(json!("taut-check-unknown")), cancel(cx.id(90)),
                        Step::Await(cx.id(1)),
                    ])
                },
                |cx, seen| verdict(super::result(seen, &cx.id(1)).map(|_| ())),
            ),
        Check::should("cancel-after", &["CAN-03"], Revisions::ALL,
            "Calls that were cancelled take nothing from those that follow.")
            .sent("an allowed call that takes at least 300 ms six times at once, their cancellations, then an allowed call")
            .hosts("After some stops of its user a host can call nothing any more.")
            .after(&["cancel-silent", "cancel-silent-modern", "rpc-interleaved"])
            .probe(
                |cx| {
                    let slow = cx.survey.short_slow_call()?;
                    let params = |call: &crate::cx::Called| json!({ "name": call.tool, "arguments": call.args });
                    let mut steps: Vec<Step> = (0..6).map(|n| cx.request(n, "tools/call", params(slow))).collect();
                    steps.push(Step::Listen(60));
                    steps.extend((0..6).map(|n| cx.note("notifications/cancelled", json!({ "requestId": cx.id(n) }))));
                    let quick = cx.survey.call(|call| call.took_ms < crate::cx::SLOW).unwrap_or(slow);
                    steps.extend([Step::Barrier, cx.request(10, "tools/call", params(quick)), Step::Await(cx.id(10))]);
                    Ok(steps)
                },
                |cx, seen| verdict(super::result(seen, &cx.id(10)).map(|_| ())),
            ),
        Check::must("cancel-race", &["CAN-06"], Revisions::ALL,
            "A cancellation that meets the answer on its way does no harm: one answer or none.")
            .sent("a request and its cancellation in one write")
            .hosts("Every host's stop button does this.")
            .after(&["rpc-once"])
            .probe(
                |cx| {
                    let list = if cx.survey.declares("tools") { "tools/list" } else { cx.harmless() };
                    let request = cx.request_as(&cx.id(0), list, Value::Null);
                    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": cx.id(0) } });
                    Ok(vec![Step::Raw(format!("{request}\n{cancel}\n").into_bytes())])
                },
                |cx, seen| match seen.replies(&cx.id(0)).len() {
                    0 | 1 => verdict(alive(seen)),
                    n => fail(seen, format!("it was answered {n} times")),
                },
            ),
        Check::should("cancel-silent", &["CAN-03", "PRG-07"], Revisions::LEGACY,
            "A cancelled request gets no answer and no further progress.")
            .sent("an allowed call that takes at least 300 ms, twice at once, and their cancellations after 60 and 140 ms")
            .hosts("The answer of a cancelled call reaches a host that has forgotten the call.")
            .probe(cancel_steps, cancel_judge),
        Check::must("cancel-silent-modern", &["CAN-10", "CAN-03"], Revisions::MODERN,
            "After a cancellation nothing more is sent for that request: no answer, no progress, no log.")
            .sent("an allowed call that takes at least 300 ms, twice at once, and their cancellations after 60 and 140 ms")
            .hosts("The answer of a cancelled call reaches a host that has forgotten the call.")
            .probe(cancel_steps, cancel_judge),
        Check::should("cancel-ids", &["CAN-03", "CAN-10", "RPC-29", "STD-28"], Revisions::ALL,
            "A request is cancelled by its id, be it 0 or a string, and no other request with it.")
            .sent("four allowed calls that take at least 300 ms at once, with the ids 0, \"taut-check\", \"\" and another; all but the last are cancelled")
            .hosts("0 is the first id of most hosts, and bridges use strings; a stop button that ends every call loses the work of the others.")
            .after(&["cancel-silent", "cancel-silent-modern"])
            .once()
            .fresh(
                |cx| {
                    let call = cx.survey.slow_call()?;
                    let params = || json!({ "name": call.tool, "arguments": call.args });
                    let mut steps = vec![Step::Open(json!({}))];
                    steps.extend(ids(cx).iter().map(|id| Step::Send(cx.request_as(id, "tools/call", params()))));
                    steps.push(Step::Listen(60));
                    steps.extend(ids(cx)[..3].iter().map(|id| cx.note("notifications/cancelled", json!({ "requestId": id }))));
                    steps.extend([Step::Await(cx.id(0)), Step::Barrier, Step::Listen((call.took_ms + 400).min(4000))]);
                    Ok(steps)
                },
                |cx, seen| {
                    let [zero, text, empty, other] = ids(cx);
                    let answered = [zero, text, empty].into_iter().find(|id| seen.reply(id).is_some());
                    match answered {
                        Some(id) if cancelled_early(cx, seen, &id) => fail(seen, format!("request {id} was answered after it was cancelled")),
                        Some(_) => Verdict::Blocked("the calls were over before they could be cancelled".to_owned()),
                        None => verdict(super::result(seen, &other).map(|_| ())),
                    }
                },
            ),
        Check::must("cancel-by-server", &["CAN-11", "CAN-02"], Revisions::ALL,
            "A server cancels only its own requests, or in 2026-07-28 a subscription.")
            .hosts("A host has nothing to cancel: the notification is dropped, and so is what the server meant.")
            .scan(|cx, all| {
                let mut faults = Vec::new();
                for (session, _) in &all.sessions {
                    let listens: Vec<Value> = session.sent.iter().filter(|(_, value)| value["method"] == "subscriptions/listen").map(|(_, value)| value["id"].clone()).collect();
                    let asked: Vec<Value> = session.received().filter(|(_, value, _)| crate::seen::is_request(value)).map(|(_, value, _)| value["id"].clone()).collect();
                    for (_, value, frame) in session.received() {
                        let id = &value["params"]["requestId"];
                        let own = if cx.modern() { listens.contains(id) } else { asked.contains(id) };
                        if value["method"] == "notifications/cancelled" && !own {
                            faults.push((format!("it cancelled {id}, which is no request of its own"), frame.text()));
                        }
                    }
                }
                Verdict::from_faults(faults)
            }),
    ]
}

fn cancel_steps(cx: &Cx<'_>) -> Sends {
    let call = cx.survey.slow_call()?;
    let params = |token: &str| {
        let mut params = json!({ "name": call.tool, "arguments": call.args, "_meta": { "progressToken": token } });
        if cx.modern() {
            params["_meta"][LOG_LEVEL] = json!("debug");
        }
        params
    };
    let listen = call.took_ms + 400;
    let cancel = |n: i64| {
        let params = json!({ "requestId": cx.id(n), "reason": "taut-check" });
        cx.note("notifications/cancelled", params)
    };
    Ok(vec![
        cx.request(0, "tools/call", params(TOKENS[0])),
        // A second one, which is cancelled later: an answer to each at that moment is no coincidence.
        cx.request(2, "tools/call", params(TOKENS[1])),
        Step::Listen(60),
        cancel(0),
        Step::Listen(80),
        cancel(2),
        Step::Barrier,
        // What comes up to here was under way.
        Step::Send(cx.harmless_as(&cx.id(1))),
        Step::Await(cx.id(1)),
        Step::Listen(listen.min(4000)),
    ])
}

/// Whether the cancellation was sent in the first half of the time that the call takes, and before its
/// answer: a busy machine may be too late with it.
fn cancelled_early(cx: &Cx<'_>, seen: &Seen<'_>, id: &Value) -> bool {
    let sent = |text: &str| {
        seen.entries.iter().find_map(|entry| match &entry.what {
            crate::process::What::Sent(bytes) if String::from_utf8_lossy(bytes).contains(text) => {
                Some(entry.at)
            }
            _ => None,
        })
    };
    let answered = seen.entries.iter().find_map(|entry| {
        let mine =
            |value: &&Value| is_response(value) && crate::seen::is_meant(value.get("id"), id);
        entry.value().filter(mine).map(|_| entry.at)
    });
    let normal = cx.survey.slow_call().map_or(0, |call| call.took_ms);
    // A result as always, and sooner than ever: it was on its way before the cancellation.
    let has = |result: Option<&Value>| {
        result.and_then(|it| it["content"].as_array()).is_some_and(|list| !list.is_empty())
    };
    let usual = has(cx.survey.slow_call().ok().and_then(|call| call.result()));
    let as_always = seen
        .result(id)
        .is_some_and(|result| result["isError"] != true && has(Some(result)) == usual);
    match (sent("\"tools/call\""), sent("notifications/cancelled"), answered) {
        (Some(called), Some(cancelled), Some(answered)) => {
            let in_half = |time: std::time::Duration| time.as_millis() * 2 < u128::from(normal);
            cancelled < answered
                && in_half(cancelled - called)
                && !(as_always && in_half(answered - called))
        }
        _ => false,
    }
}

/// Whether a message came at the moment when each of the calls was cancelled. `fits`: whether it is that message, for
/// a call with this id.
fn at_each_moment(cx: &Cx<'_>, seen: &Seen<'_>, fits: impl Fn(&Value, &Value) -> bool) -> bool {
    // Shorter than the time between the two, so that calls that take equally long are never both taken for it.
    const MOMENT: std::time::Duration = std::time::Duration::from_millis(75);
    let at_once = |id: &Value| {
        let cancels = |bytes: &[u8]| {
            let sent: Value = serde_json::from_slice(bytes).unwrap_or_default();
            sent["method"] == "notifications/cancelled" && sent["params"]["requestId"] == *id
        };
        let cancelled = seen.entries.iter().find_map(|entry| match &entry.what {
            crate::process::What::Sent(bytes) if cancels(bytes) => Some(entry.at),
            _ => None,
        });
        let Some(cancelled) = cancelled else { return false };
        let mut came =
            seen.entries.iter().filter(|entry| entry.value().is_some_and(|value| fits(value, id)));
        came.any(|entry| entry.at >= cancelled && entry.at - cancelled < MOMENT)
    };
    at_once(&cx.id(0)) && at_once(&cx.id(2))
}

/// Whether both calls were answered at the moment when they were cancelled.
fn cut_short(cx: &Cx<'_>, seen: &Seen<'_>) -> bool {
    at_each_moment(cx, seen, |value, id| {
        is_response(value) && crate::seen::is_meant(value.get("id"), id)
    })
}

/// A log without its numbers, which may be those of its call.
pub(super) fn words(log: &Value) -> String {
    let text = format!("{} {}", log["params"]["level"], log["params"]["data"]);
    text.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// Whether the server logs that it was cancelled: at both moments, and not before. One that also logs other things says
/// the same at both moments, and did not say it before.
fn logs_it(cx: &Cx<'_>, seen: &Seen<'_>) -> bool {
    let is_log = |value: &Value| value["method"] == "notifications/message";
    let first = seen.entries.iter().position(|entry| match &entry.what {
        crate::process::What::Sent(bytes) => {
            String::from_utf8_lossy(bytes).contains("notifications/cancelled")
        }
        _ => false,
    });
    let (before, after) = seen.entries.split_at(first.unwrap_or_default());
    let logs = |entries: &'_ [crate::process::Entry]| -> Vec<String> {
        let values = entries.iter().filter_map(crate::process::Entry::value);
        values.filter(|value| is_log(value)).map(words).collect()
    };
    let before = logs(before);
    before.is_empty() && at_each_moment(cx, seen, |value, _| is_log(value))
        || logs(after).iter().any(|said| {
            let same = |value: &Value, _: &Value| is_log(value) && words(value) == *said;
            !before.contains(said) && at_each_moment(cx, seen, same)
        })
}

/// Whether the server reports each call as done at the moment when it was cancelled.
fn reports_done(cx: &Cx<'_>, seen: &Seen<'_>) -> bool {
    at_each_moment(cx, seen, |value, id| {
        let params = &value["params"];
        let token = if *id == cx.id(0) { TOKENS[0] } else { TOKENS[1] };
        let total = params["total"].as_f64();
        value["method"] == "notifications/progress"
            && params["progressToken"] == token
            && total.is_some_and(|total| params["progress"].as_f64() >= Some(total))
    })
}

fn cancel_judge(cx: &Cx<'_>, seen: &Seen<'_>) -> Verdict {
    if let Some(reply) = seen.reply(&cx.id(0)) {
        return match cancelled_early(cx, seen, &cx.id(0)) || cut_short(cx, seen) {
            true => fail(seen, format!("it was answered: {}", short(reply))),
            // Tried again alone.
            false => Verdict::Blocked("the call was over before it could be cancelled".to_owned()),
        };
    }
    let marker = seen
        .got()
        .position(|value| is_response(value) && crate::seen::is_meant(value.get("id"), &cx.id(1)));
    let late = seen.got().skip(marker.map_or(usize::MAX, |at| at + 1));
    let more = late.into_iter().find(|value| {
        TOKENS.iter().any(|token| value["params"]["progressToken"] == *token)
            || cx.modern() && value["method"] == "notifications/message"
    });
    match more {
        None if cx.modern() && logs_it(cx, seen) => {
            fail(seen, "a log came after each of the cancellations")
        }
        None if cx.modern() && reports_done(cx, seen) => {
            fail(seen, "each call was reported as done after its cancellation")
        }
        // Logs of an older revision belong to no call.
        Some(more) if cx.modern() || more["method"] == "notifications/progress" => {
            fail(seen, format!("{} came after the cancellation", more["method"]))
        }
        _ => verdict(alive(seen)),
    }
}
