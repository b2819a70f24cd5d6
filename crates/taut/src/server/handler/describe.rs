//! What the types of a handler say about it: descriptions, schemas, arguments.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::reply::IntoReply;
use crate::json::JsonRef;
use crate::mcp::{Prompt, PromptArgument, Tool};
use crate::server::catalog::{Spec, schema_fault};
use crate::server::schema::{arguments_of, description_of, fields_of, input_schema_of};

/// What is wrong with a tool's description, if anything.
pub(crate) fn faults_of(tool: &Spec<Tool>) -> Vec<String> {
    let mut faults = Vec::new();
    // TOL-21
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if tool.name.is_empty() || tool.name.len() > 128 || !tool.name.chars().all(plain) {
        faults.push(format!("tool name {:?}: use 1 to 128 of A-Z a-z 0-9 _ - .", tool.name));
    }
    if let Some(known) = tool.known() {
        faults.extend(schema_fault(known).or_else(|| description_fault(known)));
    }
    faults
}

/// A tool without arguments has to be described by hand: its name is all that a model would have.
fn description_fault(tool: &Tool) -> Option<String> {
    let (name, schema) = (&tool.name, JsonRef::from(tool.input_schema.json().raw()));
    let says = |member, text| schema.member(member).is_some_and(|value| value.text() == text);
    let no_arguments = says("properties", "{}") && says("additionalProperties", "false");
    (no_arguments && tool.description.is_none()).then(|| {
        format!(
            "tool {name:?} has no arguments and no description: write ({name:?}, \"What it does.\") \
             instead of its name, or Tool::new({name:?}).description(…)"
        )
    })
}

/// A tool with what its types say about it, where it does not say so itself.
pub(crate) fn tool_spec<A: DeserializeOwned + JsonSchema, R: IntoReply>(tool: Tool) -> Spec<Tool> {
    // Whether the schema will do has to be known before anything is served. A struct always does;
    // for everything else it has to be made. Without fields it costs nothing, and then a missing
    // description is told, too.
    match fields_of::<A>() {
        Some([_, ..]) => Spec::later(tool, described::<A, R>),
        _ => Spec::new(described::<A, R>(tool)),
    }
}

/// A prompt with what its type says about it, where it does not say so itself.
pub(crate) fn prompt_spec<A: DeserializeOwned + JsonSchema>(mut prompt: Prompt) -> Spec<Prompt> {
    fn explained<A: JsonSchema>(mut prompt: Prompt) -> Prompt {
        prompt.description = prompt.description.or_else(description_of::<A>);
        prompt
    }
    fn with_arguments<A: DeserializeOwned + JsonSchema>(mut prompt: Prompt) -> Prompt {
        prompt.arguments = Some(arguments_of::<A>()).filter(|arguments| !arguments.is_empty());
        explained::<A>(prompt)
    }
    if prompt.arguments.is_some() {
        return Spec::later(prompt, explained::<A>);
    }
    // Their names are known without a schema, and enough to say what can be completed.
    match fields_of::<A>() {
        Some(names) => {
            prompt.arguments = Some(names.iter().copied().map(PromptArgument::new).collect());
            Spec::later(prompt, with_arguments::<A>)
        }
        None => Spec::new(with_arguments::<A>(prompt)),
    }
}

fn described<A: DeserializeOwned + JsonSchema, R: IntoReply>(mut tool: Tool) -> Tool {
    let shape = input_schema_of::<A>();
    tool.input_schema = shape.schema;
    tool.description = tool.description.or(shape.description);
    tool.output_schema = tool.output_schema.or_else(R::output_schema);
    tool
}
