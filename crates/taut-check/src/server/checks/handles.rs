//! Tasks of the extension io.modelcontextprotocol/tasks, in 2026-07-28: allowed tools that become tasks (TSX).

use serde_json::{Value, json};

use super::tasks::{
    MOST, allowed, cancel, dated, get, guessable, numbered, plain, polls, terminal, update,
};
use super::{fail, needs, result, short, verdict};
use crate::check::{Check, Revisions, Sends, Verdict};
use crate::cx::{CAPABILITIES, Cx, LOG_LEVEL};
use crate::seen::{Seen, Step, is_count};

/// The extension.
pub(super) const NAME: &str = "io.modelcontextprotocol/tasks";

const NO_TASK: &str = "no allowed call became a task";

/// What a client declares that can run tasks.
fn declared() -> Value {
    json!({ "extensions": { NAME: {} } })
}

/// Whether a request declares that its client can run tasks.
pub(super) fn asked(params: &Value) -> bool {
    params["_meta"][CAPABILITIES]["extensions"].get(NAME).is_some()
}

fn tools(cx: &Cx<'_>) -> Result<Vec<(String, Value)>, String> {
    needs(cx, "extensions/io.modelcontextprotocol~1tasks")?;
    let mut all = allowed(cx);
    // Those of the fixture are last, and more likely to be tasks.
    all.drain(..all.len().saturating_sub(MOST));
    if all.is_empty() {
        Err("no call is allowed: --call TOOL --args JSON, or --fixture".to_owned())
    } else {
        Ok(all)
    }
}

fn call(cx: &Cx<'_>, n: i64, tool: &str, args: &Value) -> Step {
    cx.request_with(n, "tools/call", json!({ "name": tool, "arguments": args }), &declared())
}

/// All tools at once, and then what `then` has for each.
fn each(cx: &Cx<'_>, then: impl Fn(i64) -> Vec<Step>) -> Sends {
    let tools = tools(cx)?;
    let mut steps = vec![Step::Open(json!({}))];
    let firsts = || numbered(tools.clone()).map(|(n, _)| n);
    steps.extend(firsts().zip(&tools).map(|(n, (tool, args))| call(cx, n, tool, args)));
    steps.extend(firsts().flat_map(then));
    Ok(steps)
}

/// The answers that are tasks, with the number of their request and their tool.
fn handles<'a>(cx: &Cx<'_>, seen: &Seen<'a>) -> Vec<(i64, String, &'a Value)> {
    let all = numbered(tools(cx).unwrap_or_default());
    let answered = all.filter_map(|(n, tool)| Some((n, tool, seen.result(&cx.id(n))?)));
    answered
        .filter(|(.., result)| {
            let named = result["taskId"].is_string() || result["task"]["taskId"].is_string();
            result["resultType"] == "task" || named
        })
        .collect()
}

/// What is wrong with the members of a task.
fn odd(task: &Value) -> Option<String> {
    let known = ["working", "input_required", "completed", "failed", "cancelled"];
    if !task["taskId"].is_string() {
        return Some(format!("taskId is {}", task["taskId"]));
    }
    if !known.iter().any(|status| task["status"] == *status) {
        return Some(format!("the status is {}", task["status"]));
    }
    let is_dated = |name: &str| task[name].as_str().is_some_and(dated);
    if let Some(name) = ["createdAt", "lastUpdatedAt"].into_iter().find(|name| !is_dated(name)) {
        return Some(format!("{name} is {}, and no time of ISO 8601", task[name]));
    }
    match task.get("ttlMs") {
        None => return Some("it has no ttlMs".to_owned()),
        Some(ttl) if !ttl.is_null() && !is_count(ttl) => return Some(format!("ttlMs is {ttl}")),
        Some(_) => {}
    }
    let poll = task.get("pollIntervalMs").filter(|poll| !poll.is_null() && !is_count(poll));
    poll.map(|poll| format!("pollIntervalMs is {poll}"))
}

pub(super) fn checks() -> Vec<Check> {
    vec![handle(), state(), outcome(), acknowledged(), needed(), quiet()]
}

fn handle() -> Check {
    Check::must("tasks-handle", &["TSX-02", "TSX-05", "SEC-08"], Revisions::MODERN,
        "A call that becomes a task gives its members in the result, of the type `task`, and `tasks/get` knows it at once.")
        .sent("allowed tools with the extension declared, and `tasks/get` at once")
        .hosts("A client cannot find the task, and so never gets the result.")
        .fresh(
            |cx| each(cx, |n| vec![Step::Follow(cx.id(n), cx.id(n + 1), get), Step::Await(cx.id(n + 1))]),
            |cx, seen| {
                let found = handles(cx, seen);
                if found.is_empty() {
                    return Verdict::skip(NO_TASK);
                }
                let mut ids: Vec<&str> = Vec::new();
                verdict(found.iter().try_for_each(|(n, tool, task)| {
                    let wrong = |what: String| Err(fail(seen, format!("{tool}: {what}")));
                    if task["resultType"] != "task" {
                        return wrong(format!("the task has the resultType {}", task["resultType"]));
                    }
                    if let Some(what) = odd(task) {
                        return wrong(what);
                    }
                    let id = task["taskId"].as_str().unwrap_or_default();
                    if let Some(other) = ids.iter().find(|other| guessable(other, id)) {
                        return wrong(format!("the id {id:?} can be guessed from {other:?}"));
                    }
                    ids.push(id);
                    result(seen, &cx.id(n + 1)).map(|_| ())
                }))
            },
        )
}

fn polled(cx: &Cx<'_>) -> Sends {
    let mut steps = each(cx, |_| Vec::new())?;
    steps.extend(polls(cx, tools(cx)?.len()));
    Ok(steps)
}

/// The states of a task that `tasks/get` gave, in turn.
fn states<'a>(cx: &Cx<'_>, seen: &Seen<'a>, n: i64) -> Vec<&'a Value> {
    ((n + 1)..(n + 10)).filter_map(|at| seen.result(&cx.id(at))).collect()
}

fn state() -> Check {
    Check::must("tasks-state", &["TSX-06"], Revisions::MODERN,
        "`tasks/get` is complete and has the result, the error or the questions with the status, and an end is final.")
        .sent("allowed tools as tasks, and `tasks/get` until they have ended, and twice more")
        .hosts("A client takes the state for another task, or never gets the result.")
        .after(&["tasks-handle"])
        .fresh(
            polled,
            |cx, seen| {
                let found = handles(cx, seen);
                if found.is_empty() {
                    return Verdict::skip(NO_TASK);
                }
                verdict(found.iter().try_for_each(|(n, tool, first)| {
                    let mut end: Option<&Value> = None;
                    for task in states(cx, seen, *n) {
                        let wrong = |what: String| Err(fail(seen, format!("{tool}: {what}")));
                        if task["resultType"] != "complete" {
                            return wrong(format!("tasks/get has the resultType {}", task["resultType"]));
                        }
                        if let Some(what) = odd(task) {
                            return wrong(format!("in tasks/get {what}"));
                        }
                        if task["taskId"] != first["taskId"] {
                            return wrong(format!("tasks/get gave another task: {}", short(task)));
                        }
                        let status = &task["status"];
                        let missing = match status.as_str().unwrap_or_default() {
                            "completed" if !task["result"].is_object() => "result",
                            "failed" if !task["error"]["code"].is_i64() => "error",
                            "input_required" if !task["inputRequests"].is_object() => "inputRequests",
                            _ => "",
                        };
                        if !missing.is_empty() {
                            return wrong(format!("the task is {status}, and `{missing}` is {}", task[missing]));
                        }
                        if let Some(before) = end.filter(|before| *before != status) {
                            return wrong(format!("the task was {before}, and is {status} now"));
                        }
                        end = Some(status).filter(|status| terminal(status));
                    }
                    Ok(())
                }))
            },
        )
}

fn outcome() -> Check {
    Check::must(
        "tasks-outcome",
        &["TSX-08"],
        Revisions::MODERN,
        "A task has failed only if there is a JSON-RPC error; a result with isError is completed.",
    )
    .sent("allowed tools as tasks, and `tasks/get` until they have ended")
    .hosts("A model does not see what went wrong in the tool.")
    .after(&["tasks-handle", "tasks-state"])
    .fresh(polled, |cx, seen| {
        let mut any = false;
        let judged = handles(cx, seen).iter().try_for_each(|(n, tool, _)| {
            let Some(task) =
                states(cx, seen, *n).into_iter().find(|task| terminal(&task["status"]))
            else {
                return Ok(());
            };
            any = true;
            let job = |name: &str| cx.fixture && tool == name;
            let failed = task["status"] == "failed";
            let is_error =
                plain(cx, tool).is_some_and(|plain| plain["isError"] == true) || job("failing_job");
            let wrong = |what: &str| Err(fail(seen, format!("{tool}: {what}: {}", short(task))));
            if failed && (is_error || task.get("result").is_some()) {
                return wrong("its result is due, which has isError, and the task failed");
            }
            if !failed && job("protocol_error_job") {
                return wrong("a JSON-RPC error is due, and the task did not fail");
            }
            Ok(())
        });
        match judged {
            Ok(()) if !any => Verdict::skip(NO_TASK),
            judged => verdict(judged),
        }
    })
}

fn acknowledged() -> Check {
    Check::must(
        "tasks-acknowledged",
        &["TSX-07"],
        Revisions::MODERN,
        "`tasks/update` and `tasks/cancel` are acknowledged with an empty result.",
    )
    .sent("allowed tools as tasks, `tasks/update` and `tasks/cancel` at once")
    .hosts("A client takes the acknowledgement for the state of the task.")
    .after(&["tasks-handle"])
    .fresh(
        |cx| {
            each(cx, |n| {
                vec![
                    Step::Follow(cx.id(n), cx.id(n + 1), update),
                    Step::Follow(cx.id(n), cx.id(n + 2), cancel),
                    Step::Follow(cx.id(n + 2), cx.id(n + 3), get),
                    Step::Await(cx.id(n + 3)),
                ]
            })
        },
        |cx, seen| {
            let found = handles(cx, seen);
            if found.is_empty() {
                return Verdict::skip(NO_TASK);
            }
            verdict(found.iter().try_for_each(|(n, tool, _)| {
                let ended = seen
                    .result(&cx.id(n + 3))
                    .is_some_and(|task| terminal(&task["status"]) && task["status"] != "cancelled");
                [(n + 1, "tasks/update"), (n + 2, "tasks/cancel")].into_iter().try_for_each(
                    |(n, method)| {
                        // The task may have ended before.
                        if ended && seen.code(&cx.id(n)) == Some(-32602) {
                            return Ok(());
                        }
                        empty(seen, &cx.id(n)).map_err(|verdict| match verdict {
                            Verdict::Fail { what, shown } => {
                                Verdict::Fail { what: format!("{tool}, {method}: {what}"), shown }
                            }
                            other => other,
                        })
                    },
                )
            }))
        },
    )
}

/// Passes if a result is empty. What 2026-07-28 puts into every result does no harm (RSL-05).
fn empty(seen: &Seen<'_>, id: &Value) -> Result<(), Verdict> {
    let result = result(seen, id)?;
    let harmless = |name: &String| name == "_meta" || name == "resultType";
    match result.as_object().is_some_and(|members| members.keys().all(harmless)) {
        true => Ok(()),
        false => Err(fail(seen, format!("the result is {}", short(result)))),
    }
}

fn needed() -> Check {
    Check::must("tasks-needed", &["TSX-04"], Revisions::MODERN,
        "A tool that is a task only is refused with -32021, which names the extension, if it was not declared.")
        .sent("allowed tools without the extension, and with it")
        .hosts("A client cannot tell what it lacks.")
        .after(&["capability-named"])
        .fresh(
            |cx| {
                let mut steps = each(cx, |_| Vec::new())?;
                let plain = numbered(tools(cx)?).zip(tools(cx)?).map(|((n, _), (tool, args))| {
                    cx.request(n + 1, "tools/call", json!({ "name": tool, "arguments": args }))
                });
                steps.extend(plain);
                steps.extend(numbered(tools(cx)?).flat_map(|(n, _)| [Step::Await(cx.id(n)), Step::Await(cx.id(n + 1))]));
                // What becomes of the tasks, soon and later.
                for (later, pause) in [(2, 200), (3, 1300)] {
                    steps.push(Step::Listen(pause));
                    steps.extend(numbered(tools(cx)?).flat_map(|(n, _)| [Step::Follow(cx.id(n), cx.id(n + later), get), Step::Await(cx.id(n + later))]));
                }
                Ok(steps)
            },
            |cx, seen| {
                let mut any = false;
                let judged = handles(cx, seen).iter().try_for_each(|(n, tool, _)| {
                    let Some(error) = seen.reply(&cx.id(n + 1)).and_then(|reply| reply.get("error")) else { return Ok(()) };
                    // An error of the work itself says nothing of the extension: the task ends with the same one, or may.
                    let end = [3, 2].into_iter().find_map(|later| seen.result(&cx.id(n + later)));
                    let own = end.is_none_or(|task| task["error"]["code"] == error["code"] || !terminal(&task["status"]));
                    let meant = own || cx.fixture && tool == "protocol_error_job";
                    if meant && error["code"] != -32021 {
                        return Ok(());
                    }
                    any = true;
                    match error["code"] == -32021 && error["data"]["requiredCapabilities"]["extensions"].get(NAME).is_some() {
                        true => Ok(()),
                        false => Err(fail(seen, format!("{tool}: without the extension it gave {}", short(error)))),
                    }
                });
                match judged {
                    Ok(()) if !any => Verdict::skip("no allowed call is a task only"),
                    judged => verdict(judged),
                }
            },
        )
}

fn quiet() -> Check {
    Check::must(
        "tasks-quiet",
        &["TSX-12"],
        Revisions::MODERN,
        "Neither progress nor logs come for a task.",
    )
    .sent("allowed tools as tasks, with a progress token and a log level")
    .hosts("A client has closed the request, and drops what comes for it.")
    .fresh(
        |cx| {
            let mut steps = vec![Step::Open(json!({}))];
            for (n, (tool, args)) in numbered(tools(cx)?).map(|(n, _)| n).zip(tools(cx)?) {
                let meta =
                    json!({ "progressToken": format!("taut-check-task-{n}"), LOG_LEVEL: "debug" });
                let params = json!({ "name": tool, "arguments": args, "_meta": meta });
                steps.extend([
                    cx.request_with(n, "tools/call", params, &declared()),
                    Step::Await(cx.id(n)),
                ]);
            }
            steps.push(Step::Listen(1200));
            Ok(steps)
        },
        |cx, seen| {
            let found = handles(cx, seen);
            if found.is_empty() {
                return Verdict::skip(NO_TASK);
            }
            let mut open: Vec<i64> =
                numbered(tools(cx).unwrap_or_default()).map(|(n, _)| n).collect();
            for message in seen.got() {
                open.retain(|n| message.get("method").is_some() || message["id"] != cx.id(*n));
                let token = found.iter().any(|(n, ..)| {
                    !open.contains(n)
                        && message["params"]["progressToken"] == format!("taut-check-task-{n}")
                });
                // A log names no request: it is of a task if no call is open any more.
                let log = open.is_empty() && message["method"] == "notifications/message";
                if token || log {
                    return fail(seen, format!("{} came for a task", message["method"]));
                }
            }
            Verdict::Pass
        },
    )
}
