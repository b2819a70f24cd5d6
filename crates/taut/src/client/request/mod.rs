//! One request: a builder that is awaited.
//!
//! Knows timeouts, progress and how an answer is read: on the loop, straight from the bytes that came,
//! into the type that is wanted. Must not know any one method. TMO-01 to TMO-05, C8 to C10, RSL-02,
//! RSL-03.

mod answer;
mod params;
mod rounds;

use std::borrow::Cow;
use std::future::{Future, IntoFuture};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::connection::{Client, ClientShared, bounded};
use crate::driver::{PendingCall, Watcher};
use crate::ending::Ending;
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::mcp::{Meta, Method, ProgressParams, ResultType, Target, WriteJson};
use crate::rpc::{ErrorObject, Failure, Patience};

pub use answer::Answer;
pub(super) use params::OutgoingParams;
use rounds::{RequiredInput, Retry, rounds};

/// What is asked, for reading the answer and for errors.
#[derive(Clone)]
pub(super) struct Subject {
    pub(super) method: Cow<'static, str>,
    /// The tool, if it is one that is called.
    pub(super) tool: Option<Arc<str>>,
    pub(super) modern: bool,
}

/// Reads an answer.
pub(super) type ReadAnswer<T> = fn(&RawValue, Subject) -> Result<T>;

/// A request about to be made; await it. Dropping it withdraws the request.
#[must_use = "a request does nothing until it is awaited"]
pub struct Request<T> {
    pub(super) shared: Arc<ClientShared>,
    subject: Subject,
    /// The params as JSON; for a tool, its arguments. Written before the connection's lock is taken:
    /// the caller's types may do anything when they are serialised.
    params: Vec<u8>,
    timeout: Option<Duration>,
    ceiling: Option<Duration>,
    /// Shared by all rounds of the request.
    progress: Option<Arc<Mutex<Watcher>>>,
    meta: Option<Meta>,
    /// The error to return without sending anything.
    refused: Option<Error>,
    read: ReadAnswer<T>,
    /// Makes the request in our place, and looks at what comes of it.
    #[cfg(feature = "validate")]
    around: Option<Around<T>>,
}

/// Makes a request, knowing its tool and how long it may take.
#[cfg(feature = "validate")]
pub(super) type Around<T> =
    fn(Request<T>, Arc<str>, Option<Duration>) -> Pin<Box<dyn Future<Output = Result<T>> + Send>>;

impl<T> Request<T> {
    /// A request whose params, or whose tool's arguments, are this JSON; or the error that they have none.
    pub(super) fn new(
        shared: Arc<ClientShared>,
        subject: Subject,
        params: Result<Vec<u8>, serde_json::Error>,
        read: ReadAnswer<T>,
    ) -> Self {
        let method = subject.method.clone();
        let (params, refused) = match params {
            Ok(params) => (params, None),
            Err(error) => (Vec::new(), Some(Error::Encode { method, reason: error.to_string() })),
        };
        let timeout = Some(shared.settings().request);
        let ceiling = Some(shared.settings().ceiling);
        Self {
            shared,
            subject,
            params,
            timeout,
            ceiling,
            progress: None,
            meta: None,
            refused,
            read,
            #[cfg(feature = "validate")]
            around: None,
        }
    }

    /// Refuses the request, unless the server offers what it needs (LIF-12).
    pub(super) fn needs(mut self, offered: bool, capability: &'static str) -> Self {
        if !offered {
            let method = self.subject.method.clone();
            self.refused = Some(Error::NotOffered { method, capability });
        }
        self
    }

    #[cfg(feature = "validate")]
    pub(super) fn around(mut self, around: Around<T>) -> Self {
        self.around = Some(around);
        self
    }

    /// Gets each report of progress, in order and before the answer. It must not block.
    pub fn progress(mut self, mut watch: impl FnMut(ProgressParams) + Send + 'static) -> Self {
        let watcher: Watcher = Box::new(move |raw| match serde_json::from_str(raw.get()) {
            // The loop goes on if it panics.
            Ok(progress) => watch(progress),
            Err(error) => tracing::debug!(%error, "a report of progress that cannot be read"),
        });
        self.progress = Some(Arc::new(Mutex::new(watcher)));
        self
    }

    fn patience(&self) -> Option<Patience> {
        let timeout = Patience::new(self.timeout?);
        Some(match self.ceiling {
            // A timeout above the ceiling was set for this request on purpose.
            Some(ceiling) => timeout.extended_by_progress(ceiling.max(timeout.timeout)),
            None => timeout,
        })
    }

    /// The error for a caller whose connection ended before the answer.
    fn lost(&self) -> Error {
        self.shared.session.lost(self.subject.method.clone())
    }
}

setters! { Request<T>, [T];
    /// Sets how long it may go without an answer. Each report of progress starts the time anew.
    timeout(timeout: Duration) => timeout = Some(bounded(timeout));

    /// Sets how long it may take in all, however much progress is reported.
    ceiling(ceiling: Duration) => ceiling = Some(bounded(ceiling));

    /// Waits for as long as it takes.
    without_timeout() => timeout = None;

    /// Adds to the request's `_meta`.
    meta(meta: Meta) => meta = Some(meta);
}

impl<T: Send + 'static> Request<T> {
    /// Sends the request, with what the server has asked for since, if it has.
    fn put(&self, retry: Option<&Retry>) -> Result<PendingRequest<T>> {
        let session = &self.shared.session;
        if session.is_closing() {
            return Err(self.lost());
        }
        let patience = self.patience();
        // C8: without a token no progress comes, and the timeout could never be extended.
        let wants_progress =
            self.progress.is_some() || patience.is_some_and(|p| p.ceiling.is_some());
        let level = lock(&self.shared.level).clone();
        let watcher = self
            .progress
            .clone()
            .map(|shared| -> Watcher { Box::new(move |report| (lock(&shared))(report)) });
        let (subject, read) = (self.subject.clone(), self.read);
        let sent = session.link.call(
            None,
            &self.subject.method,
            |call| {
                Some(OutgoingParams {
                    tool: self.subject.tool.as_deref(),
                    body: &self.params,
                    envelope: &self.shared.envelope,
                    level: level.as_ref(),
                    token: wants_progress.then(|| call.number()),
                    meta: self.meta.as_ref(),
                    retry,
                })
            },
            patience,
            watcher,
            move |outcome| match outcome {
                Ok(raw) => Some(read_safely(raw, subject, read)),
                Err(Failure::Ended) => None,
                Err(failure) => {
                    let ended = || Error::Ended(Ending::Eof);
                    let error = Error::from_failure(subject.method, failure, ended);
                    Some(Received::Result(Err(error)))
                }
            },
        );
        sent.map_err(|error| Error::from_send(self.subject.method.clone(), error, || self.lost()))
    }
}

/// What came of a request: its result, or a question.
enum Received<T> {
    Result(Result<T>),
    Input(RequiredInput),
}

/// `None` if the connection ended first.
type PendingRequest<T> = PendingCall<Option<Received<T>>>;

/// Reads an answer. The caller's type may panic when it is read; the loop goes on.
fn read_safely<T>(raw: &RawValue, subject: Subject, read: ReadAnswer<T>) -> Received<T> {
    let method = subject.method.clone();
    match catch_unwind(AssertUnwindSafe(|| read(raw, subject))) {
        Ok(Err(Error::InputRequired { .. })) => match RequiredInput::read(raw, method) {
            Ok(asks) => Received::Input(asks),
            Err(error) => Received::Result(Err(error)),
        },
        Ok(result) => Received::Result(result),
        Err(_) => {
            let what = "reading it panicked".into();
            Received::Result(Err(Error::Unfit { name: method.into(), what }))
        }
    }
}

impl<T: Send + 'static> IntoFuture for Request<T> {
    type Output = Result<T>;
    type IntoFuture = RequestFuture<T>;

    #[cfg_attr(not(feature = "validate"), allow(unused_mut, reason = "nothing is taken out then"))]
    fn into_future(mut self) -> RequestFuture<T> {
        #[cfg(feature = "validate")]
        if let (Some(around), None) = (self.around.take(), &self.refused)
            && let Some(tool) = self.subject.tool.clone()
        {
            let timeout = self.timeout;
            return RequestFuture(FutureState::Delegated(around(self, tool, timeout)));
        }
        RequestFuture(FutureState::New(self))
    }
}

/// The future of a [`Request`]. Dropping it withdraws the request on the wire.
#[must_use = "a request does nothing until it is awaited"]
pub struct RequestFuture<T>(FutureState<T>);

enum FutureState<T> {
    New(Request<T>),
    Waiting(PendingRequest<T>, Request<T>),
    /// Another future makes the request: the server wants something first, or the answer is checked.
    Delegated(Pin<Box<dyn Future<Output = Result<T>> + Send>>),
    Over,
}

impl<T: Send + 'static> Future for RequestFuture<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        let state = &mut self.get_mut().0;
        if let FutureState::New(_) = state
            && let FutureState::New(mut request) = std::mem::replace(state, FutureState::Over)
        {
            let sent = request.refused.take().map_or_else(|| request.put(None), Err);
            match sent {
                Ok(pending) => *state = FutureState::Waiting(pending, request),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        if let FutureState::Waiting(pending, _) = state {
            let answer = std::task::ready!(Pin::new(pending).poll(cx));
            let FutureState::Waiting(_, request) = std::mem::replace(state, FutureState::Over)
            else {
                return Poll::Pending;
            };
            match answer.flatten() {
                Some(Received::Result(answer)) => return Poll::Ready(answer),
                Some(Received::Input(asks)) => {
                    *state = FutureState::Delegated(Box::pin(rounds(request, asks)))
                }
                None => return Poll::Ready(Err(request.lost())),
            }
        }
        let FutureState::Delegated(rounds) = state else { return Poll::Pending };
        let answer = std::task::ready!(rounds.as_mut().poll(cx));
        *state = FutureState::Over;
        Poll::Ready(answer)
    }
}

/// Reads an answer as any type.
pub(super) fn read_any<T: DeserializeOwned>(raw: &RawValue, subject: Subject) -> Result<T> {
    if subject.modern
        && let Ok(kind) = ResultType::of(raw)
    {
        check_type(&kind, &subject)?;
    }
    serde_json::from_str(raw.get()).map_err(|error| {
        let what = format!("the result does not fit: {error}").into();
        Error::Violation { method: subject.method, what }
    })
}

/// A result of the protocol, which says in the modern revision what kind of result it is.
pub(super) trait TypedResult: DeserializeOwned {
    fn result_type(&self) -> &ResultType;
}

macro_rules! typed_results {
    ($($T:ident),* $(,)?) => {$(
        impl TypedResult for crate::mcp::$T {
            fn result_type(&self) -> &ResultType {
                &self.result_type
            }
        }
    )*};
}

typed_results!(CallToolResult, ReadResourceResult, GetPromptResult, CompleteResult, EmptyResult);
typed_results!(
    ListToolsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListPromptsResult,
);

/// Reads an answer as the result that the method has. One pass over the bytes.
pub(super) fn read_result<T: TypedResult>(raw: &RawValue, subject: Subject) -> Result<T> {
    match serde_json::from_str::<T>(raw.get()) {
        Ok(result) if subject.modern => {
            check_type(result.result_type(), &subject)?;
            Ok(result)
        }
        Ok(result) => Ok(result),
        // A result that is not complete need not have the members of a complete one: its type comes first then.
        Err(_) => read_any(raw, subject),
    }
}

/// Refuses a result that is not complete. RSL-02: one that does not say what it is is complete.
fn check_type(kind: &ResultType, subject: &Subject) -> Result<()> {
    let method = || subject.method.clone();
    Err(match kind {
        ResultType::Complete => return Ok(()),
        // MRTR-01. This error only marks the case; `read_safely` then reads the questions.
        ResultType::InputRequired
            if Method::parse(&subject.method).is_none_or(Method::may_require_input) =>
        {
            let error = Box::new(ErrorObject::internal("not asked yet"));
            Error::InputRequired { method: method(), asked: String::new(), error }
        }
        // RSL-03: what is not recognised is invalid, not complete.
        other => {
            let what =
                format!("its resultType is {:?}, which this request cannot have", other.as_str());
            Error::Violation { method: method(), what: what.into() }
        }
    })
}

impl Client {
    /// What a request of this method is about.
    pub(super) fn subject(&self, method: Method) -> Subject {
        let modern = self.revision().is_modern();
        Subject { method: method.as_str().into(), tool: None, modern }
    }

    /// A request with params of the protocol, as the agreed revision writes them (LIF-19).
    pub(super) fn typed<T>(
        &self,
        method: Method,
        params: &impl WriteJson,
        read: ReadAnswer<T>,
    ) -> Request<T> {
        let mut json = Vec::new();
        params.write_json(Target::of(self.revision()), &mut json);
        Request::new(self.0.clone(), self.subject(method), Ok(json), read)
    }
}
