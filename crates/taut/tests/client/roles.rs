//! What the other process does: a small server, with the manners that its role names.
//!
//! A role is a list of words. The first is the revision that it speaks (a date, or `both` for all),
//! or a whole role of its own; each further word is one bad habit.

use std::fs::File;
use std::io::{BufRead, Write};
use std::time::Duration;

use serde_json::{Value, json};

const MODERN: &str = "2026-07-28";

pub(super) fn play() {
    let role = std::env::var("TAUT_ROLE").expect("a role to play");
    // The harness has had its say; from here on fd 1 is the wire.
    let wire = File::options().write(true).open("/dev/fd/3").unwrap();
    rustix::stdio::dup2_stdout(&wire).unwrap();
    drop(wire);
    let mut words = role.split(' ');
    let revision = words.next().unwrap_or_default().to_owned();
    let server = Server { revision, habits: words.map(str::to_owned).collect() };
    server.run();
    std::process::exit(0);
}

struct Server {
    revision: String,
    habits: Vec<String>,
}

impl Server {
    fn has(&self, habit: &str) -> bool {
        self.habits.iter().any(|word| word == habit)
    }

    /// The number after a habit: `late=600`.
    fn number(&self, habit: &str) -> Option<u64> {
        let found = self.habits.iter().find_map(|word| word.strip_prefix(habit)?.strip_prefix('='));
        found.map(|number| number.parse().unwrap())
    }

    fn run(&self) {
        self.before();
        let stdin = std::io::stdin().lock();
        for line in stdin.lines() {
            let Ok(line) = line else { break };
            let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
            if self.has("log-stdin") {
                eprintln!("got {line}");
            }
            self.take(&message);
        }
        if self.has("ignore-eof") {
            sleep_for_ever();
        }
    }

    fn before(&self) {}

    fn take(&self, message: &Value) {
        let Some(method) = message["method"].as_str() else { return };
        let id = &message["id"];
        if id.is_null() {
            return;
        }
        match method {
            "server/discover" => self.discover(id),
            "initialize" => self.initialize(id, &message["params"]),
            "ping" => self.result(id, json!({})),
            "tools/list" => self.list(id, &message["params"]),
            "tools/call" => self.call(id, &message["params"]),
            _ => self.error(id, -32601, "method not found"),
        }
    }

    fn is_modern(&self) -> bool {
        self.revision == MODERN || self.revision == "both"
    }

    fn discover(&self, id: &Value) {
        if self.is_modern() {
            self.result(
                id,
                json!({
                    "supportedVersions": [MODERN], "capabilities": { "tools": {} },
                    "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                }),
            );
        } else {
            self.error(id, -32601, "method not found");
        }
    }

    fn initialize(&self, id: &Value, params: &Value) {
        if self.revision == MODERN {
            let data = json!({ "supported": [MODERN], "requested": params["protocolVersion"] });
            let error = json!({ "code": -32022, "message": "unsupported version", "data": data });
            return self.write(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
        let version = if self.revision == "both" { "2025-11-25" } else { &self.revision };
        self.result(
            id,
            json!({
                "protocolVersion": version, "capabilities": { "tools": {} },
                "serverInfo": { "name": "rude", "version": "1" },
            }),
        );
    }

    fn list(&self, id: &Value, params: &Value) {
        // Three pages of two; the cursor of the second is the empty string (PAG-03).
        let (first, next) = match params["cursor"].as_str() {
            None => (0, json!("")),
            Some("") => (2, json!("c")),
            Some(_) => (4, Value::Null),
        };
        let tool = |n: u64| json!({ "name": format!("t{n}"), "inputSchema": { "type": "object" } });
        let mut page = json!({ "tools": [tool(first), tool(first + 1)] });
        if !next.is_null() {
            page["nextCursor"] = next;
        }
        self.result(id, page);
    }

    fn call(&self, id: &Value, params: &Value) {
        let arguments = &params["arguments"];
        match params["name"].as_str().unwrap_or_default() {
            "add" => {
                let sum = arguments["a"].as_f64().unwrap() + arguments["b"].as_f64().unwrap();
                self.text(id, &sum.to_string());
            }
            "echo" => self.text(id, arguments["text"].as_str().unwrap_or_default()),
            "params" => self.text(id, &params.to_string()),
            "fail" => self.result(
                id,
                json!({ "content": [{ "type": "text", "text": "no such row" }], "isError": true }),
            ),
            "never" => {}
            name => self.error(id, -32602, &format!("unknown tool {name}")),
        }
    }

    fn text(&self, id: &Value, text: &str) {
        self.result(id, json!({ "content": [{ "type": "text", "text": text }] }));
    }

    fn result(&self, id: &Value, mut result: Value) {
        if self.revision == MODERN && result.get("resultType").is_none() {
            result["resultType"] = json!("complete");
        }
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    fn error(&self, id: &Value, code: i64, message: &str) {
        let error = json!({ "code": code, "message": message });
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    }

    fn write(&self, message: &Value) {
        put(format!("{message}\n").as_bytes());
    }
}

fn put(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
}

fn sleep_for_ever() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1_000));
    }
}
