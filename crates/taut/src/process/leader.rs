//! One process that we started: whether it lives, its status, its end.
//!
//! Knows who may signal and who collects the status. Must not know when to signal (`shutdown.rs`),
//! how a system does it (`unix.rs`, `windows.rs`), and nothing of pipes. The one lock here is what
//! makes signals safe: a group is signalled only while its leader is not reaped, so the number cannot
//! belong to another process (P22).
//!
//! Obeys the scars P1, P3, P4, P5, P6 and P22.

use std::io;
use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use super::exit::ExitStatus;
use super::shutdown::{ProcessEnd, ShutdownStep};
use super::sys;
use crate::lock::lock;

/// The process we started, leader of its own group.
#[derive(Debug)]
pub(super) struct Leader {
    pub(super) process: Arc<sys::Process>,
    state: Mutex<LeaderState>,
    /// How it ended, once it has.
    pub(super) ended: watch::Sender<Option<ProcessEnd>>,
}

#[derive(Debug, Default)]
struct LeaderState {
    /// Set once the status is collected; from then on the number is no longer ours.
    reaped: Option<ExitStatus>,
    /// A thread waits for it.
    handed_over: bool,
}

impl Leader {
    /// A process that was just started. Nothing else may wait for it.
    pub(super) fn new(process: sys::Process) -> Self {
        super::running::add(process.id());
        let process = Arc::new(process);
        Self { process, state: Mutex::default(), ended: watch::Sender::new(None) }
    }

    /// Says how it ended. The first word counts.
    pub(super) fn publish(&self, ended: ProcessEnd) {
        self.ended.send_if_modified(|slot| {
            let first = slot.is_none();
            slot.get_or_insert(ended);
            first
        });
    }

    /// Asks the whole group to end, or kills it, unless the leader is reaped.
    pub(super) fn signal(&self, send: fn(&sys::Process) -> io::Result<()>) {
        let mut state = lock(&self.state);
        if state.reaped.is_some() {
            return;
        }
        if self.process.is_taken() {
            state.reaped = Some(ExitStatus::UNSEEN);
            super::running::remove(self.process.id());
            return;
        }
        if let Err(error) = send(&self.process) {
            tracing::debug!(pid = self.process.id(), %error, "no signal sent");
        }
    }

    /// Collects the status; `None` if the process still runs.
    pub(super) fn reap(&self) -> Option<ExitStatus> {
        let mut state = lock(&self.state);
        if state.reaped.is_none() {
            state.reaped = self.process.reap();
            if state.reaped.is_some() {
                super::running::remove(self.process.id());
            }
        }
        state.reaped
    }

    /// Kills the group now and leaves the reaping to a thread: needs no runtime, waits for nothing,
    /// may run while unwinding (P4, P5).
    pub(super) fn kill_and_hand_over(self: &Arc<Self>) {
        self.signal(sys::Process::kill_group);
        self.hand_over();
    }

    /// Leaves the reaping to a thread.
    pub(super) fn hand_over(self: &Arc<Self>) {
        {
            let mut state = lock(&self.state);
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
        self.process.wait();
        if let Some(exit) = self.reap() {
            self.publish(ProcessEnd { step: ShutdownStep::Kill, exit });
        }
    }
}

/// Holds a process to its owner: dropping it kills the group (P4).
#[derive(Debug)]
pub(super) struct KillOnDrop(pub(super) Arc<Leader>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill_and_hand_over();
    }
}
