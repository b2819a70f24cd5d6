//! Values taut passes on without looking inside.
//!
//! Knows JSON text; must not know who sends it. Raw text keeps a schema's member order and a
//! number's digits, costs one copy to read, and is shared, not copied, when cloned.

use std::fmt;
use std::sync::{Arc, LazyLock};

use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::shape::{SerializeAt, Shape, same_in_every_revision};
use crate::json::JsonRef;
use crate::rpc::Id;

/// Any JSON value, kept as text.
#[derive(Clone)]
pub struct RawJson(Arc<RawValue>);

impl RawJson {
    /// The JSON text of `value`.
    ///
    /// # Errors
    /// When `value` refuses to be serialised, or is a map whose keys are no strings.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self::from)
    }

    /// The JSON text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// The value as raw JSON.
    #[must_use]
    pub fn raw(&self) -> &RawValue {
        &self.0
    }

    /// Reads the value as a `T`.
    ///
    /// # Errors
    /// When the value is no `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.text())
    }

    /// Whether the value is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        // Raw text has no blanks around it, so the first byte tells the type.
        self.text().starts_with('{')
    }

    /// For `structuredContent`: only an object until 2025-11-25 (TOL-10), anything after (TOL-11).
    pub(super) fn fits_structured_content(&self, shape: Shape) -> bool {
        self.is_object() || shape.revision().is_none_or(|at| at.has_any_structured_content())
    }
}

/// By text: values that differ in blanks or member order are different.
impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl From<Box<RawValue>> for RawJson {
    fn from(raw: Box<RawValue>) -> Self {
        Self(raw.into())
    }
}

impl From<&RawValue> for RawJson {
    fn from(raw: &RawValue) -> Self {
        raw.to_owned().into()
    }
}

impl From<JsonRef<'_>> for RawJson {
    fn from(part: JsonRef<'_>) -> Self {
        // A part is sound, so it is taken as it is.
        RawValue::from_string(part.text().to_owned())
            .map_or_else(|_| RawValue::NULL.into(), Self::from)
    }
}

impl From<Value> for RawJson {
    fn from(value: Value) -> Self {
        // A `Value` always serialises: its keys are strings and its numbers finite.
        Self::of(&value).unwrap_or_else(|_| RawValue::NULL.into())
    }
}

impl From<Map<String, Value>> for RawJson {
    fn from(members: Map<String, Value>) -> Self {
        Value::Object(members).into()
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// A JSON Schema; by default the one that any object fits.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema(RawJson);

impl Schema {
    /// The schema's JSON.
    #[must_use]
    pub fn json(&self) -> &RawJson {
        &self.0
    }

    /// Whether the root says `"type": "object"`.
    #[must_use]
    pub fn has_object_root(&self) -> bool {
        let kind = JsonRef::from(self.0.raw()).member("type");
        kind.is_some_and(|kind| kind.text() == "\"object\"")
    }

    /// For `outputSchema`: an object root until 2025-11-25 (TOL-15), any schema after (TOL-16).
    pub(super) fn fits_output(&self, shape: Shape) -> bool {
        shape.revision().is_none_or(|at| at.has_any_structured_content()) || self.has_object_root()
    }
}

impl Default for Schema {
    fn default() -> Self {
        // Every tool begins with it, so it is made once.
        static ANY_OBJECT: LazyLock<Schema> = LazyLock::new(|| json!({ "type": "object" }).into());
        ANY_OBJECT.clone()
    }
}

impl<T: Into<RawJson>> From<T> for Schema {
    fn from(json: T) -> Self {
        Self(json.into())
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawJson::deserialize(deserializer).map(Self)
    }
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl From<Id> for RawJson {
    fn from(id: Id) -> Self {
        // An id holds nothing but JSON text.
        Self::of(&id).unwrap_or_else(|_| RawValue::NULL.into())
    }
}

// A progress token, and the id of a request or a subscription: echoed with its type (PRG-09,
// SUB-03, CAN-13).
same_in_every_revision!(Id);

impl SerializeAt for RawJson {
    fn serialize_at<S: Serializer>(&self, _: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        self.serialize(serializer)
    }

    fn write_at(&self, _: Shape, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        out.extend_from_slice(self.text().as_bytes());
        Ok(())
    }
}

impl SerializeAt for Schema {
    fn serialize_at<S: Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize_at(shape, serializer)
    }

    fn write_at(&self, shape: Shape, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        self.0.write_at(shape, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_json_keeps_member_order_and_digits() {
        let text = r#"{"z":1,"a":0.10000000000000000001}"#;
        let json: RawJson = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&json).unwrap(), text);
    }

    #[test]
    fn raw_json_can_be_read_from_a_tree() {
        let json: RawJson = serde_json::from_value(json!({ "a": [1] })).unwrap();
        assert_eq!(json.text(), r#"{"a":[1]}"#);
    }

    #[test]
    fn the_root_type_of_a_schema_is_found_wherever_it_stands() {
        let root = |schema: Value| Schema::from(schema).has_object_root();
        assert!(root(json!({ "properties": { "type": { "type": "array" } }, "type": "object" })));
        assert!(!root(json!({ "properties": { "type": "object" } })));
        assert!(!root(json!({ "type": ["object", "null"] })));
        assert!(!root(json!(true)));
        assert!(Schema::default().has_object_root());
    }
}
