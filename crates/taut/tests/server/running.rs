//! What runs beside what: slow tools, cancelled ones, panicking ones, and what is told meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use taut::{Call, Ending, Level, NoArgs, Progress, Server};

use crate::fixture::{self, Echo};
use crate::wire::Wire;

/// C1, PNG-06: the slow tool would take an hour; nothing waits for it.
#[tokio::test(start_paused = true)]
async fn c1_a_slow_tool_delays_neither_ping_nor_a_list_nor_another_tool_nor_its_own_cancellation() {
    let mut wire = Wire::to(fixture::named("full"));
    wire.shake_hands("2025-11-25").await;
    let began = tokio::time::Instant::now();
    wire.call("slow", "slow", json!({ "step_ms": 3_600_000 })).await;
    wire.send(json!({ "jsonrpc": "2.0", "id": "ping", "method": "ping" })).await;
    assert_eq!(wire.next().await["id"], "ping");
    wire.ask("list", "prompts/list", json!({})).await;
    assert_eq!(wire.next().await["id"], "list");
    wire.call("echo", "echo", json!({ "text": "x" })).await;
    assert_eq!(wire.next().await["id"], "echo");
    wire.notify("notifications/cancelled", json!({ "requestId": "slow" })).await;
    let (rest, ending) = wire.finish().await;
    assert!(rest.is_empty(), "{rest:?}");
    assert!(matches!(ending, Some(Ending::Eof)));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

/// CAN-10, C3: the handler that goes on is dropped after its grace, and nothing it says leaves.
#[tokio::test(start_paused = true)]
async fn can_10_a_cancelled_call_writes_nothing_more_and_its_future_is_dropped() {
    struct Gone(Arc<AtomicBool>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let gone = Arc::new(AtomicBool::new(false));
    let held = gone.clone();
    let server = Server::builder("stubborn", "1")
        .tool(("stay", "Tool stay."), move |_: NoArgs, call: Call| {
            let _held = Gone(held.clone());
            async move {
                let _held = _held;
                for n in 0.. {
                    call.progress(f64::from(n));
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        })
        .build()
        .unwrap();
    let mut wire = Wire::to(server);
    let token = json!({ "progressToken": "t" });
    wire.ask_with(1, "tools/call", json!({ "name": "stay" }), token).await;
    assert_eq!(wire.next().await["params"]["progress"], 0.0);
    wire.notify("notifications/cancelled", json!({ "requestId": 1 })).await;
    wire.ask("barrier", "server/discover", json!({})).await;
    let mut seen = wire.next().await;
    while seen["id"] != "barrier" {
        assert_eq!(seen["method"], "notifications/progress", "{seen}");
        seen = wire.next().await;
    }
    assert!(wire.is_silent(Duration::from_secs(5)).await);
    assert!(gone.load(Ordering::SeqCst), "the grace of a second is over");
}

/// C14: one panic at once, one after waiting; each costs its own call, and the model is told. Several
/// hosts take a JSON-RPC error for a broken server and restart it.
#[tokio::test(start_paused = true)]
async fn c14_a_panicking_tool_fails_like_any_other_and_costs_one_call() {
    let server = Server::builder("shaky", "1")
        .tool(("now", "Tool now."), async |_: NoArgs, _| -> String { panic!("at once") })
        .tool(("later", "Tool later."), async |_: NoArgs, _| -> String {
            tokio::time::sleep(Duration::from_millis(10)).await;
            panic!("later")
        })
        .tool("echo", async |Echo { text }, _| text)
        .build()
        .unwrap();
    let mut wire = Wire::to(server);
    wire.call(1, "now", json!({})).await;
    wire.call(2, "later", json!({})).await;
    wire.call(3, "echo", json!({ "text": "alive" })).await;
    let mut answers: Vec<Value> = vec![wire.next().await, wire.next().await, wire.next().await];
    answers.sort_by_key(|answer| answer["id"].as_u64());
    for answer in &answers[..2] {
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("panicked") && !text.contains("later"), "{text}");
    }
    assert_eq!(answers[2]["result"]["content"][0]["text"], "alive");
}

/// PRG-04, PRG-07, PRG-12: a handler that reports ten thousand times in a row, backwards too.
#[tokio::test(start_paused = true)]
async fn prg_12_progress_is_monotonic_limited_and_never_after_the_answer() {
    let server = Server::builder("eager", "1")
        .tool(("work", "Tool work."), async |_: NoArgs, call: Call| {
            for n in 0..10_000 {
                call.progress(Progress::new(n % 100).total(1000));
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            call.progress(f64::NAN);
            tokio::time::sleep(Duration::from_secs(1)).await;
            // A total that is no number is none.
            call.progress(Progress::new(999.5).total(f64::NEG_INFINITY));
            tokio::time::sleep(Duration::from_secs(1)).await;
            call.progress(Progress::new(1000).total(1000));
            let late = call.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(100)).await;
                late.progress(Progress::new(2000));
            });
        })
        .build()
        .unwrap();
    let mut wire = Wire::to(server);
    let token = json!({ "progressToken": 0 });
    wire.ask_with(1, "tools/call", json!({ "name": "work" }), token).await;
    let mut reports = Vec::new();
    let answer = loop {
        let message = wire.next().await;
        assert_ne!(message["params"].get("total"), Some(&json!(null)), "{message}");
        match message["params"]["progress"].as_f64() {
            Some(progress) => reports.push(progress),
            None => break message,
        }
    };
    assert_eq!(answer["id"], 1);
    assert!(reports.windows(2).all(|pair| pair[0] < pair[1]), "{reports:?}");
    // Below 100 it rises once in 50 ms at best; 10 s of work would allow 200 of them.
    assert!((2..=201).contains(&reports.len()), "{}", reports.len());
    assert_eq!(reports.last(), Some(&1000.0), "the last step is not held back");
    assert!(wire.is_silent(Duration::from_secs(5)).await);
}

/// ERA-02: each request by its own rules, however they are mixed.
#[tokio::test(start_paused = true)]
async fn era_02_modern_and_legacy_requests_interleave_on_one_pipe() {
    let mut wire = Wire::to(fixture::named("full"));
    wire.shake_hands("2025-03-26").await;
    for n in 0..50 {
        let params = json!({ "name": "add", "arguments": { "a": n, "b": 1 } });
        if n % 2 == 0 {
            wire.ask(n, "tools/call", params).await;
        } else {
            let request =
                json!({ "jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params });
            wire.send(request).await;
        }
    }
    for _ in 0..50 {
        let answer = wire.next().await;
        let modern = answer["id"].as_u64().unwrap() % 2 == 0;
        let result = answer["result"].as_object().unwrap();
        for member in ["structuredContent", "resultType", "_meta"] {
            assert_eq!(result.contains_key(member), modern, "{member} in {answer}");
        }
    }
}

/// Two servers, and many connections to each, at once; nothing of one shows in another.
#[tokio::test(start_paused = true)]
async fn two_servers_serve_many_connections_at_once() {
    let servers = [("a", Arc::new(echoing("a"))), ("b", Arc::new(echoing("b")))];
    let mut wires = Vec::new();
    for n in 0..40 {
        let (name, server) = &servers[n % 2];
        let mut wire = Wire::to_shared(server);
        // Half of them legacy: a session is the connection's own.
        if n % 4 < 2 {
            wire.shake_hands("2024-11-05").await;
        }
        wires.push((name, wire));
    }
    for (_, wire) in &mut wires {
        wire.call("same id", "echo", json!({ "text": "x" })).await;
    }
    for (name, mut wire) in wires {
        let answer = wire.next().await;
        assert_eq!(answer["result"]["content"][0]["text"], format!("{name}: x"));
        assert!(matches!(wire.finish().await.1, Some(Ending::Eof)));
    }
}

fn echoing(name: &'static str) -> Server<&'static str> {
    Server::with_state(name, "1", name)
        .tool("echo", async |Echo { text }, call: Call<&str>| {
            tokio::time::sleep(Duration::from_millis(1)).await;
            format!("{}: {text}", call.state())
        })
        .build()
        .unwrap()
}

/// Issue 19, A2: what a handler logs without ever waiting is bounded in bytes, and what is dropped is
/// counted.
#[tokio::test(start_paused = true)]
async fn log_lines_beyond_the_bound_are_dropped_and_counted() {
    const BOUND: usize = 64 << 10;
    const LINES: usize = 10_000;
    let server = Server::builder("noisy", "1")
        .logging()
        .log_queue(BOUND)
        .tool(("flood", "Log without end."), async |_: NoArgs, call: Call| {
            (0..LINES).for_each(|_| call.log(Level::Error, "x".repeat(1000)));
            "flooded"
        })
        .tool(("once", "Log once."), async |_: NoArgs, call: Call| {
            call.log(Level::Error, "one");
            "logged"
        })
        .build()
        .unwrap();
    let mut wire = Wire::to(server);
    wire.shake_hands("2025-11-25").await;
    let mut sent = 0;
    wire.send(
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "flood" } }),
    )
    .await;
    let mut lines = 0;
    loop {
        let message = wire.next().await;
        if message.get("result").is_some() {
            break;
        }
        lines += 1;
        sent += message.to_string().len();
    }
    assert!(sent > BOUND / 2 && sent < BOUND + 4000, "{sent} bytes in {lines} lines");
    wire.send(
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "once" } }),
    )
    .await;
    let told = wire.next().await["params"].clone();
    let lost = LINES - lines;
    assert_eq!(told["logger"], "taut");
    assert!(told["data"].as_str().unwrap().starts_with(&format!("{lost} log lines were dropped")));
    assert_eq!(wire.next().await["params"]["data"], "one");
}

/// A host that lists again as soon as it has the result finds the new list, because it has heard of the change
/// before. That holds also while a long answer waits to be read.
#[tokio::test(start_paused = true)]
async fn tol_24_a_change_is_told_before_the_result_of_its_call_behind_a_long_answer_too() {
    let server = Server::builder("growing", "1")
        .changing()
        .tool(("long", "Tool long."), async |_: NoArgs, _| "x".repeat(100 << 10))
        .tool(("grow", "Tool grow."), async |_: NoArgs, call: Call| {
            call.changes().remove_tool("long");
            "grown"
        })
        .build()
        .unwrap();
    let mut wire = Wire::to(server);
    wire.shake_hands("2025-11-25").await;
    for (id, tool) in [(1, "long"), (2, "long"), (3, "grow")] {
        let params = json!({ "name": tool, "arguments": {} });
        let request =
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        wire.send(request).await;
    }
    // All have run before anything is read: one answer is in the pipe and on its way, the next waits.
    assert!(!wire.is_silent(Duration::from_secs(1)).await);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(wire.next().await["id"], 1);
    assert_eq!(wire.next().await["id"], 2);
    assert_eq!(wire.next().await["method"], "notifications/tools/list_changed");
    assert_eq!(wire.next().await["id"], 3);
}
