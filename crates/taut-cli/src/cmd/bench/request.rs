//! A request that is written once and sent many times: only its number changes.
//!
//! Knows how a request looks in both eras. The number has a fixed width and also stands at the start
//! of the payload, so that an answer to one request can never pass for the answer to another.

use memchr::memmem;
use serde_json::{Value, json};

use super::options::Era;

/// Digits of a number.
pub(super) const WIDTH: usize = 8;
/// Numbers from here on have that many digits, and there are enough for any run.
pub(super) const FIRST: u32 = 10_000_000;
/// The number that stands in a request until it is sent: no text of ours contains it.
const MARK: u32 = 98_765_432;

/// One kind of request.
#[derive(Debug)]
pub(super) struct Request {
    line: Vec<u8>,
    holes: Vec<usize>,
}

impl Request {
    /// Params are members, without the braces: they stand in the order in which hosts write them.
    fn new(method: &str, params: Option<&str>) -> Self {
        let params = params.map(|params| format!(r#","params":{{{params}}}"#)).unwrap_or_default();
        let line = format!(r#"{{"jsonrpc":"2.0","id":{MARK},"method":"{method}"{params}}}"#) + "\n";
        let mark = digits(MARK);
        let holes = memmem::find_iter(line.as_bytes(), &mark).collect();
        Self { line: line.into_bytes(), holes }
    }

    /// Puts the number in, and gives the whole line.
    pub(super) fn numbered(&mut self, id: u32) -> &[u8] {
        let digits = digits(id);
        for hole in &self.holes {
            self.line[*hole..hole + WIDTH].copy_from_slice(&digits);
        }
        &self.line
    }

    /// The same at the end of others.
    pub(super) fn append(&self, id: u32, out: &mut Vec<u8>) {
        let (at, digits) = (out.len(), digits(id));
        out.extend_from_slice(&self.line);
        for hole in &self.holes {
            out[at + hole..at + hole + WIDTH].copy_from_slice(&digits);
        }
    }

    /// The line with the number that it had last.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.line
    }

    pub(super) fn len(&self) -> usize {
        self.line.len()
    }
}

/// A number as it stands on the wire.
pub(super) fn digits(id: u32) -> [u8; WIDTH] {
    let (mut out, mut rest) = ([b'0'; WIDTH], id);
    for digit in out.iter_mut().rev() {
        *digit += (rest % 10) as u8;
        rest /= 10;
    }
    out
}

/// The other way round.
pub(super) fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0_u32, |sum, digit| {
        let value = digit.wrapping_sub(b'0');
        (value < 10).then(|| sum.wrapping_mul(10).wrapping_add(u32::from(value)))
    })
}

/// So many bytes of text, the first of which are the number.
pub(super) fn payload(id: u32, size: usize) -> String {
    // Nothing that has to be escaped, and no digits.
    const WORDS: &[u8] = b" the quick brown fox jumps over the lazy dog and sits down beside it,";
    let mut text = String::from_utf8_lossy(&digits(id)).into_owned();
    text.extend(WORDS.iter().cycle().take(size.saturating_sub(WIDTH)).map(|byte| *byte as char));
    text
}

/// A call of a tool with a text of this size.
pub(super) fn call(era: Era, tool: &str, argument: &str, size: usize) -> Request {
    let (tool, arguments) = (json!(tool), json!({ argument: payload(MARK, size) }));
    let params = format!(r#""name":{tool},"arguments":{arguments}"#);
    Request::new("tools/call", Some(&stamped(era, params)))
}

/// A call of a tool with these arguments, an object as JSON, which are the same each time.
pub(super) fn fixed(era: Era, tool: &str, arguments: &str) -> Request {
    let params = format!(r#""name":{},"arguments":{arguments}"#, json!(tool));
    Request::new("tools/call", Some(&stamped(era, params)))
}

/// A page of the list of tools.
pub(super) fn list(era: Era, cursor: Option<&str>) -> Request {
    let cursor = cursor.map(|cursor| format!(r#""cursor":{}"#, json!(cursor)));
    Request::new("tools/list", Some(&stamped(era, cursor.unwrap_or_default())))
}

/// The smallest request there is.
pub(super) fn ping(era: Era) -> Request {
    match era {
        Era::Legacy => Request::new("ping", None),
        // The modern era has no ping (PNG-02).
        Era::Modern => opening(era),
    }
}

/// The first request.
pub(super) fn opening(era: Era) -> Request {
    match era {
        Era::Legacy => {
            let who = who();
            let rest = format!(r#""capabilities":{{}},"clientInfo":{who}"#);
            let params = format!(r#""protocolVersion":"2025-11-25",{rest}"#);
            Request::new("initialize", Some(&params))
        }
        Era::Modern => Request::new("server/discover", Some(&stamped(era, String::new()))),
    }
}

/// What follows the answer to the first request.
pub(super) const INITIALIZED: &[u8] =
    b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";

/// What each modern request carries (MET-01).
fn stamped(era: Era, params: String) -> String {
    if era == Era::Legacy {
        return params;
    }
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": who(),
    });
    let comma = if params.is_empty() { "" } else { "," };
    format!(r#"{params}{comma}"_meta":{meta}"#)
}

fn who() -> Value {
    json!({ "name": "taut-bench", "version": env!("CARGO_PKG_VERSION") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_number_of_a_request_changes() {
        let mut request = call(Era::Legacy, "echo", "text", 64);
        let mut out = Vec::new();
        request.append(FIRST + 7, &mut out);
        assert_eq!(request.numbered(FIRST + 7), out);
        let message: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(message["id"], FIRST + 7);
        let text = message["params"]["arguments"]["text"].as_str().unwrap();
        assert_eq!((text.len(), text), (64, payload(FIRST + 7, 64).as_str()));
        assert_eq!(number(&digits(FIRST + 7)), Some(FIRST + 7));
        assert_eq!(number(b"1234x678"), None);
    }

    #[test]
    fn every_modern_request_says_what_it_has_to() {
        for request in [call(Era::Modern, "a", "b", 16), list(Era::Modern, Some("c"))] {
            let message: Value = serde_json::from_slice(&request.line).unwrap();
            let meta = message["params"]["_meta"].as_object().unwrap();
            assert_eq!(meta.len(), 3, "{message}");
        }
    }
}
