//! One process that we started: whether it lives, its group, its status, its end.
//!
//! Knows pids, signals and waiting. Must not know when to signal (`ladder.rs`) and nothing of pipes.
//! The one lock here is what makes signals safe: a group is signalled only while its leader is not
//! reaped, so the number cannot have become somebody else's (P22).
//!
//! Obeys the scars P1, P3, P5, P6, P9 and P22.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, waitid};
#[cfg(target_os = "linux")]
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{oneshot, watch};

use super::ladder::Ended;
use super::ladder::Rung;
use crate::error::Exit;

/// The process we started, leader of its own session and group.
#[derive(Debug)]
pub(crate) struct Leader {
    pid: Pid,
    state: Mutex<State>,
    ended: watch::Sender<Option<Ended>>,
}

#[derive(Debug, Default)]
struct State {
    /// Set once the status is collected; from then on the number is no longer ours.
    reaped: Option<Exit>,
    /// A thread waits for it.
    handed_over: bool,
}

impl Leader {
    /// A process that was just started and is waited for by nobody else.
    pub(crate) fn new(pid: Pid) -> Self {
        Self { pid, state: Mutex::default(), ended: watch::Sender::new(None) }
    }

    pub(crate) const fn pid(&self) -> Pid {
        self.pid
    }

    /// Tells how it ended, once it has.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<Ended>> {
        self.ended.subscribe()
    }

    /// Says how it ended. The first word counts.
    pub(crate) fn publish(&self, ended: Ended) {
        self.ended.send_if_modified(|slot| {
            let first = slot.is_none();
            slot.get_or_insert(ended);
            first
        });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Signals the whole group, unless the leader is reaped.
    pub(crate) fn signal_group(&self, signal: Signal) {
        let mut state = self.lock();
        if state.reaped.is_some() {
            return;
        }
        // Another part of this program may wait for any child, or ignore SIGCHLD: then the status
        // is gone, and with it our hold on the number.
        if matches!(self.wait(WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT), Err(Errno::CHILD)) {
            state.reaped = Some(Exit::UNSEEN);
            return;
        }
        if let Err(error) = rustix::process::kill_process_group(self.pid, signal) {
            tracing::debug!(pid = self.pid.as_raw_pid(), ?signal, %error, "no signal sent");
        }
    }

    /// Collects the status; `None` if the process still runs.
    pub(crate) fn reap(&self) -> Option<Exit> {
        let mut state = self.lock();
        if state.reaped.is_none() {
            state.reaped = match self.wait(WaitIdOptions::NOHANG) {
                Ok(None) => None,
                Ok(Some(status)) => Some(exit_of(&status)),
                Err(_) => Some(Exit::UNSEEN),
            };
        }
        state.reaped
    }

    /// Kills the group now and leaves the reaping to a thread: needs no runtime, waits for nothing,
    /// may run while unwinding (P4, P5).
    pub(crate) fn kill_and_hand_over(self: &Arc<Self>) {
        self.signal_group(Signal::KILL);
        self.hand_over();
    }

    /// Leaves the reaping to a thread.
    pub(crate) fn hand_over(self: &Arc<Self>) {
        {
            let mut state = self.lock();
            if state.reaped.is_some() || std::mem::replace(&mut state.handed_over, true) {
                return;
            }
        }
        let leader = Arc::clone(self);
        let thread = std::thread::Builder::new().name("taut-reap".into());
        if thread.spawn(move || leader.wait_and_finish()).is_err() {
            // No thread to be had: wait here. It was killed, so this is short.
            self.wait_and_finish();
        }
    }

    fn wait_and_finish(&self) {
        self.wait_for_exit();
        if let Some(exit) = self.reap() {
            self.publish(Ended { rung: Rung::Kill, exit });
        }
    }

    /// Blocks until it has exited, without collecting the status.
    fn wait_for_exit(&self) {
        // The number may be reaped and given to another child of ours while we wait. NOWAIT keeps
        // us from taking that one's status; we merely wait a little longer.
        let _ = self.wait(WaitIdOptions::NOWAIT);
    }

    fn wait(&self, options: WaitIdOptions) -> Result<Option<WaitIdStatus>, Errno> {
        loop {
            match waitid(WaitId::Pid(self.pid), options | WaitIdOptions::EXITED) {
                Err(Errno::INTR) => {}
                other => return other,
            }
        }
    }
}

fn exit_of(status: &WaitIdStatus) -> Exit {
    Exit {
        code: status.exit_status(),
        signal: status.terminating_signal(),
        core_dumped: status.dumped(),
    }
}

/// Holds a process to its owner: dropping it kills the group (P4).
#[derive(Debug)]
pub(crate) struct Leash(pub(crate) Arc<Leader>);

impl Drop for Leash {
    fn drop(&mut self) {
        self.0.kill_and_hand_over();
    }
}

/// Notices the exit of a process: the process itself, never its pipes, which a descendant may hold
/// open (P9).
pub(crate) enum Watch {
    /// The kernel makes a descriptor readable. It is no pipe and is never read: this is the one
    /// type that has a safe way to wait for any descriptor we own.
    #[cfg(target_os = "linux")]
    Pidfd(Receiver),
    /// A thread waits: macOS, the BSDs, and Linux before 5.3.
    Thread(oneshot::Receiver<()>),
}

impl Watch {
    /// Watches a process, in the best way there is.
    pub(crate) fn new(leader: &Arc<Leader>) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        {
            use rustix::process::{PidfdFlags, pidfd_open};
            if let Ok(fd) = pidfd_open(leader.pid, PidfdFlags::empty()) {
                return Ok(Self::Pidfd(Receiver::from_owned_fd_unchecked(fd)?));
            }
        }
        Self::by_thread(leader)
    }

    /// Watches a process by waiting for it in a thread.
    pub(crate) fn by_thread(leader: &Arc<Leader>) -> io::Result<Self> {
        let (seen, sees) = oneshot::channel();
        let leader = Arc::clone(leader);
        std::thread::Builder::new().name("taut-wait".into()).spawn(move || {
            leader.wait_for_exit();
            let _ = seen.send(());
        })?;
        Ok(Self::Thread(sees))
    }

    /// Ready once the process has exited.
    pub(crate) fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            #[cfg(target_os = "linux")]
            // An error means that the reactor goes down. The keeper goes down with it.
            Self::Pidfd(fd) => match ready!(fd.poll_read_ready(cx)) {
                Ok(()) => Poll::Ready(()),
                Err(_) => Poll::Pending,
            },
            Self::Thread(sees) => {
                let _ = ready!(std::pin::Pin::new(sees).poll(cx));
                Poll::Ready(())
            }
        }
    }
}
