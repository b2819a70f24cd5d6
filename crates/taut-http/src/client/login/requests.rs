//! The HTTP requests of a login: documents, forms and registrations.
//!
//! Knows how to ask safely: https or this machine only, no redirect to another origin, bounded bodies and
//! times. Must not know why something is asked.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Method};
use serde::de::DeserializeOwned;

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
const TIMEOUT: Duration = Duration::from_secs(30);

/// Asks on behalf of a login.
#[derive(Clone)]
pub(super) struct Requests {
    http: Http,
}

/// How a client shows a token endpoint who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ClientAuth {
    /// By its id alone.
    None(String),
    /// With id and secret in a header.
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
    pub(super) fn new(options: &HttpOptions, server: &Url) -> Result<Self, HttpError> {
        let mut options = options.clone();
        options.headers.clear();
        options.authorize = None;
        options.body_timeout = TIMEOUT;
        // A server on this machine may send its users to an authorization server elsewhere.
        let tls = if server.is_https() { Tls::Surely } else { Tls::Perhaps };
        Ok(Self { http: Http::new(options, tls)? })
    }

    /// A document; `None` if there is none that can be read.
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
        Ok(serde_json::from_slice(&body).ok().filter(|_| status == 200))
    }

    /// Sends a form to a token endpoint.
    pub(super) async fn form(
        &self,
        url: &str,
        pairs: &[(&str, &str)],
        auth: &ClientAuth,
    ) -> Result<Said, HttpError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(CONTENT_TYPE, kind);
        let mut pairs = pairs.to_vec();
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
                let mut basic = value(&format!("Basic {}", STANDARD.encode(both)))?;
                basic.set_sensitive(true);
                headers.insert(AUTHORIZATION, basic);
            }
        }
        let body = Bytes::from(form::encode(pairs));
        self.endpoint(Ask { method: Method::POST, url: safe(url)?, headers, body }).await
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
        self.endpoint(Ask { method: Method::POST, url: safe(url)?, headers, body }).await
    }

    async fn endpoint(&self, ask: Ask) -> Result<Said, HttpError> {
        let (status, body) = self.send(&ask).await?;
        // Some answer 200 with an error inside.
        match serde_json::from_slice::<OauthError>(&body) {
            Ok(error) => Ok(Said::No(error)),
            Err(_) if (200..300).contains(&status) => Ok(Said::Yes(body)),
            // The body may repeat what was sent, so it is not shown.
            Err(_) => Err(refuse(format!(
                "{} answered {status} without saying why",
                crate::client::http::shown(&ask.url)
            ))),
        }
    }

    async fn send(&self, ask: &Ask) -> Result<(u16, Vec<u8>), HttpError> {
        let exchange = async {
            let response = self.http.send(ask).await?;
            let status = response.status().as_u16();
            let body =
                self.http.read(response.into_body(), "the answer to a login", MAX_DOCUMENT).await?;
            Ok((status, body))
        };
        let late = |_| HttpError::TimedOut { what: "the answer to a login", after: TIMEOUT };
        tokio::time::timeout(TIMEOUT, exchange).await.map_err(late)?
    }
}
