//! One request of the client and what comes of it.
//!
//! Knows statuses, content types and when to try again; must not know how a stream of events is taken up
//! again (`stream`). HTP-03, HTP-08, HDR-01 to HDR-07, PAR-03, PAR-06, ERH-01, ERH-03, section 12 of the
//! ledger.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use hyper::Response;
use hyper::body::Incoming;
use serde_json::json;
use serde_json::value::RawValue;
use taut::rpc::{ErrorObject, Id, code};
use taut::types::{HEADER_MISMATCH, may_be_repeated};

use super::{Carrier, lock};
use crate::client::error::HttpError;
use crate::client::http::{Ask, MAX_ERROR_BODY, media_type, retry_after, words};
use crate::client::message::{Message, method};
use crate::headers::{EVENT_STREAM as EVENTS, JSON};

/// How often a server that is busy is asked again for what may be repeated, and the longest wait between.
const BUSY: (u32, Duration) = (3, Duration::from_secs(30));

/// The shortest: `Retry-After: 0` is no reason to ask at once.
const BUSY_SHORTEST: Duration = Duration::from_millis(200);

/// A request of the client.
pub(super) struct Asked {
    pub(super) id: Id,
    pub(super) method: String,
    /// The revision that it names, if it is a modern one.
    pub(super) version: Option<String>,
    /// What it names: a tool, a prompt, a resource, a task.
    pub(super) name: Option<String>,
    pub(super) arguments: Option<Box<RawValue>>,
    pub(super) json: Bytes,
}

impl Asked {
    pub(super) fn read(message: &Message<'_>, json: Bytes) -> Option<Self> {
        let method = message.method.as_deref()?.to_owned();
        let params = message.params();
        Some(Self {
            id: message.id()?,
            version: params.version(),
            name: params.named(&method),
            arguments: params.arguments.map(ToOwned::to_owned),
            json,
            method,
        })
    }

    pub(super) fn is_modern(&self) -> bool {
        self.version.is_some()
    }

    fn opens(&self) -> bool {
        matches!(self.method.as_str(), method::DISCOVER | method::INITIALIZE)
    }

    /// Whether the server does nothing but answer, so that it may be asked twice.
    fn may_be_repeated(&self) -> bool {
        may_be_repeated(&self.method)
    }
}

/// An answer with a status that says no.
pub(super) struct Refusal {
    status: u16,
    /// The JSON-RPC error in its body.
    error: Option<ErrorObject>,
    pub(super) words: String,
    retry_after: Option<Duration>,
}

impl Refusal {
    pub(super) fn into_error(self) -> HttpError {
        let Self { status, words, retry_after, .. } = self;
        HttpError::Status { status, words, retry_after }
    }
}

impl Carrier {
    /// Makes a request and sees to it that the client gets an answer.
    pub(super) async fn request(self: &Arc<Self>, asked: Asked) {
        let place = match asked.method.as_str() {
            // It lasts, and must not keep others out.
            method::LISTEN => None,
            _ => self.places.acquire().await.ok(),
        };
        let outcome = self.exchange(&asked).await;
        drop(place);
        lock(&self.open).remove(&asked.id);
        let Err(error) = outcome else { return };
        if asked.opens() && !self.is_opened() && self.ends_the_opening(&asked, &error) {
            return self.fail(error);
        }
        let mut answer = ErrorObject::internal(error.to_string());
        if let Some(status) = error.status() {
            let wait = match &error {
                HttpError::Status { retry_after, .. } => retry_after.map(|wait| wait.as_secs()),
                _ => None,
            };
            let data = match wait {
                Some(seconds) => json!({ "httpStatus": status, "retryAfter": seconds }),
                None => json!({ "httpStatus": status }),
            };
            answer = answer.with_data(&data);
        }
        self.answer_error(&asked.id, &answer).await;
    }

    /// Whether a failed probe or handshake means that nothing will come of the connection. A probe that
    /// failed in another way is answered with an error, and the client tries the handshake.
    fn ends_the_opening(&self, asked: &Asked, error: &HttpError) -> bool {
        asked.method == method::INITIALIZE
            || match error {
                // ERH-03: these say nothing about the era. A server that is old may well answer 500.
                HttpError::Status { status, .. } => matches!(status, 429 | 502..=504),
                HttpError::ContentType { .. }
                | HttpError::Protocol { .. }
                | HttpError::Broken { .. }
                | HttpError::TimedOut { .. } => false,
                _ => true,
            }
    }

    async fn exchange(self: &Arc<Self>, asked: &Asked) -> Result<(), HttpError> {
        if let Some(address) = self.old.get() {
            return self.post_old(address, &asked.json).await;
        }
        let (mut renewed, mut relisted, mut resent, mut busy) = (false, false, false, 0);
        loop {
            let (headers, session) = self.request_headers(asked)?;
            let ask = self.post(headers, asked.json.clone());
            let response = match self.send(&ask).await {
                // A connection that was kept open may be gone by the time it is used again.
                Err(HttpError::Broken { .. }) if asked.may_be_repeated() && !resent => {
                    resent = true;
                    continue;
                }
                response => response?,
            };
            if response.status().is_success() {
                return self.take_answer(asked, &ask, response).await;
            }
            let refusal = self.read_refusal(&ask, response).await?;
            let code = refusal.error.as_ref().map(|error| error.code);
            match refusal.status {
                // SES-05
                404 if session.is_some() && !renewed && code != Some(code::METHOD_NOT_FOUND) => {
                    self.renew(session).await?;
                    renewed = true;
                }
                // PAR-06
                400 if code == Some(HEADER_MISMATCH)
                    && asked.method == method::CALL_TOOL
                    && !relisted =>
                {
                    self.list_tools_again(asked).await?;
                    relisted = true;
                }
                429 | 503 if busy < BUSY.0 && asked.may_be_repeated() => {
                    let wait =
                        refusal.retry_after.unwrap_or_else(|| Duration::from_secs(1 << busy));
                    if wait > BUSY.1 {
                        return Err(refusal.into_error());
                    }
                    busy += 1;
                    tokio::time::sleep(wait.max(BUSY_SHORTEST)).await;
                }
                // ERH-05: only where no revision of Streamable HTTP has answered.
                400 | 404 | 405
                    if asked.method == method::INITIALIZE
                        && !self.is_opened()
                        && refusal.error.is_none()
                        && self.http.options.old_transport =>
                {
                    return match self.open_old().await {
                        Ok(address) => self.post_old(&address, &asked.json).await,
                        Err(error) => {
                            tracing::debug!(%error, "no HTTP+SSE there either");
                            Err(refusal.into_error())
                        }
                    };
                }
                _ => {
                    // HTP-10: the error is the answer, whatever the status.
                    let Some(error) = refusal.error else { return Err(refusal.into_error()) };
                    self.answer_error(&asked.id, &error).await;
                    return Ok(());
                }
            }
        }
    }

    /// The answer to a request, with a status that says yes.
    async fn take_answer(
        &self,
        asked: &Asked,
        ask: &Ask,
        response: Response<Incoming>,
    ) -> Result<(), HttpError> {
        if asked.method == method::INITIALIZE {
            self.keep_session_id(response.headers())?;
        }
        let kind = media_type(response.headers());
        match kind.as_str() {
            EVENTS => self.follow(asked, ask, response.into_body()).await,
            JSON => {
                let limit = self.http.options.max_message_bytes;
                let body = self.http.read(response.into_body(), "the answer", limit).await?;
                match self.deliver(Some(asked), body).await? {
                    true => Ok(()),
                    false => Err(no_answer("what came is no answer to this request")),
                }
            }
            _ if response.status().as_u16() != 200 => {
                Err(no_answer("the server took the request and sent no answer"))
            }
            _ => Err(HttpError::ContentType { found: kind }),
        }
    }

    pub(super) async fn read_refusal(
        &self,
        ask: &Ask,
        response: Response<Incoming>,
    ) -> Result<Refusal, HttpError> {
        let status = response.status().as_u16();
        let retry_after = retry_after(response.headers());
        let kind = media_type(response.headers());
        // A body that is too long or broken says nothing; the status still does.
        let body = self.http.read(response.into_body(), "the error", MAX_ERROR_BODY).await;
        let body = body.unwrap_or_default();
        let error = Message::read(&body).and_then(|message| message.error());
        let words = words(&kind, &body, &ask.headers);
        Ok(Refusal { status, error, words, retry_after })
    }

    /// Passes a message of the server on. Says whether it answers `asked`.
    pub(super) async fn deliver(
        &self,
        asked: Option<&Asked>,
        json: Vec<u8>,
    ) -> Result<bool, HttpError> {
        let Some((json, answered)) = self.judge(asked, json) else {
            let why = "the server sent something that is no JSON".to_owned();
            return Err(HttpError::Protocol { why });
        };
        // A session that is over takes no more, and one that is not says itself what is wrong.
        if let Err(error) = self.sender.send(json).await {
            tracing::debug!(%error, "a message of the server was not taken");
        }
        Ok(answered)
    }

    /// Looks at a message of the server before it is passed on. `None` if it is no JSON.
    fn judge(&self, asked: Option<&Asked>, json: Vec<u8>) -> Option<(Vec<u8>, bool)> {
        let Some(message) = Message::read(&json) else {
            // HTP-09: several at once, in 2025-03-26.
            let several: Vec<&RawValue> = serde_json::from_slice(&json).ok()?;
            let answers = several.iter().any(|one| {
                let one = Message::read(one.get().as_bytes());
                one.is_some_and(|one| one.is_response() && one.id() == asked.map(|a| a.id.clone()))
            });
            return Some((json, answers && asked.is_some()));
        };
        let Some(asked) = asked.filter(|_| message.is_response()) else {
            if message.is_response() {
                self.learn_opening(None, &message);
            }
            return Some((json, false));
        };
        match (message.id(), message.error()) {
            (Some(id), _) if id == asked.id => {}
            // An error whose id could not be read is this request's.
            (None, Some(error)) => {
                let error = serde_json::to_string(&error).ok()?;
                let id = asked.id.as_json();
                let json = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#);
                return Some((json.into_bytes(), true));
            }
            _ => return Some((json, false)),
        }
        self.learn_opening(Some(asked), &message);
        if asked.method == method::LIST_TOOLS
            && asked.is_modern()
            && let Some(result) = message.result
        {
            let learned = lock(&self.annotations).learn(result);
            for (tool, reason) in &learned.dropped {
                tracing::warn!(tool, %reason, "a tool was left out of the list");
            }
            if let Some(result) = learned.rewritten {
                let id = asked.id.as_json();
                let json = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
                return Some((json.into_bytes(), true));
            }
        }
        Some((json, true))
    }

    fn learn_opening(&self, asked: Option<&Asked>, message: &Message<'_>) {
        let Some(result) = message.result else { return };
        match asked {
            Some(asked) if asked.opens() => {
                self.opened.store(true, Ordering::Relaxed);
                if asked.method == method::INITIALIZE {
                    self.keep_agreement(asked.json.clone(), result);
                }
            }
            // Whatever is answered first on the old transport answers the handshake.
            None if self.old.get().is_some() => self.opened.store(true, Ordering::Relaxed),
            _ => self.learn_subscription(asked),
        }
    }

    /// Makes a request of our own, and returns the message that answers it.
    pub(super) async fn ask_for_one(&self, asked: &Asked, ask: &Ask) -> Result<Vec<u8>, HttpError> {
        let response = self.send(ask).await?;
        if !response.status().is_success() {
            return Err(self.read_refusal(ask, response).await?.into_error());
        }
        if asked.method == method::INITIALIZE {
            self.keep_session_id(response.headers())?;
        }
        let kind = media_type(response.headers());
        match kind.as_str() {
            JSON => {
                let limit = self.http.options.max_message_bytes;
                self.http.read(response.into_body(), "the answer", limit).await
            }
            EVENTS => self.first_answer(&asked.id, response.into_body()).await,
            _ => Err(HttpError::ContentType { found: kind }),
        }
    }

    /// Sends a notification or an answer. `withdraws`: it is of no use in a session that is new.
    pub(super) async fn send_note(
        self: &Arc<Self>,
        json: &Bytes,
        withdraws: bool,
    ) -> Result<(), HttpError> {
        let after = self.http.options.body_timeout;
        let late = || HttpError::TimedOut { what: "the confirmation of a notification", after };
        if let Some(address) = self.old.get() {
            let posted = tokio::time::timeout(after, self.post_old(address, json)).await;
            return posted.unwrap_or_else(|_| Err(late()));
        }
        let answers = Message::read(json).is_none_or(|message| message.is_response());
        for last in [false, true] {
            let (headers, session) = self.session_headers();
            let ask = self.post(headers, json.clone());
            let sent = tokio::time::timeout(after, self.send_quietly(&ask)).await;
            let response = sent.map_err(|_| late())??;
            // Field observation 5: whatever a server says beside yes, it has the message.
            if response.status().is_success() {
                return Ok(());
            }
            let refusal = self.read_refusal(&ask, response).await?;
            if refusal.status != 404 || session.is_none() || withdraws || answers || last {
                return Err(refusal.into_error());
            }
            self.renew(session).await?;
        }
        Ok(())
    }
}

pub(super) fn no_answer(why: &str) -> HttpError {
    HttpError::Protocol { why: why.to_owned() }
}
