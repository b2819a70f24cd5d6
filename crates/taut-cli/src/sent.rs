//! JSON as a server sent it: members in its order, nothing added, nothing dropped.
//!
//! The library's types fill in missing members and leave out members that a revision does not have; this
//! type keeps the value exactly. Used to show and to check what a server sent. Must not judge (`strict.rs`
//! does).

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Sent {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    Array(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl Sent {
    /// A member of an object; the last, if there are several.
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        members.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// About how many bytes it takes in memory.
    pub(crate) fn size(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Text(text) => text.len(),
                Self::Array(all) => all.iter().map(Self::size).sum(),
                Self::Object(all) => {
                    all.iter().map(|(name, value)| 24 + name.len() + value.size()).sum()
                }
                Self::Null | Self::Bool(_) | Self::Number(_) => 0,
            }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What kind of value it is, in words.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

impl Serialize for Sent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(value) => value.serialize(serializer),
            Self::Text(value) => serializer.serialize_str(value),
            Self::Array(items) => serializer.collect_seq(items),
            Self::Object(members) => {
                serializer.collect_map(members.iter().map(|(name, value)| (name, value)))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Sent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Anything)
    }
}

struct Anything;

impl<'de> Visitor<'de> for Anything {
    type Value = Sent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<Sent, E> {
        Ok(Sent::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Sent, E> {
        Ok(Sent::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Sent, E> {
        Ok(Sent::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Sent, E> {
        Ok(Sent::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Sent, E> {
        Ok(Number::from_f64(value).map_or(Sent::Null, Sent::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Sent, E> {
        Ok(Sent::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Sent, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Sent::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Sent, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Sent::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::Sent;

    #[test]
    fn what_came_is_what_is_shown() {
        let text = r#"{"z":1,"a":[null,true,-2,0.5,"x"],"m":{"b":{},"a":18446744073709551615}}"#;
        let sent: Sent = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&sent).unwrap(), text);
        let last: Sent = serde_json::from_str(r#"{"a":1,"a":"two"}"#).unwrap();
        assert_eq!(last.member("a").and_then(Sent::text), Some("two"));
    }
}
