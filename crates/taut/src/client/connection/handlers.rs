//! What a host does for its servers: fill in forms, ask a model, show folders, hear of logs and changes.
//!
//! Knows the user's handlers, what they declare, and how a builder is given them. Must not know how a
//! question comes to a handler (`answering.rs`). ELI-01, ELI-09, SAM-05, ROO-01, ROO-03, ROO-04.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use super::Client;
use super::session::SessionState;
use super::settings::ClientBuilder;
use crate::client::state::Change;
use crate::driver::Flag;
use crate::error::{Reject, Result};
use crate::lock::lock;
use crate::mcp::{
    ClientCapabilities, CreateMessageParams, CreateMessageResult, ElicitAction, ElicitForm,
    ElicitResult, ElicitUrl, JsonObject, LogParams, Method, Root,
};

/// The request of a server that a handler answers: given to each handler beside the question.
#[derive(Clone)]
pub struct RequestContext {
    state: Arc<SessionState>,
    token: Flag,
}

impl RequestContext {
    pub(crate) fn new(state: Arc<SessionState>, token: Flag) -> Self {
        Self { state, token }
    }

    /// The connection that the question came by; `None` once its last clone was dropped. A handler
    /// may call the server's tools on it before it answers.
    #[must_use]
    pub fn client(&self) -> Option<Client> {
        self.state.client()
    }

    /// Waits until the server no longer wants an answer. A handler that goes on is dropped soon
    /// after.
    pub async fn cancelled(&self) {
        self.token.raised().await;
    }
}

type Response<T> = Pin<Box<dyn Future<Output = Result<T, Reject>> + Send>>;

/// A user's handler for one kind of question.
pub(crate) type HostHandler<Q, T> = Arc<dyn Fn(Q, RequestContext) -> Response<T> + Send + Sync>;

/// What a handler may return: the answer, or a [`Reject`] instead of it.
pub trait IntoResponse<T> {
    /// The answer, or the error to send instead.
    ///
    /// # Errors
    /// The handler has returned a [`Reject`].
    fn into_response(self) -> Result<T, Reject>;
}

impl<T> IntoResponse<T> for T {
    fn into_response(self) -> Result<T, Reject> {
        Ok(self)
    }
}

impl<T> IntoResponse<T> for Result<T, Reject> {
    fn into_response(self) -> Self {
        self
    }
}

type OnChange = Arc<dyn Fn(&Change) + Send + Sync>;

/// The handlers of a host.
#[derive(Clone, Default)]
pub(crate) struct Handlers {
    pub(crate) form: Option<HostHandler<ElicitForm, ElicitResult>>,
    pub(crate) url: Option<HostHandler<ElicitUrl, ElicitResult>>,
    pub(crate) sample: Option<HostHandler<CreateMessageParams, CreateMessageResult>>,
    roots: Option<Arc<Mutex<Vec<Root>>>>,
    pub(crate) on_log: Option<Arc<dyn Fn(LogParams) + Send + Sync>>,
    pub(crate) on_change: Option<OnChange>,
}

/// Wraps a user's handler.
fn handler<Q, T, F, Fut>(handler: F) -> HostHandler<Q, T>
where
    F: Fn(Q, RequestContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoResponse<T>> + Send + 'static,
    T: 'static,
    Q: 'static,
{
    Arc::new(move |question, context| {
        let answer = handler(question, context);
        Box::pin(async move { answer.await.into_response() })
    })
}

impl Handlers {
    /// The same handlers, with a list of roots that no other client shares.
    pub(super) fn own_roots(&mut self) {
        if let Some(roots) = &mut self.roots {
            let own = lock(roots).clone();
            *roots = Arc::new(Mutex::new(own));
        }
    }

    /// The handler for roots, if there is one.
    pub(crate) fn roots(&self) -> Option<HostHandler<(), Vec<Root>>> {
        let roots = self.roots.clone()?;
        Some(Arc::new(move |(), _| Box::pin(std::future::ready(Ok(lock(&roots).clone())))))
    }

    /// Adds what the handlers can do to what the caller declares.
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
        // ROO-01
        if self.roots.is_some() {
            capabilities.roots.get_or_insert_default().list_changed.get_or_insert(true);
        }
    }
}

/// Handlers for what servers ask. Setting one declares the capability that it needs. It is written once
/// for all revisions, and runs in a task of its own: it may take its time, and call tools of the same
/// server. It returns its answer, or a [`Reject`] instead.
impl ClientBuilder {
    /// Fills in forms for servers, usually by showing them to the user.
    ///
    /// ```
    /// use taut::Client;
    /// use taut::types::ElicitResult;
    ///
    /// let host = Client::builder().on_elicit(async |form, _context| {
    ///     println!("{}", form.message);
    ///     ElicitResult::decline()
    /// });
    /// ```
    pub fn on_elicit<F, Fut>(mut self, ask: F) -> Self
    where
        F: Fn(ElicitForm, RequestContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoResponse<ElicitResult>> + Send + 'static,
    {
        self.settings.handlers.form = Some(handler(ask));
        self
    }

    /// Sends the user to pages that servers name. The handler has to show the whole address, and may
    /// open it only with the user's consent: this library does neither.
    // ELI-09
    pub fn on_elicit_url<F, Fut>(mut self, ask: F) -> Self
    where
        F: Fn(ElicitUrl, RequestContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoResponse<ElicitResult>> + Send + 'static,
    {
        self.settings.handlers.url = Some(handler(ask));
        self
    }

    /// Asks the model for servers. A user who refuses is [`Reject::by_user`]. A server may bring
    /// tools only if [`capabilities`](Self::capabilities) declare `sampling.tools`.
    // SAM-05
    pub fn on_sample<F, Fut>(mut self, ask: F) -> Self
    where
        F: Fn(CreateMessageParams, RequestContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoResponse<CreateMessageResult>> + Send + 'static,
    {
        self.settings.handlers.sample = Some(handler(ask));
        self
    }
}

setters! { ClientBuilder;
    /// Shows these folders to servers, as `file://` addresses. See also [`Client::set_roots`].
    roots(roots: impl Into<Vec<Root>>)
        => settings.handlers.roots = Some(Arc::new(Mutex::new(roots.into())));

    /// Gets what the server logs, see [`Client::set_level`]. It must not block.
    on_log(hook: impl Fn(LogParams) + Send + Sync + 'static)
        => settings.handlers.on_log = Some(Arc::new(hook));

    /// Is told when a list of the server's has changed, for as long as the connection lasts. For
    /// changes of one resource see [`Client::listen`]. It must not block.
    on_change(hook: impl Fn(&Change) + Send + Sync + 'static)
        => settings.handlers.on_change = Some(Arc::new(hook));
}

impl Client {
    /// Shows other folders from now on, and tells a legacy server so. Does nothing for a client that
    /// was not given its folders with [`ClientBuilder::roots`].
    ///
    /// # Errors
    /// The connection is over.
    pub fn set_roots(&self, roots: impl Into<Vec<Root>>) -> Result<()> {
        let settings = self.0.settings();
        let Some(kept) = &settings.handlers.roots else { return Ok(()) };
        *lock(kept) = roots.into();
        let promised = settings.capabilities.roots.as_ref().and_then(|r| r.list_changed);
        // ROO-03; ROO-04: the modern revision has no such notification.
        if self.revision().is_modern() || promised != Some(true) {
            return Ok(());
        }
        self.0.session.notify(Method::RootsChanged.as_str().into(), None)
    }
}

impl Reject {
    /// −1: a person has refused, for instance a question to the model.
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

    /// The user has refused.
    #[must_use]
    pub fn decline() -> Self {
        Self::new(ElicitAction::Decline)
    }

    /// The user has gone away without an answer.
    #[must_use]
    pub fn cancel() -> Self {
        Self::new(ElicitAction::Cancel)
    }
}
