//! The loop, from outside: plain JSON-RPC over real processes and over pipes in memory.
//!
//! Knows the public API and the wire, nothing inside. What only a process shows (signals, descriptors,
//! memory) is shown with one: the `jsonrpc` example, or this binary again in a role.

// Clippy's exception for tests covers `#[test]` functions, not what they call.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod batches;
mod bounds;
mod calls;
mod cancelling;
mod closing;
mod failing;
mod memory;
mod sharing;

// About Unix itself: `/proc`, the width of pipes, signals.
#[cfg(target_os = "linux")]
mod process;
// About Unix itself: the same.
#[cfg(target_os = "linux")]
mod processes;

use std::time::Duration;

/// How long anything that must happen may take on a busy machine. A wait, never a measurement.
const PATIENCE: Duration = Duration::from_secs(30);
