//! Headers, streams and their loss in 2026-07-28.

use std::future::IntoFuture as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use taut::types::SubscriptionFilter;
use taut::{Change, Revision};
use taut_http::client::{HttpOptions, connect};
use tokio::sync::mpsc;

use crate::server::*;

fn tools(seen: &Seen, header: &str) -> Reply {
    let tool = |name: &str, header: Value| {
        json!({ "name": name, "inputSchema": { "type": "object", "properties": {
            "region": { "type": "string", "x-mcp-header": header } } } })
    };
    let tools = [tool("good", json!(header)), tool("bad", json!("not a token"))];
    result(
        seen,
        json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": tools }),
    )
}

/// HDR-01, HDR-04, HDR-05, HDR-07, PAR-03, PAR-04
#[tokio::test]
async fn modern_requests_carry_their_headers() {
    let server = TestServer::start(async |seen| match seen.rpc().as_str() {
        "server/discover" => discovered(&seen),
        "tools/list" => tools(&seen, "Region"),
        _ => result(&seen, said("fine")),
    })
    .await;
    let client = connect(&server.url, HttpOptions::new()).await.unwrap();
    assert_eq!(client.revision(), Revision::V2026_07_28);
    let listed = client.tools().await.unwrap();
    let names: Vec<_> = listed.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["good"], "the tool with a bad annotation is left out");
    client.call("good", json!({ "region": "Köln" })).await.unwrap();
    client.call("good", json!({ "region": null })).await.unwrap();
    client.call("ünknown", json!({})).await.unwrap();
    client.close().await.unwrap();

    let all = server.all(|_| true);
    for seen in &all {
        assert_eq!(seen.method, "POST", "no GET, no DELETE");
        assert_eq!(seen.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(seen.header("mcp-method"), Some(seen.rpc().as_str()));
        assert_eq!(seen.header("mcp-session-id"), None);
    }
    let calls: Vec<_> = all.iter().filter(|seen| seen.rpc() == "tools/call").collect();
    assert_eq!(calls[0].header("mcp-name"), Some("good"));
    assert_eq!(calls[0].header("mcp-param-region"), Some("=?base64?S8O2bG4=?="));
    assert_eq!(calls[1].header("mcp-param-region"), None);
    assert_eq!(calls[2].header("mcp-name"), Some("=?base64?w7xua25vd24=?="));
}

/// PAR-06
#[tokio::test]
async fn par_06_after_a_refused_header_the_tools_are_listed_again_and_the_call_repeated() {
    let lists = Arc::new(AtomicUsize::new(0));
    let counted = lists.clone();
    let server = TestServer::start(move |seen| {
        let lists = counted.clone();
        async move {
            match seen.rpc().as_str() {
                "server/discover" => discovered(&seen),
                "tools/list" => {
                    lists.fetch_add(1, Ordering::SeqCst);
                    tools(&seen, "Place")
                }
                _ if seen.header("mcp-param-place").is_none() => {
                    error(400, &seen, -32020, "Mcp-Param-Place is missing")
                }
                _ => result(&seen, said("fine")),
            }
        }
    })
    .await;
    let client = connect(&server.url, HttpOptions::new()).await.unwrap();
    let answer = client.call("good", json!({ "region": "eu" })).await.unwrap();
    assert_eq!(answer.text().unwrap(), "fine");
    assert_eq!(lists.load(Ordering::SeqCst), 1);
    // One that is refused for good is not repeated for ever.
    let error = client.call("other", json!({})).await.unwrap_err().to_string();
    assert!(error.contains("Mcp-Param-Place is missing (-32020)"), "{error}");
    assert_eq!(server.all(|seen| seen.rpc() == "tools/call").len(), 4);
}

/// HCN-02: modern says it by closing the stream, and with no message.
#[tokio::test]
async fn hcn_02_a_modern_request_is_withdrawn_by_closing_its_stream() {
    let (told, mut feeds) = mpsc::unbounded_channel();
    let server = TestServer::start(move |seen| {
        let told = told.clone();
        async move {
            if seen.rpc() == "server/discover" {
                return discovered(&seen);
            }
            let (feed, reply) = events();
            feed.send(": begun\n\n");
            told.send(feed).unwrap();
            reply
        }
    })
    .await;
    let client = connect(&server.url, HttpOptions::new()).await.unwrap();
    let call = tokio::spawn(client.call("slow", json!({})).into_future());
    let feed = feeds.recv().await.unwrap();
    call.abort();
    feed.closed().await;
    let timed = client.call("slow", json!({})).timeout(Duration::from_millis(50)).await;
    assert!(timed.is_err());
    feeds.recv().await.unwrap().closed().await;
    assert!(server.all(|seen| seen.rpc() == "notifications/cancelled").is_empty());
}

/// SSE-13: a broken stream loses its request; it is neither resumed nor made again unasked.
#[tokio::test]
async fn sse_13_a_broken_modern_stream_fails_its_request() {
    let server = TestServer::start(async |seen| {
        if seen.rpc() == "server/discover" {
            return discovered(&seen);
        }
        let (feed, reply) = events();
        feed.send("id: 1\ndata:\n\n");
        feed.cut();
        reply
    })
    .await;
    let client = connect(&server.url, HttpOptions::new()).await.unwrap();
    let error = client.call("t", json!({})).await.unwrap_err().to_string();
    assert!(error.contains("before the answer"), "{error}");
    assert!(server.all(|seen| seen.header("last-event-id").is_some()).is_empty());
    assert_eq!(server.all(|seen| seen.rpc() == "tools/call").len(), 1);
}

/// HCN-05, HCN-06: a stream of changes is opened, opened again after a loss, and closed.
#[tokio::test]
async fn hcn_05_and_06_a_lost_listen_is_opened_again_and_tells_of_what_was_missed() {
    let feeds: Arc<Mutex<Vec<Feed>>> = Arc::default();
    let kept = feeds.clone();
    let server = TestServer::start(move |seen| {
        let kept = kept.clone();
        async move {
            if seen.rpc() == "server/discover" {
                return discovered(&seen);
            }
            assert_eq!(seen.header("mcp-method"), Some("subscriptions/listen"));
            let (feed, reply) = events();
            let meta = json!({ "io.modelcontextprotocol/subscriptionId": seen.id() });
            feed.event(&json!({ "jsonrpc": "2.0",
                "method": "notifications/subscriptions/acknowledged",
                "params": { "_meta": meta, "notifications": { "toolsListChanged": true } } }));
            kept.lock().unwrap().push(feed);
            reply
        }
    })
    .await;
    let options = HttpOptions::new().reconnect_delay(Duration::from_millis(1));
    let client = connect(&server.url, options).await.unwrap();
    let filter = SubscriptionFilter::new().tools_list_changed(true);
    let mut changes = client.listen(filter).await.unwrap();
    let first = feeds.lock().unwrap().pop().unwrap();
    first.cut();
    let next = tokio::time::timeout(LONG, changes.next()).await.unwrap();
    assert_eq!(next.unwrap(), Some(Change::Tools));
    server.wait(2, |seen| seen.rpc() == "subscriptions/listen").await;
    let second = loop {
        if let Some(feed) = feeds.lock().unwrap().pop() {
            break feed;
        }
        tokio::task::yield_now().await;
    };
    drop(changes);
    second.closed().await;
    assert!(server.all(|seen| seen.rpc() == "notifications/cancelled").is_empty());
}
