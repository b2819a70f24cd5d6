//! One login of a user: an address to open, and the address that the browser comes back to.
//!
//! Knows the authorization code flow; must not know where tokens are kept nor how a browser is opened.
//! AUC-04 to AUC-06, AUC-10.

use std::fmt;

use super::client_id::ClientId;
use super::discovery::Discovered;
use super::form;
use super::metadata::{ServerMetadata, refuse, safe};
use super::pkce;
use super::requests::{Requests, Said};
use super::tokens::{self, Tokens};
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
    pub(super) async fn finish(self, redirect: &str, now: u64) -> Result<Tokens, HttpError> {
        let code = self.code(redirect)?;
        let pairs = [
            ("grant_type", "authorization_code"),
            ("code", code.reveal()),
            ("redirect_uri", &self.redirect),
            ("code_verifier", self.verifier.reveal()),
            ("resource", &self.resource),
        ];
        let auth = self.client.auth(&self.metadata);
        match self.requests.form(&self.metadata.token_endpoint, &pairs, &auth).await? {
            Said::Yes(body) => tokens::read(&body, self.scope.as_deref(), now),
            Said::No(error) => {
                let secrets = [&code, &self.verifier, &self.state];
                Err(refuse(format!("no token was given: {}", error.words(&secrets))))
            }
        }
    }

    /// Checks the address that the browser was sent to, and takes the code out of it.
    fn code(&self, redirect: &str) -> Result<Secret, HttpError> {
        let query = redirect.trim().split_once('?').map_or("", |(_, query)| query);
        let query = query.split('#').next().unwrap_or_default();
        let find = |name: &str| form::find(query, name);
        // AUC-10
        if !self.is_ours(redirect.trim()) {
            return Err(refuse(
                "the browser came back with another state than it was sent with: the answer belongs to \
                 another login",
            ));
        }
        // AUC-04: before the code is used, and as plain strings.
        match find("iss") {
            Some(issuer) if issuer == self.metadata.issuer => {}
            Some(issuer) => {
                return Err(refuse(format!(
                    "the answer comes from {:?}, and {:?} was asked",
                    excerpt(&issuer),
                    self.metadata.issuer
                )));
            }
            None if self.metadata.authorization_response_iss_parameter_supported => {
                return Err(refuse(
                    "the answer does not say which authorization server it is from",
                ));
            }
            None => {}
        }
        if let Some(error) = find("error") {
            let mut words = error;
            if let Some(description) = find("error_description") {
                words = format!("{words}: {description}");
            }
            return Err(refuse(format!("the authorization server says {}", excerpt(&words))));
        }
        match find("code") {
            Some(code) if !code.is_empty() => Ok(Secret::new(code)),
            _ => Err(refuse("the browser came back without a code")),
        }
    }
}
