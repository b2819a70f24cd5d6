//! A few threads for jobs that mostly wait.

use std::sync::{Mutex, PoisonError};

/// How many servers run at a time.
pub(crate) const SERVERS: usize = 6;

/// How many clients run at a time: most of them wait for something that never comes.
pub(crate) const CLIENTS: usize = 7;

/// Does jobs on so many threads; the results come in no order.
pub(crate) fn pool<J: Send, R: Send>(
    threads: usize,
    jobs: Vec<J>,
    work: impl Fn(J) -> R + Sync,
) -> Vec<R> {
    let (jobs, results) = (Mutex::new(jobs.into_iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some(job) = job else { break };
                    let result = work(job);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push(result);
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}
