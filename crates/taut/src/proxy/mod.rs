//! A service that forwards to another server: any client to any server, in any era.
//!
//! | folder or file | what it knows |
//! |---|---|
//! | `translate` | how a message of one era reads in the other; pure |
//! | `back` | one connection to the server, and which calls are open on it |
//! | `slot` | a place for a back: opened on demand, opened again when it dies |
//! | `relay` | messages between equal eras: only ids and progress tokens change |
//! | `parked` | calls that wait for an answer of a modern client |
//! | `to_modern` | what a legacy client needs of a modern server |
//! | `to_legacy` | what a modern client needs of a legacy server |
//! | `front` | one connection of a client: where each message goes |
//!
//! Data flows one way: a message of the front goes to a slot, from there to a back, and its answer comes
//! back by the waiter of that call. What the back says unasked goes to the fronts that it belongs to.

mod back;
mod front;
mod parked;
mod relay;
mod slot;
mod to_legacy;
mod to_modern;
mod translate;

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::client::{Client, ClientBuilder, RestartPolicy};
use crate::driver::{self, Link, Options};
use crate::ending::Ending;
use crate::error::{Error, Result};
use crate::mcp::{DIALECT, Era, Revision};
use crate::rpc::{Config, Peer};
use crate::service::run_stdio;
use crate::stdio;
use crate::stream::{Reader, Writer};
use crate::transport::{Answers, Principal, Started};

use front::Front;
use parked::Parked;
use slot::{Identity, Slot};

/// Opens connections to a server. A closure from a [`ClientBuilder`] to a future of a [`Client`] is one.
pub trait Connector: Send + Sync + 'static {
    /// Opens a connection with this builder, which has the identity, the capabilities and the era of the
    /// client that asks: `builder.spawn(command)`, `builder.connect(reader, writer)`.
    fn connect(
        &self,
        builder: ClientBuilder,
    ) -> Pin<Box<dyn Future<Output = Result<Client>> + Send>>;
}

impl<F, Fut> Connector for F
where
    F: Fn(ClientBuilder) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Client>> + Send + 'static,
{
    fn connect(
        &self,
        builder: ClientBuilder,
    ) -> Pin<Box<dyn Future<Output = Result<Client>> + Send>> {
        Box::pin(self(builder))
    }
}

/// Something that happened to a connection between a [`Proxy`] and its server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ProxyEvent {
    /// A connection is open.
    Opened {
        /// The revision that the server speaks.
        revision: Revision,
        /// The process, if there is one.
        pid: Option<u32>,
    },
    /// No connection came of it.
    Failed {
        /// Why.
        error: String,
    },
    /// A connection ended that was not closed by the proxy.
    Lost {
        /// How it ended.
        reason: String,
    },
}

impl fmt::Display for ProxyEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened { revision, pid: Some(pid) } => {
                write!(f, "connected to the server, process {pid}, revision {revision}")
            }
            Self::Opened { revision, pid: None } => {
                write!(f, "connected to the server, revision {revision}")
            }
            Self::Failed { error } => write!(f, "no connection to the server: {error}"),
            Self::Lost { reason } => write!(f, "lost the server: {reason}"),
        }
    }
}

type EventHook = Arc<dyn Fn(&ProxyEvent) + Send + Sync>;

/// Everything that can be set.
#[derive(Clone)]
pub(crate) struct ProxySettings {
    client: ClientBuilder,
    config: Config,
    options: Options,
    signals: bool,
    restart: RestartPolicy,
    /// Shares so many connections among all clients; otherwise each legacy session has its own.
    children: Option<usize>,
    serial: bool,
    /// The only era that clients may speak.
    front_era: Option<Era>,
    max_parked: usize,
    max_parked_bytes: usize,
    parked_for: Duration,
    attribution: Duration,
    on_event: Option<EventHook>,
}

/// A [`Proxy`] about to be built.
#[derive(Clone)]
#[must_use = "a builder does nothing until it is told to build"]
pub struct ProxyBuilder {
    connector: Arc<dyn Connector>,
    settings: ProxySettings,
}

impl ProxyBuilder {
    /// Sets how connections to the server are made: framing, timeouts, limits, a pinned revision. Its
    /// identity, capabilities and handlers are not used: those of the proxy's own clients are.
    pub fn client(mut self, client: ClientBuilder) -> Self {
        self.settings.client = client;
        self
    }

    /// Sets when a server that died is started again.
    pub fn restart(mut self, policy: RestartPolicy) -> Self {
        self.settings.restart = policy;
        self
    }

    /// Shares so many connections to the server among all clients. For servers that keep no state only:
    /// what one client does there, another may see. Unless set, each legacy session has a connection of
    /// its own, and the modern requests of one [`Principal`] share one.
    pub fn children(mut self, children: usize) -> Self {
        self.settings.children = Some(children.max(1));
        self
    }

    /// Sends a connection one request at a time, so that each question and log line of a legacy server
    /// belongs to exactly one request.
    pub fn serial(mut self, serial: bool) -> Self {
        self.settings.serial = serial;
        self
    }

    /// Serves clients of this era only.
    pub fn era(mut self, era: Era) -> Self {
        self.settings.front_era = Some(era);
        self
    }

    /// Sets how long a call may wait for a modern client to answer its question, 10 min, how many calls
    /// may, 256, and how many bytes of questions they may have, 16 MiB. A call beyond that is told so.
    pub fn parked(mut self, time: Duration, calls: usize, bytes: usize) -> Self {
        self.settings.parked_for = time;
        self.settings.max_parked = calls;
        self.settings.max_parked_bytes = bytes;
        self
    }

    /// Sets how long a question of a legacy server is held while it may belong to several calls. 5 s.
    pub fn attribution_limit(mut self, limit: Duration) -> Self {
        self.settings.attribution = limit;
        self
    }

    /// Sets how long accepted requests may take once a client has closed its end. 30 s.
    pub fn drain(mut self, limit: Duration) -> Self {
        self.settings.options.drain = limit;
        self
    }

    /// Leaves SIGINT and SIGTERM to the program.
    pub fn leave_signals(mut self) -> Self {
        self.settings.signals = false;
        self
    }

    /// Bounds of each client's connection, in full.
    pub fn limits(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.settings.config);
        self
    }

    /// Is told what happens to connections to the server. It must not block.
    pub fn on_event(mut self, hook: impl Fn(&ProxyEvent) + Send + Sync + 'static) -> Self {
        self.settings.on_event = Some(Arc::new(hook));
        self
    }

    /// The proxy.
    #[must_use]
    pub fn build(self) -> Proxy {
        let Self { connector, settings } = self;
        let parked = Parked::new(&settings);
        Proxy {
            shared: Arc::new(ProxyShared {
                connector,
                settings,
                slots: Mutex::default(),
                all: Mutex::default(),
                parked: Arc::new(parked),
                open: watch::Sender::new(0),
            }),
        }
    }
}

/// A service that forwards every request to another server, whatever era the client and the server speak.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> taut::Result<()> {
/// // A legacy-only server for modern clients, and the other way round.
/// let proxy = taut::Proxy::builder(|client: taut::ClientBuilder| {
///     client.spawn(taut::Command::new("some-server"))
/// })
/// .build();
/// proxy.serve_stdio().await
/// # }
/// ```
///
/// Clones are the same proxy. When the last clone and the last connection are gone, the servers are ended.
#[derive(Clone)]
pub struct Proxy {
    shared: Arc<ProxyShared>,
}

/// What all connections of a proxy share.
pub(crate) struct ProxyShared {
    connector: Arc<dyn Connector>,
    settings: ProxySettings,
    /// For modern requests: the connections of each principal, or of all in one pool.
    slots: Mutex<HashMap<Principal, Vec<Arc<Slot>>>>,
    /// All slots, those of legacy sessions included.
    all: Mutex<Vec<Weak<Slot>>>,
    parked: Arc<Parked>,
    /// How many connections to the server there are.
    open: watch::Sender<usize>,
}

/// A connection that counts while this lives.
pub(crate) struct Counted(Weak<ProxyShared>);

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            shared.open.send_modify(|open| *open -= 1);
        }
    }
}

impl ProxyShared {
    fn count_back(self: &Arc<Self>) -> Counted {
        self.open.send_modify(|open| *open += 1);
        Counted(Arc::downgrade(self))
    }

    fn add_slot(&self, slot: &Arc<Slot>) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() == all.capacity() {
            all.retain(|slot| slot.strong_count() > 0);
        }
        all.push(Arc::downgrade(slot));
    }

    fn tell(&self, event: &ProxyEvent) {
        match event {
            ProxyEvent::Opened { .. } => tracing::debug!(%event, "proxy"),
            _ => tracing::warn!(%event, "proxy"),
        }
        if let Some(hook) = &self.settings.on_event {
            hook(event);
        }
    }

    /// The slot for a modern request of this principal, or for any request where all share a pool. Opened
    /// with the identity that `identity` gives, if it is the first.
    fn shared_slot(
        self: &Arc<Self>,
        principal: &Principal,
        identity: impl Fn() -> Identity,
    ) -> Arc<Slot> {
        let pool = self.settings.children;
        let key = if pool.is_some() { Principal::ANONYMOUS } else { principal.clone() };
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slots = slots.entry(key).or_default();
        let idlest = slots.iter().min_by_key(|slot| slot.load()).cloned();
        match idlest {
            Some(slot) if slot.load() == 0 || slots.len() >= pool.unwrap_or(1) => slot,
            _ => {
                let slot = Slot::new(self, identity(), false);
                slots.push(slot.clone());
                slot
            }
        }
    }
}

impl Proxy {
    /// A proxy to the server that `connector` connects to.
    pub fn builder(connector: impl Connector) -> ProxyBuilder {
        let config = Config::new(DIALECT, true);
        let settings = ProxySettings {
            client: ClientBuilder::default(),
            config,
            options: Options::default(),
            signals: true,
            restart: RestartPolicy::new(),
            children: None,
            serial: false,
            front_era: None,
            max_parked: 256,
            max_parked_bytes: 16 << 20,
            parked_for: Duration::from_secs(600),
            attribution: Duration::from_secs(5),
            on_event: None,
        };
        ProxyBuilder { connector: Arc::new(connector), settings }
    }

    /// Serves this process's stdin and stdout until the host closes stdin, as
    /// [`Server::serve_stdio`](crate::Server::serve_stdio) does. Then all servers are ended.
    ///
    /// # Errors
    /// Something else has stdin and stdout already, or reading or writing failed.
    pub async fn serve_stdio(&self) -> Result<()> {
        let wire = stdio::take()?;
        let (link, front) = self.open_front(true);
        let settings = &self.shared.settings;
        let ending = run_stdio(wire, link, front, settings.options, settings.signals).await;
        self.close().await;
        match ending {
            ending @ (Ending::Io { .. } | Ending::Stuck { .. }) => Err(Error::Ended(ending)),
            _ => Ok(()),
        }
    }

    /// Serves a pair of byte streams until the other side is done, and says why it ended.
    pub async fn serve<R, W>(&self, reader: R, writer: W) -> Ending
    where
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send,
    {
        let (link, front) = self.open_front(false);
        let (options, never) = (self.shared.settings.options, std::future::pending());
        driver::run(link, Reader(reader), Writer(writer), front, options, never).await
    }

    /// Ends all servers, politely, and waits for it. Requests that come later are refused.
    pub async fn close(&self) {
        let slots: Vec<Arc<Slot>> = {
            let all = self.shared.all.lock().unwrap_or_else(PoisonError::into_inner);
            all.iter().filter_map(Weak::upgrade).collect()
        };
        let closing: Vec<_> =
            slots.into_iter().map(|slot| tokio::spawn(async move { slot.close().await })).collect();
        for slot in closing {
            let _ = slot.await;
        }
        let mut open = self.shared.open.subscribe();
        let _ = open.wait_for(|open| *open == 0).await;
    }

    fn open_front(&self, on_stdio: bool) -> (Link, Front) {
        let link = Link::new(Peer::new(self.shared.settings.config));
        let front = Front::new(self.shared.clone(), link.clone(), Principal::ANONYMOUS, on_stdio);
        (link, front)
    }
}

impl Answers for Proxy {
    fn start(&self, principal: Principal, adjust: &dyn Fn(Config) -> Config) -> Started {
        let settings = &self.shared.settings;
        Started::new(adjust(settings.config), settings.options, |link| {
            Box::new(Front::new(self.shared.clone(), link, principal, false))
        })
    }
}
