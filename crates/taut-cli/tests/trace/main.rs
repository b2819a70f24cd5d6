//! `taut trace` as hosts and people use it: the real binary between a client and a server.
//!
//! About Linux itself: signals on both sides, `/proc`, scripts, and descriptors of the test that are pipes or sockets.
//! `tests/windows.rs` has a capture, a server in a `.cmd` file, and a trace that is killed.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that goes wrong should say so"
)]

mod bridge;
mod captures;
mod edits;
mod secrets;
mod transparent;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use taut_trace::Capture;

/// Everything is waited for, but never for longer than this.
const DEADLINE: Duration = Duration::from_secs(60);

/// A folder for one test, with a home of its own in it.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("trace-{}-{count}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("home")).unwrap();
        std::fs::create_dir_all(path.join("project")).unwrap();
        Self(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// `taut` in the project, with an environment of its own.
    fn taut(&self) -> Command {
        let binary = Path::new(env!("CARGO_BIN_EXE_taut"));
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", binary.parent().unwrap().display());
        let mut command = Command::new(binary);
        command.env_clear().env("PATH", path).env("HOME", self.at("home"));
        command.current_dir(self.at("project"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.taut().args(words).stdin(Stdio::null()).output().unwrap()
    }

    /// The same, if it ended with this code: stdout and stderr.
    #[track_caller]
    fn exits(&self, code: i32, words: &[&str]) -> (String, String) {
        let output = self.run(words);
        let [out, err] = [output.stdout, output.stderr].map(|b| String::from_utf8(b).unwrap());
        assert_eq!(output.status.code(), Some(code), "{words:?}\n{out}\n{err}");
        (out, err)
    }

    fn capture(&self, name: &str) -> Capture {
        let file = std::fs::File::open(self.at(name)).unwrap();
        Capture::read(BufReader::new(file)).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Waits until something is true.
#[track_caller]
fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_true() {
        assert!(began.elapsed() < DEADLINE, "never came true: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits for a process to end.
#[track_caller]
fn ended(child: &mut Child) -> std::process::ExitStatus {
    let mut status = None;
    eventually("the process ends", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap()
}
