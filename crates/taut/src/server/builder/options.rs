//! How a server behaves: limits, times, hooks. What it offers is in `mod.rs`.

use std::sync::Arc;
use std::time::Duration;

use super::ServerBuilder;
use crate::error::Reject;
use crate::mcp::{CacheScope, SealKey};
use crate::rpc::Config;
use crate::server::settings::{BadArguments, CallEvent};

impl<S: Send + Sync + 'static> ServerBuilder<S> {
    /// How to use the server, for the model to read.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.settings.instructions = Some(text.into());
        self
    }

    /// Lets handlers write to the client's log with [`Call::log`](crate::Call::log).
    pub fn logging(mut self) -> Self {
        self.settings.logging = true;
        self
    }

    /// Says that what the server offers may change while it serves: see
    /// [`Server::changes`](crate::Server::changes). Clients are told so when they connect.
    pub fn changing(mut self) -> Self {
        self.settings.changes = true;
        self
    }

    /// The key that the state of a question is signed with, so that another process of this server
    /// can take the answer. Cursors of paged lists are signed with it as well. `TAUT_SEAL_KEY` unless set; else one
    /// that ends with the process.
    pub fn seal_key(mut self, key: impl Into<Vec<u8>>) -> Self {
        let key = key.into();
        self.mistake(key.is_empty(), || "seal_key() was given an empty key".to_owned());
        self.settings.seal_key = SealKey::new(key);
        self
    }

    /// How long a modern client may take to bring answers. An hour.
    pub fn ask_state_lifetime(mut self, lifetime: Duration) -> Self {
        self.settings.ask_lifetime = lifetime;
        self
    }

    /// How long a legacy client may take to answer a question. Ten minutes: it waits for a person.
    pub fn ask_timeout(mut self, limit: Duration) -> Self {
        self.settings.ask_timeout = limit;
        self
    }

    /// How long clients may keep lists and resources, and who may be served them. By default they may
    /// not be kept, and not be given to others (CAC-01, CAC-07). A [`ReadResourceResult`](crate::types::ReadResourceResult)
    /// with hints of its own keeps them.
    pub fn cache(mut self, ttl: Duration, scope: CacheScope) -> Self {
        (self.settings.ttl, self.settings.cache_scope) = (ttl, scope);
        self
    }

    /// How many items stand on a page of a list. All of them, unless set: several hosts read only
    /// the first page.
    pub fn page_size(mut self, items: usize) -> Self {
        self.settings.page_size = Some(items.max(1));
        self
    }

    /// How long a call may take. There is no limit unless this is set.
    pub fn call_timeout(mut self, limit: Duration) -> Self {
        self.settings.call_timeout = Some(limit);
        self
    }

    /// Sees every call begin and end; an `Err` at the beginning refuses it.
    pub fn on_call(
        mut self,
        on_call: impl Fn(&CallEvent<'_>) -> Result<(), Reject> + Send + Sync + 'static,
    ) -> Self {
        self.settings.on_call = Some(Arc::new(on_call));
        self
    }

    /// Answers arguments that do not fit with an error of the server's own. `None` leaves them to
    /// the model, as an `isError` result that names the field.
    pub fn on_bad_arguments(
        mut self,
        map: impl Fn(&BadArguments<'_>) -> Option<Reject> + Send + Sync + 'static,
    ) -> Self {
        self.settings.on_bad_arguments = Some(Arc::new(map));
        self
    }

    /// How many blocking tools run at once. 64 unless set.
    pub fn blocking_threads(mut self, threads: usize) -> Self {
        self.settings.blocking_threads = threads;
        self
    }

    /// How many bytes of arguments may wait for a thread of a blocking tool. 4 MiB unless set. What is
    /// beyond is refused as busy.
    pub fn blocking_queue(mut self, bytes: usize) -> Self {
        self.settings.blocking_queue = bytes;
        self
    }

    /// How many bytes may wait to be sent before log lines and progress are dropped. 4 MiB unless set.
    ///
    /// A handler that logs faster than the client reads would else fill the memory. Lines that were
    /// dropped are counted, and the next line that is sent comes after one that says how many.
    pub fn log_queue(mut self, bytes: usize) -> Self {
        self.settings.log_queue = bytes;
        self
    }

    /// Leaves SIGINT and SIGTERM to the program.
    pub fn leave_signals(mut self) -> Self {
        self.settings.signals = false;
        self
    }

    /// How many resources, and how many streams of changes, one connection may follow. 1,024 of each; a client that asks
    /// for more gets an error that names this bound.
    pub fn max_subscriptions(mut self, count: usize) -> Self {
        self.settings.follow.count = count;
        self
    }

    /// How many bytes the addresses that one connection follows may have, with 64 more for each of them. 4 MiB.
    pub fn max_subscription_bytes(mut self, bytes: usize) -> Self {
        self.settings.follow.bytes = bytes;
        self
    }

    /// How long accepted requests may take once the input has ended. 30 s.
    ///
    /// Hosts usually close stdin, wait 2 s and then send a signal: with less than that here, handlers
    /// are dropped in order before. On stdio a handler that blocks the loop's thread does not outlive
    /// this by more than half a second: the process is ended.
    pub fn drain(mut self, limit: Duration) -> Self {
        self.settings.options.drain = limit;
        self
    }

    /// How long a cancelled call may go on before its future is dropped. 1 s.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.settings.options.grace = grace;
        self
    }

    /// Bounds on messages, queues and running requests.
    pub fn limits(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.settings.config);
        self
    }
}
