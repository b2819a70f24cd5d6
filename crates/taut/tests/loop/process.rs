//! Starting a server as a process, over every kind of wire, and watching it from outside.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::PATIENCE;

/// What the harness of a test binary prints before the test, on what becomes the wire.
const HARNESS: &str = "\nrunning 1 test\n";

/// This binary again, in a role.
pub(crate) fn role(role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["processes::roles::play", "--exact", "--ignored", "--nocapture", "--quiet"])
        .env("TAUT_LOOP_ROLE", role);
    command
}

/// The `jsonrpc` example, which `cargo test` builds beside the tests.
pub(crate) fn example() -> Command {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().and_then(|deps| deps.parent()).unwrap().join("examples/jsonrpc");
    assert!(path.exists(), "{} is missing: run cargo build -p taut --examples", path.display());
    Command::new(path)
}

/// A command that speaks plain JSON-RPC is started, asked, and ends when the connection is closed.
#[tokio::test]
async fn a_command_is_started_and_asked_in_plain_json_rpc() {
    use taut::service::{RequestParams, ServiceRequest, serve};
    let words = serve(async |_: String, _: RequestParams, _: ServiceRequest| {
        Ok::<_, taut::service::Failed>("drow")
    });
    let remote = words.spawn(taut::Command::new(example().get_program())).await.unwrap();
    assert_eq!(remote.call::<f64>("add", [2.0, 3.0]).await.unwrap(), 5.0);
    // It asks us in the middle of the call.
    assert_eq!(remote.call::<String>("reverse", ()).await.unwrap(), "word");
    let refused = remote.call::<Value>("parse", ["x"]).await.unwrap_err();
    assert!(refused.to_string().contains("invalid digit"), "{refused}");
    remote.close();
    tokio::time::timeout(PATIENCE, remote.ended()).await.unwrap();
    assert!(words.spawn(taut::Command::new("/nowhere/at-all")).await.is_err());
}

/// A server that is killed when the test is over.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) to: Option<Box<dyn Write + Send>>,
    from: Receiver<String>,
    said: Receiver<String>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Hands on each line as it comes, on a thread, so that waiting for one can have a limit.
fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        let mut from = BufReader::new(from);
        loop {
            let mut line = Vec::new();
            match from.read_until(b'\n', &mut line) {
                Ok(n) if n > 0 => {}
                _ => return,
            }
            if sender.send(String::from_utf8(line).unwrap()).is_err() {
                return;
            }
        }
    });
    lines
}

impl Server {
    /// Over two anonymous pipes.
    pub(crate) fn start(command: Command) -> Self {
        let (stdin, to) = std::io::pipe().unwrap();
        let (from, stdout) = std::io::pipe().unwrap();
        Self::over(command, stdin.into(), stdout.into(), to, from)
    }

    pub(crate) fn over(
        mut command: Command,
        stdin: OwnedFd,
        stdout: OwnedFd,
        to: impl Write + Send + 'static,
        from: impl Read + Send + 'static,
    ) -> Self {
        command.stdin(stdin).stdout(stdout).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = lines(child.stderr.take().unwrap());
        // The command holds our copies of the server's ends.
        drop(command);
        Self { child, to: Some(Box::new(to)), from: lines(from), said }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let to = self.to.as_mut().unwrap();
        to.write_all(bytes.as_ref()).unwrap();
        to.flush().unwrap();
    }

    /// The next line of the wire, without what the harness said before it.
    pub(crate) fn line(&self) -> String {
        self.line_within(PATIENCE).expect("nothing came")
    }

    pub(crate) fn line_within(&self, limit: Duration) -> Option<String> {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.from.recv_timeout(left).ok()?;
            if !HARNESS.split_inclusive('\n').any(|part| part == line) {
                return Some(line);
            }
        }
    }

    pub(crate) fn value(&self) -> Value {
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    pub(crate) fn ask(&mut self, line: &str) -> Value {
        self.send(format!("{line}\n"));
        self.value()
    }

    /// Everything that still comes on the wire until it ends.
    pub(crate) fn rest(&self) -> String {
        let mut rest = String::new();
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.from.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if HARNESS.split_inclusive('\n').any(|part| part == line) => {}
                Ok(line) => rest.push_str(&line),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return rest,
                Err(timeout) => panic!("the wire never ended: {timeout}"),
            }
        }
    }

    /// Everything on stderr until it ends.
    pub(crate) fn stderr(&self) -> String {
        let mut all = String::new();
        while let Ok(line) = self.said.recv_timeout(PATIENCE) {
            all.push_str(&line);
        }
        all
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Waits for the end. `None`: it lives on.
    pub(crate) fn ends_within(&mut self, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(status);
            }
            if Instant::now() > deadline {
                return None;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits for the end and expects it to be a good one.
    pub(crate) fn ends_well(&mut self) {
        let status = self.ends_within(PATIENCE).expect("it lives on");
        assert!(status.success(), "{status}");
    }

    /// The most memory it ever had, in bytes.
    pub(crate) fn peak(&self) -> usize {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
    }

    /// The CPU time it has used.
    pub(crate) fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        // 100 a second on every Linux that there is.
        Duration::from_millis(ticks * 10)
    }
}

/// A directory that goes with the test.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("taut-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Both ends of a named FIFO.
    pub(crate) fn fifo(&self, name: &str) -> (File, File) {
        let path = self.path(name);
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        // Held open in both directions meanwhile, so that neither end waits for the other.
        let _both = File::options().read(true).write(true).open(&path).unwrap();
        let read = File::open(&path).unwrap();
        let write = File::options().write(true).open(&path).unwrap();
        (read, write)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A socket pair: the server's end and ours.
pub(crate) fn sockets() -> (OwnedFd, UnixStream) {
    let (theirs, ours) = UnixStream::pair().unwrap();
    (theirs.into(), ours)
}
