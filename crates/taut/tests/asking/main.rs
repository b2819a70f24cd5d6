//! Asking back and telling of changes, from outside: what a host sees, whichever revision it speaks.
//!
//! The pipe and the transcripts' player are those of the `server` tests; the servers are in
//! `fixture`, and `host` is a host that answers questions in the way of its era.

// Clippy's exception for tests covers `#[test]` functions, not what they call.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod capabilities;
mod changes;
mod coffee;
mod fixture;
mod host;
mod legacy;
mod order;
mod rounds;
mod states;
mod streams;
mod tasks;
mod transcripts;

#[path = "../server/pattern.rs"]
mod pattern;
#[allow(dead_code, reason = "the server tests use the rest")]
#[path = "../server/transcript.rs"]
mod transcript;
#[allow(dead_code, reason = "the server tests use the rest")]
#[path = "../server/wire.rs"]
mod wire;
