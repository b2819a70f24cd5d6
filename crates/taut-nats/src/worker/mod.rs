//! A worker: takes the calls of a service as long as it has slots, and leaves without losing one.
//!
//! Knows the subscriptions, slots and how to leave; `call` knows one call. Must not know who answers.

mod call;
mod kept;
mod leave;
mod sessions;

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use async_nats::{Message, Subscriber};
use futures_util::StreamExt;
use taut::transport::MessageService;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::connection::{Connection, NatsError};
use crate::discovery::{Counters, Discoverable, Identity};
use crate::due;
use crate::frame::{Frame, GROUP, Kind, ServiceName};
use call::{Call, Input};
use kept::Kept;
use leave::Leaving;
use sessions::Sessions;

/// How many messages may wait for one call: two windows, and what is said without JSON.
const WAITING: usize = 16;

/// How many bytes of requests in parts are gathered at once.
const GATHERED: usize = 256 << 20;

/// How many calls that were bounced are told of a free slot; about 64 KiB of names.
const BOUNCED: usize = 1024;

/// How a worker works.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    slots: usize,
    listens: usize,
    heartbeat: Duration,
    drain: Duration,
    kept: usize,
    server: Option<String>,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            slots: 64,
            listens: 1024,
            heartbeat: Duration::from_secs(1),
            drain: Duration::from_secs(60),
            kept: 8 << 20,
            server: None,
        }
    }
}

impl WorkerOptions {
    /// 64 slots, 1,024 streams of changes, a heartbeat every second.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many calls it runs at once. 64. More are bounced, and go to other workers.
    #[must_use]
    pub fn slots(mut self, slots: usize) -> Self {
        self.slots = slots.max(1);
        self
    }

    /// Sets how often it says that it still works on a call. 1 s. An edge gives up after five times that.
    #[must_use]
    pub fn heartbeat(mut self, every: Duration) -> Self {
        self.heartbeat = every.clamp(Duration::from_millis(10), Duration::from_secs(600));
        self
    }

    /// Sets how long running calls may take once it was told to stop. 60 s.
    #[must_use]
    pub fn drain(mut self, limit: Duration) -> Self {
        self.drain = limit;
        self
    }

    /// Sets how many bytes of answers it keeps after it has sent them, for an edge whose connection broke
    /// meanwhile. 8 MiB, the newest, for a minute at most; of a long answer only its last parts.
    #[must_use]
    pub fn kept(mut self, bytes: usize) -> Self {
        self.kept = bytes;
        self
    }

    /// Sets what the fleet shows as the server: its name and version.
    #[must_use]
    pub fn server(mut self, server: impl Into<String>) -> Self {
        self.server = Some(server.into());
        self
    }
}

/// Answers the calls of a service.
pub struct Worker {
    connection: Connection,
    sessions: Arc<Sessions>,
    identity: Identity,
    options: WorkerOptions,
    counters: Arc<Counters>,
    /// Where its own messages go.
    subject: Arc<str>,
    calls: HashMap<String, Running>,
    /// The call of each number, for what the broker says of its edge.
    serials: HashMap<u64, String>,
    next_serial: u64,
    tasks: JoinSet<Done>,
    gathered: usize,
    kept: Kept,
    /// The calls that were bounced because it was full, oldest first.
    bounced: VecDeque<String>,
}

/// A task that has ended.
enum Done {
    /// A call, with what was sent last for it.
    Call(String, Vec<Frame>),
    /// A message about a call was sent.
    Sent,
}

struct Running {
    inputs: mpsc::Sender<Input>,
    task: tokio::task::Id,
    serial: u64,
    listen: bool,
    gathered: usize,
}

impl Worker {
    /// A worker of the service `name`, which answers with `service`. It does nothing until it is run.
    #[must_use]
    pub fn new(
        connection: Connection,
        name: ServiceName,
        service: Arc<dyn MessageService>,
        options: WorkerOptions,
    ) -> Self {
        let worker = connection.client().new_inbox();
        let worker = worker.rsplit('.').next().unwrap_or(&worker).to_owned();
        let subject = name.of_worker(&worker).into();
        let identity = Identity {
            service: name,
            worker,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            slots: options.slots,
            server: options.server.clone(),
            started: SystemTime::now(),
        };
        let kept = Kept::new(options.kept);
        Self {
            connection,
            sessions: Arc::new(Sessions::new(service, options.slots)),
            identity,
            options,
            counters: Arc::default(),
            subject,
            calls: HashMap::new(),
            serials: HashMap::new(),
            next_serial: 0,
            tasks: JoinSet::new(),
            gathered: 0,
            kept,
            bounced: VecDeque::new(),
        }
    }

    /// Its id, as the fleet shows it.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.identity.worker
    }

    /// Takes calls until `stop` is ready. Then it leaves the group, finishes what it has and returns.
    ///
    /// # Errors
    /// The connection cannot be used.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> Result<(), NatsError> {
        let failed = |error: async_nats::SubscribeError| NatsError::new(error.to_string());
        let client = self.connection.client();
        let own = client.subscribe(self.subject.to_string()).await.map_err(failed)?;
        let gone = client.subscribe(format!("{}.gone.*", self.subject)).await.map_err(failed)?;
        let discoverable = Discoverable::new(&self.connection, &self.identity).await?;
        let calls = self.identity.service.calls();
        let calls = client.queue_subscribe(calls, GROUP.to_owned()).await.map_err(failed)?;
        // The broker knows of them when this worker says that it is ready.
        self.connection.flush(Duration::from_secs(5)).await;
        let (connection, identity) = (self.connection.clone(), self.identity.clone());
        let counters = self.counters.clone();
        let described = tokio::spawn(async move {
            discoverable.run(connection, identity, &counters).await;
        });
        self.serve(calls, own, gone, stop).await;
        described.abort();
        self.connection.flush(Duration::from_secs(5)).await;
        Ok(())
    }

    async fn serve(
        &mut self,
        mut calls: Subscriber,
        mut own: Subscriber,
        mut gone: Subscriber,
        stop: impl Future<Output = ()>,
    ) {
        let mut stop = std::pin::pin!(stop);
        let mut leaving: Option<Leaving> = None;
        let mut received = 0;
        loop {
            let next = leaving.as_ref().map(Leaving::next);
            tokio::select! {
                // What was sent to this worker alone frees slots, so it comes first.
                biased;
                message = own.next() => match message {
                    Some(message) => self.told(message),
                    None => return,
                },
                notice = gone.next() => match notice {
                    Some(notice) => self.edge_gone(&notice.subject),
                    None => return,
                },
                Some(done) = self.tasks.join_next(), if !self.tasks.is_empty() => {
                    match done {
                        Ok(Done::Call(reply, unacknowledged)) => {
                            self.finished(&reply);
                            self.kept.keep(reply, unacknowledged);
                        }
                        Ok(Done::Sent) => {}
                        // It has told nobody; its edge misses its heartbeats.
                        Err(panicked) => self.panicked(panicked.id()),
                    }
                }
                message = calls.next(), if leaving.as_ref().is_none_or(|leaving| !leaving.left()) => {
                    match (message, &mut leaving) {
                        (Some(message), None) => {
                            received += 1;
                            self.called(message, false);
                        }
                        (Some(message), Some(leaving)) => {
                            leaving.heard();
                            self.called(message, false);
                        }
                        (None, None) => return,
                        (None, Some(leaving)) => leaving.out(),
                    }
                }
                () = &mut stop, if leaving.is_none() => {
                    self.counters.leaving.store(true, Ordering::Relaxed);
                    let begun = Leaving::begin(&self.connection, &mut calls, received, self.options.drain);
                    let (begun, waiting) = begun.await;
                    leaving = Some(begun);
                    waiting.into_iter().for_each(|message| self.called(message, false));
                    self.tell_all(&Input::Leave);
                }
                () = due(next) => if let Some(leaving) = &mut leaving {
                    let service = &self.identity.service;
                    if leaving.act(&self.connection, service, &mut calls).await {
                        self.tell_all(&Input::Stop);
                    }
                },
            }
            if leaving.as_ref().is_some_and(Leaving::left) && self.tasks.is_empty() {
                return;
            }
        }
    }

    /// A call came, to the group or to this worker (`direct`).
    fn called(&mut self, message: Message, direct: bool) {
        let frame = match Frame::read(&message) {
            Ok(frame) => frame,
            Err(error) => return tracing::warn!("{error} came to {}", message.subject),
        };
        let Kind::Call { method, deadline, .. } = &frame.kind else { return };
        let Some(reply) = message.reply.as_ref().map(ToString::to_string) else { return };
        if self.calls.contains_key(&reply) {
            return;
        }
        let listen = method == "subscriptions/listen";
        let gathered = frame.length.unwrap_or(0);
        let (taken, limit) = if listen {
            (&self.counters.listens, self.options.listens)
        } else {
            (&self.counters.busy, self.options.slots)
        };
        let leaving = !direct && self.counters.leaving.load(Ordering::Relaxed);
        let full = taken.load(Ordering::Relaxed) >= limit || self.gathered + gathered > GATHERED;
        if leaving || full {
            self.counters.bounced.fetch_add(1, Ordering::Relaxed);
            if !leaving && self.bounced.len() < BOUNCED {
                match direct {
                    // It was offered a slot, and another call was quicker.
                    true => self.bounced.push_front(reply.clone()),
                    false => self.bounced.push_back(reply.clone()),
                }
            }
            return self.send(reply, vec![Frame::bare(Kind::Bounce)]);
        }
        taken.fetch_add(1, Ordering::Relaxed);
        self.gathered += gathered;
        let (inputs, receiver) = mpsc::channel(WAITING);
        let serial = self.next_serial;
        self.next_serial += 1;
        self.serials.insert(serial, reply.clone());
        let call = Call {
            connection: self.connection.clone(),
            sessions: self.sessions.clone(),
            worker: self.identity.worker.clone(),
            gone: format!("{}.gone.{serial}", self.subject),
            heartbeat: self.options.heartbeat,
            deadline: *deadline,
            counters: self.counters.clone(),
            reply: reply.clone(),
            inputs: receiver,
        };
        let named = reply.clone();
        let task = self.tasks.spawn(async move {
            let unacknowledged = call.run(frame).await;
            Done::Call(named, unacknowledged)
        });
        let running = Running { inputs, task: task.id(), serial, listen, gathered };
        self.calls.insert(reply, running);
    }

    /// Offers a free slot to the call that has waited longest for one.
    fn offer(&mut self) {
        let full = self.counters.busy.load(Ordering::Relaxed) >= self.options.slots;
        if full || self.counters.leaving.load(Ordering::Relaxed) {
            return;
        }
        if let Some(reply) = self.bounced.pop_front() {
            let worker = self.identity.worker.clone();
            self.send(reply, vec![Frame::bare(Kind::Free { worker })]);
        }
    }

    /// Sends messages about a call that no task is there for.
    fn send(&mut self, reply: String, frames: Vec<Frame>) {
        let connection = self.connection.clone();
        // Not awaited here: a broker that is away must not stop this worker's own messages.
        self.tasks.spawn(async move {
            for frame in frames {
                connection.send(&reply, None, frame).await;
            }
            Done::Sent
        });
    }

    /// A message for this worker alone.
    fn told(&mut self, message: Message) {
        let Some(reply) = message.reply.as_ref() else { return };
        let frame = match Frame::read(&message) {
            Ok(frame) => frame,
            Err(error) => return tracing::warn!("{error} came to {}", message.subject),
        };
        if matches!(frame.kind, Kind::Call { .. }) {
            return self.called(message, true);
        }
        if frame.kind == Kind::Declined {
            return self.offer();
        }
        let Some(running) = self.calls.get_mut(reply.as_str()) else {
            if let Kind::Again(count) = frame.kind {
                let unknown = || vec![Frame::bare(Kind::Unknown)];
                let frames = self.kept.after(reply, count).unwrap_or_else(unknown);
                self.send(reply.to_string(), frames);
            }
            return;
        };
        if let Err(mpsc::error::TrySendError::Full(_)) =
            running.inputs.try_send(Input::Frame(frame.into()))
        {
            tracing::warn!("an edge sent more than its window; its call is given up");
            // Its task sees that nobody can tell it anything any more.
            running.inputs = mpsc::channel(1).0;
        }
    }

    /// The broker says that nobody waits at the inbox of a call.
    fn edge_gone(&mut self, subject: &str) {
        let serial = subject.rsplit('.').next().and_then(|serial| serial.parse().ok());
        let reply = serial.and_then(|serial: u64| self.serials.get(&serial));
        if let Some(running) = reply.and_then(|reply| self.calls.get(reply)) {
            // It is said again with the next heartbeat.
            let _ = running.inputs.try_send(Input::Gone);
        }
    }

    fn tell_all(&self, input: &Input) {
        for running in self.calls.values() {
            // One that is so far behind is ended with the process.
            let _ = running.inputs.try_send(input.clone());
        }
    }

    fn panicked(&mut self, task: tokio::task::Id) {
        let call = self.calls.iter().find(|(_, running)| running.task == task);
        if let Some(reply) = call.map(|(reply, _)| reply.clone()) {
            self.finished(&reply);
        }
    }

    fn finished(&mut self, reply: &str) {
        let Some(running) = self.calls.remove(reply) else { return };
        self.serials.remove(&running.serial);
        self.gathered -= running.gathered;
        let taken = if running.listen { &self.counters.listens } else { &self.counters.busy };
        taken.fetch_sub(1, Ordering::Relaxed);
        self.offer();
    }
}
