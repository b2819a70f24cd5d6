//! The params of our requests: what the caller gives, and `_meta`.
//!
//! Knows which fields a modern request carries and where they stand. Must not know what the caller's
//! part means. MET-01 to MET-03, PRG-01, LOG-09.

use super::rounds::Retry;
use crate::client::connection::RequestEnvelope;
use crate::driver::Body;
use crate::json::{ObjectWriter, close};
use crate::mcp::{Level, Meta, meta_keys};

/// The params of one request.
pub(in crate::client) struct OutgoingParams<'a> {
    /// The tool, if it is one that is called; the body is its arguments then.
    pub(super) tool: Option<&'a str>,
    /// JSON: the caller's params, or the arguments of the tool.
    pub(super) body: &'a [u8],
    pub(super) envelope: &'a RequestEnvelope,
    pub(super) level: Option<&'a Level>,
    pub(super) token: Option<u64>,
    pub(super) meta: Option<&'a Meta>,
    /// What the server asked for when it was asked the same before.
    pub(super) retry: Option<&'a Retry>,
}

impl Body for OutgoingParams<'_> {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        let start = out.len();
        match self.tool {
            Some(name) => write_call(out, name, self.body)?,
            None => out.extend_from_slice(self.body),
        }
        if self.is_plain() {
            return Ok(());
        }
        match &out[start..] {
            // `()` is a way to give nothing.
            b"null" | b"{}" => out.truncate(start),
            [b'{', .., b'}'] => drop(out.pop()),
            _ => return Err(serde::ser::Error::custom("params must be an object")),
        }
        if let Some(retry) = self.retry {
            retry.write(out);
        }
        out.extend_from_slice(b",\"_meta\":");
        self.write_meta(ObjectWriter::new(out));
        close(out, start, *b"{}");
        Ok(())
    }
}

impl Retry {
    /// MRTR-05, MRTR-06: the answers under the keys of their questions, and the state as it came. What is absent
    /// is not written.
    fn write(&self, out: &mut Vec<u8>) {
        if let Some(responses) = &self.responses {
            out.extend_from_slice(b",\"inputResponses\":");
            let mut object = ObjectWriter::new(out);
            for (key, answer) in responses {
                object.member(key).extend_from_slice(answer.get().as_bytes());
            }
            object.end();
        }
        if let Some(state) = &self.state {
            out.extend_from_slice(b",\"requestState\":");
            out.extend_from_slice(state.get().as_bytes());
        }
    }
}

impl<'a> OutgoingParams<'a> {
    /// Params that ask for neither progress nor logs.
    pub(in crate::client) fn new(body: &'a [u8], envelope: &'a RequestEnvelope) -> Self {
        Self { tool: None, body, envelope, level: None, token: None, meta: None, retry: None }
    }

    fn is_plain(&self) -> bool {
        self.envelope.0.is_empty()
            && self.level.is_none()
            && self.token.is_none()
            && self.meta.is_none_or(Meta::is_empty)
            && self.retry.is_none()
    }

    fn write_meta(&self, mut meta: ObjectWriter<'_>) {
        if !self.envelope.0.is_empty() {
            meta.raw(",").extend_from_slice(self.envelope.0.as_bytes());
        }
        if let Some(token) = self.token {
            meta.value(meta_keys::PROGRESS_TOKEN, &token);
        }
        if let Some(level) = self.level {
            meta.value(meta_keys::LOG_LEVEL, level);
        }
        for (name, value) in self.meta.into_iter().flat_map(Meta::iter) {
            if !self.is_ours(name) {
                meta.member(name).extend_from_slice(value.text().as_bytes());
            }
        }
        meta.end();
    }

    /// Whether we write this key ourselves: a key that stands twice makes no valid object.
    fn is_ours(&self, name: &str) -> bool {
        match name {
            meta_keys::PROTOCOL_VERSION
            | meta_keys::CLIENT_CAPABILITIES
            | meta_keys::CLIENT_INFO => !self.envelope.0.is_empty(),
            meta_keys::PROGRESS_TOKEN => self.token.is_some(),
            meta_keys::LOG_LEVEL => self.level.is_some(),
            _ => false,
        }
    }
}

/// The caller's part of a `tools/call`.
fn write_call(out: &mut Vec<u8>, name: &str, arguments: &[u8]) -> Result<(), serde_json::Error> {
    out.extend_from_slice(b"{\"name\":");
    serde_json::to_writer(&mut *out, name)?;
    match arguments {
        // TOL-26: no arguments are absent arguments.
        b"null" => {}
        [b'{', ..] => {
            out.extend_from_slice(b",\"arguments\":");
            out.extend_from_slice(arguments);
        }
        _ => return Err(serde::ser::Error::custom("arguments must be an object")),
    }
    out.push(b'}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::connection::ClientSettings;
    use crate::mcp::Revision;
    use serde_json::{Value, json};

    fn written(params: &OutgoingParams<'_>) -> String {
        let mut out = Vec::new();
        params.write(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text == "null" || serde_json::from_str::<Value>(&text).is_ok(), "{text}");
        text
    }

    #[test]
    fn met_01_a_modern_request_says_who_sends_it_and_a_legacy_one_does_not() {
        let settings = ClientSettings::default();
        let modern = RequestEnvelope::new(&settings, Revision::MODERN);
        let legacy = RequestEnvelope::new(&settings, Revision::LATEST_LEGACY);
        let plain = |envelope| OutgoingParams::new(b"null", envelope);
        assert_eq!(written(&plain(&legacy)), "null");
        let value: Value = serde_json::from_str(&written(&plain(&modern))).unwrap();
        let meta = &value["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}));
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "taut");
    }

    #[test]
    fn what_the_caller_adds_comes_last_and_never_twice() {
        let meta = Meta::new()
            .with("progressToken", json!("mine"))
            .with("com.example/x", json!([1]))
            .with(meta_keys::PROTOCOL_VERSION, json!("1999-01-01"));
        let envelope = RequestEnvelope::new(&ClientSettings::default(), Revision::MODERN);
        let level = Level::Warning;
        let plain = OutgoingParams::new(br#"{"uri":"a:b"}"#, &envelope);
        let params =
            OutgoingParams { level: Some(&level), token: Some(7), meta: Some(&meta), ..plain };
        let text = written(&params);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["uri"], "a:b");
        assert_eq!(value["_meta"]["progressToken"], 7);
        assert_eq!(value["_meta"]["com.example/x"], json!([1]));
        assert_eq!(value["_meta"][meta_keys::PROTOCOL_VERSION], "2026-07-28");
        assert_eq!(value["_meta"][meta_keys::LOG_LEVEL], "warning");
        assert_eq!(text.matches("progressToken").count(), 1);
        assert_eq!(text.matches("protocolVersion").count(), 1);
    }

    #[test]
    fn tol_26_arguments_are_an_object_or_absent() {
        let tool = |arguments: &[u8]| {
            let mut out = Vec::new();
            write_call(&mut out, "a\"b", arguments).map(|()| out)
        };
        assert_eq!(tool(b"null").unwrap(), br#"{"name":"a\"b"}"#);
        assert_eq!(tool(br#"{"x":1}"#).unwrap(), br#"{"name":"a\"b","arguments":{"x":1}}"#);
        assert!(tool(b"[1]").is_err());
    }
}
