//! Which tools may run twice.
//!
//! Asked only when a call was lost: the list is fetched then, and kept for a minute.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use taut::Client;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Edge;

/// How long a list is good.
const FRESH: Duration = Duration::from_secs(60);

/// How long it may take to get one.
const LIMIT: Duration = Duration::from_secs(20);

/// The tools that are annotated as read-only or idempotent, when they were last asked for.
#[derive(Default)]
pub(super) struct Repeatable(Mutex<Option<(Instant, HashSet<String>)>>);

impl Edge {
    /// Whether a tool says that it may run twice. If that cannot be found out, it may not.
    pub(super) fn may_repeat(&self, tool: String) -> Pin<Box<dyn Future<Output = bool> + Send>> {
        let edge = self.clone();
        Box::pin(async move {
            let mut known = edge.0.repeatable.0.lock().await;
            if let Some((when, tools)) = &*known
                && when.elapsed() < FRESH
            {
                return tools.contains(&tool);
            }
            match tokio::time::timeout(LIMIT, edge.repeatable_tools()).await {
                Ok(Ok(tools)) => {
                    let may = tools.contains(&tool);
                    *known = Some((Instant::now(), tools));
                    may
                }
                _ => false,
            }
        })
    }

    async fn repeatable_tools(&self) -> taut::Result<HashSet<String>> {
        let client = self.open(Client::builder()).await?;
        let tools = client.tools().await?;
        client.close().await?;
        let may = |tool: &taut::types::Tool| {
            tool.annotations.as_ref().is_some_and(|hints| {
                hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true)
            })
        };
        Ok(tools.into_iter().filter(may).map(|tool| tool.name).collect())
    }
}
