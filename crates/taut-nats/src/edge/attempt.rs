//! One attempt at a call: published once, heard until it ends in one way or another.
//!
//! Knows the worker that took it, the window and what may have been lost on the way; must not know whether
//! the call is tried again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::Subject;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::UNDER_WAY;
use super::call::{EdgeCall, Ended};
use super::inbox::{Event, Inbox};
use crate::due;
use crate::frame::{BEATS, Frame, Kind};
use crate::message;
use crate::parts::{PartsError, Received, Receiving, Sending};

/// A worker is lost after so many heartbeats were missed.
const MISSED: u32 = 5;

/// The longest answer; the client has a limit of its own below that.
const LONGEST: usize = 64 << 20;

/// Who has taken the call.
struct Taker {
    name: String,
    subject: Subject,
    heartbeat: Duration,
}

impl EdgeCall {
    /// Publishes the request once, unless that was done already, and waits for what comes of it.
    pub(super) async fn attempt(&mut self, pinned: Option<&str>) -> Ended {
        let shared = self.edge.0.clone();
        let (connection, options) = (&shared.connection, &shared.options);
        let mut sending = Sending::new(connection.part_size());
        let kind = Kind::Call {
            method: self.request.method.clone(),
            deadline: self.deadline.map(|moment| moment - Instant::now()),
            trace: self.request.trace.clone(),
        };
        sending.begin(kind, self.request.json.clone());
        let first = sending.next();
        let (mut inbox, published) = match (self.begun.take(), first) {
            (None, Some(first)) => {
                let subject = match pinned {
                    Some(worker) => shared.service.of_worker(worker),
                    None => shared.group.clone(),
                };
                let inbox = shared.open_inbox();
                connection.send(&subject, Some(&inbox.subject), first).await;
                (inbox, Instant::now())
            }
            (Some(begun), _) => begun,
            // There is always a first part.
            (None, None) => return Ended::Silent,
        };
        let mut taker: Option<Taker> = None;
        let mut receiving = Receiving::new(LONGEST);
        let mut room = None;
        let mut withdrawn = false;
        let mut watched = published;
        loop {
            if let Some(taker) = &taker {
                while let Some(part) = sending.next() {
                    connection.send(&taker.subject, Some(&inbox.subject), part).await;
                }
            }
            let next = watched + taker.as_ref().map_or(options.accept, |taker| taker.heartbeat);
            tokio::select! {
                event = inbox.events.recv() => {
                    let step = self.hear(event, &mut taker, &mut sending);
                    match step {
                        Heard::Ended(Ended::Bounced) => {
                            self.offers.add(inbox);
                            return Ended::Bounced;
                        }
                        Heard::Ended(ended) => return ended,
                        Heard::Nothing => {}
                        Heard::Accepted if withdrawn => {
                            self.withdraw(taker.as_ref(), &inbox).await;
                            return Ended::Done;
                        }
                        Heard::Accepted => {
                            watched = Instant::now();
                            self.offers.close(&self.edge).await;
                        }
                        Heard::Again => if let Some(taker) = &taker {
                            for part in sending.pending() {
                                connection.send(&taker.subject, Some(&inbox.subject), part.clone()).await;
                            }
                        },
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
                () = tokio::time::sleep_until(next) => {
                    // If this process was stopped for a while, what was sent meanwhile is read first.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    watched = Instant::now();
                    if !inbox.events.is_empty() {
                        continue;
                    }
                    let ended = match &taker {
                        None => Some(Ended::Silent),
                        Some(taker) => self.watch(taker, &inbox, receiving.count()).await,
                    };
                    if let Some(ended) = ended {
                        self.withdraw(taker.as_ref(), &inbox).await;
                        return if withdrawn { Ended::Done } else { ended };
                    }
                }
            }
        }
    }

    /// Looks whether the worker is still heard, and asks it for what may have been lost: its answer, or an ack.
    async fn watch(&self, taker: &Taker, inbox: &Inbox, taken: u64) -> Option<Ended> {
        let connection = &self.edge.0.connection;
        let (link, now) = (connection.link(), Instant::now());
        if !link.connected {
            // Its silence says nothing.
            let since = link.lost.unwrap_or(now);
            return (now - since >= self.edge.0.options.wait).then_some(Ended::Cut);
        }
        let seen = inbox.seen();
        let heard = link.reopened.map_or(seen, |when| when.max(seen));
        if now - heard >= taker.heartbeat * MISSED {
            return Some(Ended::Lost(taker.name.clone()));
        }
        let silent = now - seen >= taker.heartbeat * 2;
        if silent || inbox.unacknowledged.swap(false, Ordering::Relaxed) {
            let again = Frame::bare(Kind::Again(taken));
            connection.send(&taker.subject, Some(&inbox.subject), again).await;
        }
        None
    }

    fn taker(&self, worker: &str, heartbeat: Duration) -> Taker {
        let subject = self.edge.0.service.of_worker(worker);
        // What a worker says of itself cannot make this side ask without a pause, or wait for ever.
        let heartbeat = heartbeat.clamp(BEATS.0, BEATS.1);
        Taker { name: worker.to_owned(), subject, heartbeat }
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
            Some(Event::Frame(frame)) => *frame,
            Some(Event::Nobody) if taker.is_none() => return Heard::Ended(Ended::Nobody),
            // Its worker may be about to connect again; its silence decides.
            Some(Event::Nobody) => return Heard::Nothing,
            None => return Heard::Ended(lost(taker)),
        };
        if let (None, Some((worker, heartbeat))) = (&taker, &frame.taken_by) {
            *taker = Some(self.taker(worker, *heartbeat));
            sending.taken(1);
        }
        match frame.kind {
            Kind::Accepted { worker, heartbeat } => {
                *taker = Some(self.taker(&worker, heartbeat));
                sending.taken(1);
                Heard::Accepted
            }
            Kind::Bounce if taker.is_none() => Heard::Ended(Ended::Bounced),
            Kind::Bounce if self.listen => Heard::Ended(Ended::Moved),
            Kind::Bounce | Kind::Unknown => Heard::Ended(lost(taker)),
            Kind::Ack(taken) => {
                sending.taken(taken);
                Heard::Nothing
            }
            Kind::Again(taken) => {
                sending.taken(taken);
                Heard::Again
            }
            Kind::Failed { may_have_run } => {
                let words = String::from_utf8_lossy(&frame.payload).into_owned();
                let worker = taker.as_ref().map(|taker| taker.name.clone());
                Heard::Ended(Ended::Failed { worker, words, may_have_run })
            }
            Kind::Message | Kind::Answer | Kind::Part => Heard::Data(frame),
            Kind::Free { .. } | Kind::Declined => Heard::Nothing,
            Kind::Call { .. } | Kind::Heartbeat { .. } | Kind::Cancel | Kind::Filler => {
                Heard::Nothing
            }
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
        if frame.is_plain() && receiving.count() == 0 {
            let json = match taker {
                // A worker of others may leave out its name after *accepted*.
                Some(taker) => message::mark_state(&frame.payload, &taker.name),
                None => frame.payload.into(),
            };
            self.answer(json).await;
            return Some(Ended::Done);
        }
        // A worker that has not accepted is none.
        let Some(taker) = taker else { return Some(Ended::Silent) };
        if let Some(length) = frame.length
            && room.is_none()
        {
            let wanted = u32::try_from(length.min(UNDER_WAY)).unwrap_or(u32::MAX);
            *room = self.edge.0.answers.clone().acquire_many_owned(wanted).await.ok();
        }
        match receiving.take(frame) {
            // It is asked for when the worker says that it misses an ack, or nothing.
            Err(PartsError::Gap) => return None,
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
            Ok(Received::Part | Received::Again) => {}
        }
        let ack = Frame::bare(Kind::Ack(receiving.count()));
        self.edge.0.connection.send(&taker.subject, Some(&inbox.subject), ack).await;
        None
    }

    /// Tells the worker that nobody waits any more.
    async fn withdraw(&self, taker: Option<&Taker>, inbox: &Inbox) {
        if let Some(taker) = taker {
            let (subject, cancel) = (&taker.subject, Frame::bare(Kind::Cancel));
            self.edge.0.connection.send(subject, Some(&inbox.subject), cancel).await;
        }
    }
}

/// What a message came to.
enum Heard {
    Nothing,
    Accepted,
    /// The worker misses a part.
    Again,
    Data(Frame),
    Ended(Ended),
}
