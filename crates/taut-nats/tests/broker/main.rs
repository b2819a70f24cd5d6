//! Workers and edges over a real nats-server. Needs NATS_SERVER: see interop/nats/run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../../taut/tests/proxy/asking.rs"]
mod asking;
mod broker;
mod cluster;
mod faults;
#[path = "../../../taut/tests/proxy/features.rs"]
mod features;
mod fleet;
mod given_up;
mod leaving;
mod server_dies;
mod way;
#[path = "../../../taut/tests/proxy/world.rs"]
mod world;

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use taut::types::{ElicitResult, SubscriptionFilter};
use taut::{Change, Client, Error};
use taut_nats::{ConnectOptions, EdgeOptions, WorkerOptions};

use broker::Broker;
use fleet::{Shared, client, edge, eventually, fast, worker};

/// What the fleet says about a failed call: the reason, and whether it may have run.
pub(crate) fn reason(error: &Error) -> (String, bool) {
    let Error::Refused { error, .. } = error else { panic!("{error}") };
    let data: Value = serde_json::from_str(error.data.as_ref().unwrap().get()).unwrap();
    (data["fleet"].as_str().unwrap().to_owned(), data["mayHaveRun"].as_bool().unwrap())
}

#[tokio::test]
async fn a_call_goes_there_and_back() {
    let broker = Broker::start(&[]).await;
    let shared = Shared::new();
    let worker = worker(&broker, "one", &shared, fast()).await;
    let client = client(&broker).await;
    assert_eq!(client.server_info().unwrap().name, "one");
    let sum = client.call("add", json!({ "a": 2, "b": 3 })).await.unwrap();
    assert_eq!(sum.text().unwrap(), "5");
    // A mistake of the caller reads as from the server itself.
    let error = client.call("nonsense", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("nonsense"), "{error}");
    client.close().await.unwrap();
    worker.stop().await;
}

#[tokio::test]
async fn progress_passes_and_a_withdrawn_call_is_cancelled() {
    let broker = Broker::start(&[]).await;
    let shared = Shared::new();
    let worker = worker(&broker, "one", &shared, fast()).await;
    let client = client(&broker).await;
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let call = client.call("hold", json!({})).progress(move |progress| {
        let _ = told.send(progress.progress);
    });
    {
        let mut call = std::pin::pin!(call.into_future());
        tokio::select! {
            _ = &mut call => panic!("it ends by itself"),
            progress = heard.recv() => assert!(progress.is_some()),
        }
    }
    // Dropped: the tool's own future is dropped as well.
    shared.world.dropped.notified().await;
    eventually(async || shared.world.held.load(Ordering::SeqCst) == 0).await;
    client.close().await.unwrap();
    worker.stop().await;
}

#[tokio::test]
async fn nobody_is_said_at_once() {
    let broker = Broker::start(&[]).await;
    let edge = edge(&broker, EdgeOptions::new()).await;
    let began = std::time::Instant::now();
    let error = edge.open(Client::builder()).await.unwrap_err().to_string();
    assert!(error.contains("nobody serves test at nats://127.0.0.1"), "{error}");
    assert!(error.contains("taut worker test"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_broker_that_cannot_be_reached_is_named() {
    let broker = Broker::start(&["--user", "u", "--pass", "p"]).await;
    let wrong = [
        (broker.url(), "refuses these credentials"),
        (broker.url().replace("//", "//u:wrong@"), "refuses these credentials"),
        ("nats://127.0.0.1:1".to_owned(), "no NATS broker answers at nats://127.0.0.1:1"),
        ("nats://".to_owned(), "leads nowhere"),
        ("http://127.0.0.1".to_owned(), "is no address"),
        ("nats://no.such.host.invalid".to_owned(), "no.such.host.invalid"),
    ];
    for (url, words) in wrong {
        let error = ConnectOptions::new().url(&url).connect().await.unwrap_err().to_string();
        assert!(error.contains(words), "{url}: {error}");
        assert!(!error.contains("wrong"), "a secret is shown: {error}");
    }
    let missing = ConnectOptions::new().url(broker.url()).credentials("/no/such/file");
    let error = missing.connect().await.unwrap_err().to_string();
    assert!(error.contains("/no/such/file"), "{error}");
    ConnectOptions::new().url(broker.url().replace("//", "//u:p@")).connect().await.unwrap();
}

#[tokio::test]
async fn full_workers_bounce_and_the_edge_says_busy() {
    let broker = Broker::start(&[]).await;
    let shared = Shared::new();
    let one = worker(&broker, "one", &shared, fast().slots(1)).await;
    let edge = edge(&broker, EdgeOptions::new().wait(Duration::from_millis(700))).await;
    let client = edge.open(Client::builder()).await.unwrap();
    let held = tokio::spawn(client.call("hold", json!({})).into_future());
    shared.world.began.notified().await;
    let error = client.call("add", json!({ "a": 1, "b": 1 })).await.unwrap_err();
    assert_eq!(reason(&error), ("busy".to_owned(), false));
    // Another worker has room, and the full one still bounces.
    let two = worker(&broker, "two", &shared, fast().slots(1)).await;
    for _ in 0..10 {
        let who = client.call("who", json!({})).await.unwrap();
        assert_eq!(who.text().unwrap(), "two");
    }
    let fleet = taut_nats::fleet(&broker.connect().await, None, Duration::from_secs(5)).await;
    let fleet = fleet.unwrap();
    let first = fleet.iter().find(|worker| worker.worker == one.id).unwrap();
    assert_eq!((first.slots, first.busy), (1, 1));
    assert!(first.bounced > 0, "{first:?}");
    shared.go.add_permits(1);
    assert_eq!(held.await.unwrap().unwrap().text().unwrap(), "held");
    client.close().await.unwrap();
    one.stop().await;
    two.stop().await;
}

/// Without the offer of a free slot, who waits finds it by chance, after up to a quarter of a second.
#[tokio::test]
async fn who_was_bounced_is_told_of_a_free_slot() {
    let broker = Broker::start(&[]).await;
    let shared = Shared::new();
    let one = worker(&broker, "one", &shared, fast().slots(1)).await;
    let by_hand = faults::ByHand::new(&broker).await;
    let client = client(&broker).await;
    let held = tokio::spawn(client.call("hold", json!({})).into_future());
    shared.world.began.notified().await;
    let mut inbox = by_hand.call("count").await;
    let header = async |inbox: &mut async_nats::Subscriber, name: &str| {
        let message = futures_util::StreamExt::next(inbox).await.unwrap();
        message.headers.unwrap().get(name).unwrap().to_string()
    };
    assert_eq!(header(&mut inbox, "Mcp-Fleet").await, "bounce");
    let waiting = tokio::spawn(client.call("count", json!({})).into_future());
    eventually(async || {
        let fleet = taut_nats::fleet(&broker.connect().await, None, Duration::from_secs(5)).await;
        fleet.unwrap()[0].bounced > 1
    })
    .await;
    shared.go.add_permits(1);
    assert_eq!(header(&mut inbox, "Mcp-Worker").await, one.id);
    // Declined, so the next one gets it.
    let subject = format!("mcp.test.worker.{}", one.id);
    by_hand.tell(&subject, "_INBOX.hand.1", &[("Mcp-Fleet", "declined")]).await;
    waiting.await.unwrap().unwrap();
    held.await.unwrap().unwrap();
    one.stop().await;
}

#[tokio::test]
async fn sixteen_mebibytes_pass_both_ways_side_by_side() {
    const LONG: usize = 16 << 20;
    let broker = Broker::start(&[]).await;
    let shared = Shared::new();
    // A build that is not optimised computes for seconds on such messages, and is not heard meanwhile.
    let patient = WorkerOptions::new().heartbeat(Duration::from_secs(20));
    let worker = worker(&broker, "one", &shared, patient).await;
    let patient = EdgeOptions::new().accept(Duration::from_secs(100));
    let (one, two) = (edge(&broker, patient.clone()).await, edge(&broker, patient).await);
    let one = one.open(Client::builder()).await.unwrap();
    let two = two.open(Client::builder()).await.unwrap();
    // Each edge sends one and gets two; all at once.
    let calls = [(&one, "a"), (&two, "b")].map(|(client, letter)| {
        let there = client.call("repeat", json!({ "text": letter.repeat(LONG), "times": 1 }));
        let back = client.call("repeat", json!({ "text": letter.repeat(16), "times": LONG / 16 }));
        let both = async { tokio::join!(there.into_future(), back.into_future()) };
        async move { (both.await, letter) }
    });
    for ((there, back), letter) in futures_util::future::join_all(calls).await {
        for answer in [there, back] {
            let text = answer.unwrap().text().unwrap().to_string();
            assert_eq!(text.len(), LONG);
            assert!(text.bytes().all(|byte| byte == letter.as_bytes()[0]), "{letter}");
        }
    }
    worker.stop().await;
}

#[tokio::test]
async fn the_answer_to_a_question_finds_the_worker_that_asked() {
    let broker = Broker::start(&[]).await;
    let shared = Shared::new();
    let mut workers = Vec::new();
    for name in ["one", "two", "three"] {
        // Each seals its state with a key of its own: on another worker the retry would fail.
        workers.push(worker(&broker, name, &shared, fast()).await);
    }
    let edge = edge(&broker, EdgeOptions::new()).await;
    let asked = Client::builder().on_elicit(async |_form, _asking| {
        Ok(ElicitResult::accept([("name".to_owned(), "Ada".into())].into_iter().collect()))
    });
    let client = edge.open(asked).await.unwrap();
    for tool in ["greet", "greet_late"] {
        for _ in 0..12 {
            let greeting = client.call(tool, json!({})).await.unwrap();
            assert_eq!(greeting.text().unwrap(), "hello Ada");
        }
    }
    client.close().await.unwrap();
    for worker in workers {
        worker.stop().await;
    }
}

#[tokio::test]
async fn calls_are_shared_among_the_workers() {
    let broker = Broker::start(&[]).await;
    let shared = Shared::new();
    let one = worker(&broker, "one", &shared, fast()).await;
    let two = worker(&broker, "two", &shared, fast()).await;
    let client = client(&broker).await;
    let mut seen = HashSet::new();
    eventually(async || {
        seen.insert(client.call("who", json!({})).await.unwrap().text().unwrap().to_string());
        seen.len() == 2
    })
    .await;
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn a_listen_is_opened_again_elsewhere() {
    let broker = Broker::start(&[]).await;
    let shared = Shared::new();
    let one = worker(&broker, "one", &shared, fast()).await;
    let client = client(&broker).await;
    let filter = SubscriptionFilter::new().tools_list_changed(true);
    let mut changes = client.listen(filter).await.unwrap();
    let two = worker(&broker, "two", &shared, fast()).await;
    one.stop().await;
    // Something may have been missed, so it is told that the list may have changed.
    assert_eq!(changes.next().await.unwrap(), Some(Change::Tools));
    // And what changes there is heard.
    two.changes
        .add_tool(
            ("late", "Came later."),
            async |_: taut::NoArgs, _call: taut::Call<fleet::State>| "late",
        )
        .unwrap();
    assert_eq!(changes.next().await.unwrap(), Some(Change::Tools));
    two.stop().await;
}

/// Nothing is said of it any more, so the edge finds out by the heartbeats that it misses.
#[tokio::test]
async fn a_listen_is_opened_again_elsewhere_after_its_worker_crashed() {
    let broker = Broker::start(&[]).await;
    let shared = Shared::new();
    let one = worker(&broker, "one", &shared, fast()).await;
    let client = client(&broker).await;
    let filter = SubscriptionFilter::new().tools_list_changed(true);
    let mut changes = client.listen(filter).await.unwrap();
    let two = worker(&broker, "two", &shared, fast()).await;
    one.crash();
    assert_eq!(changes.next().await.unwrap(), Some(Change::Tools));
    two.changes
        .add_tool(
            ("late", "Came later."),
            async |_: taut::NoArgs, _call: taut::Call<fleet::State>| "late",
        )
        .unwrap();
    assert_eq!(changes.next().await.unwrap(), Some(Change::Tools));
    two.stop().await;
}

#[tokio::test]
async fn a_worker_says_that_it_is_ready_when_it_is_given_calls() {
    let broker = Broker::start(&[]).await;
    for _ in 0..10 {
        let server = std::sync::Arc::new(fleet::server("ready", &Shared::new()));
        let name = "test".parse().unwrap();
        let worker =
            taut_nats::Worker::new(broker.connect().await, name, server, WorkerOptions::new());
        let (told, ready) = tokio::sync::oneshot::channel();
        let worker = worker.on_ready(move || told.send(()).unwrap());
        let by_hand = faults::ByHand::new(&broker).await;
        let running = tokio::spawn(worker.run(std::future::pending()));
        ready.await.unwrap();
        // Otherwise the broker says at once that nobody is there.
        let mut inbox = by_hand.call("any").await;
        let first = futures_util::StreamExt::next(&mut inbox).await.unwrap();
        assert_eq!(first.status, None);
        running.abort();
        let _ = running.await;
    }
}

/// A broker that forbids one of them would leave a worker that hears nothing.
#[tokio::test]
async fn a_worker_that_may_not_hear_itself_says_what_it_needs() {
    let config = std::env::temp_dir().join(format!("taut-nats-{}.conf", std::process::id()));
    let permissions = "{ publish: \"_INBOX.>\", subscribe: \">\" }";
    let users = format!("[{{ user: u, password: p, permissions: {permissions} }}]");
    std::fs::write(&config, format!("authorization {{ users: {users} }}")).unwrap();
    let broker = Broker::start(&["-c", config.to_str().unwrap()]).await;
    let connection = ConnectOptions::new().url(broker.url().replace("//", "//u:p@"));
    let connection = connection.connect().await.unwrap();
    let server = std::sync::Arc::new(fleet::server("mute", &Shared::new()));
    let name = "test".parse().unwrap();
    let worker = taut_nats::Worker::new(connection, name, server, WorkerOptions::new());
    let error = worker.run(std::future::pending()).await.unwrap_err().to_string();
    assert!(error.contains("publish to mcp.test.worker.>"), "{error}");
    std::fs::remove_file(config).unwrap();
}
