//! Reads a capture, line by line.
//!
//! A line that is broken is counted and skipped, and a last line without its newline is left out: a
//! recorder that was killed leaves such a one. Must not know files: it takes anything that can be read.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, BufRead, Read as _};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::base64;
use crate::format::{
    Body, End, Event, Framing, Gap, Header, Message, Record, Side, Stream, VERSION,
};

/// Why something cannot be read as a capture.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// It could not be read at all.
    Io(io::Error),
    /// The first line is not the header of a capture.
    NotACapture,
    /// It was written in a newer version of the format.
    Newer(u32),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::NotACapture => f.write_str("this is not a capture of taut trace"),
            Self::Newer(version) => {
                write!(
                    f,
                    "the capture has version {version} of the format; this taut reads up to {VERSION}"
                )
            }
        }
    }
}

impl std::error::Error for ReadError {}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A capture in memory.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    /// Its first line.
    pub header: Header,
    /// All else, in order.
    pub records: Vec<Record>,
    /// Lines that could not be read.
    pub damaged: usize,
}

impl Capture {
    /// Reads a capture to its end.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is no capture, or is from a newer version.
    pub fn read(input: impl BufRead) -> Result<Self, ReadError> {
        let mut reader = Reader::new(input)?;
        let mut records = Vec::new();
        while let Some(record) = reader.next_record()? {
            records.push(record);
        }
        Ok(Self { header: reader.header, records, damaged: reader.damaged })
    }

    /// The connections that messages passed on, if it is a capture of several; in the order of their first
    /// messages.
    #[must_use]
    pub fn links(&self) -> Vec<&str> {
        let mut known = HashSet::new();
        let links = self.messages().filter_map(|(_, message)| message.link.as_deref());
        links.filter(|link| known.insert(*link)).collect()
    }

    /// Leaves only what passed on one connection, as a capture of that alone.
    #[must_use]
    pub fn only(mut self, link: &str) -> Self {
        self.records.retain_mut(|record| match &mut record.event {
            Event::Message(message) => message.link.take().as_deref() == Some(link),
            _ => false,
        });
        self
    }

    /// The messages, each with its time.
    pub fn messages(&self) -> impl Iterator<Item = (u64, &Message)> {
        self.records.iter().filter_map(|record| match &record.event {
            Event::Message(message) => Some((record.at, message)),
            _ => None,
        })
    }
}

/// Reads one record after another.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    line: Vec<u8>,
    header: Header,
    damaged: usize,
}

impl<R: BufRead> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is no capture, or is from a newer version.
    pub fn new(mut input: R) -> Result<Self, ReadError> {
        let mut line = Vec::new();
        // Something that is no capture may have no line end at all.
        input.by_ref().take(1 << 20).read_until(b'\n', &mut line)?;
        let header = header(&line)?;
        Ok(Self { input, line, header, damaged: 0 })
    }

    /// The first line.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How many lines could not be read so far.
    pub fn damaged(&self) -> usize {
        self.damaged
    }

    /// The next record; nothing at the end. A capture that is still written may have more later.
    ///
    /// # Errors
    ///
    /// If reading fails.
    pub fn next_record(&mut self) -> io::Result<Option<Record>> {
        loop {
            if self.line.ends_with(b"\n") {
                self.line.clear();
            }
            self.input.read_until(b'\n', &mut self.line)?;
            if !self.line.ends_with(b"\n") {
                return Ok(None);
            }
            match record(&self.line) {
                Some(record) => return Ok(Some(record)),
                // Another session in the same file, from a transcript; its times are its own.
                None if header(&self.line).is_ok() => {}
                None => self.damaged += 1,
            }
        }
    }
}

/// Reads the header's line.
///
/// # Errors
///
/// If it is not the header of a capture, or is from a newer version.
pub fn header(line: &[u8]) -> Result<Header, ReadError> {
    #[derive(Deserialize)]
    struct Line {
        format: String,
        version: u32,
        started: String,
        #[serde(default)]
        recorder: String,
        name: Option<String>,
        #[serde(default)]
        command: Vec<String>,
        #[serde(default)]
        masked: bool,
    }
    let line: Line = serde_json::from_slice(line).map_err(|_| ReadError::NotACapture)?;
    if line.format != "taut-trace" {
        return Err(ReadError::NotACapture);
    }
    if line.version > VERSION {
        return Err(ReadError::Newer(line.version));
    }
    let Line { version, started, recorder, name, command, masked, .. } = line;
    Ok(Header { version, started, recorder, name, command, masked })
}

/// Reads one line after the header; nothing if it makes no sense.
#[must_use]
pub fn record(line: &[u8]) -> Option<Record> {
    let line: Line<'_> = serde_json::from_slice(line).ok()?;
    let at = micros(line.t)?;
    let event = match line.kind {
        "message" => Event::Message(Message {
            from: side(line.from?)?,
            framing: if line.framing == Some("headers") {
                Framing::Headers
            } else {
                Framing::Lines
            },
            body: line.body()?,
            masked: line.masked.clone().unwrap_or_default(),
            cut: line.cut,
            link: line.link.clone(),
        }),
        "stderr" => Event::Stderr(line.body()?),
        "fault" => Event::Fault {
            from: side(line.from?)?,
            what: line.what.unwrap_or_default(),
            offset: line.offset.unwrap_or_default(),
        },
        "close" => Event::Close(stream(line.from?)?),
        "gap" => Event::Gap(Gap {
            from: line.from.and_then(stream),
            bytes: line.bytes.unwrap_or_default(),
            records: line.records.unwrap_or_default(),
            why: line.why.unwrap_or_default(),
        }),
        "start" => Event::Start { pid: line.pid? },
        "end" => Event::End(match (line.code, line.signal, line.error) {
            (Some(code), _, _) => End::Code(code),
            (_, Some(signal), _) => End::Signal(signal),
            (_, _, error) => End::NotStarted(error?),
        }),
        other => Event::Unknown(other.to_owned()),
    };
    Some(Record { at, event })
}

/// One line, any kind: members that a kind does not have stay empty.
#[derive(Deserialize)]
struct Line<'a> {
    t: f64,
    #[serde(borrow)]
    kind: &'a str,
    link: Option<String>,
    from: Option<&'a str>,
    framing: Option<&'a str>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    text: Option<String>,
    base64: Option<String>,
    masked: Option<Vec<usize>>,
    #[serde(default)]
    cut: bool,
    what: Option<String>,
    offset: Option<u64>,
    bytes: Option<u64>,
    records: Option<u64>,
    why: Option<String>,
    pid: Option<u32>,
    code: Option<i32>,
    signal: Option<i32>,
    error: Option<String>,
}

impl Line<'_> {
    fn body(&self) -> Option<Body> {
        if let Some(json) = self.message {
            return Some(Body::Json(json.to_owned()));
        }
        if let Some(text) = &self.text {
            return Some(Body::Text(text.clone()));
        }
        base64::decode(self.base64.as_ref()?).map(Body::Bytes)
    }
}

fn micros(seconds: f64) -> Option<u64> {
    let micros = (seconds * 1e6).round();
    // A time of more than a century is a broken line.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in range")]
    (0.0..1e16).contains(&micros).then_some(micros as u64)
}

fn side(name: &str) -> Option<Side> {
    [Side::Client, Side::Server].into_iter().find(|side| side.name() == name)
}

fn stream(name: &str) -> Option<Stream> {
    Stream::ALL.into_iter().find(|stream| stream.name() == name)
}
