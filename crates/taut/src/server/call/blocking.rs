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

/// Methods that do what the same method of [`Call`] does.
macro_rules! as_call {
    ($($(#[$attribute:meta])* $name:ident($($argument:ident: $T:ty),*) $(-> $R:ty)?;)*) => {
        impl<S> BlockingCall<S> {$(
            #[doc = concat!("As [`Call::", stringify!($name), "`].")]
            $(#[$attribute])*
            pub fn $name(&self $(, $argument: $T)*) $(-> $R)? {
                self.0.$name($($argument),*)
            }
        )*}
    };
}

as_call! {
    #[must_use] state() -> &S;
    #[must_use] id() -> &Id;
    #[must_use] revision() -> Revision;
    #[must_use] client() -> ClientInfo<'_>;
    #[must_use] meta() -> Option<Meta>;
    #[must_use] trace() -> &Trace;
    #[must_use] deadline() -> Option<Instant>;
    /// Nothing stops a thread from outside: look here between two pieces of work.
    #[must_use] is_cancelled() -> bool;
    progress(progress: impl Into<Progress>);
    log(level: Level, data: impl Serialize);
    log_from(logger: &str, level: Level, data: impl Serialize);
}
