//! MCP over Streamable HTTP for [`taut`], both sides.
//!
//! Knows HTTP and the seam for transports ([`taut::transport`]); must not know stdio or a tool. What
//! depends on a revision or a method it asks `taut` for. [`server`] serves whatever answers messages;
//! [`client`] turns a URL into a [`taut::Client`].

#[cfg(feature = "client")]
pub mod client;
pub mod headers;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
mod sse;

/// What the pages show is compiled.
#[cfg(all(doctest, feature = "server", feature = "client"))]
mod documents {
    #[doc = include_str!("../README.md")]
    mod readme {}
    #[doc = include_str!("../../../docs/http.md")]
    mod http {}
    #[doc = include_str!("../../../docs/guides/axum.md")]
    mod axum {}
}
