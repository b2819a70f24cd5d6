//! A result in its final JSON form.
//!
//! Knows how a result stands in its message. A result is made by users' code, which may fail, panic
//! or use the connection itself; so it is written into a buffer of its own, away from every lock and
//! every other message, and only a whole one becomes a [`ResultJson`].

use std::sync::Arc;

use serde::Serialize;

use super::id::Id;

/// Bytes that are kept free in front of a result: for `{"jsonrpc":"2.0","id":…,"result":` with an id
/// of up to 40 bytes, and for a `Content-Length` header. With a longer id the result is copied.
const ROOM: usize = 104;

/// Most results fit into this without growing.
const USUAL: usize = 256;

/// A result as JSON text, ready to be sent.
///
/// There is room in front of the text for what a message has before its result, so that a long
/// result is never copied.
#[derive(Clone, Debug)]
pub struct ResultJson(ResultText);

#[derive(Clone, Debug)]
enum ResultText {
    /// The text begins at [`ROOM`].
    Own(Vec<u8>),
    /// One text for many answers, such as a page of a list.
    Shared(Arc<[u8]>),
}

impl ResultJson {
    /// The JSON of a value.
    ///
    /// # Errors
    /// The value has no JSON form.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Result<Self, serde_json::Error> {
        let mut text = empty();
        serde_json::to_writer(&mut text, value)?;
        Ok(Self(ResultText::Own(text)))
    }

    /// What `write` appends: one JSON text.
    pub(crate) fn written(write: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut text = empty();
        write(&mut text);
        Self(ResultText::Own(text))
    }

    /// A JSON text that other answers use as well.
    #[must_use]
    pub fn shared(text: Arc<[u8]>) -> Self {
        Self(ResultText::Shared(text))
    }

    /// The JSON text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            ResultText::Own(text) => &text[ROOM..],
            ResultText::Shared(text) => text,
        }
    }

    /// The whole message that answers `id`, and where in the buffer it begins.
    pub(super) fn into_message(self, id: &Id) -> (Vec<u8>, usize) {
        let parts = [b"{\"jsonrpc\":\"2.0\",\"id\":", id.as_bytes(), b",\"result\":"];
        let before: usize = parts.iter().map(|part| part.len()).sum();
        let (mut message, start) = match self.0 {
            ResultText::Own(mut text) if before <= ROOM => {
                let mut at = ROOM - before;
                for part in parts {
                    text[at..at + part.len()].copy_from_slice(part);
                    at += part.len();
                }
                (text, ROOM - before)
            }
            other => {
                let text = Self(other);
                let mut message = Vec::with_capacity(before + text.as_bytes().len() + 2);
                parts.iter().for_each(|part| message.extend_from_slice(part));
                message.extend_from_slice(text.as_bytes());
                (message, 0)
            }
        };
        message.push(b'}');
        (message, start)
    }
}

/// A buffer with nothing in it but the room in front.
fn empty() -> Vec<u8> {
    let mut text = Vec::with_capacity(ROOM + USUAL);
    text.resize(ROOM, b' ');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_around_a_result_is_the_same_whatever_the_id_and_the_text() {
        for id in ["1", "\"abc\"", &format!("\"{}\"", "x".repeat(500))] {
            let id = Id::from_json(id).unwrap();
            let want = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":[true]}}", id.as_json());
            let own = ResultJson::of(&[true]).unwrap();
            assert_eq!(own.as_bytes(), b"[true]");
            let (message, start) = own.into_message(&id);
            assert_eq!(&message[start..], want.as_bytes());
            let shared = ResultJson::shared(b"[true]".as_slice().into());
            let (message, start) = shared.into_message(&id);
            assert_eq!(&message[start..], want.as_bytes());
        }
    }
}
