//! Whether a server stays as it was: after errors, after many calls, and at its end (RPC, TOL, STD).

use std::time::Duration;

use serde_json::{Value, json};

use super::{result, verdict};
use crate::check::{Check, Revisions, Verdict};
use crate::cx::{Called, Cx};
use crate::process::What;
use crate::seen::{Session, Step, is_response};

/// How many calls one process has to stand, and how many are under way at once.
const MANY: i64 = 60;
const AT_ONCE: i64 = 10;

/// Calls that take longer are not made so often, in milliseconds.
const QUICK: u64 = 100;

/// How often a server may stop to answer in a process that many checks share, if each of them is answered alone.
const STALLS: usize = 2;

/// How long an answer waits at least before it counts as held back, and within which time it then comes.
const HELD: Duration = Duration::from_millis(2500);
const AT_ONCE_AFTER: Duration = Duration::from_millis(150);

fn call(cx: &Cx<'_>, n: i64, call: &Called) -> Step {
    cx.request(n, "tools/call", json!({ "name": call.tool, "arguments": call.args }))
}

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::must("rpc-after-error", &["RPC-06"], Revisions::ALL,
            "A request that was refused takes nothing from those that follow.")
            .sent("an unknown tool, then an allowed call; an unknown resource and an unknown prompt, each followed by one that is listed")
            .hosts("One wrong name by a model, and the host waits for every later call until its timeout.")
            .probe(
                |cx| match after_errors(cx) {
                    all if all.is_empty() => Err("the server has nothing that can be refused and served".to_owned()),
                    all => Ok((0..).step_by(2).zip(all).flat_map(|(n, (method, wrong, right))| {
                        [cx.request(n, method, wrong), Step::Await(cx.id(n)), cx.request(n + 1, method, right), Step::Await(cx.id(n + 1))]
                    }).collect()),
                },
                |cx, seen| verdict((0..).step_by(2).zip(after_errors(cx)).try_for_each(|(n, _)| match seen.reply(&cx.id(n + 1)) {
                    Some(_) => Ok(()),
                    None => Err(super::unanswered(seen, &cx.id(n + 1))),
                })),
            ),
        Check::must("tools-many", &["TOL-04", "RPC-06"], Revisions::ALL,
            "A call is answered as often as it is made.")
            .sent("an allowed call that is quick, 60 times, ten of them at once; what refuses so many is not blamed")
            .hosts("A long session of an agent makes some hundred calls.")
            .after(&["frame-match", "tools-content"])
            .probe(
                |cx| {
                    let quick = cx.survey.call(|call| call.took_ms < QUICK)?;
                    Ok((0..MANY).flat_map(|n| {
                        let pause = (n % AT_ONCE == AT_ONCE - 1).then(|| Step::Await(cx.id(n)));
                        [Some(call(cx, n, quick)), pause].into_iter().flatten()
                    }).collect())
                },
                |cx, seen| {
                    if let Some(n) = (0..MANY).find(|n| seen.reply(&cx.id(*n)).is_none()) {
                        return super::unanswered(seen, &cx.id(n));
                    }
                    // To limit how often a tool is called is right (SEC-07).
                    let refusal = (0..MANY).rev().find_map(|n| {
                        let reply = seen.reply(&cx.id(n))?;
                        (reply.get("error").is_some() || reply["result"]["isError"] == true).then_some((n, reply))
                    });
                    match refusal {
                        Some((n, reply)) => Verdict::skip(format!("call {} of {MANY} was refused: {}", n + 1, super::short(reply))),
                        None => Verdict::Pass,
                    }
                },
            ),
        Check::should("rpc-interleaved", &["STD-26"], Revisions::MODERN,
            "Other requests are served while a call is under way.")
            .sent("an allowed call that takes at least 300 ms, and during it the same call again, each list and `server/discover`")
            .hosts("A gateway sends the requests of all its clients through one pipe.")
            .probe(
                |cx| {
                    let slow = cx.survey.short_slow_call()?;
                    let others = meanwhile(cx).into_iter().map(|(n, method)| cx.request(n, method, Value::Null));
                    let first = [call(cx, 0, slow), Step::Listen(40), call(cx, 1, slow)];
                    Ok(first.into_iter().chain(others).chain([Step::Await(cx.id(0)), Step::Await(cx.id(1))]).collect())
                },
                |cx, seen| {
                    let ids = [0, 1].into_iter().chain(meanwhile(cx).into_iter().map(|(n, _)| n));
                    verdict(ids.into_iter().try_for_each(|n| result(seen, &cx.id(n)).map(|_| ())))
                },
            ),
        Check::must("rpc-answers-on", &["RPC-06"], Revisions::ALL,
            "A server that answers goes on answering.")
            .hosts("The host waits for its timeout, again and again.")
            .after(&["frame-match", "frame-clean", "frame-line", "frame-flush"])
            .scan(|cx, _| match cx.survey.stalls.as_slice() {
                stalls if stalls.len() > STALLS => Verdict::fail(format!(
                    "{} times it answered nothing any more in the middle of a session, and the same requests were answered in a new one: {}",
                    stalls.len(), stalls.join(", ")
                )),
                _ => Verdict::Pass,
            }),
        Check::must("frame-flush", &["STD-01", "RPC-06"], Revisions::ALL,
            "An answer is written when it is there, and does not wait for the next message.")
            .hosts("Whoever asks one thing at a time, as every host does at its start, waits for its timeout.")
            .scan(|_, all| {
                let faults = all.sessions.iter().flat_map(|(session, requests)| held(session, |id, at| requests.before(id, at).map(|(place, _)| *place)));
                // A machine that stands still once looks the same.
                let faults: Vec<_> = faults.collect();
                Verdict::from_faults(if faults.len() < 2 { Vec::new() } else { faults })
            }),
        Check::should("frame-exit-used", &["STD-17"], Revisions::ALL,
            "The server exits when its stdin ends, whatever was asked before.")
            .sent("the end of stdin after every session")
            .hosts("Each session with a host leaves a process behind.")
            .after(&["frame-exit", "frame-exit-busy", "listen-exit"])
            .scan(|_, all| match all.sessions.iter().find(|(session, _)| session.stayed) {
                Some((session, _)) => {
                    let asked: Vec<&str> = session.sent.iter().filter_map(|(_, message)| message["method"].as_str()).collect();
                    Verdict::fail(format!("it still ran when the time was over, after {} messages", asked.len()))
                }
                None => Verdict::Pass,
            }),
    ]
}

/// What is asked while a call is under way, by the number of its id.
fn meanwhile(cx: &Cx<'_>) -> Vec<(i64, &'static str)> {
    let given = super::lists(cx).into_iter().filter(|(_, _, list)| !list.pages.is_empty());
    let methods = given.map(|(method, ..)| method).chain(["server/discover"]);
    (2..).zip(methods).collect()
}

/// Methods with params that are refused, and with such as are served.
fn after_errors(cx: &Cx<'_>) -> Vec<(&'static str, Value, Value)> {
    let wrong = |method: &str| match method {
        "tools/call" => Some(json!({ "name": "taut-check-no-such-tool", "arguments": {} })),
        "resources/read" => Some(json!({ "uri": "taut-check://none" })),
        "prompts/get" => Some(json!({ "name": "taut-check-no-such-prompt" })),
        _ => None,
    };
    let all = super::samples(cx).into_iter();
    all.filter_map(|(method, right)| Some((method, wrong(method)?, right))).collect()
}

/// Answers that came long after their request, and at once after the next message. `asked`: the place of the request that
/// an id belongs to, at a place.
fn held(
    session: &Session,
    asked: impl Fn(&Value, usize) -> Option<usize>,
) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, value, frame) in session.received().filter(|(_, value, _)| is_response(value)) {
        let Some(id) = value.get("id") else { continue };
        let Some(place) = asked(id, at) else { continue };
        let entries = &session.entries;
        let later =
            (place + 1..at).rev().find(|index| matches!(entries[*index].what, What::Sent(_)));
        let Some(later) = later else { continue };
        let waited = entries[later].at.saturating_sub(entries[place].at);
        // Something else came or went in the meantime: then it was busy, and nothing was held back.
        let quiet = entries[place + 1..later]
            .iter()
            .all(|entry| !matches!(entry.what, What::Sent(_) | What::Got(_)));
        if quiet
            && waited >= HELD
            && entries[at].at.saturating_sub(entries[later].at) < AT_ONCE_AFTER
        {
            let what = format!(
                "the answer to request {id} came only after the next message, {:.1} s later",
                waited.as_secs_f64()
            );
            found.push((what, frame.text()));
        }
    }
    found
}
