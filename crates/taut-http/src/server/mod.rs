//! Serving over HTTP: any [`MessageService`](taut::transport::MessageService), on a port of its own or
//! inside another program's.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use taut_http::server::{Options, serve};
//!
//! # let calc = taut::Server::builder("calc", "1.0").build()?;
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
//! serve(listener, Arc::new(calc), Options::new()).await?;
//! # Ok(()) }
//! ```
//!
//! [`serve`](serve()) also understands JSON lines and framed JSON-RPC on the same port. [`HttpService`]
//! is a `tower` service, for frameworks such as axum. The endpoint serves revisions 2025-03-26 to
//! 2025-11-25 with sessions, and 2026-07-28 without.
//!
//! | file | what it knows |
//! |---|---|
//! | `options`, `auth`, `guard` | limits, who asks, from where |
//! | `service`, `posted` | the order of the checks, and which era serves a request |
//! | `modern`, `learned` | requests that stand for themselves, and which parameters they repeat |
//! | `legacy`, `registry`, `session`, `stream`, `turn` | sessions, their streams, resumption |
//! | `silence` | signs of life on streams of all kinds |
//! | `plain` | services that speak no MCP |
//! | `listen`, `io`, `tls` | connections |

mod auth;
mod body;
mod guard;
mod io;
mod learned;
mod legacy;
mod listen;
mod modern;
mod options;
mod plain;
mod posted;
mod refusal;
mod registry;
mod service;
mod session;
mod silence;
mod stream;
#[cfg(feature = "tls")]
mod tls;
mod turn;

pub use auth::{AuthError, ProtectedResource, bearer};
pub use body::Body;
#[cfg(unix)]
pub use listen::bind_unix;
pub use listen::{Listener, ServeError, serve, serve_until};
pub use options::Options;
pub use service::HttpService;
#[cfg(feature = "tls")]
pub use tls::{Certificate, CertificateError};
