//! Workers and edges for a test, in this process: every worker has a server of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use taut::types::ToolAnnotations;
use taut::{Call, Changes, Client, JsonSchema, NoArgs, Server, Tool, UserReply};
use taut_nats::{ConnectOptions, Edge, EdgeOptions, Worker, WorkerOptions};
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::task::JoinHandle;

use crate::broker::Broker;

/// What the tools of all workers of a test do and count.
#[derive(Default)]
pub(crate) struct World {
    /// How often `count` and `count_freely` ran.
    pub(crate) runs: AtomicUsize,
    /// How many `hold` are under way.
    pub(crate) held: AtomicUsize,
    pub(crate) began: Notify,
    pub(crate) dropped: Notify,
}

/// A permit for each `hold` that may go on.
pub(crate) struct Shared {
    pub(crate) world: World,
    pub(crate) go: Semaphore,
}

impl Shared {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { world: World::default(), go: Semaphore::new(0) })
    }
}

/// Add two numbers.
#[derive(serde::Deserialize, JsonSchema)]
pub(crate) struct Add {
    a: f64,
    b: f64,
}

/// Give back a text, so many times.
#[derive(serde::Deserialize, JsonSchema)]
pub(crate) struct Repeat {
    text: String,
    times: usize,
}

#[derive(serde::Deserialize, JsonSchema)]
pub(crate) struct Name {
    name: String,
}

struct Held(Arc<Shared>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.world.held.fetch_sub(1, Ordering::SeqCst);
        self.0.world.dropped.notify_one();
    }
}

/// What one server knows: its name, and what it shares with the others.
pub(crate) struct State(String, Arc<Shared>);

async fn count(_: NoArgs, call: Call<State>) -> String {
    call.state().1.world.runs.fetch_add(1, Ordering::SeqCst).to_string()
}

async fn hold(_: NoArgs, call: Call<State>) -> &'static str {
    let shared = call.state().1.clone();
    shared.world.held.fetch_add(1, Ordering::SeqCst);
    let _held = Held(shared.clone());
    shared.world.began.notify_one();
    call.progress(0.5);
    shared.go.acquire().await.unwrap().forget();
    "held"
}

async fn greet(_: NoArgs, call: Call<State>) -> Result<String, taut::AskError> {
    Ok(match call.ask::<Name>("Who are you?").await? {
        UserReply::Accepted(Name { name }) => format!("hello {name}"),
        _ => "hello".to_owned(),
    })
}

/// Asks later than a worker takes to accept a call.
async fn greet_late(_: NoArgs, call: Call<State>) -> Result<String, taut::AskError> {
    tokio::time::sleep(Duration::from_millis(50)).await;
    greet(NoArgs {}, call).await
}

pub(crate) fn server(name: &str, shared: &Arc<Shared>) -> Server<State> {
    let free = |name: &str| {
        let hint = ToolAnnotations::new().idempotent_hint(true);
        Tool::new(name).description("May run twice.").annotations(hint)
    };
    Server::with_state(name, "1.0", State(name.to_owned(), shared.clone()))
        .changing()
        .tool("add", async |Add { a, b }, _call: Call<State>| a + b)
        .tool("repeat", async |Repeat { text, times }, _call: Call<State>| text.repeat(times))
        .tool(("who", "Its name."), async |_: NoArgs, call: Call<State>| call.state().0.clone())
        .tool(("count", "Counts its runs."), count)
        .tool(free("count_freely"), count)
        .tool(("hold", "Waits."), hold)
        .tool(free("hold_freely"), hold)
        .tool(("greet", "Asks."), greet)
        .tool(("greet_late", "Asks after a while."), greet_late)
        .build()
        .unwrap()
}

/// A worker that runs until it is stopped.
pub(crate) struct Running {
    pub(crate) id: String,
    pub(crate) changes: Changes<State>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    /// Tells it to stop and waits for its end.
    pub(crate) async fn stop(self) {
        let _ = self.stop.send(());
        self.task.await.unwrap();
    }

    /// Ends it as a crash would.
    pub(crate) fn crash(self) {
        self.task.abort();
    }
}

pub(crate) async fn worker(
    broker: &Broker,
    name: &str,
    shared: &Arc<Shared>,
    options: WorkerOptions,
) -> Running {
    worker_at(&broker.url(), name, shared, options).await
}

/// The same, by the address of the broker.
pub(crate) async fn worker_at(
    url: &str,
    name: &str,
    shared: &Arc<Shared>,
    options: WorkerOptions,
) -> Running {
    let connect = || ConnectOptions::new().url(url).connect();
    let connection = connect().await.unwrap();
    let server = server(name, shared);
    let (changes, answers) = (server.changes(), Arc::new(server));
    let worker = Worker::new(connection, "test".parse().unwrap(), answers, options);
    let id = worker.id().to_owned();
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        let stopped = async { stopped.await.unwrap_or(()) };
        worker.run(stopped).await.unwrap();
    });
    let running = Running { id, changes, stop, task };
    // Ready when the fleet lists it.
    let connection = connect().await.unwrap();
    eventually(async || {
        let workers = taut_nats::fleet(&connection, None, Duration::from_secs(5)).await.unwrap();
        workers.iter().any(|worker| worker.worker == running.id)
    })
    .await;
    running
}

pub(crate) fn fast() -> WorkerOptions {
    WorkerOptions::new().heartbeat(Duration::from_millis(200))
}

pub(crate) async fn edge(broker: &Broker, options: EdgeOptions) -> Edge {
    Edge::new(broker.connect().await, "test".parse().unwrap(), options).await.unwrap()
}

pub(crate) async fn client(broker: &Broker) -> Client {
    let edge = edge(broker, EdgeOptions::new()).await;
    edge.open(Client::builder()).await.unwrap()
}

/// Waits until something holds.
pub(crate) async fn eventually(mut holds: impl AsyncFnMut() -> bool) {
    let end = tokio::time::Instant::now() + Duration::from_secs(60);
    while !holds().await {
        assert!(tokio::time::Instant::now() < end, "it does not come to hold");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
