//! Writes JSON text: strings, objects, and the buffer for one finished value.
//!
//! Knows what JSON escapes; must not know any member's meaning. Text that needs no escape, which is
//! nearly all of it, is looked at many bytes at a time and copied whole. serde_json looks at each byte
//! by itself, which for a long text costs more than everything else that is done with it.

use std::fmt;

use serde::Serialize;

use super::plain::{far, plain};
use super::text::JsonRef;

/// Room kept in front of a finished value, so that the head of a message can be put there and the
/// value need not be copied. Enough for the head of an answer to any id but a very long one.
const ROOM: usize = 64;

/// Most values fit into this without the buffer growing; with [`ROOM`] it is as much as an allocator hands
/// out from its quickest lists.
const USUAL: usize = 896;

/// The largest capacity that an empty buffer keeps.
const KEEP: usize = 2 << 20;

/// What is put behind a value: the bracket that closes its message, and a newline.
#[cfg(feature = "server")]
const TAIL: usize = 8;

/// The JSON text of one value.
///
/// An answer is written into one of these and then given to the peer, which takes the text without
/// copying it if it is long, and leaves an empty buffer.
#[derive(Default)]
pub struct JsonBuf {
    /// [`ROOM`] bytes, then the text; or nothing at all.
    bytes: Vec<u8>,
}

impl JsonBuf {
    /// The JSON text of `value`.
    ///
    /// # Errors
    /// `value` has no JSON form.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        Self::default().with(value)
    }

    /// This buffer with the JSON text of `value` instead of what it held.
    pub(crate) fn with<T: Serialize + ?Sized>(
        mut self,
        value: &T,
    ) -> Result<Self, serde_json::Error> {
        serde_json::to_writer(self.start(), value)?;
        Ok(self)
    }

    /// This buffer with what `write` appends, which has to be one value.
    #[cfg(feature = "server")]
    pub(crate) fn written(mut self, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        write(self.start());
        self
    }

    /// A copy of a text that is known to be one sound value.
    #[cfg(feature = "server")]
    pub(crate) fn copied(parts: &[impl AsRef<[u8]>]) -> Self {
        let length: usize = parts.iter().map(|part| part.as_ref().len()).sum();
        let mut bytes = Vec::with_capacity(ROOM + length + TAIL);
        bytes.resize(ROOM, b' ');
        parts.iter().for_each(|part| bytes.extend_from_slice(part.as_ref()));
        Self { bytes }
    }

    /// Forgets what was written. One value has to be appended to the vector that this returns; what
    /// is there already must stay.
    pub(crate) fn start(&mut self) -> &mut Vec<u8> {
        self.bytes.clear();
        self.bytes.reserve(ROOM + USUAL);
        self.bytes.resize(ROOM, b' ');
        &mut self.bytes
    }

    /// Forgets what was written, and keeps the memory unless it is large.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEEP);
    }

    /// The text. An empty buffer has the text `null`.
    #[must_use]
    pub fn as_json(&self) -> JsonRef<'_> {
        let text = self.bytes.get(ROOM..).filter(|text| !text.is_empty()).unwrap_or(b"null");
        // All that writes JSON writes UTF-8, so this never falls back.
        JsonRef::sound(std::str::from_utf8(text).unwrap_or("null"))
    }

    /// Puts `head` in front of the text and `tail` behind it. Returns the bytes, and how many of them
    /// come before the head.
    pub(crate) fn enclose(&mut self, head: &[&[u8]], tail: &[u8]) -> (&mut Vec<u8>, usize) {
        if self.bytes.len() <= ROOM {
            self.start().extend_from_slice(b"null");
        }
        self.bytes.extend_from_slice(tail);
        // From its end to its beginning, because it has to end where the text begins.
        let mut at = ROOM;
        for part in head.iter().rev() {
            if part.len() > at {
                let missing = std::iter::repeat_n(b' ', part.len() - at);
                self.bytes.splice(..0, missing);
                at = part.len();
            }
            at -= part.len();
            self.bytes[at..][..part.len()].copy_from_slice(part);
        }
        (&mut self.bytes, at)
    }
}

impl fmt::Debug for JsonBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_json().text())
    }
}

/// Appends one object, member by member.
pub(crate) struct ObjectWriter<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> ObjectWriter<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        Self { out, start }
    }

    /// Appends text that has a comma in front: a member, or the name of one and its colon. Returns
    /// where the value goes.
    #[inline]
    pub(crate) fn raw(&mut self, text: &str) -> &mut Vec<u8> {
        self.out.extend_from_slice(text.as_bytes());
        self.out
    }

    /// Appends the name of a member. Returns where its value goes.
    pub(crate) fn member(&mut self, name: &str) -> &mut Vec<u8> {
        self.out.push(b',');
        quote(self.out, name);
        self.out.push(b':');
        self.out
    }

    /// Appends a member whose value always has a JSON form.
    pub(crate) fn value(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        let out = self.member(name);
        if serde_json::to_writer(&mut *out, value).is_err() {
            out.extend_from_slice(b"null");
        }
    }

    pub(crate) fn end(self) {
        close(self.out, self.start, *b"{}");
    }
}

/// Ends a list or an object that was begun at `start` with a comma before each of its members.
pub(crate) fn close(out: &mut Vec<u8>, start: usize, [open, end]: [u8; 2]) {
    match out.get_mut(start) {
        Some(comma) => *comma = open,
        None => out.push(open),
    }
    out.push(end);
}

/// Room made behind a text of at least this length, too: the few brackets that close a message must not
/// double a buffer that is as large as the text.
const BEHIND: usize = 4 << 10;

/// Appends `text` as a JSON string.
pub(crate) fn quote(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + if text.len() < BEHIND { 2 } else { BEHIND });
    out.push(b'"');
    let mut rest = text.as_bytes();
    let mut count = far(rest);
    loop {
        let (copied, odd) = rest.split_at(count);
        out.extend_from_slice(copied);
        let Some((odd, after)) = odd.split_first() else { break };
        push(out, *odd);
        rest = after;
        // After one escape the next is often near.
        count = plain(rest);
    }
    out.push(b'"');
}

/// Appends a byte that is not plain.
fn push(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        ..b' ' => {
            out.extend_from_slice(b"\\u00");
            out.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            return;
        }
        _ => return out.push(byte),
    };
    out.extend([b'\\', short]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn quoted(text: &str) -> String {
        let mut out = b"x".to_vec();
        quote(&mut out, text);
        String::from_utf8(out.split_off(1)).unwrap()
    }

    #[test]
    fn every_character_that_can_matter_is_spelled_as_serde_json_does_at_every_place() {
        for at in 0..=65 {
            for odd in (0..=0x7f).map(char::from).chain(['é', '\u{2028}', '\u{1f600}']) {
                let mut text = "a".repeat(65);
                text.insert(at, odd);
                assert_eq!(quoted(&text), serde_json::to_string(&text).unwrap());
            }
        }
        assert_eq!(quoted(""), "\"\"");
    }

    #[test]
    fn what_closes_a_message_does_not_double_the_buffer_of_a_long_text() {
        let mut out = Vec::new();
        quote(&mut out, &"a".repeat(1 << 20));
        let before = out.capacity();
        out.extend_from_slice(&[b'}'; 1 << 10]);
        assert_eq!(out.capacity(), before);
    }

    #[test]
    fn a_head_of_any_length_is_put_in_front_of_the_value() {
        for length in [0, 1, ROOM - 1, ROOM, ROOM + 1, 3 * ROOM] {
            let mut json = JsonBuf::of(&[1, 2]).unwrap();
            assert_eq!(json.as_json().text(), "[1,2]");
            let head = "x".repeat(length);
            let (bytes, start) = json.enclose(&[head.as_bytes(), b":"], b"}");
            assert_eq!(bytes[start..], *format!("{head}:[1,2]}}").as_bytes());
        }
    }

    #[test]
    fn what_has_no_json_form_is_an_error() {
        assert!(JsonBuf::of(&std::collections::BTreeMap::from([((), 1)])).is_err());
    }

    #[test]
    fn an_empty_buffer_is_null_and_a_used_one_is_started_anew() {
        let mut json = JsonBuf::default();
        assert_eq!(json.as_json().text(), "null");
        let (bytes, start) = json.enclose(&[b"("], b")");
        assert_eq!(bytes[start..], *b"(null)");
        json.start().extend_from_slice(b"true");
        assert_eq!(json.as_json().text(), "true");
    }

    proptest! {
        #[test]
        fn any_text_is_spelled_as_serde_json_does(text in "(\\PC|[\u{0}-\u{1f}\"\\\\]|[ -~]{40}){0,9}") {
            prop_assert_eq!(quoted(&text), serde_json::to_string(&text).unwrap());
        }
    }
}
