//! Sequential round trips: this process and one server on one core, a request at a time.
//!
//! `bench ROUNDS CALLS name=program …` interleaves the servers round by round, so that what else the
//! machine does falls on all of them, and prints the median p50 of each and its ratio to the first.
//! `bench pour COUNT PAUSE program` sends so many requests one by one and prints nothing: what a
//! profiler is to count. After each answer it pauses for so many microseconds.

use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

/// Sixty-four bytes of payload, as the baseline has it.
const PAYLOAD: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Answers that are not counted: page faults, branch predictors, the governor.
const WARM_UP: usize = 2_000;

struct Server {
    child: Child,
    to: ChildStdin,
    from: ChildStdout,
    next: u64,
    line: String,
    answer: Vec<u8>,
}

impl Server {
    fn start(command: &str) -> io::Result<Self> {
        let mut words = command.split_whitespace();
        let program = words.next().ok_or(io::ErrorKind::InvalidInput)?;
        let mut child = Command::new(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Self { child, to, from, next: 1, line: String::new(), answer: vec![0; 4096] })
    }

    /// One request, one answer.
    fn round_trip(&mut self) -> io::Result<()> {
        use std::fmt::Write as _;
        self.line.clear();
        let id = self.next;
        let _ = writeln!(
            self.line,
            r#"{{"jsonrpc":"2.0","id":{id},"method":"echo","params":{{"text":"{PAYLOAD}"}}}}"#
        );
        self.next += 1;
        self.to.write_all(self.line.as_bytes())?;
        let mut held = 0;
        loop {
            let n = self.from.read(&mut self.answer[held..])?;
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            held += n;
            if self.answer[held - 1] == b'\n' {
                return Ok(());
            }
        }
    }

    fn finish(mut self) -> io::Result<()> {
        drop(self.to);
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
    }
}

/// The median time of a round trip, in nanoseconds.
fn p50(program: &str, calls: usize) -> io::Result<u64> {
    let mut server = Server::start(program)?;
    for _ in 0..WARM_UP {
        server.round_trip()?;
    }
    let mut times = Vec::with_capacity(calls);
    for _ in 0..calls {
        let began = Instant::now();
        server.round_trip()?;
        times.push(began.elapsed().as_nanos() as u64);
    }
    server.finish()?;
    Ok(median(&mut times))
}

fn median(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

fn main() -> io::Result<()> {
    // Children inherit it: driver and server share the core, and a round trip is two switches.
    let mut one = CpuSet::new();
    one.set(0);
    sched_setaffinity(None, &one)?;

    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.as_slice() {
        [pour, count, pause, program] if pour == "pour" => {
            let mut server = Server::start(program)?;
            let pause = Duration::from_micros(pause.parse().map_err(io::Error::other)?);
            for _ in 0..count.parse().map_err(io::Error::other)? {
                server.round_trip()?;
                if !pause.is_zero() {
                    std::thread::sleep(pause);
                }
            }
            server.finish()
        }
        [rounds, calls, programs @ ..] if !programs.is_empty() => {
            let rounds: usize = rounds.parse().map_err(io::Error::other)?;
            let calls = calls.parse().map_err(io::Error::other)?;
            compare(rounds, calls, programs)
        }
        _ => Err(io::Error::other(
            "usage: bench ROUNDS CALLS name=program … | pour COUNT PAUSE program",
        )),
    }
}

fn compare(rounds: usize, calls: usize, programs: &[String]) -> io::Result<()> {
    let programs: Vec<(&str, &str)> =
        programs.iter().map(|arg| arg.split_once('=').unwrap_or((arg, arg))).collect();
    let mut results = vec![Vec::new(); programs.len()];
    for round in 0..rounds {
        // Rotated, so that none always follows the same one.
        for n in 0..programs.len() {
            let n = (n + round) % programs.len();
            results[n].push(p50(programs[n].1, calls)?);
        }
    }
    println!("{:<24} {:>9} {:>8}", "server", "p50 us", "x floor");
    for (n, (name, _)) in programs.iter().enumerate() {
        // The ratio is taken within each round, then the median of those.
        let mut ratios: Vec<u64> =
            results[n].iter().zip(&results[0]).map(|(own, floor)| own * 1000 / floor).collect();
        let ratio = median(&mut ratios) as f64 / 1e3;
        let time = median(&mut results[n].clone()) as f64 / 1e3;
        println!("{name:<24} {time:>9.2} {ratio:>8.2}");
    }
    Ok(())
}
