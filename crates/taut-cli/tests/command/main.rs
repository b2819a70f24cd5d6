//! The command as people use it: the real binary, in a pipe, with `--json`, on a terminal.
//!
//! The rude servers are this binary again, as in the client's tests: `role` plays what `TAUT_ROLE` says.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that goes wrong should say so, and so should a role"
)]

mod ahead;
mod all;
mod answers;
mod asker;
#[cfg(feature = "login")]
mod authority;
mod bench;
mod besides;
mod bridge;
mod check;
mod crowd;
mod debug;
mod doctor;
mod exits;
#[cfg(not(feature = "fleet"))]
mod fleet;
mod forms;
mod gate;
mod help;
mod hostile;
mod hosts;
#[cfg(feature = "http")]
mod http;
mod lint;
#[cfg(feature = "login")]
mod login;
#[cfg(feature = "login")]
mod login_secrets;
mod memory;
mod newcomer;
mod pages;
#[path = "../../../taut/tests/rude/mod.rs"]
mod rude;
mod secrets;
mod shell;
mod shown;
mod sockets;
mod stuck;
mod terminal;
mod usage;
mod watch;

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Everything is waited for, but never for longer than this.
const DEADLINE: Duration = Duration::from_secs(60);

/// What the other processes do.
#[test]
#[ignore = "run by the other tests, as the server"]
fn role() {
    let role = rude::role();
    match role.strip_prefix("bench ") {
        Some(habit) => bench::play(habit),
        None if role.starts_with("asker") => asker::serve(&role),
        None if role.starts_with("crowd ") => crowd::serve(&role),
        None if ["hostile ", "properties ", "pages "].iter().any(|kind| role.starts_with(kind)) => {
            hostile::serve(&role);
        }
        None => rude::serve(&role),
    }
    std::process::exit(0);
}

/// The command line of a server that plays a role, for after `--`.
fn server(role: &str) -> Vec<String> {
    let (program, args) = rude::player(role);
    let env = ["env".to_owned(), format!("TAUT_ROLE={role}"), program];
    env.into_iter().chain(args).collect()
}

/// What `taut` sees of the machine: a home of its own, and a project with a file of servers. No test
/// reads the files of whoever runs it.
fn isolate(command: &mut Command) -> &mut Command {
    let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("home");
    std::fs::create_dir_all(&home).unwrap();
    for name in ["XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "NOTES_KEY", "TAUT_DEBUG"] {
        command.env_remove(name);
    }
    command.env("HOME", home).current_dir(project())
}

/// A project's folder, for what is shown in the help and on the pages.
fn project() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/command/project")
}

/// `taut` with these arguments; `taut serve` is found on the PATH, as after an installation.
fn taut<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Command {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_taut"));
    let mut path = vec![binary.parent().unwrap().to_owned()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let mut command = Command::new(binary);
    command.args(args).env("PATH", std::env::join_paths(path).unwrap());
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    isolate(&mut command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What a run of the command came to.
struct Run {
    code: i32,
    out: String,
    err: String,
}

impl Run {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {:?}", self.out))
    }

    /// The same, if it ended with this code.
    #[track_caller]
    fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("an exit code, not a signal"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Runs `taut` to its end. Words are split at blanks; what follows `--` comes from `server`.
fn run(line: &str, server: &[String]) -> Run {
    run_with(line, server, "")
}

fn run_with(line: &str, server: &[String], stdin: &str) -> Run {
    let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    if !server.is_empty() {
        words.push("--".to_owned());
        words.extend(server.iter().cloned());
    }
    let mut child = taut(words).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

/// Runs `taut` against the demo.
fn demo(line: &str) -> Run {
    run(line, &["taut".to_owned(), "serve".to_owned()])
}

/// Waits until something is true.
fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_true() {
        assert!(began.elapsed() < DEADLINE, "never came true: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Processes that carry this word in their command line or role; after `^`, those that begin with it.
fn processes_with(word: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let of = |file| std::fs::read(entry.path().join(file)).unwrap_or_default();
        let line = [b"^".as_slice(), &of("cmdline"), &of("environ")].concat();
        let line = String::from_utf8_lossy(&line);
        if line.contains(word) {
            found.push(pid);
        }
    }
    found
}
