//! Being a host: servers that ask, servers whose things change, servers that die.
//!
//! The demo server in memory shows that it works in each revision; fake servers, whose every line is
//! seen, show what is on the wire; processes of this very binary are killed. Linux and Windows only:
//! elsewhere nobody tells what is left of a process.

#![cfg(any(target_os = "linux", windows))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that goes wrong should say so"
)]

#[cfg(feature = "validate")]
mod checking;
mod demo;
#[path = "../../examples/host.rs"]
mod example;
mod fake;
mod keeping;
mod listening;
mod lives;
mod questions;
mod roles;
mod rounds;
#[path = "../rude/system.rs"]
mod system;
// About Unix itself: a terminal.
#[cfg(unix)]
mod terminal;

use std::future::IntoFuture;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use system::{KILLED, alive, kill};

/// Everything is waited for, but never for longer than this.
const DEADLINE: Duration = Duration::from_secs(60);

/// What the other processes do.
#[test]
#[ignore = "run by the other tests, as the server"]
fn role() {
    roles::play();
}

async fn in_time<F: IntoFuture>(future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future).await.expect("in time")
}

/// Waits until something is true, while the runtime goes on with its work.
async fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_true() {
        assert!(start.elapsed() < DEADLINE, "never came true: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Something that is written from handlers and read by the test.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn push(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}
