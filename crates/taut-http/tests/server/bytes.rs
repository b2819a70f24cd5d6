//! Bad input as bytes on a socket: each is refused with words or closed, in bounded time, and the
//! next connection is served.

use std::time::Duration;

use serde_json::json;
use taut_http::server::Options;
use tokio::io::AsyncWriteExt;

use crate::support::{Running, call, initialize, modern_post, post_bytes, running, within};

/// A server with short limits.
async fn strict() -> Running {
    let limit = Duration::from_millis(300);
    running(Options::new().header_timeout(limit).body_timeout(limit).body_limit(10_000)).await
}

async fn is_served(server: &Running) {
    let mut wire = server.connect().await;
    wire.send(modern_post("tools/call", json!({ "name": "echo" }))).await;
    let (status, body) = wire.response().await;
    assert!(status == 200 && body.contains("echoed"), "{status} {body}");
}

/// Sends `bytes`, and gives everything that comes until the connection is closed.
async fn exchange(server: &Running, bytes: impl AsRef<[u8]>) -> String {
    let mut wire = server.connect().await;
    wire.send(bytes).await;
    let answer = wire.rest().await;
    is_served(server).await;
    answer
}

fn status(answer: &str) -> &str {
    answer.lines().next().unwrap_or_default()
}

/// HTP-13: a body over the limit is refused without being read, with a length and without.
#[tokio::test]
async fn htp_13_a_body_over_the_limit_is_413_at_once() {
    let server = strict().await;
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    // Announced, and never sent.
    let answer = exchange(&server, format!("{head}Content-Length: 999999999\r\n\r\n")).await;
    assert_eq!(status(&answer), "HTTP/1.1 413 Payload Too Large");
    assert!(answer.contains("10000 bytes"), "{answer}");
    // A chunked body without end.
    let mut wire = server.connect().await;
    wire.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n")).await;
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000));
    for _ in 0..8 {
        // It may be refused before all is written.
        let _ = wire.stream.write_all(chunk.as_bytes()).await;
    }
    assert_eq!(status(&wire.rest().await), "HTTP/1.1 413 Payload Too Large");
    is_served(&server).await;
    server.stop().await;
}

/// Half a body, and a body that comes too slowly: 408.
#[tokio::test]
async fn half_a_body_is_408() {
    let server = strict().await;
    let whole = post_bytes("", &initialize("2025-11-25").to_string());
    let answer = exchange(&server, &whole[..whole.len() - 10]).await;
    assert_eq!(status(&answer), "HTTP/1.1 408 Request Timeout");
    assert!(answer.contains("in time"), "{answer}");
    // A client that closes instead: nothing is opened.
    let mut wire = server.connect().await;
    wire.send(&whole[..whole.len() - 10]).await;
    wire.stream.shutdown().await.unwrap();
    wire.rest().await;
    is_served(&server).await;
    server.stop().await;
}

/// Endless heads: 431, and long before the time for a head is over. Slow ones: closed.
#[tokio::test]
async fn endless_and_slow_heads() {
    let server = running(Options::new()).await;
    let mut wire = server.connect().await;
    wire.send("GET /mcp HTTP/1.1\r\n").await;
    let line = format!("X-Long: {}\r\n", "x".repeat(4000));
    for _ in 0..40 {
        if wire.stream.write_all(line.as_bytes()).await.is_err() {
            break;
        }
    }
    let answer = wire.rest().await;
    assert!(status(&answer).starts_with("HTTP/1.1 431 "), "{answer}");
    is_served(&server).await;
    server.stop().await;
    let server = strict().await;
    for slow in ["", "P", "POST /mcp HTTP/1.1\r\nHost: local", "\r\n\r\n", "Content-Le"] {
        let mut wire = server.connect().await;
        wire.send(slow).await;
        let answer = wire.rest().await;
        assert!(answer.is_empty() || status(&answer).contains(" 408 "), "{slow:?} {answer}");
    }
    is_served(&server).await;
    server.stop().await;
}

/// What is no request at all.
#[tokio::test]
async fn other_protocols_on_a_plain_port() {
    let server = strict().await;
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let answer = exchange(&server, preface).await;
    assert_eq!(status(&answer), "HTTP/1.1 505 HTTP Version Not Supported");
    assert!(answer.contains("use HTTP/1.1"), "{answer}");
    let hello = [0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03];
    let answer = exchange(&server, hello).await;
    assert!(status(&answer).contains(" 400 ") && answer.contains("TLS"), "{answer}");
    assert_eq!(exchange(&server, "SSH-2.0-OpenSSH_9.6\r\n").await, "");
    assert_eq!(exchange(&server, vec![b' '; 5000]).await, "");
    let answer = exchange(&server, "POST /mcp SPDY/3\r\n\r\n").await;
    assert!(answer.is_empty() || status(&answer).contains(" 400 "), "{answer}");
    server.stop().await;
}

/// HTTP/1.0, `Expect: 100-continue`, no `Accept`, and requests that are sent ahead.
#[tokio::test]
async fn unusual_but_good_requests_are_served() {
    let server = running(Options::new()).await;
    // Without `Accept`, which means that anything is accepted.
    let post = post_bytes("", &initialize("2025-11-25").to_string());
    let post = post.replace("Accept: application/json, text/event-stream\r\n", "");
    let mut wire = server.connect().await;
    wire.send(&post).await;
    assert_eq!(wire.response().await.0, 200);
    // HTTP/1.0: one answer, then the end.
    let old = modern_post("tools/call", json!({ "name": "echo" }));
    let old = old.replace("HTTP/1.1", "HTTP/1.0");
    let answer = exchange(&server, old).await;
    assert!(status(&answer).ends_with(" 200 OK") && answer.contains("echoed"), "{answer}");
    // The body is sent only after the server agrees to read it.
    let post = post_bytes("Expect: 100-continue", &initialize("2025-11-25").to_string());
    let (head, body) = post.split_once("\r\n\r\n").unwrap();
    let mut wire = server.connect().await;
    wire.send(format!("{head}\r\n\r\n")).await;
    assert_eq!(wire.line().await, "HTTP/1.1 100 Continue");
    assert_eq!(wire.line().await, "");
    wire.send(body).await;
    assert_eq!(wire.response().await.0, 200);
    // Refused before the body is read: no 100.
    let mut wire = server.connect().await;
    wire.send(format!("{head}\r\n\r\n").replace("Host: localhost", "Host: evil.example")).await;
    assert_eq!(wire.line().await, "HTTP/1.1 403 Forbidden");
    // Three requests at once are answered in their order.
    let mut wire = server.connect().await;
    let ahead =
        ["echo", "who", "none"].map(|tool| modern_post("tools/call", json!({ "name": tool })));
    wire.send(ahead.concat()).await;
    assert!(wire.response().await.1.contains("echoed"));
    assert!(wire.response().await.1.contains("nobody"));
    assert_eq!(wire.response().await.0, 400);
    server.stop().await;
}

/// Every refusal has words, whatever is wrong, and says what to change (HTP-03, HTP-04).
#[tokio::test]
async fn refusals_say_what_to_change() {
    let server = running(Options::new()).await;
    let session = call(1, "echo").to_string();
    let table = [
        (post_bytes("", &session), 400, "Mcp-Session-Id"),
        (post_bytes("Mcp-Session-Id: x", &session), 404, "initialize"),
        (post_bytes("", "{"), 400, "JSON"),
        (
            post_bytes("", &session).replace("application/json\r\n", "text/plain\r\n"),
            415,
            "Content-Type",
        ),
        (post_bytes("", &session).replace("text/event-stream", "text/html"), 406, "Accept"),
        (post_bytes("Origin: https://evil.example", &session), 403, "allow_origin"),
        (
            post_bytes("", &session).replace("Host: localhost", "Host: evil.example"),
            403,
            "allow_host",
        ),
        (post_bytes("", &session).replace("Host: localhost\r\n", ""), 400, "Host"),
        (post_bytes("", &session).replace("/mcp", "/"), 404, "/mcp"),
        (post_bytes("", &session).replace("POST /mcp", "PUT /mcp"), 405, "POST"),
        (post_bytes("MCP-Protocol-Version: 1\r\nMcp-Session-Id: x", &session), 400, "version"),
        (post_bytes("Mcp-Session-Id: a\r\nMcp-Session-Id: b", &session), 400, "twice"),
    ];
    for (post, code, words) in table {
        let mut wire = server.connect().await;
        wire.send(&post).await;
        let (status, body) = wire.response().await;
        assert_eq!(status, code, "{post}\n{body}");
        assert!(body.contains(words), "{words}: {body}");
    }
    // A slash at the end is forgiven.
    let mut wire = server.connect().await;
    wire.send(post_bytes("", &initialize("2025-11-25").to_string()).replace("/mcp", "/mcp/")).await;
    assert_eq!(within(wire.response()).await.0, 200);
    server.stop().await;
}
