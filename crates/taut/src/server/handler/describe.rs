//! What the types of a handler say about it: descriptions, schemas, arguments.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::reply::IntoReply;
use crate::mcp::{Prompt, PromptArgument, Tool};
use crate::server::catalog::{Spec, schema_fault};
use crate::server::schema::{arguments_of, fields_of, input_schema_of, schema_of};

/// What is wrong with a tool's description, if anything.
pub(crate) fn faults_of(tool: &Spec<Tool>) -> Vec<String> {
    let mut faults = Vec::new();
    // TOL-21
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if tool.name.is_empty() || tool.name.len() > 128 || !tool.name.chars().all(plain) {
        faults.push(format!("tool name {:?}: use 1 to 128 of A-Z a-z 0-9 _ - .", tool.name));
    }
    faults.extend(tool.known().and_then(schema_fault));
    faults
}

/// A tool with what its types say about it, where it does not say so itself.
pub(crate) fn tool_spec<A: DeserializeOwned + JsonSchema, R: IntoReply>(tool: Tool) -> Spec<Tool> {
    // Whether the schema will do has to be known before anything is served. A struct always does;
    // for everything else it has to be made.
    match fields_of::<A>() {
        Some(_) => Spec::later(tool, described::<A, R>),
        None => Spec::new(described::<A, R>(tool)),
    }
}

/// A prompt with what its type says about it, where it does not say so itself.
pub(crate) fn prompt_spec<A: DeserializeOwned + JsonSchema>(mut prompt: Prompt) -> Spec<Prompt> {
    fn explained<A: JsonSchema>(mut prompt: Prompt) -> Prompt {
        prompt.description = prompt.description.or_else(|| schema_of::<A>().description);
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
