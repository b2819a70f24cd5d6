//! Servers of workers that die in a call, or that cannot be started: what is then true of the call.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use taut::types::SubscriptionFilter;
use taut::{Change, Client, ClientBuilder, Proxy};
use taut_nats::{EdgeOptions, Worker};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinHandle};

use crate::broker::Broker;
use crate::fleet::{Shared, edge, fast, server};
use crate::{eventually, reason};

/// A worker whose servers can be killed, and kept from being started.
struct Fragile {
    /// Each server that was started.
    servers: mpsc::UnboundedReceiver<AbortHandle>,
    broken: Arc<AtomicBool>,
    /// How often one could not be started.
    failed: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Fragile {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Fragile {
    async fn start(broker: &Broker, shared: &Arc<Shared>) -> Self {
        let broken = Arc::new(AtomicBool::new(false));
        let failed = Arc::new(AtomicUsize::new(0));
        let (started, servers) = mpsc::unbounded_channel();
        let (shared, is_broken, count) = (shared.clone(), broken.clone(), failed.clone());
        let connector = move |client: ClientBuilder| {
            let (shared, started) = (shared.clone(), started.clone());
            let (is_broken, count) = (is_broken.clone(), count.clone());
            async move {
                let (ours, theirs) = tokio::io::duplex(64 << 10);
                if is_broken.load(Ordering::SeqCst) {
                    count.fetch_add(1, Ordering::SeqCst);
                    drop(theirs);
                } else {
                    let (reader, writer) = tokio::io::split(theirs);
                    let server = server("fragile", &shared);
                    let running = tokio::spawn(async move { server.serve(reader, writer).await });
                    started.send(running.abort_handle()).unwrap();
                }
                let (reader, writer) = tokio::io::split(ours);
                client.connect(reader, writer).await
            }
        };
        let (name, answers) =
            ("test".parse().unwrap(), Arc::new(Proxy::builder(connector).build()));
        let (told, ready) = oneshot::channel();
        let worker = Worker::new(broker.connect().await, name, answers, fast());
        let worker = worker.on_ready(move || told.send(()).unwrap());
        let task = tokio::spawn(async move { worker.run(std::future::pending()).await.unwrap() });
        ready.await.unwrap();
        Self { servers, broken, failed, task }
    }

    /// Kills the server that was started last.
    fn kill(&mut self) {
        let mut last = None;
        while let Ok(server) = self.servers.try_recv() {
            last = Some(server);
        }
        last.expect("a server was started").abort();
    }
}

async fn opened(broker: &Broker) -> Client {
    edge(broker, EdgeOptions::new()).await.open(Client::builder()).await.unwrap()
}

#[tokio::test]
async fn a_call_whose_server_died_may_have_run() {
    let broker = Broker::start(&[]).await;
    let shared = Shared::new();
    let mut worker = Fragile::start(&broker, &shared).await;
    let client = opened(&broker).await;
    let held = tokio::spawn(client.call("hold", json!({})).into_future());
    shared.world.began.notified().await;
    worker.kill();
    let error = held.await.unwrap().unwrap_err();
    assert_eq!(reason(&error), ("worker".to_owned(), true), "{error}");
    assert!(error.to_string().contains("it may have run"), "{error}");
    // Another one is started for the next call.
    client.call("count", json!({})).await.unwrap();
}

#[tokio::test]
async fn what_may_run_twice_is_repeated_after_its_server_died() {
    let broker = Broker::start(&[]).await;
    let shared = Shared::new();
    let mut worker = Fragile::start(&broker, &shared).await;
    let client = opened(&broker).await;
    let held = tokio::spawn(client.call("hold_freely", json!({})).into_future());
    shared.world.began.notified().await;
    worker.kill();
    shared.world.began.notified().await;
    shared.go.add_permits(1);
    assert_eq!(held.await.unwrap().unwrap().text().unwrap(), "held");
}

#[tokio::test]
async fn a_call_whose_server_cannot_be_started_did_not_run() {
    let broker = Broker::start(&[]).await;
    let shared = Shared::new();
    let mut worker = Fragile::start(&broker, &shared).await;
    let client = opened(&broker).await;
    worker.broken.store(true, Ordering::SeqCst);
    worker.kill();
    // The first may have met the server that was just killed.
    let mut told = ("worker".to_owned(), true);
    while told == ("worker".to_owned(), true) {
        let error = client.call("count", json!({})).await.unwrap_err();
        told = reason(&error);
        assert_eq!(error.to_string().contains("nothing ran"), !told.1, "{error}");
    }
    assert_eq!(told, ("worker".to_owned(), false));
    assert_eq!(shared.world.runs.load(Ordering::SeqCst), 0);
    worker.broken.store(false, Ordering::SeqCst);
    client.call("count", json!({})).await.unwrap();
}

/// Also when that takes longer than a call would wait for a free slot.
#[tokio::test]
async fn a_stream_of_changes_goes_on_once_its_server_can_be_started_again() {
    let broker = Broker::start(&[]).await;
    let mut worker = Fragile::start(&broker, &Shared::new()).await;
    let options = EdgeOptions::new().wait(Duration::from_millis(1));
    let client = edge(&broker, options).await.open(Client::builder()).await.unwrap();
    let filter = SubscriptionFilter::new().tools_list_changed(true);
    let mut changes = client.listen(filter).await.unwrap();
    worker.broken.store(true, Ordering::SeqCst);
    worker.kill();
    let failed = worker.failed.clone();
    eventually(async || failed.load(Ordering::SeqCst) > 5).await;
    worker.broken.store(false, Ordering::SeqCst);
    assert_eq!(changes.next().await.unwrap(), Some(Change::Tools));
}
