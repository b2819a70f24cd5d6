//! What a server can be asked, each with its own params and result.
//!
//! Knows which capability each needs: what was not declared is not asked for (LIF-12). Must not know
//! how a request is made.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::Client;
use super::answer::Answer;
use super::paging::{Pages, pages};
use super::request::{Outcome, Request, Subject, read_any, read_result};
use crate::error::{Error, Result};
use crate::mcp::{
    CallToolResult, CompleteParams, CompleteResult, Completion, CompletionArgument,
    CompletionContext, CompletionReference, EmptyResult, GetPromptParams, GetPromptResult, Level,
    Meta, Method, Prompt, ReadResourceParams, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate, ResultType, SerializeAt, SetLevelParams, Tool,
};
use crate::rpc::Body;

macro_rules! outcomes {
    ($($T:ty),* $(,)?) => {$(
        impl Outcome for $T {
            fn result_type(&self) -> &ResultType {
                &self.result_type
            }
        }
    )*};
}

outcomes!(CallToolResult, ReadResourceResult, GetPromptResult, CompleteResult, EmptyResult);

impl Client {
    /// The tools that the server offers.
    pub fn tools(&self) -> Pages<Tool> {
        pages(self.0.clone(), self.capabilities().tools.is_some())
    }

    /// The resources that the server offers.
    pub fn resources(&self) -> Pages<Resource> {
        pages(self.0.clone(), self.capabilities().resources.is_some())
    }

    /// The families of resources that the server offers.
    pub fn resource_templates(&self) -> Pages<ResourceTemplate> {
        pages(self.0.clone(), self.capabilities().resources.is_some())
    }

    /// The prompts that the server offers.
    pub fn prompts(&self) -> Pages<Prompt> {
        pages(self.0.clone(), self.capabilities().prompts.is_some())
    }

    /// Calls a tool. `arguments` is anything that becomes a JSON object, or `()` for none.
    pub fn call(
        &self,
        tool: impl Into<Arc<str>>,
        arguments: impl Serialize + Send + 'static,
    ) -> Request<Answer> {
        let subject = Subject { tool: Some(tool.into()), ..self.subject(Method::CallTool) };
        let refused = self.unless(Method::CallTool, self.capabilities().tools.is_some(), "tools");
        let request = Request::new(self.0.clone(), subject, Box::new(arguments), read_answer);
        // TOL-13. Older revisions know no schema for answers.
        #[cfg(feature = "validate")]
        if self.0.settings.check_answers && self.revision().has_structured_content() {
            return request.around(super::check::checked).refused(refused);
        }
        request.refused(refused)
    }

    /// Reads a resource.
    pub fn read(&self, uri: impl Into<String>) -> Request<Vec<ResourceContents>> {
        let offered = self.capabilities().resources.is_some();
        let params = ReadResourceParams::new(uri);
        let read = |raw: &RawValue, subject: Subject| {
            read_result::<ReadResourceResult>(raw, subject).map(|result| result.contents)
        };
        self.typed(Method::ReadResource, params, offered, "resources", read)
    }

    /// Fills in a prompt.
    pub fn prompt<K: Into<String>, V: Into<String>>(
        &self,
        name: impl Into<String>,
        arguments: impl IntoIterator<Item = (K, V)>,
    ) -> Request<GetPromptResult> {
        let offered = self.capabilities().prompts.is_some();
        let mut params = GetPromptParams::new(name);
        let arguments: BTreeMap<String, String> =
            arguments.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        params.arguments = Some(arguments).filter(|arguments| !arguments.is_empty());
        self.typed(Method::GetPrompt, params, offered, "prompts", read_result)
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

    /// Suggestions for an argument that is being typed, for who has chosen these others before. What was
    /// chosen is told to servers from 2025-06-18 on (CMP-04).
    pub fn complete_with<K: Into<String>, V: Into<String>>(
        &self,
        reference: impl Into<CompletionReference>,
        argument: impl Into<String>,
        value: impl Into<String>,
        chosen: impl IntoIterator<Item = (K, V)>,
    ) -> Request<Completion> {
        // CMP-01: the first revision has the method without the flag.
        let offered = !self.revision().has_completions_capability()
            || self.capabilities().completions.is_some();
        let argument = CompletionArgument::new(argument, value);
        let mut params = CompleteParams::new(reference, argument);
        let chosen: BTreeMap<String, String> =
            chosen.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        if !chosen.is_empty() {
            params.context = Some(CompletionContext::new().arguments(chosen));
        }
        let read = |raw: &RawValue, subject: Subject| {
            read_result::<CompleteResult>(raw, subject).map(|result| result.completion)
        };
        self.typed(Method::Complete, params, offered, "completions", read)
    }

    /// Asks for log notifications from this level on. In the modern revision nothing is sent now:
    /// each later request asks for itself (LOG-08, LOG-09).
    ///
    /// # Errors
    /// As for any request; or the server does not log.
    pub async fn set_level(&self, level: Level) -> Result<()> {
        if self.revision().is_modern() {
            *self.0.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
            return Ok(());
        }
        let offered = self.capabilities().logging.is_some();
        let params = SetLevelParams::new(level);
        let read = read_result::<EmptyResult>;
        self.typed(Method::SetLevel, params, offered, "logging", read).await.map(|_| ())
    }

    /// Asks whether the server is still there. Legacy only: the modern revision has no such request
    /// (PNG-05).
    pub fn ping(&self) -> Request<()> {
        let legacy = !self.revision().is_modern();
        let read =
            |raw: &RawValue, subject: Subject| read_result::<EmptyResult>(raw, subject).map(|_| ());
        let subject = self.subject(Method::Ping);
        let refused = self.unless(Method::Ping, legacy, "ping in this revision");
        Request::new(self.0.clone(), subject, Box::new(()), read).refused(refused)
    }

    /// Asks anything. `params` is anything that becomes a JSON object, or `()` for none; what a
    /// request of the agreed revision has to carry in `_meta` is added.
    pub fn request<T: DeserializeOwned + Send + 'static>(
        &self,
        method: impl Into<Cow<'static, str>>,
        params: impl Serialize,
    ) -> Request<T> {
        let subject =
            Subject { method: method.into(), tool: None, modern: self.revision().is_modern() };
        let method = subject.method.clone();
        match split_meta(&params) {
            Ok((body, meta)) => Request::new(self.0.clone(), subject, body, read_any).meta(meta),
            Err(error) => {
                let error = Error::Encode { method, reason: error.to_string() };
                Request::new(self.0.clone(), subject, Box::new(()), read_any).refused(Some(error))
            }
        }
    }

    /// Tells the server anything.
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

    fn subject(&self, method: Method) -> Subject {
        let modern = self.revision().is_modern();
        Subject { method: method.as_str().into(), tool: None, modern }
    }

    fn unless(&self, method: Method, offered: bool, capability: &'static str) -> Option<Error> {
        let method = method.as_str().into();
        (!offered).then_some(Error::NotOffered { method, capability })
    }

    pub(super) fn typed<P, T>(
        &self,
        method: Method,
        params: P,
        offered: bool,
        capability: &'static str,
        read: super::request::Read<T>,
    ) -> Request<T>
    where
        P: SerializeAt + Send + 'static,
    {
        let refused = self.unless(method, offered, capability);
        let body = Box::new(Shaped { params, revision: self.revision() });
        Request::new(self.0.clone(), self.subject(method), body, read).refused(refused)
    }
}

/// Params as the agreed revision writes them (LIF-19).
pub(super) struct Shaped<P> {
    pub(super) params: P,
    pub(super) revision: crate::mcp::Revision,
}

impl<P: SerializeAt + Send> Body for Shaped<P> {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        serde_json::to_writer(out, &self.params.at(self.revision))
    }
}

fn read_answer(raw: &RawValue, subject: Subject) -> Result<Answer> {
    let tool = subject.tool.clone().unwrap_or_default();
    read_result::<CallToolResult>(raw, subject).map(|result| Answer::new(tool, result))
}

/// The caller's own `_meta`, taken out so that ours can be written beside it.
fn split_meta(params: &impl Serialize) -> Result<(Box<dyn Body>, Meta), serde_json::Error> {
    let mut params = serde_json::to_value(params)?;
    let meta = match params.as_object_mut().and_then(|members| members.remove("_meta")) {
        Some(meta) => serde_json::from_value(meta)?,
        None => Meta::new(),
    };
    Ok((Box::new(params), meta))
}
