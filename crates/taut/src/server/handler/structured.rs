//! Data that a tool answers with, as `structuredContent`, and the schema of that.
//!
//! `structuredContent` is an object: older revisions allow nothing else, and several hosts expect
//! nothing else. What is no object stands in one, as its member `result`, in every revision; Python's
//! SDK does the same. Knows values and schemas; must not know how a handler runs.

use std::io;

use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema as Described, json_schema};
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};
use serde_json::value::RawValue;

use crate::mcp::{CallToolResult, RawJson, Schema};
use crate::server::schema::{output_schema_of, shape};

/// The member that holds what is no object.
const RESULT: &str = "result";

/// Data as text, and as data beside it (TOL-14).
pub(super) fn with_data<T: Serialize>(value: &T) -> Result<CallToolResult, serde_json::Error> {
    let text = json_text(value)?;
    let data = as_object(&text)?;
    Ok(CallToolResult::with_text(text).structured_content(data))
}

/// A number or a bool: its words, and the same as data. Words that are no JSON, such as `NaN`, are a
/// failure: the schema promises a number.
pub(super) fn with_scalar(words: String) -> CallToolResult {
    match as_object(&words) {
        Ok(data) => CallToolResult::with_text(words).structured_content(data),
        Err(_) => CallToolResult::with_error(format!("the result is {words}, which JSON has not")),
    }
}

/// The schema of what [`with_data`] and [`with_scalar`] make of a `T`. Nothing for types whose values
/// are objects at times.
pub(super) fn schema_of<T: JsonSchema>() -> Option<Schema> {
    let mut root = output_schema_of::<T>();
    let root = if is_object(&root, root.as_value(), 0)? {
        root.ensure_object().entry("type").or_insert_with(|| "object".into());
        root
    } else {
        in_object(root)
    };
    Some(shape(root, &[]).schema)
}

fn as_object(json: &str) -> Result<RawJson, serde_json::Error> {
    let object =
        if json.starts_with('{') { json.to_owned() } else { format!("{{\"{RESULT}\":{json}}}") };
    RawValue::from_string(object).map(RawJson::from)
}

/// The schema of an object that holds a value of `inner` as its `result`.
fn in_object(mut inner: Described) -> Described {
    inner.remove("$schema");
    inner.remove("title");
    RecursiveTransform(|schema: &mut Described| {
        if let Some(Value::String(place)) = schema.get_mut("$ref")
            && place == "#"
        {
            *place = format!("#/properties/{RESULT}");
        }
    })
    .transform(&mut inner);
    let definitions = inner.remove("$defs");
    let mut outer =
        json_schema!({ "type": "object", "properties": { RESULT: inner }, "required": [RESULT] });
    if let Some(definitions) = definitions {
        outer.insert("$defs".into(), definitions);
    }
    outer
}

/// Whether every value of `schema` is an object, or none is; nothing if that depends.
fn is_object(root: &Described, schema: &Value, depth: usize) -> Option<bool> {
    /// References that lead to references.
    const DEEPEST: usize = 8;
    if depth > DEEPEST {
        return None;
    }
    let all = |choices: &[Value]| {
        let mut kinds = choices.iter().map(|choice| is_object(root, choice, depth + 1));
        let first = kinds.next()??;
        kinds.all(|kind| kind == Some(first)).then_some(first)
    };
    if let Some(kind) = schema.get("type") {
        return match kind {
            Value::Array(kinds) if kinds.iter().any(|kind| kind == "object") => None,
            kind => Some(kind == "object"),
        };
    }
    if let Some(place) = schema.get("$ref").and_then(Value::as_str) {
        let found = root.as_value().pointer(place.strip_prefix('#')?)?;
        return is_object(root, found, depth + 1);
    }
    for word in ["oneOf", "anyOf"] {
        if let Some(Value::Array(choices)) = schema.get(word) {
            return all(choices);
        }
    }
    match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => Some(value.is_object()),
        (None, Some(Value::Array(values))) if !values.iter().any(Value::is_object) => Some(false),
        _ => None,
    }
}

/// JSON in which a whole number is written as one: `3`, not `3.0`.
fn json_text<T: Serialize>(value: &T) -> Result<String, serde_json::Error> {
    let mut text = Vec::with_capacity(128);
    value.serialize(&mut Serializer::with_formatter(&mut text, WholeNumbers))?;
    String::from_utf8(text).map_err(serde::ser::Error::custom)
}

struct WholeNumbers;

impl Formatter for WholeNumbers {
    fn write_f32<W: ?Sized + io::Write>(&mut self, out: &mut W, value: f32) -> io::Result<()> {
        // Not by way of `f64`, which has other digits.
        if is_whole(value.into()) {
            return write!(out, "{value:.0}");
        }
        serde_json::ser::CompactFormatter.write_f32(out, value)
    }

    fn write_f64<W: ?Sized + io::Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        if is_whole(value) {
            return write!(out, "{value:.0}");
        }
        serde_json::ser::CompactFormatter.write_f64(out, value)
    }
}

/// Whether a reader that has only floating point reads the same number from it without a fraction.
fn is_whole(value: f64) -> bool {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    value.fract() == 0.0 && value.abs() < EXACT && !(value == 0.0 && value.is_sign_negative())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whole_numbers_are_written_without_a_fraction() {
        let cases =
            [(3.0, "3"), (-2.0, "-2"), (0.0, "0"), (-0.0, "-0.0"), (0.5, "0.5"), (1e300, "1e+300")];
        for (number, text) in cases {
            assert_eq!(json_text(&number).unwrap(), text);
        }
        assert_eq!(json_text(&(16_777_216f32, 0.1f32)).unwrap(), "[16777216,0.1]");
        assert_eq!(json_text(&json!({ "a": [3.0, "3.0"] })).unwrap(), r#"{"a":[3,"3.0"]}"#);
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    enum Tree {
        Leaf(i64),
        Fork(Vec<Self>),
    }

    #[derive(JsonSchema)]
    #[serde(untagged)]
    #[allow(dead_code)]
    enum Nest {
        Leaf(i64),
        Fork(Vec<Self>),
    }

    #[test]
    fn what_is_no_object_is_described_as_the_result_in_one() {
        let schema = |schema: Option<Schema>| schema.map(|s| s.json().parse::<Value>().unwrap());
        let number = json!({ "type": "object", "required": ["result"],
            "properties": { "result": { "type": "integer" } } });
        assert_eq!(schema(schema_of::<i64>()), Some(number));
        let list = json!({ "type": "object", "required": ["result"],
            "properties": { "result": { "type": "array", "items": { "type": "string" } } } });
        assert_eq!(schema(schema_of::<Vec<String>>()), Some(list));
        // Every variant is an object, so the enum is one.
        assert_eq!(schema(schema_of::<Tree>()).unwrap()["type"], "object");
        assert!(schema(schema_of::<Tree>()).unwrap().get("oneOf").is_some());
        let nest = schema(schema_of::<Nest>()).unwrap();
        let own = &nest["properties"]["result"]["anyOf"][1]["items"]["$ref"];
        assert_eq!(own, "#/properties/result", "{nest}");
        // Sometimes an object, sometimes not: there is nothing to promise.
        assert_eq!(schema_of::<Value>(), None);
        assert_eq!(schema_of::<Option<std::collections::BTreeMap<String, u8>>>(), None);
    }
}
