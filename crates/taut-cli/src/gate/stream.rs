//! Writes to stdout and stderr without blocking the command when a reader does not read.
//!
//! Each stream has a thread that writes. A caller that writes a result waits for it, and a signal or
//! `--max-time` ends the wait (A4). Text for stderr is waited for only a moment and then stays in a queue;
//! when the queue is full, lines are dropped and counted. Where a server's stderr is passed on, our own text gives
//! way: it is dropped first, and takes no room in a pipe that is not read. Must not know what the text means.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Shown;
use crate::{closed, signals};

/// Bytes that are handed over at a time: what a pipe holds on Linux.
const CHUNK: usize = 64 << 10;

/// Bytes that wait for stderr at most: about ten thousand lines.
const QUEUED: usize = 1 << 20;

/// How long a text for stderr is waited for, so that it stands before the result that follows it.
const MOMENT: Duration = Duration::from_millis(250);

/// How long stdout or stderr may take nothing at the end of the command before the rest is given up.
const FAREWELL: Duration = Duration::from_secs(1);

/// How often a wait looks for signals.
const LOOK: Duration = Duration::from_millis(20);

/// Our own text is written to a pipe only if no more than this waits in it: the rest is for what the server says.
#[cfg(all(target_os = "linux", not(taut_portable)))]
const OWN: u64 = 8 << 10;

/// Whether our own text on stderr gives way to what a server says there.
static GIVES_WAY: AtomicBool = AtomicBool::new(false);

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
    /// Each with whether it is our own text.
    queue: VecDeque<(bool, Vec<u8>)>,
    /// Bytes in the queue, and in the hands of the thread.
    bytes: usize,
    runs: bool,
    /// Whether the last wait for stderr took too long. Then callers do not wait until the queue is empty.
    stuck: bool,
    /// Lines that were dropped since the last that was queued.
    lost: usize,
    failed: Option<io::Error>,
    /// Whether the command is ending after a signal: then a reader that takes nothing is not waited for.
    hurried: bool,
    /// Whether a signal ended a write in the middle: what would follow could not be read.
    torn: bool,
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

/// Passes on what a server says. Never fails, and never waits for long.
pub(crate) fn pass_on(text: &Shown) {
    ERR.pass_on(text.as_str());
}

/// From now on our own text on stderr gives way to what a server says there.
pub(crate) fn give_way() {
    GIVES_WAY.store(true, Ordering::Relaxed);
}

/// Draws something that is drawn again soon: left out while anything else waits.
pub(crate) fn draw(text: &Shown) {
    if ERR.lock().bytes == 0 {
        ERR.tell(text.as_str());
    }
}

/// The command ends, because of a signal or `--max-time`: what is still to be said on stdout is given up when nobody
/// reads it.
pub(crate) fn hurry() {
    OUT.lock().hurried = true;
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
            hurried: false,
            torn: false,
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
    fn push(&'static self, state: &mut State, own: bool, bytes: &[u8]) {
        if !state.runs {
            let thread = std::thread::Builder::new().name("taut-output".to_owned());
            state.runs = thread.spawn(|| self.drain()).is_ok();
        }
        if state.runs {
            state.bytes += bytes.len();
            state.queue.push_back((own, bytes.to_vec()));
            self.changed.notify_all();
        } else if let Err(error) = self.out(bytes) {
            state.failed = Some(error);
        }
    }

    /// The thread: writes what is queued, for ever.
    fn drain(&self) {
        let mut state = self.lock();
        loop {
            let Some(bytes) = self.next(&mut state) else {
                state = match state.queue.is_empty() {
                    true => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                    // The system does not report that a pipe was read.
                    false => self.wait(state, LOOK),
                };
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

    /// What is written now: what came first, but our own text only where it takes no room from others.
    fn next(&self, state: &mut State) -> Option<Vec<u8>> {
        let (own, bytes) = state.queue.front()?;
        if *own && self.gives_way() && !has_room(bytes.len()) {
            let other = state.queue.iter().position(|(own, _)| !own)?;
            return state.queue.remove(other).map(|(_, bytes)| bytes);
        }
        state.queue.pop_front().map(|(_, bytes)| bytes)
    }

    fn gives_way(&self) -> bool {
        matches!(self.which, Which::Err) && GIVES_WAY.load(Ordering::Relaxed)
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
        if let Some(error) = closed::stdout() {
            return Err(error);
        }
        let before = signals::count();
        for chunk in bytes.chunks(CHUNK) {
            let mut state = self.lock();
            if state.torn {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let since = Instant::now();
            self.push(&mut state, true, chunk);
            while state.bytes > 0 && state.failed.is_none() {
                let given_up = state.hurried && since.elapsed() > FAREWELL;
                if given_up || signals::count() != before {
                    signals::take();
                    state.torn = true;
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
        self.queue(state, true, text);
    }

    fn pass_on(&'static self, text: &str) {
        let mut state = self.lock();
        while state.bytes + text.len() > QUEUED
            && let Some(own) = state.queue.iter().position(|(own, _)| *own)
            && let Some((_, bytes)) = state.queue.remove(own)
        {
            state.bytes -= bytes.len();
            state.lost += bytes.iter().filter(|byte| **byte == b'\n').count().max(1);
        }
        if state.bytes + text.len() > QUEUED && state.bytes > 0 {
            state.lost += text.lines().count().max(1);
            return;
        }
        self.queue(state, false, text);
    }

    /// Queues a text for stderr, and waits a moment for it.
    fn queue(&'static self, mut state: MutexGuard<'static, State>, own: bool, text: &str) {
        let lost = std::mem::take(&mut state.lost);
        if lost > 0 {
            let words = format!("({lost} lines left out: stderr was not read in time)\n");
            self.push(&mut state, true, words.as_bytes());
        }
        self.push(&mut state, own, text.as_bytes());
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

/// Whether so many bytes of our own leave stderr the room that a server may need.
#[cfg(all(target_os = "linux", not(taut_portable)))]
fn has_room(bytes: usize) -> bool {
    use rustix::fs::{FileType, fstat};
    let stderr = rustix::stdio::stderr();
    let is_pipe =
        fstat(stderr).is_ok_and(|about| FileType::from_raw_mode(about.st_mode) == FileType::Fifo);
    let waiting = if is_pipe { rustix::io::ioctl_fionread(stderr).unwrap_or(0) } else { 0 };
    waiting == 0 || waiting + bytes as u64 <= OWN
}

/// Other systems do not say how much waits in a pipe.
#[cfg(not(all(target_os = "linux", not(taut_portable))))]
const fn has_room(_: usize) -> bool {
    true
}
