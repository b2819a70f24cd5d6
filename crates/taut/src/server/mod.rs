//! The MCP server: tools, resources and prompts for any host, whatever revision it speaks.
//!
//! Knows how handlers are registered; the session knows how they are reached. Mistakes made while
//! building are kept and returned before a byte is read.

mod ask;
mod base64;
mod blocking;
mod blocking_call;
mod build;
mod call;
mod changes;
mod contents;
mod cursor;
mod erase;
mod fields;
mod form;
mod handler;
mod hook;
mod registry;
mod reply;
mod rounds;
mod routes;
mod schema;
mod session;
mod settings;
mod snapshot;
mod spec;
mod subscriber;
mod template;
mod test_call;

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::driver::{self, Link, Options};
use crate::ending::Ending;
use crate::error::{Error, Reject, Result};
use crate::mcp::{
    CacheScope, DIALECT, Implementation, RawJson, ReadResourceResult, Revision, SealKey, Ttl,
    WriteJson,
};
use crate::rpc::{Config, Peer};
use crate::service::run_stdio;
use crate::stdio;
use crate::stream::{Reader, Writer};

use hook::Hook;
use registry::Registry;
use session::Session;
use snapshot::Live;
use subscriber::{Change, Subscriber};

pub use ask::{AskError, Asked};
pub use blocking_call::BlockingCall;
pub use build::Completing;
pub use call::{Call, ClientInfo, Progress};
pub use changes::Changes;
pub use contents::{IntoContents, IntoMessages};
pub use hook::Moment;
pub use reply::{IntoReply, Json};
pub use schema::NoArgs;

/// Maps arguments that do not fit to an error of the server's own.
type BadArgumentsMap<S> = Arc<dyn Fn(&Call<S>, &str) -> Option<Reject> + Send + Sync>;

/// A server, described. It serves as many connections as it is asked to.
///
/// ```no_run
/// use taut::{JsonSchema, Server};
///
/// /// Add two numbers.
/// #[derive(serde::Deserialize, JsonSchema)]
/// struct Add { a: f64, b: f64 }
///
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> taut::Result<()> {
///     Server::new("calc", "1.0")
///         .tool("add", async |Add { a, b }, _call| a + b)
///         .serve_stdio()
///         .await
/// }
/// ```
pub struct Server<S = ()> {
    shared: Arc<Shared<S>>,
    mistakes: Vec<String>,
    config: Config,
    options: Options,
    signals: bool,
}

/// What all connections of a server share.
pub(crate) struct Shared<S> {
    info: Implementation,
    info_json: RawJson,
    state: S,
    registry: Live<Registry<S>>,
    settings: Settings<S>,
    /// The connections that may want to hear of changes.
    subscribers: Mutex<Vec<Weak<Subscriber>>>,
}

/// What a server was told while it was built.
pub(crate) struct Settings<S> {
    instructions: Option<String>,
    logging: bool,
    /// Whether what is offered may change while it is served.
    changes: bool,
    ttl: Duration,
    cache_scope: CacheScope,
    page_size: Option<usize>,
    call_timeout: Option<Duration>,
    hook: Option<Hook>,
    bad_arguments: Option<BadArgumentsMap<S>>,
    seal_key: SealKey,
    ask_lifetime: Duration,
    ask_timeout: Duration,
}

impl<S> Default for Settings<S> {
    fn default() -> Self {
        Self {
            instructions: None,
            logging: false,
            changes: false,
            // Conservative: a client that keeps a list for too long is worse than one that asks.
            ttl: Duration::ZERO,
            cache_scope: CacheScope::Private,
            page_size: None,
            call_timeout: None,
            hook: None,
            bad_arguments: None,
            seal_key: seal_key(),
            ask_lifetime: Duration::from_secs(60 * 60),
            ask_timeout: Duration::from_secs(10 * 60),
        }
    }
}

impl<S> Settings<S> {
    /// What was read, with our hints on keeping it unless its handler gave some.
    fn hinted(&self, contents: ReadResourceResult) -> ReadResourceResult {
        let untold = contents.ttl == Ttl::default() && contents.cache_scope == CacheScope::Private;
        if untold { contents.ttl(self.ttl).cache_scope(self.cache_scope.clone()) } else { contents }
    }
}

impl Settings<()> {
    /// The same for handlers with another state. What takes a [`Call`] cannot come along.
    fn without_state<S>(self) -> Settings<S> {
        Settings {
            instructions: self.instructions,
            logging: self.logging,
            changes: self.changes,
            ttl: self.ttl,
            cache_scope: self.cache_scope,
            page_size: self.page_size,
            call_timeout: self.call_timeout,
            hook: self.hook,
            bad_arguments: None,
            seal_key: self.seal_key,
            ask_lifetime: self.ask_lifetime,
            ask_timeout: self.ask_timeout,
        }
    }
}

/// From the environment, else from chance. Without either nothing is ever verified, which refuses
/// every state rather than accepting a forged one.
fn seal_key() -> SealKey {
    if let Some(key) = std::env::var_os("TAUT_SEAL_KEY").filter(|key| !key.is_empty()) {
        return SealKey::new(key.into_encoded_bytes());
    }
    let mut key = [0; 32];
    match getrandom::fill(&mut key) {
        Ok(()) => SealKey::new(key),
        Err(_) => SealKey::none(),
    }
}

impl<S> Shared<S> {
    /// A connection that may want to hear of changes.
    fn introduce(&self, subscriber: &Arc<Subscriber>) {
        let mut all = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        // Before the list grows those who have gone leave it, so that it is never much longer than
        // the most connections there were at once.
        if all.len() == all.capacity() {
            all.retain(|subscriber| subscriber.strong_count() > 0);
        }
        all.push(Arc::downgrade(subscriber));
    }

    /// Tells every connection that something has changed, if they were promised to be told
    /// (TOL-24).
    fn tell(&self, change: Change<'_>) {
        if !self.settings.changes {
            return;
        }
        let subscribers: Vec<_> = {
            let mut all = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|subscriber| subscriber.strong_count() > 0);
            all.iter().filter_map(Weak::upgrade).collect()
        };
        subscribers.iter().for_each(|subscriber| subscriber.changed(change));
    }
}

impl Server {
    /// A server that offers nothing yet.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self::described(Implementation::new(name, version))
    }

    /// A server with a title, a description, icons or a website.
    #[must_use]
    pub fn described(info: Implementation) -> Self {
        Self::with_state(info, ())
    }

    /// Gives handlers something to share; it comes out of [`Call::state`].
    ///
    /// Goes before the first handler, because a handler's [`Call`] knows the type.
    #[must_use]
    pub fn state<S: Send + Sync + 'static>(self, state: S) -> Server<S> {
        let registry = self.shared.registry.current();
        let mut server = Server::with_state(self.shared.info.clone(), state);
        server.mistakes = self.mistakes;
        (server.config, server.options, server.signals) = (self.config, self.options, self.signals);
        if let Ok(shared) = Arc::try_unwrap(self.shared) {
            let settings = shared.settings.without_state();
            server.change(|shared| shared.settings = settings);
        }
        if !registry.is_empty() {
            server.mistakes.push("state() must come before the first handler".to_owned());
        }
        server
    }
}

impl<S: Send + Sync + 'static> Server<S> {
    fn with_state(info: Implementation, state: S) -> Self {
        let info_json = RawJson::of(&info.at(Revision::MODERN));
        let info_json = info_json.unwrap_or_else(|_| serde_json::Value::Null.into());
        Self {
            shared: Arc::new(Shared {
                info,
                info_json,
                state,
                registry: Live::new(Registry::default()),
                settings: Settings::default(),
                subscribers: Mutex::default(),
            }),
            mistakes: Vec::new(),
            config: Config::new(DIALECT, true),
            options: Options::default(),
            signals: true,
        }
    }

    /// Changes what nobody shares yet.
    fn change(&mut self, change: impl FnOnce(&mut Shared<S>)) {
        match Arc::get_mut(&mut self.shared) {
            Some(shared) => change(shared),
            None => self
                .mistakes
                .push("settings must come before changes() and before serving".to_owned()),
        }
    }

    /// Serves this process's stdin and stdout until the host is done.
    ///
    /// # Errors
    /// A mistake was made while building, or something else has stdin and stdout already.
    pub async fn serve_stdio(&self) -> Result<()> {
        self.check()?;
        let wire = stdio::take()?;
        let (link, session) = self.open(true);
        match run_stdio(wire, link, session, self.options, self.signals).await {
            ending @ (Ending::Io { .. } | Ending::Stuck { .. }) => Err(Error::Ended(ending)),
            _ => Ok(()),
        }
    }

    /// Serves a pair of byte streams until the other side is done. One server serves many.
    ///
    /// # Errors
    /// A mistake was made while building.
    pub async fn serve<R, W>(&self, reader: R, writer: W) -> Result<Ending>
    where
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send,
    {
        self.check()?;
        let (link, session) = self.open(false);
        let never = std::future::pending();
        Ok(driver::run(link, Reader(reader), Writer(writer), session, self.options, never).await)
    }

    /// Serves a pair of byte streams in a task of its own.
    #[cfg(feature = "client")]
    pub(crate) fn serve_apart<R, W>(&self, reader: R, writer: W) -> Result<()>
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        self.check()?;
        let (link, session) = self.open(false);
        let (options, never) = (self.options, std::future::pending());
        tokio::spawn(driver::run(link, Reader(reader), Writer(writer), session, options, never));
        Ok(())
    }

    fn open(&self, on_stdio: bool) -> (Link, Session<S>) {
        let link = Link::new(Peer::new(self.config));
        let session = Session::new(self.shared.clone(), link.clone(), on_stdio);
        (link, session)
    }

    fn check(&self) -> Result<()> {
        if self.mistakes.is_empty() {
            Ok(())
        } else {
            Err(Error::Build { mistakes: self.mistakes.clone() })
        }
    }
}
