//! Changing what a server offers while it serves.

use std::future::Future;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::Shared;
use super::call::Call;
use super::contents::{IntoContents, IntoMessages};
use super::erase::{erase_prompt, erase_resource, erase_tool, faults_of};
use super::registry::{Offer, Registry};
use super::reply::IntoReply;
use super::subscriber::Change;
use crate::error::{Error, Result};
use crate::mcp::{Prompt, Resource, Tool};

/// A handle for changing what a server offers, and for saying that a resource has changed.
///
/// Cheap to clone and to call. Clients that asked for it are told, each in the way of its era; many
/// changes of one list may be told as one.
///
/// ```
/// # use taut::{NoArgs, Server};
/// let server = Server::new("shop", "1.0").changing();
/// let changes = server.changes();
/// changes.add_tool("sale", async |_: NoArgs, _call| "everything must go")?;
/// changes.remove_tool("sale");
/// # Ok::<(), taut::Error>(())
/// ```
pub struct Changes<S = ()> {
    pub(super) shared: Arc<Shared<S>>,
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
    /// Its name or schema cannot be used.
    pub fn add_tool<A, F, R>(
        &self,
        tool: impl Into<Tool>,
        handler: impl Fn(A, Call<S>) -> F + Send + Sync + 'static,
    ) -> Result<()>
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Future<Output = R> + Send + 'static,
        R: IntoReply + Send + 'static,
    {
        let (tool, handler) = erase_tool(tool.into(), handler);
        let mistakes = faults_of(&tool);
        if !mistakes.is_empty() {
            return Err(Error::Build { mistakes });
        }
        self.change(Change::Tools, |registry| {
            registry.remove_tool(&tool.name);
            registry.add_tool(Offer { spec: tool, handler });
            true
        });
        Ok(())
    }

    /// Removes a tool. Says whether there was one.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.change(Change::Tools, |registry| registry.remove_tool(name))
    }

    /// Adds a resource, or replaces the one at that address.
    pub fn add_resource<F, R>(
        &self,
        resource: Resource,
        handler: impl Fn(Call<S>) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = R> + Send + 'static,
        R: IntoContents + Send + 'static,
    {
        let (resource, handler) = erase_resource(resource, handler);
        self.change(Change::Resources, |registry| {
            registry.resources.retain(|offer| offer.spec.uri != resource.uri);
            registry.resources.push(Offer { spec: resource, handler });
            true
        });
    }

    /// Removes a resource. Says whether there was one.
    pub fn remove_resource(&self, uri: &str) -> bool {
        self.change(Change::Resources, |registry| {
            let before = registry.resources.len();
            registry.resources.retain(|offer| offer.spec.uri != uri);
            registry.resources.len() < before
        })
    }

    /// Adds a prompt, or replaces the one of that name.
    pub fn add_prompt<A, F, R>(
        &self,
        prompt: impl Into<Prompt>,
        handler: impl Fn(A, Call<S>) -> F + Send + Sync + 'static,
    ) where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Future<Output = R> + Send + 'static,
        R: IntoMessages + Send + 'static,
    {
        let (prompt, handler) = erase_prompt(prompt.into(), handler);
        self.change(Change::Prompts, |registry| {
            registry.prompts.retain(|offer| offer.spec.name != prompt.name);
            registry.prompts.push(Offer { spec: prompt, handler });
            true
        });
    }

    /// Removes a prompt. Says whether there was one.
    pub fn remove_prompt(&self, name: &str) -> bool {
        self.change(Change::Prompts, |registry| {
            let before = registry.prompts.len();
            registry.prompts.retain(|offer| offer.spec.name != name);
            registry.prompts.len() < before
        })
    }

    /// Says that what is in a resource has changed.
    pub fn resource_updated(&self, uri: &str) {
        self.shared.tell(Change::Resource(uri));
    }

    fn change(&self, what: Change<'_>, change: impl FnOnce(&mut Registry<S>) -> bool) -> bool {
        let changed = self.shared.registry.change(|current| {
            let mut next = Registry::clone(current);
            let changed = change(&mut next);
            if changed {
                *current = Arc::new(next);
            }
            changed
        });
        if changed {
            self.shared.tell(what);
        }
        changed
    }
}
