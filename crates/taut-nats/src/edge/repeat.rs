//! Which tools may run twice.
//!
//! Asked only when a call was lost: the list is fetched then, and kept for a minute. That there was none is kept for some
//! seconds, so that many calls which are lost together do not wait for it one after the other.

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

/// How long it counts that there was none.
const MISSING: Duration = Duration::from_secs(5);

/// How long it may take to get one.
const LIMIT: Duration = Duration::from_secs(20);

/// The tools that are annotated as read-only or idempotent, and when they were last asked for; `None` if nobody told.
#[derive(Default)]
pub(super) struct Repeatable(Mutex<Option<(Instant, Option<HashSet<String>>)>>);

impl Edge {
    /// Whether a tool says that it may run twice. If that cannot be found out, it may not.
    pub(super) fn may_repeat(&self, tool: String) -> Pin<Box<dyn Future<Output = bool> + Send>> {
        let edge = self.clone();
        Box::pin(async move {
            let mut known = edge.0.repeatable.0.lock().await;
            let fresh = |(when, tools): &&(Instant, Option<HashSet<String>>)| {
                when.elapsed() < if tools.is_some() { FRESH } else { MISSING }
            };
            let (_, tools) = match known.as_ref().filter(fresh) {
                Some(told) => told,
                None => {
                    let asked = tokio::time::timeout(LIMIT, edge.repeatable_tools()).await;
                    let tools = asked.ok().and_then(Result::ok);
                    known.insert((Instant::now(), tools))
                }
            };
            tools.as_ref().is_some_and(|tools| tools.contains(&tool))
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
