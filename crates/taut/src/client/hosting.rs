//! What a client can be told about being a host: who answers, who listens.
//!
//! Knows the verbs of the builder. Must not know what is done with the handlers (`host.rs`).

use std::future::Future;
use std::sync::Arc;

use super::changes::Change;
use super::host::{Asking, IntoAnswer, Roots, handler};
use super::settings::ClientBuilder;
use crate::mcp::{
    CreateMessageParams, CreateMessageResult, ElicitForm, ElicitResult, ElicitUrl, LogParams, Root,
};

/// Being asked. A handler declares what it makes possible, is written once for all revisions, and
/// runs in a task of its own: it may take its time, and call tools of the same server. It returns
/// its answer, or a [`Reject`](crate::Reject) instead.
impl ClientBuilder {
    /// Fills in forms for servers, usually by showing them to the user.
    ///
    /// ```
    /// use taut::{Client, ElicitResult};
    ///
    /// let host = Client::builder().on_elicit(async |form, _asking| {
    ///     println!("{}", form.message);
    ///     ElicitResult::decline()
    /// });
    /// ```
    pub fn on_elicit<F, Fut>(mut self, ask: F) -> Self
    where
        F: Fn(ElicitForm, Asking) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<ElicitResult>> + Send + 'static,
    {
        self.settings.host.form = Some(handler(ask));
        self
    }

    /// Sends the user to pages that servers name. Show the whole address, and open it only with the
    /// user's consent (ELI-09): nothing here does.
    pub fn on_elicit_url<F, Fut>(mut self, ask: F) -> Self
    where
        F: Fn(ElicitUrl, Asking) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<ElicitResult>> + Send + 'static,
    {
        self.settings.host.url = Some(handler(ask));
        self
    }

    /// Asks the model for servers. A user who says no is [`Reject::by_user`](crate::Reject::by_user).
    /// A server may bring tools only if [`capabilities`](Self::capabilities) say so (SAM-05).
    pub fn on_sample<F, Fut>(mut self, ask: F) -> Self
    where
        F: Fn(CreateMessageParams, Asking) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<CreateMessageResult>> + Send + 'static,
    {
        self.settings.host.sample = Some(handler(ask));
        self
    }

    /// Shows these folders to servers: `file://` addresses. See also
    /// [`set_roots`](crate::Client::set_roots).
    pub fn roots(mut self, roots: impl Into<Vec<Root>>) -> Self {
        self.settings.host.roots = Some(Roots::kept(roots.into()));
        self
    }

    /// Shows folders to servers, looked up each time.
    pub fn on_roots<F, Fut>(mut self, ask: F) -> Self
    where
        F: Fn(Asking) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<Vec<Root>>> + Send + 'static,
    {
        self.settings.host.roots = Some(Roots::Asked(handler(move |(), asking| ask(asking))));
        self
    }

    /// Passes on what the server logs, see [`set_level`](crate::Client::set_level). It must not
    /// block.
    pub fn on_log(mut self, hook: impl Fn(LogParams) + Send + Sync + 'static) -> Self {
        self.settings.host.on_log = Some(Arc::new(hook));
        self
    }

    /// Passes on that a list of the server's has changed, for as long as the connection lasts. For
    /// changes of one resource see [`listen`](crate::Client::listen). It must not block.
    pub fn on_change(mut self, hook: impl Fn(&Change) + Send + Sync + 'static) -> Self {
        self.settings.host.on_change = Some(Arc::new(hook));
        self
    }

    /// How often one request may be answered with questions before it is given up. 10.
    pub fn rounds(mut self, rounds: usize) -> Self {
        self.settings.rounds = rounds;
        self
    }

    /// Keeps lists for as long as the server allows (`ttlMs`), and until it says that they have
    /// changed. Off unless set: not every server that gives a time tells of changes.
    pub fn keep_lists(mut self, keep: bool) -> Self {
        self.settings.keep_lists = keep;
        self
    }
}
