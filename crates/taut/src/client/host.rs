//! What a host does for the servers that it starts: fill in forms, ask a model, show folders.
//!
//! Knows the handlers and which question is whose, in both eras with the same code. Must not know
//! how a question came: on the wire (`asked.rs`) or inside a result (`rounds.rs`). ELI-01 to ELI-09,
//! SAM-01 to SAM-05, ROO-01 to ROO-03, ERR-16.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use serde_json::json;
use serde_json::value::RawValue;
use tokio::runtime::Handle;

use super::changes::Change;
use super::{Client, Shared};
use crate::driver::Flag;
use crate::error::Reject;
use crate::mcp::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitAction, ElicitForm,
    ElicitParams, ElicitResult, ElicitUrl, JsonObject, ListRootsResult, LogParams, Method,
    Revision, Root, RootsCapability, WriteJson,
};
use crate::rpc::{ErrorObject, code};

/// Who asks: given to each handler beside the question.
#[derive(Clone)]
pub struct Asking {
    home: Arc<Home>,
    token: Flag,
}

impl Asking {
    pub(super) fn new(home: Arc<Home>, token: Flag) -> Self {
        Self { home, token }
    }

    /// The connection that the question came by, if somebody still holds it. A handler may call the
    /// server's tools on it before it answers.
    #[must_use]
    pub fn client(&self) -> Option<Client> {
        self.home.client()
    }

    /// Waits until the server no longer wants an answer. A handler that goes on is dropped soon
    /// after.
    pub async fn cancelled(&self) {
        self.token.raised().await;
    }
}

/// Where a session finds its client, once there is one, and the runtime that it lives on.
pub(super) struct Home {
    client: OnceLock<Weak<Shared>>,
    pub(super) settled: Flag,
    pub(super) runtime: Handle,
}

impl Home {
    pub(super) fn new(runtime: Handle) -> Self {
        Self { client: OnceLock::new(), settled: Flag::default(), runtime }
    }

    pub(super) fn settle(&self, client: &Arc<Shared>) {
        let _ = self.client.set(Arc::downgrade(client));
        self.settled.raise();
    }

    pub(super) fn client(&self) -> Option<Client> {
        self.client.get()?.upgrade().map(Client)
    }
}

type Answering<T> = Pin<Box<dyn Future<Output = Result<T, Reject>> + Send>>;

type Handler<Q, T> = Arc<dyn Fn(Q, Asking) -> Answering<T> + Send + Sync>;

/// What a handler may return: the answer, or a [`Reject`] instead of it.
pub trait IntoAnswer<T> {
    /// The answer, or why there is none.
    ///
    /// # Errors
    /// The handler said no.
    fn into_answer(self) -> Result<T, Reject>;
}

impl<T> IntoAnswer<T> for T {
    fn into_answer(self) -> Result<T, Reject> {
        Ok(self)
    }
}

impl<T> IntoAnswer<T> for Result<T, Reject> {
    fn into_answer(self) -> Self {
        self
    }
}

type OnChange = Arc<dyn Fn(&Change) + Send + Sync>;

/// The handlers of a host.
#[derive(Clone, Default)]
pub(super) struct Host {
    pub(super) form: Option<Handler<ElicitForm, ElicitResult>>,
    pub(super) url: Option<Handler<ElicitUrl, ElicitResult>>,
    pub(super) sample: Option<Handler<CreateMessageParams, CreateMessageResult>>,
    pub(super) roots: Option<Roots>,
    pub(super) on_log: Option<Arc<dyn Fn(LogParams) + Send + Sync>>,
    pub(super) on_change: Option<OnChange>,
}

/// Where the roots come from.
#[derive(Clone)]
pub(super) enum Roots {
    Kept(Arc<Mutex<Vec<Root>>>),
    Asked(Handler<(), Vec<Root>>),
}

impl Roots {
    pub(super) fn kept(roots: Vec<Root>) -> Self {
        Self::Kept(Arc::new(Mutex::new(roots)))
    }

    /// The same roots, apart from those that another client may change.
    pub(super) fn apart(&self) -> Self {
        match self {
            Self::Kept(roots) => Self::kept(lock(roots).clone()),
            Self::Asked(handler) => Self::Asked(handler.clone()),
        }
    }

    fn handler(&self) -> Handler<(), Vec<Root>> {
        match self {
            Self::Kept(roots) => {
                let roots = roots.clone();
                Arc::new(move |(), _| Box::pin(std::future::ready(Ok(lock(&roots).clone()))))
            }
            Self::Asked(handler) => handler.clone(),
        }
    }
}

fn lock(roots: &Mutex<Vec<Root>>) -> MutexGuard<'_, Vec<Root>> {
    roots.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wraps a user's handler.
pub(super) fn handler<Q, T, F, Fut>(handler: F) -> Handler<Q, T>
where
    F: Fn(Q, Asking) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoAnswer<T>> + Send + 'static,
    T: 'static,
    Q: 'static,
{
    Arc::new(move |question, asking| {
        let answer = handler(question, asking);
        Box::pin(async move { answer.await.into_answer() })
    })
}

type Written = Pin<Box<dyn Future<Output = Result<Box<RawValue>, ErrorObject>> + Send>>;

/// A question and its handler.
pub(super) struct Question(Box<dyn FnOnce(Asking, Revision) -> Written + Send>);

impl Question {
    fn new<Q, T, R>(handler: &Handler<Q, T>, question: Q, finish: fn(T) -> R) -> Self
    where
        Q: Send + 'static,
        T: 'static,
        R: WriteJson + 'static,
    {
        let handler = handler.clone();
        Self(Box::new(move |asking, revision| {
            let answer = handler(question, asking);
            Box::pin(async move { write(&finish(answer.await?), revision) })
        }))
    }

    /// Puts the question; the answer is JSON as `revision` writes it.
    pub(super) fn put(self, asking: Asking, revision: Revision) -> Written {
        (self.0)(asking, revision)
    }
}

impl Host {
    /// What the handlers can do, added to what the caller declares.
    pub(super) fn declare(&self, capabilities: &mut ClientCapabilities) {
        if self.form.is_some() || self.url.is_some() {
            let elicitation = capabilities.elicitation.get_or_insert_default();
            // ELI-01: each mode by its name, because nothing at all would mean forms.
            if self.form.is_some() {
                elicitation.form.get_or_insert_default();
            }
            if self.url.is_some() {
                elicitation.url.get_or_insert_default();
            }
        }
        if self.sample.is_some() {
            capabilities.sampling.get_or_insert_default();
        }
        match &self.roots {
            // ROO-01
            Some(Roots::Kept(_)) => {
                capabilities.roots.get_or_insert_default().list_changed.get_or_insert(true);
            }
            Some(Roots::Asked(_)) => {
                capabilities.roots.get_or_insert_with(RootsCapability::new);
            }
            None => {}
        }
    }

    /// Finds the handler for a question, or says at once that there is none.
    pub(super) fn read(
        &self,
        method: Method,
        params: Option<&RawValue>,
        revision: Option<Revision>,
        declared: &ClientCapabilities,
    ) -> Result<Question, ErrorObject> {
        match (method, &self.sample, &self.roots) {
            (Method::Elicit, _, _) if revision.is_none_or(Revision::has_elicitation) => {
                self.read_elicitation(params)
            }
            (Method::CreateMessage, Some(handler), _) => {
                let question: CreateMessageParams = parse(params)?;
                let tools = declared.sampling.as_ref().and_then(|s| s.tools.as_ref()).is_some();
                // SAM-05
                if !tools && (question.tools.is_some() || question.tool_choice.is_some()) {
                    let why = "this client has not declared sampling.tools";
                    return Err(ErrorObject::invalid_params(why));
                }
                Ok(Question::new(handler, question, |result| result))
            }
            (Method::ListRoots, _, Some(roots)) => {
                Ok(Question::new(&roots.handler(), (), ListRootsResult::new))
            }
            _ => Err(not_offered(method.as_str())),
        }
    }

    fn read_elicitation(&self, params: Option<&RawValue>) -> Result<Question, ErrorObject> {
        if self.form.is_none() && self.url.is_none() {
            return Err(not_offered(Method::Elicit.as_str()));
        }
        // ELI-04: a mode that was not declared is a mistake in the params.
        let undeclared = |mode: &str| {
            let why = format!("this client has not declared the elicitation mode {mode:?}");
            Err(ErrorObject::invalid_params(why))
        };
        match (parse::<ElicitParams>(params)?, &self.form, &self.url) {
            (ElicitParams::Form(form), Some(handler), _) => {
                Ok(Question::new(handler, form, filled_in))
            }
            (ElicitParams::Url(url), _, Some(handler)) => {
                Ok(Question::new(handler, url, without_content))
            }
            (ElicitParams::Form(_), ..) => undeclared("form"),
            (ElicitParams::Url(_), ..) => undeclared("url"),
            (ElicitParams::Other(value), ..) => {
                undeclared(value["mode"].as_str().unwrap_or_default())
            }
        }
    }
}

/// ELI-07: content if and only if a form was accepted.
fn filled_in(mut result: ElicitResult) -> ElicitResult {
    if result.action != ElicitAction::Accept {
        return without_content(result);
    }
    result.content.get_or_insert_default();
    result
}

fn without_content(mut result: ElicitResult) -> ElicitResult {
    result.content = None;
    result
}

fn parse<T: serde::de::DeserializeOwned>(params: Option<&RawValue>) -> Result<T, ErrorObject> {
    let params = params.map_or("{}", RawValue::get);
    serde_json::from_str(params).map_err(|error| ErrorObject::invalid_params(error.to_string()))
}

fn write(result: &impl WriteJson, revision: Revision) -> Result<Box<RawValue>, ErrorObject> {
    serde_json::value::to_raw_value(&result.at(revision))
        .map_err(|error| ErrorObject::internal(format!("the answer has no JSON form: {error}")))
}

/// ERR-16: what was not declared does not exist.
pub(super) fn not_offered(method: &str) -> ErrorObject {
    ErrorObject::new(code::METHOD_NOT_FOUND, "this client does not offer it")
        .with_data(&json!({ "method": method }))
}

impl Reject {
    /// −1: a person said no, for instance to a question to the model.
    #[must_use]
    pub fn by_user() -> Self {
        Self::new(-1, "the user said no")
    }
}

impl ElicitResult {
    /// The user has filled in the form; for a page, has agreed to go there.
    #[must_use]
    pub fn accept(content: JsonObject) -> Self {
        Self::new(ElicitAction::Accept).content(content)
    }

    /// The user said no.
    #[must_use]
    pub fn decline() -> Self {
        Self::new(ElicitAction::Decline)
    }

    /// The user went away without an answer.
    #[must_use]
    pub fn cancel() -> Self {
        Self::new(ElicitAction::Cancel)
    }
}

impl Client {
    /// Shows other folders from now on, and tells a legacy server so (ROO-03). Only for a client
    /// that was given its folders with [`roots`](super::ClientBuilder::roots).
    ///
    /// # Errors
    /// The connection is over.
    pub fn set_roots(&self, roots: impl Into<Vec<Root>>) -> crate::error::Result<()> {
        let Some(Roots::Kept(kept)) = &self.0.settings.host.roots else { return Ok(()) };
        *lock(kept) = roots.into();
        let promised = self.0.settings.capabilities.roots.as_ref().and_then(|r| r.list_changed);
        // ROO-04: in the modern revision nobody is told.
        if self.revision().is_modern() || promised != Some(true) {
            return Ok(());
        }
        self.0.session.notify(Method::RootsChanged.as_str().into(), None)
    }
}
