//! The session of a legacy connection: agreed, named in each request, renewed when the server has lost it,
//! and ended.
//!
//! SES-01, SES-02, SES-05, SES-06, HDR-01, GET-01.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use hyper::header::HeaderValue;
use hyper::{HeaderMap, Method};
use serde::Deserialize;
use serde_json::value::RawValue;
use taut::Revision;
use tokio::task::AbortHandle;

use super::exchange::{Asked, no_answer};
use super::{Carrier, GOODBYE, lock};
use crate::client::error::HttpError;
use crate::client::http::{Ask, value};
use crate::client::message::{Message, method};
use crate::headers;

/// What is known of the session.
#[derive(Default)]
pub(super) struct SessionState {
    /// Counts the sessions that were opened.
    number: u64,
    id: Option<HeaderValue>,
    version: Option<String>,
    /// The handshake that opened it, to open another.
    initialize: Option<Bytes>,
    /// The requests that a new session needs again: subscriptions by their resource, and the log level.
    repeated: BTreeMap<String, Bytes>,
    /// The stream of the server's own messages.
    stream: Option<AbortHandle>,
}

/// How many subscriptions are remembered for a new session. More than any client has open.
const MAX_REPEATED: usize = 10_000;

#[derive(Deserialize)]
struct Agreement {
    #[serde(rename = "protocolVersion")]
    version: String,
    #[serde(default)]
    capabilities: BTreeMap<String, serde_json::Value>,
}

impl Carrier {
    /// SES-01: the id that comes with the answer to the handshake.
    pub(super) fn keep_session_id(&self, headers: &HeaderMap) -> Result<(), HttpError> {
        let id = headers.get(headers::SESSION_ID);
        // Longer ones are no ids, and are repeated in each request.
        let valid = |id: &HeaderValue| {
            let bytes = id.as_bytes();
            bytes.len() <= 4096 && bytes.iter().all(|byte| (0x21..=0x7e).contains(byte))
        };
        if !id.is_none_or(valid) {
            return Err(no_answer("the server's session id has characters that it may not have"));
        }
        let mut id = id.filter(|id| !id.is_empty()).cloned();
        // 25c: it is kept secret.
        id.iter_mut().for_each(|id| id.set_sensitive(true));
        let mut session = lock(&self.session);
        session.id = id;
        session.number += 1;
        Ok(())
    }

    /// What the handshake has agreed on.
    pub(super) fn keep_agreement(&self, initialize: Bytes, result: &RawValue) {
        let Ok(agreement) = serde_json::from_str::<Agreement>(result.get()) else { return };
        let mut session = lock(&self.session);
        session.version = Some(agreement.version);
        session.initialize = Some(initialize);
    }

    /// Remembers what a new session would need again.
    pub(super) fn learn_subscription(&self, asked: Option<&Asked>) {
        let Some(asked) = asked.filter(|asked| !asked.is_modern()) else { return };
        let uri = || Message::read(&asked.json).and_then(|message| message.params().uri());
        let mut session = lock(&self.session);
        match asked.method.as_str() {
            method::SUBSCRIBE if session.repeated.len() < MAX_REPEATED => {
                if let Some(uri) = uri() {
                    session.repeated.insert(uri, asked.json.clone());
                }
            }
            method::UNSUBSCRIBE => {
                uri().and_then(|uri| session.repeated.remove(&uri));
            }
            method::SET_LEVEL => {
                session.repeated.insert(String::new(), asked.json.clone());
            }
            _ => {}
        }
    }

    /// The headers of the session, and its number if it has an id.
    pub(super) fn session_headers(&self) -> (HeaderMap, Option<u64>) {
        let mut headers = self.common_headers();
        let session = lock(&self.session);
        // HDR-01: unknown before 2025-06-18.
        let version = session.version.as_deref();
        if let Some(version) = version.filter(|version| *version >= Revision::V2025_06_18.as_str())
            && let Ok(version) = value(version)
        {
            headers.insert(headers::PROTOCOL_VERSION, version);
        }
        let number = session.id.as_ref().map(|id| {
            headers.insert(headers::SESSION_ID, id.clone());
            session.number
        });
        (headers, number)
    }

    /// Opens a new session in place of the one with this number, which the server has lost (SES-05).
    pub(super) async fn renew(self: &Arc<Self>, lost: Option<u64>) -> Result<(), HttpError> {
        let _one_at_a_time = self.renewing.lock().await;
        let (initialize, version) = {
            let mut session = lock(&self.session);
            // Another request has done it meanwhile.
            if Some(session.number) != lost {
                return Ok(());
            }
            session.stream.take().inspect(AbortHandle::abort);
            (session.initialize.clone(), session.version.clone())
        };
        let gone = || no_answer("the server has lost the session, and no new one could be opened");
        let initialize = initialize.ok_or_else(gone)?;
        tracing::debug!("the server has lost the session; opening another");
        let message = Message::read(&initialize).ok_or_else(gone)?;
        let asked = Asked::read(&message, initialize.clone()).ok_or_else(gone)?;
        let ask = self.post(self.common_headers(), initialize.clone());
        // Others wait for this one.
        let after = self.http.options.body_timeout;
        let late = |_| HttpError::TimedOut { what: "a new session", after };
        let asking = tokio::time::timeout(after, self.ask_for_one(&asked, &ask));
        let answer = asking.await.map_err(late)??;
        let result = Message::read(&answer).and_then(|message| message.result).ok_or_else(gone)?;
        let agreement: Agreement = serde_json::from_str(result.get()).map_err(|_| gone())?;
        if Some(&agreement.version) != version.as_ref() {
            let error =
                no_answer("the server has lost the session, and speaks another version now");
            self.fail(error.clone());
            return Err(error);
        }
        let confirmed = format!(r#"{{"jsonrpc":"2.0","method":"{}"}}"#, method::INITIALIZED);
        let (headers, _) = self.session_headers();
        let confirming = self.post(headers, Bytes::from(confirmed));
        tokio::time::timeout(after, self.send(&confirming)).await.map_err(late)??;
        let repeated: Vec<Bytes> = lock(&self.session).repeated.values().cloned().collect();
        for json in repeated {
            let (headers, _) = self.session_headers();
            let again = self.post(headers, json);
            tokio::time::timeout(after, self.send(&again)).await.map_err(late)??;
        }
        self.open_server_stream();
        self.tell_of_changes(&agreement).await;
        Ok(())
    }

    /// Whatever the client knows of a server that was started anew may have changed.
    async fn tell_of_changes(&self, agreement: &Agreement) {
        for list in ["tools", "prompts", "resources"] {
            let offered =
                agreement.capabilities.get(list).and_then(|offer| offer.get("listChanged"));
            if offered == Some(&serde_json::Value::Bool(true)) {
                let json =
                    format!(r#"{{"jsonrpc":"2.0","method":"notifications/{list}/list_changed"}}"#);
                let _ = self.sender.send(json.into_bytes()).await;
            }
        }
    }

    /// Opens the stream of messages that belong to no request (GET-01), unless there is none.
    pub(super) fn open_server_stream(self: &Arc<Self>) {
        let mut session = lock(&self.session);
        if session.version.is_none() || self.old.get().is_some() {
            return;
        }
        let stream = self.spawn(self.clone().follow_server());
        if let Some(before) = session.stream.replace(stream) {
            before.abort();
        }
    }

    /// SES-06: tells the server that the session is over.
    pub(super) async fn say_goodbye(&self) {
        let (headers, number) = self.session_headers();
        if number.is_none() {
            return;
        }
        let ask =
            Ask { method: Method::DELETE, url: self.url.clone(), headers, body: Bytes::new() };
        // Whatever it answers, the session is over for us.
        let _ = tokio::time::timeout(GOODBYE, self.send_quietly(&ask)).await;
    }
}
