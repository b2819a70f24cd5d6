//! A flag that is raised once, and the futures that wait for it.
//!
//! Knows nothing of requests. The loop raises one when a request is cancelled, when the input ends
//! and when the connection is over. A future that is dropped leaves the list of those that wait.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// The flag. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flag(Arc<FlagState>);

#[derive(Debug, Default)]
struct FlagState {
    raised: AtomicBool,
    waiting: Notify,
}

impl Flag {
    /// Raises the flag and wakes everybody who waits for it.
    pub(crate) fn raise(&self) {
        self.0.raised.store(true, Ordering::Release);
        self.0.waiting.notify_waiters();
    }

    /// Whether the flag is raised.
    pub(crate) fn is_raised(&self) -> bool {
        self.0.raised.load(Ordering::Acquire)
    }

    /// Whether this is the only clone and the flag was never raised: it can be used again.
    pub(crate) fn is_unused(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && !self.is_raised()
    }

    /// Waits until the flag is raised.
    pub(crate) fn raised(&self) -> impl Future<Output = ()> + Send + use<> {
        let flag = self.clone();
        async move {
            let mut notified = pin!(flag.0.waiting.notified());
            // In the list before the flag is read: a raise in between is not missed.
            notified.as_mut().enable();
            if !flag.is_raised() {
                notified.await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Wake, Waker};

    use super::*;

    struct Silent;

    impl Wake for Silent {
        fn wake(self: Arc<Self>) {
            drop(self);
        }
    }

    fn poll(future: std::pin::Pin<&mut impl Future<Output = ()>>, waker: &Waker) -> Poll<()> {
        future.poll(&mut Context::from_waker(waker))
    }

    #[test]
    fn everyone_who_waits_is_ready_once_it_is_raised() {
        let flag = Flag::default();
        let (mut one, mut two) = (pin!(flag.raised()), pin!(flag.raised()));
        assert!(poll(one.as_mut(), Waker::noop()).is_pending());
        assert!(poll(two.as_mut(), Waker::noop()).is_pending());
        flag.raise();
        assert!(poll(one, Waker::noop()).is_ready() && poll(two, Waker::noop()).is_ready());
        assert!(poll(pin!(flag.raised()), Waker::noop()).is_ready());
    }

    #[test]
    fn a_future_that_is_dropped_leaves_no_waker_behind() {
        let flag = Flag::default();
        let silent = Arc::new(Silent);
        for _ in 0..20_000 {
            let waker = Waker::from(silent.clone());
            assert!(poll(pin!(flag.raised()), &waker).is_pending());
        }
        assert_eq!(Arc::strong_count(&silent), 1);
    }
}
