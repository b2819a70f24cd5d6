//! Threads for handlers that block. Not the runtime's: that one waits for its blocking threads when
//! it ends, and a stuck handler would keep the process alive after its host has gone (S5, S9).

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// At most so many at once; more wait their turn. Enough for files and databases, and far from
/// what a system's limit on threads minds.
const THREADS: usize = 64;

/// A thread without work leaves after so long.
const IDLE: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Pool {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { jobs: VecDeque::new(), threads: 0, idle: 0 });
static WORK: Condvar = Condvar::new();

/// Runs `work` on a thread of its own, and gives what it returns.
///
/// Nothing is given if it panicked, or if no thread could be started.
pub(super) async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (answer, answered) = tokio::sync::oneshot::channel();
    submit(Box::new(move || {
        // Nobody waits any more if the call was cancelled.
        let _ = answer.send(work());
    }));
    answered.await.ok()
}

fn submit(job: Job) {
    let mut pool = lock();
    pool.jobs.push_back(job);
    if pool.idle >= pool.jobs.len() || pool.threads >= THREADS {
        WORK.notify_one();
        return;
    }
    pool.threads += 1;
    let started = std::thread::Builder::new().name("taut-blocking".into()).spawn(labour);
    if started.is_err() {
        pool.threads -= 1;
        if pool.threads == 0 {
            // Nobody will ever take it; dropping it tells the caller.
            pool.jobs.clear();
        }
    }
}

fn labour() {
    let mut pool = lock();
    loop {
        if let Some(job) = pool.jobs.pop_front() {
            drop(pool);
            // The panic hook has told of it; the caller sees that no answer came.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
            pool = lock();
            continue;
        }
        pool.idle += 1;
        let (guard, waited) = WORK.wait_timeout(pool, IDLE).unwrap_or_else(PoisonError::into_inner);
        pool = guard;
        pool.idle -= 1;
        if waited.timed_out() && pool.jobs.is_empty() {
            pool.threads -= 1;
            return;
        }
    }
}

fn lock() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn more_jobs_than_threads_all_come_to_an_end() {
        let jobs: Vec<_> =
            (0..3 * THREADS).map(|n| tokio::spawn(on_a_thread(move || n * 2))).collect();
        for (n, job) in jobs.into_iter().enumerate() {
            assert_eq!(job.await.unwrap(), Some(n * 2));
        }
    }

    #[tokio::test]
    async fn c14_a_panic_costs_one_job_and_no_thread() {
        assert_eq!(on_a_thread(|| -> u8 { panic!("on purpose") }).await, None);
        assert_eq!(on_a_thread(|| 7).await, Some(7));
    }
}
