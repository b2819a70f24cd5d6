//! What a transport bounds beside single messages: durations, and bytes that several connections share.
//!
//! Knows numbers; must not know a message.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The same duration, but at most thirty years: one that every clock can count from now on. "For ever" is often
/// written as [`Duration::MAX`], which no clock can add to the time of day.
#[must_use]
pub fn bounded(duration: Duration) -> Duration {
    duration.min(Duration::from_secs(86_400 * 365 * 30))
}

/// So much of each piece is not counted: small messages pass although others have used up the budget.
const FREE: usize = 16 << 10;

/// A piece of so many bytes is worth telling of when it is released: allocators keep such memory.
const LARGE: usize = 256 << 10;

/// How many bytes several connections may hold together for what has not come whole. Clones share it.
#[derive(Clone)]
pub struct ByteBudget(Arc<BudgetState>);

struct BudgetState {
    limit: usize,
    held: AtomicUsize,
    released: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl fmt::Debug for ByteBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = self.0.held.load(Ordering::Relaxed);
        f.debug_struct("ByteBudget").field("limit", &self.0.limit).field("held", &held).finish()
    }
}

impl ByteBudget {
    /// A budget of `limit` bytes. The first 16 KiB of each piece are not counted, and a piece that is larger than
    /// the whole budget is let in alone.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let (held, released) = Default::default();
        Self(Arc::new(BudgetState { limit, held, released }))
    }

    /// Calls `released` each time that a piece of 256 KiB or more is held no longer. A program whose allocator keeps
    /// memory can give it back then. Only the first one that is set counts.
    pub fn on_release(&self, released: impl Fn() + Send + Sync + 'static) {
        // A second one is not called, as the documentation says.
        let _ = self.0.released.set(Box::new(released));
    }

    /// A piece that holds nothing yet.
    #[must_use]
    pub fn hold(&self) -> HeldBytes {
        HeldBytes { budget: self.clone(), counted: 0, most: 0 }
    }

    /// How many bytes are counted now.
    #[must_use]
    pub fn held(&self) -> usize {
        self.0.held.load(Ordering::Relaxed)
    }
}

/// Bytes of a [`ByteBudget`] that one piece holds, until this is dropped.
#[derive(Debug)]
pub struct HeldBytes {
    budget: ByteBudget,
    counted: usize,
    /// The most that this piece has held.
    most: usize,
}

impl HeldBytes {
    /// Says that the piece has so many bytes now. `false` if the budget has no room for them: then nothing changes.
    #[must_use = "without room the piece must not be kept"]
    pub fn resize(&mut self, bytes: usize) -> bool {
        let wanted = bytes.saturating_sub(FREE);
        let (limit, mine) = (self.budget.0.limit, self.counted);
        let fits = |held: usize| {
            let others = held - mine;
            let fits = wanted <= mine || others == 0 || others.saturating_add(wanted) <= limit;
            fits.then_some(others.saturating_add(wanted))
        };
        let order = Ordering::Relaxed;
        if self.budget.0.held.fetch_update(order, order, fits).is_err() {
            return false;
        }
        self.counted = wanted;
        self.most = self.most.max(bytes);
        if bytes == 0 {
            self.tell();
        }
        true
    }

    fn tell(&mut self) {
        if std::mem::take(&mut self.most) >= LARGE
            && let Some(released) = self.budget.0.released.get()
        {
            released();
        }
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.budget.0.held.fetch_sub(self.counted, Ordering::Relaxed);
        self.tell();
    }
}

/// What bounds a connection on a socket, beside the limits of the service: nothing unless set.
#[derive(Debug, Default)]
#[must_use = "bounds do nothing until something is served with them"]
pub struct SocketBounds {
    pub(super) message_timeout: Option<Duration>,
    pub(super) held: Option<HeldBytes>,
}

impl SocketBounds {
    /// No bounds.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long a message may take from its first byte to its last. The time between two messages has no limit.
    pub fn message_timeout(mut self, limit: Duration) -> Self {
        self.message_timeout = Some(bounded(limit));
        self
    }

    /// Counts what is held of messages that have not come whole. One for which there is no room ends the connection.
    pub fn budget(mut self, budget: &ByteBudget) -> Self {
        self.held = Some(budget.hold());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_share_a_budget_and_give_back_what_they_had() {
        let told = Arc::new(AtomicUsize::new(0));
        let counted = told.clone();
        let budget = ByteBudget::new(1 << 20);
        budget.on_release(move || _ = counted.fetch_add(1, Ordering::SeqCst));
        let (mut one, mut two) = (budget.hold(), budget.hold());
        assert!(one.resize(FREE) && budget.held() == 0, "what is small is not counted");
        assert!(one.resize(700_000) && two.resize(300_000));
        assert!(!two.resize(500_000), "there is no room");
        assert!(two.resize(200_000) && two.resize(10), "less is always possible");
        assert_eq!(budget.held(), 700_000 - FREE);
        drop(one);
        assert_eq!((budget.held(), told.load(Ordering::SeqCst)), (0, 1));
        assert!(two.resize(5 << 20), "one that is larger than all is let in alone");
        assert!(!budget.hold().resize(100_000) && budget.hold().resize(FREE));
        assert!(two.resize(0));
        assert_eq!((budget.held(), told.load(Ordering::SeqCst)), (0, 2));
        drop(two);
        assert_eq!((budget.held(), told.load(Ordering::SeqCst)), (0, 2), "told once");
    }
}
