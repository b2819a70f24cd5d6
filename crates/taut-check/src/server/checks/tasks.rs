//! Tasks of 2025-11-25: allowed tools that are run as tasks (TSK).
//!
//! A tool is only run if `--call` or `--fixture` allows it and it says that it can be a task.

use serde_json::{Value, json};

use super::{fail, needs, result, short, verdict};
use crate::check::{Check, Revisions, Sends, Verdict};
use crate::cx::{Cx, VERSION};
use crate::seen::{Seen, Step};

/// The key of `_meta` that names the task which a message belongs to.
pub(super) const RELATED: &str = "io.modelcontextprotocol/related-task";

/// Tools of the official fixture that are run as tasks.
const FIXTURE: [&str; 5] =
    ["slow_compute", "failing_job", "protocol_error_job", "test_tool_with_task", "greet"];

/// How many tools are run at most, and how many requests of a probe belong to each.
pub(super) const MOST: usize = 6;
pub(super) const EACH: i64 = 16;

/// A task has ended for good.
pub(super) fn terminal(status: &Value) -> bool {
    ["completed", "failed", "cancelled"].iter().any(|end| *status == *end)
}

/// The tools that may be called, with their arguments.
pub(super) fn allowed(cx: &Cx<'_>) -> Vec<(String, Value)> {
    let mut all: Vec<(String, Value)> = Vec::new();
    let given = cx.survey.calls.iter().map(|call| (call.tool.clone(), call.args.clone()));
    let fixture = FIXTURE.iter().filter_map(|name| {
        let tool = cx.survey.tool(name).filter(|_| cx.fixture)?;
        let known = |argument: &str| tool["inputSchema"]["properties"].get(argument).is_some();
        let mut args = json!({});
        if known("seconds") {
            args["seconds"] = json!(1);
        }
        if known("name") {
            args["name"] = json!("taut-check");
        }
        Some(((*name).to_owned(), args))
    });
    for (tool, args) in given.chain(fixture) {
        if !all.iter().any(|(name, _)| *name == tool) {
            all.push((tool, args));
        }
    }
    all
}

/// What a tool says of tasks.
pub(super) fn support<'a>(cx: &Cx<'a>, tool: &str) -> &'a str {
    let listed = cx.survey.tool(tool);
    listed.and_then(|tool| tool["execution"]["taskSupport"].as_str()).unwrap_or("forbidden")
}

/// The allowed tools that can be run as a task.
pub(super) fn runnable(cx: &Cx<'_>) -> Result<Vec<(String, Value)>, String> {
    needs(cx, "tasks/requests/tools/call")?;
    let mut all = allowed(cx);
    all.retain(|(tool, _)| ["optional", "required"].contains(&support(cx, tool)));
    all.truncate(MOST);
    if all.is_empty() { Err("no allowed tool can be run as a task".to_owned()) } else { Ok(all) }
}

/// What the plain call gave, if it was made.
pub(super) fn plain<'a>(cx: &Cx<'a>, tool: &str) -> Option<&'a Value> {
    cx.survey.calls.iter().find(|call| call.tool == tool)?.result()
}

/// Whether a request is a call as a task, in 2025-11-25 or in the extension.
pub(super) fn is_asked(request: &Value) -> bool {
    let params = &request["params"];
    params["task"].is_object() || super::handles::asked(params)
}

/// The id of the task that a message is about.
fn task_id<'a>(reply: &'a Value, request: &'a Value) -> Option<&'a str> {
    let result = &reply["result"];
    let given = result["task"]["taskId"].as_str().or_else(|| result["taskId"].as_str());
    given.or_else(|| request["params"]["taskId"].as_str())
}

/// A request about the task of an earlier answer.
fn about(method: &str, reply: &Value, id: &Value, request: &Value) -> Option<Value> {
    let mut params = json!({ "taskId": task_id(reply, request)? });
    let meta = &request["params"]["_meta"];
    if meta.get(VERSION).is_some() {
        params["_meta"] = meta.clone();
        if let Some(members) = params["_meta"].as_object_mut() {
            members.remove("progressToken");
            members.remove(crate::cx::LOG_LEVEL);
        }
    }
    if method == "tasks/update" {
        params["inputResponses"] = json!({});
    }
    Some(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

pub(super) fn get(reply: &Value, id: &Value, request: &Value) -> Option<Value> {
    about("tasks/get", reply, id, request)
}

pub(super) fn outcome(reply: &Value, id: &Value, request: &Value) -> Option<Value> {
    about("tasks/result", reply, id, request)
}

pub(super) fn cancel(reply: &Value, id: &Value, request: &Value) -> Option<Value> {
    about("tasks/cancel", reply, id, request)
}

pub(super) fn update(reply: &Value, id: &Value, request: &Value) -> Option<Value> {
    about("tasks/update", reply, id, request)
}

pub(super) fn list(reply: &Value, id: &Value, _: &Value) -> Option<Value> {
    reply.get("result")?;
    Some(json!({ "jsonrpc": "2.0", "id": id, "method": "tasks/list", "params": {} }))
}

/// A call as a task.
pub(super) fn call(cx: &Cx<'_>, n: i64, tool: &str, args: &Value) -> Step {
    let params = json!({ "name": tool, "arguments": args, "task": { "ttl": 60_000 } });
    cx.request(n, "tools/call", params)
}

/// All tools at once, and then what `steps` has for each.
pub(super) fn each(cx: &Cx<'_>, then: impl Fn(i64) -> Vec<Step>) -> Sends {
    let tools = runnable(cx)?;
    let mut steps = vec![Step::Open(json!({}))];
    let numbers = || (0..).step_by(usize::try_from(EACH).unwrap_or(16));
    steps.extend(numbers().zip(&tools).map(|(n, (tool, args))| call(cx, n, tool, args)));
    steps.extend(numbers().zip(&tools).flat_map(|(n, _)| then(n)));
    Ok(steps)
}

/// The number of the first request of each tool, with the tool.
pub(super) fn numbered(tools: Vec<(String, Value)>) -> impl Iterator<Item = (i64, String)> {
    (0..).zip(tools).map(|(n, (tool, _))| (n * EACH, tool))
}

/// Asks for the state of each task, again and again, with longer pauses. The first requests of the tools stand
/// before it.
pub(super) fn polls(cx: &Cx<'_>, tools: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    for (round, pause) in (0..).zip([0, 30, 60, 120, 250, 500, 700, 30, 30]) {
        if pause > 0 {
            steps.push(Step::Listen(pause));
        }
        let firsts = (0..).take(tools).map(|tool: i64| tool * EACH + round);
        steps.extend(firsts.map(|n| Step::Follow(cx.id(n), cx.id(n + 1), get)));
    }
    steps
}

/// What is wrong with a task, or with an answer that holds one.
pub(super) fn odd(cx: &Cx<'_>, task: &Value, definition: &str) -> Option<String> {
    if task.get("ttl").is_none() {
        return Some("the task has no ttl".to_owned());
    }
    let dated = |name: &str| task[name].as_str().is_some_and(dated);
    if let Some(name) = ["createdAt", "lastUpdatedAt"].into_iter().find(|name| !dated(name)) {
        return Some(format!("{name} is {}, and no time of ISO 8601", task[name]));
    }
    super::lists::misfit(cx, definition, task)
}

/// Whether a text begins as a time of ISO 8601 does: `2026-11-18T`.
pub(super) fn dated(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape.starts_with("0000-00-00T")
}

/// Whether two ids differ in a number at their end only, and by little.
pub(super) fn guessable(one: &str, other: &str) -> bool {
    let split = |id: &str| {
        let digits = id.chars().rev().take_while(char::is_ascii_digit).count();
        let (head, tail) = id.split_at(id.len() - digits);
        Some((head.to_owned(), tail.parse::<u128>().ok()?))
    };
    match (split(one), split(other)) {
        (Some((head, a)), Some((same, b))) => head == same && a.abs_diff(b) < 10_000,
        _ => one == other,
    }
}

pub(super) fn checks() -> Vec<Check> {
    vec![created(), polled(), answered(), failed()]
}

fn created() -> Check {
    Check::must("tasks-created", &["TSK-03", "TSK-11", "TSK-12", "TSK-01"], Revisions::ONLY_1125,
        "A call as a task is answered with the task, which is working, has a ttl, and an id that cannot be guessed.")
        .sent("allowed tools with `task: {ttl: 60000}`, each twice")
        .hosts("A client waits for a result that never comes, or cannot find its task.")
        .fresh(
            |cx| {
                let mut steps = each(cx, |n| vec![Step::Await(cx.id(n))])?;
                for (n, (tool, args)) in (0..).zip(runnable(cx)?) {
                    steps.extend([call(cx, n * EACH + 1, &tool, &args), Step::Await(cx.id(n * EACH + 1))]);
                }
                Ok(steps)
            },
            |cx, seen| {
                let mut ids: Vec<&str> = Vec::new();
                verdict(numbered(runnable(cx).unwrap_or_default()).flat_map(|(n, tool)| [(n, tool.clone()), (n + 1, tool)]).try_for_each(|(n, tool)| {
                    let given = result(seen, &cx.id(n))?;
                    let wrong = |what: String| Err(fail(seen, format!("{tool}: {what}")));
                    let task = &given["task"];
                    let Some(id) = task["taskId"].as_str() else { return wrong(format!("the result has no task: {}", short(given))) };
                    if let Some(what) = odd(cx, task, "Task") {
                        return wrong(what);
                    }
                    if task["status"] != "working" {
                        return wrong(format!("the new task is {}", task["status"]));
                    }
                    if let Some(other) = ids.iter().find(|other| guessable(other, id)) {
                        return wrong(format!("the id {id:?} can be guessed from {other:?}"));
                    }
                    ids.push(id);
                    Ok(())
                }))
            },
        )
}

fn polled() -> Check {
    Check::must(
        "tasks-polled",
        &["TSK-04", "TSK-05", "TSK-12"],
        Revisions::ONLY_1125,
        "`tasks/get` gives the task itself, and a task that has ended stays as it is.",
    )
    .sent("allowed tools as tasks, and `tasks/get` until they have ended, and twice more")
    .hosts("A client polls for ever, or takes the wrong result.")
    .after(&["tasks-created"])
    .fresh(
        |cx| {
            let mut steps = each(cx, |_| Vec::new())?;
            steps.extend(polls(cx, runnable(cx)?.len()));
            Ok(steps)
        },
        |cx, seen| {
            verdict(numbered(runnable(cx).unwrap_or_default()).try_for_each(|(n, tool)| {
                let id = &result(seen, &cx.id(n))?["task"]["taskId"];
                let mut end: Option<&Value> = None;
                for at in (n + 1)..(n + 10) {
                    if end.is_some() && seen.code(&cx.id(at)) == Some(-32602) {
                        break;
                    }
                    let task = result(seen, &cx.id(at))?;
                    let wrong = |what: String| Err(fail(seen, format!("{tool}: {what}")));
                    if task["taskId"] != *id {
                        return wrong(format!("tasks/get gave {}", short(task)));
                    }
                    if let Some(what) = odd(cx, task, "GetTaskResult") {
                        return wrong(what);
                    }
                    let status = &task["status"];
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

/// Each tool as a task, its result, and its state then, also if there is no result.
fn finished(cx: &Cx<'_>) -> Sends {
    each(cx, |n| {
        vec![
            Step::Follow(cx.id(n), cx.id(n + 1), outcome),
            Step::Follow(cx.id(n + 1), cx.id(n + 2), get),
            Step::Await(cx.id(n + 2)),
            Step::Follow(cx.id(n), cx.id(n + 3), get),
            Step::Await(cx.id(n + 3)),
        ]
    })
}

/// Whether the result of a task is due. It is not while the task is at work (TMO-06), as its state says that was asked for
/// later, unless the plain call was done in that time.
pub(super) fn is_due(cx: &Cx<'_>, seen: &Seen<'_>, tool: &str, state: i64) -> bool {
    let status = seen.result(&cx.id(state)).map(|task| &task["status"]);
    plain(cx, tool).is_some() || status.is_none_or(terminal)
}

fn answered() -> Check {
    Check::must("tasks-answered", &["TSK-06", "TSK-10"], Revisions::ONLY_1125,
        "`tasks/result` waits for the end of the task, and gives what the call would have given, and the id in `_meta`.")
        .sent("allowed tools as tasks, `tasks/result` at once, and `tasks/get` then")
        .hosts("A model is shown a task, or an error, and not the result of its tool.")
        .after(&["tasks-created", "tasks-polled"])
        .fresh(
            finished,
            |cx, seen| {
                let mut any = false;
                let judged = numbered(runnable(cx).unwrap_or_default()).try_for_each(|(n, tool)| {
                    let id = &result(seen, &cx.id(n))?["task"]["taskId"];
                    let wrong = |what: String| Err(fail(seen, format!("{tool}: {what}")));
                    let status = seen.result(&cx.id(n + 2)).map(|task| &task["status"]);
                    if let Some(status) = status.filter(|status| !terminal(status)) {
                        return wrong(format!("tasks/result was answered while the task was {status}"));
                    }
                    let Some(reply) = seen.reply(&cx.id(n + 1)) else {
                        return if is_due(cx, seen, &tool, n + 3) { Err(super::unanswered(seen, &cx.id(n + 1))) } else { Ok(()) };
                    };
                    any = true;
                    let Some(given) = reply.get("result") else {
                        return match plain(cx, &tool) {
                            Some(_) => wrong(format!("the call gives a result, and the task {}", short(&reply["error"]))),
                            None => Ok(()),
                        };
                    };
                    if let Some(what) = super::lists::misfit(cx, "CallToolResult", given) {
                        return wrong(what);
                    }
                    if cx.fixture && tool == "protocol_error_job" {
                        return wrong(format!("an error is due, and the task gave {}", short(given)));
                    }
                    if given["_meta"][RELATED]["taskId"] != *id {
                        return wrong(format!("`_meta` of its result does not name the task: {}", short(&given["_meta"])));
                    }
                    match plain(cx, &tool) {
                        Some(other) if (other["isError"] == true) != (given["isError"] == true) => {
                            wrong(format!("the call gives {}, and the task {}", short(other), short(given)))
                        }
                        _ => Ok(()),
                    }
                });
                match judged {
                    Ok(()) if !any => Verdict::skip("no allowed tool ended as a task in time"),
                    judged => verdict(judged),
                }
            },
        )
}

fn failed() -> Check {
    Check::should(
        "tasks-failed",
        &["TSK-07"],
        Revisions::ONLY_1125,
        "A task whose result has isError, or is an error, has failed.",
    )
    .sent("allowed tools as tasks, `tasks/result`, and `tasks/get` then")
    .hosts("A client shows the task as done, and it went wrong.")
    .after(&["tasks-created", "tasks-answered"])
    .fresh(finished, |cx, seen| {
        let mut any = false;
        let judged = numbered(runnable(cx).unwrap_or_default()).try_for_each(|(n, tool)| {
            result(seen, &cx.id(n))?;
            let Some(reply) = seen.reply(&cx.id(n + 1)) else {
                return match is_due(cx, seen, &tool, n + 3) {
                    true => Err(super::unanswered(seen, &cx.id(n + 1))),
                    false => Ok(()),
                };
            };
            if reply.get("error").is_none() && reply["result"]["isError"] != true {
                return Ok(());
            }
            any = true;
            match seen.result(&cx.id(n + 2)).map(|task| &task["status"]) {
                Some(status) if *status != "failed" => {
                    Err(fail(seen, format!("{tool}: it gave an error, and the task is {status}")))
                }
                _ => Ok(()),
            }
        });
        match judged {
            Ok(()) if !any => Verdict::skip("no allowed tool fails as a task"),
            judged => verdict(judged),
        }
    })
}
