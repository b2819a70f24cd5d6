//! Definitions that are used once, written where they are used: several hosts follow no references.
//!
//! Knows JSON Schema's references; must not know types or hosts.

use serde_json::{Map, Value};

const PREFIX: &str = "#/$defs/";

/// Members that say something about a value and restrict nothing: beside a reference they win.
const NOTES: [&str; 4] = ["title", "description", "default", "examples"];

/// Puts each definition that one reference leads to in the place of that reference.
pub(super) fn in_place(root: &mut Value) {
    let Some(Value::Object(definitions)) =
        root.as_object_mut().and_then(|members| members.remove("$defs"))
    else {
        return;
    };
    let mut uses = Vec::new();
    uses_in(root, &mut uses);
    definitions.values().for_each(|definition| uses_in(definition, &mut uses));
    let is_used_once = |name: &String| {
        let leads_into = |used: &&String| *used == name || used.starts_with(&format!("{name}/"));
        // A reference to a part of it would lead nowhere.
        let mut leading = uses.iter().filter(leads_into);
        leading.next() == Some(name) && leading.next().is_none()
    };
    let (mut once, mut rest): (Map<_, _>, Map<_, _>) =
        definitions.into_iter().partition(|(name, _)| is_used_once(name));
    place(root, &mut once);
    rest.values_mut().for_each(|definition| place(definition, &mut once));
    rest.append(&mut once);
    if let Some(members) = root.as_object_mut()
        && !rest.is_empty()
    {
        members.insert("$defs".into(), Value::Object(rest));
    }
}

/// The name of the definition that a schema refers to.
fn used_by(members: &Map<String, Value>) -> Option<&str> {
    members.get("$ref")?.as_str()?.strip_prefix(PREFIX)
}

/// The names of all definitions that a schema refers to, as often as it does.
fn uses_in(schema: &Value, uses: &mut Vec<String>) {
    if let Some(name) = schema.as_object().and_then(used_by) {
        uses.push(name.to_owned());
    }
    parts_of(schema).for_each(|part| uses_in(part, uses));
}

/// Replaces the references in a schema by the definitions of `once`.
fn place(schema: &mut Value, once: &mut Map<String, Value>) {
    if let Value::Object(members) = schema
        && let Some(Value::Object(definition)) = used_by(members).and_then(|name| once.get(name))
        && members
            .keys()
            .all(|name| NOTES.contains(&name.as_str()) || !definition.contains_key(name))
    {
        let name = used_by(members).unwrap_or_default().to_owned();
        members.remove("$ref");
        if let Some(Value::Object(definition)) = once.remove(&name) {
            for (name, value) in definition {
                members.entry(name).or_insert(value);
            }
        }
        // What stands here now may be a reference again.
        return place(schema, once);
    }
    match schema {
        Value::Array(parts) => parts.iter_mut().for_each(|part| place(part, once)),
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                match member {
                    _ if is_data(name) => {}
                    Value::Object(named) if holds_schemas_by_name(name) => {
                        named.values_mut().for_each(|part| place(part, once));
                    }
                    part => place(part, once),
                }
            }
        }
        _ => {}
    }
}

/// Each schema directly inside a schema.
fn parts_of(schema: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match schema {
        Value::Array(parts) => Box::new(parts.iter()),
        Value::Object(members) => Box::new(
            members.iter().filter(|(name, _)| !is_data(name)).flat_map(|(name, member)| {
                let named = member.as_object().filter(|_| holds_schemas_by_name(name));
                let member = named.is_none().then_some(member);
                member.into_iter().chain(named.into_iter().flat_map(Map::values))
            }),
        ),
        _ => Box::new(std::iter::empty()),
    }
}

fn is_data(member: &str) -> bool {
    ["const", "enum", "default", "examples"].contains(&member)
}

fn holds_schemas_by_name(member: &str) -> bool {
    ["properties", "patternProperties", "dependentSchemas", "$defs"].contains(&member)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn placed(mut schema: Value) -> Value {
        in_place(&mut schema);
        schema
    }

    #[test]
    fn what_is_used_once_stands_in_its_place_and_what_is_used_twice_does_not() {
        let style = json!({ "type": "string", "enum": ["a"], "description": "Of the type." });
        let schema = json!({
            "properties": {
                "style": { "$ref": "#/$defs/Style", "description": "Of the field." },
                "one": { "$ref": "#/$defs/Point" },
                "two": { "items": { "$ref": "#/$defs/Point" } },
                "default": { "anyOf": [{ "$ref": "#/$defs/Outer" }, { "type": "null" }] },
                "data": { "default": { "$ref": "#/$defs/Style" } },
            },
            "$defs": {
                "Style": style,
                "Point": { "type": "object" },
                "Outer": { "properties": { "inner": { "$ref": "#/$defs/Inner" } } },
                "Inner": { "type": "integer" },
            },
        });
        let expected = json!({
            "properties": {
                "style": { "type": "string", "enum": ["a"], "description": "Of the field." },
                "one": { "$ref": "#/$defs/Point" },
                "two": { "items": { "$ref": "#/$defs/Point" } },
                "default": {
                    "anyOf": [{ "properties": { "inner": { "type": "integer" } } }, { "type": "null" }],
                },
                "data": { "default": { "$ref": "#/$defs/Style" } },
            },
            "$defs": { "Point": { "type": "object" } },
        });
        assert_eq!(placed(schema), expected);
    }

    #[test]
    fn a_definition_that_leads_to_itself_or_is_led_into_stays() {
        let tree = json!({
            "properties": { "tree": { "$ref": "#/$defs/Tree" } },
            "$defs": { "Tree": { "items": { "$ref": "#/$defs/Tree" } } },
        });
        assert_eq!(placed(tree.clone()), tree);
        let part = json!({
            "properties": { "a": { "$ref": "#/$defs/A" }, "b": { "$ref": "#/$defs/A/items" } },
            "$defs": { "A": { "items": {} } },
        });
        assert_eq!(placed(part.clone()), part);
        // A circle that nothing leads into.
        let circle = json!({
            "type": "object",
            "$defs": { "A": { "items": { "$ref": "#/$defs/B" } }, "B": { "items": { "$ref": "#/$defs/A" } } },
        });
        assert_eq!(placed(circle.clone()), circle);
    }

    #[test]
    fn a_reference_at_the_root_becomes_what_it_leads_to() {
        let schema = json!({
            "title": "Question",
            "$ref": "#/$defs/Asked",
            "$defs": { "Asked": { "type": "object", "title": "Asked" } },
        });
        assert_eq!(placed(schema), json!({ "title": "Question", "type": "object" }));
        // What restricts the value in both places cannot be one.
        let both = json!({
            "properties": { "n": { "$ref": "#/$defs/N", "minimum": 1 } },
            "$defs": { "N": { "type": "integer", "minimum": 0 } },
        });
        assert_eq!(placed(both.clone()), both);
    }
}
