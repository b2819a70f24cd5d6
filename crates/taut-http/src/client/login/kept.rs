//! One login as it is kept, and its form in the file of tokens.
//!
//! Pure.

use serde::{Deserialize, Serialize};

use super::client_id::ClientId;
use super::tokens::Tokens;
use crate::client::Secret;

/// One login with all that belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) server: String,
    pub(super) issuer: String,
    pub(super) client: ClientId,
    /// `None`: only the registration is kept.
    pub(super) tokens: Option<Tokens>,
}

/// The file's own form.
#[derive(Default, Deserialize, Serialize)]
pub(super) struct FileForm {
    version: u32,
    pub(super) logins: Vec<LoginForm>,
}

impl FileForm {
    pub(super) fn of(all: Vec<Kept>) -> Self {
        Self { version: 1, logins: all.into_iter().map(Into::into).collect() }
    }
}

#[derive(Deserialize, Serialize)]
pub(super) struct LoginForm {
    server: String,
    issuer: String,
    client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_auth: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redirect_port: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_expires_at: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    client_in_doubt: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    access_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<u64>,
}

impl From<LoginForm> for Kept {
    fn from(form: LoginForm) -> Self {
        let client = ClientId {
            id: form.client_id,
            secret: form.client_secret.map(Secret::new),
            method: form.client_auth,
            port: form.redirect_port,
            expires_at: form.client_expires_at,
            doubted: form.client_in_doubt,
        };
        let tokens = form.access_token.map(|access| Tokens {
            access: Secret::new(access),
            refresh: form.refresh_token.map(Secret::new),
            scope: form.scope,
            expires_at: form.expires_at,
        });
        Self { server: form.server, issuer: form.issuer, client, tokens }
    }
}

impl From<Kept> for LoginForm {
    fn from(kept: Kept) -> Self {
        let text = |secret: Secret| secret.reveal().to_owned();
        let (access, refresh, scope, expires_at) = match kept.tokens {
            Some(tokens) => {
                let refresh = tokens.refresh.map(text);
                (Some(text(tokens.access)), refresh, tokens.scope, tokens.expires_at)
            }
            None => (None, None, None, None),
        };
        Self {
            server: kept.server,
            issuer: kept.issuer,
            client_id: kept.client.id,
            client_secret: kept.client.secret.map(text),
            client_auth: kept.client.method,
            redirect_port: kept.client.port,
            client_expires_at: kept.client.expires_at,
            client_in_doubt: kept.client.doubted,
            access_token: access,
            refresh_token: refresh,
            scope,
            expires_at,
        }
    }
}
