//! The vocabulary of MCP: every type of all five revisions, as plain data.

#[allow(dead_code, reason = "its callers, server and client, are being written")]
mod methods;
mod revision;

pub use revision::*;
