//! Opening a connection: does what `mcp/connect.rs` decides.
//!
//! Knows how to start, ask, wait and start again. Must not decide anything about eras or versions.
//! A failed opening leaves nothing behind, nor does one that is dropped half-way (P4, P19).

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};

use super::Client;
use super::command::Command;
use super::envelope::Envelope;
use super::ladder::Grace;
use super::notice::{ClientEvent, Notices};
use super::session::{Session, Wire};
use super::settings::Settings;
use crate::driver::{Close, PendingCall, Token};
use crate::ending::Ending;
use crate::error::{ConnectError, ConnectPhase, ConnectReason, Error, Result};
use crate::mcp::{
    Action, Agreed, Connect, Discovered, Fault, InitializeParams, Initialized, Method, Plan,
    Revision, SerializeAt,
};
use crate::rpc::Failure;
use crate::stream::{Reader, Writer};
use crate::wire::Framing;

/// How long a server that is given up may take to leave by itself, and then after SIGTERM. Short:
/// somebody waits for the error.
const FAREWELL: Duration = Duration::from_millis(250);

/// The same for one whose start was stopped. Longer: it has done nothing wrong.
#[cfg(unix)]
const STOPPED: Duration = Duration::from_secs(1);

/// Starts a server and opens a connection to it.
pub(super) async fn spawn(settings: Arc<Settings>, command: Command) -> Result<Client> {
    let opened = spawn_unless(settings, command, std::future::pending()).await?;
    // What never ends never stops it.
    opened.ok_or(Error::Ended(Ending::Closed))
}

/// The same, unless `stop` ends first.
#[cfg(unix)]
pub(super) async fn spawn_unless(
    settings: Arc<Settings>,
    command: Command,
    stop: impl Future<Output = ()>,
) -> Result<Option<Client>> {
    let mut opening = Opening::new(&settings, true);
    let mut session = start(&settings, &command, opening.connect.framing()).await?;
    let mut stop = pin!(stop);
    loop {
        let Some(opened) = unless(stop.as_mut(), opening.run(&session)).await else {
            farewell(&session, STOPPED).await;
            return Ok(None);
        };
        match opened {
            Ok(agreed) => return Ok(Some(Client::new(settings, session, agreed))),
            Err(Stopped::Restart(framing)) => {
                tracing::debug!(%framing, "starting a fresh process");
                session.notices.tell(&ClientEvent::Restarting { framing });
                farewell(&session, FAREWELL).await;
                session = start(&settings, &command, framing).await?;
            }
            Err(Stopped::Failed(phase, fault)) => {
                // Before the farewell, which ends what may still run; the last words come after it.
                let reason = reason(&session, fault, opening.both_framings());
                farewell(&session, FAREWELL).await;
                return Err(ConnectError::new(phase, reason, session.stderr()).into());
            }
        }
    }
}

/// What the work comes to, unless it is to stop first.
#[cfg(unix)]
async fn unless<T>(
    mut stop: Pin<&mut impl Future<Output = ()>>,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = pin!(work);
    std::future::poll_fn(|cx| match stop.as_mut().poll(cx) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => work.as_mut().poll(cx).map(Some),
    })
    .await
}

#[cfg(not(unix))]
pub(super) async fn spawn_unless(
    _: Arc<Settings>,
    command: Command,
    _: impl Future<Output = ()>,
) -> Result<Option<Client>> {
    let source = std::io::ErrorKind::Unsupported.into();
    Err(crate::error::SpawnError::Io { program: command.program().to_owned(), source }.into())
}

/// Opens a connection over a pair of streams.
pub(super) async fn connect<R, W>(settings: Arc<Settings>, reader: R, writer: W) -> Result<Client>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    if let Err(error) = tokio::runtime::Handle::try_current() {
        let error = Arc::new(std::io::Error::other(error));
        return Err(Error::Ended(Ending::Io { during: "connecting", error }));
    }
    let mut opening = Opening::new(&settings, false);
    let wire = Wire {
        source: Reader(reader),
        sink: Writer(writer),
        child: None,
        sink_closed: Token::default(),
        notices: Arc::new(Notices::new(settings.on_event.clone())),
    };
    let session = Session::start(&settings, opening.connect.framing(), wire);
    match opening.run(&session).await {
        Ok(agreed) => Ok(Client::new(settings, session, agreed)),
        Err(Stopped::Failed(phase, fault)) => {
            let reason = reason(&session, fault, false);
            Err(ConnectError::new(phase, reason, String::new()).into())
        }
        // Not restartable, so this is never asked for.
        Err(Stopped::Restart(_)) => Err(session.lost(Method::Initialize.as_str().into())),
    }
}

#[cfg(unix)]
async fn start(settings: &Arc<Settings>, command: &Command, framing: Framing) -> Result<Session> {
    use super::child::{Child, Options};
    use super::ends::{Ear, Mouth};

    let options = Options {
        tail_limit: settings.stderr_tail,
        on_stderr: settings.on_stderr.clone(),
        leave_group: settings.leave_group,
        #[cfg(test)]
        wait_in_thread: false,
    };
    let (child, stdout, stdin) = Child::spawn(command, options).await?;
    let notices = Arc::new(Notices::new(settings.on_event.clone()));
    notices.tell(&ClientEvent::Started { pid: child.pid() });
    let (deaf, sink_closed) = (Token::default(), Token::default());
    let exited = child.exited();
    let exited = async move {
        exited.await;
    };
    let wire = Wire {
        source: Ear::new(stdout, exited, deaf.clone(), notices.clone()),
        sink: Mouth::new(stdin, deaf, sink_closed.clone()),
        child: Some(child),
        sink_closed,
        notices,
    };
    Ok(Session::start(settings, framing, wire))
}

/// Lets a server go that is of no use: EOF, a moment, TERM, a moment, KILL.
async fn farewell(session: &Session, wait: Duration) {
    let grace = Grace { after_eof: wait, after_term: wait, ..Grace::default() };
    session.link.close(Close::Politely);
    if let Some(child) = &session.child {
        child.end(grace).await;
    }
}

/// Why it failed, with what was seen meanwhile.
fn reason(session: &Session, fault: Fault, both_framings: bool) -> ConnectReason {
    let seen = session.notices.diagnostics();
    match fault {
        Fault::Exited => session.exit().map_or(ConnectReason::Closed, ConnectReason::Exited),
        Fault::Silent { after } => match seen.first_junk {
            Some(junk) => {
                let (fault, first) = (junk.fault, junk.excerpt);
                ConnectReason::NotJson { after, lines: seen.junk, fault, first }
            }
            None if seen.bytes > 0 => ConnectReason::NoAnswer { after },
            None => ConnectReason::Silent { after, both_framings },
        },
        Fault::Echo => ConnectReason::Echo,
        Fault::Refused(error) => ConnectReason::Refused(error),
        Fault::Malformed(what) => ConnectReason::Malformed(what),
        Fault::Version(version) => ConnectReason::Version(version),
        Fault::NoCommonVersion(versions) => ConnectReason::NoCommonVersion(versions),
    }
}

/// Why one process did not do.
enum Stopped {
    Restart(Framing),
    Failed(ConnectPhase, Fault),
}

/// What a process did while it was being spoken to.
enum Happened {
    Discover(Result<Discovered, Fault>),
    Initialize(Result<Initialized, Fault>),
    Ended,
    Echo,
    Time,
}

/// An answer that is being waited for; nothing if the connection ended first.
type Awaited<T> = Option<PendingCall<Option<Result<T, Fault>>>>;

struct Opening {
    connect: Connect,
    settings: Arc<Settings>,
    tried: Vec<Framing>,
}

impl Opening {
    fn new(settings: &Arc<Settings>, restartable: bool) -> Self {
        let plan = Plan {
            pin: settings.revision,
            known: settings.known,
            framing: settings.framing,
            probe: settings.probe,
            start: settings.start,
            restartable,
        };
        Self { connect: Connect::new(plan), settings: settings.clone(), tried: Vec::new() }
    }

    fn both_framings(&self) -> bool {
        self.tried.windows(2).any(|pair| pair[0] != pair[1])
    }

    /// Speaks to one process until it agrees or is of no use.
    async fn run(&mut self, session: &Session) -> Result<Agreed, Stopped> {
        let (mut discover, mut initialize): (Awaited<_>, Awaited<_>) = (None, None);
        self.tried.push(self.connect.framing());
        self.connect.handle_started(now());
        let mut phase = ConnectPhase::Probe;
        loop {
            while let Some(action) = self.connect.poll_action() {
                match action {
                    Action::Discover(revision) => {
                        phase = ConnectPhase::Probe;
                        session.notices.tell(&ClientEvent::Asking { phase, revision });
                        discover = self.discover(session, revision);
                    }
                    Action::Initialize(revision) => {
                        phase = ConnectPhase::Handshake;
                        session.notices.tell(&ClientEvent::Asking { phase, revision });
                        initialize = self.initialize(session, revision);
                    }
                    Action::Confirm => {
                        // LIF-08. If it is gone by now, the first request says so.
                        let _ = session.link.notify(Method::Initialized.as_str(), None);
                    }
                    Action::Restart(framing) => return Err(Stopped::Restart(framing)),
                    Action::Done(agreed) => {
                        settle(session, agreed.revision);
                        return Ok(*agreed);
                    }
                    Action::Fail(fault) => return Err(Stopped::Failed(phase, fault)),
                }
            }
            let due = self.connect.poll_timeout();
            let happened = next(session, &mut discover, &mut initialize, due).await;
            if session.notices.heard_any() {
                self.connect.handle_heard();
            }
            match happened {
                Happened::Discover(answer) => {
                    told(session, ConnectPhase::Probe, answer.as_ref().err());
                    self.connect.handle_discover(now(), answer);
                }
                Happened::Initialize(answer) => {
                    told(session, ConnectPhase::Handshake, answer.as_ref().err());
                    self.connect.handle_initialize(now(), answer);
                }
                Happened::Ended => self.connect.handle_exit(),
                Happened::Echo => self.connect.handle_echo(),
                Happened::Time => self.connect.handle_time(now()),
            }
        }
    }

    fn discover(&self, session: &Session, revision: Revision) -> Awaited<Discovered> {
        let params = Envelope::new(&self.settings, revision).alone();
        ask(session, Method::Discover, params, Discovered::read)
    }

    fn initialize(&self, session: &Session, revision: Revision) -> Awaited<Initialized> {
        let params = InitializeParams::new(
            revision.as_str(),
            self.settings.capabilities.clone(),
            self.settings.info.clone(),
        );
        let params = serde_json::value::to_raw_value(&params.at(revision)).ok();
        ask(session, Method::Initialize, params, Initialized::read)
    }
}

/// An answer came, whatever it says.
fn told(session: &Session, phase: ConnectPhase, fault: Option<&Fault>) {
    let error = match fault {
        Some(Fault::Refused(error)) => Some(error),
        _ => None,
    };
    session.notices.tell(&ClientEvent::Answered { phase, error });
}

/// Sends one of the two opening requests. It has no deadline of its own: `mcp/connect.rs` has.
fn ask<T: Send + 'static>(
    session: &Session,
    method: Method,
    params: Option<Box<RawValue>>,
    read: fn(&RawValue) -> Result<T, Fault>,
) -> Awaited<T> {
    let read = move |outcome: Result<&RawValue, Failure>| match outcome {
        Ok(raw) => Some(read(raw)),
        Err(Failure::Refused(error)) => Some(Err(Fault::Refused(error))),
        Err(Failure::Violation(fault)) => Some(Err(Fault::Malformed(fault.to_string()))),
        Err(_) => None,
    };
    // A connection that has ended says so by itself.
    session.link.call(method.as_str(), |_| params, None, None, read).ok()
}

/// Waits for the next thing to happen.
async fn next(
    session: &Session,
    discover: &mut Awaited<Discovered>,
    initialize: &mut Awaited<Initialized>,
    due: Option<Instant>,
) -> Happened {
    let mut time = pin!(async {
        match due {
            Some(due) => tokio::time::sleep_until(due.into()).await,
            None => std::future::pending().await,
        }
    });
    std::future::poll_fn(|cx| {
        // First: what an echo answers is not an answer.
        if session.notices.echo.poll_raised(cx).is_ready() {
            return Poll::Ready(Happened::Echo);
        }
        if let Some(answer) = poll_answer(discover, cx) {
            return Poll::Ready(Happened::Discover(answer));
        }
        if let Some(answer) = poll_answer(initialize, cx) {
            return Poll::Ready(Happened::Initialize(answer));
        }
        if session.link.poll_ended(cx).is_ready() {
            return Poll::Ready(Happened::Ended);
        }
        time.as_mut().poll(cx).map(|()| Happened::Time)
    })
    .await
}

fn poll_answer<T>(awaited: &mut Awaited<T>, cx: &mut Context<'_>) -> Option<Result<T, Fault>> {
    let Poll::Ready(answer) = Pin::new(awaited.as_mut()?).poll(cx) else { return None };
    *awaited = None;
    answer.flatten()
}

/// From here on the connection follows the rules of `revision`.
fn settle(session: &Session, revision: Revision) {
    let _ = session.revision.set(revision);
    // RPC-22, RPC-26
    session.link.lock().peer.allow_batches(revision.has_batches());
}

/// The time, as timers see it: a test may have stopped it.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
