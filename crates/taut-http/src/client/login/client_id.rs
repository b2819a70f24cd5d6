//! Who this program is to an authorization server: known before, by a document, or registered now.
//!
//! AUC-07 to AUC-09.

use serde::{Deserialize, Serialize};
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
}

impl ClientId {
    pub(super) fn known(id: &str, secret: Option<&Secret>) -> Self {
        Self { id: id.to_owned(), secret: secret.cloned(), method: None, port: None }
    }

    /// How to show the token endpoint who asks.
    pub(super) fn auth(&self, metadata: &ServerMetadata) -> ClientAuth {
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

#[derive(Deserialize, Serialize)]
struct Registration {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
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
    Ok(ClientId {
        id: registered.client_id,
        secret: registered.client_secret.filter(|secret| !secret.is_empty()).map(Secret::new),
        method: registered.token_endpoint_auth_method,
        port: about.port,
    })
}
