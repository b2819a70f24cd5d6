//! A server that is kept alive: started, watched, started again, given up.
//!
//! Must not know when to restart (`policy.rs`), how a connection is opened (`open`) or what is called on
//! it (`handle.rs`). P21, P23, STD-20, SUB-08.

mod handle;
mod policy;

use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::sync::watch;

use super::connection::{Client, ClientBuilder, ClientSettings, ClientShared};
use super::open::{self, unless};
use crate::driver::{Flag, isolated, now};
use crate::ending::Ending;
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::mcp::{Method, Revision};
use crate::process::{Command, GracePeriods, SpawnError};
use handle::RenewedStream;
use policy::HealthCheck;

pub use handle::SupervisedCall;
pub(crate) use policy::Backoff;
pub use policy::RestartPolicy;

/// What happens to a supervised server.
#[derive(Debug)]
#[non_exhaustive]
pub enum SupervisorEvent<'a> {
    /// It is being started.
    Started,
    /// It can be called.
    Ready {
        /// Its process id.
        pid: Option<u32>,
        /// The revision that was agreed on.
        revision: Revision,
    },
    /// It has ended, or could not be started.
    Lost {
        /// The reason.
        why: &'a Error,
    },
    /// It will be started again.
    Restarting {
        /// The delay before that.
        after: Duration,
    },
    /// It will not be started again.
    GaveUp {
        /// The reason: [`Error::GaveUp`].
        why: &'a Error,
    },
}

impl fmt::Display for SupervisorEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started => f.write_str("started"),
            Self::Ready { pid: Some(pid), revision } => write!(f, "ready: {pid}, {revision}"),
            Self::Ready { pid: None, revision } => write!(f, "ready: {revision}"),
            Self::Lost { why } => write!(f, "lost: {why}"),
            Self::Restarting { after } => write!(f, "restarting in {after:?}"),
            Self::GaveUp { why } => write!(f, "gave up: {why}"),
        }
    }
}

/// A server that is started again when it dies: [`ClientBuilder::supervise`]. Clones are the same
/// server; when the last is dropped without [`close`](Self::close), its process is killed at once.
#[derive(Clone)]
pub struct SupervisedClient(Arc<Core>);

/// What the clones share. The task that watches does not keep it alive.
struct Core {
    state: watch::Sender<SupervisorState>,
    stop: Flag,
    policy: RestartPolicy,
    streams: Mutex<Vec<Weak<RenewedStream>>>,
}

enum SupervisorState {
    Waiting,
    Ready(Client),
    Over(Error),
}

impl Drop for Core {
    fn drop(&mut self) {
        self.stop.raise();
    }
}

impl ClientBuilder {
    /// Starts a server and keeps it alive. Returns at once; that a server cannot be started is the error
    /// of the first call.
    ///
    /// # Errors
    /// There is no tokio runtime here.
    pub fn supervise(self, command: Command, policy: RestartPolicy) -> Result<SupervisedClient> {
        let runtime = open::runtime("starting")?;
        let core = Arc::new(Core {
            state: watch::Sender::new(SupervisorState::Waiting),
            stop: Flag::default(),
            policy: policy.clone(),
            streams: Mutex::default(),
        });
        let supervisor = Supervisor {
            core: Arc::downgrade(&core),
            stop: core.stop.clone(),
            settings: self.settings.settle(),
            command,
            policy,
        };
        runtime.spawn(supervisor.run());
        Ok(SupervisedClient(core))
    }
}

impl SupervisedClient {
    /// The connection as it is now. Waits while the server is being started.
    ///
    /// The client that is returned dies with its process; ask again for the next.
    ///
    /// # Errors
    /// The server was given up ([`Error::GaveUp`]), or this was closed.
    pub async fn client(&self) -> Result<Client> {
        let mut state = self.0.state.subscribe();
        loop {
            match &*state.borrow_and_update() {
                // One that has just died is not handed out, although the state does not say so yet.
                SupervisorState::Ready(client) if client.0.session.is_up() => {
                    return Ok(client.clone());
                }
                SupervisorState::Over(why) => return Err(why.clone()),
                SupervisorState::Ready(_) | SupervisorState::Waiting => {}
            }
            if state.changed().await.is_err() {
                return Err(Error::Ended(Ending::Closed));
            }
        }
    }

    /// The process as it is now, if there is one.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        match &*self.0.state.borrow() {
            SupervisorState::Ready(client) => client.pid(),
            _ => None,
        }
    }

    /// Closes the connection, and does not open it again.
    ///
    /// # Errors
    /// The process has not ended, not even after SIGKILL.
    pub async fn close(&self) -> Result<()> {
        self.0.stop.raise();
        let before = self.0.state.send_replace(SupervisorState::Over(Error::Ended(Ending::Closed)));
        self.0.end_streams();
        match before {
            SupervisorState::Ready(client) => client.close().await.map(drop),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for SupervisedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SupervisedClient").field("pid", &self.pid()).finish_non_exhaustive()
    }
}

impl Core {
    /// Why the server was given up, if it was.
    fn over(&self) -> Option<Error> {
        match &*self.state.borrow() {
            SupervisorState::Over(Error::Ended(Ending::Closed)) => None,
            SupervisorState::Over(why) => Some(why.clone()),
            _ => None,
        }
    }

    /// Changes the state, unless it is the last one.
    fn set_state(&self, next: SupervisorState) {
        self.state.send_if_modified(|state| {
            let open = !matches!(state, SupervisorState::Over(_));
            if open {
                *state = next;
            }
            open
        });
    }

    fn end_streams(&self) {
        lock(&self.streams).drain(..).filter_map(|stream| stream.upgrade()).for_each(|s| s.end());
    }
}

/// Watches over one server.
struct Supervisor {
    core: Weak<Core>,
    stop: Flag,
    settings: Arc<ClientSettings>,
    command: Command,
    policy: RestartPolicy,
}

impl Supervisor {
    async fn run(mut self) {
        let mut backoff = Backoff::default();
        loop {
            self.tell(&SupervisorEvent::Started);
            let opening = open::spawn(self.settings.clone(), self.command.clone());
            let Some(opened) = unless(self.stop.raised(), opening).await else { return };
            let (why, uptime) = match opened {
                Err(error) => (error, Duration::ZERO),
                Ok(client) => {
                    let began = now();
                    let Some(why) = self.live(client).await else { return };
                    (why, now() - began)
                }
            };
            self.tell(&SupervisorEvent::Lost { why: &why });
            let pause =
                if is_hopeless(&why) { None } else { backoff.handle_lost(&self.policy, uptime) };
            let Some(after) = pause else {
                return self.give_up(backoff.restarts, why);
            };
            self.tell(&SupervisorEvent::Restarting { after });
            if unless(self.stop.raised(), tokio::time::sleep(after)).await.is_none() {
                return;
            }
        }
    }

    /// Watches a server that is ready until it is gone, and returns why; `None` if it is to stop.
    async fn live(&mut self, client: Client) -> Option<Error> {
        let (pid, revision) = (client.pid(), client.revision());
        // PRB-06: the next start needs no probe.
        let mut settings = (*self.settings).clone();
        settings.known = Some(revision.era());
        self.settings = Arc::new(settings);
        let shared = Arc::downgrade(&client.0);
        let over = client.0.session.over();
        {
            let core = self.core.upgrade()?;
            renew(&core, &client);
            core.set_state(SupervisorState::Ready(client));
        }
        self.tell(&SupervisorEvent::Ready { pid, revision });
        let ill = unwell(shared.clone(), self.policy.health_check);
        let why = unless(self.stop.raised(), unless(over, ill)).await?;
        let why = match (why, shared.upgrade()) {
            (Some(ill), Some(shared)) => {
                kill(&shared).await;
                ill
            }
            (Some(ill), None) => ill,
            (None, Some(shared)) => shared.session.lost("".into()),
            (None, None) => Error::Ended(Ending::Eof),
        };
        self.core.upgrade()?.set_state(SupervisorState::Waiting);
        Some(why)
    }

    fn give_up(&self, restarts: u32, last: Error) {
        let why = Error::GaveUp { restarts, last: Box::new(last) };
        if let Some(core) = self.core.upgrade() {
            core.set_state(SupervisorState::Over(why.clone()));
            core.end_streams();
        }
        self.tell(&SupervisorEvent::GaveUp { why: &why });
    }

    /// A hook that panics must not end the watch.
    fn tell(&self, event: &SupervisorEvent<'_>) {
        tracing::debug!(%event, "supervised server");
        if let Some(hook) = &self.policy.on_event {
            isolated(|| hook(event));
        }
    }
}

/// Whether another start would fail in the same way.
fn is_hopeless(why: &Error) -> bool {
    matches!(why, Error::Spawn(error) if !matches!(**error, SpawnError::Io { .. }))
}

/// SUB-08: what was subscribed to is subscribed to again, beside everything else.
fn renew(core: &Core, client: &Client) {
    let mut streams = lock(&core.streams);
    streams.retain(|stream| stream.strong_count() > 0);
    for stream in streams.iter().filter_map(Weak::upgrade) {
        let (client, stop) = (client.clone(), core.stop.clone());
        tokio::spawn(async move { unless(stop.raised(), stream.renew(&client)).await });
    }
}

/// Ready with the reason once the server does not answer.
async fn unwell(shared: Weak<ClientShared>, check: Option<HealthCheck>) -> Error {
    let Some(HealthCheck { every, within }) = check else { return std::future::pending().await };
    loop {
        tokio::time::sleep(every).await;
        let Some(client) = shared.upgrade().map(Client) else {
            return std::future::pending().await;
        };
        let answer = if client.revision().is_modern() {
            // PNG-05: the modern revision has no ping; this costs as little.
            let asked = client.request::<serde::de::IgnoredAny>(Method::Discover.as_str(), ());
            asked.timeout(within).await.map(drop)
        } else {
            client.ping().timeout(within).await
        };
        // Any answer shows that the server is well. The end of a connection is noticed elsewhere.
        if let Err(error @ Error::TimedOut { .. }) = answer {
            return error;
        }
    }
}

/// P23: a stopped process ends by SIGKILL alone, and so does its whole group.
async fn kill(shared: &ClientShared) {
    let none = Duration::ZERO;
    let grace = GracePeriods { after_eof: none, after_term: none, ..GracePeriods::default() };
    if let Some(child) = &shared.session.child {
        child.end(grace).await;
    }
    shared.session.over().await;
}
