//! The server side of HTTP, from outside: requests in, responses out; and raw bytes on real sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod auth;
mod bytes;
mod legacy;
mod limits;
mod modern;
mod mounted;
mod plain;
mod port;
mod resume;
mod sessions;
mod support;
#[cfg(feature = "tls")]
mod tls;
