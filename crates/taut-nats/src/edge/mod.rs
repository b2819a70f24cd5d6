//! An edge: the way of a client's requests to the workers of a service.
//!
//! Knows the inbox, which call each message belongs to, and how many bytes may be under way; `call` knows
//! one call. Must not know what a request asks for.

mod attempt;
mod call;
mod inbox;
mod listen;
mod offers;
mod repeat;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::Subject;
use futures_util::FutureExt;
use taut::transport::{MessagePipe, bounded};
use taut::{Client, ClientBuilder, Revision};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::connection::{Connection, NatsError};
use crate::frame::{Frame, Kind, Trace};
use crate::message::{self, Outbound, Request};
use crate::names::ServiceName;
use call::EdgeCall;
use inbox::{BegunCall, Calls, ClientEnd, QuickCall};
use repeat::Repeatable;

/// How many bytes of requests may be under way, and how many of answers in parts.
const UNDER_WAY: usize = 256 << 20;

/// What a request counts at least, so that an edge has at most 16,384 calls under way: an answer that fits into one
/// message comes unasked, and each call can have one. More calls wait until others have ended.
const SHARE: usize = 16 << 10;

/// How many messages of a client are taken at once.
const AT_ONCE: usize = 32;

/// How an edge waits.
#[derive(Clone, Debug)]
pub struct EdgeOptions {
    wait: Duration,
    accept: Duration,
    deadline: Option<Duration>,
}

impl Default for EdgeOptions {
    fn default() -> Self {
        Self { wait: Duration::from_secs(30), accept: Duration::from_secs(5), deadline: None }
    }
}

impl EdgeOptions {
    /// Waits 30 s for a free worker and 5 s for a sign of it; a call has no deadline.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how long a call waits for a worker with a free slot, or for the broker. 30 s.
    #[must_use]
    pub fn wait(mut self, limit: Duration) -> Self {
        self.wait = bounded(limit);
        self
    }

    /// Sets how long a worker may take to accept a call. 5 s.
    #[must_use]
    pub fn accept(mut self, limit: Duration) -> Self {
        self.accept = bounded(limit);
        self
    }

    /// Sets how long a call may take in all. No limit unless set.
    #[must_use]
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.deadline = Some(bounded(limit));
        self
    }
}

/// How clients reach the workers of a service. Clones are the same edge.
#[derive(Clone)]
pub struct Edge(Arc<Shared>);

impl fmt::Debug for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Edge").field(&self.0.service).finish()
    }
}

struct Shared {
    connection: Connection,
    service: ServiceName,
    /// Where calls for any worker go.
    group: Subject,
    options: EdgeOptions,
    /// Where all answers go, each with the number of its call behind it.
    inbox: String,
    calls: Mutex<Calls>,
    /// Is told when there are calls without a task.
    watch: mpsc::Sender<()>,
    next: AtomicU64,
    began: Instant,
    requests: Arc<Semaphore>,
    answers: Arc<Semaphore>,
    repeatable: Repeatable,
}

impl Edge {
    /// An edge for the service `name`.
    ///
    /// # Errors
    /// The connection cannot be used.
    pub async fn new(
        connection: Connection,
        name: ServiceName,
        options: EdgeOptions,
    ) -> Result<Self, NatsError> {
        let inbox = connection.client().new_inbox();
        let subscribed = connection.client().subscribe(format!("{inbox}.*")).await;
        let messages = subscribed.map_err(|error| NatsError::new(error.to_string()))?;
        let (watch, begun) = mpsc::channel(1);
        let accept = options.accept;
        let shared = Arc::new(Shared {
            connection,
            group: name.calls(),
            service: name,
            options,
            inbox,
            calls: Mutex::default(),
            watch,
            next: AtomicU64::new(0),
            began: Instant::now(),
            requests: Arc::new(Semaphore::new(UNDER_WAY)),
            answers: Arc::new(Semaphore::new(UNDER_WAY)),
            repeatable: Repeatable::default(),
        });
        tokio::spawn(inbox::deliver_all(Arc::downgrade(&shared), messages));
        tokio::spawn(inbox::watch_all(Arc::downgrade(&shared), begun, accept));
        Ok(Self(shared))
    }

    /// Opens a client whose requests go to the workers. It speaks revision 2026-07-28 and no other.
    ///
    /// # Errors
    /// No worker answers; the words say why.
    pub async fn open(&self, builder: ClientBuilder) -> taut::Result<Client> {
        let (pipe, client) = builder.revision(Revision::V2026_07_28).connect_messages();
        tokio::spawn(self.clone().carry(pipe));
        client.await
    }

    /// Carries the messages of one client until it closes.
    async fn carry(self, pipe: MessagePipe) {
        let (sender, mut receiver) = pipe.split();
        let (client, mut begun) = ClientEnd::new(sender);
        let mut tasks = Tasks { edge: self.clone(), open: HashMap::new(), set: JoinSet::new() };
        loop {
            tokio::select! {
                outgoing = receiver.recv() => {
                    let (mut next, mut taken) = (outgoing, 0);
                    if next.is_none() {
                        break;
                    }
                    // Those that are there are taken at once: to look at everything for each costs more.
                    while let Some(outgoing) = next.take() {
                        match message::outbound(outgoing.json) {
                            Outbound::Request(request) => {
                                let room = self.room_for(&request).await;
                                if self.is_quick(&request) {
                                    self.publish(request, &client, room).await;
                                } else {
                                    tasks.start(request, &client, room);
                                }
                            }
                            Outbound::Cancelled(id) => {
                                let wanted = |call: &QuickCall| {
                                    Arc::ptr_eq(&call.client, &client) && call.request.id == id
                                };
                                self.0.give_tasks(wanted);
                                while let Ok(call) = begun.try_recv() {
                                    tasks.go_on(call);
                                }
                                drop(tasks.open.remove(&id));
                            }
                            Outbound::Other => {}
                        }
                        taken += 1;
                        if taken < AT_ONCE {
                            // The end is seen again.
                            next = receiver.recv().now_or_never().flatten();
                        }
                    }
                }
                Some(call) = begun.recv() => tasks.go_on(call),
                Some(done) = tasks.set.join_next(), if !tasks.set.is_empty() => {
                    if let Ok(id) = done {
                        tasks.open.remove(&id);
                    }
                }
            }
        }
        self.0.give_tasks(|call| Arc::ptr_eq(&call.client, &client));
        while let Ok(call) = begun.try_recv() {
            tasks.go_on(call);
        }
        drop(tasks.open);
        while tasks.set.join_next().await.is_some() {}
        self.0.connection.flush(Duration::from_secs(1)).await;
        // Until here the client that closes waits for its transport.
        drop(client);
    }

    /// The share of a request in the bytes that may be under way. It is waited for before the next request is taken, so
    /// that a client that sends too much waits.
    async fn room_for(&self, request: &Request) -> Option<OwnedSemaphorePermit> {
        let wanted = request.json.len().clamp(SHARE, UNDER_WAY);
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
        let requests = &self.0.requests;
        match requests.clone().try_acquire_many_owned(wanted) {
            Ok(room) => Some(room),
            // It is never closed.
            Err(_) => requests.clone().acquire_many_owned(wanted).await.ok(),
        }
    }

    /// Whether a request can be published without a task: it fits into one message, any worker will do, and its time
    /// is not limited.
    fn is_quick(&self, request: &Request) -> bool {
        let Shared { connection, options, .. } = &*self.0;
        request.worker.is_none()
            && request.method != "subscriptions/listen"
            && request.json.len() <= connection.part_size()
            && options.deadline.is_none()
            && connection.link().connected
    }

    /// Publishes a request whose answer is all that is expected.
    async fn publish(
        &self,
        request: Request,
        client: &Arc<ClientEnd>,
        room: Option<OwnedSemaphorePermit>,
    ) {
        let Shared { connection, group, .. } = &*self.0;
        let (json, client) = (request.json.clone(), client.clone());
        let traced = (request.trace != Trace::default()).then(|| Kind::Call {
            method: request.method.clone(),
            deadline: None,
            trace: request.trace.clone(),
        });
        let call = QuickCall { request, client, published: Instant::now(), room };
        let reply = self.0.expect(call);
        match traced {
            None => connection.publish(group, Some(&reply), &json).await,
            Some(kind) => {
                let frame = Frame { payload: json, ..Frame::bare(kind) };
                connection.send(group, Some(&reply), frame).await;
            }
        }
    }
}

/// The calls of a client that have a task.
struct Tasks {
    edge: Edge,
    /// Dropping a call's entry cancels it.
    open: HashMap<String, watch::Sender<()>>,
    set: JoinSet<String>,
}

impl Tasks {
    /// Starts a call.
    fn start(&mut self, request: Request, client: &ClientEnd, room: Option<OwnedSemaphorePermit>) {
        let (cancel, cancelled) = watch::channel(());
        let call = EdgeCall::new(self.edge.clone(), request, client.sender.clone(), cancelled);
        self.spawn(call, cancel, room);
    }

    /// Goes on with a call that was published.
    fn go_on(&mut self, begun: BegunCall) {
        let BegunCall { call, inbox } = begun;
        let QuickCall { request, client, published, room } = call;
        let (cancel, cancelled) = watch::channel(());
        let call = EdgeCall::new(self.edge.clone(), request, client.sender.clone(), cancelled);
        self.spawn(call.begun(inbox, published), cancel, room);
    }

    fn spawn(
        &mut self,
        call: EdgeCall,
        cancel: watch::Sender<()>,
        room: Option<OwnedSemaphorePermit>,
    ) {
        let id = call.request.id.clone();
        self.open.insert(id.clone(), cancel);
        // In a box, because it is large, and is moved several times before it runs.
        let running = Box::pin(call.run());
        self.set.spawn(async move {
            running.await;
            drop(room);
            id
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Set = fn(EdgeOptions, Duration) -> EdgeOptions;
    type Get = fn(&EdgeOptions) -> Duration;

    /// Every option that is a time may be the longest: it is added to the time of day.
    #[test]
    fn every_duration_of_an_edge_can_be_counted() {
        let table: [(&str, Set, Get); 3] = [
            ("wait", EdgeOptions::wait, |options| options.wait),
            ("accept", EdgeOptions::accept, |options| options.accept),
            ("deadline", EdgeOptions::deadline, |options| options.deadline.unwrap_or_default()),
        ];
        let source = include_str!("mod.rs");
        let takes_time =
            |line: &&str| line.trim_start().starts_with("pub fn ") && line.contains(": Duration)");
        assert_eq!(source.lines().filter(takes_time).count(), table.len(), "each has a row");
        for (name, set, time) in table {
            let set = set(EdgeOptions::default(), Duration::MAX);
            assert!(Instant::now().checked_add(time(&set)).is_some(), "{name}");
        }
    }
}
