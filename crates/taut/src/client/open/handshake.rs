//! One process, or one pair of streams, asked until both sides agree.
//!
//! Knows how to ask and to wait. Must not decide anything about eras or versions (`mcp/connect.rs`
//! does), nor start or end a process (`open/mod.rs` does).

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;

use crate::client::connection::{ClientSettings, RequestEnvelope, Session};
use crate::client::state::ClientEvent;
use crate::driver::{PendingCall, now};
use crate::error::{ConnectPhase, Result};
use crate::mcp::{
    Agreed, Connect, ConnectAction, ConnectFault, Discovered, Era, InitializeParams, Initialized,
    Method, Plan, Revision, WriteJson,
};
use crate::rpc::Failure;
use crate::wire::Framing;

/// Why the asking has stopped.
pub(super) enum Stopped {
    /// This process will not do; another is wanted.
    Restart(Framing),
    /// Another is wanted beside this one, which is asked on.
    Second(Framing, Duration),
    Failed(ConnectPhase, ConnectFault),
}

/// What a process did while it was being spoken to.
enum Happened {
    Discover(Result<Discovered, ConnectFault>),
    Initialize(Result<Initialized, ConnectFault>),
    Ended,
    Echo,
    Time,
}

/// An answer that is being waited for; `None` if the connection ended first.
type Awaited<T> = Option<PendingCall<Option<Result<T, ConnectFault>>>>;

pub(super) struct Handshake {
    connect: Connect,
    settings: Arc<ClientSettings>,
    phase: ConnectPhase,
    discover: Awaited<Discovered>,
    initialize: Awaited<Initialized>,
}

impl Handshake {
    /// For a process that may be `restartable`, and that may get a `second` one beside it, which is
    /// spoken to in the other framing; or for a pair of streams, which can be neither.
    pub(super) fn new(settings: &Arc<ClientSettings>, restartable: bool, second: bool) -> Self {
        let framing = settings.framing.or_else(|| (!second).then_some(Framing::Lines));
        Self::of(settings, Plan { framing, restartable, ..plan(settings) })
    }

    /// One for a process that is asked beside another: in this framing, at once to shake hands, and for
    /// no longer than the other has left.
    pub(super) fn second(settings: &Arc<ClientSettings>, framing: Framing, left: Duration) -> Self {
        let (known, framing) = (Some(Era::Legacy), Some(framing));
        Self::of(settings, Plan { known, framing, start: left, ..plan(settings) })
    }

    fn of(settings: &Arc<ClientSettings>, plan: Plan) -> Self {
        Self {
            connect: Connect::new(plan),
            settings: settings.clone(),
            phase: ConnectPhase::Probe,
            discover: None,
            initialize: None,
        }
    }

    pub(super) fn framing(&self) -> Framing {
        self.connect.framing()
    }

    /// Begins to speak to a process.
    pub(super) fn begin(&mut self) {
        (self.discover, self.initialize) = (None, None);
        self.connect.handle_started(now());
    }

    /// Speaks to the process until both sides agree, until it cannot be used, or until the caller has to act
    /// first: see [`Stopped`].
    pub(super) async fn run(&mut self, session: &Session) -> Result<Agreed, Stopped> {
        loop {
            while let Some(action) = self.connect.poll_action() {
                match action {
                    ConnectAction::Discover(revision) => {
                        self.asking(session, ConnectPhase::Probe, revision);
                        self.discover = self.discover(session, revision);
                    }
                    ConnectAction::Initialize(revision) => {
                        self.asking(session, ConnectPhase::Handshake, revision);
                        self.initialize = self.initialize(session, revision);
                    }
                    // A proxy passes on what its own client says.
                    ConnectAction::Confirm if self.settings.relay.is_some() => {}
                    ConnectAction::Confirm => {
                        // LIF-08. If it is gone by now, the first request says so.
                        let _ = session.link.notify(None, Method::Initialized.as_str(), None);
                    }
                    ConnectAction::Restart(framing) => return Err(Stopped::Restart(framing)),
                    ConnectAction::Beside(framing, at) => return Err(Stopped::Second(framing, at)),
                    ConnectAction::Done(agreed) => {
                        settle(session, agreed.revision);
                        return Ok(*agreed);
                    }
                    ConnectAction::Fail(fault) => return Err(Stopped::Failed(self.phase, fault)),
                }
            }
            let due = self.connect.poll_timeout();
            let happened = next(session, &mut self.discover, &mut self.initialize, due).await;
            if session.state.monitor.heard_any() {
                self.connect.handle_heard();
            }
            self.handle(session, happened);
        }
    }

    fn handle(&mut self, session: &Session, happened: Happened) {
        match happened {
            Happened::Discover(answer) => {
                told(session, ConnectPhase::Probe, answer.as_ref().err());
                self.connect.handle_discover(now(), answer);
            }
            Happened::Initialize(answer) => {
                told(session, ConnectPhase::Handshake, answer.as_ref().err());
                self.connect.handle_initialize(now(), answer);
            }
            Happened::Ended => {
                let has_read = !session.state.monitor.read_nothing();
                if !has_read {
                    // It has not heard of the probe, so nobody need.
                    self.phase = ConnectPhase::Handshake;
                }
                self.connect.handle_exit(has_read);
            }
            Happened::Echo => self.connect.handle_echo(),
            Happened::Time => {
                self.connect.handle_time(now(), session.state.monitor.read_nothing());
            }
        }
    }

    fn asking(&mut self, session: &Session, phase: ConnectPhase, revision: Revision) {
        self.phase = phase;
        session.state.monitor.tell(&ClientEvent::OpeningSent { phase, revision });
    }

    fn discover(&self, session: &Session, revision: Revision) -> Awaited<Discovered> {
        let RequestEnvelope(meta) = RequestEnvelope::new(&self.settings, revision);
        let params = RawValue::from_string(format!("{{\"_meta\":{{{meta}}}}}")).ok();
        ask(session, Method::Discover, params, Discovered::read)
    }

    fn initialize(&self, session: &Session, revision: Revision) -> Awaited<Initialized> {
        let relayed = self.settings.relay.as_ref().and_then(|relayed| relayed.initialize.as_ref());
        if let Some((_, params)) = relayed.filter(|(offer, _)| *offer == revision) {
            let params = Some(params.raw().to_owned());
            return ask(session, Method::Initialize, params, Initialized::read);
        }
        let params = InitializeParams::new(
            revision.as_str(),
            self.settings.capabilities.clone(),
            self.settings.info.clone(),
        );
        let params = serde_json::value::to_raw_value(&params.at(revision)).ok();
        ask(session, Method::Initialize, params, Initialized::read)
    }
}

/// What the settings say about the opening.
fn plan(settings: &ClientSettings) -> Plan {
    let relayed = settings.relay.as_ref().and_then(|relayed| relayed.initialize.as_ref());
    Plan {
        pin: settings.revision,
        known: settings.known,
        only_legacy: settings.only_legacy,
        // What a proxy's own client offers.
        offer: relayed.map(|(offer, _)| *offer),
        framing: settings.framing,
        probe: settings.probe,
        start: settings.start,
        restartable: false,
    }
}

/// An answer came, whatever it says.
fn told(session: &Session, phase: ConnectPhase, fault: Option<&ConnectFault>) {
    let error = match fault {
        Some(ConnectFault::Refused(error)) => Some(error),
        _ => None,
    };
    session.state.monitor.tell(&ClientEvent::OpeningAnswered { phase, error });
}

/// Sends one of the two opening requests. It has no deadline of its own: `mcp/connect.rs` has.
fn ask<T: Send + 'static>(
    session: &Session,
    method: Method,
    params: Option<Box<RawValue>>,
    read: fn(&RawValue) -> Result<T, ConnectFault>,
) -> Awaited<T> {
    let read = move |outcome: Result<&RawValue, Failure>| match outcome {
        Ok(raw) => Some(read(raw)),
        Err(Failure::Refused(error)) => Some(Err(ConnectFault::Refused(error))),
        Err(Failure::Violation(fault)) => Some(Err(ConnectFault::Malformed(fault.to_string()))),
        Err(_) => None,
    };
    // A connection that has ended says so by itself.
    session.link.call(None, method.as_str(), |_| params, None, None, read).ok()
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
    let mut echo = pin!(session.state.monitor.echo.raised());
    let mut ended = pin!(session.link.ended());
    std::future::poll_fn(|cx| {
        // Checked first, because what an echo sends back is not an answer.
        if echo.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Happened::Echo);
        }
        if let Some(answer) = poll_answer(discover, cx) {
            return Poll::Ready(Happened::Discover(answer));
        }
        if let Some(answer) = poll_answer(initialize, cx) {
            return Poll::Ready(Happened::Initialize(answer));
        }
        if ended.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Happened::Ended);
        }
        time.as_mut().poll(cx).map(|()| Happened::Time)
    })
    .await
}

fn poll_answer<T>(
    awaited: &mut Awaited<T>,
    cx: &mut Context<'_>,
) -> Option<Result<T, ConnectFault>> {
    let Poll::Ready(answer) = Pin::new(awaited.as_mut()?).poll(cx) else { return None };
    *awaited = None;
    answer.flatten()
}

/// From here on the connection follows the rules of `revision`.
fn settle(session: &Session, revision: Revision) {
    let _ = session.state.revision.set(revision);
    // RPC-22, RPC-26
    session.link.allow_batches(revision.has_batches());
}
