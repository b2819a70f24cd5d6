//! `taut bridge --listen` over HTTP with real children: one that is killed, sessions that nobody ends, and a server
//! behind it that answers what it should not.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;
use std::process::Child;

use serde_json::json;

use super::rude::system;
use super::*;

/// A bridge that listens on a port of its own.
pub(super) struct Listening {
    child: Child,
    host: String,
}

/// An answer: status, session id and body.
pub(super) struct Answer {
    pub(super) status: u16,
    session: Option<String>,
    body: String,
}

impl Answer {
    /// The message in a body of JSON, or the last one in a stream of events.
    fn message(&self) -> Value {
        let events = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        let text = events.rev().find(|data| data.starts_with('{')).unwrap_or(&self.body);
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }
}

impl Listening {
    pub(super) fn start(options: &str, server: &[String]) -> Self {
        let line = format!("bridge --listen 127.0.0.1:0 {options}");
        let words = line.split_whitespace().map(str::to_owned).chain(["--".to_owned()]);
        let mut child = taut(words.chain(server.iter().cloned())).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
        let host = address.trim().strip_prefix("tcp:").unwrap_or_default().to_owned();
        assert!(!host.is_empty(), "{:?}", child.wait_with_output());
        Self { child, host }
    }

    /// Host and port.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Sends a request. Its answer can be read later.
    fn begin(&self, session: Option<&str>, headers: &str, body: &Value) -> TcpStream {
        let session = session.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
        let body = body.to_string();
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAccept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\nConnection: close\r\n{session}{headers}\
             Content-Length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        )
        .unwrap();
        stream
    }

    fn post(&self, session: Option<&str>, headers: &str, body: &Value) -> Answer {
        answer_of(self.begin(session, headers, body))
    }

    /// Opens a session of 2025-11-25.
    pub(super) fn open(&self) -> String {
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "c", "version": "1" } } });
        let answer = self.post(None, "", &hello);
        assert_eq!(answer.status, 200, "{}", answer.body);
        let session = answer.session.unwrap();
        let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.post(Some(&session), "", &note).status, 202);
        session
    }

    pub(super) fn echo(&self, session: &str) -> Answer {
        self.post(Some(session), "", &call(7, "echo", json!({ "text": "still here" })))
    }

    /// The processes of the servers behind it.
    #[cfg(windows)]
    fn children(&self) -> Vec<u32> {
        let ours = system::all_processes().into_iter().filter(|(_, by)| *by == self.child.id());
        ours.map(|(pid, _)| pid).collect()
    }

    /// The processes of the servers behind it.
    #[cfg(unix)]
    fn children(&self) -> Vec<u32> {
        let pid = self.child.id();
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
        let lists =
            tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
        lists
            .flat_map(|list| {
                list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>()
            })
            .collect()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn call(id: u64, tool: &str, arguments: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": tool, "arguments": arguments } })
}

fn answer_of(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let session = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("mcp-session-id").then(|| value.to_owned())
    });
    Answer { status, session, body: body.to_owned() }
}

/// Issue 21, line 5: `kill -9` of a child. Its session is told, with the call that was under way; the other sessions
/// and their calls do not notice. T11.
#[test]
fn a_child_that_is_killed_is_told_to_its_own_session_only() {
    let bridge = Listening::start("", &["taut", "serve"].map(str::to_owned));
    let mut known = Vec::new();
    let sessions: Vec<(String, u32)> = (0..3)
        .map(|_| {
            let session = bridge.open();
            let new: Vec<u32> =
                bridge.children().into_iter().filter(|pid| !known.contains(pid)).collect();
            assert_eq!(new.len(), 1, "each session has a child of its own");
            known.push(new[0]);
            (session, new[0])
        })
        .collect();
    let slow = call(1, "slow", json!({ "steps": 20, "step_ms": 100 }));
    let waiting: Vec<TcpStream> =
        sessions.iter().map(|(session, _)| bridge.begin(Some(session), "", &slow)).collect();
    // Each of them is at work before one is killed.
    for (session, _) in &sessions {
        assert_eq!(bridge.echo(session).message()["result"]["content"][0]["text"], "still here");
    }
    system::kill(sessions[1].1);
    let answers: Vec<Value> =
        waiting.into_iter().map(|stream| answer_of(stream).message()).collect();
    for other in [0, 2] {
        let said = &answers[other]["result"]["content"][0]["text"];
        assert_eq!(said, "done after 20 steps", "{}", answers[other]);
    }
    let told = answers[1]["error"]["message"].as_str().unwrap_or_default();
    assert!(told.contains(system::KILLED), "{}", answers[1]);
    for (session, _) in [&sessions[0], &sessions[2]] {
        assert_eq!(bridge.echo(session).message()["result"]["content"][0]["text"], "still here");
    }
    let now = bridge.children();
    assert!(now.contains(&sessions[0].1) && now.contains(&sessions[2].1), "they are the same ones");
}

/// Issue 21, line 5, with 24 sessions; `interop/http/sessions` does it with 1,000. Nobody ends them: their children are
/// gone after the idle limit, and the one that is in use stays. T8.
#[test]
fn the_children_of_abandoned_sessions_end_after_the_idle_limit() {
    let bridge = Listening::start("--session-idle 2s", &["taut", "serve"].map(str::to_owned));
    let used = bridge.open();
    // A call that takes longer than the test: however busy the machine is, this session is in use.
    let slow = call(1, "slow", json!({ "steps": 1_000, "step_ms": 100 }));
    let _open = bridge.begin(Some(&used), "", &slow);
    let abandoned: Vec<String> = (0..24).map(|_| bridge.open()).collect();
    eventually("only the child of the session in use is left", || {
        assert_eq!(bridge.echo(&used).status, 200);
        bridge.children().len() == 1
    });
    let answer = bridge.echo(&abandoned[0]);
    assert_eq!(answer.status, 404, "{}", answer.body);
    assert_eq!(bridge.echo(&used).status, 200);
    let last = bridge.children();
    drop(bridge);
    eventually("the last child is gone", || !last.iter().any(|pid| system::alive(*pid)));
}

/// Sessions have a server each, so they are bounded; who is refused is told by what.
#[test]
fn sessions_are_bounded_in_number() {
    let bridge = Listening::start("--max-sessions 2", &["taut", "serve"].map(str::to_owned));
    let sessions = [bridge.open(), bridge.open()];
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "c", "version": "1" } } });
    let answer = bridge.post(None, "", &hello);
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert!(answer.body.contains("2 sessions are open"), "{}", answer.body);
    assert!(answer.body.contains("--max-sessions"), "{}", answer.body);
    assert_eq!(bridge.children().len(), 2);
    // The command says it as well.
    let url = format!("http://{}/mcp", bridge.host());
    let run = run(&format!("list {url} --revision 2025-11-25"), &[]).exits(4);
    assert!(run.err.contains("--max-sessions"), "{}", run.err);
    // Requests of 2026-07-28 stand for themselves.
    super::run(&format!("list {url}"), &[]).exits(0);
    assert_eq!(bridge.echo(&sessions[0]).status, 200);
    let mut stream = TcpStream::connect(bridge.host()).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let (host, id) = (bridge.host(), &sessions[1]);
    write!(
        stream,
        "DELETE /mcp HTTP/1.1\r\nHost: {host}\r\nMcp-Session-Id: {id}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let ended = answer_of(stream);
    assert!(matches!(ended.status, 200 | 204), "{}", ended.body);
    eventually("there is room again", || bridge.post(None, "", &hello).status == 200);
}

/// A modern request cannot open a session, whatever the server behind the bridge says to it.
#[test]
fn a_modern_initialize_is_refused_by_the_bridge_itself() {
    let bridge = Listening::start("", &server("2026-07-28"));
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "c", "version": "1" } });
    let hello =
        json!({ "jsonrpc": "2.0", "id": 5, "method": "initialize", "params": { "_meta": meta } });
    let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: initialize\r\n";
    let answer = bridge.post(None, headers, &hello);
    let message = answer.message();
    assert_eq!((answer.status, &message["error"]["code"]), (404, &json!(-32601)), "{message}");
    assert_eq!(message["id"], 5);
}

/// Issue 19, D: what the TLS library says of it is jargon.
#[test]
fn https_to_a_port_that_speaks_http_says_so() {
    let bridge = Listening::start("", &["taut".to_owned(), "serve".to_owned()]);
    let run = run(&format!("list https://{}/mcp", bridge.host()), &[]).exits(4);
    assert!(run.err.contains("this port speaks plain HTTP"), "{}", run.err);
    assert!(run.err.contains(&format!("try: http://{}/mcp", bridge.host())), "{}", run.err);
}

/// Slips in an address, and what to type.
#[test]
fn an_address_without_its_scheme_or_path_says_what_to_type() {
    let bridge = Listening::start("", &["taut".to_owned(), "serve".to_owned()]);
    let host = bridge.host();
    for path in ["", "/", "/other"] {
        let run = run(&format!("list http://{host}{path}"), &[]).exits(4);
        assert!(run.err.contains("nothing is served here\n"), "{}", run.err);
        assert!(run.err.contains(&format!("try: http://{host}/mcp\n")), "{}", run.err);
    }
    let run = run(&format!("list {host}"), &[]).exits(2);
    assert!(run.err.contains(&format!("try: http://{host}/mcp, or tcp:{host}\n")), "{}", run.err);
    let run = super::run(&format!("list {host}/x"), &[]).exits(2);
    assert!(run.err.contains(&format!("try: http://{host}/x, or")), "{}", run.err);
    super::run(&format!("list tcp://{host}"), &[]).exits(0);
}

/// Every command that starts a server takes one that listens.
#[test]
fn a_server_at_a_url_can_be_traced() {
    let bridge = Listening::start("", &["taut".to_owned(), "serve".to_owned()]);
    let file = temporary().join("traced-over-http.jsonl");
    for address in [format!("http://{}/mcp", bridge.host()), format!("tcp:{}", bridge.host())] {
        let words = ["taut", "trace", "--record", file.to_str().unwrap(), &address];
        let run = run("call add a=2 b=3", &words.map(str::to_owned)).exits(0);
        assert_eq!(run.out, "{\"sum\":5}\n");
        let seen = super::run(&format!("trace view {}", file.display()), &[]).exits(0).out;
        assert!(seen.contains("tools/call add"), "{seen}");
    }
}
