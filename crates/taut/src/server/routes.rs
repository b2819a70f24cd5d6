//! How each kind of request reaches its handler: tools, resources, prompts, completion.
//!
//! Knows the params of these methods and what is wrong with them; the session knows the rest.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::handler::{BadArguments, Erased, finish};
use super::registry::Registry;
use super::session::{Query, Session, invalid, not_found};
use crate::driver::Started;
use crate::json::JsonRef;
use crate::mcp::{
    CallToolResult, CompleteResult, Completion, CompletionArgument, CompletionReference, Method,
};
use crate::rpc::{ErrorObject, excerpt};

impl<S: Send + Sync + 'static> Session<S> {
    pub(super) fn call_tool(
        &self,
        query: Query<'_>,
        registry: &Registry<S>,
        json: &mut Vec<u8>,
    ) -> Result<Started, ErrorObject> {
        let params = query.params;
        let name = params.string("name").map_err(invalid)?;
        // A nil map is null to a client in Go; it means none.
        let arguments = params.member("arguments").filter(|raw| raw.text() != "null");
        // TOL-09: the shape of the request is the protocol's affair, the arguments are the tool's.
        if arguments.is_some_and(|raw| !raw.is_object()) {
            return Err(ErrorObject::invalid_params("params.arguments must be an object"));
        }
        // TOL-05
        let (name, tool) = registry.tool(&name).ok_or_else(|| {
            ErrorObject::invalid_params(format!("unknown tool: {}", excerpt(&name)))
        })?;
        let call = self.begin(query, Method::CallTool, name.clone(), arguments)?;
        (tool.handler)(arguments, call, json).or_else(|BadArguments { call, reason }| {
            let mapped = call.inner.shared().settings.bad_arguments.as_ref();
            let outcome = match mapped.and_then(|map| map(&call, &reason)) {
                Some(reject) => Err(reject.into()),
                // TOL-08: for the model to read and to try again.
                None => Ok(CallToolResult::with_error(format!(
                    "invalid arguments for {}: {reason}",
                    call.inner.name
                ))),
            };
            Ok(Started::done(finish(&call, outcome), json))
        })
    }

    pub(super) fn read_resource(
        &self,
        query: Query<'_>,
        registry: &Registry<S>,
        json: &mut Vec<u8>,
    ) -> Result<Started, ErrorObject> {
        let uri = query.params.required::<String>("uri").map_err(invalid)?;
        let revision = query.terms.revision;
        let listed = registry.resources.iter().find(|offer| offer.spec.uri == uri);
        let handler: Option<(Erased<S>, Option<Box<RawValue>>)> = match listed {
            Some(offer) => Some((offer.handler.clone(), None)),
            None => registry.families.iter().find_map(|family| {
                let blanks = family.template.fit(&uri)?;
                let blanks: serde_json::Map<_, _> = blanks
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value.into()))
                    .collect();
                let raw = serde_json::value::to_raw_value(&blanks).ok()?;
                Some((family.offer.handler.clone(), Some(raw)))
            }),
        };
        // RES-05, RES-06
        let (handler, blanks) = handler.ok_or_else(|| not_found(&uri, revision))?;
        let call = self.begin(query, Method::ReadResource, (*uri).into(), None)?;
        handler(blanks.as_deref().map(JsonRef::from), call, json)
            .map_err(|_| not_found(&uri, revision))
    }

    pub(super) fn get_prompt(
        &self,
        query: Query<'_>,
        registry: &Registry<S>,
        json: &mut Vec<u8>,
    ) -> Result<Started, ErrorObject> {
        let params = query.params;
        let name = params.required::<String>("name").map_err(invalid)?;
        // PRM-05: values are strings.
        params.optional::<BTreeMap<String, String>>("arguments").map_err(invalid)?;
        // PRM-04
        let prompt = registry.prompts.iter().find(|offer| offer.spec.name == name);
        let prompt = prompt.ok_or_else(|| {
            ErrorObject::invalid_params(format!("unknown prompt: {}", excerpt(&name)))
        })?;
        let arguments = params.member("arguments").filter(|raw| raw.text() != "null");
        let call = self.begin(query, Method::GetPrompt, name.into(), arguments)?;
        (prompt.handler)(arguments, call, json).map_err(|BadArguments { reason, .. }| {
            ErrorObject::invalid_params(format!("invalid prompt arguments: {reason}"))
        })
    }

    pub(super) fn complete(
        &self,
        query: Query<'_>,
        registry: &Registry<S>,
        json: &mut Vec<u8>,
    ) -> Result<Started, ErrorObject> {
        let params = query.params;
        // CMP-03, CMP-05
        let reference = params.required::<CompletionReference>("ref").map_err(invalid)?;
        let argument = params.required::<CompletionArgument>("argument").map_err(invalid)?;
        let (whose, known) = registry.blank(&reference, &argument.name).ok_or_else(|| {
            ErrorObject::invalid_params("ref names no prompt and no resource template")
        })?;
        if !known {
            let name = excerpt(&argument.name);
            return Err(ErrorObject::invalid_params(format!("{whose} has no argument {name}")));
        }
        let call = self.begin(query, Method::Complete, (*whose).into(), None)?;
        let Some(handler) = registry.completions.get(&(whose, argument.name)) else {
            let none = CompleteResult::new(Completion::new([]));
            return Ok(Started::done(finish(&call, Ok(none)), json));
        };
        let typed = serde_json::json!({
            "value": argument.value,
            "context": params.member("context").map_or("{}", JsonRef::text),
        });
        let raw = serde_json::value::to_raw_value(&typed)
            .map_err(|error| ErrorObject::internal(error.to_string()))?;
        handler(Some((&*raw).into()), call, json)
            .map_err(|BadArguments { reason, .. }| ErrorObject::invalid_params(reason))
    }
}
