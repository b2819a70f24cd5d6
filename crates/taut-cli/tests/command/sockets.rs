//! Sockets: who may connect to `taut bridge --listen`, and the other commands on the asking side.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::bridge::nothing_is_left;
use super::*;

/// A bridge that listens.
struct Listening {
    child: Child,
    /// As the other commands take it.
    address: String,
}

impl Listening {
    fn start(options: &str, server: &[String]) -> Self {
        let words = ["bridge"].into_iter().chain(options.split_whitespace()).map(str::to_owned);
        let mut child =
            taut(words.chain(["--".to_owned()]).chain(server.iter().cloned())).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
        let address = address.trim().to_owned();
        assert!(!address.is_empty(), "{:?}", child.wait_with_output());
        Self { child, address }
    }

    /// Ends it, and returns its stderr.
    fn end(mut self) -> String {
        kill_process(Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap(), Signal::TERM)
            .unwrap();
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{said}");
        said
    }

    fn port(&self) -> &str {
        self.address.strip_prefix("tcp:").unwrap()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn socket(name: &str) -> PathBuf {
    // Short: the path of a socket has at most 107 bytes.
    let folder = std::env::temp_dir().join(format!("taut-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

fn unix(name: &str) -> String {
    format!("unix:{}", socket(name).display())
}

/// One client on a Unix socket, line by line.
struct Lines {
    writer: UnixStream,
    reader: BufReader<UnixStream>,
}

impl Lines {
    fn open(path: &Path) -> Self {
        let writer = UnixStream::connect(path).unwrap();
        writer.set_read_timeout(Some(DEADLINE)).unwrap();
        let reader = BufReader::new(writer.try_clone().unwrap());
        let mut lines = Self { writer, reader };
        lines.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": { "roots": {} },
            "clientInfo": { "name": "host", "version": "1" } } }));
        assert_eq!(lines.next()["id"], 0);
        lines.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        lines
    }

    fn send(&mut self, message: &Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    fn call(&mut self, id: u64, tool: &str) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": tool, "arguments": { "text": id.to_string() } } }));
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }
}

/// What a browser sends to a local port for a page of another origin, byte for byte, and more that is no message.
fn from_the_web(host: &str) -> Vec<(&'static str, Vec<u8>)> {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "echo", "arguments": { "text": "from a web page" } } });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "w", "version": "1" } } });
    let lines = format!("{hello}\n{call}\n");
    let framed = format!(
        "Content-Length: {}\r\n\r\n{hello}Content-Length: {}\r\n\r\n{call}",
        hello.to_string().len(),
        call.to_string().len()
    );
    let post_to = |path: &str, host: &str, kind: &str, body: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: keep-alive\r\nContent-Length: {}\r\n\
             sec-ch-ua-platform: \"Linux\"\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 \
             (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36\r\n{kind}Accept: */*\r\n\
             Origin: http://evil.example\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n\
             Sec-Fetch-Dest: empty\r\nReferer: http://evil.example/\r\nAccept-Encoding: gzip, deflate, br\r\n\
             Accept-Language: en-US,en;q=0.9\r\n\r\n{body}",
            body.len()
        )
    };
    let post = |kind: &str, body: &str| post_to("/", "127.0.0.1:7000", kind, body);
    let typed = |kind: &str, body: &str| post(&format!("Content-Type: {kind}\r\n"), body);
    let boundary = "------WebKitFormBoundaryA1b2C3d4E5f6G7h8";
    let part = format!(
        "{boundary}\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n{call}\r\n{boundary}--\r\n"
    );
    let preflight = "OPTIONS / HTTP/1.1\r\nHost: 127.0.0.1:7000\r\nOrigin: http://evil.example\r\n\
        Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type\r\n\r\n";
    // As a page would that knows all about the port: only its origin gives it away.
    let known = |kind: &str, body: &str| {
        let kind = format!(
            "Content-Type: {kind}\r\nMCP-Protocol-Version: 2025-11-25\r\nX-Accept: application/json, text/event-stream\r\n"
        );
        let text = post_to("/mcp", host, &kind, body);
        text.replace("Accept: */*\r\n", "").replace("X-Accept:", "Accept:")
    };
    vec![
        ("at /mcp, application/json", known("application/json", &hello.to_string()).into()),
        ("at /mcp, a call", known("application/json", &call.to_string()).into()),
        ("at /mcp, text/plain", known("text/plain;charset=UTF-8", &hello.to_string()).into()),
        ("at /mcp, lines", known("text/plain", &lines).into()),
        ("fetch, text/plain", typed("text/plain;charset=UTF-8", &lines).into()),
        ("fetch, without a type", post("", &lines).into()),
        ("fetch, application/json", typed("application/json", &call.to_string()).into()),
        ("fetch, an odd type", typed("a/b", &lines).into()),
        ("fetch, framed messages", typed("text/plain", &framed).into()),
        ("form, text/plain", typed("text/plain", &format!("{call}=\r\n")).into()),
        ("form, urlencoded", typed("application/x-www-form-urlencoded", &lines).into()),
        (
            "form, multipart",
            typed(&format!("multipart/form-data; boundary={}", &boundary[2..]), &part).into(),
        ),
        ("beacon that begins with a newline", typed("text/plain", &format!("\n\n{lines}")).into()),
        ("preflight", preflight.into()),
        ("GET with a body", format!("GET / HTTP/1.1\r\nHost: a\r\n\r\n{lines}").into()),
        ("an unknown method", format!("BREW / HTTP/1.1\r\n\r\n{lines}").into()),
        ("HTTP/2", format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{lines}").into()),
        (
            "TLS",
            [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".as_slice(), lines.as_bytes()].concat(),
        ),
        (
            "WebSocket",
            format!("GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n{lines}")
                .into(),
        ),
        ("blank lines before it", format!("\r\n\r\n{}", typed("text/plain", &lines)).into()),
        ("a header of ours before it", format!("Content-Type: a\r\nHost: b\r\n\r\n{lines}").into()),
    ]
}

/// Must show 4.
#[test]
fn what_a_web_page_sends_runs_nothing_and_is_closed() {
    let bridge =
        Listening::start("--listen 127.0.0.1:0", &server("2025-11-25 log-stdin sockets-web"));
    for (what, bytes) in &from_the_web(bridge.port()) {
        // At once, and in pieces, with the body in a packet of its own.
        for pieces in [1, 7] {
            let mut socket = TcpStream::connect(bridge.port()).unwrap();
            socket.set_read_timeout(Some(DEADLINE)).unwrap();
            socket.set_nodelay(true).unwrap();
            let size = bytes.len().div_ceil(pieces);
            for piece in bytes.chunks(size) {
                // It may be closed by then.
                let _ = socket.write_all(piece);
                std::thread::sleep(Duration::from_millis(if pieces == 1 { 0 } else { 5 }));
            }
            // A browser keeps the connection for its next request: the end has to come from the bridge.
            let mut said = Vec::new();
            // Closed with bytes of ours unread is "connection reset".
            let end = socket.read_to_end(&mut said);
            let reset =
                |error: &std::io::Error| error.kind() == std::io::ErrorKind::ConnectionReset;
            assert!(end.is_ok() || end.as_ref().is_err_and(reset), "{what}: {end:?}");
            let said = String::from_utf8_lossy(&said);
            assert!(!said.contains("result"), "{what}: {said}");
            let status = said.strip_prefix("HTTP/1.1 ").map(|rest| rest.split(' ').next().unwrap());
            assert!(status.is_none_or(|status| status.starts_with(['4', '5'])), "{what}: {said}");
            // A page is told that it is one, at whatever path, unless the end of its bytes was seen first.
            if String::from_utf8_lossy(bytes).contains("Origin: http://evil.example") {
                assert!(status.is_none_or(|status| status == "403"), "{what}: {said}");
            }
        }
    }
    // The server was never even started, and whoever speaks MCP is still served.
    let servers = processes_with("sockets-web");
    assert_eq!(servers, [bridge.child.id()]);
    let run: Run = taut(["call", "echo", "--args", r#"{"text":"mine"}"#, &bridge.address])
        .output()
        .unwrap()
        .into();
    assert_eq!(run.exits(0).out, "mine\n");
    let said = bridge.end();
    assert!(!said.contains("from a web page"), "{said}");
    nothing_is_left("sockets-web");
}

/// Only this user, and only with a file that is ours.
#[test]
fn a_unix_socket_is_private_and_replaces_only_what_is_left_of_its_own() {
    let (path, word) = (socket("private"), unix("private"));
    let demo = ["taut".to_owned(), "serve".to_owned()];
    let bridge = Listening::start(&format!("--listen {word}"), &demo);
    let about = std::fs::symlink_metadata(&path).unwrap();
    assert!(about.file_type().is_socket());
    assert_eq!(about.permissions().mode() & 0o777, 0o600);

    let second = run(&format!("bridge --listen {word}"), &demo).exits(2);
    assert!(second.err.contains("somebody listens there already"), "{}", second.err);
    bridge.end();
    assert!(!path.exists(), "the file is removed at the end");

    // One that was killed leaves its file; the next takes its place.
    let mut bridge = Listening::start(&format!("--listen {word}"), &demo);
    bridge.child.kill().unwrap();
    bridge.child.wait().unwrap();
    assert!(path.exists());
    let bridge = Listening::start(&format!("--listen {word}"), &demo);
    run(&format!("list tools {word}"), &[]).exits(0);
    // Another's socket in its place is left alone at the end.
    std::fs::remove_file(&path).unwrap();
    let other = UnixListener::bind(&path).unwrap();
    bridge.end();
    assert!(path.exists());
    drop(other);
    std::fs::remove_file(&path).unwrap();

    std::fs::write(&path, "precious").unwrap();
    let refused = run(&format!("bridge --listen {word}"), &demo).exits(2);
    assert!(refused.err.contains("no socket, and it is left alone"), "{}", refused.err);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn tcp_is_for_this_machine_only() {
    let demo = ["taut".to_owned(), "serve".to_owned()];
    for host in ["0.0.0.0", "[::]", "192.0.2.1", "example.com"] {
        let refused = run(&format!("bridge --listen {host}:7000"), &demo).exits(2);
        assert!(refused.err.contains("only clients on this machine are served"), "{}", refused.err);
        assert!(refused.err.contains("--listen 127.0.0.1:7000"), "{}", refused.err);
    }
    let refused = run("bridge --listen 7000", &demo).exits(2);
    assert!(refused.err.contains("expected HOST:PORT or unix:PATH"), "{}", refused.err);
}

#[test]
fn a_client_too_many_is_told_so() {
    let word = unix("full");
    let bridge =
        Listening::start(&format!("--listen {word} --max-connections 2"), &server("2025-11-25"));
    let mut first = Lines::open(&socket("full"));
    let second = Lines::open(&socket("full"));
    let mut third = UnixStream::connect(socket("full")).unwrap();
    third.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut said = String::new();
    third.read_to_string(&mut said).unwrap();
    assert!(said.contains("too many connections"), "{said}");
    first.call(1, "echo");
    assert_eq!(first.next()["result"]["content"][0]["text"], "1");
    drop(second);
    // The place is free again.
    eventually("there is room", || {
        let mut next = UnixStream::connect(socket("full")).unwrap();
        next.set_read_timeout(Some(DEADLINE)).unwrap();
        next.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}\n").unwrap();
        let mut said = String::new();
        let _ = BufReader::new(next).read_line(&mut said);
        said.contains("\"id\":9")
    });
    bridge.end();
}

/// Two clients share a server, and the server asks a question: it reaches the one that it certainly belongs to, and
/// nobody while it may belong to both, also if one of the two calls is cancelled: its server may go on with it. T9.
#[test]
fn a_question_never_reaches_the_wrong_client() {
    let word = unix("question");
    let options = format!("--listen {word} --children 1");
    let bridge = Listening::start(&options, &server("2025-11-25 sockets-question"));
    let (mut asking, mut other) =
        (Lines::open(&socket("question")), Lines::open(&socket("question")));
    other.call(2, "echo");
    assert_eq!(other.next()["id"], 2);
    asking.call(6, "ask");
    let question = asking.next();
    assert_eq!(question["method"], "roots/list", "{question}");
    asking.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "error": { "code": -32001, "message": "no" } }));
    let ends = |asking: &mut Lines, id: u64, code: &str| {
        let answer = asking.next();
        let text = &answer["result"]["content"][0]["text"];
        assert_eq!((&answer["id"], text), (&json!(id), &json!(code)));
    };
    ends(&mut asking, 6, "-32001");
    other.call(1, "never");
    // In order: the answer to this one says that the call before it is open.
    other.call(3, "echo");
    assert_eq!(other.next()["id"], 3);
    asking.call(7, "ask");
    other.call(4, "echo");
    assert_eq!(other.next()["id"], 4, "the question is held");
    other.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }));
    ends(&mut asking, 7, "-32603");
    other.call(5, "echo");
    assert_eq!(other.next()["id"], 5, "nothing else came");
    bridge.end();
    nothing_is_left("sockets-question");
}

/// Each legacy session has a server of its own, which ends with it. T9.
#[test]
fn sessions_do_not_share_a_server() {
    let word = unix("own");
    let bridge = Listening::start(&format!("--listen {word}"), &server("2025-11-25 sockets-own"));
    let (mut one, mut two) = (Lines::open(&socket("own")), Lines::open(&socket("own")));
    one.call(1, "die");
    assert!(one.next()["error"]["message"].as_str().unwrap().contains("tools/call"));
    two.call(2, "echo");
    assert_eq!(two.next()["result"]["content"][0]["text"], "2");
    drop(two);
    one.call(3, "echo");
    assert_eq!(one.next()["id"], 3, "started again");
    drop(one);
    // The bridge has it in its command line; the servers in their environment.
    let servers = || {
        let all = processes_with("sockets-own").into_iter();
        all.filter(|pid| *pid != bridge.child.id()).count()
    };
    eventually("no session, no server", || servers() == 0);
    bridge.end();
}

/// A server that floods its own client costs the others nothing.
#[test]
fn a_server_that_floods_holds_up_no_other_client() {
    let word = unix("floods");
    let options = format!("--listen {word} --drain 300ms");
    let bridge = Listening::start(&options, &server("2025-11-25 sockets-floods"));
    let (mut flooded, mut other) = (Lines::open(&socket("floods")), Lines::open(&socket("floods")));
    flooded.call(1, "endless");
    for id in 2..50 {
        other.call(id, "echo");
        assert_eq!(other.next()["result"]["content"][0]["text"], id.to_string());
    }
    drop(flooded);
    other.call(50, "echo");
    assert_eq!(other.next()["id"], 50);
    bridge.end();
    nothing_is_left("sockets-floods");
}

/// On a socket as on stdin and stdout.
#[test]
fn a_signal_lets_open_calls_on_sockets_finish() {
    let word = unix("drain");
    let demo = ["taut".to_owned(), "serve".to_owned()];
    let bridge = Listening::start(&format!("--listen {word}"), &demo);
    let mut client = Lines::open(&socket("drain"));
    client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "slow", "arguments": { "steps": 4, "step_ms": 250 } } }));
    client.call(2, "echo");
    assert_eq!(client.next()["id"], 2);
    let ended = std::thread::spawn(|| bridge.end());
    let answer = client.next();
    assert_eq!(answer["id"], 1, "{answer}");
    assert!(answer["result"].is_object(), "{answer}");
    ended.join().unwrap();
    assert!(UnixStream::connect(socket("drain")).is_err());
}

/// Wherever a name may stand.
#[test]
fn every_command_takes_an_address() {
    let demo = ["taut".to_owned(), "serve".to_owned()];
    let unix_word = unix("asking");
    for (listen, by_url) in
        [(unix_word.as_str(), false), ("127.0.0.1:0", false), ("127.0.0.1:0", true)]
    {
        let bridge = Listening::start(&format!("--listen {listen}"), &demo);
        let url = format!("{}/mcp", bridge.address.replace("tcp:", "http://"));
        let at = if by_url { url.as_str() } else { bridge.address.as_str() };
        let table = [
            (format!("list tools {at}"), "echo"),
            (format!("call add a=2 b=3 {at}"), "5"),
            (format!("read demo://readme {at}"), "taut"),
            (format!("prompt greet name=Ada {at}"), "Ada"),
            (format!("complete greet language=D {at}"), "Dutch"),
            (format!("smoke {at}"), "it works"),
            (format!("doctor {at}"), "every host should get on with it"),
            (format!("watch --for 1s {at}"), ""),
            (format!("bench --quick --only sequential --cores one {at}"), "bridged"),
            (format!("call add a=2 b=3 --revision 2025-06-18 {at}"), "5"),
            (format!("call add a=2 b=3 --framing headers -s {at}"), "5"),
        ];
        for (line, expected) in table {
            let run = run(&line, &[]).exits(0);
            assert!(run.out.contains(expected), "{line}: {}", run.out);
        }
        let shell = run_with(&format!("shell {at}"), &[], "call add a=1 b=1\n").exits(0);
        assert!(shell.out.contains('2'), "{}", shell.out);
        // A bridge to a bridge.
        let chain: Run = taut(["call", "add", "a=2", "b=3", "--", "taut", "bridge", at])
            .output()
            .unwrap()
            .into();
        assert!(chain.exits(0).out.contains('5'));
        bridge.end();
    }
}

#[test]
fn an_address_that_leads_nowhere_says_what_to_do() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gone = unix("gone");
    let table = [
        (
            format!("list tcp:{free}"),
            4,
            "nobody listens on tcp:",
            "taut bridge --listen 127.0.0.1:",
        ),
        (format!("list {gone}"), 4, "there is no socket unix:", "taut bridge --listen unix:"),
        ("list tcp:7000".to_owned(), 2, "expected tcp:HOST:PORT", "tcp:127.0.0.1:7000"),
        ("list unix:".to_owned(), 2, "needs the path", "unix:/"),
        (format!("smoke tcp:{free}"), 4, "nobody listens", ""),
        (format!("doctor tcp:{free}"), 4, "", ""),
        (
            format!("check tcp:{free}"),
            2,
            "one that listens cannot be started",
            "taut check -- COMMAND",
        ),
    ];
    for (line, code, what, next) in table {
        let run = run(&line, &[]).exits(code);
        let said = format!("{}{}", run.out, run.err);
        assert!(said.contains(what) && said.contains(next), "{line}: {said}");
    }
    // Somebody listens, and speaks something else.
    let web = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = web.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut client, _) = web.accept().unwrap();
        let _ = client.read(&mut [0; 1024]);
        client.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").unwrap();
    });
    let began = Instant::now();
    let run = run(&format!("list tcp:{at}"), &[]).exits(4);
    server.join().unwrap();
    // Not after the 30 s that a server may take to start.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(run.err.contains("error: "), "{}", run.err);
}
