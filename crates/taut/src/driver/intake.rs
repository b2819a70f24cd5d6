//! A message that has begun and is not whole: how long it may take, and whether there is room for it.
//!
//! Knows time and bytes; must not know what a message says. Only sockets have these limits: a peer on stdio is a
//! process that has been started for this, and a pause in the middle of its message harms only itself.

use std::fmt;
use std::task::{Context, Poll};
use std::time::Duration;

use super::Driver;
use super::alarm::Alarm;
use super::service::Service;
use crate::ending::Ending;
use crate::stream::{Sink, Source};

/// Says whether so many bytes may be held, and counts them if so.
pub(crate) type HasRoom = Box<dyn FnMut(usize) -> bool + Send>;

/// How messages that have begun are bounded.
#[derive(Default)]
pub(crate) struct Intake {
    /// How long a message may take from its first byte to its last.
    limit: Option<Duration>,
    room: Option<HasRoom>,
    alarm: Alarm,
    /// Whether the time of a message runs.
    runs: bool,
    full: bool,
}

/// Why a message is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfinished {
    Late(Duration),
    Full,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late(limit) => write!(
                f,
                "a message has begun and did not end within {limit:?}: send it faster, or in \
                 smaller messages"
            ),
            Self::Full => f.write_str(
                "too many bytes of messages that have not ended are held: send it again later, or \
                 in smaller messages",
            ),
        }
    }
}

impl Intake {
    pub(crate) fn new(limit: Option<Duration>, room: Option<HasRoom>) -> Self {
        Self { limit, room, ..Self::default() }
    }

    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// Something was read, after which so many bytes are held. `whole`: a message was among it.
    pub(super) fn read(&mut self, held: usize, whole: bool) {
        self.runs &= !whole;
        if let Some(room) = &mut self.room {
            self.full = !room(held);
        }
    }

    /// Ready when a message has to be given up. `begun`: one has begun, and its sender is waited for.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, begun: bool) -> Poll<Unfinished> {
        if self.full {
            return Poll::Ready(Unfinished::Full);
        }
        let Some(limit) = self.limit else { return Poll::Pending };
        match begun {
            true if !self.runs => self.alarm.set_after(limit),
            true => {}
            false => self.alarm.clear(),
        }
        self.runs = begun;
        self.alarm.poll(cx).map(|()| Unfinished::Late(limit))
    }
}

impl<R: Source, W: Sink, S: Service + ?Sized> Driver<R, W, S> {
    /// Gives a message up that has begun and does not end, and the connection with it. Says whether it did.
    pub(super) fn poll_intake(&mut self, cx: &mut Context<'_>) -> bool {
        let begun = self.reading && self.source.is_some() && !self.decoder.is_between();
        let Poll::Ready(why) = self.intake.poll(cx, begun) else { return false };
        if self.source.take().is_none() {
            return false;
        }
        self.work.link.lock().peer.refuse_unfinished(&why.to_string());
        self.starved = true;
        self.flush(Ending::Unfinished);
        true
    }
}
