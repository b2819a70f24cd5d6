//! Many threads, one wire.

use serde_json::{Value, json};
use taut::service::{Failed, RequestParams, ServiceRequest, serve};

use super::memory::{request, serving_over};

const THREADS: usize = 64;
const EACH: usize = 1000;

/// Requests that are answered meanwhile.
const REPLIES: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s12_messages_of_many_threads_never_mix() {
    let service = serve(async |method: String, params: RequestParams, call: ServiceRequest| {
        if method == "reply" {
            let [size] = params.read::<[usize; 1]>()?;
            return Ok("y".repeat(size));
        }
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let remote = call.remote().clone();
                std::thread::spawn(move || {
                    for n in 0..EACH {
                        let size = (n * 37 + thread * 11) % 700;
                        remote.notify("told", (thread, n, "x".repeat(size))).unwrap();
                    }
                })
            })
            .collect();
        tokio::task::spawn_blocking(move || threads.into_iter().for_each(|t| t.join().unwrap()))
            .await?;
        Ok::<_, Failed>("done".to_owned())
    });
    let mut wire = serving_over(service, 64 << 10);
    let size = |n: usize| (n * 977) % 5000;
    for n in 0..REPLIES {
        wire.send(&request(n as u64, "reply", &json!([size(n)]))).await;
        if n == 10 {
            wire.send(&request(REPLIES as u64, "x", &json!([]))).await;
        }
    }
    let (mut next, mut replies) = ([0; THREADS], vec![None; REPLIES + 1]);
    for _ in 0..THREADS * EACH + REPLIES + 1 {
        let message: Value = wire.value().await;
        if let Some(id) = message["id"].as_u64() {
            let length = message["result"].as_str().unwrap().len();
            assert_eq!(replies[id as usize].replace(length), None, "{id} twice");
            continue;
        }
        let thread = message["params"][0].as_u64().unwrap() as usize;
        assert_eq!(message["params"][1], next[thread], "in order per sender");
        next[thread] += 1;
    }
    assert_eq!(next, [EACH; THREADS]);
    let want: Vec<_> = (0..REPLIES).map(|n| Some(size(n))).chain([Some("done".len())]).collect();
    assert_eq!(replies, want);
}
