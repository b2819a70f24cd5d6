//! Using a server that may die at any moment: calls that may be repeated, streams that go on.
//!
//! A call is made a second time only if the caller said so, never by itself (P21). Must not know how
//! the server is kept alive (`supervise/mod.rs`).

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use super::SupervisedClient;
use crate::client::connection::{Client, bounded};
use crate::client::listen::{ChangeStream, Subscription};
use crate::client::request::Answer;
use crate::client::state::{Change, ChangeQueue, QueueKind, StreamEnd};
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::mcp::{Method, SubscriptionFilter, Tool};

/// A call of a supervised server's tool; await it.
#[must_use = "a call does nothing until it is awaited"]
pub struct SupervisedCall {
    server: SupervisedClient,
    tool: Arc<str>,
    arguments: Result<Box<RawValue>>,
    timeout: Option<Duration>,
    again: Again,
}

#[derive(Clone, Copy, PartialEq)]
enum Again {
    Never,
    IfHarmless,
    Always,
}

setters! { SupervisedCall;
    /// Sets how long each try may go without an answer.
    timeout(timeout: Duration) => timeout = Some(bounded(timeout));

    /// Says that this call may be made again if the server dies before it answers: it may then have
    /// run twice.
    retry() => again = Again::Always;

    /// As [`retry`](Self::retry), if the server says of the tool that it only reads, or that running
    /// it twice is the same as once. The server may be wrong about that: use it with servers that you
    /// trust.
    retry_if_harmless() => again = Again::IfHarmless;
}

impl SupervisedCall {
    async fn run(self) -> Result<Answer> {
        let Self { server, tool, arguments, timeout, again } = self;
        let arguments = arguments?;
        let mut tries = 0;
        loop {
            let client = server.client().await?;
            let mut call = client.call(tool.clone(), arguments.clone());
            if let Some(timeout) = timeout {
                call = call.timeout(timeout);
            }
            let answer = call.await;
            drop(client);
            tries += 1;
            let lost = matches!(answer, Err(Error::Lost(_)));
            if !lost || tries > server.0.policy.max_restarts {
                return answer;
            }
            let allowed = match again {
                Again::Never => false,
                Again::Always => true,
                Again::IfHarmless => is_harmless(&server.client().await?, &tool).await,
            };
            if !allowed {
                return answer;
            }
        }
    }
}

/// Whether a server says of its tool that it may be run twice.
async fn is_harmless(client: &Client, name: &str) -> bool {
    let tools = client.tools().await.unwrap_or_default();
    let hints = |tool: Tool| tool.annotations.map(|a| [a.read_only_hint, a.idempotent_hint]);
    let tool = tools.into_iter().find(|tool| tool.name == name);
    tool.and_then(hints).is_some_and(|hints| hints.contains(&Some(true)))
}

impl IntoFuture for SupervisedCall {
    type Output = Result<Answer>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Answer>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl SupervisedClient {
    /// Calls a tool, as soon as the server is there. A call whose server dies fails at once, with the
    /// reason, unless it may be [repeated](SupervisedCall::retry).
    pub fn call(&self, tool: impl Into<Arc<str>>, arguments: impl Serialize) -> SupervisedCall {
        let arguments = serde_json::value::to_raw_value(&arguments).map_err(|error| {
            let method = Method::CallTool.as_str().into();
            Error::Encode { method, reason: error.to_string() }
        });
        let (server, tool) = (self.clone(), tool.into());
        SupervisedCall { server, tool, arguments, timeout: None, again: Again::Never }
    }

    /// Opens a stream of changes, see [`Client::listen`]. The stream goes on when the server is started
    /// again, with [`Change::Anything`] first: what was missed is not known.
    ///
    /// # Errors
    /// As for [`Client::listen`]; or the server was given up.
    pub async fn listen(&self, filter: SubscriptionFilter) -> Result<ChangeStream> {
        let client = self.client().await?;
        let queue =
            Arc::new(ChangeQueue::new(QueueKind::Lasting, client.0.settings().max_change_bytes));
        let renewed = Arc::new(RenewedStream {
            filter: filter.clone(),
            queue: queue.clone(),
            open: Mutex::default(),
        });
        {
            let mut streams = lock(&self.0.streams);
            streams.retain(|stream| stream.strong_count() > 0);
            streams.push(Arc::downgrade(&renewed));
        }
        let (open, honoured) = client.listen_into(filter, &queue).await?;
        renewed.put(open);
        let core = Arc::downgrade(&self.0);
        Ok(ChangeStream::new(queue, honoured, renewed, move || core.upgrade()?.over()))
    }
}

/// A stream that is opened again with each start of the server.
pub(super) struct RenewedStream {
    filter: SubscriptionFilter,
    queue: Arc<ChangeQueue>,
    open: Mutex<Option<Subscription>>,
}

impl RenewedStream {
    fn put(&self, open: Subscription) {
        let before = lock(&self.open).replace(open);
        drop(before);
    }

    /// Opens it at the server that is there now.
    pub(super) async fn renew(&self, client: &Client) {
        match client.listen_into(self.filter.clone(), &self.queue).await {
            Ok((open, _)) => {
                self.put(open);
                self.queue.push(Change::Anything);
            }
            // It died again, and the next start tries again.
            Err(_) if !client.0.session.is_up() => {}
            Err(error) => {
                tracing::warn!(%error, "a stream of changes could not be opened again");
                self.queue.end(StreamEnd::Politely);
            }
        }
    }

    pub(super) fn end(&self) {
        self.queue.end(StreamEnd::Lost);
    }
}
