//! Cancellation, progress and logging (CAN, PRG, LOG).

use serde_json::{Value, json};

use super::{alive, fail, needs, refused, result, short, silent, verdict};
use crate::check::{Check, Revisions, Verdict};
use crate::cx::{LOG_LEVEL, SUBSCRIPTION};
use crate::seen::{Step, is_response};

pub(super) const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

pub(super) fn checks() -> Vec<Check> {
    let mut all = cancelling();
    all.extend(progress());
    all.extend(logging());
    all
}

fn cancelling() -> Vec<Check> {
    vec![
        Check::must("cancel-unknown", &["CAN-04", "CAN-06", "RPC-11", "MET-09"], Revisions::ALL,
            "Cancelling what is unknown or finished does nothing.")
            .sent("a request, and its cancellation after the answer; then one for an id that was never used")
            .hosts("opencode cancels after every call that worked.")
            .silent()
            .after(&["rpc-once", "rpc-notification-silent"])
            .probe(
                |cx| Ok(vec![
                    Step::Send(cx.harmless_as(&cx.id(0))), Step::Await(cx.id(0)),
                    cx.note("notifications/cancelled", json!({ "requestId": cx.id(0), "reason": "AbortError" })),
                    cx.note("notifications/cancelled", json!({ "requestId": "never-used" })),
                ]),
                |cx, seen| match seen.replies(&cx.id(0)).len() {
                    1 => verdict(silent(seen)),
                    n => fail(seen, format!("the request was answered {n} times")),
                },
            ),
        Check::should("cancel-malformed", &["CAN-07"], Revisions::ALL,
            "A malformed cancellation is ignored.")
            .sent("cancellations without params, and with null, an object and an array as requestId")
            .hosts("A server that ends here ends with a host's bug.")
            .silent()
            .after(&["rpc-notification-silent"])
            .probe(
                |cx| Ok(vec![
                    cx.note("notifications/cancelled", Value::Null),
                    cx.note("notifications/cancelled", json!({})),
                    cx.note("notifications/cancelled", json!({ "requestId": null })),
                    cx.note("notifications/cancelled", json!({ "requestId": { "a": 1 } })),
                    cx.note("notifications/cancelled", json!({ "requestId": [1] })),
                ]),
                |_, seen| verdict(silent(seen)),
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
        Check::should("cancel-silent", &["CAN-03"], Revisions::LEGACY,
            "A cancelled request gets no answer.")
            .sent("an allowed call that takes at least 300 ms, and its cancellation after 60 ms")
            .hosts("The answer of a cancelled call reaches a host that has forgotten the call.")
            .probe(cancel_steps, cancel_judge),
        Check::must("cancel-silent-modern", &["CAN-10", "CAN-03"], Revisions::MODERN,
            "After a cancellation nothing more is sent for that request: no answer, no progress, no log.")
            .sent("an allowed call that takes at least 300 ms, and its cancellation after 60 ms")
            .hosts("The answer of a cancelled call reaches a host that has forgotten the call.")
            .probe(cancel_steps, cancel_judge),
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

fn cancel_steps(cx: &crate::cx::Cx<'_>) -> crate::check::Sends {
    let call = cx.survey.slow_call()?;
    let mut params = json!({ "name": call.tool, "arguments": call.args, "_meta": { "progressToken": "taut-check-cancelled" } });
    if cx.modern() {
        params["_meta"][LOG_LEVEL] = json!("debug");
    }
    let listen = call.took_ms + 400;
    Ok(vec![
        cx.request(0, "tools/call", params),
        Step::Listen(60),
        cx.note(
            "notifications/cancelled",
            json!({ "requestId": cx.id(0), "reason": "taut-check" }),
        ),
        Step::Barrier,
        // What comes up to here was under way.
        Step::Send(cx.harmless_as(&cx.id(1))),
        Step::Await(cx.id(1)),
        Step::Listen(listen.min(4000)),
    ])
}

/// Whether the cancellation was sent in the first half of the time that the call takes, and before its
/// answer: a busy machine may be too late with it.
fn cancelled_early(cx: &crate::cx::Cx<'_>, seen: &crate::seen::Seen<'_>) -> bool {
    let sent = |text: &str| {
        seen.entries.iter().find_map(|entry| match &entry.what {
            crate::process::What::Sent(bytes) if String::from_utf8_lossy(bytes).contains(text) => {
                Some(entry.at)
            }
            _ => None,
        })
    };
    let answered = seen.entries.iter().find_map(|entry| {
        let mine = |value: &&Value| {
            is_response(value) && crate::seen::is_meant(value.get("id"), &cx.id(0))
        };
        entry.value().filter(mine).map(|_| entry.at)
    });
    let normal = cx.survey.slow_call().map_or(0, |call| call.took_ms);
    // A result as always, and sooner than ever: it was on its way before the cancellation.
    let as_always = seen.result(&cx.id(0)).is_some_and(|result| result["isError"] != true);
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

fn cancel_judge(cx: &crate::cx::Cx<'_>, seen: &crate::seen::Seen<'_>) -> Verdict {
    if let Some(reply) = seen.reply(&cx.id(0)) {
        return match cancelled_early(cx, seen) {
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
        value["params"]["progressToken"] == "taut-check-cancelled"
            || value["method"] == "notifications/message"
    });
    match more {
        Some(more) if cx.modern() => {
            fail(seen, format!("{} came after the cancellation", more["method"]))
        }
        _ => verdict(alive(seen)),
    }
}

fn progress() -> Vec<Check> {
    vec![
        Check::must("progress-token", &["PRG-01"], Revisions::ALL,
            "A request may carry a progressToken, a string or an integer, also 0.")
            .sent("requests with the tokens 0, 5 and \"five\"")
            .hosts("Python clients send 0, most others an integer; opencode and codex send one with every call.")
            .probe(
                |cx| {
                    let method = if cx.survey.declares("tools") { "tools/list" } else { cx.harmless() };
                    let tokens = [json!(0), json!(5), json!("five")];
                    Ok(tokens.iter().enumerate().map(|(n, token)| {
                        cx.request(i64::try_from(n).unwrap_or(0), method, json!({ "_meta": { "progressToken": token } }))
                    }).collect())
                },
                |cx, seen| verdict((0..3).try_for_each(|n| result(seen, &cx.id(n)).map(|_| ()))),
            ),
        Check::must("progress-known", &["PRG-07", "PRG-08", "PRG-09"], Revisions::ALL,
            "Progress names the token of a running request, with its JSON type, and ends with the answer.")
            .hosts("Claude Code ends the session on a token that it does not know.")
            .scan(|_, all| {
                let mut faults = Vec::new();
                for (session, _) in &all.sessions {
                    let ends = session.ends();
                    for (at, value, frame) in session.received().filter(|(_, value, _)| value["method"] == "notifications/progress") {
                        let token = &value["params"]["progressToken"];
                        let asked: Vec<&Value> = session.with_token(token, at).collect();
                        let done = |request: &Value| ends.get(&request["id"].to_string()).is_some_and(|place| *place < at);
                        let what = match asked.first() {
                            None => format!("no request has the token {token}"),
                            Some(_) if asked.iter().any(|request| !done(request)) => continue,
                            Some(_) => "progress came after the answer".to_owned(),
                        };
                        faults.push((what, frame.text()));
                    }
                }
                Verdict::from_faults(faults)
            }),
        Check::must("progress-rises", &["PRG-04"], Revisions::ALL,
            "Each progress is larger than the one before.")
            .hosts("A progress bar that goes back.")
            .after(&["progress-known", "rpc-once"])
            .scan(|_, all| {
                let mut faults = Vec::new();
                for (session, _) in &all.sessions {
                    let mut last: std::collections::HashMap<String, f64> = std::collections::HashMap::new();
                    for (_, value, frame) in session.received().filter(|(_, value, _)| value["method"] == "notifications/progress") {
                        let token = value["params"]["progressToken"].to_string();
                        let Some(now) = value["params"]["progress"].as_f64() else {
                            faults.push(("progress is no number".to_owned(), frame.text()));
                            continue;
                        };
                        if let Some(before) = last.insert(token, now).filter(|before| *before >= now) {
                            faults.push((format!("{now} after {before}"), frame.text()));
                        }
                    }
                }
                Verdict::from_faults(faults)
            }),
        Check::must("progress-untagged", &["PRG-11", "SUB-10", "LOG-10"], Revisions::MODERN,
            "Progress and logs belong to a request and carry no subscription id.")
            .hosts("A client that routes by subscription hands it to the wrong listener.")
            .scan(|_, all| {
                let odd = all.notifications().filter(|(value, _)| {
                    ["notifications/progress", "notifications/message"].iter().any(|method| value["method"] == *method)
                        && value["params"]["_meta"].get(SUBSCRIPTION).is_some()
                });
                Verdict::from_faults(odd.map(|(value, frame)| (format!("{} has a subscription id", value["method"]), frame.text())).collect())
            }),
    ]
}

fn logging() -> Vec<Check> {
    vec![
        Check::must("log-declared", &["LOG-01"], Revisions::ALL,
            "A server that sends logs declares `logging`.")
            .hosts("Hosts do not show logs of a server that does not declare them.")
            .after(&["log-unasked"])
            .scan(|cx, all| {
                if cx.survey.declares("logging") {
                    return Verdict::Pass;
                }
                let logs = all.notifications().filter(|(value, _)| value["method"] == "notifications/message");
                Verdict::from_faults(logs.map(|(_, frame)| ("a log came, and `logging` is not declared".to_owned(), frame.text())).collect())
            }),
        Check::must("log-message", &["LOG-06", "LOG-07"], Revisions::ALL,
            "A log has one of the eight levels, and data.")
            .hosts("The official SDKs drop a log that they cannot validate.")
            .scan(|_, all| {
                let odd = all.notifications().filter(|(value, _)| value["method"] == "notifications/message").filter(|(value, _)| {
                    let params = &value["params"];
                    !params["level"].as_str().is_some_and(|level| LEVELS.contains(&level)) || params.get("data").is_none()
                        || params.get("logger").is_some_and(|logger| !logger.is_string())
                });
                Verdict::from_faults(odd.map(|(value, frame)| (format!("the log is {}", short(&value["params"])), frame.text())).collect())
            }),
        Check::must("log-level", &["LOG-02", "LOG-06"], Revisions::LEGACY,
            "`logging/setLevel` takes each of the eight levels and gives an empty result.")
            .sent("`logging/setLevel` with each level, `emergency` last")
            .hosts("VS Code sets the level right after it connects.")
            .probe(
                |cx| {
                    needs(cx, "logging")?;
                    Ok(LEVELS.iter().enumerate().map(|(n, level)| {
                        cx.request(i64::try_from(n).unwrap_or(0), "logging/setLevel", json!({ "level": level }))
                    }).collect())
                },
                |cx, seen| verdict((0..8).try_for_each(|n| {
                    let result = result(seen, &cx.id(n))?;
                    let empty = result.as_object().is_some_and(|members| members.keys().all(|name| name == "_meta"));
                    empty.then_some(()).ok_or_else(|| fail(seen, format!("the result is {}", short(result))))
                })),
            ),
        Check::should("log-bad-level", &["LOG-03"], Revisions::LEGACY,
            "An unknown level is refused with -32602.")
            .sent("`logging/setLevel` with the level `loud`")
            .hosts("The user believes that it was set.")
            .probe(
                |cx| {
                    needs(cx, "logging")?;
                    Ok(vec![cx.request(0, "logging/setLevel", json!({ "level": "loud" }))])
                },
                |cx, seen| verdict(refused(seen, &cx.id(0), &[-32602])),
            ),
        Check::must("log-threshold", &["LOG-04"], Revisions::LEGACY,
            "After `logging/setLevel` only that level and above is sent.")
            .sent("`logging/setLevel` with emergency, then each allowed call")
            .hosts("A user who turned logs down is flooded.")
            .probe(
                |cx| {
                    needs(cx, "logging")?;
                    cx.survey.call(|_| true)?;
                    let mut steps = vec![cx.request(0, "logging/setLevel", json!({ "level": "emergency" })), Step::Await(cx.id(0)), Step::Barrier];
                    for (n, call) in (1..).zip(cx.survey.calls.iter().take(20)) {
                        steps.extend([cx.request(n, "tools/call", json!({ "name": call.tool, "arguments": call.args })), Step::Await(cx.id(n))]);
                    }
                    Ok(steps)
                },
                |cx, seen| {
                    let set = seen.got().position(|value| is_response(value) && crate::seen::is_meant(value.get("id"), &cx.id(0)));
                    let mut later = seen.got().skip(set.map_or(usize::MAX, |at| at + 1));
                    match later.find(|value| value["method"] == "notifications/message" && value["params"]["level"] != "emergency") {
                        Some(log) => fail(seen, format!("a log of level {} came", log["params"]["level"])),
                        None => Verdict::Pass,
                    }
                },
            ),
        Check::must("log-unasked", &["LOG-09"], Revisions::MODERN,
            "Without a logLevel on the request nothing is logged for it.")
            .hosts("A client that did not ask has nowhere to show it.")
            .after(&["log-order", "cancel-silent-modern"])
            .scan(|_, all| {
                let mut faults = Vec::new();
                for (session, _) in &all.sessions {
                    let ends = session.ends();
                    let asking: Vec<&(usize, Value)> = session.sent.iter().filter(|(_, value)| value["params"]["_meta"].get(LOG_LEVEL).is_some()).collect();
                    for (at, _, frame) in session.received().filter(|(_, value, _)| value["method"] == "notifications/message") {
                        // Nothing is remembered: a request that was answered asks for nothing any more.
                        let runs = |(place, request): &&&(usize, Value)| {
                            let id = &request["id"];
                            let end = ends.get(&id.to_string()).copied().or_else(|| session.forgotten(id));
                            *place < at && end.is_none_or(|end| end > at)
                        };
                        if !asking.iter().any(|one| runs(&one)) {
                            faults.push(("a log came, and no running request asked for logs".to_owned(), frame.text()));
                        }
                    }
                }
                Verdict::from_faults(faults)
            }),
        Check::must("log-order", &["LOG-10"], Revisions::MODERN,
            "The logs of a request come before its answer.")
            .sent("each allowed call with logLevel debug")
            .hosts("A client that closed the request drops them.")
            .probe(
                |cx| {
                    cx.survey.call(|_| true)?;
                    let mut steps = Vec::new();
                    for (n, call) in (0..).zip(cx.survey.calls.iter().take(20)) {
                        let params = json!({ "name": call.tool, "arguments": call.args, "_meta": { LOG_LEVEL: "debug" } });
                        steps.extend([cx.request(n, "tools/call", params), Step::Await(cx.id(n)), Step::Listen(30)]);
                    }
                    // Without a level, after one had it: `log-unasked` looks at what comes.
                    for (n, call) in (20..).zip(cx.survey.calls.iter().take(20).filter(|call| call.took_ms < crate::cx::SLOW)) {
                        steps.extend([cx.request(n, "tools/call", json!({ "name": call.tool, "arguments": call.args })), Step::Await(cx.id(n))]);
                    }
                    Ok(steps)
                },
                |_, seen| {
                    // One call at a time: a log while none is under way came too late.
                    let mut under_way = false;
                    for entry in seen.entries {
                        match &entry.what {
                            crate::process::What::Sent(_) => under_way = true,
                            crate::process::What::Got(frame) => {
                                let Some(value) = &frame.value else { continue };
                                if is_response(value) {
                                    under_way = false;
                                } else if value["method"] == "notifications/message" && !under_way {
                                    return fail(seen, format!("a log came after the answer: {}", short(value)));
                                }
                            }
                            _ => {}
                        }
                    }
                    Verdict::Pass
                },
            ),
        Check::should("log-bad-level-modern", &["LOG-11"], Revisions::MODERN,
            "A request with an unknown logLevel is refused with -32602.")
            .sent("`tools/list`, or `server/discover`, with the logLevel `loud`")
            .hosts("The user believes that logs were asked for.")
            .probe(
                |cx| {
                    let method = if cx.survey.declares("tools") { "tools/list" } else { "server/discover" };
                    Ok(vec![cx.request(0, method, json!({ "_meta": { LOG_LEVEL: "loud" } }))])
                },
                |cx, seen| verdict(refused(seen, &cx.id(0), &[-32602])),
            ),
    ]
}
