//! Many threads, one wire.

use serde_json::{Value, json};
use taut::service::{Call, Failed, Params, serve};

use super::memory::{request, serving_over};

const THREADS: usize = 64;
const EACH: usize = 250;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s12_messages_of_many_threads_never_mix() {
    let service = serve(async |_: String, _: Params, call: Call| {
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
        Ok::<_, Failed>("done")
    });
    let mut wire = serving_over(service, 4096);
    wire.send(&request(1, "x", &json!([]))).await;
    let mut next = [0; THREADS];
    for _ in 0..THREADS * EACH {
        let told: Value = wire.value().await;
        let thread = told["params"][0].as_u64().unwrap() as usize;
        assert_eq!(told["params"][1], next[thread], "in order per sender");
        next[thread] += 1;
    }
    assert_eq!(wire.value().await["result"], "done");
    assert_eq!(next, [EACH; THREADS]);
}
