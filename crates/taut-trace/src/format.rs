//! What a capture consists of: a header and records, as plain data, and how each is written as a line.
//!
//! The format is documented in docs/trace-format.md; this file and `read.rs` are its only
//! implementation. Must not know files, threads or clocks.

use serde_json::value::RawValue;

use crate::base64;

/// The version of the format that is written. A reader refuses a larger one.
pub const VERSION: u32 = 1;

/// Who sent something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The host.
    Client,
    /// The server.
    Server,
}

impl Side {
    /// Its name in a capture.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }

    /// The one it talks to.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// One of the three byte streams of a stdio server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// From the client to the server's stdin.
    Client,
    /// From the server's stdout to the client.
    Server,
    /// From the server's stderr.
    Stderr,
}

impl Stream {
    /// All of them; the position of each is its index.
    pub const ALL: [Self; 3] = [Self::Client, Self::Server, Self::Stderr];

    /// Its name in a capture.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Stderr => "stderr",
        }
    }
}

/// How one message was told from the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// One line each.
    #[default]
    Lines,
    /// A `Content-Length` header before each.
    Headers,
}

impl Framing {
    /// Its name in a capture.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Lines => "lines",
            Self::Headers => "headers",
        }
    }
}

/// The first line of a capture: what was recorded, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The version of the format.
    pub version: u32,
    /// When the recording began, as RFC 3339 text in UTC.
    pub started: String,
    /// The program that recorded, such as `taut 0.1.0`.
    pub recorder: String,
    /// The server's name, if it has one.
    pub name: Option<String>,
    /// The server's program and arguments, secrets masked.
    pub command: Vec<String>,
    /// Whether secrets were masked.
    pub masked: bool,
}

impl Header {
    /// Appends the header as a line.
    pub fn write(&self, out: &mut Vec<u8>) {
        let version = self.version;
        let start =
            format!("{{\"kind\":\"header\",\"format\":\"taut-trace\",\"version\":{version}");
        out.extend_from_slice(start.as_bytes());
        member(out, "started", &self.started);
        member(out, "recorder", &self.recorder);
        if let Some(name) = &self.name {
            member(out, "name", name);
        }
        number(out, "command", serde_json::json!(self.command));
        number(out, "masked", self.masked);
        out.push(b'}');
        out.push(b'\n');
    }
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct Record {
    /// Microseconds since the recording began.
    pub at: u64,
    /// What it was.
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The server's process was started.
    Start {
        /// Its process id.
        pid: u32,
    },
    /// A message, or a line that should have been one.
    Message(Message),
    /// Bytes that make no frame.
    Fault {
        /// Who sent them.
        from: Side,
        /// What is wrong with them.
        what: String,
        /// Where in the stream they stand.
        offset: u64,
    },
    /// A line that the server wrote to stderr.
    Stderr(Body),
    /// A stream has ended.
    Close(Stream),
    /// Something is missing here.
    Gap(Gap),
    /// The server's process has ended.
    End(End),
    /// A kind of record that this version does not know.
    Unknown(String),
}

/// A message as it was sent.
#[derive(Clone, Debug)]
pub struct Message {
    /// Who sent it.
    pub from: Side,
    /// How it was framed.
    pub framing: Framing,
    /// What was sent, without its newline or header.
    pub body: Body,
    /// Where in the body a `***` stands for a secret, in bytes.
    pub masked: Vec<usize>,
    /// Whether only the beginning was kept.
    pub cut: bool,
    /// The connection that it passed on, in a capture of several, such as `client 1`.
    pub link: Option<String>,
}

/// The content of a message or of a line.
#[derive(Clone, Debug)]
pub enum Body {
    /// JSON, byte for byte as it was sent.
    Json(Box<RawValue>),
    /// Other text.
    Text(String),
    /// What is not UTF-8.
    Bytes(Vec<u8>),
}

impl Body {
    /// The bytes that were sent.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Json(json) => json.get().as_bytes(),
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// The same as text; what is not UTF-8 is replaced.
    #[must_use]
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.bytes())
    }
}

/// What is missing from a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gap {
    /// The stream that it is missing from; none if records of any kind are missing.
    pub from: Option<Stream>,
    /// How many bytes of the stream.
    pub bytes: u64,
    /// How many lines of the stream, or records.
    pub records: u64,
    /// Why.
    pub why: String,
}

/// How a process has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With an exit code.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// It was never started; in words.
    NotStarted(String),
}

/// The beginning of each record: its time and kind.
fn open(out: &mut Vec<u8>, at: u64, kind: &str) {
    let (seconds, micros) = (at / 1_000_000, at % 1_000_000);
    out.extend_from_slice(format!("{{\"t\":{seconds}.{micros:06},\"kind\":\"{kind}\"").as_bytes());
}

fn close(out: &mut Vec<u8>) {
    out.extend_from_slice(b"}\n");
}

fn member(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(format!(",\"{name}\":").as_bytes());
    string(out, value);
}

fn number(out: &mut Vec<u8>, name: &str, value: impl std::fmt::Display) {
    out.extend_from_slice(format!(",\"{name}\":{value}").as_bytes());
}

fn string(out: &mut Vec<u8>, value: &str) {
    // Writing text to memory cannot fail.
    let _ = serde_json::to_writer(out, value);
}

/// How a message was sent, for [`write_message`].
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    /// Who sent it.
    pub from: Side,
    /// How it was framed.
    pub framing: Framing,
    /// Whether a byte-order mark stood before it.
    pub bom: bool,
    /// Whether a carriage return stood before its newline.
    pub cr: bool,
    /// Whether only the beginning was kept.
    pub cut: bool,
    /// The connection that it passed on, where the capture has several.
    pub link: Option<&'a str>,
}

/// Appends a message as a line.
pub fn write_message(out: &mut Vec<u8>, at: u64, sent: Sent<'_>, body: &[u8], masked: &[usize]) {
    open(out, at, "message");
    if let Some(link) = sent.link {
        member(out, "link", link);
    }
    member(out, "from", sent.from.name());
    if sent.framing == Framing::Headers {
        member(out, "framing", sent.framing.name());
    }
    for (name, is) in [("bom", sent.bom), ("cr", sent.cr), ("cut", sent.cut)] {
        if is {
            number(out, name, true);
        }
    }
    if !masked.is_empty() {
        let places: Vec<String> = masked.iter().map(ToString::to_string).collect();
        number(out, "masked", format_args!("[{}]", places.join(",")));
    }
    if !sent.cut && stands_alone(body) {
        out.extend_from_slice(b",\"message\":");
        out.extend_from_slice(body);
    } else {
        write_body(out, body);
    }
    close(out);
}

/// Whether it can be a member of a record as it is: JSON without a line break or blanks around it.
fn stands_alone(body: &[u8]) -> bool {
    let blank = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_whitespace);
    !blank(body.first())
        && !blank(body.last())
        // A reader of JSON cannot tell a member that is null from one that is not there.
        && body != b"null"
        && !body.contains(&b'\n')
        && std::str::from_utf8(body).is_ok()
        && serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok()
}

fn write_body(out: &mut Vec<u8>, body: &[u8]) {
    match std::str::from_utf8(body) {
        Ok(text) => member(out, "text", text),
        Err(_) => {
            out.extend_from_slice(b",\"base64\":\"");
            base64::encode(body, out);
            out.push(b'"');
        }
    }
}

/// Appends a line of stderr.
pub fn write_stderr(out: &mut Vec<u8>, at: u64, line: &[u8]) {
    open(out, at, "stderr");
    write_body(out, line);
    close(out);
}

/// Appends bytes that make no frame.
pub fn write_fault(out: &mut Vec<u8>, at: u64, from: Side, what: &str, offset: u64) {
    open(out, at, "fault");
    member(out, "from", from.name());
    member(out, "what", what);
    number(out, "offset", offset);
    close(out);
}

/// Appends that a stream has ended.
pub fn write_close(out: &mut Vec<u8>, at: u64, from: Stream) {
    open(out, at, "close");
    member(out, "from", from.name());
    close(out);
}

/// Appends that something is missing.
pub fn write_gap(out: &mut Vec<u8>, at: u64, gap: &Gap) {
    open(out, at, "gap");
    if let Some(from) = gap.from {
        member(out, "from", from.name());
        number(out, "bytes", gap.bytes);
    }
    number(out, "records", gap.records);
    member(out, "why", &gap.why);
    close(out);
}

/// Appends that the process was started.
pub fn write_start(out: &mut Vec<u8>, at: u64, pid: u32) {
    open(out, at, "start");
    number(out, "pid", pid);
    close(out);
}

/// Appends how the process has ended.
pub fn write_end(out: &mut Vec<u8>, at: u64, end: &End) {
    open(out, at, "end");
    match end {
        End::Code(code) => number(out, "code", code),
        End::Signal(signal) => number(out, "signal", signal),
        End::NotStarted(why) => member(out, "error", why),
    }
    close(out);
}
