//! The Model Context Protocol over stdio, both ends, with plain JSON-RPC underneath.
//!
//! taut carries messages between a host and a server, in all five revisions of the protocol. What goes
//! wrong on one side does not harm the other: bad input, floods, hangs and crashes end a message, or at
//! worst the connection, with a reason that a person can read.
//!
//! | beside it | for |
//! |---|---|
//! | features | `server` and `client` (both on), `validate`, `tokio`: [below](#features) |
//! | [`taut-http`](https://docs.rs/taut-http) | the same servers and clients over HTTP, with logins |
//! | [`taut-nats`](https://docs.rs/taut-nats) | servers on many machines |
//! | [`taut-check`](https://docs.rs/taut-check) | tests of a server or a client against the specification |
//! | [`taut-trace`](https://docs.rs/taut-trace) | captures of sessions |
//! | [`taut-cli`](https://docs.rs/taut-cli) | the command `taut`: try, check and debug any server |
//! | guides | `docs/guides` of the repository: `first-server`, `host`, `asking`, `testing` |
//!
//! # A server
//!
//! ```no_run
//! # #[cfg(feature = "server")]
//! # mod calc {
//! use taut::{JsonSchema, Server};
//!
//! /// Add two numbers.
//! #[derive(serde::Deserialize, JsonSchema)]
//! struct Add { a: f64, b: f64 }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> taut::Result<()> {
//!     Server::builder("calc", "1.0")
//!         .tool("add", async |Add { a, b }, _call| a + b)
//!         .serve_stdio()
//!         .await
//! }
//! # }
//! ```
//!
//! [`Server::builder`] describes what the server offers: tools, resources, prompts, completion.
//! [`Call`] is a call as its handler sees it: who asks, progress, logs, cancellation, questions to the
//! user. [`IntoReply`] lists what a tool may return.
//!
//! # A client
//!
//! ```no_run
//! # #[cfg(feature = "client")]
//! # async fn example() -> taut::Result<()> {
//! # use serde_json::json;
//! # use std::time::Duration;
//! let calc = taut::Client::spawn(taut::Command::new("calc")).await?;
//! for tool in calc.tools().await? {
//!     println!("{}", tool.name);
//! }
//! let sum = calc.call("add", json!({ "a": 2, "b": 3 })).timeout(Duration::from_secs(5)).await?;
//! println!("{}", sum.text()?);
//! calc.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Client`] starts a server, finds out which revision it speaks, calls it and ends it, and leaves
//! no process behind. `taut::memory` joins the two without a process, for tests. `taut::Proxy` forwards any client
//! to any server.
//!
//! # Layers
//!
//! ```text
//!    wire  ←  rpc  ←  mcp  ←  server, client  ←  taut-cli
//!    pure     pure     pure      tokio
//!      ↖       ↖                    │
//!       ╰──── driver  ◂─────────────╯
//! ```
//!
//! `a ← b` means that b uses a, and may use what stands left of a; nothing uses what stands to its right.
//! [`wire`] and [`rpc`] are public and pure: bytes in, frames out; messages in, events out; time is an
//! argument. [`service`] is plain JSON-RPC on the same loop, for programs that need no MCP. What MCP's
//! messages are made of is in [`types`]. The same types serve all revisions: when they are sent, members that
//! the other side's [`Revision`] does not know are left out or rewritten.
//!
//! The root has the names that programs type every day. The rest is with its part: `taut::server`, `taut::client`,
//! `taut::process`, `taut::proxy`, `taut::error` and, with the feature `validate`, `taut::schema`.
//!
//! # Features
//!
//! `server` and `client`, both on. `validate`, off, lets a client check what tools answer against the
//! schemas that they publish (`ClientBuilder::check_answers`). With `tokio` alone there are the loop, stdio,
//! [`service`] and `taut::transport`, the interface for transports of other crates; with no feature at all the
//! pure core: [`wire`], [`rpc`] and [`types`].

#[macro_use]
mod macros;

pub mod rpc;
pub mod wire;

mod json;
mod mcp;
pub mod secrets;

#[cfg(feature = "tokio")]
mod bell;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "tokio")]
#[cfg_attr(
    not(all(feature = "server", feature = "client")),
    allow(dead_code, unused_imports, reason = "each feature uses its own part of the loop")
)]
mod driver;
#[cfg(feature = "tokio")]
mod ending;
#[cfg(feature = "tokio")]
pub mod error;
mod lock;
#[cfg(all(feature = "server", feature = "client"))]
mod memory;
#[cfg(feature = "client")]
pub mod process;
#[cfg(all(feature = "server", feature = "client"))]
pub mod proxy;
#[cfg(feature = "validate")]
pub mod schema;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "tokio")]
pub mod service;
#[cfg(feature = "tokio")]
mod stdio;
#[cfg(feature = "tokio")]
mod stream;
#[cfg(feature = "tokio")]
mod threaded;
#[cfg(feature = "tokio")]
pub mod transport;
#[cfg(all(
    feature = "tokio",
    any(
        all(any(target_os = "linux", target_os = "android"), not(taut_portable)),
        all(unix, feature = "client")
    )
))]
mod width;
#[cfg(all(windows, feature = "tokio"))]
mod win32;

#[cfg(feature = "client")]
#[doc(inline)]
pub use client::{Answer, Change, Client, ClientBuilder, Request, RestartPolicy, SupervisedClient};
#[cfg(feature = "tokio")]
pub use driver::Steps;
#[cfg(feature = "tokio")]
pub use ending::Ending;
#[cfg(feature = "client")]
#[doc(inline)]
pub use error::ConnectError;
#[cfg(feature = "tokio")]
#[doc(inline)]
pub use error::{Error, Reject, Result};
#[cfg(all(feature = "server", feature = "client"))]
pub use memory::{memory, memory_with};
#[cfg(feature = "client")]
#[doc(inline)]
pub use process::Command;
#[cfg(all(feature = "server", feature = "client"))]
#[doc(inline)]
pub use proxy::Proxy;
#[cfg(feature = "server")]
pub use schemars::{self, JsonSchema};
#[cfg(feature = "server")]
#[doc(inline)]
pub use server::{
    AskError, BlockingCall, Call, Changes, IntoReply, Json, NoArgs, Progress, Server,
    ServerBuilder, UserReply,
};
#[cfg(feature = "tokio")]
pub use stdio::claim_stdio;

// The words of the protocol that servers and clients use every day; all of them are in `types`.
pub use mcp::{
    CallToolResult, Content, Level, Meta, Prompt, Resource, ResourceTemplate, Revision, Role, Root,
    Tool,
};

/// The vocabulary of the protocol: every message and what it is made of.
///
/// The types that most programs use, such as [`Tool`], are in the root of the crate as well.
pub mod types {
    pub use crate::mcp::*;
}

/// What the README and the guides show is compiled, and run where it can be.
#[cfg(all(doctest, feature = "server", feature = "client"))]
mod documents {
    #[doc = include_str!("../../../README.md")]
    mod readme {}
    #[doc = include_str!("../README.md")]
    mod crate_readme {}
    #[doc = include_str!("../../../docs/guides/first-server.md")]
    mod first_server {}
    #[doc = include_str!("../../../docs/guides/host.md")]
    mod host {}
    #[doc = include_str!("../../../docs/guides/testing.md")]
    mod testing {}
    #[doc = include_str!("../../../docs/guides/asking.md")]
    mod asking {}
}
