//! A flag that is raised once, and wakes whoever waits for it.
//!
//! Knows nothing of requests; the loop raises it when one is withdrawn.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// The flag. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Token(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    raised: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
}

impl Token {
    /// Raises the flag.
    pub(crate) fn raise(&self) {
        self.0.raised.store(true, Ordering::Release);
        let waiting =
            std::mem::take(&mut *self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Whether it is up.
    pub(crate) fn is_raised(&self) -> bool {
        self.0.raised.load(Ordering::Acquire)
    }

    /// Whether no clone of it is left and it was never raised, so that it is as good as new.
    pub(crate) fn is_only_one(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && !self.is_raised()
    }

    /// Ready once it is up.
    pub(crate) fn poll_raised(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_raised() {
            return Poll::Ready(());
        }
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        // Raised between the look and the lock: the list was emptied before we stood in it.
        if self.is_raised() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Waits until it is up.
    pub(crate) fn raised(&self) -> impl Future<Output = ()> + Send + use<> {
        let token = self.clone();
        std::future::poll_fn(move |cx| token.poll_raised(cx))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_who_waits_is_woken_once_it_is_raised() {
        let token = Token::default();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(token.poll_raised(&mut cx).is_pending());
        let other = token.clone();
        other.raise();
        assert!(token.poll_raised(&mut cx).is_ready() && token.is_raised());
    }
}
