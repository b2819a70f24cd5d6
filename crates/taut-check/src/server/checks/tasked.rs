//! More of tasks in 2025-11-25: cancelling, lists, progress, and which tools can be tasks (TSK, TOL-27).

use serde_json::{Value, json};

use super::tasks::{
    EACH, MOST, RELATED, allowed, call, cancel, each, get, is_due, list, numbered, odd, outcome,
    runnable, support, terminal,
};
use super::{fail, needs, refused, result, short, verdict};
use crate::check::{Check, Revisions, Sends, Verdict};
use crate::cx::Cx;
use crate::seen::{Seen, Step};

pub(super) fn checks() -> Vec<Check> {
    vec![cancelled(), listed(), progress(), required(), forbidden()]
}

fn cancelled() -> Check {
    Check::must("tasks-cancelled", &["TSK-04", "TSK-05", "TSK-08"], Revisions::ONLY_1125,
        "A task that is cancelled is cancelled in the answer and for good; one that has ended is not cancelled: -32602.")
        .sent("allowed tools as tasks, `tasks/cancel` at once, and `tasks/get`; and again, with `tasks/cancel` after the result")
        .hosts("A client believes that the work has stopped, or that it goes on.")
        .after(&["tasks-created", "tasks-polled", "tasks-answered"])
        .fresh(
            |cx| {
                needs(cx, "tasks/cancel")?;
                let mut steps = each(cx, |n| vec![Step::Follow(cx.id(n), cx.id(n + 1), cancel), Step::Follow(cx.id(n + 1), cx.id(n + 2), get)])?;
                let tools = runnable(cx)?;
                let firsts = || numbered(runnable(cx).unwrap_or_default()).map(|(n, _)| n);
                steps.extend(firsts().zip(&tools).map(|(n, (tool, args))| call(cx, n + 8, tool, args)));
                steps.extend(firsts().flat_map(|n| [Step::Follow(cx.id(n + 8), cx.id(n + 9), outcome), Step::Follow(cx.id(n + 9), cx.id(n + 10), cancel), Step::Await(cx.id(n + 10)), Step::Follow(cx.id(n + 8), cx.id(n + 11), get), Step::Await(cx.id(n + 11))]));
                steps.push(Step::Listen(200));
                steps.extend(firsts().flat_map(|n| [Step::Follow(cx.id(n + 2), cx.id(n + 3), get), Step::Await(cx.id(n + 3))]));
                Ok(steps)
            },
            |cx, seen| verdict(numbered(runnable(cx).unwrap_or_default()).try_for_each(|(n, tool)| {
                let id = &result(seen, &cx.id(n))?["task"]["taskId"];
                stopped(cx, seen, n, id).map_err(|what| fail(seen, format!("{tool}: {what}")))?;
                // Without a result the task may not have ended.
                if seen.reply(&cx.id(n + 9)).is_none() {
                    return if is_due(cx, seen, &tool, n + 11) { Err(super::unanswered(seen, &cx.id(n + 9))) } else { Ok(()) };
                }
                refused(seen, &cx.id(n + 10), &[-32602])
            })),
        )
}

/// What is wrong with a task that was cancelled at once.
fn stopped(cx: &Cx<'_>, seen: &Seen<'_>, n: i64, id: &Value) -> Result<(), String> {
    let state = |n: i64| seen.result(&cx.id(n)).map(|task| &task["status"]);
    let Some(task) = seen.result(&cx.id(n + 1)) else {
        // It may have ended before.
        let ended = seen.code(&cx.id(n + 1)) == Some(-32602) && state(n + 2).is_some_and(terminal);
        let told = || seen.reply(&cx.id(n + 1)).map_or_else(|| "no answer".to_owned(), short);
        return if ended { Ok(()) } else { Err(format!("tasks/cancel gave {}", told())) };
    };
    if task["taskId"] != *id || task["status"] != "cancelled" {
        return Err(format!("tasks/cancel gave {}", short(task)));
    }
    if let Some(what) = odd(cx, task, "CancelTaskResult") {
        return Err(what);
    }
    match [n + 2, n + 3].into_iter().filter_map(state).find(|status| **status != "cancelled") {
        Some(status) => Err(format!("the task was cancelled, and is {status} now")),
        None => Ok(()),
    }
}

fn listed() -> Check {
    Check::must(
        "tasks-listed",
        &["TSK-01", "TSK-05"],
        Revisions::ONLY_1125,
        "A server that declares `tasks.list` lists its tasks.",
    )
    .sent("an allowed tool as a task, and `tasks/list`")
    .hosts("A client that lost its tasks cannot find them.")
    .after(&["tasks-created"])
    .fresh(
        |cx| {
            needs(cx, "tasks/list")?;
            let (tool, args) = runnable(cx)?.swap_remove(0);
            Ok(vec![
                Step::Open(json!({})),
                call(cx, 0, &tool, &args),
                Step::Follow(cx.id(0), cx.id(1), list),
                Step::Await(cx.id(1)),
            ])
        },
        |cx, seen| {
            let judged = || {
                let id = &result(seen, &cx.id(0))?["task"]["taskId"];
                let page = result(seen, &cx.id(1))?;
                if let Some(what) = super::lists::misfit(cx, "ListTasksResult", page) {
                    return Err(fail(seen, what));
                }
                let there = page["tasks"]
                    .as_array()
                    .is_some_and(|tasks| tasks.iter().any(|task| task["taskId"] == *id));
                match there || page.get("nextCursor").is_some() {
                    true => Ok(()),
                    false => Err(fail(seen, format!("the task {id} is not in the list"))),
                }
            };
            verdict(judged())
        },
    )
}

fn progress() -> Check {
    Check::must("tasks-progress", &["PRG-10", "TSK-10"], Revisions::ONLY_1125,
        "Progress of a task names the task in `_meta`, and ends with the task.")
        .sent("allowed tools as tasks with progress tokens, and `tasks/result`")
        .hosts("A client cannot tell which task goes on.")
        .after(&["tasks-created", "tasks-answered"])
        .fresh(
            |cx| {
                let tools = runnable(cx)?;
                let mut steps = vec![Step::Open(json!({}))];
                for (n, (tool, args)) in (0..).zip(&tools) {
                    let params = json!({ "name": tool, "arguments": args, "task": { "ttl": 60_000 }, "_meta": { "progressToken": token(n) } });
                    steps.extend([cx.request(n * EACH, "tools/call", params), Step::Follow(cx.id(n * EACH), cx.id(n * EACH + 1), outcome)]);
                }
                steps.extend((0..).zip(&tools).map(|(n, _)| Step::Await(cx.id(n * EACH + 1))));
                steps.push(Step::Listen(150));
                Ok(steps)
            },
            |cx, seen| {
                let mut any = false;
                let judged = (0..).zip(runnable(cx).unwrap_or_default()).try_for_each(|(n, (tool, _))| {
                    let id = &result(seen, &cx.id(n * EACH))?["task"]["taskId"];
                    let mut over = false;
                    for message in seen.got() {
                        over |= message.get("method").is_none() && message["id"] == cx.id(n * EACH + 1);
                        if message["method"] != "notifications/progress" || message["params"]["progressToken"] != token(n) {
                            continue;
                        }
                        any = true;
                        if over {
                            return Err(fail(seen, format!("{tool}: progress came after the end of the task")));
                        }
                        if message["params"]["_meta"][RELATED]["taskId"] != *id {
                            return Err(fail(seen, format!("{tool}: progress does not name its task")));
                        }
                    }
                    Ok(())
                });
                match judged {
                    Ok(()) if !any => Verdict::skip("no allowed tool reports progress as a task"),
                    judged => verdict(judged),
                }
            },
        )
}

fn token(n: i64) -> Value {
    json!(format!("taut-check-task-{n}"))
}

fn required() -> Check {
    Check::must(
        "tasks-required",
        &["TOL-27"],
        Revisions::ONLY_1125,
        "A tool that is a task only is refused with -32601 without one.",
    )
    .sent("allowed tools whose taskSupport is required, without `task`")
    .hosts("A client waits for a result that takes hours.")
    .probe(|cx| supported(cx, "required", None), all_refused)
}

fn forbidden() -> Check {
    Check::should(
        "tasks-forbidden",
        &["TOL-27"],
        Revisions::ONLY_1125,
        "A tool that cannot be a task is refused with -32601 as one.",
    )
    .sent("allowed tools whose taskSupport is forbidden or missing, with `task: {ttl: 60000}`")
    .hosts("A client waits for a task that there is not.")
    .probe(|cx| supported(cx, "forbidden", Some(json!({ "ttl": 60_000 }))), all_refused)
}

/// Calls of the allowed tools that say this of tasks.
fn supported(cx: &Cx<'_>, wanted: &str, task: Option<Value>) -> Sends {
    needs(cx, "tasks/requests/tools/call")?;
    let mut tools = allowed(cx);
    tools.retain(|(tool, _)| cx.survey.tool(tool).is_some() && support(cx, tool) == wanted);
    if tools.is_empty() {
        return Err(format!("no allowed tool has the taskSupport {wanted}"));
    }
    let calls = (0..).zip(tools.iter().take(MOST)).map(|(n, (tool, args))| {
        let mut params = json!({ "name": tool, "arguments": args });
        if let Some(task) = &task {
            params["task"] = task.clone();
        }
        cx.request(n, "tools/call", params)
    });
    Ok(calls.collect())
}

fn all_refused(cx: &Cx<'_>, seen: &Seen<'_>) -> Verdict {
    let mut sent = (0..).map(|n| cx.id(n)).take_while(|id| seen.own.contains(id));
    verdict(sent.try_for_each(|id| refused(seen, &id, &[-32601])))
}
