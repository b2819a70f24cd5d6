//! From typed handlers to those that a registry keeps, with what their types say about them.

use std::future::Future;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::call::Call;
use super::contents::{IntoContents, IntoMessages};
use super::fields::fields_of;
use super::handler::{Erased, read_arguments, run};
use super::reply::IntoReply;
use super::schema::{arguments_of, input_schema_of, schema_of};
use super::spec::Spec;
use crate::driver::Started;
use crate::mcp::{Prompt, PromptArgument, Resource, Tool};
use crate::rpc::ErrorObject;

/// A tool and its handler, typed no longer.
pub(super) fn erase_tool<S, A, F, R>(
    tool: Tool,
    handler: impl Fn(A, Call<S>) -> F + Send + Sync + 'static,
) -> (Spec<Tool>, Erased<S>)
where
    S: Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Future<Output = R> + Send + 'static,
    R: IntoReply + Send + 'static,
{
    let handler: Erased<S> = Arc::new(move |raw, call, json| {
        let (arguments, call) = read_arguments(raw, call)?;
        let work = handler(arguments, call.clone());
        Ok(Started::polling(run(call, async move { work.await.into_reply() }), json))
    });
    (tool_spec::<A, R>(tool), handler)
}

/// A resource and its handler, typed no longer.
pub(super) fn erase_resource<S, F, R>(
    resource: Resource,
    handler: impl Fn(Call<S>) -> F + Send + Sync + 'static,
) -> (Resource, Erased<S>)
where
    S: Send + Sync + 'static,
    F: Future<Output = R> + Send + 'static,
    R: IntoContents + Send + 'static,
{
    let (uri, mime_type) = (resource.uri.clone(), resource.mime_type.clone());
    let handler: Erased<S> = Arc::new(move |_, call, json| {
        let work = handler(call.clone());
        let (uri, mime_type) = (uri.clone(), mime_type.clone());
        Ok(Started::polling(
            run(call.clone(), async move {
                let contents = work.await.into_contents(&uri, mime_type.as_deref());
                call.inner.as_read(contents)
            }),
            json,
        ))
    });
    (resource, handler)
}

/// A prompt and its handler, typed no longer.
pub(super) fn erase_prompt<S, A, F, R>(
    prompt: Prompt,
    handler: impl Fn(A, Call<S>) -> F + Send + Sync + 'static,
) -> (Spec<Prompt>, Erased<S>)
where
    S: Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Future<Output = R> + Send + 'static,
    R: IntoMessages + Send + 'static,
{
    let handler: Erased<S> = Arc::new(move |raw, call, json| {
        let (arguments, call) = read_arguments(raw, call)?;
        let work = handler(arguments, call.clone());
        Ok(Started::polling(run(call, async move { work.await.into_messages() }), json))
    });
    (prompt_spec::<A>(prompt), handler)
}

/// What is wrong with a tool's description, if anything.
pub(super) fn faults_of(tool: &Spec<Tool>) -> Vec<String> {
    let mut faults = Vec::new();
    // TOL-21
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if tool.name.is_empty() || tool.name.len() > 128 || !tool.name.chars().all(plain) {
        faults.push(format!("tool name {:?}: use 1 to 128 of A-Z a-z 0-9 _ - .", tool.name));
    }
    faults.extend(tool.known().and_then(schema_fault));
    faults
}

/// TOL-03
pub(super) fn schema_fault(tool: &Tool) -> Option<String> {
    let name = &tool.name;
    (!tool.input_schema.has_object_root()).then(|| {
        format!("tool {name:?}: its arguments must be a struct, or a schema of type object")
    })
}

/// A tool with what its types say about it, where it does not say so itself.
pub(super) fn tool_spec<A: DeserializeOwned + JsonSchema, R: IntoReply>(tool: Tool) -> Spec<Tool> {
    // Whether the schema will do has to be known before anything is served. A struct always does;
    // for everything else it has to be made.
    match fields_of::<A>() {
        Some(_) => Spec::later(tool, described::<A, R>),
        None => Spec::new(described::<A, R>(tool)),
    }
}

/// A prompt with what its type says about it, where it does not say so itself.
fn prompt_spec<A: DeserializeOwned + JsonSchema>(mut prompt: Prompt) -> Spec<Prompt> {
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

/// C14: what is sent when a blocking handler panicked; its words are on stderr.
pub(super) fn panicked() -> ErrorObject {
    ErrorObject::internal("handler panicked")
        .with_data(&serde_json::json!({ "exception": "panic" }))
}
