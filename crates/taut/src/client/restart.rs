//! When a server that died is started again, and when no more.
//!
//! Pure: knows how long the last one lived because it is told. Must not know what a server is. P21.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::supervise::Life;

/// How a server is kept alive: [`ClientBuilder::supervise`](super::ClientBuilder::supervise).
///
/// ```
/// use std::time::Duration;
/// use taut::Restart;
///
/// let restart = Restart::new()
///     .at_most(3)
///     .check(Duration::from_secs(30), Duration::from_secs(5))
///     .on_life(|life| eprintln!("{life}"));
/// ```
#[derive(Clone)]
pub struct Restart {
    first: Duration,
    longest: Duration,
    settled: Duration,
    at_most: u32,
    pub(super) check: Option<Check>,
    pub(super) on_life: Option<OnLife>,
}

pub(super) type OnLife = Arc<dyn Fn(&Life<'_>) + Send + Sync>;

/// How a server is asked whether it still lives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    pub(super) every: Duration,
    pub(super) within: Duration,
}

impl Default for Restart {
    fn default() -> Self {
        Self {
            // Short enough for a person who waits; the system needs about as long to clean up.
            first: Duration::from_millis(250),
            // Whoever fixes the cause should not wait much longer for the effect.
            longest: Duration::from_secs(30),
            // What runs for a minute does not fail at its start.
            settled: Duration::from_secs(60),
            // With the pauses above, about eight seconds of trying.
            at_most: 5,
            check: None,
            on_life: None,
        }
    }
}

impl Restart {
    /// How often one call may be made again.
    pub(super) fn most(&self) -> u32 {
        self.at_most
    }

    /// The defaults: after 250 ms, then twice as long each time up to 30 s; at most five times in a
    /// row, counted anew once a server has run for a minute; no checks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The pause before the first restart. It doubles with each that follows.
    #[must_use]
    pub fn first(mut self, pause: Duration) -> Self {
        self.first = pause;
        self
    }

    /// The longest pause.
    #[must_use]
    pub fn longest(mut self, pause: Duration) -> Self {
        self.longest = pause;
        self
    }

    /// How long a server has to run before its end counts as a first one again.
    #[must_use]
    pub fn settled(mut self, uptime: Duration) -> Self {
        self.settled = uptime;
        self
    }

    /// How often it is started again in a row before it is given up.
    #[must_use]
    pub fn at_most(mut self, restarts: u32) -> Self {
        self.at_most = restarts;
        self
    }

    /// Asks every so often whether the server still answers, and replaces one that does not within
    /// a time: a process that is stopped or stuck has not ended (P23).
    #[must_use]
    pub fn check(mut self, every: Duration, within: Duration) -> Self {
        self.check = Some(Check { every, within });
        self
    }

    /// Passes on what happens to the server. It must not block.
    #[must_use]
    pub fn on_life(mut self, hook: impl Fn(&Life<'_>) + Send + Sync + 'static) -> Self {
        self.on_life = Some(Arc::new(hook));
        self
    }
}

impl fmt::Debug for Restart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Restart")
            .field("first", &self.first)
            .field("longest", &self.longest)
            .field("settled", &self.settled)
            .field("at_most", &self.at_most)
            .field("check", &self.check)
            .finish_non_exhaustive()
    }
}

/// How often it has been started again in a row.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    pub(super) restarts: u32,
}

impl Backoff {
    /// A server has ended after so long: how long to wait before the next, if there is to be one.
    pub(super) fn handle_lost(&mut self, rules: &Restart, uptime: Duration) -> Option<Duration> {
        if uptime >= rules.settled {
            self.restarts = 0;
        }
        if self.restarts >= rules.at_most {
            return None;
        }
        let times = 1u32.checked_shl(self.restarts).unwrap_or(u32::MAX);
        self.restarts += 1;
        Some(rules.first.saturating_mul(times).min(rules.longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// P21
    #[test]
    fn p21_pauses_double_up_to_the_longest_and_a_crash_loop_ends() {
        let rules = Restart::new().first(ms(100)).longest(ms(500)).at_most(5);
        let mut backoff = Backoff::default();
        let pauses: Vec<_> =
            std::iter::from_fn(|| backoff.handle_lost(&rules, ms(10))).take(10).collect();
        assert_eq!(pauses, [100, 200, 400, 500, 500].map(ms));
    }

    #[test]
    fn a_server_that_ran_for_long_starts_from_the_beginning() {
        let rules = Restart::new().first(ms(100)).settled(ms(1_000)).at_most(2);
        let mut backoff = Backoff::default();
        assert_eq!(backoff.handle_lost(&rules, ms(0)), Some(ms(100)));
        assert_eq!(backoff.handle_lost(&rules, ms(999)), Some(ms(200)));
        assert_eq!(backoff.handle_lost(&rules, ms(1_000)), Some(ms(100)));
        assert_eq!(backoff.handle_lost(&rules, ms(0)), Some(ms(200)));
        assert_eq!(backoff.handle_lost(&rules, ms(0)), None);
        let none = Restart::new().at_most(0);
        assert_eq!(Backoff::default().handle_lost(&none, ms(0)), None);
    }

    #[test]
    fn no_number_of_restarts_is_too_large() {
        let rules = Restart::new().at_most(u32::MAX);
        let mut backoff = Backoff { restarts: 1_000 };
        assert_eq!(backoff.handle_lost(&rules, ms(0)), Some(Duration::from_secs(30)));
    }
}
