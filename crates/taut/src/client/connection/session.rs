//! One connection to a server while it lasts: the loop, the process behind it, and its end.
//!
//! Knows how the two end together: closing stdin starts the shutdown of the process, an exit ends the
//! loop, dropping the session ends both. Must not know what is said (`request`, `open`) nor how a
//! process is ended (`process`). Invariants 8 and 9.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;

use super::settings::ClientSettings;
use super::{Client, ClientShared};
use crate::client::state::{KeptLists, Monitor, Streams};
use crate::driver::{self, Body, Close, Flag, Link, Options, Service};
use crate::ending::Ending;
use crate::error::{ConnectionLost, Error, Result};
use crate::mcp::{DIALECT, Revision};
use crate::process::{Child, ExitStatus, ProcessEnd};
use crate::rpc::{Config, Peer};
use crate::stream::{Sink, Source};
use crate::wire::Framing;

/// How a connection was closed: [`Client::close`](crate::Client::close).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Closed {
    /// Why the connection ended.
    pub ending: Ending,
    /// How the process ended and what it took; `None` if the client has no process.
    pub process: Option<ProcessEnd>,
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.process {
            Some(ended) => write!(f, "the server {ended}"),
            None => self.ending.fmt(f),
        }
    }
}

/// What the parts of one connection share: the loop's service, the session and its client.
pub(crate) struct SessionState {
    pub(crate) settings: Arc<ClientSettings>,
    pub(crate) monitor: Arc<Monitor>,
    pub(crate) streams: Streams,
    pub(crate) lists: KeptLists,
    /// What was agreed, once it was.
    pub(crate) revision: OnceLock<Revision>,
    /// The client, once there is one.
    client: OnceLock<Weak<ClientShared>>,
    /// Raised when there is a client.
    pub(crate) settled: Flag,
    /// The runtime that the connection lives on.
    pub(crate) runtime: Handle,
}

impl SessionState {
    /// The state of a connection that lives on the current runtime.
    pub(crate) fn new(settings: Arc<ClientSettings>) -> Arc<Self> {
        Arc::new(Self {
            monitor: Arc::new(Monitor::new(settings.on_event.clone())),
            settings,
            streams: Streams::default(),
            lists: KeptLists::default(),
            revision: OnceLock::new(),
            client: OnceLock::new(),
            settled: Flag::default(),
            runtime: Handle::current(),
        })
    }

    pub(super) fn settle(&self, client: &Arc<ClientShared>) {
        let _ = self.client.set(Arc::downgrade(client));
        self.settled.raise();
    }

    /// The client, once there is one and as long as a clone of it is held.
    pub(crate) fn client(&self) -> Option<Client> {
        self.client.get()?.upgrade().map(Client)
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.revision.get().is_some_and(|revision| revision.is_modern())
    }
}

/// A connection under way. Dropping it ends the process at once.
pub(crate) struct Session {
    pub(crate) link: Link,
    pub(crate) child: Option<Child>,
    pub(crate) state: Arc<SessionState>,
    over: watch::Receiver<Option<Closed>>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.link.close(Close::Now);
    }
}

impl Session {
    /// Starts the loop on the current runtime. With a process comes the receiver that hears, by an
    /// error, when its stdin was closed.
    pub(crate) fn start(
        state: Arc<SessionState>,
        framing: Framing,
        (source, sink): (impl Source + 'static, impl Sink + 'static),
        child: Option<(Child, watch::Receiver<()>)>,
        service: impl Service + 'static,
    ) -> Self {
        let mut config = Config::new(DIALECT, false);
        config.framing = framing;
        config.socket = state.settings.socket;
        config.limits = state.settings.limits;
        let link = Link::new(Peer::new(config));
        let grace = state.settings.grace;
        // The shutdown of the process ends its stdout. This limit is for the case that it does not.
        let drain = grace.after_eof + grace.after_term + grace.after_kill + DRAIN_MARGIN;
        let options = Options { drain, ..Options::default() };
        let (service, never) = (Box::new(service), std::future::pending());
        let running = driver::run(link.clone(), source, sink, service, options, never);
        let (child, stdin_closed) = child.unzip();
        let ended = child.as_ref().map(|child| child.end(grace)).zip(stdin_closed);
        let ended = async move {
            let (end, mut stdin_closed) = ended?;
            // An error is what is waited for: the sender was dropped, and so stdin was closed.
            while stdin_closed.changed().await.is_ok() {}
            Some(end.await)
        };
        let (tell, over) = watch::channel(None);
        // A task of its own: it would be looked at on every pass of the loop otherwise.
        let ended = tokio::spawn(ended);
        tokio::spawn(async move {
            let ending = running.await;
            let process = ended.await.ok().flatten();
            tracing::debug!(%ending, "session over");
            let _ = tell.send(Some(Closed { ending, process }));
        });
        Self { link, child, state, over }
    }

    /// Closes our end politely and waits until everything is over.
    pub(crate) async fn close(&self) -> Closed {
        self.link.close(Close::Politely);
        self.over().await
    }

    /// Waits until the loop and the process have ended. Does not hold the session.
    pub(crate) fn over(&self) -> impl Future<Output = Closed> + Send + use<> {
        let mut over = self.over.clone();
        async move {
            let seen = over.wait_for(Option::is_some).await.ok().and_then(|closed| closed.clone());
            // The runtime that the session lived on is gone, and took the process along.
            seen.unwrap_or(Closed { ending: Ending::Closed, process: None })
        }
    }

    /// Whether it can be used, as far as is known.
    pub(crate) fn is_up(&self) -> bool {
        self.link.ending().is_none() && !self.link.is_closing() && self.exit().is_none()
    }

    pub(crate) fn exit(&self) -> Option<ExitStatus> {
        self.child.as_ref().and_then(Child::exit)
    }

    /// The end of what the process wrote to stderr.
    pub(crate) fn stderr(&self) -> String {
        self.child.as_ref().map(Child::tail).unwrap_or_default()
    }

    /// The last lines on stdout that are no messages, and the end of stderr; nothing where errors must not have them.
    pub(crate) fn last_output(&self) -> (String, String) {
        if !self.state.settings.output_in_errors {
            return (String::new(), String::new());
        }
        (self.state.monitor.last_invalid(), self.stderr())
    }

    /// Whether we have closed it ourselves.
    pub(crate) fn is_closing(&self) -> bool {
        self.link.is_closing()
    }

    /// The error for a caller whose request found the connection gone.
    pub(crate) fn lost(&self, method: Cow<'static, str>) -> Error {
        let ending = if self.is_closing() {
            Ending::Closed
        } else {
            self.link.ending().unwrap_or(Ending::Eof)
        };
        let exit = self.exit();
        let running = self.child.as_ref().filter(|_| exit.is_none()).map(Child::pid);
        let (stdout, stderr) = self.last_output();
        ConnectionLost { method, exit, running, ending, stdout, stderr }.into()
    }

    /// Sends a notification to the server.
    pub(crate) fn notify(
        &self,
        method: Cow<'static, str>,
        params: Option<&dyn Body>,
    ) -> Result<()> {
        if self.is_closing() {
            return Err(self.lost(method));
        }
        let sent = self.link.notify(None, &method, params);
        sent.map_err(|error| Error::from_send(method.clone(), error, || self.lost(method)))
    }
}

/// How much longer than the shutdown of the process the loop waits for the end of the output.
const DRAIN_MARGIN: Duration = Duration::from_secs(1);
