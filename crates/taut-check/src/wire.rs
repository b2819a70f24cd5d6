//! Bytes of a peer's stdout into frames, and what is wrong with each.
//!
//! Unlike a client it forgives everything that it can, and says so: a message that was spread over
//! several lines is still read, so that one broken rule does not hide the others. Does no I/O.

use serde_json::Value;

/// How long a message over several lines may get before it is given up, in bytes and in lines.
const MAX_JOINED: usize = 1 << 20;
const MAX_LINES: usize = 20_000;

/// How many lines a header block may have, and how long the body that it announces may be.
const MAX_HEADERS: usize = 16;
const MAX_BODY: usize = 64 << 20;

/// What is wrong with the bytes of a frame, before anybody asks what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not UTF-8.
    NotUtf8,
    /// It begins with a byte order mark.
    Bom,
    /// It is not JSON.
    NotJson,
    /// It is one JSON value, written over several lines.
    ManyLines,
    /// It has a `Content-Length` header, as in the Language Server Protocol.
    Headers,
    /// It has no newline at its end, and the stream ended.
    Unended,
}

/// What stood between two newlines.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The bytes, without the newline.
    pub raw: Vec<u8>,
    /// The JSON in it, if there is any.
    pub value: Option<Value>,
    /// What is wrong with it.
    pub fault: Option<Fault>,
    /// Whether a carriage return stood before the newline.
    pub cr: bool,
}

impl Frame {
    /// As text, for people.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.raw).into_owned()
    }
}

/// Takes bytes in, gives frames out.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    buffer: Vec<u8>,
    /// How far the buffer was searched for a newline.
    searched: usize,
    /// Whether messages are expected to have headers, so that they are no fault.
    expected: bool,
    /// The lines of a header block that has begun.
    headers: Vec<Vec<u8>>,
    /// How long the body is that a header block announced.
    body: Option<usize>,
    /// Lines that may be the beginning of a message over several lines.
    open: Vec<Vec<u8>>,
    nesting: Nesting,
}

/// How deep in brackets the open lines end.
#[derive(Debug, Default)]
struct Nesting {
    depth: i64,
    bytes: usize,
    text: bool,
    escaped: bool,
}

impl Nesting {
    fn read(&mut self, line: &[u8]) {
        self.bytes += line.len() + 1;
        for byte in line {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.text => self.escaped = true,
                b'"' => self.text = !self.text,
                b'{' | b'[' if !self.text => self.depth += 1,
                b'}' | b']' if !self.text => self.depth -= 1,
                _ => {}
            }
        }
    }
}

impl Splitter {
    /// For a peer that writes lines, or one that is spoken to with headers and may answer with them.
    pub(crate) fn new(headers: bool) -> Self {
        Self { expected: headers, ..Self::default() }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Frame> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.extend_from_slice(bytes);
        let (mut frames, mut done) = (Vec::new(), 0);
        loop {
            let rest = &buffer[done..];
            if let Some(length) = self.body {
                if rest.len() < length {
                    break;
                }
                frames.push(self.headed(rest[..length].to_vec()));
                done += length;
                continue;
            }
            let found = memchr::memchr(b'\n', &rest[self.searched..]);
            let Some(found) = found else {
                self.searched = rest.len();
                break;
            };
            let end = self.searched + found;
            self.searched = 0;
            self.line(rest[..end].to_vec(), &mut frames);
            done += end + 1;
        }
        buffer.drain(..done);
        self.buffer = buffer;
        frames
    }

    /// What is left when the stream ends.
    pub(crate) fn finish(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        let rest = std::mem::take(&mut self.buffer);
        if self.body.is_some() {
            frames.push(self.headed(rest));
        } else if !rest.is_empty() {
            self.line(rest, &mut frames);
            if let Some(last) = frames.last_mut() {
                last.fault.get_or_insert(Fault::Unended);
            }
        }
        self.give_up(&mut frames);
        frames
    }

    /// A body that a `Content-Length` header announced.
    fn headed(&mut self, raw: Vec<u8>) -> Frame {
        (self.body, self.searched) = (None, 0);
        let value: Option<Value> = serde_json::from_slice(&raw).ok();
        let fault = match value {
            Some(_) if self.expected => None,
            None if self.expected => Some(Fault::NotJson),
            _ => Some(Fault::Headers),
        };
        Frame { raw, value, fault, cr: false }
    }

    fn line(&mut self, mut line: Vec<u8>, frames: &mut Vec<Frame>) {
        let cr = line.last() == Some(&b'\r');
        if cr {
            line.pop();
        }
        let whole = single(&line);
        let message = whole
            .as_ref()
            .and_then(|frame| frame.value.as_ref())
            .is_some_and(|value| value.get("jsonrpc").is_some());
        if !message && self.header(&line) {
            return;
        }
        if let Some(frame) = whole.filter(|_| message || self.open.is_empty()) {
            self.give_up(frames);
            frames.push(Frame { cr, ..frame });
            return;
        }
        let begins = matches!(trimmed(&line).first(), Some(b'{' | b'['));
        if self.open.is_empty() && !begins {
            self.give_up(frames);
            frames.push(broken(line, cr));
            return;
        }
        self.nesting.read(&line);
        self.open.push(line);
        // Only here can it be whole, so it is parsed once.
        if self.nesting.depth <= 0 {
            if let Ok(value) = serde_json::from_slice::<Value>(&joined(&self.open)) {
                let raw = self.open.join(&b'\n');
                self.open.clear();
                let fault = Some(Fault::ManyLines);
                frames.push(Frame { raw, value: Some(value), fault, cr });
            }
            self.give_up(frames);
        } else if self.nesting.bytes > MAX_JOINED || self.open.len() > MAX_LINES {
            self.give_up(frames);
        }
    }

    /// Whether a line belongs to a header block, which it may end.
    fn header(&mut self, line: &[u8]) -> bool {
        let begins =
            |name: &[u8]| line.len() > name.len() && line[..name.len()].eq_ignore_ascii_case(name);
        if self.headers.is_empty() && !begins(b"content-length:") && !begins(b"content-type:") {
            return false;
        }
        if trimmed(line).is_empty() {
            let length = self.headers.iter().find_map(|line| announced(line));
            self.body = length.filter(|length| *length <= MAX_BODY);
            if self.body.is_some() {
                self.headers.clear();
            }
            return self.body.is_some();
        }
        let is_header = line.contains(&b':') && self.headers.len() < MAX_HEADERS;
        if is_header {
            self.headers.push(line.to_vec());
        }
        is_header
    }

    fn give_up(&mut self, frames: &mut Vec<Frame>) {
        let lines = self.headers.drain(..).chain(self.open.drain(..));
        frames.extend(lines.map(|line| broken(line, false)));
        self.nesting = Nesting::default();
    }
}

/// Lines as one JSON text: a newline within a string is written as an escape, as it should have been.
fn joined(lines: &[Vec<u8>]) -> Vec<u8> {
    let (mut all, mut nesting) = (Vec::new(), Nesting::default());
    for (line, n) in lines.iter().zip(0..) {
        match nesting.text {
            _ if n == 0 => {}
            true => all.extend_from_slice(b"\\n"),
            false => all.push(b'\n'),
        }
        nesting.read(line);
        all.extend_from_slice(line);
    }
    all
}

/// A line that is one JSON value, maybe with a fault that can be forgiven.
fn single(line: &[u8]) -> Option<Frame> {
    let (bytes, bom) = match line.strip_prefix(b"\xEF\xBB\xBF") {
        Some(rest) => (rest, true),
        None => (line, false),
    };
    if let Ok(value) = serde_json::from_slice::<Value>(bytes) {
        let fault = bom.then_some(Fault::Bom);
        return Some(Frame { raw: line.to_vec(), value: Some(value), fault, cr: false });
    }
    if std::str::from_utf8(bytes).is_ok() {
        return None;
    }
    let value = serde_json::from_str(&String::from_utf8_lossy(bytes)).ok()?;
    let fault = Some(Fault::NotUtf8);
    Some(Frame { raw: line.to_vec(), value: Some(value), fault, cr: false })
}

fn broken(raw: Vec<u8>, cr: bool) -> Frame {
    let utf8 = std::str::from_utf8(&raw).is_ok();
    let fault = if utf8 { Fault::NotJson } else { Fault::NotUtf8 };
    Frame { raw, value: None, fault: Some(fault), cr }
}

fn announced(line: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(line).ok()?;
    let (name, value) = text.split_once(':')?;
    let name = name.trim().eq_ignore_ascii_case("content-length");
    name.then(|| value.trim().parse().ok()).flatten()
}

fn trimmed(bytes: &[u8]) -> &[u8] {
    bytes.trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(bytes: &[u8]) -> Vec<(Option<Fault>, bool)> {
        let mut splitter = Splitter::default();
        let mut frames = splitter.push(bytes);
        frames.extend(splitter.finish());
        frames.iter().map(|frame| (frame.fault, frame.value.is_some())).collect()
    }

    #[test]
    fn a_line_is_a_frame_and_its_faults_are_told() {
        assert_eq!(faults(b"{\"jsonrpc\":\"2.0\"}\n"), [(None, true)]);
        assert_eq!(faults(b"hello\n{}\n"), [(Some(Fault::NotJson), false), (None, true)]);
        assert_eq!(faults(b"\xEF\xBB\xBF{}\n"), [(Some(Fault::Bom), true)]);
        assert_eq!(faults(b"{\"a\":\"\xFF\"}\n"), [(Some(Fault::NotUtf8), true)]);
        assert_eq!(faults(b"{}"), [(Some(Fault::Unended), true)]);
        assert_eq!(faults(b"\n"), [(Some(Fault::NotJson), false)]);
    }

    #[test]
    fn a_message_over_several_lines_is_read_and_told() {
        assert_eq!(
            faults(b"{\n  \"a\": {\n  }\n}\n{}\n"),
            [(Some(Fault::ManyLines), true), (None, true)]
        );
        // A newline within a text that should have been an escape.
        assert_eq!(
            faults(b"{\"a\":\"one\ntwo { \",\n\"b\":[1]}\n{}\n"),
            [(Some(Fault::ManyLines), true), (None, true)]
        );
        let torn = b"{\"a\":\n{\"jsonrpc\":\"2.0\"}\n";
        assert_eq!(faults(torn), [(Some(Fault::NotJson), false), (None, true)]);
    }

    #[test]
    fn lines_that_look_like_json_cost_no_more_than_their_bytes() {
        let log = b"[INFO] working\n".repeat(50_000);
        let began = std::time::Instant::now();
        assert_eq!(faults(&log).len(), 50_000);
        let open = b"{\n".repeat(200_000);
        assert_eq!(faults(&open).len(), 200_000);
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }

    #[test]
    fn headers_are_read_and_told() {
        let headed = (Some(Fault::Headers), true);
        assert_eq!(faults(b"Content-Length: 2\r\n\r\n{}"), [headed]);
        let two = b"Content-Length: 2\r\n\r\n{}Content-Type: a\r\ncontent-length: 4\r\n\r\n[{}]";
        assert_eq!(faults(two), [headed, headed]);
        let cut = b"Content-Length: 9\r\n\r\n{}";
        assert_eq!(faults(cut), [headed]);
        // A line of a log that looks like one.
        let log = b"Content-Length: 5\n{\"jsonrpc\":\"2.0\"}\n";
        assert_eq!(faults(log), [(Some(Fault::NotJson), false), (None, true)]);
    }
}
