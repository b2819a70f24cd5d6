//! SIGTERM ends it in under a second, whatever it is doing.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::PATIENCE;
use crate::memory::request;
use crate::process::{Scratch, Server, example, role};

/// The contract is a second. On a machine that does other things, a server that kept it needs a
/// little longer to be seen to have kept it; one that waits for its handler needs an hour.
const A_SECOND: Duration = Duration::from_millis(1_500);

#[test]
fn s9_sigterm_ends_an_idle_server() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = Server::start(example());
        server.ask(&request(1, "echo", &json!([])));
        server.signal(signal);
        let status = server.ends_within(A_SECOND).expect("it lives on");
        assert!(status.success(), "{status}");
    }
}

#[test]
fn s9_sigterm_ends_a_server_whose_read_blocks_a_thread() {
    let scratch = Scratch::new();
    let ((stdin, to), (from, stdout)) = (scratch.fifo("in"), scratch.fifo("out"));
    let mut server = Server::over(example(), stdin.into(), stdout.into(), to, from);
    server.ask(&request(1, "echo", &json!([])));
    server.signal(Signal::TERM);
    server.ends_within(A_SECOND).expect("it lives on");
}

/// Nobody reads what it writes, on a pipe and on a named FIFO.
#[test]
fn s11_sigterm_ends_a_server_whose_write_is_stuck() {
    let scratch = Scratch::new();
    for kind in ["pipe", "fifo"] {
        let (stdin, mut to) = std::io::pipe().unwrap();
        let (from, stdout): (std::os::fd::OwnedFd, std::os::fd::OwnedFd) = match kind {
            "pipe" => std::io::pipe().map(|(r, w)| (r.into(), w.into())).unwrap(),
            _ => {
                let (r, w) = scratch.fifo("out");
                (r.into(), w.into())
            }
        };
        let mut command = example();
        let child = command.stdin(stdin).stdout(stdout.try_clone().unwrap()).spawn().unwrap();
        drop((command, stdout));
        let mut child = KillOnDrop(child);
        let line = request(1, "echo", &json!(["x".repeat(1 << 20)])) + "\n";
        std::io::Write::write_all(&mut to, line.as_bytes()).unwrap();
        // The pipe is full once it holds what pipes hold.
        let deadline = std::time::Instant::now() + PATIENCE;
        while rustix::io::ioctl_fionread(&from).unwrap() < 60_000 {
            assert!(std::time::Instant::now() < deadline, "the answer never came");
            std::thread::sleep(Duration::from_millis(2));
        }
        rustix::process::kill_process(rustix::process::Pid::from_child(&child.0), Signal::TERM)
            .unwrap();
        assert!(child.ends_within(A_SECOND), "{kind}: it lives on");
    }
}

struct KillOnDrop(std::process::Child);

impl KillOnDrop {
    fn ends_within(&mut self, limit: Duration) -> bool {
        let deadline = std::time::Instant::now() + limit;
        while std::time::Instant::now() < deadline {
            if self.0.try_wait().unwrap().is_some() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        false
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn sigterm_ends_a_server_whose_handler_blocks_the_thread() {
    let mut server = Server::start(role("server"));
    server.ask(&request(1, "echo", &json!([])));
    server.send(request(2, "block", &json!([3_600_000])) + "\n");
    // It is in the handler once it no longer answers.
    server.send(request(3, "echo", &json!([])) + "\n");
    assert_eq!(server.line_within(Duration::from_millis(200)), None);
    server.signal(Signal::TERM);
    let status = server.ends_within(A_SECOND).expect("it lives on");
    assert_eq!(status.code(), Some(143));
}

#[test]
fn s5_sigterm_ends_a_server_whose_handler_never_returns() {
    for kind in ["server", "threads"] {
        let mut server = Server::start(role(kind));
        server.send(request(1, "never", &json!([])) + "\n");
        server.ask(&request(2, "echo", &json!([])));
        server.signal(Signal::TERM);
        let status = server.ends_within(A_SECOND).expect("it lives on");
        assert_eq!(status.code(), Some(10), "{kind}: told by the loop, not by the guard");
    }
}

/// The loop ends, but the runtime would wait for its pool.
#[test]
fn s9_sigterm_ends_a_server_whose_handler_blocks_in_the_pool() {
    let mut server = Server::start(role("server"));
    server.send(request(1, "block a thread of the pool", &json!([])) + "\n");
    server.ask(&request(2, "echo", &json!([])));
    server.signal(Signal::TERM);
    let status = server.ends_within(A_SECOND).expect("it lives on");
    assert_eq!(status.code(), Some(143));
}

/// S5 at the end of input: the drain limit, then out, with a word on stderr.
#[test]
fn s1_s5_the_end_of_input_ends_it_at_the_drain_limit_although_a_handler_never_returns() {
    let mut server = Server::start(role("short drain"));
    server.send(request(1, "never", &json!([])) + "\n");
    server.ask(&request(2, "echo", &json!([])));
    server.to = None;
    let status = server.ends_within(PATIENCE).expect("it lives on");
    assert_eq!(status.code(), Some(11));
    assert!(server.stderr().contains("1 requests were still unanswered"));
}
