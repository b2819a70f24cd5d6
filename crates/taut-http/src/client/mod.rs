//! The client's side of HTTP: a URL becomes a [`taut::Client`].
//!
//! ```no_run
//! # async fn run() -> taut::Result<()> {
//! use taut_http::client::{HttpOptions, connect};
//!
//! let server = connect("https://example.com/mcp", HttpOptions::new().bearer("token")).await?;
//! for tool in server.tools().await? {
//!     println!("{}", tool.name);
//! }
//! server.close().await?;
//! # Ok(()) }
//! ```
//!
//! It speaks Streamable HTTP of the revisions 2025-03-26 to 2026-07-28, and the older HTTP+SSE where a
//! server knows nothing else. [`HttpTransport`] is the same with more to set: it carries the messages of any
//! [`MessagePipe`](taut::transport::MessagePipe).

mod annotations;
mod carry;
mod challenge;
mod connector;
mod error;
mod http;
#[cfg(feature = "login")]
pub mod login;
mod message;
mod options;
mod sse;
mod transport;
mod url;

pub use challenge::Challenge;
pub use error::HttpError;
pub use options::{Authorize, AuthorizeFuture, HttpOptions, Secret, TokenRefusal};
pub use sse::{SseEvent, SseReader, SseTooLong};
pub use transport::{HttpTransport, connect};
