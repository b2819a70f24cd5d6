//! taut: the Model Context Protocol over stdio.

pub mod rpc;
pub mod wire;

mod mcp;

#[cfg(feature = "client")]
mod client;
#[cfg(feature = "tokio")]
mod stdio;
#[cfg(feature = "tokio")]
mod stream;

#[cfg(feature = "tokio")]
pub use stdio::{ClaimError, claim_stdio};
