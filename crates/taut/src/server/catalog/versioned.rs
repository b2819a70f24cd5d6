//! A value that is exchanged whole while others look at it.
//!
//! Knows nothing of what it holds. Looking again costs one load unless something has changed: a
//! request must not pay for changes that hardly ever come.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The value as it is now.
pub(crate) struct Versioned<T> {
    current: RwLock<Arc<T>>,
    /// How often it was exchanged.
    version: AtomicU64,
}

/// The value as somebody last saw it.
pub(crate) struct Snapshot<T> {
    value: Arc<T>,
    version: u64,
}

impl<T> AsRef<T> for Snapshot<T> {
    fn as_ref(&self) -> &T {
        &self.value
    }
}

impl<T> Versioned<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { current: RwLock::new(Arc::new(value)), version: AtomicU64::new(0) }
    }

    pub(crate) fn current(&self) -> Arc<T> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A first look.
    pub(crate) fn snapshot(&self) -> Snapshot<T> {
        // Before the value: if that is newer than its version it is looked at once more, no harm.
        let version = self.version.load(Ordering::Acquire);
        Snapshot { value: self.current(), version }
    }

    /// Another look.
    pub(crate) fn refresh(&self, seen: &mut Snapshot<T>) {
        if self.version.load(Ordering::Acquire) != seen.version {
            *seen = self.snapshot();
        }
    }

    /// Changes it, for everybody who looks from now on.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Arc<T>) -> R) -> R {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let outcome = change(&mut current);
        self.version.fetch_add(1, Ordering::Release);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_stays_as_it_was_until_one_looks_again() {
        let live = Versioned::new(1);
        let mut seen = live.snapshot();
        live.change(|value| *value = Arc::new(2));
        assert_eq!((*seen.as_ref(), *live.current()), (1, 2));
        live.refresh(&mut seen);
        assert_eq!(*seen.as_ref(), 2);
        let same = seen.value.clone();
        live.refresh(&mut seen);
        assert!(Arc::ptr_eq(&same, &seen.value));
    }
}
