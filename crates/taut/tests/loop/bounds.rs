//! Every queue has a bound, and no bound is a deadlock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use taut::Ending;
use taut::service::{Failed, RequestParams, ServiceRequest, serve};
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;

use super::memory::{request, serving, serving_over};

/// Sends lines until the pipe takes no more for a while; how many bytes it took.
async fn pour(wire: &mut super::memory::Wire, line: &str, most: usize) -> usize {
    let mut poured = 0;
    while poured < most {
        // Under a stopped clock this means: until nothing else can happen.
        let sent = tokio::time::timeout(Duration::from_secs(1), wire.to.write(line.as_bytes()));
        match sent.await {
            Ok(sent) => poured += sent.unwrap(),
            Err(_) => break,
        }
    }
    poured
}

#[tokio::test(start_paused = true)]
async fn c18_a_full_queue_stops_the_reading_and_every_request_is_answered_in_the_end() {
    let started = Arc::new(AtomicUsize::new(0));
    let open = Arc::new(Notify::new());
    let (counted, gate) = (started.clone(), open.clone());
    let service = serve(move |_: String, _: RequestParams, _: ServiceRequest| {
        counted.fetch_add(1, Ordering::Relaxed);
        let gate = gate.clone();
        async move {
            gate.notified().await;
            Ok::<_, Failed>(())
        }
    })
    .config(|config| {
        config.running = 8;
        config.queue = 16 << 10;
    });
    let mut wire = serving_over(service, 1024);
    let mut sent = 0;
    loop {
        let line = request(sent, "wait", &json!([])) + "\n";
        let all = wire.to.write_all(line.as_bytes());
        if tokio::time::timeout(Duration::from_secs(1), all).await.is_err() {
            break;
        }
        sent += 1;
        assert!(sent < 10_000, "it never stopped reading");
    }
    assert_eq!(started.load(Ordering::Relaxed), 8);
    // 16 KiB at 256 bytes and more apiece, and what fits into a read and the pipe.
    assert!(sent < 8 + 64 + (66 << 10) / 50, "{sent} taken");
    let opener = tokio::spawn(async move {
        loop {
            open.notify_waiters();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    for _ in 0..sent {
        let answer = wire.value().await;
        assert_eq!(answer["result"], Value::Null, "{answer}");
    }
    opener.abort();
}

/// The busy rule: what a handler asks must find its way back past a full queue.
#[tokio::test(start_paused = true)]
async fn a_handler_that_calls_while_the_queue_is_full_completes_and_others_are_told_busy() {
    let service = serve(async |method: String, _: RequestParams, call: ServiceRequest| {
        if method == "asks" {
            return Ok::<Value, Failed>(call.remote().call("question", ()).await?);
        }
        call.cancelled().await;
        Ok(json!(null))
    })
    .config(|config| {
        config.running = 1;
        config.queue = 1;
    });
    let mut wire = serving(service);
    let question = wire.ask(&request(1, "asks", &json!([]))).await;
    wire.send(&request(2, "waits", &json!([]))).await;
    let busy = wire.ask(&request(3, "waits", &json!([]))).await;
    assert_eq!((&busy["id"], &busy["error"]["code"]), (&json!(3), &json!(-32603)));
    assert!(busy["error"]["message"].as_str().unwrap().starts_with("busy"), "{busy}");
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": "yes" });
    let done = wire.ask(&answer.to_string()).await;
    assert_eq!((&done["id"], &done["result"]), (&json!(1), &json!("yes")));
}

/// C19.
#[tokio::test(start_paused = true)]
async fn c18_a_flood_of_notifications_neither_drops_the_answer_nor_the_reader() {
    let service = serve(async |_: String, _: RequestParams, call: ServiceRequest| {
        for n in 0..10_000 {
            call.remote().notify("progress", [n])?;
        }
        Ok::<_, Failed>("done")
    });
    let mut wire = serving_over(service, 256);
    wire.send(&request(1, "x", &json!([]))).await;
    // C19, C20: all of it, in order, the answer last.
    for n in 0..10_000 {
        let told = wire.value().await;
        assert_eq!(told["params"][0], n, "{told}");
    }
    assert_eq!(wire.value().await["result"], "done");
}

#[tokio::test(start_paused = true)]
async fn c20_an_answer_never_overtakes_what_its_handler_said_before() {
    let service = serve(async |_: String, _: RequestParams, call: ServiceRequest| {
        for n in 0..50 {
            call.remote().notify("progress", [n])?;
            if n % 7 == 0 {
                tokio::task::yield_now().await;
            }
        }
        Ok::<_, Failed>("done")
    });
    let mut wire = serving(service);
    wire.send(&request(1, "x", &json!([]))).await;
    for n in 0..50 {
        assert_eq!(wire.value().await["params"][0], n);
    }
    assert_eq!(wire.value().await["result"], "done");
}

#[tokio::test(start_paused = true)]
async fn c18_answers_that_nobody_reads_stop_the_reading() {
    let service = serve(async |_: String, params: RequestParams, _: ServiceRequest| {
        Ok::<Value, Failed>(params.read()?)
    })
    .config(|config| config.output = 64 << 10);
    let mut wire = serving_over(service, 4096);
    let line = request(1, "echo", &json!(["x".repeat(900)])) + "\n";
    let poured = pour(&mut wire, &line, 64 << 20).await;
    // The bound, as much again on its way out, one read, and the pipe.
    assert!(poured < 4 * (64 << 10) + 4096 + 2000, "{poured} bytes taken");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_reads_nothing_at_all_ends_the_connection_at_the_cap() {
    let service = serve(async |_: String, _: RequestParams, call: ServiceRequest| {
        for _ in 0..1000 {
            call.remote().notify("more", ["x".repeat(1000)])?;
        }
        std::future::pending::<Result<(), Failed>>().await
    })
    .config(|config| config.output_cap = 256 << 10);
    let mut wire = serving_over(service, 256);
    wire.send(&request(1, "x", &json!([]))).await;
    let ending = wire.served.await.unwrap();
    assert!(matches!(ending, Ending::Stuck { bytes } if bytes > 256 << 10), "{ending}");
}

/// C2, C15: requests in fragments, large answers at the same time; nobody waits for anybody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c2_c15_fragments_coming_in_while_large_answers_leave_lose_nothing() {
    for piece in [1, 3, 7, 64, 1000] {
        fragments_lose_nothing(piece).await;
    }
}

/// Two hundred requests in pieces of this size.
async fn fragments_lose_nothing(size: usize) {
    let service = serve(async |_: String, params: RequestParams, _: ServiceRequest| {
        let [size] = params.read::<[usize; 1]>()?;
        tokio::task::yield_now().await;
        Ok::<_, Failed>("y".repeat(size))
    });
    let super::memory::Wire { mut to, mut from, .. } = serving_over(service, 4096);
    let writer = tokio::spawn(async move {
        for n in 0..200 {
            let line = request(n, "big", &json!([64 << 10])) + "\n";
            for piece in line.as_bytes().chunks(size) {
                to.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
        }
        to
    });
    let mut seen = [false; 200];
    for _ in 0..200 {
        use tokio::io::AsyncBufReadExt;
        let mut line = String::new();
        let read = from.read_line(&mut line);
        tokio::time::timeout(super::PATIENCE, read).await.unwrap().unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["result"].as_str().unwrap().len(), 64 << 10);
        let id = answer["id"].as_u64().unwrap() as usize;
        assert!(!std::mem::replace(&mut seen[id], true), "{id} twice");
    }
    drop(writer.await.unwrap());
}

/// C15: a request far larger than the pipe, answered before all of it was sent.
#[tokio::test]
async fn c15_large_requests_of_every_size_complete() {
    // The largest message that is served, envelope and all.
    let largest = (64 << 20) - 1024;
    for (pipe, sizes) in
        [(4096, &[1, 4095, 4096, 65_535, 65_536, 1 << 20][..]), (64 << 10, &[8 << 20, largest])]
    {
        let service = serve(async |_: String, params: RequestParams, _: ServiceRequest| {
            Ok::<_, Failed>(params.read::<[String; 1]>()?[0].len())
        });
        let mut wire = serving_over(service, pipe);
        for size in sizes {
            let answer = wire.ask(&request(1, "len", &json!(["z".repeat(*size)]))).await;
            assert_eq!(answer["result"], *size);
        }
    }
}

/// Pours messages in until the other end is gone.
fn flood(mut to: tokio::io::WriteHalf<tokio::io::DuplexStream>, message: &'static str) {
    tokio::spawn(async move {
        let many = message.repeat(1000);
        while to.write_all(many.as_bytes()).await.is_ok() {}
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_never_rests_starves_nobody() {
    let service = serve(async |method: String, _: RequestParams, _: ServiceRequest| {
        if method == "later" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok::<_, Failed>(method)
    });
    let mut wire = serving(service);
    wire.send(&request(7, "later", &json!([]))).await;
    let super::memory::Wire { to, mut from, .. } = wire;
    flood(to, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"now\"}\n");
    let found = async {
        use tokio::io::AsyncBufReadExt;
        let mut line = String::new();
        while !line.contains("later") {
            line.clear();
            assert_ne!(from.read_line(&mut line).await.unwrap(), 0);
        }
    };
    tokio::time::timeout(super::PATIENCE, found).await.expect("starved");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_never_rests_cannot_keep_us_from_closing() {
    let service = serve(async |_: String, _: RequestParams, call: ServiceRequest| {
        tokio::time::sleep(Duration::from_millis(20)).await;
        call.remote().close();
        std::future::pending::<Result<(), Failed>>().await
    });
    let mut wire = serving(service);
    wire.send(&request(7, "close", &json!([]))).await;
    let super::memory::Wire { to, mut from, .. } = wire;
    flood(to, "{\"jsonrpc\":\"2.0\",\"method\":\"told\"}\n");
    let mut rest = Vec::new();
    let ended = tokio::io::AsyncReadExt::read_to_end(&mut from, &mut rest);
    tokio::time::timeout(super::PATIENCE, ended).await.expect("never closed").unwrap();
}
