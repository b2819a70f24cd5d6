//! A call as a handler that blocks sees it: all of [`Call`] that does not wait.
//!
//! Asking is left out on purpose. In the modern era a handler that asks ends and runs again from the
//! top, which a thread in the middle of its work cannot do.

use std::fmt;
use std::time::Instant;

use serde::Serialize;

use super::{Call, ClientInfo, Progress};
use crate::mcp::{Level, Meta, Revision, Trace};
use crate::rpc::Id;

/// A call being handled on a thread of its own. Clones are the same call.
///
/// ```compile_fail,E0599
/// # use taut::{BlockingCall, JsonSchema};
/// # #[derive(serde::Deserialize, JsonSchema)]
/// # struct Name { name: String }
/// async fn cannot_ask(call: BlockingCall) {
///     let _ = call.ask::<Name>("Who are you?").await;
/// }
/// ```
pub struct BlockingCall<S = ()>(pub(crate) Call<S>);

impl<S> Clone for BlockingCall<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S> fmt::Debug for BlockingCall<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingCall").field("id", self.0.id()).finish_non_exhaustive()
    }
}

impl<S> BlockingCall<S> {
    /// As [`Call::state`].
    #[must_use]
    pub fn state(&self) -> &S {
        self.0.state()
    }

    /// As [`Call::id`].
    #[must_use]
    pub fn id(&self) -> &Id {
        self.0.id()
    }

    /// As [`Call::revision`].
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.0.revision()
    }

    /// As [`Call::client`].
    #[must_use]
    pub fn client(&self) -> ClientInfo<'_> {
        self.0.client()
    }

    /// As [`Call::meta`].
    #[must_use]
    pub fn meta(&self) -> Option<Meta> {
        self.0.meta()
    }

    /// As [`Call::trace`].
    #[must_use]
    pub fn trace(&self) -> &Trace {
        self.0.trace()
    }

    /// As [`Call::deadline`].
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.0.deadline()
    }

    /// Whether the client no longer wants the answer. Nothing stops a thread from outside: look
    /// here between two pieces of work.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// As [`Call::progress`].
    pub fn progress(&self, progress: impl Into<Progress>) {
        self.0.progress(progress);
    }

    /// As [`Call::log`].
    pub fn log(&self, level: Level, data: impl Serialize) {
        self.0.log(level, data);
    }

    /// As [`Call::log_from`].
    pub fn log_from(&self, logger: &str, level: Level, data: impl Serialize) {
        self.0.log_from(logger, level, data);
    }
}
