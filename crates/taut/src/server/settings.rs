//! What a server is told while it is built: plain data, in its final form once it serves.
//!
//! Knows no connection and no handler. Durations are bounded here, so that adding one to a time
//! cannot overflow.

use std::sync::Arc;
use std::time::Duration;

use crate::driver::Options;
use crate::error::Reject;
use crate::mcp::{CacheScope, DIALECT, ReadResourceResult, Revision, SealKey, Ttl};
use crate::rpc::{Config, ErrorObject};

/// How much one connection may follow (SUB-13).
#[derive(Clone, Copy, Debug)]
pub(crate) struct FollowBounds {
    /// Most resources, and most streams.
    pub(crate) count: usize,
    /// Most bytes of their addresses.
    pub(crate) bytes: usize,
}

impl FollowBounds {
    pub(super) fn exceeded(self) -> ErrorObject {
        let Self { count, bytes } = self;
        ErrorObject::internal(format!(
            "too many subscriptions on one connection: this server allows {count} (max_subscriptions) with {bytes} \
             bytes of addresses (max_subscription_bytes)"
        ))
    }
}

/// The start or the end of a call, for [`ServerBuilder::on_call`](super::ServerBuilder::on_call).
///
/// Each call that started finishes once, also when it is cancelled, refused or panics. A call that
/// asks a modern client finishes with `asking`; the client sends the answer with another call, which
/// starts and finishes by itself.
///
/// ```
/// use taut::{Reject, Server, server::CallEvent};
///
/// let server = Server::builder("files", "1.0").on_call(|event| match event {
///     CallEvent::Started { name: "delete", .. } => Err(Reject::new(1, "read-only today")),
///     _ => Ok(()),
/// });
/// # let _ = server;
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum CallEvent<'a> {
    /// A request is about to be handled. An `Err` refuses it; then there is no `Finished`.
    Started {
        /// `tools/call`, `prompts/get`, `resources/read` or `completion/complete`.
        method: &'a str,
        /// The name of the tool or prompt, or the URI of the resource.
        name: &'a str,
        /// The name that the client gives itself.
        client: Option<&'a str>,
    },
    /// It has been handled. An `Err` has no effect.
    Finished {
        /// As in `Started`.
        method: &'a str,
        /// As in `Started`.
        name: &'a str,
        /// How long it took.
        took: Duration,
        /// Whether it failed, as a tool or as a request.
        failed: bool,
        /// Whether it ended with a question to a modern client, which may come back with the answer.
        asking: bool,
    },
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallEnd {
    Done,
    Failed,
    Asking,
}

/// A tool call whose arguments do not fit, for
/// [`ServerBuilder::on_bad_arguments`](super::ServerBuilder::on_bad_arguments).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct BadArguments<'a> {
    /// The tool.
    pub tool: &'a str,
    /// What is wrong, with the field first.
    pub reason: &'a str,
    /// The revision that the client speaks.
    pub revision: Revision,
}

/// Sees every call start and finish.
pub(crate) type OnCall = Arc<dyn Fn(&CallEvent<'_>) -> Result<(), Reject> + Send + Sync>;

/// Gives the error for arguments that do not fit.
pub(crate) type OnBadArguments = Arc<dyn Fn(&BadArguments<'_>) -> Option<Reject> + Send + Sync>;

with_defaults! {
    /// Everything that a server is told beside what it offers.
    #[derive(Clone)]
    pub(crate) struct Settings {
        pub(crate) instructions: Option<String>,
        pub(crate) logging: bool,
        /// Whether what is offered may change while it is served.
        pub(crate) changes: bool,
        // Conservative: a client that keeps a list for too long is worse than one that asks.
        pub(crate) ttl: Duration = Duration::ZERO,
        pub(crate) cache_scope: CacheScope = CacheScope::Private,
        pub(crate) page_size: Option<usize>,
        pub(crate) call_timeout: Option<Duration>,
        pub(crate) on_call: Option<OnCall>,
        pub(crate) on_bad_arguments: Option<OnBadArguments>,
        pub(crate) seal_key: SealKey = seal_key(),
        pub(crate) ask_lifetime: Duration = Duration::from_secs(60 * 60),
        pub(crate) ask_timeout: Duration = Duration::from_secs(10 * 60),
        /// How many bytes of arguments may wait for a thread of a blocking tool.
        // As much as may wait for its turn on a connection.
        pub(crate) blocking_queue: usize = 4 << 20,
        /// How many blocking tools run at once.
        // Enough for files and databases, and far from a system's limit on threads.
        pub(crate) blocking_threads: usize = 64,
        /// How many bytes may wait to be sent before log lines and progress are dropped.
        pub(crate) log_queue: usize = 4 << 20,
        /// How much one connection may subscribe to.
        // As many bytes as may wait in a connection's queue.
        pub(crate) follow: FollowBounds = FollowBounds { count: 1_024, bytes: 4 << 20 },
        pub(crate) config: Config = Config::new(DIALECT, true),
        pub(crate) options: Options,
        pub(crate) signals: bool = true,
    }
}

impl Settings {
    /// What was read, with our hints on keeping it unless its handler gave some.
    pub(crate) fn hinted(&self, contents: ReadResourceResult) -> ReadResourceResult {
        let untold = contents.ttl == Ttl::default() && contents.cache_scope == CacheScope::Private;
        if untold { contents.ttl(self.ttl).cache_scope(self.cache_scope.clone()) } else { contents }
    }
}

/// From the environment, else random. Without either nothing is ever verified, which refuses every
/// state rather than accepting a forged one.
fn seal_key() -> SealKey {
    if let Some(key) = std::env::var_os("TAUT_SEAL_KEY").filter(|key| !key.is_empty()) {
        return SealKey::new(key.into_encoded_bytes());
    }
    let mut key = [0; 32];
    match getrandom::fill(&mut key) {
        Ok(()) => SealKey::new(key),
        Err(_) => SealKey::new([]),
    }
}
