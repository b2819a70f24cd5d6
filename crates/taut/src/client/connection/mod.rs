//! A client and what it consists of: its settings, its session with one server, its handlers.
//!
//! Knows what is true of a connection as a whole, and how it ends. Must not know how a connection is
//! opened (`open`) nor what a server can be asked (`request`, `methods.rs`).

mod handlers;
mod session;
mod settings;

use std::fmt;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use super::state::Diagnostics;
use crate::error::{Error, Result};
use crate::mcp::{
    Agreed, Implementation, Level, Revision, ServerCapabilities, WriteJson, meta_keys,
};
use crate::process::{Child, ExitStatus, ProcessEnd, ShutdownStep};
use crate::wire::Framing;

pub(crate) use handlers::{Handlers, HostHandler};
pub use handlers::{IntoResponse, RequestContext};
pub use session::Closed;
pub(crate) use session::{Session, SessionState};
pub use settings::ClientBuilder;
pub(crate) use settings::{ClientSettings, bounded};
#[cfg(feature = "server")]
pub(crate) use settings::{Relay, Relayed};

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
pub struct Client(pub(crate) Arc<ClientShared>);

/// What the clones of a client share.
pub(crate) struct ClientShared {
    pub(crate) session: Session,
    pub(crate) agreed: Agreed,
    pub(crate) envelope: RequestEnvelope,
    /// The log level that each request asks for in the modern revision (LOG-09).
    pub(crate) level: Mutex<Option<Level>>,
}

impl ClientShared {
    pub(crate) fn settings(&self) -> &ClientSettings {
        &self.session.state.settings
    }
}

/// What each request of a connection says about its sender: the inside of a JSON object, ready to be
/// copied. Empty in the legacy revisions, which say it once.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestEnvelope(pub(crate) String);

impl RequestEnvelope {
    pub(crate) fn new(settings: &ClientSettings, revision: Revision) -> Self {
        let mut text = String::new();
        if revision.is_modern() {
            member(&mut text, meta_keys::PROTOCOL_VERSION, &revision.as_str());
            let capabilities = settings.capabilities.at(revision);
            member(&mut text, meta_keys::CLIENT_CAPABILITIES, &capabilities);
            member(&mut text, meta_keys::CLIENT_INFO, &settings.info.at(revision));
        }
        Self(text)
    }
}

fn member(text: &mut String, key: &str, value: &impl serde::Serialize) {
    // Types of the protocol have string keys and finite numbers only: they always have a JSON form.
    if let Ok(value) = serde_json::to_string(value) {
        let comma = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{comma}\"{key}\":{value}");
    }
}

impl Client {
    /// The client of a session that was agreed upon.
    pub(crate) fn new(session: Session, agreed: Agreed) -> Self {
        let envelope = RequestEnvelope::new(&session.state.settings, agreed.revision);
        let shared = Arc::new(ClientShared { session, agreed, envelope, level: Mutex::new(None) });
        shared.session.state.settle(&shared);
        Self(shared)
    }

    /// A client with settings of its own.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// The revision that both sides agreed on.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.0.agreed.revision
    }

    /// The framing of the server's messages; `None` until the first sound one has come.
    #[must_use]
    pub fn framing(&self) -> Option<Framing> {
        self.0.session.link.heard()
    }

    /// What the server offers.
    #[must_use]
    pub fn capabilities(&self) -> &ServerCapabilities {
        &self.0.agreed.capabilities
    }

    /// The name and version that the server gives itself. Untrusted text: do not decide by it.
    #[must_use]
    pub fn server_info(&self) -> Option<&Implementation> {
        self.0.agreed.server_info.as_ref()
    }

    /// The server's instructions for the model. Untrusted text.
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
        Diagnostics { stderr_closed, missing, ..self.0.session.state.monitor.diagnostics() }
    }

    /// The id of the server's process, if there is one. For people to look at: once the process has
    /// ended the number may belong to another.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.0.session.child.as_ref().map(Child::pid)
    }

    /// How the server's process ended, if it has.
    #[must_use]
    pub fn exit(&self) -> Option<ExitStatus> {
        self.0.session.exit()
    }

    /// The end of what the server has written to stderr so far, at most
    /// [`stderr_tail`](ClientBuilder::stderr_tail) bytes.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.0.session.stderr()
    }

    /// Waits until the connection is over, whichever side ends it.
    pub async fn ended(&self) -> Closed {
        self.0.session.over().await
    }

    /// Closes the connection: what is queued is sent, stdin is closed, and a process that has not
    /// ended after its [grace periods](ClientBuilder::grace_periods) is sent SIGTERM, then SIGKILL.
    /// Returns how it ended and what that took. May be called again, and by several tasks at once.
    ///
    /// # Errors
    /// The process has not ended, not even after SIGKILL ([`Error::StillRunning`]).
    pub async fn close(&self) -> Result<Closed> {
        let closed = self.0.session.close().await;
        match (closed.process, self.pid()) {
            (Some(ProcessEnd { step: ShutdownStep::Stuck, .. }), Some(pid)) => {
                Err(Error::StillRunning { pid })
            }
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
