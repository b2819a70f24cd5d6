//! An object that was checked before, read into a type.
//!
//! Knows members and plain strings, which is what most arguments are made of; values of every other
//! kind are serde_json's. Whatever is unusual it does not read at all: then serde_json has to, which
//! reads the same wherever both do. A test shows it.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Error;

use super::part::{Members, Part};

/// Reads an object. Nothing: it does not fit, or it is unusual.
pub(crate) fn read_object<T: DeserializeOwned>(object: Part<'_>) -> Option<T> {
    T::deserialize(Object(object.members()?)).ok()
}

struct Object<'a>(Members<'a>);

impl<'de> Deserializer<'de> for Object<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> MapAccess<'de> for Object<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        match self.0.next_name() {
            Some(Some(name)) => seed.deserialize(Text(name)).map(Some),
            Some(None) => Err(Error::custom("a name with an escape")),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        match self.0.next_value() {
            Some(Ok(text)) => seed.deserialize(Text(text)),
            Some(Err(other)) => {
                seed.deserialize(&mut serde_json::Deserializer::from_str(other.text()))
            }
            None => Err(Error::custom("a name without a value")),
        }
    }
}

/// A name, or a string that means what it says.
struct Text<'a>(&'a str);

impl<'de> Deserializer<'de> for Text<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(BorrowedStrDeserializer::new(self.0))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::Deserialize;
    use serde_json::Value;
    use serde_json::value::RawValue;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Plain {
        a: String,
        b: Option<String>,
        #[serde(default)]
        c: Vec<Kind>,
        d: Option<Kind>,
        e: Option<Wrapped>,
        f: Option<f64>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "camelCase")]
    enum Kind {
        A,
        B(u8),
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Wrapped(String);

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Strict {
        a: char,
        b: Option<bool>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Flat {
        a: Value,
        #[serde(flatten)]
        rest: BTreeMap<String, Value>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(tag = "a")]
    enum Tagged {
        A { b: String },
        B,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(untagged)]
    enum Either {
        Words { a: String, b: String },
        Number { a: i64 },
        Raw(BTreeMap<String, Value>),
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Outer(Option<Plain>);

    /// Whether it was read; and if it was, then as serde_json does.
    fn agrees<T: DeserializeOwned + PartialEq + std::fmt::Debug>(text: &str) -> bool {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        let Some(read) = read_object::<T>(raw.into()) else { return false };
        assert_eq!(Some(read), serde_json::from_str(text).ok(), "{text}");
        true
    }

    #[test]
    fn what_is_usual_is_read_here() {
        assert!(agrees::<Plain>(r#"{"a":"x"}"#));
        assert!(agrees::<Plain>(
            r#"{ "a": "é", "b": null, "c": ["a", {"b": 1}], "d": "a", "e": "", "f": 1e3, "g": [] }"#
        ));
        assert!(agrees::<Plain>(r#"{"a":"with \"escapes\"","d":{"b":255}}"#));
        assert!(agrees::<Flat>(r#"{"a":1,"b":"2","c":{"d":[]}}"#));
        assert!(agrees::<Tagged>(r#"{"b":"x","a":"A"}"#));
        assert!(agrees::<Either>(r#"{"a":7}"#));
        assert!(agrees::<Outer>(r#"{"a":"x"}"#));
        assert!(agrees::<Value>(r#"{"a":"x","b":[1,2.5]}"#));
        assert!(agrees::<BTreeMap<String, Value>>("{}"));
    }

    #[test]
    fn what_is_unusual_or_does_not_fit_is_left_to_serde_json() {
        assert!(!agrees::<Plain>(r#"{"\u0061":"x"}"#));
        assert!(!agrees::<Plain>(r#"{"a":1}"#));
        assert!(!agrees::<Plain>(r#"{"a":"x","a":"y"}"#));
        assert!(!agrees::<Plain>("{}"));
        assert!(!agrees::<Plain>("[]"));
        assert!(!agrees::<BTreeMap<u64, String>>(r#"{"1":"a"}"#));
        let raw: &RawValue = serde_json::from_str(r#"{"a":"x"}"#).unwrap();
        assert!(read_object::<Box<RawValue>>(raw.into()).is_none());
    }

    proptest! {
        #[test]
        fn any_object_is_read_as_serde_json_does_or_not_at_all(
            names in prop::collection::vec(r#"[a-f]|\\u0061|b\\n|["\\]"#.prop_map(|name| name.replace('"', "\\\"")), 0..6),
            values in prop::collection::vec(
                prop_oneof![
                    Just("null".to_owned()), Just("true".to_owned()), "-?[1-9][0-9]{0,2}",
                    r#""[aAb1 é]{0,20}""#, r#""a\\n[a-z]{0,9}""#, Just("\"\\ud800\"".to_owned()),
                    Just("[\"a\",{\"b\":1}]".to_owned()), Just("{\"b\":1}".to_owned()),
                ],
                6,
            ),
            blanks in prop_oneof![Just(""), Just(" "), Just("\n\t")],
        ) {
            let members = names.iter().zip(&values).map(|(name, value)| format!("{blanks}\"{name}\"{blanks}:{blanks}{value}{blanks}"));
            let text = format!("{{{}}}", members.collect::<Vec<_>>().join(","));
            prop_assume!(serde_json::from_str::<&RawValue>(&text).is_ok());
            agrees::<Plain>(&text);
            agrees::<Strict>(&text);
            agrees::<Flat>(&text);
            agrees::<Tagged>(&text);
            agrees::<Either>(&text);
            agrees::<Outer>(&text);
            agrees::<Value>(&text);
            agrees::<BTreeMap<String, Value>>(&text);
            agrees::<BTreeMap<char, Value>>(&text);
            agrees::<BTreeMap<u64, Value>>(&text);
            agrees::<BTreeMap<Option<String>, Option<String>>>(&text);
            agrees::<()>(&text);
        }
    }
}
