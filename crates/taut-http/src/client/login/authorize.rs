//! Tokens for one server: kept, refreshed, and got anew.
//!
//! Knows when to do what after a refusal; must not know how a token is asked for (`flow`, `requests`) nor
//! how it is kept (`store`). AUC-01, AUC-07, AUC-09 to AUC-11.

use std::fmt;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::{Mutex, MutexGuard};

use super::client_id::{ClientId, Introduction, register};
use super::discovery::{Discovered, discover};
use super::flow::Flow;
use super::listener::Listener;
use super::metadata::{self, canonical, refuse, safe};
use super::options::{AskUser, LoginOptions, LoginRequest};
use super::requests::{Requests, Said};
use super::store::{Kept, LoginSummary, StoreError, StoreLock};
use super::tokens::{self, Tokens};
use crate::client::url::Url;
use crate::client::{
    Authorize, AuthorizeFuture, Challenge, HttpError, HttpOptions, Secret, TokenRefusal,
};

/// A token that is refused so soon after its login would be refused after the next one as well.
const JUST_NOW: Duration = Duration::from_secs(60);

/// How often more rights are asked for in one session.
const STEP_UPS: usize = 3;

/// The login at one server.
pub struct Login {
    server: Url,
    /// The server's name in the store.
    name: String,
    requests: Requests,
    options: LoginOptions,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    loaded: bool,
    kept: Option<Kept>,
    discovered: Option<Discovered>,
    /// What was asked for last.
    asked: Option<String>,
    /// When the last login was, and who gave out its tokens.
    logged_in: Option<(Instant, String)>,
    /// The sets of scopes that were asked for after a 403.
    stepped: Vec<String>,
    /// Why the newest tokens are not in the store.
    not_kept: Option<StoreError>,
}

impl State {
    fn tokens(&self) -> Option<&Tokens> {
        self.kept.as_ref()?.tokens.as_ref()
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("server", &self.name).finish_non_exhaustive()
    }
}

impl Login {
    /// For the server at `url`, which is reached as `http` says.
    ///
    /// # Errors
    /// The address or an option cannot be used. A login needs https, except on this machine.
    pub fn new(url: &str, http: &HttpOptions, options: LoginOptions) -> Result<Self, HttpError> {
        let server = safe(url)?;
        if let Some(document) = &options.document {
            // AUC-08
            let address = Url::parse(document)?;
            if !address.is_https() || matches!(address.path(), "" | "/") {
                let why = "the document of a client has to be at an https address with a path";
                return Err(HttpError::Setting { why: why.to_owned() });
            }
        }
        if options.machine && options.client.as_ref().is_none_or(|(_, secret)| secret.is_none()) {
            let why = "to log in as a program, give its client id and secret";
            return Err(HttpError::Setting { why: why.to_owned() });
        }
        let requests = Requests::new(http, &server)?;
        let name = canonical(&server);
        Ok(Self { server, name, requests, options, state: Mutex::default() })
    }

    /// Logs in now, whether there are tokens or not.
    ///
    /// # Errors
    /// The login failed, nobody can be asked, or the tokens cannot be kept in the store that was given.
    pub async fn log_in(&self) -> Result<LoginSummary, HttpError> {
        let mut state = self.loaded().await;
        let not_kept = |error: StoreError| HttpError::NotKept { why: error.to_string() };
        if let Some(store) = &self.options.store {
            // Before a user is asked in vain.
            store.check().await.map_err(not_kept)?;
            state.not_kept = None;
        }
        let discovered = discover(&self.requests, &self.server, None).await?;
        state.discovered = Some(discovered.clone());
        if !self.get_tokens(&mut state, &discovered, None).await? {
            return Err(refuse("there is nobody to ask for a login"));
        }
        if let Some(error) = state.not_kept.take() {
            return Err(not_kept(error));
        }
        let tokens = state.tokens();
        Ok(LoginSummary {
            server: self.name.clone(),
            issuer: discovered.metadata.issuer,
            scope: tokens.and_then(|tokens| tokens.scope.clone()),
            expires_at: tokens.and_then(|tokens| tokens.expires_at),
            refreshable: tokens.is_some_and(|tokens| tokens.refresh.is_some()),
        })
    }

    async fn loaded(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().await;
        if !std::mem::replace(&mut state.loaded, true) {
            state.kept = self.stored().await;
        }
        state
    }

    /// What the store has. A store that cannot be read is as good as none, and says why in the log.
    async fn stored(&self) -> Option<Kept> {
        match self.options.store.as_ref()?.find(&self.name).await {
            Ok(kept) => kept,
            Err(error) => {
                tracing::warn!(%error, "kept tokens cannot be used");
                None
            }
        }
    }

    async fn locked(&self, state: &mut State) -> Option<StoreLock> {
        match self.options.store.as_ref()?.lock().await {
            Ok(lock) => Some(lock),
            Err(error) => {
                tracing::warn!(%error, "tokens cannot be kept");
                state.not_kept = Some(error);
                None
            }
        }
    }

    /// Keeps tokens. The caller holds the lock of the store, if it could be had.
    async fn keep(&self, state: &mut State, lock: Option<&StoreLock>, kept: Kept) {
        state.kept = Some(kept.clone());
        if let Some(store) = self.options.store.as_ref().filter(|_| lock.is_some())
            && let Err(error) = store.keep(kept).await
        {
            tracing::warn!(%error, "the tokens are used, but could not be kept");
            state.not_kept = Some(error);
        }
    }

    async fn discovered(
        &self,
        state: &mut State,
        challenge: Option<&Challenge>,
    ) -> Result<Discovered, HttpError> {
        let found = discover(&self.requests, &self.server, challenge).await?;
        state.discovered = Some(found.clone());
        Ok(found)
    }

    /// Gets new tokens for the refresh token, unless another process has done it. Says whether there are
    /// others than `old` now.
    async fn refresh(
        &self,
        state: &mut State,
        discovered: &Discovered,
        old: Option<&Secret>,
    ) -> Result<bool, HttpError> {
        let lock = self.locked(state).await;
        if lock.is_some()
            && let Some(stored) = self.stored().await
            && stored.tokens.as_ref().is_some_and(|tokens| Some(&tokens.access) != old)
            && stored.issuer == discovered.metadata.issuer
        {
            state.kept = Some(stored);
            return Ok(true);
        }
        // AUC-09: what another authorization server gave out is of no use here.
        let kept = state.kept.clone().filter(|kept| kept.issuer == discovered.metadata.issuer);
        let Some(mut kept) = kept else { return Ok(false) };
        let Some(refresh) = kept.tokens.as_ref().and_then(|tokens| tokens.refresh.clone()) else {
            return Ok(false);
        };
        let pairs = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.reveal()),
            ("resource", &discovered.resource),
        ];
        let auth = kept.client.auth(&discovered.metadata);
        let said = self.requests.form(&discovered.metadata.token_endpoint, &pairs, &auth).await?;
        let scope = kept.tokens.as_ref().and_then(|tokens| tokens.scope.clone());
        match said {
            Said::Yes(body) => {
                let mut tokens = tokens::read(&body, scope.as_deref(), now())?;
                tokens.refresh = tokens.refresh.or(Some(refresh));
                kept.tokens = Some(tokens);
                self.keep(state, lock.as_ref(), kept).await;
                Ok(true)
            }
            Said::No(error) => {
                tracing::debug!(error = error.words(&[&refresh]), "the refresh token was refused");
                // It will not get better. The registration is still good.
                kept.tokens = None;
                self.keep(state, lock.as_ref(), kept).await;
                Ok(false)
            }
        }
    }

    /// Gets tokens by a login. Says whether there was anybody to ask.
    async fn get_tokens(
        &self,
        state: &mut State,
        discovered: &Discovered,
        challenge: Option<&Challenge>,
    ) -> Result<bool, HttpError> {
        let before = state
            .asked
            .clone()
            .filter(|_| challenge.is_some_and(|c| c.error() == Some("insufficient_scope")));
        let scope = self.options.scope.clone().or_else(|| {
            metadata::scope(
                challenge.and_then(Challenge::scope),
                discovered.scopes.as_deref(),
                before.as_deref(),
                discovered.metadata.scopes_supported.as_deref().filter(|_| !self.options.machine),
            )
        });
        state.asked.clone_from(&scope);
        let (client, tokens) = if self.options.machine {
            self.as_machine(discovered, scope).await?
        } else if let Some(ask) = self.options.ask.clone() {
            self.as_user(state, discovered, scope, ask.as_ref()).await?
        } else {
            return Ok(false);
        };
        let kept = Kept {
            server: self.name.clone(),
            issuer: discovered.metadata.issuer.clone(),
            client,
            tokens: Some(tokens),
        };
        let lock = self.locked(state).await;
        self.keep(state, lock.as_ref(), kept).await;
        state.logged_in = Some((Instant::now(), discovered.metadata.issuer.clone()));
        Ok(true)
    }

    async fn as_user(
        &self,
        state: &State,
        discovered: &Discovered,
        scope: Option<String>,
        ask: &dyn AskUser,
    ) -> Result<(ClientId, Tokens), HttpError> {
        let metadata = &discovered.metadata;
        let known =
            self.options.client.as_ref().map(|(id, secret)| ClientId::known(id, secret.as_ref()));
        let by_document = self
            .options
            .document
            .as_ref()
            .filter(|_| metadata.client_id_metadata_document_supported);
        let known = known.or_else(|| by_document.map(|id| ClientId::known(id, None)));
        // AUC-09: a registration is good at its own authorization server only.
        let earlier = state.kept.as_ref().filter(|kept| kept.issuer == metadata.issuer);
        let earlier = earlier.map(|kept| &kept.client).filter(|client| client.port.is_some());
        let port = self.options.port.or_else(|| earlier.and_then(|client| client.port));
        let listener =
            Listener::bind(port.filter(|_| known.is_none() || self.options.port.is_some())).await?;
        let redirect = listener.address();
        let client = match (known, earlier) {
            (Some(known), _) => known,
            (None, Some(earlier)) if earlier.port == Some(listener.port()) => earlier.clone(),
            (None, _) => {
                let name = &self.options.name;
                let (port, scope) = (Some(listener.port()), scope.as_deref());
                let about = Introduction { name, redirect: &redirect, port, scope };
                register(&self.requests, metadata, &about).await?
            }
        };
        let flow = Flow::new(&self.requests, discovered, client.clone(), scope, &redirect)?;
        let after = self.options.timeout;
        let asked = ask.ask(LoginRequest { flow: &flow, listener: &listener });
        let Ok(redirected) = tokio::time::timeout(after, asked).await else {
            return Err(HttpError::NobodyLoggedIn { after });
        };
        Ok((client, flow.finish(&redirected?, now()).await?))
    }

    async fn as_machine(
        &self,
        discovered: &Discovered,
        scope: Option<String>,
    ) -> Result<(ClientId, Tokens), HttpError> {
        let Some((id, secret)) = &self.options.client else {
            return Err(refuse("there is no client id"));
        };
        let client = ClientId::known(id, secret.as_ref());
        let mut pairs =
            vec![("grant_type", "client_credentials"), ("resource", &discovered.resource)];
        if let Some(scope) = &scope {
            pairs.push(("scope", scope));
        }
        let auth = client.auth(&discovered.metadata);
        match self.requests.form(&discovered.metadata.token_endpoint, &pairs, &auth).await? {
            Said::Yes(body) => Ok((client, tokens::read(&body, scope.as_deref(), now())?)),
            Said::No(error) => {
                let secrets: Vec<&Secret> = secret.iter().collect();
                Err(refuse(format!("no token was given: {}", error.words(&secrets))))
            }
        }
    }

    async fn refused_once(&self, refusal: TokenRefusal<'_>) -> Result<bool, HttpError> {
        let TokenRefusal { status, challenge, token, may_ask } = refusal;
        let mut state = self.loaded().await;
        // Another request has got another token meanwhile.
        if state.tokens().is_some_and(|tokens| Some(&tokens.access) != token) {
            return Ok(true);
        }
        let discovered = self.discovered(&mut state, challenge).await?;
        let may_ask = may_ask || self.options.machine;
        if status == 403 {
            return match may_ask {
                true => self.step_up(&mut state, &discovered, challenge).await,
                false => Ok(false),
            };
        }
        if token.is_some() && self.refresh(&mut state, &discovered, token).await? {
            return Ok(true);
        }
        let just_now = |(at, issuer): &(Instant, String)| {
            at.elapsed() < JUST_NOW && *issuer == discovered.metadata.issuer
        };
        if token.is_some() && state.logged_in.as_ref().is_some_and(just_now) {
            return Err(refuse("the server refuses the token that was given for it just now"));
        }
        if token.is_none() && self.refresh(&mut state, &discovered, None).await? {
            return Ok(true);
        }
        if !may_ask {
            return Ok(false);
        }
        self.get_tokens(&mut state, &discovered, challenge).await
    }

    /// AUC-11: asks for more rights, once for each set of them.
    async fn step_up(
        &self,
        state: &mut State,
        discovered: &Discovered,
        challenge: Option<&Challenge>,
    ) -> Result<bool, HttpError> {
        let granted = state.tokens().and_then(|tokens| tokens.scope.clone());
        state.asked = state.asked.take().or(granted);
        let wanted = challenge.and_then(Challenge::scope);
        let wanted =
            metadata::scope(wanted, None, state.asked.as_deref(), None).unwrap_or_default();
        if state.stepped.len() >= STEP_UPS || state.stepped.contains(&wanted) {
            return Ok(false);
        }
        state.stepped.push(wanted);
        self.get_tokens(state, discovered, challenge).await
    }

    async fn current(&self) -> Result<Option<Secret>, HttpError> {
        let mut state = self.loaded().await;
        let Some(tokens) = state.tokens().cloned() else { return Ok(None) };
        if tokens.is_over(now()) && tokens.refresh.is_some() {
            let discovered = match state.discovered.clone() {
                Some(discovered) => Ok(discovered),
                None => self.discovered(&mut state, None).await,
            };
            let refreshed = match discovered {
                Ok(found) => self.refresh(&mut state, &found, Some(&tokens.access)).await,
                Err(error) => Err(error),
            };
            // The server has the last word on the old one.
            if let Err(error) = refreshed {
                tracing::debug!(%error, "the token could not be refreshed");
            }
        }
        Ok(state.tokens().map(|tokens| tokens.access.clone()))
    }
}

impl Authorize for Login {
    fn token(&self) -> AuthorizeFuture<'_, Option<Secret>> {
        Box::pin(self.current())
    }

    fn refused<'a>(&'a self, refusal: TokenRefusal<'a>) -> AuthorizeFuture<'a, bool> {
        Box::pin(self.refused_once(refusal))
    }

    fn advice(&self) -> Option<String> {
        self.options.advice.clone()
    }
}
