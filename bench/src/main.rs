//! A driver that asks one server the same thing again and again, on one core with it.
//!
//! `bench compare WORKLOAD ROUNDS CALLS name=program …` interleaves the servers round by round, so
//! that what else the machine does falls on all of them, and prints the median p50 of each and its
//! ratio to the first.
//! `bench pour WORKLOAD COUNT PAUSE program` sends so many requests and prints nothing: what a
//! profiler is to count. After each answer it pauses for so many microseconds.

mod workload;

use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

use workload::Workload;

/// Answers that are not counted: page faults, branch predictors, the governor.
const WARM_UP: usize = 2_000;

struct Server {
    child: Child,
    to: ChildStdin,
    from: ChildStdout,
    window: usize,
    /// A request before and after its id.
    request: (String, String),
    next: u64,
    lines: Vec<u8>,
    answers: Vec<u8>,
}

impl Server {
    fn start(workload: &Workload, command: &str) -> io::Result<Self> {
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
        let mut server = Self {
            child,
            to,
            from,
            window: workload.window,
            request: workload.request(),
            next: 1,
            lines: Vec::new(),
            answers: vec![0; 1 << 20],
        };
        if let Some((handshake, ready)) = workload.opening() {
            writeln!(server.to, "{handshake}")?;
            server.take_answers(1)?;
            writeln!(server.to, "{ready}")?;
        }
        Ok(server)
    }

    /// As many requests as are to be under way, and their answers.
    fn round_trip(&mut self) -> io::Result<()> {
        self.lines.clear();
        for _ in 0..self.window {
            let (before, after) = &self.request;
            write!(self.lines, "{before}{}{after}", self.next)?;
            self.next += 1;
        }
        self.to.write_all(&self.lines)?;
        self.take_answers(self.window)
    }

    fn take_answers(&mut self, mut missing: usize) -> io::Result<()> {
        while missing > 0 {
            let n = self.from.read(&mut self.answers)?;
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            missing -= self.answers[..n].iter().filter(|byte| **byte == b'\n').count();
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        drop(self.to);
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
    }
}

/// The median time of a round trip, in nanoseconds.
fn p50(workload: &Workload, program: &str, calls: usize) -> io::Result<u64> {
    if workload.starts() {
        return start(workload, program, calls);
    }
    let mut server = Server::start(workload, program)?;
    for _ in 0..WARM_UP.min(calls) {
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

/// The median time from starting a process to its first answer, in nanoseconds.
fn start(workload: &Workload, program: &str, times: usize) -> io::Result<u64> {
    let one = |_| {
        let began = Instant::now();
        let server = Server::start(workload, program)?;
        let took = began.elapsed().as_nanos() as u64;
        server.finish().map(|()| took)
    };
    (0..times).map(one).collect::<io::Result<Vec<_>>>().map(|mut times| median(&mut times))
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
        [pour, workload, count, pause, program] if pour == "pour" => {
            let mut server = Server::start(&workload.parse()?, program)?;
            let pause = Duration::from_micros(pause.parse().map_err(io::Error::other)?);
            for _ in 0..count.parse::<usize>().map_err(io::Error::other)? / server.window {
                server.round_trip()?;
                if !pause.is_zero() {
                    std::thread::sleep(pause);
                }
            }
            server.finish()
        }
        [compared, workload, rounds, calls, programs @ ..]
            if compared == "compare" && !programs.is_empty() =>
        {
            let rounds: usize = rounds.parse().map_err(io::Error::other)?;
            let calls = calls.parse().map_err(io::Error::other)?;
            compare(&workload.parse()?, rounds, calls, programs)
        }
        _ => Err(io::Error::other(
            "usage: bench compare WORKLOAD ROUNDS CALLS name=program … | \
             pour WORKLOAD COUNT PAUSE program",
        )),
    }
}

fn compare(
    workload: &Workload,
    rounds: usize,
    calls: usize,
    programs: &[String],
) -> io::Result<()> {
    let programs: Vec<(&str, &str)> =
        programs.iter().map(|arg| arg.split_once('=').unwrap_or((arg, arg))).collect();
    let mut results = vec![Vec::new(); programs.len()];
    for round in 0..rounds {
        // Rotated, so that none always follows the same one.
        for n in 0..programs.len() {
            let n = (n + round) % programs.len();
            results[n].push(p50(workload, programs[n].1, calls)?);
        }
    }
    println!("{:<24} {:>9} {:>8}", "server", "p50 us", "x first");
    for (n, (name, _)) in programs.iter().enumerate() {
        // The ratio is taken within each round, then the median of those.
        let mut ratios: Vec<u64> =
            results[n].iter().zip(&results[0]).map(|(own, first)| own * 1000 / first).collect();
        let ratio = median(&mut ratios) as f64 / 1e3;
        let time = median(&mut results[n].clone()) as f64 / 1e3;
        println!("{name:<24} {time:>9.2} {ratio:>8.2}");
    }
    Ok(())
}
