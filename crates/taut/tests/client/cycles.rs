//! Many starts and ends: nothing is left of any of them.
//!
//! Each test is a process of its own, because it counts all that a process has.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

use serde_json::json;

use super::*;

/// Plays one of the tests, and panics if anything is left.
pub(super) fn play(which: &str) {
    let runtime = match which {
        "drop-many-threads" => tokio::runtime::Builder::new_multi_thread().enable_all().build(),
        _ => tokio::runtime::Builder::new_current_thread().enable_all().build(),
    };
    runtime.unwrap().block_on(async {
        let client = start("2025-11-25").await;
        assert_eq!(children().len(), 1, "what is counted is there to be counted");
        let during = open_files();
        client.close().await.unwrap();
        eventually("no descriptor is left", || open_files() < during).await;
        let before = open_files();
        for n in 0..if which == "close" { 500 } else { 200 } {
            // Enough for every place at which a whole life waits, and then some.
            let polls = if which == "close" { usize::MAX } else { 1 + n % 25 };
            in_time(polled(one_life(), polls)).await;
        }
        eventually("no process is left, dead or alive", || children().is_empty()).await;
        eventually("no descriptor is left", || open_files() <= before).await;
    });
}

async fn one_life() {
    let client = start("2025-11-25").await;
    let sum = client.call("add", json!({ "a": 2, "b": 3 })).await.unwrap();
    assert_eq!(sum.text().unwrap(), "5");
    client.close().await.unwrap();
}

/// Polls a future so often, then drops it.
async fn polled<F: Future>(future: F, times: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut count = 0;
    std::future::poll_fn(|cx| {
        count += 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending if count >= times => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// P6
#[tokio::test]
async fn p6_five_hundred_lives_leave_nothing() {
    passes("cycles close").await;
}

/// P4, P19
#[tokio::test]
async fn p4_two_hundred_lives_dropped_at_any_await_leave_nothing() {
    passes("cycles drop").await;
}

/// P4, P19
#[tokio::test]
async fn p4_two_hundred_lives_dropped_among_many_threads_leave_nothing() {
    passes("cycles drop-many-threads").await;
}
