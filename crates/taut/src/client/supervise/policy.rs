//! When a server that died is started again, and when no more.
//!
//! Pure: knows how long the last one lived because it is told. Must not know what a server is. P21.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::SupervisorEvent;
use crate::client::connection::bounded;

with_defaults! {
    /// When a server that died is started again:
    /// [`ClientBuilder::supervise`](crate::ClientBuilder::supervise).
    ///
    /// ```
    /// use std::time::Duration;
    /// use taut::RestartPolicy;
    ///
    /// let policy = RestartPolicy::new()
    ///     .max_restarts(3)
    ///     .health_check(Duration::from_secs(30), Duration::from_secs(5))
    ///     .on_event(|event| eprintln!("{event}"));
    /// ```
    #[derive(Clone)]
    #[must_use = "a policy does nothing until a client is supervised by it"]
    pub struct RestartPolicy {
        // Short enough for a person who waits; the system needs about as long to clean up.
        first_delay: Duration = Duration::from_millis(250),
        // A person who has fixed the cause should not wait much longer for the effect.
        max_delay: Duration = Duration::from_secs(30),
        // A server that runs for a minute does not fail at its start.
        reset_after: Duration = Duration::from_secs(60),
        // With the delays above, about eight seconds of trying.
        pub(super) max_restarts: u32 = 5,
        pub(super) health_check: Option<HealthCheck>,
        pub(super) on_event: Option<SupervisorHook>,
    }
}

pub(super) type SupervisorHook = Arc<dyn Fn(&SupervisorEvent<'_>) + Send + Sync>;

/// How a server is asked whether it still answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct HealthCheck {
    pub(super) every: Duration,
    pub(super) within: Duration,
}

impl RestartPolicy {
    /// The defaults: after 250 ms, then twice as long each time up to 30 s; at most five times in a
    /// row, counted anew once a server has run for a minute; no health checks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the server every so often whether it still answers, and replaces one that does not within
    /// a time: a process that is stopped or stuck has not ended.
    // P23
    pub fn health_check(mut self, every: Duration, within: Duration) -> Self {
        let (every, within) = (bounded(every), bounded(within));
        self.health_check = Some(HealthCheck { every, within });
        self
    }
}

setters! { RestartPolicy;
    /// Is told what happens to the server. It must not block.
    on_event(hook: impl Fn(&SupervisorEvent<'_>) + Send + Sync + 'static)
        => on_event = Some(Arc::new(hook));

    /// Sets the delay before the first restart. It doubles with each that follows.
    first_delay(delay: Duration) => first_delay = bounded(delay);

    /// Sets the longest delay.
    max_delay(delay: Duration) => max_delay = bounded(delay);

    /// Sets how long a server has to run before the restarts are counted anew.
    reset_after(uptime: Duration) => reset_after;

    /// Sets how often it is started again in a row before it is given up.
    max_restarts(restarts: u32) => max_restarts;
}

impl fmt::Debug for RestartPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestartPolicy")
            .field("first_delay", &self.first_delay)
            .field("max_delay", &self.max_delay)
            .field("reset_after", &self.reset_after)
            .field("max_restarts", &self.max_restarts)
            .field("health_check", &self.health_check)
            .finish_non_exhaustive()
    }
}

/// How often it has been started again in a row.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    pub(super) restarts: u32,
}

impl Backoff {
    /// A server has ended after so long: how long to wait before the next, if there is to be one.
    pub(crate) fn handle_lost(
        &mut self,
        policy: &RestartPolicy,
        uptime: Duration,
    ) -> Option<Duration> {
        if uptime >= policy.reset_after {
            self.restarts = 0;
        }
        if self.restarts >= policy.max_restarts {
            return None;
        }
        let times = 1u32.checked_shl(self.restarts).unwrap_or(u32::MAX);
        self.restarts += 1;
        Some(policy.first_delay.saturating_mul(times).min(policy.max_delay))
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
        let policy = RestartPolicy::new().first_delay(ms(100)).max_delay(ms(500)).max_restarts(5);
        let mut backoff = Backoff::default();
        let pauses: Vec<_> =
            std::iter::from_fn(|| backoff.handle_lost(&policy, ms(10))).take(10).collect();
        assert_eq!(pauses, [100, 200, 400, 500, 500].map(ms));
    }

    #[test]
    fn a_server_that_ran_for_long_starts_from_the_beginning() {
        let policy =
            RestartPolicy::new().first_delay(ms(100)).reset_after(ms(1_000)).max_restarts(2);
        let mut backoff = Backoff::default();
        assert_eq!(backoff.handle_lost(&policy, ms(0)), Some(ms(100)));
        assert_eq!(backoff.handle_lost(&policy, ms(999)), Some(ms(200)));
        assert_eq!(backoff.handle_lost(&policy, ms(1_000)), Some(ms(100)));
        assert_eq!(backoff.handle_lost(&policy, ms(0)), Some(ms(200)));
        assert_eq!(backoff.handle_lost(&policy, ms(0)), None);
        let none = RestartPolicy::new().max_restarts(0);
        assert_eq!(Backoff::default().handle_lost(&none, ms(0)), None);
    }

    #[test]
    fn no_number_of_restarts_is_too_large() {
        let policy = RestartPolicy::new().max_restarts(u32::MAX);
        let mut backoff = Backoff { restarts: 1_000 };
        assert_eq!(backoff.handle_lost(&policy, ms(0)), Some(Duration::from_secs(30)));
    }
}
