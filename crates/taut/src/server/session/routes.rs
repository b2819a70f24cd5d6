//! How each kind of request reaches its handler: tools, resources, prompts, completion.
//!
//! Knows the params of these methods and what is wrong with them; the session knows the rest.

use std::collections::BTreeMap;

use super::{Query, ServerSession};
use crate::driver::{AnswerFuture, ready};
use crate::json::JsonRef;
use crate::mcp::{
    CompleteResult, Completion, CompletionArgument, CompletionReference, Method, resource_not_found,
};
use crate::rpc::{ErrorObject, excerpt};
use crate::server::handler::{finish, not_found};

impl<S: Send + Sync + 'static> ServerSession<S> {
    pub(super) fn call_tool(&self, query: Query<'_>) -> Result<AnswerFuture, ErrorObject> {
        let params = query.request.params;
        let name = params.string("name")?;
        // A client in Go sends null for a map that is nil; it means none.
        let arguments = params.member("arguments").filter(|raw| raw.text() != "null");
        // TOL-09: params of the wrong shape are an error of the protocol; arguments that do not fit are an error of
        // the tool.
        if arguments.is_some_and(|raw| !raw.is_object()) {
            return Err(ErrorObject::invalid_params("params.arguments must be an object"));
        }
        // TOL-05
        let (name, tool) = self.catalog.tool(&name).ok_or_else(|| {
            ErrorObject::invalid_params(format!("unknown tool: {}", excerpt(&name)))
        })?;
        let call = self.begin(query, Method::CallTool, name.clone(), arguments)?;
        Ok((tool.handler)(arguments, call))
    }

    pub(super) fn read_resource(&self, query: Query<'_>) -> Result<AnswerFuture, ErrorObject> {
        let uri = query.request.params.required::<String>("uri")?;
        let revision = query.terms.revision;
        if let Some(resource) = self.catalog.resource(&uri) {
            let call = self.begin(query, Method::ReadResource, (*uri).into(), None)?;
            return Ok((resource.handler)(None, call));
        }
        let fitting = self.catalog.templates.iter().find_map(|entry| {
            let blanks: BTreeMap<_, _> = entry.template.fit(&uri)?.into_iter().collect();
            Some((entry, serde_json::value::to_raw_value(&blanks).ok()?))
        });
        let Some((entry, blanks)) = fitting else {
            // RES-05, RES-06
            let mut error = not_found(&uri);
            error.code = resource_not_found(revision);
            return Err(error);
        };
        let call = self.begin(query, Method::ReadResource, (*uri).into(), None)?;
        Ok((entry.handler)(Some(JsonRef::from(&*blanks)), call))
    }

    pub(super) fn get_prompt(&self, query: Query<'_>) -> Result<AnswerFuture, ErrorObject> {
        let params = query.request.params;
        let name = params.required::<String>("name")?;
        // PRM-05: values are strings.
        params.optional::<BTreeMap<String, String>>("arguments")?;
        // PRM-04
        let prompt = self.catalog.prompt(&name).ok_or_else(|| {
            ErrorObject::invalid_params(format!("unknown prompt: {}", excerpt(&name)))
        })?;
        let arguments = params.member("arguments").filter(|raw| raw.text() != "null");
        let call = self.begin(query, Method::GetPrompt, name.into(), arguments)?;
        Ok((prompt.handler)(arguments, call))
    }

    pub(super) fn complete(&self, query: Query<'_>) -> Result<AnswerFuture, ErrorObject> {
        let params = query.request.params;
        // CMP-03, CMP-05
        let reference = params.required::<CompletionReference>("ref")?;
        let argument = params.required::<CompletionArgument>("argument")?;
        let (of, known) =
            self.catalog.completable(&reference, &argument.name).ok_or_else(|| {
                ErrorObject::invalid_params("ref names no prompt and no resource template")
            })?;
        if !known {
            let name = excerpt(&argument.name);
            return Err(ErrorObject::invalid_params(format!("{of} has no argument {name}")));
        }
        let call = self.begin(query, Method::Complete, (*of).into(), None)?;
        let Some(handler) = self.catalog.completions.get(&(of, argument.name)) else {
            let none = CompleteResult::new(Completion::new([]));
            return Ok(ready(finish(&call, Ok(none))));
        };
        Ok(handler(params.raw().map(JsonRef::from), call))
    }
}
