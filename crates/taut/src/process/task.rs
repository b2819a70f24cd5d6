//! Looks after one child until it is gone: drains its stderr, notices its exit, ends it when asked.
//!
//! The one task per child. Does what `shutdown.rs` decides, through `leader.rs` and `stderr.rs`; must
//! not decide anything itself. When its runtime goes down with the child still alive, the child
//! goes down too: its pipes would not be read any more.
//!
//! Obeys the scars P7, P9, P13, E1 and E4.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep};

use super::exit::ExitStatus;
use super::leader::Leader;
use super::shutdown::{GracePeriods, ProcessEnd, Shutdown, ShutdownAction, ShutdownStep};
use super::stderr::Stderr;
use super::sys::{ExitWatch, Process};

/// The task that looks after one child.
pub(super) struct ChildTask {
    pub(super) leader: Arc<Leader>,
    pub(super) watch: ExitWatch,
    pub(super) stderr: Stderr,
    pub(super) shutdown: Shutdown,
    /// Requests to end the child; `None` once every sender is gone.
    pub(super) asks: Option<mpsc::Receiver<GracePeriods>>,
    pub(super) timer: Option<Pin<Box<Sleep>>>,
    /// The program, if it is one that runs the server elsewhere (P13).
    pub(super) container: Option<String>,
    pub(super) done: bool,
}

impl ChildTask {
    fn poll_asks(&mut self, cx: &mut Context<'_>) {
        while let Some(asks) = &mut self.asks {
            match asks.poll_recv(cx) {
                Poll::Pending => return,
                Poll::Ready(None) => self.asks = None,
                Poll::Ready(Some(grace)) => self.shutdown.handle_closed(now(), grace),
            }
        }
    }

    fn poll_time(&mut self, cx: &mut Context<'_>) {
        while let Some(deadline) = self.shutdown.poll_timeout() {
            let deadline = Instant::from_std(deadline);
            let timer =
                self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
            if timer.deadline() != deadline {
                timer.as_mut().reset(deadline);
            }
            if timer.as_mut().poll(cx).is_pending() {
                return;
            }
            self.shutdown.handle_time(now());
            self.act();
        }
    }

    fn act(&mut self) {
        while let Some(action) = self.shutdown.poll_action() {
            match action {
                ShutdownAction::Term => {
                    self.warn_about_container();
                    self.leader.signal(Process::terminate_group);
                }
                ShutdownAction::Kill | ShutdownAction::SweepGroup => {
                    self.leader.signal(Process::kill_group);
                }
                ShutdownAction::Reap => {
                    let exit = self.leader.reap().unwrap_or(ExitStatus::UNSEEN);
                    self.finish(exit);
                }
                ShutdownAction::GiveUp => {
                    self.finish(ExitStatus::UNSEEN);
                    self.leader.hand_over();
                }
            }
        }
    }

    fn finish(&mut self, exit: ExitStatus) {
        // E4: a caller who hears of the end may ask for the end of stderr at once.
        self.stderr.finish();
        let (pid, step) = (self.leader.process.id(), self.shutdown.step());
        tracing::debug!(pid, %exit, ?step, "ended");
        self.leader.publish(ProcessEnd { step, exit });
        self.done = true;
    }

    /// P13: a signal reaches the command that talks to the container, not the container.
    fn warn_about_container(&self) {
        if let (Some(program), ShutdownStep::Term | ShutdownStep::Kill) =
            (&self.container, self.shutdown.step())
        {
            tracing::warn!(
                program,
                "did not end when its stdin was closed and is now sent SIGTERM; its container may \
                 stay behind: check with `{program} ps`"
            );
        }
    }
}

impl Future for ChildTask {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.stderr.poll_drain(cx);
        this.poll_asks(cx);
        if this.watch.poll_exit(cx).is_ready() {
            this.shutdown.handle_exit();
        }
        this.act();
        this.poll_time(cx);
        if this.done { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for ChildTask {
    fn drop(&mut self) {
        if !self.done {
            self.leader.kill_and_hand_over();
        }
    }
}

fn now() -> std::time::Instant {
    Instant::now().into_std()
}
