//! Reads JSON objects into types, member by member, without building a tree first.
//!
//! Knows serde's visitors; must not know any type of the protocol. `#[serde(untagged)]` and
//! `#[serde(flatten)]` buffer the whole object before they look at it; nothing here does on the
//! path that peers really use.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};

/// A string borrowed from the input where that is possible: a known member's name costs nothing.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct Name<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// A type that is read from the members of an object.
pub(crate) trait FromMembers<'de>: Sized {
    /// What an error message calls it.
    const EXPECTED: &'static str;

    /// Reads the members that are left in `map`.
    fn from_members<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error>;

    /// Reads an object, and nothing else: an array with the right values in the right order is not a
    /// message (RPC-14).
    fn from_object<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

impl<'de, T: FromMembers<'de>> FromMembers<'de> for Box<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn from_members<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        T::from_members(map).map(Self::new)
    }
}

/// A type whose member `type` says how to read the others.
pub(crate) trait FromTagged<'de>: Sized {
    /// Reads the members that are left in `map`, as `tag` says.
    fn from_tagged<A: MapAccess<'de>>(tag: &str, map: A) -> Result<Self, A::Error>;
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: FromMembers<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::from_members(map)
    }
}

/// Finds the member `type`, and reads the others as it says.
pub(crate) fn read_tagged<'de, T: FromTagged<'de>, A: MapAccess<'de>>(
    mut map: A,
) -> Result<T, A::Error> {
    let Some(Name(first)) = map.next_key()? else {
        return Err(A::Error::missing_field("type"));
    };
    // Nearly every writer puts `type` first; only then can the rest be read as it comes.
    if first == "type" {
        let Name(tag) = map.next_value()?;
        return T::from_tagged(&tag, map);
    }
    let first = (first.into_owned(), map.next_value()?);
    let members = with_rest(first, map)?;
    let tag = match members.get("type") {
        Some(Value::String(tag)) => tag.clone(),
        Some(_) => return Err(A::Error::custom("`type` must be a string")),
        None => return Err(A::Error::missing_field("type")),
    };
    let members = MapDeserializer::<_, serde_json::Error>::new(members.into_iter());
    T::from_tagged(&tag, members).map_err(A::Error::custom)
}

/// Reads the fixed member of a type that is always written with `expected`.
pub(crate) fn fixed_member<'de, A: MapAccess<'de>>(
    map: &mut A,
    member: &'static str,
    expected: &'static str,
) -> Result<(), A::Error> {
    let Name(found) = map.next_value()?;
    if found == expected {
        return Ok(());
    }
    Err(A::Error::custom(format_args!("`{member}` is {found:?}, expected {expected:?}")))
}

/// All that is left in `map`, with the tag back in place: what an unknown kind is kept as.
pub(crate) fn unknown_kind<'de, A: MapAccess<'de>>(tag: &str, map: A) -> Result<Value, A::Error> {
    with_rest(("type".to_owned(), tag.into()), map).map(Value::Object)
}

/// The member that was read first and all that are left in `map`.
fn with_rest<'de, A: MapAccess<'de>>(
    first: (String, Value),
    mut map: A,
) -> Result<Map<String, Value>, A::Error> {
    let mut members = Map::from_iter([first]);
    while let Some((name, value)) = map.next_entry()? {
        members.insert(name, value);
    }
    Ok(members)
}
