//! One connection as its many users see it: the [`Peer`] behind a lock, and the way to wake the loop.
//!
//! Knows who waits for which call and which requests can still be withdrawn; must not know a
//! method. The loop owns the streams; everybody else holds a [`Link`] and uses its verbs.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Waker};
use std::time::Instant;

use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::body::{Body, written};
use super::flag::Flag;
use super::now;
use super::pending::PendingCall;
use super::service::Outcome;
use crate::ending::Ending;
use crate::json::{JsonBuf, JsonRef};
use crate::lock::lock;
use crate::rpc::{self, CallId, Failure, Id, NoId, Patience, Peer, Seed, SendError, Ticket, take};

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

/// A shared handle on one connection. Users' code never runs while its lock is held.
#[derive(Clone)]
pub(crate) struct Link(Arc<LinkShared>);

struct LinkShared {
    state: Mutex<LinkState>,
    /// Raised once the connection is over.
    over: Flag,
}

/// What the lock guards. Only the loop reaches in; everybody else uses the verbs of [`Link`].
pub(super) struct LinkState {
    pub(super) peer: Peer,
    pub(super) ended: Option<Ending>,
    /// Whether this side wants to end the connection.
    pub(super) close: Close,
    waiters: HashMap<CallId, (Waiter, Option<Watcher>), Seed>,
    /// Requests that are being worked on elsewhere, by serial.
    waiting: HashMap<u64, Flag, Seed>,
    driver: Option<Waker>,
    /// Whether somebody did something since the loop last looked.
    changed: bool,
    /// The requests that were left without an answer at the drain limit.
    dropped: String,
}

impl Link {
    pub(crate) fn new(peer: Peer) -> Self {
        let state = LinkState {
            peer,
            ended: None,
            close: Close::No,
            waiters: HashMap::default(),
            waiting: HashMap::default(),
            driver: None,
            changed: false,
            dropped: String::new(),
        };
        Self(Arc::new(LinkShared { state: Mutex::new(state), over: Flag::default() }))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, LinkState> {
        lock(&self.0.state)
    }

    /// Does something to the peer, then lets the loop write what came of it.
    fn with<T>(&self, act: impl FnOnce(&mut LinkState) -> T) -> T {
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

    /// Whether both are the same connection.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Lets the loop make a pass, for what a service does there.
    pub(crate) fn wake(&self) {
        self.with(|_| ());
    }

    /// Answers a request that was [taken over](super::Service::take_over), or that a task has worked on.
    pub(crate) fn answer(&self, ticket: Ticket, outcome: Outcome) {
        self.with(|state| {
            take(&mut state.waiting, &ticket.serial());
            state.peer.answer(ticket, outcome);
        });
    }

    /// A buffer to write an answer into; see [`Peer::answer_buffer`].
    pub(crate) fn answer_buffer(&self) -> JsonBuf {
        self.lock().peer.answer_buffer()
    }

    /// Sends a notification; `about` is the request that it belongs to. Its params are written before
    /// the lock is taken.
    ///
    /// # Errors
    /// The connection has ended, or the params have no JSON form.
    pub(crate) fn notify(
        &self,
        about: Option<&Id>,
        method: &str,
        params: Option<&dyn Body>,
    ) -> Result<(), SendError> {
        let params = written(params)?;
        self.with(|state| state.notify(about, method, params.as_ref().map(JsonBuf::as_json)))
    }

    /// Sends a notification that belongs to a request, if that still waits for its answer.
    ///
    /// # Errors
    /// As [`notify`](Self::notify).
    pub(crate) fn notify_about(
        &self,
        id: &Id,
        serial: u64,
        method: &str,
        params: Option<&dyn Body>,
    ) -> Result<(), SendError> {
        let params = written(params)?;
        self.with(|state| match state.peer.is_live_serial(id, serial) {
            true => state.notify(Some(id), method, params.as_ref().map(JsonBuf::as_json)),
            false => Ok(()),
        })
    }

    /// Calls the other side; `about` is the request of the other side that the call belongs to.
    ///
    /// `params` gives the params, told the id that is also the progress token. They are written before
    /// the lock is taken, so that users' code may run there. `read` turns the raw answer into what the caller wants; it
    /// runs on the loop.
    ///
    /// # Errors
    /// The connection has ended, or the params have no JSON form. Then nothing was sent.
    pub(crate) fn call<T: Send + 'static, P: Body>(
        &self,
        about: Option<&Id>,
        method: &str,
        params: impl FnOnce(CallId) -> Option<P>,
        patience: Option<Patience>,
        watcher: Option<Watcher>,
        read: impl FnOnce(Result<&RawValue, Failure>) -> T + Send + 'static,
    ) -> Result<PendingCall<T>, SendError> {
        let call = self.lock().peer.reserve_call();
        let params = params(call);
        let json = written(params.as_ref().map(|params| params as &dyn Body))?;
        let (answer, answered) = oneshot::channel();
        let waiter: Waiter = Box::new(move |outcome| {
            // The caller may have dropped the call; then the answer is dropped, too.
            let _ = answer.send(read(outcome));
        });
        self.with(|state| {
            let params = json.as_ref().map(JsonBuf::as_json);
            state.peer.about(about);
            state.peer.call_as(now(), call, method, params, patience)?;
            state.waiters.insert(call, (waiter, watcher));
            Ok(())
        })?;
        Ok(PendingCall { link: self.clone(), call, answered, done: false })
    }

    /// The longest message, in bytes.
    pub(crate) fn limit(&self) -> usize {
        self.lock().peer.config().limits.message
    }

    /// An id for a call that is about to be made with [`start_call`](Self::start_call).
    pub(crate) fn reserve_call(&self) -> CallId {
        self.lock().peer.reserve_call()
    }

    /// Calls the other side: `write` appends the whole message with the id that it is given, and must
    /// run no users' code. `waiter` gets the answer, or the failure if the connection has ended.
    pub(crate) fn start_call(
        &self,
        call: CallId,
        about: Option<&Id>,
        method: &str,
        write: impl FnOnce(&mut Vec<u8>, &Id),
        watcher: Option<Watcher>,
        waiter: Waiter,
    ) {
        let refused = self.with(|state| {
            state.peer.about(about);
            match state.peer.call_written(now(), call, method, None, write) {
                Ok(()) => {
                    state.waiters.insert(call, (waiter, watcher));
                    None
                }
                Err(_) => Some(waiter),
            }
        });
        if let Some(waiter) = refused {
            waiter(Err(Failure::Ended));
        }
    }

    /// Withdraws a call; its waiter is dropped.
    pub(crate) fn cancel(&self, call: CallId, reason: &str) {
        let _gone = self.with(|state| {
            state.peer.cancel(call, reason);
            take(&mut state.waiters, &call)
        });
    }

    /// Notes from now on which request each message belongs to; see [`Sink::relate`](crate::stream::Sink::relate).
    pub(crate) fn track_relations(&self) {
        self.lock().peer.track_relations();
    }

    /// Ends the connection. A later call can only make the end quicker, not gentler.
    pub(crate) fn close(&self, how: Close) {
        self.with(|state| state.close = state.close.max(how));
    }

    /// Whether this side has asked for the end.
    pub(crate) fn is_closing(&self) -> bool {
        self.lock().close != Close::No
    }

    /// Whether the connection is over.
    pub(crate) fn is_over(&self) -> bool {
        self.0.over.is_raised()
    }

    /// How the connection ended, if it has.
    pub(crate) fn ending(&self) -> Option<Ending> {
        self.lock().ended.clone()
    }

    /// Waits for the end of the connection.
    pub(crate) fn ended(&self) -> impl Future<Output = Ending> + Send + use<> {
        let link = self.clone();
        async move {
            link.0.over.raised().await;
            link.ending().unwrap_or(Ending::Closed)
        }
    }

    /// Which rules the two sides have agreed on: what stands for an id that cannot be read, and
    /// whether batches are served.
    pub(crate) fn agree(&self, no_id: NoId, batches: bool) {
        let mut state = self.lock();
        state.peer.set_no_id(no_id);
        state.peer.allow_batches(batches);
    }

    /// Whether batches are served, from now on.
    pub(crate) fn allow_batches(&self, allowed: bool) {
        self.lock().peer.allow_batches(allowed);
    }

    /// Whether a request still waits for its answer.
    pub(crate) fn is_live(&self, id: &Id, serial: u64) -> bool {
        self.lock().peer.is_live_serial(id, serial)
    }

    /// How many bytes wait to be written.
    pub(crate) fn output_waiting(&self) -> usize {
        self.lock().peer.output().len()
    }

    /// Forgets a request: whatever its handler comes to, nothing is written.
    pub(crate) fn forget(&self, id: &Id) {
        self.lock().peer.forget(id);
    }

    /// Notes which requests are left without an answer.
    pub(super) fn note_dropped(&self) {
        let mut state = self.lock();
        state.dropped = state.peer.unanswered_in_words();
    }

    /// Which requests were left without an answer at the drain limit, for a line on stderr.
    pub(crate) fn dropped(&self) -> String {
        self.lock().dropped.clone()
    }

    /// How the other side framed its last sound message.
    pub(crate) fn heard(&self) -> Option<crate::wire::Framing> {
        self.lock().peer.heard()
    }

    /// Stops the clocks of the calls that are under way, until the hold is dropped: the other side
    /// waits for us, and cannot get on.
    pub(crate) fn hold(&self) -> Hold {
        let hold = self.lock().peer.hold(now());
        Hold { link: self.clone(), hold: Some(hold) }
    }

    /// The connection is over: everybody who waits is told. Gives the calls that got no answer.
    pub(super) fn end(&self, ending: Ending) -> Vec<(CallId, Failure)> {
        let (waiting, lost) = {
            let mut state = self.lock();
            state.peer.handle_eof();
            state.ended.get_or_insert(ending);
            (std::mem::take(&mut state.waiting), state.lost())
        };
        waiting.values().for_each(Flag::raise);
        self.0.over.raise();
        lost
    }
}

/// As long as this lives, the calls that were under way when it was made cannot time out.
pub(crate) struct Hold {
    link: Link,
    hold: Option<rpc::HoldId>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(hold) = self.hold.take() {
            // The loop has to work out its next deadline again.
            self.link.with(|state| state.peer.resume(now(), hold));
        }
    }
}

impl LinkState {
    /// The loop is about to sleep; [`Link::with`] wakes it.
    pub(super) fn sleep(&mut self, cx: &Context<'_>) {
        self.driver = Some(cx.waker().clone());
    }

    /// The loop is awake and looks for itself; says when it must look again at the latest.
    pub(super) fn awake(&mut self) -> Option<Instant> {
        self.driver = None;
        self.changed = false;
        self.peer.poll_timeout()
    }

    /// Whether anything was done through [`Link::with`] since the loop [looked](Self::awake).
    pub(super) fn has_changed(&self) -> bool {
        self.changed
    }

    /// L18: after the end, sending is an error, and nothing is queued.
    fn notify(
        &mut self,
        about: Option<&Id>,
        method: &str,
        params: Option<JsonRef<'_>>,
    ) -> Result<(), SendError> {
        if self.ended.is_some() {
            return Err(SendError::Closed);
        }
        // The loop ends such a connection when it is polled. One in place is not polled while its reader waits.
        if self.peer.is_stuck() {
            self.close = Close::Now;
            return Err(SendError::Closed);
        }
        self.peer.about(about);
        self.peer.notify(method, params)
    }

    /// A request goes on in a task of its own; `cancelled` reaches it there.
    pub(super) fn wait_for(&mut self, serial: u64, cancelled: Flag) {
        self.waiting.insert(serial, cancelled);
    }

    pub(super) fn cancelled(&mut self, serial: u64) -> Option<Flag> {
        take(&mut self.waiting, &serial)
    }

    /// The calls that will get no answer any more.
    pub(super) fn lost(&mut self) -> Vec<(CallId, Failure)> {
        std::iter::from_fn(|| self.peer.poll_lost()).collect()
    }

    /// Who waits for a call. Both are to be dropped after the lock.
    pub(super) fn take_waiter(&mut self, call: CallId) -> Option<(Waiter, Option<Watcher>)> {
        take(&mut self.waiters, &call)
    }

    /// Who watches a call, to be called without the lock and [put back](Self::put_watcher).
    pub(super) fn take_watcher(&mut self, call: CallId) -> Option<Watcher> {
        self.waiters.get_mut(&call)?.1.take()
    }

    /// Gives a watcher back, unless its call has ended meanwhile.
    pub(super) fn put_watcher(&mut self, call: CallId, watcher: Watcher) -> Option<Watcher> {
        match self.waiters.get_mut(&call) {
            Some((_, slot)) => slot.replace(watcher),
            None => Some(watcher),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::Config;

    #[test]
    fn what_nobody_takes_is_bounded_although_no_loop_looks() {
        let mut config = Config::new(crate::mcp::DIALECT, true);
        config.output_cap = 4000;
        let link = Link::new(Peer::new(config));
        let sent = (0..1000).take_while(|_| link.notify(None, "x", Some(&"text")).is_ok()).count();
        assert!(sent < 200, "{sent}");
        assert!(link.output_waiting() < 4100, "{}", link.output_waiting());
        assert!(link.lock().close == Close::Now);
    }
}
