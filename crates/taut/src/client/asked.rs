//! What a server asks of us, and what it tells.
//!
//! Knows which of it is answered, refused or left alone. Must not know how a question is answered
//! (`host.rs`) nor who wants to hear of a change (`changes.rs`). What was not declared is refused at
//! once, so that nobody waits (C13). PNG-01, ERR-16, STD-22, RPC-36.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::value::RawValue;

use super::cache::Lists;
use super::changes::{Change, Streams};
use super::host::{Asking, Home, Question};
use super::notice::{ClientEvent, Notices};
use super::settings::Settings;
use crate::driver::{Answer, Request, Service, no_json, ready};
use crate::json::JsonBuf;
use crate::mcp::{JsonObject, Method, Revision};
use crate::rpc::{ErrorObject, Params, Trouble};

/// The serving side of a client.
pub(super) struct Asked {
    pub(super) notices: Arc<Notices>,
    /// What was agreed, once it was.
    pub(super) revision: Arc<OnceLock<Revision>>,
    pub(super) settings: Arc<Settings>,
    pub(super) home: Arc<Home>,
    pub(super) streams: Arc<Streams>,
    pub(super) lists: Arc<Lists>,
}

impl Service for Asked {
    fn request(&mut self, request: Request<'_>) -> Answer {
        let method = request.method;
        let known = Method::parse(method);
        // L16: no server sends these. An answer would come back, too, and look like one to us.
        let echo = matches!(known, Some(Method::Discover | Method::Initialize));
        let mut refusal = ErrorObject::method_not_found(method);
        if echo {
            self.notices.echo.raise();
        } else if known == Some(Method::Ping) && !self.is_modern() {
            return ready(JsonBuf::of(&JsonObject::new()).map_err(|error| no_json(&error)));
        } else {
            match known.filter(|_| !self.is_modern()).map(|known| self.read(known, &request)) {
                Some(Some(Ok(question))) => return self.put(question, &request),
                Some(Some(Err(error))) => refusal = error,
                _ => {}
            }
            self.notices.refused(method);
        }
        // STD-22: a modern client writes no response, not even to who breaks the rules.
        if echo || self.is_modern() {
            request.link.forget(request.id);
        }
        ready(Err(refusal))
    }

    fn notification(&mut self, method: &str, params: &Params<'_>) {
        let params = params.raw();
        if let Some(known) = Method::parse(method) {
            self.hear(known, params);
        }
        self.notices.tell(&ClientEvent::Notification { method, params });
    }

    fn stray_error(&mut self, error: &ErrorObject) {
        tracing::warn!(%error, "the server reports an error that belongs to no request");
        self.notices.tell(&ClientEvent::StrayError(error));
    }

    fn trouble(&mut self, trouble: &Trouble) {
        self.notices.trouble(trouble);
    }

    fn blocked(&mut self, method: &str, _: &Params<'_>, took: Duration) {
        tracing::warn!(method, ?took, "a hook kept the connection waiting; it must not block");
    }
}

impl Asked {
    fn is_modern(&self) -> bool {
        self.revision.get().is_some_and(|revision| revision.is_modern())
    }

    /// A question for the host, or why it is none; nothing if it is something else.
    fn read(&self, method: Method, request: &Request<'_>) -> Option<Result<Question, ErrorObject>> {
        let Settings { host, capabilities, .. } = &*self.settings;
        let revision = self.revision.get().copied();
        let is_question = method.is_embedded_in_modern();
        is_question.then(|| host.read(method, request.params.raw(), revision, capabilities))
    }

    /// Puts a question to the host: in a task of its own, because whoever answers may take his time
    /// and may use this very connection meanwhile.
    fn put(&self, question: Question, request: &Request<'_>) -> Answer {
        let asking = Asking::new(self.home.clone(), request.cancelled.clone());
        let (settled, revision) = (self.home.settled.clone(), self.revision.clone());
        let link = request.link.clone();
        Box::pin(async move {
            // Not on the loop itself, which polls this once: the answer may use the connection.
            tokio::task::yield_now().await;
            // A server may ask the moment it has agreed; there is a client a moment later.
            settled.raised().await;
            // While a question is with the host, the server cannot get on: a person who takes a minute
            // to answer must not cost the call that the question is for.
            let _hold = link.hold();
            let revision = revision.get().copied().unwrap_or(Revision::LATEST_LEGACY);
            let answer = question.put(asking, revision).await?;
            JsonBuf::of(&answer).map_err(|error| no_json(&error))
        })
    }

    fn hear(&mut self, method: Method, params: Option<&RawValue>) {
        let host = &self.settings.host;
        if method == Method::Message
            && let Some(on_log) = &host.on_log
        {
            match serde_json::from_str(params.map_or("{}", RawValue::get)) {
                Ok(log) => on_log(log),
                Err(error) => tracing::debug!(%error, "a log message that cannot be read"),
            }
        }
        let modern = self.is_modern();
        let Some((change, own)) = self.streams.take(method, params, modern) else { return };
        self.lists.drop_changed(&change);
        // SUB-06: each stream has its own copy; one of them is ours, and nobody is told twice.
        if let Some(on_change) = &host.on_change
            && own
            && !matches!(change, Change::Resource(_))
        {
            on_change(&change);
        }
    }
}

impl Drop for Asked {
    /// The loop has ended.
    fn drop(&mut self) {
        self.streams.end();
    }
}
