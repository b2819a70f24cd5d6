//! Progress and logging (PRG, LOG).

use serde_json::{Value, json};

use super::{fail, needs, refused, result, short, verdict};
use crate::check::{Check, Revisions, Verdict};
use crate::cx::{Cx, LOG_LEVEL, SUBSCRIPTION};
use crate::seen::{Step, is_response};

pub(super) const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// How severe a level is.
fn rank(level: &Value) -> Option<usize> {
    LEVELS.iter().position(|known| *level == *known)
}

/// What is no level.
fn no_levels() -> [Value; 4] {
    [json!("loud"), json!("DEBUG"), json!(5), json!("warn")]
}

/// How many ids the requests with each of them have.
const LEVELLED: usize = 20;

/// Requests that are sent with a bad level.
fn levelled(cx: &Cx<'_>) -> Vec<(&'static str, Value)> {
    let all = super::samples(cx).into_iter().take(LEVELLED - 1);
    [("server/discover", json!({}))].into_iter().chain(all).collect()
}

/// The levels that are set, one after the other.
const THRESHOLDS: [&str; 3] = ["notice", "error", "emergency"];

pub(super) fn checks() -> Vec<Check> {
    let mut all = progress();
    all.extend(logging());
    all
}

fn progress() -> Vec<Check> {
    vec![
        Check::must("progress-token", &["PRG-01"], Revisions::ALL,
            "A request may carry a progressToken, a string or an integer, also 0.")
            .sent("requests with the tokens 0, 5 and \"five\", then a request of each kind with a token")
            .hosts("Python clients send 0, most others an integer; opencode and codex send one with every call.")
            .probe(
                |cx| {
                    let method = if cx.survey.declares("tools") { "tools/list" } else { cx.harmless() };
                    let tokens = [json!(0), json!(5), json!("five")];
                    let mut steps: Vec<Step> = (0..).zip(&tokens).map(|(n, token)| cx.request(n, method, json!({ "_meta": { "progressToken": token } }))).collect();
                    for (n, (method, mut params)) in (10..).zip(super::samples(cx)) {
                        params["_meta"] = json!({ "progressToken": format!("taut-check-{n}") });
                        steps.extend([cx.request(n, method, params), Step::Await(cx.id(n))]);
                    }
                    // What comes after its answer comes now: `progress-known` looks at it.
                    steps.push(Step::Listen(60));
                    Ok(steps)
                },
                |cx, seen| verdict((0..3).try_for_each(|n| result(seen, &cx.id(n)).map(|_| ()))),
            ),
        Check::must("progress-known", &["PRG-07", "PRG-08", "PRG-09"], Revisions::ALL,
            "Progress names the token of a running request, with its JSON type, and ends with the answer.")
            .hosts("Claude Code ends the session on a token that it does not know.")
            .after(&["progress-untagged", "frame-once"])
            .scan(|_, all| {
                let mut faults = Vec::new();
                for (session, _) in &all.sessions {
                    let ends = session.ends();
                    for (at, value, frame) in session.received().filter(|(_, value, _)| value["method"] == "notifications/progress") {
                        let token = &value["params"]["progressToken"];
                        let asked: Vec<&Value> = session.with_token(token, at).collect();
                        // A task goes on after its call was answered: `tasks-progress` and `tasks-quiet` look at it.
                        let done = |request: &Value| !super::tasks::is_asked(request) && ends.get(&request["id"].to_string()).is_some_and(|place| *place < at);
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
            "Each progress is a number, and larger than the one before.")
            .hosts("A progress bar that goes back.")
            .after(&["progress-known", "rpc-once"])
            .scan(|cx, all| {
                let mut faults = Vec::new();
                for (session, _) in &all.sessions {
                    let mut last: std::collections::HashMap<String, f64> = std::collections::HashMap::new();
                    for (_, value, frame) in session.received().filter(|(_, value, _)| value["method"] == "notifications/progress") {
                        let token = value["params"]["progressToken"].to_string();
                        let Some(now) = value["params"]["progress"].as_f64() else {
                            faults.push(("progress is no number".to_owned(), frame.text()));
                            continue;
                        };
                        let mut masked = value.clone();
                        masked["params"]["progressToken"] = json!(1);
                        if let Some(what) = super::lists::misfit(cx, "ProgressNotification", &masked) {
                            faults.push((what, frame.text()));
                        }
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
            .after(&["init-capability-shape", "log-unasked", "init-result", "discover-result"])
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
        Check::must("log-level", &["LOG-02", "LOG-06", "LIF-17"], Revisions::LEGACY,
            "`logging/setLevel` takes each of the eight levels and gives a result, which may be empty.")
            .sent("`logging/setLevel` with each level, `emergency` last")
            .hosts("VS Code sets the level right after it connects.")
            .after(&["rpc-method-case"])
            .probe(
                |cx| {
                    needs(cx, "logging")?;
                    Ok(LEVELS.iter().enumerate().map(|(n, level)| {
                        cx.request(i64::try_from(n).unwrap_or(0), "logging/setLevel", json!({ "level": level }))
                    }).collect())
                },
                |cx, seen| verdict((0..8).try_for_each(|n| result(seen, &cx.id(n)).map(|_| ()))),
            ),
        Check::should("log-bad-level", &["LOG-03"], Revisions::LEGACY,
            "An unknown level is refused with -32602.")
            .sent("`logging/setLevel` with the levels `loud`, `DEBUG` and `warn`, and with the number 5")
            .hosts("The user believes that it was set.")
            .after(&["log-level"])
            .probe(
                |cx| {
                    needs(cx, "logging")?;
                    Ok((0..).zip(no_levels()).map(|(n, level)| cx.request(n, "logging/setLevel", json!({ "level": level }))).collect())
                },
                |cx, seen| verdict((0..).zip(no_levels()).try_for_each(|(n, level)| match level {
                    // What does not fit the schema may be called an invalid request.
                    Value::Number(_) => refused(seen, &cx.id(n), &[-32602, -32600]),
                    _ => refused(seen, &cx.id(n), &[-32602]),
                })),
            ),
        Check::should("log-threshold", &["LOG-04"], Revisions::LEGACY,
            "After `logging/setLevel` only that level and above is sent.")
            .sent("`logging/setLevel` with notice, error and emergency, each with the allowed calls after it")
            .hosts("A user who turned logs down is flooded.")
            .after(&["log-level"])
            .probe(
                |cx| {
                    needs(cx, "logging")?;
                    cx.survey.call(|_| true)?;
                    let mut steps = Vec::new();
                    for (n, level) in (0..).step_by(21).zip(THRESHOLDS) {
                        steps.extend([cx.request(n, "logging/setLevel", json!({ "level": level })), Step::Await(cx.id(n)), Step::Barrier]);
                        // Slow ones once.
                        let calls = cx.survey.calls.iter().take(20).filter(|call| call.took_ms < crate::cx::SLOW || level == "emergency");
                        for (n, call) in (n + 1..).zip(calls) {
                            steps.extend([cx.request(n, "tools/call", json!({ "name": call.tool, "arguments": call.args })), Step::Await(cx.id(n))]);
                        }
                        // A log may follow its answer.
                        steps.push(Step::Barrier);
                    }
                    Ok(steps)
                },
                |cx, seen| {
                    let mut set = None;
                    for value in seen.got() {
                        let found = (0..).step_by(21).zip(THRESHOLDS).find(|(n, _)| is_response(value) && crate::seen::is_meant(value.get("id"), &cx.id(*n)));
                        set = found.map(|(_, level)| level).or(set);
                        let level = &value["params"]["level"];
                        let low = set.is_some_and(|set| rank(level).is_some_and(|level| Some(level) < rank(&json!(set))));
                        if value["method"] == "notifications/message" && low {
                            return fail(seen, format!("a log of level {level} came after the level was set to {}", set.unwrap_or_default()));
                        }
                    }
                    Verdict::Pass
                },
            ),
        Check::must("log-unasked", &["LOG-09", "LOG-10"], Revisions::MODERN,
            "Without a logLevel on the request nothing is logged for it, and with one nothing below it.")
            .hosts("A client that did not ask has nowhere to show it.")
            .after(&["log-order", "cancel-silent-modern"])
            .scan(|_, all| {
                let mut faults = Vec::new();
                for (session, _) in &all.sessions {
                    let ends = session.ends();
                    let asking: Vec<&(usize, Value)> = session.sent.iter().filter(|(_, value)| value["params"]["_meta"].get(LOG_LEVEL).is_some()).collect();
                    for (at, value, frame) in session.received().filter(|(_, value, _)| value["method"] == "notifications/message") {
                        // Nothing is remembered: a request that was answered asks for nothing any more.
                        let runs = |(place, request): &&&(usize, Value)| {
                            let id = &request["id"];
                            let end = ends.get(&id.to_string()).copied().or_else(|| session.forgotten(id));
                            *place < at && end.is_none_or(|end| end > at)
                        };
                        let level = rank(&value["params"]["level"]);
                        let wanted = |(_, request): &&(usize, Value)| level.is_none() || level >= rank(&request["params"]["_meta"][LOG_LEVEL]);
                        let running: Vec<&(usize, Value)> = asking.iter().filter(runs).copied().collect();
                        if running.is_empty() {
                            faults.push(("a log came, and no running request asked for logs".to_owned(), frame.text()));
                        } else if !running.iter().any(wanted) {
                            faults.push((format!("a log of level {} is below what its request asked for", value["params"]["level"]), frame.text()));
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
                    // With a level above most logs: `log-unasked` looks at what comes.
                    for (n, call) in (40..).zip(cx.survey.calls.iter().take(20).filter(|call| call.took_ms < crate::cx::SLOW)) {
                        let params = json!({ "name": call.tool, "arguments": call.args, "_meta": { LOG_LEVEL: "critical" } });
                        steps.extend([cx.request(n, "tools/call", params), Step::Await(cx.id(n))]);
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
            .sent("`server/discover`, each declared list, an allowed call, and the first resource, prompt and completion, each with the logLevel `loud`, with `DEBUG` and with the number 5")
            .hosts("The user believes that logs were asked for.")
            .probe(
                |cx| {
                    Ok((0..).step_by(LEVELLED).zip(no_levels()).flat_map(|(first, level)| {
                        let meta = json!({ LOG_LEVEL: level });
                        (first..).zip(levelled(cx)).map(move |(n, (method, mut params))| {
                            params["_meta"] = meta.clone();
                            cx.request(n, method, params)
                        })
                    }).collect())
                },
                |cx, seen| verdict((0..).step_by(LEVELLED).zip(no_levels()).try_for_each(|(first, _)| (first..).zip(levelled(cx)).try_for_each(|(n, (method, _))| {
                    // What was made up may be refused for that.
                    let unsure = ["resources/read", "prompts/get", "completion/complete"].contains(&method);
                    match seen.code(&cx.id(n)) {
                        Some(_) if unsure => Ok(()),
                        _ => refused(seen, &cx.id(n), &[-32602]),
                    }
                }))),
            ),
    ]
}
