//! When to wait, when to send TERM, when to send KILL: the steps from a closed stdin to a child that
//! is gone.
//!
//! Pure: knows what happened and what time it is because it is told. Must not know how a signal is
//! sent or a process is waited for; `task.rs` does what it says. The first step, flushing and closing
//! stdin, is done by the owner of stdin; a [`Shutdown`] starts after that. It also decides what
//! follows an exit without a request, so that one place decides about sweeping and reaping.
//!
//! Obeys the stdio page's shutdown order (close stdin, wait, SIGTERM, wait, SIGKILL) and the scars
//! P3, P7, P8, P12.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use super::exit::ExitStatus;

with_defaults! {
    /// How long each step waits for the child to go.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct GracePeriods {
        /// From closed stdin to SIGTERM. Two seconds, as the official SDKs wait.
        pub after_eof: Duration = Duration::from_secs(2),
        /// From SIGTERM to SIGKILL. Two seconds, as the official SDKs wait.
        pub after_term: Duration = Duration::from_secs(2),
        /// From SIGKILL to giving up. Only a process stuck in the kernel lives that long; waiting for
        /// it without a limit would hang the caller on, say, a dead network disk.
        pub after_kill: Duration = Duration::from_secs(2),
    }
}

/// The step on which a child ended: what it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ShutdownStep {
    /// It ended before anybody asked it to.
    Unasked,
    /// It ended by itself once its stdin was closed.
    Eof,
    /// It ended after SIGTERM.
    Term,
    /// It ended after SIGKILL.
    Kill,
    /// It had not ended even some time after SIGKILL.
    Stuck,
}

/// How a child ended: on which step of the shutdown, and with which status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessEnd {
    /// What it took to end it.
    pub step: ShutdownStep,
    /// Its status.
    pub exit: ExitStatus,
}

/// Reads on after a name: "exited with code 0 once its stdin was closed".
impl fmt::Display for ProcessEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exit = self.exit;
        match self.step {
            ShutdownStep::Unasked => write!(f, "{exit} before anybody asked it to"),
            ShutdownStep::Eof => write!(f, "{exit} once its stdin was closed"),
            ShutdownStep::Term => write!(f, "{exit} after SIGTERM"),
            ShutdownStep::Kill => write!(f, "{exit} after {KILL}"),
            ShutdownStep::Stuck => write!(f, "has not ended even after {KILL}"),
        }
    }
}

/// How a kill is called on this system.
const KILL: &str = if cfg!(windows) { "it was terminated" } else { "SIGKILL" };

/// What the task of the child has to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShutdownAction {
    /// Send SIGTERM to the group.
    Term,
    /// Send SIGKILL to the group.
    Kill,
    /// Send SIGKILL to what the leader left behind in its group. Always before [`ShutdownAction::Reap`]:
    /// until the leader is reaped the group's number cannot be given to another.
    SweepGroup,
    /// Collect the leader's status.
    Reap,
    /// Stop waiting. The process is left to the reaper.
    GiveUp,
}

/// The shutdown of one child.
#[derive(Debug)]
pub(super) struct Shutdown {
    step: ShutdownStep,
    over: bool,
    leave_group: bool,
    /// Whether there is a signal between the closed stdin and the kill.
    has_term: bool,
    grace: GracePeriods,
    deadline: Option<Instant>,
    actions: VecDeque<ShutdownAction>,
}

impl Shutdown {
    /// The state for a child that runs. With `leave_group`, what the child leaves in its group after
    /// it ended without a signal from us is left alone (P12).
    ///
    /// Without `has_term`, as on Windows, a kill follows when the wait after the closed stdin is over (W5).
    pub(super) fn new(leave_group: bool, has_term: bool) -> Self {
        Self {
            step: ShutdownStep::Unasked,
            over: false,
            leave_group,
            has_term,
            grace: GracePeriods::default(),
            deadline: None,
            actions: VecDeque::new(),
        }
    }

    /// The child's stdin was closed, or would be if it were not already. Said again, it can only
    /// shorten the wait: a second, shorter grace counts, a longer one does not.
    pub(super) fn handle_closed(&mut self, now: Instant, grace: GracePeriods) {
        if self.over {
            return;
        }
        self.grace =
            if self.step == ShutdownStep::Unasked { grace } else { shorter(self.grace, grace) };
        if self.step == ShutdownStep::Unasked {
            self.step = ShutdownStep::Eof;
        }
        let fresh = self.wait().and_then(|wait| now.checked_add(wait));
        self.deadline = earlier(self.deadline, fresh);
        self.handle_time(now);
    }

    /// The child has exited; it is not reaped yet.
    pub(super) fn handle_exit(&mut self) {
        if self.over {
            return;
        }
        self.over = true;
        self.deadline = None;
        // A TERM or KILL that is still queued would reach a group whose leader is gone: the sweep
        // is all that is left to do.
        self.actions.clear();
        let untouched = self.step <= ShutdownStep::Eof;
        if !(self.leave_group && untouched) {
            self.actions.push_back(ShutdownAction::SweepGroup);
        }
        self.actions.push_back(ShutdownAction::Reap);
    }

    /// Time has passed.
    pub(super) fn handle_time(&mut self, now: Instant) {
        while self.deadline.is_some_and(|deadline| deadline <= now) {
            let (step, action) = match self.step {
                ShutdownStep::Unasked | ShutdownStep::Stuck => return,
                ShutdownStep::Eof if self.has_term => (ShutdownStep::Term, ShutdownAction::Term),
                ShutdownStep::Eof | ShutdownStep::Term => {
                    (ShutdownStep::Kill, ShutdownAction::Kill)
                }
                ShutdownStep::Kill => (ShutdownStep::Stuck, ShutdownAction::GiveUp),
            };
            self.step = step;
            self.actions.push_back(action);
            self.over = step == ShutdownStep::Stuck;
            // From now, not from the missed deadline: the child hears of the signal only now.
            self.deadline = self.wait().and_then(|wait| now.checked_add(wait));
        }
    }

    /// The next thing to do, until there is nothing more to do now.
    pub(super) fn poll_action(&mut self) -> Option<ShutdownAction> {
        self.actions.pop_front()
    }

    /// When [`Shutdown::handle_time`] wants to be called next.
    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }

    /// The step reached so far.
    pub(super) const fn step(&self) -> ShutdownStep {
        self.step
    }

    const fn wait(&self) -> Option<Duration> {
        match self.step {
            ShutdownStep::Unasked | ShutdownStep::Stuck => None,
            ShutdownStep::Eof => Some(self.grace.after_eof),
            ShutdownStep::Term => Some(self.grace.after_term),
            ShutdownStep::Kill => Some(self.grace.after_kill),
        }
    }
}

fn shorter(a: GracePeriods, b: GracePeriods) -> GracePeriods {
    GracePeriods {
        after_eof: a.after_eof.min(b.after_eof),
        after_term: a.after_term.min(b.after_term),
        after_kill: a.after_kill.min(b.after_kill),
    }
}

fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    const GRACE: GracePeriods =
        GracePeriods { after_eof: ms(20), after_term: ms(30), after_kill: ms(40) };
    const NONE: GracePeriods =
        GracePeriods { after_eof: ms(0), after_term: ms(0), after_kill: ms(40) };

    #[derive(Clone, Copy)]
    enum Event {
        Closed(u64, GracePeriods),
        Time(u64),
        Exit,
    }
    use Event::{Closed, Exit, Time};
    use ShutdownAction::{GiveUp, Kill, Reap, SweepGroup, Term};

    /// What it asks for, and the step it ends on.
    fn run(leave_group: bool, events: &[Event]) -> (Vec<ShutdownAction>, ShutdownStep) {
        let start = Instant::now();
        let mut shutdown = Shutdown::new(leave_group, true);
        let mut actions = Vec::new();
        for event in events {
            match *event {
                Closed(at, grace) => shutdown.handle_closed(start + ms(at), grace),
                Time(at) => shutdown.handle_time(start + ms(at)),
                Exit => shutdown.handle_exit(),
            }
            actions.extend(std::iter::from_fn(|| shutdown.poll_action()));
        }
        (actions, shutdown.step())
    }

    /// P7, P8
    #[test]
    fn the_way_down_is_eof_term_kill_and_says_where_it_ended() {
        let cases: &[(&str, &[Event], &[ShutdownAction], ShutdownStep)] = &[
            ("crash", &[Exit], &[SweepGroup, Reap], ShutdownStep::Unasked),
            ("polite", &[Closed(0, GRACE), Time(19), Exit], &[SweepGroup, Reap], ShutdownStep::Eof),
            (
                "term",
                &[Closed(0, GRACE), Time(20), Exit],
                &[Term, SweepGroup, Reap],
                ShutdownStep::Term,
            ),
            (
                "kill",
                &[Closed(0, GRACE), Time(20), Time(49), Time(50), Exit],
                &[Term, Kill, SweepGroup, Reap],
                ShutdownStep::Kill,
            ),
            (
                "stuck",
                &[Closed(0, GRACE), Time(20), Time(50), Time(90), Exit],
                &[Term, Kill, GiveUp],
                ShutdownStep::Stuck,
            ),
            (
                "late clock",
                &[Closed(0, GRACE), Time(1000), Time(1029)],
                &[Term],
                ShutdownStep::Term,
            ),
            (
                "no patience",
                &[Closed(0, NONE), Exit],
                &[Term, Kill, SweepGroup, Reap],
                ShutdownStep::Kill,
            ),
            (
                "closed after exit",
                &[Exit, Closed(5, NONE)],
                &[SweepGroup, Reap],
                ShutdownStep::Unasked,
            ),
            ("two exits", &[Exit, Exit], &[SweepGroup, Reap], ShutdownStep::Unasked),
        ];
        for (name, events, actions, step) in cases {
            assert_eq!(run(false, events), (actions.to_vec(), *step), "{name}");
        }
    }

    /// P12: the opt-out covers a child that went without a signal, and no other.
    #[test]
    fn p12_a_group_may_be_left_alone_after_a_polite_exit_only() {
        let cases: &[(&[Event], &[ShutdownAction])] = &[
            (&[Exit], &[Reap]),
            (&[Closed(0, GRACE), Exit], &[Reap]),
            (&[Closed(0, GRACE), Time(20), Exit], &[Term, SweepGroup, Reap]),
            (&[Closed(0, NONE), Exit], &[Term, Kill, SweepGroup, Reap]),
        ];
        for (events, actions) in cases {
            assert_eq!(run(true, events).0, *actions);
        }
    }

    /// Windows has no signal between the two.
    #[test]
    fn w5_without_a_signal_the_kill_follows_the_closed_stdin() {
        let start = Instant::now();
        let mut shutdown = Shutdown::new(false, false);
        shutdown.handle_closed(start, GRACE);
        shutdown.handle_time(start + ms(19));
        assert_eq!(shutdown.poll_action(), None);
        shutdown.handle_time(start + ms(20));
        assert_eq!(shutdown.poll_action(), Some(Kill));
        shutdown.handle_time(start + ms(60));
        assert_eq!(shutdown.poll_action(), Some(GiveUp));
        assert_eq!(shutdown.step(), ShutdownStep::Stuck);
    }

    #[test]
    fn a_second_close_may_shorten_the_wait_but_not_lengthen_it() {
        let longer = GracePeriods { after_eof: ms(900), after_term: ms(900), after_kill: ms(900) };
        let shortened = run(false, &[Closed(0, longer), Closed(10, NONE)]);
        assert_eq!(shortened, (vec![Term, Kill], ShutdownStep::Kill));
        let unchanged = run(false, &[Closed(0, GRACE), Closed(10, longer), Time(20), Time(50)]);
        assert_eq!(unchanged, (vec![Term, Kill], ShutdownStep::Kill));
    }

    #[test]
    fn a_wait_too_long_for_the_clock_is_for_ever() {
        let mut shutdown = Shutdown::new(false, true);
        let now = Instant::now();
        shutdown.handle_closed(now, GracePeriods { after_eof: Duration::MAX, ..GRACE });
        assert_eq!(shutdown.poll_timeout(), None);
        shutdown.handle_closed(now, GRACE);
        assert_eq!(shutdown.poll_timeout(), Some(now + ms(20)));
    }

    #[test]
    fn no_time_is_wanted_before_closing_nor_after_the_exit() {
        let mut shutdown = Shutdown::new(false, true);
        assert_eq!(shutdown.poll_timeout(), None);
        shutdown.handle_closed(Instant::now(), GRACE);
        assert!(shutdown.poll_timeout().is_some());
        shutdown.handle_exit();
        assert_eq!(shutdown.poll_timeout(), None);
    }
}
