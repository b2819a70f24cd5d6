//! Workers that leave, under more load than a few callers make.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;
use taut::Client;
use taut_nats::EdgeOptions;

use crate::broker::Broker;
use crate::fleet::{Running, Shared, edge, eventually, fast, worker, worker_at};

/// Replaces three workers one by one while so many callers call. Each call has to be answered, and to run once.
async fn replaced(
    broker: &Broker,
    mut workers: Vec<Running>,
    client: Client,
    shared: &Arc<Shared>,
) {
    let done = Arc::new(AtomicBool::new(false));
    let before = shared.world.runs.load(Ordering::SeqCst);
    let callers: Vec<_> = (0..500)
        .map(|_| {
            let (client, done) = (client.clone(), done.clone());
            tokio::spawn(async move {
                let mut answered = 0;
                while !done.load(Ordering::Relaxed) {
                    client.call("count", json!({})).await.unwrap();
                    answered += 1;
                }
                answered
            })
        })
        .collect();
    for name in ["d", "e", "f"] {
        workers.push(worker(broker, name, shared, fast()).await);
        workers.remove(0).stop().await;
    }
    done.store(true, Ordering::Relaxed);
    let mut answered = 0;
    for caller in callers {
        answered += caller.await.unwrap();
    }
    assert!(answered >= 500);
    assert_eq!(shared.world.runs.load(Ordering::SeqCst) - before, answered);
    for worker in workers {
        worker.stop().await;
    }
}

async fn three(broker: &Broker, shared: &Arc<Shared>) -> Vec<Running> {
    let mut workers = Vec::new();
    for name in ["a", "b", "c"] {
        workers.push(worker(broker, name, shared, fast()).await);
    }
    workers
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_of_five_hundred_callers_fails_when_workers_are_replaced() {
    let broker = Broker::start(&[]).await;
    let shared = Shared::new();
    let workers = three(&broker, &shared).await;
    let client = edge(&broker, EdgeOptions::new()).await.open(Client::builder()).await.unwrap();
    replaced(&broker, workers, client, &shared).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_fails_when_workers_are_replaced_that_have_seen_the_broker_restart() {
    let mut broker = Broker::start(&[]).await;
    let shared = Shared::new();
    let workers = three(&broker, &shared).await;
    let client = edge(&broker, EdgeOptions::new()).await.open(Client::builder()).await.unwrap();
    for _ in 0..100 {
        client.call("count", json!({})).await.unwrap();
    }
    broker.kill();
    broker.restart().await;
    // All of them, and the edge, are back.
    let connection = broker.connect().await;
    eventually(async || {
        let fleet = taut_nats::fleet(&connection, None, Duration::from_secs(5)).await.unwrap();
        fleet.len() == 3 && client.call("count", json!({})).await.is_ok()
    })
    .await;
    replaced(&broker, workers, client, &shared).await;
}

/// A worker on a thread of its own, which does nothing for a while before it leaves: meanwhile calls pile up for it.
fn leaves_after_a_pause(
    broker: &Broker,
    shared: &Arc<Shared>,
    ready: tokio::sync::oneshot::Sender<String>,
    go: tokio::sync::oneshot::Receiver<()>,
) -> impl FnOnce() + Send + 'static {
    let (url, shared) = (broker.url(), shared.clone());
    move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let leaves = worker_at(&url, "leaves", &shared, fast()).await;
            ready.send(leaves.id.clone()).unwrap();
            go.await.unwrap();
            std::thread::sleep(Duration::from_millis(200));
            leaves.stop().await;
        });
    }
}

/// By hand, so that more calls are on their way than any number that a worker may guess.
#[tokio::test(flavor = "multi_thread")]
async fn each_call_that_the_broker_gives_to_a_worker_that_leaves_is_answered_or_bounced() {
    let mut broker = Broker::start(&[]).await;
    let shared = Shared::new();
    for restarted in [false, true] {
        let (ready, is_ready) = tokio::sync::oneshot::channel();
        let (go, told) = tokio::sync::oneshot::channel();
        let leaves = leaves_after_a_pause(&broker, &shared, ready, told);
        let leaves = tokio::task::spawn_blocking(leaves);
        let id = is_ready.await.unwrap();
        // Some go to the worker itself, as they do when it has offered a slot.
        let subjects = ["mcp.test.call".to_owned(), format!("mcp.test.worker.{id}")];
        let served = async |broker: &Broker| {
            let connection = broker.connect().await;
            let fleet = taut_nats::fleet(&connection, None, Duration::from_secs(5)).await.unwrap();
            !fleet.is_empty()
        };
        if restarted {
            broker.kill();
            broker.restart().await;
            eventually(async || served(&broker).await).await;
        }
        let client = async_nats::connect(broker.url()).await.unwrap();
        let mut inbox = client.subscribe("_INBOX.hand.*").await.unwrap();
        let request = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}"#;
        go.send(()).unwrap();
        let (mut published, mut waiting) = (0, HashSet::new());
        let number = |subject: &str| subject.rsplit('.').next().unwrap().parse::<usize>().ok();
        let answered = |message: async_nats::Message| {
            let reply = || number(message.reply.as_ref().unwrap());
            number(&message.subject).or_else(reply).unwrap()
        };
        while !leaves.is_finished() {
            // Steadily, and no more than this client can read at once.
            for _ in 0..32 {
                if waiting.len() >= 10_000 {
                    break;
                }
                let reply = format!("_INBOX.hand.{published}");
                // Few, so that the worker comes to an end of them.
                let subject = subjects[usize::from(published % 16 == 0)].clone();
                client.publish_with_reply(subject, reply, request.into()).await.unwrap();
                waiting.insert(published);
                published += 1;
            }
            let pause = tokio::time::sleep(Duration::from_millis(1));
            let mut pause = std::pin::pin!(pause);
            loop {
                tokio::select! {
                    message = inbox.next() => drop(waiting.remove(&answered(message.unwrap()))),
                    () = &mut pause => break,
                }
            }
        }
        leaves.await.unwrap();
        let gather = async {
            while !waiting.is_empty() {
                let message = inbox.next().await.unwrap();
                waiting.remove(&answered(message));
            }
        };
        let gathered = tokio::time::timeout(Duration::from_secs(10), gather).await;
        let lost = waiting.len();
        assert!(gathered.is_ok(), "{lost} of {published} calls lost; restarted: {restarted}");
    }
}
