//! Threads for handlers that block. Not the runtime's: that one waits for its blocking threads when
//! it ends, and a stuck handler would keep the process alive after its host has gone (S5, S9).
//!
//! Knows jobs and their size in bytes; must not know what they do. A job that nobody waits for any
//! more leaves the queue and never runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::lock::lock;

/// A thread without work ends after so long.
const IDLE: Duration = Duration::from_secs(10);

/// What a job costs beside its arguments, so that many small ones have a bound as well.
const JOB: usize = 256;

type JobFn = Box<dyn FnOnce() + Send>;

/// Threads, and the jobs that wait for one. Clones share them.
#[derive(Clone)]
pub(crate) struct Pool(Arc<PoolShared>);

struct PoolShared {
    state: Mutex<PoolState>,
    work: Condvar,
    /// How many threads there may be.
    threads: usize,
    /// How many bytes may wait.
    queue: usize,
}

#[derive(Default)]
struct PoolState {
    /// In the order in which they came.
    jobs: BTreeMap<u64, (JobFn, usize)>,
    next: u64,
    bytes: usize,
    threads: usize,
    idle: usize,
}

/// Why a job has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotRun {
    /// So many bytes wait already.
    Busy(usize),
    /// It panicked, or no thread could be started.
    Failed,
}

impl Pool {
    /// A pool of at most `threads` threads and `queue` bytes of jobs that wait. Starts nothing.
    pub(crate) fn new(threads: usize, queue: usize) -> Self {
        let state = Mutex::default();
        Self(Arc::new(PoolShared { state, work: Condvar::new(), threads: threads.max(1), queue }))
    }

    /// Runs `work`, which holds about `bytes` of arguments, on a thread and gives what it returns.
    ///
    /// If the future is dropped before a thread has taken the job, the job never runs.
    ///
    /// # Errors
    /// The queue is full, or the work panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NotRun> {
        let (answer, answered) = tokio::sync::oneshot::channel();
        let job = self.submit(
            bytes.saturating_add(JOB),
            Box::new(move || {
                // The caller may be gone by now; then nobody wants the result.
                let _ = answer.send(work());
            }),
        )?;
        // Dropped with this future, it takes the job out of the queue.
        let _waiting = Waiting { pool: self, job };
        answered.await.map_err(|_| NotRun::Failed)
    }

    fn submit(&self, bytes: usize, work: JobFn) -> Result<u64, NotRun> {
        let mut state = lock(&self.0.state);
        // An empty queue takes any job, however large: it fitted into a message.
        if !state.jobs.is_empty() && state.bytes.saturating_add(bytes) > self.0.queue {
            return Err(NotRun::Busy(state.bytes));
        }
        let job = state.next;
        state.next += 1;
        state.bytes += bytes;
        state.jobs.insert(job, (work, bytes));
        if state.idle >= state.jobs.len() || state.threads >= self.0.threads {
            self.0.work.notify_one();
            return Ok(job);
        }
        state.threads += 1;
        let pool = self.clone();
        let started =
            std::thread::Builder::new().name("taut-blocking".into()).spawn(move || pool.serve());
        if started.is_err() {
            state.threads -= 1;
            if state.threads == 0 {
                // No thread will take the job. Dropping it, after the lock, tells the caller.
                let _work = state.take(job);
                drop(state);
            }
        }
        Ok(job)
    }

    /// What one thread does.
    fn serve(&self) {
        let mut state = lock(&self.0.state);
        loop {
            if let Some((&job, _)) = state.jobs.first_key_value() {
                let work = state.take(job);
                drop(state);
                // The panic hook has told of a panic; the caller sees that no answer came.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    work.into_iter().for_each(|work| work());
                }));
                state = lock(&self.0.state);
                continue;
            }
            state.idle += 1;
            let waited = self.0.work.wait_timeout(state, IDLE);
            let (guard, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            state = guard;
            state.idle -= 1;
            if waited.timed_out() && state.jobs.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}

impl PoolState {
    /// Takes a job out of the queue, if it is still there.
    fn take(&mut self, job: u64) -> Option<JobFn> {
        let (work, bytes) = self.jobs.remove(&job)?;
        self.bytes -= bytes;
        Some(work)
    }
}

/// A job whose result somebody waits for.
struct Waiting<'a> {
    pool: &'a Pool,
    job: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // Dropped after the lock: what it holds is users' code.
        let _work = lock(&self.pool.0.state).take(self.job);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn more_jobs_than_threads_all_come_to_an_end() {
        let pool = Pool::new(4, 1 << 20);
        let jobs: Vec<_> = (0..64)
            .map(|n| {
                let pool = pool.clone();
                tokio::spawn(async move { pool.run(0, move || n * 2).await })
            })
            .collect();
        for (n, job) in jobs.into_iter().enumerate() {
            assert_eq!(job.await.unwrap(), Ok(n * 2));
        }
    }

    #[tokio::test]
    async fn c14_a_panic_costs_one_job_and_no_thread() {
        let pool = Pool::new(1, 1 << 20);
        assert_eq!(pool.run(0, || -> u8 { panic!("on purpose") }).await, Err(NotRun::Failed));
        assert_eq!(pool.run(0, || 7).await, Ok(7));
    }

    /// A job on the only thread, and what lets it go on.
    async fn block(pool: &Pool) -> (mpsc::Sender<()>, tokio::task::JoinHandle<()>) {
        let (go, wait) = mpsc::channel::<()>();
        let (started, has_started) = tokio::sync::oneshot::channel();
        let pool = pool.clone();
        let blocked = tokio::spawn(async move {
            let run = pool.run(0, move || {
                let _ = started.send(());
                let _ = wait.recv();
            });
            assert_eq!(run.await, Ok(()));
        });
        has_started.await.unwrap();
        (go, blocked)
    }

    #[tokio::test]
    async fn a_job_that_nobody_waits_for_never_runs_and_gives_its_bytes_back() {
        let pool = Pool::new(1, 1 << 20);
        let (go, blocked) = block(&pool).await;
        let (ran, has_run) = mpsc::channel();
        {
            let mut job = std::pin::pin!(pool.run(1000, move || ran.send(())));
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(job.as_mut().poll(&mut cx).is_pending());
            assert_eq!(lock(&pool.0.state).bytes, 1000 + JOB);
        }
        assert_eq!(lock(&pool.0.state).bytes, 0);
        go.send(()).unwrap();
        blocked.await.unwrap();
        assert_eq!(pool.run(0, || 1).await, Ok(1));
        assert_eq!(has_run.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    }

    #[tokio::test]
    async fn a_full_queue_is_busy() {
        let pool = Pool::new(1, 2 * JOB + 100);
        let (go, blocked) = block(&pool).await;
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        let mut first = std::pin::pin!(pool.run(100, || 1));
        assert!(first.as_mut().poll(&mut cx).is_pending());
        assert_eq!(pool.run(1, || 2).await, Err(NotRun::Busy(JOB + 100)));
        go.send(()).unwrap();
        blocked.await.unwrap();
        assert_eq!(first.await, Ok(1));
    }
}
