//! Who waits for what: the engine on either end of a connection.
//!
//! Knows messages, ids and deadlines; must not know a method beyond its [`Dialect`], a runtime, a
//! clock or a stream. Frames go in with the time, events come out; calls and answers go in, bytes
//! come out. Everything is queued, so any order of polling is right.
//!
//! The promises it keeps:
//!
//! - A request is answered exactly once, or never if it was cancelled. The [`Ticket`] that comes
//!   with it cannot be copied: holding it is the duty to answer.
//! - A notification is never answered. A response, however broken, is never answered.
//! - A call of ours ends exactly once: answered, refused, timed out, cancelled or lost.
//! - Every queue has a bound, in bytes.

mod hash;
mod incoming;
mod intake;
mod outgoing;
mod relation;
mod table;
mod trouble;

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;

use super::error::ErrorObject;
use super::id::Id;
use super::message::{Fault, Malformed};
use super::params::Params;
use super::write::NoId;
use crate::json::JsonBuf;
use crate::wire::{Encoder, Framing, Limits};

pub(crate) use hash::{Seed, take};
pub use incoming::Ticket;
pub use outgoing::HoldId;
pub use relation::Relation;
pub use trouble::{Trouble, TroubleKind};

/// What a protocol calls the few things that the engine must recognise.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Dialect {
    /// The notification that withdraws a request.
    pub cancel: &'static str,
    /// The member of its params that names the request.
    pub cancel_member: &'static str,
    /// Whether a withdrawn request is still answered, with −32800.
    pub cancel_is_answered: bool,
    /// The notification that reports progress on a request, if there is one.
    pub progress: Option<&'static str>,
    /// Requests that are answered on arrival, however much waits.
    pub urgent: &'static [&'static str],
    /// Requests that stay open for long and do not count as running; they have a bound of their own.
    pub open_ended: &'static [&'static str],
    /// Requests that cannot be withdrawn.
    pub firm: &'static [&'static str],
}

impl Dialect {
    /// Plain JSON-RPC, with cancellation as language servers have it.
    pub const PLAIN: Self = Self {
        cancel: "$/cancelRequest",
        cancel_member: "id",
        cancel_is_answered: true,
        progress: None,
        urgent: &[],
        open_ended: &[],
        firm: &[],
    };
}

/// Bounds of a [`Peer`], and how it opens.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The names of things.
    pub dialect: Dialect,
    /// Whether it serves. Only a serving side answers garbage and stops reading when it is full.
    pub serving: bool,
    /// Whether the connection is a socket: see [`Decoder::for_socket`](crate::wire::Decoder::for_socket).
    pub socket: bool,
    /// The framing it opens with. A serving side then answers in kind; a calling side stays.
    pub framing: Framing,
    /// Refuses messages in any other framing than this. Unless set, a serving side takes both.
    pub only_framing: Option<Framing>,
    /// How many requests run at once. 1,024: far above what hosts have in flight, far below what
    /// tasks cost.
    pub running: usize,
    /// How many open-ended requests stay open at once. 1,024: hosts open a handful.
    pub open_ended: usize,
    /// How many bytes may be kept for requests that wait behind those that run: their messages, and
    /// all that stands beside them.
    pub queue: usize,
    /// How many bytes of output may wait before no more is read. As much again may be on its way
    /// out, and the answer that goes beyond it is still taken, however long it is.
    pub output: usize,
    /// How many bytes of output may wait before requests are refused as busy. It matters only while
    /// a call of our own keeps the reading going.
    pub output_busy: usize,
    /// How many bytes of output may wait before a peer that reads nothing is given up.
    pub output_cap: usize,
    /// How many bytes of answers may wait on a side that only calls before a peer that asks on and reads nothing is
    /// given up. The answer that goes beyond it is still taken.
    pub answers: usize,
    /// How many bytes of answers may wait for the last of their batch, all batches together. What is
    /// beyond is refused, entry by entry.
    pub batch: usize,
    /// What the decoder may hold.
    pub limits: Limits,
}

/// Of the side that serves plain JSON-RPC.
impl Default for Config {
    fn default() -> Self {
        Self::new(Dialect::PLAIN, true)
    }
}

impl Config {
    /// The defaults for a serving or a calling side.
    #[must_use]
    pub fn new(dialect: Dialect, serving: bool) -> Self {
        Self {
            dialect,
            serving,
            socket: false,
            framing: Framing::Lines,
            only_framing: None,
            running: 1_024,
            open_ended: 1_024,
            queue: 4 << 20,
            // Twice what a pipe holds: enough for us to work on while the other side reads the pipe
            // empty. More would only be memory.
            output: 128 << 10,
            // More than one large answer, so that one which is still unread does not refuse requests.
            output_busy: 4 << 20,
            // Several of the largest messages.
            output_cap: 256 << 20,
            // Several of the largest answers that users and models give.
            answers: 16 << 20,
            // An array is one message, and a peer like us reads none that is longer.
            batch: 64 << 20,
            limits: Limits::default(),
        }
    }
}

/// How long a call of ours may take.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Patience {
    /// The time after which the call fails if nothing was heard of it.
    pub timeout: Duration,
    /// The time after which it fails in any case, if progress extends the timeout. `None`: progress
    /// does not extend it.
    pub ceiling: Option<Duration>,
}

impl Patience {
    /// The call fails after `timeout`, whether progress is reported or not.
    #[must_use]
    pub fn new(timeout: Duration) -> Self {
        Self { timeout, ceiling: None }
    }

    /// Each report of progress starts the timeout anew, up to `ceiling` in all (C8, C9).
    #[must_use]
    pub fn extended_by_progress(mut self, ceiling: Duration) -> Self {
        self.ceiling = Some(ceiling);
        self
    }
}

/// A call of ours; also its progress token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub(crate) u64);

impl CallId {
    /// The number that stands on the wire.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

/// A request to be served.
#[derive(Debug)]
#[non_exhaustive]
pub struct PeerRequest<'a> {
    /// Answers the request; see [`Peer::answer`].
    pub ticket: Ticket,
    /// The name of the method.
    pub method: Cow<'a, str>,
    /// Its params.
    pub params: Params<'a>,
}

#[cfg(all(feature = "server", feature = "client"))]
impl PeerRequest<'_> {
    /// The same request with its own copy of the text.
    pub(crate) fn into_owned(self) -> PeerRequest<'static> {
        let method = Cow::Owned(self.method.into_owned());
        PeerRequest { ticket: self.ticket, method, params: self.params.into_owned() }
    }
}

/// Something that the other side did.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The other side has sent a request.
    Request(PeerRequest<'a>),
    /// The other side has sent a notification.
    Notification {
        /// The name of the notification.
        method: Cow<'a, str>,
        /// Its params.
        params: Params<'a>,
    },
    /// The other side has cancelled the request with this [serial](Ticket::serial).
    Withdrawn(u64),
    /// The other side reports progress on a call of ours.
    Progress {
        /// The call.
        call: CallId,
        /// The params of the notification: how far it has come.
        params: Params<'a>,
    },
    /// A call of ours is answered.
    Reply {
        /// The call.
        call: CallId,
        /// The result, or why there is none.
        outcome: Result<&'a RawValue, Failure>,
    },
    /// The other side reports an error that belongs to no request (F21).
    StrayError(ErrorObject),
}

/// The events of one frame.
#[derive(Debug)]
pub enum Events<'a> {
    /// At most one, as almost always.
    One(Option<Event<'a>>),
    /// Those of a batch.
    Many(std::vec::IntoIter<Event<'a>>),
}

impl<'a> Iterator for Events<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        match self {
            Self::One(event) => event.take(),
            Self::Many(events) => events.next(),
        }
    }
}

/// Why a call of ours has no result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The other side answered with an error.
    Refused(ErrorObject),
    /// No answer came in time.
    TimedOut {
        /// How long it was given.
        after: Duration,
        /// Whether progress kept coming until the hard maximum.
        ceiling: bool,
    },
    /// The answer is not a valid response.
    Violation(Fault),
    /// The connection ended first.
    Ended,
}

/// Why a message could not be sent.
#[derive(Debug)]
#[non_exhaustive]
pub enum SendError {
    /// The connection has ended.
    Closed,
    /// The params have no JSON form.
    Json(serde_json::Error),
}

/// One end of a connection.
#[derive(Debug, Default)]
pub struct Peer {
    config: Config,
    out: Encoder,
    relations: relation::Relations,
    /// How answers and our own messages are framed now.
    framing: Framing,
    /// How the other side framed its last sound message.
    heard: Option<Framing>,
    no_id: NoId,
    batches_refused: bool,
    ended: bool,

    requests: table::Table<incoming::OpenRequest>,
    queue: VecDeque<incoming::Queued>,
    queued_bytes: usize,
    running: usize,
    open: usize,
    next_serial: u64,
    batches: HashMap<u64, incoming::Batch>,
    batched_bytes: usize,
    /// The buffer of the last answer, for the next one.
    spare: JsonBuf,

    /// Bytes of answers among the output, on a side that only calls.
    answered_bytes: usize,
    /// Whether an answer was added to more of them than may wait.
    answers_stuck: bool,

    calls: HashMap<u64, outgoing::OpenCall, Seed>,
    calls_made: u64,
    /// No later than the first deadline; found anew when it passes.
    next_due: Option<Instant>,
    lost: VecDeque<(CallId, Failure)>,
    /// The open holds, oldest first: the number of each, and that of the first call it does not stop.
    holds: Vec<(u64, u64)>,
    next_hold: u64,

    /// Whether a framed message that is no JSON is judged when the decoder has looked at it again.
    doubting: bool,
    /// The decoder is to look at the last message again.
    doubtful: bool,
    /// What is wrong with a framed message that the decoder looks at again.
    doubted: Option<Malformed>,

    bad_in_a_row: u32,
    spanning: bool,
    bom_seen: bool,
    cr_seen: bool,
    troubles: VecDeque<Trouble>,
}

impl Peer {
    /// A peer at the start of a connection.
    ///
    /// Bounds of zero count as one: with zero it would wait for ever.
    #[must_use]
    pub fn new(mut config: Config) -> Self {
        for bound in [&mut config.running, &mut config.queue, &mut config.output] {
            *bound = (*bound).max(1);
        }
        config.output_busy = config.output_busy.max(config.output);
        Self { framing: config.framing, config, ..Self::default() }
    }

    /// What stands for the id in errors that belong to no readable request, from now on.
    pub fn set_no_id(&mut self, no_id: NoId) {
        self.no_id = no_id;
    }

    /// Whether it leaves a framed message that is no JSON to the decoder, which then says whether the length was
    /// wrong. Then ask [`doubts`](Self::doubts) after each frame. Else it answers such a message at once.
    pub fn doubt_lengths(&mut self, doubting: bool) {
        self.doubting = doubting;
    }

    /// Whether the last message was no JSON. [`Decoder::distrust`](crate::wire::Decoder::distrust) looks for what
    /// follows it by its own looks.
    pub fn doubts(&mut self) -> bool {
        std::mem::take(&mut self.doubtful)
    }

    /// Whether batches are served, from now on.
    pub fn allow_batches(&mut self, allowed: bool) {
        self.batches_refused = !allowed;
    }

    /// How it was made.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The bytes to be written next. [`consume`](Encoder::consume) what was.
    pub fn output(&mut self) -> &mut Encoder {
        &mut self.out
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do, at the earliest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next_due
    }

    /// The next line for the log.
    pub fn poll_trouble(&mut self) -> Option<Trouble> {
        self.troubles.pop_front()
    }

    /// Whether more should be read now.
    ///
    /// A side that only calls always reads. A serving side stops when its queue or its output is
    /// full, unless it waits for an answer itself: that answer might be the next thing to come, so
    /// it reads on and refuses new requests as busy.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        !self.config.serving || !self.is_full(self.config.output) || !self.calls.is_empty()
    }

    /// Whether so much output waits that the other side cannot be reading at all.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        self.out.len() > self.config.output_cap || self.answers_stuck
    }

    /// The input has ended: no answer will come any more.
    pub fn handle_eof(&mut self) {
        self.ended = true;
        self.next_due = None;
        let mut calls: Vec<u64> = self.calls.drain().map(|(call, _)| call).collect();
        calls.sort_unstable();
        self.lost.extend(calls.into_iter().map(|call| (CallId(call), Failure::Ended)));
    }

    /// Whether the queue is full, or so much output waits.
    fn is_full(&self, output: usize) -> bool {
        self.queued_bytes >= self.config.queue || self.out.len() >= output
    }
}

#[cfg(test)]
mod tests;
