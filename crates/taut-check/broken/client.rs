//! The client: it starts the server that is given, and is correct but for its role.
//!
//! Probes, falls back to a handshake, lists all pages, calls one tool, and ends the server.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const MODERN: &str = "2026-07-28";
const KNOWN: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

struct Client {
    role: String,
    server: Vec<String>,
    child: Child,
    stdin: Option<ChildStdin>,
    heard: Receiver<Value>,
    next: i64,
    modern: bool,
    /// Whether a list had characters in it that some take for the end of a line.
    split: bool,
    /// What the server declares.
    caps: Value,
    /// The version that requests of 2026-07-28 name.
    version: String,
    /// The version of the handshake.
    agreed: String,
    /// An answer that is sent later, and the calls that were cancelled.
    deferred: Option<Value>,
    cancelled: Vec<Value>,
    /// The first state that was given, and the tool that was listed first.
    state: Option<Value>,
    tool: String,
}

pub(crate) fn run(role: &str, server: &[String]) -> ExitCode {
    let Some((child, stdin, heard)) = start(role, server) else { return ExitCode::FAILURE };
    let mut client = Client {
        role: role.to_owned(),
        server: server.to_vec(),
        child,
        stdin,
        heard,
        next: 0,
        modern: false,
        split: false,
        caps: Value::Null,
        version: MODERN.to_owned(),
        agreed: String::new(),
        deferred: None,
        cancelled: Vec::new(),
        state: None,
        tool: "echo".to_owned(),
    };
    client.session();
    client.end();
    ExitCode::SUCCESS
}

type Started = (Child, Option<ChildStdin>, Receiver<Value>);

/// Starts the server, and reads what it says.
fn start(role: &str, server: &[String]) -> Option<Started> {
    let (program, words) = server.split_first()?;
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    if ["client-stderr", "stderr-word"].contains(&role) {
        command.stderr(Stdio::piped());
    }
    let mut child = command.spawn().ok()?;
    let stdin = child.stdin.take();
    if let Some(mut stderr) = child.stderr.take() {
        // A line on stderr is taken for the end.
        let any = role == "client-stderr";
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = stderr.read(&mut bytes) {
                if any || String::from_utf8_lossy(&bytes[..length]).contains("error") {
                    std::process::exit(1);
                }
            }
        });
    }
    let (said, heard) = channel();
    if let Some(stdout) = child.stdout.take() {
        let alone = role == "chunks";
        std::thread::spawn(move || {
            let whole: Box<dyn Read> =
                if alone { Box::new(Chunks(stdout, Vec::new())) } else { Box::new(stdout) };
            for line in BufReader::new(whole).lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or_default();
                if said.send(value).is_err() {
                    break;
                }
            }
        });
    }
    Some((child, stdin, heard))
}

/// Decodes what each read brings on its own, so that a character that comes in two parts is lost.
struct Chunks(ChildStdout, Vec<u8>);

impl Read for Chunks {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.1.is_empty() {
            let mut bytes = [0; 4096];
            let length = self.0.read(&mut bytes)?;
            self.1 = String::from_utf8_lossy(&bytes[..length]).into_owned().into_bytes();
        }
        let length = out.len().min(self.1.len());
        out[..length].copy_from_slice(&self.1[..length]);
        self.1.drain(..length);
        Ok(length)
    }
}

impl Client {
    /// Starts the server again if it has ended.
    fn start_again(&mut self) -> bool {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            return false;
        }
        let started = start(&self.role, &self.server);
        let again = started.is_some();
        if let Some((child, stdin, heard)) = started {
            (self.child, self.stdin, self.heard) = (child, stdin, heard);
        }
        again
    }

    fn is(&self, role: &str) -> bool {
        self.role == role
    }

    fn write(&mut self, text: &str) {
        if let Some(stdin) = &mut self.stdin {
            // A server that is gone hears nothing.
            let _ = stdin.write_all(format!("{text}\n").as_bytes()).and_then(|()| stdin.flush());
        }
    }

    fn cancel(&mut self, id: &Value) {
        let mut params = json!({ "requestId": id });
        if self.is("key-notified") && self.modern {
            params["_meta"] = json!({ "-bad key!": 1 });
        }
        self.cancelled.push(id.clone());
        self.write(
            &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })
                .to_string(),
        );
    }

    fn progress(&mut self, token: &Value, progress: i64) {
        let params = json!({ "progressToken": token, "progress": progress });
        self.write(
            &json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
                .to_string(),
        );
    }

    fn meta(&self) -> Value {
        let mut meta = json!({
            "io.modelcontextprotocol/protocolVersion": self.version,
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
            "io.modelcontextprotocol/clientInfo": { "name": "broken", "version": "1" },
        });
        match self.role.as_str() {
            "client-meta-fields" => meta["traceparent"] = json!("not-a-trace"),
            "baggage-object" => meta["baggage"] = json!({ "user": "me" }),
            "baggage-spaces" => meta["baggage"] = json!("user id=7 8"),
            "key-reserved" => meta["io.modelcontextprotocol/session"] = json!("5"),
            "client-input-undeclared" => {
                meta["io.modelcontextprotocol/clientCapabilities"] = json!({})
            }
            "log-level-odd" => meta["io.modelcontextprotocol/logLevel"] = json!("loud"),
            "trace-state" => meta["tracestate"] = json!("Vendor=1"),
            "tasks-declared" => {
                meta["io.modelcontextprotocol/clientCapabilities"] = json!({ "tasks": {} })
            }
            _ => {}
        }
        if self.is("info-short") {
            meta["io.modelcontextprotocol/clientInfo"] = json!({ "name": "broken" });
        }
        if self.is("client-info")
            && let Some(members) = meta.as_object_mut()
        {
            members.remove("io.modelcontextprotocol/clientInfo");
        }
        meta
    }

    fn message(&mut self, method: &str, mut params: Value) -> Value {
        self.next += 1;
        if self.is("ids-again") && self.modern && self.next > 4 {
            // All but the last one are answered.
            self.next = 1;
        }
        if self.modern {
            let mut meta = self.meta();
            if let (Some(own), Some(meta)) =
                (params["_meta"].as_object().cloned(), meta.as_object_mut())
            {
                meta.extend(own);
            }
            params["_meta"] = meta;
        }
        json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params })
    }

    /// Sends a request and waits for its answer; answers what the server asks meanwhile.
    fn ask(&mut self, message: &Value, limit: Duration) -> Option<Value> {
        self.write(&message.to_string());
        self.wait(&message["id"], limit)
    }

    fn wait(&mut self, id: &Value, limit: Duration) -> Option<Value> {
        let until = Instant::now() + limit;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let step = self.deferred.as_ref().map_or(left, |_| Duration::from_millis(500));
            let Ok(value) = self.heard.recv_timeout(step) else {
                let reply = self.deferred.take()?;
                self.write(&reply.to_string());
                continue;
            };
            if value.get("method").is_some() {
                self.asked(&value);
            } else if value.get("id") == Some(id) {
                return Some(value);
            } else if let Some(list) = value.as_array() {
                let list = list.clone();
                let answers =
                    |one: &&Value| one.get("method").is_none() && one.get("id") == Some(id);
                if let Some(answer) = list.iter().find(answers) {
                    return Some(answer.clone());
                }
                let replies: Vec<Value> =
                    list.iter().filter_map(|one| self.answer_to(one)).collect();
                let batches = self.agreed == KNOWN[1] || self.is("array-answered");
                if self.is("client-batch-refused") && !batches {
                    replies.iter().for_each(|reply| self.write(&reply.to_string()));
                } else if !batches && !self.is("batch-unread")
                    || replies.is_empty() && !self.is("batch-empty")
                {
                    // Arrays are messages in 2025-03-26 only.
                } else if self.is("client-batch-received") {
                    replies.iter().for_each(|reply| self.write(&reply.to_string()));
                } else if self.is("batch-unread") {
                    let error = json!({ "code": -32700, "message": "an array" });
                    self.write(
                        &json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string(),
                    );
                } else {
                    self.write(&Value::Array(replies).to_string());
                }
            } else if self.is("client-late-answer")
                && value.get("id").is_some_and(|id| self.cancelled.contains(id))
            {
                std::process::exit(1);
            } else if self.is("quits") && value["id"] == 987_654_321 {
                // It takes an answer to nothing for the end, which is its own business.
                let _ = self.child.kill();
                return None;
            } else if (self.is("client-silent") && !self.modern
                || self.is("stray-answered") && self.modern)
                && value["id"] == 987_654_321
            {
                self.write(
                    &json!({ "jsonrpc": "2.0", "id": 987_654_321, "result": {} }).to_string(),
                );
            }
        }
    }

    fn asked(&mut self, value: &Value) {
        let malformed = value["method"] == "notifications/cancelled"
            && value["params"]["requestId"].is_null()
            && !self.modern;
        if malformed && self.is("client-cancel-malformed") {
            std::process::exit(1);
        }
        if malformed && self.is("cancel-answered") {
            self.write(
                &json!({ "jsonrpc": "2.0", "error": { "code": -32602, "message": "what?" } })
                    .to_string(),
            );
        }
        if self.is("message-answered") && value["method"] == "notifications/message" {
            self.write(&json!({ "jsonrpc": "2.0", "id": null, "result": {} }).to_string());
        }
        // In 2026-07-28 nobody may ask, so nobody is answered.
        if self.modern && !self.is("client-answers") {
            return;
        }
        let early = self.is("ping-early") && value["id"] == "early-1";
        let silent = self.is("mode-silent") && value["id"] == "elicit-2"
            || self.is("undeclared-silent") && value["method"] == "sampling/createMessage";
        if early || silent {
            return;
        }
        if let Some(reply) = self.answer_to(value).filter(|_| !self.is("no-answers")) {
            let told: &[(i64, Value)] = match self.role.as_str() {
                _ if value["id"] != "sampling-1" => &[],
                "progress-falls" => &[(2, json!(77)), (1, json!(77))],
                "progress-text" => &[(1, json!("77"))],
                _ => &[],
            };
            told.iter().for_each(|(progress, token)| self.progress(token, *progress));
            if self.is("roots-late") && value["id"] == "roots-1" {
                // A person is asked first.
                std::thread::sleep(Duration::from_millis(2000));
            }
            if self.is("answers-cancelled") && value["id"] == "sampling-0" {
                self.deferred = Some(reply);
                return;
            }
            self.write(&reply.to_string());
            if self.is("progress-late") && value["id"] == "sampling-1" {
                self.progress(&json!(77), 1);
            }
            if self.is("client-once") {
                self.write(&reply.to_string());
            }
        }
    }

    fn answer_to(&self, value: &Value) -> Option<Value> {
        value.get("method")?;
        let id = value.get("id")?;
        if self.is("client-id-forms") && *id == json!("") {
            return None;
        }
        let number = id.as_str().and_then(|text| text.parse::<i64>().ok()).map(Value::from);
        let id = match number.as_ref().filter(|_| self.is("id-number")) {
            Some(number) => number,
            None => id,
        };
        if self.is("ping-plain")
            && value["params"].get("_meta").is_some()
            && value["method"] == "ping"
        {
            return Some(
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32602, "message": "no params" } }),
            );
        }
        if self.is("ping-refused") && *id == "early-1" {
            return Some(
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32002, "message": "not yet" } }),
            );
        }
        let text = json!(id.to_string());
        let id = if self.is("id-text") && *id == 0 { &text } else { id };
        let hi = json!({ "type": "text", "text": "hi" });
        let refuse = |code: i64| Err(json!({ "code": code, "message": "not here" }));
        let answer = match value["method"].as_str().unwrap_or_default() {
            "ping" if self.is("client-ping") => Ok(json!({ "pong": true })),
            "ping" if self.is("old-silent") && self.agreed == KNOWN[0] => return None,
            "ping" => Ok(json!({})),
            "ping " if self.is("case-space") => Ok(json!({})),
            "sampling/none" if self.is("name-begins") => refuse(-32602),
            "tasks/list" if self.is("tasks-known") => Ok(json!({ "tasks": [] })),
            "sampling/createMessage"
                if value["params"].get("task").is_some() && self.is("client-task-ignored") =>
            {
                refuse(-32602)
            }
            "sampling/createMessage"
                if value["params"].get("task").is_some() && self.is("task-made") =>
            {
                let now = "2026-01-01T00:00:00Z";
                Ok(
                    json!({ "task": { "taskId": "1", "status": "working", "createdAt": now, "lastUpdatedAt": now, "ttl": null } }),
                )
            }
            "sampling/createMessage"
                if value["params"].get("tools").is_some() && self.samples() =>
            {
                refuse(-32602)
            }
            "sampling/createMessage" if self.is("sampling-array") => Ok(
                json!({ "role": "assistant", "model": "none", "content": if self.agreed == KNOWN[2] { json!([hi]) } else { hi } }),
            ),
            "sampling/createMessage" if self.is("sampling-old") && self.agreed == KNOWN[0] => {
                refuse(-32601)
            }
            "sampling/createMessage" if self.samples() => {
                Ok(json!({ "role": "assistant", "content": hi, "model": "none" }))
            }
            "roots/list" if self.is("client-roots-undeclared") => Ok(json!({ "roots": [] })),
            "roots/list" if self.is("roots-silent") => return None,
            "roots/list" if self.is("roots-late") => {
                Ok(json!({ "roots": [{ "uri": "file:///srv/work" }] }))
            }
            "roots/list" if self.is("client-roots") => {
                Ok(json!({ "roots": [{ "uri": "https://example.com" }] }))
            }
            "taut-check/none" if self.is("client-unknown-request") => refuse(-32603),
            "sampling/createMessage" if self.is("client-sampling-tools") => Ok(
                json!({ "role": "assistant", "content": { "type": "text", "text": "hi" }, "model": "none" }),
            ),
            "sampling/createMessage" if self.is("client-undeclared") => Ok(
                json!({ "role": "assistant", "content": { "type": "text", "text": "hi" }, "model": "none" }),
            ),
            "elicitation/create"
                if self.is("client-elicited") && value["params"].get("mode").is_none() =>
            {
                Ok(json!({ "action": "decline", "content": { "name": "me" } }))
            }
            "elicitation/create" if self.is("client-elicited") => refuse(-32602),
            "elicitation/create" if self.is("page-filled") => {
                Ok(json!({ "action": "accept", "content": self.filled() }))
            }
            "elicitation/create" if self.is("url-refused") => refuse(-32602),
            "elicitation/create"
                if self.is("url-only") && value["params"].get("mode").is_none() =>
            {
                Ok(json!({ "action": "accept", "content": self.filled() }))
            }
            "elicitation/create" if self.is("url-only") => Ok(json!({ "action": "decline" })),
            "elicitation/create" if self.is("client-mode") || self.is("mode-silent") => {
                Ok(json!({ "action": "decline" }))
            }
            "elicitation/create" if self.is("mode-needed") => {
                return Some(
                    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32602, "message": "a mode is needed" } }),
                );
            }
            _ => refuse(-32601),
        };
        let mut reply = json!({ "jsonrpc": "2.0", "id": id });
        match answer {
            Ok(result) => reply["result"] = result,
            Err(error) => {
                reply["error"] = error;
                if self.is("error-text") {
                    reply["id"] = json!(id.as_str().map_or_else(|| id.to_string(), str::to_owned));
                }
            }
        }
        if self.is("answers-nameless")
            && value["method"] == "roots/list"
            && let Some(reply) = reply.as_object_mut()
        {
            reply.remove("id");
        }
        if self.is("client-one-of") && value["method"] == "ping" {
            reply["error"] = Value::Null;
        }
        Some(reply)
    }

    /// Whether it declares sampling, and serves what has no tools.
    fn samples(&self) -> bool {
        ["sampling-array", "sampling-old", "answers-cancelled", "client-task-ignored", "task-made"]
            .contains(&self.role.as_str())
    }

    fn session(&mut self) {
        if self.is("client-clean") {
            self.write("hello server");
        }
        if self.is("stray-object") {
            self.write("{\"debug\":true}");
        }
        if self.is("client-probe") || self.is("discovers-again") {
            let opened = self.handshake();
            if opened {
                return self.work();
            } else if self.is("discovers-again") {
                return;
            }
        }
        match self.probe() {
            Some(true) => self.modern = true,
            Some(false) => {
                if !self.handshake() {
                    return;
                }
            }
            None => return,
        }
        if self.modern && self.is("client-no-answers") {
            self.write(
                &json!({ "jsonrpc": "2.0", "id": 5, "result": { "resultType": "complete" } })
                    .to_string(),
            );
        }
        if self.modern && self.is("client-no-handshake") {
            self.write(
                &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string(),
            );
        }
        self.work();
    }

    /// Whether the server speaks 2026-07-28; nothing if it cannot be used.
    fn probe(&mut self) -> Option<bool> {
        if self.is("names-modern") || self.is("client-refused") {
            return Some(false);
        }
        if self.is("client-probe-modern") {
            return Some(true);
        }
        if self.is("client-first") {
            let early = self.message("tools/list", json!({}));
            self.write(&early.to_string());
            return Some(false);
        }
        self.modern = true;
        if self.is("probe-old") {
            self.version = KNOWN[3].to_owned();
        }
        let message = self.message("server/discover", json!({}));
        let limit = if self.is("cancels-probe") { 500 } else { 2500 };
        let mut reply = self.ask(&message, Duration::from_millis(limit));
        if reply.is_none() && self.start_again() {
            reply = None;
        } else if reply.is_none() && self.is("cancels-probe") {
            self.cancel(&message["id"]);
        }
        if self.is("probe-old") {
            self.version = MODERN.to_owned();
            let offered = reply.as_ref().map(|reply| &reply["error"]["data"]["supported"]);
            if offered.is_some_and(|list| list[0] == MODERN) {
                let again = self.message("server/discover", json!({}));
                reply = self.ask(&again, Duration::from_secs(2));
            }
        }
        self.modern = false;
        match reply {
            Some(reply) if reply.get("result").is_some() => {
                self.caps = reply["result"]["capabilities"].clone();
                let offered = &reply["result"]["supportedVersions"];
                if self.is("client-version-chosen") {
                    self.version = offered[0].as_str().unwrap_or(MODERN).to_owned();
                }
                Some(true)
            }
            Some(reply) if reply["error"]["code"] == -32022 => {
                if self.is("version-unlisted") {
                    self.version = KNOWN[3].to_owned();
                }
                if self.is("version-future") {
                    self.version =
                        reply["error"]["data"]["supported"][0].to_string().replace('"', "");
                    self.modern = true;
                    let again = self.message("server/discover", json!({}));
                    self.ask(&again, Duration::from_secs(2));
                    self.modern = false;
                }
                for _ in 0..2 {
                    if self.is("client-version-repeat") || self.is("version-unlisted") {
                        self.modern = true;
                        let again = self.message("server/discover", json!({}));
                        self.ask(&again, Duration::from_secs(2));
                        self.modern = false;
                    }
                }
                self.is("client-version-retry").then_some(false)
            }
            None if self.is("silence-ends") => None,
            Some(reply) if self.is("zero-ends") && reply["error"]["code"] == 0 => None,
            Some(reply) if self.is("internal-ends") && reply["error"]["code"] == -32603 => None,
            Some(reply) if self.is("client-fallback") && reply["error"]["code"] != -32601 => None,
            _ => Some(false),
        }
    }

    fn handshake(&mut self) -> bool {
        let caps = match self.role.as_str() {
            "client-roots" | "roots-silent" | "roots-late" => json!({ "roots": {} }),
            "client-declared" | "client-sampling-tools" => json!({ "sampling": {} }),
            "page-filled" => json!({ "elicitation": { "form": {}, "url": {} } }),
            "client-mode" | "mode-needed" | "client-elicited" | "mode-silent" => {
                json!({ "elicitation": { "form": {} } })
            }
            "url-only" | "url-refused" => json!({ "elicitation": { "url": {} } }),
            "roots-true" => json!({ "roots": true }),
            _ if self.samples() => json!({ "sampling": {} }),
            "elicitation-list" => json!({ "elicitation": [] }),
            _ => json!({}),
        };
        let mut info = json!({ "name": "broken", "version": "1" });
        if self.is("client-initialize") {
            info = json!({ "name": "broken" });
        }
        // One that never probes is legacy, whatever it names.
        let named = match self.role.as_str() {
            "names-modern" => MODERN,
            "batches" => KNOWN[1],
            _ => "2025-11-25",
        };
        if self.is("probe-id-again") {
            self.next -= 1;
        }
        let mut message = self.message(
            "initialize",
            json!({ "protocolVersion": named, "capabilities": caps, "clientInfo": info }),
        );
        if self.is("key-opening") {
            message["params"]["_meta"] = json!({ "two/slashes/x": 1 });
        }
        self.write(&message.to_string());
        if self.is("gives-up") {
            // It was too busy to read the answer that came.
            std::thread::sleep(Duration::from_millis(300));
            let _ = self.child.kill();
            return false;
        }
        if self.is("pings-early") {
            let early = self.message("ping", json!({}));
            self.write(&early.to_string());
        }
        if self.is("client-waits") {
            let early = self.message("tools/list", json!({}));
            self.write(&early.to_string());
        }
        let Some(reply) = self.wait(&message["id"], Duration::from_secs(8)) else {
            if self.is("cancels-initialize") {
                self.cancel(&message["id"]);
            }
            if self.is("opens-unanswered") {
                let list = self.message("tools/list", json!({}));
                self.ask(&list, Duration::from_secs(2));
            }
            return false;
        };
        let version = reply["result"]["protocolVersion"].as_str().unwrap_or_default();
        let known = KNOWN.contains(&version) && !(self.is("newest-only") && version != named);
        let goes_on = match self.role.as_str() {
            "client-offer" => reply.get("result").is_some(),
            "offer-newer" => version > MODERN,
            "client-refused" => reply.get("error").is_some(),
            _ => false,
        };
        if !known && self.is("offer-stays") && reply.get("result").is_some() {
            std::thread::sleep(Duration::from_secs(14));
        }
        if !known && self.is("leaves-refused") {
            std::process::exit(1);
        }
        if !known && !goes_on {
            return false;
        }
        self.agreed = version.to_owned();
        self.caps = reply["result"]["capabilities"].clone();
        if self.is("initialized-second") {
            let list = self.message("tools/list", json!({}));
            self.ask(&list, Duration::from_secs(8));
        }
        if !self.is("client-initialized") && !self.is("initialized-late") {
            let mut done = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            if self.is("client-notification-id") {
                done["id"] = json!("done");
            }
            self.write(&done.to_string());
        }
        if self.is("completes") && version == KNOWN[3] {
            self.write(
                &json!({ "jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": { "elicitationId": "a" } })
                    .to_string(),
            );
        }
        if self.is("roots-changed") && version >= "2025-06-18" {
            self.write(
                &json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" })
                    .to_string(),
            );
        }
        if self.is("opens-twice") {
            let again = self.next + 1;
            self.next = again;
            let mut message = message.clone();
            message["id"] = json!(again);
            self.ask(&message, Duration::from_secs(8));
        }
        let foreign = match self.role.as_str() {
            "client-capabilities" if version >= "2025-06-18" => Some("prompts/list"),
            "client-capabilities-old" if version < "2025-06-18" => Some("resources/list"),
            _ => None,
        };
        if let Some(method) = foreign {
            let message = self.message(method, json!({}));
            self.ask(&message, Duration::from_secs(8));
        }
        true
    }

    fn work(&mut self) {
        let limit = Duration::from_millis(if self.is("impatient") { 500 } else { 8000 });
        let mut cursor: Option<Value> = None;
        let mut listed = Value::Null;
        for _ in 0..10 {
            let params =
                cursor.take().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
            let last = params.clone();
            let message = self.message("tools/list", params);
            listed = message["id"].clone();
            let Some(reply) = self.ask(&message, limit) else {
                if self.is("impatient") {
                    self.cancel(&message["id"]);
                }
                return;
            };
            if self.is("client-probe-modern") && reply.get("error").is_some() {
                return;
            }
            self.split |= reply.to_string().contains('\u{2028}');
            let kind = reply["result"].get("resultType");
            if self.modern && self.is("client-result-plain") && kind.is_none() {
                return;
            }
            if let Some(name) = reply["result"]["tools"][0]["name"].as_str() {
                self.tool = name.to_owned();
            }
            let odd = kind.is_some_and(|kind| kind != "complete");
            if odd && self.is("type-cursor") {
                let params = json!({ "cursor": reply["result"]["nextCursor"] });
                let message = self.message("tools/list", params);
                self.ask(&message, limit);
            }
            if odd && !self.is("client-result-type") {
                return;
            }
            let empty = reply["result"]["tools"].as_array().is_some_and(Vec::is_empty);
            match reply["result"].get("nextCursor") {
                Some(_) if self.is("empty-page") && empty => break,
                Some(_) if self.is("client-cursor") => cursor = Some(json!("2")),
                Some(next) => cursor = Some(self.cursor(next)),
                None => {
                    let again =
                        self.is("client-last-page") || self.is("last-again-old") && !self.modern;
                    if again && last.get("cursor").is_some() {
                        let message = self.message("tools/list", last);
                        self.ask(&message, limit);
                    }
                    break;
                }
            }
            if self.is("client-cursor") && self.next > 6 {
                break;
            }
        }
        if self.is("initialized-late") && !self.modern {
            let list = self.message("tools/list", json!({}));
            self.ask(&list, limit);
            self.write(
                &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string(),
            );
        }
        if self.is("batches") && self.agreed == KNOWN[1] {
            let one = self.message("tools/list", json!({}));
            self.write(&json!([one]).to_string());
            if self.wait(&one["id"], limit).is_none() {
                self.cancel(&one["id"]);
            }
        }
        if self.is("unlisted-method") {
            let one = self.message("tools/describe", json!({}));
            self.ask(&one, limit);
        }
        if self.is("client-batch") {
            let one = self.message("tools/list", json!({}));
            self.write(&json!([one]).to_string());
        }
        if self.is("client-cancel-own") {
            self.write(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 4711 } }).to_string());
        }
        if self.is("client-id-in-flight") && self.modern || self.is("client-progress-token") {
            let params = json!({ "_meta": { "progressToken": 1 } });
            let one = self.message("tools/list", params.clone());
            let mut two = self.message("tools/list", params);
            if self.is("client-id-in-flight") {
                two["id"] = one["id"].clone();
                two["params"]["_meta"]["progressToken"] = json!(2);
            }
            self.write(&format!("{one}\n{two}"));
            self.wait(&two["id"], limit);
        }
        self.rest();
        let mut call = self
            .message("tools/call", json!({ "name": self.tool, "arguments": { "text": "hello" } }));
        match self.role.as_str() {
            "client-version-member" => call["jsonrpc"] = json!("1.0"),
            "client-id-type" => call["id"] = json!(1.5),
            "token-again" => call["params"]["_meta"]["progressToken"] = json!(1),
            "token-outside" => call["params"]["progressToken"] = json!(1),
            "client-id-fresh" => call["id"] = listed.clone(),
            "client-shape" => call["params"]["name"] = json!(5),
            "client-meta-keys" if !self.modern => {
                call["params"]["_meta"] = json!({ "-bad key!": 1 })
            }
            "key-reserved-old" if !self.modern => {
                call["params"]["_meta"] = json!({ "io.modelcontextprotocol/mine": 1 })
            }
            "task-asked" if !self.modern => call["params"]["task"] = json!({ "ttl": 1000 }),
            "client-meta" if self.modern => {
                call["params"]["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientInfo": { "name": "broken", "version": "1" } })
            }
            _ => {}
        }
        if self.is("tasks-listed") && !self.modern {
            let list = self.message("tasks/list", json!({}));
            self.ask(&list, limit);
        }
        if self.is("discovers-again") && !self.modern {
            let discover = self.message("server/discover", json!({}));
            self.ask(&discover, limit);
        }
        if self.modern && self.is("client-vocabulary") {
            let ping = self.message("ping", json!({}));
            self.ask(&ping, limit);
        }
        if self.is("client-separators") && self.split {
            return;
        }
        if self.is("cancels-at-once") {
            self.write(&call.to_string());
            self.cancel(&call["id"]);
            self.wait(&Value::Null, Duration::from_millis(400));
            return;
        }
        if self.is("keeps-listening") && self.modern {
            self.write(&call.to_string());
            if self.wait(&call["id"], Duration::from_millis(2500)).is_none() {
                // It tries to listen from time to time, whatever else is under way.
                let params = json!({ "notifications": { "toolsListChanged": true } });
                let listen = self.message("subscriptions/listen", params);
                self.ask(&listen, limit);
                self.wait(&call["id"], Duration::from_millis(1500));
            }
            return;
        }
        let reply = self.ask(&call, limit.min(Duration::from_secs(4)));
        if reply.is_none() {
            if self.is("cancels-foreign") {
                self.write(&json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": call["id"] } }).to_string());
            }
            if self.is("cancels-before") {
                self.cancel(&listed);
            } else if !["client-timeout", "timeout-tools"].contains(&self.role.as_str())
                && (self.modern || !self.is("timeout-old"))
            {
                self.cancel(&call["id"]);
            }
            if self.is("kills-stuck") {
                let _ = self.child.kill();
                return;
            }
            if self.is("timeout-tools") {
                let second = self.message("tools/call", json!({ "name": "echo2" }));
                self.ask(&second, Duration::from_secs(4));
                return;
            }
            let list = self.message("tools/list", json!({}));
            self.ask(&list, limit);
            let mut second = self.message("tools/call", json!({ "name": "echo2" }));
            if self.is("token-again") {
                second["params"]["_meta"]["progressToken"] = json!(1);
            }
            self.ask(&second, limit);
            return;
        }
        if self.is("client-progress") {
            self.progress(&json!("mine"), 1);
        }
        if self.is("cancels-late") {
            self.cancel(&call["id"]);
        }
        if let Some(reply) = reply {
            self.rounds(call, reply);
        }
        if self.is("pauses") {
            std::thread::sleep(Duration::from_millis(2200));
        }
        if self.is("calls-twice") || self.is("pauses") || self.is("state-next") {
            let mut params = json!({ "name": self.tool, "arguments": { "text": "again" } });
            if let (true, Some(state)) = (self.is("state-next"), &self.state) {
                params["requestState"] = state.clone();
            }
            let call = self.message("tools/call", params);
            if let Some(reply) = self.ask(&call, limit) {
                self.rounds(call, reply);
            }
        }
        // Long enough for what the server still wants to ask.
        self.wait(&Value::Null, Duration::from_millis(400));
    }

    /// A cursor as it is sent.
    fn cursor(&self, given: &Value) -> Value {
        let text = given.as_str().unwrap_or_default();
        match self.role.as_str() {
            "cursor-number" => text.parse::<i64>().map_or_else(|_| given.clone(), Value::from),
            "cursor-json" => serde_json::from_str::<Value>(text)
                .ok()
                .filter(Value::is_object)
                .map_or_else(|| given.clone(), |value| json!(value.to_string())),
            "cursor-old" if !self.modern => json!(text.trim()),
            "cursor-plus" => json!(text.replace('+', " ")),
            "cursor-padding" => json!(text.trim_end_matches('=')),
            _ => given.clone(),
        }
    }

    /// Reads all pages of a list.
    fn list(&mut self, method: &str) {
        let limit = Duration::from_secs(3);
        let mut params = json!({});
        for _ in 0..10 {
            let message = self.message(method, params);
            let Some(reply) = self.ask(&message, limit) else {
                if !self.is("timeout-list") {
                    self.cancel(&message["id"]);
                }
                return;
            };
            let Some(next) = reply["result"]["nextCursor"].as_str() else {
                if self.is("page-again") && message["params"].get("cursor").is_some() {
                    let again = self.message(method, message["params"].clone());
                    self.ask(&again, limit);
                }
                return;
            };
            if next.is_empty() && self.is("cursor-empty") {
                return;
            }
            let next = if self.is("cursor-prompts") { next.trim() } else { next };
            params = json!({ "cursor": next });
        }
    }

    /// Asks for two lists at a time, and takes the first answer for that of the first.
    fn list_by_order(&mut self) {
        let methods = ["prompts/list", "resources/list"];
        let both = methods.map(|method| self.message(method, json!({})));
        self.write(&format!("{}\n{}", both[0], both[1]));
        let mut cursors = Vec::new();
        while cursors.len() < 2 {
            let Ok(value) = self.heard.recv_timeout(Duration::from_secs(3)) else {
                return self.cancel(&both[0]["id"].clone());
            };
            cursors.push(value["result"]["nextCursor"].clone());
        }
        for (method, cursor) in methods.iter().zip(cursors).filter(|(_, cursor)| !cursor.is_null())
        {
            let message = self.message(method, json!({ "cursor": cursor }));
            self.ask(&message, Duration::from_secs(8));
        }
    }

    /// Uses what a server has besides tools.
    fn rest(&mut self) {
        let limit = Duration::from_secs(8);
        let ask = |client: &mut Self, method: &str, params: Value| {
            let message = client.message(method, params);
            if let Some(reply) = client.ask(&message, limit) {
                client.rounds(message, reply);
            }
        };
        if self.caps.get("logging").is_some() && !self.modern {
            let level = if self.is("level-odd") { "loud" } else { "info" };
            ask(self, "logging/setLevel", json!({ "level": level }));
        }
        if self.caps.get("prompts").is_some() && self.caps.get("resources").is_some() {
            if self.is("order") {
                self.list_by_order();
            } else {
                self.list("prompts/list");
                self.list("resources/list");
            }
        }
        if self.is("subscribes") && self.caps.get("resources").is_some() && !self.modern {
            ask(self, "resources/subscribe", json!({ "uri": "file:///taut-check/notes.txt" }));
        }
        if self.caps.get("prompts").is_some() {
            let who = if self.is("prompt-number") { json!(5) } else { json!("me") };
            ask(self, "prompts/get", json!({ "name": "greet", "arguments": { "who": who } }));
        }
        if self.caps.get("completions").is_some() {
            let kind = if self.is("reference-odd") { "prompt" } else { "ref/prompt" };
            let params = json!({ "ref": { "type": kind, "name": "greet" }, "argument": { "name": "who", "value": "m" } });
            ask(self, "completion/complete", params);
        }
        if self.caps.get("resources").is_some() {
            ask(self, "resources/read", json!({ "uri": "file:///taut-check/notes.txt" }));
            let gone = json!({ "uri": "file:///taut-check/gone.txt" });
            let message = self.message("resources/read", gone);
            self.ask(&message, limit);
            if self.is("id-after-error") && !self.modern {
                self.ask(&message, limit);
            }
            if self.is("cancels-refused") && !self.modern {
                self.cancel(&message["id"]);
                let again = self.message("resources/read", message["params"].clone());
                self.ask(&again, limit);
                self.cancel(&again["id"]);
            }
        }
    }

    /// Sends a request once more for as long as the server wants that.
    fn rounds(&mut self, mut message: Value, mut reply: Value) {
        let limit = Duration::from_secs(8);
        for round in 0..10 {
            let result = reply["result"].clone();
            let wanted = result["resultType"] == "input_required"
                || self.is("type-state") && result.get("requestState").is_some();
            if !wanted || self.is("no-rounds") {
                break;
            }
            let mut answers = serde_json::Map::new();
            for (key, question) in result["inputRequests"].as_object().into_iter().flatten() {
                let Some(answer) = self.input(question) else { return };
                let key = if self.is("client-input") { key.to_lowercase() } else { key.clone() };
                answers.insert(key, answer);
            }
            let meta = message["params"]["_meta"].clone();
            self.next += 1;
            message["id"] = json!(self.next);
            let Some(params) = message["params"].as_object_mut() else { return };
            params.remove("requestState");
            params.remove("inputResponses");
            if self.role == "meta-lost" {
                params.remove("_meta");
            } else {
                params.insert("_meta".to_owned(), meta);
            }
            if !answers.is_empty() {
                params.insert("inputResponses".to_owned(), Value::Object(answers));
            }
            let state = result.get("requestState").cloned();
            let state = state.and_then(|state| self.echoed(state, round));
            let params = &mut message["params"];
            if let Some(state) = state {
                params["requestState"] = state;
            } else if let (true, Some(state)) = (self.is("state-kept"), &self.state) {
                params["requestState"] = state.clone();
            }
            if self.is("arguments-lost") {
                params["arguments"] = json!({});
            }
            let Some(next) = self.ask(&message, limit) else { return };
            reply = next;
        }
        if let (true, Some(state)) = (self.is("client-state-leak"), self.state.clone()) {
            let list = self.message("tools/list", json!({ "requestState": state }));
            self.ask(&list, limit);
        }
    }

    /// A state as it is sent back; nothing if it is left out.
    fn echoed(&mut self, state: Value, round: usize) -> Option<Value> {
        let text = state.as_str().unwrap_or_default().to_owned();
        let first = self.state.get_or_insert_with(|| state.clone()).clone();
        match self.role.as_str() {
            "client-state" => Some(json!(text.to_ascii_uppercase())),
            "state-line" => Some(json!(text.replace("\r\n", "\n"))),
            "state-json" => Some(match serde_json::from_str::<Value>(&text) {
                Ok(value) if value.is_object() => json!(value.to_string()),
                _ => state,
            }),
            "state-cut" => Some(json!(text.chars().take(255).collect::<String>())),
            "state-stale" if round > 0 => Some(first),
            "state-second" if round > 0 => None,
            "state-empty" if text.is_empty() => None,
            _ => Some(state),
        }
    }

    /// The answer to a question; nothing if it is refused.
    fn input(&self, question: &Value) -> Option<Value> {
        let undeclared = self.is("client-input-undeclared");
        if question["params"]["mode"] == "url" {
            return self.is("url-accepted").then(|| json!({ "action": "accept" }));
        }
        match question["method"].as_str().unwrap_or_default() {
            "elicitation/create" if self.is("client-form") => {
                Some(json!({ "action": "accept", "content": {} }))
            }
            "elicitation/create" if self.is("input-wrapped") => {
                Some(json!({ "result": { "action": "accept", "content": self.filled() } }))
            }
            "elicitation/create" if self.is("input-action") => Some(json!({ "action": "reject" })),
            "elicitation/create" => Some(json!({ "action": "accept", "content": self.filled() })),
            "roots/list" if undeclared => Some(json!({ "roots": [] })),
            "sampling/createMessage" if undeclared => Some(
                json!({ "role": "assistant", "content": { "type": "text", "text": "hi" }, "model": "none" }),
            ),
            _ => None,
        }
    }

    /// What is no fault: long messages, one that is too long to be looked at, and half of one at the end.
    fn write_long(&mut self) {
        for (length, limit) in [(5 << 20, 20_000), (17 << 20, 0)] {
            let arguments = json!({ "text": "x".repeat(length) });
            let call =
                self.message("tools/call", json!({ "name": "echo", "arguments": arguments }));
            self.ask(&call, Duration::from_millis(limit));
        }
        let last = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": self.next } });
        self.write(&last.to_string());
        self.write_half();
    }

    fn write_half(&mut self) {
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(br#"{"jsonrpc":"2.0","method":"notifi"#);
        }
    }

    /// Ends the server: its stdin first, then the process.
    fn end(mut self) {
        // Once: more than that is no accident.
        if self.is("long") && self.server.iter().any(|word| word == "modern") {
            self.write_long();
        }
        if self.is("half-lines") {
            self.write_half();
        }
        if let (true, Some(stdin)) = (self.is("no-newline"), &mut self.stdin) {
            let message = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled" });
            let _ = stdin.write_all(message.to_string().as_bytes());
        }
        if self.is("client-ends-server") {
            return;
        }
        let dies = self.is("kills-0618") && self.agreed == KNOWN[2];
        if self.is("client-closes-first") || dies {
            let _ = self.child.kill();
            let _ = self.child.wait();
            return;
        }
        self.stdin = None;
        if self.is("kills-at-once") {
            let _ = self.child.kill();
        }
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(2) {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        if self.is("waits-on") {
            let _ = self.child.wait();
            return;
        }
        if !self.is("client-terminates") {
            self.terminate();
        }
        if self.is("never-kills") {
            return;
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks the process to end, and gives it time.
    #[cfg(unix)]
    fn terminate(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let began = Instant::now();
        let grace = if self.is("kills-after-term") { 4 } else { 1_000 };
        while began.elapsed() < Duration::from_millis(grace)
            && !matches!(self.child.try_wait(), Ok(Some(_)))
        {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[cfg(not(unix))]
    fn terminate(&mut self) {}

    /// The form of the played server, filled in.
    fn filled(&self) -> Value {
        let mut form = json!({
            "name": "me", "count": 3, "sure": true, "color": "red", "size": "s", "mail": "me@example.com",
            "site": "https://example.com", "day": "2026-01-31", "moment": "2026-01-31T10:00:00Z", "pet": "c",
            "fruits": ["pear"],
        });
        match self.role.as_str() {
            "form-mail" => form["mail"] = json!("me"),
            "form-day" => form["day"] = json!("31.01.2026"),
            "form-title" => form["pet"] = json!("Cat"),
            "form-title-old" => form["size"] = json!("Small"),
            "form-list" => form["fruits"] = json!("pear"),
            "form-empty" => form["name"] = json!(""),
            _ => {}
        }
        if let (Some(fields), false) =
            (form.as_object_mut(), self.modern || self.agreed == KNOWN[3])
        {
            // They came with 2025-11-25.
            fields.remove("pet");
            fields.remove("fruits");
        }
        form
    }
}
