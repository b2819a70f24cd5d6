//! How a worker works.

use std::time::Duration;

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

    /// Sets how often it says that it still works on a call. 1 s. An edge gives up after five times that.
    #[must_use]
    pub fn heartbeat(mut self, every: Duration) -> Self {
        self.heartbeat = every.clamp(Duration::from_millis(10), Duration::from_secs(600));
        self
    }

    /// Sets how long running calls may take once it was told to stop. 60 s.
    #[must_use]
    pub fn drain(mut self, limit: Duration) -> Self {
        self.drain = limit;
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
