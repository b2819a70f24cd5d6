//! The client: starts servers, finds out what they speak, calls them, leaves nothing behind.
//!
//! Knows what a server can be asked. `open.rs` opens the connection, `session.rs` keeps it,
//! `request.rs` makes one request, `paging.rs` lists; `child.rs` and the files around it own the
//! process.

mod answer;
mod asked;
mod cache;
mod changes;
#[cfg(feature = "validate")]
mod check;
mod command;
mod envelope;
mod host;
mod hosting;
mod ladder;
mod listen;
mod lookup;
mod notice;
mod open;
mod opening;
mod paging;
mod process;
mod request;
mod restart;
mod rounds;
mod session;
mod settings;
mod supervise;
mod supervised;
mod typed;
#[cfg_attr(not(windows), allow(dead_code, reason = "tested everywhere, used on Windows"))]
mod windows;

#[cfg(unix)]
mod beside;
#[cfg(unix)]
mod child;
#[cfg(unix)]
mod ends;
#[cfg(unix)]
mod forker;
#[cfg(unix)]
mod keeper;
#[cfg(unix)]
mod pipe;
#[cfg(unix)]
mod reaper;
#[cfg(unix)]
mod stderr;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncWrite};

use envelope::Envelope;
use session::Session;
use settings::Settings;

use crate::error::{Error, Exit, Result};
use crate::mcp::{Agreed, Implementation, Level, Revision, ServerCapabilities};
use crate::wire::Framing;

pub use answer::Answer;
pub use changes::Change;
pub use command::Command;
pub use host::{Asking, IntoAnswer};
pub use ladder::{Ended, Grace, Rung};
pub use listen::Listening;
pub use notice::{ClientEvent, Diagnostics, Junk};
pub use paging::Pages;
pub use request::{Calling, Request};
pub use restart::Restart;
pub use session::Closed;
pub use settings::ClientBuilder;
pub use supervise::{Life, Supervised};
pub use supervised::Attempt;

/// A connection to a server.
///
/// ```no_run
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> taut::Result<()> {
/// let calc = taut::Client::spawn(taut::Command::new("calc")).await?;
/// for tool in calc.tools().await? {
///     println!("{}", tool.name);
/// }
/// let sum = calc.call("add", json!({ "a": 2, "b": 3 })).await?;
/// println!("{}", sum.text()?);
/// calc.close().await?;
/// # Ok(()) }
/// ```
///
/// Clones are the same connection, and everything takes `&self`: many tasks may call at once.
/// [`close`](Self::close) is the polite way to end it. When the last clone is dropped without it,
/// the process and all that it started in its group are killed at once.
#[derive(Clone)]
pub struct Client(Arc<Shared>);

/// What the clones of a client share.
pub(crate) struct Shared {
    session: Session,
    settings: Arc<Settings>,
    agreed: Agreed,
    envelope: Envelope,
    /// What each request asks for in the modern revision (LOG-09).
    level: Mutex<Option<Level>>,
}

impl Shared {
    fn level(&self) -> Option<Level> {
        self.level.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Client {
    fn new(settings: Arc<Settings>, session: Session, agreed: Agreed) -> Self {
        let envelope = Envelope::new(&settings, agreed.revision);
        let shared = Shared { session, settings, agreed, envelope, level: Mutex::new(None) };
        let shared = Arc::new(shared);
        shared.session.home.settle(&shared);
        shared.watch_lists();
        Self(shared)
    }

    /// A client with settings of its own.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Starts a server and opens a connection to it.
    ///
    /// # Errors
    /// The program cannot be started ([`Error::Spawn`]), or no connection
    /// comes of it ([`Error::Connect`]). Nothing is left running then.
    pub async fn spawn(command: Command) -> Result<Self> {
        Self::builder().spawn(command).await
    }

    /// Opens a connection over a pair of byte streams.
    ///
    /// # Errors
    /// No connection comes of it ([`Error::Connect`]).
    pub async fn connect<R, W>(reader: R, writer: W) -> Result<Self>
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        Self::builder().connect(reader, writer).await
    }

    /// The revision that both sides speak.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.0.agreed.revision
    }

    /// How the server frames what it says; nothing as long as it has said nothing sound.
    #[must_use]
    pub fn framing(&self) -> Option<Framing> {
        self.0.session.link.lock().peer.heard()
    }

    /// What the server offers.
    #[must_use]
    pub fn capabilities(&self) -> &ServerCapabilities {
        &self.0.agreed.capabilities
    }

    /// Who the server says it is. Untrusted text: never decide by it (MET-04).
    #[must_use]
    pub fn server_info(&self) -> Option<&Implementation> {
        self.0.agreed.server_info.as_ref()
    }

    /// How to use the server, for the model to read. Untrusted text (SEC-06).
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.0.agreed.instructions.as_deref()
    }

    /// What was noticed about the connection besides answers.
    #[must_use]
    pub fn diagnostics(&self) -> Diagnostics {
        let child = self.0.session.child.as_ref();
        let stderr_closed =
            child.is_some_and(|child| child.stderr_closed() && child.exit().is_none());
        let missing = self.0.agreed.missing.clone();
        Diagnostics { stderr_closed, missing, ..self.0.session.notices.diagnostics() }
    }

    /// The server's process, if there is one. For people to look at: once the process has ended the
    /// number may be somebody else's.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.0.session.child.as_ref().map(process::Child::pid)
    }

    /// How the server's process ended, if it has.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        self.0.session.exit()
    }

    /// The end of what the server has written to stderr so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.0.session.stderr()
    }

    /// Waits until the connection is over, whoever ends it.
    pub async fn ended(&self) -> Closed {
        self.0.session.over().await
    }

    /// Closes the connection: what is queued is sent, stdin is closed, and a process that has not
    /// ended after the [grace](ClientBuilder::grace) is sent SIGTERM, then SIGKILL. Says how it
    /// ended and what that took. May be called again, and by several at once.
    ///
    /// # Errors
    /// The process has not ended, not even after SIGKILL ([`Error::StillRunning`]).
    pub async fn close(&self) -> Result<Closed> {
        let closed = self.0.session.close().await;
        match (closed.process, self.pid()) {
            (Some(Ended { rung: Rung::Stuck, .. }), Some(pid)) => Err(Error::StillRunning { pid }),
            _ => Ok(closed),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("revision", &self.revision())
            .field("pid", &self.pid())
            .field("exit", &self.exit())
            .finish_non_exhaustive()
    }
}
