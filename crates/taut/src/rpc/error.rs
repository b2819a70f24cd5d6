//! The error object, and the codes that everybody shares.
//!
//! Knows JSON-RPC's own codes; what MCP adds lives in `mcp`.

use std::borrow::Cow;
use std::fmt;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::JsonRef;
#[cfg(all(feature = "server", feature = "client"))]
use crate::json::edit::{Edit, edited};

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
    /// In a box of its own, because nearly every error has none, and outcomes are moved often.
    #[serde(skip)]
    written: Option<Box<Written>>,
}

/// The whole object as a peer wrote it, where the fields alone would not be written the same way: it has more
/// members, another order, blanks, `"data":null`, or escapes in the message.
#[derive(Clone, Debug)]
struct Written {
    text: Box<RawValue>,
    /// Whether this is what is written. Otherwise the fields are: a caller may have changed them.
    relayed: bool,
}

impl ErrorObject {
    /// An error with this code and message.
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None, written: None }
    }

    /// Reads the `error` member of a response. Nothing if it is no error object.
    pub(crate) fn read(raw: &RawValue) -> Option<Self> {
        let (mut code, mut message, mut data) = (None, None, None);
        for (name, value) in JsonRef::from(raw).members()? {
            let slot = match &*name {
                "code" => &mut code,
                "message" => &mut message,
                "data" => &mut data,
                _ => continue,
            };
            // RPC-35: nobody can say which of the two counts.
            if slot.replace(value).is_some() {
                return None;
            }
        }
        let code: i64 = code?.read().ok()?;
        let message = message?.string_lossy()?.into_owned();
        let data = data.filter(|data| data.text() != "null").map(|data| data.raw().to_owned());
        let mut error = Self { code, message: message.into(), data, written: None };
        if !error.is_written_as(raw.get()) {
            error.written = Some(Box::new(Written { text: raw.to_owned(), relayed: false }));
        }
        Some(error)
    }

    /// Whether the fields are written as this text. The data is compared, and not copied.
    fn is_written_as(&self, text: &str) -> bool {
        let head = Self { data: None, ..Self::new(self.code, self.message.clone()) };
        let head = serde_json::to_string(&head).unwrap_or_default();
        let rest = text.strip_prefix(head.trim_end_matches('}'));
        let rest = match &self.data {
            Some(data) => rest
                .and_then(|rest| rest.strip_prefix(",\"data\":"))
                .and_then(|rest| rest.strip_prefix(data.get())),
            None => rest,
        };
        rest == Some("}")
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

/// What only the proxy does with the errors that it passes on.
#[cfg(all(feature = "server", feature = "client"))]
impl ErrorObject {
    /// The same error, which is written as its sender wrote it. For a proxy, which changes it only by
    /// [`set_code`](Self::set_code) and [`set_data`](Self::set_data) afterwards.
    pub(crate) fn relayed(mut self) -> Self {
        if let Some(written) = &mut self.written {
            written.relayed = true;
        }
        self
    }

    /// Changes the code, and nothing else of what the sender wrote.
    pub(crate) fn set_code(&mut self, code: i64) {
        self.code = code;
        self.rewrite("code", &code.to_string());
    }

    /// Changes the data, which is JSON text, and nothing else of what the sender wrote.
    pub(crate) fn set_data(&mut self, text: String) {
        self.rewrite("data", &text);
        self.data = RawValue::from_string(text).ok();
    }

    fn rewrite(&mut self, member: &str, value: &str) {
        let Some(written) = &mut self.written else { return };
        let object = JsonRef::from(&*written.text);
        let added = [(member, value)];
        let added = if object.member(member).is_some() { &added[..0] } else { &added[..] };
        let change = |name: &str, _: JsonRef<'_>| match name == member {
            true => Edit::Put(value.to_owned()),
            false => Edit::Keep,
        };
        if let Ok(text) = RawValue::from_string(edited(object, change, added)) {
            written.text = text;
        }
    }
}

impl Serialize for ErrorObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(written) = self.written.as_deref().filter(|written| written.relayed) {
            return written.text.serialize(serializer);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<ErrorObject> {
        ErrorObject::read(&RawValue::from_string(text.to_owned()).unwrap())
    }

    fn write(error: &ErrorObject) -> String {
        serde_json::to_string(error).unwrap()
    }

    /// What a peer may write that the fields alone do not keep.
    const ODD: [&str; 7] = [
        r#"{"code":-1,"message":"m","data":null}"#,
        r#"{"code":-1,"message":"m","own":1e400,"own":-0}"#,
        r#"{"message":"m","code":-1,"data":{"a":1,"a":2}}"#,
        r#"{"code":-1,"message":"\u006d\/"}"#,
        r#"{"code":-1,"message":"\ud83d\ude00 \ud800 \\ud800 \udc00\ud800"}"#,
        r#"{ "code" : -1, "message" : "m" }"#,
        r#"{"c\u006fde":-1,"message":"m"}"#,
    ];

    #[test]
    fn an_error_is_relayed_as_it_was_written() {
        for text in ODD {
            let error = read(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(error.code, -1, "{text}");
            assert_eq!(write(&error.relayed()), text);
        }
        // The usual form is not kept twice.
        for text in
            [r#"{"code":-1,"message":"m\n"}"#, r#"{"code":-1,"message":"}}","data":[ -0 ]}"#]
        {
            let error = read(text).unwrap();
            assert!(error.written.is_none(), "{text}");
            assert_eq!(write(&error.relayed()), text);
        }
    }

    #[test]
    fn half_of_a_surrogate_pair_in_a_message_costs_that_character_only() {
        let error = read(ODD[4]).unwrap();
        assert_eq!(error.message, "😀 \u{fffd} \\ud800 \u{fffd}\u{fffd}");
    }

    #[test]
    fn what_is_changed_is_written_and_the_rest_stays() {
        let mut error = read(r#"{"own":1e400,"code":-1,"message":"\ud800"}"#).unwrap().relayed();
        error.set_code(-2);
        error.set_data("-0".to_owned());
        assert_eq!(write(&error), r#"{"own":1e400,"code":-2,"message":"\ud800","data":-0}"#);
        error.set_data("[]".to_owned());
        assert_eq!(write(&error), r#"{"own":1e400,"code":-2,"message":"\ud800","data":[]}"#);
        assert_eq!((error.code, error.data.unwrap().get()), (-2, "[]"));
    }

    /// Who gets an error and passes it on after a change means what it has changed.
    #[test]
    fn the_fields_are_what_is_written_unless_an_error_is_relayed() {
        let mut error = read(ODD[1]).unwrap();
        error.code = 7;
        assert_eq!(write(&error), r#"{"code":7,"message":"m"}"#);
    }

    #[test]
    fn what_is_no_error_object_is_refused() {
        for text in [
            "[]",
            "null",
            r#"{"code":1}"#,
            r#"{"message":"m"}"#,
            r#"{"code":1.5,"message":"m"}"#,
            r#"{"code":1,"message":2}"#,
            r#"{"code":1,"code":1,"message":"m"}"#,
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
