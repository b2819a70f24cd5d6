//! Sessions, streams and their loss, in the revisions that begin with a handshake.

use std::future::IntoFuture as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taut::types::SubscriptionFilter;
use taut::{Change, Client};
use taut_http::client::{HttpOptions, HttpTransport, connect};
use tokio::sync::mpsc;

use crate::server::*;

/// HTP-08: both forms of an answer are read, and what comes before it on a stream is passed on.
#[tokio::test]
async fn htp_08_an_answer_comes_as_json_or_on_a_stream() {
    let server = TestServer::start(async |seen| {
        if let Some(reply) = legacy(&seen, "2025-11-25") {
            return reply;
        }
        let name = seen.json()["params"]["name"].as_str().unwrap().to_owned();
        if name == "json" {
            return result(&seen, said("as json"));
        }
        let (feed, reply) = events();
        let token = &seen.json()["params"]["_meta"]["progressToken"];
        feed.send(": a comment\n\nid: 0\ndata:\n\n");
        feed.event(&json!({ "jsonrpc": "2.0", "method": "notifications/progress",
            "params": { "progressToken": token, "progress": 1 } }));
        let answer = json!({ "jsonrpc": "2.0", "id": seen.id(), "result": said("on a stream") });
        feed.send(format!("event: message\ndata: {answer}\r\n\r\n"));
        reply
    })
    .await;
    let client = connect(&server.url, HttpOptions::new()).await.unwrap();
    assert_eq!(client.call("json", json!({})).await.unwrap().text().unwrap(), "as json");
    let (told, mut progress) = mpsc::unbounded_channel();
    let call = client.call("stream", json!({})).progress(move |p| told.send(p.progress).unwrap());
    assert_eq!(call.await.unwrap().text().unwrap(), "on a stream");
    assert_eq!(progress.recv().await.map(|p| p.to_string()), Some("1".to_owned()));
}

/// SSE-06, SSE-08: a stream that ends before the answer is taken up again behind its last event, after the
/// pause that the server asked for.
#[tokio::test]
async fn sse_06_and_08_a_stream_is_taken_up_again_where_it_broke() {
    let call: Arc<Mutex<Option<(Value, Instant)>>> = Arc::default();
    let server = TestServer::start(move |seen| {
        let call = call.clone();
        async move {
            if seen.method == "GET" && seen.header("last-event-id") == Some("one-2") {
                let (id, closed) = call.lock().unwrap().take().unwrap();
                assert!(closed.elapsed() >= Duration::from_millis(190), "{:?}", closed.elapsed());
                let (feed, reply) = events();
                feed.event(&json!({ "jsonrpc": "2.0", "id": id, "result": said("resumed") }));
                return reply;
            }
            if let Some(reply) = legacy(&seen, "2025-11-25") {
                return reply;
            }
            let (feed, reply) = events();
            feed.send("id: one-1\nretry: 200\ndata:\n\nid: one-2\ndata:\n\n");
            *call.lock().unwrap() = Some((seen.id(), Instant::now()));
            reply
        }
    })
    .await;
    let client = connect(&server.url, HttpOptions::new()).await.unwrap();
    assert_eq!(client.call("t", json!({})).await.unwrap().text().unwrap(), "resumed");
    let resumed = server.all(|seen| seen.header("last-event-id").is_some());
    assert_eq!(resumed.len(), 1);
    assert_eq!(resumed[0].header("accept"), Some("text/event-stream"));
    assert_eq!(resumed[0].header("mcp-session-id"), Some("s-1"));
}

/// SSE-08: the tries are bounded, and without an event id there are none.
#[tokio::test]
async fn sse_08_a_stream_that_cannot_be_taken_up_again_fails_its_request() {
    let server = TestServer::start(async |seen| {
        if seen.method == "GET" && seen.header("last-event-id").is_some() {
            return status(503);
        }
        if let Some(reply) = legacy(&seen, "2025-11-25") {
            return reply;
        }
        let (feed, reply) = events();
        match seen.json()["params"]["name"].as_str() {
            Some("with-id") => feed.send("id: 1\ndata:\n\n"),
            _ => feed.send(": nothing\n\n"),
        }
        reply
    })
    .await;
    let options = HttpOptions::new().reconnects(3).reconnect_delay(Duration::from_millis(1));
    let client = connect(&server.url, options).await.unwrap();
    for (name, tries) in [("with-id", 3), ("without", 3)] {
        let error = client.call(name, json!({})).await.unwrap_err().to_string();
        assert!(error.contains("stream ended before the answer came"), "{error}");
        assert_eq!(server.all(|seen| seen.header("last-event-id").is_some()).len(), tries);
    }
}

/// GET-01: the server's own stream brings what belongs to no request, and is opened again when it ends.
#[tokio::test]
async fn get_01_the_server_speaks_on_a_stream_of_its_own() {
    let feeds: Arc<Mutex<Vec<Feed>>> = Arc::default();
    let kept = feeds.clone();
    let server = TestServer::start(move |seen| {
        let kept = kept.clone();
        async move {
            if seen.method == "GET" {
                let (feed, reply) = events();
                kept.lock().unwrap().push(feed);
                return reply;
            }
            legacy(&seen, "2025-11-25").unwrap_or_else(|| result(&seen, json!({})))
        }
    })
    .await;
    let options = HttpOptions::new().reconnect_delay(Duration::from_millis(1));
    let transport = HttpTransport::new(&server.url, options).unwrap();
    let (told, mut changes) = mpsc::unbounded_channel();
    let builder = Client::builder().on_change(move |change| drop(told.send(change.clone())));
    let _client = transport.connect(builder).await.unwrap();
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    let ping = json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" });
    for round in 1..=3 {
        server.wait(round, |seen| seen.method == "GET").await;
        let feed = feeds.lock().unwrap().pop().unwrap();
        feed.send(format!("id: e{round}\ndata: {changed}\n\n"));
        assert_eq!(changes.recv().await, Some(Change::Tools));
        feed.event(&ping);
        server.wait(round, |seen| seen.id() == json!("p") && seen.rpc().is_empty()).await;
    }
    let gets = server.all(|seen| seen.method == "GET");
    assert_eq!(gets[1].header("last-event-id"), Some("e1"));
}

/// GET-02: a server without such a stream is asked for it once.
#[tokio::test]
async fn get_02_a_server_without_a_stream_of_its_own_is_not_asked_again() {
    for case in [405, 404, 400, 200] {
        let server = TestServer::start(move |seen| async move {
            if seen.method == "GET" {
                return reply(case, &[("content-type", "application/json")], "{}");
            }
            legacy(&seen, "2025-11-25").unwrap_or_else(|| result(&seen, said("fine")))
        })
        .await;
        let options = HttpOptions::new().reconnect_delay(Duration::from_millis(1));
        let client = connect(&server.url, options).await.unwrap();
        for _ in 0..3 {
            client.call("t", json!({})).await.unwrap();
        }
        client.close().await.unwrap();
        assert!(server.all(|seen| seen.method == "GET").len() <= 1, "{case}");
    }
}

/// SES-05: a session that the server has lost is opened anew, without its id, with everything that it
/// needs, and the request is made again.
#[tokio::test]
async fn ses_05_a_lost_session_is_opened_anew_and_the_request_repeated() {
    let sessions = Arc::new(AtomicUsize::new(0));
    let lost = Arc::new(AtomicUsize::new(0));
    let (counted, limit) = (sessions.clone(), lost.clone());
    let server = TestServer::start(move |seen| {
        let (sessions, lost) = (counted.clone(), limit.clone());
        async move {
            let named = seen.header("mcp-session-id").unwrap_or("0").parse::<usize>().unwrap_or(0);
            if named > 0 && named <= lost.load(Ordering::SeqCst) {
                return reply(404, &[("content-type", "text/plain")], "no such session");
            }
            if seen.rpc() == "initialize" {
                let number = sessions.fetch_add(1, Ordering::SeqCst) + 1;
                return initialized(&seen, "2025-11-25", Some(&number.to_string()));
            }
            legacy(&seen, "2025-11-25").unwrap_or_else(|| match seen.rpc().as_str() {
                "tools/call" => result(&seen, said(&named.to_string())),
                _ => result(&seen, json!({})),
            })
        }
    })
    .await;
    let transport = HttpTransport::new(&server.url, HttpOptions::new()).unwrap();
    let (told, mut changes) = mpsc::unbounded_channel();
    let builder = Client::builder().on_change(move |change| drop(told.send(change.clone())));
    let client = transport.connect(builder).await.unwrap();
    let filter = SubscriptionFilter::new().resource_subscriptions(["file:///a".to_owned()]);
    let _stream = client.listen(filter).await.unwrap();
    assert_eq!(client.call("t", json!({})).await.unwrap().text().unwrap(), "1");

    lost.store(1, Ordering::SeqCst);
    // Several find it out at once, and one opens the new session.
    let calls = [(); 4].map(|()| tokio::spawn(client.call("t", json!({})).into_future()));
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().text().unwrap(), "2");
    }
    assert_eq!(sessions.load(Ordering::SeqCst), 2);
    assert_eq!(changes.recv().await, Some(Change::Tools));
    let handshakes = server.all(|seen| seen.rpc() == "initialize");
    assert_eq!(handshakes.len(), 2);
    assert_eq!(handshakes[1].header("mcp-session-id"), None);
    let again = server.all(|seen| seen.rpc() == "resources/subscribe");
    assert_eq!(again.last().unwrap().header("mcp-session-id"), Some("2"));
    client.close().await.unwrap();
    let deleted = server.all(|seen| seen.method == "DELETE");
    assert_eq!(deleted[0].header("mcp-session-id"), Some("2"));
}

/// HCN-02: legacy says it with a notification, and then waits no longer.
#[tokio::test]
async fn hcn_02_a_legacy_request_is_withdrawn_with_a_notification() {
    let (told, mut feeds) = mpsc::unbounded_channel();
    let server = TestServer::start(move |seen| {
        let told = told.clone();
        async move {
            if let Some(reply) = legacy(&seen, "2025-11-25") {
                return reply;
            }
            let (feed, reply) = events();
            feed.send(": begun\n\n");
            told.send((seen.id(), feed)).unwrap();
            reply
        }
    })
    .await;
    let client = connect(&server.url, HttpOptions::new()).await.unwrap();
    let call = tokio::spawn(client.call("slow", json!({})).into_future());
    let (id, feed) = feeds.recv().await.unwrap();
    call.abort();
    let cancelled = server.wait(1, |seen| seen.rpc() == "notifications/cancelled").await;
    assert_eq!(cancelled[0].json()["params"]["requestId"], id);
    assert_eq!(cancelled[0].header("mcp-session-id"), Some("s-1"));
    feed.closed().await;
}

/// Field observation 5: whatever a server says beside yes, it has the notification.
#[tokio::test]
async fn notifications_may_be_confirmed_in_any_way() {
    for (code, kind, body) in
        [(200, "application/json", "null"), (204, "text/plain", ""), (200, "text/plain", "ok")]
    {
        let server = TestServer::start(move |seen| async move {
            if seen.rpc().starts_with("notifications/") {
                return reply(code, &[("content-type", kind)], body);
            }
            legacy(&seen, "2025-11-25").unwrap_or_else(|| result(&seen, said("fine")))
        })
        .await;
        let client = connect(&server.url, HttpOptions::new()).await.unwrap();
        client.call("t", json!({})).await.unwrap();
    }
}

/// SES-01: an id with other characters than it may have is no id.
#[tokio::test]
async fn ses_01_a_session_id_with_a_blank_in_it_is_refused() {
    let server = TestServer::start(async |seen| match seen.rpc().as_str() {
        "initialize" => initialized(&seen, "2025-11-25", Some("a b")),
        _ => status(404),
    })
    .await;
    let error = connect(&server.url, HttpOptions::new()).await.unwrap_err().to_string();
    assert!(error.contains("session id"), "{error}");
}
