//! `taut bridge` between a host and rude servers: whatever goes wrong on one side, the other side gets what it
//! is owed, a clear error otherwise, and nothing is left running.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::*;

/// An error has to come that fast. On a quiet machine it takes milliseconds.
const SOON: Duration = Duration::from_secs(5);

/// A bridge on stdin and stdout, and the host that has started it.
pub(super) struct Bridge {
    pub(super) child: Child,
    pub(super) stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: Arc<Mutex<String>>,
    /// What came before it was asked for.
    early: Vec<Value>,
}

impl Bridge {
    /// A bridge with these options, in front of this server.
    fn start(options: &str, server: &[String]) -> Self {
        let words = ["bridge"].into_iter().chain(options.split_whitespace()).map(str::to_owned);
        let mut command = taut(words.chain(["--".to_owned()]).chain(server.iter().cloned()));
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let (send, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            stdout
                .lines()
                .map_while(Result::ok)
                .take_while(|line| send.send(line.clone()).is_ok())
                .count()
        });
        let stderr = Arc::new(Mutex::new(String::new()));
        let (kept, mut from) = (stderr.clone(), child.stderr.take().unwrap());
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = from.read(&mut buffer) {
                let mut kept = kept.lock().unwrap();
                // Enough to see what it said; a flood is not kept.
                if kept.len() < 1 << 20 {
                    kept.push_str(&String::from_utf8_lossy(&buffer[..read]));
                }
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines, stderr, early: Vec::new() }
    }

    /// The same in front of a rude server, after the handshake of a legacy host.
    fn legacy(options: &str, role: &str) -> Self {
        let mut bridge = Self::start(options, &server(role));
        bridge.handshake();
        bridge
    }

    fn handshake(&mut self) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": "open", "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": { "roots": {} },
            "clientInfo": { "name": "host", "version": "1" } } }));
        let opened = self.answer(&json!("open"));
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        opened
    }

    fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    fn call(&mut self, id: u64, tool: &str, arguments: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": tool, "arguments": arguments } }));
    }

    /// What comes next. Everything that comes has to be a message.
    fn next(&mut self) -> Value {
        let line = self.lines.recv_timeout(DEADLINE).expect("a message in time");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn answer(&mut self, id: &Value) -> Value {
        if let Some(at) = self.early.iter().position(|message| message["id"] == *id) {
            return self.early.remove(at);
        }
        loop {
            let message = self.next();
            if message["id"] == *id && message.get("method").is_none() {
                return message;
            }
            self.early.push(message);
        }
    }

    /// Whether a call works now.
    #[track_caller]
    fn echoes(&mut self, id: u64) {
        self.call(id, "echo", &json!({ "text": "still here" }));
        let answer = self.answer(&json!(id));
        assert_eq!(answer["result"]["content"][0]["text"], "still here", "{answer}");
    }

    fn stderr(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// How it ended, which it has to soon.
    #[track_caller]
    fn ends(&mut self) -> Option<i32> {
        let mut status = None;
        eventually("the bridge ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code()
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// That all processes with this name end.
#[track_caller]
pub(super) fn nothing_is_left(name: &str) {
    eventually(&format!("nothing of {name} is left"), || processes_with(name).is_empty());
}

fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// T11: the open call gets an error that says so, and the next one works.
#[test]
fn a_server_that_dies_in_a_call_is_started_again() {
    let mut bridge = Bridge::legacy("-v", "2025-11-25 bridge-dies");
    for round in 0..3 {
        let (call, next) = (10 * round + 1, 10 * round + 2);
        bridge.call(call, if round == 1 { "die" } else { "exit" }, &json!({}));
        let began = Instant::now();
        let answer = bridge.answer(&json!(call));
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        let words = message(&answer);
        assert!(
            words.contains("tools/call")
                && words.contains(if round == 1 { "killed" } else { "code 7" }),
            "{words}"
        );
        bridge.echoes(next);
    }
    eventually("the loss is told", || bridge.stderr().contains("lost the server"));
    bridge.stdin = None;
    assert_eq!(bridge.ends(), Some(0));
    nothing_is_left("bridge-dies");
}

/// A call that never ends holds up no other, and SIGTERM ends it with an error.
#[test]
fn a_call_that_hangs_is_told_so_at_the_end() {
    let mut bridge = Bridge::legacy("--drain 300ms", "2025-11-25 bridge-hangs");
    bridge.call(1, "never", &json!({}));
    bridge.echoes(2);
    bridge.signal(Signal::TERM);
    let answer = bridge.answer(&json!(1));
    assert!(message(&answer).contains("tools/call"), "{answer}");
    assert_eq!(bridge.ends(), Some(0));
    nothing_is_left("bridge-hangs");
}

/// One that stands still altogether.
#[test]
fn a_server_that_hears_nothing_does_not_keep_the_bridge() {
    let mut bridge = Bridge::legacy("--drain 300ms --debug", "2025-11-25 deaf bridge-deaf");
    bridge.call(1, "echo", &json!({ "text": "x" }));
    eventually("the server hangs", || bridge.stderr().contains("not listening"));
    eventually("the bridge has read the call", || bridge.stderr().contains("tools/call"));
    bridge.signal(Signal::INT);
    let answer = bridge.answer(&json!(1));
    assert!(message(&answer).contains("tools/call"), "{answer}");
    assert_eq!(bridge.ends(), Some(0));
    nothing_is_left("bridge-deaf");
}

/// How much memory a process has, in bytes.
pub(super) fn resident(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// On stdout a line without end, on stderr 10 MiB.
#[test]
fn a_server_that_floods_costs_bounded_memory() {
    let mut bridge = Bridge::legacy("--drain 300ms", "2025-11-25 flood bridge-floods");
    bridge.echoes(1);
    bridge.call(2, "endless", &json!({}));
    let began = Instant::now();
    let mut most = 0;
    while began.elapsed() < Duration::from_secs(3) {
        most = most.max(resident(bridge.child.id()));
        std::thread::sleep(Duration::from_millis(20));
    }
    // The longest message that is allowed has 64 MiB, and its buffer grows by doubling.
    assert!(most < 200 << 20, "{} MiB", most >> 20);
    bridge.signal(Signal::TERM);
    assert_eq!(bridge.ends(), Some(0));
    nothing_is_left("bridge-floods");
}

/// Banners, byte-order marks, CRLF, answers that nobody asked for: the host sees messages only.
#[test]
fn junk_does_not_reach_the_host() {
    let mut bridge =
        Bridge::legacy("", "2025-11-25 banner bom crlf unknown-id twice greet bridge-junk");
    bridge.echoes(1);
    bridge.echoes(2);
    bridge.stdin = None;
    // `next` has refused every line that is no JSON.
    while let Ok(line) = bridge.lines.recv_timeout(DEADLINE) {
        let message: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(message["jsonrpc"], "2.0");
        assert_eq!(message.get("id"), None, "an answer to nothing: {line}");
    }
    assert_eq!(bridge.ends(), Some(0));
    nothing_is_left("bridge-junk");
}

#[test]
fn a_server_that_speaks_headers_only_serves_a_host_that_speaks_lines() {
    for (options, role) in
        [("--framing headers", "2025-11-25 headers-only"), ("", "2025-11-25 headers")]
    {
        let mut bridge = Bridge::legacy(options, &format!("{role} bridge-headers"));
        bridge.echoes(1);
        bridge.stdin = None;
        assert_eq!(bridge.ends(), Some(0));
    }
    nothing_is_left("bridge-headers");
}

/// A host that speaks `Content-Length` headers, in front of a server of either framing.
#[test]
fn a_host_that_speaks_headers_is_answered_in_headers() {
    for (options, role) in [
        ("", "2025-11-25"),
        ("--framing headers", "2025-11-25 headers-only"),
        ("--front-framing headers --framing headers", "2025-11-25 headers-only"),
        ("--front-framing headers --framing lines", "2025-11-25"),
    ] {
        let words = ["bridge"].into_iter().chain(options.split_whitespace()).map(str::to_owned);
        let role = server(&format!("{role} bridge-framed"));
        let mut child =
            taut(words.chain(["--".to_owned()]).chain(role)).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let (send, frames) = channel();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            let mut header = String::new();
            // A header, a blank line, and as many bytes as the header says.
            while stdout.read_line(&mut header).is_ok_and(|read| read > 0) {
                let length = header.trim_end().strip_prefix("Content-Length: ");
                let length = length.unwrap_or_else(|| panic!("{header:?}")).parse().unwrap();
                let mut blank = String::new();
                stdout.read_line(&mut blank).unwrap();
                assert_eq!(blank, "\r\n");
                let mut body = vec![0; length];
                stdout.read_exact(&mut body).unwrap();
                if send.send(serde_json::from_slice::<Value>(&body).unwrap()).is_err() {
                    return;
                }
                header.clear();
            }
        });
        let mut say = |message: Value| {
            let text = message.to_string();
            let frame = format!("Content-Length: {}\r\n\r\n{text}", text.len());
            stdin.write_all(frame.as_bytes()).unwrap();
        };
        say(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "host", "version": "1" } } }));
        let opened = frames.recv_timeout(DEADLINE).unwrap();
        assert_eq!(opened["result"]["serverInfo"]["name"], "rude", "{options}: {opened}");
        say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        say(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": { "name": "echo", "arguments": { "text": "fr\u{e4}med" } } }));
        let answer = frames.recv_timeout(DEADLINE).unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], "fr\u{e4}med", "{options}: {answer}");
        drop(stdin);
        let mut status = None;
        eventually("the bridge ends", || {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        assert_eq!(status.unwrap().code(), Some(0));
    }
    nothing_is_left("bridge-framed");
}

/// It is killed in time, and so is what it has started.
#[test]
fn a_server_that_ignores_eof_is_no_orphan() {
    let mut bridge = Bridge::legacy("", "2025-11-25 ignore-eof ignore-term bridge-stays");
    bridge.call(1, "grandchild", &json!({}));
    let started = bridge.answer(&json!(1))["result"]["content"][0]["text"].clone();
    bridge.stdin = None;
    assert_eq!(bridge.ends(), Some(0));
    nothing_is_left("bridge-stays");
    // One that has ended keeps its number where nobody waits for orphans, as in some containers.
    let grandchild = format!("/proc/{}/stat", started.as_str().unwrap());
    eventually("the grandchild is gone", || {
        std::fs::read_to_string(&grandchild).map_or(true, |stat| stat.contains(") Z "))
    });
}

/// Requests that come meanwhile wait, in order; the server is started once.
#[test]
fn a_slow_start_is_waited_for() {
    let mut bridge = Bridge::start("-v", &server("2025-11-25 slow-start=10000 bridge-slow"));
    let began = Instant::now();
    bridge.handshake();
    assert!(began.elapsed() >= Duration::from_secs(10));
    bridge.echoes(1);
    eventually("the start is told", || bridge.stderr().contains("started as process"));
    assert_eq!(bridge.stderr().matches("started as process").count(), 1, "{}", bridge.stderr());
    bridge.stdin = None;
    assert_eq!(bridge.ends(), Some(0));
    nothing_is_left("bridge-slow");
}

/// Also while the server is being started.
#[test]
fn a_signal_during_a_slow_start_leaves_nothing() {
    let mut bridge = Bridge::start("-v", &server("2025-11-25 slow-start=60000 bridge-early"));
    bridge.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "h", "version": "1" } } }));
    eventually("the server is started", || bridge.stderr().contains("started as process"));
    bridge.signal(Signal::TERM);
    let began = Instant::now();
    assert_eq!(bridge.ends(), Some(0));
    assert!(began.elapsed() < 4 * SOON, "{:?}", began.elapsed());
    nothing_is_left("bridge-early");
}

#[test]
fn a_host_that_dies_takes_everything_with_it() {
    let mut bridge = Bridge::legacy("", "2025-11-25 ignore-eof bridge-alone");
    bridge.call(1, "echo", &json!({ "text": "x" }));
    bridge.answer(&json!(1));
    // As the system does for a process that was killed: both pipes at once.
    bridge.stdin = None;
    drop(std::mem::replace(&mut bridge.lines, channel().1));
    assert!(bridge.ends().is_some());
    nothing_is_left("bridge-alone");
}

/// A host that asks and does not read: the server is not asked without end either.
#[test]
fn a_host_that_stops_reading_costs_bounded_memory() {
    let words = ["bridge", "--drain", "300ms", "--", "taut", "serve"];
    // A name by which the server is found.
    let mut command = taut(words);
    let mut child =
        command.env("TAUT_TEST", "bridge-unread").stdin(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let mut stdin = child.stdin.take().unwrap();
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "h", "version": "1" } } });
    let writer = std::thread::spawn(move || {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "echo", "arguments": { "text": "x".repeat(4096) } } });
        let _ = stdin.write_all(format!("{hello}\n").as_bytes());
        for id in 1..100_000 {
            let mut call = call.clone();
            call["id"] = json!(id);
            if stdin.write_all(format!("{call}\n").as_bytes()).is_err() {
                return id;
            }
        }
        100_000
    });
    let (began, mut most) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_secs(3) {
        most = most.max(resident(pid));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(most < 100 << 20, "{} MiB", most >> 20);
    let server = processes_with("bridge-unread");
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::TERM).unwrap();
    let mut status = None;
    eventually("the bridge ends", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(0));
    assert!(writer.join().unwrap() < 100_000, "400 MB cannot have gone in");
    assert!(!server.is_empty());
    nothing_is_left("bridge-unread");
}

#[test]
fn a_host_that_floods_gets_every_answer() {
    let mut bridge = Bridge::start("", &["taut".to_owned(), "serve".to_owned()]);
    bridge.handshake();
    let calls = 20_000;
    let mut stdin = bridge.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        for id in 0..calls {
            let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": { "name": "echo", "arguments": { "text": id.to_string() } } });
            stdin.write_all(format!("{call}\n").as_bytes()).unwrap();
        }
    });
    let mut answered = vec![false; calls];
    for _ in 0..calls {
        let answer = bridge.next();
        let id = answer["id"].as_u64().unwrap_or_else(|| panic!("{answer}"));
        let text = &answer["result"]["content"][0]["text"];
        assert_eq!(*text, id.to_string(), "the answer to another call");
        assert!(
            !std::mem::replace(&mut answered[usize::try_from(id).unwrap()], true),
            "{id} twice"
        );
    }
    writer.join().unwrap();
    assert_eq!(bridge.ends(), Some(0));
}

/// What was accepted is answered; nothing more is. T15.
#[test]
fn a_signal_lets_open_calls_finish() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut bridge = Bridge::start("", &["taut".to_owned(), "serve".to_owned()]);
        bridge.handshake();
        bridge.call(1, "slow", &json!({ "steps": 4, "step_ms": 250 }));
        bridge.echoes(2);
        bridge.signal(signal);
        let answer = bridge.answer(&json!(1));
        assert_eq!(
            answer["result"].get("isError").unwrap_or(&json!(false)),
            &json!(false),
            "{answer}"
        );
        assert_eq!(bridge.ends(), Some(0));
    }
}

/// T8.
#[test]
fn a_bridge_that_is_killed_leaves_no_server() {
    let mut bridge = Bridge::legacy("", "2025-11-25 ignore-eof bridge-killed");
    bridge.echoes(1);
    bridge.signal(Signal::KILL);
    assert_eq!(bridge.ends(), None);
    nothing_is_left("bridge-killed");
}

/// A client of 2026-07-28 in front of a server that knows only the legacy era: what goes wrong there is told.
#[test]
fn a_modern_host_gets_clear_errors_of_a_legacy_server() {
    fn call(bridge: &mut Bridge, id: u64, tool: &str) {
        bridge.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": tool, "arguments": { "text": "still here" }, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": { "name": "host", "version": "1" } } } }));
    }
    let mut bridge =
        Bridge::start("--drain 300ms --era legacy", &server("2025-11-25 bridge-modern"));
    for round in 0..2 {
        call(&mut bridge, 10 * round + 1, "exit");
        let answer = bridge.answer(&json!(10 * round + 1));
        let words = message(&answer);
        assert!(words.contains("tools/call") && words.contains("code 7"), "{words}");
        call(&mut bridge, 10 * round + 2, "echo");
        let answer = bridge.answer(&json!(10 * round + 2));
        assert_eq!(answer["result"]["content"][0]["text"], "still here", "{answer}");
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    }
    // One that never ends, while another is served.
    call(&mut bridge, 31, "never");
    call(&mut bridge, 32, "echo");
    assert!(bridge.answer(&json!(32))["result"].is_object());
    bridge.signal(Signal::TERM);
    let answer = bridge.answer(&json!(31));
    assert!(message(&answer).contains("tools/call"), "{answer}");
    assert_eq!(bridge.ends(), Some(0));
    nothing_is_left("bridge-modern");
}

/// One request at a time: the server hears of the second only when the first has ended.
#[test]
fn a_serial_bridge_sends_one_request_at_a_time() {
    let mut bridge = Bridge::legacy("--serial", "2025-11-25 log-stdin bridge-serial");
    bridge.call(1, "never", &json!({}));
    bridge.call(2, "echo", &json!({ "text": "second" }));
    eventually("the first is heard", || bridge.stderr().contains(r#""name":"never""#));
    bridge.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": 1 } }));
    assert_eq!(bridge.answer(&json!(2))["result"]["content"][0]["text"], "second");
    eventually("the second is heard", || bridge.stderr().contains(r#""name":"echo""#));
    let heard = bridge.stderr();
    let at = |what: &str| heard.find(what).unwrap_or_else(|| panic!("{what}: {heard}"));
    assert!(at("notifications/cancelled") < at(r#""name":"echo""#), "{heard}");
}

/// By the name that the server has in a host's file.
#[test]
fn a_server_by_name_is_bridged() {
    let file = temporary().join("bridge-by-name.json");
    let role = server("2025-11-25 bridge-named");
    let (program, args) = role.split_first().unwrap();
    let entry = json!({ "mcpServers": { "rude one": { "command": program, "args": args } } });
    std::fs::write(&file, entry.to_string()).unwrap();
    let mut command = taut(["bridge", "--config", file.to_str().unwrap(), "rude one"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "h", "version": "1" } } });
    child.stdin.take().unwrap().write_all(format!("{hello}\n").as_bytes()).unwrap();
    let run: Run = child.wait_with_output().unwrap().into();
    let run = run.exits(0);
    assert!(run.out.contains(r#""name":"rude""#), "{} {}", run.out, run.err);
    let unknown: Run = taut(["bridge", "--config", file.to_str().unwrap(), "nobody"])
        .stdin(Stdio::null())
        .output()
        .unwrap()
        .into();
    let unknown = unknown.exits(2);
    assert!(unknown.err.contains("nobody") && unknown.err.contains("rude one"), "{}", unknown.err);
    nothing_is_left("bridge-named");
}

/// Must show 6: the host's own `initialize` is the first thing that the server hears, and its answer comes as
/// soon as the server gives it.
#[test]
fn a_legacy_host_waits_for_no_probe() {
    let role = server("2025-11-25 swallow-probe log-stdin bridge-quick");
    // The same without a bridge, on the same busy machine.
    let began = Instant::now();
    let mut direct = Command::new(&role[0])
        .args(&role[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "h", "version": "1" } } });
    direct.stdin.as_mut().unwrap().write_all(format!("{hello}\n").as_bytes()).unwrap();
    let answered = BufReader::new(direct.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .any(|line| line.contains("protocolVersion"));
    assert!(answered);
    let alone = began.elapsed();
    drop(direct.stdin.take());
    direct.wait().unwrap();

    let began = Instant::now();
    let mut bridge = Bridge::start("", &role);
    let opened = bridge.handshake();
    // A probe of a server that ignores it costs 5 s.
    assert!(
        began.elapsed() < alone * 2 + Duration::from_secs(4),
        "{:?}, {alone:?}",
        began.elapsed()
    );
    assert_eq!(opened["result"]["serverInfo"]["name"], "rude", "{opened}");
    bridge.echoes(1);
    eventually("stderr is read", || bridge.stderr().contains("tools/call"));
    let heard = bridge.stderr();
    let first = heard.lines().find(|line| line.starts_with("got ")).unwrap();
    assert!(
        first.contains(r#""method":"initialize""#) && first.contains(r#""name":"host""#),
        "{first}"
    );
    assert!(!heard.contains("server/discover"), "{heard}");
}

/// Who comes and goes, on both sides.
#[test]
fn verbose_shows_both_sides() {
    let mut bridge = Bridge::legacy("-v", "2025-11-25 bridge-verbose");
    bridge.echoes(1);
    bridge.stdin = None;
    assert_eq!(bridge.ends(), Some(0));
    let server = "connected to the server, process ";
    for line in ["client connected: host 1, revision 2025-11-25", server, "client left: host 1"] {
        eventually(line, || bridge.stderr().contains(line));
    }
}

/// Each side is told apart.
#[test]
fn debug_shows_both_sides() {
    let mut bridge = Bridge::legacy("--debug", "2025-11-25 bridge-debug");
    bridge.echoes(7);
    bridge.stdin = None;
    assert_eq!(bridge.ends(), Some(0));
    eventually("stderr is read", || bridge.stderr().matches("tools/call").count() >= 4);
    for line in [
        "[front] recv method=initialize id=\"open\"",
        "[back] send (line)",
        "[back] recv method=(result)",
        "[front] send (line)",
    ] {
        assert!(bridge.stderr().contains(line), "{line}: {}", bridge.stderr());
    }
}
