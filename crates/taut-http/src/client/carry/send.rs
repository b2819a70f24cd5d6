//! How each request leaves: with which headers, and with which token.
//!
//! Knows headers and refusals of tokens; must not know what an answer means (`exchange`). HTP-03, HTP-04,
//! HDR-01, HDR-04, HDR-05, HDR-07, PAR-03, AUC-01.

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT, WWW_AUTHENTICATE,
};
use hyper::{HeaderMap, Method, Response};

use super::exchange::Asked;
use super::{Carrier, Refusals, lock};
use crate::client::challenge::Challenge;
use crate::client::error::HttpError;
use crate::client::http::{Ask, value};
use crate::client::message::method;
use crate::client::options::TokenRefusal;
use crate::headers::{self, JSON};

/// How often another token is tried for one request.
const TOKENS: usize = 3;

impl Carrier {
    /// Sends a request with a token, and with another if the server refuses that.
    pub(super) async fn send(&self, ask: &Ask) -> Result<Response<Incoming>, HttpError> {
        self.send_with(ask, true).await
    }

    /// Sends a request that nobody waits for: no user is asked to log in for it.
    pub(super) async fn send_quietly(&self, ask: &Ask) -> Result<Response<Incoming>, HttpError> {
        self.send_with(ask, false).await
    }

    async fn send_with(&self, ask: &Ask, may_ask: bool) -> Result<Response<Incoming>, HttpError> {
        let authorize = self.http.options.authorize.as_ref();
        let authorize = authorize.filter(|_| !ask.headers.contains_key(AUTHORIZATION));
        let mut tokens = 0;
        loop {
            let mut ask = ask.clone();
            let token = match authorize {
                Some(authorize) => authorize.token().await?,
                None => None,
            };
            if let Some(token) = &token {
                // AUC-01
                let mut bearer = value(&format!("Bearer {}", token.reveal()))?;
                bearer.set_sensitive(true);
                ask.headers.insert(AUTHORIZATION, bearer);
            }
            let response = self.http.send(&ask).await?;
            let status = response.status().as_u16();
            if !matches!(status, 401 | 403) {
                return Ok(response);
            }
            let challenges = response.headers().get_all(WWW_AUTHENTICATE);
            let challenge =
                Challenge::read(challenges.iter().filter_map(|value| value.to_str().ok()));
            let words = self.read_refusal(&ask, response).await?.words;
            let scope = challenge.as_ref().and_then(Challenge::error) == Some("insufficient_scope");
            let outside = self.refusals == Refusals::EndTheOpening && !self.is_opened();
            let refusal = TokenRefusal {
                status,
                challenge: challenge.as_ref(),
                token: token.as_ref(),
                may_ask,
            };
            tokens += 1;
            if let Some(authorize) = authorize.filter(|_| tokens <= TOKENS && !outside)
                && (status == 401 || scope)
                && authorize.refused(refusal).await?
            {
                continue;
            }
            let advice = authorize.and_then(|authorize| authorize.advice());
            let challenge = challenge.map(|challenge| challenge.without_secrets(&ask.headers));
            return Err(HttpError::Unauthorized { status, challenge, words, advice });
        }
    }

    pub(super) fn post(&self, mut headers: HeaderMap, body: Bytes) -> Ask {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        // HTP-03
        let both = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, both);
        Ask { method: Method::POST, url: self.url.clone(), headers, body }
    }

    /// What every request to the server carries.
    pub(super) fn common_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let agent = concat!("taut/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        for (name, value) in &self.http.options.headers {
            headers.insert(name.clone(), value.clone());
        }
        headers
    }

    /// The headers of a request, and the number of the session that they name.
    pub(super) fn request_headers(
        &self,
        asked: &Asked,
    ) -> Result<(HeaderMap, Option<u64>), HttpError> {
        if asked.method == method::INITIALIZE {
            return Ok((self.common_headers(), None));
        }
        let Some(version) = &asked.version else { return Ok(self.session_headers()) };
        let mut headers = self.common_headers();
        // HDR-01, HDR-04, HDR-05
        headers.insert(headers::PROTOCOL_VERSION, value(version)?);
        headers.insert(headers::METHOD, value(&asked.method)?);
        if let Some(name) = &asked.name {
            headers.insert(headers::NAME, value(&headers::encode(name))?);
            if asked.method == method::CALL_TOOL {
                let params = lock(&self.annotations).headers(name, asked.arguments.as_deref());
                for (header, text) in params {
                    let header = format!("{}{header}", headers::PARAM_PREFIX).to_ascii_lowercase();
                    if let Ok(header) = HeaderName::from_bytes(header.as_bytes()) {
                        headers.insert(header, value(&text)?);
                    }
                }
            }
        }
        Ok((headers, None))
    }
}
