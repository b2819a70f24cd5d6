//! What the rude servers do: the roles of the client's tests, as far as the command can see them.
//!
//! A role is a list of words. The first is the revision that it speaks; each further word is one bad
//! habit. Words that are none are names to find a process by.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, exit};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use serde_json::{Value, json};

pub(super) fn play() {
    let role = std::env::var("TAUT_ROLE").expect("a role to play");
    // The harness has had its say; from here on fd 1 is the wire.
    let wire = File::options().write(true).open("/dev/fd/3").unwrap();
    rustix::stdio::dup2_stdout(&wire).unwrap();
    drop(wire);
    let mut words = role.split(' ').map(str::to_owned);
    let revision = words.next().unwrap_or_default();
    Server { revision, habits: words.collect(), initialized: Cell::new(false) }.run();
    exit(0);
}

struct Server {
    revision: String,
    habits: Vec<String>,
    initialized: Cell<bool>,
}

impl Server {
    fn has(&self, habit: &str) -> bool {
        self.habits.iter().any(|word| word == habit)
    }

    fn run(&self) {
        self.before();
        let mut stdin = BufReader::new(std::io::stdin());
        while let Some(text) = self.read(&mut stdin) {
            if self.has("log-stdin") {
                eprintln!("got {}", text.trim_end());
            }
            if let Ok(message) = serde_json::from_str::<Value>(&text) {
                self.take(&message);
            }
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
            (0..1024).for_each(|_| eprint!("{line}"));
        }
        let slow = self.habits.iter().find_map(|word| word.strip_prefix("slow-start="));
        if let Some(millis) = slow {
            std::thread::sleep(Duration::from_millis(millis.parse().unwrap()));
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
        let method = message["method"].as_str().unwrap_or_default();
        if id.is_null() {
            self.initialized.set(self.initialized.get() || method == "notifications/initialized");
            return;
        }
        match method {
            "server/discover" if self.has("swallow-probe") => {}
            "server/discover" if self.has("exit-on-probe") => {
                eprintln!("expected initialize");
                exit(3);
            }
            "initialize" => self.initialize(id),
            _ if !self.initialized.get() => self.error(id, -32600, "not initialized"),
            "tools/list" => self.list(id, &message["params"]),
            "tools/call" => self.call(id, &message["params"]),
            _ => self.error(id, -32601, "method not found"),
        }
    }

    fn initialize(&self, id: &Value) {
        if self.has("exit-on-initialize") {
            eprintln!("cannot open the database");
            exit(42);
        }
        self.result(
            id,
            &json!({
                "protocolVersion": self.revision, "capabilities": { "tools": {} },
                "serverInfo": { "name": "rude", "version": "1" },
            }),
        );
        if self.has("deaf") {
            eprintln!("not listening");
            sleep_for_ever();
        }
    }

    fn list(&self, id: &Value, params: &Value) {
        if self.has("die-on-list") {
            die();
        }
        // Three pages of two; the cursor of the second is the empty string (PAG-03).
        let (first, next) = match params["cursor"].as_str() {
            None => (0, json!("")),
            Some("") => (2, json!("c")),
            Some(_) if self.has("circular") => (4, json!("c")),
            Some(_) => (4, Value::Null),
        };
        let tool = |n: u64| json!({ "name": format!("t{n}"), "inputSchema": { "type": "object" } });
        let mut page = json!({ "tools": [tool(first), tool(first + 1)] });
        if !next.is_null() {
            page["nextCursor"] = next;
        }
        self.result(id, &page);
    }

    fn call(&self, id: &Value, params: &Value) {
        match params["name"].as_str().unwrap_or_default() {
            "never" => {}
            "die" => die(),
            "exit" => {
                eprintln!("giving up");
                exit(7);
            }
            "stop" => kill_process(getpid(), Signal::STOP).unwrap(),
            "close-stdout" => {
                // fd 3 is the wire, too.
                let _ = Command::new("sh").args(["-c", "exec 1>&- 3>&-; exec sleep 1000"]).exec();
            }
            "grandchild" => {
                let child = Command::new("sh").args(["-c", "exec sleep 1000"]).spawn();
                // Nobody waits for it: that is the habit.
                std::mem::forget(child);
                let text = json!({ "content": [{ "type": "text", "text": "started" }] });
                self.result(id, &text);
            }
            "endless" => loop {
                put(&[b'x'; 64 << 10]);
            },
            name => self.error(id, -32602, &format!("unknown tool {name}")),
        }
    }

    fn result(&self, id: &Value, result: &Value) {
        let message = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        self.write(&message);
        if self.has("twice") {
            self.write(&message);
        }
        if self.has("unknown-id") {
            self.write(&json!({ "jsonrpc": "2.0", "id": 99_999, "result": result }));
        }
    }

    fn error(&self, id: &Value, code: i64, message: &str) {
        let error = json!({ "code": code, "message": message });
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    }

    fn write(&self, message: &Value) {
        let text = message.to_string();
        if self.has("headers") || self.has("headers-only") {
            put(format!("Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes());
        } else {
            let bom = if self.has("bom") { "\u{feff}" } else { "" };
            put(format!("{bom}{text}\n").as_bytes());
        }
    }
}

/// In the middle of a line.
fn die() {
    eprintln!("about to die");
    put(b"{\"jsonrpc\":\"2.0\",\"id\":");
    kill_process(getpid(), Signal::ABORT).unwrap();
}

fn put(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    if stdout.write_all(bytes).and_then(|()| stdout.flush()).is_err() {
        exit(0);
    }
}

fn sleep_for_ever() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1_000));
    }
}
