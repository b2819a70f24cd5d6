//! From a Rust type to the schema that a host sees, and to the form that a user fills in.

mod fields;
mod form;
mod hosts;
mod once;
mod order;

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema as Described};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::mcp::{PromptArgument, Schema};
use fields::in_order;

pub(crate) use fields::fields_of;
pub(crate) use form::form_of;

/// A tool without arguments: `async |_: NoArgs, _call| …`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
pub struct NoArgs {}

impl JsonSchema for NoArgs {
    fn schema_name() -> Cow<'static, str> {
        "NoArgs".into()
    }

    /// Written out, because the doc comment is for programmers: derived, it would be the
    /// description of every tool without one.
    fn json_schema(_: &mut schemars::SchemaGenerator) -> Described {
        schemars::json_schema!({ "type": "object", "additionalProperties": false })
    }
}

/// What a type says about itself.
pub(crate) struct Shape {
    pub(crate) schema: Schema,
    /// Its doc comment, which describes the tool rather than the arguments.
    pub(crate) description: Option<String>,
}

/// The schema of a tool's arguments.
pub(crate) fn input_schema_of<A: JsonSchema + DeserializeOwned>() -> Shape {
    let mut root = root_of::<A>();
    hosts::for_arguments(&mut root);
    let fields = fields_of::<A>();
    // TOL-03: what is read as a struct is an object, also where its schema says only which (an
    // enum with `tag` and `content`).
    if fields.is_some() {
        root.ensure_object().entry("type").or_insert_with(|| "object".into());
    }
    // Without it, models have been seen to invent arguments for a tool that has none.
    if fields.is_some_and(<[_]>::is_empty) {
        root.ensure_object().entry("additionalProperties").or_insert(Value::Bool(false));
    }
    shape(root, &order::declared::<A>())
}

/// The schema of what a tool answers: the same as it is written.
pub(crate) fn output_schema_of<T: JsonSchema>() -> Described {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut root = settings.into_generator().into_root_schema_for::<T>();
    hosts::for_answers(&mut root);
    root
}

/// The doc comment of a type.
pub(crate) fn description_of<T: JsonSchema>() -> Option<String> {
    root_of::<T>().get("description").and_then(Value::as_str).map(str::to_owned)
}

/// The fields that have to be there.
pub(crate) fn required_by<T: JsonSchema>() -> Vec<String> {
    let root = root_of::<T>();
    let required = root.get("required").and_then(Value::as_array).into_iter().flatten();
    required.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn root_of<T: JsonSchema>() -> Described {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>()
}

/// A schema as a host sees it, with what belongs to the tool taken off its root.
pub(crate) fn shape(mut root: Described, declared: &[&'static [&'static str]]) -> Shape {
    // The dialect is the default one (TOL-28), and the type's name means nothing to a host.
    root.remove("$schema");
    root.remove("title");
    let description = match root.remove("description") {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    // Some models' providers refuse an object that does not say which members it has.
    if root.get("type").and_then(Value::as_str) == Some("object") {
        root.ensure_object().entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    Shape { schema: order::in_order(root.as_value(), declared).into(), description }
}

/// The blanks of a prompt: the fields of `T`, in their order.
pub(crate) fn arguments_of<T: JsonSchema + DeserializeOwned>() -> Vec<PromptArgument> {
    let root = root_of::<T>().to_value();
    let required = required_by::<T>();
    let Some(fields) = root["properties"].as_object() else { return Vec::new() };
    let argument = |(name, field): (&String, &Value)| {
        let argument = PromptArgument::new(name).required(required.contains(name));
        match field["description"].as_str() {
            Some(description) => argument.description(description),
            None => argument,
        }
    };
    let mut fields: Vec<_> = fields.iter().collect();
    in_order(&mut fields, fields_of::<T>(), |(name, _)| name);
    fields.into_iter().map(argument).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Adds.
    #[derive(serde::Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Add {
        /// The first.
        a: f64,
        b: Option<f64>,
    }

    #[test]
    fn the_doc_comment_is_lifted_and_the_root_is_bare() {
        let shape = input_schema_of::<Add>();
        assert_eq!(shape.description.as_deref(), Some("Adds."));
        let value: Value = shape.schema.json().parse().unwrap();
        assert_eq!(value["type"], "object");
        assert_eq!(value["required"], json!(["a"]));
        assert_eq!(value["properties"]["a"]["description"], "The first.");
        assert!(value.get("$schema").is_none() && value.get("title").is_none());
        assert!(input_schema_of::<NoArgs>().schema.has_object_root());
    }

    #[test]
    fn a_prompts_arguments_are_the_fields() {
        let arguments = arguments_of::<Add>();
        assert_eq!(arguments[0].name, "a");
        assert_eq!((arguments[0].required, arguments[1].required), (Some(true), Some(false)));
    }
}
