//! From bytes of three streams to lines of a capture.
//!
//! Knows where one message ends and what was missed; masks. Pure: time is an argument, lines go into a
//! buffer. Must not know files or threads.

use crate::format::{self, End, Framing, Gap, Sent, Side, Stream};
use crate::missed::{HEADER, Missed};
use crate::ours::{Decoder, Fault, Frame, Limits, Masker, Wire};

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
    /// Of stderr, before it is cut into lines that are not too long.
    words: Masker,
    /// What has come of the last line of stderr, without its secrets.
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
        let words = masker.another();
        Self { masker, messages, words, stderr, stderr_torn: false, masked, places }
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
                if self.words.held() + self.stderr.len() > 0 {
                    self.flush_stderr(at, out);
                }
            }
            Stream::Client | Stream::Server => {
                self.messages[stream as usize].decoder.finish();
                self.frames(at, stream, out);
            }
        }
        format::write_close(out, at, stream);
    }

    /// This of a stream is missing from here on. What was begun before is lost with it.
    pub(crate) fn gap(&mut self, at: u64, stream: Stream, missed: &Missed, out: &mut Vec<u8>) {
        let (begun, records) = match stream {
            Stream::Stderr => {
                let begun = self.words.held() + self.stderr.len();
                self.words = self.words.another();
                self.stderr.clear();
                // Each line is a record, also one that is empty.
                let known = std::mem::replace(&mut self.stderr_torn, !missed.ends_line);
                let counted = u64::from(known && missed.lines > 0);
                let goes_on = known && missed.lines == 0;
                let last = u64::from(!missed.ends_line && !goes_on);
                (begun, missed.lines - counted + last)
            }
            Stream::Client | Stream::Server => self.messages[stream as usize].gap(missed),
        };
        let bytes = missed.bytes + begun as u64;
        let why = "the recorder was too slow".to_owned();
        format::write_gap(out, at, &Gap { from: Some(stream), bytes, records, why });
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
            let mut doubted = false;
            let (wire, bom, cr, cut) = match frame {
                Frame::Message { bytes, framing, bom, cr, .. } => {
                    // A wrong length must not garble what follows.
                    doubted = framing == Wire::Headers && !is_json(bytes);
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
                Frame::Broken { given, found: Some(found), offset, .. } => {
                    let fault = Fault::Length;
                    let fault = format!("{fault}: {given} given, {found} found");
                    format::write_fault(out, at, from, &fault, offset);
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
            if doubted {
                messages.decoder.distrust();
            }
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
            self.words.push(piece.strip_suffix(b"\n").unwrap_or(piece), &mut self.stderr);
            if ends {
                self.flush_stderr(at, out);
            } else {
                self.cut_stderr(at, out);
            }
        }
    }

    /// Writes what is too much for one record.
    fn cut_stderr(&mut self, at: u64, out: &mut Vec<u8>) {
        let mut done = 0;
        while self.stderr.len() - done > LONGEST_LINE {
            let cut = whole_characters(&self.stderr[done..done + LONGEST_LINE]);
            format::write_stderr(out, at, &self.stderr[done..done + cut]);
            done += cut;
        }
        self.stderr.drain(..done);
    }

    /// A line has ended.
    fn flush_stderr(&mut self, at: u64, out: &mut Vec<u8>) {
        self.words.end(&mut self.stderr);
        if self.stderr.ends_with(b"\r") {
            self.stderr.pop();
        }
        self.cut_stderr(at, out);
        format::write_stderr(out, at, &self.stderr);
        self.stderr.clear();
    }
}

/// How many of these bytes to take so that a character at the end stays in one piece.
fn whole_characters(bytes: &[u8]) -> usize {
    let inner = bytes.iter().rev().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
    let start = bytes.len() - inner - 1;
    let missing = match bytes[start] {
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF7 => 4,
        _ => 1,
    };
    if inner + 1 < missing { start } else { bytes.len() }
}

impl Messages {
    /// This is missing from here on: how many bytes were begun before, and how many records are lost.
    fn gap(&mut self, missed: &Missed) -> (usize, u64) {
        let before = std::mem::replace(&mut self.decoder, decoder());
        let (begun, inside) = (before.held() + self.tail.len(), before.is_inside());
        let mut across = std::mem::take(&mut self.tail);
        let before = across.len();
        across.extend_from_slice(&missed.first);
        // After a gap that ended within a message, all up to the next one was counted then.
        let known = std::mem::replace(&mut self.torn, true);
        if self.framing == Framing::Headers {
            let last = u64::from(!known && inside);
            let whole = find(&across, HEADER).is_some_and(|at| at < before);
            // A header that is cut in two by the end of the gap is known all the same.
            if missed.bytes < HEADER.len() as u64 && !whole {
                self.tail = across;
            } else {
                self.tail.extend_from_slice(&HEADER[..missed.header]);
            }
            return (begun, missed.headers + last + u64::from(whole));
        }
        // Blanks before a message are no part of it.
        let began = missed.content || (missed.lines == 0 && (known || inside));
        self.torn = !missed.ends_line && began;
        let mut records = missed.lines - missed.blank;
        if missed.lines > 0 && known {
            records -= u64::from(!missed.first_blank);
        } else if missed.first_blank && inside {
            records += 1;
        }
        let goes_on = known && missed.lines == 0;
        (begun, records + u64::from(self.torn && !goes_on))
    }

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
            if bytes.len() >= HEADER.len() {
                self.tail = bytes.to_vec();
            }
            let gone = self.tail.len().saturating_sub(HEADER.len() - 1);
            self.tail.drain(..gone);
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

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}

fn decoder() -> Decoder {
    Decoder::new(Limits::default().message(LONGEST_MESSAGE))
}

#[cfg(test)]
#[path = "intake_tests.rs"]
mod tests;
