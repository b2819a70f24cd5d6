//! Streams of changes, in both eras with the same code.
//!
//! Knows how a stream is opened and closed: by subscribing to each resource, or by one long request.
//! Must not know how a change finds its stream (`state/changes.rs`). RES-07, RES-08, SUB-01, SUB-06,
//! SUB-07.

use std::any::Any;
use std::sync::Arc;

use super::connection::{Client, ClientShared, SessionState};
use super::request::{OutgoingParams, read_result};
use super::state::{Change, ChangeQueue, QueueKind, StreamEnd};
use crate::driver::{Link, PendingCall};
use crate::error::{Error, Result};
use crate::mcp::{
    EmptyResult, Method, ResourceParams, ServerCapabilities, SubscriptionFilter,
    SubscriptionParams, Target, WriteJson as _,
};
use crate::rpc::{ErrorObject, Failure};

/// A stream of changes: [`Client::listen`]. Dropping it tells the server to stop.
///
/// A change that happened several times before it was taken comes once.
pub struct ChangeStream {
    queue: Arc<ChangeQueue>,
    honoured: SubscriptionFilter,
    /// Why no more changes come; `None` if we have ended it ourselves.
    why_lost: Box<dyn Fn() -> Option<Error> + Send + Sync>,
    told: bool,
    /// Keeps the stream open at the server.
    _open: Box<dyn Any + Send + Sync>,
}

impl ChangeStream {
    pub(super) fn new(
        queue: Arc<ChangeQueue>,
        honoured: SubscriptionFilter,
        open: impl Any + Send + Sync,
        why_lost: impl Fn() -> Option<Error> + Send + Sync + 'static,
    ) -> Self {
        let (why_lost, open) = (Box::new(why_lost), Box::new(open));
        Self { queue, honoured, why_lost, told: false, _open: open }
    }

    /// The next change; `None` once the server or this client has ended the stream.
    ///
    /// # Errors
    /// The connection was lost. Returned once; then `None`.
    pub async fn next(&mut self) -> Result<Option<Change>> {
        match self.queue.next().await {
            Ok(change) => Ok(Some(change)),
            Err(StreamEnd::Lost) if !self.told => {
                self.told = true;
                (self.why_lost)().map_or(Ok(None), Err)
            }
            Err(_) => Ok(None),
        }
    }

    /// What the server has agreed to tell: the part of the filter that it can honour.
    #[must_use]
    pub fn honoured(&self) -> &SubscriptionFilter {
        &self.honoured
    }
}

/// All changes of lists that a server with this `offer` tells of.
pub(crate) fn list_changes(offer: &ServerCapabilities) -> SubscriptionFilter {
    let all = SubscriptionFilter::new().tools_list_changed(true).prompts_list_changed(true);
    all.resources_list_changed(true).honoured_by(offer)
}

const LISTEN: &str = Method::Listen.as_str();

/// What is open at a server. Dropping it closes it there.
pub(super) struct Subscription {
    state: Arc<SessionState>,
    link: Link,
    number: u64,
    /// The resources that a legacy server was subscribed to.
    uris: Vec<String>,
    /// The long request of a modern one. SUB-07: dropping it withdraws it.
    _request: Option<PendingCall<()>>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.state.streams.close(self.number);
        for uri in self.uris.iter().filter(|uri| self.state.streams.unwatch(uri)) {
            let params = ResourceParams::new(uri);
            // The answer is not waited for, and a connection that is over needs none.
            let method = Method::Unsubscribe.as_str();
            let sent = self.link.call(None, method, |_| Some(params), None, None, |_| ());
            if let Ok(call) = sent {
                call.detach();
            }
        }
    }
}

impl Client {
    /// Opens a stream of changes: of the lists and the resources that `filter` names, as far as the
    /// server offers to tell of them.
    ///
    /// ```no_run
    /// # async fn run(client: taut::Client) -> taut::Result<()> {
    /// let filter = taut::types::SubscriptionFilter::new()
    ///     .tools_list_changed(true)
    ///     .resource_subscriptions(["file:///notes.txt".to_owned()]);
    /// let mut changes = client.listen(filter).await?;
    /// while let Some(change) = changes.next().await? {
    ///     println!("{change:?}");
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The server offers nothing of it, or refuses, or does not acknowledge in time.
    pub async fn listen(&self, filter: SubscriptionFilter) -> Result<ChangeStream> {
        let queue = Arc::new(ChangeQueue::new(
            QueueKind::OneConnection,
            self.0.settings().max_change_bytes,
        ));
        let (open, honoured) = self.listen_into(filter, &queue).await?;
        let state = self.0.session.state.clone();
        Ok(ChangeStream::new(queue, honoured, open, move || {
            let client = state.client().filter(|client| !client.0.session.is_closing())?;
            Some(client.0.session.lost(LISTEN.into()))
        }))
    }

    pub(super) async fn listen_into(
        &self,
        filter: SubscriptionFilter,
        queue: &Arc<ChangeQueue>,
    ) -> Result<(Subscription, SubscriptionFilter)> {
        // LIF-12: what was not offered is not asked for.
        let wanted = filter.honoured_by(self.capabilities());
        if wanted.is_empty() && !filter.is_empty() {
            let capability = "notifications of these changes";
            return Err(Error::NotOffered { method: LISTEN.into(), capability });
        }
        if self.revision().is_modern() {
            self.listen_modern(wanted, queue).await
        } else {
            let open = self.listen_legacy(wanted.clone(), queue).await?;
            Ok((open, wanted))
        }
    }

    async fn listen_modern(
        &self,
        wanted: SubscriptionFilter,
        queue: &Arc<ChangeQueue>,
    ) -> Result<(Subscription, SubscriptionFilter)> {
        queue.reopen();
        let open = self.0.send_listen(wanted, queue)?;
        let after = self.0.settings().request;
        let deadline = {
            let _inside = self.0.session.state.runtime.enter();
            tokio::time::timeout(after, queue.wait_opened())
        };
        match deadline.await {
            Ok(Some(Ok(honoured))) => Ok((open, honoured)),
            Ok(Some(Err(error))) => Err(Error::Refused { method: LISTEN.into(), error }),
            Ok(None) => Err(self.0.session.lost(LISTEN.into())),
            Err(_) => Err(Error::TimedOut { method: LISTEN.into(), after, ceiling: false }),
        }
    }

    async fn listen_legacy(
        &self,
        wanted: SubscriptionFilter,
        queue: &Arc<ChangeQueue>,
    ) -> Result<Subscription> {
        let session = &self.0.session;
        let uris = wanted.resource_subscriptions.clone().unwrap_or_default();
        let number = session.state.streams.open_next(queue.clone(), wanted);
        let (state, link) = (session.state.clone(), session.link.clone());
        let mut open = Subscription { state, link, number, uris: Vec::new(), _request: None };
        for uri in uris {
            let first = session.state.streams.watch(&uri);
            open.uris.push(uri.clone());
            if first {
                let read = read_result::<EmptyResult>;
                self.typed(Method::Subscribe, &ResourceParams::new(uri), read).await?;
            }
        }
        Ok(open)
    }
}

impl ClientShared {
    /// Sends the long request; its acknowledgement comes by the queue.
    fn send_listen(
        &self,
        wanted: SubscriptionFilter,
        queue: &Arc<ChangeQueue>,
    ) -> Result<Subscription> {
        let (session, state) = (&self.session, &self.session.state);
        let params = SubscriptionParams::new(wanted.clone());
        let mut body = Vec::new();
        params.write_json(Target::of(self.agreed.revision), &mut body);
        let mut number = None;
        let ending = queue.clone();
        let sent = session.link.call(
            None,
            LISTEN,
            |call| {
                // Before it leaves, so that the acknowledgement finds it.
                number = Some(call.number());
                state.streams.open(call.number(), queue.clone(), wanted);
                // SUB-10: it asks for neither progress nor logs.
                Some(OutgoingParams::new(&body, &self.envelope))
            },
            None,
            None,
            move |outcome| match outcome {
                // SUB-09; one that was never acknowledged was no stream.
                Ok(_) => {
                    ending.opened(Err(ErrorObject::internal("ended before it was acknowledged")));
                    ending.end(StreamEnd::Politely);
                }
                Err(Failure::Refused(error)) => {
                    ending.opened(Err(error));
                    ending.end(StreamEnd::Politely);
                }
                // The connection is over, and tells all streams itself.
                Err(_) => {}
            },
        );
        let number = number.unwrap_or_default();
        match sent {
            Ok(request) => {
                let (state, link) = (state.clone(), session.link.clone());
                Ok(Subscription { state, link, number, uris: Vec::new(), _request: Some(request) })
            }
            Err(_) => {
                state.streams.close(number);
                Err(session.lost(LISTEN.into()))
            }
        }
    }

    /// Asks a modern server to tell of its lists, if a setting of this client needs that. A legacy one
    /// tells without being asked.
    pub(super) fn watch_lists(&self) {
        let settings = self.settings();
        let wanted = settings.keep_lists || settings.handlers.on_change.is_some();
        #[cfg(feature = "validate")]
        let wanted = wanted || settings.check_answers;
        let lists = list_changes(&self.agreed.capabilities);
        if !wanted || !self.agreed.revision.is_modern() || lists.is_empty() {
            return;
        }
        // A connection that is over says so by itself; a server that refuses is asked no more.
        if let Ok(open) = self.send_listen(lists, &Arc::new(ChangeQueue::new(QueueKind::Own, 0))) {
            let _ = self.session.state.lists.subscription.set(Box::new(open));
        }
    }
}
