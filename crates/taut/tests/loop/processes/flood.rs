//! As much as the pipe takes: each request answered once, memory flat.

use std::io::{PipeReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use crate::memory::request;
use crate::process::{Server, example};

/// All of them where the code is optimised; enough to show growth where it is not.
const FLOOD: u64 = if cfg!(debug_assertions) { 100_000 } else { 400_000 };

/// Requests on their way in, on a thread of their own.
struct Pour {
    /// Bytes that went in.
    poured: Arc<AtomicUsize>,
    thread: JoinHandle<Box<dyn Write + Send>>,
}

fn pour(server: &mut Server, count: u64, params: Value) -> Pour {
    let mut to = server.to.take().unwrap();
    let poured = Arc::new(AtomicUsize::new(0));
    let counted = poured.clone();
    let thread = std::thread::spawn(move || {
        let mut some = String::new();
        for n in 0..count {
            some += &request(n, "echo", &params);
            some.push('\n');
            if some.len() > 32 << 10 || n + 1 == count {
                if to.write_all(some.as_bytes()).is_err() {
                    break;
                }
                counted.fetch_add(some.len(), Ordering::Relaxed);
                some.clear();
            }
        }
        // Not closed: the server is to be there when its memory is looked at.
        to
    });
    Pour { poured, thread }
}

#[test]
fn c18_a_flood_is_answered_once_each_in_flat_memory() {
    let mut server = Server::start(example());
    // Everything that it needs once, it has after this.
    server.ask(&request(0, "echo", &json!(["x".repeat(60_000)])));
    let before = server.peak();
    let pour = pour(&mut server, FLOOD, json!(["0123456789".repeat(4)]));
    let mut seen = vec![false; FLOOD as usize];
    for _ in 0..FLOOD {
        let line = server.line();
        let id = line.split("\"id\":").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
        let id: usize = id.parse().unwrap();
        assert!(!std::mem::replace(&mut seen[id], true), "{id} answered twice");
        assert!(line.contains("\"result\""), "{line}");
    }
    assert!(seen.iter().all(|seen| *seen));
    let grown = server.peak() - before;
    assert!(grown < 2 << 20, "grew by {grown} bytes over {before}");
    drop(pour.thread.join().unwrap());
    server.ends_well();
}

/// A reader that waits to be let in, for each part that it reads.
struct Gated {
    from: PipeReader,
    gate: Receiver<usize>,
    left: usize,
}

impl Read for Gated {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        while self.left == 0 {
            // Who has dropped the key has opened it for good.
            self.left = self.gate.recv().unwrap_or(usize::MAX);
        }
        let most = into.len().min(self.left);
        let n = self.from.read(&mut into[..most])?;
        self.left -= n;
        Ok(n)
    }
}

/// C18: answers that are not read are not made either. The reader sleeps until nothing more goes in,
/// reads a little, sleeps again, and in the end reads all.
#[test]
fn c18_a_reader_that_sleeps_costs_the_server_no_memory() {
    let (stdin, to) = std::io::pipe().unwrap();
    let (from, stdout) = std::io::pipe().unwrap();
    let (key, gate) = channel();
    let from = Gated { from, gate, left: 0 };
    let mut server = Server::over(example(), stdin.into(), stdout.into(), to, from);
    key.send(61_000).unwrap();
    server.ask(&request(0, "echo", &json!(["x".repeat(60_000)])));
    let before = server.peak();
    let Pour { poured, thread } = pour(&mut server, FLOOD, json!(["0123456789".repeat(4)]));
    for bytes in [100, 300_000, 3_000_000] {
        let mut last = usize::MAX;
        while last != poured.load(Ordering::Relaxed) {
            last = poured.load(Ordering::Relaxed);
            // Not a limit: where this is too short, less is shown, and nothing fails.
            std::thread::sleep(Duration::from_millis(200));
        }
        // Two pipes, a read, what waits and what is on its way: about 600 KiB.
        assert!(last < 2 << 20, "{last} bytes taken from a peer that reads nothing");
        key.send(bytes).unwrap();
    }
    drop(key);
    for _ in 0..FLOOD {
        server.line();
    }
    let grown = server.peak() - before;
    assert!(grown < 2 << 20, "grew by {grown} bytes over {before}");
    drop(thread.join().unwrap());
    server.ends_well();
}

/// 1,024 run, 4 MiB wait, and the rest stays with the sender.
#[test]
fn c18_a_flood_of_slow_requests_is_bounded_and_answered_once_each() {
    let mut server = Server::start(example());
    server.ask(&request(0, "echo", &json!(["x".repeat(60_000)])));
    let before = server.peak();
    // At about 350 bytes apiece, some 12,000 wait; so this is many times what it takes in, and
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
    assert!(held < 12 << 20, "{held} bytes held for 4 MiB of requests");
    let mut seen = vec![false; 100_000];
    for _ in 0..100_000 {
        let answer = server.value();
        assert!(answer["result"].is_u64(), "{answer}");
        let id = answer["id"].as_u64().unwrap() as usize;
        assert!(!std::mem::replace(&mut seen[id], true), "{id} answered twice");
    }
    server.ends_well();
}
