//! What one connection wants to hear of, and what it has not heard yet.
//!
//! A change only leaves a mark here and wakes the loop; the loop turns marks into notifications
//! when the pipe has room. So a thousand changes of one list are one notification to a client that
//! reads slowly, and memory stays bounded by what is subscribed to.
//!
//! Locks: first what is wanted, then the link, never the other way round.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::settings::FollowBounds;
use crate::driver::{IncomingRequest, Link};
use crate::lock::lock;
use crate::mcp::{
    BareParams, EmptyResult, Meta, Method, ResourceParams, Revision, SubscriptionFilter,
    SubscriptionParams, WriteJson, meta_keys,
};
use crate::rpc::{ErrorObject, Id};

/// What an address costs beside its bytes, so that many short ones have a bound, too.
const ADDRESS: usize = 64;

/// Notifications wait while so much output does. As much as the loop writes in one turn: whatever
/// makes room for more has been a turn's work, after which the loop looks again.
const CROWDED: usize = 64 << 10;

/// Something that has changed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Update<'a> {
    Tools,
    Resources,
    Prompts,
    /// The resource at this address.
    Resource(&'a str),
}

/// One connection's subscriptions.
pub(crate) struct Subscriber {
    link: Link,
    bounds: FollowBounds,
    wants: Mutex<Wants>,
    /// Whether there are marks, so that the loop need not look on every pass.
    marked: AtomicBool,
    /// Whether lists were told of although output waited, since it last had room: once is enough, because who
    /// hears of it later lists later.
    pressed: AtomicBool,
}

#[derive(Default)]
struct Wants {
    /// The legacy session that hears of lists unasked, once it is initialized (LIF-10, TOL-24).
    session: Option<Revision>,
    followed: BTreeSet<String>,
    streams: Vec<Stream>,
    marks: Marks,
    /// What the addresses of all these come to.
    bytes: usize,
}

impl Wants {
    fn has_room(&self, bytes: usize, bounds: FollowBounds) -> Result<(), ErrorObject> {
        let room = bounds.bytes.saturating_sub(self.bytes);
        if bytes <= room { Ok(()) } else { Err(bounds.exceeded()) }
    }

    fn keep_streams(&mut self, mut keep: impl FnMut(&Stream) -> bool) {
        let Self { streams, bytes, .. } = self;
        streams.retain(|stream| {
            let kept = keep(stream);
            *bytes -= if kept { 0 } else { stream.bytes };
            kept
        });
    }
}

fn bytes_of<'a>(uris: impl IntoIterator<Item = &'a String>) -> usize {
    uris.into_iter().map(|uri| uri.len() + ADDRESS).sum()
}

/// One `subscriptions/listen`.
struct Stream {
    id: Id,
    serial: u64,
    filter: SubscriptionFilter,
    marks: Marks,
    bytes: usize,
}

/// An open stream. Dropped, it is over, and nothing more is said on it (SUB-07).
pub(crate) struct ListenStream {
    subscriber: Arc<Subscriber>,
    serial: u64,
}

impl Drop for ListenStream {
    fn drop(&mut self) {
        lock(&self.subscriber.wants).keep_streams(|stream| stream.serial != self.serial);
    }
}

/// What has changed and was not told yet.
#[derive(Default)]
struct Marks {
    tools: bool,
    resources: bool,
    prompts: bool,
    updated: BTreeSet<String>,
}

impl Marks {
    fn leave(&mut self, update: Update<'_>) {
        match update {
            Update::Tools => self.tools = true,
            Update::Resources => self.resources = true,
            Update::Prompts => self.prompts = true,
            Update::Resource(uri) => {
                self.updated.insert(uri.to_owned());
            }
        }
    }

    /// The next list that has changed.
    fn next_list(&mut self) -> Option<Method> {
        let lists = [
            (&mut self.tools, Method::ToolsChanged),
            (&mut self.resources, Method::ResourcesChanged),
            (&mut self.prompts, Method::PromptsChanged),
        ];
        lists.into_iter().find_map(|(mark, method)| std::mem::take(mark).then_some(method))
    }

    /// The next notification that tells of them.
    fn next(&mut self) -> Option<(Method, Option<String>)> {
        let list = self.next_list().map(|method| (method, None));
        list.or_else(|| self.updated.pop_first().map(|uri| (Method::ResourceUpdated, Some(uri))))
    }
}

impl Subscriber {
    pub(crate) fn new(link: Link, bounds: FollowBounds) -> Self {
        Self {
            link,
            bounds,
            wants: Mutex::default(),
            marked: AtomicBool::new(false),
            pressed: AtomicBool::new(false),
        }
    }

    /// The legacy session is ready to hear of changes.
    pub(crate) fn initialized(&self, revision: Revision) {
        lock(&self.wants).session = Some(revision);
    }

    /// `resources/subscribe` (RES-07).
    pub(crate) fn follow(&self, uri: String) -> Result<(), ErrorObject> {
        let mut wants = lock(&self.wants);
        if wants.followed.contains(&uri) {
            return Ok(());
        }
        if wants.followed.len() >= self.bounds.count {
            return Err(self.bounds.exceeded());
        }
        let bytes = bytes_of([&uri]);
        wants.has_room(bytes, self.bounds)?;
        wants.bytes += bytes;
        wants.followed.insert(uri);
        Ok(())
    }

    /// `resources/unsubscribe` (RES-08).
    pub(crate) fn unfollow(&self, uri: &String) {
        let mut wants = lock(&self.wants);
        if wants.followed.remove(uri) {
            wants.bytes -= bytes_of([uri]);
        }
        wants.marks.updated.remove(uri);
    }

    /// `subscriptions/listen`: acknowledged before anything else is said on it (SUB-01).
    pub(crate) fn listen(
        self: &Arc<Self>,
        request: &IncomingRequest<'_>,
        filter: SubscriptionFilter,
    ) -> Result<ListenStream, ErrorObject> {
        let (id, serial) = (request.id, request.serial);
        let mut wants = lock(&self.wants);
        if wants.streams.len() >= self.bounds.count {
            // Those that were withdrawn just now may not have been dropped yet.
            wants.keep_streams(|stream| self.is_live(stream));
        }
        let uris = filter.resource_subscriptions.iter().flatten();
        let (followed, bytes) = (uris.clone().count(), bytes_of(uris));
        if wants.streams.len() >= self.bounds.count || followed > self.bounds.count {
            return Err(self.bounds.exceeded());
        }
        wants.has_room(bytes, self.bounds)?;
        let ack = SubscriptionParams::new(filter.clone()).meta(tag(id));
        // A connection that has ended needs no acknowledgement.
        let _ = say(&self.link, Some(id), Method::Acknowledged, &ack, Revision::MODERN);
        wants.bytes += bytes;
        wants.streams.push(Stream {
            id: id.clone(),
            serial,
            filter,
            marks: Marks::default(),
            bytes,
        });
        Ok(ListenStream { subscriber: self.clone(), serial })
    }

    fn is_live(&self, stream: &Stream) -> bool {
        self.link.is_live(&stream.id, stream.serial)
    }

    /// Something changed.
    pub(crate) fn updated(&self, update: Update<'_>) {
        let mut any = false;
        {
            let mut wants = lock(&self.wants);
            let Wants { session, followed, streams, marks, .. } = &mut *wants;
            // SUB-04: only what was asked for.
            let wanted = match update {
                Update::Resource(uri) => followed.contains(uri),
                _ => session.is_some(),
            };
            if wanted {
                marks.leave(update);
                any = true;
            }
            for stream in streams.iter_mut().filter(|stream| stream.filter.covers(update)) {
                stream.marks.leave(update);
                any = true;
            }
        }
        if any {
            self.marked.store(true, Ordering::Release);
            // The loop looks at the marks when it wakes.
            self.link.wake();
        }
    }

    fn is_crowded(&self) -> bool {
        self.link.output_waiting() > CROWDED
    }

    /// Turns marks into notifications, as long as there is room for them. Says whether it had any.
    #[inline]
    pub(crate) fn pump(&self) -> bool {
        self.marked.load(Ordering::Acquire) && self.pump_marks()
    }

    /// The same before a result leaves: lists that have changed are told of even if output waits, once until it has
    /// room again, so that a client knows of what its call has changed when it has the result (TOL-24).
    #[inline]
    pub(crate) fn pump_before_result(&self) {
        if self.marked.load(Ordering::Acquire) && !self.pump_marks() {
            self.press_lists();
        }
    }

    fn press_lists(&self) {
        if self.pressed.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut wants = lock(&self.wants);
        wants.keep_streams(|stream| self.is_live(stream));
        let Wants { session, streams, marks, .. } = &mut *wants;
        let revision = session.unwrap_or(Revision::LATEST_LEGACY);
        while let Some(method) = marks.next_list() {
            self.tell_one(method, None, revision, None);
        }
        for stream in streams {
            while let Some(method) = stream.marks.next_list() {
                self.tell_one(method, None, Revision::MODERN, Some(&stream.id));
            }
        }
    }

    fn pump_marks(&self) -> bool {
        if self.is_crowded() {
            return false;
        }
        self.pressed.store(false, Ordering::Release);
        if !self.marked.swap(false, Ordering::AcqRel) {
            return false;
        }
        let mut wants = lock(&self.wants);
        // SUB-07
        wants.keep_streams(|stream| self.is_live(stream));
        let Wants { session, streams, marks, .. } = &mut *wants;
        let revision = session.unwrap_or(Revision::LATEST_LEGACY);
        let told = self.tell(marks, revision, None)
            && streams
                .iter_mut()
                .all(|stream| self.tell(&mut stream.marks, Revision::MODERN, Some(&stream.id)));
        if !told {
            self.marked.store(true, Ordering::Release);
        }
        true
    }

    /// Tells of these marks, in the name of a stream if there is one. Says whether it told of all.
    fn tell(&self, marks: &mut Marks, revision: Revision, stream: Option<&Id>) -> bool {
        while let Some((method, uri)) = marks.next() {
            self.tell_one(method, uri, revision, stream);
            if self.is_crowded() {
                return false;
            }
        }
        true
    }

    fn tell_one(
        &self,
        method: Method,
        uri: Option<String>,
        revision: Revision,
        stream: Option<&Id>,
    ) {
        let meta = stream.map(tag);
        // A connection that has ended hears nothing.
        let _ = match uri {
            Some(uri) => {
                let mut params = ResourceParams::new(uri);
                params.meta = meta;
                say(&self.link, stream, method, &params, revision)
            }
            None => {
                let mut params = BareParams::new();
                params.meta = meta;
                say(&self.link, stream, method, &params, revision)
            }
        };
    }
}

/// How a stream is ended by the server (SUB-09).
pub(crate) fn end_of_stream(id: &Id) -> EmptyResult {
    EmptyResult::end_of_subscription(id.clone())
}

impl SubscriptionFilter {
    fn covers(&self, update: Update<'_>) -> bool {
        match update {
            Update::Tools => self.tools_list_changed == Some(true),
            Update::Resources => self.resources_list_changed == Some(true),
            Update::Prompts => self.prompts_list_changed == Some(true),
            Update::Resource(uri) => self
                .resource_subscriptions
                .as_ref()
                .is_some_and(|uris| uris.iter().any(|u| u == uri)),
        }
    }
}

/// SUB-03: every notification of a stream carries the id of its listen request.
fn tag(id: &Id) -> Meta {
    Meta::new().with(meta_keys::SUBSCRIPTION_ID, id.clone())
}

/// Says something, on the stream that this request opened if there is one.
fn say(
    link: &Link,
    stream: Option<&Id>,
    method: Method,
    params: &impl WriteJson,
    revision: Revision,
) -> Result<(), crate::rpc::SendError> {
    let params =
        crate::mcp::RawJson::of(&params.at(revision)).map_err(crate::rpc::SendError::Json)?;
    link.notify(stream, method.as_str(), Some(&params))
}
