//! The verbs that describe a server.

use std::future::Future;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Server;
use super::blocking::on_a_thread;
use super::call::Call;
use super::changes::Changes;
use super::contents::{IntoContents, IntoMessages};
use super::handler::{BadArguments, Erased, read_arguments, run};
use super::hook::Moment;
use super::registry::{Family, Offer, Registry};
use super::reply::IntoReply;
use super::schema::{arguments_of, schema_of};
use super::template::Template;
use crate::error::Reject;
use crate::mcp::{
    CacheScope, CompleteResult, Completion, CompletionContext, CompletionReference, Prompt,
    RawJson, Resource, ResourceTemplate, SealKey, Tool,
};
use crate::rpc::{Config, ErrorObject};

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
    #[must_use]
    pub fn blocking_tool<A, R>(
        self,
        tool: impl Into<Tool>,
        handler: impl Fn(A, Call<S>) -> R + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: IntoReply + Send + 'static,
    {
        let tool = described::<A, R>(tool.into());
        let handler = Arc::new(handler);
        let handler: Erased<S> = Arc::new(move |raw, call| {
            let (handler, arguments) = (handler.clone(), read_arguments(raw)?);
            let theirs = call.clone();
            Ok(Box::pin(run(call, async move {
                let reply = on_a_thread(move || handler(arguments, theirs).into_reply()).await;
                reply.unwrap_or_else(|| Err(panicked()))
            })))
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
        let handler: Erased<S> = Arc::new(move |raw, call| {
            let arguments = match raw {
                Some(raw) => raw.into(),
                None => serde_json::Map::new().into(),
            };
            let work = handler(arguments, call.clone());
            Ok(Box::pin(run(call, async move { work.await.into_reply() })))
        });
        self.add_tool(tool, handler)
    }

    fn add_tool(mut self, tool: Tool, handler: Erased<S>) -> Self {
        self.mistakes.extend(faults_of(&tool));
        let known = self.shared.registry().tool(&tool.name).is_some();
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
        let known = self.shared.registry().resources.iter().any(|r| r.spec.uri == resource.uri);
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
        let handler: Erased<S> = Arc::new(move |raw, call| {
            let uri = call.inner.name.clone();
            let work = handler(read_arguments(raw)?, call.clone());
            let mime_type = mime_type.clone();
            Ok(Box::pin(run(call.clone(), async move {
                let contents = work.await.into_contents(&uri, mime_type.as_deref())?;
                Ok(call.inner.shared.settings.hinted(contents))
            })))
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
        let known = self.shared.registry().prompts.iter().any(|p| p.spec.name == prompt.name);
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
        let found = self.shared.registry().blank(&of, &argument);
        let (whose, known) = found.unwrap_or_else(|| (String::new(), false));
        self.mistake(!known, || {
            format!("completion: {of:?} has no argument {argument:?}; register it first")
        });
        let handler: Erased<S> = Arc::new(move |raw, call| {
            let typed: Typed = read_arguments(raw)?;
            let context: CompletionContext = serde_json::from_str(&typed.context)
                .map_err(|error| BadArguments(format!("`context`: {error}")))?;
            let chosen = context.arguments.unwrap_or_default();
            let work = handler(Completing { value: typed.value, chosen }, call.clone());
            Ok(Box::pin(run(call, async move {
                Ok(CompleteResult::new(Completion::first_of(work.await)))
            })))
        });
        self.register(|registry| {
            registry.completions.insert((whose, argument), handler);
        });
        self
    }

    /// How to use the server, for the model to read.
    #[must_use]
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        self.change(|shared| shared.settings.instructions = Some(text));
        self
    }

    /// Lets handlers write to the client's log with [`Call::log`].
    #[must_use]
    pub fn logging(mut self) -> Self {
        self.change(|shared| shared.settings.logging = true);
        self
    }

    /// Says that what the server offers may change while it serves: see [`Changes`].
    ///
    /// Clients are told so when they connect, so this belongs to the description.
    #[must_use]
    pub fn changing(mut self) -> Self {
        self.change(|shared| shared.settings.changes = true);
        self
    }

    /// A handle for changing what is offered. Needs [`changing`](Self::changing), or clients are
    /// not told.
    #[must_use]
    pub fn changes(&self) -> Changes<S> {
        Changes { shared: self.shared.clone() }
    }

    /// The key that the state of a question is signed with, so that another process of this server
    /// can take the answer. `TAUT_SEAL_KEY` unless set; else one that ends with the process.
    #[must_use]
    pub fn seal_key(mut self, key: impl Into<Vec<u8>>) -> Self {
        let key = SealKey::new(key);
        self.change(|shared| shared.settings.seal_key = key);
        self
    }

    /// How long a modern client may take to bring answers. An hour.
    #[must_use]
    pub fn ask_state_lifetime(mut self, lifetime: Duration) -> Self {
        self.change(|shared| shared.settings.ask_lifetime = lifetime);
        self
    }

    /// How long a legacy client may take to answer a question. Ten minutes: it waits for a person.
    #[must_use]
    pub fn ask_timeout(mut self, limit: Duration) -> Self {
        self.change(|shared| shared.settings.ask_timeout = limit);
        self
    }

    /// How long clients may keep lists and resources, and who may be served them. Not at all and
    /// nobody else, unless set (CAC-01, CAC-07). A [`ReadResourceResult`](crate::ReadResourceResult)
    /// with hints of its own keeps them.
    #[must_use]
    pub fn cache(mut self, ttl: Duration, scope: CacheScope) -> Self {
        self.change(|shared| {
            (shared.settings.ttl, shared.settings.cache_scope) = (ttl, scope);
        });
        self
    }

    /// How many items stand on a page of a list. All of them, unless set: several hosts read only
    /// the first page.
    #[must_use]
    pub fn page_size(mut self, items: usize) -> Self {
        self.change(|shared| shared.settings.page_size = Some(items.max(1)));
        self
    }

    /// How long a call may take. As long as it likes, unless set.
    #[must_use]
    pub fn call_timeout(mut self, limit: Duration) -> Self {
        self.change(|shared| shared.settings.call_timeout = Some(limit));
        self
    }

    /// Sees every call begin and end; an `Err` at the beginning refuses it.
    #[must_use]
    pub fn on_call(
        mut self,
        hook: impl Fn(&Moment<'_>) -> Result<(), Reject> + Send + Sync + 'static,
    ) -> Self {
        self.change(|shared| shared.settings.hook = Some(Arc::new(hook)));
        self
    }

    /// Answers arguments that do not fit with an error of the server's own. `None` leaves them to
    /// the model, as an `isError` result that names the field.
    #[must_use]
    pub fn on_bad_arguments(
        mut self,
        map: impl Fn(&Call<S>, &str) -> Option<Reject> + Send + Sync + 'static,
    ) -> Self {
        self.change(|shared| shared.settings.bad_arguments = Some(Arc::new(map)));
        self
    }

    /// Leaves SIGINT and SIGTERM to the program.
    #[must_use]
    pub fn leave_signals(mut self) -> Self {
        self.signals = false;
        self
    }

    /// How long accepted requests may take once the input has ended. 30 s.
    #[must_use]
    pub fn drain(mut self, limit: Duration) -> Self {
        self.options.drain = limit;
        self
    }

    /// How long a cancelled call may go on before its future is dropped. 1 s.
    #[must_use]
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.options.grace = grace;
        self
    }

    /// Bounds on messages, queues and running requests.
    #[must_use]
    pub fn limits(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    fn mistake(&mut self, is_one: bool, text: impl FnOnce() -> String) {
        if is_one {
            self.mistakes.push(text());
        }
    }

    fn register(&mut self, change: impl FnOnce(&mut Registry<S>)) {
        let mut current = self.shared.registry.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut *current));
    }
}

/// C14: what is sent when a blocking handler panicked; its words are on stderr.
fn panicked() -> ErrorObject {
    ErrorObject::internal("handler panicked")
        .with_data(&serde_json::json!({ "exception": "panic" }))
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

/// A tool and its handler, typed no longer.
pub(super) fn erase_tool<S, A, F, R>(
    tool: Tool,
    handler: impl Fn(A, Call<S>) -> F + Send + Sync + 'static,
) -> (Tool, Erased<S>)
where
    S: Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Future<Output = R> + Send + 'static,
    R: IntoReply + Send + 'static,
{
    let handler: Erased<S> = Arc::new(move |raw, call| {
        let work = handler(read_arguments(raw)?, call.clone());
        Ok(Box::pin(run(call, async move { work.await.into_reply() })))
    });
    (described::<A, R>(tool), handler)
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
    let handler: Erased<S> = Arc::new(move |_, call| {
        let work = handler(call.clone());
        let (uri, mime_type) = (uri.clone(), mime_type.clone());
        Ok(Box::pin(run(call.clone(), async move {
            let contents = work.await.into_contents(&uri, mime_type.as_deref())?;
            Ok(call.inner.shared.settings.hinted(contents))
        })))
    });
    (resource, handler)
}

/// A prompt and its handler, typed no longer.
pub(super) fn erase_prompt<S, A, F, R>(
    mut prompt: Prompt,
    handler: impl Fn(A, Call<S>) -> F + Send + Sync + 'static,
) -> (Prompt, Erased<S>)
where
    S: Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    F: Future<Output = R> + Send + 'static,
    R: IntoMessages + Send + 'static,
{
    if prompt.arguments.is_none() {
        prompt.arguments = Some(arguments_of::<A>()).filter(|arguments| !arguments.is_empty());
    }
    prompt.description = prompt.description.or_else(|| schema_of::<A>().description);
    let handler: Erased<S> = Arc::new(move |raw, call| {
        let work = handler(read_arguments(raw)?, call.clone());
        Ok(Box::pin(run(call, async move { work.await.into_messages() })))
    });
    (prompt, handler)
}

/// What is wrong with a tool's description, if anything.
pub(super) fn faults_of(tool: &Tool) -> Vec<String> {
    let mut faults = Vec::new();
    // TOL-21
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if tool.name.is_empty() || tool.name.len() > 128 || !tool.name.chars().all(plain) {
        faults.push(format!("tool name {:?}: use 1 to 128 of A-Z a-z 0-9 _ - .", tool.name));
    }
    // TOL-03
    if !tool.input_schema.has_object_root() {
        let name = &tool.name;
        faults.push(format!(
            "tool {name:?}: its arguments must be a struct, or a schema of type object"
        ));
    }
    faults
}

/// A tool with what its types say about it, where it does not say so itself.
fn described<A: JsonSchema, R: IntoReply>(mut tool: Tool) -> Tool {
    let shape = schema_of::<A>();
    tool.input_schema = shape.schema;
    tool.description = tool.description.or(shape.description);
    tool.output_schema = tool.output_schema.or_else(R::output_schema);
    tool
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
