//! The client's side of HTTP, against small servers that are written for one test each.

#![cfg(feature = "client")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)]

mod faults;
mod legacy;
mod modern;
#[cfg(feature = "tls")]
mod network;
mod notes;
mod opening;
mod seeds;
mod server;
