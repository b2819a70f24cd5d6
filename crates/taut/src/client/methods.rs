//! What a server can be asked, one function each.
//!
//! Knows the params and the result of each, and the capability that it needs: what was not declared is
//! not asked for (LIF-12). Must not know how a request is made.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::connection::Client;
use super::lists::{Pages, pages};
use super::request::{Answer, Request, Subject, read_any, read_result};
use crate::error::Result;
use crate::lock::lock;
use crate::mcp::{
    CallToolResult, CompleteParams, CompleteResult, Completion, CompletionArgument,
    CompletionContext, CompletionReference, EmptyResult, GetPromptParams, GetPromptResult, Level,
    Meta, Method, Prompt, ReadResourceParams, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate, SetLevelParams, Tool,
};

impl Client {
    /// The tools that the server offers.
    pub fn tools(&self) -> Pages<Tool> {
        pages(self, self.capabilities().tools.is_some())
    }

    /// The resources that the server offers.
    pub fn resources(&self) -> Pages<Resource> {
        pages(self, self.capabilities().resources.is_some())
    }

    /// The templates of resources that the server offers.
    pub fn resource_templates(&self) -> Pages<ResourceTemplate> {
        pages(self, self.capabilities().resources.is_some())
    }

    /// The prompts that the server offers.
    pub fn prompts(&self) -> Pages<Prompt> {
        pages(self, self.capabilities().prompts.is_some())
    }

    /// Calls a tool. `arguments` is anything that becomes a JSON object, or `()` for none. They are
    /// serialised here; if they have no JSON form, awaiting the request returns [`Error::Encode`](crate::Error::Encode).
    pub fn call(&self, tool: impl Into<Arc<str>>, arguments: impl Serialize) -> Request<Answer> {
        let subject = Subject { tool: Some(tool.into()), ..self.subject(Method::CallTool) };
        let request =
            Request::new(self.0.clone(), subject, serde_json::to_vec(&arguments), read_answer);
        let request = request.needs(self.capabilities().tools.is_some(), "tools");
        // TOL-13. Older revisions know no schema for answers.
        #[cfg(feature = "validate")]
        if self.0.settings().check_answers && self.revision().has_structured_content() {
            return request.around(super::lists::checked);
        }
        request
    }

    /// Reads a resource.
    pub fn read(&self, uri: impl Into<String>) -> Request<Vec<ResourceContents>> {
        let read = |raw: &RawValue, subject: Subject| {
            read_result::<ReadResourceResult>(raw, subject).map(|result| result.contents)
        };
        self.typed(Method::ReadResource, &ReadResourceParams::new(uri), read)
            .needs(self.capabilities().resources.is_some(), "resources")
    }

    /// Fills in a prompt.
    pub fn prompt<K: Into<String>, V: Into<String>>(
        &self,
        name: impl Into<String>,
        arguments: impl IntoIterator<Item = (K, V)>,
    ) -> Request<GetPromptResult> {
        let mut params = GetPromptParams::new(name);
        params.arguments = Some(strings(arguments)).filter(|arguments| !arguments.is_empty());
        self.typed(Method::GetPrompt, &params, read_result)
            .needs(self.capabilities().prompts.is_some(), "prompts")
    }

    /// Suggestions for an argument that is being typed.
    pub fn complete(
        &self,
        reference: impl Into<CompletionReference>,
        argument: impl Into<String>,
        value: impl Into<String>,
    ) -> Request<Completion> {
        self.complete_with(reference, argument, value, [("", ""); 0])
    }

    /// Suggestions for an argument that is being typed, when these others are filled in already.
    /// Servers before 2025-06-18 are not told of them.
    // CMP-04
    pub fn complete_with<K: Into<String>, V: Into<String>>(
        &self,
        reference: impl Into<CompletionReference>,
        argument: impl Into<String>,
        value: impl Into<String>,
        chosen: impl IntoIterator<Item = (K, V)>,
    ) -> Request<Completion> {
        let mut params = CompleteParams::new(reference, CompletionArgument::new(argument, value));
        let chosen = strings(chosen);
        if !chosen.is_empty() {
            params.context = Some(CompletionContext::new().arguments(chosen));
        }
        let read = |raw: &RawValue, subject: Subject| {
            read_result::<CompleteResult>(raw, subject).map(|result| result.completion)
        };
        // CMP-01: the first revision has the method without the capability.
        let offered = !self.revision().has_completions_capability()
            || self.capabilities().completions.is_some();
        self.typed(Method::Complete, &params, read).needs(offered, "completions")
    }

    /// Asks for log messages from this level on. In the modern revision nothing is sent now: each later
    /// request asks for itself.
    ///
    /// # Errors
    /// As for any request; or the server does not log.
    // LOG-08, LOG-09
    pub async fn set_level(&self, level: Level) -> Result<()> {
        if self.revision().is_modern() {
            *lock(&self.0.level) = Some(level);
            return Ok(());
        }
        let offered = self.capabilities().logging.is_some();
        let request = self.typed(Method::SetLevel, &SetLevelParams::new(level), read_empty);
        request.needs(offered, "logging").await
    }

    /// Asks whether the server is still there. Legacy only: the modern revision has no such request,
    /// and the error says so.
    // PNG-05
    pub fn ping(&self) -> Request<()> {
        Request::new(self.0.clone(), self.subject(Method::Ping), Ok(b"null".into()), read_empty)
            .needs(!self.revision().is_modern(), "ping in this revision")
    }

    /// Makes any request. `params` is anything that becomes a JSON object, or `()` for none. What a
    /// request of the agreed revision has to carry in `_meta` is added.
    pub fn request<T: DeserializeOwned + Send + 'static>(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: impl Serialize,
    ) -> Request<T> {
        let modern = self.revision().is_modern();
        let subject = Subject { method: method.into(), tool: None, modern };
        let (params, meta) = match split_meta(&params) {
            Ok((params, meta)) => (Ok(params), meta),
            Err(error) => (Err(error), Meta::new()),
        };
        Request::new(self.0.clone(), subject, params, read_any).meta(meta)
    }

    /// Sends any notification.
    ///
    /// # Errors
    /// The connection is over, or `params` has no JSON form.
    pub fn notify(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: impl Serialize + Send,
    ) -> Result<()> {
        self.0.session.notify(method.into(), Some(&params))
    }
}

fn strings<K: Into<String>, V: Into<String>>(
    pairs: impl IntoIterator<Item = (K, V)>,
) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect()
}

fn read_empty(raw: &RawValue, subject: Subject) -> Result<()> {
    read_result::<EmptyResult>(raw, subject).map(drop)
}

fn read_answer(raw: &RawValue, subject: Subject) -> Result<Answer> {
    let tool = subject.tool.clone().unwrap_or_default();
    read_result::<CallToolResult>(raw, subject).map(|result| Answer::new(tool, result))
}

/// The caller's params without their `_meta`, and that, so that ours can be written beside it.
fn split_meta(params: &impl Serialize) -> Result<(Vec<u8>, Meta), serde_json::Error> {
    let mut params = serde_json::to_value(params)?;
    let meta = match params.as_object_mut().and_then(|members| members.remove("_meta")) {
        Some(meta) => serde_json::from_value(meta)?,
        None => Meta::new(),
    };
    Ok((serde_json::to_vec(&params)?, meta))
}
