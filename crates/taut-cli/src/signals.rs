//! Signals that ask the command to stop, and `--max-time`, which does the same by the clock.
//!
//! One thread, the guard, receives and counts them. A command waits for them with [`Interrupts`], and then
//! ends its work. If no command takes one within [`PATIENCE`], because it computes, blocks or hangs, the
//! guard ends the process and its servers (A3, A4). Does not use the runtime's signals, because they slow
//! down every start. Must not know what the command does.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::gate;
use crate::problem::Problem;

/// How long the work may take to heed a signal before the guard ends the process: longer than any
/// computation over a list of tools takes, short enough for somebody who waits.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a server may take to end after `--max-time` before it is killed.
const GRACE: Duration = Duration::from_secs(1);

/// What a signal asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Ctrl-C: end what is being done.
    #[default]
    Interrupt,
    /// End everything.
    End,
}

/// What has come so far: how many, and what the last one asks for.
type Heard = (usize, Stop);

static STOPS: LazyLock<watch::Sender<Heard>> = LazyLock::new(|| watch::Sender::new((0, Stop::End)));

/// How many of them a command has taken.
static HEEDED: AtomicUsize = AtomicUsize::new(0);

/// How many of them ended a wait elsewhere, so that [`Interrupts`] leaves them out.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// When `--max-time` is over, and how long that is.
static LIMIT: OnceLock<(Instant, Duration)> = OnceLock::new();

/// What has to be done before the guard ends the process: the terminal is made as it was.
static LAST: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);

/// How many stops have come.
pub(crate) fn count() -> usize {
    STOPS.borrow().0
}

/// Takes what has come so far for a wait that it ended: no [`Interrupts`] hears of it again.
pub(crate) fn take() {
    TAKEN.fetch_max(count(), Ordering::SeqCst);
    HEEDED.fetch_max(count(), Ordering::SeqCst);
}

/// What the last one asked for, as a problem.
pub(crate) fn problem() -> Problem {
    match STOPS.borrow().1 {
        Stop::Interrupt => Problem::Interrupted,
        Stop::End => Problem::Ended,
    }
}

/// Ends the command after this time, whatever it does then.
pub(crate) fn limit(time: Duration) -> Result<(), Problem> {
    // A longer time could not be added to the clock.
    const EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    let end = Instant::now() + time.min(EVER);
    let _ = LIMIT.set((end, time));
    // Nothing of a server may be left when the time is over.
    crate::processes::adopt_orphans();
    listen()
}

/// The time of `--max-time`, once it is over.
pub(crate) fn over() -> Option<Duration> {
    LIMIT.get().filter(|(end, _)| Instant::now() >= *end).map(|(_, time)| *time)
}

/// Says what to do before the guard ends the process.
pub(crate) fn before_the_end(work: impl Fn() + Send + 'static) {
    *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(work));
}

/// Stops that somebody waits for.
pub(crate) struct Interrupts(watch::Receiver<Heard>);

impl Interrupts {
    pub(crate) fn new() -> Result<Self, Problem> {
        let stops = STOPS.subscribe();
        listen()?;
        Ok(Self(stops))
    }

    /// Waits for any of them.
    pub(crate) async fn next(&mut self) {
        self.next_stop().await;
    }

    /// Waits for the next, and says what it asks for. Several that came before are one.
    pub(crate) async fn next_stop(&mut self) -> Stop {
        while self.0.changed().await.is_ok() {
            let (count, stop) = *self.0.borrow_and_update();
            HEEDED.fetch_max(count, Ordering::SeqCst);
            if count > TAKEN.load(Ordering::SeqCst) {
                return stop;
            }
        }
        // The sender is never dropped.
        std::future::pending().await
    }
}

/// Starts the guard, once.
fn listen() -> Result<(), Problem> {
    static STARTED: Mutex<bool> = Mutex::new(false);
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*started {
        let signals = system::Signals::new();
        let signals = signals
            .map_err(|error| Problem::File { what: "listening for signals".into(), error })?;
        let guard = std::thread::Builder::new().name("taut-guard".to_owned());
        let guard = guard.spawn(move || guard_on(&signals));
        guard.map_err(|error| Problem::File { what: "listening for signals".into(), error })?;
        *started = true;
    }
    Ok(())
}

/// The guard's life.
fn guard_on(signals: &system::Signals) {
    // When the first stop came that was not taken.
    let mut unheeded: Option<Instant> = None;
    let mut struck = 0;
    loop {
        let limit = LIMIT.get().map(|(end, _)| match struck {
            0 => *end,
            // Once more kills the server.
            1 => *end + GRACE,
            _ => *end + GRACE + PATIENCE,
        });
        let ends = [unheeded.map(|since| since + PATIENCE), limit].into_iter().flatten().min();
        let came = signals.wait(ends.map(|end| end.saturating_duration_since(Instant::now())));
        if HEEDED.load(Ordering::SeqCst) >= count() {
            unheeded = None;
        }
        let now = Instant::now();
        let stop = match came {
            Some(stop) => stop,
            None if unheeded.is_some_and(|since| now >= since + PATIENCE) => end(),
            None if limit.is_some_and(|end| now >= end) => {
                struck += 1;
                Stop::End
            }
            None => continue,
        };
        // No command waits for it, or the one before was not taken.
        if STOPS.receiver_count() == 0 || unheeded.is_some() || struck > 2 {
            end();
        }
        unheeded = Some(now);
        STOPS.send_modify(|heard| *heard = (heard.0 + 1, stop));
    }
}

/// Ends the process, and the servers that it has started.
fn end() -> ! {
    if let Some(work) = &*LAST.lock().unwrap_or_else(PoisonError::into_inner) {
        work();
    }
    crate::processes::kill_servers();
    let problem = over().map_or(Problem::Interrupted, Problem::Over);
    let line = format!("error: {problem}");
    gate::tell(&gate::Reader::of_stderr().pass(&line).line());
    let exit = problem.exit();
    std::process::exit(i32::from(exit as u8));
}

#[cfg(unix)]
mod system {
    use std::io::{self, Read as _};
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    use super::Stop;

    /// SIGINT, SIGTERM and SIGHUP, as they come.
    pub(super) struct Signals {
        wakes: UnixStream,
        last: Arc<AtomicUsize>,
    }

    const INTERRUPT: usize = 1;

    impl Signals {
        pub(super) fn new() -> io::Result<Self> {
            let (wakes, handler) = UnixStream::pair()?;
            let last = Arc::new(AtomicUsize::new(0));
            for (signal, kind) in [(SIGINT, INTERRUPT), (SIGTERM, 2), (SIGHUP, 2)] {
                signal_hook::flag::register_usize(signal, last.clone(), kind)?;
                signal_hook::low_level::pipe::register(signal, handler.try_clone()?)?;
            }
            Ok(Self { wakes, last })
        }

        /// Waits for one, and not for longer than this.
        pub(super) fn wait(&self, time: Option<Duration>) -> Option<Stop> {
            // A timeout of nothing would be none at all.
            let time = time.map(|time| time.max(Duration::from_millis(1)));
            let _ = self.wakes.set_read_timeout(time);
            (&self.wakes).read_exact(&mut [0; 1]).ok()?;
            let last = self.last.load(Ordering::SeqCst);
            Some(if last == INTERRUPT { Stop::Interrupt } else { Stop::End })
        }
    }
}

#[cfg(windows)]
use crate::console as system;

/// One signal for the runtime, as long as this lives; several that come before anybody asks are one.
#[cfg(unix)]
pub(crate) struct Signal {
    bytes: tokio::net::UnixStream,
    registered: signal_hook::SigId,
}

#[cfg(unix)]
impl Signal {
    pub(crate) fn new(signal: i32) -> std::io::Result<Self> {
        let (bytes, handler) = std::os::unix::net::UnixStream::pair()?;
        bytes.set_nonblocking(true)?;
        let bytes = tokio::net::UnixStream::from_std(bytes)?;
        let registered = signal_hook::low_level::pipe::register(signal, handler)?;
        Ok(Self { bytes, registered })
    }

    pub(crate) async fn next(&self) {
        loop {
            match self.bytes.try_read(&mut [0; 64]) {
                Ok(1..) => return,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    if self.bytes.readable().await.is_err() {
                        break;
                    }
                }
                Ok(0) | Err(_) => break,
            }
        }
        // The handler keeps its end as long as this lives: only a broken runtime leads here.
        std::future::pending().await
    }
}

#[cfg(unix)]
impl Drop for Signal {
    fn drop(&mut self) {
        signal_hook::low_level::unregister(self.registered);
    }
}

/// Does what Ctrl-C does, where the terminal takes it for a key: in the middle of a line. Returns when the
/// command has taken it. What the caller does next comes after the call was withdrawn, so the server
/// gets no answer that the person did not give.
pub(crate) async fn interrupt() {
    let before = count();
    #[cfg(unix)]
    {
        // There is no harm in a signal that does not come.
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT);
    }
    #[cfg(windows)]
    crate::console::interrupt();
    // The guard ends the process if nobody takes it.
    while HEEDED.load(Ordering::SeqCst) <= before {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
