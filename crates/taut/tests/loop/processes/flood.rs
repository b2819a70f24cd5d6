//! As much as the pipe takes: each request answered once, memory flat.

use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::memory::request;
use crate::process::{Server, example};

/// All of them where the code is optimised; enough to show growth where it is not.
const FLOOD: u64 = if cfg!(debug_assertions) { 100_000 } else { 400_000 };

/// Pours requests in on a thread of its own.
fn pour(server: &mut Server, from: u64, count: u64, method: &'static str, params: Value) {
    let mut to = server.to.take().unwrap();
    std::thread::spawn(move || {
        let mut some = String::new();
        for n in from..from + count {
            some += &request(n, method, &params);
            some.push('\n');
            if some.len() > 32 << 10 {
                if to.write_all(some.as_bytes()).is_err() {
                    return;
                }
                some.clear();
            }
        }
        let _ = to.write_all(some.as_bytes());
    });
}

#[test]
fn c18_a_flood_is_answered_once_each_in_flat_memory() {
    let mut server = Server::start(example());
    // Everything that it needs once, it has after this.
    server.ask(&request(0, "echo", &json!(["x".repeat(60_000)])));
    let before = server.peak();
    pour(&mut server, 0, FLOOD, "echo", json!(["0123456789012345678901234567890123456789"]));
    let mut seen = vec![false; FLOOD as usize];
    let mut peak = before;
    for n in 0..FLOOD {
        let line = server.line();
        let id = line.split("\"id\":").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
        let id: usize = id.parse().unwrap();
        assert!(!std::mem::replace(&mut seen[id], true), "{id} answered twice");
        assert!(line.contains("\"result\""), "{line}");
        if n % 1000 == 0 && n < FLOOD - 5000 {
            peak = peak.max(server.peak());
        }
    }
    assert!(seen.iter().all(|seen| *seen));
    let grown = peak - before;
    assert!(grown < 4 << 20, "grew by {grown} bytes over {before}");
    server.ends_well();
}

/// 1,024 run, 4 MiB wait, and the rest stays with the sender.
#[test]
fn c18_a_flood_of_slow_requests_is_bounded_and_answered_once_each() {
    let mut server = Server::start(example());
    server.ask(&request(0, "echo", &json!(["x".repeat(60_000)])));
    let before = server.peak();
    // At about 135 bytes apiece, some 31,000 wait; so this is three times what it takes in, and
    // the slow ones among them are few enough for a test.
    let mut to = server.to.take().unwrap();
    std::thread::spawn(move || {
        for n in 0..100_000_u64 {
            let line = match n {
                ..1024 => request(n, "sleep", &json!([2000])),
                _ => request(n, "sleep", &json!([0])),
            };
            if to.write_all((line + "\n").as_bytes()).is_err() {
                return;
            }
        }
    });
    assert_eq!(server.line_within(Duration::from_millis(500)), None, "all of them sleep");
    let held = server.peak() - before;
    assert!(held < 24 << 20, "{held} bytes held for 4 MiB of requests");
    let mut seen = vec![false; 100_000];
    for _ in 0..100_000 {
        let answer = server.value();
        assert!(answer["result"].is_u64(), "{answer}");
        let id = answer["id"].as_u64().unwrap() as usize;
        assert!(!std::mem::replace(&mut seen[id], true), "{id} answered twice");
    }
    server.ends_well();
}
