//! taut: the Model Context Protocol over stdio.

pub mod rpc;
pub mod wire;

mod mcp;

#[cfg(feature = "client")]
mod client;
#[cfg(feature = "tokio")]
mod driver;
#[cfg(feature = "tokio")]
mod ending;
#[cfg(feature = "tokio")]
mod error;
#[cfg(feature = "tokio")]
pub mod service;
#[cfg(feature = "tokio")]
mod stdio;
#[cfg(feature = "tokio")]
mod stream;

#[cfg(feature = "client")]
pub use client::{Command, Ended, Exit, Grace, Hint, Rung, SpawnError};
#[cfg(feature = "tokio")]
pub use ending::Ending;
#[cfg(feature = "tokio")]
pub use error::{Error, Reject, Result};
#[cfg(feature = "tokio")]
pub use stdio::{ClaimError, claim_stdio};

pub use mcp::{Era, Revision, UnknownRevision};
