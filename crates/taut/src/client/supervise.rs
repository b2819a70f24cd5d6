//! A server that is kept alive: started, watched, started again, given up.
//!
//! Knows one server's life from outside. Must not know when to restart (`restart.rs`), how a
//! connection is opened (`open.rs`) or what is called on it (`supervised.rs`). P21, P23, STD-20,
//! SUB-08.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::restart::{Backoff, Check, Restart};
use super::settings::{ClientBuilder, Settings};
use super::supervised::Renewed;
use super::{Client, Shared, open};
use crate::driver::Flag;
use crate::ending::Ending;
use crate::error::{Error, Result};
use crate::mcp::{Method, Revision};
use crate::process::{Command, Grace, SpawnError};

/// What happens to a supervised server.
#[derive(Debug)]
#[non_exhaustive]
pub enum Life<'a> {
    /// It is being started.
    Started,
    /// It can be called.
    Ready {
        /// Its process.
        pid: Option<u32>,
        /// What was agreed.
        revision: Revision,
    },
    /// It is gone, or did not come up.
    Lost {
        /// Why.
        why: &'a Error,
    },
    /// It will be started again.
    Restarting {
        /// After this pause.
        after: Duration,
    },
    /// It will not be started again.
    GaveUp {
        /// Why: [`Error::GaveUp`].
        why: &'a Error,
    },
}

impl fmt::Display for Life<'_> {
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
pub struct Supervised(pub(super) Arc<Core>);

/// What the clones share. The task that watches holds it only in passing.
pub(super) struct Core {
    state: watch::Sender<State>,
    stop: Flag,
    pub(super) rules: Restart,
    pub(super) streams: Mutex<Vec<Weak<Renewed>>>,
}

enum State {
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
    /// Starts a server and keeps it alive. Returns at once: a server that does not come up costs
    /// nobody else any time, and says so when it is called (P24).
    ///
    /// # Errors
    /// There is no tokio runtime here.
    pub fn supervise(self, command: Command, restart: Restart) -> Result<Supervised> {
        let runtime = tokio::runtime::Handle::try_current().map_err(|error| {
            let error = Arc::new(std::io::Error::other(error));
            Error::Ended(Ending::Io { during: "starting", error })
        })?;
        let core = Arc::new(Core {
            state: watch::Sender::new(State::Waiting),
            stop: Flag::default(),
            rules: restart.clone(),
            streams: Mutex::default(),
        });
        let keeper = Keeper {
            core: Arc::downgrade(&core),
            stop: core.stop.clone(),
            settings: self.settings.settle(),
            command,
            rules: restart,
        };
        runtime.spawn(keeper.run());
        Ok(Supervised(core))
    }
}

impl Supervised {
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
                // One that has just died is not handed out, although nobody has told us yet.
                State::Ready(client) if client.0.session.is_up() => return Ok(client.clone()),
                State::Over(why) => return Err(why.clone()),
                State::Ready(_) | State::Waiting => {}
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
            State::Ready(client) => client.pid(),
            _ => None,
        }
    }

    /// Closes the connection, and does not open it again.
    ///
    /// # Errors
    /// The process has not ended, not even after SIGKILL.
    pub async fn close(&self) -> Result<()> {
        self.0.stop.raise();
        let before = self.0.state.send_replace(State::Over(Error::Ended(Ending::Closed)));
        self.0.end_streams();
        match before {
            State::Ready(client) => client.close().await.map(drop),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Supervised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervised").field("pid", &self.pid()).finish_non_exhaustive()
    }
}

impl Core {
    pub(super) fn streams(&self) -> MutexGuard<'_, Vec<Weak<Renewed>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why there is no server any more, if there is none.
    pub(super) fn over(&self) -> Option<Error> {
        match &*self.state.borrow() {
            State::Over(Error::Ended(Ending::Closed)) => None,
            State::Over(why) => Some(why.clone()),
            _ => None,
        }
    }

    /// Changes the state, unless it is the last one.
    fn become_(&self, next: State) {
        self.state.send_if_modified(|state| {
            let open = !matches!(state, State::Over(_));
            if open {
                *state = next;
            }
            open
        });
    }

    fn end_streams(&self) {
        self.streams().drain(..).filter_map(|stream| stream.upgrade()).for_each(|s| s.end());
    }
}

/// Watches over one server.
struct Keeper {
    core: Weak<Core>,
    stop: Flag,
    settings: Arc<Settings>,
    command: Command,
    rules: Restart,
}

impl Keeper {
    async fn run(mut self) {
        let mut backoff = Backoff::default();
        loop {
            self.tell(&Life::Started);
            let opening = open::spawn(self.settings.clone(), self.command.clone());
            let Some(opened) = unless(&self.stop, opening).await else { return };
            let (why, uptime) = match opened {
                Err(error) => (error, Duration::ZERO),
                Ok(client) => {
                    let began = now();
                    let Some(why) = self.live(client).await else { return };
                    (why, now() - began)
                }
            };
            self.tell(&Life::Lost { why: &why });
            let pause =
                if is_hopeless(&why) { None } else { backoff.handle_lost(&self.rules, uptime) };
            let Some(after) = pause else {
                return self.give_up(backoff.restarts, why);
            };
            self.tell(&Life::Restarting { after });
            if unless(&self.stop, tokio::time::sleep(after)).await.is_none() {
                return;
            }
        }
    }

    /// From ready to gone: why. Nothing if nobody wants it any more.
    async fn live(&mut self, client: Client) -> Option<Error> {
        let (pid, revision) = (client.pid(), client.revision());
        // PRB-06: what it speaks is known now; a wrong guess would be dropped.
        let mut settings = (*self.settings).clone();
        settings.known = Some(revision.era());
        self.settings = Arc::new(settings);
        let shared = Arc::downgrade(&client.0);
        let over = client.0.session.over();
        {
            let core = self.core.upgrade()?;
            renew(&core, &client);
            core.become_(State::Ready(client));
        }
        self.tell(&Life::Ready { pid, revision });
        let ill = unwell(shared.clone(), self.rules.check);
        let why = unless(&self.stop, first(over, ill)).await?;
        let why = match (why, shared.upgrade()) {
            (Some(ill), Some(shared)) => {
                kill(&shared).await;
                ill
            }
            (Some(ill), None) => ill,
            (None, Some(shared)) => shared.session.lost("".into()),
            (None, None) => Error::Ended(Ending::Eof),
        };
        self.core.upgrade()?.become_(State::Waiting);
        Some(why)
    }

    fn give_up(&self, restarts: u32, last: Error) {
        let why = Error::GaveUp { restarts, last: Box::new(last) };
        if let Some(core) = self.core.upgrade() {
            core.become_(State::Over(why.clone()));
            core.end_streams();
        }
        self.tell(&Life::GaveUp { why: &why });
    }

    /// A hook that panics must not end the watch.
    fn tell(&self, life: &Life<'_>) {
        tracing::debug!(%life, "supervised server");
        if let Some(hook) = &self.rules.on_life
            && catch_unwind(AssertUnwindSafe(|| hook(life))).is_err()
        {
            tracing::warn!("the hook for a server's life panicked");
        }
    }
}

/// What a second try cannot mend.
fn is_hopeless(why: &Error) -> bool {
    matches!(why, Error::Spawn(error) if !matches!(**error, SpawnError::Io { .. }))
}

/// SUB-08: what was subscribed to is subscribed to again, beside everything else.
fn renew(core: &Core, client: &Client) {
    let mut streams = core.streams();
    streams.retain(|stream| stream.strong_count() > 0);
    for stream in streams.iter().filter_map(Weak::upgrade) {
        let (client, stop) = (client.clone(), core.stop.clone());
        tokio::spawn(async move { unless(&stop, stream.renew(&client)).await });
    }
}

/// Ready with the reason once the server does not answer.
async fn unwell(shared: Weak<Shared>, check: Option<Check>) -> Error {
    let Some(Check { every, within }) = check else { return std::future::pending().await };
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
        // Any answer is one. A connection that is over says so by itself.
        if let Err(error @ Error::TimedOut { .. }) = answer {
            return error;
        }
    }
}

/// P23: a stopped process ends by SIGKILL alone, and so does its whole group.
async fn kill(shared: &Shared) {
    let none = Duration::ZERO;
    let grace = Grace { after_eof: none, after_term: none, ..Grace::default() };
    if let Some(child) = &shared.session.child {
        child.end(grace).await;
    }
    shared.session.over().await;
}

/// Nothing from the first of the two, something from the second.
async fn first<T>(a: impl Future, b: impl Future<Output = T>) -> Option<T> {
    let (mut a, mut b) = (pin!(a), pin!(b));
    std::future::poll_fn(move |cx| {
        if a.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        b.as_mut().poll(cx).map(Some)
    })
    .await
}

/// Runs a future to its end, unless the flag is raised first.
async fn unless<F: Future>(stop: &Flag, future: F) -> Option<F::Output> {
    first(stop.raised(), future).await
}

/// The time, as timers see it: a test may have stopped it.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
