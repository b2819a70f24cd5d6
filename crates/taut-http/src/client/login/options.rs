//! How to log in, and who is asked for it.
//!
//! Knows defaults and the reason for each number. Must not know what is done with them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::flow::Flow;
use super::listener::Listener;
use super::requests::OnSecret;
use super::store::TokenStore;
use crate::client::{AuthorizeFuture, HttpError, Secret};

/// Shows a user where to log in, and brings back where the browser was sent to.
pub trait AskUser: Send + Sync + 'static {
    /// Lets the user open [`LoginRequest::address`]. Returns the address that the browser was sent back to:
    /// what [`LoginRequest::redirected`] gives, or what the user has pasted.
    fn ask<'a>(&'a self, request: LoginRequest<'a>) -> AuthorizeFuture<'a, String>;
}

/// A login that waits for the user.
#[derive(Debug)]
pub struct LoginRequest<'a> {
    pub(super) flow: &'a Flow,
    pub(super) listener: &'a Listener,
}

impl LoginRequest<'_> {
    /// The address that the user has to open. Never put it through a shell.
    #[must_use]
    pub fn address(&self) -> &str {
        self.flow.address()
    }

    /// Waits until a browser on this machine was sent back, and returns the address that it came to.
    ///
    /// # Errors
    /// Nothing can be listened on any more.
    pub async fn redirected(&self) -> Result<String, HttpError> {
        self.listener.wait(|address| self.flow.is_ours(address)).await
    }
}

/// How to log in.
#[derive(Clone)]
#[must_use]
pub struct LoginOptions {
    pub(super) name: String,
    pub(super) client: Option<(String, Option<Secret>)>,
    pub(super) document: Option<String>,
    pub(super) scope: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) machine: bool,
    pub(super) timeout: Duration,
    pub(super) store: Option<TokenStore>,
    pub(super) ask: Option<Arc<dyn AskUser>>,
    pub(super) advice: Option<String>,
    pub(super) renewal: Duration,
    pub(super) on_secret: Option<OnSecret>,
}

impl Default for LoginOptions {
    fn default() -> Self {
        Self {
            name: "taut".to_owned(),
            client: None,
            document: None,
            scope: None,
            port: None,
            machine: false,
            // A person may have to find a second device first.
            timeout: Duration::from_secs(300),
            store: None,
            ask: None,
            advice: None,
            // Real endpoints answer within a second or two; all programs of the user wait meanwhile.
            renewal: Duration::from_secs(10),
            on_secret: None,
        }
    }
}

impl LoginOptions {
    /// Logs nobody in, and keeps nothing, until told otherwise.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the name of this program that users see when they log in. `taut`.
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Uses this client id, which was registered at the authorization server by hand, and its secret.
    pub fn client(mut self, id: impl Into<String>, secret: Option<Secret>) -> Self {
        self.client = Some((id.into(), secret));
        self
    }

    /// Uses the document at this https address for a client id, where the authorization server takes one.
    pub fn metadata_document(mut self, address: impl Into<String>) -> Self {
        self.document = Some(address.into());
        self
    }

    /// Asks for these scopes, separated by blanks, and not for those that the server names.
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scope = Some(scope.into());
        self
    }

    /// Listens on this port for the browser, for client ids that were registered with it.
    pub fn redirect_port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Logs in as a program, with the client's own id and secret and without a user.
    pub fn as_machine(mut self) -> Self {
        self.machine = true;
        self
    }

    /// Sets how long a user may take. 5 min.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = taut::transport::bounded(timeout);
        self
    }

    /// Keeps tokens here.
    pub fn store(mut self, store: TokenStore) -> Self {
        self.store = Some(store);
        self
    }

    /// Asks the user this way. Without it only tokens that are kept are used and refreshed.
    pub fn ask(mut self, ask: Arc<dyn AskUser>) -> Self {
        self.ask = Some(ask);
        self
    }

    /// Tells users this where a login is needed and nobody can be asked, for instance the command that logs
    /// in. It is part of the error.
    pub fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// Sets how long the authorization server may take for another token without a user. 10 s. A token that is
    /// still good is used meanwhile.
    pub fn renewal_timeout(mut self, timeout: Duration) -> Self {
        self.renewal = timeout;
        self
    }

    /// Calls this with each secret before it is sent for the first time, wherever it comes from: tokens of the store
    /// and new ones, codes, the secret of a client. For programs that mask what they show.
    pub fn on_secret(mut self, hide: impl Fn(&Secret) + Send + Sync + 'static) -> Self {
        self.on_secret = Some(Arc::new(hide));
        self
    }
}

impl fmt::Debug for LoginOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.client.as_ref().map(|(id, _)| id);
        f.debug_struct("LoginOptions").field("client", &id).finish_non_exhaustive()
    }
}
