//! The hand-over from those who carry bytes to the one who records them.
//!
//! Whoever carries bytes never waits here: what does not fit is counted and dropped. Two buffers with one
//! bound take turns, so a steady flow allocates nothing. Must not know files or formats.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::format::{End, Framing, Side, Stream};
use crate::missed::Missed;

/// How many bytes wait at most, with those that the recorder is at. A burst of this size is recorded whole;
/// with all else a recorder stays below 16 MiB.
pub(crate) const LIMIT: usize = 5 << 20;

/// How many pieces wait at most: pieces may be a byte long, and each has a mark.
const PIECES: usize = 16 << 10;

/// Buffers grow by this much: doubling would keep room that nobody uses.
const GROWTH: usize = 512 << 10;

/// What an empty buffer keeps.
const KEPT: usize = 1 << 20;

/// With so many bytes waiting the recorder is woken at once.
const HURRY: usize = 256 << 10;

/// How long the recorder lets pieces gather otherwise. Each wake costs whoever carries bytes on the
/// same core about as much as a message.
const PAUSE: Duration = Duration::from_millis(25);

/// What happened, beside bytes.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// So many bytes of a stream.
    Bytes(Stream, usize),
    /// So many bytes, which are a message of a connection of its own.
    Message {
        link: String,
        from: Side,
        framing: Framing,
        len: usize,
    },
    /// This of a stream did not fit.
    Missed(Stream, Missed),
    /// A stream has ended.
    Closed(Stream),
    Started(u32),
    Ended(End),
}

/// What was handed over, in order.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) marks: Vec<(u64, What)>,
    /// Per stream what did not fit, after all that did.
    pub(crate) dropped: [Missed; 3],
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.marks.is_empty() && self.dropped.iter().all(|missed| missed.bytes == 0)
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
        self.marks.clear();
        self.dropped = Default::default();
    }
}

#[derive(Debug, Default)]
struct State {
    batch: Batch,
    /// Bytes that the recorder has taken and is still at.
    taken: usize,
    closed: bool,
    /// The recorder sleeps until something comes.
    idle: bool,
    /// The recorder has written everything and is gone.
    finished: bool,
}

/// The meeting point.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Something came.
    came: Condvar,
    /// The recorder is done.
    done: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands bytes over, or counts them.
    pub(crate) fn bytes(&self, at: u64, stream: Stream, bytes: &[u8]) {
        self.add(at, stream, bytes, What::Bytes(stream, bytes.len()), Missed::add);
    }

    /// Hands over a whole message of one connection, or counts it.
    pub(crate) fn message(
        &self,
        at: u64,
        link: String,
        from: Side,
        framing: Framing,
        bytes: &[u8],
    ) {
        let stream = match from {
            Side::Client => Stream::Client,
            Side::Server => Stream::Server,
        };
        let what = What::Message { link, from, framing, len: bytes.len() };
        self.add(at, stream, bytes, what, Missed::add_message);
    }

    fn add(
        &self,
        at: u64,
        stream: Stream,
        bytes: &[u8],
        what: What,
        miss: impl FnOnce(&mut Missed, &[u8]),
    ) {
        let mut state = self.lock();
        let room = LIMIT - state.taken;
        let batch = &mut state.batch;
        let dropped = &mut batch.dropped[stream as usize];
        let fits = batch.bytes.len() + bytes.len() <= room && batch.marks.len() < PIECES;
        // After a piece that was dropped, the rest of this batch would have a hole before it.
        if !fits || dropped.bytes > 0 {
            miss(dropped, bytes);
        } else {
            if batch.bytes.capacity() - batch.bytes.len() < bytes.len() {
                batch.bytes.reserve_exact(bytes.len().max(GROWTH));
            }
            batch.bytes.extend_from_slice(bytes);
            batch.marks.push((at, what));
        }
        let hurry = batch.bytes.len() >= HURRY;
        self.wake(state, hurry);
    }

    /// Hands over an event. There are few of them, so they always fit.
    pub(crate) fn event(&self, at: u64, what: What) {
        let mut state = self.lock();
        let batch = &mut state.batch;
        // What is missing is missing before this.
        for stream in Stream::ALL {
            let missed = std::mem::take(&mut batch.dropped[stream as usize]);
            if missed.bytes > 0 {
                batch.marks.push((at, What::Missed(stream, missed)));
            }
        }
        batch.marks.push((at, what));
        self.wake(state, false);
    }

    fn wake(&self, mut state: MutexGuard<'_, State>, hurry: bool) {
        let wake = std::mem::take(&mut state.idle) || hurry;
        drop(state);
        if wake {
            self.came.notify_one();
        }
    }

    /// Nothing more will come.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.came.notify_one();
    }

    /// Waits for the next batch and exchanges it for an empty one. False at the end.
    pub(crate) fn take(&self, into: &mut Batch) -> bool {
        into.clear();
        let mut state = self.lock();
        state.taken = 0;
        while state.batch.is_empty() && !state.closed {
            state.idle = true;
            state = self.came.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.idle = false;
        let gather = |state: &mut State| !state.closed && state.batch.bytes.len() < HURRY;
        let gathered = self.came.wait_timeout_while(state, PAUSE, |state| gather(state));
        let (mut state, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        let more = !state.batch.is_empty();
        state.taken = state.batch.bytes.len();
        std::mem::swap(&mut state.batch, into);
        more
    }

    /// Whether the recorder waits for more.
    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.lock();
        state.idle && state.batch.is_empty()
    }

    /// The recorder is done.
    pub(crate) fn finish(&self) {
        self.lock().finished = true;
        self.done.notify_all();
    }

    /// Waits until the recorder is done, but no longer than this. Says whether it is.
    pub(crate) fn wait_finished(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        let mut state = self.lock();
        while !state.finished {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.done.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}
