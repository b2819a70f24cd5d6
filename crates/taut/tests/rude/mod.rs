//! A small server with the bad manners that its role names: what rude servers of the wild do.
//!
//! Included by the client's tests and by those of the command, which play it in their own binaries.
//! A role is a list of words. The first is the revision that it speaks (a date, or `both` for all),
//! each further word is one habit. Words that are none are names to find a process by.
//!
//! A habit or a tool that is not in the lists below does nothing; one that is has to be known to
//! `taut doctor` too, whose table is held against these lists.

mod lists;
pub(crate) mod system;

use std::cell::Cell;
use std::io::{BufRead, BufReader, Write};
use std::process::exit;
use std::time::Duration;

use serde_json::{Value, json};

const MODERN: &str = "2026-07-28";

/// Every habit; after `=` a number is meant.
pub(crate) const HABITS: [&str; 39] = [
    "backlog",
    "bad-prompts",
    "banner",
    "bom",
    "circular",
    "close-stderr",
    "crlf",
    "deaf",
    "die-on-list",
    "exit-on-initialize",
    "exit-on-probe",
    "flood",
    "flood-line",
    "flood-on-probe",
    "greet",
    "headers",
    "headers-only",
    "ignore-eof",
    "ignore-term",
    "late=",
    "log-stdin",
    "no-flush",
    "no-info",
    "no-jsonrpc",
    "no-schema",
    "odd-name",
    "odd-schema",
    "pretty",
    "probe-code=",
    "same-name",
    "say-pid",
    "say-secrets",
    "slow-start=",
    "string-schema",
    "swallow-probe",
    "text-id",
    "twice",
    "unknown-id",
    "wrong-id",
];

/// Every tool that can be called, listed or not.
pub(crate) const TOOLS: [&str; 17] = [
    "add",
    "answer-and-exit",
    "ask",
    "big",
    "close-stdin",
    "close-stdout",
    "die",
    "echo",
    "endless",
    "exit",
    "fail",
    "grandchild",
    "never",
    "progress",
    "steps",
    "stop",
    "stray",
];

/// The role that this process was started for.
pub(crate) fn role() -> String {
    let role = std::env::var("TAUT_ROLE").ok().or_else(system::role_in_arguments);
    let role = role.expect("a role to play");
    system::take_wire();
    if role == "sleeper" {
        sleep_for_ever();
    }
    role
}

/// Serves until stdin ends, or as the role says.
pub(crate) fn serve(role: &str) {
    let mut words = role.split(' ').map(str::to_owned);
    let revision = words.next().unwrap_or_default();
    let (initialized, asker, held) = (Cell::new(false), Cell::default(), Cell::default());
    Server { revision, habits: words.collect(), initialized, asker, held }.run();
}

/// A program and its arguments that play a role.
pub(crate) fn player(role: &str) -> (String, Vec<String>) {
    system::player(if role.contains("ignore-term") { "trap '' TERM; " } else { "" })
}

struct Server {
    revision: String,
    habits: Vec<String>,
    initialized: Cell<bool>,
    /// The call that waits for our own question to be answered.
    asker: Cell<Value>,
    /// What was written and not flushed.
    held: Cell<Vec<u8>>,
}

impl Server {
    fn has(&self, habit: &str) -> bool {
        assert!(HABITS.contains(&habit), "{habit} is in the list of habits");
        self.habits.iter().any(|word| word == habit)
    }

    /// The number after a habit: `late=600`.
    fn number(&self, habit: &str) -> Option<u64> {
        assert!(HABITS.contains(&habit), "{habit} is in the list of habits");
        let found = self.habits.iter().find_map(|word| word.strip_prefix(habit));
        found.map(|number| number.parse().unwrap())
    }

    fn run(&self) {
        self.before();
        let mut stdin = BufReader::new(std::io::stdin());
        while let Some(text) = self.read(&mut stdin) {
            if self.has("log-stdin") {
                eprintln!("got {text}");
            }
            match serde_json::from_str::<Value>(&text) {
                Ok(message) => self.take(&message),
                Err(error) if self.has("no-flush") => {
                    eprintln!("json.decoder.JSONDecodeError: {error}");
                    exit(1);
                }
                Err(_) => {}
            }
        }
        if self.has("log-stdin") {
            eprintln!("got the end");
        }
        put(&self.held.take());
        if self.has("backlog") {
            // What nobody has read yet has to leave before we can.
            put(&b"x".repeat(10 << 20));
        }
        if self.has("ignore-eof") {
            sleep_for_ever();
        }
    }

    fn before(&self) {
        if self.has("banner") {
            put(b"Welcome to the rude server!\n");
            (0..37).for_each(|n| put(format!("loading module {n}\n").as_bytes()));
        }
        if self.has("greet") {
            self.write(&json!({ "jsonrpc": "2.0", "method": "notifications/message",
                "params": { "level": "info", "data": "hello" } }));
        }
        if self.has("flood") {
            let line = format!("{}\n", "noise ".repeat(170));
            (0..10 * 1024).for_each(|_| eprint!("{line}"));
        }
        if self.has("flood-line") {
            let piece = "\r12%".repeat(1 << 10);
            // A pipe holds 4 KiB on Windows, and a hundred mebibytes take a minute on a busy machine.
            let mebibytes = if cfg!(windows) { 20 } else { 100 };
            (0..mebibytes << 8).for_each(|_| eprint!("{piece}"));
        }
        if self.has("close-stderr") {
            system::close_stderr();
        }
        if self.has("say-pid") {
            eprintln!("{}", std::process::id());
        }
        if self.has("say-secrets") {
            let mut names: Vec<_> = std::env::vars().map(|(name, _)| name).collect();
            names.sort();
            eprintln!("{}", names.join(" "));
        }
        if let Some(millis) = self.number("slow-start=") {
            std::thread::sleep(Duration::from_millis(millis));
        }
    }

    /// The next message, in the framing that this server understands.
    fn read(&self, stdin: &mut impl BufRead) -> Option<String> {
        let mut line = String::new();
        if !self.has("headers-only") {
            return (stdin.read_line(&mut line).ok()? > 0).then_some(line);
        }
        let mut length = 0;
        loop {
            line.clear();
            if stdin.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(number) = line.strip_prefix("Content-Length: ") {
                length = number.trim().parse().unwrap();
            }
            if line == "\r\n" && length > 0 {
                let mut body = vec![0; length];
                stdin.read_exact(&mut body).ok()?;
                return String::from_utf8(body).ok();
            }
        }
    }

    fn take(&self, message: &Value) {
        let id = &message["id"];
        let Some(method) = message["method"].as_str() else {
            // The answer to our own question.
            let asker = self.asker.take();
            return self.text(&asker, &message["error"]["code"].to_string());
        };
        if id.is_null() {
            self.initialized.set(self.initialized.get() || method == "notifications/initialized");
            return;
        }
        match method {
            "server/discover" => self.discover(id),
            "initialize" => self.initialize(id, &message["params"]),
            "ping" => self.result(id, json!({})),
            // L9: strict about the order.
            _ if !self.initialized.get() && self.revision != MODERN && self.revision != "both" => {
                self.error(id, -32600, "not initialized");
            }
            "tools/list" => self.list(id, &message["params"]),
            "tools/call" => self.call(id, &message["params"]),
            "prompts/list" if self.has("bad-prompts") => {
                self.result(
                    id,
                    json!({ "prompts": [{ "name": "p", "arguments": { "topic": 1 } }] }),
                );
            }
            _ => self.error(id, -32601, "method not found"),
        }
    }

    fn discover(&self, id: &Value) {
        if self.has("swallow-probe") {
            return;
        }
        if self.has("exit-on-probe") {
            eprintln!("expected initialize");
            exit(3);
        }
        if self.has("flood-on-probe") {
            eprint!("{}", "invalid request\n".repeat(64 << 10));
        }
        if let Some(millis) = self.number("late=") {
            std::thread::sleep(Duration::from_millis(millis));
        }
        if self.revision == MODERN || self.revision == "both" {
            let capabilities = json!({ "tools": {} });
            self.result(id, json!({ "supportedVersions": [MODERN], "capabilities": capabilities }));
        } else {
            let code = self.number("probe-code=").map_or(-32601, |code| -(code as i64));
            self.error(id, code, "method not found");
        }
    }

    fn initialize(&self, id: &Value, params: &Value) {
        if self.has("exit-on-initialize") {
            eprintln!("cannot open the database");
            exit(42);
        }
        if self.revision == MODERN {
            let data = json!({ "supported": [MODERN], "requested": params["protocolVersion"] });
            let error = json!({ "code": -32022, "message": "unsupported version", "data": data });
            return self.write(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
        let version = if self.revision == "both" { "2025-11-25" } else { &self.revision };
        let mut result = json!({ "protocolVersion": version, "capabilities": { "tools": {} } });
        if self.has("bad-prompts") {
            result["capabilities"]["prompts"] = json!({});
        }
        if !self.has("no-info") {
            result["serverInfo"] = json!({ "name": "rude", "version": "1" });
        }
        self.result(id, result);
        if self.has("deaf") {
            eprintln!("not listening");
            sleep_for_ever();
        }
    }

    fn call(&self, id: &Value, params: &Value) {
        let arguments = &params["arguments"];
        let name = params["name"].as_str().filter(|name| TOOLS.contains(name));
        match name.unwrap_or_default() {
            "add" => {
                let sum = arguments["a"].as_f64().unwrap() + arguments["b"].as_f64().unwrap();
                self.text(id, &sum.to_string());
            }
            "echo" => self.text(id, arguments["text"].as_str().unwrap_or_default()),
            "big" => self.text(id, &"x".repeat(arguments["size"].as_u64().unwrap() as usize)),
            "fail" => self.result(
                id,
                json!({ "content": [{ "type": "text", "text": "no such row" }], "isError": true }),
            ),
            "never" => {}
            "die" => die(),
            "exit" => {
                eprintln!("giving up");
                exit(7);
            }
            "answer-and-exit" => {
                self.text(id, &"last".repeat(100_000));
                exit(0);
            }
            "stop" => system::stop(),
            "stray" => self.text(&json!("never"), "to nobody"),
            "close-stdout" => system::close_stdout_and_sleep(),
            "close-stdin" => {
                system::close_stdin();
                self.text(id, "closed");
                sleep_for_ever();
            }
            "grandchild" => {
                #[allow(clippy::zombie_processes, reason = "leaving it behind is the bad habit")]
                let child = system::sleeper().spawn().unwrap();
                self.text(id, &child.id().to_string());
            }
            "progress" => self.progress(&params["_meta"]["progressToken"]),
            "steps" => {
                let token = &params["_meta"]["progressToken"];
                (1..=5).for_each(|n| self.report(token, n));
                self.text(id, "done");
            }
            "endless" => loop {
                put(&[b'x'; 64 << 10]);
            },
            "ask" => {
                self.asker.set(id.clone());
                self.write(&json!({ "jsonrpc": "2.0", "id": "s1", "method": "roots/list" }));
            }
            _ => self.error(id, -32602, &format!("unknown tool {}", params["name"])),
        }
    }

    fn progress(&self, token: &Value) {
        for n in 1.. {
            self.report(token, n);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn report(&self, token: &Value, n: u64) {
        self.write(&json!({ "jsonrpc": "2.0", "method": "notifications/progress",
            "params": { "progressToken": token, "progress": n } }));
    }

    fn text(&self, id: &Value, text: &str) {
        self.result(id, json!({ "content": [{ "type": "text", "text": text }] }));
    }

    fn result(&self, id: &Value, mut result: Value) {
        if self.revision == MODERN && result.get("resultType").is_none() {
            result["resultType"] = json!("complete");
        }
        let mut message = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        if self.has("wrong-id") {
            message["id"] = json!(99_999);
        }
        if self.has("text-id") {
            message["id"] = json!(id.to_string());
        }
        if self.has("no-jsonrpc") {
            message["jsonrpc"].take();
        }
        self.write(&message);
        if self.has("twice") {
            self.write(&message);
        }
        if self.has("unknown-id") {
            self.write(&json!({ "jsonrpc": "2.0", "id": 99_999, "result": result }));
            self.write(&json!({ "jsonrpc": "2.0", "id": "never", "result": result }));
        }
    }

    fn error(&self, id: &Value, code: i64, message: &str) {
        let error = json!({ "code": code, "message": message });
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    }

    fn write(&self, message: &Value) {
        let pretty = self.has("pretty");
        let text = if pretty { format!("{message:#}") } else { message.to_string() };
        if self.has("headers") || self.has("headers-only") {
            put(format!("Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes());
        } else {
            let bom = if self.has("bom") { "\u{feff}" } else { "" };
            let end = if self.has("crlf") { "\r\n" } else { "\n" };
            let line = format!("{bom}{text}{end}");
            if self.has("no-flush") {
                let held = [self.held.take(), line.into_bytes()].concat();
                self.held.set(held);
            } else {
                put(line.as_bytes());
            }
        }
    }
}

fn put(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    if stdout.write_all(bytes).and_then(|()| stdout.flush()).is_err() {
        exit(0);
    }
}

/// In the middle of a line.
fn die() {
    eprintln!("about to die");
    put(b"{\"jsonrpc\":\"2.0\",\"id\":");
    system::abort();
}

pub(crate) fn sleep_for_ever() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1_000));
    }
}
