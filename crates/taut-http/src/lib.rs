//! MCP over Streamable HTTP for [`taut`], both sides.
//!
//! Knows HTTP and the seam for transports ([`taut::transport`]); must not know stdio or a tool. What
//! depends on a revision or a method it asks `taut` for. [`server`] serves whatever answers messages;
//! [`client`] turns a URL into a [`taut::Client`].
//!
//! | feature | what it adds |
//! |---|---|
//! | `server` (on) | any service of [`taut`] over HTTP, also as a `tower` service inside axum |
//! | `client` (on) | a URL becomes a [`taut::Client`] |
//! | `tls` (on) | https, with the system's certificates or a given file |
//! | `login` | the client logs in where a server asks for it (OAuth 2.1) |
//!
//! Servers and clients are written with [`taut`](https://docs.rs/taut); the command `taut`
//! ([`taut-cli`](https://docs.rs/taut-cli)) tries and debugs them; [`taut-nats`](https://docs.rs/taut-nats) is for many
//! machines. Guides in the repository: `docs/http.md`, `docs/guides/axum.md`, `docs/guides/team.md`.

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
