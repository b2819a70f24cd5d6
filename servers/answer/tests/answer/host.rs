//! A host: starts the real binary, speaks MCP to it in lines, and reads everything it says.
//!
//! Every run has debug on, and ends with a search for the key in all that was said.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use serde_json::{Value, json};

use crate::service::{PATIENCE, Service};

pub(crate) const KEY: &str = "sk-stand-in-0123456789abcdef";

/// The binary in an environment of its own: no key, no home, nothing of whoever runs the test.
pub(crate) fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taut-answer"));
    command.env_clear().env("HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

/// Runs it to its end without input.
pub(crate) fn run(command: &mut Command) -> (Output, String) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!stderr.contains(KEY), "{stderr}");
    (output, stderr)
}

pub(crate) struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: JoinHandle<String>,
    next_id: u64,
    heard: Vec<Value>,
}

impl Host {
    /// With a key and a service, and a handshake for this revision.
    pub(crate) fn open(service: &Service, revision: &str) -> Self {
        Self::open_with(service, revision, |command| command)
    }

    pub(crate) fn open_with(
        service: &Service,
        revision: &str,
        more: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Self {
        let mut command = binary();
        command.args(["--stdio", "--debug"]).env("OPENAI_BASE_URL", &service.url);
        command.env("OPENAI_API_KEY", KEY);
        let mut host = Self::start(more(&mut command));
        let params = json!({
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let welcome = host.ask("initialize", params);
        assert_eq!(welcome["result"]["protocolVersion"], revision);
        host.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        host
    }

    pub(crate) fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut stderr = child.stderr.take().unwrap();
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        let stderr = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines, stderr, next_id: 0, heard: Vec::new() }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// The next message, whatever it is.
    pub(crate) fn hear(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("the server said nothing");
        assert!(!line.contains(KEY), "{line}");
        let message: Value = serde_json::from_str(&line).unwrap();
        self.heard.push(message.clone());
        message
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        loop {
            let message = self.hear();
            if message["id"] == id {
                return message;
            }
        }
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// What `answer` says, which must be the same as text and as structure.
    pub(crate) fn answer(&mut self, arguments: Value) -> Value {
        let message = self.call("answer", arguments);
        let result = &message["result"];
        assert!(!result["isError"].as_bool().unwrap_or(false), "{message}");
        let text = result["content"][0]["text"].as_str().unwrap();
        let answer: Value = serde_json::from_str(text).unwrap();
        assert_eq!(result["structuredContent"], answer);
        answer
    }

    /// What `answer` says when it fails, as a tool does.
    pub(crate) fn failure(&mut self, arguments: Value) -> String {
        let message = self.call("answer", arguments);
        assert_eq!(message["result"]["isError"], true, "{message}");
        message["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Closes stdin, waits for the end, and returns the log, in which the key is nowhere.
    pub(crate) fn end(mut self) -> String {
        drop(self.stdin.take());
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() < deadline => std::thread::yield_now(),
                None => panic!("the server did not end"),
            }
        };
        assert!(status.success(), "{status}");
        for line in self.lines.try_iter() {
            assert!(!line.contains(KEY), "{line}");
        }
        let log = self.stderr.join().unwrap();
        assert!(!log.contains(KEY), "the key is in the log: {log}");
        log
    }
}
