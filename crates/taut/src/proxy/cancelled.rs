//! Calls that were withdrawn, and that a server may still be working on.
//!
//! Knows how long such a call counts; must not know what was asked. A cancellation is only a wish: what the server asks
//! or logs afterwards may belong to that call, and must not reach another client.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::state::{CallKind, FrontState, Ghost, Ghosts, ProxiedCall};
use crate::rpc::take;

/// So many are told apart. With more, all count as one that belongs to no client.
const MOST: usize = 1_024;

impl Ghosts {
    /// A call was withdrawn, and counts for so long.
    pub(super) fn add(&mut self, number: u64, call: &ProxiedCall, now: Instant, limit: Duration) {
        if !matches!(call.kind, CallKind::Request) {
            return;
        }
        let until = now + limit;
        if self.calls.len() >= MOST {
            // One that is over still counts for a question that came before, and is held no longer than that.
            self.calls.retain(|_, ghost| ghost.until + limit > now);
        }
        if self.calls.len() >= MOST {
            self.crowd = Some(until);
            return;
        }
        let front = Arc::downgrade(&call.request.front);
        self.calls.insert(number, Ghost { front, until });
    }

    /// The server has answered a call. Says whether it was one of these.
    pub(super) fn answered(&mut self, number: u64) -> bool {
        take(&mut self.calls, &number).is_some()
    }

    /// Whether what the server said at this time may belong to a withdrawn call of another client than this one.
    pub(super) fn hides_other(&self, front: &Arc<FrontState>, at: Instant) -> bool {
        let other = |ghost: &Ghost| {
            !std::ptr::eq(ghost.front.as_ptr(), Arc::as_ptr(front)) && ghost.until > at
        };
        self.crowd.is_some_and(|until| until > at) || self.calls.values().any(other)
    }
}
