//! The demo's tool `ask` from a real process: with a client of each revision that knows forms, and
//! in the modern era with another process for each round.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use serde_json::{Value, json};

/// Far above what anything here needs, far below what a person would wait for.
const PATIENCE: Duration = Duration::from_secs(20);

/// `taut serve`; killed when dropped.
struct Demo {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Demo {
    fn start(key: Option<&str>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_taut"));
        command.arg("serve").env_remove("TAUT_SEAL_KEY");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        if let Some(key) = key {
            command.env("TAUT_SEAL_KEY", key);
        }
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (line, lines) = mpsc::channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|read| line.send(read))
        });
        Self { input: child.stdin.take(), child, lines }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.recv_timeout(PATIENCE).unwrap()).unwrap()
    }

    fn request(&mut self, id: u32, method: &str, params: &Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.next()
    }

    /// Calls `ask` in the modern era, with what an earlier round gave.
    fn ask(&mut self, state: Option<&Value>, responses: &Value) -> Value {
        let mut params = json!({
            "name": "ask",
            "arguments": {},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
            },
        });
        if let Some(state) = state {
            params["requestState"] = state.clone();
            params["inputResponses"] = responses.clone();
        }
        self.request(1, "tools/call", &params)
    }

    fn ends_well(mut self) -> bool {
        drop(self.input.take());
        self.child.wait().unwrap().success()
    }
}

fn answer(message: &str) -> Value {
    let content = match message {
        "What would you like?" => json!({ "size": "large", "milk": false, "name": "Ada" }),
        "That is one large coffee, black." => json!({ "right": true }),
        other => panic!("asked {other}"),
    };
    json!({ "action": "accept", "content": content })
}

/// The answers to all questions of a round.
fn answers(required: &Value) -> Value {
    let questions = required["result"]["inputRequests"].as_object();
    let questions = questions.unwrap_or_else(|| panic!("no question: {required}"));
    let pairs = questions.iter().map(|(key, question)| {
        (key.clone(), answer(question["params"]["message"].as_str().unwrap()))
    });
    Value::Object(pairs.collect())
}

const SERVED: &str = "one large coffee, black, for Ada";

#[test]
fn ask_works_with_clients_of_2025_06_18_and_2025_11_25() {
    for revision in ["2025-06-18", "2025-11-25"] {
        let mut demo = Demo::start(None);
        let params = json!({
            "protocolVersion": revision,
            "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "host", "version": "1" },
        });
        let welcome = demo.request(0, "initialize", &params);
        assert_eq!(welcome["result"]["protocolVersion"], revision);
        demo.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        let mut message = demo.request(1, "tools/call", &json!({ "name": "ask", "arguments": {} }));
        while message["method"] == "elicitation/create" {
            let result = answer(message["params"]["message"].as_str().unwrap());
            demo.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
            message = demo.next();
        }
        assert_eq!(message["result"]["content"][0]["text"], SERVED, "{revision}: {message}");
        assert!(demo.ends_well());
    }
}

#[test]
fn mrtr_09_another_process_with_the_same_key_takes_the_next_round() {
    let mut message = Demo::start(Some("a key")).ask(None, &Value::Null);
    let mut rounds = 0;
    while message["result"]["resultType"] == "input_required" {
        let state = &message["result"]["requestState"];
        // The one before is dead by now.
        let mut fresh = Demo::start(Some("a key"));
        message = fresh.ask(Some(state), &answers(&message));
        assert!(fresh.ends_well());
        rounds += 1;
    }
    assert_eq!(message["result"]["content"][0]["text"], SERVED, "{message}");
    assert_eq!(rounds, 2);
}

#[test]
fn mrtr_09_a_process_with_another_key_says_what_to_set() {
    for (first, second) in [(Some("a key"), Some("another")), (None, None)] {
        let required = Demo::start(first).ask(None, &Value::Null);
        let state = &required["result"]["requestState"];
        let refused = Demo::start(second).ask(Some(state), &answers(&required));
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        let words = refused["error"]["message"].as_str().unwrap();
        assert!(words.contains("start again") && words.contains("TAUT_SEAL_KEY"), "{words}");
    }
}
