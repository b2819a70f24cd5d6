//! A thread that looks after a loop that is blocked: by a handler, or by a stderr that nobody reads.
//!
//! Knows descriptors and time. A blocked loop sees neither a signal nor the end of its input nor a limit, so three
//! things are watched from outside. Signals are told to the loop, and end the process if it does not (S9). When stdin has ended and the loop has not after the drain limit,
//! the process is ended (S5, S9). When stderr is a pipe or a socket that stays full, nobody reads it:
//! whatever prints would wait for ever, and the loop with it. Then descriptors 1 and 2 are pointed at
//! the null device until there is room again, and who waits in a write is made to try again (E9).

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Pid, Signal, getpid, kill_process};
use rustix::stdio::{dup2_stderr, dup2_stdout, stderr};
use signal_hook::SigId;
use signal_hook::consts::SIGURG;
use signal_hook::low_level;

use super::platform::{FIRST_PRIVATE, null};
use super::signals::{GUARD, Guard};

/// How often stderr is looked at. It is full at two looks, one after the other, if nobody reads it.
const LOOK: Duration = Duration::from_millis(500);

/// What the process reports when it was ended here.
const EXIT: i32 = 1;

/// Watches until it is dropped, which says that the loop has ended.
pub(crate) struct Watchdog {
    /// Its end is the sign.
    _alive: PipeWriter,
    nudge: Option<SigId>,
}

impl Watchdog {
    /// Begins to watch. `input` is the wire's own descriptor, or a copy; `signals` may outlive the loop.
    pub(super) fn start(
        input: Option<OwnedFd>,
        drain: Duration,
        signals: Option<Guard>,
    ) -> io::Result<Self> {
        let (dropped, alive) = io::pipe()?;
        let stderr = HostStderr::find();
        // A signal that is ignored by default, so that a stray one does no harm. What it does is done
        // by its coming: a write that waits begins anew.
        let nudge = match &stderr {
            Some(_) => Some(signal_hook::flag::register(SIGURG, Arc::new(AtomicBool::new(false)))?),
            None => None,
        };
        let watched = WatchedLoop { dropped, input, drain, ended: None, stderr };
        Thread { watched: Some(watched), signals }.start()?;
        Ok(Self { _alive: alive, nudge })
    }
}

/// Watches signals alone.
#[cfg(all(test, target_os = "linux", not(taut_portable)))]
pub(super) fn watch_signals(signals: Guard) -> io::Result<()> {
    Thread { watched: None, signals: Some(signals) }.start()
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if let Some(id) = self.nudge.take() {
            low_level::unregister(id);
        }
    }
}

struct Thread {
    /// Until the loop has ended.
    watched: Option<WatchedLoop>,
    /// As long as somebody wants to know.
    signals: Option<Guard>,
}

/// What is watched of a loop.
struct WatchedLoop {
    dropped: PipeReader,
    input: Option<OwnedFd>,
    drain: Duration,
    /// When the process has to have ended.
    ended: Option<Instant>,
    stderr: Option<HostStderr>,
}

impl Thread {
    fn start(mut self) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("taut-watchdog".into());
        thread.spawn(move || {
            while (self.watched.is_some() || self.signals.is_some()) && self.turn().is_ok() {}
        })?;
        Ok(())
    }

    /// Waits until something has happened, or until it is time to look, and does what is to be done.
    fn turn(&mut self) -> rustix::io::Result<()> {
        let [told, over, input_ended] = self.wait()?;
        if told {
            self.signals.take_if(|signals| !signals.tell());
        }
        self.signals.iter().for_each(Guard::enforce);
        if over {
            self.watched = None;
        }
        if let Some(watched) = &mut self.watched {
            watched.look(input_ended);
        }
        Ok(())
    }

    /// Whether a signal has come, whether the loop has ended, and whether its input has.
    fn wait(&self) -> rustix::io::Result<[bool; 3]> {
        let watched = self.watched.as_ref();
        let places = [
            self.signals.as_ref().map(|signals| PollFd::new(&signals.pipe, PollFlags::IN)),
            watched.map(|watched| PollFd::new(&watched.dropped, PollFlags::IN)),
            watched.and_then(|w| Some(PollFd::new(w.input.as_ref()?, END))),
        ];
        let mut fds: Vec<PollFd<'_>> = places.iter().flatten().cloned().collect();
        let until = self.signals.as_ref().and_then(|signals| signals.deadline);
        let left = until.map(|at| at.saturating_duration_since(Instant::now()));
        let wait = left.into_iter().chain(watched.and_then(WatchedLoop::patience)).min();
        let timeout = wait.and_then(|wait| Timespec::try_from(wait).ok());
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        let mut fds = fds.iter();
        let happened = |place: Option<_>| {
            place.and_then(|_| fds.next()).is_some_and(|fd| !fd.revents().is_empty())
        };
        Ok(places.map(happened))
    }
}

impl WatchedLoop {
    /// How long nothing is to be done here.
    fn patience(&self) -> Option<Duration> {
        let until = self.ended.map(|at| at.saturating_duration_since(Instant::now()));
        until.into_iter().chain(self.stderr.as_ref().map(|_| LOOK)).min()
    }

    fn look(&mut self, input_ended: bool) {
        if input_ended {
            // The loop has its own limit, and a moment to keep it.
            self.ended = Instant::now().checked_add(self.drain.saturating_add(GUARD));
            self.input = None;
        }
        if self.ended.is_some_and(|at| at <= Instant::now()) {
            let drain = self.drain;
            super::say(&format!(
                "stdin ended more than {drain:?} ago (the drain limit) and a handler still \
                 blocks the loop; ending the process"
            ));
            low_level::exit(EXIT);
        }
        self.stderr.iter_mut().for_each(HostStderr::look);
    }
}

impl Drop for WatchedLoop {
    fn drop(&mut self) {
        self.stderr.iter_mut().for_each(HostStderr::give_back);
    }
}

/// Nothing is to be read here: that the other side has gone is told in any case, and on Linux also
/// that it has closed its half of a socket.
#[cfg(all(target_os = "linux", not(taut_portable)))]
const END: PollFlags = PollFlags::RDHUP;
#[cfg(not(all(target_os = "linux", not(taut_portable))))]
const END: PollFlags = PollFlags::empty();

/// The stderr of the process, and what stands in its place while it is full.
struct HostStderr {
    real: OwnedFd,
    null: OwnedFd,
    /// Looks at which it was full, one after the other.
    full: u32,
    /// Since when nothing is written to it.
    away: Option<Instant>,
}

impl HostStderr {
    /// Nothing if it is no pipe and no socket: files take everything, and a terminal that a person has
    /// stopped is stopped on purpose.
    fn find() -> Option<Self> {
        let kind = FileType::from_raw_mode(fstat(stderr()).ok()?.st_mode);
        if !matches!(kind, FileType::Fifo | FileType::Socket) {
            return None;
        }
        let real = fcntl_dupfd_cloexec(stderr(), FIRST_PRIVATE).ok()?;
        Some(Self { real, null: null().ok()?, full: 0, away: None })
    }

    fn look(&mut self) {
        match (self.has_room(), self.away) {
            (true, None) => self.full = 0,
            (true, Some(_)) => self.give_back(),
            (false, None) => {
                self.full += 1;
                if self.full > 1 && self.stands_at_2(&self.real) {
                    self.take_away();
                }
            }
            // Not all threads that waited may have been reached.
            (false, Some(_)) => nudge(),
        }
    }

    fn has_room(&self) -> bool {
        let mut fds = [PollFd::new(&self.real, PollFlags::OUT)];
        // If it cannot be told, it is left as it is. So is one whose reader has gone: that is an error
        // to who writes, and keeps nobody waiting.
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_err() || !fds[0].revents().is_empty()
    }

    /// Whether descriptor 2 is what it was: the program may have put something of its own there.
    fn stands_at_2(&self, what: &OwnedFd) -> bool {
        let (Ok(now), Ok(then)) = (fstat(stderr()), fstat(what)) else { return false };
        (now.st_dev, now.st_ino) == (then.st_dev, then.st_ino)
    }

    fn take_away(&mut self) {
        if dup2_stdout(&self.null).is_ok() && dup2_stderr(&self.null).is_ok() {
            self.away = Some(Instant::now());
            nudge();
        }
    }

    fn give_back(&mut self) {
        let Some(since) = self.away.take() else { return };
        self.full = 0;
        if !self.stands_at_2(&self.null) {
            return;
        }
        let _ = dup2_stderr(&self.real);
        let _ = dup2_stdout(&self.real);
        let away = since.elapsed();
        super::say(&format!(
            "nobody read stderr; what was printed there in the last {away:.1?} is lost"
        ));
    }
}

/// Makes every thread that waits in a write begin it anew, on the descriptor as it is now.
fn nudge() {
    let own = getpid();
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let threads = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
    let mut threads: Vec<i32> = threads.collect();
    if threads.is_empty() {
        threads.push(own.as_raw_nonzero().get());
    }
    for thread in threads {
        if let Some(thread) = Pid::from_raw(thread) {
            // Linux takes the number of a thread here, and tells that one first.
            let _ = kill_process(thread, Signal::URG);
            // One signal of a kind waits at a time: let it be seen before the next.
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest limit that a user can set is no limit.
    #[test]
    fn a_drain_without_end_ends_nothing() {
        let (dropped, _alive) = io::pipe().unwrap();
        let mut watched =
            WatchedLoop { dropped, input: None, drain: Duration::MAX, ended: None, stderr: None };
        watched.look(true);
        assert_eq!(watched.patience(), None);
    }
}
