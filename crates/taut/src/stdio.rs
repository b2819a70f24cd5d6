//! The wire of a process that was started by its peer: descriptors 0 and 1, taken away from
//! everybody else.
//!
//! Knows descriptors, signals and stderr. Knows no frame, no message and no method. The only place
//! that touches descriptors 0 to 2. What it is made to survive: `docs/scars.md` S1 to S20, E9; why it
//! is built so: `docs/decisions/0003-stdio.md`.

use std::io;
use std::sync::Mutex;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::lock::lock;
use crate::stream::{Sink, Source};
use crate::threaded;

#[cfg(windows)]
mod console;
#[cfg(all(any(target_os = "linux", target_os = "android"), not(taut_portable)))]
mod ready;
#[cfg(unix)]
mod signals;
mod stderr;
#[cfg(unix)]
mod unix;
#[cfg(unix)]
mod watchdog;
#[cfg(windows)]
mod windows;

#[cfg(windows)]
use console as signals;
#[cfg(unix)]
use unix as platform;
#[cfg(windows)]
use windows as platform;

use signals::Signals;
pub(crate) use stderr::say;

#[cfg(test)]
#[cfg(any(all(target_os = "linux", not(taut_portable)), windows))]
#[path = "stdio/tests/tail.rs"]
mod tail;
// About Linux itself: descriptors, signals and `/proc`. Windows: `windows/tests.rs`.
#[cfg(test)]
#[cfg(all(target_os = "linux", not(taut_portable)))]
mod tests;

worded! {
    /// Why stdin and stdout could not become the wire.
    #[derive(Debug)]
    #[non_exhaustive]
    pub enum ClaimError {
        /// They are the wire of another connection in this process.
        // S17
        Taken =
            "stdin and stdout already carry another connection of this process; \
             serve this one over a reader and a writer of its own",
        /// There is no tokio runtime around the caller.
        NoRuntime = "stdio needs a tokio runtime with I/O enabled; call this from within one",
        /// Nothing could be put in the place of a standard descriptor: the null device did not open.
        Null {
            /// What the system said.
            source: io::Error,
        } = "the null device did not open: {source}",
        /// A standard descriptor could not be moved.
        Descriptor {
            /// Which one: 0, 1 or 2.
            fd: u8,
            /// What the system said.
            source: io::Error,
        } = "descriptor {fd} could not be moved: {source}",
        /// A thread for a descriptor that only blocks could not be started.
        Thread {
            /// What the system said.
            source: io::Error,
        } = "a thread for stdio could not be started: {source}",
    }
}

impl std::error::Error for ClaimError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Taken | Self::NoRuntime => None,
            Self::Null { source } | Self::Descriptor { source, .. } | Self::Thread { source } => {
                Some(source)
            }
        }
    }
}

/// What has become of descriptors 0 and 1.
enum Claim {
    Unclaimed,
    Held(platform::Wire),
    Taken,
}

static CLAIM: Mutex<Claim> = Mutex::new(Claim::Unclaimed);

/// Takes stdin and stdout away from everything but taut, for good.
///
/// From here on a `print!` lands on stderr and a read from stdin is at its end, in this process and
/// in every child it starts; the wire itself waits on private descriptors for the server. Serving
/// on stdio does this by itself. Call it as the first line of `main` when something prints before
/// that. More than one call does no harm as long as nobody serves.
///
/// On Windows this is done with the standard handles. A C library that noted the old ones before
/// is redirected as well.
///
/// # Errors
///
/// [`ClaimError`] when a connection already uses them, or when the system refuses to move them.
///
/// ```no_run
/// # fn main() -> Result<(), taut::error::ClaimError> {
/// taut::claim_stdio()?;
/// println!("a banner, on stderr");
/// # Ok(())
/// # }
/// ```
pub fn claim_stdio() -> Result<(), ClaimError> {
    claim(&mut lock(&CLAIM))
}

fn claim(state: &mut Claim) -> Result<(), ClaimError> {
    match state {
        Claim::Unclaimed => *state = Claim::Held(platform::move_wire()?),
        Claim::Held(_) => {}
        Claim::Taken => return Err(ClaimError::Taken),
    }
    Ok(())
}

/// The claimed wire, ready to be driven.
pub(crate) struct Stdio {
    pub(crate) input: Input,
    pub(crate) output: Output,
    /// A copy of the input's descriptor, for the watchdog.
    #[cfg(unix)]
    watched: Option<std::os::fd::OwnedFd>,
    /// Where the end of the input is told, for the watchdog.
    #[cfg(windows)]
    watched: Option<std::sync::mpsc::Receiver<()>>,
}

impl Stdio {
    /// Watches over a loop that is blocked, and for signals if they are wanted, until the results are dropped.
    #[cfg(unix)]
    pub(crate) fn watch(
        &mut self,
        drain: Duration,
        signals: bool,
    ) -> (Option<Signals>, Option<watchdog::Watchdog>) {
        let signals = signals.then(|| signals::register(signals::GUARD)).transpose();
        let signals = signals.unwrap_or_else(|error| {
            say(&format!("signals are not watched: {error}"));
            None
        });
        let (signals, guard) = signals.unzip();
        match watchdog::Watchdog::start(self.watched.take(), drain, guard) {
            Ok(watchdog) => (signals, Some(watchdog)),
            Err(error) => {
                say(&format!("neither signals nor the end of stdin are watched: {error}"));
                (None, None)
            }
        }
    }

    /// The same. Without an input there is no end of it.
    #[cfg(windows)]
    pub(crate) fn watch(
        &mut self,
        drain: Duration,
        signals: bool,
    ) -> (Option<Signals>, Option<windows::watchdog::Watchdog>) {
        let signals = signals.then(signals::watch).transpose();
        let signals = signals.unwrap_or_else(|error| {
            say(&format!("signals are not watched: {error}"));
            None
        });
        let watchdog = self.watched.take().and_then(|watched| {
            windows::watchdog::Watchdog::start(watched, drain)
                .inspect_err(|error| say(&format!("the end of stdin is not watched: {error}")))
                .ok()
        });
        (signals, watchdog)
    }
}

/// Claims stdin and stdout if that has not been done and hands them out, once.
pub(crate) fn take() -> Result<Stdio, ClaimError> {
    if tokio::runtime::Handle::try_current().is_err() {
        return Err(ClaimError::NoRuntime);
    }
    let mut state = lock(&CLAIM);
    claim(&mut state)?;
    match std::mem::replace(&mut *state, Claim::Taken) {
        Claim::Held(wire) => wire.open().map_err(|source| ClaimError::Thread { source }),
        Claim::Unclaimed | Claim::Taken => Err(ClaimError::Taken),
    }
}

/// What was descriptor 0.
pub(crate) enum Input {
    /// It was not open at start: nothing will ever come.
    Closed,
    /// A pipe or a socket, driven by readiness.
    #[cfg(all(any(target_os = "linux", target_os = "android"), not(taut_portable)))]
    Ready(ready::ReadHalf),
    /// Anything else, read by a thread.
    Thread(threaded::ReadHalf),
}

impl Source for Input {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        match self {
            Self::Closed => Poll::Ready(Ok(0)),
            #[cfg(all(any(target_os = "linux", target_os = "android"), not(taut_portable)))]
            Self::Ready(half) => half.poll_read(cx, buf),
            Self::Thread(half) => half.poll_read(cx, buf),
        }
    }
}

/// What was descriptor 1.
pub(crate) enum Output {
    /// It was not open at start: nobody reads.
    Closed,
    /// A pipe or a socket, driven by readiness.
    #[cfg(all(any(target_os = "linux", target_os = "android"), not(taut_portable)))]
    Ready(ready::WriteHalf),
    /// Anything else, written by a thread.
    Thread(threaded::WriteHalf),
}

impl Sink for Output {
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Closed => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            #[cfg(all(any(target_os = "linux", target_os = "android"), not(taut_portable)))]
            Self::Ready(half) => half.poll_write(cx, bytes),
            Self::Thread(half) => half.poll_write(cx, bytes),
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Thread(half) => half.poll_flush(cx),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Closed => Poll::Ready(()),
            #[cfg(all(any(target_os = "linux", target_os = "android"), not(taut_portable)))]
            Self::Ready(half) => half.poll_gone(cx),
            Self::Thread(half) => half.poll_gone(cx),
        }
    }
}
