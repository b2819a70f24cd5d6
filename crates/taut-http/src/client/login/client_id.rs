//! Who this program is to an authorization server: known before, by a document, or registered now.
//!
//! Knows the ways in which a token endpoint takes an id and a secret. AUC-07 to AUC-09.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::metadata::{ServerMetadata, refuse};
use super::requests::{ClientAuth, Requests, Said};
use crate::client::{HttpError, Secret};

/// A client id, and what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClientId {
    pub(super) id: String,
    pub(super) secret: Option<Secret>,
    /// How the token endpoint wants to see it, as the registration said.
    pub(super) method: Option<String>,
    /// The port of the redirect address that was registered with it.
    pub(super) port: Option<u16>,
    /// When the registration is over, in seconds since 1970, if it is ever.
    pub(super) expires_at: Option<u64>,
    /// The authorization server may have forgotten the registration: a login with it has begun and has not come to
    /// its end.
    pub(super) doubted: bool,
}

/// What a token endpoint is asked for.
pub(super) struct TokenAsk<'a> {
    pub(super) pairs: &'a [(&'a str, &'a str)],
    /// How long it may take.
    pub(super) within: Duration,
}

impl ClientId {
    pub(super) fn known(id: &str, secret: Option<&Secret>) -> Self {
        let (id, secret) = (id.to_owned(), secret.cloned());
        Self { id, secret, method: None, port: None, expires_at: None, doubted: false }
    }

    /// Whether the registration is over.
    pub(super) fn is_over(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|end| now >= end)
    }

    /// Asks the token endpoint.
    pub(super) async fn ask(
        &self,
        requests: &Requests,
        metadata: &ServerMetadata,
        ask: &TokenAsk<'_>,
    ) -> Result<Said, HttpError> {
        let endpoint = &metadata.token_endpoint;
        let said = requests.form(endpoint, ask, &self.auth(metadata)).await?;
        // Where neither the metadata nor a registration say how, many servers want the secret in the form.
        let unsaid =
            self.method.is_none() && metadata.token_endpoint_auth_methods_supported.is_none();
        match (&said, &self.secret) {
            (Said::No(error), Some(secret)) if unsaid && error.is("invalid_client") => {
                let auth = ClientAuth::Post(self.id.clone(), secret.clone());
                requests.form(endpoint, ask, &auth).await
            }
            _ => Ok(said),
        }
    }

    /// How to show the token endpoint who asks.
    fn auth(&self, metadata: &ServerMetadata) -> ClientAuth {
        let id = self.id.clone();
        let Some(secret) = self.secret.clone() else { return ClientAuth::None(id) };
        let supported = metadata.token_endpoint_auth_methods_supported.as_deref();
        let has = |method: &str| supported.is_some_and(|known| known.iter().any(|m| m == method));
        match self.method.as_deref() {
            Some("none") => ClientAuth::None(id),
            Some("client_secret_post") => ClientAuth::Post(id, secret),
            Some("client_secret_basic") => ClientAuth::Basic(id, secret),
            _ if !has("client_secret_basic") && has("client_secret_post") => {
                ClientAuth::Post(id, secret)
            }
            // RFC 8414: unsaid means this.
            _ => ClientAuth::Basic(id, secret),
        }
    }
}

/// What this program says about itself when it registers.
pub(super) struct Introduction<'a> {
    pub(super) name: &'a str,
    pub(super) redirect: &'a str,
    pub(super) port: Option<u16>,
    pub(super) scope: Option<&'a str>,
}

#[derive(Deserialize)]
struct Registration {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
    client_secret_expires_at: Option<serde_json::Value>,
}

/// Registers this program (RFC 7591).
pub(super) async fn register(
    requests: &Requests,
    metadata: &ServerMetadata,
    about: &Introduction<'_>,
) -> Result<ClientId, HttpError> {
    let Some(endpoint) = &metadata.registration_endpoint else {
        return Err(refuse(
            "the authorization server registers no programs by itself; register this one there by hand, \
             and give the client id that you get",
        ));
    };
    let supported = metadata.token_endpoint_auth_methods_supported.as_deref();
    let has = |method: &str| supported.is_none_or(|known| known.iter().any(|m| m == method));
    // A program on a user's machine cannot keep a secret, so it asks for none where it can.
    let method = ["none", "client_secret_basic", "client_secret_post"];
    let method = method.into_iter().find(|method| has(method)).unwrap_or("none");
    let mut body = json!({
        "client_name": about.name,
        "redirect_uris": [about.redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        // AUC-09
        "application_type": "native",
    });
    if let Some(scope) = about.scope {
        body["scope"] = scope.into();
    }
    let answer = match requests.json(endpoint, &body).await? {
        Said::Yes(answer) => answer,
        Said::No(error) => {
            return Err(refuse(format!("the registration was refused: {}", error.words(&[]))));
        }
    };
    let Ok(registered) = serde_json::from_slice::<Registration>(&answer) else {
        return Err(refuse("the registration was answered with something else than a client id"));
    };
    let secret = registered.client_secret.filter(|secret| !secret.is_empty()).map(Secret::new);
    secret.iter().for_each(|secret| requests.hide(secret));
    // RFC 7591: 0 means that it has no end.
    let end = registered.client_secret_expires_at.and_then(|end| end.as_u64());
    Ok(ClientId {
        id: registered.client_id,
        expires_at: end.filter(|end| *end > 0 && secret.is_some()),
        secret,
        method: registered.token_endpoint_auth_method,
        port: about.port,
        doubted: false,
    })
}
