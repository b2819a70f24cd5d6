//! Opening a connection: does what `mcp/connect.rs` decides.
//!
//! Knows how to start a server, to ask it, and to start it again or a second one beside it. Must not
//! decide anything about eras or versions. A failed opening leaves nothing behind, nor does one that is
//! dropped half-way (P4, P19).

mod handshake;
mod second;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;

use super::answering::ClientService;
use super::connection::{Client, ClientBuilder, ClientSettings, Session, SessionState};
use super::state::{ClientEvent, InvalidMessage};
use crate::driver::{Close, Either, first};
use crate::ending::Ending;
use crate::error::{ConnectError, ConnectPhase, ConnectReason, Error, Result, SecondProcess};
use crate::mcp::{ConnectFault, Method};
use crate::process::{Child, Command, GracePeriods, StartedChild};
use crate::rpc::Fault;
use crate::stream::{Reader, Sink, Source, Writer};
use crate::transport::{MessagePipe, pipe};
use crate::wire::Framing;
use handshake::{Handshake, Stopped};
use second::Second;

/// How long a server that is given up, or whose start the caller has stopped, may take to end by itself. Short: a
/// caller waits. SIGTERM, which follows, leaves it time to clean up.
const GIVEN_UP: Duration = Duration::from_millis(250);

impl ClientBuilder {
    /// Starts a server and opens a connection to it. Dropping the future half-way kills the server at
    /// once.
    ///
    /// # Errors
    /// The program cannot be started ([`Error::Spawn`]), or no connection comes of it
    /// ([`Error::Connect`]). Nothing is left running then.
    pub async fn spawn(self, command: Command) -> Result<Client> {
        spawn(self.settings.settle(), command).await
    }

    /// Does the same, unless `stop` ends first: then the server is ended politely and the result is
    /// `None`.
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn).
    pub async fn spawn_unless(
        self,
        command: Command,
        stop: impl Future<Output = ()>,
    ) -> Result<Option<Client>> {
        spawn_unless(self.settings.settle(), command, stop).await
    }

    /// Opens a connection over a pair of byte streams.
    ///
    /// # Errors
    /// No connection comes of it ([`Error::Connect`]).
    pub async fn connect<R, W>(self, reader: R, writer: W) -> Result<Client>
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        self.open((Reader(reader), Writer(writer))).await
    }

    /// Opens a connection over a socket. The server's first bytes decide on the framing for the whole
    /// connection; if they are no messages, as from an HTTP server, it ends.
    ///
    /// # Errors
    /// No connection comes of it ([`Error::Connect`]).
    pub async fn connect_socket<S>(mut self, socket: S) -> Result<Client>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        self.settings.socket = true;
        let (reader, writer) = tokio::io::split(socket);
        self.connect(reader, writer).await
    }

    /// Opens a connection over a transport that carries whole messages. Returns the transport's end of
    /// it, and the future that opens the connection while the transport delivers; see
    /// [`transport`](crate::transport).
    pub fn connect_messages(
        self,
    ) -> (MessagePipe, impl Future<Output = Result<Client>> + Send + 'static) {
        let (pipe, source, sink) = pipe(self.settings.limits.message);
        (pipe, self.open((source, sink)))
    }

    async fn open(self, streams: (impl Source + 'static, impl Sink + 'static)) -> Result<Client> {
        let settings = self.settings.settle();
        runtime("connecting")?;
        let mut handshake = Handshake::new(&settings, false, false);
        let state = SessionState::new(settings);
        let service = ClientService(state.clone());
        let session = Session::start(state, handshake.framing(), streams, None, service);
        handshake.begin();
        match handshake.run(&session).await {
            Ok(agreed) => Ok(Client::opened(session, agreed)),
            Err(Stopped::Failed(phase, fault)) => {
                let reason = reason(&session, fault, (None, None));
                let (stdout, stderr) = session.last_output();
                Err(ConnectError { phase, reason, stdout, stderr }.into())
            }
            // A pair of streams cannot be restarted, so the plan never asks for it.
            Err(Stopped::Restart(_) | Stopped::Second(..)) => {
                Err(session.lost(Method::Initialize.as_str().into()))
            }
        }
    }
}

impl Client {
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

    fn opened(session: Session, agreed: crate::mcp::Agreed) -> Self {
        let client = Self::new(session, agreed);
        client.0.watch_lists();
        client
    }
}

/// The runtime that the caller is in.
pub(super) fn runtime(during: &'static str) -> Result<Handle> {
    Handle::try_current().map_err(|error| {
        let error = Arc::new(std::io::Error::other(error));
        Error::Ended(Ending::Io { during, error })
    })
}

/// Starts a server and opens a connection to it.
pub(super) async fn spawn(settings: Arc<ClientSettings>, command: Command) -> Result<Client> {
    let opened = spawn_unless(settings, command, std::future::pending()).await?;
    // A future that never ends never stops it.
    opened.ok_or(Error::Ended(Ending::Closed))
}

/// The same, unless `stop` ends first.
async fn spawn_unless(
    settings: Arc<ClientSettings>,
    command: Command,
    stop: impl Future<Output = ()>,
) -> Result<Option<Client>> {
    // A second one beside a silent one would download the same at the same time.
    let runner = command.package_runner();
    let mut handshake = Handshake::new(&settings, true, runner.is_none());
    let mut session = start(&settings, &command, handshake.framing()).await?;
    handshake.begin();
    let mut second = Second::default();
    let mut stop = pin!(stop);
    loop {
        let both = second.run(handshake.run(&session));
        let Some(opened) = unless(stop.as_mut(), both).await else {
            end(&session).await;
            second.end().await;
            return Ok(None);
        };
        match opened {
            Either::Second((other, agreed)) => {
                end(&session).await;
                return Ok(Some(Client::opened(other, agreed)));
            }
            Either::First(Ok(agreed)) => {
                second.end().await;
                return Ok(Some(Client::opened(session, agreed)));
            }
            Either::First(Err(Stopped::Second(framing, at))) => {
                tracing::debug!(%framing, "starting another process beside the silent one");
                session.state.monitor.tell(&ClientEvent::StartingSecond { framing });
                second.start(&settings, &command, framing, at).await;
            }
            Either::First(Err(Stopped::Restart(framing))) => {
                tracing::debug!(%framing, "starting a fresh process");
                session.state.monitor.tell(&ClientEvent::Restarting { framing });
                end(&session).await;
                session = start(&settings, &command, framing).await?;
                handshake.begin();
            }
            Either::First(Err(Stopped::Failed(phase, fault))) => {
                let second = second.end().await;
                return Err(failed(&session, phase, fault, (second, runner)).await.into());
            }
        }
    }
}

/// What `work` comes to, or `None` if `stop` ends before it.
pub(super) async fn unless<T>(stop: impl Future, work: impl Future<Output = T>) -> Option<T> {
    match first(stop, work).await {
        Either::First(_) => None,
        Either::Second(value) => Some(value),
    }
}

/// Ends a server that could not be connected to, and makes the error that says why.
async fn failed(
    session: &Session,
    phase: ConnectPhase,
    fault: ConnectFault,
    silence: (Option<SecondProcess>, Option<&'static str>),
) -> ConnectError {
    // Before the process is ended; the end of stderr comes after that.
    let mut reason = reason(session, fault, silence);
    end(session).await;
    if let ConnectReason::Silent { after, .. } = reason {
        // A server that does not flush writes what it holds back when it ends. That is read first.
        let _ = tokio::time::timeout(GIVEN_UP, session.over()).await;
        let seen = session.state.monitor.diagnostics();
        if seen.bytes > 0 && seen.invalid_messages == 0 {
            reason = ConnectReason::Unflushed { after };
        }
    }
    if let ConnectReason::NoAnswer { after, stray: None } = reason {
        reason = unfinished(session, after).await.unwrap_or(reason);
    }
    let (stdout, stderr) = session.last_output();
    ConnectError { phase, reason, stdout, stderr }
}

/// What a server said that announced more than it sent: that is seen when its output ends.
async fn unfinished(session: &Session, after: Duration) -> Option<ConnectReason> {
    let _ = tokio::time::timeout(GIVEN_UP, session.over()).await;
    let seen = session.state.monitor.diagnostics();
    let InvalidMessage { fault, excerpt: first, .. } = seen.first_invalid?;
    let lines = seen.invalid_messages;
    matches!(fault, Fault::Length | Fault::Header).then_some(ConnectReason::NotJson {
        after,
        lines,
        fault,
        first,
    })
}

/// Starts a process and the loop that speaks to it.
async fn start(
    settings: &Arc<ClientSettings>,
    command: &Command,
    framing: Framing,
) -> Result<Session> {
    let state = SessionState::new(settings.clone());
    let StartedChild { child, stdout, stdin, stdin_closed } =
        Child::spawn(command, settings.child.clone(), state.monitor.clone()).await?;
    state.monitor.tell(&ClientEvent::ProcessStarted { pid: child.pid() });
    let service = ClientService(state.clone());
    let child = Some((child, stdin_closed));
    Ok(Session::start(state, framing, (stdout, stdin), child, service))
}

/// Ends a server that is not used: stdin closed, a moment, SIGTERM, time to clean up, SIGKILL.
async fn end(session: &Session) {
    let grace = session.state.settings.grace;
    // A package manager that is killed in the middle of a download leaves its lock behind.
    let grace = GracePeriods { after_eof: GIVEN_UP, ..grace };
    session.link.close(Close::Politely);
    if let Some(child) = &session.child {
        child.end(grace).await;
    }
}

/// Why it failed, with what was seen meanwhile.
fn reason(
    session: &Session,
    fault: ConnectFault,
    (second, package_runner): (Option<SecondProcess>, Option<&'static str>),
) -> ConnectReason {
    let seen = session.state.monitor.diagnostics();
    match fault {
        ConnectFault::Exited => match (session.exit(), session.link.ending()) {
            (Some(exit), _) => ConnectReason::Exited(exit),
            (None, Some(failed @ Ending::Io { .. })) => ConnectReason::Failed(failed),
            (None, _) => ConnectReason::Closed,
        },
        ConnectFault::Silent { after } => match seen.first_invalid {
            Some(invalid) => {
                let (fault, first) = (invalid.fault, invalid.excerpt);
                ConnectReason::NotJson { after, lines: seen.invalid_messages, fault, first }
            }
            None if seen.bytes > 0 => ConnectReason::NoAnswer { after, stray: seen.first_unknown },
            None => ConnectReason::Silent { after, second, package_runner },
        },
        ConnectFault::Echo => ConnectReason::Echo,
        ConnectFault::Refused(error) => ConnectReason::Refused(error),
        ConnectFault::Malformed(what) => ConnectReason::Malformed(what),
        ConnectFault::Version(version) => ConnectReason::Version(version),
        ConnectFault::NoCommonVersion(versions) => ConnectReason::NoCommonVersion(versions),
    }
}
