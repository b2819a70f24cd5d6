//! How a server behaves: limits, times, hooks. What it offers is in `mod.rs`.

use std::sync::Arc;
use std::time::Duration;

use super::ServerBuilder;
use crate::error::Reject;
use crate::mcp::{CacheScope, Implementation, SealKey};
use crate::rpc::Config;
use crate::server::settings::{BadArguments, CallEvent};

setters! { ServerBuilder<S>, [S: Send + Sync + 'static];
    /// Describes the server itself: a title, a description, icons, a website.
    info(info: Implementation) => info;

    /// How to use the server, for the model to read.
    instructions(text: impl Into<String>) => settings.instructions = Some(text.into());

    /// Lets handlers write to the client's log with [`Call::log`](crate::Call::log).
    logging() => settings.logging = true;

    /// Says that what the server offers may change while it serves: see
    /// [`Server::changes`](crate::Server::changes). Clients are told so when they connect.
    changing() => settings.changes = true;

    /// How long a modern client may take to bring answers. An hour.
    ask_state_lifetime(lifetime: Duration) => settings.ask_lifetime;

    /// How long a legacy client may take to answer a question. Ten minutes: it waits for a person.
    ask_timeout(limit: Duration) => settings.ask_timeout;

    /// How many items stand on a page of a list. All of them, unless set: several hosts read only
    /// the first page.
    page_size(items: usize) => settings.page_size = Some(items.max(1));

    /// How long a call may take. There is no limit unless this is set.
    call_timeout(limit: Duration) => settings.call_timeout = Some(limit);

    /// Sees every call begin and end; an `Err` at the beginning refuses it.
    on_call(on_call: impl Fn(&CallEvent<'_>) -> Result<(), Reject> + Send + Sync + 'static)
        => settings.on_call = Some(Arc::new(on_call));

    /// Answers arguments that do not fit with an error of the server's own. `None` leaves them to
    /// the model, as an `isError` result that names the field.
    on_bad_arguments(map: impl Fn(&BadArguments<'_>) -> Option<Reject> + Send + Sync + 'static)
        => settings.on_bad_arguments = Some(Arc::new(map));

    /// How many blocking tools run at once. 64 unless set.
    blocking_threads(threads: usize) => settings.blocking_threads;

    /// How many bytes of arguments may wait for a thread of a blocking tool. 4 MiB unless set. What is
    /// beyond is refused as busy.
    blocking_queue(bytes: usize) => settings.blocking_queue;

    /// How many bytes may wait to be sent before log lines and progress are dropped. 4 MiB unless set.
    ///
    /// A handler that logs faster than the client reads would else fill the memory. Lines that were
    /// dropped are counted, and the next line that is sent comes after one that says how many.
    log_queue(bytes: usize) => settings.log_queue;

    /// Leaves SIGINT and SIGTERM to the program.
    leave_signals() => settings.signals = false;

    /// How many resources, and how many streams of changes, one connection may follow. 1,024 of each; a client that asks
    /// for more gets an error that names this bound.
    max_subscriptions(count: usize) => settings.follow.count;

    /// How many bytes the addresses that one connection follows may have, with 64 more for each of them. 4 MiB.
    max_subscription_bytes(bytes: usize) => settings.follow.bytes;

    /// How long accepted requests may take once the input has ended. 30 s.
    ///
    /// Hosts usually close stdin, wait 2 s and then send a signal: with less than that here, handlers
    /// are dropped in order before. On stdio a handler that blocks the loop's thread does not outlive
    /// this by more than half a second: the process is ended.
    drain(limit: Duration) => settings.options.drain;

    /// How long a cancelled call may go on before its future is dropped. 1 s.
    cancel_grace(grace: Duration) => settings.options.grace;
}

impl<S: Send + Sync + 'static> ServerBuilder<S> {
    /// The key that the state of a question is signed with, so that another process of this server
    /// can take the answer. `TAUT_SEAL_KEY` unless set; else one that ends with the process.
    pub fn seal_key(mut self, key: impl Into<Vec<u8>>) -> Self {
        let key = key.into();
        self.mistake(key.is_empty(), || "seal_key() was given an empty key".to_owned());
        self.settings.seal_key = SealKey::new(key);
        self
    }

    /// How long clients may keep lists and resources, and who may be served them. By default they may
    /// not be kept, and not be given to others (CAC-01, CAC-07). A [`ReadResourceResult`](crate::types::ReadResourceResult)
    /// with hints of its own keeps them.
    pub fn cache(mut self, ttl: Duration, scope: CacheScope) -> Self {
        (self.settings.ttl, self.settings.cache_scope) = (ttl, scope);
        self
    }

    /// Bounds on messages, queues and running requests.
    pub fn limits(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.settings.config);
        self
    }
}
