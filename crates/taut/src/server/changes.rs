//! Changing what a server offers while it serves.

use std::future::Future;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::Server;
use super::call::{BlockingCall, Call, ServerShared};
use super::catalog::Entry;
use super::handler::{
    self, IntoContents, IntoMessages, IntoReply, faults_of, prompt_spec, tool_spec,
};
use super::subscriber::Update;
use crate::error::{Error, Result};
use crate::mcp::{Prompt, Resource, Tool};

/// A handle for changing what a server offers, and for saying that a resource has changed.
///
/// Cheap to clone and to call. Clients that asked for it are told, each in the way of its era; many
/// changes of one list may be told as one.
///
/// ```
/// # use taut::{NoArgs, Server};
/// let server = Server::builder("shop", "1.0").changing().build()?;
/// let changes = server.changes();
/// changes.add_tool(("sale", "What is cheap."), async |_: NoArgs, _call| "everything must go")?;
/// changes.remove_tool("sale");
/// # Ok::<(), taut::Error>(())
/// ```
pub struct Changes<S = ()> {
    shared: Arc<ServerShared<S>>,
}

impl<S> Clone for Changes<S> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<S: Send + Sync + 'static> Changes<S> {
    /// Adds a tool, or replaces the one of that name.
    ///
    /// # Errors
    /// Its name or schema cannot be used, or it has neither arguments nor a description.
    pub fn add_tool<
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Future<Output: IntoReply + Send + 'static> + Send + 'static,
    >(
        &self,
        tool: impl Into<Tool>,
        handler: impl Fn(A, Call<S>) -> F + Send + Sync + 'static,
    ) -> Result<()> {
        let spec = tool_spec::<A, F::Output>(tool.into());
        let mistakes = faults_of(&spec);
        if !mistakes.is_empty() {
            return Err(Error::Build { mistakes });
        }
        let handler = handler::tool(handler);
        self.shared.change(&Update::Tools, |catalog| {
            catalog.remove_tool(&spec.name);
            catalog.add_tool(Entry { spec, handler });
            true
        });
        Ok(())
    }

    /// Removes a tool. Says whether there was one.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.shared.change(&Update::Tools, |catalog| catalog.remove_tool(name))
    }

    /// Adds a resource, or replaces the one at that address.
    pub fn add_resource<F>(
        &self,
        resource: Resource,
        handler: impl Fn(Call<S>) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output: IntoContents + Send + 'static> + Send + 'static,
    {
        let handler = handler::resource(resource.mime_type.clone(), handler);
        self.shared.change(&Update::Resources, |catalog| {
            catalog.resources.retain(|entry| entry.spec.uri != resource.uri);
            catalog.resources.push(Entry { spec: resource, handler });
            true
        });
    }

    /// Removes a resource. Says whether there was one.
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.shared.change(&Update::Resources, |catalog| {
            catalog.resources.extract_if(.., |entry| entry.spec.uri == uri).count() > 0
        })
    }

    /// Adds a prompt, or replaces the one of that name.
    pub fn add_prompt<A, F>(
        &self,
        prompt: impl Into<Prompt>,
        handler: impl Fn(A, Call<S>) -> F + Send + Sync + 'static,
    ) where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Future<Output: IntoMessages + Send + 'static> + Send + 'static,
    {
        let spec = prompt_spec::<A>(prompt.into());
        let handler = handler::prompt(handler);
        self.shared.change(&Update::Prompts, |catalog| {
            catalog.prompts.retain(|entry| entry.spec.name != spec.name);
            catalog.prompts.push(Entry { spec, handler });
            true
        });
    }

    /// Removes a prompt. Says whether there was one.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.shared.change(&Update::Prompts, |catalog| {
            catalog.prompts.extract_if(.., |entry| entry.spec.name == name).count() > 0
        })
    }

    /// Says that what is in a resource has changed.
    pub fn resource_updated(&self, uri: &str) {
        self.shared.tell(&Update::Resource(uri.to_owned()));
    }
}

impl<S: Send + Sync + 'static> Server<S> {
    /// A handle for changing what is offered while it is served. Clients are told only if the server
    /// was built with [`changing`](super::ServerBuilder::changing).
    #[must_use]
    pub fn changes(&self) -> Changes<S> {
        Changes { shared: self.shared.clone() }
    }
}

impl<S> Call<S> {
    /// A handle for changing what the server offers.
    #[must_use]
    pub fn changes(&self) -> Changes<S> {
        Changes { shared: self.inner.connection.shared.clone() }
    }
}

impl<S> BlockingCall<S> {
    /// As [`Call::changes`].
    #[must_use]
    pub fn changes(&self) -> Changes<S> {
        self.0.changes()
    }
}
