//! Logging in, against an authorization server that is written for these tests.

#![cfg(feature = "login")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)]
// The server is shared with the tests of the client, which use more of it.
#![allow(dead_code)]

mod authority;
mod faults;
mod first;
mod flow;
mod renewal;
mod secrets;
#[path = "../client/server.rs"]
mod server;
mod store;
