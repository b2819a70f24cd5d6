//! A call being handled, as its handler sees it: who asks, and how to talk back meanwhile.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::Shared;
use super::changes::Changes;
use super::hook::{Moment, Outcome};
use super::rounds::Asks;
use crate::driver::{Link, Token as Withdrawn};
use crate::mcp::{
    Asker, ClientCapabilities, Level, LogParams, Meta, Method, ProgressParams, RESOURCE_NOT_FOUND,
    RawJson, ReadResourceResult, Revision, Terms, Trace, WriteJson, resource_not_found,
};
use crate::rpc::{ErrorObject, Id};

/// Reports of progress leave at most this often (PRG-12): a person cannot follow more, and a
/// handler that reports in a loop must not fill the pipe.
const PROGRESS_EVERY: Duration = Duration::from_millis(50);

/// A call being handled. Clones are the same call.
pub struct Call<S = ()> {
    pub(super) inner: Arc<Ongoing<S>>,
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
pub(super) struct Connection<S> {
    pub(super) shared: Arc<Shared<S>>,
    pub(super) link: Link,
    /// The level of the legacy session.
    pub(super) level: SessionLevel,
}

/// What a call is made of.
pub(super) struct Ongoing<S> {
    pub(super) connection: Arc<Connection<S>>,
    pub(super) id: Id,
    pub(super) serial: u64,
    pub(super) withdrawn: Withdrawn,
    pub(super) terms: Arc<Terms>,
    pub(super) method: Method,
    pub(super) name: Arc<str>,
    pub(super) began: Instant,
    pub(super) reported: Mutex<Option<(Instant, f64)>>,
    /// What it asks the client, and what it has learnt.
    pub(super) asks: Asks,
    /// Kept for binding the state of a question to; only where there may be one.
    pub(super) arguments: Option<Box<str>>,
    /// Whether the hook has heard of the end.
    pub(super) ended: AtomicBool,
}

impl<S> Ongoing<S> {
    pub(super) fn shared(&self) -> &Shared<S> {
        &self.connection.shared
    }

    /// What was read from a resource, as this client is to see it.
    pub(super) fn as_read(
        &self,
        outcome: Result<ReadResourceResult, ErrorObject>,
    ) -> Result<ReadResourceResult, ErrorObject> {
        match outcome {
            Ok(contents) => Ok(self.shared().settings.hinted(contents)),
            // ERR-03: the modern revision has no code of its own for it.
            Err(mut error) if error.code == RESOURCE_NOT_FOUND => {
                error.code = resource_not_found(self.terms.revision);
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Tells the hook that it is over, once.
    pub(super) fn end(&self, outcome: Outcome) {
        let Some(hook) = &self.shared().settings.hook else { return };
        if !self.ended.swap(true, Ordering::Relaxed) {
            let took = crate::driver::now() - self.began;
            // A veto comes too late here; there is nothing left to refuse.
            let _ = hook(&Moment::ended(self.method, &self.name, took, outcome));
        }
    }
}

impl<S> Drop for Ongoing<S> {
    /// A call that was dropped, or whose handler panicked, has ended too: an audit has no gaps.
    fn drop(&mut self) {
        self.end(Outcome::Failed);
    }
}

impl<S> Call<S> {
    /// What the server was given with [`Server::state`](super::Server::state).
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

    /// A handle for changing what the server offers.
    #[must_use]
    pub fn changes(&self) -> Changes<S> {
        Changes { shared: self.inner.connection.shared.clone() }
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
    /// [`call_timeout`](super::Server::call_timeout).
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.inner.shared().settings.call_timeout.map(|limit| self.inner.began + limit)
    }

    /// Whether the client no longer wants the answer.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.inner.withdrawn.is_raised()
    }

    /// Waits until the client no longer wants the answer. A second later this call is dropped.
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + use<S> {
        self.inner.withdrawn.raised()
    }

    /// Says how far the work is, if the client wants to know.
    ///
    /// ```
    /// # fn example(call: taut::Call) {
    /// call.progress(0.5);
    /// call.progress(taut::Progress::new(3).of(12).saying("indexing"));
    /// # }
    /// ```
    ///
    /// What does not rise is left out (PRG-04), and so is what comes too soon after the last; what
    /// comes after the answer never leaves (PRG-07).
    pub fn progress(&self, progress: impl Into<Progress>) {
        let Ok(Some(token)) = &self.inner.terms.progress_token else { return };
        let Progress { value, total, message } = progress.into();
        {
            let mut reported = self.inner.reported.lock().unwrap_or_else(PoisonError::into_inner);
            let now = crate::driver::now();
            let complete = total.is_some_and(|total| value >= total);
            let rises = reported.is_none_or(|(_, last)| value > last);
            let soon = reported.is_some_and(|(at, _)| now - at < PROGRESS_EVERY);
            if !value.is_finite() || !rises || (soon && !complete) {
                return;
            }
            *reported = Some((now, value));
        }
        let mut params = ProgressParams::new(token.clone(), value);
        params.total = total;
        params.message = message;
        self.tell(Method::Progress, &params);
    }

    /// Writes a line to the client's log, if it wants lines of this level.
    ///
    /// Needs [`Server::logging`](super::Server::logging). Never put secrets in it (LOG-12).
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
            None => self.inner.connection.level.wants(&level),
        };
        if !wanted || !self.inner.shared().settings.logging {
            return;
        }
        if let Ok(data) = RawJson::of(&data) {
            let mut params = LogParams::new(level, data);
            params.logger = logger;
            self.tell(Method::Message, &params);
        }
    }

    /// Sends a notification that belongs to this call, unless the call is over (CAN-10, LOG-10).
    fn tell(&self, method: Method, params: &impl WriteJson) {
        // RawJson, because what is written must own itself: `AtRevision` borrows.
        let Ok(params) = RawJson::of(&params.at(self.revision())) else { return };
        // A connection that has ended hears nothing; the handler will notice by itself.
        let _ = self.inner.connection.link.notify_about(
            &self.inner.id,
            self.inner.serial,
            method.as_str(),
            Some(&params),
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
pub struct Progress {
    value: f64,
    total: Option<f64>,
    message: Option<String>,
}

impl Progress {
    /// So far; any number that rises.
    #[must_use]
    pub fn new(value: impl Into<f64>) -> Self {
        Self { value: value.into(), total: None, message: None }
    }

    /// How far it will go.
    #[must_use]
    pub fn of(mut self, total: impl Into<f64>) -> Self {
        self.total = Some(total.into());
        self
    }

    /// What is being done. Left out for clients of 2024-11-05.
    #[must_use]
    pub fn saying(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }
}

impl From<f64> for Progress {
    fn from(value: f64) -> Self {
        Self::new(value)
    }
}

/// The level that a legacy client has set, for the calls under way as well.
#[derive(Debug)]
pub(super) struct SessionLevel(AtomicU8);

impl SessionLevel {
    const ORDER: [Level; 8] = [
        Level::Debug,
        Level::Info,
        Level::Notice,
        Level::Warning,
        Level::Error,
        Level::Critical,
        Level::Alert,
        Level::Emergency,
    ];

    pub(super) fn set(&self, level: &Level) {
        let at = Self::ORDER.iter().position(|known| known == level).unwrap_or(0);
        self.0.store(at as u8, Ordering::Relaxed);
    }

    fn wants(&self, level: &Level) -> bool {
        Self::ORDER
            .get(usize::from(self.0.load(Ordering::Relaxed)))
            .is_none_or(|least| level >= least)
    }
}

impl Default for SessionLevel {
    /// LOG-05: until the client says, it hears what is not for debugging.
    fn default() -> Self {
        Self(AtomicU8::new(1))
    }
}
