//! Lists that were read before and still hold.
//!
//! Knows until when a page holds and what ends it early. Must not know how a list is asked for.
//! CAC-03 to CAC-06.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::Shared;
use super::changes::{Change, Queue};
use super::listen::Subscription;
use crate::mcp::Method;

/// Pages kept at most, of all lists together. Real lists have a handful.
const MAX_PAGES: usize = 256;

/// CAC-04: the method, and the params that matter.
type Key = (Method, Option<String>);

/// The pages that are kept, for one connection only (CAC-05).
#[derive(Default)]
pub(super) struct Lists {
    kept: Mutex<Kept>,
    /// By which we hear of changes in the modern revision.
    watching: OnceLock<Subscription>,
    /// What tools promise, as long as their list holds.
    #[cfg(feature = "validate")]
    pub(super) outputs: super::check::Outputs,
}

#[derive(Default)]
struct Kept {
    pages: HashMap<Key, (Instant, Box<dyn Any + Send>)>,
    /// Counts what has changed: a page that was on its way meanwhile is not kept.
    changes: u64,
}

impl Lists {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A page that still holds, and the count to keep a fresh one with.
    pub(super) fn page<T: Clone + 'static>(
        &self,
        method: Method,
        cursor: Option<&str>,
        now: Instant,
    ) -> Result<T, u64> {
        let kept = self.lock();
        let key = (method, cursor.map(str::to_owned));
        let page = kept.pages.get(&key).filter(|(until, _)| now < *until);
        page.and_then(|(_, page)| page.downcast_ref::<T>()).cloned().ok_or(kept.changes)
    }

    pub(super) fn keep<T: Send + 'static>(
        &self,
        (method, cursor): (Method, Option<String>),
        page: T,
        (now, ttl): (Instant, Duration),
        seen: u64,
    ) {
        let mut kept = self.lock();
        // CAC-03: no time is no time at all.
        let Some(until) = now.checked_add(ttl).filter(|_| !ttl.is_zero()) else { return };
        if kept.changes != seen {
            return;
        }
        if kept.pages.len() >= MAX_PAGES {
            kept.pages.clear();
        }
        kept.pages.insert((method, cursor), (until, Box::new(page)));
    }

    /// CAC-06: what has changed no longer holds.
    pub(super) fn drop_changed(&self, change: &Change) {
        let gone: &[Method] = match change {
            Change::Tools => &[Method::ListTools],
            Change::Prompts => &[Method::ListPrompts],
            Change::Resources => &[Method::ListResources, Method::ListResourceTemplates],
            Change::Resource(_) | Change::Anything => return,
        };
        #[cfg(feature = "validate")]
        if gone.contains(&Method::ListTools) {
            self.outputs.forget();
        }
        let mut kept = self.lock();
        kept.changes += 1;
        kept.pages.retain(|(method, _), _| !gone.contains(method));
    }
}

impl Shared {
    /// Asks a modern server to tell of its lists, if anybody here wants to know. A legacy one does so
    /// unasked.
    pub(super) fn watch_lists(&self) {
        let wanted = self.settings.keep_lists || self.settings.host.on_change.is_some();
        #[cfg(feature = "validate")]
        let wanted = wanted || self.settings.check_answers;
        let lists = self.all_lists();
        if !wanted || !self.agreed.revision.is_modern() || lists.is_empty() {
            return;
        }
        // A connection that is over says so by itself; one that refuses is asked no more.
        if let Ok(open) = self.send_listen(lists, &Arc::new(Queue::own())) {
            let _ = self.session.lists.watching.set(open);
        }
    }
}
