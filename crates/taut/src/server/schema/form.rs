//! From a Rust type to a form: flat, of plain fields, in the order declared. ELI-02, ELI-10.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::fields::{fields_of, in_order};
use crate::mcp::FormSchema;

/// Formats that a form knows; schemars adds others for numbers.
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

/// The form that fills in a `T`.
pub(crate) fn form_of<T: JsonSchema + DeserializeOwned>() -> Result<FormSchema, String> {
    let settings = SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    let root = schema.as_object_mut().ok_or("a form needs a struct with named fields")?;
    for outside in ["$schema", "title", "description", "$defs", "additionalProperties"] {
        root.remove(outside);
    }
    if let Some(Value::Object(fields)) = root.get_mut("properties") {
        for (name, field) in fields {
            plain_field(field).map_err(|reason| format!("field `{name}`: {reason}"))?;
        }
    }
    let mut form: FormSchema =
        serde_json::from_value(schema).map_err(|error| format!("not a form: {error}"))?;
    in_order(&mut form.fields, fields_of::<T>(), |(name, _)| name);
    Ok(form)
}

/// Makes one field as forms have it.
fn plain_field(field: &mut Value) -> Result<(), &'static str> {
    let members = field.as_object_mut().ok_or("of any type")?;
    // An `Option` is a field that may be left empty; `required` says so already.
    if let Some(Value::Array(types)) = members.get("type") {
        let kept = types.iter().find(|kind| *kind != "null").cloned();
        members.insert("type".into(), kept.unwrap_or(Value::Null));
    }
    if let Some(Value::Array(choices)) = members.remove("anyOf") {
        let kept = choices.into_iter().find(|choice| choice["type"] != "null");
        if let Some(Value::Object(kept)) = kept {
            kept.into_iter().for_each(|(name, value)| {
                members.entry(name).or_insert(value);
            });
        }
    }
    if let Some(Value::Array(choices)) = members.get_mut("oneOf") {
        choices.iter_mut().filter_map(Value::as_object_mut).for_each(title_choice);
        members.insert("type".into(), "string".into());
    }
    if let Some(Value::Array(values)) = members.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let format = members.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| !FORMATS.contains(&format)) {
        members.remove("format");
    }
    if members.get("default") == Some(&Value::Null) {
        members.remove("default");
    }
    match members.get("type").and_then(Value::as_str) {
        Some("string" | "number" | "integer" | "boolean" | "array") => Ok(()),
        _ => Err("a form has text, numbers, bools and enums without data"),
    }
}

/// A documented variant is a choice with a title.
fn title_choice(choice: &mut Map<String, Value>) {
    choice.remove("type");
    let title = choice.remove("description").or_else(|| choice.get("const").cloned());
    choice.insert("title".into(), title.unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(serde::Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Booking {
        /// How many nights?
        nights: u32,
        #[serde(default = "yes")]
        breakfast: bool,
        note: Option<String>,
        room: Room,
        view: Option<View>,
    }

    fn yes() -> bool {
        true
    }

    #[derive(serde::Deserialize, JsonSchema)]
    #[allow(dead_code)]
    #[serde(rename_all = "lowercase")]
    enum Room {
        /// For one.
        Single,
        /// For two.
        Double,
    }

    #[derive(serde::Deserialize, JsonSchema)]
    #[allow(dead_code)]
    enum View {
        Sea,
        Street,
    }

    #[test]
    fn eli_10_a_struct_becomes_a_flat_form_with_defaults_and_enums() {
        let form = form_of::<Booking>().unwrap();
        let names: Vec<_> = form.fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["nights", "breakfast", "note", "room", "view"]);
        let form = serde_json::to_value(form).unwrap();
        let fields = &form["properties"];
        assert_eq!(fields["nights"]["type"], "integer");
        assert_eq!(fields["nights"]["description"], "How many nights?");
        assert!(fields["nights"].get("format").is_none());
        assert_eq!(fields["breakfast"]["default"], true);
        assert_eq!(fields["note"]["type"], "string");
        assert_eq!(
            fields["room"]["oneOf"],
            json!([
                { "const": "single", "title": "For one." },
                { "const": "double", "title": "For two." },
            ])
        );
        assert_eq!(fields["view"]["enum"], json!(["Sea", "Street"]));
        assert_eq!(form["required"], json!(["nights", "room"]));
    }

    #[test]
    fn what_is_no_plain_field_is_named() {
        #[derive(serde::Deserialize, JsonSchema)]
        #[allow(dead_code)]
        struct Nested {
            inner: Booking,
        }
        assert!(form_of::<Nested>().unwrap_err().starts_with("field `inner`: "));
    }
}
