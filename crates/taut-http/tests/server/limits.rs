//! Limits in time and in bytes, on real sockets: durations of any length, refusals that arrive, messages that
//! never end.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body::Frame;
use serde_json::json;
use taut::transport::{ByteBudget, MessageService, Principal, SocketBounds};
use taut_http::server::Options;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use crate::support::{
    Running, call, direct, fixture, initialize, modern_post, post_bytes, running, until, within,
};

type Set = fn(Options, Duration) -> Options;

/// Every option that is a time.
const DURATIONS: [(&str, Set); 8] = [
    ("header_timeout", Options::header_timeout),
    ("body_timeout", Options::body_timeout),
    ("stall_timeout", Options::stall_timeout),
    ("session_idle", Options::session_idle),
    ("drain", Options::drain),
    ("keep_alive", Options::keep_alive),
    ("json_window", Options::json_window),
    ("poll_after", |options, time| options.poll_after(time, time)),
];

/// A table with a row for each option, so that a new one gets its row.
#[test]
fn the_table_of_durations_is_whole() {
    let source = include_str!("../../src/server/options.rs");
    let takes_time = |line: &&str| line.contains("pub fn ") && line.contains("Duration");
    for line in source.lines().filter(takes_time) {
        let name = line.trim().trim_start_matches("pub fn ").split('(').next().unwrap();
        assert!(DURATIONS.iter().any(|(known, _)| *known == name), "{name} has no row");
    }
}

/// A modern and a legacy call that are answered on streams, and a line, with these options.
async fn streams_are_served(name: &str, options: Options) {
    let server = running(options).await;
    let level = json!({ "io.modelcontextprotocol/logLevel": "debug" });
    let mut modern = server.connect().await;
    modern.send(modern_post("tools/call", json!({ "name": "lines", "_meta": level }))).await;
    let mut legacy = server.connect().await;
    legacy.send(post_bytes("", &initialize("2025-11-25").to_string())).await;
    let mut session = String::new();
    loop {
        let line = legacy.line().await.to_ascii_lowercase();
        if let Some(id) = line.strip_prefix("mcp-session-id: ") {
            session = format!("Mcp-Session-Id: {id}");
        }
        if line.is_empty() {
            break;
        }
    }
    let mut legacy = server.connect().await;
    legacy.send(post_bytes(&session, &call(1, "lines").to_string())).await;
    for wire in [&mut modern, &mut legacy] {
        while !wire.line().await.contains("first") {}
    }
    server.shared.gate.add_permits(2);
    for wire in [&mut modern, &mut legacy] {
        loop {
            let line = wire.line().await;
            assert!(!line.contains("error"), "{name}: {line}");
            if line.contains("done") {
                break;
            }
        }
    }
    let mut lines = server.connect().await;
    lines.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await;
    assert!(lines.line().await.contains("result"), "{name}");
    drop((modern, legacy, lines));
    within(server.stop()).await;
}

/// "For ever" is a duration like any other. H14.
#[tokio::test]
async fn every_duration_may_be_the_longest() {
    for (name, set) in DURATIONS {
        streams_are_served(name, set(Options::new(), Duration::MAX)).await;
    }
    let all = DURATIONS.iter().fold(Options::new(), |all, (_, set)| set(all, Duration::MAX));
    streams_are_served("all", all).await;
}

/// A client that writes its whole body before it reads gets the answer to it: bytes that nobody read would reset
/// the connection, and the answer with it. H12.
#[tokio::test]
async fn a_refusal_reaches_a_client_that_writes_first() {
    let server = running(Options::new()).await;
    for mib in [4.2, 5.5, 8.0, 20.0] {
        let body = "x".repeat((mib * f64::from(1 << 20)) as usize);
        let whole = post_bytes("", &body);
        let chunked = post_bytes("Transfer-Encoding: chunked", "")
            .replace("Content-Length: 0\r\n", "")
            + &format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        for bytes in [whole, chunked] {
            let mut wire = server.connect().await;
            wire.send(bytes).await;
            let (status, answer) = wire.response().await;
            assert!(status == 413 && answer.contains("4194304 bytes"), "{mib}: {status} {answer}");
        }
    }
    server.stop().await;
}

/// The same where no place is free. H12.
#[tokio::test]
async fn a_client_that_writes_first_learns_that_too_many_are_connected() {
    let server = running(Options::new().connections(1)).await;
    let mut first = server.connect().await;
    first.send(modern_post("tools/call", json!({ "name": "echo" }))).await;
    assert_eq!(first.response().await.0, 200);
    for bytes in [modern_post("tools/call", json!({ "name": "echo" })), "x".repeat(3 << 20)] {
        let mut wire = server.connect().await;
        wire.send(bytes).await;
        let answer = wire.rest().await;
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("too many"), "{answer}");
        assert!(answer.to_ascii_lowercase().contains("retry-after: "), "{answer}");
    }
    server.stop().await;
}

/// The same for what is refused on lines and in frames.
#[tokio::test]
async fn a_refusal_on_lines_reaches_a_client_that_writes_first() {
    let server = running(Options::new().token("a token for this test")).await;
    let mut wire = server.connect().await;
    wire.send(format!("{{\"a\":\"{}\"}}\n", "x".repeat(6 << 20))).await;
    assert!(wire.rest().await.contains("HTTP only"));
    server.stop().await;
}

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// A server whose clients have a short time for each message.
async fn hasty() -> Running {
    running(Options::new().body_timeout(Duration::from_millis(300))).await
}

/// A line or a frame that has begun has to end within the time for a body. H16.
#[tokio::test]
async fn a_line_or_frame_that_does_not_end_is_given_up() {
    let server = hasty().await;
    let whole_frame = format!("Content-Length: {}\r\n\r\n{PING}", PING.len());
    let begun = [
        ("{".to_owned(), 0),
        ("[".to_owned(), 0),
        (PING.to_owned(), 0),
        (format!("{PING}\n{{\"jsonrpc\""), 1),
        ("Content-Length: 99999999\r\n\r\n".to_owned(), 0),
        ("Content-Length: 40".to_owned(), 0),
        ("Content-Length: 40\r\n\r\n{".to_owned(), 0),
        (format!("{whole_frame}Content-Length: 4000\r\n\r\n{PING}"), 1),
    ];
    for (bytes, pongs) in begun {
        let mut wire = server.connect().await;
        wire.send(&bytes).await;
        let told = wire.rest().await;
        assert_eq!(told.matches("\"result\":{}").count(), pongs, "{bytes:?}: {told}");
        assert!(told.contains("did not end within 300ms"), "{bytes:?}: {told}");
    }
    server.stop().await;
}

/// One that sends a byte now and then is no better.
#[tokio::test]
async fn a_line_that_trickles_is_given_up() {
    let server = hasty().await;
    let mut wire = server.connect().await;
    wire.send("{").await;
    let begun = std::time::Instant::now();
    let mut told = [0; 200];
    while wire.stream.try_read(&mut told).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it is never given up");
        wire.send(" ").await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(String::from_utf8_lossy(&told).contains("did not end within 300ms"));
    server.stop().await;
}

/// A client between two messages may be silent for as long as it likes. H16.
#[tokio::test]
async fn a_client_that_is_idle_between_messages_is_kept() {
    let server = hasty().await;
    let mut lines = server.connect().await;
    let mut frames = server.connect().await;
    let frame = format!("Content-Length: {}\r\n\r\n{PING}", PING.len());
    for _ in 0..2 {
        lines.send(format!("{PING}\n\n")).await;
        assert!(lines.line().await.contains("\"result\":{}"));
        frames.send(format!("{frame}\r\n")).await;
        while !frames.line().await.is_empty() {}
        let mut begun = server.connect().await;
        begun.send("{").await;
        // Its time is over, so that of the others would be.
        begun.rest().await;
    }
    server.stop().await;
}

/// A whole POST whose body is `length` bytes of blanks and a call.
fn large(tool: &str, length: usize) -> String {
    let small = modern_post("tools/call", json!({ "name": tool }));
    let (head, body) = small.split_once("\r\n\r\n").unwrap();
    let old = format!("Content-Length: {}", body.len());
    let new = format!("Content-Length: {}", body.len() + length);
    format!("{}\r\n\r\n{}{body}", head.replace(&old, &new), " ".repeat(length))
}

/// A body that stops before its end.
struct Parked {
    piece: Option<Bytes>,
    /// Set once the piece was taken and more is waited for.
    waited_for: Arc<AtomicBool>,
}

impl http_body::Body for Parked {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.piece.take() {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            None => {
                self.waited_for.store(true, Ordering::SeqCst);
                Poll::Pending
            }
        }
    }
}

/// Options with room for one megabyte of bodies, and how often a large one was released.
fn narrow() -> (Options, Arc<AtomicUsize>) {
    let released = Arc::new(AtomicUsize::new(0));
    let counted = released.clone();
    let options = Options::new().bodies(1 << 20).body_limit(900_000);
    (options.on_release(move || _ = counted.fetch_add(1, Ordering::SeqCst)), released)
}

/// All bodies together have a bound. What is small passes, and what is gone makes room and is told of.
/// H15.
#[tokio::test]
async fn bodies_of_all_connections_together_are_bounded() {
    let (options, released) = narrow();
    let (http, _) = direct(options);
    let waited_for = Arc::new(AtomicBool::new(false));
    let piece = Some(Bytes::from(vec![b' '; 600_000]));
    let body = Parked { piece, waited_for: waited_for.clone() };
    let request = Request::post("/mcp").header("host", "localhost");
    let request = request.header("content-type", "application/json").body(body).unwrap();
    let service = http.0.clone();
    let parked = tokio::spawn(async move { service.handle(request).await });
    until("it is parked", || waited_for.load(Ordering::SeqCst)).await;
    let big = initialize("2025-11-25").to_string() + &" ".repeat(600_000);
    let refused = http.post(&[], &big).await;
    assert_eq!((refused.status.as_u16(), refused.header("retry-after").is_some()), (503, true));
    assert_eq!(refused.header("connection").as_deref(), Some("close"));
    assert!(refused.text().await.contains("memory for bodies"));
    assert_eq!(http.post(&[], initialize("2025-11-25")).await.status, 200);
    let before = released.load(Ordering::SeqCst);
    parked.abort();
    until("it is told", || released.load(Ordering::SeqCst) == before + 1).await;
    assert_eq!(http.post(&[], &big).await.status, 200);
}

/// The same for lines and frames that have not ended: the connection ends, and its client is told why.
/// H15.
#[tokio::test]
async fn lines_and_frames_that_have_not_ended_are_bounded_together() {
    let server = fixture().0;
    let budget = ByteBudget::new(1 << 20);
    let open = || {
        let (near, far) = tokio::io::duplex(64 << 10);
        let bounds = SocketBounds::new().budget(&budget);
        let served = server.serve_socket_within(Box::new(far), Principal::ANONYMOUS, bounds);
        (near, tokio::spawn(served))
    };
    let line = format!("{{\"a\":\"{}", " ".repeat(600_000));
    let frame = format!("Content-Length: 700000\r\n\r\n{line}");
    for parked in [&line, &frame] {
        let (mut wire, _served) = open();
        wire.write_all(parked.as_bytes()).await.unwrap();
        until("it is held", || budget.held() > 580_000).await;
        for other in [&line, &frame] {
            let (mut wire, served) = open();
            // It may be refused before all is written.
            let _ = wire.write_all(other.as_bytes()).await;
            let mut told = String::new();
            within(wire.read_to_string(&mut told)).await.unwrap();
            assert!(told.contains("messages that have not ended"), "{told}");
            assert!(matches!(within(served).await.unwrap(), taut::Ending::Unfinished));
        }
        let (mut small, _served) = open();
        small.write_all(format!("{PING}\n").as_bytes()).await.unwrap();
        let mut pong = String::new();
        within(BufReader::new(&mut small).read_line(&mut pong)).await.unwrap();
        assert!(pong.contains("result"), "{pong}");
        drop(wire);
        until("it is released", || budget.held() == 0).await;
    }
}

/// The body of a call counts for as long as the call runs.
#[tokio::test]
async fn a_body_counts_until_its_call_is_answered() {
    let (options, released) = narrow();
    let server = running(options).await;
    let mut wire = server.connect().await;
    wire.send(large("gated", 600_000)).await;
    until("the call runs", || server.shared.running.load(Ordering::SeqCst) == 1).await;
    assert_eq!(is_served(&server, &large("echo", 600_000)).await.0, 503);
    assert_eq!(released.load(Ordering::SeqCst), 1, "only the one that was refused");
    server.shared.gate.add_permits(1);
    assert_eq!(wire.response().await.0, 200);
    until("it is told", || released.load(Ordering::SeqCst) == 2).await;
    assert_eq!(is_served(&server, &large("echo", 600_000)).await.0, 200);
    server.stop().await;
}

async fn is_served(server: &Running, post: &str) -> (u16, String) {
    let mut wire = server.connect().await;
    wire.send(post).await;
    wire.response().await
}
