//! One call on a worker: from *accepted* to the answer.
//!
//! Knows the window, heartbeats, the deadline and who still waits; must not know slots or the group. A
//! call that ends in any other way than by its answer drops its session, which cancels it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use taut::transport::{MessagePipe, Relation, SendMessageError};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::sessions::Sessions;
use crate::connection::Connection;
use crate::discovery::Counters;
use crate::due;
use crate::frame::{Frame, Kind};
use crate::message;
use crate::parts::{PartsError, Received, Receiving, Sending};

/// How long an edge may be away before its calls are cancelled: time for it to connect again.
const AWAY: Duration = Duration::from_secs(10);

/// A call that is answered sooner needs no *accepted*: the answer says who has taken it.
const SOON: Duration = Duration::from_millis(5);

/// How long the next part of a request may take.
const NEXT_PART: Duration = Duration::from_secs(30);

/// The longest request; the service has a limit of its own below that.
const LONGEST: usize = 64 << 20;

/// What the worker tells a call.
#[derive(Clone, Debug)]
pub(super) enum Input {
    Frame(Box<Frame>),
    /// The broker says that nobody waits for this call.
    Gone,
    /// The worker leaves: a stream of changes has to be opened elsewhere.
    Leave,
    /// The worker ends: say so.
    Stop,
}

pub(super) struct Call {
    pub(super) connection: Connection,
    pub(super) sessions: Arc<Sessions>,
    pub(super) worker: String,
    /// Where the broker says that nobody waits.
    pub(super) gone: String,
    pub(super) heartbeat: Duration,
    pub(super) deadline: Option<Duration>,
    pub(super) counters: Arc<Counters>,
    pub(super) reply: String,
    pub(super) inputs: mpsc::Receiver<Input>,
}

impl Call {
    /// Runs the call. Returns what was sent last and not acknowledged: its edge may ask for it again.
    pub(super) async fn run(mut self, first: Frame) -> Vec<Frame> {
        let began = Instant::now();
        let deadline = self.deadline.and_then(|limit| began.checked_add(limit));
        let Kind::Call { method, .. } = &first.kind else { return Vec::new() };
        let listen = method == "subscriptions/listen";
        // Further parts and a stream of changes need to know their worker at once.
        let accepted = listen || first.length.is_some();
        if accepted {
            self.accept().await;
        }
        let json = match self.gather(first).await {
            Ok(Some(json)) => json,
            Ok(None) => return Vec::new(),
            Err(error) => return self.fail(&error.to_string(), false).await,
        };
        let Some(method) = message::method_of_request(&json) else {
            return self.fail("the message is no request", false).await;
        };
        // A handshake opens a connection to the server of its own, which lives as long as the session.
        let reusable = !listen && method != "initialize";
        let mut session = self.sessions.take();
        match session.send(json.into()).await {
            Ok(()) => {}
            Err(error @ (SendMessageError::TooLong { .. } | SendMessageError::NotJson)) => {
                return self.fail(&error.to_string(), false).await;
            }
            Err(_) => {
                return self.fail("the worker's server has ended", false).await;
            }
        }
        let ended = self.serve(&mut session, listen, accepted, deadline).await;
        if ended.answered && reusable {
            self.sessions.put_back(session);
        }
        self.counters.calls.fetch_add(1, Ordering::Relaxed);
        self.counters.errors.fetch_add(u64::from(ended.error), Ordering::Relaxed);
        if !listen {
            let took = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.counters.nanoseconds.fetch_add(took, Ordering::Relaxed);
        }
        ended.unacknowledged
    }

    /// Gathers the parts of the request. Nothing if it was cancelled meanwhile.
    async fn gather(&mut self, first: Frame) -> Result<Option<Bytes>, PartsError> {
        let mut receiving = Receiving::new(LONGEST);
        let mut received = receiving.take(first)?;
        let mut beats = tokio::time::interval(self.heartbeat);
        let mut last = Instant::now();
        loop {
            match received {
                Received::Whole(_, json) => return Ok(Some(json)),
                // *Accepted* was the ack of the first.
                Received::Part if receiving.count() > 1 => {
                    self.send(Frame::bare(Kind::Ack(receiving.count()))).await;
                }
                Received::Part | Received::Again => {}
            }
            let frame = loop {
                tokio::select! {
                    input = self.inputs.recv() => match input {
                        Some(Input::Frame(frame)) if frame.is_data() => break *frame,
                        Some(Input::Frame(frame)) if frame.kind == Kind::Cancel => return Ok(None),
                        None => return Ok(None),
                        Some(Input::Stop) => return Err(PartsError::Gap),
                        Some(_) => {}
                    },
                    _ = beats.tick() => {
                        let late = last.elapsed() >= self.heartbeat;
                        let again = Frame::bare(Kind::Again(receiving.count()));
                        if late { self.send(again).await } else { self.beat(false).await }
                    }
                    () = tokio::time::sleep_until(last + NEXT_PART) => return Err(PartsError::Gap),
                }
            };
            received = match receiving.take(frame) {
                // What is missing is asked for with the next heartbeat.
                Err(PartsError::Gap) => Received::Again,
                taken => taken?,
            };
            if received != Received::Again {
                last = Instant::now();
            }
        }
    }

    /// Carries what the service says to the edge, until the answer.
    async fn serve(
        &mut self,
        session: &mut MessagePipe,
        listen: bool,
        mut accepted: bool,
        deadline: Option<Instant>,
    ) -> Ended {
        let mut sending = Sending::new(self.connection.part_size());
        let mut beats = tokio::time::interval(self.heartbeat);
        beats.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        beats.reset_after(if accepted { self.heartbeat } else { SOON.min(self.heartbeat) });
        let mut away: Option<(Instant, Instant)> = None;
        // Whether the answer is an error, once it is being sent.
        let mut answered: Option<bool> = None;
        loop {
            while let Some(frame) = sending.next() {
                self.send(frame).await;
                beats.reset();
            }
            if let (Some(error), true) = (answered, sending.is_idle()) {
                return Ended {
                    answered: true,
                    error,
                    unacknowledged: sending.into_pending().into(),
                };
            }
            tokio::select! {
                outgoing = session.recv(), if sending.is_idle() => match outgoing {
                    Some(outgoing) => match outgoing.relation {
                        Relation::Withdrawn(_) => return Ended::default(),
                        Relation::Answer(_) => {
                            answered = Some(message::is_error(&outgoing.json));
                            sending.begin(Kind::Answer, outgoing.json.into());
                            if !accepted {
                                sending.name_worker(&self.worker, self.heartbeat);
                                accepted = true;
                            }
                        }
                        _ => {
                            if !accepted {
                                self.accept().await;
                                accepted = true;
                            }
                            sending.begin(Kind::Message, outgoing.json.into());
                        }
                    },
                    None => {
                        return self.end("the worker's server has ended; the call may have run").await;
                    }
                },
                input = self.inputs.recv() => match input {
                    // Dropping the session cancels the call.
                    None => return Ended::default(),
                    Some(Input::Frame(frame)) => match frame.kind {
                        Kind::Cancel => return Ended::default(),
                        Kind::Ack(taken) => sending.taken(taken),
                        Kind::Again(taken) => {
                            sending.taken(taken);
                            for frame in sending.pending() {
                                self.send(frame.clone()).await;
                            }
                        }
                        _ => {}
                    },
                    Some(Input::Gone) => {
                        let now = Instant::now();
                        let fresh = |last: Instant| now - last < self.heartbeat * 3;
                        let since = away.filter(|(_, last)| fresh(*last)).map_or(now, |(since, _)| since);
                        away = Some((since, now));
                        if now - since >= AWAY {
                            tracing::info!("the edge of a call is gone; the call is cancelled");
                            return Ended::default();
                        }
                    }
                    Some(Input::Leave) if listen => {
                        self.send(Frame::bare(Kind::Bounce)).await;
                        return Ended::default();
                    }
                    Some(Input::Leave) => {}
                    Some(Input::Stop) => {
                        return self.end("the worker was stopped before the call ended; it may have run").await;
                    }
                },
                _ = beats.tick() => {
                    if accepted {
                        self.beat(sending.pending().next().is_some()).await;
                    } else {
                        self.accept().await;
                        accepted = true;
                        beats.reset();
                    }
                }
                () = due(deadline), if answered.is_none() => {
                    return self.end("the call's deadline has passed; it was cancelled and may have run").await;
                }
            }
        }
    }

    async fn accept(&self) {
        let accepted = Kind::Accepted { worker: self.worker.clone(), heartbeat: self.heartbeat };
        self.send(Frame::bare(accepted)).await;
    }

    async fn send(&self, frame: Frame) {
        self.connection.send(&self.reply, None, frame).await;
    }

    /// Says that the call is still worked on. If nobody waits there, the broker says so.
    async fn beat(&self, unacknowledged: bool) {
        let heartbeat = Frame::bare(Kind::Heartbeat { unacknowledged });
        self.connection.send(&self.reply, Some(&self.gone), heartbeat).await;
    }

    /// Says that there is no answer, and why. Returns what was sent.
    async fn fail(&self, words: &str, may_have_run: bool) -> Vec<Frame> {
        let mut frame = Frame::bare(Kind::Failed { may_have_run });
        frame.payload = words.to_owned().into();
        self.send(frame.clone()).await;
        vec![frame]
    }

    /// Says that there is no answer to a request that the server has seen.
    async fn end(&self, words: &str) -> Ended {
        Ended { answered: false, error: true, unacknowledged: self.fail(words, true).await }
    }
}

/// How a call ended.
#[derive(Default)]
struct Ended {
    /// Whether the server has answered.
    answered: bool,
    error: bool,
    /// What was sent last.
    unacknowledged: Vec<Frame>,
}
