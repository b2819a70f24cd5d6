//! A schema for people, whole: every field with its type, range, default and description, nested fields
//! below it.
//!
//! Pure. Follows references into the same schema, as deep and as far as anybody reads. Must not judge.

use std::fmt::Write as _;

use serde_json::Value;

use crate::arguments::{parameters, reference};

/// How deep fields within fields are shown.
const DEPTH: usize = 6;

/// Fields that are shown of one schema at most.
const MOST: usize = 500;

/// The fields of a schema, one to a line.
pub(crate) fn fields(schema: &Value) -> String {
    let mut text = String::new();
    let mut left = MOST;
    object(&mut text, schema, schema, 1, &mut left);
    if left == 0 {
        text.push_str("  … and more: --json shows all of it\n");
    }
    text
}

fn object(text: &mut String, root: &Value, schema: &Value, depth: usize, left: &mut usize) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    // With the root's definitions, so that references lead somewhere.
    let mut whole = schema.clone();
    if let Some(members) = whole.as_object_mut() {
        for name in ["$defs", "definitions"] {
            if let Some(all) = root.get(name) {
                members.entry(name).or_insert_with(|| all.clone());
            }
        }
    }
    for field in parameters(&whole) {
        if *left == 0 {
            return;
        }
        *left -= 1;
        let property = resolved(root, &properties[&field.name]);
        let mut about = Vec::new();
        if !field.required {
            about.push("optional".to_owned());
        }
        about.extend(limits(property));
        let about =
            if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
        let description = one_line(&field.description);
        let (name, kind) = (one_line(&field.name), one_line(&field.kind));
        let line = format!("{}{name}: {kind}{about}  {description}", "  ".repeat(depth));
        let _ = writeln!(text, "{}", line.trim_end());
        if depth < DEPTH {
            object(text, root, inside(root, property), depth + 1, left);
        }
    }
}

/// What is inside a field: of a list, what it is a list of; of alternatives, the one that has fields.
fn inside<'a>(root: &'a Value, property: &'a Value) -> &'a Value {
    let item = property.get("items").map_or(property, |items| resolved(root, items));
    let ways = ["anyOf", "oneOf"].iter().filter_map(|word| item.get(word)?.as_array()).flatten();
    let mut with_fields =
        ways.map(|way| resolved(root, way)).filter(|way| way.get("properties").is_some());
    with_fields.next().unwrap_or(item)
}

fn resolved<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..DEPTH {
        match reference(root, schema) {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

/// The rest of what a schema says about a value, in words.
fn limits(schema: &Value) -> Vec<String> {
    let mut all = Vec::new();
    let written = |word: &str| schema.get(word).map(Value::to_string);
    let range = |least: Option<String>, most: Option<String>, unit: &str| match (least, most) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}{unit}")),
        (Some(least), None) => Some(format!("{least}{unit} or more")),
        (None, Some(most)) => Some(format!("{most}{unit} or less")),
        (None, None) => None,
    };
    all.extend(range(written("minimum"), written("maximum"), ""));
    all.extend(written("exclusiveMinimum").map(|least| format!("more than {least}")));
    all.extend(written("exclusiveMaximum").map(|most| format!("less than {most}")));
    all.extend(written("multipleOf").map(|step| format!("a multiple of {step}")));
    all.extend(range(written("minLength"), written("maxLength"), " characters"));
    all.extend(range(written("minItems"), written("maxItems"), " items"));
    for word in ["format", "pattern"] {
        let text = schema.get(word).and_then(Value::as_str);
        // The size of a number in memory is nothing to a person.
        let text = text.filter(|text| !["double", "float", "int32", "int64"].contains(text));
        all.extend(text.map(|text| format!("{word} {}", one_line(text))));
    }
    let default = schema.get("default").filter(|value| !value.is_null());
    all.extend(default.map(|value| format!("default {value}")));
    all
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_is_shown_whole() {
        let schema = json!({
            "type": "object", "required": ["who"],
            "properties": {
                "who": { "$ref": "#/$defs/Person" },
                "times": { "type": "integer", "minimum": 1, "maximum": 9, "default": 3 },
                "tags": { "type": "array", "maxItems": 2, "items": { "type": "string" } },
                "stops": { "type": "array", "items": { "type": "object", "properties": {
                    "at": { "type": "string", "format": "date-time" } } } },
            },
            "$defs": { "Person": { "type": "object", "required": ["name"], "description": "Who it is.",
                "properties": {
                    "name": { "type": "string", "minLength": 1, "description": "A\nname." },
                    "friend": { "$ref": "#/$defs/Person" },
                } } },
        });
        let text = fields(&schema);
        for line in [
            "  who: object\n    name: string (1 characters or more)  A name.\n",
            "    friend: object (optional)\n      name: string",
            "  times: integer (optional, 1 to 9, default 3)\n",
            "  tags: string[] (optional, 2 items or less)\n",
            "  stops: object[] (optional)\n    at: string (optional, format date-time)\n",
        ] {
            assert!(text.contains(line), "{line:?} in\n{text}");
        }
        // A person has a friend who has a friend.
        assert!(text.lines().count() < 30, "{text}");
    }
}
