//! One connection to a server while it lasts: the loop, the process behind it, and its end.
//!
//! Knows how the two end together: closing stdin starts the ladder, an exit ends the loop, dropping
//! the session ends both. Must not know what is said (`open.rs`, `request.rs`) nor how a process is
//! ended (`child.rs`). Invariants 8 and 9.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;

use super::asked::Asked;
use super::cache::Lists;
use super::changes::Streams;
use super::host::Home;
use super::notice::Notices;
use super::settings::Settings;
use crate::driver::{self, Close, Link, Options};
use crate::ending::Ending;
use crate::error::{Error, Lost, Result};
use crate::mcp::{DIALECT, Revision};
use crate::process::{Child, Ended, Exit};
use crate::rpc::{Config, Peer};
use crate::stream::{Sink, Source};
use crate::wire::Framing;

/// How a connection was closed: [`Client::close`](crate::Client::close).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Closed {
    /// Why the connection ended.
    pub ending: Ending,
    /// How the process ended and what it took; nothing if there is none.
    pub process: Option<Ended>,
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.process {
            Some(ended) => write!(f, "the server {ended}"),
            None => self.ending.fmt(f),
        }
    }
}

/// A connection under way. Dropping it ends the process at once.
pub(super) struct Session {
    pub(super) link: Link,
    pub(super) child: Option<Child>,
    pub(super) notices: Arc<Notices>,
    /// What was agreed, once it was.
    pub(super) revision: Arc<OnceLock<Revision>>,
    pub(super) home: Arc<Home>,
    pub(super) streams: Arc<Streams>,
    pub(super) lists: Arc<Lists>,
    over: watch::Receiver<Option<Closed>>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.link.close(Close::Now);
    }
}

/// What a session runs on.
pub(super) struct Wire<R, W> {
    pub(super) source: R,
    pub(super) sink: W,
    pub(super) child: Option<Child>,
    pub(super) notices: Arc<Notices>,
}

impl Session {
    /// Starts the loop on the current runtime. `sink_closed` ends once the sink is closed.
    pub(super) fn start<R, W>(
        settings: &Arc<Settings>,
        framing: Framing,
        wire: Wire<R, W>,
        sink_closed: impl Future<Output = ()> + Send + 'static,
    ) -> Self
    where
        R: Source + 'static,
        W: Sink + 'static,
    {
        let Wire { source, sink, child, notices } = wire;
        let mut config = Config::new(DIALECT, false);
        config.framing = framing;
        config.limits = settings.limits;
        let link = Link::new(Peer::new(config));
        let revision = Arc::new(OnceLock::new());
        let home = Arc::new(Home::new(tokio::runtime::Handle::current()));
        let (streams, lists) = (Arc::<Streams>::default(), Arc::<Lists>::default());
        let service = Asked {
            notices: notices.clone(),
            revision: revision.clone(),
            settings: settings.clone(),
            home: home.clone(),
            streams: streams.clone(),
            lists: lists.clone(),
        };
        let grace = settings.grace;
        // The ladder is what ends a process that does not close its stdout; this is only the net.
        let drain = grace.after_eof + grace.after_term + grace.after_kill + NET;
        let options = Options { drain, ..Options::default() };
        let running =
            driver::run(link.clone(), source, sink, service, options, std::future::pending());
        let ladder = child.as_ref().map(|child| child.end(grace));
        let ended = async move {
            let ladder = ladder?;
            sink_closed.await;
            Some(ladder.await)
        };
        let (tell, over) = watch::channel(None);
        tokio::spawn(async move {
            let (ending, process) = driver::both(running, ended).await;
            tracing::debug!(%ending, "session over");
            // Nobody may be left to hear it.
            let _ = tell.send(Some(Closed { ending, process }));
        });
        Self { link, child, notices, revision, home, streams, lists, over }
    }

    /// Closes our end politely and waits until everything is over.
    pub(super) async fn close(&self) -> Closed {
        self.link.close(Close::Politely);
        self.over().await
    }

    /// Waits until the loop and the process have ended. Does not hold the session.
    pub(super) fn over(&self) -> impl Future<Output = Closed> + Send + use<> {
        let mut over = self.over.clone();
        async move {
            let seen = over.wait_for(Option::is_some).await.ok().and_then(|closed| closed.clone());
            // The runtime that the session lived on is gone, and took the process along.
            seen.unwrap_or(Closed { ending: Ending::Closed, process: None })
        }
    }

    /// Whether it can be used, as far as is known.
    pub(super) fn is_up(&self) -> bool {
        self.link.ending().is_none() && !self.link.is_closing() && self.exit().is_none()
    }

    pub(super) fn exit(&self) -> Option<Exit> {
        self.child.as_ref().and_then(Child::exit)
    }

    pub(super) fn stderr(&self) -> String {
        self.child.as_ref().map(Child::tail).unwrap_or_default()
    }

    /// Whether we have closed it ourselves.
    pub(super) fn is_closing(&self) -> bool {
        self.link.is_closing()
    }

    /// What to tell a caller whose request found the connection gone.
    pub(super) fn lost(&self, method: Cow<'static, str>) -> Error {
        let ending = if self.is_closing() {
            Ending::Closed
        } else {
            self.link.ending().unwrap_or(Ending::Eof)
        };
        let exit = self.exit();
        let running = self.child.as_ref().filter(|_| exit.is_none()).map(Child::pid);
        Lost { method, exit, running, ending, stderr: self.stderr() }.into()
    }

    /// Tells the server something.
    pub(super) fn notify(
        &self,
        method: Cow<'static, str>,
        params: Option<&dyn crate::rpc::Body>,
    ) -> Result<()> {
        if self.is_closing() {
            return Err(self.lost(method));
        }
        self.link.notify(&method, params).map_err(|error| match error {
            crate::rpc::SendError::Closed => self.lost(method),
            other => Error::from_send(method, other, || Ending::Eof),
        })
    }
}

/// How much longer than the ladder the loop waits for the end of the output.
const NET: Duration = Duration::from_secs(1);
