//! One request over HTTP: headers of the user, redirects, bounded bodies.
//!
//! Knows HTTP; must not know MCP. A secret goes to the origin that it is for and to no other, and what a
//! server says is shown only after the secrets that were sent to it are taken out.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue, LOCATION, PROXY_AUTHORIZATION, RETRY_AFTER};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use taut::secrets::Secrets;

use super::connector::{Connector, Dialer, Tls};
use super::error::{HttpError, causes};
use super::options::HttpOptions;
use super::url::Url;

/// A server that sends a client in circles is found out early; real ones redirect once.
const MAX_REDIRECTS: usize = 3;

/// Headers of an answer, all of them together. hyper's own limit for client connections is higher.
const MAX_HEADERS: usize = 100;

/// How much of the body of an error is read: enough for every JSON-RPC error and its data.
pub(crate) const MAX_ERROR_BODY: usize = 256 << 10;

/// One request, which can be sent again.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Sends requests.
#[derive(Clone)]
pub(crate) struct Http {
    client: Client<Connector, Full<Bytes>>,
    dialer: Dialer,
    pub(crate) options: Arc<HttpOptions>,
}

impl Http {
    pub(crate) fn new(options: HttpOptions, tls: Tls) -> Result<Self, HttpError> {
        if let Some(error) = &options.bad_setting {
            return Err(error.clone());
        }
        let (connector, dialer) = Connector::new(&options, tls)?;
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            // Shorter than what servers keep an idle connection for: Node 5 s, others longer. A request
            // on a connection that the server has just closed is lost, and a call is not repeated.
            .pool_idle_timeout(Duration::from_secs(3))
            .http1_max_headers(MAX_HEADERS)
            .build(connector);
        Ok(Self { client, dialer, options: Arc::new(options) })
    }

    /// Sends a request and returns its answer, whose body is not read yet. Follows 307 and 308 within
    /// the same origin, and no other redirect.
    pub(crate) async fn send(&self, ask: &Ask) -> Result<Response<Incoming>, HttpError> {
        let mut url = ask.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let response = self.send_once(ask, &url).await?;
            match self.redirected(ask, &url, &response)? {
                Some(next) => url = next,
                None => return Ok(response),
            }
        }
        let (to, why) = (shown(&url), "it sends this client in circles");
        Err(HttpError::Redirect { status: 307, to, why })
    }

    async fn send_once(&self, ask: &Ask, url: &Url) -> Result<Response<Incoming>, HttpError> {
        let mut request = Request::new(Full::new(ask.body.clone()));
        *request.method_mut() = ask.method.clone();
        *request.uri_mut() = url.uri().clone();
        *request.headers_mut() = ask.headers.clone();
        if let Some(value) = self.dialer.proxy_authorization(url.uri()) {
            request.headers_mut().insert(PROXY_AUTHORIZATION, value);
        }
        self.client.request(request).await.map_err(|error| match error.is_connect() {
            true => HttpError::unreachable(url, &error),
            false => HttpError::Broken { why: causes(&error) },
        })
    }

    /// Where an answer sends us; `None` if it does not.
    fn redirected(
        &self,
        ask: &Ask,
        from: &Url,
        response: &Response<Incoming>,
    ) -> Result<Option<Url>, HttpError> {
        let status = response.status();
        if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(None);
        }
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let Some(location) = location else { return Ok(None) };
        let to = from.join(location)?;
        let refuse =
            |why| Err(HttpError::Redirect { status: status.as_u16(), to: shown(&to), why });
        if to.origin() != ask.url.origin() {
            return refuse(
                "another origin gets neither the request nor its secrets; if you trust it, use that address",
            );
        }
        match status {
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => Ok(Some(to)),
            _ if ask.method == Method::GET => Ok(Some(to)),
            _ => refuse("this status would turn the request into another; use that address"),
        }
    }

    /// Reads a whole body within the limits on its length and on its pauses.
    pub(crate) async fn read(
        &self,
        body: Incoming,
        what: &'static str,
        limit: usize,
    ) -> Result<Vec<u8>, HttpError> {
        let mut body = body;
        let mut read = Vec::new();
        let after = self.options.body_timeout;
        loop {
            let frame = match tokio::time::timeout(after, body.frame()).await {
                Err(_) => return Err(HttpError::TimedOut { what, after }),
                Ok(None) => return Ok(read),
                Ok(Some(frame)) => {
                    frame.map_err(|error| HttpError::Broken { why: causes(&error) })?
                }
            };
            let Some(data) = frame.data_ref() else { continue };
            if read.len() + data.len() > limit {
                return Err(HttpError::TooLong { what, limit });
            }
            read.extend_from_slice(data);
        }
    }
}

/// An address as errors show it: without its query, which may hold a secret.
pub(crate) fn shown(url: &Url) -> String {
    format!("{}{}", url.origin(), url.path())
}

/// The media type of an answer, in lower case and without its parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// When it may be tried again: seconds only. A date would need the clock of the other side.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}

/// What a server says in the body of an error, for a person: text or the message of a JSON error, without
/// the secrets that were sent to it.
pub(crate) fn words(media_type: &str, body: &[u8], sent: &HeaderMap) -> String {
    let text = String::from_utf8_lossy(body);
    let text = match media_type {
        "text/plain" => text.into_owned(),
        _ if media_type.ends_with("json") => {
            let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            let message = ["/error/message", "/error_description", "/message", "/error", "/detail"];
            let found = message.iter().find_map(|at| json.pointer(at)?.as_str());
            found.unwrap_or_default().to_owned()
        }
        // A page for browsers says nothing in a line.
        _ => String::new(),
    };
    excerpt(&without_secrets(&text, sent))
}

/// Takes out what was sent as a secret, should a server repeat it, in whichever spelling.
pub(crate) fn without_secrets(text: &str, sent: &HeaderMap) -> String {
    let secrets = Secrets::new();
    let values = sent.values().filter(|value| value.is_sensitive());
    values.filter_map(|value| value.to_str().ok()).for_each(|value| secrets.hide_always(value));
    secrets.masked(text).into_owned()
}

/// The first characters of foreign text, on one line.
pub(crate) fn excerpt(text: &str) -> String {
    /// Enough for a sentence, too little to flood a terminal.
    const LENGTH: usize = 200;
    let mut short = String::new();
    for character in text.trim().chars().take(LENGTH) {
        match character {
            '"' | '\'' | '\\' => short.push(character),
            _ => short.extend(character.escape_debug()),
        }
    }
    if text.trim().chars().nth(LENGTH).is_some() {
        short.push('…');
    }
    short
}

/// A header value from text that may hold anything; what it cannot hold is an error for the caller.
pub(crate) fn value(text: &str) -> Result<HeaderValue, HttpError> {
    HeaderValue::from_str(text)
        .map_err(|_| HttpError::Protocol { why: "a header would hold a line break".to_owned() })
}
