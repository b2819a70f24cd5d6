//! What a modern request says about itself in `_meta`.
//!
//! Knows which fields are required and what they must be, and the −32602 for a bad one; must not know methods.
//! MET-01 to MET-10, ERA-03, ERA-05, PRG-01, LOG-11.

use std::borrow::Cow;

use serde::de::Deserialize;

use super::capabilities::{ClientCapabilities, Implementation};
use super::logging::Level;
use super::meta::meta_keys;
use crate::json::JsonRef;
use crate::rpc::{ErrorObject, Id};

/// The reserved fields of a request's `_meta`, found but not yet parsed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestMeta<'a> {
    protocol_version: Option<JsonRef<'a>>,
    client_capabilities: Option<JsonRef<'a>>,
    client_info: Option<JsonRef<'a>>,
    pub(crate) log_level: Option<JsonRef<'a>>,
    pub(crate) progress_token: Option<JsonRef<'a>>,
    traceparent: Option<JsonRef<'a>>,
    tracestate: Option<JsonRef<'a>>,
    baggage: Option<JsonRef<'a>>,
}

const IDENTITY: &str = "an object with name and version";

/// What a well-formed modern request says about itself.
#[derive(Clone, Debug)]
pub(crate) struct Claims<'a> {
    /// The revision the request asks for; may be one taut does not know (VER-01).
    pub(crate) protocol_version: Cow<'a, str>,
    /// The least severe log line wanted; none at all when absent (LOG-09).
    pub(crate) log_level: Option<Level>,
}

impl<'a> RequestMeta<'a> {
    /// Finds the reserved fields of `_meta`; of what is no object it finds none.
    pub(crate) fn read(meta: JsonRef<'a>) -> Self {
        let mut found = Self::default();
        for (key, value) in meta.members().into_iter().flatten() {
            let slot = match &*key {
                meta_keys::PROTOCOL_VERSION => &mut found.protocol_version,
                meta_keys::CLIENT_CAPABILITIES => &mut found.client_capabilities,
                meta_keys::CLIENT_INFO => &mut found.client_info,
                meta_keys::LOG_LEVEL => &mut found.log_level,
                meta_keys::PROGRESS_TOKEN => &mut found.progress_token,
                meta_keys::TRACEPARENT => &mut found.traceparent,
                meta_keys::TRACESTATE => &mut found.tracestate,
                meta_keys::BAGGAGE => &mut found.baggage,
                _ => continue,
            };
            *slot = Some(value);
        }
        found
    }

    /// Whether `_meta` claims to be modern, as [`is_modern`](Self::is_modern) says, without reading more of it
    /// than that takes.
    pub(crate) fn claims_modern(meta: JsonRef<'a>) -> bool {
        let mut members = meta.members().into_iter().flatten();
        members.any(|(key, _)| key == meta_keys::PROTOCOL_VERSION)
    }

    /// Whether the request claims to be modern: the key's presence decides, whatever its value
    /// (ERA-03, ERA-05).
    pub(crate) fn is_modern(&self) -> bool {
        self.protocol_version.is_some()
    }

    /// Checks what a modern request must say besides who asks, and reads it (MET-02, MET-06).
    pub(crate) fn claims(&self) -> Result<Claims<'a>, ErrorObject> {
        let (Some(version), Some(_)) = (self.protocol_version, self.client_capabilities) else {
            return Err(self.missing());
        };
        let wrong = || wrong(meta_keys::PROTOCOL_VERSION, "a string");
        let protocol_version = version.string().ok_or_else(wrong)?;
        self.progress_token()?;
        Ok(Claims { protocol_version, log_level: self.log_level.map(level).transpose()? })
    }

    /// The −32602 with the fields that a modern request must have and this one lacks.
    pub(crate) fn missing(&self) -> ErrorObject {
        let version = self.protocol_version.is_none().then_some(meta_keys::PROTOCOL_VERSION);
        let can = self.client_capabilities.is_none().then_some(meta_keys::CLIENT_CAPABILITIES);
        let missing: Vec<_> = version.into_iter().chain(can).collect();
        ErrorObject::invalid_params(format!("params._meta lacks {}", missing.join(" and ")))
    }

    /// The text of what the client can do and who it is, for telling whether it is the same as
    /// before: hardly any client changes between two requests, and reading it costs.
    pub(crate) fn asker_text(&self) -> (&'a str, &'a str) {
        let text = |raw: Option<JsonRef<'a>>| raw.map_or("", JsonRef::text);
        (text(self.client_capabilities), text(self.client_info))
    }

    /// What the client can do, for this request only (STD-25).
    pub(crate) fn client_capabilities(&self) -> Result<ClientCapabilities, ErrorObject> {
        let raw = self.client_capabilities.ok_or_else(|| self.missing())?;
        field(raw, meta_keys::CLIENT_CAPABILITIES, "a ClientCapabilities object")
    }

    /// Who asks; advisable, not required (MET-03).
    pub(crate) fn client_info(&self) -> Result<Option<Implementation>, ErrorObject> {
        self.client_info.map(|raw| field(raw, meta_keys::CLIENT_INFO, IDENTITY)).transpose()
    }

    /// The token that progress notifications have to carry (PRG-01).
    pub(crate) fn progress_token(&self) -> Result<Option<Id>, ErrorObject> {
        let Some(raw) = self.progress_token else { return Ok(None) };
        let wrong = || wrong(meta_keys::PROGRESS_TOKEN, "a string or an integer");
        Id::from_json(raw.text()).map(Some).ok_or_else(wrong)
    }

    /// The trace that the request is part of (MET-08); what is no string is somebody else's mistake
    /// and is passed over.
    pub(crate) fn trace(&self) -> Trace {
        let text = |raw: Option<JsonRef<'a>>| raw.and_then(JsonRef::string).map(Cow::into_owned);
        Trace {
            parent: text(self.traceparent),
            state: text(self.tracestate),
            baggage: text(self.baggage),
        }
    }
}

/// W3C trace context, as a request brought it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trace {
    /// `traceparent`.
    pub parent: Option<String>,
    /// `tracestate`.
    pub state: Option<String>,
    /// `baggage`.
    pub baggage: Option<String>,
}

fn field<'a, T: Deserialize<'a>>(
    raw: JsonRef<'a>,
    field: &str,
    expected: &str,
) -> Result<T, ErrorObject> {
    raw.read().map_err(|_| wrong(field, expected))
}

fn level(raw: JsonRef<'_>) -> Result<Level, ErrorObject> {
    let expected = "one of debug, info, notice, warning, error, critical, alert, emergency";
    let level: Level = field(raw, meta_keys::LOG_LEVEL, expected)?;
    // LOG-11: an unknown level is refused.
    if level.is_known() { Ok(level) } else { Err(wrong(meta_keys::LOG_LEVEL, expected)) }
}

/// The −32602 for a field that has the wrong type or an unknown value.
fn wrong(field: &str, expected: &str) -> ErrorObject {
    ErrorObject::invalid_params(format!("params._meta {field} must be {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::RawJson;
    use serde_json::value::RawValue;
    use serde_json::{Value, json};

    fn claims_error(meta: Value) -> String {
        let raw = RawJson::from(meta);
        let envelope = RequestMeta::read(raw.raw().into());
        let read = envelope.claims().and_then(|_| {
            envelope.client_capabilities()?;
            envelope.client_info()
        });
        read.unwrap_err().message.into_owned()
    }

    fn full() -> Value {
        json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "url": {} } },
            "io.modelcontextprotocol/clientInfo": { "name": "c", "version": "1" },
            "io.modelcontextprotocol/logLevel": "warning",
            "progressToken": 7,
            "traceparent": "00-1-2-3",
            "baggage": 5,
            "com.example/x": { "deep": [1] },
        })
    }

    #[test]
    fn a_whole_envelope_is_read() {
        let raw = RawJson::from(full());
        let envelope = RequestMeta::read(raw.raw().into());
        let claims = envelope.claims().unwrap();
        assert_eq!(claims.protocol_version, "2026-07-28");
        assert!(envelope.client_capabilities().unwrap().elicitation.is_some());
        assert_eq!(claims.log_level, Some(Level::Warning));
        assert_eq!(envelope.client_info().unwrap().unwrap().name, "c");
        assert_eq!(envelope.progress_token().unwrap(), Some(Id::from(7)));
        let parent = Some("00-1-2-3".to_owned());
        assert_eq!(envelope.trace(), Trace { parent, ..Trace::default() });
    }

    #[test]
    fn met_02_missing_fields_are_all_named() {
        let error = claims_error(json!({}));
        assert!(error.contains(meta_keys::PROTOCOL_VERSION), "{error}");
        assert!(error.contains(meta_keys::CLIENT_CAPABILITIES), "{error}");
        let error = claims_error(json!({ "io.modelcontextprotocol/protocolVersion": "x" }));
        assert_eq!(error, format!("params._meta lacks {}", meta_keys::CLIENT_CAPABILITIES));
    }

    #[test]
    fn met_06_a_field_of_the_wrong_type_is_named() {
        for (key, bad) in [
            (meta_keys::PROTOCOL_VERSION, json!(20260728)),
            (meta_keys::CLIENT_CAPABILITIES, json!([])),
            (meta_keys::CLIENT_CAPABILITIES, json!({ "roots": true })),
            (meta_keys::CLIENT_INFO, json!({ "name": "c" })),
            (meta_keys::LOG_LEVEL, json!("loud")),
            (meta_keys::PROGRESS_TOKEN, json!(1.5)),
        ] {
            let mut meta = full();
            meta[key] = bad;
            let error = claims_error(meta);
            assert!(error.starts_with(&format!("params._meta {key} must be ")), "{error}");
        }
    }

    #[test]
    fn era_03_the_key_alone_makes_a_request_modern() {
        let modern = |text| {
            RequestMeta::read(serde_json::from_str::<&RawValue>(text).unwrap().into()).is_modern()
        };
        assert!(modern(r#"{"io.modelcontextprotocol/protocolVersion":null}"#));
        assert!(!modern(r#"{"progressToken":1}"#));
        assert!(!RequestMeta::default().is_modern());
    }
}
