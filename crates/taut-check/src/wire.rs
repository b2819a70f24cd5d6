//! Bytes of a peer's stdout into frames, and what is wrong with each.
//!
//! Unlike a client it forgives everything that it can, and says so: a message that was spread over
//! several lines is still read, so that one broken rule does not hide the others. Does no I/O.

use serde_json::Value;

/// How long a message over several lines may get before it is given up, in bytes.
const MAX_JOINED: usize = 1 << 20;

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
    /// Lines that may be the beginning of a message over several lines.
    open: Vec<Vec<u8>>,
}

impl Splitter {
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Frame> {
        self.buffer.extend_from_slice(bytes);
        let mut frames = Vec::new();
        while let Some(found) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n')
        {
            let end = self.searched + found;
            let mut line: Vec<u8> = self.buffer.drain(..=end).collect();
            line.pop();
            self.searched = 0;
            self.line(line, &mut frames);
        }
        self.searched = self.buffer.len();
        if let Some(frame) = self.headed() {
            frames.push(frame);
        }
        frames
    }

    /// What is left when the stream ends.
    pub(crate) fn finish(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        let rest = std::mem::take(&mut self.buffer);
        if !rest.is_empty() {
            self.line(rest, &mut frames);
            if let Some(last) = frames.last_mut() {
                last.fault.get_or_insert(Fault::Unended);
            }
        }
        self.give_up(&mut frames);
        frames
    }

    /// A body that a `Content-Length` header announced, once it is complete. The header was kept as
    /// the only open lines.
    fn headed(&mut self) -> Option<Frame> {
        let length = self.open.iter().find_map(|line| announced(line))?;
        let ended = self.open.last().is_some_and(|line| trimmed(line).is_empty());
        if !ended || self.buffer.len() < length {
            return None;
        }
        let raw: Vec<u8> = self.buffer.drain(..length).collect();
        self.searched = 0;
        self.open.clear();
        let value = serde_json::from_slice(&raw).ok();
        Some(Frame { raw, value, fault: Some(Fault::Headers), cr: false })
    }

    fn line(&mut self, mut line: Vec<u8>, frames: &mut Vec<Frame>) {
        let cr = line.last() == Some(&b'\r');
        if announced(&line).is_some() || self.open.iter().any(|open| announced(open).is_some()) {
            self.open.push(line);
            if self.open.len() > 16 {
                self.give_up(frames);
            }
            return;
        }
        if cr {
            line.pop();
        }
        let whole = single(&line);
        if let Some(frame) = whole {
            let message = frame.value.as_ref().is_some_and(|value| value.get("jsonrpc").is_some());
            if self.open.is_empty() || message {
                self.give_up(frames);
                frames.push(Frame { cr, ..frame });
                return;
            }
        }
        let begins = matches!(trimmed(&line).first(), Some(b'{' | b'['));
        if self.open.is_empty() && !begins {
            frames.push(broken(line, cr));
            return;
        }
        self.open.push(line);
        let joined = self.open.join(&b'\n');
        let closes = matches!(trimmed(&joined).last(), Some(b'}' | b']'));
        if closes && let Ok(value) = serde_json::from_slice::<Value>(&joined) {
            self.open.clear();
            let fault = Some(Fault::ManyLines);
            frames.push(Frame { raw: joined, value: Some(value), fault, cr });
        } else if joined.len() > MAX_JOINED {
            self.give_up(frames);
        }
    }

    fn give_up(&mut self, frames: &mut Vec<Frame>) {
        frames.extend(self.open.drain(..).map(|line| broken(line, false)));
    }
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
        let torn = b"{\"a\":\n{\"jsonrpc\":\"2.0\"}\n";
        assert_eq!(faults(torn), [(Some(Fault::NotJson), false), (None, true)]);
    }

    #[test]
    fn headers_are_read_and_told() {
        assert_eq!(faults(b"Content-Length: 2\r\n\r\n{}"), [(Some(Fault::Headers), true)]);
    }
}
