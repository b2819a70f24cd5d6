//! Opening a connection: does what `mcp/connect.rs` decides.
//!
//! Knows how to start, ask, wait and start again. Must not decide anything about eras or versions.
//! A failed opening leaves nothing behind, nor does one that is dropped half-way (P4, P19).

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use super::Client;
use super::beside::{Beside, Came};
use super::notice::{ClientEvent, Notices};
use super::opening::{Opening, Stopped};
use super::session::{Session, Wire};
use super::settings::Settings;
use crate::driver::Close;
use crate::ending::Ending;
use crate::error::{ConnectError, ConnectPhase, ConnectReason, Error, Result, SecondTry};
use crate::mcp::{ConnectFault, Method};
use crate::process::{Child, Command, Grace, Options, Started};
use crate::stream::{Reader, Writer};
use crate::wire::Framing;

/// How long a server that is given up may take to leave by itself, and then after SIGTERM. Short:
/// somebody waits for the error.
pub(super) const FAREWELL: Duration = Duration::from_millis(250);

/// The same for one whose start was stopped. Longer: it has done nothing wrong.
const STOPPED: Duration = Duration::from_secs(1);

/// Starts a server and opens a connection to it.
pub(super) async fn spawn(settings: Arc<Settings>, command: Command) -> Result<Client> {
    let opened = spawn_unless(settings, command, std::future::pending()).await?;
    // What never ends never stops it.
    opened.ok_or(Error::Ended(Ending::Closed))
}

/// The same, unless `stop` ends first.
pub(super) async fn spawn_unless(
    settings: Arc<Settings>,
    command: Command,
    stop: impl Future<Output = ()>,
) -> Result<Option<Client>> {
    let mut opening = Opening::new(&settings, true);
    let mut session = start(&settings, &command, opening.framing()).await?;
    opening.begin();
    let mut beside = Beside::default();
    let mut stop = pin!(stop);
    loop {
        let both = beside.run(opening.run(&session));
        let Some(opened) = unless(stop.as_mut(), both).await else {
            farewell(&session, STOPPED).await;
            beside.farewell(STOPPED).await;
            return Ok(None);
        };
        match opened {
            Came::Beside(other, agreed) => {
                farewell(&session, FAREWELL).await;
                return Ok(Some(Client::new(settings, other, agreed)));
            }
            Came::First(Ok(agreed)) => {
                beside.farewell(FAREWELL).await;
                return Ok(Some(Client::new(settings, session, agreed)));
            }
            Came::First(Err(Stopped::Beside(framing, at))) => {
                tracing::debug!(%framing, "starting another process beside the silent one");
                session.notices.tell(&ClientEvent::StartingBeside { framing });
                beside.start(&settings, &command, framing, at).await;
            }
            Came::First(Err(Stopped::Restart(framing))) => {
                tracing::debug!(%framing, "starting a fresh process");
                session.notices.tell(&ClientEvent::Restarting { framing });
                farewell(&session, FAREWELL).await;
                session = start(&settings, &command, framing).await?;
                opening.begin();
            }
            Came::First(Err(Stopped::Failed(phase, fault))) => {
                let second = beside.farewell(FAREWELL).await;
                return Err(failed(&session, phase, fault, second).await.into());
            }
        }
    }
}

/// Lets a server go that did not do, and says why it did not.
async fn failed(
    session: &Session,
    phase: ConnectPhase,
    fault: ConnectFault,
    second: Option<SecondTry>,
) -> ConnectError {
    // Before the farewell, which ends what may still run; the last words come after it.
    let mut reason = reason(session, fault, second);
    farewell(session, FAREWELL).await;
    if let ConnectReason::Silent { after, .. } = reason {
        // What it holds back leaves with it, and has to be read first.
        let _ = tokio::time::timeout(FAREWELL, session.over()).await;
        let seen = session.notices.diagnostics();
        if seen.bytes > 0 && seen.junk == 0 {
            reason = ConnectReason::Unflushed { after };
        }
    }
    ConnectError::new(phase, reason, session.stderr())
}

/// What the work comes to, unless it is to stop first.
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
        notices: Arc::new(Notices::new(settings.on_event.clone())),
    };
    let session = Session::start(&settings, opening.framing(), wire, std::future::pending());
    opening.begin();
    match opening.run(&session).await {
        Ok(agreed) => Ok(Client::new(settings, session, agreed)),
        Err(Stopped::Failed(phase, fault)) => {
            let reason = reason(&session, fault, None);
            Err(ConnectError::new(phase, reason, String::new()).into())
        }
        // Not restartable, so this is never asked for.
        Err(Stopped::Restart(_) | Stopped::Beside(..)) => {
            Err(session.lost(Method::Initialize.as_str().into()))
        }
    }
}

pub(super) async fn start(
    settings: &Arc<Settings>,
    command: &Command,
    framing: Framing,
) -> Result<Session> {
    let options = Options {
        tail_limit: settings.stderr_tail,
        on_stderr: settings.on_stderr.clone(),
        leave_group: settings.leave_group,
        #[cfg(test)]
        #[cfg(unix)]
        wait_in_thread: false,
    };
    let notices = Arc::new(Notices::new(settings.on_event.clone()));
    let Started { child, stdout, stdin, mut stdin_closed } =
        Child::spawn(command, options, notices.clone()).await?;
    notices.tell(&ClientEvent::Started { pid: child.pid() });
    let wire = Wire { source: stdout, sink: stdin, child: Some(child), notices };
    // An error is what is waited for: the sender is gone, and stdin with it.
    let closed = async move { drop(stdin_closed.changed().await) };
    Ok(Session::start(settings, framing, wire, closed))
}

/// Lets a server go that is of no use: EOF, a moment, TERM, a moment, KILL.
pub(super) async fn farewell(session: &Session, wait: Duration) {
    let grace = Grace { after_eof: wait, after_term: wait, ..Grace::default() };
    session.link.close(Close::Politely);
    if let Some(child) = &session.child {
        child.end(grace).await;
    }
}

/// Why it failed, with what was seen meanwhile.
fn reason(session: &Session, fault: ConnectFault, second: Option<SecondTry>) -> ConnectReason {
    let seen = session.notices.diagnostics();
    match fault {
        ConnectFault::Exited => session.exit().map_or(ConnectReason::Closed, ConnectReason::Exited),
        ConnectFault::Silent { after } => match seen.first_junk {
            Some(junk) => {
                let (fault, first) = (junk.fault, junk.excerpt);
                ConnectReason::NotJson { after, lines: seen.junk, fault, first }
            }
            None if seen.bytes > 0 => ConnectReason::NoAnswer { after, stray: seen.first_unknown },
            None => ConnectReason::Silent { after, second },
        },
        ConnectFault::Echo => ConnectReason::Echo,
        ConnectFault::Refused(error) => ConnectReason::Refused(error),
        ConnectFault::Malformed(what) => ConnectReason::Malformed(what),
        ConnectFault::Version(version) => ConnectReason::Version(version),
        ConnectFault::NoCommonVersion(versions) => ConnectReason::NoCommonVersion(versions),
    }
}
