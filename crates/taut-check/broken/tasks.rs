//! Tools that are run as tasks: in the way of 2025-11-25, and in that of the extension in 2026-07-28.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::{Answer, CAPABILITIES, Request, Server};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const RELATED: &str = "io.modelcontextprotocol/related-task";
const TIME: &str = "2026-11-18T00:00:00Z";

/// A call that goes on after its answer.
pub(crate) struct Task {
    id: String,
    begun: Instant,
    last: Duration,
    outcome: Answer,
    cancelled: bool,
}

impl Task {
    fn ended(&self) -> bool {
        self.begun.elapsed() >= self.last
    }
}

/// What an error says that wants the extension.
pub(crate) fn needed() -> Value {
    json!({ "requiredCapabilities": { "extensions": { EXTENSION: {} } } })
}

/// What the tools give in the end, and how long that takes.
fn work(name: &str) -> (Answer, u64) {
    let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
    match name {
        "failing_job" => {
            let mut result = text("the job failed");
            result["isError"] = json!(true);
            (Ok(result), 40)
        }
        "protocol_error_job" => (Err((-32603, "the job broke".to_owned())), 40),
        "slow_compute" => (Ok(text("computed")), 300),
        _ => (Ok(text("done")), 40),
    }
}

impl Server {
    pub(crate) fn task_capabilities(&self, modern: bool, caps: &mut Value) {
        if modern && !self.is_without_tasks() {
            caps["extensions"] = json!({ EXTENSION: {} });
        }
        if !modern {
            caps["tasks"] = json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
            if self.is("tasks-ignored") {
                caps["tasks"] = json!({ "cancel": {} });
            }
            if self.is("tasks-listed") || self.is("tasks-kept") {
                caps["tasks"]["list"] = json!({});
            }
        }
    }

    pub(crate) fn has_tasks(&self, request: &Request<'_>) -> bool {
        match request.modern {
            true => {
                !self.is_without_tasks()
                    && !["tasks/list", "tasks/result"].contains(&request.method)
            }
            false => {
                let ignored = self.is("tasks-ignored") && request.method == "tools/call";
                request.version == "2025-11-25" && !ignored
            }
        }
    }

    /// Roles of a server of 2026-07-28 that does not have the extension.
    fn is_without_tasks(&self) -> bool {
        self.is("tasks-absent") || self.is("tasks-notified")
    }

    pub(crate) fn task_tools(&self, request: &Request<'_>) -> Vec<Value> {
        let schema = json!({ "type": "object", "properties": {} });
        let tools = [
            ("slow_compute", "optional"),
            ("failing_job", "optional"),
            ("protocol_error_job", "optional"),
            ("test_tool_with_task", "required"),
        ];
        let listed = tools.into_iter().map(|(name, support)| {
            let mut tool = json!({ "name": name, "inputSchema": schema });
            if request.version == "2025-11-25" {
                tool["execution"] = json!({ "taskSupport": support });
            }
            tool
        });
        listed.collect()
    }

    /// The tool without a task, or as one that this server made of it by itself.
    pub(crate) fn job(&mut self, request: &Request<'_>, name: &str) -> Option<Answer> {
        let declared = request.params["_meta"][CAPABILITIES]["extensions"].get(EXTENSION).is_some();
        let only = name == "test_tool_with_task";
        match request.modern {
            true if declared => return self.as_task(request, name),
            true if only => {
                let code = if self.is("tasks-needed") { -32601 } else { -32021 };
                return Some(Err((code, "tasks are needed".to_owned())));
            }
            false if only && request.version == "2025-11-25" && !self.is("tasks-required") => {
                return Some(Err((-32601, "this is a task only".to_owned())));
            }
            _ => {}
        }
        Some(work(name).0)
    }

    pub(crate) fn as_task(&mut self, request: &Request<'_>, name: &str) -> Option<Answer> {
        let jobs = ["slow_compute", "failing_job", "protocol_error_job", "test_tool_with_task"];
        if !jobs.contains(&name) && !self.is("tasks-forbidden") {
            return Some(Err((-32601, "this is never a task".to_owned())));
        }
        let (outcome, millis) = work(name);
        let mut id = format!("{:x}-{name}", rand());
        if self.is("task-ids") {
            id = format!("task-{}", self.tasks.len());
        }
        let last = Duration::from_millis(millis);
        self.tasks.push(Task { id, begun: Instant::now(), last, outcome, cancelled: false });
        self.report(request, self.tasks.len() - 1);
        let mut task = self.state(self.tasks.len() - 1, request.modern);
        if self.is("task-submitted") {
            task["status"] = json!("submitted");
        }
        if self.is("tasks-created")
            && let Some(members) = task.as_object_mut()
        {
            members.remove("ttl");
        }
        if !request.modern {
            return Some(Ok(if self.is("task-flat") { task } else { json!({ "task": task }) }));
        }
        if self.is("handle-ttl")
            && let Some(members) = task.as_object_mut()
        {
            members.remove("ttlMs");
            members.insert("ttl".to_owned(), json!(60_000));
        }
        if self.is("tasks-handle") {
            task = json!({ "task": task });
        }
        if let Some(members) = task.as_object_mut() {
            members.remove("result");
            members.remove("error");
        }
        if !self.is("handle-complete") {
            task["resultType"] = json!("task");
        }
        Some(Ok(task))
    }

    /// Progress of a task, where a token asks for it.
    fn report(&self, request: &Request<'_>, at: usize) {
        let token = request.params["_meta"].get("progressToken").cloned();
        let Some(token) = token.filter(|_| !request.modern || self.is("tasks-quiet")) else {
            return;
        };
        let Some(task) = self.tasks.get(at) else { return };
        let mut params = json!({ "progressToken": token, "progress": 1 });
        if !request.modern && !self.is("tasks-progress") {
            params["_meta"] = json!({ RELATED: { "taskId": task.id } });
        }
        let (out, last) = (self.out(), task.last);
        let early = !self.is("task-progress-late");
        std::thread::spawn(move || {
            let late = Duration::from_millis(60);
            std::thread::sleep(if early { last / 4 } else { last + late });
            out.send(
                &json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }),
            );
        });
    }

    fn state(&self, at: usize, modern: bool) -> Value {
        let Some(task) = self.tasks.get(at) else { return Value::Null };
        let lax = self.is("tasks-failed") || modern && !self.is("tasks-outcome");
        let failed = match &task.outcome {
            Err(_) => !self.is("error-completed"),
            Ok(result) => result["isError"] == true && !lax,
        };
        let status = match () {
            () if task.cancelled && !(self.is("cancel-undone") && task.ended()) => "cancelled",
            () if !task.ended() => "working",
            () if failed => "failed",
            () => "completed",
        };
        let mut state = json!({ "taskId": task.id, "status": status, "createdAt": TIME, "lastUpdatedAt": TIME });
        if !modern {
            state["ttl"] = json!(60_000);
            return state;
        }
        state["ttlMs"] = json!(60_000);
        match (&task.outcome, status) {
            (Ok(result), "completed") if !self.is("state-bare") => {
                state["result"] = result.clone();
                state["result"]["resultType"] = json!("complete");
            }
            (Err((code, message)), "failed") => {
                state["error"] = json!({ "code": code, "message": message })
            }
            (Err(_), "completed") => state["result"] = json!({ "content": [] }),
            (Ok(_), "failed") => state["error"] = json!({ "code": -32603, "message": "it failed" }),
            _ => {}
        }
        state
    }

    pub(crate) fn task_request(&mut self, request: &Request<'_>) -> Option<Answer> {
        let modern = request.modern;
        if request.method == "tasks/list" {
            let kept = !self.is("tasks-listed");
            let all = (0..self.tasks.len()).filter(|_| kept).map(|at| self.state(at, false));
            return Some(match self.is("tasks-listed") || self.is("tasks-kept") {
                true => Ok(json!({ "tasks": all.collect::<Vec<_>>() })),
                false => Err((-32601, "there is no list".to_owned())),
            });
        }
        self.polls += 1;
        let found = self.tasks.iter().position(|task| request.params["taskId"] == *task.id);
        let Some(at) = found.filter(|_| !(self.is("handle-late") && self.polls < 3)) else {
            let cancels = request.method == "tasks/cancel";
            return Some(match self.is("tasks-unknown") && request.method == "tasks/get" {
                true => Ok(json!({ "taskId": "x" })),
                false if self.is("cancel-lost") && cancels => Err((-32603, "lost".to_owned())),
                false => Err((-32602, "no such task".to_owned())),
            });
        };
        match request.method {
            "tasks/get" => Some(Ok(self.polled(at, modern))),
            "tasks/update" if self.is("update-refused") => {
                Some(Err((-32601, "no updates".to_owned())))
            }
            "tasks/update" => Some(Ok(json!({}))),
            "tasks/cancel" => Some(self.cancel(at, modern)),
            _ => self.outcome(request, at),
        }
    }

    fn polled(&self, at: usize, modern: bool) -> Value {
        let mut state = self.state(at, modern);
        let ended = state["status"] != "working";
        if self.is("task-flickers") && ended && self.polls.is_multiple_of(3) {
            state["status"] = json!("working");
        }
        if self.is("tasks-state") && modern {
            state["resultType"] = json!("task");
        }
        if self.is("tasks-polled") && !modern {
            state = json!({ "task": state });
        }
        if let (true, Some(members)) = (self.is("poll-ttl"), state.as_object_mut()) {
            members.remove("ttl");
        }
        state
    }

    fn cancel(&mut self, at: usize, modern: bool) -> Answer {
        let ended = self.tasks.get(at).is_some_and(|task| task.ended() || task.cancelled);
        if ended && !modern && !self.is("cancel-ended") {
            return Err((-32602, "it has ended".to_owned()));
        }
        let deaf = self.is("tasks-cancelled");
        if let Some(task) = self.tasks.get_mut(at).filter(|_| !deaf && !ended) {
            task.cancelled = true;
        }
        match modern && !self.is("tasks-acknowledged") {
            true => Ok(json!({})),
            false => Ok(self.state(at, modern)),
        }
    }

    /// The result of a task, when there is one.
    fn outcome(&self, request: &Request<'_>, at: usize) -> Option<Answer> {
        let task = self.tasks.get(at)?;
        if self.is("result-early") && !task.ended() {
            return Some(Err((-32602, "it is not ready".to_owned())));
        }
        if task.cancelled {
            return Some(Err((-32603, "it was cancelled".to_owned())));
        }
        let mut answer = match &task.outcome {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": request.id, "result": result }),
            Err((code, message)) => json!({ "jsonrpc": "2.0", "id": request.id,
                "error": { "code": code, "message": message } }),
        };
        if self.is("result-task") && task.outcome.is_ok() {
            answer["result"] = self.state(at, false);
        }
        if task.outcome.is_ok() && !self.is("tasks-answered") {
            answer["result"]["_meta"] = json!({ RELATED: { "taskId": task.id } });
        }
        let wait = task.last.saturating_sub(task.begun.elapsed());
        let out = self.out();
        std::thread::spawn(move || {
            std::thread::sleep(wait);
            out.send(&answer);
        });
        None
    }
}

/// A number that nobody guesses.
fn rand() -> u128 {
    use std::hash::{BuildHasher as _, Hasher as _};
    let part =
        || u128::from(std::collections::hash_map::RandomState::new().build_hasher().finish());
    part() << 64 | part()
}
