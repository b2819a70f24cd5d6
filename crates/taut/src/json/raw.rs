//! A JSON value that is kept and passed on as text.
//!
//! Knows JSON text; must not know who sends it. Text keeps the order of members and the digits of
//! numbers, costs one copy to read, and is shared when cloned.

use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::text::JsonRef;

/// An open JSON object: the settings of a capability or an extension.
pub type JsonObject = Map<String, Value>;

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
    fn from(text: JsonRef<'_>) -> Self {
        text.raw().into()
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

#[cfg(test)]
mod tests {
    use serde_json::json;

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
}
