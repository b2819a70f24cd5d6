//! The HTTP requests of a login: documents, forms and registrations.
//!
//! Knows how to ask safely: https or this machine only, no redirect to another origin, bounded bodies and
//! times. Must not know why something is asked.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Method};
use serde::de::DeserializeOwned;

use super::client_id::TokenAsk;
use super::form;
use super::metadata::{refuse, safe};
use super::tokens::OauthError;
use crate::client::connector::Tls;
use crate::client::http::{Ask, Http, value};
use crate::client::url::Url;
use crate::client::{HttpError, HttpOptions, Secret};
use crate::headers;

/// The longest document. Real ones have a few KiB.
const MAX_DOCUMENT: usize = 256 << 10;

/// How long one request may take.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);

/// What is shown each secret before it is sent.
pub(super) type OnSecret = Arc<dyn Fn(&Secret) + Send + Sync>;

/// The names in a form whose values are secrets.
const SECRETS: [&str; 4] = ["client_secret", "code", "code_verifier", "refresh_token"];

/// Asks on behalf of a login.
#[derive(Clone)]
pub(super) struct Requests {
    http: Http,
    on_secret: Option<OnSecret>,
}

/// How a client shows a token endpoint who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ClientAuth {
    /// By its id alone.
    None(String),
    /// With id and secret in a header; the id is in the form as well, where the Python SDK looks for it.
    Basic(String, Secret),
    /// With id and secret in the form.
    Post(String, Secret),
}

/// What an endpoint said.
pub(super) enum Said {
    Yes(Vec<u8>),
    No(OauthError),
}

impl Requests {
    /// The headers of the options are for the server, and are not sent to anybody else.
    pub(super) fn new(
        options: &HttpOptions,
        server: &Url,
        on_secret: Option<OnSecret>,
    ) -> Result<Self, HttpError> {
        let mut options = options.clone();
        options.headers.clear();
        options.authorize = None;
        options.body_timeout = TIMEOUT;
        // A server on this machine may send its users to an authorization server elsewhere.
        let tls = if server.is_https() { Tls::Surely } else { Tls::Perhaps };
        Ok(Self { http: Http::new(options, tls)?, on_secret })
    }

    /// Shows a secret to the caller's hook.
    pub(super) fn hide(&self, secret: &Secret) {
        if let Some(on_secret) = &self.on_secret {
            on_secret(secret);
        }
    }

    /// A document; `None` if there is none that can be read. A server that cannot answer now is an error: what it
    /// would say is not known.
    pub(super) async fn document<T: DeserializeOwned>(
        &self,
        url: &Url,
    ) -> Result<Option<T>, HttpError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        // 2025-03-26 wants it here.
        let version = HeaderValue::from_static(taut::Revision::MODERN.as_str());
        headers.insert(headers::PROTOCOL_VERSION, version);
        let ask = Ask { method: Method::GET, url: url.clone(), headers, body: Bytes::new() };
        let (status, body) = match self.send(&ask).await {
            Ok(answer) => answer,
            // A page that moved elsewhere is not the document.
            Err(HttpError::Redirect { .. } | HttpError::TooLong { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        if is_temporary(status) {
            return Err(later(url, status, ""));
        }
        Ok(serde_json::from_slice(&body).ok().filter(|_| status == 200))
    }

    /// Sends a form to a token endpoint.
    pub(super) async fn form(
        &self,
        url: &str,
        ask: &TokenAsk<'_>,
        auth: &ClientAuth,
    ) -> Result<Said, HttpError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(CONTENT_TYPE, kind);
        let mut pairs = ask.pairs.to_vec();
        match auth {
            ClientAuth::None(id) => pairs.push(("client_id", id)),
            ClientAuth::Post(id, secret) => {
                pairs.extend([("client_id", id.as_str()), ("client_secret", secret.reveal())]);
            }
            ClientAuth::Basic(id, secret) => {
                let mut both = String::new();
                form::escape(id, &mut both);
                both.push(':');
                form::escape(secret.reveal(), &mut both);
                let both = STANDARD.encode(both);
                let mut basic = value(&format!("Basic {both}"))?;
                basic.set_sensitive(true);
                headers.insert(AUTHORIZATION, basic);
                self.hide(secret);
                self.hide(&Secret::new(both));
                pairs.push(("client_id", id));
            }
        }
        let secrets = pairs.iter().filter(|(name, _)| SECRETS.contains(name));
        secrets.for_each(|(_, secret)| self.hide(&Secret::new(*secret)));
        let body = Bytes::from(form::encode(pairs));
        let request = Ask { method: Method::POST, url: safe(url)?, headers, body };
        self.endpoint(request, ask.within).await
    }

    /// Sends JSON to a registration endpoint.
    pub(super) async fn json(
        &self,
        url: &str,
        json: &serde_json::Value,
    ) -> Result<Said, HttpError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let body = Bytes::from(json.to_string());
        let request = Ask { method: Method::POST, url: safe(url)?, headers, body };
        self.endpoint(request, TIMEOUT).await
    }

    async fn endpoint(&self, ask: Ask, within: Duration) -> Result<Said, HttpError> {
        let (status, body) = self.send_within(&ask, within).await?;
        // Some answer 200 with an error inside.
        match serde_json::from_slice::<OauthError>(&body) {
            Ok(error) if is_temporary(status) || error.is_temporary() => {
                Err(later(&ask.url, status, &error.name()))
            }
            Ok(error) => Ok(Said::No(error)),
            Err(_) if (200..300).contains(&status) => Ok(Said::Yes(body)),
            // The body may repeat what was sent, so it is not shown.
            Err(_) if is_temporary(status) => Err(later(&ask.url, status, "")),
            Err(_) => Err(refuse(format!(
                "{} answered {status} without saying why",
                crate::client::http::shown(&ask.url)
            ))),
        }
    }

    async fn send(&self, ask: &Ask) -> Result<(u16, Vec<u8>), HttpError> {
        self.send_within(ask, TIMEOUT).await
    }

    async fn send_within(&self, ask: &Ask, after: Duration) -> Result<(u16, Vec<u8>), HttpError> {
        let exchange = async {
            let response = self.http.send(ask).await?;
            let status = response.status().as_u16();
            let body =
                self.http.read(response.into_body(), "the answer to a login", MAX_DOCUMENT).await?;
            Ok((status, body))
        };
        let late = |_| HttpError::TimedOut { what: "the answer to a login", after };
        tokio::time::timeout(after, exchange).await.map_err(late)?
    }
}

/// Whether a status says nothing about what was asked: the server is busy, or not well.
fn is_temporary(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..)
}

fn later(url: &Url, status: u16, words: &str) -> HttpError {
    let words = if words.is_empty() { " without saying why" } else { words };
    let (url, mark) =
        (crate::client::http::shown(url), if words.starts_with(' ') { "" } else { ": " });
    HttpError::Unavailable { why: format!("{url} answered {status}{mark}{words}") }
}
