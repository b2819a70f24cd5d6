//! Hearing of changes: one stream, in both eras with the same code.
//!
//! Knows how a stream is opened and closed: by subscribing to each resource, or by one long request.
//! Must not know how notes find their stream (`changes.rs`). RES-07, RES-08, SUB-01, SUB-06, SUB-07.

use std::sync::{Arc, Weak};

use super::changes::{Change, End, Queue, Streams};
use super::envelope::Params;
use super::host::Home;
use super::request::read_result;
use super::supervise::Core;
use super::supervised::Renewed;
use super::typed::Shaped;
use super::{Client, Shared};
use crate::driver::{Link, PendingCall};
use crate::error::{Error, Result};
use crate::mcp::{EmptyResult, Method, ResourceParams, SubscriptionFilter, SubscriptionParams};
use crate::rpc::{ErrorObject, Failure};

/// A stream of changes: [`Client::listen`]. Dropping it tells the server to stop.
///
/// What happened several times before it was taken comes once.
pub struct Listening {
    queue: Arc<Queue>,
    honoured: SubscriptionFilter,
    from: From,
    told: bool,
}

/// Whose changes they are.
enum From {
    One { home: Arc<Home>, _open: Subscription },
    Supervised { core: Weak<Core>, _open: Arc<Renewed> },
}

impl From {
    /// Why nothing comes any more; nothing if we have ended it ourselves.
    fn lost(&self) -> Option<Error> {
        match self {
            Self::One { home, .. } => {
                let client = home.client().filter(|client| !client.0.session.is_closing())?;
                Some(client.0.session.lost(LISTEN.into()))
            }
            Self::Supervised { core, .. } => core.upgrade()?.over(),
        }
    }
}

impl Listening {
    pub(super) fn renewed(
        queue: Arc<Queue>,
        honoured: SubscriptionFilter,
        open: Arc<Renewed>,
        core: Weak<Core>,
    ) -> Self {
        Self { queue, honoured, from: From::Supervised { core, _open: open }, told: false }
    }

    /// The next change; nothing once the server or this client has ended the stream.
    ///
    /// # Errors
    /// The connection was lost. Told once.
    pub async fn next(&mut self) -> Result<Option<Change>> {
        match self.queue.next().await {
            Ok(change) => Ok(Some(change)),
            Err(End::Lost) if !self.told => {
                self.told = true;
                self.from.lost().map_or(Ok(None), Err)
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

const LISTEN: &str = Method::Listen.as_str();

/// What is open at a server. Dropping it closes it there.
pub(super) struct Subscription {
    streams: Arc<Streams>,
    number: u64,
    how: How,
}

enum How {
    /// SUB-07: dropping the call withdraws it.
    Modern {
        _call: PendingCall<()>,
    },
    Legacy {
        link: Link,
        uris: Vec<String>,
    },
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.streams.close(self.number);
        let How::Legacy { link, uris } = &self.how else { return };
        for uri in uris.iter().filter(|uri| self.streams.unwatch(uri)) {
            let params = ResourceParams::new(uri);
            // Nobody waits for the answer, and a connection that is over needs none.
            let sent =
                link.call(Method::Unsubscribe.as_str(), |_| Some(params), None, None, |_| ());
            if let Ok(call) = sent {
                call.detach();
            }
        }
    }
}

impl Client {
    /// Hears of changes: of the lists and the resources that `filter` names, as far as the server
    /// offers to tell.
    ///
    /// ```no_run
    /// # async fn run(client: taut::Client) -> taut::Result<()> {
    /// let filter = taut::SubscriptionFilter::new()
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
    pub async fn listen(&self, filter: SubscriptionFilter) -> Result<Listening> {
        let queue = Arc::new(Queue::default());
        let (open, honoured) = self.listen_into(filter, &queue).await?;
        let from = From::One { home: self.0.session.home.clone(), _open: open };
        Ok(Listening { queue, honoured, from, told: false })
    }

    pub(super) async fn listen_into(
        &self,
        filter: SubscriptionFilter,
        queue: &Arc<Queue>,
    ) -> Result<(Subscription, SubscriptionFilter)> {
        // LIF-12: what was not offered is not asked for.
        let wanted = filter.honoured_by(self.capabilities());
        if wanted.is_empty() && !filter.is_empty() {
            let capability = "notes of these changes";
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
        queue: &Arc<Queue>,
    ) -> Result<(Subscription, SubscriptionFilter)> {
        queue.reopen();
        let open = self.0.send_listen(wanted, queue)?;
        let after = self.0.settings.request;
        let deadline = {
            let _inside = self.0.session.home.runtime.enter();
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
        queue: &Arc<Queue>,
    ) -> Result<Subscription> {
        let session = &self.0.session;
        let uris = wanted.resource_subscriptions.clone().unwrap_or_default();
        let number = session.streams.open_next(queue.clone(), wanted);
        let link = session.link.clone();
        let mut open = Subscription {
            streams: session.streams.clone(),
            number,
            how: How::Legacy { link, uris: Vec::new() },
        };
        for uri in uris {
            let first = session.streams.watch(&uri);
            if let How::Legacy { uris, .. } = &mut open.how {
                uris.push(uri.clone());
            }
            if first {
                let params = ResourceParams::new(uri);
                let read = read_result::<EmptyResult>;
                self.typed(Method::Subscribe, params, true, "resources", read).await?;
            }
        }
        Ok(open)
    }
}

impl Shared {
    /// Sends the long request; its acknowledgement comes by the queue.
    pub(super) fn send_listen(
        &self,
        wanted: SubscriptionFilter,
        queue: &Arc<Queue>,
    ) -> Result<Subscription> {
        let session = &self.session;
        let params = SubscriptionParams::new(wanted.clone());
        let mut body = Shaped { params, revision: self.agreed.revision };
        let mut number = None;
        let ending = queue.clone();
        let sent = session.link.call(
            LISTEN,
            |call| {
                // Before it leaves, so that the acknowledgement finds it.
                number = Some(call.number());
                session.streams.open(call.number(), queue.clone(), wanted);
                Some(Params {
                    tool: None,
                    body: &mut body,
                    envelope: &self.envelope,
                    // SUB-10: neither progress nor logs ride on it.
                    level: None,
                    token: None,
                    meta: None,
                    retry: None,
                })
            },
            None,
            None,
            move |outcome| match outcome {
                // SUB-09; one that was never acknowledged was no stream.
                Ok(_) => {
                    ending.opened(Err(ErrorObject::internal("ended before it was acknowledged")));
                    ending.end(End::Politely);
                }
                Err(Failure::Refused(error)) => {
                    ending.opened(Err(error));
                    ending.end(End::Politely);
                }
                // The connection is over, and tells all streams itself.
                Err(_) => {}
            },
        );
        let number = number.unwrap_or_default();
        match sent {
            Ok(call) => {
                let streams = session.streams.clone();
                Ok(Subscription { streams, number, how: How::Modern { _call: call } })
            }
            Err(_) => {
                session.streams.close(number);
                Err(session.lost(LISTEN.into()))
            }
        }
    }

    /// The three lists, as far as the server tells of them.
    pub(super) fn all_lists(&self) -> SubscriptionFilter {
        SubscriptionFilter::new()
            .tools_list_changed(true)
            .prompts_list_changed(true)
            .resources_list_changed(true)
            .honoured_by(&self.agreed.capabilities)
    }
}
