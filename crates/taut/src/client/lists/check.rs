//! Whether what a tool answers is what its own schema promises.
//!
//! Knows when a schema is looked up: a tool that was never listed is, before its first call, so that
//! every call is checked. A name that is not in the list has no schema, and is not looked up again
//! before the list changes. Must not know how a schema is checked (`schema/`) or kept
//! (`state/lists.rs`). TOL-13.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::{Page, pages};
use crate::client::connection::{Client, ClientShared};
use crate::client::request::{Answer, Request};
use crate::client::state::OutputSchema;
use crate::error::Result;
use crate::mcp::Tool;

/// Asks for a page of a list, and takes in what it says of tools.
pub(super) async fn learning<T: Send + 'static>(
    shared: Arc<ClientShared>,
    request: Request<Page<T>>,
) -> Result<Page<T>> {
    let outputs = &shared.session.state.lists.outputs;
    let seen = outputs.changes();
    let page = request.await?;
    if let Some(tools) = (&page.items as &dyn Any).downcast_ref::<Vec<Tool>>() {
        outputs.learn(tools, seen, shared.settings().max_kept_bytes);
    }
    Ok(page)
}

/// Makes a call, and checks what comes of it.
pub(in crate::client) fn checked(
    request: Request<Answer>,
    tool: Arc<str>,
    timeout: Option<Duration>,
) -> Pin<Box<dyn Future<Output = Result<Answer>> + Send>> {
    Box::pin(async move {
        let client = Client(request.shared.clone());
        let schema = schema_of(&client, &tool, timeout).await;
        let outputs = &client.0.session.state.lists.outputs;
        let seen = outputs.changes();
        let answer = request.await?;
        match schema {
            // A list that changed meanwhile may have another schema, and which one held is unknown.
            Some(schema) if outputs.changes() == seen => answer.check_schema(&schema)?,
            _ => {}
        }
        Ok(answer)
    })
}

async fn schema_of(
    client: &Client,
    tool: &str,
    timeout: Option<Duration>,
) -> Option<Arc<OutputSchema>> {
    let outputs = &client.0.session.state.lists.outputs;
    if let Ok(found) = outputs.find(tool) {
        return found;
    }
    let _one = outputs.listing.lock().await;
    // Another call may have read the list while this one waited for the lock.
    let seen = match outputs.find(tool) {
        Ok(found) => return found,
        Err(seen) => seen,
    };
    let mut list = pages::<Tool>(client, client.capabilities().tools.is_some());
    if let Some(timeout) = timeout {
        list = list.timeout(timeout);
    }
    let most = client.0.settings().max_list_bytes;
    // Each page is taken in on its way. A server that is gone says so when the call is made.
    loop {
        match list.next_page().await {
            Ok(Some(_)) if list.bytes > most => {
                tracing::debug!(
                    tool,
                    "the list of tools is too long, so the answer is not checked"
                );
                return None;
            }
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => {
                tracing::debug!(%error, tool, "no list of tools, so the answer is not checked");
                return None;
            }
        }
    }
    outputs.listed(seen);
    outputs.find(tool).ok().flatten()
}
