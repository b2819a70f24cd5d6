//! An edge: the way of a client's requests to the workers of a service.
//!
//! Knows the inbox, which call each message belongs to, and how many bytes may be under way; `call` knows
//! one call. Must not know what a request asks for.

mod attempt;
mod call;
mod listen;
mod offers;
mod repeat;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_nats::{Message, StatusCode, Subscriber};
use futures_util::StreamExt;
use taut::transport::MessagePipe;
use taut::{Client, ClientBuilder, Revision};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::connection::{Connection, NatsError};
use crate::frame::{Frame, Kind, ServiceName};
use crate::message::{self, Outbound};
use call::EdgeCall;
use repeat::Repeatable;

/// How many messages may wait for one call: two windows, and what is said without JSON.
const WAITING: usize = 16;

/// How many bytes of requests may be under way, and how many of answers in parts.
const UNDER_WAY: usize = 256 << 20;

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
        self.wait = limit;
        self
    }

    /// Sets how long a worker may take to accept a call. 5 s.
    #[must_use]
    pub fn accept(mut self, limit: Duration) -> Self {
        self.accept = limit;
        self
    }

    /// Sets how long a call may take in all. No limit unless set.
    #[must_use]
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.deadline = Some(limit);
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
    options: EdgeOptions,
    /// Where all answers go, each with the number of its call behind it.
    inbox: String,
    calls: Mutex<HashMap<u64, Entry>>,
    next: AtomicU64,
    began: Instant,
    requests: Semaphore,
    answers: Arc<Semaphore>,
    repeatable: Repeatable,
}

/// A call that waits.
struct Entry {
    events: mpsc::Sender<Event>,
    /// When its worker was heard for the last time, in milliseconds since the edge began.
    seen: Arc<AtomicU64>,
    /// Whether its worker misses an ack.
    unacknowledged: Arc<AtomicBool>,
    /// Where free slots are told of, once it was bounced.
    offers: Option<mpsc::Sender<String>>,
}

/// What a call hears.
#[derive(Debug)]
enum Event {
    Frame(Box<Frame>),
    /// The broker says that nobody takes what was sent.
    Nobody,
}

/// The inbox of one call; dropped, it is closed.
struct Inbox {
    shared: Arc<Shared>,
    number: u64,
    subject: String,
    events: mpsc::Receiver<Event>,
    seen: Arc<AtomicU64>,
    unacknowledged: Arc<AtomicBool>,
}

impl Inbox {
    fn seen(&self) -> Instant {
        self.shared.began + Duration::from_millis(self.seen.load(Ordering::Relaxed))
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.shared.lock().remove(&self.number);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Entry>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn open_inbox(self: &Arc<Self>) -> Inbox {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, events) = mpsc::channel(WAITING);
        let seen = Arc::new(AtomicU64::new(self.now()));
        let unacknowledged = Arc::new(AtomicBool::new(false));
        let entry = Entry {
            events: sender,
            seen: seen.clone(),
            unacknowledged: unacknowledged.clone(),
            offers: None,
        };
        self.lock().insert(number, entry);
        let subject = format!("{}.{number}", self.inbox);
        Inbox { shared: self.clone(), number, subject, events, seen, unacknowledged }
    }

    /// A worker has a free slot for a call that it bounced.
    fn offered(&self, number: u64, worker: &str, reply: &str) {
        let offers = self.lock().get(&number).and_then(|entry| entry.offers.clone());
        if offers.is_some_and(|offers| offers.try_send(worker.to_owned()).is_ok()) {
            return;
        }
        let (connection, service) = (self.connection.clone(), self.service.clone());
        let (worker, reply) = (worker.to_owned(), reply.to_owned());
        tokio::spawn(async move {
            offers::decline(&connection, &service, &worker, &reply).await;
        });
    }

    /// Gives a message to the call that it belongs to. One that nobody waits for any more is dropped.
    fn deliver(&self, message: &Message) {
        let number = message.subject.rsplit('.').next().and_then(|number| number.parse().ok());
        let Some(number) = number else { return };
        let event = if message.status == Some(StatusCode::NO_RESPONDERS) {
            Event::Nobody
        } else {
            match Frame::read(message) {
                Ok(frame) => Event::Frame(frame.into()),
                Err(error) => return tracing::warn!("{error} came from a worker"),
            }
        };
        if let Event::Frame(frame) = &event
            && let Kind::Free { worker } = &frame.kind
        {
            return self.offered(number, worker, message.subject.as_str());
        }
        let mut calls = self.lock();
        let Some(entry) = calls.get(&number) else { return };
        if let Event::Frame(frame) = &event {
            entry.seen.store(self.now(), Ordering::Relaxed);
            if let Kind::Heartbeat { unacknowledged } = frame.kind {
                entry.unacknowledged.store(unacknowledged, Ordering::Relaxed);
                return;
            }
        }
        if let Err(mpsc::error::TrySendError::Full(_)) = entry.events.try_send(event) {
            // More than its window: the call sees that its inbox has ended.
            calls.remove(&number);
        }
    }
}

async fn deliver_all(shared: Weak<Shared>, mut messages: Subscriber) {
    while let Some(message) = messages.next().await {
        let Some(shared) = shared.upgrade() else { return };
        shared.deliver(&message);
    }
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
        let shared = Arc::new(Shared {
            connection,
            service: name,
            options,
            inbox,
            calls: Mutex::default(),
            next: AtomicU64::new(0),
            began: Instant::now(),
            requests: Semaphore::new(UNDER_WAY),
            answers: Arc::new(Semaphore::new(UNDER_WAY)),
            repeatable: Repeatable::default(),
        });
        tokio::spawn(deliver_all(Arc::downgrade(&shared), messages));
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
        // Dropping a call's entry cancels it.
        let mut open: HashMap<String, watch::Sender<()>> = HashMap::new();
        let mut tasks: JoinSet<String> = JoinSet::new();
        loop {
            tokio::select! {
                outgoing = receiver.recv() => {
                    let Some(outgoing) = outgoing else { break };
                    match message::outbound(outgoing.json) {
                        Outbound::Request(request) => {
                            let wanted = request.json.len().min(UNDER_WAY);
                            let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
                            let shared = self.0.clone();
                            // Taken here, so that a client that sends too much waits.
                            let Ok(room) = shared.requests.acquire_many(wanted).await else { break };
                            room.forget();
                            let (cancel, cancelled) = watch::channel(());
                            let id = request.id.clone();
                            open.insert(id.clone(), cancel);
                            let call = EdgeCall::new(self.clone(), request, sender.clone(), cancelled);
                            tasks.spawn(async move {
                                call.run().await;
                                shared.requests.add_permits(wanted as usize);
                                id
                            });
                        }
                        Outbound::Cancelled(id) => drop(open.remove(&id)),
                        Outbound::Other => {}
                    }
                }
                Some(done) = tasks.join_next(), if !tasks.is_empty() => {
                    if let Ok(id) = done {
                        open.remove(&id);
                    }
                }
            }
        }
        drop(open);
        while tasks.join_next().await.is_some() {}
        self.0.connection.flush(Duration::from_secs(1)).await;
        // Until here the client that closes waits for its transport.
        drop(sender);
    }
}
