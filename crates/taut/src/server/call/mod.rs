//! A call that is being handled: what its handler sees, and how it talks to the client meanwhile.
//!
//! Knows the request, who sent it and the connection it came on; must not know how it was routed.
//! What all connections of a server share stands in `shared.rs`, questions to the client in `ask.rs`.

mod ask;
mod blocking;
mod questions;
mod shared;

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::settings::{CallEnd, CallEvent};
use super::subscriber::Subscriber;
use crate::driver::{Flag, Link};
use crate::lock::lock;
use crate::mcp::{
    Asker, ClientCapabilities, Level, LogParams, Meta, Method, ProgressParams, RawJson, Revision,
    Terms, Trace, WriteJson, binding,
};
use crate::rpc::Id;
use crate::transport::Principal;

pub(crate) use questions::{Questions, Run, Running};
pub(crate) use shared::{Handler, ServerShared};

pub use ask::{AskError, UserReply};
pub use blocking::BlockingCall;

/// Reports of progress leave at most this often (PRG-12): a person cannot follow more, and a
/// handler that reports in a loop must not fill the pipe.
const PROGRESS_EVERY: Duration = Duration::from_millis(50);

/// A call being handled. Clones are the same call.
pub struct Call<S = ()> {
    pub(crate) inner: Arc<CallState<S>>,
}

impl<S> Clone for Call<S> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<S> fmt::Debug for Call<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("id", &self.inner.id).finish_non_exhaustive()
    }
}

/// What all calls of a connection share. In one piece, so that a call counts one reference.
pub(crate) struct Connection<S> {
    pub(crate) shared: Arc<ServerShared<S>>,
    pub(crate) link: Link,
    pub(crate) subscriber: Arc<Subscriber>,
    /// The level that a legacy client has set, for the calls under way as well.
    pub(crate) level: Mutex<Level>,
    /// Who has opened it.
    pub(crate) principal: Principal,
    /// Log lines that were dropped since the last that was sent.
    pub(crate) lost_logs: AtomicUsize,
}

impl<S> Connection<S> {
    /// What the state of a question is bound to: the request, and who has sent it.
    pub(crate) fn binding(&self, method: Method, name: &str, arguments: Option<&str>) -> String {
        match self.principal.id() {
            Some(id) => binding(method, &format!("{}:{id}{name}", id.len()), arguments),
            None => binding(method, name, arguments),
        }
    }
}

/// What a call is made of.
pub(crate) struct CallState<S> {
    pub(crate) connection: Arc<Connection<S>>,
    pub(crate) id: Id,
    pub(crate) serial: u64,
    pub(crate) cancelled: Flag,
    pub(crate) terms: Arc<Terms>,
    pub(crate) method: Method,
    pub(crate) name: Arc<str>,
    pub(crate) began: Instant,
    pub(crate) reported: Mutex<Option<(Instant, f64)>>,
    /// What it asks the client, and what it has learnt.
    pub(crate) questions: Questions,
    /// Kept for binding the state of a question to; only where there may be one.
    pub(crate) arguments: Option<Box<str>>,
    /// Whether `on_call` has been told of the end.
    pub(crate) ended: AtomicBool,
}

impl<S> CallState<S> {
    pub(crate) fn shared(&self) -> &ServerShared<S> {
        &self.connection.shared
    }

    /// Tells `on_call` that the call has finished, once.
    pub(crate) fn end(&self, end: CallEnd) {
        let Some(on_call) = &self.shared().settings.on_call else { return };
        if !self.ended.swap(true, Ordering::Relaxed) {
            // An error has no effect here: the call has run.
            let _ = on_call(&CallEvent::Finished {
                method: self.method.as_str(),
                name: &self.name,
                took: crate::driver::now() - self.began,
                failed: end == CallEnd::Failed,
                asking: end == CallEnd::Asking,
            });
        }
    }
}

impl<S> Drop for CallState<S> {
    /// A call that was dropped, or whose handler panicked, has finished too, so that an audit log has no gaps.
    fn drop(&mut self) {
        self.end(CallEnd::Failed);
    }
}

impl<S> Call<S> {
    /// What the server was given with [`Server::with_state`](super::Server::with_state).
    #[must_use]
    pub fn state(&self) -> &S {
        &self.inner.shared().state
    }

    /// The request's id.
    #[must_use]
    pub fn id(&self) -> &Id {
        &self.inner.id
    }

    /// The revision that the client speaks.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.inner.terms.revision
    }

    /// Who asks.
    #[must_use]
    pub fn client(&self) -> ClientInfo<'_> {
        ClientInfo(&self.inner.terms.asker)
    }

    /// The user or program that the transport has authenticated. Over stdio it is
    /// [anonymous](Principal::ANONYMOUS).
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.inner.connection.principal
    }

    /// The `_meta` of the request, as it came.
    #[must_use]
    pub fn meta(&self) -> Option<Meta> {
        serde_json::from_str(self.inner.terms.meta.as_deref()?).ok()
    }

    /// The trace that this call is part of (MET-08).
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.inner.terms.trace
    }

    /// When the server gives up on this call, if it has a
    /// [`call_timeout`](super::ServerBuilder::call_timeout).
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        // A limit beyond all clocks is no deadline.
        self.inner.began.checked_add(self.inner.shared().settings.call_timeout?)
    }

    /// Whether the client no longer wants the answer.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancelled.is_raised()
    }

    /// Waits until the client no longer wants the answer. After the
    /// [grace](super::ServerBuilder::cancel_grace), one second unless set, this call is dropped.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + use<S> {
        self.inner.cancelled.raised()
    }

    /// Says how far the work is, if the client wants to know.
    ///
    /// ```
    /// # fn example(call: taut::Call) {
    /// call.progress(0.5);
    /// call.progress(taut::Progress::new(3).total(12).message("indexing"));
    /// # }
    /// ```
    ///
    /// What does not rise is left out (PRG-04), and so is what comes too soon after the last; what
    /// comes after the answer never leaves (PRG-07).
    pub fn progress(&self, progress: impl Into<Progress>) {
        let Ok(Some(token)) = &self.inner.terms.progress_token else { return };
        let Progress { value, total, message } = progress.into();
        // It would be written as null.
        let total = total.filter(|total| total.is_finite());
        if self.is_crowded() {
            return;
        }
        {
            let mut reported = lock(&self.inner.reported);
            let now = crate::driver::now();
            let complete = total.is_some_and(|total| value >= total);
            let rises = reported.is_none_or(|(_, last)| value > last);
            let soon = reported.is_some_and(|(at, _)| now - at < PROGRESS_EVERY);
            if !value.is_finite() || !rises || (soon && !complete) {
                return;
            }
            *reported = Some((now, value));
        }
        let params = ProgressParams::new(token.clone(), value);
        self.tell(Method::Progress, &ProgressParams { total, message, ..params });
    }

    /// Writes a line to the client's log, if it wants lines of this level.
    ///
    /// Needs [`ServerBuilder::logging`](super::ServerBuilder::logging). Never put secrets in it (LOG-12).
    /// While more than [`ServerBuilder::log_queue`](super::ServerBuilder::log_queue) bytes wait to be
    /// sent, lines are dropped and counted.
    pub fn log(&self, level: Level, data: impl Serialize) {
        self.log_as(None, level, data);
    }

    /// As [`log`](Self::log), in the name of a part of the server.
    pub fn log_from(&self, logger: &str, level: Level, data: impl Serialize) {
        self.log_as(Some(logger.to_owned()), level, data);
    }

    fn log_as(&self, logger: Option<String>, level: Level, data: impl Serialize) {
        let wanted = match &self.inner.terms.log_level {
            Some(least) => level >= *least,
            // LOG-09: a modern request that names no level wants no lines.
            None if self.revision().is_modern() => false,
            None => level >= *lock(&self.inner.connection.level),
        };
        if !wanted || !self.inner.shared().settings.logging {
            return;
        }
        if self.is_crowded() {
            self.inner.connection.lost_logs.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let lost = self.inner.connection.lost_logs.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let words =
                format!("{lost} log lines were dropped: the client did not read fast enough");
            let params = LogParams::new(level.clone(), serde_json::Value::from(words));
            self.tell(Method::Message, &params.logger("taut"));
        }
        if let Ok(data) = RawJson::of(&data) {
            let params = LogParams { logger, ..LogParams::new(level, data) };
            self.tell(Method::Message, &params);
        }
    }

    /// Whether so much waits to be sent that what may be lost is.
    fn is_crowded(&self) -> bool {
        let connection = &self.inner.connection;
        connection.link.output_waiting() > connection.shared.settings.log_queue
    }

    /// Sends a notification that belongs to this call, unless the call is over (CAN-10, LOG-10).
    fn tell(&self, method: Method, params: &(impl WriteJson + Sync)) {
        // An error means that the connection has ended. The handler learns of that in other ways.
        let _ = self.inner.connection.link.notify_about(
            &self.inner.id,
            self.inner.serial,
            method.as_str(),
            Some(&params.at(self.revision())),
        );
    }
}

/// Who asks. Untrusted: never decide by it (MET-04).
#[derive(Clone, Copy, Debug)]
pub struct ClientInfo<'a>(&'a Asker);

impl<'a> ClientInfo<'a> {
    /// Its name, if it says.
    #[must_use]
    pub fn name(&self) -> Option<&'a str> {
        self.0.info.as_ref().map(|info| info.name.as_str())
    }

    /// Its version, if it says.
    #[must_use]
    pub fn version(&self) -> Option<&'a str> {
        self.0.info.as_ref().map(|info| info.version.as_str())
    }

    /// What it can do; for this call, and no other (CAP-01).
    #[must_use]
    pub fn capabilities(&self) -> &'a ClientCapabilities {
        &self.0.capabilities
    }
}

/// How far some work is.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "nobody hears of it until it is given to `Call::progress`"]
pub struct Progress {
    value: f64,
    total: Option<f64>,
    message: Option<String>,
}

impl Progress {
    /// So far; any number that rises.
    pub fn new(value: impl Into<f64>) -> Self {
        Self { value: value.into(), total: None, message: None }
    }
}

setters! { Progress;
    /// How far it will go.
    total(total: impl Into<f64>) => total = Some(total.into());

    /// What is being done. Left out for clients of 2024-11-05.
    message(message: impl Into<String>) => message = Some(message.into());
}

impl From<f64> for Progress {
    fn from(value: f64) -> Self {
        Self::new(value)
    }
}
