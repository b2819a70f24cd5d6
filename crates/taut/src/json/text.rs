//! Finds members in JSON text that was checked before, without parsing it again.
//!
//! Knows quotes and brackets; must not know any member's meaning. In checked text, quotes and brackets
//! alone tell where each value ends, and a long string is passed at the speed of memory. Text that is
//! not sound gives wrong members, but no panic and no endless loop.

use std::borrow::Cow;

use serde::de::value::{BorrowedStrDeserializer, Error, MapDeserializer};
use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::plain::{near, plain};

/// The text of one JSON value, known to be sound, not yet parsed.
#[derive(Clone, Copy, Debug, Default)]
pub struct JsonRef<'a>(&'a str);

impl<'a> From<&'a RawValue> for JsonRef<'a> {
    fn from(raw: &'a RawValue) -> Self {
        // A `RawValue` has no blanks around it.
        Self(raw.get())
    }
}

impl<'a> JsonRef<'a> {
    /// A text that is known to be one sound value.
    pub(crate) fn sound(text: &'a str) -> Self {
        Self(text)
    }

    /// The JSON text.
    #[must_use]
    pub fn text(self) -> &'a str {
        self.0
    }

    /// The same as serde_json's type.
    #[must_use]
    pub fn raw(self) -> &'a RawValue {
        let slowly = || serde_json::from_str(self.0).ok();
        checked(self.0).or_else(slowly).unwrap_or(RawValue::NULL)
    }

    /// Whether it is an object.
    pub(crate) fn is_object(self) -> bool {
        self.0.starts_with('{')
    }

    /// Reads it.
    pub(crate) fn read<T: Deserialize<'a>>(self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.0)
    }

    /// The text of a string, borrowed where it holds no escape; nothing if it is no string, or one
    /// that names no text.
    pub(crate) fn string(self) -> Option<Cow<'a, str>> {
        let inside = self.0.strip_prefix('"')?.strip_suffix('"')?;
        match inside.as_bytes().contains(&b'\\') {
            false => Some(Cow::Borrowed(inside)),
            true => self.read::<String>().ok().map(Cow::Owned),
        }
    }

    /// The same, where half of a surrogate pair that stands alone becomes U+FFFD; nothing if it is no string.
    pub(crate) fn string_lossy(self) -> Option<Cow<'a, str>> {
        self.string().or_else(|| {
            let whole = replace_lone_surrogates(self.0.strip_prefix('"')?.strip_suffix('"')?);
            JsonRef(&format!("\"{whole}\"")).read::<String>().ok().map(Cow::Owned)
        })
    }

    /// The members of an object, in the order in which they stand; nothing if it is no object.
    pub(crate) fn members(self) -> Option<Members<'a>> {
        self.is_object().then_some(Members { rest: &self.0[1..] })
    }

    /// The elements of an array; none if it is no array.
    pub(crate) fn elements(self) -> impl Iterator<Item = Self> {
        let mut rest = Members { rest: self.0.strip_prefix('[').unwrap_or_default() };
        std::iter::from_fn(move || {
            let rest = &mut rest;
            rest.skip(b',');
            let length = length_of_value(rest.rest.as_bytes())?;
            rest.take(length).filter(|text| !text.is_empty()).map(JsonRef)
        })
    }

    /// One member of an object; the last, where it is repeated (RPC-35).
    pub(crate) fn member(self, wanted: &str) -> Option<Self> {
        self.members()?.filter(|(name, _)| name == wanted).last().map(|(_, value)| value)
    }
}

/// The inside of a JSON string with U+FFFD for each escape of a surrogate that has no other half.
fn replace_lone_surrogates(mut rest: &str) -> String {
    fn unit(text: &str) -> Option<u16> {
        u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
    }
    let mut out = String::with_capacity(rest.len());
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        let length = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => 0,
            (Some(_), _) => 6,
            (None, _) => 2,
        };
        out.push_str(before);
        out.push_str(escape.get(..length).unwrap_or(escape));
        if length == 0 {
            out.push('\u{fffd}');
        }
        rest = escape.get(if length == 0 { 6 } else { length }..).unwrap_or_default();
    }
    out + rest
}

/// Text that is known to be one sound JSON value, as serde_json's type. `None` if serde_json asks for
/// raw values in a way that is not known here.
pub(super) fn checked(text: &str) -> Option<&RawValue> {
    <&RawValue>::deserialize(Checked(text)).ok()
}

/// Text that is known to be JSON. serde_json makes a [`RawValue`] of it without looking at it again.
struct Checked<'a>(&'a str);

impl<'de> Deserializer<'de> for Checked<'de> {
    type Error = Error;

    /// Answers serde_json's request for a raw value, which is a struct with a special name.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        let text = BorrowedStrDeserializer::<Error>::new(self.0);
        visitor.visit_map(MapDeserializer::new(std::iter::once((name, text))))
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(self.0)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Writes the value member by member, so that any format, and a pretty printer, can show it. What
/// another type would change is passed on as it is: numbers with unusual digits, strings that are no
/// text, and what is nested deeper than 127 levels.
impl Serialize for JsonRef<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Walk { value: *self, depth: 0 }.serialize(serializer)
    }
}

/// The depth to which a value is written member by member. It is the depth that serde_json reads, and
/// bounds the stack: a peer may send deeper ones.
const WALKED: u32 = 127;

struct Walk<'a> {
    value: JsonRef<'a>,
    depth: u32,
}

impl Serialize for Walk<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { value, depth } = *self;
        let inside = |value| Walk { value, depth: depth + 1 };
        match value.0.as_bytes().first() {
            Some(b'{' | b'[') if depth == WALKED => value.raw().serialize(serializer),
            Some(b'{') => {
                let members = value.members().into_iter().flatten();
                serializer.collect_map(members.map(|(name, value)| (name, inside(value))))
            }
            Some(b'[') => serializer.collect_seq(value.elements().map(inside)),
            Some(b'"') => match value.string() {
                Some(text) => serializer.serialize_str(&text),
                None => value.raw().serialize(serializer),
            },
            Some(b't') => serializer.serialize_bool(true),
            Some(b'f') => serializer.serialize_bool(false),
            Some(b'n') | None => serializer.serialize_unit(),
            Some(_) => match value.read::<serde_json::Number>() {
                Ok(number) if number.to_string() == value.0 => number.serialize(serializer),
                _ => value.raw().serialize(serializer),
            },
        }
    }
}

/// The members of an object.
#[derive(Clone, Debug)]
pub(crate) struct Members<'a> {
    rest: &'a str,
}

impl<'a> Members<'a> {
    /// Skips blanks and the given delimiter.
    fn skip(&mut self, delimiter: u8) {
        while let [first, ..] = self.rest.as_bytes()
            && (*first == delimiter || matches!(first, b' ' | b'\n' | b'\r' | b'\t'))
        {
            self.rest = &self.rest[1..];
        }
    }

    /// Takes so many bytes.
    fn take(&mut self, bytes: usize) -> Option<&'a str> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }

    /// Takes the name of a member. A name that is not valid text stays as it was written.
    fn name(&mut self) -> Option<Cow<'a, str>> {
        let inside = self.rest.strip_prefix('"')?;
        let plain = plain(inside.as_bytes());
        if inside.as_bytes().get(plain) == Some(&b'"') {
            self.rest = &inside[plain + 1..];
            return Some(Cow::Borrowed(&inside[..plain]));
        }
        let name = self.take(length_of_value(self.rest.as_bytes())?)?;
        Some(JsonRef(name).string().unwrap_or(Cow::Borrowed(name)))
    }

    /// The next member, with its name as it was written, quotes included, and as it reads.
    pub(super) fn next_as_written(&mut self) -> Option<(&'a str, Cow<'a, str>, JsonRef<'a>)> {
        self.skip(b',');
        let before = self.rest;
        let name = self.name()?;
        let written = &before[..before.len() - self.rest.len()];
        self.skip(b':');
        let length = length_of_value(self.rest.as_bytes())?;
        Some((written, name, JsonRef(self.take(length)?)))
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, JsonRef<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.next_as_written().map(|(_, name, value)| (name, value))
    }
}

/// How long the value at the front is.
fn length_of_value(json: &[u8]) -> Option<usize> {
    let (mut rest, mut depth) = (json, 0usize);
    loop {
        rest = match rest.split_first()? {
            (b'"', rest) => after_string(rest)?,
            (b'{' | b'[', inside) => {
                rest = inside;
                depth += 1;
                continue;
            }
            (b'}' | b']', rest) => {
                depth = depth.checked_sub(1)?;
                rest
            }
            (_, after) if depth > 0 => {
                rest = after;
                continue;
            }
            _ => {
                let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | ..b' ');
                &rest[rest.iter().position(ends).unwrap_or(rest.len())..]
            }
        };
        if depth == 0 {
            return Some(json.len() - rest.len());
        }
    }
}

/// What follows a string whose first quote has been passed.
fn after_string(mut json: &[u8]) -> Option<&[u8]> {
    loop {
        // In a sound string there is nothing to look for but these two.
        let found = near(json).or_else(|| memchr::memchr2(b'"', b'\\', json))?;
        if json[found] == b'"' {
            return Some(&json[found + 1..]);
        }
        json = json.get(found + 2..)?;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;

    fn members(text: &str) -> Vec<(String, String)> {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        let members = JsonRef::from(raw).members().unwrap();
        members.map(|(name, value)| (name.into_owned(), value.text().to_owned())).collect()
    }

    #[test]
    fn members_are_found_whatever_stands_around_and_inside_them() {
        let text = "{ \"a\" :\t1 ,\"b\\u0063\":[{}, \"]\\\"\\\\\"],\"d\":{\"e\":{\"f\":\"}\"}},\n\"\":null,\"a\":-1.5e3 }";
        let expected = [
            ("a", "1"),
            ("bc", "[{}, \"]\\\"\\\\\"]"),
            ("d", "{\"e\":{\"f\":\"}\"}}"),
            ("", "null"),
            ("a", "-1.5e3"),
        ];
        assert_eq!(members(text), expected.map(|(name, value)| (name.into(), value.into())));
        assert_eq!(members("{ }"), []);
    }

    #[test]
    fn rpc_35_the_last_of_two_equal_members_counts() {
        let raw: &RawValue = serde_json::from_str(r#"{"a":1,"\u0061":2,"b":3}"#).unwrap();
        assert_eq!(JsonRef::from(raw).member("a").unwrap().text(), "2");
        assert!(JsonRef::from(raw).member("c").is_none());
    }

    #[test]
    fn only_an_object_has_members_and_only_a_string_has_text() {
        for text in ["[1]", "\"{\"", "1", "null", "true"] {
            let raw: &RawValue = serde_json::from_str(text).unwrap();
            assert!(JsonRef::from(raw).members().is_none(), "{text}");
        }
        let text = |text| JsonRef::from(serde_json::from_str::<&RawValue>(text).unwrap()).string();
        assert_eq!(text("\"é\"").as_deref(), Some("é"));
        assert_eq!(text("\"\\u00e9\"").as_deref(), Some("é"));
        assert_eq!(text("\"\\ud800\""), None);
        assert_eq!(text("7"), None);
    }

    #[test]
    fn a_value_is_written_again_as_it_is_and_can_be_shown_in_lines() {
        let text = r#"{"z":[1,-2,0.5,1e400,[],{}],"a":{"b":null,"c":true},"s":"\n","u":"\ud800"}"#;
        let value = JsonRef(text);
        assert_eq!(serde_json::to_string(&value).unwrap(), text);
        let pretty = serde_json::to_string_pretty(&JsonRef(r#"{"b":[1],"a":"x"}"#)).unwrap();
        assert_eq!(pretty, "{\n  \"b\": [\n    1\n  ],\n  \"a\": \"x\"\n}");
    }

    #[test]
    fn f8_a_value_of_any_depth_is_written_again() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(serde_json::to_string(&JsonRef(&deep)).unwrap(), deep);
    }

    proptest! {
        /// Broken text cannot come in, and would do no harm if it did.
        #[test]
        fn no_text_makes_it_panic_or_go_on_for_ever(text in r#"[{}\[\]",:\\ aé1]{0,40}"#) {
            let text = format!("{{{text}");
            assert!(JsonRef(&text).members().unwrap().count() <= text.len());
        }

        #[test]
        fn any_object_is_taken_apart_as_serde_does(
            names in prop::collection::vec("[a-c\"\\\\é]{0,3}", 0..6),
            texts in prop::collection::vec(".{0,40}", 6),
            pretty in any::<bool>(),
        ) {
            let value = |n: usize| match n % 4 {
                0 => Value::from(texts[n].as_str()),
                1 => serde_json::json!([texts[n], { "k": [] }, -1]),
                2 => serde_json::json!({ &texts[n]: { "}": texts[n] } }),
                _ => Value::from(n as f64 / 2.0),
            };
            let object: Map<String, Value> =
                names.iter().enumerate().map(|(n, name)| (name.clone(), value(n))).collect();
            let text = if pretty {
                serde_json::to_string_pretty(&object).unwrap()
            } else {
                serde_json::to_string(&object).unwrap()
            };
            let raw: &RawValue = serde_json::from_str(&text).unwrap();
            let collect = |members: Members<'_>| -> Map<String, Value> {
                members.map(|(name, value)| (name.into_owned(), value.read().unwrap())).collect()
            };
            prop_assert_eq!(&collect(JsonRef::from(raw).members().unwrap()), &object);
            prop_assert_eq!(serde_json::to_value(JsonRef::from(raw)).unwrap(), Value::from(object));
        }
    }
}
