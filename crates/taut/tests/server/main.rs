//! The server from outside: what a host sees on the pipe, and what a handler can do about it.
//!
//! Transcripts (`../transcripts/*.txt`) hold what can be said line by line; the other files hold
//! what needs a clock, a flood or a look from within. The servers under test are in `fixture`.

// Clippy's exception for tests covers `#[test]` functions, not what they call.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod building;
mod ending;
mod fixture;
mod handlers;
mod lists;
mod one_line;
mod pattern;
// About Unix itself: its sockets are stdin and stdout.
#[cfg(unix)]
mod process;
mod running;
mod schemas;
mod shapes;
mod transcript;
mod transcripts;
// About Unix itself: its sockets are stderr, and a signal wakes who waits.
#[cfg(target_os = "linux")]
mod unread;
mod wire;
