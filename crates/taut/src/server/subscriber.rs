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
    BareParams, Meta, Method, ResourceParams, Revision, SubscriptionFilter, SubscriptionParams,
    WriteJson, meta_keys,
};
use crate::rpc::{ErrorObject, Id};

/// What an address costs beside its bytes, so that many short ones have a bound, too.
const ADDRESS: usize = 64;

/// Notifications wait while so much output does. As much as the loop writes in one turn: whatever
/// makes room for more has been a turn's work, after which the loop looks again.
const CROWDED: usize = 64 << 10;

/// Something that has changed. Clients hear of several in this order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Update {
    Tools,
    Resources,
    Prompts,
    /// The resource at this address.
    Resource(String),
}

impl Update {
    fn is_list(&self) -> bool {
        !matches!(self, Self::Resource(_))
    }

    /// What it costs to wait for it.
    fn bytes(&self) -> usize {
        match self {
            Self::Resource(uri) => uri.len() + ADDRESS,
            _ => 0,
        }
    }
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

struct Wants {
    /// The legacy session: hears of lists unasked, once it is initialized (LIF-10, TOL-24), and of the
    /// resources that it follows.
    session: Stream,
    streams: Vec<Stream>,
    /// What the addresses of all these come to.
    bytes: usize,
}

impl Wants {
    fn has_room(&self, bytes: usize, bounds: FollowBounds) -> Result<(), ErrorObject> {
        let room = bounds.bytes.saturating_sub(self.bytes);
        if bytes <= room { Ok(()) } else { Err(bounds.exceeded()) }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Stream> {
        std::iter::once(&mut self.session).chain(&mut self.streams)
    }

    fn keep_streams(&mut self, mut keep: impl FnMut(&Id, u64) -> bool) {
        let Self { streams, bytes, .. } = self;
        streams.retain(|stream| {
            let kept = stream.listen.as_ref().is_none_or(|(id, serial)| keep(id, *serial));
            *bytes -= if kept { 0 } else { stream.bytes() };
            kept
        });
    }
}

/// Who hears of changes: the legacy session, or one `subscriptions/listen`.
struct Stream {
    /// The listen request, by its id and serial.
    listen: Option<(Id, u64)>,
    revision: Revision,
    wants: BTreeSet<Update>,
    /// What has changed and was not told yet.
    marks: BTreeSet<Update>,
}

impl Stream {
    fn new(listen: Option<(Id, u64)>, revision: Revision, wants: BTreeSet<Update>) -> Self {
        Self { listen, revision, wants, marks: BTreeSet::new() }
    }

    fn bytes(&self) -> usize {
        self.wants.iter().map(Update::bytes).sum()
    }

    /// How many resources it follows.
    fn followed(&self) -> usize {
        self.wants.len() - self.wants.range(..Update::Resource(String::new())).count()
    }
}

/// An open stream. Dropped, it is over, and nothing more is said on it (SUB-07).
pub(crate) struct ListenStream {
    subscriber: Arc<Subscriber>,
    serial: u64,
}

impl Drop for ListenStream {
    fn drop(&mut self) {
        lock(&self.subscriber.wants).keep_streams(|_, serial| serial != self.serial);
    }
}

impl Subscriber {
    pub(crate) fn new(link: Link, bounds: FollowBounds) -> Self {
        let session = Stream::new(None, Revision::LATEST_LEGACY, BTreeSet::new());
        Self {
            link,
            bounds,
            wants: Mutex::new(Wants { session, streams: Vec::new(), bytes: 0 }),
            marked: AtomicBool::new(false),
            pressed: AtomicBool::new(false),
        }
    }

    /// The legacy session is ready to hear of changes.
    pub(crate) fn initialized(&self, revision: Revision) {
        let session = &mut lock(&self.wants).session;
        session.revision = revision;
        session.wants.extend([Update::Tools, Update::Resources, Update::Prompts]);
    }

    /// `resources/subscribe` (RES-07).
    pub(crate) fn follow(&self, uri: String) -> Result<(), ErrorObject> {
        let mut wants = lock(&self.wants);
        let update = Update::Resource(uri);
        if wants.session.wants.contains(&update) {
            return Ok(());
        }
        if wants.session.followed() >= self.bounds.count {
            return Err(self.bounds.exceeded());
        }
        wants.has_room(update.bytes(), self.bounds)?;
        wants.bytes += update.bytes();
        wants.session.wants.insert(update);
        Ok(())
    }

    /// `resources/unsubscribe` (RES-08).
    pub(crate) fn unfollow(&self, uri: String) {
        let mut wants = lock(&self.wants);
        let update = Update::Resource(uri);
        if wants.session.wants.remove(&update) {
            wants.bytes -= update.bytes();
        }
        wants.session.marks.remove(&update);
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
            wants.keep_streams(|id, serial| self.link.is_live(id, serial));
        }
        let stream = Stream::new(Some((id.clone(), serial)), Revision::MODERN, filter.updates());
        if wants.streams.len() >= self.bounds.count || stream.followed() > self.bounds.count {
            return Err(self.bounds.exceeded());
        }
        wants.has_room(stream.bytes(), self.bounds)?;
        let ack = SubscriptionParams::new(filter).meta(tag(id));
        self.say(&stream, Method::Acknowledged, &ack);
        wants.bytes += stream.bytes();
        wants.streams.push(stream);
        Ok(ListenStream { subscriber: self.clone(), serial })
    }

    /// Something changed.
    pub(crate) fn updated(&self, update: &Update) {
        let mut any = false;
        // SUB-04: only what was asked for.
        for stream in lock(&self.wants).all().filter(|stream| stream.wants.contains(update)) {
            stream.marks.insert(update.clone());
            any = true;
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
        wants.keep_streams(|id, serial| self.link.is_live(id, serial));
        for stream in wants.all() {
            while stream.marks.first().is_some_and(Update::is_list) {
                self.tell_next(stream);
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
        wants.keep_streams(|id, serial| self.link.is_live(id, serial));
        for stream in wants.all() {
            while self.tell_next(stream) {
                if self.is_crowded() {
                    self.marked.store(true, Ordering::Release);
                    return true;
                }
            }
        }
        true
    }

    /// Tells of the stream's first mark. Says whether there was one.
    fn tell_next(&self, stream: &mut Stream) -> bool {
        let Some(update) = stream.marks.pop_first() else { return false };
        let mut params = BareParams::new();
        params.meta = stream.listen.as_ref().map(|(id, _)| tag(id));
        match update {
            Update::Tools => self.say(stream, Method::ToolsChanged, &params),
            Update::Resources => self.say(stream, Method::ResourcesChanged, &params),
            Update::Prompts => self.say(stream, Method::PromptsChanged, &params),
            Update::Resource(uri) => {
                let params = ResourceParams { meta: params.meta, ..ResourceParams::new(uri) };
                self.say(stream, Method::ResourceUpdated, &params);
            }
        }
        true
    }

    fn say(&self, stream: &Stream, method: Method, params: &(impl WriteJson + Sync)) {
        let about = stream.listen.as_ref().map(|(id, _)| id);
        // A connection that has ended hears nothing.
        let _ = self.link.notify(about, method.as_str(), Some(&params.at(stream.revision)));
    }
}

impl SubscriptionFilter {
    fn updates(&self) -> BTreeSet<Update> {
        let lists = [
            (self.tools_list_changed, Update::Tools),
            (self.resources_list_changed, Update::Resources),
            (self.prompts_list_changed, Update::Prompts),
        ];
        let lists = lists.into_iter().filter(|(wanted, _)| *wanted == Some(true));
        let uris = self.resource_subscriptions.iter().flatten().cloned();
        lists.map(|(_, list)| list).chain(uris.map(Update::Resource)).collect()
    }
}

/// SUB-03: every notification of a stream carries the id of its listen request.
fn tag(id: &Id) -> Meta {
    Meta::new().with(meta_keys::SUBSCRIPTION_ID, id.clone())
}
