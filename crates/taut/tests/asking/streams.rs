//! `subscriptions/listen`: acknowledged, tagged, coalesced, bounded, and ended properly.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use taut::{Ending, NoArgs, Server};

use crate::fixture::{changing, named};
use crate::wire::Wire;

const LONG: Duration = Duration::from_secs(60);

/// Enough for everything that can happen at once, and far less than a cancelled call is granted.
const SHORT: Duration = Duration::from_millis(1);

const TAG: &str = "io.modelcontextprotocol/subscriptionId";

fn all() -> Value {
    json!({
        "toolsListChanged": true,
        "promptsListChanged": true,
        "resourcesListChanged": true,
        "resourceSubscriptions": ["a:b"],
    })
}

async fn listen(wire: &mut Wire, id: impl Into<Value>, filter: Value) -> Value {
    wire.ask(id, "subscriptions/listen", json!({ "notifications": filter })).await;
    wire.next().await
}

async fn cancel(wire: &mut Wire, id: impl Into<Value>) {
    wire.notify("notifications/cancelled", json!({ "requestId": id.into() })).await;
}

fn tag(message: &Value) -> &Value {
    let params = if message["method"].is_string() { "params" } else { "result" };
    &message[params]["_meta"][TAG]
}

/// SUB-01, SUB-03, SUB-06, SUB-07, SUB-09, CAN-12: three streams with ids of two types.
#[tokio::test(start_paused = true)]
async fn sub_07_cancelling_one_stream_leaves_the_others_and_the_end_of_input_ends_them() {
    let server = Arc::new(named("changing"));
    let mut wire = Wire::to_shared(&server);
    let ids = [json!(7), json!("7"), json!("other")];
    for id in &ids {
        let ack = listen(&mut wire, id.clone(), all()).await;
        assert_eq!(ack["method"], "notifications/subscriptions/acknowledged");
        assert_eq!((tag(&ack), &ack["params"]["notifications"]), (id, &all()));
    }
    server.changes().remove_tool("touch");
    for id in &ids {
        let note = wire.next().await;
        assert_eq!(note["method"], "notifications/tools/list_changed");
        assert_eq!(tag(&note), id);
    }
    cancel(&mut wire, "7").await;
    assert!(wire.is_silent(SHORT).await);
    server.changes().resource_updated("a:b");
    for id in [&ids[0], &ids[2]] {
        let note = wire.next().await;
        assert_eq!((&note["params"]["uri"], tag(&note)), (&json!("a:b"), id));
    }
    let (rest, ending) = wire.finish().await;
    let ended: BTreeSet<_> = rest.iter().map(|end| end["id"].to_string()).collect();
    assert_eq!(ended, BTreeSet::from(["7".to_owned(), "\"other\"".to_owned()]), "{rest:?}");
    for end in &rest {
        assert_eq!((&end["result"]["resultType"], tag(end)), (&json!("complete"), &end["id"]));
    }
    assert!(matches!(ending, Some(Ending::Eof)), "{ending:?}");
}

/// SUB-14, C17: an open stream holds up neither requests nor the end.
#[tokio::test(start_paused = true)]
async fn c17_an_open_stream_holds_up_neither_requests_nor_the_end() {
    let mut wire = Wire::to(named("changing"));
    listen(&mut wire, "l", all()).await;
    wire.ask(1, "tools/list", json!({})).await;
    assert_eq!(wire.next().await["id"], 1);
    let began = tokio::time::Instant::now();
    let (rest, _) = wire.finish().await;
    assert_eq!(rest.len(), 1);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

/// A burst is one note of each kind, not one for each change.
#[tokio::test(start_paused = true)]
async fn a_thousand_changes_are_few_notes_to_a_client_that_does_not_read() {
    let server = Server::builder("busy", "1")
        .changing()
        .tool(("big", "Tool big."), async |_: NoArgs, _| "x".repeat(1 << 20))
        .build()
        .unwrap();
    let server = Arc::new(server);
    let mut wire = Wire::to_shared(&server);
    listen(&mut wire, "l", all()).await;
    wire.call(1, "big", json!({})).await;
    let changes = server.changes();
    tokio::task::yield_now().await;
    for _ in 0..1000 {
        changes.add_tool(("new", "Tool new."), async |_: NoArgs, _| "new").unwrap();
        changes.resource_updated("a:b");
    }
    let (rest, _) = wire.finish().await;
    let count = |method: &str| rest.iter().filter(|m| m["method"] == method).count();
    let (lists, updates) =
        (count("notifications/tools/list_changed"), count("notifications/resources/updated"));
    assert!((1..=2).contains(&lists), "{lists}");
    assert!((1..=2).contains(&updates), "{updates}");
}

/// Invariant 7: the output that waits has a bound although each change is told as soon as there is
/// room. The bound is what the pipe holds, what is being written, and what waits.
#[tokio::test(start_paused = true)]
async fn ten_thousand_changes_fill_no_memory_while_nobody_reads() {
    let server = Arc::new(named("changing"));
    let mut wire = Wire::to_shared(&server);
    listen(&mut wire, "l", all()).await;
    for _ in 0..10_000 {
        server.changes().resource_updated("a:b");
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
    }
    let (rest, _) = wire.finish().await;
    let bytes: usize = rest.iter().map(|message| message.to_string().len()).sum();
    assert!(bytes > 64 << 10, "it never filled up: {bytes}");
    assert!(bytes < 4 * (64 << 10), "{bytes}");
}

/// Many marks at once are told in turns, so that they never fill the output to its limit; each once,
/// and none is lost.
#[tokio::test(start_paused = true)]
async fn a_thousand_resources_that_change_at_once_are_all_told() {
    let limit = 256 << 10;
    let server = changing("changing").limits(|limits| limits.output_cap = limit);
    let server = Arc::new(server.build().unwrap());
    let mut wire = Wire::to_shared(&server);
    let uris: BTreeSet<String> = (0..1024).map(|n| format!("a:{n}/{}", "x".repeat(200))).collect();
    assert!(uris.iter().map(|uri| uri.len() + 150).sum::<usize>() > limit);
    let ack = listen(&mut wire, "l", json!({ "resourceSubscriptions": uris })).await;
    assert_eq!(tag(&ack), "l");
    uris.iter().for_each(|uri| server.changes().resource_updated(uri));
    let mut told = Vec::new();
    for _ in 0..1024 {
        told.push(wire.next().await["params"]["uri"].as_str().unwrap().to_owned());
    }
    assert_eq!(told.iter().cloned().collect::<BTreeSet<_>>(), uris);
    assert!(wire.is_silent(LONG).await);
}

/// SUB-13: refused before it is acknowledged, and there is room again as soon as one is cancelled.
#[tokio::test(start_paused = true)]
async fn sub_13_a_connection_has_at_most_1024_streams() {
    let mut wire = Wire::to(named("changing"));
    for n in 0..1024 {
        assert_eq!(*tag(&listen(&mut wire, n, all()).await), n);
    }
    assert_eq!(listen(&mut wire, 1024, all()).await["error"]["code"], -32603);
    cancel(&mut wire, 5).await;
    assert!(wire.is_silent(SHORT).await);
    assert_eq!(*tag(&listen(&mut wire, 1025, all()).await), 1025);
    let many: Vec<_> = (0..1025).map(|n| format!("a:{n}")).collect();
    cancel(&mut wire, 6).await;
    assert!(wire.is_silent(SHORT).await);
    let answer = listen(&mut wire, 1026, json!({ "resourceSubscriptions": many })).await;
    assert_eq!(answer["error"]["code"], -32603);
}

/// SUB-13: long addresses count by their bytes, together.
#[tokio::test(start_paused = true)]
async fn sub_13_what_streams_follow_is_bounded_in_bytes_and_given_back() {
    let mut wire = Wire::to(named("changing"));
    let filter = json!({ "resourceSubscriptions": [format!("a:{}", "x".repeat(1 << 20))] });
    for n in 0..3 {
        assert_eq!(*tag(&listen(&mut wire, n, filter.clone()).await), n);
    }
    assert_eq!(listen(&mut wire, 3, filter.clone()).await["error"]["code"], -32603);
    cancel(&mut wire, 0).await;
    assert!(wire.is_silent(SHORT).await);
    assert_eq!(*tag(&listen(&mut wire, 4, filter).await), 4);
}

/// Streams that come and go leave nothing behind, although nothing ever changes.
#[tokio::test(start_paused = true)]
async fn streams_may_come_and_go_for_ever() {
    let mut wire = Wire::to(named("changing"));
    for n in 0..5000 {
        let ack = listen(&mut wire, n, all()).await;
        assert_eq!(*tag(&ack), n, "{ack}");
        cancel(&mut wire, n).await;
    }
    let (rest, _) = wire.finish().await;
    assert!(rest.is_empty(), "{rest:?}");
}

/// An id that is used again is another stream: what was marked for the first is not told on it.
#[tokio::test(start_paused = true)]
async fn an_id_that_is_used_again_is_another_stream() {
    let server = Arc::new(named("changing"));
    let mut wire = Wire::to_shared(&server);
    listen(&mut wire, 1, all()).await;
    server.changes().remove_tool("touch");
    cancel(&mut wire, 1).await;
    let mut first = listen(&mut wire, 1, json!({})).await;
    if first["method"] == "notifications/tools/list_changed" {
        first = wire.next().await;
    }
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    server.changes().remove_tool("add");
    assert!(wire.is_silent(LONG).await);
}

/// Two connections to one server hear each for themselves, and one that has gone is no burden.
#[tokio::test(start_paused = true)]
async fn each_connection_hears_what_it_listens_to() {
    let server = Arc::new(named("changing"));
    let (mut one, mut other) = (Wire::to_shared(&server), Wire::to_shared(&server));
    listen(&mut one, 1, json!({ "toolsListChanged": true })).await;
    listen(&mut other, 1, json!({ "promptsListChanged": true })).await;
    server.changes().add_prompt("new", async |_: NoArgs, _| "new");
    assert_eq!(other.next().await["method"], "notifications/prompts/list_changed");
    other.finish().await;
    server.changes().add_prompt("newer", async |_: NoArgs, _| "new");
    server.changes().remove_tool("touch");
    assert_eq!(one.next().await["method"], "notifications/tools/list_changed");
}

/// Changes from many threads while streams come and go: nothing is said before the acknowledgement
/// or after the end, and nobody waits for ever. Lock order and lost wakes show here or nowhere.
/// Also SUB-01.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn streams_and_changes_on_many_threads_keep_their_order() {
    let server = Arc::new(named("changing"));
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let (changes, stop) = (server.changes(), stop.clone());
            std::thread::spawn(move || {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    changes.resource_updated("a:b");
                    changes.add_prompt("p", async |_: NoArgs, _| "p");
                    std::thread::yield_now();
                }
            })
        })
        .collect();
    let mut wire = Wire::to_shared(&server);
    for n in 0..200 {
        wire.ask(n, "subscriptions/listen", json!({ "notifications": all() })).await;
        let mut acknowledged = false;
        for _ in 0..20 {
            let message = wire.next().await;
            if *tag(&message) != n {
                assert!(tag(&message).as_u64().unwrap() < n, "{message}");
                continue;
            }
            let ack = message["method"] == "notifications/subscriptions/acknowledged";
            assert_ne!(ack, acknowledged, "{message}");
            acknowledged = true;
        }
        assert!(acknowledged);
        cancel(&mut wire, n).await;
        wire.ask("barrier", "tools/list", json!({})).await;
        while wire.next().await["id"] != "barrier" {}
    }
    // The last change is told, whenever it came.
    wire.ask("last", "subscriptions/listen", json!({ "notifications": all() })).await;
    while *tag(&wire.next().await) != "last" {}
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    server.changes().remove_tool("touch");
    while wire.next().await["method"] != "notifications/tools/list_changed" {}
    let (rest, _) = wire.finish().await;
    assert_eq!(rest.last().unwrap()["id"], "last");
}
