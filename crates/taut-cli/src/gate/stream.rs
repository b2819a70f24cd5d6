//! Writes to stdout and stderr without blocking the command when a reader does not read.
//!
//! Each stream has a thread that writes. A caller that writes a result waits for it, and a signal or
//! `--max-time` ends the wait (A4). Text for stderr is waited for only a moment and then stays in a queue;
//! when the queue is full, lines are dropped and counted. Must not know what the text means.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Shown;
use crate::signals;

/// Bytes that are handed over at a time: what a pipe holds on Linux.
const CHUNK: usize = 64 << 10;

/// Bytes that wait for stderr at most: about ten thousand lines.
const QUEUED: usize = 1 << 20;

/// How long a text for stderr is waited for, so that it stands before the result that follows it.
const MOMENT: Duration = Duration::from_millis(250);

/// How long stderr may take nothing at the end of the command before the rest is given up.
const FAREWELL: Duration = Duration::from_secs(1);

/// How often a wait looks for signals.
const LOOK: Duration = Duration::from_millis(20);

static OUT: Stream = Stream::new(Which::Out);
static ERR: Stream = Stream::new(Which::Err);

#[derive(Clone, Copy)]
enum Which {
    Out,
    Err,
}

struct Stream {
    which: Which,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    queue: VecDeque<Vec<u8>>,
    /// Bytes in the queue, and in the hands of the thread.
    bytes: usize,
    runs: bool,
    /// Whether the last wait for stderr took too long. Then callers do not wait until the queue is empty.
    stuck: bool,
    /// Lines that were dropped since the last that was queued.
    lost: usize,
    failed: Option<io::Error>,
}

/// Writes a part of the result, and waits until it is written.
///
/// # Errors
/// What the system says, or [`io::ErrorKind::Interrupted`] if a signal came first.
pub(crate) fn result(text: &Shown) -> io::Result<()> {
    OUT.write(text.as_str().as_bytes())
}

/// As [`result`], for content: text that has passed [`super::Reader::content`], or what no terminal gets, as it was
/// sent.
///
/// # Errors
/// As with [`result`].
pub(crate) fn raw(bytes: &[u8]) -> io::Result<()> {
    OUT.write(bytes)
}

/// Tells something beside the result. Never fails, and never waits for long.
pub(crate) fn tell(text: &Shown) {
    ERR.tell(text.as_str());
}

/// Draws something that is drawn again soon: left out while anything else waits.
pub(crate) fn draw(text: &Shown) {
    if ERR.lock().bytes == 0 {
        ERR.tell(text.as_str());
    }
}

/// Gives what is queued for stderr a last chance.
pub(crate) fn flush() {
    ERR.flush();
}

impl Stream {
    const fn new(which: Which) -> Self {
        let state = State {
            queue: VecDeque::new(),
            bytes: 0,
            runs: false,
            stuck: false,
            lost: 0,
            failed: None,
        };
        Self { which, state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, time: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Hands bytes to the thread. Without one, writes them here.
    fn push(&'static self, state: &mut State, bytes: &[u8]) {
        if !state.runs {
            let thread = std::thread::Builder::new().name("taut-output".to_owned());
            state.runs = thread.spawn(|| self.drain()).is_ok();
        }
        if state.runs {
            state.bytes += bytes.len();
            state.queue.push_back(bytes.to_vec());
            self.changed.notify_all();
        } else if let Err(error) = self.out(bytes) {
            state.failed = Some(error);
        }
    }

    /// The thread: writes what is queued, for ever.
    fn drain(&self) {
        let mut state = self.lock();
        loop {
            let Some(bytes) = state.queue.pop_front() else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            let written = self.out(&bytes);
            state = self.lock();
            state.bytes -= bytes.len();
            state.stuck &= state.bytes > 0;
            state.failed = written.err().or_else(|| state.failed.take());
            self.changed.notify_all();
        }
    }

    fn out(&self, bytes: &[u8]) -> io::Result<()> {
        match self.which {
            Which::Out => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(bytes).and_then(|()| stdout.flush())
            }
            Which::Err => io::stderr().lock().write_all(bytes),
        }
    }

    fn write(&'static self, bytes: &[u8]) -> io::Result<()> {
        let before = signals::count();
        for chunk in bytes.chunks(CHUNK) {
            let mut state = self.lock();
            self.push(&mut state, chunk);
            while state.bytes > 0 && state.failed.is_none() {
                if signals::count() != before {
                    signals::take();
                    return Err(io::ErrorKind::Interrupted.into());
                }
                state = self.wait(state, LOOK);
            }
            if let Some(error) = &state.failed {
                let number = error.raw_os_error();
                return Err(
                    number.map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
                );
            }
        }
        Ok(())
    }

    fn tell(&'static self, text: &str) {
        let mut state = self.lock();
        if state.bytes + text.len() > QUEUED && state.bytes > 0 {
            state.lost += text.lines().count().max(1);
            return;
        }
        let lost = std::mem::take(&mut state.lost);
        if lost > 0 {
            let words = format!("({lost} lines left out: stderr was not read in time)\n");
            self.push(&mut state, words.as_bytes());
        }
        self.push(&mut state, text.as_bytes());
        let until = Instant::now() + MOMENT;
        while state.bytes > 0 && !state.stuck {
            let left = until.saturating_duration_since(Instant::now());
            state.stuck = left.is_zero();
            state = self.wait(state, left);
        }
    }

    fn flush(&self) {
        let before = signals::count();
        let mut state = self.lock();
        let (mut left, mut since) = (state.bytes, Instant::now());
        while state.bytes > 0 && since.elapsed() < FAREWELL && signals::count() == before {
            state = self.wait(state, LOOK);
            if state.bytes != left {
                (left, since) = (state.bytes, Instant::now());
            }
        }
    }
}
