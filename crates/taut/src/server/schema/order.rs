//! The order in which the structs inside a type declare their fields, and schemas written in it.
//!
//! A generated schema has its properties sorted by name. A derived `Deserialize` names the fields of
//! a struct in order before it reads anything; a deserializer that leads it along one path after the
//! other and reads nothing hears of all of them. Knows types by their `Deserialize` only.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer as _,
    MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::json::RawJson;

type Names = &'static [&'static str];

/// Paths that are tried for one type, at most. What is beyond keeps the order of the schema.
const MOST_PATHS: usize = 1024;

/// Steps into a type, at most.
const DEEPEST: usize = 32;

/// The fields of each struct that a `T` is made of, as they are declared.
///
/// Types that do not tell are left out: maps, `#[serde(flatten)]`, enums with a tag inside or none.
pub(super) fn declared<T: DeserializeOwned>() -> Vec<Names> {
    let mut found: Vec<Names> = Vec::new();
    let mut paths = vec![Vec::new()];
    let mut next = 0;
    while next < paths.len() && next < MOST_PATHS {
        let path = std::mem::take(&mut paths[next]);
        next += 1;
        let Err(heard) = T::deserialize(Probe(&path)) else { continue };
        if path.len() >= DEEPEST {
            continue;
        }
        let mut follow = |step| {
            let mut longer = path.clone();
            longer.push(step);
            paths.push(longer);
        };
        match heard {
            Heard::Nothing => {}
            Heard::Holder => follow(Step::Inside),
            Heard::Variants(names) => names.iter().for_each(|name| follow(Step::Name(name))),
            // A struct that was met before leads to nothing new.
            Heard::Fields(names) if found.contains(&names) => {}
            Heard::Fields(names) => {
                found.push(names);
                names.iter().for_each(|name| follow(Step::Name(name)));
            }
        }
    }
    found
}

/// The text of a schema, with the properties of every object in the order of `declared`. Where that
/// says nothing, required ones come first: `required` keeps their order.
pub(super) fn in_order(schema: &Value, declared: &[Names]) -> RawJson {
    let ordered = Ordered { value: schema, of: None, declared };
    RawJson::of(&ordered).unwrap_or_else(|_| schema.clone().into())
}

/// A part of a schema, and the object whose `properties` it is, if it is that.
struct Ordered<'v> {
    value: &'v Value,
    of: Option<&'v Map<String, Value>>,
    declared: &'v [Names],
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { declared, .. } = *self;
        let part = |value, of| Ordered { value, of, declared };
        match (self.value, self.of) {
            (Value::Object(properties), Some(of)) => {
                let sorted = sorted(properties, of.get("required"), declared);
                serializer.collect_map(sorted.into_iter().map(|(name, v)| (name, part(v, None))))
            }
            (Value::Object(members), None) => {
                let of = |name: &str| (name == "properties").then_some(members);
                serializer.collect_map(members.iter().map(|(name, v)| (name, part(v, of(name)))))
            }
            (Value::Array(items), _) => serializer.collect_seq(items.iter().map(|v| part(v, None))),
            (plain, _) => plain.serialize(serializer),
        }
    }
}

fn sorted<'v>(
    properties: &'v Map<String, Value>,
    required: Option<&Value>,
    declared: &[Names],
) -> Vec<(&'v String, &'v Value)> {
    let known = |names: &&Names| properties.keys().all(|key| names.contains(&key.as_str()));
    let names = declared.iter().filter(known).min_by_key(|names| names.len());
    let required = required.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let place = |name: &str| match names {
        Some(names) => names.iter().position(|declared| *declared == name),
        None => required.iter().position(|required| required == name),
    };
    let mut sorted: Vec<_> = properties.iter().collect();
    sorted.sort_by_cached_key(|(name, _)| place(name).unwrap_or(usize::MAX));
    sorted
}

/// One step from a type to a part of it.
#[derive(Clone, Copy)]
pub(super) enum Step {
    /// Into what an option, a list, a map or a newtype holds.
    Inside,
    /// To a field of a struct, or to a variant of an enum.
    Name(&'static str),
}

/// What was met at the end of a path, as the error that ends the attempt.
#[derive(Debug)]
pub(super) enum Heard {
    Nothing,
    Holder,
    Fields(Names),
    Variants(Names),
}

impl fmt::Display for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing is read here")
    }
}

impl std::error::Error for Heard {}

impl Error for Heard {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::Nothing
    }
}

/// Leads along the path, and ends at its end.
#[derive(Clone, Copy)]
pub(super) struct Probe<'p>(pub(super) &'p [Step]);

impl<'p> Probe<'p> {
    /// What is to be done with something that holds one thing.
    fn inside<V>(self, go: impl FnOnce(Self) -> Result<V, Heard>) -> Result<V, Heard> {
        match self.0 {
            [] => Err(Heard::Holder),
            [Step::Inside, rest @ ..] => go(Probe(rest)),
            [Step::Name(_), ..] => Err(Heard::Nothing),
        }
    }

    fn fields<'de, V: Visitor<'de>>(self, fields: Names, visitor: V) -> Result<V::Value, Heard> {
        match self.0 {
            [] => Err(Heard::Fields(fields)),
            [Step::Name(name), rest @ ..] => visitor.visit_map(Only(Some(name), Probe(rest))),
            [Step::Inside, ..] => Err(Heard::Nothing),
        }
    }
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Heard;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Heard> {
        Err(Heard::Nothing)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: Names,
        visitor: V,
    ) -> Result<V::Value, Heard> {
        self.fields(fields, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: Names,
        visitor: V,
    ) -> Result<V::Value, Heard> {
        match self.0 {
            [] => Err(Heard::Variants(variants)),
            [Step::Name(name), rest @ ..] => visitor.visit_enum(Only(Some(name), Probe(rest))),
            [Step::Inside, ..] => Err(Heard::Nothing),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Heard> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Heard> {
        self.inside(|inner| visitor.visit_some(inner))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Heard> {
        self.inside(|inner| visitor.visit_seq(Only(Some(""), inner)))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Heard> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Heard> {
        self.inside(|inner| visitor.visit_map(Only(Some(""), inner)))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct tuple_struct identifier ignored_any
    }
}

/// A list, a map or an enum with one thing in it, until that was taken.
struct Only<'p>(Option<&'static str>, Probe<'p>);

fn named(name: &'static str) -> StrDeserializer<'static, Heard> {
    name.into_deserializer()
}

impl<'de> MapAccess<'de> for Only<'_> {
    type Error = Heard;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Heard> {
        self.0.take().map(|name| seed.deserialize(named(name))).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Heard> {
        seed.deserialize(self.1)
    }
}

impl<'de> SeqAccess<'de> for Only<'_> {
    type Error = Heard;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Heard> {
        self.0.take().map(|_| seed.deserialize(self.1)).transpose()
    }
}

impl<'de, 'p> EnumAccess<'de> for Only<'p> {
    type Error = Heard;
    type Variant = Probe<'p>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Probe<'p>), Heard> {
        Ok((seed.deserialize(named(self.0.unwrap_or_default()))?, self.1))
    }
}

impl<'de> VariantAccess<'de> for Probe<'_> {
    type Error = Heard;

    fn unit_variant(self) -> Result<(), Heard> {
        Err(Heard::Nothing)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Heard> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Heard> {
        self.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: Names, visitor: V) -> Result<V::Value, Heard> {
        self.fields(fields, visitor)
    }
}
