//! The error object, and the codes that everybody shares.
//!
//! Knows JSON-RPC's own codes; what MCP adds lives in `mcp`.

use std::borrow::Cow;
use std::fmt;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

/// Error codes. The first five are JSON-RPC's own; the last is what language servers answer to a
/// request that was cancelled.
pub mod code {
    /// The bytes are not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// The JSON is not a message.
    pub const INVALID_REQUEST: i64 = -32600;
    /// There is no such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The params do not fit the method.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The answering side failed.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// The request was cancelled; plain JSON-RPC only.
    pub const CANCELLED: i64 = -32800;
}

/// The `error` member of a response.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct ErrorObject {
    /// What kind of error, as a number.
    pub code: i64,
    /// What went wrong, in a sentence.
    pub message: Cow<'static, str>,
    /// Anything more, kept as it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl ErrorObject {
    /// An error with this code and message.
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// −32601: there is no such method.
    #[must_use]
    pub fn method_not_found(method: &str) -> Self {
        Self::new(code::METHOD_NOT_FOUND, format!("method not found: {}", excerpt(method)))
    }

    /// −32602: the params do not fit.
    pub fn invalid_params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    /// −32603: this side failed.
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INTERNAL_ERROR, message)
    }

    /// −32600: not a request.
    pub fn invalid_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INVALID_REQUEST, message)
    }

    /// Adds `data`. A value that cannot be written as JSON is left out.
    #[must_use]
    pub fn with_data(mut self, data: &impl Serialize) -> Self {
        self.data = serde_json::value::to_raw_value(data).ok();
        self
    }
}

impl Serialize for ErrorObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("code", &self.code)?;
        map.serialize_entry("message", &self.message)?;
        if let Some(data) = &self.data {
            map.serialize_entry("data", data)?;
        }
        map.end()
    }
}

impl PartialEq for ErrorObject {
    fn eq(&self, other: &Self) -> bool {
        let data = |error: &Self| error.data.as_ref().map(|raw| raw.get().to_owned());
        (self.code, &self.message, data(self)) == (other.code, &other.message, data(other))
    }
}

impl fmt::Display for ErrorObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for ErrorObject {}

/// The first characters of foreign text, safe to put into a message of our own.
pub(crate) fn excerpt(text: &str) -> String {
    /// Enough to recognise a line by, too little to flood a log.
    const LENGTH: usize = 120;
    let mut short = String::new();
    for character in text.chars().take(LENGTH) {
        match character {
            // Harmless, and most of what comes is JSON.
            '"' | '\'' | '\\' => short.push(character),
            _ => short.extend(character.escape_debug()),
        }
    }
    if text.chars().nth(LENGTH).is_some() {
        short.push('…');
    }
    short
}
