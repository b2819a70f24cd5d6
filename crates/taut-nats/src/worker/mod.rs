//! A worker: takes the calls of a service as long as it has slots, and leaves without losing one.
//!
//! Knows the subscriptions and how to leave; `calls` knows slots. A call begins without a task, and most are
//! answered so (`quick`); `call` knows one that has a task. Must not know who answers.

mod call;
mod calls;
mod kept;
mod leave;
mod options;
mod quick;

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use async_nats::{Subject, Subscriber};
use futures_util::{FutureExt, StreamExt};
use taut::transport::MessageService;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio::time::Instant;

use crate::connection::{Connection, NatsError};
use crate::discovery::{Counters, Discoverable, Identity};
use crate::due;
use crate::hash::Key;
use crate::names::{CallName, GROUP, ServiceName};
use call::{Input, Left, SOON};
use kept::Kept;
use leave::Leaving;
use quick::Sessions;

pub use options::WorkerOptions;

/// How long the broker may take to send a worker its own message.
const READY: Duration = Duration::from_secs(5);

/// What is said if it does not.
fn unheard(service: &ServiceName, url: &str) -> NatsError {
    NatsError::new(format!(
        "the broker at {url} does not let this worker hear its own message within {READY:?}; see that its credentials \
         allow it to subscribe to mcp.{service}.> and $SRV.>, and to publish to mcp.{service}.worker.> and _INBOX.>"
    ))
}

/// How a worker stopped to take calls.
#[derive(Debug, PartialEq, Eq)]
enum Served {
    /// It was told to stop, and has left.
    Left,
    /// Its subscriptions have ended.
    Closed,
}

/// Only a worker that was told to stop has done its work: whoever started it starts it again otherwise.
fn outcome(ended: Result<Served, JoinError>) -> Result<(), NatsError> {
    match ended {
        Ok(Served::Left) => Ok(()),
        Ok(Served::Closed) => Err(NatsError::new(
            "the connection to the broker has ended for good; start the worker again",
        )),
        Err(_) => Err(NatsError::new(
            "the worker has ended by a mistake of its own, which stands above; its calls may have run. Start it again",
        )),
    }
}

/// How many messages of one kind are taken at once.
const AT_ONCE: usize = 32;

/// Answers the calls of a service.
pub struct Worker {
    connection: Connection,
    identity: Identity,
    options: WorkerOptions,
    counters: Arc<Counters>,
    /// Its id, for its calls.
    id: Arc<str>,
    /// Where its own messages go.
    subject: Subject,
    sessions: Sessions,
    calls: HashMap<CallName, Running, Key>,
    /// The call of each number, for what the broker says of its edge.
    serials: HashMap<u64, CallName, Key>,
    next_serial: u64,
    /// When calls without a task need one, oldest first: their places and numbers.
    soon: VecDeque<(Instant, usize, u64)>,
    tasks: JoinSet<Done>,
    gathered: usize,
    kept: Kept,
    /// The calls that were bounced because it was full, oldest first.
    bounced: VecDeque<Subject>,
    /// Where the last answer without headers went.
    answers: Option<Subject>,
    /// Whether it takes no calls any more, not even those for itself.
    closing: bool,
    /// Called when the broker knows of it.
    ready: Option<Box<dyn FnOnce() + Send>>,
}

/// A task that has ended.
enum Done {
    Call(CallName, Left),
    /// A message about a call was sent.
    Sent,
}

/// A call that has a slot, or a stream of changes.
struct Running {
    listen: bool,
    gathered: usize,
    way: Way,
}

/// How a call is run.
enum Way {
    /// Without a task, in this place.
    Quick(usize),
    Task {
        inputs: mpsc::Sender<Input>,
        task: tokio::task::Id,
        serial: u64,
    },
}

/// Ends a task when who waits for it is gone.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Worker {
    /// A worker of the service `name`, which answers with `service`. It does nothing until it is run.
    #[must_use]
    pub fn new(
        connection: Connection,
        name: ServiceName,
        service: Arc<dyn MessageService>,
        options: WorkerOptions,
    ) -> Self {
        let worker = connection.client().new_inbox();
        let worker = worker.rsplit('.').next().unwrap_or(&worker).to_owned();
        let (id, subject) = (worker.as_str().into(), name.of_worker(&worker));
        let identity = Identity {
            service: name,
            worker,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            slots: options.slots,
            server: options.server.clone(),
            started: SystemTime::now(),
        };
        let kept = Kept::new(options.kept);
        Self {
            connection,
            identity,
            sessions: Sessions::new(service, options.slots),
            options,
            counters: Arc::default(),
            id,
            subject,
            calls: HashMap::default(),
            serials: HashMap::default(),
            next_serial: 0,
            soon: VecDeque::new(),
            tasks: JoinSet::new(),
            gathered: 0,
            kept,
            bounced: VecDeque::new(),
            answers: None,
            closing: false,
            ready: None,
        }
    }

    /// Calls `told` once the broker knows of this worker, so that it is given calls.
    #[must_use]
    pub fn on_ready(mut self, told: impl FnOnce() + Send + 'static) -> Self {
        self.ready = Some(Box::new(told));
        self
    }

    /// Its id, as the fleet shows it.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.identity.worker
    }

    /// Takes calls until `stop` is ready. Then it leaves the group, finishes what it has and returns.
    ///
    /// # Errors
    /// The connection cannot be used, or has ended for good, or a mistake in this worker has ended it.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> Result<(), NatsError> {
        let failed = |error: async_nats::SubscribeError| NatsError::new(error.to_string());
        let (connection, identity) = (self.connection.clone(), self.identity.clone());
        let client = connection.client();
        let mut own = client.subscribe(self.subject.clone()).await.map_err(failed)?;
        let gone = client.subscribe(format!("{}.gone.*", self.subject)).await.map_err(failed)?;
        let discoverable = Discoverable::new(&connection, &identity).await?;
        let calls = identity.service.calls();
        let calls = client.queue_subscribe(calls, GROUP.to_owned()).await.map_err(failed)?;
        // Its own message is back when the broker knows of everything that was sent before.
        leave::send_marker(&connection, &self.subject).await;
        if tokio::time::timeout(READY, own.next()).await.is_err() {
            return Err(unheard(&identity.service, connection.url()));
        }
        let (told, counters) = (connection.clone(), self.counters.clone());
        let described = tokio::spawn(async move {
            discoverable.run(told, identity, &counters).await;
        });
        let _described = AbortOnDrop(described.abort_handle());
        if let Some(ready) = self.ready.take() {
            ready();
        }
        // In a task: to wake the main future costs a system call for each message.
        let (leave, left) = oneshot::channel();
        let mut serving = tokio::spawn(self.serve(calls, own, gone, left));
        let _serving = AbortOnDrop(serving.abort_handle());
        let ended = tokio::select! {
            ended = &mut serving => ended,
            () = stop => {
                // Nobody hears it only if it has ended just now.
                let _ = leave.send(());
                serving.await
            }
        };
        connection.flush(Duration::from_secs(5)).await;
        outcome(ended)
    }

    async fn serve(
        mut self,
        mut calls: Subscriber,
        mut own: Subscriber,
        mut gone: Subscriber,
        mut stop: oneshot::Receiver<()>,
    ) -> Served {
        let mut leaving: Option<Leaving> = None;
        // One for all calls without a task: to set a timer for each would cost more than to answer it.
        let mut alarm = std::pin::pin!(tokio::time::sleep(SOON));
        let mut armed = false;
        loop {
            let next = leaving.as_ref().map(Leaving::next);
            if !armed && let Some((due, ..)) = self.soon.front() {
                alarm.as_mut().reset(*due);
                armed = true;
            }
            tokio::select! {
                // What was sent to this worker alone frees slots, so it comes first.
                biased;
                message = own.next() => {
                    let Some(message) = message else { return Served::Closed };
                    let ours = match &mut leaving {
                        Some(leaving) => leaving.heard(&message, &mut calls).await,
                        None => false,
                    };
                    if !ours {
                        self.told(message);
                    }
                }
                notice = gone.next() => match notice {
                    Some(notice) => self.edge_gone(&notice.subject),
                    None => return Served::Closed,
                },
                (call, session, said) = self.sessions.next() => {
                    self.said(call, session, said);
                    // Those that are there are taken at once: to look at everything for each costs more.
                    for _ in 1..AT_ONCE {
                        let Some(next) = self.sessions.next().now_or_never() else { break };
                        self.said(next.0, next.1, next.2);
                    }
                }
                Some(done) = self.tasks.join_next(), if !self.tasks.is_empty() => match done {
                    Ok(Done::Call(call, left)) => self.done(call, left),
                    Ok(Done::Sent) => {}
                    // It has told nobody; its edge misses its heartbeats.
                    Err(panicked) => self.panicked(panicked.id()),
                },
                () = &mut alarm, if armed => {
                    armed = false;
                    self.accept_late();
                }
                message = calls.next(), if leaving.as_ref().is_none_or(|leaving| !leaving.left()) => {
                    match (message, &mut leaving) {
                        (Some(message), None) => {
                            self.called(message, false);
                            let mut taken = 1;
                            while taken < AT_ONCE
                                && let Some(Some(next)) = calls.next().now_or_never()
                            {
                                taken += 1;
                                self.called(next, false);
                            }
                            if taken == AT_ONCE {
                                // The server begins with these while others are taken.
                                tokio::task::yield_now().await;
                            }
                        }
                        (Some(message), Some(_)) => self.called(message, false),
                        (None, None) => return Served::Closed,
                        (None, Some(leaving)) => leaving.out(),
                    }
                }
                _ = &mut stop, if leaving.is_none() => {
                    self.counters.leaving.store(true, Ordering::Relaxed);
                    leaving = Some(Leaving::begin(&mut calls, self.options.drain).await);
                    self.tell_all(&Input::Leave);
                }
                () = due(next) => if let Some(leaving) = &mut leaving
                    && leaving.act(&self.connection, &self.subject, &mut calls).await
                {
                    self.tell_all(&Input::Stop);
                },
            }
            let left = leaving.as_ref().is_some_and(Leaving::left);
            if left && self.tasks.is_empty() && self.calls.is_empty() {
                self.bounce_the_rest(own, gone).await;
                return Served::Left;
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_worker_that_was_told_to_stop_ends_well() {
        assert!(outcome(Ok(Served::Left)).is_ok());
        let closed = outcome(Ok(Served::Closed)).unwrap_err().to_string();
        assert!(closed.contains("ended for good"), "{closed}");
        let panicked = tokio::spawn(async { panic!("a mistake") }).await;
        let panicked = outcome(panicked).unwrap_err().to_string();
        assert!(panicked.contains("a mistake of its own"), "{panicked}");
    }
}
