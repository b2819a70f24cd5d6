//! Streamable HTTP for [`taut`]: the Model Context Protocol over HTTP.
//!
//! `client` turns a URL into a [`taut::Client`].

#[cfg(feature = "client")]
pub mod client;
mod headers;
