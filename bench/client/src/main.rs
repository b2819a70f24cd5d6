//! What a call costs the client: CPU time and round trip, beside a client that does nothing else.
//!
//! `bench-client [ROUNDS [CALLS]]`. Each round runs every client in turn against a fresh fake server,
//! which is this program again: a blocking loop that finds the id by searching for it.
//!
//! - `ideal`: blocking reads and writes on the same pipes, the answer read into a type by serde.
//! - `taut`: `Client::call` on a current-thread runtime.
//! - `taut mt`: the same on a runtime with two workers.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use serde_json::json;

fn main() {
    let mut args = std::env::args().skip(1);
    let first = args.next();
    if first.as_deref() == Some("serve") {
        return serve();
    }
    let rounds = first.map_or(5, |n| n.parse().expect("a number of rounds"));
    let calls = args.next().map_or(20_000, |n| n.parse().expect("a number of calls"));
    let clients: [(&str, fn(usize, usize) -> Sample); 3] = [
        ("ideal", ideal),
        ("taut", |calls, size| taut(calls, size, false)),
        ("taut mt", |calls, size| taut(calls, size, true)),
    ];
    for (size, calls) in [(64, calls), (1 << 20, calls / 100)] {
        println!("{size} bytes of text, {calls} calls, {rounds} rounds");
        let mut samples = vec![Vec::new(); clients.len()];
        for _ in 0..rounds {
            for (at, (_, run)) in clients.iter().enumerate() {
                samples[at].push(run(calls, size));
            }
        }
        for ((name, _), samples) in clients.iter().zip(samples) {
            let cpu = median(samples.iter().map(|sample| sample.cpu).collect());
            let p50 = median(samples.iter().map(|sample| sample.p50).collect());
            println!("  {name:8} cpu per call {cpu:9.2} us   p50 {p50:9.2} us");
        }
    }
}

#[derive(Clone, Copy)]
struct Sample {
    cpu: f64,
    p50: f64,
}

/// Runs `calls` calls, after some for warming up, and tells what they cost.
struct Meter {
    times: Vec<f64>,
    cpu: Duration,
}

impl Meter {
    fn new() -> Self {
        Self { times: Vec::new(), cpu: cpu() }
    }

    fn done(mut self) -> Sample {
        let cpu = (cpu() - self.cpu).as_secs_f64() * 1e6 / self.times.len() as f64;
        let times = std::mem::take(&mut self.times);
        Sample { cpu, p50: median(times) }
    }
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

fn taut(calls: usize, size: usize, threads: bool) -> Sample {
    let mut builder = if threads {
        tokio::runtime::Builder::new_multi_thread()
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    let runtime = builder.worker_threads(2).enable_all().build().expect("a runtime");
    let work = async move {
        let command = taut::Command::new(std::env::current_exe().expect("our path")).arg("serve");
        let client = taut::Client::spawn(command).await.expect("a connection");
        let call = async || {
            let answer = client.call("text", json!({ "size": size })).await.expect("an answer");
            assert_eq!(answer.text().expect("text").len(), size);
        };
        for _ in 0..calls / 10 {
            call().await;
        }
        let mut meter = Meter::new();
        for _ in 0..calls {
            let began = Instant::now();
            call().await;
            meter.times.push(began.elapsed().as_secs_f64() * 1e6);
        }
        let sample = meter.done();
        client.close().await.expect("an end");
        sample
    };
    runtime.block_on(async { tokio::spawn(work).await.expect("no panic") })
}

fn ideal(calls: usize, size: usize) -> Sample {
    #[derive(Deserialize)]
    struct Message {
        id: u64,
        result: Outcome,
    }
    #[derive(Deserialize)]
    struct Outcome {
        content: Vec<Block>,
    }
    #[derive(Deserialize)]
    struct Block {
        text: String,
    }
    let mut child = Command::new(std::env::current_exe().expect("our path"))
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a server");
    let mut stdin = child.stdin.take().expect("stdin");
    let mut stdout = BufReader::with_capacity(64 << 10, child.stdout.take().expect("stdout"));
    let mut line = Vec::new();
    let mut id = 0;
    let mut call = || {
        id += 1;
        let params = json!({ "name": "text", "arguments": { "size": size } });
        let request =
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        stdin.write_all(format!("{request}\n").as_bytes()).expect("a reader");
        line.clear();
        stdout.read_until(b'\n', &mut line).expect("an answer");
        let message: Message = serde_json::from_slice(&line).expect("a message");
        assert_eq!((message.id, message.result.content[0].text.len()), (id, size));
    };
    for _ in 0..calls / 10 {
        call();
    }
    let mut meter = Meter::new();
    for _ in 0..calls {
        let began = Instant::now();
        call();
        meter.times.push(began.elapsed().as_secs_f64() * 1e6);
    }
    let sample = meter.done();
    drop(stdin);
    child.wait().expect("an end");
    sample
}

/// The fake server: legacy only, and as cheap as can be.
fn serve() {
    let mut stdin = BufReader::with_capacity(64 << 10, std::io::stdin().lock());
    let mut stdout = std::io::stdout().lock();
    let mut line = String::new();
    let mut text = String::new();
    while stdin.read_line(&mut line).is_ok_and(|read| read > 0) {
        let answer = if let Some(id) = number(&line, "\"id\":") {
            if line.contains("\"tools/call\"") {
                let size = number(&line, "\"size\":").unwrap_or(64);
                if text.len() != size {
                    text = "x".repeat(size);
                }
                format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n"
                )
            } else if line.contains("\"initialize\"") {
                format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{{\"tools\":{{}}}},\"serverInfo\":{{\"name\":\"fake\",\"version\":\"1\"}}}}}}\n"
                )
            } else {
                format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32601,\"message\":\"no\"}}}}\n"
                )
            }
        } else {
            String::new()
        };
        if stdout.write_all(answer.as_bytes()).and_then(|()| stdout.flush()).is_err() {
            return;
        }
        line.clear();
    }
}

fn number(line: &str, key: &str) -> Option<usize> {
    let digits = line.split_once(key)?.1;
    let end = digits.find(|c: char| !c.is_ascii_digit())?;
    digits[..end].parse().ok()
}
