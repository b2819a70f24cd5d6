//! Real processes on real descriptors: this test binary, run again in a role.
//!
//! The harness greets on stdout before a role begins, so a role first writes [`MARK`]; what comes
//! after it is the wire.

mod kinds;
mod roles;
mod signals;
mod stderr;
mod wire;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};

use super::tail::{MARK, PATIENCE, Tail, feed, in_time};

const ROLE: &str = "TAUT_STDIO_TEST_ROLE";

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
