//! SIGINT and SIGTERM: told to the loop, and enforced when the loop does not listen.
//!
//! Knows signals, and that a thread of its own asks about them. A handler that blocks freezes the loop, and
//! a frozen loop sees no signal; the watchdog is what then ends the process (S9). Hosts send SIGINT, SIGTERM,
//! or one and then the other.

use std::io::{self, PipeReader, Read as _};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGPIPE, SIGTERM};
use signal_hook::low_level;
use tokio::sync::watch;

use crate::lock::lock;

/// How long the loop may take to end after a signal. Enough to flush to a peer that reads, and well
/// inside the 2 s after which hosts send SIGKILL.
pub(crate) const GUARD: Duration = Duration::from_millis(500);

worded! {
    /// What the process was told.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Signal {
        /// SIGINT.
        Interrupt = "SIGINT",
        /// SIGTERM.
        Terminate = "SIGTERM",
    }
}

impl Signal {
    const ALL: [Self; 2] = [Self::Interrupt, Self::Terminate];

    pub(crate) const fn number(self) -> i32 {
        match self {
            Self::Interrupt => SIGINT,
            Self::Terminate => SIGTERM,
        }
    }

    /// What shells report for a process that this signal ended.
    pub(crate) const fn exit_code(self) -> i32 {
        128 + self.number()
    }
}

/// Both signals, for as long as this lives. Dropping it says that the loop has ended.
pub(crate) struct Signals {
    /// What the guard tells the loop.
    news: watch::Receiver<Option<Signal>>,
    registered: Vec<SigId>,
}

/// Takes SIGINT and SIGTERM until the first of the results is dropped. The second is for the watchdog.
pub(super) fn register(patience: Duration) -> io::Result<(Signals, Guard)> {
    let (reader, writer) = io::pipe()?;
    let (tell, news) = watch::channel(None);
    let last = Arc::new(AtomicUsize::new(0));
    let mut live = lock(&LIVE);
    live.prepare()?;
    // From here on a drop undoes what has been done.
    live.add();
    let mut signals = Signals { news, registered: Vec::new() };
    drop(live);
    for signal in Signal::ALL {
        let number = signal.number();
        // Actions run in the order of their registration: the byte in the pipe must come after the
        // note of what it stands for.
        let value = signal as usize;
        let flag = Arc::clone(&last);
        signals.registered.push(signal_hook::flag::register_usize(number, flag, value)?);
        signals.registered.push(low_level::pipe::register(number, writer.try_clone()?)?);
    }
    Ok((signals, Guard { pipe: reader, last, tell, patience, count: 0, deadline: None }))
}

impl Signals {
    /// Waits for the first signal.
    pub(crate) async fn stopped(&self) -> Signal {
        let mut news = self.news.clone();
        let told = news.wait_for(Option::is_some).await.ok().and_then(|signal| *signal);
        match told {
            Some(signal) => signal,
            // The guard has ended before any came.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // First, so that no signal falls between the two and is lost.
        lock(&LIVE).remove();
        // The last writer of the pipe goes with the last action, and that ends the guard.
        for id in self.registered.drain(..) {
            low_level::unregister(id);
        }
    }
}

/// What the watchdog does about signals, so that the loop need not be awake to obey one.
pub(super) struct Guard {
    /// Readable when a signal has come, and when nobody wants to know of signals any more.
    pub(super) pipe: PipeReader,
    last: Arc<AtomicUsize>,
    tell: watch::Sender<Option<Signal>>,
    patience: Duration,
    /// Signals that have come.
    count: usize,
    /// When the loop has to have ended.
    pub(super) deadline: Option<Instant>,
}

impl Guard {
    /// Tells the loop what has come. False if nobody wants to know any more.
    pub(super) fn tell(&mut self) -> bool {
        match rustix::io::read(&self.pipe, &mut [0; 16]) {
            Err(Errno::INTR) => return true,
            Ok(0) | Err(_) => return false,
            Ok(n) => self.count += n,
        }
        if self.count > 1 {
            self.end("told twice");
        }
        self.deadline = Some(Instant::now() + self.patience);
        self.tell.send_replace(Some(self.signal()));
        true
    }

    /// Ends the process if the loop has not ended in time.
    pub(super) fn enforce(&self) {
        if self.deadline.is_some_and(|at| at <= Instant::now()) {
            self.end("the loop did not stop in time");
        }
    }

    fn signal(&self) -> Signal {
        let last = self.last.load(Ordering::SeqCst);
        Signal::ALL.into_iter().find(|s| *s as usize == last).unwrap_or(Signal::Terminate)
    }

    /// Ends the process here and now: what would run at exit may wait for the very thing that hangs.
    fn end(&self, why: &str) -> ! {
        let signal = self.signal();
        super::say(&format!("{signal}: {why}; ending the process"));
        low_level::exit(signal.exit_code())
    }
}

/// How many [`Signals`] there are.
static LIVE: Mutex<Live> = Mutex::new(Live { count: 0, prepared: false });

/// Nobody watches: a signal has to do what it did before anybody watched.
static IDLE: AtomicBool = AtomicBool::new(true);

struct Live {
    count: usize,
    prepared: bool,
}

impl Live {
    /// signal-hook leaves its handler in place when the last action goes, and a handler without
    /// actions swallows the signal. So one action stays for ever: while nobody watches, it does
    /// what the system would have done.
    fn prepare(&mut self) -> io::Result<()> {
        if self.prepared {
            return Ok(());
        }
        let others = Dispositions::read();
        for signal in Signal::ALL {
            // If it was ignored, or the program has a handler of its own, that stays in force.
            if others.is_default(signal.number()) {
                signal_hook::flag::register_conditional_default(signal.number(), &IDLE)?;
            }
        }
        self.prepared = true;
        Ok(())
    }

    fn add(&mut self) {
        self.count += 1;
        IDLE.store(false, Ordering::SeqCst);
    }

    fn remove(&mut self) {
        self.count -= 1;
        IDLE.store(self.count == 0, Ordering::SeqCst);
    }
}

/// Makes a write to a pipe without a reader an error, as Rust programs are used to. A `main` in
/// another language, or one that has reset it, would let the signal kill the process (S6).
pub(super) fn survive_broken_pipes() {
    static ONCE: Once = Once::new();
    static SEEN: AtomicBool = AtomicBool::new(false);
    ONCE.call_once(|| {
        // Whatever is there goes on being called, and where it is ignored nothing changes: to set
        // it is cheaper than to find out. If this is refused the process ends by the signal: less
        // gentle, but it ends.
        let _ = signal_hook::flag::register(SIGPIPE, &SEEN);
    });
}

/// What signals do at this moment: one bit each, the lowest for number 1.
#[derive(Default)]
struct Dispositions {
    ignored: u64,
    caught: u64,
}

impl Dispositions {
    /// There is no safe call for this, but Linux also writes it down. Elsewhere: all as by default.
    fn read() -> Self {
        // Room enough for one read, and no look at the size, which is told as none.
        let mut status = String::with_capacity(4 << 10);
        let read = std::fs::File::open("/proc/self/status")
            .and_then(|file| file.take(u64::MAX).read_to_string(&mut status));
        read.map_or_else(|_| Self::default(), |_| Self::parse(&status))
    }

    fn parse(status: &str) -> Self {
        let mask = |name: &str| {
            let line = status.split_once(name).and_then(|(_, after)| after.lines().next());
            line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
        };
        Self { ignored: mask("\nSigIgn:"), caught: mask("\nSigCgt:") }
    }

    fn is_default(&self, signal: i32) -> bool {
        (self.ignored | self.caught) & (1 << (signal - 1)) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dispositions_are_read_from_the_masks() {
        let status = "Name:\tx\nSigIgn:\t0000000000001000\nSigCgt:\t0000000000000002\n";
        let read = Dispositions::parse(status);
        assert!(!read.is_default(SIGPIPE), "ignored");
        assert!(!read.is_default(SIGINT), "caught");
        assert!(read.is_default(SIGTERM));
    }
}
