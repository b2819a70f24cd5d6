//! Asking back in the middle of a call: the user, the client's model, the client's folders.
//!
//! One way to ask, in both eras. Legacy: a request to the client, awaited. Modern: the run ends
//! with the questions, and when the client sends the request again with the answers the handler
//! runs again from the top, and the same questions return at once. So what stands before a question
//! runs more than once; [`Call::once`] is for what must not.

use std::future::Future;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::Call;
use crate::driver::{Either, first};
use crate::mcp::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitAction, ElicitForm,
    ElicitParams, ElicitResult, ElicitUrl, ElicitationCapability, FormSchema, JsonObject,
    ListRootsResult, MISSING_CLIENT_CAPABILITY, Method, MissingCapability, Question, RawJson, Root,
    RootsCapability, SamplingCapability, WriteJson, disorder,
};
use crate::rpc::{ErrorObject, Failure, Patience};
use crate::server::schema::form_of;

/// What the user did with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UserReply<T> {
    /// Answered it.
    Accepted(T),
    /// Said no.
    Declined,
    /// Went away without an answer.
    Cancelled,
}

impl<T> UserReply<T> {
    fn of(action: &ElicitAction, value: T) -> Self {
        match action {
            ElicitAction::Accept => Self::Accepted(value),
            ElicitAction::Decline => Self::Declined,
            _ => Self::Cancelled,
        }
    }

    /// The answer, if there is one.
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accepted(value) => Some(value),
            _ => None,
        }
    }
}

worded! {
    /// Why a question has no answer, not even a "no".
    #[derive(Clone, Debug)]
    #[non_exhaustive]
    pub enum AskError {
        /// The client cannot be asked this. A modern one is told so with −32021.
        // Written for a model, which reads it: what is missing, and what to do instead.
        NotSupported {
            /// What it would have to declare.
            required: Box<ClientCapabilities>,
            /// What it cannot do, in words.
            what: &'static str,
            /// Whether the client is told by a code (CAP-02) or in words.
            modern: bool,
        } =
            "this client cannot {what}, and this needs it; calling it again here will not help: \
             do without it, or tell the user",
        /// Only tools, prompts and resources can ask (MRTR-01).
        NotHere = "only tools, prompts and resources can ask back",
        /// The client answered with an error.
        Refused(error: ErrorObject) = "the client refused to ask: {error}",
        /// The client did not answer in time.
        TimedOut(after: Duration) = "the client did not answer within {after:?}",
        /// The client no longer wants what the question was for.
        Withdrawn = "the client cancelled the call that asked",
        /// The connection ended first; or the call itself, if a task that it started asks.
        Ended = "the connection or the call ended before the answer came",
        /// The question cannot be put, or the answer cannot be read.
        Unfit(reason: String) = "{reason}",
    }
}

impl std::error::Error for AskError {}

impl AskError {
    /// The JSON-RPC error that this is in the modern era.
    pub(crate) fn as_error(&self) -> Option<ErrorObject> {
        match self {
            Self::NotSupported { required, modern: true, .. } => Some(
                ErrorObject::new(MISSING_CLIENT_CAPABILITY, self.to_string())
                    .with_data(&MissingCapability::new((**required).clone())),
            ),
            _ => None,
        }
    }
}

impl<S: Send + Sync + 'static> Call<S> {
    /// Asks the user to fill in a form. The fields are those of `T`: text, numbers, `bool` and
    /// enums without data, with their doc comments; `Option` for what may be left empty.
    ///
    /// Never ask for secrets this way (ELI-08); use [`ask_at`](Self::ask_at).
    ///
    /// # Errors
    /// The client cannot show forms, or gave no usable answer. A "no" is an answer: see [`UserReply`].
    pub async fn ask<T>(&self, message: impl Into<String>) -> Result<UserReply<T>, AskError>
    where
        T: JsonSchema + DeserializeOwned,
    {
        let form = form_of::<T>().map_err(AskError::Unfit)?;
        match self.ask_form(message, form).await? {
            UserReply::Accepted(content) => serde_json::from_value(content.into())
                .map(UserReply::Accepted)
                .map_err(|error| AskError::Unfit(format!("the answer does not fit: {error}"))),
            UserReply::Declined => Ok(UserReply::Declined),
            UserReply::Cancelled => Ok(UserReply::Cancelled),
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
    ) -> Result<UserReply<JsonObject>, AskError> {
        self.put_form(None, message.into(), form).await
    }

    /// As [`ask_form`](Self::ask_form), under a key that modern clients see. Without one taut makes a
    /// key from what is asked. The key stands for the question: ask the same under it in every run.
    ///
    /// # Errors
    /// As for [`ask`](Self::ask).
    pub async fn ask_form_as(
        &self,
        key: &str,
        message: impl Into<String>,
        form: FormSchema,
    ) -> Result<UserReply<JsonObject>, AskError> {
        self.put_form(Some(key), message.into(), form).await
    }

    async fn put_form(
        &self,
        key: Option<&str>,
        message: String,
        form: FormSchema,
    ) -> Result<UserReply<JsonObject>, AskError> {
        // CAP-03: saying nothing about modes means forms.
        let can = self.elicitation().is_some_and(ElicitationCapability::supports_form);
        let capability = ElicitationCapability::new().form(JsonObject::new());
        self.require(can, "show a form", ClientCapabilities::new().elicitation(capability))?;
        let answer = self.elicit(key, ElicitForm::new(message, form).into()).await?;
        Ok(UserReply::of(&answer.action, answer.content.unwrap_or_default()))
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
    ) -> Result<UserReply<()>, AskError> {
        let can = self.revision().has_url_elicitation()
            && self.elicitation().is_some_and(ElicitationCapability::supports_url);
        let capability = ElicitationCapability::new().url(JsonObject::new());
        self.require(can, "open a URL", ClientCapabilities::new().elicitation(capability))?;
        let mut question = ElicitUrl::new(message, url);
        if !self.revision().is_modern() {
            // ELI-05: 2025-11-25 wants a name for it. ELI-06: gone after.
            question = question.elicitation_id(format!("{}-{}", self.inner.serial, self.id()));
        }
        let answer = self.elicit(None, question.into()).await?;
        Ok(UserReply::of(&answer.action, ()))
    }

    async fn elicit(
        &self,
        key: Option<&str>,
        question: ElicitParams,
    ) -> Result<ElicitResult, AskError> {
        if !question.fits(self.revision()) {
            let revision = self.revision();
            return Err(AskError::Unfit(format!("revision {revision} cannot carry this form")));
        }
        self.put(Method::Elicit, key, &question).await
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
        let required = ClientCapabilities::new().sampling(SamplingCapability::new());
        self.require(sampling.is_some(), "ask a model", required)?;
        // SAM-05
        let wants_tools = params.tools.is_some() || params.tool_choice.is_some();
        let has_tools = self.revision().has_sampling_tools()
            && sampling.is_some_and(|sampling| sampling.tools.is_some());
        let with_tools = SamplingCapability::new().tools(JsonObject::new());
        let required = ClientCapabilities::new().sampling(with_tools);
        self.require(!wants_tools || has_tools, "give its model tools", required)?;
        // SAM-06; revisions without tools are told of them in words, where no order matters.
        let fault = disorder(&params.messages).filter(|_| self.revision().has_sampling_tools());
        match fault {
            Some(fault) => Err(AskError::Unfit(fault)),
            None => self.put(Method::CreateMessage, None, &params).await,
        }
    }

    /// Asks the client for the folders that it works in. Guidance, not access control (ROO-06).
    ///
    /// # Errors
    /// The client does not tell.
    pub async fn roots(&self) -> Result<Vec<Root>, AskError> {
        let can = self.inner.terms.asker.capabilities.roots.is_some();
        let required = ClientCapabilities::new().roots(RootsCapability::new());
        self.require(can, "tell its roots", required)?;
        let result: ListRootsResult = self.put(Method::ListRoots, None, &JsonObject::new()).await?;
        Ok(result.roots)
    }

    /// Does something once, however often this call is run for the sake of its questions: the
    /// result is kept in the state that the client brings back. It is kept only until the call
    /// ends: a client that sends the request from the beginning starts a new call.
    ///
    /// The client can read what is kept (it is signed, not hidden), so keep no secrets. Put no
    /// question inside `work`: it would stop half-way there, and run again.
    ///
    /// # Errors
    /// The value has no JSON form, or what came back is no `T`.
    pub async fn once<T, F>(&self, key: &str, work: F) -> Result<T, AskError>
    where
        T: Serialize + DeserializeOwned,
        F: Future<Output = T>,
    {
        let unfit = |error: serde_json::Error| AskError::Unfit(format!("once({key:?}): {error}"));
        if let Some(kept) = self.inner.questions.remembered(key) {
            return serde_json::from_str(kept.get()).map_err(unfit);
        }
        let value = work.await;
        let kept = serde_json::value::to_raw_value(&value).map_err(unfit)?;
        self.inner.questions.remember(key, kept);
        Ok(value)
    }

    fn elicitation(&self) -> Option<&ElicitationCapability> {
        let capabilities = &self.inner.terms.asker.capabilities;
        capabilities.elicitation.as_ref().filter(|_| self.revision().has_elicitation())
    }

    /// ELI-04, MRTR-04: a client is asked only for what it has declared.
    fn require(
        &self,
        can: bool,
        what: &'static str,
        required: ClientCapabilities,
    ) -> Result<(), AskError> {
        // MRTR-01
        if !self.inner.method.may_require_input() {
            return Err(AskError::NotHere);
        }
        if can {
            return Ok(());
        }
        let modern = self.revision().is_modern();
        Err(AskError::NotSupported { required: Box::new(required), what, modern })
    }

    /// Puts a question, in the way of the client's era.
    async fn put<T: DeserializeOwned + Send + 'static>(
        &self,
        method: Method,
        key: Option<&str>,
        params: &impl WriteJson,
    ) -> Result<T, AskError> {
        let params = RawJson::of(&params.at(self.revision()))
            .map_err(|error| AskError::Unfit(error.to_string()))?;
        if !self.revision().is_modern() {
            return self.put_on_the_wire(method, params).await;
        }
        self.inner.questions.put(Question { method: method.as_str(), params }, key).await
    }

    async fn put_on_the_wire<T: DeserializeOwned + Send + 'static>(
        &self,
        method: Method,
        params: RawJson,
    ) -> Result<T, AskError> {
        let patience = self.inner.shared().settings.ask_timeout;
        let read = |outcome: Result<&RawValue, Failure>| match outcome {
            Ok(raw) => serde_json::from_str(raw.get())
                .map_err(|error| AskError::Unfit(format!("the answer cannot be read: {error}"))),
            Err(Failure::Refused(error)) => Err(AskError::Refused(error)),
            Err(Failure::TimedOut { after, .. }) => Err(AskError::TimedOut(after)),
            Err(Failure::Violation(fault)) => Err(AskError::Unfit(fault.to_string())),
            Err(_) => Err(AskError::Ended),
        };
        let (questions, cancelled) = (&self.inner.questions, &self.inner.cancelled);
        // A call that is over asks no questions.
        if cancelled.is_raised() {
            return Err(AskError::Withdrawn);
        }
        if questions.is_over() {
            return Err(AskError::Ended);
        }
        let link = &self.inner.connection.link;
        let patience = Some(Patience::new(patience));
        let pending = link.call(
            Some(&self.inner.id),
            method.as_str(),
            |_| Some(params),
            patience,
            None,
            read,
        );
        let pending = pending.map_err(|_| AskError::Ended)?;
        // Returning drops the question, which withdraws it on the wire, so that the client can close its dialog.
        let over = first(cancelled.raised(), questions.over());
        match first(pending, over).await {
            Either::First(answer) => answer.unwrap_or(Err(AskError::Ended)),
            Either::Second(Either::First(())) => Err(AskError::Withdrawn),
            Either::Second(Either::Second(())) => Err(AskError::Ended),
        }
    }
}
