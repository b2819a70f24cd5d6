//! A service that forwards to another server: any client to any server, in any era.
//!
//! [`Proxy`] is the service, [`Connector`] says how the other server is reached.

// | folder or file | what it knows |
// |---|---|
// | `translate` | how a message of one era reads in the other; pure |
// | `connector` | how the server is reached |
// | `state` | what everything below is made of, as data |
// | `cancelled` | calls that were withdrawn, and may still be heard of |
// | `early` | what a server says before anybody can be told |
// | `text`, `in_flight`, `calls`, `streams`, `session`, `parked` | one part of that data each |
// | `back` | what a server says unasked: questions and their bounds, log lines, changes |
// | `relay` | messages between equal eras: only ids and progress tokens change |
// | `to_legacy` | what a modern client needs of a legacy server |
// | `following` | subscriptions, gathered into few streams |
// | `to_modern` | what a legacy client needs of a modern server |
// | `slot` | a place for a connection: opened on demand, opened again when it was lost |
// | `front` | one connection of a client: where each message goes |
//
// Each knows only those above it.
//
// Data flows one way: a message of the front goes to a slot, from there to a back, and its answer comes
// back by the waiter of that call. What the back says unasked goes to the fronts that it belongs to.

mod back;
mod calls;
mod cancelled;
mod connector;
mod early;
mod followed;
mod following;
mod front;
mod in_flight;
mod parked;
mod relay;
mod session;
mod slot;
mod state;
mod streams;
mod text;
mod to_legacy;
mod to_modern;
mod translate;

use std::future::Future;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::client::{ClientBuilder, RestartPolicy};
use crate::driver::{self, Link, Options};
use crate::ending::Ending;
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::mcp::{DIALECT, Era, Revision};
use crate::rpc::{Config, Peer};
use crate::service::run_stdio;
use crate::stdio;
use crate::stream::{Reader, Until, Writer};
use crate::transport::{Answers, Principal, Started, bounded};
use crate::wire::Framing;

use front::Front;
use state::{AbortOnDrop, BackSlot, ProxySettings, ProxyShared};

pub use connector::{Connector, ProxyEvent};

/// A [`Proxy`] about to be built.
#[derive(Clone)]
#[must_use = "a builder does nothing until it is told to build"]
pub struct ProxyBuilder {
    connector: Arc<dyn Connector>,
    settings: ProxySettings,
}

setters! { ProxyBuilder;
    /// Sets how connections to the server are made: framing, timeouts, limits, a pinned revision. Its
    /// identity, capabilities and handlers are not used: those of the proxy's own clients are.
    client(client: ClientBuilder) => settings.client;

    /// Sets when a server that died is started again.
    restart(policy: RestartPolicy) => settings.restart;

    /// Sends a connection one request at a time, so that each question and log line of a legacy server
    /// belongs to exactly one request.
    serial(serial: bool) => settings.serial;

    /// Sets how long the connection of a [`Principal`] is kept that sends nothing any more. It is given up when
    /// another principal comes after that time, so that connections do not grow with everyone who ever came.
    /// 30 min.
    idle(time: Duration) => settings.idle = bounded(time);

    /// Sets how long a question of a legacy server is held while it may belong to several calls. 5 s.
    attribution_limit(limit: Duration) => settings.attribution = bounded(limit);

    /// Sets how many bytes of requests may wait while a connection to the server is opened, with 256 more for
    /// each of them. 4 MiB. A request beyond that is refused. The first one may exceed it.
    max_waiting_bytes(bytes: usize) => settings.max_waiting_bytes;

    /// Sets how many bytes the addresses may have that one legacy session follows, or that all modern streams of
    /// changes follow on one connection to a legacy server, with 64 more for each of them. 4 MiB. A subscription
    /// beyond that is refused.
    max_subscription_bytes(bytes: usize) => settings.max_subscription_bytes;

    /// Sets how many values of `requestState` are remembered, about 100 bytes each. 4,096. With several
    /// [`children`](Self::children), a retry goes to the connection that its state came from. When there is no
    /// room, the oldest is forgotten, and its retry goes to any of them.
    max_request_states(states: usize) => settings.max_routes;

    /// Sets how long accepted requests may take once a client has closed its end. 30 s.
    drain(limit: Duration) => settings.options.drain = bounded(limit);

    /// Sets how much of a client's input is read before other tasks run. 64 KiB. Less lets a long way to the server,
    /// such as a broker, begin sooner with what was read first.
    turn(bytes: usize) => settings.options.turn;
}

impl ProxyBuilder {
    /// Shares so many connections to the server among all clients. For servers that keep no state only:
    /// what one client does there, another may see. Unless set, each legacy session has a connection of
    /// its own, and the modern requests of one [`Principal`] share one.
    pub fn children(mut self, children: usize) -> Self {
        self.settings.children = Some(children.max(1));
        self
    }

    /// Serves clients of this era only. For the side of the server: [`ClientBuilder::era`].
    pub fn era(mut self, era: Era) -> Self {
        self.settings.front_era = Some(era);
        self.settings.front_revision = None;
        self
    }

    /// Serves clients in this revision only. A legacy client that asks for another is offered this one, as a
    /// server does that knows no other. For the side of the server: [`ClientBuilder::revision`].
    pub fn revision(mut self, revision: Revision) -> Self {
        self.settings.front_era = Some(revision.era());
        self.settings.front_revision = Some(revision);
        self
    }

    /// Serves clients in this framing only; a message in the other one is refused. Unless set, each message is
    /// answered in its own. For the side of the server: [`ClientBuilder::framing`].
    pub fn framing(mut self, framing: Framing) -> Self {
        self.settings.config.framing = framing;
        self.settings.config.only_framing = Some(framing);
        self
    }

    /// Sets how long a call may wait for a modern client to answer its question, 10 min, how many calls
    /// may, 256, and how many bytes of questions they may have, 16 MiB. A call beyond that is told so.
    pub fn parked(mut self, time: Duration, calls: usize, bytes: usize) -> Self {
        self.settings.parked_for = bounded(time);
        self.settings.max_parked = calls;
        self.settings.max_parked_bytes = bytes;
        self
    }

    /// Sets how many questions of one legacy server may wait for their answers at once, 256, and how many
    /// bytes they may have, 16 MiB. A question beyond that is refused. The bytes are counted before a question
    /// is taken, so that one may exceed them.
    pub fn questions(mut self, at_once: usize, bytes: usize) -> Self {
        self.settings.max_held = at_once;
        self.settings.max_held_bytes = bytes;
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

    /// Is told what happens to connections, to clients and to the server. It must not block.
    pub fn on_event(mut self, hook: impl Fn(&ProxyEvent) + Send + Sync + 'static) -> Self {
        self.settings.on_event = Some(Arc::new(hook));
        self
    }

    /// The proxy.
    #[must_use]
    pub fn build(self) -> Proxy {
        Proxy {
            shared: Arc::new(ProxyShared {
                connector: self.connector,
                settings: self.settings,
                slots: Mutex::default(),
                all: Mutex::default(),
                next_slot: AtomicU64::new(0),
                parked: Mutex::default(),
                routes: Mutex::default(),
                open: watch::Sender::new(()),
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
            front_revision: None,
            idle: Duration::from_secs(30 * 60),
            max_parked: 256,
            max_parked_bytes: 16 << 20,
            parked_for: Duration::from_secs(600),
            attribution: Duration::from_secs(5),
            max_held: 256,
            max_held_bytes: 16 << 20,
            max_waiting_bytes: 4 << 20,
            max_subscription_bytes: 4 << 20,
            max_routes: 4_096,
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
        let running = run_stdio(wire, link, front, settings.options, settings.signals);
        self.run_front(running).await
    }

    /// Serves this process's stdin and stdout as [`serve_stdio`](Self::serve_stdio) does, but leaves
    /// signals to the program: once `stop` is ready nothing more is read, and what was accepted is
    /// finished within the [drain limit](ProxyBuilder::drain).
    ///
    /// # Errors
    /// As there.
    pub async fn serve_stdio_until(
        &self,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<()> {
        let wire = stdio::take()?;
        let (link, front) = self.open_front(true);
        let (input, never) = (Until::new(wire.input, stop), std::future::pending());
        let options = self.shared.settings.options;
        let running = driver::run(link, input, wire.output, Box::new(front), options, never);
        self.run_front(running).await
    }

    /// Serves one client to its end, then ends all servers. In a task, as the connections to the server
    /// are: waking the main future costs a system call for each message.
    async fn run_front(
        &self,
        running: impl Future<Output = Ending> + Send + 'static,
    ) -> Result<()> {
        let running = tokio::spawn(running);
        let _ended_with_us = AbortOnDrop(running.abort_handle());
        let ending = running.await.unwrap_or(Ending::Closed);
        self.close().await;
        Error::unless_orderly(ending)
    }

    /// Serves a pair of byte streams until the other side is done, and says why it ended.
    pub async fn serve<R, W>(&self, reader: R, writer: W) -> Ending
    where
        R: AsyncRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send,
    {
        let (link, front) = self.open_front(false);
        let (options, never) = (self.shared.settings.options, std::future::pending());
        driver::run(link, Reader(reader), Writer(writer), Box::new(front), options, never).await
    }

    /// Ends all servers, politely, and waits for it. Requests that come later are refused.
    pub async fn close(&self) {
        let slots: Vec<Arc<BackSlot>> = {
            let all = lock(&self.shared.all);
            all.values().filter_map(Weak::upgrade).collect()
        };
        let closing: Vec<_> =
            slots.into_iter().map(|slot| tokio::spawn(async move { slot.close().await })).collect();
        for slot in closing {
            let _ = slot.await;
        }
        self.shared.open.closed().await;
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
