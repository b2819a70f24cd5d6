//! How long sessions live, how many there are, and whose they are.

use std::sync::atomic::Ordering;
use std::time::Duration;

use http::Method;
use taut_http::server::Options;

use crate::support::{call, direct, initialize, until};

/// SES-08: a session belongs to who opened it; to everybody else it is unknown.
#[tokio::test]
async fn ses_08_a_session_of_another_token_is_unknown() {
    let (http, _) = direct(Options::new().token("ann").token("bob"));
    let (ann, bob) = (("authorization", "Bearer ann"), ("authorization", "Bearer bob"));
    let session = http.open_as("2025-11-25", &[ann]).await;
    let id = ("mcp-session-id", session.as_str());
    for method in [Method::POST, Method::GET, Method::DELETE] {
        let reply = http.send(method.clone(), &[bob, id], call(1, "who")).await;
        assert_eq!(reply.status, 404, "{method}");
        assert_eq!(http.send(method, &[id], call(1, "who")).await.status, 401);
    }
    let reply = http.post(&[ann, id], call(1, "who")).await.json().await;
    assert_eq!(reply["result"]["content"][0]["text"], "token 1");
}

/// SES-09, SES-04: 1,000 sessions are opened and abandoned; after the idle limit all are gone, and
/// with them what served them.
#[tokio::test(start_paused = true)]
async fn ses_09_a_thousand_abandoned_sessions_end() {
    let (http, shared) = direct(Options::new().session_idle(Duration::from_secs(60)));
    let begin = std::sync::Arc::strong_count(&shared);
    let mut ids = Vec::new();
    for _ in 0..1000 {
        let reply = http.post(&[], initialize("2025-11-25")).await;
        ids.push(reply.header("mcp-session-id").unwrap());
    }
    assert_eq!(http.0.open_sessions(), 1000);
    // One is used, and one has a call under way whose client is gone.
    tokio::time::advance(Duration::from_secs(40)).await;
    let stream = http.get(&ids[0], None).await;
    drop(http.post(&[("mcp-session-id", &ids[1])], call(1, "gated")).await);
    assert_eq!(shared.running.load(Ordering::SeqCst), 1);
    tokio::time::advance(Duration::from_secs(30)).await;
    until("the others have ended", || http.0.open_sessions() == 2).await;
    tokio::time::advance(Duration::from_secs(31)).await;
    until("only the one with an open stream is left", || http.0.open_sessions() == 1).await;
    // The call heard of it.
    until("the call is given up", || shared.cancelled.load(Ordering::SeqCst) == 1).await;
    drop(stream);
    tokio::time::advance(Duration::from_secs(61)).await;
    until("none is left", || http.0.open_sessions() == 0).await;
    assert_eq!(http.post(&[("mcp-session-id", &ids[0])], call(1, "echo")).await.status, 404);
    until("nothing is held", || std::sync::Arc::strong_count(&shared) == begin).await;
}

/// The number of sessions is bounded, and an end makes room.
#[tokio::test]
async fn sessions_are_bounded_in_number() {
    let (http, _) = direct(Options::new().sessions(2));
    let first = http.open("2025-11-25").await;
    http.open("2025-11-25").await;
    let reply = http.post(&[], initialize("2025-11-25")).await;
    assert_eq!((reply.status.as_u16(), reply.header("retry-after").is_some()), (503, true));
    assert!(reply.text().await.contains("DELETE"));
    http.send(Method::DELETE, &[("mcp-session-id", &first)], "").await;
    until("the end is noticed", || http.0.open_sessions() == 1).await;
    http.open("2025-11-25").await;
    // A modern request needs none.
    assert_eq!(http.modern("tools/list", serde_json::json!({})).await.status, 200);
}

/// SES-04: who waits for an answer when a session ends is told so.
#[tokio::test]
async fn ses_04_an_ended_session_tells_who_waits() {
    let (http, _) = direct(Options::new().json_window(Duration::ZERO));
    let session = http.open("2025-06-18").await;
    let headers = [("mcp-session-id", session.as_str())];
    let mut stream = http.post(&headers, call(9, "gated")).await;
    let mut general = http.get(&session, None).await;
    assert_eq!(http.send(Method::DELETE, &headers, "").await.status, 204);
    let end = stream.event().await.unwrap().data;
    assert_eq!((&end["id"], &end["error"]["code"]), (&9.into(), &(-32603).into()));
    assert_eq!(stream.event().await, None);
    assert_eq!(general.event().await, None);
}

/// Sessions end with the service.
#[tokio::test]
async fn sessions_end_with_the_service() {
    let (http, shared) = direct(Options::new());
    let session = http.open("2025-06-18").await;
    drop(http.post(&[("mcp-session-id", &session)], call(1, "lines")).await);
    assert!(std::sync::Arc::strong_count(&shared) > 1);
    drop(http);
    until("everything is gone", || std::sync::Arc::strong_count(&shared) == 1).await;
}
