//! Who is told of which change: the open streams of one connection, and what waits in each.
//!
//! Knows tags, filters and how changes that nobody has taken yet fall together. Must not know how a
//! stream is opened (`listen.rs`). SUB-03, SUB-06, CAC-06; invariant 7.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Notify;

use crate::mcp::{Meta, Method, SubscriptionFilter};
use crate::rpc::{ErrorObject, Id};

/// Changes that one stream keeps apart at most. Lists are three; a host that watches more resources
/// than this reads them all anyway.
const MAX_WAITING: usize = 1_024;

/// Something of a server's that has changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources, or of their templates.
    Resources,
    /// What stands in this resource, or in a part of it that the address names.
    Resource(String),
    /// More than could be kept apart, or nobody knows what: anything may have changed.
    Anything,
}

/// A stream's changes that nobody has taken yet.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<Waiting>,
    /// Rings for who takes changes, and for who waits for the acknowledgement: they may be two.
    bell: Notify,
    door: Notify,
    /// Whether it outlives a connection.
    lasting: bool,
    /// Whether it is the one by which the client itself hears of its lists. Nobody takes from it.
    own: bool,
}

#[derive(Default)]
struct Waiting {
    order: VecDeque<Change>,
    /// The same, so that a change that waits already is not put in again.
    known: HashSet<Change>,
    opened: Option<Result<SubscriptionFilter, ErrorObject>>,
    end: Option<End>,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The server has ended it.
    Politely,
    /// The connection is over.
    Lost,
}

impl Queue {
    pub(super) fn lasting() -> Self {
        Self { lasting: true, ..Self::default() }
    }

    pub(super) fn own() -> Self {
        Self { own: true, ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, change: Change) {
        let mut waiting = self.lock();
        if waiting.known.contains(&change) || waiting.known.contains(&Change::Anything) {
            return;
        }
        let change = if waiting.order.len() < MAX_WAITING {
            change
        } else {
            waiting.order.clear();
            waiting.known.clear();
            Change::Anything
        };
        waiting.known.insert(change.clone());
        waiting.order.push_back(change);
        drop(waiting);
        self.bell.notify_one();
    }

    /// The server has said what it will tell, or why it will not.
    pub(super) fn opened(&self, how: Result<SubscriptionFilter, ErrorObject>) {
        self.lock().opened.get_or_insert(how);
        self.door.notify_one();
    }

    pub(super) fn end(&self, end: End) {
        self.lock().end.get_or_insert(end);
        self.door.notify_one();
        self.bell.notify_one();
    }

    fn end_with_connection(&self) {
        if self.lasting {
            self.opened(Err(ErrorObject::internal("the connection ended")));
        } else {
            self.end(End::Lost);
        }
    }

    /// Makes a lasting queue ready for the next connection.
    pub(super) fn reopen(&self) {
        self.lock().opened = None;
    }

    /// Waits for the acknowledgement; nothing if the stream ended first.
    pub(super) async fn wait_opened(&self) -> Option<Result<SubscriptionFilter, ErrorObject>> {
        loop {
            {
                let mut waiting = self.lock();
                if waiting.opened.is_some() || waiting.end.is_some() {
                    return waiting.opened.take();
                }
            }
            self.door.notified().await;
        }
    }

    pub(super) async fn next(&self) -> Result<Change, End> {
        loop {
            {
                let mut waiting = self.lock();
                if let Some(change) = waiting.order.pop_front() {
                    waiting.known.remove(&change);
                    return Ok(change);
                }
                if let Some(end) = waiting.end {
                    return Err(end);
                }
            }
            self.bell.notified().await;
        }
    }
}

/// The open streams of a connection.
#[derive(Default)]
pub(super) struct Streams(Mutex<Open>);

#[derive(Default)]
struct Open {
    streams: HashMap<u64, Stream>,
    /// How many legacy streams watch each resource.
    watched: HashMap<String, usize>,
    next: u64,
    over: bool,
}

struct Stream {
    queue: Arc<Queue>,
    filter: SubscriptionFilter,
}

/// A notification as far as it matters here.
#[derive(Default, Deserialize)]
struct Note {
    uri: Option<String>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
    notifications: Option<SubscriptionFilter>,
    #[serde(rename = "requestId")]
    request: Option<Id>,
}

impl Streams {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a modern stream, under the number of its request.
    pub(super) fn open(&self, number: u64, queue: Arc<Queue>, filter: SubscriptionFilter) {
        let mut open = self.lock();
        if open.over {
            queue.end_with_connection();
        }
        open.streams.insert(number, Stream { queue, filter });
    }

    /// Enters a legacy stream.
    pub(super) fn open_next(&self, queue: Arc<Queue>, filter: SubscriptionFilter) -> u64 {
        let number = {
            let mut open = self.lock();
            open.next += 1;
            open.next
        };
        self.open(number, queue, filter);
        number
    }

    pub(super) fn close(&self, number: u64) {
        self.lock().streams.remove(&number);
    }

    /// One more stream watches a resource: whether it is the first.
    pub(super) fn watch(&self, uri: &str) -> bool {
        let mut open = self.lock();
        let watching = open.watched.entry(uri.to_owned()).or_default();
        *watching += 1;
        *watching == 1
    }

    /// One stream less watches a resource: whether it was the last.
    pub(super) fn unwatch(&self, uri: &str) -> bool {
        let mut open = self.lock();
        let Some(watching) = open.watched.get_mut(uri) else { return false };
        *watching -= 1;
        let last = *watching == 0;
        if last {
            open.watched.remove(uri);
        }
        last
    }

    /// The connection is over.
    pub(super) fn end(&self) {
        let mut open = self.lock();
        open.over = true;
        open.streams.values().for_each(|stream| stream.queue.end_with_connection());
    }

    /// Takes in a notification. Says which change it tells of, and whether this is the copy that the
    /// client itself has to hear.
    pub(super) fn take(
        &self,
        method: Method,
        params: Option<&RawValue>,
        modern: bool,
    ) -> Option<(Change, bool)> {
        let kind = match method {
            Method::ToolsChanged => Some(Change::Tools),
            Method::PromptsChanged => Some(Change::Prompts),
            Method::ResourcesChanged => Some(Change::Resources),
            Method::ResourceUpdated | Method::Acknowledged | Method::Cancelled => None,
            _ => return None,
        };
        let note: Note =
            params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
        let tag = note.meta.as_ref().and_then(Meta::subscription_id);
        let tag = tag.or(note.request).and_then(|id| number(&id));
        let open = self.lock();
        let tagged = tag.filter(|_| modern).and_then(|tag| open.streams.get(&tag));
        let change = match (method, kind, note.uri) {
            (Method::Acknowledged, ..) => {
                tagged?.queue.opened(Ok(note.notifications.unwrap_or_default()));
                return None;
            }
            // CAN-11
            (Method::Cancelled, ..) => {
                tagged?.queue.end(End::Politely);
                return None;
            }
            (_, Some(change), _) => change,
            (_, None, uri) => Change::Resource(uri?),
        };
        if modern {
            // SUB-03: what carries no tag of ours belongs to nobody.
            let queue = &tagged?.queue;
            queue.push(change.clone());
            Some((change, queue.own))
        } else {
            let wanting = open.streams.values().filter(|stream| wants(&stream.filter, &change));
            wanting.for_each(|stream| stream.queue.push(change.clone()));
            Some((change, true))
        }
    }
}

fn number(id: &Id) -> Option<u64> {
    id.to_string().parse().ok().filter(|number| Id::from(*number) == *id)
}

/// Whether a legacy stream asked for this.
fn wants(filter: &SubscriptionFilter, change: &Change) -> bool {
    match change {
        Change::Tools => filter.tools_list_changed == Some(true),
        Change::Prompts => filter.prompts_list_changed == Some(true),
        Change::Resources => filter.resources_list_changed == Some(true),
        // RES-10: it may be a part of what was subscribed to.
        Change::Resource(uri) => filter
            .resource_subscriptions
            .as_ref()
            .is_some_and(|wanted| wanted.iter().any(|wanted| uri.starts_with(wanted.as_str()))),
        Change::Anything => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn note(streams: &Streams, method: Method, params: serde_json::Value, modern: bool) {
        let raw = serde_json::value::to_raw_value(&params).unwrap();
        streams.take(method, Some(&raw), modern);
    }

    fn drain(queue: &Queue) -> Vec<Change> {
        let mut waiting = queue.lock();
        waiting.known.clear();
        waiting.order.drain(..).collect()
    }

    #[test]
    fn changes_that_nobody_has_taken_fall_together() {
        let queue = Queue::default();
        for _ in 0..3 {
            queue.push(Change::Tools);
            queue.push(Change::Resource("a".into()));
        }
        assert_eq!(drain(&queue), [Change::Tools, Change::Resource("a".into())]);
        (0..100_000).for_each(|n| queue.push(Change::Resource(n.to_string())));
        assert!(queue.lock().order.len() <= MAX_WAITING);
        assert_eq!(drain(&queue).first(), Some(&Change::Anything));
    }

    /// SUB-06.
    #[test]
    fn sub_03_a_modern_note_goes_to_the_stream_that_its_tag_names_and_to_no_other() {
        let streams = Streams::default();
        let queues = [Arc::new(Queue::default()), Arc::new(Queue::default())];
        streams.open(7, queues[0].clone(), SubscriptionFilter::new());
        streams.open(8, queues[1].clone(), SubscriptionFilter::new());
        let tag = |id: serde_json::Value| json!({ "uri": "a:b", "_meta": { "io.modelcontextprotocol/subscriptionId": id } });
        note(&streams, Method::ResourceUpdated, tag(json!(8)), true);
        note(&streams, Method::ResourceUpdated, tag(json!("7")), true);
        note(&streams, Method::ResourceUpdated, json!({ "uri": "a:b" }), true);
        assert_eq!(drain(&queues[0]), []);
        assert_eq!(drain(&queues[1]), [Change::Resource("a:b".into())]);
    }

    #[test]
    fn a_legacy_note_goes_to_whoever_asked_for_it() {
        let streams = Streams::default();
        let (tools, files) = (Arc::new(Queue::default()), Arc::new(Queue::default()));
        let filter = SubscriptionFilter::new().tools_list_changed(true);
        streams.open_next(tools.clone(), filter);
        let filter = SubscriptionFilter::new().resource_subscriptions(["file:///a".to_owned()]);
        streams.open_next(files.clone(), filter);
        note(&streams, Method::ToolsChanged, json!({}), false);
        note(&streams, Method::ResourceUpdated, json!({ "uri": "file:///a/b" }), false);
        note(&streams, Method::ResourceUpdated, json!({ "uri": "file:///b" }), false);
        assert_eq!(drain(&tools), [Change::Tools]);
        assert_eq!(drain(&files), [Change::Resource("file:///a/b".into())]);
    }
}
