//! One connection as its many users see it: the [`Peer`] behind a lock, and the way to wake the loop.
//!
//! Knows who waits for which call and which requests can still be withdrawn; must not know a
//! method. The loop in `driver.rs` owns the streams; everybody else holds a `Link`.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::json;
use super::now;
use super::token::Token;
use crate::ending::Ending;
use crate::json::{JsonBuf, JsonRef};
use crate::rpc::{Body, CallId, Failure, Id, Patience, Peer, Seed, SendError, Ticket};

/// Takes the answer to a call, still raw, on the loop.
pub(crate) type Waiter = Box<dyn FnOnce(Result<&RawValue, Failure>) + Send>;

/// Takes reports of progress on a call, still raw, on the loop.
pub(crate) type Watcher = Box<dyn FnMut(&RawValue) + Send>;

/// How this side wants to end the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Close {
    /// Not at all.
    No,
    /// What is queued is written, our end is closed, and the rest of the input is read.
    Politely,
    /// At once.
    Now,
}

/// A shared handle on one connection.
#[derive(Clone)]
pub(crate) struct Link(Arc<Mutex<State>>);

pub(crate) struct State {
    pub(crate) peer: Peer,
    pub(crate) ended: Option<Ending>,
    /// Whether this side wants to end the connection.
    pub(crate) close: Close,
    waiters: HashMap<CallId, (Waiter, Option<Watcher>), Seed>,
    /// Requests that are being worked on elsewhere, by serial.
    parked: HashMap<u64, Token, Seed>,
    driver: Option<Waker>,
    /// Whether somebody did something since the loop last looked.
    changed: bool,
    /// Who waits for the end.
    watching: Vec<Waker>,
}

impl Link {
    pub(crate) fn new(peer: Peer) -> Self {
        Self(Arc::new(Mutex::new(State {
            peer,
            ended: None,
            close: Close::No,
            waiters: HashMap::default(),
            parked: HashMap::default(),
            driver: None,
            changed: false,
            watching: Vec::new(),
        })))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // Users' code does not run inside: it may panic, and it may want this very lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something to the peer, then lets the loop write what came of it.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let (value, waker) = {
            let mut state = self.lock();
            let value = act(&mut state);
            state.changed = true;
            (value, state.driver.take())
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        value
    }

    /// Answers a request.
    pub(crate) fn answer(&self, ticket: Ticket, outcome: Reply) {
        let mut result = JsonBuf::default();
        let outcome = json::reply(outcome, result.start());
        self.with(|state| {
            state.parked.remove(&ticket.serial());
            state.peer.answer(ticket, outcome.as_ref().map(|()| &mut result));
        });
    }

    /// Tells the other side something.
    pub(crate) fn notify(&self, method: &str, params: Option<&dyn Body>) -> Result<(), SendError> {
        let params = json::params(params)?;
        let params = params.as_ref().map(JsonBuf::as_json);
        self.with(|state| state.notify(method, params))
    }

    /// Tells the other side something about a request, if that still waits for its answer.
    pub(crate) fn notify_about(
        &self,
        id: &Id,
        serial: u64,
        method: &str,
        params: Option<&dyn Body>,
    ) -> Result<(), SendError> {
        let params = json::params(params)?;
        let params = params.as_ref().map(JsonBuf::as_json);
        self.with(|state| {
            if state.peer.is_live_serial(id, serial) {
                state.notify(method, params)
            } else {
                Ok(())
            }
        })
    }

    /// Calls the other side. `read` turns the raw answer into what the caller wants.
    ///
    /// What `params` gives is written with the lock held: it must not use this link.
    pub(crate) fn call<T, P>(
        &self,
        method: &str,
        params: impl FnOnce(CallId) -> Option<P>,
        patience: Option<Patience>,
        watcher: Option<Watcher>,
        read: impl FnOnce(Result<&RawValue, Failure>) -> T + Send + 'static,
    ) -> Result<PendingCall<T>, SendError>
    where
        T: Send + 'static,
        P: Body,
    {
        let (answer, answered) = oneshot::channel();
        let waiter: Waiter = Box::new(move |outcome| {
            // The caller may be gone; then nobody wants the answer.
            let _ = answer.send(read(outcome));
        });
        let call = self.with(|state| {
            let params = params(state.peer.next_call());
            // Apart from the output, so that a panic leaves no half of a message there.
            let params = json::params(params.as_ref().map(|params| params as &dyn Body))?;
            let params = params.as_ref().map(JsonBuf::as_json);
            let call = state.peer.call(now(), method, params, patience)?;
            state.waiters.insert(call, (waiter, watcher));
            Ok(call)
        })?;
        Ok(PendingCall { link: self.clone(), call, answered, done: false })
    }

    /// Ends the connection. It never becomes gentler again.
    pub(crate) fn close(&self, how: Close) {
        self.with(|state| state.close = state.close.max(how));
    }

    /// Ready once the connection is over, with the reason.
    pub(crate) fn poll_ended(&self, cx: &mut Context<'_>) -> Poll<Ending> {
        let mut state = self.lock();
        if let Some(ending) = &state.ended {
            return Poll::Ready(ending.clone());
        }
        if !state.watching.iter().any(|waker| waker.will_wake(cx.waker())) {
            state.watching.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl State {
    /// The loop is about to sleep; [`Link::with`] wakes it.
    pub(crate) fn sleep(&mut self, cx: &Context<'_>) {
        self.driver = Some(cx.waker().clone());
    }

    /// The loop is awake and looks for itself; says when it must look again at the latest.
    pub(crate) fn awake(&mut self) -> Option<Instant> {
        self.driver = None;
        self.changed = false;
        self.peer.poll_timeout()
    }

    /// Whether anything was done through [`Link::with`] since the loop [looked](Self::awake).
    pub(crate) fn has_changed(&self) -> bool {
        self.changed
    }

    /// L18: once it is over nothing counts as sent, and nothing piles up.
    fn notify(&mut self, method: &str, params: Option<JsonRef<'_>>) -> Result<(), SendError> {
        if self.ended.is_some() {
            return Err(SendError::Closed);
        }
        self.peer.notify(method, params)
    }

    pub(crate) fn park(&mut self, serial: u64, token: Token) {
        self.parked.insert(serial, token);
    }

    pub(crate) fn withdrawn(&mut self, serial: u64) -> Option<Token> {
        self.parked.remove(&serial)
    }

    /// Who waits for a call. Both are to be dropped after the lock.
    pub(crate) fn take_waiter(&mut self, call: CallId) -> Option<(Waiter, Option<Watcher>)> {
        self.waiters.remove(&call)
    }

    /// Who watches a call, to be called without the lock and [put back](Self::put_watcher).
    pub(crate) fn take_watcher(&mut self, call: CallId) -> Option<Watcher> {
        self.waiters.get_mut(&call)?.1.take()
    }

    /// Gives a watcher back, unless its call has ended meanwhile.
    pub(crate) fn put_watcher(&mut self, call: CallId, watcher: Watcher) -> Option<Watcher> {
        match self.waiters.get_mut(&call) {
            Some((_, slot)) => slot.replace(watcher),
            None => Some(watcher),
        }
    }

    /// The connection is over: everybody who waits is told.
    pub(crate) fn end(&mut self, ending: Ending) -> Vec<Waker> {
        self.peer.handle_eof();
        self.ended.get_or_insert(ending);
        self.parked.drain().for_each(|(_, token)| token.raise());
        std::mem::take(&mut self.watching)
    }
}

/// What a handler came to.
pub(crate) type Reply = Result<Box<dyn Body>, crate::rpc::ErrorObject>;

/// A call under way. Dropping it withdraws the call on the wire.
pub(crate) struct PendingCall<T> {
    link: Link,
    call: CallId,
    answered: oneshot::Receiver<T>,
    done: bool,
}

impl<T> PendingCall<T> {
    /// Lets the call run on although nobody waits for its answer.
    #[cfg(feature = "client")]
    pub(crate) fn detach(mut self) {
        self.done = true;
    }
}

impl<T> Future for PendingCall<T> {
    /// Nothing if the loop itself is gone.
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let answer = std::task::ready!(Pin::new(&mut self.answered).poll(cx));
        self.done = true;
        Poll::Ready(answer.ok())
    }
}

impl<T> Drop for PendingCall<T> {
    fn drop(&mut self) {
        if !self.done {
            let call = self.call;
            // The watcher may own a handle of its own on this link: it is dropped after the lock.
            let _gone = self.link.with(|state| {
                state.peer.cancel(call, "no longer wanted");
                state.waiters.remove(&call)
            });
        }
    }
}
