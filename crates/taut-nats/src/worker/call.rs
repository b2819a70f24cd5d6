//! One call on a worker that has a task: from *accepted* to the answer.
//!
//! Knows the window, heartbeats, the deadline and who still waits; must not know slots or the group. A
//! call that ends in any other way than by its answer drops its session, which cancels it.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Subject;
use bytes::Bytes;
use taut::transport::{MessagePipe, Outgoing, Relation, SendMessageError};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::connection::Connection;
use crate::discovery::Counters;
use crate::due;
use crate::frame::{Frame, Kind};
use crate::message;
use crate::parts::{PartsError, Received, Receiving, Sending};

/// How long an edge may be away before its calls are cancelled: time for it to connect again.
const AWAY: Duration = Duration::from_secs(10);

/// A call that is answered sooner needs no *accepted*, and no task.
pub(super) const SOON: Duration = Duration::from_millis(5);

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
    pub(super) worker: Arc<str>,
    /// Where the broker says that nobody waits.
    pub(super) gone: Subject,
    pub(super) heartbeat: Duration,
    pub(super) deadline: Option<Duration>,
    pub(super) counters: Arc<Counters>,
    pub(super) reply: Subject,
    pub(super) began: Instant,
    pub(super) inputs: mpsc::Receiver<Input>,
}

/// What is left of a call.
#[derive(Default)]
pub(super) struct Left {
    /// What was sent last and not acknowledged: its edge may ask for it again.
    pub(super) unacknowledged: Vec<Frame>,
    /// Its session, if another call can use it.
    pub(super) session: Option<MessagePipe>,
}

impl Call {
    /// Runs the call on a session that has no other.
    pub(super) async fn run(mut self, first: Frame, session: MessagePipe, listen: bool) -> Left {
        // Further parts and a stream of changes need to know their worker at once.
        let accepted = listen || first.length.is_some();
        if accepted {
            self.accept().await;
        }
        let json = match self.gather(first).await {
            Ok(Some(json)) => json,
            Ok(None) => return Left::default(),
            Err(error) => return self.refuse(&error.to_string()).await,
        };
        let Some(method) = message::method_of_request(&json) else {
            return self.refuse(NO_REQUEST).await;
        };
        // A handshake opens a connection to the server of its own, which lives as long as the session.
        let reusable = !listen && method != "initialize";
        if let Err(error) = session.send(json.into()).await {
            return self.refuse(&refusal(error)).await;
        }
        let mut left = self.serve(session, listen, accepted, None).await;
        left.session = left.session.filter(|_| reusable);
        left
    }

    /// Goes on with a call whose session has the request already, and has said `first` or nothing yet.
    pub(super) async fn go_on(mut self, session: MessagePipe, first: Option<Outgoing>) -> Left {
        let accepted = first.is_none();
        if accepted {
            self.accept().await;
        }
        self.serve(session, false, accepted, first).await
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

    /// Carries what the service says to the edge, until the answer, and counts the call.
    async fn serve(
        &mut self,
        mut session: MessagePipe,
        listen: bool,
        accepted: bool,
        first: Option<Outgoing>,
    ) -> Left {
        let ended = self.carry(&mut session, listen, accepted, first).await;
        self.counters.ended(self.began, Instant::now(), listen, ended.error);
        Left { unacknowledged: ended.unacknowledged, session: ended.answered.then_some(session) }
    }

    async fn carry(
        &mut self,
        session: &mut MessagePipe,
        listen: bool,
        mut accepted: bool,
        mut first: Option<Outgoing>,
    ) -> Ended {
        let deadline = self.deadline.and_then(|limit| self.began.checked_add(limit));
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
                outgoing = next(&mut first, session), if sending.is_idle() => match outgoing {
                    Some(outgoing) => match outgoing.relation {
                        Relation::Withdrawn(_) => return Ended::default(),
                        Relation::Answer(_) => {
                            let error = message::is_error(&outgoing.json);
                            if error && let Some(none) = message::no_answer(&outgoing.json) {
                                let unacknowledged = self.fail(&none.words, none.may_have_run).await;
                                return Ended { answered: true, error, unacknowledged };
                            }
                            answered = Some(error);
                            // Also after *accepted*: only an answer with headers is taken for one with a state.
                            let named = !is_plain_answer(&outgoing.json, &self.connection);
                            sending.begin(Kind::Answer, outgoing.json.into());
                            if named {
                                sending.name_worker(&self.worker, self.heartbeat);
                                accepted = true;
                            }
                        }
                        Relation::Unrelated if message::is_refusal(&outgoing.json) => {
                            let unacknowledged = self.fail(NO_REQUEST, false).await;
                            return Ended { error: true, unacknowledged, answered: false };
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
        let accepted =
            Kind::Accepted { worker: self.worker.to_string(), heartbeat: self.heartbeat };
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
        let frame = failed(words, may_have_run);
        self.send(frame.clone()).await;
        vec![frame]
    }

    /// Says that there is no answer to a request that no server has seen.
    async fn refuse(&self, words: &str) -> Left {
        Left { unacknowledged: self.fail(words, false).await, session: None }
    }

    /// Says that there is no answer to a request that the server has seen.
    async fn end(&self, words: &str) -> Ended {
        Ended { answered: false, error: true, unacknowledged: self.fail(words, true).await }
    }
}

/// How a call ended.
#[derive(Default)]
struct Ended {
    /// Whether its session has answered, so that it can take another call.
    answered: bool,
    error: bool,
    /// What was sent last.
    unacknowledged: Vec<Frame>,
}

/// What the service says next, beginning with `first`.
async fn next(first: &mut Option<Outgoing>, session: &mut MessagePipe) -> Option<Outgoing> {
    match first.take() {
        Some(first) => Some(first),
        None => session.recv().await,
    }
}

/// Whether an answer can travel without headers: it fits into one message, and nobody has to know where it came from.
pub(super) fn is_plain_answer(json: &[u8], connection: &Connection) -> bool {
    json.len() <= connection.part_size() && !message::may_have_state(json)
}

/// Says that there is no answer, and why.
pub(super) fn failed(words: &str, may_have_run: bool) -> Frame {
    let payload = words.to_owned().into();
    Frame { payload, ..Frame::bare(Kind::Failed { may_have_run }) }
}

/// What is said of a message that asks for nothing.
pub(super) const NO_REQUEST: &str = "the message is no request";

/// Why the service does not take a request, in words.
pub(super) fn refusal(error: SendMessageError) -> String {
    match error {
        SendMessageError::TooLong { .. } | SendMessageError::NotJson => error.to_string(),
        _ => "the worker's server has ended".to_owned(),
    }
}
