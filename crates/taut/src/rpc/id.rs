//! Request ids: kept byte for byte, compared by value and type.
//!
//! RPC-02, RPC-06: an id is a string or an integer and comes back as it was sent. So the text is
//! kept, not a number that might lose digits (F18, F20), and `1` is never `"1"`.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::{JsonRef, RawJson};

/// The longest id. Real ones are numbers or UUIDs; an id is copied around, a payload is not.
pub const MAX_ID: usize = 1 << 10;

/// Short ids, which is all of them in practice, are kept without an allocation.
const INLINE: usize = 22;

/// The id of a request.
#[derive(Clone)]
pub struct Id(Text);

#[derive(Clone)]
enum Text {
    Inline {
        bytes: [u8; INLINE],
        len: u8,
    },
    /// The JSON text, and the same value in its plainest spelling if that differs.
    Heap {
        text: Box<str>,
        plain: Option<Box<str>>,
    },
}

impl Id {
    /// Reads an id from its JSON text: a string, or an integer of any size, at most [`MAX_ID`]
    /// bytes long. Nothing else is an id: not `null`, not `1.5`, not `1e3`.
    #[must_use]
    pub fn from_json(text: &str) -> Option<Self> {
        let plain = match text.as_bytes() {
            _ if text.len() > MAX_ID => return None,
            b"-0" => Some("0".into()),
            // The text is written as it is, so it must be one JSON value.
            [b'"', inside @ .., b'"'] if inside.contains(&b'\\') => {
                serde_json::from_str::<IgnoredAny>(text).ok()?;
                plain_string(text)
            }
            [b'"', inside @ .., b'"'] if inside.iter().all(|b| *b >= b' ' && *b != b'"') => None,
            [b'-', digits @ ..] | digits if is_integer(digits) => None,
            _ => return None,
        };
        match plain {
            None => Self::from_plain(text),
            plain => Some(Self(Text::Heap { text: text.into(), plain })),
        }
    }

    /// As [`from_json`](Self::from_json), for text that is known to be an integer or a string without
    /// escapes: only its length is checked.
    pub(super) fn from_plain(text: &str) -> Option<Self> {
        let mut bytes = [0; INLINE];
        Some(Self(match bytes.get_mut(..text.len()) {
            Some(inline) => {
                inline.copy_from_slice(text.as_bytes());
                Text::Inline { bytes, len: text.len() as u8 }
            }
            None if text.len() > MAX_ID => return None,
            None => Text::Heap { text: text.into(), plain: None },
        }))
    }

    /// The JSON text, exactly as it was read.
    #[must_use]
    pub fn as_json(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    /// The bytes of the JSON text. Cheaper than [`as_json`](Self::as_json), which checks UTF-8.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Text::Inline { bytes, len } => &bytes[..usize::from(*len)],
            Text::Heap { text, .. } => text.as_bytes(),
        }
    }

    /// The bytes that are equal where two ids are.
    fn key(&self) -> &[u8] {
        match &self.0 {
            Text::Heap { plain: Some(plain), .. } => plain.as_bytes(),
            _ => self.as_bytes(),
        }
    }

    /// How many bytes each of its two allocations has, if there are any.
    pub(crate) fn allocated(&self) -> [usize; 2] {
        match &self.0 {
            Text::Inline { .. } => [0, 0],
            Text::Heap { text, plain } => {
                [text.len(), plain.as_ref().map_or(0, |plain| plain.len())]
            }
        }
    }

    /// The number, if it is one that we could have sent ourselves.
    pub(crate) fn as_u64(&self) -> Option<u64> {
        self.as_json().parse().ok()
    }
}

fn is_integer(digits: &[u8]) -> bool {
    let leading_zero = digits.len() > 1 && digits[0] == b'0';
    !digits.is_empty() && !leading_zero && digits.iter().all(u8::is_ascii_digit)
}

/// The plainest spelling of a JSON string with escapes; nothing if that is how it is written, or
/// if it names no text (a lone surrogate), which then equals only itself.
fn plain_string(text: &str) -> Option<Box<str>> {
    let value: String = serde_json::from_str(text).ok()?;
    let plain = serde_json::to_string(&value).ok()?;
    (plain != text).then(|| plain.into())
}

impl From<u64> for Id {
    fn from(number: u64) -> Self {
        let mut bytes = [0; INLINE];
        let mut at = INLINE;
        let mut rest = number;
        // Twenty digits at most, so it always fits.
        loop {
            at -= 1;
            bytes[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        bytes.copy_within(at.., 0);
        Self(Text::Inline { bytes, len: (INLINE - at) as u8 })
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Self {
        let json = serde_json::Value::from(text).to_string();
        Self::from_json(&json)
            .unwrap_or_else(|| Self(Text::Heap { text: json.into_boxed_str(), plain: None }))
    }
}

impl From<Id> for RawJson {
    fn from(id: Id) -> Self {
        JsonRef::sound(id.as_json()).into()
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Id {}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.key());
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_json())
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_json())
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        JsonRef::sound(self.as_json()).raw().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::from_json(raw.get())
            .ok_or_else(|| serde::de::Error::custom("an id is a string or an integer"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RPC-28.
    #[test]
    fn f18_f20_ids_come_back_byte_for_byte() {
        let long = format!("\"{}\"", "a".repeat(MAX_ID - 2));
        for text in [
            "0",
            "-1",
            "1",
            "\"1\"",
            "\"\"",
            "\"a\\u0062\"",
            "9007199254740993",
            "18446744073709551615",
            "10000000000000000000000000000000000000000",
            "\"漢\"",
            long.as_str(),
        ] {
            assert_eq!(Id::from_json(text).unwrap().as_json(), text);
        }
    }

    /// RPC-30.
    #[test]
    fn f20_what_is_neither_a_string_nor_an_integer_is_no_id() {
        let too_long = format!("\"{}\"", "a".repeat(MAX_ID - 1));
        for text in
            ["null", "true", "1.5", "1.0", "1e3", "-", "", "{}", "[1]", "\"", too_long.as_str()]
        {
            assert!(Id::from_json(text).is_none(), "{text}");
        }
    }

    #[test]
    fn text_that_is_not_one_json_value_is_no_id() {
        for text in [
            "007",
            "-",
            "--1",
            " 1",
            "1 ",
            "\"a\",\"b\"",
            "\"a\nb\"",
            "\"\\\"",
            "\"\\x\"",
            "\"a\" \\ \"b\"",
        ] {
            assert!(Id::from_json(text).is_none(), "{text}");
        }
    }

    #[test]
    fn ids_are_equal_by_value_and_type() {
        let id = |text| Id::from_json(text).unwrap();
        assert_eq!(id("\"ab\""), id("\"\\u0061b\""));
        assert_eq!(id("0"), id("-0"));
        assert_ne!(id("1"), id("\"1\""));
        assert_ne!(id("\"\\ud800\""), id("\"\\ud801\""));
        assert_eq!(Id::from(42), id("42"));
        assert_eq!(Id::from(u64::MAX).as_json(), "18446744073709551615");
        assert_eq!(Id::from(0).as_json(), "0");
        assert_eq!(Id::from("a\"b"), id("\"a\\\"b\""));
    }
}
