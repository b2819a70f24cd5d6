//! A server while it is described: what it offers. How it behaves is in `options.rs`.
//!
//! Mistakes are collected here and returned by [`ServerBuilder::build`], all at once, before a byte
//! is read. The type of the state is fixed when the builder is made.

mod options;

use std::future::Future;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::Server;
use super::call::{BlockingCall, Call, Handler, ServerShared};
use super::catalog::{Catalog, Entry, Spec, TemplateEntry, UriTemplate};
use super::handler::{
    self, CompletionRequest, IntoContents, IntoMessages, IntoReply, faults_of, prompt_spec,
    tool_spec,
};
use super::settings::Settings;
use crate::error::{Error, Result};
use crate::mcp::{
    CompletionReference, Implementation, Prompt, RawJson, Resource, ResourceTemplate, Tool,
};

/// A server that is being described. Made by [`Server::builder`] or [`Server::with_state`], finished
/// by [`build`](Self::build) or [`serve_stdio`](Self::serve_stdio).
#[must_use = "a builder does nothing until it is built"]
pub struct ServerBuilder<S = ()> {
    info: Implementation,
    state: S,
    settings: Settings,
    catalog: Catalog<Handler<S>>,
    mistakes: Vec<String>,
}

impl Server {
    /// Begins a server that offers nothing yet.
    ///
    /// ```no_run
    /// use taut::{JsonSchema, Server};
    ///
    /// /// Add two numbers.
    /// #[derive(serde::Deserialize, JsonSchema)]
    /// struct Add { a: f64, b: f64 }
    ///
    /// #[tokio::main(flavor = "current_thread")]
    /// async fn main() -> taut::Result<()> {
    ///     Server::builder("calc", "1.0")
    ///         .tool("add", async |Add { a, b }, _call| a + b)
    ///         .serve_stdio()
    ///         .await
    /// }
    /// ```
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ServerBuilder {
        Self::with_state(name, version, ())
    }

    /// As [`builder`](Self::builder), with a state that handlers share: they get it from
    /// [`Call::state`].
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use taut::{Call, NoArgs, Server};
    ///
    /// let server = Server::with_state("counter", "1.0", AtomicU64::new(0))
    ///     .tool(("count", "Count calls."), async |_: NoArgs, call: Call<AtomicU64>| {
    ///         call.state().fetch_add(1, Ordering::Relaxed)
    ///     })
    ///     .build()?;
    /// # Ok::<(), taut::Error>(())
    /// ```
    pub fn with_state<S: Send + Sync + 'static>(
        name: impl Into<String>,
        version: impl Into<String>,
        state: S,
    ) -> ServerBuilder<S> {
        ServerBuilder {
            info: Implementation::new(name, version),
            state,
            settings: Settings::default(),
            catalog: Catalog::default(),
            mistakes: Vec::new(),
        }
    }
}

impl<S: Send + Sync + 'static> ServerBuilder<S> {
    /// The server, ready to serve as many connections as it is asked to.
    ///
    /// # Errors
    /// [`Error::Build`] with every mistake that was made: two tools of one name, a name that hosts
    /// refuse, a tool with neither arguments nor a description, a template that cannot be read, and so
    /// on.
    pub fn build(self) -> Result<Server<S>> {
        let Self { info, state, settings, catalog, mistakes } = self;
        if !mistakes.is_empty() {
            return Err(Error::Build { mistakes });
        }
        Ok(Server { shared: Arc::new(ServerShared::new(info, state, settings, catalog)) })
    }

    /// Builds the server and serves this process's stdin and stdout: see [`Server::serve_stdio`].
    ///
    /// # Errors
    /// As [`build`](Self::build) and [`Server::serve_stdio`].
    pub async fn serve_stdio(self) -> Result<()> {
        self.build()?.serve_stdio().await
    }

    /// Adds a tool. A name will do; `("name", "What it does.")` has a description, and a [`Tool`] says
    /// more about it.
    ///
    /// The type of the arguments is the schema, its doc comment the description. A tool without
    /// arguments has no such comment, so [`build`](Self::build) asks for a description. Any [`IntoReply`] is
    /// an answer. A handler is a named `async fn`, or an `async` closure that captures nothing; one
    /// that captures is written `move |args, call| { let x = x.clone(); async move { … } }`.
    pub fn tool<
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Future<Output: IntoReply + Send + 'static> + Send + 'static,
    >(
        self,
        tool: impl Into<Tool>,
        handler: impl Fn(A, Call<S>) -> F + Send + Sync + 'static,
    ) -> Self {
        self.add_tool(tool_spec::<A, F::Output>(tool.into()), handler::tool(handler))
    }

    /// Adds a tool whose handler blocks its thread: files, databases, long computations.
    ///
    /// It runs on one of the server's own threads
    /// ([`blocking_threads`](Self::blocking_threads)). A call that is cancelled before a thread is
    /// free never runs. It cannot ask back: a [`BlockingCall`] has no verb for it.
    pub fn blocking_tool<
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: IntoReply + Send + 'static,
    >(
        self,
        tool: impl Into<Tool>,
        handler: impl Fn(A, BlockingCall<S>) -> R + Send + Sync + 'static,
    ) -> Self {
        self.add_tool(tool_spec::<A, R>(tool.into()), handler::blocking_tool(handler))
    }

    /// Adds a tool that brings its own schema and takes its arguments as they came; for bridges.
    pub fn raw_tool<F: Future<Output: IntoReply + Send + 'static> + Send + 'static>(
        self,
        tool: Tool,
        handler: impl Fn(RawJson, Call<S>) -> F + Send + Sync + 'static,
    ) -> Self {
        self.add_tool(Spec::new(tool), handler::raw_tool(handler))
    }

    fn add_tool(mut self, spec: Spec<Tool>, handler: Handler<S>) -> Self {
        self.mistakes.extend(faults_of(&spec));
        let known = self.catalog.tool(&spec.name).is_some();
        self.mistake(known, || format!("two tools are called {:?}", spec.name));
        self.catalog.add_tool(Entry { spec, handler });
        self
    }

    /// Adds a resource: an address and how to read it.
    pub fn resource<F: Future<Output: IntoContents + Send + 'static> + Send + 'static>(
        mut self,
        resource: Resource,
        handler: impl Fn(Call<S>) -> F + Send + Sync + 'static,
    ) -> Self {
        let known = self.catalog.resource(&resource.uri).is_some();
        self.mistake(known, || format!("two resources are at {:?}", resource.uri));
        self.mistake(!resource.uri.contains(':'), || {
            format!("resource {:?}: an address needs a scheme, as in file:///a", resource.uri)
        });
        let handler = handler::resource(resource.mime_type.clone(), handler);
        self.catalog.resources.push(Entry { spec: resource, handler });
        self
    }

    /// Adds a family of resources: a pattern such as `note://{id}`, and how to read one.
    ///
    /// The blanks of the pattern are the fields of `A`, as text. `{name}` is one path segment,
    /// `{+name}` anything.
    pub fn resource_template<
        A: DeserializeOwned + Send + 'static,
        F: Future<Output: IntoContents + Send + 'static> + Send + 'static,
    >(
        mut self,
        template: ResourceTemplate,
        handler: impl Fn(A, Call<S>) -> F + Send + Sync + 'static,
    ) -> Self {
        match UriTemplate::parse(&template.uri_template) {
            Ok(pattern) => {
                let handler = handler::template(template.mime_type.clone(), handler);
                let entry = TemplateEntry { template: pattern, spec: template, handler };
                self.catalog.templates.push(entry);
            }
            Err(reason) => {
                let uri = &template.uri_template;
                self.mistakes.push(format!("resource template {uri:?}: {reason}"));
            }
        }
        self
    }

    /// Adds a prompt. A name will do; a [`Prompt`] says more about it.
    ///
    /// Its arguments are the fields of `A`, all of them text; use [`NoArgs`](super::NoArgs) for none.
    pub fn prompt<
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Future<Output: IntoMessages + Send + 'static> + Send + 'static,
    >(
        mut self,
        prompt: impl Into<Prompt>,
        handler: impl Fn(A, Call<S>) -> F + Send + Sync + 'static,
    ) -> Self {
        let spec = prompt_spec::<A>(prompt.into());
        let known = self.catalog.prompt(&spec.name).is_some();
        self.mistake(known, || format!("two prompts are called {:?}", spec.name));
        self.catalog.prompts.push(Entry { spec, handler: handler::prompt(handler) });
        self
    }

    /// Suggests values for an argument of a prompt or a blank of a resource template, while a person
    /// types. Goes after the prompt or template that it is for.
    pub fn completion<F: Future<Output = Vec<String>> + Send + 'static>(
        mut self,
        of: CompletionReference,
        argument: impl Into<String>,
        handler: impl Fn(CompletionRequest, Call<S>) -> F + Send + Sync + 'static,
    ) -> Self {
        let argument = argument.into();
        let found = self.catalog.completable(&of, &argument);
        let (whose, known) = found.unwrap_or_else(|| (String::new(), false));
        self.mistake(!known, || {
            format!("completion: {of:?} has no argument {argument:?}; register it first")
        });
        self.catalog.completions.insert((whose, argument), handler::completion(handler));
        self
    }

    fn mistake(&mut self, is_one: bool, text: impl FnOnce() -> String) {
        if is_one {
            self.mistakes.push(text());
        }
    }
}

impl From<&str> for Tool {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

/// A name, and a description for the model to read.
impl From<(&str, &str)> for Tool {
    fn from((name, description): (&str, &str)) -> Self {
        Self::new(name).description(description)
    }
}

impl From<&str> for Prompt {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}
