//! A stderr that nobody reads, and handlers that block: the wire goes on, and the end of input ends the
//! process. Issue 19, A1, with real processes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use taut::{NoArgs, Server};

const ROLE: &str = "TAUT_UNREAD_TEST_ROLE";
const MARK: &str = "--- the wire ---";

/// Far above what anything here needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many bytes of log lines may wait.
const LOG_QUEUE: usize = 1 << 20;

const DRAIN: Duration = Duration::from_secs(1);

/// Not a test: what the other process runs.
#[test]
#[allow(clippy::print_stdout, clippy::print_stderr, reason = "it is what the tools are for")]
fn role() {
    if std::env::var(ROLE).is_err() {
        return;
    }
    println!("\n{MARK}");
    let server = Server::builder("unread", "1")
        .drain(DRAIN)
        .tool(("print", "Print."), async |_: NoArgs, _| {
            println!("{}", "to stdout, which is stderr here ".repeat(20));
            eprintln!("{}", "to stderr ".repeat(20));
            "printed"
        })
        .tool(("panic", "Panic."), async |_: NoArgs, _| -> String {
            panic!("{}", "on purpose ".repeat(20))
        })
        .logging()
        .log_queue(LOG_QUEUE)
        .tool(("log", "Log 200 MiB in one go."), async |_: NoArgs, call: taut::Call| {
            (0..200 << 10).for_each(|_| call.log(taut::Level::Error, "x".repeat(1 << 10)));
            "logged"
        })
        .tool(("block", "Block the thread for ever."), async |_: NoArgs, _| -> String {
            loop {
                std::thread::park();
            }
        });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(server.build().unwrap().serve_stdio()).unwrap();
    std::process::exit(0);
}

/// A server whose answers are read by a thread, so that every wait has an end.
struct Served {
    child: Child,
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(stderr: Stdio) -> Served {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "unread::role", "--nocapture", "--test-threads=1"])
        .env(ROLE, "unread")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(stderr)
        .spawn()
        .unwrap();
    let lines = lines_of(child.stdout.take().unwrap());
    let input = child.stdin.take();
    let served = Served { child, input, lines };
    while served.line() != MARK {}
    served
}

fn lines_of(stdout: ChildStdout) -> mpsc::Receiver<String> {
    let (send, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            if line.is_err() || send.send(line.unwrap_or_default()).is_err() {
                return;
            }
        }
    });
    lines
}

impl Served {
    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("an answer")
    }

    fn call(&mut self, id: usize, tool: &str) {
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
        );
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Closes the input, and says how the process ended and after how long.
    fn end(&mut self) -> (Option<i32>, Duration) {
        self.input = None;
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status.code(), began.elapsed());
            }
            assert!(began.elapsed() < PATIENCE, "it outlives the end of its input");
            std::thread::yield_now();
        }
    }
}

/// One after the other, as a host that waits for each answer would.
fn answers_all(served: &mut Served) {
    for (tool, words) in [("print", "printed"), ("panic", "panicked")] {
        for id in 0..500 {
            served.call(id, tool);
            let answer = served.line();
            assert!(
                answer.contains(words) && answer.contains(&format!("\"id\":{id},")),
                "{answer}"
            );
        }
    }
    assert_eq!(served.end().0, Some(0));
}

#[test]
fn e9_prints_and_panics_do_not_stop_the_wire_while_nobody_reads_a_pipe() {
    // Held, and never read.
    let (unread, stderr) = std::io::pipe().unwrap();
    answers_all(&mut start(stderr.into()));
    drop(unread);
}

/// Hosts in JavaScript give their servers sockets.
#[test]
fn e9_prints_and_panics_do_not_stop_the_wire_while_nobody_reads_a_socket() {
    let (unread, stderr) = UnixStream::pair().unwrap();
    answers_all(&mut start(OwnedFd::from(stderr).into()));
    drop(unread);
}

/// What is printed after somebody reads again arrives, and that something is lost is told.
#[test]
fn e9_stderr_comes_back_when_it_is_read_again() {
    let (mut reader, stderr) = std::io::pipe().unwrap();
    let mut served = start(stderr.into());
    for id in 0..500 {
        served.call(id, "print");
        served.line();
    }
    let (send, read) = mpsc::channel();
    std::thread::spawn(move || {
        let mut said = String::new();
        let mut part = [0; 4096];
        while let Ok(bytes @ 1..) = reader.read(&mut part) {
            said.push_str(&String::from_utf8_lossy(&part[..bytes]));
            if said.contains("nobody read stderr; what was printed there in the last ") {
                let _ = send.send(());
                return;
            }
        }
    });
    read.recv_timeout(PATIENCE).expect("it says that something is lost");
    assert_eq!(served.end().0, Some(0));
}

/// S5, S9: a loop that is blocked does not see the end of its input.
#[test]
fn s9_a_handler_that_blocks_the_loop_does_not_outlive_the_end_of_input_by_more_than_the_drain_limit()
 {
    let (mut reader, stderr) = std::io::pipe().unwrap();
    let mut served = start(stderr.into());
    served.call(1, "print");
    served.line();
    served.call(2, "block");
    let (code, took) = served.end();
    assert_eq!(code, Some(1));
    assert!(took >= DRAIN && took < DRAIN * 10, "{took:?}");
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    assert!(said.contains("stdin ended more than 1s ago (the drain limit)"), "{said}");
}

/// C18, issue 19, A2: a handler that logs in a loop does not let the loop write. Its lines are bounded in bytes, and the call
/// is answered.
#[test]
fn c18_a_handler_that_logs_in_a_loop_costs_bounded_memory() {
    let mut served = start(Stdio::null());
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"log","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"debug"}}}"#;
    writeln!(served.input.as_mut().unwrap(), "{line}").unwrap();
    let mut lines = 0;
    while !served.line().contains("logged") {
        lines += 1;
    }
    assert!(lines > 100, "some were sent: {lines}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", served.child.id())).unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let most: usize = most.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(most < 60 << 10, "{most} KiB");
    assert_eq!(served.end().0, Some(0));
}
