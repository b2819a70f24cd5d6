//! Tokens for one server: got anew, by a user or by the program itself.
//!
//! Knows when to do what after a refusal; must not know how a token is asked for (`flow`, `requests`), refreshed
//! (`renew`) nor kept (`store`). AUC-01, AUC-07, AUC-09 to AUC-11.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::client_id::{ClientId, Introduction, TokenAsk, register};
use super::demand::{Demand, demand};
use super::discovery::{Assume, Discovered, discover};
use super::flow::{Flow, NoTokens};
use super::listener::Listener;
use super::metadata::{self, key, refuse, safe};
use super::options::{AskUser, LoginOptions, LoginRequest};
use super::renew::{SharedLogin, Work, now};
use super::requests::{Requests, Said, TIMEOUT};
use super::store::{Changes, Kept, LoginSummary, StoreError};
use super::tokens::{self, Tokens};
use crate::client::url::Url;
use crate::client::{
    Authorize, AuthorizeFuture, Challenge, HttpError, HttpOptions, Secret, TokenRefusal,
};

/// A token that is refused so soon after its login would be refused after the next one as well.
const JUST_NOW: Duration = Duration::from_secs(60);

/// How often more rights are asked for in one session.
const STEP_UPS: usize = 3;

/// How long an authorization server may take to say whether it knows a registration. Without an answer it is
/// taken to know it.
const PROBE: Duration = Duration::from_secs(5);

/// The login at one server.
pub struct Login {
    shared: Arc<SharedLogin>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = metadata::canonical(&self.shared.server);
        f.debug_struct("Login").field("server", &server).finish_non_exhaustive()
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
        let requests = Requests::new(http, &server, options.on_secret.clone())?;
        let name = key(&server);
        let shared = SharedLogin::new(server, name, http.clone(), requests, options);
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Logs in now, whether there are tokens or not. The server is asked first: what its refusal names decides who
    /// gives out the tokens, and for what (AUC-02, AUC-11).
    ///
    /// # Errors
    /// [`HttpError::LoginNotNeeded`] if the server serves everyone and names nobody who gives out tokens; or the
    /// login failed, nobody can be asked, or the tokens cannot be kept in the store that was given.
    pub async fn log_in(&self) -> Result<LoginSummary, HttpError> {
        let shared = &*self.shared;
        shared.look().await;
        let mut work = shared.work.lock().await;
        let not_kept = |error: StoreError| HttpError::NotKept { why: error.to_string() };
        if let Some(store) = &shared.options.store {
            // Before a user is asked in vain.
            store.check().await.map_err(not_kept)?;
            work.not_kept = None;
        }
        let demand = demand(&shared.server, &shared.http).await?;
        let (challenge, assume) = match &demand {
            Demand::Login(challenge) => (challenge.as_ref(), Assume::Yes),
            Demand::Nothing | Demand::Unclear(_) => (None, Assume::No),
        };
        let found = discover(&shared.requests, &shared.server, challenge, assume).await?;
        let discovered = match (found, &demand) {
            (Some(found), _) => found,
            (None, Demand::Unclear(error)) => return Err(error.clone()),
            (None, _) => {
                let server = metadata::canonical(&shared.server);
                return Err(HttpError::LoginNotNeeded { server });
            }
        };
        work.discovered = Some(discovered.clone());
        self.forget_what_is_forgotten(&mut work, &discovered).await;
        if !self.get_tokens(&mut work, &discovered, challenge).await? {
            return Err(refuse("there is nobody to ask for a login"));
        }
        if let Some(error) = work.not_kept.take() {
            return Err(not_kept(error));
        }
        let tokens = shared.tokens();
        let tokens = tokens.as_ref();
        Ok(LoginSummary {
            server: shared.name.clone(),
            issuer: discovered.metadata.issuer,
            scope: tokens.and_then(|tokens| tokens.scope.clone()),
            expires_at: tokens.and_then(|tokens| tokens.expires_at),
            refreshable: tokens.is_some_and(|tokens| tokens.refresh.is_some()),
        })
    }

    /// The registration of an earlier login, if it can be used: AUC-09, at its own authorization server only.
    fn earlier(&self, discovered: &Discovered) -> Option<ClientId> {
        let kept = self.shared.kept()?;
        let client = (kept.issuer == discovered.metadata.issuer).then_some(kept.client)?;
        (client.port.is_some() && !client.doubted && !client.is_over(now())).then_some(client)
    }

    /// Asks the authorization server whether it still knows an earlier registration, before a user is sent to a
    /// page that does not know it. A token endpoint looks at the client before it looks at anything else (RFC 6749,
    /// 5.2), so a refresh token that nobody has given out is enough.
    async fn forget_what_is_forgotten(&self, work: &mut Work, discovered: &Discovered) {
        let Some(earlier) = self.earlier(discovered) else { return };
        let Ok(none) = super::pkce::random() else { return };
        let pairs = &[
            ("grant_type", "refresh_token"),
            ("refresh_token", none.reveal()),
            ("resource", &*discovered.resource),
        ];
        let ask = TokenAsk { pairs, within: PROBE };
        let said = earlier.ask(&self.shared.requests, &discovered.metadata, &ask).await;
        if matches!(said, Ok(Said::No(error)) if error.forgets_the_client()) {
            self.shared.doubt(work, &earlier).await;
        }
    }

    /// Gets tokens by a login. Says whether there was anybody to ask.
    async fn get_tokens(
        &self,
        work: &mut Work,
        discovered: &Discovered,
        challenge: Option<&Challenge>,
    ) -> Result<bool, HttpError> {
        let options = &self.shared.options;
        let before = work
            .asked
            .clone()
            .filter(|_| challenge.is_some_and(|c| c.error() == Some("insufficient_scope")));
        let scope = options.scope.clone().or_else(|| {
            metadata::scope(
                challenge.and_then(Challenge::scope),
                discovered.scopes.as_deref(),
                before.as_deref(),
                discovered.metadata.scopes_supported.as_deref().filter(|_| !options.machine),
            )
        });
        work.asked.clone_from(&scope);
        let (client, tokens) = if options.machine {
            self.as_machine(discovered, scope).await?
        } else if let Some(ask) = options.ask.clone() {
            self.as_user(work, discovered, scope, ask.as_ref()).await?
        } else {
            return Ok(false);
        };
        let kept = Kept {
            server: self.shared.name.clone(),
            issuer: discovered.metadata.issuer.clone(),
            client,
            tokens: Some(tokens),
        };
        let _lock = self.shared.lock_store(work).await;
        self.shared.keep(work, kept, Changes::Login).await;
        work.logged_in = Some((Instant::now(), discovered.metadata.issuer.clone()));
        Ok(true)
    }

    async fn as_user(
        &self,
        work: &mut Work,
        discovered: &Discovered,
        scope: Option<String>,
        ask: &dyn AskUser,
    ) -> Result<(ClientId, Tokens), HttpError> {
        let SharedLogin { requests, options, .. } = &*self.shared;
        let metadata = &discovered.metadata;
        let known =
            options.client.as_ref().map(|(id, secret)| ClientId::known(id, secret.as_ref()));
        let by_document =
            options.document.as_ref().filter(|_| metadata.client_id_metadata_document_supported);
        let known = known.or_else(|| by_document.map(|id| ClientId::known(id, None)));
        let mut earlier = self.earlier(discovered);
        loop {
            let port = options.port.or_else(|| earlier.as_ref().and_then(|client| client.port));
            let port = port.filter(|_| known.is_none() || options.port.is_some());
            let listener = Listener::bind(port).await?;
            let redirect = listener.address();
            let used_again = earlier.take().filter(|client| client.port == Some(listener.port()));
            let client = match (&known, &used_again) {
                (Some(known), _) => known.clone(),
                (None, Some(earlier)) => {
                    // Until it is known to be known.
                    self.shared.doubt(work, earlier).await;
                    earlier.clone()
                }
                (None, None) => {
                    let name = &options.name;
                    let (port, scope) = (Some(listener.port()), scope.as_deref());
                    let about = Introduction { name, redirect: &redirect, port, scope };
                    register(requests, metadata, &about).await?
                }
            };
            let flow = Flow::new(requests, discovered, client.clone(), scope.clone(), &redirect)?;
            let after = options.timeout;
            let asked = ask.ask(LoginRequest { flow: &flow, listener: &listener });
            let Ok(redirected) = tokio::time::timeout(after, asked).await else {
                return Err(HttpError::NobodyLoggedIn { after });
            };
            match flow.finish(&redirected?, now()).await {
                Ok(tokens) => return Ok((client, tokens)),
                Err(NoTokens { client_is_forgotten: true, .. })
                    if known.is_none() && used_again.is_some() =>
                {
                    // Once more, with a registration that is known: there is no earlier one now.
                    tracing::debug!("the registration is forgotten");
                }
                Err(NoTokens { why, .. }) => return Err(why),
            }
        }
    }

    async fn as_machine(
        &self,
        discovered: &Discovered,
        scope: Option<String>,
    ) -> Result<(ClientId, Tokens), HttpError> {
        let SharedLogin { requests, options, .. } = &*self.shared;
        let Some((id, secret)) = &options.client else {
            return Err(refuse("there is no client id"));
        };
        let client = ClientId::known(id, secret.as_ref());
        let mut pairs =
            vec![("grant_type", "client_credentials"), ("resource", &*discovered.resource)];
        if let Some(scope) = &scope {
            pairs.push(("scope", scope));
        }
        let ask = TokenAsk { pairs: &pairs, within: TIMEOUT };
        match client.ask(requests, &discovered.metadata, &ask).await? {
            Said::Yes(body) => Ok((client, tokens::read(&body, scope.as_deref(), now())?)),
            Said::No(error) => {
                let secrets: Vec<&Secret> = secret.iter().collect();
                Err(refuse(format!("no token was given: {}", error.words(&secrets))))
            }
        }
    }

    async fn refused_once(&self, refusal: TokenRefusal<'_>) -> Result<bool, HttpError> {
        let TokenRefusal { status, challenge, token, may_ask } = refusal;
        let shared = &self.shared;
        shared.look().await;
        // Another request, or another process, has got another token meanwhile.
        if shared.has_other(token) {
            return Ok(true);
        }
        let may_ask = may_ask || shared.options.machine;
        if status != 403 && shared.renew(token.cloned(), Some(challenge.cloned())).await? {
            return Ok(true);
        }
        if !may_ask {
            return Ok(false);
        }
        let mut work = shared.work.lock().await;
        if shared.has_other(token) {
            return Ok(true);
        }
        // A refresh that was tried has asked this already.
        let known = work.discovered.clone().filter(|_| status != 403);
        let discovered = match known {
            Some(known) => Some(known),
            None => discover(&shared.requests, &shared.server, challenge, Assume::Yes).await?,
        };
        let Some(discovered) = discovered else { return Ok(false) };
        work.discovered = Some(discovered.clone());
        if status == 403 {
            return self.step_up(&mut work, &discovered, challenge).await;
        }
        let just_now = |(at, issuer): &(Instant, String)| {
            at.elapsed() < JUST_NOW && *issuer == discovered.metadata.issuer
        };
        if token.is_some() && work.logged_in.as_ref().is_some_and(just_now) {
            return Err(refuse("the server refuses the token that was given for it just now"));
        }
        self.get_tokens(&mut work, &discovered, challenge).await
    }

    /// AUC-11: asks for more rights, once for each set of them.
    async fn step_up(
        &self,
        work: &mut Work,
        discovered: &Discovered,
        challenge: Option<&Challenge>,
    ) -> Result<bool, HttpError> {
        let granted = self.shared.tokens().and_then(|tokens| tokens.scope);
        work.asked = work.asked.take().or(granted);
        let wanted = challenge.and_then(Challenge::scope);
        let wanted = metadata::scope(wanted, None, work.asked.as_deref(), None).unwrap_or_default();
        if work.stepped.len() >= STEP_UPS || work.stepped.contains(&wanted) {
            return Ok(false);
        }
        work.stepped.push(wanted);
        self.get_tokens(work, discovered, challenge).await
    }
}

impl Authorize for Login {
    fn token(&self) -> AuthorizeFuture<'_, Option<Secret>> {
        Box::pin(async { Ok(self.shared.current().await) })
    }

    fn refused<'a>(&'a self, refusal: TokenRefusal<'a>) -> AuthorizeFuture<'a, bool> {
        Box::pin(self.refused_once(refusal))
    }

    fn advice(&self) -> Option<String> {
        self.shared.options.advice.clone()
    }
}
