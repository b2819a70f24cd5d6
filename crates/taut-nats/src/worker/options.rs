//! How a worker works.

use std::time::Duration;

use taut::transport::bounded;

use crate::frame::BEATS;

/// How a worker works.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    pub(super) slots: usize,
    pub(super) listens: usize,
    pub(super) heartbeat: Duration,
    pub(super) drain: Duration,
    pub(super) kept: usize,
    pub(super) server: Option<String>,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            slots: 64,
            listens: 1024,
            heartbeat: Duration::from_secs(1),
            drain: Duration::from_secs(60),
            kept: 8 << 20,
            server: None,
        }
    }
}

impl WorkerOptions {
    /// 64 slots, 1,024 streams of changes, a heartbeat every second.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many calls it runs at once. 64. More are bounced, and go to other workers.
    #[must_use]
    pub fn slots(mut self, slots: usize) -> Self {
        self.slots = slots.max(1);
        self
    }

    /// Sets how often it says that it still works on a call. 1 s; from 10 ms to 10 min. An edge gives up after five times that.
    #[must_use]
    pub fn heartbeat(mut self, every: Duration) -> Self {
        self.heartbeat = every.clamp(BEATS.0, BEATS.1);
        self
    }

    /// Sets how long running calls may take once it was told to stop. 60 s.
    #[must_use]
    pub fn drain(mut self, limit: Duration) -> Self {
        self.drain = bounded(limit);
        self
    }

    /// Sets how many bytes of answers it keeps after it has sent them, for an edge whose connection broke
    /// meanwhile. 8 MiB, the newest, for a minute at most; of a long answer only its last parts.
    #[must_use]
    pub fn kept(mut self, bytes: usize) -> Self {
        self.kept = bytes;
        self
    }

    /// Sets what the fleet shows as the server: its name and version.
    #[must_use]
    pub fn server(mut self, server: impl Into<String>) -> Self {
        self.server = Some(server.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Set = fn(WorkerOptions, Duration) -> WorkerOptions;
    type Get = fn(&WorkerOptions) -> Duration;

    /// Every option that is a time may be the longest: it is added to the time of day.
    #[test]
    fn every_duration_of_a_worker_can_be_counted() {
        let table: [(&str, Set, Get); 2] = [
            ("heartbeat", WorkerOptions::heartbeat, |options| options.heartbeat),
            ("drain", WorkerOptions::drain, |options| options.drain),
        ];
        let source = include_str!("options.rs");
        let takes_time =
            |line: &&str| line.trim_start().starts_with("pub fn ") && line.contains(": Duration)");
        assert_eq!(source.lines().filter(takes_time).count(), table.len(), "each has a row");
        for (name, set, time) in table {
            let set = set(WorkerOptions::default(), Duration::MAX);
            assert!(std::time::Instant::now().checked_add(time(&set)).is_some(), "{name}");
        }
    }
}
