//! What is taken out of a generated schema, because hosts refuse it or warn of it.
//!
//! Knows JSON Schema and what hosts do; must not know types. Which host refuses what is written down
//! in the lint of `taut doctor`.

use schemars::Schema;
use schemars::transform::{RecursiveTransform, Transform as _};
use serde_json::{Map, Value};

use super::once;
use crate::mcp;

/// The formats that JSON Schema 2020-12 defines. Generators add names of Rust's numbers, such as
/// `uint64`, with which some hosts load no tool at all.
const FORMATS: [&str; 19] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// Definitions that are used once stand where they are used.
fn without_references(root: &mut Schema) {
    let mut schema = std::mem::take(root).to_value();
    once::in_place(&mut schema);
    if let Ok(schema) = schema.try_into() {
        *root = schema;
    }
}

/// For what is read. `null` is read where a value may be left out, but a schema does not offer it: a
/// field that may be left out has one type, and is not required.
pub(super) fn for_arguments(root: &mut Schema) {
    each(root, without_null);
    without_references(root);
}

/// For what is written. `null` stays: it is written. It is an alternative of its own, because hosts refuse lists of
/// types.
pub(super) fn for_answers(root: &mut Schema) {
    each(root, null_apart);
    without_references(root);
}

/// Makes each part of a schema plain, and treats `null` with the given function.
fn each(root: &mut Schema, null: fn(&mut Map<String, Value>)) {
    RecursiveTransform(|schema: &mut Schema| {
        if let Some(members) = schema.as_object_mut() {
            plain(members);
            null(members);
        }
    })
    .transform(root);
}

/// `{"type": ["string", "null"], …}` becomes `{"anyOf": [{"type": "string", …}, {"type": "null"}]}`. What describes
/// the value stays outside.
fn null_apart(members: &mut Map<String, Value>) {
    const DESCRIBES: [&str; 4] = ["title", "description", "default", "examples"];
    let one = match members.get("type") {
        Some(Value::Array(types))
            if types.len() == 2 && types.iter().any(|kind| kind == "null") =>
        {
            types.iter().find(|kind| *kind != "null").cloned()
        }
        _ => None,
    };
    let Some(one) = one.filter(|_| !members.contains_key("anyOf")) else { return };
    let (outside, mut inside): (Map<_, _>, Map<_, _>) = std::mem::take(members)
        .into_iter()
        .partition(|(name, _)| DESCRIBES.contains(&name.as_str()));
    inside.insert("type".into(), one);
    if let Some(Value::Array(values)) = inside.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    *members = outside;
    members.insert("anyOf".into(), serde_json::json!([inside, { "type": "null" }]));
}

/// A whole number of an integer's schema is written as one: readers of integers refuse `0.0`.
fn whole_numbers(members: &mut Map<String, Value>) {
    let is = |kind: &str| match members.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        Some(one) => one == kind,
        None => false,
    };
    if is("integer") && !is("number") {
        members.values_mut().for_each(make_whole);
    }
}

fn make_whole(value: &mut Value) {
    if let Value::Array(values) = value {
        return values.iter_mut().for_each(make_whole);
    }
    let number = value.as_f64().filter(|_| value.is_f64());
    if let Some(whole) = number.and_then(mcp::whole) {
        *value = whole.into();
    }
}

fn plain(members: &mut Map<String, Value>) {
    whole_numbers(members);
    let format = members.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| !FORMATS.contains(&format)) {
        members.remove("format");
    }
    // `true` is a schema, too, but few hosts know.
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        for property in properties.values_mut().filter(|property| **property == Value::Bool(true)) {
            *property = Value::Object(Map::new());
        }
    }
}

fn without_null(members: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = members.get_mut("type")
        && types.iter().any(|kind| kind != "null")
    {
        types.retain(|kind| kind != "null");
        if let [one] = &types[..] {
            let one = one.clone();
            members.insert("type".into(), one);
        }
    }
    if let Some(Value::Array(values)) = members.get_mut("enum")
        && values.iter().any(|value| !value.is_null())
    {
        values.retain(|value| !value.is_null());
    }
    for word in ["anyOf", "oneOf"] {
        let Some(Value::Array(choices)) = members.get_mut(word) else { continue };
        let before = choices.len();
        choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
        if choices.len() == before || choices.len() > 1 {
            continue;
        }
        if let Some(Value::Array(mut choices)) = members.remove(word)
            && let Some(Value::Object(only)) = choices.pop()
        {
            only.into_iter().for_each(|(name, value)| {
                members.entry(name).or_insert(value);
            });
        }
    }
    if members.get("default") == Some(&Value::Null) {
        members.remove("default");
    }
}
