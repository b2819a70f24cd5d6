//! The server: five revisions, correct but for its role.

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::Out;
use crate::ends::{BUSY, LOGGING, Later};

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const MODERN: &str = "2026-07-28";
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

pub(crate) type Answer = Result<Value, (i64, String)>;

/// A request that is served.
pub(crate) struct Request<'a> {
    pub(crate) id: &'a Value,
    pub(crate) method: &'a str,
    pub(crate) params: &'a Value,
    pub(crate) modern: bool,
    pub(crate) version: &'a str,
}

pub(crate) struct Server {
    out: Out,
    modern_only: bool,
    pub(crate) agreed: Option<String>,
    client: Value,
    level: usize,
    last_id: Value,
    last_method: String,
    /// Whether a resource is subscribed to.
    watched: bool,
    used: Vec<Value>,
    bad_version: bool,
    pub(crate) turns: Cell<u32>,
    streams: Vec<(Value, Value)>,
    pub(crate) cancelled: Arc<Mutex<Vec<Value>>>,
    asked: Vec<(Value, Value)>,
    next: i64,
    flow: String,
    /// Whether a request has asked for logs.
    logged: bool,
    /// The last progress token, for a role that uses it again.
    token: Option<Value>,
    /// Whether any request declared elicitation, for a role that remembers it.
    pub(crate) elicits: bool,
    /// Whether a request was refused.
    refused: bool,
    /// Whether a tool was called, for a role that lists others then.
    pub(crate) called: bool,
    /// Whether `server/discover` was asked, and a resource read, for roles that list others then.
    pub(crate) discovered: bool,
    pub(crate) has_read: bool,
    /// How often the second page of tools was read, and whether the tool `log` was called.
    pub(crate) seconds: Cell<u32>,
    pub(crate) said: bool,
    /// The ids of calls that take a while.
    slows: Vec<Value>,
    /// How many requests came, and calls of echo.
    count: u32,
    echoes: u32,
    /// The tool that asked last, for a role that knows one question only.
    pub(crate) turn_of: String,
    /// An answer that waits for the next message.
    kept: Option<Value>,
    /// The tasks, and how often one was asked for.
    pub(crate) tasks: Vec<crate::tasks::Task>,
    pub(crate) polls: u32,
    /// Whether a request without `_meta` came, for a role that takes all others for such.
    pinned: bool,
}

impl Server {
    pub(crate) fn new(out: Out, modern_only: bool) -> Self {
        Self {
            out,
            modern_only,
            agreed: None,
            client: Value::Null,
            level: 0,
            last_id: Value::Null,
            last_method: String::new(),
            watched: false,
            used: Vec::new(),
            bad_version: false,
            turns: Cell::new(0),
            streams: Vec::new(),
            cancelled: Arc::default(),
            asked: Vec::new(),
            next: 0,
            flow: String::new(),
            logged: false,
            token: None,
            elicits: false,
            refused: false,
            called: false,
            discovered: false,
            has_read: false,
            seconds: Cell::new(0),
            said: false,
            slows: Vec::new(),
            count: 0,
            echoes: 0,
            turn_of: String::new(),
            kept: None,
            tasks: Vec::new(),
            polls: 0,
            pinned: false,
        }
    }

    pub(crate) fn is(&self, role: &str) -> bool {
        self.out.is(role)
    }

    pub(crate) fn role(&self) -> Arc<str> {
        self.out.role.clone()
    }

    /// Ends the subscriptions with a result that does not say which one it was.
    pub(crate) fn end_streams(&self) {
        for (id, _) in &self.streams {
            let meta = json!({ "io.modelcontextprotocol/serverInfo": { "name": "broken", "version": "1" } });
            let result = json!({ "resultType": "complete", "_meta": meta });
            self.out.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        }
    }

    pub(crate) fn listens(&self) -> usize {
        self.streams.len()
    }

    /// Whether it stays when its input ends, for what the client asked last.
    pub(crate) fn stays_after(&self) -> bool {
        self.is("stays-subscribed") && self.watched
            || self.is("frame-exit-opening") && self.last_method == "initialize"
    }

    /// Whether the client still has a question to answer.
    pub(crate) fn waits(&self) -> bool {
        !self.asked.is_empty()
    }

    pub(crate) fn has_refused(&self) -> bool {
        self.refused
    }

    /// Writes the answer that was held back.
    pub(crate) fn release(&mut self) {
        if let Some(kept) = self.kept.take() {
            self.out.send(&kept);
        }
    }

    /// Whether a role loses this request, so that it is never answered.
    fn loses(&mut self, method: &str, params: &Value) -> bool {
        self.count += 1;
        let lost = self.is("rpc-after-error") && self.refused && self.last_method == "tools/call";
        self.is("rpc-answers-on") && self.count > 120
            || self.is("tools-many") && self.echoes > 40 && method == "tools/call"
            || self.is("listen-others") && method == "prompts/get" && !self.streams.is_empty()
            || lost && method == "tools/call" && params["name"] == "echo"
    }

    pub(crate) fn send(&self, message: &Value) {
        self.out.send(message);
    }

    pub(crate) fn note(&self, method: &str, params: Value) {
        self.out.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    pub(crate) fn refuse(&self, id: Option<&Value>, code: i64, message: &str) {
        self.out.send(&refusal(id, code, message));
    }

    pub(crate) fn line(&mut self, line: &[u8]) {
        self.release();
        let text = String::from_utf8_lossy(line).into_owned();
        if text.trim().is_empty()
            || self.is("frame-separators") && text.contains('\u{2028}')
            || self.is("frame-json") && text.contains("\\u0065thod")
        {
            return;
        }
        let bare = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        let half = text.replace("\\ud83c\\udf88", "?");
        let bare = if self.is("half-escapes") { half.as_bytes() } else { bare };
        if self.is("nan-served") && text.contains("NaN") {
            return self.out.send(&json!({ "jsonrpc": "2.0", "id": null, "result": {} }));
        }
        let Ok(value) = serde_json::from_slice::<Value>(bare) else {
            let stale = self.is("rpc-unreadable-id").then(|| self.last_id.clone());
            let code = match () {
                () if self.is("rpc-parse-error") => -32603,
                () if self.is("parse-invalid") => -32600,
                () => -32700,
            };
            return self.refuse(stale.as_ref(), code, "no JSON");
        };
        match value {
            Value::Array(list) => self.batch(&list),
            value => {
                if let Some(reply) = self.message(&value) {
                    if self.is("frame-flush") && value["method"] == "prompts/get" {
                        self.kept = Some(reply);
                        return;
                    }
                    self.out.send(&reply);
                    self.after(&value);
                }
            }
        }
    }

    /// What a message is answered with, if it is.
    pub(crate) fn message(&mut self, value: &Value) -> Option<Value> {
        let method = value.get("method");
        let id = value.get("id");
        let valid =
            value["jsonrpc"] == "2.0" && (method.is_some_and(Value::is_string) || method.is_none());
        let response =
            method.is_none() && (value.get("result").is_some() || value.get("error").is_some());
        if response {
            return self.response(value);
        }
        let odd_id = id.is_some_and(|id| !id.is_string() && !id.is_i64() && !id.is_u64());
        let (null, typed) = (
            self.is("rpc-id-null") && id == Some(&Value::Null),
            self.is("rpc-id-type") && id == Some(&json!(true)),
        );
        if !valid || method.is_none() || odd_id && !null && !typed {
            let minus = json!(-1);
            let readable = match self.is("odd-id") && odd_id {
                true => Some(&minus),
                false => id.filter(|_| !odd_id),
            };
            let code = match () {
                () if self.is("rpc-invalid-request") => -32603,
                () if self.is("invalid-unknown") => -32601,
                () => -32600,
            };
            return Some(refusal(readable, code, "no message"));
        }
        let method = method.and_then(Value::as_str).unwrap_or_default();
        let Some(id) = id else {
            let answer = self.notification(method, &value["params"]);
            let always = self.is("answers-notifications");
            return always.then(|| refusal(Some(&Value::Null), -32601, "noted")).or(answer);
        };
        if self.is("rpc-id-forms") && *id == json!(0) {
            return None;
        }
        if self.is("params-null") && value.get("params") == Some(&Value::Null) {
            std::process::exit(1);
        }
        let call = method == "tools/call";
        if self.loses(method, &value["params"])
            || self.is("rpc-id-call") && call && *id == json!("")
            || self.is("call-zero") && call && *id == json!(0)
            || self.is("unknown-text") && id.is_string() && method == "prompts/none"
            || self.is("noted-request") && method.starts_with("notifications/")
            || self.is("cancel-kept")
                && self.cancelled.lock().unwrap_or_else(PoisonError::into_inner).contains(id)
        {
            return None;
        }
        let reply = self.request(id, method, value.get("params").unwrap_or(&Value::Null));
        let refused = matches!(reply, Some(Err(_)));
        // The role forgets it with the next request that is served.
        self.refused = refused || self.refused && !self.is("rpc-after-error");
        if refused && self.is("rpc-error-zero") && (*id == json!(0) || *id == json!("")) {
            return None;
        }
        self.last_id = id.clone();
        self.last_method = method.to_owned();
        self.watched = match method {
            "resources/subscribe" => true,
            "resources/unsubscribe" => false,
            _ => self.watched,
        };
        self.used.push(id.clone());
        reply.map(|reply| self.written(id, method, value, reply))
    }

    /// The answer as it goes out.
    fn written(&self, id: &Value, method: &str, request: &Value, answer: Answer) -> Value {
        let id = match id {
            Value::String(text) if self.is("error-digits") && answer.is_err() => {
                text.parse::<i64>().map_or_else(|_| id.clone(), Value::from)
            }
            Value::String(text) if self.is("rpc-id-echo") && text == "7" => json!(7),
            Value::String(text) if self.is("id-cut") => {
                json!(text.chars().take(32).collect::<String>())
            }
            Value::String(text) if self.is("id-case") => json!(text.trim().to_lowercase()),
            Value::String(_)
                if self.is("rpc-id-methods") && method == "tools/call" && answer.is_ok() =>
            {
                json!(0)
            }
            Value::Number(number) if self.is("get-positive") && method == "prompts/get" => {
                json!(number.as_i64().map_or(0, i64::abs))
            }
            Value::Number(number) if self.is("id-32") => {
                json!(number.as_i64().map_or(0, |id| id % (1 << 32)))
            }
            Value::Number(number) if self.is("big-id") => {
                // As JavaScript does.
                number
                    .as_i64()
                    .filter(|id| *id > 1 << 53)
                    .map_or_else(|| id.clone(), |id| json!(id & !1))
            }
            Value::Number(number) if self.is("calls-crossed") => {
                let step = match request["params"]["arguments"]["text"].as_str() {
                    Some("taut-check-52") => 1,
                    Some("taut-check-53") => -1,
                    _ => 0,
                };
                json!(number.as_i64().unwrap_or_default() + step)
            }
            id => id.clone(),
        };
        let bare = self.is("bare-prompt") && method == "prompts/get"
            || self.is("bare-call") && method == "tools/call";
        let bare = bare && self.agreed.is_none();
        let modern = request["params"]["_meta"].get(VERSION).is_some() || self.modern_only || bare;
        let modern = modern && !self.pinned;
        let mut reply = match answer {
            Err((code, message)) => {
                let null = self.is("rpc-error-id") && method != "initialize"
                    || self.is("error-text-id") && id.is_string()
                    || self.is("error-zero-id") && id == json!(0);
                let mut reply =
                    refusal(Some(if null { &Value::Null } else { &id }), code, &message);
                if code == -32022 {
                    let asked = &request["params"]["_meta"][VERSION];
                    reply["error"]["data"] = json!({ "supported": [MODERN], "requested": asked });
                    if self.is("supported-differs") {
                        reply["error"]["data"]["supported"] = json!([MODERN, "2030-01-01"]);
                    }
                    if self.is("version-unknown") || asked.is_null() {
                        reply["error"]["data"] = json!({ "supported": [MODERN] });
                    }
                }
                if code == -32021 {
                    reply["error"]["data"] = match &request["params"]["name"] {
                        name if name == "test_tool_with_task" => crate::tasks::needed(),
                        _ => json!({ "requiredCapabilities": { "sampling": {} } }),
                    };
                    if method == "tools/call" && request["params"]["name"] == "ask" {
                        reply["error"]["data"] =
                            json!({ "requiredCapabilities": { "elicitation": {} } });
                    }
                    if self.is("capability-named") {
                        reply["error"]["data"] = json!({ "requiredCapabilities": ["sampling"] });
                    }
                    if self.is("needs-nothing") {
                        reply["error"]["data"] = json!({ "requiredCapabilities": {} });
                    }
                }
                if self.is("null-result") {
                    reply["result"] = Value::Null;
                }
                if self.is("code-text") {
                    reply["error"]["code"] = json!(code.to_string());
                }
                if self.is("rpc-error-shape") && method == "prompts/get" {
                    reply["error"] = json!({ "code": code });
                }
                if self.is("init-names-versions") && method == "initialize" {
                    reply["error"] = json!({ "code": -32601, "message": "no such method" });
                }
                reply
            }
            Ok(mut result) => {
                if modern {
                    self.modernise(method, &mut result);
                }
                json!({ "jsonrpc": "2.0", "id": id, "result": result })
            }
        };
        let list = method == "prompts/list";
        if self.is("names-method") && list && reply.get("result").is_some() {
            reply["method"] = json!(method);
        }
        if self.is("rpc-version") && list {
            reply["jsonrpc"] = json!("1.0");
        }
        if self.is("rpc-one-of") && list && reply.get("result").is_some() {
            reply["error"] = json!({ "code": -32603, "message": "both" });
        }
        if self.is("rpc-result-object")
            && reply.get("result").is_some()
            && method == "resources/unsubscribe"
        {
            reply["result"] = Value::Null;
        }
        reply
    }

    pub(crate) fn modernise(&self, method: &str, result: &mut Value) {
        let list = method == "prompts/list";
        if result.get("resultType").is_none() && !(self.is("result-type") && list) {
            result["resultType"] =
                json!(if self.is("result-type-known") && list { "partial" } else { "complete" });
        }
        let asks = result["resultType"] == "input_required";
        let cached = [
            "server/discover",
            "tools/list",
            "prompts/list",
            "resources/list",
            "resources/templates/list",
            "resources/read",
        ];
        if cached.contains(&method) && !asks {
            result["ttlMs"] = if self.is("cache-hints") && list { json!(-1) } else { json!(0) };
            if self.is("floats") {
                result["ttlMs"] = json!(1000.0);
            }
            if result.get("cacheScope").is_none() {
                result["cacheScope"] = json!("private");
            }
        }
        if !(self.is("meta-server-info") && list) {
            result["_meta"]["io.modelcontextprotocol/serverInfo"] =
                json!({ "name": "broken", "version": "1" });
        }
        if self.is("meta-trace") && list {
            result["_meta"]["traceparent"] = json!("00-abc-def-01");
        }
        if self.is("meta-reserved") && list {
            result["_meta"]["dev.mcp/mine"] = json!(1);
        }
        if self.is("meta-nested")
            && list
            && let Some(prompt) = result["prompts"].get_mut(0)
        {
            prompt["_meta"] = json!({ "-torn-": 1 });
        }
        if self.is("meta-keys") && list {
            result["_meta"]["not a key!"] = json!(1);
        }
    }

    /// What a role does besides, after an answer is written.
    fn after(&self, value: &Value) {
        let list = value["method"] == "prompts/list";
        let modern = value["params"]["_meta"].get(VERSION).is_some();
        let token = &value["params"]["_meta"]["progressToken"];
        if self.is("progress-read") && value["method"] == "resources/read" && !token.is_null() {
            self.note("notifications/progress", json!({ "progressToken": token, "progress": 1 }));
        }
        if self.is("frame-direction") && list {
            self.out.send(&json!({ "jsonrpc": "2.0", "id": "s1", "method": "roots/list" }));
        }
        if (self.is("frame-kinds") || self.is("experimental")) && list {
            self.note("notifications/custom", json!({}));
        }
        if self.is("rpc-own-ids") && list {
            self.out.send(&json!({ "jsonrpc": "2.0", "id": "s1", "method": "ping" }));
        }
        if self.is("ping-list") && list {
            self.turns.set(self.turns.get() + 1);
            let id = format!("s{}", self.turns.get());
            self.out.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping", "params": [] }));
        }
        if self.is("init-undeclared") && list {
            self.note("notifications/resources/list_changed", json!({}));
        }
        if self.is("updated-undeclared") && list {
            self.note("notifications/resources/updated", json!({ "uri": "demo://one" }));
        }
        if self.is("tasks-notified") && list {
            self.note("notifications/tasks", json!({ "taskId": "t1" }));
        }
        if self.is("frame-acknowledged") && list && modern {
            let meta = json!({ SUBSCRIPTION: 4711 });
            self.note(
                "notifications/subscriptions/acknowledged",
                json!({ "notifications": {}, "_meta": meta }),
            );
        }
        if self.is("frame-quiet-notifications") && list {
            self.out.send(&json!({ "jsonrpc": "2.0", "id": "s1", "method": "notifications/message", "params": { "level": "info", "data": 1 } }));
        }
        if self.is("init-quiet") && value["method"] == "initialize" {
            self.note("notifications/tools/list_changed", json!({}));
        }
        if self.is("early-note") && value["method"] == "initialize" {
            let out = self.out.clone();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(30));
                out.send(
                    &json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }),
                );
            });
        }
        if self.is("init-capabilities") && list {
            let params = json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "hi" } }], "maxTokens": 5 });
            self.turns.set(self.turns.get() + 1);
            let id = format!("s{}", self.turns.get());
            self.out.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "sampling/createMessage", "params": params }));
        }
        if self.is("init-vocabulary") && list {
            self.note("notifications/elicitation/complete", json!({ "elicitationId": "x" }));
        }
        if self.is("cancel-by-server") && list {
            self.note("notifications/cancelled", json!({ "requestId": 99 }));
        }
        if self.is("listen-unasked") && list && modern {
            self.note("notifications/tools/list_changed", json!({}));
        }
        if self.is("log-order")
            && value["params"]["name"] == "log"
            && value["params"]["_meta"].get(LOG_LEVEL).is_some()
        {
            self.note("notifications/message", json!({ "level": "info", "data": "late" }));
        }
    }

    fn notification(&mut self, method: &str, params: &Value) -> Option<Value> {
        let answered = || Some(refusal(Some(&Value::Null), -32601, "what is that?"));
        match method {
            "completion/complete" if self.is("complete-noted") => answered(),
            "exit" if self.is("exit-noted") => std::process::exit(0),
            "notifications/cancelled"
                if self.is("cancel-reason") && params["reason"].is_number() =>
            {
                answered()
            }
            "notifications/cancelled" => {
                let id = params.get("requestId").filter(|id| id.is_string() || id.is_number());
                let Some(id) = id else {
                    if self.is("cancel-malformed-busy") {
                        let mut cancelled =
                            self.cancelled.lock().unwrap_or_else(PoisonError::into_inner);
                        cancelled.push(Value::Null);
                    }
                    return if self.is("cancel-malformed") { answered() } else { None };
                };
                if self.is("cancel-ids") && *id == json!(0)
                    || self.is("cancel-empty-id") && *id == json!("")
                {
                    return None;
                }
                if self.is("cancel-unknown") && *id == json!("never-used")
                    || self.is("cancel-opening") && *id == json!(1)
                {
                    return answered();
                }
                if self.is("cancel-race") && *id == self.last_id && self.last_method == "tools/list"
                {
                    self.out
                        .send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "tools": [] } }));
                }
                if self.is("listen-refused") && self.streams.iter().any(|(stream, _)| stream == id)
                {
                    self.refuse(Some(id), -32603, "cancelled");
                }
                if self.is("listen-cancel") && self.streams.iter().any(|(stream, _)| stream == id) {
                    let meta = json!({ SUBSCRIPTION: id, "io.modelcontextprotocol/serverInfo": { "name": "broken", "version": "1" } });
                    self.out.send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "resultType": "complete", "_meta": meta } }));
                }
                if self.is("listen-note") && self.streams.iter().any(|(stream, _)| stream == id) {
                    self.note("notifications/cancelled", json!({ "requestId": id }));
                }
                let past = self.used.contains(id) && !self.slows.contains(id);
                if self.is("cancel-unknown-busy") && !self.used.contains(id)
                    || self.is("cancel-past") && past
                {
                    let mut cancelled =
                        self.cancelled.lock().unwrap_or_else(PoisonError::into_inner);
                    cancelled.push(Value::Null);
                }
                let kept = self.is("listen-text-kept") && id.is_string();
                if !self.is("listen-cancel-fixture") && !kept {
                    self.streams.retain(|(stream, _)| stream != id);
                }
                self.cancelled.lock().unwrap_or_else(PoisonError::into_inner).push(id.clone());
                let waits = self.waits();
                self.asked.retain(|(_, call)| call != id);
                if self.is("cancel-asking") && waits && !self.waits() {
                    return Some(refusal(Some(id), -32603, "cancelled"));
                }
                None
            }
            "notifications/initialized"
                if self.is("meta-removed-notifications") && self.agreed.is_none() =>
            {
                answered()
            }
            "notifications/initialized" if self.is("answers-initialized") => {
                Some(json!({ "jsonrpc": "2.0", "id": null, "result": {} }))
            }
            "notifications/roots/list_changed"
                if self.is("roots-followed") && self.agreed.is_some() =>
            {
                self.turns.set(self.turns.get() + 1);
                let id = format!("s{}", self.turns.get());
                self.out.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "roots/list" }));
                None
            }
            "notifications/no_such" if self.is("rpc-notification-silent") => answered(),
            _ => None,
        }
    }

    /// An answer to something that we asked.
    fn response(&mut self, value: &Value) -> Option<Value> {
        let at = self.asked.iter().position(|(asked, _)| value.get("id") == Some(asked))?;
        let (_, call) = self.asked.remove(at);
        let text = value["result"].to_string();
        Some(
            json!({ "jsonrpc": "2.0", "id": call, "result": { "content": [{ "type": "text", "text": text }] } }),
        )
    }

    fn request(&mut self, id: &Value, method: &str, params: &Value) -> Option<Answer> {
        if self.is("init-opens") && ["initialize", "server/discover"].contains(&method) {
            return Some(Err((-32603, "not today".to_owned())));
        }
        if self.is("pins-era")
            && self.agreed.is_none()
            && method == "tools/list"
            && params.is_object()
            && params["_meta"].get(VERSION).is_none()
        {
            self.pinned = true;
            return Some(Ok(json!({ "tools": [] })));
        }
        let lax = self.is("rpc-params-array") && params.is_array()
            || self.is("params-text") && params.is_string()
            || self.is("call-positions") && params.is_array() && method == "tools/call"
            || self.is("params-prompts") && params.is_array() && method == "prompts/list";
        if !params.is_object() && !params.is_null() && !lax {
            return Some(Err((-32602, "params are an object".to_owned())));
        }
        let meta = &params["_meta"];
        self.elicits |= meta[CAPABILITIES].get("elicitation").is_some();
        let bare = meta.get(VERSION).is_none() && method == "prompts/get" && self.agreed.is_none();
        let versionless = meta.get(VERSION).is_none() && self.agreed.is_none();
        let listens = method == "subscriptions/listen" && meta.get(CAPABILITIES).is_some();
        let remembered = self.is("bare-prompt") && bare
            || self.is("listen-versionless") && versionless && listens
            || self.is("bare-call") && versionless && self.called && method == "tools/call";
        let modern = meta.get(VERSION).is_some() || remembered;
        if (modern && !remembered || self.modern_only)
            && let Err(refused) = self.envelope(id, method, meta)
        {
            return Some(Err(refused));
        }
        let lower = method.to_lowercase();
        let method =
            if self.is("rpc-method-case") && lower == "tools/list" { &lower } else { method };
        let method = if self.is("method-slash") { method.trim_matches('/') } else { method };
        if !modern && !self.modern_only {
            if method == "initialize" && self.is("modern-first") && self.discovered {
                return Some(Err((-32022, "this process speaks 2026-07-28".to_owned())));
            }
            if method == "initialize" {
                return Some(self.initialize(params));
            }
            if self.agreed.is_none()
                && method == "tools/list"
                && self.is("frame-stateless")
                && !self.used.is_empty()
            {
                return Some(Ok(
                    json!({ "tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private" }),
                ));
            }
            if self.agreed.is_none()
                && method == "server/discover"
                && self.is("meta-version-required")
            {
                return Some(Ok(
                    json!({ "supportedVersions": [MODERN], "capabilities": {}, "resultType": "complete", "ttlMs": 0, "cacheScope": "private" }),
                ));
            }
            let lax = self.is("meta-list") && meta.is_array()
                || self.is("token-alone") && meta.get("progressToken").is_some();
            if lax && self.agreed.is_none() && method == "server/discover" {
                return Some(Ok(
                    json!({ "supportedVersions": [MODERN], "capabilities": {}, "resultType": "complete", "ttlMs": 0, "cacheScope": "private" }),
                ));
            }
            if self.agreed.is_none() && method != "ping" {
                return Some(Err((-32600, "not initialized".to_owned())));
            }
        }
        let version =
            if modern { MODERN.to_owned() } else { self.agreed.clone().unwrap_or_default() };
        self.dispatch(&Request { id, method, params, modern, version: &version })
    }

    fn envelope(&mut self, id: &Value, method: &str, meta: &Value) -> Result<(), (i64, String)> {
        let invalid = |what: &str| Err((-32602, what.to_owned()));
        if self.modern_only && method == "initialize" {
            return Err((-32022, "only 2026-07-28".to_owned()));
        }
        let Some(version) = meta.get(VERSION) else { return invalid("a version is needed") };
        let typeless = self.is("types-call") && method == "tools/call"
            || self.is("types-read") && method == "resources/read";
        let version = match version.as_str() {
            Some(version) => version,
            None if typeless => MODERN,
            None => return invalid("the version is a text"),
        };
        let lax = (self.is("meta-types") || typeless)
            && meta.get(CAPABILITIES) == Some(&Value::Null)
            || self.is("meta-required") && meta.get(CAPABILITIES).is_none()
            || self.is("caps-call") && method == "tools/call" && meta.get(CAPABILITIES).is_none()
            || self.is("caps-get") && method == "prompts/get" && meta.get(CAPABILITIES).is_none();
        if !meta.get(CAPABILITIES).is_some_and(Value::is_object) && !lax {
            return invalid("capabilities are needed");
        }
        let lax = self.is("version-call") && method == "tools/call"
            || self.is("version-empty") && version.is_empty();
        if version != MODERN && !lax {
            self.bad_version = true;
            return Err((-32022, "no such version".to_owned()));
        }
        if self.is("version-mixed")
            && self.bad_version
            && id.as_i64().is_some_and(|id| id % 100 == 2)
        {
            return Err((-32603, "confused".to_owned()));
        }
        if self.is("frame-first") && self.used.is_empty() && method != "server/discover" {
            return Err((-32600, "ask server/discover first".to_owned()));
        }
        let asks = self.is("meta-client-info")
            || self.is("client-call") && method == "tools/call"
            || self.is("client-listen") && method == "subscriptions/listen";
        let client = meta.get("io.modelcontextprotocol/clientInfo");
        if asks && client.is_none() {
            return invalid("clientInfo is needed");
        }
        let whole = |client: &Value| client["name"].is_string() && client["version"].is_string();
        if client.is_some_and(|client| !whole(client)) && !self.is("meta-client-type") {
            return invalid("clientInfo has a name and a version");
        }
        if self.is("meta-foreign") && meta.get("baggage").is_some() {
            return invalid("what is baggage?");
        }
        if self.is("rpc-id-reuse") && self.used.contains(id) {
            return Err((-32600, "the id was used".to_owned()));
        }
        let level = meta.get(LOG_LEVEL);
        let lax =
            self.is("log-bad-level-modern") || self.is("level-call") && method == "tools/call";
        let lax = lax
            || self.is("level-read") && method == "resources/read"
            || self.is("level-get") && method == "prompts/get"
            || self.is("level-upper") && *level.unwrap_or(&Value::Null) == json!("DEBUG")
            || self.is("level-number") && level.is_some_and(Value::is_number);
        if level.is_some_and(|level| !LEVELS.iter().any(|known| level == *known)) && !lax {
            return invalid("no such level");
        }
        Ok(())
    }

    fn initialize(&mut self, params: &Value) -> Answer {
        if !params["capabilities"].is_object() || !params["clientInfo"].is_object() {
            return Err((-32602, "capabilities and clientInfo are needed".to_owned()));
        }
        let asked = match params["protocolVersion"].as_str() {
            Some(asked) => asked,
            None if self.is("init-params") => "2025-11-25",
            None => return Err((-32602, "protocolVersion is needed".to_owned())),
        };
        if self.is("init-offer") && asked == "1999-01-01"
            || self.is("init-offer-future") && asked == "2099-12-31"
            || self.is("init-offer-word") && asked == "latest"
            || self.is("modern-refused") && asked == MODERN
        {
            return Err((-32603, "no such version".to_owned()));
        }
        let version = if self.is("init-offer-newest") && !LEGACY.contains(&asked) {
            "2024-11-05"
        } else if self.is("init-offer-holds") {
            match asked {
                "2024-11-05" => "2025-11-25",
                known if LEGACY.contains(&known) => known,
                _ => "2024-11-05",
            }
        } else if LEGACY.contains(&asked)
            || self.is("init-modern") && asked == MODERN
            || self.is("init-offer-between") && (LEGACY[0]..LEGACY[3]).contains(&asked)
        {
            asked
        } else {
            "2025-11-25"
        };
        self.agreed = Some(version.to_owned());
        self.client = params["capabilities"].clone();
        if self.is("init-quiet-declared") && self.client.get("roots").is_some() {
            self.send(&json!({ "jsonrpc": "2.0", "id": "roots", "method": "roots/list" }));
        }
        let info = match &*self.role() {
            "init-result" => json!({ "name": "broken" }),
            "info-title" => json!({ "name": "broken", "version": "1", "title": 5 }),
            _ => json!({ "name": "broken", "version": "1" }),
        };
        Ok(
            json!({ "protocolVersion": version, "capabilities": self.capabilities(false), "serverInfo": info }),
        )
    }

    fn dispatch(&mut self, request: &Request<'_>) -> Option<Answer> {
        self.discovered |= request.method == "server/discover";
        self.has_read |= request.method == "resources/read";
        let gone = |role: &str| {
            if self.is(role) { Ok(json!({})) } else { Err((-32601, "it is gone".to_owned())) }
        };
        Some(match (request.method, request.modern) {
            ("server/discover", true) => {
                let versions = match &*self.role() {
                    "discover-result" => json!(["2030-01-01"]),
                    "discover-versions" => json!([MODERN, "2030-01-01"]),
                    _ => json!([MODERN]),
                };
                Ok(
                    json!({ "supportedVersions": versions, "capabilities": self.capabilities(true) }),
                )
            }
            ("initialize", true) if self.is("init-gone") => Ok(
                json!({ "protocolVersion": MODERN, "capabilities": {}, "serverInfo": { "name": "broken", "version": "1" } }),
            ),
            ("ping", false) if self.is("ping-asking") && self.waits() => return None,
            ("ping", false) if self.is("ping") && request.params["_meta"].is_object() => {
                Err((-32603, "a ping has no params".to_owned()))
            }
            ("ping", false) if self.is("more-members") => Ok(json!({ "pong": true })),
            ("ping", false) if self.is("ping-always") && self.refused => {
                Err((-32603, "something went wrong before".to_owned()))
            }
            ("ping", false) => Ok(json!({})),
            ("ping", true) => gone("ping-gone"),
            ("logging/setLevel", true) => gone("log-gone"),
            ("resources/subscribe" | "resources/unsubscribe", true) => gone("resources-gone"),
            ("tasks/list" | "tasks/result", true) => gone("tasks-gone"),
            ("tasks/get", _) if self.is("tasks-absent") => Ok(json!({ "taskId": "x" })),
            ("tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/update" | "tasks/list", _)
                if self.has_tasks(request) =>
            {
                return self.task_request(request);
            }
            ("shutdown", _) if self.is("rpc-removed") => Ok(json!({})),
            ("logging/setLevel", false) => self.set_level(request.params),
            ("resources/subscribe" | "resources/unsubscribe", false)
                if self.is("resources-subscribe") =>
            {
                Err((-32603, "not today".to_owned()))
            }
            ("resources/subscribe", false)
                if self.is("subscribe-number") && request.params["uri"].is_number() =>
            {
                Err((-32603, "a text was expected".to_owned()))
            }
            ("resources/unsubscribe", false)
                if self.is("unsubscribe-bare") && request.params.get("uri").is_none() =>
            {
                Ok(json!({}))
            }
            ("resources/subscribe" | "resources/unsubscribe", false)
                if !request.params["uri"].is_string() && !self.is("rpc-params") =>
            {
                Err((-32602, "a uri is needed".to_owned()))
            }
            ("resources/subscribe" | "resources/unsubscribe", false) if self.is("more-members") => {
                Ok(json!({ "resultType": "complete", "com.example/subscribed": true }))
            }
            ("resources/subscribe" | "resources/unsubscribe", false) => Ok(json!({})),
            ("prompts/list", true) if self.is("undeclared-get") => {
                Err((-32601, "there are no prompts".to_owned()))
            }
            ("tools/list", _) if self.is("list-fails") => Err((-32603, "fetch failed".to_owned())),
            ("tasks/get", _) if self.is("tasks-early") && request.version < "2025-11-25" => {
                Err((-32602, "Task not found".to_owned()))
            }
            ("tools/list" | "resources/list" | "prompts/list" | "resources/templates/list", _) => {
                let zero = request.params["_meta"].get("progressToken") == Some(&json!(0));
                match self.is("progress-token") && zero {
                    true => Err((-32602, "no token".to_owned())),
                    false => self.listed(request),
                }
            }
            ("resources/read", _) => self.read(request),
            ("prompts/get", _) => self.prompt(request),
            ("completion/complete", _) => self.complete(request),
            ("subscriptions/listen", false) if self.is("rpc-later") => Ok(json!({})),
            ("subscriptions/listen", true) => return self.listen(request),
            ("tools/call", _) => return self.call(request),
            ("resources/none", _) if self.is("unknown-resources") => Ok(json!({})),
            _ => Err((
                if self.is("rpc-unknown-method") { -32603 } else { -32601 },
                "no such method".to_owned(),
            )),
        })
    }

    fn set_level(&mut self, params: &Value) -> Answer {
        let asked = params["level"].as_str().unwrap_or_default();
        let lower = asked.to_lowercase();
        let asked = match asked {
            _ if self.is("level-upper") => &lower,
            "warn" if self.is("level-warn") => "warning",
            asked => asked,
        };
        let level = LEVELS.iter().position(|level| asked == *level);
        match level {
            Some(_) if self.is("log-level") && params["level"] == "alert" => {
                Err((-32603, "no".to_owned()))
            }
            Some(level) => {
                self.level = level;
                let more = self.is("more-members");
                Ok(if more { json!({ "level": asked }) } else { json!({}) })
            }
            None if self.is("log-bad-level") => Ok(json!({})),
            None if self.is("level-number") && params["level"].is_number() => Ok(json!({})),
            None => Err((-32602, "no such level".to_owned())),
        }
    }

    fn listen(&mut self, request: &Request<'_>) -> Option<Answer> {
        if self.is("listen-limit") {
            return Some(Err((-32603, "no more subscriptions".to_owned())));
        }
        let filter = &request.params["notifications"];
        if !filter.is_object() && !self.is("listen-filter") {
            return Some(Err((-32602, "notifications are needed".to_owned())));
        }
        let fits = |(name, value): (&String, &Value)| match name.as_str() {
            "resourceSubscriptions" => value.is_array(),
            _ => value.is_boolean(),
        };
        let typed = filter.as_object().is_none_or(|members| members.iter().all(fits));
        if !typed && !self.is("filter-text") {
            return Some(Err((-32602, "a member of notifications has the wrong type".to_owned())));
        }
        if self.is("listen-two") && self.streams.iter().any(|(_, open)| open == filter) {
            return Some(Err((-32603, "one is enough".to_owned())));
        }
        let id = request.id.clone();
        let told = match () {
            () if self.is("listen-ack") => json!(id.to_string()),
            () if self.is("listen-zero") && id == json!(0) => Value::Null,
            () => id.clone(),
        };
        let mut honoured = filter.clone();
        if self.is("listen-subset") {
            honoured["toolsListChanged"] = json!(false);
        }
        if let (true, Some(members)) = (self.is("undeclared-get"), honoured.as_object_mut()) {
            members.remove("promptsListChanged");
        }
        let ends = self.is("nothing-changes");
        let honoured = if honoured.is_object() && !ends { honoured } else { json!({}) };
        let (out, late) = (self.out.clone(), self.is("listen-late"));
        let params = json!({ "notifications": honoured, "_meta": { SUBSCRIPTION: told } });
        let ack = json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params });
        match late {
            // It takes its time, and other requests are served meanwhile.
            true => drop(std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(300));
                out.send(&ack);
            })),
            false => self.send(&ack),
        }
        if ends {
            return Some(Ok(json!({ "_meta": { SUBSCRIPTION: id } })));
        }
        if self.is("listen-answer") || self.is("listen-filter") && !filter.is_object() {
            return Some(Ok(json!({ "_meta": { SUBSCRIPTION: id } })));
        }
        if self.is("updated-other") {
            let meta = json!({ SUBSCRIPTION: id });
            let params = json!({ "uri": "other://x", "_meta": meta });
            self.note("notifications/resources/updated", params);
        }
        if self.is("listen-replaces") {
            self.streams.retain(|(_, open)| open != filter);
        }
        self.streams.push((id, filter.clone()));
        None
    }

    fn call(&mut self, request: &Request<'_>) -> Option<Answer> {
        if self.is("call-text-id") && request.id.is_string() {
            return Some(Err((-32600, "the id is a number".to_owned())));
        }
        let listed = json!({ "name": request.params[0], "arguments": request.params[1] });
        let positions = self.is("call-positions") && request.params.is_array();
        let params = if positions { &listed } else { request.params };
        let Some(name) = params.get("name").and_then(Value::as_str) else {
            let code = if self.is("tools-request") { -32603 } else { -32602 };
            return Some(Err((code, "a name is needed".to_owned())));
        };
        self.called = true;
        self.echoes += u32::from(name == "echo");
        let cancels = self.cancelled.lock().unwrap_or_else(PoisonError::into_inner).len();
        if self.is("cancel-after") && cancels > 4 || self.is("limits") && self.echoes > 40 {
            return Some(Err((-32603, "too many".to_owned())));
        }
        if self.is("rpc-interleaved") && BUSY.load(Ordering::Relaxed) > 0 {
            return Some(Err((-32603, "busy".to_owned())));
        }
        if self.is("stays-called") {
            BUSY.fetch_add(1, Ordering::Relaxed);
        }
        let lower = name.to_lowercase();
        let name = if self.is("tools-case") { &lower } else { name };
        let name = match self.is("name-begins") {
            true => name.split('_').next().filter(|it| *it == "echo").unwrap_or(name),
            false => name,
        };
        let args = params.get("arguments").cloned().unwrap_or_else(|| json!({}));
        let read = args.as_str().filter(|_| self.is("arguments-text"));
        let args = read.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(args);
        if self.is("arguments-null") && args.is_null() {
            std::process::exit(1);
        }
        if !args.is_object() && !self.is("tools-arguments-type") {
            let code = if self.is("arguments-failed") { -32603 } else { -32602 };
            return Some(Err((code, "arguments are an object".to_owned())));
        }
        if self.is("tasks-ignored") && params.get("task").is_some()
            || (self.is("input-stray") || self.is("stray-second") && name == "add")
                && params["inputResponses"].get("taut-check").is_some()
        {
            return Some(Err((-32603, "what is that?".to_owned())));
        }
        let mut token = params["_meta"].get("progressToken").cloned();
        if self.is("sticky-token") {
            self.token = token.or_else(|| self.token.take());
            token = self.token.clone();
        }
        if self.is("progress-asked") && token == Some(json!("18")) {
            return Some(Err((-32603, "what a token".to_owned())));
        }
        if params.get("task").is_some() && self.has_tasks(request) && !request.modern {
            return self.as_task(request, name);
        }
        let text = |text: &str| Some(Ok(json!({ "content": [{ "type": "text", "text": text }] })));
        let failed = |text: &str| {
            Some(Ok(json!({ "content": [{ "type": "text", "text": text }], "isError": true })))
        };
        let caps = if request.modern { &params["_meta"][CAPABILITIES] } else { &self.client };
        match name {
            "echo" => match args["text"].as_str() {
                Some(said) if self.is("tools-text") => {
                    text(&said.replace(|c: char| !c.is_ascii(), "?"))
                }
                Some(said) if self.is("html-escaped") => {
                    text(&said.replace('&', "&amp;").replace('<', "&lt;"))
                }
                Some(said) if self.is("tools-long") => {
                    text(&said.chars().take(65_536).collect::<String>())
                }
                Some(said) => text(said),
                None if self.is("tools-arguments-type") && !args.is_object() => text("nothing"),
                None if self.is("tools-bad-arguments") || self.is("tools-bad-arguments-old") => {
                    text("nothing")
                }
                None if self.is("arguments-typeless") && !args["text"].is_null() => text("nothing"),
                None => failed("text is needed"),
            },
            "slow" => {
                self.slows.push(request.id.clone());
                self.later(request, token, 5, 100, "done")
            }
            "test_trigger_tool_change" => {
                self.changed("tools", request.modern);
                text("changed")
            }
            "test_trigger_prompt_change" => {
                self.changed("prompts", request.modern);
                text("changed")
            }
            "test_tool_with_progress" => self.later(request, token, 3, 5, "done"),
            "log" => {
                let wanted = LEVELS.iter().position(|level| params["_meta"][LOG_LEVEL] == *level);
                let now = wanted.is_some_and(|level| level <= 1 || self.is("log-below"));
                self.logged |= now;
                self.said = true;
                let remembered = self.logged && self.is("log-remembers");
                let beside = self.is("log-beside") && LOGGING.load(Ordering::Relaxed) > 0;
                let asked = now || remembered || beside || self.is("log-unasked");
                let loud = self.level <= 1
                    || self.is("log-threshold")
                    || self.is("log-off-by-one") && self.level <= 2;
                if (if request.modern { asked } else { loud }) && !self.is("log-order") {
                    let level = if self.is("log-message") { "loud" } else { "info" };
                    let mut params = json!({ "level": level, "data": "a line" });
                    if let (true, Some((id, _))) = (self.is("tagged-open"), self.streams.first()) {
                        params["_meta"] = json!({ SUBSCRIPTION: id });
                    }
                    self.note("notifications/message", params);
                }
                text("logged")
            }
            "add" => Some(Ok(self.sum(request))),
            "test_error_handling" if self.is("tools-failure") => text("it failed"),
            "test_error_handling" => failed("it failed"),
            "test_missing_capability" if caps.get("sampling").is_none() => Some(Err((
                if self.is("capability-needed") { -32602 } else { -32021 },
                "sampling is needed".to_owned(),
            ))),
            "test_missing_capability" => text("it is there"),
            "test_input_required_result_tampered_state" if params.get("requestState").is_some() => {
                match params["requestState"] == "sealed-state" || self.is("input-state") {
                    true => text("welcome back"),
                    false => Some(Err((-32602, "that is not our state".to_owned()))),
                }
            }
            "test_input_required_result_elicitation"
                if params["inputResponses"].get("user_name").is_some_and(|it| !it.is_object())
                    && !self.is("input-malformed") =>
            {
                Some(Err((-32602, "an answer has the wrong form".to_owned())))
            }
            "test_input_required_result_elicitation"
                if params["inputResponses"].get("user_name").is_some() =>
            {
                let flow = params["requestState"].as_str().unwrap_or_default();
                if self.is("input-flows") && flow != self.flow {
                    return Some(Err((-32602, "another call is under way".to_owned())));
                }
                text("hello")
            }
            "test_input_required_result_elicitation"
                if self.is("input-again") && params.get("inputResponses").is_some() =>
            {
                Some(Err((-32602, "an answer is missing".to_owned())))
            }
            "ask" => self.ask_tool(request, params, &caps.clone()),
            "test_input_required_result_elicitation"
            | "test_input_required_result_tampered_state"
                if request.modern && (shows_forms(caps) || self.is("form-anyway")) =>
            {
                Some(Ok(self.question(name)))
            }
            "test_elicitation"
                if caps.get("elicitation").is_some() && !self.is("input-ask-legacy") =>
            {
                let schema =
                    json!({ "type": "object", "properties": { "name": { "type": "string" } } });
                self.ask(
                    request,
                    "elicitation/create",
                    json!({ "message": "Who?", "requestedSchema": schema }),
                )
            }
            "test_elicitation" if caps.get("elicitation").is_some() => {
                Some(Err((-32603, "not today".to_owned())))
            }
            "test_sampling"
                if caps.get("sampling").is_some()
                    || self.is("input-declared-legacy") && !request.modern =>
            {
                let content = json!({ "type": "text", "text": "hi" });
                let mut params =
                    json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": 5 });
                if self.is("sampling-bare")
                    && let Some(members) = params.as_object_mut()
                {
                    members.remove("maxTokens");
                }
                self.spoil(&mut params);
                self.ask(request, "sampling/createMessage", params)
            }
            "slow_compute" | "failing_job" | "protocol_error_job" | "test_tool_with_task" => {
                self.job(request, name)
            }
            _ if name.starts_with("test_") => match self.rounds(request, name, &caps.clone()) {
                Some(answer) => answer,
                None => failed("the client cannot do that"),
            },
            _ if self.is("tools-unknown") => failed("no such tool"),
            _ => Some(Err((-32602, "no such tool".to_owned()))),
        }
    }

    /// The state of a call that asks back.
    pub(crate) fn sealed(&mut self, tool: &str) -> String {
        if tool.ends_with("tampered_state") {
            return "sealed-state".to_owned();
        }
        self.next += 1;
        self.flow = format!("flow-{}", self.next);
        self.flow.clone()
    }

    /// Tells that a list has changed, to those who want to know.
    fn changed(&self, list: &str, modern: bool) {
        if ["tools-change-fixture", "listen-change-fixture", "nothing-changes"]
            .contains(&&*self.role())
        {
            return;
        }
        let method = format!("notifications/{list}/list_changed");
        if !modern {
            return self.note(&method, json!({}));
        }
        for (id, filter) in &self.streams {
            if filter[format!("{list}ListChanged")] == true {
                let id = if self.is("changed-text") { json!(id.to_string()) } else { id.clone() };
                self.note(&method, json!({ "_meta": { SUBSCRIPTION: id } }));
            }
        }
    }

    pub(crate) fn out(&self) -> Out {
        self.out.clone()
    }

    pub(crate) fn ask(
        &mut self,
        request: &Request<'_>,
        method: &str,
        params: Value,
    ) -> Option<Answer> {
        self.next += 1;
        let id = match &*self.role() {
            "rpc-own-null" => Value::Null,
            "ask-one" => json!(1),
            _ => json!(format!("ask-{}", self.next)),
        };
        self.asked.push((id.clone(), request.id.clone()));
        self.out.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        None
    }

    fn later(
        &self,
        request: &Request<'_>,
        token: Option<Value>,
        steps: u32,
        millis: u64,
        text: &str,
    ) -> Option<Answer> {
        let mut result = json!({ "content": [{ "type": "text", "text": text }] });
        if request.modern {
            self.modernise(request.method, &mut result);
        }
        let later = Later {
            out: self.out.clone(),
            id: request.id.clone(),
            token,
            modern: request.modern,
            logs: request.params["_meta"].get(LOG_LEVEL).is_some(),
            stream: self.streams.first().map(|(id, _)| id.clone()),
            cancelled: self.cancelled.clone(),
            before: self.cancelled.lock().unwrap_or_else(PoisonError::into_inner).len(),
        };
        BUSY.fetch_add(1, Ordering::Relaxed);
        std::thread::spawn(move || later.run(steps, Duration::from_millis(millis), &result));
        None
    }

    fn sum(&self, request: &Request<'_>) -> Value {
        let mut data = json!({ "sum": 3 });
        if self.is("tools-conform") {
            data = json!({ "sum": "three" });
        }
        if self.is("floats") {
            data = json!({ "sum": 3.0 });
        }
        if self.is("tools-structured") {
            data = json!([3]);
        }
        let mut text = data.to_string();
        if self.is("floats") {
            text = "{ \"sum\": 3 }".to_owned();
        }
        if self.is("tools-text-copy") {
            text = "three".to_owned();
        }
        let mut result = json!({ "content": [{ "type": "text", "text": text }] });
        if request.version >= "2025-06-18" {
            result["structuredContent"] = data;
        }
        if self.is("tools-content") {
            result["content"] = Value::Null;
        }
        if self.is("tools-content-types") {
            result["content"] =
                json!([{ "type": "text", "text": text }, { "type": "video", "data": "" }]);
        }
        if self.is("priority-high") {
            result["content"][0]["annotations"] = json!({ "priority": 5 });
        }
        if self.is("task-unasked") && !request.modern {
            let now = "2026-11-18T00:00:00Z";
            result = json!({ "task": { "taskId": "t1", "status": "working", "createdAt": now, "lastUpdatedAt": now, "ttl": null } });
        }
        if self.is("tools-is-error") {
            result["isError"] = json!("no");
        }
        if self.is("tasks-opt-in") && request.modern {
            result = json!({ "resultType": "task", "taskId": "t1", "status": "working" });
        }
        result
    }
}

/// Whether a client shows forms: it declares them, or elicitation and no mode.
pub(crate) fn shows_forms(caps: &Value) -> bool {
    caps.get("elicitation")
        .is_some_and(|modes| modes.get("form").is_some() || modes.get("url").is_none())
}

pub(crate) fn refusal(id: Option<&Value>, code: i64, message: &str) -> Value {
    let mut reply = json!({ "jsonrpc": "2.0", "error": { "code": code, "message": message } });
    if let Some(id) = id {
        reply["id"] = id.clone();
    }
    reply
}
