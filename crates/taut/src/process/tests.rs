//! Real processes, most of them rude. Linux only: `/proc` tells what is left of them.

use std::future::poll_fn;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::*;
use crate::stream::{Sink as _, Source as _};

mod endings;
mod hosts;
mod pipes;
mod refusals;
mod starting;
mod words;

/// A shell script that ignores both EOF and SIGTERM.
const STUBBORN: &str = "trap '' TERM; echo $$; while :; do sleep 0.05; done";

/// Everything is waited for, but never for longer than this.
const DEADLINE: Duration = Duration::from_secs(20);

fn sh(script: &str) -> Command {
    Command::new("sh").args(["-c", script])
}

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const fn grace(eof: u64, term: u64) -> GracePeriods {
    GracePeriods { after_eof: ms(eof), after_term: ms(term), after_kill: ms(10_000) }
}

async fn start(command: Command) -> (Child, ReadPipe, WritePipe) {
    Child::start(&command, ChildOptions::default()).await.unwrap()
}

/// Whether a process runs; a zombie does not.
fn alive(pid: u32) -> bool {
    state_of(pid).is_some_and(|state| state != 'Z' && state != 'X')
}

fn state_of(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

/// Waits until something is true.
fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_true() {
        assert!(start.elapsed() < DEADLINE, "never came true: {what}");
        std::thread::sleep(ms(2));
    }
}

/// The same, while the runtime goes on with its work.
async fn eventually_async(what: &str, mut is_true: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_true() {
        assert!(start.elapsed() < DEADLINE, "never came true: {what}");
        tokio::time::sleep(ms(2)).await;
    }
}

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.expect("in time")
}

/// The next `count` lines of stdout.
async fn lines(stdout: &mut ReadPipe, count: usize) -> Vec<String> {
    let mut seen = Vec::new();
    while seen.iter().filter(|byte| **byte == b'\n').count() < count {
        let read = in_time(poll_fn(|cx| stdout.poll_read(cx, &mut seen))).await.unwrap();
        assert!(read > 0, "stdout ended after {:?}", String::from_utf8_lossy(&seen));
    }
    String::from_utf8(seen).unwrap().lines().map(str::to_owned).collect()
}

async fn pids(stdout: &mut ReadPipe, count: usize) -> Vec<u32> {
    lines(stdout, count).await.iter().map(|line| line.parse().unwrap()).collect()
}

/// All of stdout.
async fn read_all(stdout: &mut ReadPipe) -> Vec<u8> {
    let mut seen = Vec::with_capacity(64 * 1024);
    while in_time(poll_fn(|cx| stdout.poll_read(cx, &mut seen))).await.unwrap() > 0 {}
    seen
}

async fn write_all(stdin: &mut WritePipe, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = in_time(poll_fn(|cx| stdin.poll_write(cx, bytes))).await?;
        bytes = &bytes[count..];
    }
    Ok(())
}

/// A directory that goes away with its owner.
struct Dir(std::path::PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("taut-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Another process writes it: a test that forks while this one writes would inherit the open file, and a file
    /// that somebody has open for writing cannot be started.
    fn file(&self, name: &str, content: &[u8], mode: u32) -> std::path::PathBuf {
        let path = self.0.join(name);
        let mut writer = std::process::Command::new("sh");
        writer.args(["-c", r#"cat > "$0" && chmod "$1" "$0""#]).arg(&path).arg(format!("{mode:o}"));
        let mut writer = writer.stdin(std::process::Stdio::piped()).spawn().unwrap();
        writer.stdin.take().unwrap().write_all(content).unwrap();
        assert!(writer.wait().unwrap().success());
        path
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A script that shows that it lives: it answers one file with another, and ends.
struct Survivor(Dir);

impl Survivor {
    fn new(name: &str) -> Self {
        Self(Dir::new(name))
    }

    fn script(&self) -> String {
        let dir = self.0.0.display();
        format!("while [ ! -e {dir}/ask ]; do sleep 0.02; done; : > {dir}/answer")
    }

    async fn answers(&self) {
        self.0.file("ask", b"", 0o644);
        eventually_async("the survivor answers", || self.0.0.join("answer").exists()).await;
    }
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}
