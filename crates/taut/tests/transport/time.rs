//! Fairness and deadlines on the seam: no session, call or transport makes another wait, and each has its time.
//!
//! In virtual time: nothing here sleeps, and every moment is exact.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use taut::transport::{MessagePipe, Principal, Relation};
use taut::{Call, Client, Error, NoArgs, Server};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::Instant;

use super::{call, id, opened, opened_at, receive, send};

const DRAIN: Duration = Duration::from_secs(7);
const GRACE: Duration = Duration::from_secs(3);

/// Says when it is dropped.
struct Dropped(UnboundedSender<Instant>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(Instant::now());
    }
}

/// A server whose tool `deaf` never ends and does not listen, and tells here when its future is dropped.
fn deaf(told: UnboundedSender<Instant>) -> Server {
    let deaf = move |_: NoArgs, _: Call| {
        let dropped = Dropped(told.clone());
        async move {
            std::future::pending::<()>().await;
            drop(dropped);
            "never seen"
        }
    };
    let server = Server::builder("seam", "1").drain(DRAIN).cancel_grace(GRACE);
    server.tool(("deaf", "For tests."), deaf).build().unwrap()
}

/// One session that never stops to ask does not keep another from its answer, on one thread.
#[tokio::test(start_paused = true)]
async fn a_flood_on_one_session_does_not_hold_up_another() {
    /// Far more than a turn of the loop, so that a session that is never let run is seen as such.
    const ALL: usize = 100_000;
    let flooded = opened(Principal::new("ann")).await;
    let mut quiet = opened(Principal::new("bob")).await;
    let answered = Arc::new(AtomicUsize::new(0));
    let (sender, mut receiver) = flooded.split();
    tokio::spawn(async move {
        for id in 0..ALL {
            let ping = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
            sender.send(ping.to_string().into_bytes()).await.unwrap();
        }
    });
    let counted = answered.clone();
    let flood = tokio::spawn(async move {
        while counted.fetch_add(1, Ordering::SeqCst) < ALL {
            receiver.recv().await.unwrap();
        }
    });
    // It is under way when the other asks.
    while answered.load(Ordering::SeqCst) < 1_000 {
        tokio::task::yield_now().await;
    }
    let before = answered.load(Ordering::SeqCst);
    send(&quiet, call(1, "who")).await;
    let (answer, _) = receive(&mut quiet).await;
    assert_eq!(answer["result"]["content"][0]["text"], "bob", "{answer}");
    // A pipe holds 64 KiB: some thousand pings in each direction.
    let meanwhile = answered.load(Ordering::SeqCst) - before;
    assert!(meanwhile < 10_000, "{meanwhile} answers of the flood came first");
    flood.await.unwrap();
}

/// A call that waits holds up neither the answers of others nor what a call says meanwhile.
#[tokio::test(start_paused = true)]
async fn a_call_that_waits_does_not_hold_up_those_behind_it() {
    let mut pipe = opened(Principal::ANONYMOUS).await;
    let began = Instant::now();
    for id in 1..=20 {
        send(&pipe, call(id, "wait")).await;
    }
    send(&pipe, call(21, "talk")).await;
    for expected in ["about", "about", "answer"] {
        let (message, relation) = receive(&mut pipe).await;
        match relation {
            Relation::About(of) => assert_eq!((expected, of), ("about", id("21")), "{message}"),
            Relation::Answer(of) => assert_eq!((expected, of), ("answer", id("21")), "{message}"),
            other => panic!("{other:?} {message}"),
        }
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_outlasts_the_drain_limit_does_not_keep_its_session() {
    let (told, mut dropped) = unbounded_channel();
    let (sender, mut receiver) = opened_at(deaf(told), Principal::ANONYMOUS).await.split();
    sender.send(call(1, "deaf").to_string().into_bytes()).await.unwrap();
    sender.close();
    let began = Instant::now();
    assert!(receiver.recv().await.is_none());
    assert!((DRAIN..DRAIN + GRACE).contains(&began.elapsed()), "{:?}", began.elapsed());
    dropped.recv().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_call_that_does_not_listen_is_dropped_after_its_grace() {
    let (told, mut dropped) = unbounded_channel();
    let mut pipe = opened_at(deaf(told), Principal::ANONYMOUS).await;
    send(&pipe, call(1, "deaf")).await;
    let params = json!({ "requestId": 1 });
    send(&pipe, json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
        .await;
    let (_, relation) = receive(&mut pipe).await;
    assert_eq!(relation, Relation::Withdrawn(id("1")));
    let began = Instant::now();
    let ended = dropped.recv().await.unwrap();
    let took = ended - began;
    assert!((GRACE..GRACE + Duration::from_secs(1)).contains(&took), "{took:?}");
    // The session goes on.
    send(&pipe, json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" })).await;
    assert_eq!(receive(&mut pipe).await.1, Relation::Answer(id("2")));
}

/// Answers the opening of a client and nothing else. Returns all that the client has sent after it.
async fn mute(mut pipe: MessagePipe) -> Vec<String> {
    let mut said = Vec::new();
    while let Some(message) = pipe.recv().await {
        let text = String::from_utf8(message.json).unwrap();
        let request: serde_json::Value = serde_json::from_str(&text).unwrap();
        match request["method"].as_str() {
            Some("server/discover") => {
                let result =
                    json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } });
                send(&pipe, json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }))
                    .await;
            }
            _ => said.push(text),
        }
    }
    said
}

#[tokio::test(start_paused = true)]
async fn a_call_over_a_transport_that_brings_no_answer_times_out_and_is_withdrawn() {
    let limit = Duration::from_secs(5);
    let (pipe, client) = Client::builder().request_timeout(limit).connect_messages();
    let server = tokio::spawn(mute(pipe));
    let client = client.await.unwrap();
    let began = Instant::now();
    let error = client.call("t", ()).await.unwrap_err();
    assert!(matches!(error, Error::TimedOut { after, .. } if after == limit), "{error:?}");
    let took = began.elapsed();
    assert!((limit..limit + Duration::from_secs(1)).contains(&took), "{took:?}");
    drop(client);
    let said = server.await.unwrap();
    assert!(said[0].contains("tools/call") && said[1].contains("cancelled"), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn an_opening_over_a_transport_that_brings_nothing_ends_in_time() {
    let limit = Duration::from_secs(9);
    let (pipe, client) = Client::builder().start_timeout(limit).connect_messages();
    let began = Instant::now();
    let error = client.await.unwrap_err();
    assert!(matches!(error, Error::Connect(_)), "{error:?}");
    let took = began.elapsed();
    assert!((limit..limit + Duration::from_secs(1)).contains(&took), "{took:?}");
    drop(pipe);
}
