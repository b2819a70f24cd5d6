//! Streams that are read on after a lost connection.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use taut_http::server::Options;

use crate::support::{call, direct, until};

/// HCN-01, SSE-08, SSE-09: a lost connection cancels nothing; the client reads on after the last event
/// that it saw, and gets nothing of another stream.
#[tokio::test]
async fn hcn_01_and_sse_08_and_09_a_lost_stream_is_read_on() {
    let (http, shared) = direct(Options::new());
    let session = http.open("2025-11-25").await;
    let headers = [("mcp-session-id", session.as_str())];
    let mut lost = http.post(&headers, call(1, "lines")).await;
    lost.event().await.unwrap();
    let seen = lost.event().await.unwrap();
    assert_eq!(seen.data["params"]["data"], "first");
    drop(lost);
    let mut other = http.post(&headers, call(2, "talk")).await;
    other.event().await.unwrap();
    let elsewhere = other.event().await.unwrap().id.unwrap();
    shared.gate.add_permits(1);
    let mut again = http.get(&session, seen.id.as_deref()).await;
    // SSE-05
    assert_eq!(again.event().await.unwrap().id, seen.id);
    assert_eq!(again.event().await.unwrap().data["params"]["data"], "second");
    assert_eq!(again.event().await.unwrap().data["id"], 1);
    assert_eq!(again.event().await, None);
    assert_eq!(shared.cancelled.load(Ordering::SeqCst), 0);
    // Once more from the begin: the same, as long as it is kept.
    let stream = seen.id.as_deref().unwrap().split('.').next().unwrap().to_owned();
    let all = http.get(&session, Some(&format!("{stream}.0"))).await.text().await;
    assert_eq!(all.matches("event: message").count(), 3);
    // The other stream has its own events only.
    let other = http.get(&session, Some(&elsewhere)).await.text().await;
    assert!(other.contains("\"id\":2") && !other.contains("second"), "{other}");
}

/// SSE-09: an id of no stream of this session replays nothing.
#[tokio::test(start_paused = true)]
async fn sse_09_an_unknown_event_id_replays_nothing() {
    let (http, _) = direct(Options::new());
    let first = http.open("2025-06-18").await;
    let headers = [("mcp-session-id", first.as_str())];
    let mut stream = http.post(&headers, call(1, "talk")).await;
    let id = stream.event().await.unwrap().id.unwrap();
    drop(stream);
    let second = http.open("2025-06-18").await;
    for foreign in [id.as_str(), "99.1", "x", "1.99999999999999999999", "", "-1.2"] {
        let mut reply = http.get(&second, Some(foreign)).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.piece().await, Some(Err("keep-alive".to_owned())), "{foreign}");
    }
}

/// SSE-10: of two streams the newer gets the messages, each once; if it goes, the older goes on.
#[tokio::test(start_paused = true)]
async fn sse_10_two_get_streams_share_nothing() {
    let (http, _) = direct(Options::new());
    let session = http.open("2025-06-18").await;
    let headers = [("mcp-session-id", session.as_str())];
    let mut old = http.get(&session, None).await;
    let mut new = http.get(&session, None).await;
    http.post(&headers, call(1, "change")).await;
    assert!(new.event().await.unwrap().data["method"].is_string());
    assert_eq!(old.piece().await, Some(Err("keep-alive".to_owned())));
    drop(new);
    http.post(&headers, call(2, "change")).await;
    assert!(old.event().await.unwrap().data["method"].is_string());
    // More than four are dead twins: the oldest is closed.
    let mut streams = vec![old];
    for _ in 0..4 {
        streams.push(http.get(&session, None).await);
    }
    assert_eq!(streams[0].piece().await, None);
    assert_eq!(streams[1].piece().await, Some(Err("keep-alive".to_owned())));
}

/// SSE-04, SSE-05: a stream is closed before its end only for clients of 2025-11-25, after a `retry`.
#[tokio::test(start_paused = true)]
async fn sse_04_and_05_streams_that_are_polled() {
    let options = || Options::new().poll_after(Duration::from_secs(20), Duration::from_millis(700));
    let (http, shared) = direct(options());
    let session = http.open("2025-11-25").await;
    let mut stream = http.post(&[("mcp-session-id", session.as_str())], call(1, "gated")).await;
    assert_eq!(stream.event().await.unwrap().data, Value::Null);
    let goodbye = stream.event().await.unwrap();
    assert_eq!((goodbye.retry, &goodbye.data), (Some(700), &Value::Null));
    assert_eq!(stream.event().await, None);
    shared.gate.add_permits(1);
    let mut again = http.get(&session, goodbye.id.as_deref()).await;
    again.event().await.unwrap();
    assert_eq!(again.event().await.unwrap().data["id"], 1);
    let session = http.open("2025-06-18").await;
    let mut stream = http.post(&[("mcp-session-id", session.as_str())], call(1, "gated")).await;
    for _ in 0..4 {
        assert_eq!(stream.piece().await, Some(Err("keep-alive".to_owned())));
    }
}

/// What is kept for a client that is gone is bounded in bytes; the newest stays.
#[tokio::test]
async fn a_stream_that_nobody_reads_is_bounded() {
    let (http, _) = direct(Options::new().replay(64 << 10));
    let session = http.open("2025-06-18").await;
    let headers = [("mcp-session-id", session.as_str())];
    let mut stream = http.post(&headers, call(1, "big")).await;
    let first = stream.event().await.unwrap().id.unwrap();
    drop(stream);
    // A megabyte of log lines; the session goes on.
    crate::support::within(async {
        while http.post(&headers, call(2, "echo")).await.status != 200 {}
    })
    .await;
    let rest = http.get(&session, Some(&first)).await.text().await;
    assert!(rest.len() < 100 << 10, "{}", rest.len());
    assert!(rest.ends_with("\n\n") && rest.contains("\"id\":1"), "the answer is the newest");
}

/// A client that does not read what it asked for makes its own session wait, and is cut off.
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_not_read_is_cut_off_and_can_be_read_on() {
    let options = Options::new().replay(64 << 10).stall_timeout(Duration::from_secs(5));
    let (http, _) = direct(options);
    let session = http.open("2025-06-18").await;
    let headers = [("mcp-session-id", session.as_str())];
    let mut stream = http.post(&headers, call(1, "big")).await;
    let first = stream.event().await.unwrap().id.unwrap();
    // The other call waits until the first one's stream is given up.
    let echo = http.post(&headers, call(2, "echo")).await;
    assert!(echo.text().await.contains("echoed"));
    assert_eq!(stream.event().await, None);
    assert!(http.get(&session, Some(&first)).await.text().await.contains("\"id\":1"));
}

/// A stream that is not read makes its session's answers wait, but the session still hears what is sent to it.
#[tokio::test(start_paused = true)]
async fn a_session_hears_a_cancellation_while_a_stream_is_not_read() {
    let hour = Duration::from_secs(3600);
    let options = Options::new().replay(64 << 10).stall_timeout(hour).json_window(Duration::ZERO);
    let (http, shared) = direct(options);
    let session = http.open("2025-06-18").await;
    let headers = [("mcp-session-id", session.as_str())];
    let _waiting = http.post(&headers, call(1, "gated")).await;
    let mut unread = http.post(&headers, call(2, "big")).await;
    unread.event().await.unwrap();
    assert_eq!(shared.running.load(Ordering::SeqCst), 1);
    let cancel = serde_json::json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 }
    });
    let begin = tokio::time::Instant::now();
    assert_eq!(http.post(&headers, cancel).await.status, 202);
    until("the call is given up", || shared.cancelled.load(Ordering::SeqCst) == 1).await;
    assert!(begin.elapsed() < hour / 2, "it waited for the stream");
}

/// A question that no client has read, and that had to go, is answered, so that its call ends.
#[tokio::test]
async fn a_question_that_nobody_reads_is_refused_in_the_end() {
    let (http, shared) = direct(Options::new().replay(64 << 10).json_window(Duration::ZERO));
    let session = http.open("2025-06-18").await;
    let headers = [("mcp-session-id", session.as_str())];
    drop(http.post(&headers, call(1, "ask_loudly")).await);
    shared.gate.add_permits(1);
    let over = || shared.running.load(Ordering::SeqCst) == 1;
    until("the call has its refusal", over).await;
    // The stream of the second POST.
    let mut stream = http.get(&session, Some("2.0")).await;
    let answer = loop {
        let event = stream.event().await.unwrap().data;
        if event.get("result").is_some() {
            break event;
        }
    };
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(answer["result"]["isError"] == true && text.contains("no stream"), "{answer}");
}
