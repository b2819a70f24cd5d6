//! Ctrl-C at a terminal: the first reaches the server, the second kills it, and one that ignores signals is
//! killed in the end.
//!
//! Only where a person sees stderr. A host gets exactly what the server does, so there only the server decides.

use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// A server that ends within this time need not be told of.
const SOON: Duration = Duration::from_millis(300);

/// How long it may take to heed Ctrl-C before it gets SIGTERM: as long as other commands wait for one.
const TERM: Duration = Duration::from_secs(5);

/// How long it may live on then: as long as the official SDKs wait before they kill.
const KILL: Duration = Duration::from_secs(7);

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Asked,
    Told,
    Terminated,
    Killed,
}

/// What a person has asked for.
pub(super) struct Stop<'a> {
    /// Tells the person; nobody is there without.
    tell: Option<&'a dyn Fn(&str)>,
    since: Option<(Instant, Step)>,
}

impl<'a> Stop<'a> {
    pub(super) const fn new(tell: Option<&'a dyn Fn(&str)>) -> Self {
        Self { tell, since: None }
    }

    /// Whether this has killed the server.
    pub(super) fn killed(&self) -> bool {
        self.since.is_some_and(|(_, step)| step == Step::Killed)
    }

    /// Ctrl-C came. Says whether the server gets it; if not, it was killed.
    pub(super) fn interrupted(&mut self, child: &Child) -> bool {
        let Some(tell) = self.tell else { return true };
        match &mut self.since {
            None => {
                self.since = Some((Instant::now(), Step::Asked));
                true
            }
            Some((_, step)) => {
                if *step != Step::Killed {
                    tell("the server is killed");
                }
                *step = Step::Killed;
                signal(child, Signal::KILL);
                false
            }
        }
    }

    /// Does what is due for a server that still runs, and says how long nothing more is.
    pub(super) fn due(&mut self, child: &Child) -> Option<Duration> {
        let (tell, (since, step)) = (self.tell?, self.since.as_mut()?);
        let next = match step {
            Step::Asked => SOON,
            Step::Told => TERM,
            Step::Terminated => KILL,
            Step::Killed => return None,
        };
        let left = next.saturating_sub(since.elapsed());
        if !left.is_zero() {
            return Some(left);
        }
        match step {
            Step::Asked => {
                *step = Step::Told;
                tell("the server has got the signal; once more kills it");
            }
            Step::Told => {
                *step = Step::Terminated;
                signal(child, Signal::TERM);
            }
            Step::Terminated => {
                *step = Step::Killed;
                signal(child, Signal::KILL);
                tell("the server ignored SIGINT and SIGTERM, and is killed");
            }
            Step::Killed => {}
        }
        self.due(child)
    }
}

/// Sends a signal to the server's process group.
fn signal(child: &Child, signal: Signal) {
    // The process was not waited for yet, so the number is still its own.
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(pid, signal);
    }
}
