//! The headers of MCP over HTTP: their names, and how a value that is no plain ASCII is written.
//!
//! Knows names and text; must not know which method needs which header. HDR-06, HDR-07, HDR-08.

use std::borrow::Cow;

use http::header::HeaderName;

/// The session that a legacy request belongs to.
pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// The revision of the protocol that a request uses.
pub const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The method of a modern request, repeated for routers.
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");

/// The tool, prompt or resource of a modern request, repeated for routers.
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// What the headers begin with that repeat parameters of a tool.
pub const PARAM_PREFIX: &str = "mcp-param-";

/// The last event that a client has seen on a stream.
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The media type of one message.
pub const JSON: &str = "application/json";

/// The media type of a stream of messages.
pub const EVENT_STREAM: &str = "text/event-stream";

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

/// How `value` is written in `Mcp-Name` or `Mcp-Param-…`: as it is, or in Base64 between markers if
/// it is not plain ASCII, has blanks at its ends or looks like such a value itself (HDR-07).
#[must_use]
pub fn encode(value: &str) -> Cow<'_, str> {
    let plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && value.trim_ascii() == value
        && !(value.starts_with(OPEN) && value.ends_with(CLOSE));
    match plain {
        true => Cow::Borrowed(value),
        false => Cow::Owned(format!("{OPEN}{}{CLOSE}", to_base64(value.as_bytes()))),
    }
}

/// The value that a header's text stands for. `None` if it has both markers and what is between them
/// is no Base64 of UTF-8; a text with one marker, or with markers in another case, stands for itself
/// (HDR-08).
#[must_use]
pub fn decode(text: &str) -> Option<Cow<'_, str>> {
    let inside = text.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix(CLOSE));
    match inside {
        None => Some(Cow::Borrowed(text)),
        Some(base64) => String::from_utf8(from_base64(base64)?).ok().map(Cow::Owned),
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn to_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0, |group, byte| group << 8 | u32::from(*byte));
        let group = group << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let digit = group >> (18 - 6 * at) & 63;
            text.push(if at <= chunk.len() { char::from(ALPHABET[digit as usize]) } else { '=' });
        }
    }
    text
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let digits = match text {
        [digits @ .., b'=', b'='] | [digits @ .., b'='] => digits,
        digits => digits,
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in digits.chunks(4) {
        let mut group = 0;
        for digit in chunk {
            let value = ALPHABET.iter().position(|known| known == digit)?;
            group = group << 6 | value as u32;
        }
        group <<= 6 * (4 - chunk.len());
        let [_, decoded @ ..] = group.to_be_bytes();
        let length = chunk.len() - 1;
        // A group of one digit is none, and what is left over must be zero.
        if length == 0 || decoded[length..].iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(&decoded[..length]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hdr_07_a_value_that_is_not_plain_is_sent_in_base64() {
        let table = [
            ("plain text", "plain text"),
            ("", ""),
            ("é", "=?base64?w6k=?="),
            (" a", "=?base64?IGE=?="),
            ("a\n", "=?base64?YQo=?="),
            ("a\u{7f}b", "=?base64?YX9i?="),
            ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
            ("=?base64?", "=?base64?"),
        ];
        for (value, text) in table {
            assert_eq!(encode(value), text);
            assert_eq!(decode(text).as_deref(), Some(value));
        }
    }

    #[test]
    fn hdr_08_half_a_marker_is_text_and_broken_base64_is_refused() {
        for literal in ["=?BASE64?YQ==?=", "=?base64?YQ==", "YQ==?=", "=?utf8?YQ==?="] {
            assert_eq!(decode(literal).as_deref(), Some(literal));
        }
        for broken in ["YQ=", "Y", "Y===", "YQ =", "YR==", "=", "/w==", "YQ==YQ=="] {
            assert_eq!(decode(&format!("=?base64?{broken}?=")), None, "{broken}");
        }
        assert_eq!(decode("=?base64??=").as_deref(), Some(""));
    }
}
