//! Many starts and ends: nothing is left of any of them.
//!
//! Each test is a process of its own, because it counts all that a process has.

use std::future::Future;
use std::pin::pin;
use std::process::Stdio;
use std::task::Poll;

use serde_json::json;

use super::*;

/// Plays one of the tests, and panics if anything is left.
pub(super) fn play(which: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        one_life().await;
        nothing_is_left(usize::MAX).await;
        let before = open_files();
        match which {
            "close" => {
                for _ in 0..500 {
                    in_time(one_life()).await;
                }
            }
            "drop" => {
                // Enough for every place at which a whole life waits, and then some.
                for n in 0..200 {
                    in_time(polled(one_life(), 1 + n % 25)).await;
                }
            }
            other => panic!("no such test: {other}"),
        }
        nothing_is_left(before).await;
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

async fn nothing_is_left(files: usize) {
    eventually("no process is left, dead or alive", || children().is_empty()).await;
    eventually("no descriptor is left", || open_files() <= files).await;
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

async fn passes(which: &str) {
    let role = format!("cycles {which}");
    let run = move || bystander(&role).stdout(Stdio::null()).output().unwrap();
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// P6
#[tokio::test]
async fn p6_five_hundred_lives_leave_nothing() {
    passes("close").await;
}

/// P4, P19
#[tokio::test]
async fn p4_two_hundred_lives_dropped_at_any_await_leave_nothing() {
    passes("drop").await;
}
