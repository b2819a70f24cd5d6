//! Looks after one child until it is gone: drains its stderr, notices its exit, climbs the ladder.
//!
//! The one task per child. Does what `ladder.rs` decides, through `reaper.rs` and `stderr.rs`; must
//! not decide anything itself. When its runtime goes down with the child still alive, the child
//! goes down too: nobody would read its pipes any more.
//!
//! Obeys the scars P7, P9, P13, E1 and E4.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustix::process::Signal;
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep};

use super::ladder::Ended;
use super::ladder::{Action, Grace, Ladder, Rung};
use super::reaper::{Leader, Watch};
use super::stderr::Stderr;
use crate::error::Exit;

/// The task that looks after one child.
pub(crate) struct Keeper {
    leader: Arc<Leader>,
    watch: Watch,
    stderr: Stderr,
    ladder: Ladder,
    /// Requests to end the child; gone once nobody can ask any more.
    asks: Option<mpsc::Receiver<Grace>>,
    timer: Option<Pin<Box<Sleep>>>,
    /// The program, if it is one that runs the server elsewhere (P13).
    container: Option<String>,
    done: bool,
}

impl Keeper {
    pub(crate) const fn new(
        leader: Arc<Leader>,
        watch: Watch,
        stderr: Stderr,
        ladder: Ladder,
        asks: mpsc::Receiver<Grace>,
        container: Option<String>,
    ) -> Self {
        Self {
            leader,
            watch,
            stderr,
            ladder,
            asks: Some(asks),
            timer: None,
            container,
            done: false,
        }
    }

    fn poll_asks(&mut self, cx: &mut Context<'_>) {
        while let Some(asks) = &mut self.asks {
            match asks.poll_recv(cx) {
                Poll::Pending => return,
                Poll::Ready(None) => self.asks = None,
                Poll::Ready(Some(grace)) => self.ladder.handle_closed(now(), grace),
            }
        }
    }

    fn poll_time(&mut self, cx: &mut Context<'_>) {
        while let Some(deadline) = self.ladder.poll_timeout() {
            let deadline = Instant::from_std(deadline);
            let timer =
                self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
            if timer.deadline() != deadline {
                timer.as_mut().reset(deadline);
            }
            if timer.as_mut().poll(cx).is_pending() {
                return;
            }
            self.ladder.handle_time(now());
            self.act();
        }
    }

    fn act(&mut self) {
        while let Some(action) = self.ladder.poll_action() {
            match action {
                Action::Term => {
                    self.warn_about_container();
                    self.leader.signal_group(Signal::TERM);
                }
                Action::Kill | Action::SweepGroup => self.leader.signal_group(Signal::KILL),
                Action::Reap => {
                    let exit = self.leader.reap().unwrap_or(Exit::UNSEEN);
                    self.finish(exit);
                }
                Action::GiveUp => {
                    self.finish(Exit::UNSEEN);
                    self.leader.hand_over();
                }
            }
        }
    }

    fn finish(&mut self, exit: Exit) {
        // E4: whoever hears of the end may ask for the last words at once.
        self.stderr.last_words();
        self.leader.publish(Ended { rung: self.ladder.rung(), exit });
        self.done = true;
    }

    /// P13: a signal reaches the command that talks to the container, not the container.
    fn warn_about_container(&self) {
        if let (Some(program), Rung::Term | Rung::Kill) = (&self.container, self.ladder.rung()) {
            tracing::warn!(
                program,
                "did not end when its stdin was closed and is now sent SIGTERM; its container may \
                 stay behind: check with `{program} ps`"
            );
        }
    }
}

impl Future for Keeper {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.stderr.poll_drain(cx);
        this.poll_asks(cx);
        if this.watch.poll_exit(cx).is_ready() {
            this.ladder.handle_exit();
        }
        this.act();
        this.poll_time(cx);
        if this.done { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if !self.done {
            self.leader.kill_and_hand_over();
        }
    }
}

fn now() -> std::time::Instant {
    Instant::now().into_std()
}
