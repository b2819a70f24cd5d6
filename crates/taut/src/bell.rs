//! Remembers whether something has asked to be polled, so that it is polled only then.
//!
//! Knows wakers and nothing of what is watched. The loop is woken for every message. What it watches beside
//! that (a signal, the exit of a child, a reader that goes away) hardly ever happens, and asking each of
//! them anew costs as much as a message.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use crate::lock::lock;

/// Stands between the loop and one thing that it watches.
pub(crate) struct Bell {
    ring: Arc<Ring>,
    waker: Waker,
    /// Where the waker of the loop points to that `ring` knows, and its functions. `ring` keeps that waker, so
    /// that nothing else can be there. Not the waker itself: a clone may have other copies of the same
    /// functions.
    known: (usize, usize),
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
        Self { waker: Waker::from(ring.clone()), ring, known: (0, 0) }
    }
}

impl Bell {
    /// Polls with `poll` if that was asked for since the last time, and is pending otherwise.
    #[inline]
    pub(crate) fn poll<T>(
        &mut self,
        cx: &Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        if self.known == address(cx.waker()) && !self.ring.rung.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        if self.answer(cx) { poll(&mut Context::from_waker(&self.waker)) } else { Poll::Pending }
    }

    /// Says whether it has rung.
    #[cold]
    fn answer(&mut self, cx: &Context<'_>) -> bool {
        // First, because the loop may be polled by another task than before.
        self.known = address(cx.waker());
        let _former = lock(&self.ring.wakes).replace(cx.waker().clone());
        self.ring.rung.swap(false, Ordering::AcqRel)
    }
}

fn address(waker: &Waker) -> (usize, usize) {
    (waker.data().addr(), std::ptr::from_ref(waker.vtable()).addr())
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
