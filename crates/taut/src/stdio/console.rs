//! Ctrl-C, and the closing of a console: told to the loop, and enforced when the loop does not listen.
//!
//! What `signals.rs` is on Unix. Knows console events and one thread. The system calls for each event
//! in a thread of its own, so the loop need not be awake to obey one (S9).

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::win32::{ConsoleEvent, on_console_event};

/// How long the loop may take to end after an event. Enough to flush to a peer that reads, and well
/// inside the 5 s after which Windows ends a process whose console is closed.
pub(crate) const GUARD: Duration = Duration::from_millis(500);

/// What the process was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C or Ctrl-Break.
    Interrupt,
    /// The console is closed, the user logs off, or the system shuts down.
    Terminate,
}

impl Signal {
    /// As the C runtime of Windows numbers them.
    pub(crate) const fn number(self) -> i32 {
        match self {
            Self::Interrupt => 2,
            Self::Terminate => 15,
        }
    }

    /// What Windows reports for a process that an event ended (`STATUS_CONTROL_C_EXIT`).
    pub(crate) const fn exit_code(self) -> i32 {
        0xC000_013A_u32.cast_signed()
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interrupt => "Ctrl-C",
            Self::Terminate => "the console was closed",
        })
    }
}

/// Both events, for as long as this lives. Dropping it says that the loop has ended.
pub(crate) struct Signals(Arc<Mutex<LoopNews>>);

/// What a loop is told.
struct LoopNews {
    signal: Option<Signal>,
    waker: Option<Waker>,
    patience: Duration,
}

/// Who is to be told, and whether they have been.
struct Watched {
    loops: Vec<Arc<Mutex<LoopNews>>>,
    told: bool,
}

static WATCHED: Mutex<Watched> = Mutex::new(Watched { loops: Vec::new(), told: false });

/// A loop has ended.
static ENDED: Condvar = Condvar::new();

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes console events until the result is dropped.
pub(crate) fn watch() -> io::Result<Signals> {
    watch_with(GUARD)
}

pub(super) fn watch_with(patience: Duration) -> io::Result<Signals> {
    on_console_event(handle)?;
    let news = Arc::new(Mutex::new(LoopNews { signal: None, waker: None, patience }));
    lock(&WATCHED).loops.push(Arc::clone(&news));
    Ok(Signals(news))
}

impl Signals {
    /// Ready once an event has come, and from then on. One task at a time is woken.
    pub(crate) fn poll_stopped(&self, cx: &mut Context<'_>) -> Poll<Signal> {
        let mut news = lock(&self.0);
        if let Some(signal) = news.signal {
            return Poll::Ready(signal);
        }
        news.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Waits for the first event.
    pub(crate) async fn stopped(&self) -> Signal {
        poll_fn(|cx| self.poll_stopped(cx)).await
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        let mut watched = lock(&WATCHED);
        watched.loops.retain(|news| !Arc::ptr_eq(news, &self.0));
        if watched.loops.is_empty() {
            watched.told = false;
        }
        drop(watched);
        ENDED.notify_all();
    }
}

/// Runs in a thread of the system. False: nobody watches, so that the event does what it always did.
pub(super) fn handle(event: ConsoleEvent) -> bool {
    let signal = match event {
        ConsoleEvent::Interrupt => Signal::Interrupt,
        ConsoleEvent::Close => Signal::Terminate,
    };
    let mut watched = lock(&WATCHED);
    if watched.loops.is_empty() {
        return false;
    }
    if std::mem::replace(&mut watched.told, true) {
        drop(watched);
        end(signal, "told twice");
    }
    let loops = watched.loops.clone();
    drop(watched);
    let mut patience = Duration::ZERO;
    for news in loops {
        let mut news = lock(&news);
        news.signal = Some(signal);
        patience = patience.max(news.patience);
        let waker = news.waker.take();
        drop(news);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
    match event {
        // Its thread must return before the system tells of another event.
        ConsoleEvent::Interrupt => {
            let guard = std::thread::Builder::new().name("taut-console".into());
            if guard.spawn(move || wait_for_loops(signal, patience)).is_err() {
                wait_for_loops(signal, patience);
            }
        }
        // The system ends the process when this returns.
        ConsoleEvent::Close => wait_for_loops(signal, patience),
    }
    true
}

/// Waits until every loop has ended, and ends the process if one does not.
fn wait_for_loops(signal: Signal, patience: Duration) {
    let deadline = Instant::now() + patience;
    let mut watched = lock(&WATCHED);
    while !watched.loops.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            drop(watched);
            end(signal, "the loop did not stop in time");
        }
        watched = ENDED.wait_timeout(watched, left).unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// Ends the process here and now.
fn end(signal: Signal, why: &str) -> ! {
    super::say(&format!("{signal}: {why}; ending the process"));
    std::process::exit(signal.exit_code())
}
