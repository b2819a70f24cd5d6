//! Real processes on real descriptors: this test binary, run again in a role.
//!
//! The harness greets on stdout before a role begins, so a role first writes [`MARK`]; what comes
//! after it is the wire.

mod kinds;
mod roles;
mod signals;
mod stderr;
mod wire;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};

const ROLE: &str = "TAUT_STDIO_TEST_ROLE";
const MARK: &[u8] = b"\n--- the wire ---\n";

/// Far above what anything here needs, far below what a person would wait for.
const PATIENCE: Duration = Duration::from_secs(20);

/// Not a test: what the other process runs.
#[test]
fn role() {
    if let Ok(role) = std::env::var(ROLE) {
        rustix::io::write(rustix::stdio::stdout(), MARK).unwrap();
        roles::play(&role);
        // Without the harness's last words.
        std::process::exit(0);
    }
}

/// A process in a role; killed when dropped.
struct Actor(Child);

fn start(role: &str, input: impl Into<Stdio>, output: impl Into<Stdio>) -> Actor {
    start_with(role, input, output, Stdio::inherit())
}

fn start_with(
    role: &str,
    input: impl Into<Stdio>,
    output: impl Into<Stdio>,
    error: impl Into<Stdio>,
) -> Actor {
    let child = command(role).stdin(input).stdout(output).stderr(error).spawn().unwrap();
    Actor(child)
}

const ARGS: [&str; 4] = ["--exact", "stdio::tests::role", "--nocapture", "--test-threads=1"];

fn command(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(ARGS).env(ROLE, role);
    command
}

/// The role behind a shell that sets something up first: `setup; exec role redirections`.
fn behind_shell(role: &str, setup: &str, redirections: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{setup} exec \"$0\" \"$@\" {redirections}"));
    command.arg(std::env::current_exe().unwrap()).args(ARGS).env(ROLE, role);
    command
}

impl Actor {
    fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    fn exit(&mut self) -> ExitStatus {
        let pidfd = pidfd_open(self.pid(), PidfdFlags::empty()).unwrap();
        let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
        let timeout = Timespec::try_from(PATIENCE).unwrap();
        assert_eq!(poll(&mut fds, Some(&timeout)), Ok(1), "the process did not end");
        self.0.wait().unwrap()
    }

    fn ends_well(mut self) {
        let status = self.exit();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Does something that might hang, and fails if it does.
fn in_time<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = mpsc::channel();
    std::thread::spawn(move || done.send(what()));
    result.recv_timeout(PATIENCE).expect("it hangs")
}

/// Reads a wire in a thread, so that a silent one fails the test instead of stopping it.
struct Tail {
    reads: mpsc::Receiver<Vec<u8>>,
    /// Read and not yet asked for.
    kept: VecDeque<u8>,
}

impl Tail {
    fn of(mut from: impl Read + Send + 'static) -> Self {
        let (sender, reads) = mpsc::channel();
        std::thread::spawn(move || {
            let mut room = [0; 65536];
            while let Ok(n @ 1..) = from.read(&mut room) {
                if sender.send(room[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { reads, kept: VecDeque::new() }
    }

    /// A wire whose role has begun.
    fn begun(from: impl Read + Send + 'static) -> Self {
        let mut tail = Self::of(from);
        tail.until(MARK);
        tail
    }

    /// The next byte; `None` at the end.
    fn byte(&mut self) -> Option<u8> {
        while self.kept.is_empty() {
            match self.reads.recv_timeout(PATIENCE) {
                Ok(read) => self.kept.extend(read),
                Err(mpsc::RecvTimeoutError::Disconnected) => return None,
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("neither a byte nor the end"),
            }
        }
        self.kept.pop_front()
    }

    /// All up to and with `end`.
    fn until(&mut self, end: &[u8]) -> Vec<u8> {
        let mut seen = Vec::new();
        while !seen.ends_with(end) {
            match self.byte() {
                Some(byte) => seen.push(byte),
                None => panic!("the end after {:?}", String::from_utf8_lossy(&seen)),
            }
        }
        seen
    }

    /// The next `n` bytes.
    fn exactly(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.byte().expect("more bytes")).collect()
    }

    fn line(&mut self) -> String {
        String::from_utf8(self.until(b"\n")).unwrap()
    }

    /// What has come so far.
    fn so_far(&mut self) -> Vec<u8> {
        self.kept.extend(self.reads.try_iter().flatten());
        self.kept.drain(..).collect()
    }

    /// All that is left up to the end.
    fn rest(mut self) -> String {
        let bytes = std::iter::from_fn(|| self.byte()).collect();
        String::from_utf8(bytes).unwrap()
    }
}

/// Writes in a thread, so that a peer that does not read fails the test instead of stopping it.
fn feed(mut to: impl Write + Send + 'static, bytes: Vec<u8>) {
    std::thread::spawn(move || to.write_all(&bytes));
}

/// A terminal to give away, and who sits at it.
fn terminal() -> (OwnedFd, File) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let host = openpt(flags).unwrap();
    grantpt(&host).unwrap();
    unlockpt(&host).unwrap();
    (ioctl_tiocgptpeer(&host, flags).unwrap(), host.into())
}

/// Two joined sockets: ours and the one to give away.
fn socket_pair() -> (UnixStream, OwnedFd) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (ours, theirs.into())
}
