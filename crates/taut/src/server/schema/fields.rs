//! The fields of a struct in the order in which they are declared.
//!
//! A schema cannot tell: its members are sorted by name. But a derived `Deserialize` names the fields
//! in order before it reads anything, and a deserializer that reads nothing can listen to that.

use std::fmt;

use serde::de::{DeserializeOwned, Deserializer, Error, Visitor};
use serde::forward_to_deserialize_any;

/// The names, as they are read; nothing if the type does not tell (a map, or `#[serde(flatten)]`).
pub(crate) fn fields_of<T: DeserializeOwned>() -> Option<&'static [&'static str]> {
    match T::deserialize(Listener) {
        Err(Heard(names)) => names,
        Ok(_) => None,
    }
}

/// Sorts what a schema has by name into the order of declaration. What was not declared comes last.
pub(crate) fn in_order<V>(items: &mut [V], names: Option<&[&str]>, name: impl Fn(&V) -> &str) {
    let Some(names) = names else { return };
    items.sort_by_key(|item| names.iter().position(|n| *n == name(item)).unwrap_or(usize::MAX));
}

struct Listener;

/// What was heard, as the error that ends the attempt.
#[derive(Debug)]
struct Heard(Option<&'static [&'static str]>);

impl fmt::Display for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing is read here")
    }
}

impl std::error::Error for Heard {}

impl Error for Heard {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(None)
    }
}

impl<'de> Deserializer<'de> for Listener {
    type Error = Heard;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Heard> {
        Err(Heard(None))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Heard> {
        Err(Heard(Some(fields)))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Heard> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Trip {
        to: String,
        from: String,
        #[serde(rename = "on")]
        date: Option<String>,
    }

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Wrapped(Trip);

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Flat {
        #[serde(flatten)]
        trip: Trip,
    }

    #[test]
    fn a_struct_names_its_fields_as_they_are_read_and_in_order() {
        let names: &[&str] = &["to", "from", "on"];
        assert_eq!(fields_of::<Trip>(), Some(names));
        assert_eq!(fields_of::<Wrapped>(), Some(names));
    }

    #[test]
    fn what_does_not_tell_has_no_names_and_keeps_its_order() {
        assert_eq!((fields_of::<Flat>(), fields_of::<serde_json::Value>()), (None, None));
        let mut items = ["b", "a", "c"];
        in_order(&mut items, None, |item| item);
        assert_eq!(items, ["b", "a", "c"]);
        in_order(&mut items, Some(&["c", "a"]), |item| item);
        assert_eq!(items, ["c", "a", "b"]);
    }
}
