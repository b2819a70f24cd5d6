//! One message → one frame, and the queue of bytes on their way out.
//!
//! Knows framings and bytes; must not know what a message says. Obeys STD-01 and STD-12: a line
//! holds no raw newline, whatever the message was made of.

use super::{Framing, find};

/// Capacity kept after a large message has left. A megabyte echo then finds its pages warm; a
/// larger one gives its memory back.
const KEEP: usize = 2 << 20;

/// A message so long is handed over instead of copied, whatever buffer comes back for it; and a
/// buffer so large comes back for no other.
const LONG: usize = 16 << 10;

/// Frames messages, and holds their bytes until they are written.
#[derive(Debug, Default)]
pub struct Encoder {
    out: Vec<u8>,
    head: usize,
}

impl Encoder {
    /// Adds one message: `write` appends its JSON to the vector it is given, and nothing else.
    ///
    /// A line stays one line: a raw newline or carriage return, which in JSON can only stand
    /// between tokens, becomes a space, and U+2028 and U+2029 are escaped, because several hosts
    /// read with line splitters that cut there (F6).
    pub fn frame<T>(&mut self, framing: Framing, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let start = self.out.len();
        let value = write(&mut self.out);
        match framing {
            Framing::Lines => {
                keep_to_one_line(&mut self.out, start);
                self.out.push(b'\n');
            }
            Framing::Headers => {
                let header = header(self.out.len() - start);
                self.out.splice(start..start, header);
            }
        }
        value
    }

    /// Adds a message that is written already, `message[start..]`, and leaves an empty buffer in its
    /// place. Where nothing else waits the buffers are exchanged, so that the message is not copied.
    /// But a short message is not exchanged for a large buffer, which a flood has left: one buffer is
    /// to be large, not each of those that go round.
    pub fn add(&mut self, framing: Framing, message: &mut Vec<u8>, start: usize) {
        match framing {
            Framing::Lines => {
                keep_to_one_line(message, start);
                message.push(b'\n');
            }
            Framing::Headers => self.out.extend_from_slice(&header(message.len() - start)),
        }
        if self.out.is_empty() && (self.out.capacity() <= LONG || message.len() >= LONG) {
            std::mem::swap(&mut self.out, message);
            self.head = start;
        } else {
            self.out.extend_from_slice(&message[start..]);
        }
        message.clear();
        message.shrink_to(KEEP);
    }

    /// What waits to be written.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.out[self.head..]
    }

    /// How much waits to be written.
    #[must_use]
    pub fn len(&self) -> usize {
        self.out.len() - self.head
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets the first `n` bytes: they have been written.
    pub fn consume(&mut self, n: usize) {
        self.head = (self.head + n).min(self.out.len());
        if self.head == self.out.len() {
            self.out.clear();
            self.out.shrink_to(KEEP);
            self.head = 0;
        } else if self.head >= KEEP && self.head > self.out.len() / 2 {
            // A reader that always lags a little must not make us keep all it has ever read. At
            // least as much has left as is moved, so each byte is moved about once.
            self.out.drain(..self.head);
            self.head = 0;
        }
    }

    /// Exchanges what waits for an empty queue, so that it can be written elsewhere.
    pub fn swap(&mut self, other: &mut Self) {
        std::mem::swap(self, other);
    }
}

fn header(length: usize) -> Vec<u8> {
    format!("Content-Length: {length}\r\n\r\n").into_bytes()
}

/// Replaces what would end the line early in `out[start..]`.
fn keep_to_one_line(out: &mut Vec<u8>, start: usize) {
    let mut at = start;
    while let Some(found) = find::line_end(&out[at..]) {
        at += found;
        match &out[at..] {
            [b'\n' | b'\r', ..] => out[at] = b' ',
            [0xE2, 0x80, 0xA8 | 0xA9, ..] => return escape_separators(out, at),
            _ => {}
        }
        at += 1;
    }
}

/// The rare rest of [`keep_to_one_line`]: rewrites `out[start..]` once, however many there are.
fn escape_separators(out: &mut Vec<u8>, start: usize) {
    let tail = out.split_off(start);
    let mut rest = tail.as_slice();
    while let Some(at) = find::line_end(rest) {
        out.extend_from_slice(&rest[..at]);
        let (replacement, taken): (&[u8], _) = match &rest[at..] {
            [b'\n' | b'\r', ..] => (b" ", 1),
            // In JSON these can only stand inside a string, where the escape means the same.
            [0xE2, 0x80, 0xA8, ..] => (b"\\u2028", 3),
            [0xE2, 0x80, 0xA9, ..] => (b"\\u2029", 3),
            other => (&other[..1], 1),
        };
        out.extend_from_slice(replacement);
        rest = &rest[at + taken..];
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(framing: Framing, body: &str) -> String {
        let mut encoder = Encoder::default();
        encoder.frame(framing, |out| out.extend_from_slice(body.as_bytes()));
        String::from_utf8(encoder.bytes().to_vec()).unwrap()
    }

    /// STD-01, STD-09.
    #[test]
    fn f5_a_line_ends_with_one_newline_and_no_carriage_return() {
        assert_eq!(encoded(Framing::Lines, "{}"), "{}\n");
    }

    /// STD-01, STD-13.
    #[test]
    fn f12_a_raw_newline_in_a_message_becomes_a_space() {
        assert_eq!(encoded(Framing::Lines, "{\n  \"a\": 1\r\n}"), "{   \"a\": 1  }\n");
    }

    /// STD-12.
    #[test]
    fn f6_line_separators_leave_escaped_and_other_characters_untouched() {
        assert_eq!(
            encoded(Framing::Lines, "\"\u{2028}“é\u{2029}\u{85}\""),
            "\"\\u2028“é\\u2029\u{85}\"\n"
        );
    }

    #[test]
    fn f15_a_header_counts_bytes_and_leaves_the_body_alone() {
        assert_eq!(encoded(Framing::Headers, "\"é\n\""), "Content-Length: 5\r\n\r\n\"é\n\"");
    }

    #[test]
    fn a_message_that_is_written_already_is_framed_like_any_other_and_not_copied_if_it_is_long() {
        for framing in [Framing::Lines, Framing::Headers] {
            let mut encoder = Encoder::default();
            let text = format!("{{\n\"\u{2028}\":\"{}\"}}", "x".repeat(LONG));
            let mut message = Vec::with_capacity(4 * LONG);
            message.extend_from_slice(text.as_bytes());
            encoder.add(framing, &mut message, 0);
            assert!(message.is_empty());
            assert_eq!(encoder.out.capacity() >= 4 * LONG, framing == Framing::Lines);
            message.extend_from_slice(text.as_bytes());
            encoder.add(framing, &mut message, 0);
            let expected = encoded(framing, &text).repeat(2);
            assert_eq!(encoder.bytes(), expected.as_bytes());
        }
    }

    #[test]
    fn a_buffer_that_a_flood_has_left_stays_where_it_is() {
        let mut encoder = Encoder::default();
        encoder.frame(Framing::Lines, |out| out.resize(100_000, b' '));
        encoder.consume(100_001);
        let mut message = b"{}".to_vec();
        encoder.add(Framing::Lines, &mut message, 0);
        assert_eq!(encoder.bytes(), b"{}\n");
        assert!(message.is_empty() && message.capacity() < 100_000, "{}", message.capacity());
    }

    #[test]
    fn a_reader_that_never_catches_up_does_not_make_it_keep_what_has_left() {
        let mut encoder = Encoder::default();
        let message = [b'x'; 1 << 16];
        encoder.frame(Framing::Lines, |out| out.extend_from_slice(&message));
        for _ in 0..1000 {
            encoder.frame(Framing::Lines, |out| out.extend_from_slice(&message));
            encoder.consume(message.len() + 1);
        }
        assert_eq!(encoder.len(), message.len() + 1);
        assert!(encoder.out.len() <= 2 * KEEP, "{}", encoder.out.len());
    }

    #[test]
    fn consumed_bytes_are_gone_and_the_rest_stays() {
        let mut encoder = Encoder::default();
        encoder.frame(Framing::Lines, |out| out.extend_from_slice(b"12345"));
        encoder.consume(2);
        assert_eq!((encoder.bytes(), encoder.len()), (&b"345\n"[..], 4));
        encoder.consume(4);
        assert!(encoder.is_empty());
    }
}
