//! From bytes of three streams to lines of a capture.
//!
//! Knows where one message ends and what was missed; masks. Pure: time is an argument, lines go into a
//! buffer. Must not know files or threads.

use crate::format::{self, End, Framing, Gap, Sent, Side, Stream};
use crate::mask::Masker;
use crate::ours::{Decoder, Frame, Limits, Wire};

/// The longest message that is kept whole. A longer one is recorded with its first 4 KiB and marked.
/// Twice what hosts are known to send at once; a recorder must not need more memory than a server.
pub const LONGEST_MESSAGE: usize = 16 << 20;

/// The longest line of stderr; a longer one becomes several. Progress bars write without line ends.
pub const LONGEST_LINE: usize = 16 << 10;

/// Turns bytes into lines of a capture.
#[derive(Debug)]
pub struct Intake {
    masker: Masker,
    messages: [Messages; 2],
    stderr: Vec<u8>,
    /// After a gap, the rest of a line whose beginning is missing is left out.
    stderr_torn: bool,
    /// Room for what is masked.
    masked: Vec<u8>,
    places: Vec<usize>,
}

/// One direction of the wire.
#[derive(Debug)]
struct Messages {
    from: Side,
    decoder: Decoder,
    framing: Framing,
    /// Looking for a place where a message can begin, after a gap.
    torn: bool,
    /// The end of the last piece, in case such a place was cut in two.
    tail: Vec<u8>,
}

const HEADER: &[u8] = b"Content-Length:";

impl Intake {
    /// Nothing has come yet.
    #[must_use]
    pub fn new(masker: Masker) -> Self {
        let messages = [Side::Client, Side::Server].map(|from| Messages {
            from,
            decoder: decoder(),
            framing: Framing::Lines,
            torn: false,
            tail: Vec::new(),
        });
        let (stderr, masked, places) = (Vec::new(), Vec::new(), Vec::new());
        Self { masker, messages, stderr, stderr_torn: false, masked, places }
    }

    /// Takes the next bytes of a stream and appends the lines that they complete.
    pub fn bytes(&mut self, at: u64, stream: Stream, bytes: &[u8], out: &mut Vec<u8>) {
        match stream {
            Stream::Stderr => self.stderr(at, bytes, out),
            Stream::Client | Stream::Server => {
                let messages = &mut self.messages[stream as usize];
                if let Some(bytes) = messages.mend(bytes) {
                    messages.decoder.push(bytes);
                    self.frames(at, stream, out);
                }
            }
        }
    }

    /// Appends a whole message, of a connection whose messages come whole.
    pub fn message(&mut self, at: u64, sent: Sent<'_>, body: &[u8], out: &mut Vec<u8>) {
        self.masked.clear();
        self.places.clear();
        self.masker.apply(body, &mut self.masked, &mut self.places);
        format::write_message(out, at, sent, &self.masked, &self.places);
        self.shrink();
    }

    /// One long message must not keep its room for the rest of the session.
    fn shrink(&mut self) {
        if self.masked.capacity() > 1 << 20 {
            self.masked = Vec::new();
        }
    }

    /// A stream has ended: what is left of it is all there will be.
    pub fn closed(&mut self, at: u64, stream: Stream, out: &mut Vec<u8>) {
        match stream {
            Stream::Stderr => {
                let line = std::mem::take(&mut self.stderr);
                if !line.is_empty() {
                    self.stderr_line(at, &line, out);
                }
            }
            Stream::Client | Stream::Server => {
                self.messages[stream as usize].decoder.finish();
                self.frames(at, stream, out);
            }
        }
        format::write_close(out, at, stream);
    }

    /// Bytes of a stream are missing from here on. What was begun before is lost with them.
    pub fn gap(&mut self, at: u64, stream: Stream, bytes: u64, lines: u64, out: &mut Vec<u8>) {
        let begun = match stream {
            Stream::Stderr => {
                self.stderr_torn = true;
                std::mem::take(&mut self.stderr).len()
            }
            Stream::Client | Stream::Server => {
                let messages = &mut self.messages[stream as usize];
                messages.torn = true;
                messages.tail.clear();
                let begun = messages.decoder.held();
                messages.decoder = decoder();
                begun
            }
        };
        let bytes = bytes + begun as u64;
        let why = "the recorder was too slow".to_owned();
        let gap = Gap { from: Some(stream), bytes, records: lines.max(1), why };
        format::write_gap(out, at, &gap);
    }

    /// The process was started.
    pub fn started(&mut self, at: u64, pid: u32, out: &mut Vec<u8>) {
        format::write_start(out, at, pid);
    }

    /// The process has ended.
    pub fn ended(&mut self, at: u64, end: &End, out: &mut Vec<u8>) {
        format::write_end(out, at, end);
    }

    fn frames(&mut self, at: u64, stream: Stream, out: &mut Vec<u8>) {
        let Self { masker, messages, masked, places, .. } = self;
        let messages = &mut messages[stream as usize];
        let from = messages.from;
        while let Some(frame) = messages.decoder.poll_frame() {
            masked.clear();
            places.clear();
            let (wire, bom, cr, cut) = match frame {
                Frame::Message { bytes, framing, bom, cr, .. } => {
                    masker.apply(bytes, masked, places);
                    (framing, bom, cr, false)
                }
                Frame::TooLong { prefix, framing, .. } => {
                    masker.apply_to_cut(prefix, masked, places);
                    (framing, false, false, true)
                }
                Frame::BadHeader { fault, offset } => {
                    format::write_fault(out, at, from, &fault.to_string(), offset);
                    continue;
                }
                _ => continue,
            };
            messages.framing = match wire {
                Wire::Headers => Framing::Headers,
                _ => Framing::Lines,
            };
            let sent = Sent { from, framing: messages.framing, bom, cr, cut, link: None };
            format::write_message(out, at, sent, masked, places);
        }
        self.shrink();
    }

    fn stderr(&mut self, at: u64, bytes: &[u8], out: &mut Vec<u8>) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let ends = piece.ends_with(b"\n");
            if self.stderr_torn {
                self.stderr_torn = !ends;
                continue;
            }
            let mut piece = piece.strip_suffix(b"\n").unwrap_or(piece);
            while self.stderr.len() + piece.len() > LONGEST_LINE {
                let (now, later) = piece.split_at(LONGEST_LINE - self.stderr.len());
                self.stderr.extend_from_slice(now);
                self.flush_stderr(at, out);
                piece = later;
            }
            self.stderr.extend_from_slice(piece);
            if ends {
                self.flush_stderr(at, out);
            }
        }
    }

    fn flush_stderr(&mut self, at: u64, out: &mut Vec<u8>) {
        let mut line = std::mem::take(&mut self.stderr);
        self.stderr_line(at, line.strip_suffix(b"\r").unwrap_or(&line), out);
        line.clear();
        self.stderr = line;
    }

    fn stderr_line(&mut self, at: u64, line: &[u8], out: &mut Vec<u8>) {
        self.masked.clear();
        self.places.clear();
        self.masker.apply_to_cut(line, &mut self.masked, &mut self.places);
        format::write_stderr(out, at, &self.masked);
    }
}

impl Messages {
    /// What can be decoded of these bytes: all of them, or after a gap those from the next beginning of
    /// a message on.
    fn mend<'b>(&mut self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        if !self.torn {
            return Some(bytes);
        }
        if self.framing == Framing::Lines {
            let newline = bytes.iter().position(|byte| *byte == b'\n')?;
            self.torn = false;
            return bytes.get(newline + 1..);
        }
        // A header may have been cut in two by a read.
        let before = self.tail.len();
        self.tail.extend_from_slice(&bytes[..bytes.len().min(HEADER.len())]);
        let across = find(&self.tail, HEADER).filter(|at| *at < before);
        let found = across.map(|_| 0).or_else(|| find(bytes, HEADER));
        let Some(at) = found else {
            self.tail = bytes[bytes.len().saturating_sub(HEADER.len() - 1)..].to_vec();
            return None;
        };
        if let Some(at) = across {
            self.decoder.push(&self.tail[at..before]);
        }
        self.torn = false;
        self.tail.clear();
        bytes.get(at..)
    }
}

fn find(bytes: &[u8], word: &[u8]) -> Option<usize> {
    bytes.windows(word.len()).position(|window| window.eq_ignore_ascii_case(word))
}

fn decoder() -> Decoder {
    Decoder::new(Limits::default().message(LONGEST_MESSAGE))
}

#[cfg(test)]
#[path = "intake_tests.rs"]
mod tests;
