//! What is asked of a server: which message, how large, how many at a time.

use std::io;
use std::str::FromStr;

/// The kinds of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `echo` of plain JSON-RPC.
    Plain,
    /// `tools/call` of `echo` after a handshake.
    Legacy,
    /// The same without one, and with `_meta` on each request.
    Modern,
    /// `tools/list` after a handshake.
    List,
    /// A new process each time, up to its answer to the handshake.
    Start,
}

/// One kind of request, repeated. Written `legacy`, `modern x64` or `legacy 1048576`.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    kind: Kind,
    /// How many are under way at a time.
    pub window: usize,
    /// Bytes of text.
    size: usize,
}

/// What a client of the modern era says about itself on each request.
const META: &str = concat!(
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientCapabilities":{},"#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0"}}"#
);

const HANDSHAKE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","#,
    r#""capabilities":{},"clientInfo":{"name":"bench","version":"1.0"}}}"#
);

const READY: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

impl Workload {
    /// What goes before the first request: a line that is answered, and one that is not.
    pub fn opening(&self) -> Option<(&'static str, &'static str)> {
        matches!(self.kind, Kind::Legacy | Kind::List | Kind::Start).then_some((HANDSHAKE, READY))
    }

    /// Whether each call starts a process.
    pub fn starts(&self) -> bool {
        self.kind == Kind::Start
    }

    /// A request up to its id, and what follows it.
    pub fn request(&self) -> (String, String) {
        let text = "0123456789abcdef".repeat(self.size.div_ceil(16));
        let text = &text[..self.size];
        let call = format!(r#""name":"echo","arguments":{{"text":"{text}"}}"#);
        let (method, params) = match self.kind {
            Kind::Plain => ("echo", format!(r#""text":"{text}""#)),
            Kind::Legacy => ("tools/call", call),
            Kind::Modern => ("tools/call", format!("{call},{META}")),
            Kind::List | Kind::Start => ("tools/list", String::new()),
        };
        let rest = format!(",\"method\":\"{method}\",\"params\":{{{params}}}}}\n");
        (r#"{"jsonrpc":"2.0","id":"#.to_owned(), rest)
    }
}

impl FromStr for Workload {
    type Err = io::Error;

    fn from_str(text: &str) -> io::Result<Self> {
        let mut words = text.split_whitespace();
        let kind = match words.next() {
            Some("plain") => Kind::Plain,
            Some("legacy") => Kind::Legacy,
            Some("modern") => Kind::Modern,
            Some("list") => Kind::List,
            Some("start") => Kind::Start,
            _ => return Err(io::Error::other(format!("no such workload: {text}"))),
        };
        let mut workload = Self { kind, window: 1, size: 64 };
        for word in words {
            let (slot, number) = match word.strip_prefix('x') {
                Some(number) => (&mut workload.window, number),
                None => (&mut workload.size, word),
            };
            *slot = number.parse().map_err(io::Error::other)?;
        }
        Ok(workload)
    }
}
