//! Remembers whether something has asked to be polled, so that the loop polls it only then.
//!
//! The loop is woken for every message. What it watches beside that (a signal, the exit of a child, a
//! reader that goes away) hardly ever happens, and asking each of them anew costs more than a message.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use crate::lock::lock;

/// Stands between the loop and one thing that it watches.
pub(super) struct Bell {
    ring: Arc<Ring>,
    waker: Waker,
    /// The loop's own waker, as it is known to `ring`.
    known: Option<Waker>,
}

struct Ring {
    rung: AtomicBool,
    wakes: Mutex<Option<Waker>>,
}

impl Wake for Ring {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        let waker = lock(&self.wakes).clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Default for Bell {
    fn default() -> Self {
        // The first time it is polled in any case.
        let ring = Arc::new(Ring { rung: AtomicBool::new(true), wakes: Mutex::default() });
        Self { waker: Waker::from(ring.clone()), ring, known: None }
    }
}

impl Bell {
    /// Polls with `poll` if that was asked for since the last time, and is pending otherwise.
    pub(super) fn poll<T>(
        &mut self,
        cx: &Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        // The loop may be moved to another task.
        if !self.known.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            self.known = Some(cx.waker().clone());
            lock(&self.ring.wakes).clone_from(&self.known);
        }
        if !self.ring.rung.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        self.ring.rung.store(false, Ordering::Release);
        poll(&mut Context::from_waker(&self.waker))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Polls, and keeps the waker that was given.
    fn poll(bell: &mut Bell, cx: &Context<'_>, kept: &mut Vec<Waker>) {
        let polled = bell.poll(cx, |cx| {
            kept.push(cx.waker().clone());
            Poll::<()>::Pending
        });
        assert!(polled.is_pending());
    }

    #[test]
    fn it_polls_at_first_and_then_only_when_it_was_woken() {
        let (woken, mut kept) = (Arc::new(Count::default()), Vec::new());
        let (waker, mut bell) = (Waker::from(woken.clone()), Bell::default());
        let cx = Context::from_waker(&waker);
        poll(&mut bell, &cx, &mut kept);
        poll(&mut bell, &cx, &mut kept);
        assert_eq!(kept.len(), 1);
        kept[0].wake_by_ref();
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
        poll(&mut bell, &cx, &mut kept);
        poll(&mut bell, &cx, &mut kept);
        assert_eq!(kept.len(), 2);
    }

    #[test]
    fn who_polls_last_is_woken_and_nothing_is_lost_in_between() {
        let (first, second) = (Arc::new(Count::default()), Arc::new(Count::default()));
        let (one, two) = (Waker::from(first.clone()), Waker::from(second.clone()));
        let (mut bell, mut kept) = (Bell::default(), Vec::new());
        poll(&mut bell, &Context::from_waker(&one), &mut kept);
        poll(&mut bell, &Context::from_waker(&two), &mut kept);
        kept[0].wake_by_ref();
        assert_eq!((first.0.load(Ordering::SeqCst), second.0.load(Ordering::SeqCst)), (0, 1));
        // Rung for one task, polled by another.
        poll(&mut bell, &Context::from_waker(&one), &mut kept);
        assert_eq!(kept.len(), 2);
    }
}
