//! Which processes this program has started through this library and not yet waited for.
//!
//! Knows numbers; must not know what the processes are. A program that takes over what its children leave behind (a
//! subreaper) needs them, to tell the two apart.

use std::sync::Mutex;

use crate::lock::lock;

/// How many are being started, and the numbers of those that run.
static RUNNING: Mutex<(usize, Vec<u32>)> = Mutex::new((0, Vec::new()));

/// The numbers of the processes that were started by this library in this program and whose status has not been
/// collected. `None` while one is being started: its number is not known yet.
///
/// For a program that adopts orphans (`PR_SET_CHILD_SUBREAPER` on Linux): a child of its own that is not among these
/// was left behind by one of them.
#[must_use]
pub fn running() -> Option<Vec<u32>> {
    let running = lock(&RUNNING);
    (running.0 == 0).then(|| running.1.clone())
}

/// A process is being started as long as this lives.
pub(super) struct Starting;

impl Starting {
    pub(super) fn begin() -> Self {
        lock(&RUNNING).0 += 1;
        Self
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        lock(&RUNNING).0 -= 1;
    }
}

/// It runs.
pub(super) fn add(pid: u32) {
    lock(&RUNNING).1.push(pid);
}

/// Its status was collected, so its number is no longer ours.
pub(super) fn remove(pid: u32) {
    lock(&RUNNING).1.retain(|known| *known != pid);
}
