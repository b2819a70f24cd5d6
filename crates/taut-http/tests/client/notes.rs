//! Notifications, answers and cancellations: what waits for what.

use std::future::IntoFuture as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taut::types::Root;
use taut::{Client, ClientBuilder};
use taut_http::client::{HttpOptions, HttpTransport};
use tokio::sync::Semaphore;

use crate::server::*;

const NOTE: &str = "notifications/roots/list_changed";

/// A server that confirms no notification of `NOTE` before the gate lets it, and asks for the roots on its own stream
/// each time that one comes. Calls are begun and never answered.
async fn waiting() -> (TestServer, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let (opened, kept) = (gate.clone(), Arc::new(std::sync::Mutex::new(None::<Feed>)));
    let server = TestServer::start(move |seen| {
        let (gate, kept) = (opened.clone(), kept.clone());
        async move {
            if seen.method == "GET" {
                let (feed, reply) = events();
                *kept.lock().unwrap() = Some(feed);
                return reply;
            }
            if seen.rpc() == NOTE {
                if let Some(feed) = kept.lock().unwrap().as_ref() {
                    feed.event(&json!({ "jsonrpc": "2.0", "id": "roots", "method": "roots/list" }));
                }
                gate.acquire().await.unwrap().forget();
                return status(202);
            }
            if seen.rpc() == "tools/call" {
                let (feed, reply) = events();
                feed.send(": begun\n\n");
                // Kept open for as long as the server runs.
                std::mem::forget(feed);
                return reply;
            }
            let rest =
                || if seen.rpc().is_empty() { status(202) } else { result(&seen, json!({})) };
            legacy(&seen, "2025-06-18").unwrap_or_else(rest)
        }
    })
    .await;
    (server, gate)
}

async fn connected(server: &TestServer, options: HttpOptions) -> Client {
    let transport = HttpTransport::new(&server.url, options).unwrap();
    let builder: ClientBuilder = Client::builder().roots([Root::new("file:///a")]);
    let client = transport.connect(builder).await.unwrap();
    server.wait(1, |seen| seen.method == "GET").await;
    client
}

fn is_answer(seen: &Seen) -> bool {
    seen.id() == json!("roots") && seen.rpc().is_empty()
}

/// A server that reads the roots before it confirms that they have changed gets them; what is cancelled meanwhile is
/// told, and requests go on. H13.
#[tokio::test]
async fn answers_and_cancellations_overtake_notifications() {
    let (server, gate) = waiting().await;
    let client = connected(&server, HttpOptions::new()).await;
    let call = tokio::spawn(client.call("slow", json!({})).into_future());
    server.wait(1, |seen| seen.rpc() == "tools/call").await;
    // Many, so that no place in a queue is left for what must not wait.
    for _ in 0..50 {
        client.notify(NOTE, json!({})).unwrap();
    }
    let begun = Instant::now();
    server.wait(1, is_answer).await;
    call.abort();
    server.wait(1, |seen| seen.rpc() == "notifications/cancelled").await;
    client.ping().await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    // None was confirmed so far: one after the other.
    assert_eq!(server.all(|seen| seen.rpc() == NOTE).len(), 1);
    gate.add_permits(100);
    server.wait(50, |seen| seen.rpc() == NOTE).await;
    server.wait(50, is_answer).await;
}

/// Notifications among themselves keep their order.
#[tokio::test]
async fn notifications_keep_their_order() {
    let server = TestServer::start(async |seen| {
        if seen.rpc() == "notifications/progress" {
            // The first ones take longest.
            let at = seen.json()["params"]["progress"].as_u64().unwrap();
            tokio::time::sleep(Duration::from_millis(20 - at)).await;
            return status(202);
        }
        legacy(&seen, "2025-06-18").unwrap_or_else(|| result(&seen, json!({})))
    })
    .await;
    let client = connected_plainly(&server).await;
    for at in 0..20 {
        let params = json!({ "progressToken": "t", "progress": at });
        client.notify("notifications/progress", params).unwrap();
    }
    let seen = server.wait(20, |seen| seen.rpc() == "notifications/progress").await;
    let order: Vec<_> = seen.iter().map(|seen| seen.json()["params"]["progress"].clone()).collect();
    assert_eq!(order, (0..20).map(Value::from).collect::<Vec<_>>());
}

async fn connected_plainly(server: &TestServer) -> Client {
    taut_http::client::connect(&server.url, HttpOptions::new()).await.unwrap()
}
