//! What a client can be told before it starts.
//!
//! Knows defaults and the reason for each number. Must not know what is done with them.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use super::Client;
use super::command::Command;
use super::host::{Host, Roots};
use super::ladder::Grace;
use super::notice::{ClientEvent, Hook};
use super::open;
use crate::error::Result;
use crate::mcp::{ClientCapabilities, Era, Implementation, Revision};
use crate::wire::{Framing, Limits};

/// Gets each line of a server's stderr, without its line end.
pub(super) type OnStderr = Arc<dyn Fn(&str) + Send + Sync>;

/// Everything that can be set.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) info: Implementation,
    pub(super) capabilities: ClientCapabilities,
    pub(super) revision: Option<Revision>,
    pub(super) known: Option<Era>,
    pub(super) framing: Option<Framing>,
    pub(super) probe: Duration,
    pub(super) start: Duration,
    pub(super) request: Duration,
    pub(super) ceiling: Duration,
    pub(super) grace: Grace,
    pub(super) leave_group: bool,
    pub(super) stderr_tail: usize,
    pub(super) on_stderr: Option<OnStderr>,
    pub(super) on_event: Option<Hook>,
    pub(super) limits: Limits,
    pub(super) host: Host,
    pub(super) rounds: usize,
    pub(super) keep_lists: bool,
    #[cfg(feature = "validate")]
    pub(super) check_answers: bool,
}

impl Settings {
    /// What one client starts with: its own, and complete.
    pub(super) fn settle(mut self) -> Arc<Self> {
        self.host.roots = self.host.roots.as_ref().map(Roots::apart);
        self.host.declare(&mut self.capabilities);
        Arc::new(self)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            info: Implementation::new("taut", env!("CARGO_PKG_VERSION")),
            capabilities: ClientCapabilities::new(),
            revision: None,
            known: None,
            framing: None,
            // Between what hosts wait (3 s and 10 s); each silent legacy server costs this much.
            probe: Duration::from_secs(5),
            // A first run may install its program (L15).
            start: Duration::from_secs(60),
            // What every official SDK waits.
            request: Duration::from_secs(60),
            // C9: nobody waits longer for a sign of an end, however lively the progress.
            ceiling: Duration::from_secs(600),
            grace: Grace::default(),
            leave_group: false,
            // Enough for a stack trace or two.
            stderr_tail: 64 << 10,
            on_stderr: None,
            on_event: None,
            limits: Limits::default(),
            host: Host::default(),
            // MRTR-16: as many as the official SDKs allow.
            rounds: 10,
            keep_lists: false,
            #[cfg(feature = "validate")]
            check_answers: false,
        }
    }
}

/// A client about to be connected: [`Client::builder`].
///
/// ```no_run
/// # async fn run() -> taut::Result<()> {
/// use std::time::Duration;
///
/// let calc = taut::Client::builder()
///     .info(taut::Implementation::new("my-host", "1.0"))
///     .start_timeout(Duration::from_secs(20))
///     .on_stderr(|line| eprintln!("calc: {line}"))
///     .spawn(taut::Command::new("calc"))
///     .await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
#[must_use = "a builder does nothing until it is told to spawn or connect"]
pub struct ClientBuilder {
    pub(super) settings: Settings,
}

impl ClientBuilder {
    /// Who this client says it is.
    pub fn info(mut self, info: Implementation) -> Self {
        self.settings.info = info;
        self
    }

    /// What this client says it can do for a server.
    pub fn capabilities(mut self, capabilities: ClientCapabilities) -> Self {
        self.settings.capabilities = capabilities;
        self
    }

    /// Speaks this revision and no other.
    pub fn revision(mut self, revision: Revision) -> Self {
        self.settings.revision = Some(revision);
        self
    }

    /// What an earlier connection to the same server found out, see [`Client::revision`]. Saves the
    /// probe of a legacy server; dropped when it turns out wrong (PRB-06).
    pub fn known(mut self, era: Era) -> Self {
        self.settings.known = Some(era);
        self
    }

    /// Speaks in this framing and no other. Unless set: lines; if a server stays silent nearly until its
    /// time is over, another is started beside it and spoken to with `Content-Length` headers.
    pub fn framing(mut self, framing: Framing) -> Self {
        self.settings.framing = Some(framing);
        self
    }

    /// How long a server may be silent about what it speaks before it is taken for an old one. 5 s.
    pub fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.settings.probe = timeout;
        self
    }

    /// How long it may take until a server is ready for requests, however often it has to be started
    /// for that; plus a moment for ending one that did not make it. 60 s.
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.settings.start = timeout;
        self
    }

    /// How long a request may go without a sign of life, unless it says otherwise. 60 s.
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.settings.request = timeout;
        self
    }

    /// How long a request may take in all when reports of progress keep it alive. 10 min.
    pub fn ceiling(mut self, ceiling: Duration) -> Self {
        self.settings.ceiling = ceiling;
        self
    }

    /// How long each step of ending a process waits for the next.
    pub fn grace(mut self, grace: Grace) -> Self {
        self.settings.grace = grace;
        self
    }

    /// From closed stdin to SIGTERM. 2 s.
    pub fn eof_grace(mut self, wait: Duration) -> Self {
        self.settings.grace.after_eof = wait;
        self
    }

    /// From SIGTERM to SIGKILL. 2 s.
    pub fn term_grace(mut self, wait: Duration) -> Self {
        self.settings.grace.after_term = wait;
        self
    }

    /// Leaves alone what a server that ended by itself has left running in its process group (P12).
    pub fn leave_group(mut self, leave: bool) -> Self {
        self.settings.leave_group = leave;
        self
    }

    /// How much of the end of stderr is kept, in bytes. 64 KiB.
    pub fn stderr_tail(mut self, bytes: usize) -> Self {
        self.settings.stderr_tail = bytes;
        self
    }

    /// Passes on each line that the server writes to stderr. It must not block.
    pub fn on_stderr(mut self, sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.settings.on_stderr = Some(Arc::new(sink));
        self
    }

    /// Passes on what happens besides answers: notifications, junk on the wire, restarts. It must
    /// not block.
    pub fn on_event(mut self, hook: impl Fn(&ClientEvent<'_>) + Send + Sync + 'static) -> Self {
        self.settings.on_event = Some(Hook::new(hook));
        self
    }

    /// Checks the `structuredContent` of what a tool answers against the tool's `outputSchema`; what
    /// does not fit, or cannot be checked, is [`Error::Output`](crate::Error::Output), with the answer
    /// inside. Off unless set.
    ///
    /// A tool that was not listed yet is looked up first, with a request of its own; a name that the
    /// list does not have is not checked, nor is the answer of a tool that failed, or one that came
    /// after the list had changed. References in a schema lead nowhere but to the schema itself: nothing
    /// is fetched. The check runs where the answer is awaited, and takes a bounded number of steps.
    #[cfg(feature = "validate")]
    pub fn check_answers(mut self, check: bool) -> Self {
        self.settings.check_answers = check;
        self
    }

    /// What the client holds at most of what a server sends.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// Starts a server and opens a connection to it.
    ///
    /// # Errors
    /// The program cannot be started ([`Error::Spawn`](crate::Error::Spawn)), or no connection
    /// comes of it ([`Error::Connect`](crate::Error::Connect)). Nothing is left running then.
    pub async fn spawn(self, command: Command) -> Result<Client> {
        open::spawn(self.settings.settle(), command).await
    }

    /// Does the same, unless `stop` ends first: then the server is let go politely and there is no
    /// client. Dropping [`spawn`](Self::spawn) half-way kills it at once.
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn).
    pub async fn spawn_unless(
        self,
        command: Command,
        stop: impl Future<Output = ()>,
    ) -> Result<Option<Client>> {
        open::spawn_unless(self.settings.settle(), command, stop).await
    }

    /// Opens a connection over a pair of byte streams.
    ///
    /// # Errors
    /// No connection comes of it ([`Error::Connect`](crate::Error::Connect)).
    pub async fn connect<R, W>(self, reader: R, writer: W) -> Result<Client>
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        open::connect(self.settings.settle(), reader, writer).await
    }
}
