//! Writes JSON text: strings and objects.
//!
//! Knows what JSON escapes; must not know any member's meaning. Text that needs no escape, which is
//! nearly all of it, is looked at many bytes at a time and copied whole. serde_json looks at each byte
//! by itself, which for a long text costs more than everything else that is done with it.

use serde::Serialize;

use super::plain::{far, plain};

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
        // Where there is one escape the next is often near.
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

    proptest! {
        #[test]
        fn any_text_is_spelled_as_serde_json_does(text in "(\\PC|[\u{0}-\u{1f}\"\\\\]|[ -~]{40}){0,9}") {
            prop_assert_eq!(quoted(&text), serde_json::to_string(&text).unwrap());
        }
    }
}
