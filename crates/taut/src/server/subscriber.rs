//! What one connection wants to hear of, and what it has not heard yet.
//!
//! A change only leaves a mark here and wakes the loop; the loop turns marks into notifications
//! when the pipe has room. So a thousand changes of one list are one notification to a client that
//! reads slowly, and memory stays bounded by what is subscribed to.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::driver::Link;
use crate::mcp::{
    BareParams, EmptyResult, Meta, Method, ResourceParams, Revision, SerializeAt,
    SubscriptionFilter, SubscriptionParams, meta_keys,
};
use crate::rpc::{ErrorObject, Id};

/// Most resources, and most streams, that one connection may follow (SUB-13).
const MAX_FOLLOWED: usize = 1_024;

/// Notifications wait while so much output does.
const CROWDED: usize = 64 << 10;

/// Something that changed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change<'a> {
    Tools,
    Resources,
    Prompts,
    /// The resource at this address.
    Resource(&'a str),
}

/// One connection's subscriptions.
pub(super) struct Subscriber {
    link: Link,
    wants: Mutex<Wants>,
    /// Whether there are marks, so that the loop need not look on every pass.
    marked: AtomicBool,
}

#[derive(Default)]
struct Wants {
    /// The legacy session that hears of lists unasked, once it is initialized (LIF-10, TOL-24).
    session: Option<Revision>,
    followed: BTreeSet<String>,
    streams: Vec<Stream>,
    marks: Marks,
}

/// One `subscriptions/listen`.
struct Stream {
    id: Id,
    serial: u64,
    filter: SubscriptionFilter,
    marks: Marks,
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
    fn leave(&mut self, change: Change<'_>) {
        match change {
            Change::Tools => self.tools = true,
            Change::Resources => self.resources = true,
            Change::Prompts => self.prompts = true,
            Change::Resource(uri) => {
                self.updated.insert(uri.to_owned());
            }
        }
    }

    /// The notifications that tell of them.
    fn tell(&mut self, mut say: impl FnMut(Method, Option<String>)) {
        let Self { tools, resources, prompts, updated } = std::mem::take(self);
        for (changed, method) in [
            (tools, Method::ToolsChanged),
            (resources, Method::ResourcesChanged),
            (prompts, Method::PromptsChanged),
        ] {
            if changed {
                say(method, None);
            }
        }
        updated.into_iter().for_each(|uri| say(Method::ResourceUpdated, Some(uri)));
    }
}

impl Subscriber {
    pub(super) fn new(link: Link) -> Self {
        Self { link, wants: Mutex::default(), marked: AtomicBool::new(false) }
    }

    fn lock(&self) -> MutexGuard<'_, Wants> {
        self.wants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The legacy session is ready to hear of changes.
    pub(super) fn initialized(&self, revision: Revision) {
        self.lock().session = Some(revision);
    }

    /// `resources/subscribe` (RES-07).
    pub(super) fn follow(&self, uri: String) -> Result<(), ErrorObject> {
        let mut wants = self.lock();
        if wants.followed.len() >= MAX_FOLLOWED && !wants.followed.contains(&uri) {
            return Err(too_many());
        }
        wants.followed.insert(uri);
        Ok(())
    }

    /// `resources/unsubscribe` (RES-08).
    pub(super) fn unfollow(&self, uri: &str) {
        let mut wants = self.lock();
        wants.followed.remove(uri);
        wants.marks.updated.remove(uri);
    }

    /// `subscriptions/listen`: acknowledged before anything else is said on it (SUB-01).
    pub(super) fn listen(
        &self,
        id: &Id,
        serial: u64,
        filter: SubscriptionFilter,
    ) -> Result<(), ErrorObject> {
        let mut wants = self.lock();
        let followed = filter.resource_subscriptions.as_ref().map_or(0, Vec::len);
        if wants.streams.len() >= MAX_FOLLOWED || followed > MAX_FOLLOWED {
            return Err(too_many());
        }
        let ack = SubscriptionParams::new(filter.clone()).meta(tag(id));
        // A connection that has ended needs no acknowledgement.
        let _ = say(&self.link, Method::Acknowledged, &ack, Revision::MODERN);
        wants.streams.push(Stream { id: id.clone(), serial, filter, marks: Marks::default() });
        Ok(())
    }

    /// A stream is over; nothing more is said on it (SUB-07).
    pub(super) fn hang_up(&self, serial: u64) {
        self.lock().streams.retain(|stream| stream.serial != serial);
    }

    /// Something changed.
    pub(super) fn changed(&self, change: Change<'_>) {
        {
            let mut wants = self.lock();
            let Wants { session, followed, streams, marks } = &mut *wants;
            // SUB-04: only what was asked for.
            let wanted = match change {
                Change::Resource(uri) => followed.contains(uri),
                _ => session.is_some(),
            };
            if wanted {
                marks.leave(change);
            }
            for stream in streams.iter_mut().filter(|stream| stream.filter.covers(change)) {
                stream.marks.leave(change);
            }
        }
        self.marked.store(true, Ordering::Release);
        // The loop looks at the marks when it wakes.
        self.link.with(|_| ());
    }

    /// Turns marks into notifications, if there is room for them. Says whether it had any.
    pub(super) fn pump(&self) -> bool {
        if !self.marked.load(Ordering::Acquire)
            || self.link.lock().peer.output().len() > CROWDED
            || !self.marked.swap(false, Ordering::AcqRel)
        {
            return false;
        }
        let mut wants = self.lock();
        let Wants { session, streams, marks, .. } = &mut *wants;
        let revision = session.unwrap_or(Revision::LATEST_LEGACY);
        marks.tell(|method, uri| {
            let _ = match uri {
                Some(uri) => say(&self.link, method, &ResourceParams::new(uri), revision),
                None => say(&self.link, method, &BareParams::new(), revision),
            };
        });
        streams.retain(|stream| self.link.lock().peer.is_live_serial(&stream.id, stream.serial));
        for stream in streams {
            let meta = tag(&stream.id);
            stream.marks.tell(|method, uri| {
                let at = Revision::MODERN;
                let _ = match uri {
                    Some(uri) => {
                        say(&self.link, method, &ResourceParams::new(uri).meta(meta.clone()), at)
                    }
                    None => say(&self.link, method, &BareParams::new().meta(meta.clone()), at),
                };
            });
        }
        true
    }
}

/// How a stream is ended by the server (SUB-09).
pub(super) fn end_of_stream(id: &Id) -> EmptyResult {
    EmptyResult::end_of_subscription(id.clone())
}

impl SubscriptionFilter {
    fn covers(&self, change: Change<'_>) -> bool {
        match change {
            Change::Tools => self.tools_list_changed == Some(true),
            Change::Resources => self.resources_list_changed == Some(true),
            Change::Prompts => self.prompts_list_changed == Some(true),
            Change::Resource(uri) => self
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

fn say(
    link: &Link,
    method: Method,
    params: &impl SerializeAt,
    revision: Revision,
) -> Result<(), crate::rpc::SendError> {
    let params =
        crate::mcp::RawJson::of(&params.at(revision)).map_err(crate::rpc::SendError::Json)?;
    link.notify(method.as_str(), Some(&params))
}

fn too_many() -> ErrorObject {
    ErrorObject::internal(format!("more than {MAX_FOLLOWED} subscriptions on one connection"))
}
