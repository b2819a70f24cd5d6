//! Ends a server that has become silent, and wakes whoever waits for it.
//!
//! The load waits in plain blocking reads, because a look at the clock before each would be measured
//! too. So one thread for each server watches instead: for the end of the process, for the deadline,
//! for the wish to stop. It holds an end of the server's stdout, and writes an empty line there to
//! wake the reader, whoever else may hold that pipe open.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

/// How often it looks at the clock: rare enough not to be measured.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Gone = 1,
    Silent = 2,
    Stopped = 3,
}

/// What the load and its watcher share.
#[derive(Debug)]
pub(super) struct Watch {
    began: Instant,
    /// When something last moved.
    moved: AtomicU64,
    /// How long nothing may move.
    patience: AtomicU64,
    /// When the phase has to be over, whatever moves.
    end: AtomicU64,
    why: AtomicU8,
    over: AtomicBool,
    stop: Arc<AtomicBool>,
}

impl Watch {
    /// Watches a process, the head of its own group, through an end of its stdout.
    pub(super) fn start(
        pid: Pid,
        wake: OwnedFd,
        patience: Duration,
        stop: Arc<AtomicBool>,
    ) -> std::io::Result<Arc<Self>> {
        let watch = Arc::new(Self {
            began: Instant::now(),
            moved: AtomicU64::new(0),
            patience: AtomicU64::new(nanos(patience)),
            end: AtomicU64::new(u64::MAX),
            why: AtomicU8::new(0),
            over: AtomicBool::new(false),
            stop,
        });
        let process = pidfd_open(pid, PidfdFlags::empty())?;
        let thread = watch.clone();
        std::thread::Builder::new().name("watch".into()).spawn(move || {
            if let Some(why) = thread.look(&process) {
                thread.why.store(why as u8, Ordering::Release);
                // The group has no other name: as long as its head is not waited for, it is ours.
                let _ = kill_process_group(pid, Signal::KILL);
                // Only the dead could mind that their stdout no longer blocks.
                let _ = rustix::io::ioctl_fionbio(&wake, true);
                let _ = rustix::io::write(&wake, b"\n\n");
            }
        })?;
        Ok(watch)
    }

    fn look(&self, process: &OwnedFd) -> Option<Why> {
        loop {
            let mut fds = [PollFd::new(process, PollFlags::IN)];
            let polled = poll(&mut fds, Some(&LOOK));
            if self.over.load(Ordering::Acquire) {
                return None;
            }
            if polled.is_ok_and(|ready| ready > 0) {
                return Some(Why::Gone);
            }
            if self.stop.load(Ordering::Relaxed) {
                return Some(Why::Stopped);
            }
            let now = self.now();
            let still = now.saturating_sub(self.moved.load(Ordering::Relaxed));
            if still > self.patience.load(Ordering::Relaxed)
                || now > self.end.load(Ordering::Relaxed)
            {
                return Some(Why::Silent);
            }
        }
    }

    /// Nanoseconds since the server was started: the clock of everything about it.
    pub(super) fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Something moved.
    pub(super) fn moved(&self, now: u64) {
        self.moved.store(now, Ordering::Relaxed);
    }

    /// A new phase, which must be over by then.
    pub(super) fn phase(&self, most: Duration) {
        let now = self.now();
        self.moved(now);
        self.end.store(now.saturating_add(nanos(most)), Ordering::Relaxed);
    }

    /// Why there will be no more answers.
    pub(super) fn why(&self) -> Option<Why> {
        match self.why.load(Ordering::Acquire) {
            1 => Some(Why::Gone),
            2 => Some(Why::Silent),
            3 => Some(Why::Stopped),
            _ => None,
        }
    }

    pub(super) fn patience(&self) -> Duration {
        Duration::from_nanos(self.patience.load(Ordering::Relaxed))
    }

    /// From now on it may be silent for so long.
    pub(super) fn be_patient(&self, patience: Duration) {
        self.patience.store(nanos(patience), Ordering::Relaxed);
    }

    /// No more watching: the server is being ended.
    pub(super) fn over(&self) {
        self.over.store(true, Ordering::Release);
    }
}

/// Five centuries and more are one.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
