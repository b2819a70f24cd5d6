//! The verbs that say what a server offers.

use std::future::Future;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Server;
use super::blocking::on_a_thread;
use super::blocking_call::BlockingCall;
use super::call::Call;
use super::contents::{IntoContents, IntoMessages};
use super::erase::{erase_prompt, erase_resource, erase_tool, faults_of, panicked, tool_spec};
use super::handler::{BadArguments, Erased, read_arguments, run};
use super::registry::{Family, Offer, Registry};
use super::reply::IntoReply;
use super::spec::Spec;
use super::template::Template;
use crate::driver::Started;
use crate::mcp::{
    CompleteResult, Completion, CompletionContext, CompletionReference, Prompt, RawJson, Resource,
    ResourceTemplate, Tool,
};

impl<S: Send + Sync + 'static> Server<S> {
    /// Adds a tool. A name will do; a [`Tool`] says more about it.
    ///
    /// The arguments' type is the schema, its doc comment the description. Any [`IntoReply`] is an
    /// answer. A named `async fn` will do as a handler, or an `async` closure that captures
    /// nothing; one that captures is written
    /// `move |args, call| { let x = x.clone(); async move { … } }`.
    #[must_use]
    pub fn tool<A, F, R>(
        self,
        tool: impl Into<Tool>,
        handler: impl Fn(A, Call<S>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Future<Output = R> + Send + 'static,
        R: IntoReply + Send + 'static,
    {
        let (tool, handler) = erase_tool(tool.into(), handler);
        self.add_tool(tool, handler)
    }

    /// Adds a tool whose handler blocks its thread: files, databases, long computations.
    ///
    /// It cannot ask back: a [`BlockingCall`] has no verb for it.
    #[must_use]
    pub fn blocking_tool<A, R>(
        self,
        tool: impl Into<Tool>,
        handler: impl Fn(A, BlockingCall<S>) -> R + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: IntoReply + Send + 'static,
    {
        let tool = tool_spec::<A, R>(tool.into());
        let handler = Arc::new(handler);
        let handler: Erased<S> = Arc::new(move |raw, call, json| {
            let (arguments, call) = read_arguments(raw, call)?;
            let (handler, theirs) = (handler.clone(), BlockingCall::new(call.clone()));
            let work = async move {
                let reply = on_a_thread(move || handler(arguments, theirs).into_reply()).await;
                reply.unwrap_or_else(|| Err(panicked()))
            };
            Ok(Started::polling(run(call, work), json))
        });
        self.add_tool(tool, handler)
    }

    /// Adds a tool that brings its own schema and takes its arguments as they came; for bridges.
    #[must_use]
    pub fn raw_tool<F, R>(
        self,
        tool: Tool,
        handler: impl Fn(RawJson, Call<S>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = R> + Send + 'static,
        R: IntoReply + Send + 'static,
    {
        let handler: Erased<S> = Arc::new(move |raw, call, json| {
            let arguments = match raw {
                Some(raw) => raw.into(),
                None => serde_json::Map::new().into(),
            };
            let work = handler(arguments, call.clone());
            Ok(Started::polling(run(call, async move { work.await.into_reply() }), json))
        });
        self.add_tool(Spec::new(tool), handler)
    }

    fn add_tool(mut self, tool: Spec<Tool>, handler: Erased<S>) -> Self {
        self.mistakes.extend(faults_of(&tool));
        let known = self.shared.registry.current().tool(&tool.name).is_some();
        self.mistake(known, || format!("two tools are called {:?}", tool.name));
        self.register(|registry| registry.add_tool(Offer { spec: tool, handler }));
        self
    }

    /// Adds a resource: an address and how to read it.
    #[must_use]
    pub fn resource<F, R>(
        mut self,
        resource: Resource,
        handler: impl Fn(Call<S>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = R> + Send + 'static,
        R: IntoContents + Send + 'static,
    {
        let known =
            self.shared.registry.current().resources.iter().any(|r| r.spec.uri == resource.uri);
        self.mistake(known, || format!("two resources are at {:?}", resource.uri));
        self.mistake(!resource.uri.contains(':'), || {
            format!("resource {:?}: an address needs a scheme, as in file:///a", resource.uri)
        });
        let (resource, handler) = erase_resource(resource, handler);
        self.register(|registry| registry.resources.push(Offer { spec: resource, handler }));
        self
    }

    /// Adds a family of resources: a pattern such as `note://{id}`, and how to read one.
    ///
    /// The blanks of the pattern are the fields of `A`, as text. `{name}` is one path segment,
    /// `{+name}` anything.
    #[must_use]
    pub fn resource_template<A, F, R>(
        mut self,
        template: ResourceTemplate,
        handler: impl Fn(A, Call<S>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned + Send + 'static,
        F: Future<Output = R> + Send + 'static,
        R: IntoContents + Send + 'static,
    {
        let pattern = match Template::parse(&template.uri_template) {
            Ok(pattern) => pattern,
            Err(reason) => {
                let uri = &template.uri_template;
                self.mistakes.push(format!("resource template {uri:?}: {reason}"));
                return self;
            }
        };
        let mime_type = template.mime_type.clone();
        let handler: Erased<S> = Arc::new(move |raw, call, json| {
            let (arguments, call) = read_arguments(raw, call)?;
            let work = handler(arguments, call.clone());
            let (uri, mime_type) = (call.inner.name.clone(), mime_type.clone());
            Ok(Started::polling(
                run(call.clone(), async move {
                    let contents = work.await.into_contents(&uri, mime_type.as_deref());
                    call.inner.as_read(contents)
                }),
                json,
            ))
        });
        let offer = Offer { spec: template, handler };
        self.register(|registry| registry.families.push(Family { template: pattern, offer }));
        self
    }

    /// Adds a prompt. A name will do; a [`Prompt`] says more about it.
    ///
    /// Its blanks are the fields of `A`, all of them text; use [`NoArgs`](super::NoArgs) for none.
    #[must_use]
    pub fn prompt<A, F, R>(
        mut self,
        prompt: impl Into<Prompt>,
        handler: impl Fn(A, Call<S>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Future<Output = R> + Send + 'static,
        R: IntoMessages + Send + 'static,
    {
        let (prompt, handler) = erase_prompt(prompt.into(), handler);
        let known =
            self.shared.registry.current().prompts.iter().any(|p| p.spec.name == prompt.name);
        self.mistake(known, || format!("two prompts are called {:?}", prompt.name));
        self.register(|registry| registry.prompts.push(Offer { spec: prompt, handler }));
        self
    }

    /// Suggests values for an argument of a prompt, or a blank of a resource template, while a
    /// person types.
    #[must_use]
    pub fn completion<F>(
        mut self,
        of: CompletionReference,
        argument: impl Into<String>,
        handler: impl Fn(Completing, Call<S>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Vec<String>> + Send + 'static,
    {
        let argument = argument.into();
        let found = self.shared.registry.current().blank(&of, &argument);
        let (whose, known) = found.unwrap_or_else(|| (String::new(), false));
        self.mistake(!known, || {
            format!("completion: {of:?} has no argument {argument:?}; register it first")
        });
        let handler: Erased<S> = Arc::new(move |raw, call, json| {
            let (typed, call): (Typed, _) = read_arguments(raw, call)?;
            let chosen = match serde_json::from_str::<CompletionContext>(&typed.context) {
                Ok(context) => context.arguments.unwrap_or_default(),
                Err(error) => {
                    return Err(BadArguments { call, reason: format!("`context`: {error}") });
                }
            };
            let work = handler(Completing { value: typed.value, chosen }, call.clone());
            let work = async move { Ok(CompleteResult::new(Completion::first_of(work.await))) };
            Ok(Started::polling(run(call, work), json))
        });
        self.register(|registry| {
            registry.completions.insert((whose, argument), handler);
        });
        self
    }

    pub(super) fn mistake(&mut self, is_one: bool, text: impl FnOnce() -> String) {
        if is_one {
            self.mistakes.push(text());
        }
    }

    fn register(&mut self, change: impl FnOnce(&mut Registry<S>)) {
        self.shared.registry.change(|current| {
            let registry = Arc::make_mut(current);
            change(registry);
            registry.forget();
        });
    }
}

/// What a person has typed so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completing {
    /// The beginning of the value.
    pub value: String,
    /// Other arguments that are already chosen (CMP-04).
    pub chosen: std::collections::BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Typed {
    value: String,
    context: String,
}

impl From<&str> for Tool {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl From<&str> for Prompt {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}
