//! The verbs that say how a server behaves, beside what it offers.

use std::sync::Arc;
use std::time::Duration;

use super::Server;
use super::call::Call;
use super::changes::Changes;
use super::hook::Moment;
use crate::error::Reject;
use crate::mcp::{CacheScope, SealKey};
use crate::rpc::Config;

impl<S: Send + Sync + 'static> Server<S> {
    /// How to use the server, for the model to read.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        self.change(|shared| shared.settings.instructions = Some(text));
        self
    }

    /// Lets handlers write to the client's log with [`Call::log`].
    #[must_use]
    pub fn logging(mut self) -> Self {
        self.change(|shared| shared.settings.logging = true);
        self
    }

    /// Says that what the server offers may change while it serves: see [`Changes`].
    ///
    /// Clients are told so when they connect, so this belongs to the description.
    #[must_use]
    pub fn changing(mut self) -> Self {
        self.change(|shared| shared.settings.changes = true);
        self
    }

    /// A handle for changing what is offered. Needs [`changing`](Self::changing), or clients are
    /// not told.
    #[must_use]
    pub fn changes(&self) -> Changes<S> {
        Changes { shared: self.shared.clone() }
    }

    /// The key that the state of a question is signed with, so that another process of this server
    /// can take the answer. `TAUT_SEAL_KEY` unless set; else one that ends with the process.
    #[must_use]
    pub fn seal_key(mut self, key: impl Into<Vec<u8>>) -> Self {
        let key = key.into();
        self.mistake(key.is_empty(), || "seal_key() was given an empty key".to_owned());
        let key = SealKey::new(key);
        self.change(|shared| shared.settings.seal_key = key);
        self
    }

    /// How long a modern client may take to bring answers. An hour.
    #[must_use]
    pub fn ask_state_lifetime(mut self, lifetime: Duration) -> Self {
        self.change(|shared| shared.settings.ask_lifetime = lifetime);
        self
    }

    /// How long a legacy client may take to answer a question. Ten minutes: it waits for a person.
    #[must_use]
    pub fn ask_timeout(mut self, limit: Duration) -> Self {
        self.change(|shared| shared.settings.ask_timeout = limit);
        self
    }

    /// How long clients may keep lists and resources, and who may be served them. Not at all and
    /// nobody else, unless set (CAC-01, CAC-07). A [`ReadResourceResult`](crate::ReadResourceResult)
    /// with hints of its own keeps them.
    #[must_use]
    pub fn cache(mut self, ttl: Duration, scope: CacheScope) -> Self {
        self.change(|shared| {
            (shared.settings.ttl, shared.settings.cache_scope) = (ttl, scope);
        });
        self
    }

    /// How many items stand on a page of a list. All of them, unless set: several hosts read only
    /// the first page.
    #[must_use]
    pub fn page_size(mut self, items: usize) -> Self {
        self.change(|shared| shared.settings.page_size = Some(items.max(1)));
        self
    }

    /// How long a call may take. As long as it likes, unless set.
    #[must_use]
    pub fn call_timeout(mut self, limit: Duration) -> Self {
        self.change(|shared| shared.settings.call_timeout = Some(limit));
        self
    }

    /// Sees every call begin and end; an `Err` at the beginning refuses it.
    #[must_use]
    pub fn on_call(
        mut self,
        hook: impl Fn(&Moment<'_>) -> Result<(), Reject> + Send + Sync + 'static,
    ) -> Self {
        self.change(|shared| shared.settings.hook = Some(Arc::new(hook)));
        self
    }

    /// Answers arguments that do not fit with an error of the server's own. `None` leaves them to
    /// the model, as an `isError` result that names the field.
    #[must_use]
    pub fn on_bad_arguments(
        mut self,
        map: impl Fn(&Call<S>, &str) -> Option<Reject> + Send + Sync + 'static,
    ) -> Self {
        self.change(|shared| shared.settings.bad_arguments = Some(Arc::new(map)));
        self
    }

    /// Leaves SIGINT and SIGTERM to the program.
    #[must_use]
    pub fn leave_signals(mut self) -> Self {
        self.signals = false;
        self
    }

    /// How long accepted requests may take once the input has ended. 30 s.
    #[must_use]
    pub fn drain(mut self, limit: Duration) -> Self {
        self.options.drain = limit;
        self
    }

    /// How long a cancelled call may go on before its future is dropped. 1 s.
    #[must_use]
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.options.grace = grace;
        self
    }

    /// Bounds on messages, queues and running requests.
    #[must_use]
    pub fn limits(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }
}
