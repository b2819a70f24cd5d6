//! What a message says: a request, its answer, a notification, or nothing that makes sense.
//!
//! Pure. Knows JSON-RPC, and of MCP only which member of a request names what it is about. A batch is
//! several messages.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::format::{Body, Side};

/// One message, taken apart.
#[derive(Clone, Debug, Default)]
pub struct Talk {
    /// The text of its id, as it was written; none for a notification.
    pub id: Option<String>,
    /// The method of a request or notification.
    pub method: Option<String>,
    /// What a request is about: the name of a tool or prompt, or the address of a resource.
    pub target: Option<String>,
    /// The whole message; of what is stray, its text.
    pub value: Value,
}

/// Which kind of message it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Wants an answer.
    Request,
    /// Wants none.
    Notification,
    /// Answers a request.
    Answer,
    /// Neither: stray output, or something broken.
    Stray,
}

impl Talk {
    /// Which kind of message it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        let has = |name: &str| self.value.get(name).is_some();
        match (&self.method, &self.id) {
            (Some(_), Some(_)) => Kind::Request,
            (Some(_), None) => Kind::Notification,
            (None, _) if has("result") || has("error") => Kind::Answer,
            (None, _) => Kind::Stray,
        }
    }

    /// A method and what it is about, such as `tools/call echo`.
    #[must_use]
    pub fn label(&self) -> String {
        let method = self.method.as_deref().unwrap_or("?");
        match &self.target {
            Some(target) => format!("{method} {target}"),
            None => method.to_owned(),
        }
    }

    /// What went wrong, if it is an answer that says so: an error, or a tool that failed.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        if let Some(error) = self.value.get("error") {
            let message = error["message"].as_str().unwrap_or_default();
            return Some(format!("{} {message}", error["code"]));
        }
        let result = self.value.get("result")?;
        if result["isError"] != Value::Bool(true) {
            return None;
        }
        let text = result["content"].as_array().and_then(|all| all.first()?["text"].as_str());
        Some(format!("the tool failed: {}", text.unwrap_or("without words")))
    }

    /// The text of the token that a request wants to be told progress by, or that a report carries.
    #[must_use]
    pub fn progress_token(&self) -> Option<String> {
        let params = self.value.get("params")?;
        let token =
            params.get("progressToken").or_else(|| params.get("_meta")?.get("progressToken"));
        token.map(Value::to_string)
    }

    /// The id of the request that a notification withdraws.
    #[must_use]
    pub fn cancelled(&self) -> Option<String> {
        if self.method.as_deref() != Some("notifications/cancelled") {
            return None;
        }
        self.value.get("params")?.get("requestId").map(Value::to_string)
    }
}

/// Takes a body apart: one message, several if it is a batch, or one that is stray.
#[must_use]
pub fn talks(body: &Body) -> Vec<Talk> {
    let text = body.text();
    let trimmed = text.trim();
    if trimmed.starts_with('[')
        && let Ok(batch) = serde_json::from_str::<Vec<Box<RawValue>>>(trimmed)
        && !batch.is_empty()
    {
        return batch.iter().map(|one| talk(one.get())).collect();
    }
    vec![talk(trimmed)]
}

fn talk(text: &str) -> Talk {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
    }
    let stray = || Talk { value: Value::from(text), ..Talk::default() };
    let Ok(value) = serde_json::from_str::<Value>(text) else { return stray() };
    if value.get("jsonrpc").is_none() {
        return stray();
    }
    let envelope = serde_json::from_str::<Envelope<'_>>(text).ok();
    let id = envelope.and_then(|e| e.id).map(|id| id.get().to_owned()).filter(|id| id != "null");
    let text_at = |name: &str| Some(value.get("params")?.get(name)?.as_str()?.to_owned());
    let method = value.get("method").and_then(Value::as_str).map(str::to_owned);
    let target = match method.as_deref() {
        Some("tools/call" | "prompts/get") => text_at("name"),
        Some("resources/read" | "resources/subscribe" | "resources/unsubscribe") => text_at("uri"),
        _ => None,
    };
    Talk { id, method, target, value }
}

/// An arrow for the side that speaks.
#[must_use]
pub fn arrow(from: Side) -> &'static str {
    match from {
        Side::Client => "→",
        Side::Server => "←",
    }
}
