//! Work that lives in a task and that others may do on the spot.
//!
//! Knows futures and wakers; must not know what the work is. A caller that hands something to
//! the work and waits for the result would need two switches between tasks: to the work and back. Here the caller
//! polls the work itself, if nobody else does so at that moment. [`within`] is for the same case: a wait that is
//! usually over at once.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tokio::time::error::Elapsed;

/// Waits for `future`, at most for `limit`. Unlike tokio's `timeout` it looks at no clock and sets no timer if the
/// future is ready at once.
pub(super) async fn within<F: Future>(limit: Duration, future: F) -> Result<F::Output, Elapsed> {
    let mut future = pin!(future);
    let first = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
    match first {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => tokio::time::timeout(limit, future).await,
    }
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The work, whoever does it.
pub(super) struct Turn {
    /// `None` before it begins and after it has ended.
    work: Mutex<Option<Work>>,
    signal: Arc<Signal>,
    /// The waker of `signal`. The work knows no other, so it does not matter who polls it.
    waker: Waker,
}

/// Remembers that the work has to be polled, and wakes the task for it.
#[derive(Default)]
struct Signal {
    due: AtomicBool,
    /// Somebody polls the work now, and looks at `due` afterwards.
    busy: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.due.store(true, Ordering::SeqCst);
        if !self.busy.load(Ordering::SeqCst) {
            self.wake_task();
        }
    }
}

impl Signal {
    fn task(&self) -> MutexGuard<'_, Option<Waker>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_task(&self) {
        let task = self.task().clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl Default for Turn {
    fn default() -> Self {
        let signal = Arc::new(Signal::default());
        Self { work: Mutex::default(), waker: Waker::from(signal.clone()), signal }
    }
}

impl Turn {
    /// Begins `work`. The caller spawns the returned future as a task: it does what is not done on the spot, and
    /// ends the work when it is dropped.
    pub(super) fn begin<T>(
        owner: Arc<T>,
        turn: fn(&T) -> &Self,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> impl Future<Output = ()> + Send + 'static
    where
        T: Send + Sync + 'static,
    {
        *turn(&owner).lock() = Some(Box::pin(work));
        Worker { owner, turn }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Work>> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does `act`, and then the work that came of it, if nobody else does the work at the moment.
    pub(super) fn take<R>(&self, act: impl FnOnce() -> R) -> R {
        let Some(work) = self.try_lock() else { return act() };
        // Dropped in the opposite order, also by a panic: first the task may be woken again, then the work is
        // unlocked, and only then somebody looks whether the task is needed.
        let _last = LookAgain(&self.signal);
        let mut work = work;
        // The task need not wake up for what is done here.
        let _busy = Busy::new(&self.signal);
        let done = act();
        self.poll(&mut work);
        done
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, Option<Work>>> {
        match self.work.try_lock() {
            Ok(work) => Some(work),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Polls the work once. Says whether it has ended.
    fn poll(&self, work: &mut Option<Work>) -> bool {
        let _busy = Busy::new(&self.signal);
        self.signal.due.store(false, Ordering::SeqCst);
        // Taken out, so that it is gone if it panics.
        let Some(mut running) = work.take() else { return true };
        if running.as_mut().poll(&mut Context::from_waker(&self.waker)).is_pending() {
            *work = Some(running);
        } else {
            // The task ends, too.
            self.signal.due.store(true, Ordering::SeqCst);
        }
        work.is_none()
    }
}

/// While it lives, the task is not woken.
struct Busy<'a>(&'a Signal);

impl<'a> Busy<'a> {
    fn new(signal: &'a Signal) -> Self {
        signal.busy.store(true, Ordering::SeqCst);
        Self(signal)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::SeqCst);
    }
}

/// Dropped, it wakes the task for what wanted to be done meanwhile, also by the task itself, which found the work
/// locked. After a panic the work is gone, and its task has to end.
struct LookAgain<'a>(&'a Signal);

impl Drop for LookAgain<'_> {
    fn drop(&mut self) {
        if self.0.due.load(Ordering::SeqCst) || std::thread::panicking() {
            self.0.wake_task();
        }
    }
}

/// Does the work that others leave.
struct Worker<T> {
    owner: Arc<T>,
    turn: fn(&T) -> &Turn,
}

impl<T> Future for Worker<T> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let turn = (self.turn)(&self.owner);
        let signal = &turn.signal;
        {
            let mut task = signal.task();
            if !task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
                *task = Some(cx.waker().clone());
            }
        }
        let mut work = match turn.try_lock() {
            Some(work) => work,
            None => {
                signal.due.store(true, Ordering::SeqCst);
                // Who held it may have looked at the flag before it was set.
                match turn.try_lock() {
                    Some(work) => work,
                    None => return Poll::Pending,
                }
            }
        };
        let ended = turn.poll(&mut work);
        drop(work);
        if ended {
            return Poll::Ready(());
        }
        if signal.due.load(Ordering::SeqCst) {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        // Dropped outside the lock: what it owns may come back here.
        let work = (self.turn)(&self.owner).lock().take();
        drop(work);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

    use super::*;

    #[derive(Default)]
    struct Owner {
        turn: Turn,
        done: AtomicUsize,
        /// How often the work was polled.
        polls: AtomicUsize,
    }

    /// Counts what is handed over. What is 2 hands over a 1 itself, in the middle of the work.
    async fn count(owner: Arc<Owner>, own: UnboundedSender<u8>, mut rest: UnboundedReceiver<u8>) {
        poll_fn(|cx| {
            owner.polls.fetch_add(1, Ordering::SeqCst);
            while let Poll::Ready(next) = rest.poll_recv(cx) {
                let Some(next) = next else { return Poll::Ready(()) };
                assert!(next != 9, "nine is too much");
                owner.done.fetch_add(1, Ordering::SeqCst);
                if next == 2 {
                    owner.turn.take(|| own.send(1)).unwrap();
                }
                if next == 0 {
                    return Poll::Ready(());
                }
            }
            Poll::Pending
        })
        .await;
    }

    fn begin() -> (Arc<Owner>, UnboundedSender<u8>, tokio::task::JoinHandle<()>) {
        let owner = Arc::new(Owner::default());
        let (sender, receiver) = unbounded_channel();
        let work = count(owner.clone(), sender.clone(), receiver);
        let worker = Turn::begin(owner.clone(), |owner| &owner.turn, work);
        (owner, sender, tokio::spawn(worker))
    }

    async fn until(what: impl Fn() -> bool) {
        let waiting = async {
            while !what() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), waiting).await.unwrap();
    }

    #[tokio::test]
    async fn what_is_handed_over_is_done_on_the_spot_and_the_task_sleeps() {
        let (owner, sender, task) = begin();
        until(|| owner.polls.load(Ordering::SeqCst) == 1).await;
        owner.turn.take(|| sender.send(1)).unwrap();
        assert_eq!(owner.done.load(Ordering::SeqCst), 1);
        // Without a task of its own nothing else polls; with one, it had its chance.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert_eq!(owner.polls.load(Ordering::SeqCst), 2);
        // The end on the spot ends the task.
        owner.turn.take(|| sender.send(0)).unwrap();
        task.await.unwrap();
        assert_eq!(Arc::strong_count(&owner), 1);
    }

    #[tokio::test]
    async fn what_comes_at_another_time_is_done_by_the_task() {
        let (owner, sender, task) = begin();
        until(|| owner.polls.load(Ordering::SeqCst) == 1).await;
        sender.send(1).unwrap();
        until(|| owner.done.load(Ordering::SeqCst) == 1).await;
        // Work that hands something to itself does it all the same.
        owner.turn.take(|| sender.send(2)).unwrap();
        until(|| owner.done.load(Ordering::SeqCst) == 3).await;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        assert_eq!(Arc::strong_count(&owner), 1, "the work is gone with its task");
        owner.turn.take(|| ());
    }

    #[tokio::test]
    async fn work_that_panics_is_gone_and_its_task_ends() {
        let (owner, sender, task) = begin();
        until(|| owner.polls.load(Ordering::SeqCst) == 1).await;
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            owner.turn.take(|| sender.send(9)).unwrap();
        }));
        assert!(panicked.is_err());
        task.await.unwrap();
        assert_eq!(Arc::strong_count(&owner), 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn nothing_is_lost_between_threads() {
        let (owner, sender, task) = begin();
        let senders: Vec<_> = (0..4)
            .map(|_| {
                let (owner, sender) = (owner.clone(), sender.clone());
                tokio::spawn(async move {
                    for n in 0..2000 {
                        owner.turn.take(|| sender.send(1)).unwrap();
                        if n % 100 == 0 {
                            tokio::task::yield_now().await;
                        }
                    }
                })
            })
            .collect();
        for sender in senders {
            sender.await.unwrap();
        }
        until(|| owner.done.load(Ordering::SeqCst) == 8000).await;
        owner.turn.take(|| sender.send(0)).unwrap();
        tokio::time::timeout(Duration::from_secs(60), task).await.unwrap().unwrap();
    }
}
