//! A look at every call from outside its handler: timing, audit, veto.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Reject;
use crate::mcp::Method;

/// The beginning or the end of a call. Each that began ends once, also when it was cancelled.
///
/// A call that asks a modern client ends with the question, `asking`, and not `failed`; what the
/// client sends with the answer is another call, which begins and ends by itself.
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
        /// Whether it ended with a question to a modern client, who may come back with the answer.
        asking: bool,
    },
}

/// What a call came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    Failed,
    Asking,
}

impl<'a> Moment<'a> {
    pub(super) fn ended(method: Method, name: &'a str, took: Duration, outcome: Outcome) -> Self {
        let (failed, asking) = (outcome == Outcome::Failed, outcome == Outcome::Asking);
        Self::Ended { method: method.as_str(), name, took, failed, asking }
    }
}

/// What [`Server::on_call`](super::Server::on_call) was given.
pub(super) type Hook = Arc<dyn Fn(&Moment<'_>) -> Result<(), Reject> + Send + Sync>;
