//! One login of a user: an address to open, and the address that the browser comes back to.
//!
//! Knows the authorization code flow; must not know where tokens are kept nor how a browser is opened.
//! AUC-04 to AUC-06, AUC-10.

use std::fmt;

use super::client_id::{ClientId, TokenAsk};
use super::discovery::Discovered;
use super::form;
use super::metadata::{ServerMetadata, refuse, safe};
use super::pkce;
use super::requests::{Requests, Said, TIMEOUT};
use super::tokens::{self, OauthError, Tokens};
use crate::client::http::excerpt;
use crate::client::{HttpError, Secret};

/// A login under way.
pub struct Flow {
    requests: Requests,
    metadata: ServerMetadata,
    client: ClientId,
    resource: String,
    scope: Option<String>,
    redirect: String,
    verifier: Secret,
    state: Secret,
    address: String,
}

/// Why a login has given no tokens.
#[derive(Debug)]
pub(super) struct NoTokens {
    pub(super) why: HttpError,
    /// The authorization server does not know the client.
    pub(super) client_is_forgotten: bool,
}

impl From<HttpError> for NoTokens {
    fn from(why: HttpError) -> Self {
        Self { why, client_is_forgotten: false }
    }
}

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow")
            .field("issuer", &self.metadata.issuer)
            .field("resource", &self.resource)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

impl Flow {
    pub(super) fn new(
        requests: &Requests,
        discovered: &Discovered,
        client: ClientId,
        scope: Option<String>,
        redirect: &str,
    ) -> Result<Self, HttpError> {
        let metadata = discovered.metadata.clone();
        metadata.check_pkce()?;
        let Some(endpoint) = &metadata.authorization_endpoint else {
            return Err(refuse("the authorization server has no page for a login"));
        };
        let endpoint = safe(endpoint)?;
        let (verifier, state) = (pkce::random()?, pkce::random()?);
        let challenge = pkce::challenge(&verifier);
        let mut pairs = vec![
            ("response_type", "code"),
            ("client_id", &client.id),
            ("redirect_uri", redirect),
            ("state", state.reveal()),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &discovered.resource),
        ];
        if let Some(scope) = &scope {
            pairs.push(("scope", scope));
            // OpenID Connect: without it no refresh token is given.
            if scope.split(' ').any(|scope| scope == "offline_access") {
                pairs.push(("prompt", "consent"));
            }
        }
        let separator = if endpoint.uri().query().is_some() { '&' } else { '?' };
        let address = format!("{endpoint}{separator}{}", form::encode(pairs));
        Ok(Self {
            requests: requests.clone(),
            resource: discovered.resource.clone(),
            redirect: redirect.to_owned(),
            metadata,
            client,
            scope,
            verifier,
            state,
            address,
        })
    }

    /// The address that the user has to open. It is only for the user: its query holds the state of this
    /// login.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether an address that a browser came to belongs to this login.
    pub(super) fn is_ours(&self, redirect: &str) -> bool {
        let query = redirect.split_once('?').map_or("", |(_, query)| query);
        form::find(query, "state").is_some_and(|state| state == self.state.reveal())
    }

    /// Ends the login with the address that the browser was sent to: its query has the code, or says why
    /// there is none.
    pub(super) async fn finish(self, redirect: &str, now: u64) -> Result<Tokens, NoTokens> {
        let code = self.code(redirect)?;
        let pairs = [
            ("grant_type", "authorization_code"),
            ("code", code.reveal()),
            ("redirect_uri", &self.redirect),
            ("code_verifier", self.verifier.reveal()),
            ("resource", &self.resource),
        ];
        let ask = TokenAsk { pairs: &pairs, within: TIMEOUT };
        match self.client.ask(&self.requests, &self.metadata, &ask).await? {
            Said::Yes(body) => {
                let tokens = tokens::read(&body, self.scope.as_deref(), now)?;
                let all = [Some(&tokens.access), tokens.refresh.as_ref()];
                all.into_iter().flatten().for_each(|token| self.requests.hide(token));
                Ok(tokens)
            }
            Said::No(error) => {
                let secrets = [&code, &self.verifier, &self.state];
                let why = refuse(format!("no token was given: {}", error.words(&secrets)));
                Err(NoTokens { why, client_is_forgotten: error.forgets_the_client() })
            }
        }
    }

    /// Checks the address that the browser was sent to, and takes the code out of it.
    fn code(&self, redirect: &str) -> Result<Secret, NoTokens> {
        let query = redirect.trim().split_once('?').map_or("", |(_, query)| query);
        let query = query.split('#').next().unwrap_or_default();
        let find = |name: &str| form::find(query, name);
        // AUC-10
        if !self.is_ours(redirect.trim()) {
            let why = "the browser came back with another state than it was sent with: the answer belongs to \
                       another login";
            return Err(refuse(why).into());
        }
        // AUC-04: before the code is used, and as plain strings.
        match find("iss") {
            Some(issuer) if issuer == self.metadata.issuer => {}
            Some(issuer) => {
                let (from, asked) = (excerpt(&issuer), &self.metadata.issuer);
                let why = format!("the answer comes from {from:?}, and {asked:?} was asked");
                return Err(refuse(why).into());
            }
            None if self.metadata.authorization_response_iss_parameter_supported => {
                let why = "the answer does not say which authorization server it is from";
                return Err(refuse(why).into());
            }
            None => {}
        }
        if let Some(error) = find("error") {
            let error = OauthError::new(error, find("error_description"));
            let why = refuse(format!("the authorization server says {}", error.words(&[])));
            return Err(NoTokens { why, client_is_forgotten: error.forgets_the_client() });
        }
        match find("code") {
            Some(code) if !code.is_empty() => Ok(Secret::new(code)),
            _ => Err(refuse("the browser came back without a code").into()),
        }
    }
}
