//! Which stream is told of which change: the open streams of one connection, and what waits in each.
//!
//! Knows tags, filters and how changes that were not taken yet are merged. Must not know how a stream
//! is opened (`listen.rs`). SUB-03, SUB-06, CAC-06; invariant 7.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::Notify;

use crate::lock::lock;
use crate::mcp::{Meta, Method, SubscriptionFilter};
use crate::rpc::{ErrorObject, Id};

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
    /// The contents of the resource with this URI, or of a part of it.
    Resource(String),
    /// Anything may have changed: changes were missed, or more of them came than are kept
    /// ([`max_change_bytes`](crate::ClientBuilder::max_change_bytes)).
    Anything,
}

/// What one change takes in a queue: itself twice, and its URI twice.
fn size(change: &Change) -> usize {
    let uri = match change {
        Change::Resource(uri) => uri.len(),
        _ => 0,
    };
    2 * (size_of::<Change>() + uri)
}

/// The changes of a stream that were not taken yet.
pub(crate) struct ChangeQueue {
    state: Mutex<QueueState>,
    /// Wakes the task that takes changes. `acknowledged` wakes the one that waits for the
    /// acknowledgement, which may be another.
    changed: Notify,
    acknowledged: Notify,
    /// How many bytes of changes may wait; see `ClientBuilder::max_change_bytes`.
    limit: usize,
    kind: QueueKind,
}

/// How long a queue lasts, and for whom.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueueKind {
    /// Ends with its connection.
    OneConnection,
    /// Goes on with the next connection to the same server.
    Lasting,
    /// The one by which the client itself hears of its lists. Nothing is kept in it.
    Own,
}

#[derive(Default)]
struct QueueState {
    order: VecDeque<Change>,
    /// The same, so that a change that waits already is not put in again.
    known: HashSet<Change>,
    bytes: usize,
    opened: Option<Result<SubscriptionFilter, ErrorObject>>,
    end: Option<StreamEnd>,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// The server has ended it.
    Politely,
    /// The connection is over.
    Lost,
}

impl ChangeQueue {
    /// A queue that keeps at most `limit` bytes of changes.
    pub(crate) fn new(kind: QueueKind, limit: usize) -> Self {
        let (state, changed, acknowledged) = Default::default();
        Self { state, changed, acknowledged, limit, kind }
    }

    /// Puts a change in, unless it waits already. One that does not fit any more makes
    /// [`Change::Anything`] of all that wait.
    pub(crate) fn push(&self, change: Change) {
        if self.kind == QueueKind::Own {
            return;
        }
        let mut waiting = lock(&self.state);
        if waiting.known.contains(&change) || waiting.known.contains(&Change::Anything) {
            return;
        }
        let change = if waiting.bytes.saturating_add(size(&change)) <= self.limit {
            change
        } else {
            waiting.order = VecDeque::new();
            waiting.known = HashSet::new();
            waiting.bytes = 0;
            Change::Anything
        };
        waiting.bytes += size(&change);
        waiting.known.insert(change.clone());
        waiting.order.push_back(change);
        drop(waiting);
        self.changed.notify_one();
    }

    /// The server has said what it will tell, or why it will not.
    pub(crate) fn opened(&self, how: Result<SubscriptionFilter, ErrorObject>) {
        lock(&self.state).opened.get_or_insert(how);
        self.acknowledged.notify_one();
    }

    pub(crate) fn end(&self, end: StreamEnd) {
        lock(&self.state).end.get_or_insert(end);
        self.acknowledged.notify_one();
        self.changed.notify_one();
    }

    fn end_with_connection(&self) {
        if self.kind == QueueKind::Lasting {
            self.opened(Err(ErrorObject::internal("the connection ended")));
        } else {
            self.end(StreamEnd::Lost);
        }
    }

    /// Makes a lasting queue ready for the next connection.
    pub(crate) fn reopen(&self) {
        lock(&self.state).opened = None;
    }

    /// Waits for the acknowledgement; nothing if the stream ended first.
    pub(crate) async fn wait_opened(&self) -> Option<Result<SubscriptionFilter, ErrorObject>> {
        loop {
            {
                let mut waiting = lock(&self.state);
                if waiting.opened.is_some() || waiting.end.is_some() {
                    return waiting.opened.take();
                }
            }
            self.acknowledged.notified().await;
        }
    }

    pub(crate) async fn next(&self) -> Result<Change, StreamEnd> {
        loop {
            {
                let mut waiting = lock(&self.state);
                if let Some(change) = waiting.order.pop_front() {
                    waiting.known.remove(&change);
                    waiting.bytes -= size(&change);
                    return Ok(change);
                }
                if let Some(end) = waiting.end {
                    return Err(end);
                }
            }
            self.changed.notified().await;
        }
    }
}

/// The open streams of a connection.
#[derive(Default)]
pub(crate) struct Streams(Mutex<Open>);

#[derive(Default)]
struct Open {
    streams: HashMap<u64, OpenStream>,
    /// How many legacy streams watch each resource.
    watched: HashMap<String, usize>,
    next: u64,
    over: bool,
}

struct OpenStream {
    queue: Arc<ChangeQueue>,
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
    /// Enters a modern stream, under the number of its request.
    pub(crate) fn open(&self, number: u64, queue: Arc<ChangeQueue>, filter: SubscriptionFilter) {
        let mut open = lock(&self.0);
        if open.over {
            queue.end_with_connection();
        }
        open.streams.insert(number, OpenStream { queue, filter });
    }

    /// Enters a legacy stream.
    pub(crate) fn open_next(&self, queue: Arc<ChangeQueue>, filter: SubscriptionFilter) -> u64 {
        let number = {
            let mut open = lock(&self.0);
            open.next += 1;
            open.next
        };
        self.open(number, queue, filter);
        number
    }

    pub(crate) fn close(&self, number: u64) {
        lock(&self.0).streams.remove(&number);
    }

    /// One more stream watches a resource: whether it is the first.
    pub(crate) fn watch(&self, uri: &str) -> bool {
        let mut open = lock(&self.0);
        let watching = open.watched.entry(uri.to_owned()).or_default();
        *watching += 1;
        *watching == 1
    }

    /// One stream less watches a resource: whether it was the last.
    pub(crate) fn unwatch(&self, uri: &str) -> bool {
        let mut open = lock(&self.0);
        let Some(watching) = open.watched.get_mut(uri) else { return false };
        *watching -= 1;
        let last = *watching == 0;
        if last {
            open.watched.remove(uri);
        }
        last
    }

    /// The connection is over.
    pub(crate) fn end(&self) {
        let mut open = lock(&self.0);
        open.over = true;
        open.streams.values().for_each(|stream| stream.queue.end_with_connection());
    }

    /// Takes in a notification and puts its change into the queues of the streams that want it. Returns
    /// the change, and whether this is the copy that the client itself has to hear.
    pub(crate) fn take(
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
        let open = lock(&self.0);
        let tagged = tag.filter(|_| modern).and_then(|tag| open.streams.get(&tag));
        let change = match (method, kind, note.uri) {
            (Method::Acknowledged, ..) => {
                tagged?.queue.opened(Ok(note.notifications.unwrap_or_default()));
                return None;
            }
            // CAN-11
            (Method::Cancelled, ..) => {
                tagged?.queue.end(StreamEnd::Politely);
                return None;
            }
            (_, Some(change), _) => change,
            (_, None, uri) => Change::Resource(uri?),
        };
        if modern {
            // SUB-03: a change without a tag of ours belongs to no stream.
            let queue = &tagged?.queue;
            queue.push(change.clone());
            Some((change, queue.kind == QueueKind::Own))
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

    const LIMIT: usize = 64 << 10;

    fn note(streams: &Streams, method: Method, params: serde_json::Value, modern: bool) {
        let raw = serde_json::value::to_raw_value(&params).unwrap();
        streams.take(method, Some(&raw), modern);
    }

    fn drain(queue: &ChangeQueue) -> Vec<Change> {
        let mut waiting = lock(&queue.state);
        waiting.known.clear();
        waiting.bytes = 0;
        waiting.order.drain(..).collect()
    }

    #[test]
    fn changes_that_were_not_taken_are_merged() {
        let queue = ChangeQueue::new(QueueKind::OneConnection, LIMIT);
        for _ in 0..3 {
            queue.push(Change::Tools);
            queue.push(Change::Resource("a".into()));
        }
        assert_eq!(drain(&queue), [Change::Tools, Change::Resource("a".into())]);
    }

    /// C18: the bound is in bytes, so long URIs fill it as well as many do.
    #[test]
    fn changes_that_were_not_taken_are_bounded_in_bytes() {
        let queue = ChangeQueue::new(QueueKind::OneConnection, LIMIT);
        for (count, uri) in [(100_000, String::new()), (100, "x".repeat(LIMIT / 8))] {
            for n in 0..count {
                queue.push(Change::Resource(format!("{uri}{n}")));
                let waiting = lock(&queue.state);
                let kept: usize = waiting.order.iter().map(size).sum();
                assert!(kept <= LIMIT && kept == waiting.bytes, "{kept} bytes");
            }
            assert_eq!(drain(&queue), [Change::Anything]);
        }
    }

    #[tokio::test]
    async fn what_is_taken_makes_room() {
        let queue = ChangeQueue::new(QueueKind::OneConnection, LIMIT);
        for n in 0..10_000 {
            let change = Change::Resource(n.to_string());
            queue.push(change.clone());
            assert_eq!(queue.next().await, Ok(change));
        }
        assert_eq!(lock(&queue.state).bytes, 0);
    }

    /// SUB-06.
    #[test]
    fn sub_03_a_modern_note_goes_to_the_stream_that_its_tag_names_and_to_no_other() {
        let streams = Streams::default();
        let queues = [
            Arc::new(ChangeQueue::new(QueueKind::OneConnection, LIMIT)),
            Arc::new(ChangeQueue::new(QueueKind::OneConnection, LIMIT)),
        ];
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
    fn a_legacy_note_goes_to_the_streams_that_asked_for_it() {
        let streams = Streams::default();
        let (tools, files) = (
            Arc::new(ChangeQueue::new(QueueKind::OneConnection, LIMIT)),
            Arc::new(ChangeQueue::new(QueueKind::OneConnection, LIMIT)),
        );
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
