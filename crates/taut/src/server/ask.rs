//! Asking back in the middle of a call: the user, the client's model, the client's folders.
//!
//! One way to ask, in both eras. Legacy: a request to the client, awaited. Modern: the run ends
//! with the questions, and when the client sends the request again with the answers the handler
//! runs again from the top, and the same questions return at once. So what stands before a question
//! runs more than once; [`Call::once`] is for what must not.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::call::Call;
use super::form::form_of;
use crate::mcp::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitAction, ElicitForm,
    ElicitParams, ElicitResult, ElicitUrl, ElicitationCapability, FormSchema, JsonObject,
    ListRootsResult, MISSING_CLIENT_CAPABILITY, Memory, Method, MissingCapability, Question,
    RawJson, Root, RootsCapability, SamplingCapability, SerializeAt,
};
use crate::rpc::{ErrorObject, Failure, Patience};

/// What the user did with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Asked<T> {
    /// Answered it.
    Accepted(T),
    /// Said no.
    Declined,
    /// Went away without an answer.
    Cancelled,
}

impl<T> Asked<T> {
    /// The answer, if there is one.
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accepted(value) => Some(value),
            _ => None,
        }
    }
}

/// Why a question has no answer, not even a "no".
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AskError {
    /// The client cannot be asked this. A modern one is told so with −32021.
    NotSupported {
        /// What it would have to declare.
        required: Box<ClientCapabilities>,
        /// What it cannot do, in words.
        what: &'static str,
        /// Whether the client is told by a code (CAP-02) or in words.
        modern: bool,
    },
    /// Only tools, prompts and resources can ask (MRTR-01).
    NotHere,
    /// The client answered with an error.
    Refused(ErrorObject),
    /// The client did not answer in time.
    TimedOut(Duration),
    /// The connection ended first.
    Ended,
    /// The question cannot be put, or the answer cannot be read.
    Unfit(String),
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSupported { what, .. } => write!(f, "this client cannot {what}"),
            Self::NotHere => f.write_str("only tools, prompts and resources can ask back"),
            Self::Refused(error) => write!(f, "the client refused to ask: {error}"),
            Self::TimedOut(after) => write!(f, "the client did not answer within {after:?}"),
            Self::Ended => f.write_str("the connection ended before the client answered"),
            Self::Unfit(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for AskError {}

impl AskError {
    /// The JSON-RPC error that this is in the modern era.
    pub(super) fn as_error(&self) -> Option<ErrorObject> {
        match self {
            Self::NotSupported { required, modern: true, .. } => Some(
                ErrorObject::new(MISSING_CLIENT_CAPABILITY, self.to_string())
                    .with_data(&MissingCapability::new((**required).clone())),
            ),
            _ => None,
        }
    }
}

/// The questions of one run, and what earlier runs have learnt.
#[derive(Default)]
pub(super) struct Asks(Mutex<State>);

#[derive(Default)]
struct State {
    memory: Memory,
    place: usize,
    open: BTreeMap<String, Question>,
    refused: Option<ErrorObject>,
    /// Who polls the run; woken when a question is asked from another task.
    runner: Option<Waker>,
}

/// How a run stands after a poll.
pub(super) enum Standing {
    Going,
    Refused(ErrorObject),
    Asking(BTreeMap<String, Question>, Memory),
}

impl Asks {
    pub(super) fn remembering(memory: Memory) -> Self {
        Self(Mutex::new(State { memory, ..State::default() }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_place(&self) -> usize {
        let mut state = self.lock();
        state.place += 1;
        state.place
    }

    /// Whether the run waits for the client. Called after each poll that was not ready.
    pub(super) fn standing(&self, cx: &Context<'_>) -> Standing {
        let mut state = self.lock();
        if let Some(error) = state.refused.take() {
            return Standing::Refused(error);
        }
        if state.open.is_empty() {
            state.runner = Some(cx.waker().clone());
            return Standing::Going;
        }
        Standing::Asking(std::mem::take(&mut state.open), std::mem::take(&mut state.memory))
    }

    /// The answer that an earlier round brought, or the question noted for this one.
    fn answer<T: DeserializeOwned>(&self, key: &str, question: &Question) -> Option<T> {
        let mut state = self.lock();
        let parsed = state.memory.answers.get(key).map(|raw| serde_json::from_str(raw.get()));
        match parsed {
            Some(Ok(answer)) => return Some(answer),
            // MRTR-12
            Some(Err(error)) => {
                state.refused = Some(ErrorObject::invalid_params(format!(
                    "inputResponses.{key} is no answer to {}: {error}",
                    question.method.as_str()
                )));
            }
            None => {
                state.open.insert(key.to_owned(), question.clone());
            }
        }
        if let Some(runner) = state.runner.take() {
            runner.wake();
        }
        None
    }

    fn remembered(&self, key: &str) -> Option<Box<RawValue>> {
        self.lock().memory.onces.get(key).cloned()
    }

    fn remember(&self, key: &str, value: Box<RawValue>) {
        self.lock().memory.onces.insert(key.to_owned(), value);
    }
}

impl<S: Send + Sync + 'static> Call<S> {
    /// Asks the user to fill in a form. The fields are those of `T`: text, numbers, `bool` and
    /// enums without data, with their doc comments; `Option` for what may be left empty.
    ///
    /// Never ask for secrets this way (ELI-08); use [`ask_at`](Self::ask_at).
    ///
    /// # Errors
    /// The client cannot show forms, or gave no usable answer. A "no" is an answer: see [`Asked`].
    pub async fn ask<T>(&self, message: impl Into<String>) -> Result<Asked<T>, AskError>
    where
        T: JsonSchema + DeserializeOwned,
    {
        let form = form_of::<T>().map_err(AskError::Unfit)?;
        match self.ask_form(message, form).await? {
            Asked::Accepted(content) => serde_json::from_value(content.into())
                .map(Asked::Accepted)
                .map_err(|error| AskError::Unfit(format!("the answer does not fit: {error}"))),
            Asked::Declined => Ok(Asked::Declined),
            Asked::Cancelled => Ok(Asked::Cancelled),
        }
    }

    /// As [`ask`](Self::ask), with a form that is put together by hand.
    ///
    /// # Errors
    /// As for [`ask`](Self::ask).
    pub async fn ask_form(
        &self,
        message: impl Into<String>,
        form: FormSchema,
    ) -> Result<Asked<JsonObject>, AskError> {
        // CAP-03: saying nothing about modes means forms.
        let can = self.elicitation().is_some_and(ElicitationCapability::supports_form);
        let capability = ElicitationCapability::new().form(JsonObject::new());
        self.require(can, "show a form", || ClientCapabilities::new().elicitation(capability))?;
        let answer = self.elicit(ElicitForm::new(message, form).into()).await?;
        Ok(match answer.action {
            ElicitAction::Accept => Asked::Accepted(answer.content.unwrap_or_default()),
            ElicitAction::Decline => Asked::Declined,
            _ => Asked::Cancelled,
        })
    }

    /// Asks the user to visit a page, for what the client must not see. That they agree does not
    /// mean that they are done (ELI-12).
    ///
    /// # Errors
    /// As for [`ask`](Self::ask).
    pub async fn ask_at(
        &self,
        url: impl Into<String>,
        message: impl Into<String>,
    ) -> Result<Asked<()>, AskError> {
        let can = self.revision().has_url_elicitation()
            && self.elicitation().is_some_and(ElicitationCapability::supports_url);
        let capability = ElicitationCapability::new().url(JsonObject::new());
        self.require(can, "open a URL", || ClientCapabilities::new().elicitation(capability))?;
        let mut question = ElicitUrl::new(message, url);
        if !self.revision().is_modern() {
            // ELI-05: 2025-11-25 wants a name for it. ELI-06: gone after.
            question = question.elicitation_id(format!("{}-{}", self.inner.serial, self.id()));
        }
        let answer = self.elicit(question.into()).await?;
        Ok(match answer.action {
            ElicitAction::Accept => Asked::Accepted(()),
            ElicitAction::Decline => Asked::Declined,
            _ => Asked::Cancelled,
        })
    }

    async fn elicit(&self, question: ElicitParams) -> Result<ElicitResult, AskError> {
        if !question.fits(self.revision()) {
            let revision = self.revision();
            return Err(AskError::Unfit(format!("revision {revision} cannot carry this form")));
        }
        self.put(Method::Elicit, &question).await
    }

    /// Asks the client's language model.
    ///
    /// # Errors
    /// The client has none, or has none with tools where `params` brings some, or refused.
    pub async fn sample(
        &self,
        params: CreateMessageParams,
    ) -> Result<CreateMessageResult, AskError> {
        let sampling = self.inner.terms.asker.capabilities.sampling.as_ref();
        self.require(sampling.is_some(), "ask a model", || {
            ClientCapabilities::new().sampling(SamplingCapability::new())
        })?;
        // SAM-05
        let wants_tools = params.tools.is_some() || params.tool_choice.is_some();
        let has_tools = self.revision().has_sampling_tools()
            && sampling.is_some_and(|sampling| sampling.tools.is_some());
        self.require(!wants_tools || has_tools, "give its model tools", || {
            ClientCapabilities::new().sampling(SamplingCapability::new().tools(JsonObject::new()))
        })?;
        self.put(Method::CreateMessage, &params).await
    }

    /// Asks the client for the folders that it works in. Guidance, not access control (ROO-06).
    ///
    /// # Errors
    /// The client does not tell.
    pub async fn roots(&self) -> Result<Vec<Root>, AskError> {
        let can = self.inner.terms.asker.capabilities.roots.is_some();
        self.require(can, "tell its roots", || {
            ClientCapabilities::new().roots(RootsCapability::new())
        })?;
        let result: ListRootsResult = self.put(Method::ListRoots, &NoParams).await?;
        Ok(result.roots)
    }

    /// Does something once, however often this call is run for the sake of its questions: the
    /// result is kept in the state that the client brings back.
    ///
    /// The client can read what is kept (it is signed, not hidden), so keep no secrets.
    ///
    /// # Errors
    /// The value has no JSON form, or what came back is no `T`.
    pub async fn once<T, F>(&self, key: &str, work: F) -> Result<T, AskError>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = T>,
    {
        let unfit = |error: serde_json::Error| AskError::Unfit(format!("once({key:?}): {error}"));
        if let Some(kept) = self.inner.asks.remembered(key) {
            return serde_json::from_str(kept.get()).map_err(unfit);
        }
        let value = work.await;
        let kept = serde_json::value::to_raw_value(&value).map_err(unfit)?;
        self.inner.asks.remember(key, kept);
        Ok(value)
    }

    fn elicitation(&self) -> Option<&ElicitationCapability> {
        let capabilities = &self.inner.terms.asker.capabilities;
        capabilities.elicitation.as_ref().filter(|_| self.revision().has_elicitation())
    }

    /// ELI-04, MRTR-04: nobody is asked for what they did not offer.
    fn require(
        &self,
        can: bool,
        what: &'static str,
        required: impl FnOnce() -> ClientCapabilities,
    ) -> Result<(), AskError> {
        if can {
            return Ok(());
        }
        let modern = self.revision().is_modern();
        Err(AskError::NotSupported { required: Box::new(required()), what, modern })
    }

    /// Puts a question, in the way of the client's era.
    async fn put<T: DeserializeOwned + Send + 'static>(
        &self,
        method: Method,
        params: &impl SerializeAt,
    ) -> Result<T, AskError> {
        if !self.inner.method.may_require_input() {
            return Err(AskError::NotHere);
        }
        let params = RawJson::of(&params.at(self.revision()))
            .map_err(|error| AskError::Unfit(error.to_string()))?;
        if !self.revision().is_modern() {
            return self.put_on_the_wire(method, params).await;
        }
        let question = Question { method, params };
        let key = question.key(self.inner.asks.next_place());
        std::future::poll_fn(|_| match self.inner.asks.answer(&key, &question) {
            Some(answer) => Poll::Ready(Ok(answer)),
            // The run ends here; whoever polls it sees the question.
            None => Poll::Pending,
        })
        .await
    }

    async fn put_on_the_wire<T: DeserializeOwned + Send + 'static>(
        &self,
        method: Method,
        params: RawJson,
    ) -> Result<T, AskError> {
        let patience = self.inner.shared.settings.ask_timeout;
        let read = |outcome: Result<&RawValue, Failure>| match outcome {
            Ok(raw) => serde_json::from_str(raw.get())
                .map_err(|error| AskError::Unfit(format!("the answer cannot be read: {error}"))),
            Err(Failure::Refused(error)) => Err(AskError::Refused(error)),
            Err(Failure::TimedOut { after, .. }) => Err(AskError::TimedOut(after)),
            Err(Failure::Violation(fault)) => Err(AskError::Unfit(fault.to_string())),
            Err(_) => Err(AskError::Ended),
        };
        let link = &self.inner.link;
        let patience = Some(Patience::new(patience));
        let pending = link.call(method.as_str(), |_| Some(params), patience, None, read);
        pending.map_err(|_| AskError::Ended)?.await.unwrap_or(Err(AskError::Ended))
    }
}

/// `roots/list` has no params.
struct NoParams;

impl SerializeAt for NoParams {
    fn serialize_at<W: serde::Serializer>(
        &self,
        _: crate::mcp::Shape,
        serializer: W,
    ) -> Result<W::Ok, W::Error> {
        serde::ser::SerializeMap::end(serializer.serialize_map(Some(0))?)
    }
}

/// A handler that may stop to ask: ready when it is done, or when it waits for the client.
pub(super) struct Suspendable<'a, F> {
    pub(super) work: Pin<&'a mut F>,
    pub(super) asks: &'a Asks,
}

/// How a run ended.
pub(super) enum Run<T> {
    Done(T),
    Refused(ErrorObject),
    Asking(BTreeMap<String, Question>, Memory),
}

impl<F: Future> Future for Suspendable<'_, F> {
    type Output = Run<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(value) = self.work.as_mut().poll(cx) {
            return Poll::Ready(Run::Done(value));
        }
        match self.asks.standing(cx) {
            Standing::Going => Poll::Pending,
            Standing::Refused(error) => Poll::Ready(Run::Refused(error)),
            Standing::Asking(questions, memory) => Poll::Ready(Run::Asking(questions, memory)),
        }
    }
}
