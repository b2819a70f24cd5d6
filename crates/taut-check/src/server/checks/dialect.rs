//! Whether a value is a valid JSON Schema, as far as every dialect since draft 6 agrees on it.

use serde_json::Value;

use crate::seen::is_count;

/// The types that JSON Schema knows.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Members whose value is a schema.
const ONE: [&str; 9] = [
    "additionalProperties",
    "contains",
    "else",
    "if",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Members whose value has a schema for each name.
const NAMED: [&str; 5] =
    ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// Members whose value is a list of schemas.
const LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];

/// How deep a schema is looked into.
const DEPTH: usize = 64;

/// What is wrong with a schema, in words; nothing for one of a dialect of its own.
pub(super) fn fault(schema: &Value) -> Option<String> {
    let known =
        |dialect: &Value| dialect.as_str().is_some_and(|it| it.contains("//json-schema.org/draft"));
    match schema.get("$schema") {
        Some(dialect) if !known(dialect) => None,
        _ => look(schema, schema, "", DEPTH),
    }
}

fn look(root: &Value, schema: &Value, at: &str, depth: usize) -> Option<String> {
    let members = match schema {
        Value::Object(members) if depth > 0 => members,
        Value::Object(_) | Value::Bool(_) => return None,
        other => return Some(format!("{}is {}", place(at), super::kind(other))),
    };
    for (name, value) in members {
        let at = format!("{at}/{name}");
        let name = name.as_str();
        let within =
            |value: &Value, key: &str| look(root, value, &format!("{at}/{key}"), depth - 1);
        let odd = |wrong: bool| wrong.then(|| format!("{}is {}", place(&at), super::short(value)));
        let found = if ONE.contains(&name) {
            look(root, value, &at, depth - 1)
        } else if NAMED.contains(&name) {
            match value.as_object() {
                Some(all) => all.iter().find_map(|(key, one)| within(one, key)),
                None => odd(true),
            }
        } else if LISTS.contains(&name) {
            match value.as_array().filter(|list| !list.is_empty()) {
                Some(list) => list
                    .iter()
                    .zip(0..)
                    .find_map(|(one, n): (_, usize)| within(one, &n.to_string())),
                None => odd(true),
            }
        } else {
            match name {
                "items" => match value.as_array() {
                    // A list in the drafts before 2020-12.
                    Some(list) => list.iter().find_map(|one| within(one, "0")),
                    None => look(root, value, &at, depth - 1),
                },
                "type" => odd(!is_type(value)),
                "required" => odd(!all(value, Value::is_string)),
                "enum" => odd(!value.is_array()),
                "description" | "title" | "pattern" | "format" => odd(!value.is_string()),
                "minimum" | "maximum" | "multipleOf" => odd(!value.is_number()),
                "maxItems" | "maxLength" | "maxProperties" | "minItems" | "minLength"
                | "minProperties" => odd(!is_count(value)),
                "$ref" => dangling(root, value).map(|what| format!("{}{what}", place(&at))),
                _ => None,
            }
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Where in the schema, as the beginning of a sentence.
fn place(at: &str) -> String {
    if at.is_empty() { String::new() } else { format!("{at} ") }
}

fn all(value: &Value, fits: impl Fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|list| list.iter().all(fits))
}

fn is_type(value: &Value) -> bool {
    let known = |one: &Value| one.as_str().is_some_and(|one| TYPES.contains(&one));
    known(value) || value.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(known))
}

/// What is wrong with a reference. One to another document is not followed, nor is one to an anchor.
fn dangling(root: &Value, value: &Value) -> Option<String> {
    let Some(text) = value.as_str() else { return Some(format!("is {}", super::kind(value))) };
    let pointer = text.strip_prefix('#').filter(|it| it.is_empty() || it.starts_with('/'))?;
    let plain = !pointer.contains('%');
    (plain && root.get("$id").is_none() && root.pointer(pointer).is_none())
        .then(|| format!("leads nowhere: {text:?}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_that_are_valid_have_no_fault() {
        let deep = json!({ "type": "object", "properties": {
            "a": { "type": ["string", "null"], "enum": ["x", null], "pattern": "^x" },
            "b": { "type": "array", "items": { "$ref": "#/$defs/One" }, "maxItems": 3 },
            "c": true, "d": { "anyOf": [{ "type": "integer", "minimum": 0 }, { "const": 5 }] },
            // A property may have the name of a keyword.
            "type": { "type": "string" }, "required": { "type": "boolean", "default": false },
        }, "required": ["a"], "additionalProperties": false, "$defs": { "One": {} }, "x-own": 5 });
        for schema in [
            deep,
            json!({ "type": "object" }),
            json!({ "$schema": "https://example.com/own", "type": 5 }),
        ] {
            assert_eq!(fault(&schema), None);
        }
    }

    #[test]
    fn what_no_dialect_allows_is_a_fault() {
        for (property, told) in [
            (json!({ "type": "str" }), "/properties/a/type is \"str\""),
            (json!("string"), "/properties/a is a string"),
            (json!({ "type": "string", "required": true }), "/properties/a/required is true"),
            (
                json!({ "$ref": "#/$defs/None" }),
                "/properties/a/$ref leads nowhere: \"#/$defs/None\"",
            ),
            (json!({ "anyOf": [] }), "/properties/a/anyOf is []"),
            (json!({ "type": "array", "items": "string" }), "/properties/a/items is a string"),
            (json!({ "enum": "x" }), "/properties/a/enum is \"x\""),
        ] {
            let schema = json!({ "type": "object", "properties": { "a": property } });
            assert_eq!(fault(&schema).as_deref(), Some(told));
        }
    }
}
