//! One call at an edge: from the client's request to the answer, or to an error that is true.
//!
//! Only a bounce and "no responders" prove that nothing ran. After any silence the call may have run: it is
//! repeated only if it may run twice, and otherwise fails with words and data that say so.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use taut::transport::{MessageSender, SendMessageError};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use super::{Edge, Event, Inbox, UNDER_WAY, listen};
use crate::discovery;
use crate::due;
use crate::frame::{Frame, Kind};
use crate::message::{self, Request};
use crate::parts::{Received, Receiving, Sending};

/// A worker is lost after so many heartbeats were missed.
const MISSED: u32 = 5;

/// How long after a connection was opened again workers may take to do the same.
const RETURN: Duration = Duration::from_secs(5);

/// How often a call that may run twice is repeated after a loss.
const REPEATS: usize = 2;

/// The longest answer; the client has a limit of its own below that.
const LONGEST: usize = 64 << 20;

pub(super) struct EdgeCall {
    edge: Edge,
    request: Request,
    client: MessageSender,
    cancelled: watch::Receiver<()>,
    listen: bool,
    /// Whether a stream of changes was acknowledged once.
    opened: bool,
    give_up: Instant,
    deadline: Option<Instant>,
}

/// How one attempt ended.
enum Ended {
    /// The client has its answer, or wants none any more.
    Done,
    /// No worker took it; nothing ran.
    Bounced,
    Nobody,
    /// Nobody has answered at all.
    Silent,
    /// A worker took it and was not heard of again, or what it said was not whole.
    Lost(String),
    /// The worker that kept the stream of changes leaves.
    Moved,
    /// The worker says that there is no answer.
    Failed {
        words: String,
        may_have_run: bool,
    },
    Deadline,
}

/// Who has taken the call.
struct Taker {
    name: String,
    subject: String,
    heartbeat: Duration,
}

impl EdgeCall {
    pub(super) fn new(
        edge: Edge,
        request: Request,
        client: MessageSender,
        cancelled: watch::Receiver<()>,
    ) -> Self {
        let listen = request.method == "subscriptions/listen";
        let (now, options) = (Instant::now(), &edge.0.options);
        let (give_up, deadline) = (now + options.wait, options.deadline.map(|limit| now + limit));
        let deadline = deadline.filter(|_| !listen);
        Self { edge, request, client, cancelled, listen, opened: false, give_up, deadline }
    }

    pub(super) async fn run(mut self) {
        let mut pinned = self.request.worker.clone();
        let (mut pauses, mut repeats) = (0, 0);
        loop {
            // The other end is dropped when the call is withdrawn.
            if self.cancelled.has_changed().is_err() || !self.wait_for_broker().await {
                return;
            }
            let ended = self.attempt(pinned.as_deref()).await;
            let service = self.edge.0.service.as_str();
            match ended {
                Ended::Done => return,
                Ended::Nobody if pinned.is_some() => {
                    // The worker is gone. A state that does not depend on it works elsewhere.
                    pinned = None;
                    continue;
                }
                Ended::Nobody if !self.may_return().await => {
                    let words = format!(
                        "nobody serves {service} at {}; start a worker: taut worker {service} -- COMMAND",
                        self.edge.0.connection.url()
                    );
                    return self.fail("nobody", &words, None, false).await;
                }
                Ended::Bounced | Ended::Nobody
                    if !self.opened && Instant::now() >= self.give_up =>
                {
                    let words = format!(
                        "busy: no worker of {service} had a free slot within {:?}; nothing ran, try again later or start more workers",
                        self.edge.0.options.wait
                    );
                    return self.fail("busy", &words, None, false).await;
                }
                Ended::Bounced | Ended::Nobody | Ended::Moved => {}
                Ended::Silent | Ended::Lost(_) if self.listen && self.opened => {}
                Ended::Silent => {
                    repeats += 1;
                    if repeats > REPEATS || !self.may_repeat().await {
                        let words = format!(
                            "no worker of {service} has said that it took the call within {:?}; it may have run",
                            self.edge.0.options.accept
                        );
                        return self.fail("silent", &words, None, true).await;
                    }
                }
                Ended::Lost(worker) => {
                    repeats += 1;
                    if repeats > REPEATS || !self.may_repeat().await {
                        let words = format!(
                            "worker {worker} of {service} took the call and was lost; it may have run"
                        );
                        return self.fail("lost", &words, Some(&worker), true).await;
                    }
                }
                Ended::Failed { words, may_have_run } => {
                    return self.fail("worker", &words, None, may_have_run).await;
                }
                Ended::Deadline => {
                    let words = "the call's deadline has passed; it was cancelled and may have run";
                    return self.fail("deadline", words, None, true).await;
                }
            }
            pauses += 1;
            if !self.pause(pauses).await {
                return;
            }
        }
    }

    /// Waits until there is a connection: nothing is published without one. Returns whether to go on.
    async fn wait_for_broker(&mut self) -> bool {
        let connection = self.edge.0.connection.clone();
        let limit = if self.opened { None } else { Some(self.give_up) };
        tokio::select! {
            biased;
            () = connection.connected() => true,
            _ = self.cancelled.changed() => false,
            () = due(limit) => {
                let words = format!(
                    "no connection to the broker at {}; nothing ran. It is opened again by itself",
                    connection.url()
                );
                self.fail("disconnected", &words, None, false).await;
                false
            }
        }
    }

    /// After "no responders": whether a worker may come yet, or is there after all.
    async fn may_return(&self) -> bool {
        let connection = &self.edge.0.connection;
        self.opened
            || connection.link().reopened.is_some_and(|when| when.elapsed() < RETURN)
            || discovery::is_served(connection, &self.edge.0.service).await
    }

    async fn may_repeat(&self) -> bool {
        match &self.request.tool {
            Some(tool) => self.edge.may_repeat(tool.clone()).await,
            None => message::only_reads(&self.request.method),
        }
    }

    /// Waits before the next attempt: longer each time, up to a quarter of a second. Returns whether to go on.
    async fn pause(&mut self, pauses: u32) -> bool {
        let limit = Duration::from_millis(1 << pauses.min(8)).min(Duration::from_millis(250));
        // Not all at the same time.
        let mut random = [0; 1];
        let _ = getrandom::fill(&mut random);
        tokio::select! {
            () = tokio::time::sleep(limit * (128 + u32::from(random[0])) / 384) => true,
            _ = self.cancelled.changed() => false,
        }
    }

    async fn attempt(&mut self, pinned: Option<&str>) -> Ended {
        let shared = self.edge.0.clone();
        let (connection, options) = (&shared.connection, &shared.options);
        let mut inbox = shared.open_inbox();
        let mut sending = Sending::new(connection.part_size());
        let kind = Kind::Call {
            method: self.request.method.clone(),
            deadline: self.deadline.map(|moment| moment - Instant::now()),
            trace: self.request.trace.clone(),
        };
        sending.begin(kind, self.request.json.clone());
        let subject = match pinned {
            Some(worker) => shared.service.of_worker(worker),
            None => shared.service.calls(),
        };
        if let Some(first) = sending.next() {
            connection.send(&subject, Some(&inbox.subject), first).await;
        }
        let published = Instant::now();
        let mut taker: Option<Taker> = None;
        let mut receiving = Receiving::new(LONGEST);
        let mut room = None;
        let mut withdrawn = false;
        loop {
            if let Some(taker) = &taker {
                while let Some(part) = sending.next() {
                    connection.send(&taker.subject, Some(&inbox.subject), part).await;
                }
            }
            let limit = match &taker {
                None => published + options.accept,
                Some(taker) => inbox.seen() + taker.heartbeat * MISSED,
            };
            tokio::select! {
                event = inbox.events.recv() => {
                    let step = self.hear(event, &mut taker, &mut sending);
                    match step {
                        Heard::Ended(ended) => return ended,
                        Heard::Nothing => {}
                        Heard::Accepted if withdrawn => {
                            self.withdraw(taker.as_ref(), &inbox).await;
                            return Ended::Done;
                        }
                        Heard::Accepted => {}
                        Heard::Data(frame) => {
                            let ended = self.take(frame, &mut receiving, &mut room, taker.as_ref(), &inbox).await;
                            if let Some(ended) = ended {
                                return ended;
                            }
                        }
                    }
                }
                _ = self.cancelled.changed(), if !withdrawn => {
                    if taker.is_some() {
                        self.withdraw(taker.as_ref(), &inbox).await;
                        return Ended::Done;
                    }
                    // Nobody to tell yet: whoever takes it is told then.
                    withdrawn = true;
                }
                () = due(self.deadline) => {
                    self.withdraw(taker.as_ref(), &inbox).await;
                    return Ended::Deadline;
                }
                () = tokio::time::sleep_until(limit) => {
                    // If this process was stopped for a while, what was sent meanwhile is read first.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    let heard = taker.as_ref().is_some_and(|taker| {
                        inbox.seen() + taker.heartbeat * MISSED > Instant::now()
                    });
                    if heard || !inbox.events.is_empty() {
                        continue;
                    }
                    self.withdraw(taker.as_ref(), &inbox).await;
                    return match taker {
                        _ if withdrawn => Ended::Done,
                        None => Ended::Silent,
                        Some(taker) => Ended::Lost(taker.name),
                    };
                }
            }
        }
    }

    /// Takes in what a worker or the broker says.
    fn hear(
        &self,
        event: Option<Event>,
        taker: &mut Option<Taker>,
        sending: &mut Sending,
    ) -> Heard {
        let lost = |taker: &Option<Taker>| match taker {
            Some(taker) => Ended::Lost(taker.name.clone()),
            None => Ended::Silent,
        };
        let frame = match event {
            Some(Event::Frame(frame)) => frame,
            // To the group: nobody has it. To the worker: it is gone.
            Some(Event::Nobody) if taker.is_none() => return Heard::Ended(Ended::Nobody),
            Some(Event::Nobody) | None => return Heard::Ended(lost(taker)),
        };
        match frame.kind {
            Kind::Accepted { worker, heartbeat } => {
                let subject = self.edge.0.service.of_worker(&worker);
                *taker = Some(Taker { name: worker, subject, heartbeat });
                sending.taken(1);
                Heard::Accepted
            }
            Kind::Bounce if taker.is_none() => Heard::Ended(Ended::Bounced),
            Kind::Bounce if self.listen => Heard::Ended(Ended::Moved),
            Kind::Bounce => Heard::Ended(lost(taker)),
            Kind::Ack(taken) => {
                sending.taken(taken);
                Heard::Nothing
            }
            Kind::Failed { may_have_run } => {
                let words = String::from_utf8_lossy(&frame.payload).into_owned();
                Heard::Ended(Ended::Failed { words, may_have_run })
            }
            Kind::Message | Kind::Answer | Kind::Part => Heard::Data(frame),
            Kind::Call { .. } | Kind::Heartbeat | Kind::Cancel | Kind::Filler => Heard::Nothing,
        }
    }

    /// Takes a frame that carries JSON, and passes on what is whole.
    async fn take(
        &mut self,
        frame: Frame,
        receiving: &mut Receiving,
        room: &mut Option<OwnedSemaphorePermit>,
        taker: Option<&Taker>,
        inbox: &Inbox,
    ) -> Option<Ended> {
        // A worker that has not accepted is none.
        let Some(taker) = taker else { return Some(Ended::Silent) };
        if let Some(length) = frame.length {
            let wanted = u32::try_from(length.min(UNDER_WAY)).unwrap_or(u32::MAX);
            *room = self.edge.0.answers.clone().acquire_many_owned(wanted).await.ok();
        }
        match receiving.take(frame) {
            Err(error) => {
                tracing::warn!("worker {}: {error}", taker.name);
                return Some(Ended::Lost(taker.name.clone()));
            }
            Ok(Received::Whole(Kind::Answer, json)) => {
                self.answer(message::mark_state(&json, &taker.name)).await;
                return Some(Ended::Done);
            }
            Ok(Received::Whole(_, json)) => {
                *room = None;
                if self.pass(json).await.is_err() {
                    self.withdraw(Some(taker), inbox).await;
                    return Some(Ended::Done);
                }
            }
            Ok(Received::Part) => {}
        }
        let ack = Frame::bare(Kind::Ack(receiving.count()));
        self.edge.0.connection.send(&taker.subject, Some(&inbox.subject), ack).await;
        None
    }

    /// Passes on progress, a log line or a change.
    async fn pass(&mut self, json: Bytes) -> Result<(), SendMessageError> {
        if self.listen {
            if self.opened
                && let Some(changes) = listen::reopened(&json)
            {
                for change in changes {
                    self.client.send(change).await?;
                }
                return Ok(());
            }
            self.opened = true;
        }
        match self.client.send(json.into()).await {
            Err(error @ SendMessageError::Closed) => Err(error),
            // Not worth more than a note: the answer says how the call went.
            Err(error) => {
                tracing::warn!("a message of a worker was left out: {error}");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    async fn answer(&self, json: Vec<u8>) {
        match self.client.send(json).await {
            Ok(()) | Err(SendMessageError::Closed) => {}
            Err(error) => {
                let words = format!("the call ran, but its answer cannot be passed on: {error}");
                self.fail("answer", &words, None, true).await;
            }
        }
    }

    /// Tells the worker that nobody waits any more.
    async fn withdraw(&self, taker: Option<&Taker>, inbox: &Inbox) {
        if let Some(taker) = taker {
            let (subject, cancel) = (&taker.subject, Frame::bare(Kind::Cancel));
            self.edge.0.connection.send(subject, Some(&inbox.subject), cancel).await;
        }
    }

    /// Answers with an error of the fleet's own.
    async fn fail(&self, reason: &str, words: &str, worker: Option<&str>, may_have_run: bool) {
        let data = json!({ "fleet": reason, "worker": worker, "mayHaveRun": may_have_run });
        let json = message::error_answer(&self.request.id, words, &data);
        // A client that has closed wants no answer.
        let _ = self.client.send(json).await;
    }
}

/// What a message came to.
enum Heard {
    Nothing,
    Accepted,
    Data(Frame),
    Ended(Ended),
}
