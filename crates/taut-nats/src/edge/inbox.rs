//! Where the messages about calls arrive, and to whom each of them goes.
//!
//! Knows the number of each attempt and who waits for it; must not know what a call does with what it hears. A call
//! that was published and of which nothing was heard needs no task: most calls are answered by one message. Anything
//! else that happens to it gives it one, and [`EdgeCall`](super::call::EdgeCall) goes on from there.

use std::collections::HashMap;
use std::collections::hash_map;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_nats::{Message, StatusCode, Subject, Subscriber};
use futures_util::StreamExt;
use taut::transport::MessageSender;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;

use super::call::pass_answer;
use super::{Shared, offers};
use crate::frame::{Frame, Kind};
use crate::hash::Key;
use crate::message::Request;
use crate::names::CallName;

/// How many messages may wait for one call: two windows, and what is said without JSON.
const WAITING: usize = 16;

/// The calls of an edge that wait, by the number of their attempt.
#[derive(Default)]
pub(super) struct Calls {
    entries: HashMap<u64, Entry, Key>,
    /// Whether calls without a task are looked at from time to time.
    watched: bool,
}

/// A call that waits.
enum Entry {
    /// It was published, and nothing was heard of it.
    Quick(QuickCall),
    /// It has a task.
    Task(Listener),
}

/// A call without a task.
pub(super) struct QuickCall {
    pub(super) request: Request,
    pub(super) client: Arc<ClientEnd>,
    pub(super) published: Instant,
    /// Its share of the bytes that may be under way.
    pub(super) room: Option<OwnedSemaphorePermit>,
}

/// A call that was published, and that needs a task now.
pub(super) struct BegunCall {
    pub(super) call: QuickCall,
    pub(super) inbox: Inbox,
}

/// A client of an edge.
pub(super) struct ClientEnd {
    pub(super) sender: MessageSender,
    /// Takes the calls that need a task.
    begun: mpsc::UnboundedSender<BegunCall>,
}

impl ClientEnd {
    /// The client, and its calls that need a task; there are not more of them than it has under way.
    pub(super) fn new(sender: MessageSender) -> (Arc<Self>, mpsc::UnboundedReceiver<BegunCall>) {
        let (begun, calls) = mpsc::unbounded_channel();
        (Arc::new(Self { sender, begun }), calls)
    }
}

/// How the task of a call hears of it.
struct Listener {
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
pub(super) enum Event {
    Frame(Box<Frame>),
    /// The broker says that nobody takes what was sent.
    Nobody,
}

/// The inbox of one attempt; dropped, it is closed.
pub(super) struct Inbox {
    shared: Arc<Shared>,
    number: u64,
    pub(super) subject: Subject,
    pub(super) events: mpsc::Receiver<Event>,
    seen: Arc<AtomicU64>,
    pub(super) unacknowledged: Arc<AtomicBool>,
}

impl Inbox {
    pub(super) fn seen(&self) -> Instant {
        self.shared.began + Duration::from_millis(self.seen.load(Ordering::Relaxed))
    }

    /// Free slots are told of here from now on.
    pub(super) fn tell_offers(&self, offers: &mpsc::Sender<String>) {
        if let Some(Entry::Task(listener)) = self.shared.lock().entries.get_mut(&self.number) {
            listener.offers = Some(offers.clone());
        }
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        let _gone = self.shared.lock().entries.remove(&self.number);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The name of a call.
    fn subject(&self, number: u64) -> Subject {
        CallName::subject(&self.inbox, number)
    }

    /// A new inbox, for a call with a task.
    pub(super) fn open_inbox(self: &Arc<Self>) -> Inbox {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (listener, inbox) = self.listener(number);
        self.lock().entries.insert(number, Entry::Task(listener));
        inbox
    }

    fn listener(self: &Arc<Self>, number: u64) -> (Listener, Inbox) {
        let (sender, events) = mpsc::channel(WAITING);
        let seen = Arc::new(AtomicU64::new(self.now()));
        let unacknowledged = Arc::new(AtomicBool::new(false));
        let listener = Listener {
            events: sender,
            seen: seen.clone(),
            unacknowledged: unacknowledged.clone(),
            offers: None,
        };
        let (shared, subject) = (self.clone(), self.subject(number));
        (listener, Inbox { shared, number, subject, events, seen, unacknowledged })
    }

    /// Takes in a call that is about to be published without a task. Returns where its answer is expected.
    pub(super) fn expect(&self, call: QuickCall) -> Subject {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut calls = self.lock();
        calls.entries.insert(number, Entry::Quick(call));
        let watched = std::mem::replace(&mut calls.watched, true);
        drop(calls);
        if !watched {
            // It is full only if it was told before, and gone with the edge.
            let _ = self.watch.try_send(());
        }
        self.subject(number)
    }

    /// Gives those calls a task that have none.
    pub(super) fn give_tasks(self: &Arc<Self>, which: impl Fn(&QuickCall) -> bool) {
        let mut unsent = Vec::new();
        let mut calls = self.lock();
        for (number, entry) in &mut calls.entries {
            if matches!(entry, Entry::Quick(call) if which(call)) {
                unsent.extend(self.give_task(*number, entry, None));
            }
        }
        drop(calls);
    }

    /// Gives a call a task. `first` is what it hears first. Returns it if its client is gone: to be dropped after the
    /// lock. While that is held nobody can see the call without the one or the other.
    fn give_task(
        self: &Arc<Self>,
        number: u64,
        entry: &mut Entry,
        first: Option<Event>,
    ) -> Option<BegunCall> {
        let (listener, inbox) = self.listener(number);
        if let Some(first) = first {
            // There is room: nothing was sent there before.
            let _ = listener.events.try_send(first);
        }
        match std::mem::replace(entry, Entry::Task(listener)) {
            Entry::Quick(call) => {
                let client = call.client.clone();
                client.begun.send(BegunCall { call, inbox }).err().map(|unsent| unsent.0)
            }
            Entry::Task(_) => None,
        }
    }

    /// A worker has a free slot for a call that it bounced.
    fn offered(&self, number: u64, worker: &str, reply: &Subject) {
        let offers = match self.lock().entries.get(&number) {
            Some(Entry::Task(listener)) => listener.offers.clone(),
            _ => None,
        };
        if offers.is_some_and(|offers| offers.try_send(worker.to_owned()).is_ok()) {
            return;
        }
        let (connection, service) = (self.connection.clone(), self.service.clone());
        let (worker, reply) = (worker.to_owned(), reply.clone());
        tokio::spawn(async move {
            offers::decline(&connection, &service, &worker, &reply).await;
        });
    }

    /// Tells a worker that works on a call which nobody waits for: it came to the call too late, or what was said to it
    /// was lost. Other messages about such a call are dropped.
    fn tell_that_nobody_waits(&self, number: u64, frame: &Frame, from: Option<&Subject>) {
        let worker = match &frame.kind {
            Kind::Accepted { worker, .. } => Some(worker.as_str()),
            Kind::Heartbeat { .. } => from.and_then(|from| self.service.worker_of(from)),
            _ => None,
        };
        let Some(worker) = worker else { return };
        let (worker, call) = (self.service.of_worker(worker), self.subject(number));
        // Without room it is left out: the next heartbeat comes to the same.
        self.connection.send_now(&worker, &call, Frame::bare(Kind::Cancel));
    }

    /// Gives a message to the call that it belongs to.
    fn deliver(self: &Arc<Self>, message: Message) {
        let Some(number) = CallName::number(&message, &self.inbox) else { return };
        let event = if message.status == Some(StatusCode::NO_RESPONDERS) {
            Event::Nobody
        } else if message.headers.is_none()
            && let Some(call) = self.take_quick(number)
        {
            return call.answered(message.payload.into());
        } else {
            match Frame::read(&message, || Kind::Answer) {
                Ok(frame) => Event::Frame(frame.into()),
                Err(error) => return tracing::warn!("{error} came from a worker"),
            }
        };
        if let Event::Frame(frame) = &event {
            if let Kind::Free { worker } = &frame.kind {
                return self.offered(number, worker, &message.subject);
            }
            if !self.lock().entries.contains_key(&number) {
                return self.tell_that_nobody_waits(number, frame, message.reply.as_ref());
            }
        }
        let _unsent = self.tell(number, event);
    }

    fn take_quick(&self, number: u64) -> Option<QuickCall> {
        match self.lock().entries.entry(number) {
            hash_map::Entry::Occupied(entry) if matches!(entry.get(), Entry::Quick(_)) => {
                match entry.remove() {
                    Entry::Quick(call) => Some(call),
                    Entry::Task(_) => None,
                }
            }
            _ => None,
        }
    }

    /// Tells the task of a call; one that has none gets one.
    fn tell(self: &Arc<Self>, number: u64, event: Event) -> Option<BegunCall> {
        let mut calls = self.lock();
        let entry = calls.entries.get_mut(&number)?;
        let Entry::Task(listener) = entry else {
            return self.give_task(number, entry, Some(event));
        };
        if let Event::Frame(frame) = &event {
            listener.seen.store(self.now(), Ordering::Relaxed);
            if let Kind::Heartbeat { unacknowledged } = frame.kind {
                listener.unacknowledged.store(unacknowledged, Ordering::Relaxed);
                return None;
            }
        }
        if let Err(mpsc::error::TrySendError::Full(_)) = listener.events.try_send(event) {
            // More than its window: the call sees that its inbox has ended.
            calls.entries.remove(&number);
        }
        None
    }

    /// Gives a task to the calls that were published `age` ago or before. Says whether there are others without one.
    fn watch_quick(self: &Arc<Self>, age: Duration) -> bool {
        let now = Instant::now();
        self.give_tasks(|call| now - call.published >= age);
        let mut calls = self.lock();
        calls.watched = calls.entries.values().any(|entry| matches!(entry, Entry::Quick(_)));
        calls.watched
    }
}

impl QuickCall {
    /// Passes the answer on to the client.
    fn answered(self, json: Vec<u8>) {
        match self.client.sender.try_send(json) {
            Ok(None) => {}
            Ok(Some(json)) => {
                tokio::spawn(async move {
                    pass_answer(&self.client.sender, &self.request.id, Ok(json)).await;
                    drop(self.room);
                });
            }
            Err(error) => {
                tokio::spawn(async move {
                    pass_answer(&self.client.sender, &self.request.id, Err(error)).await;
                });
            }
        }
    }
}

/// Takes what comes to an edge, until it is dropped.
pub(super) async fn deliver_all(shared: Weak<Shared>, mut messages: Subscriber) {
    while let Some(message) = messages.next().await {
        let Some(shared) = shared.upgrade() else { return };
        shared.deliver(message);
    }
}

/// Looks for calls of which nothing is heard, as long as there are calls without a task. Their tasks then decide how long
/// to wait.
pub(super) async fn watch_all(
    shared: Weak<Shared>,
    mut begun: mpsc::Receiver<()>,
    accept: Duration,
) {
    let pause = (accept / 4).clamp(Duration::from_millis(10), Duration::from_secs(1));
    while begun.recv().await.is_some() {
        loop {
            tokio::time::sleep(pause).await;
            let Some(shared) = shared.upgrade() else { return };
            if !shared.watch_quick(pause) {
                break;
            }
        }
    }
}
