//! One request: a builder that is awaited.
//!
//! Knows patience, progress and how an answer is read: on the loop, straight from the bytes that came,
//! into the type that is wanted. Must not know any one method. TMO-01 to TMO-05, C8 to C10, RSL-02,
//! RSL-03.

use std::borrow::Cow;
use std::future::{Future, IntoFuture};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::Shared;
use super::envelope::Params;
use super::rounds::{Asks, Retry, rounds};
use crate::driver::{PendingCall, Watcher};
use crate::ending::Ending;
use crate::error::{Error, Result};
use crate::mcp::{Meta, Method, ProgressParams, ResultType};
use crate::rpc::{Body, ErrorObject, Failure, Patience, SendError};

/// What is asked, for reading the answer and for errors.
#[derive(Clone)]
pub(super) struct Subject {
    pub(super) method: Cow<'static, str>,
    /// The tool, if it is one that is called.
    pub(super) tool: Option<Arc<str>>,
    pub(super) modern: bool,
}

/// Reads an answer.
pub(super) type Read<T> = fn(&RawValue, Subject) -> Result<T>;

/// A request about to be made; await it. Dropping it withdraws the request.
#[must_use = "a request does nothing until it is awaited"]
pub struct Request<T> {
    pub(super) shared: Arc<Shared>,
    subject: Subject,
    body: Box<dyn Body>,
    timeout: Option<Duration>,
    ceiling: Option<Duration>,
    /// Shared with each round of the request.
    progress: Option<Arc<Mutex<Watcher>>>,
    meta: Option<Meta>,
    /// Why it will not even be sent.
    refused: Option<Error>,
    read: Read<T>,
    /// Makes the request instead of us, and looks at what comes of it.
    #[cfg(feature = "validate")]
    around: Option<Around<T>>,
}

/// Makes a request, knowing its tool and how long it may take.
#[cfg(feature = "validate")]
pub(super) type Around<T> =
    fn(Request<T>, Arc<str>, Option<Duration>) -> Pin<Box<dyn Future<Output = Result<T>> + Send>>;

impl<T> Request<T> {
    pub(super) fn new(
        shared: Arc<Shared>,
        subject: Subject,
        body: Box<dyn Body>,
        read: Read<T>,
    ) -> Self {
        let timeout = Some(shared.settings.request);
        let ceiling = Some(shared.settings.ceiling);
        Self {
            shared,
            subject,
            body,
            timeout,
            ceiling,
            progress: None,
            meta: None,
            refused: None,
            read,
            #[cfg(feature = "validate")]
            around: None,
        }
    }

    pub(super) fn refused(mut self, error: Option<Error>) -> Self {
        self.refused = error;
        self
    }

    #[cfg(feature = "validate")]
    pub(super) fn around(mut self, around: Around<T>) -> Self {
        self.around = Some(around);
        self
    }

    /// How long it may go without a sign of life. Each report of progress starts it anew.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How long it may take in all, however much progress is reported.
    pub fn ceiling(mut self, ceiling: Duration) -> Self {
        self.ceiling = Some(ceiling);
        self
    }

    /// Waits for as long as it takes.
    pub fn without_timeout(mut self) -> Self {
        self.timeout = None;
        self
    }

    /// Gets each report of progress, in order and before the answer. It must not block.
    pub fn progress(mut self, mut watch: impl FnMut(ProgressParams) + Send + 'static) -> Self {
        let watcher: Watcher = Box::new(move |raw| match serde_json::from_str(raw.get()) {
            Ok(progress) => {
                // A callback that panics must not take the connection down with it.
                if catch_unwind(AssertUnwindSafe(|| watch(progress))).is_err() {
                    tracing::warn!("a callback for progress panicked");
                }
            }
            Err(error) => tracing::debug!(%error, "a report of progress that cannot be read"),
        });
        self.progress = Some(Arc::new(Mutex::new(watcher)));
        self
    }

    /// Adds to the request's `_meta`.
    pub fn meta(mut self, meta: Meta) -> Self {
        self.meta = Some(meta);
        self
    }

    fn patience(&self) -> Option<Patience> {
        let timeout = Patience::new(self.timeout?);
        Some(match self.ceiling {
            // Who gives one request more time than the ceiling means it.
            Some(ceiling) => timeout.extended_by_progress(ceiling.max(timeout.timeout)),
            None => timeout,
        })
    }
}

impl<T> Request<T> {
    pub(super) fn method(&self) -> &Cow<'static, str> {
        &self.subject.method
    }

    /// What to tell the caller when the connection ended first.
    pub(super) fn lost(&self) -> Error {
        self.shared.session.lost(self.subject.method.clone())
    }
}

impl<T: Send + 'static> Request<T> {
    fn send(mut self) -> Result<Waiting<T>> {
        if let Some(error) = self.refused.take() {
            return Err(error);
        }
        let pending = self.put(None)?;
        Ok(Waiting { pending, request: self })
    }

    /// Writes the request, with what the server has asked for since, if it has.
    pub(super) fn put(&mut self, retry: Option<&Retry>) -> Result<Pending<T>> {
        let session = &self.shared.session;
        if session.is_closing() {
            return Err(self.lost());
        }
        let patience = self.patience();
        // C8: without a token no progress comes, and the timeout could never be extended.
        let wants_progress =
            self.progress.is_some() || patience.is_some_and(|p| p.ceiling.is_some());
        let level = self.shared.level();
        let (subject, read) = (self.subject.clone(), self.read);
        let sent = session.link.call(
            &self.subject.method,
            |call| {
                Some(Params {
                    tool: self.subject.tool.as_deref(),
                    body: &mut *self.body,
                    envelope: &self.shared.envelope,
                    level: level.as_ref(),
                    token: wants_progress.then(|| call.number()),
                    meta: self.meta.as_ref(),
                    retry,
                })
            },
            patience,
            self.progress.as_ref().map(watcher),
            move |outcome| match outcome {
                Ok(raw) => Some(read_safely(raw, subject, read)),
                Err(Failure::Ended) => None,
                Err(failure) => {
                    let error = Error::from_failure(subject.method, failure, || Ending::Eof);
                    Some(Got::Result(Err(error)))
                }
            },
        );
        sent.map_err(|error| match error {
            SendError::Closed => self.lost(),
            other => Error::from_send(self.subject.method.clone(), other, || Ending::Eof),
        })
    }
}

/// What came of a request: its result, or a question.
pub(super) enum Got<T> {
    Result(Result<T>),
    Asks(Asks),
}

/// Nothing if the connection ended first.
pub(super) type Pending<T> = PendingCall<Option<Got<T>>>;

fn watcher(shared: &Arc<Mutex<Watcher>>) -> Watcher {
    let shared = shared.clone();
    Box::new(move |raw| (shared.lock().unwrap_or_else(PoisonError::into_inner))(raw))
}

/// The caller's type may do as it likes when it is read, and the loop must live on.
fn read_safely<T>(raw: &RawValue, subject: Subject, read: Read<T>) -> Got<T> {
    let method = subject.method.clone();
    match catch_unwind(AssertUnwindSafe(|| read(raw, subject))) {
        Ok(Err(Error::InputRequired { .. })) => match Asks::read(raw, method) {
            Ok(asks) => Got::Asks(asks),
            Err(error) => Got::Result(Err(error)),
        },
        Ok(result) => Got::Result(result),
        Err(_) => {
            let what = "reading it panicked".into();
            Got::Result(Err(Error::Unfit { name: method.into(), what }))
        }
    }
}

impl<T: Send + 'static> IntoFuture for Request<T> {
    type Output = Result<T>;
    type IntoFuture = Calling<T>;

    #[cfg_attr(not(feature = "validate"), allow(unused_mut, reason = "nothing is taken out then"))]
    fn into_future(mut self) -> Calling<T> {
        #[cfg(feature = "validate")]
        if let (Some(around), None) = (self.around.take(), &self.refused)
            && let Some(tool) = self.subject.tool.clone()
        {
            let timeout = self.timeout;
            return Calling(State::Asked(around(self, tool, timeout)));
        }
        Calling(State::New(self))
    }
}

/// A request under way. Dropping it withdraws the request on the wire.
#[must_use = "a request does nothing until it is awaited"]
pub struct Calling<T>(State<T>);

enum State<T> {
    New(Request<T>),
    Waiting(Waiting<T>),
    /// Somebody else makes the request: the server wants something first, or the answer is checked.
    Asked(Pin<Box<dyn Future<Output = Result<T>> + Send>>),
    Over,
}

struct Waiting<T> {
    pending: Pending<T>,
    request: Request<T>,
}

impl<T: Send + 'static> Future for Calling<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        let state = &mut self.get_mut().0;
        if let State::New(_) = state
            && let State::New(request) = std::mem::replace(state, State::Over)
        {
            match request.send() {
                Ok(waiting) => *state = State::Waiting(waiting),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        if let State::Waiting(waiting) = state {
            let answer = std::task::ready!(Pin::new(&mut waiting.pending).poll(cx));
            let State::Waiting(Waiting { request, .. }) = std::mem::replace(state, State::Over)
            else {
                return Poll::Pending;
            };
            match answer.flatten() {
                Some(Got::Result(answer)) => return Poll::Ready(answer),
                Some(Got::Asks(asks)) => *state = State::Asked(Box::pin(rounds(request, asks))),
                None => return Poll::Ready(Err(request.lost())),
            }
        }
        let State::Asked(rounds) = state else { return Poll::Pending };
        let answer = std::task::ready!(rounds.as_mut().poll(cx));
        *state = State::Over;
        Poll::Ready(answer)
    }
}

/// Reads an answer as any type.
pub(super) fn read_any<T: DeserializeOwned>(raw: &RawValue, subject: Subject) -> Result<T> {
    if subject.modern {
        check_type(raw, &subject)?;
    }
    serde_json::from_str(raw.get()).map_err(|error| does_not_fit(subject, &error))
}

/// A result of the protocol, which says in the modern revision what kind of result it is.
pub(super) trait Outcome: DeserializeOwned {
    fn result_type(&self) -> &ResultType;
}

/// Reads an answer as the result that the method has. One pass over the bytes.
pub(super) fn read_result<T: Outcome>(raw: &RawValue, subject: Subject) -> Result<T> {
    match serde_json::from_str::<T>(raw.get()) {
        Ok(result) if subject.modern => match result.result_type() {
            ResultType::Complete => Ok(result),
            other => Err(unfinished(other, &subject)),
        },
        Ok(result) => Ok(result),
        Err(error) => {
            // What is not complete need not have the members of what is.
            if subject.modern {
                check_type(raw, &subject)?;
            }
            Err(does_not_fit(subject, &error))
        }
    }
}

fn check_type(raw: &RawValue, subject: &Subject) -> Result<()> {
    match ResultType::of(raw) {
        // RSL-02: saying nothing means complete.
        Ok(ResultType::Complete) | Err(_) => Ok(()),
        Ok(other) => Err(unfinished(&other, subject)),
    }
}

fn unfinished(kind: &ResultType, subject: &Subject) -> Error {
    let method = subject.method.clone();
    match kind {
        // MRTR-01. Only a sign: what is asked is read where the bytes still are.
        ResultType::InputRequired
            if Method::parse(&method).is_none_or(Method::may_require_input) =>
        {
            let error = Box::new(ErrorObject::internal("not asked yet"));
            Error::InputRequired { method, asked: String::new(), error }
        }
        // RSL-03: what is not recognised is invalid, not complete.
        other => {
            let what = format!("its type is {:?}, which nobody asked for", other.as_str());
            Error::Violation { method, what: what.into() }
        }
    }
}

fn does_not_fit(subject: Subject, error: &serde_json::Error) -> Error {
    let what = format!("the result does not fit: {error}").into();
    Error::Violation { method: subject.method, what }
}
