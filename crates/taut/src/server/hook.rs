//! A look at every call from outside its handler: timing, audit, veto.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Reject;
use crate::mcp::Method;

/// The beginning or the end of a call.
///
/// ```
/// use taut::{Moment, Reject, Server};
///
/// let server = Server::new("files", "1.0").on_call(|moment| match moment {
///     Moment::Began { name: "delete", .. } => Err(Reject::new(1, "read-only today")),
///     _ => Ok(()),
/// });
/// # let _ = server;
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Moment<'a> {
    /// A request is about to be handled. An `Err` refuses it.
    Began {
        /// `tools/call`, `prompts/get`, `resources/read` or `completion/complete`.
        method: &'a str,
        /// The tool's or prompt's name, or the resource's URI.
        name: &'a str,
        /// What the client calls itself.
        client: Option<&'a str>,
    },
    /// It has been handled. An `Err` changes nothing any more.
    Ended {
        /// As at the beginning.
        method: &'a str,
        /// As at the beginning.
        name: &'a str,
        /// How long it took.
        took: Duration,
        /// Whether it failed, as a tool or as a request.
        failed: bool,
    },
}

impl<'a> Moment<'a> {
    pub(super) fn ended(method: Method, name: &'a str, took: Duration, failed: bool) -> Self {
        Self::Ended { method: method.as_str(), name, took, failed }
    }
}

/// What [`Server::on_call`](super::Server::on_call) was given.
pub(super) type Hook = Arc<dyn Fn(&Moment<'_>) -> Result<(), Reject> + Send + Sync>;
