//! The command as people use it: the real binary, in a pipe, with `--json`, on a terminal.
//!
//! The rude servers are this binary again, as in the client's tests: `role` plays what `TAUT_ROLE` says.
//! What is about Unix itself, a module or a test, says so and is left out on Windows.

#![cfg(any(target_os = "linux", windows))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that goes wrong should say so, and so should a role"
)]

mod again;
// About Unix itself: terminals.
#[cfg(unix)]
mod ahead;
mod all;
mod answers;
mod asker;
#[cfg(feature = "login")]
mod authority;
// About Linux itself: only there is `taut bench`.
#[cfg(all(target_os = "linux", not(taut_portable)))]
mod bench;
mod besides;
// About Unix itself: signals, and `/proc` tells what is left. `tests/windows.rs` has a bridge on Windows.
#[cfg(unix)]
mod bridge;
mod check;
// About Unix itself: its sockets and limits.
#[cfg(unix)]
mod crowd;
mod debug;
mod doctor;
mod documents;
// About Unix itself: a shell plays the server.
#[cfg(unix)]
mod environment;
mod exits;
#[cfg(not(feature = "fleet"))]
mod fleet;
// About Unix itself: terminals.
#[cfg(unix)]
mod forms;
// About Unix itself: terminals.
#[cfg(unix)]
mod gate;
// About Unix itself: a shell plays the server.
#[cfg(unix)]
mod hanging;
mod help;
mod hints;
mod hostile;
mod hosts;
#[cfg(feature = "http")]
mod http;
// About Linux itself: children are adopted there.
#[cfg(all(target_os = "linux", not(taut_portable)))]
mod leftovers;
mod lint;
mod literal;
#[cfg(feature = "login")]
mod login;
#[cfg(feature = "login")]
mod login_running;
mod login_secrets;
// About Unix itself: `/proc` tells how much a process takes.
#[cfg(unix)]
mod memory;
mod newcomer;
// About Unix itself: a shell runs the lines of the pages.
#[cfg(unix)]
mod pages;
#[path = "../../../taut/tests/rude/mod.rs"]
mod rude;
// About Unix itself: a shell script leaks, and files have modes.
#[cfg(unix)]
mod secrets;
// About Unix itself: terminals.
#[cfg(unix)]
mod shell;
mod shown;
// About Unix itself: its sockets.
#[cfg(unix)]
mod sockets;
// About Unix itself: signals, and `/proc` tells who waits.
#[cfg(unix)]
mod stuck;
// About Unix itself: files have modes.
#[cfg(all(unix, feature = "http"))]
mod team;
// About Unix itself: terminals.
#[cfg(unix)]
mod terminal;
#[cfg(feature = "http")]
mod times;
mod usage;
mod verdicts;
mod watch;
mod words;

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
    match role.split_once(' ').unwrap_or((&role, "")) {
        ("answers", results) => answers_with(results),
        ("asker", _) => asker::serve(&role),
        #[cfg(all(target_os = "linux", not(taut_portable)))]
        ("bench", habit) => bench::play(habit),
        #[cfg(unix)]
        ("crowd", _) => crowd::serve(&role),
        ("ends", code) => std::process::exit(code.parse().unwrap()),
        ("hostile" | "properties" | "pages" | "cursors", _) => hostile::serve(&role),
        _ => rude::serve(&role),
    }
    std::process::exit(0);
}

/// The command line of a server that plays a role, for after `--`.
fn server(role: &str) -> Vec<String> {
    rude::system::command_line(role, rude::player(role))
}

/// A server of 2025-11-25 that answers each method with a fixed result, or with `{"error": …}`: one for each, and `*`
/// for all others, without which they are refused. Before it answers a call it sends `ask`, if there is one, and
/// reads a line.
fn answering(results: &Value) -> Vec<String> {
    server(&format!("answers {results}"))
}

fn answers_with(results: &str) {
    let results: Value = serde_json::from_str(results).unwrap();
    let mut lines = std::io::stdin().lines().map_while(Result::ok);
    while let Some(line) = lines.next() {
        let message: Value = serde_json::from_str(&line).unwrap();
        let Some(id) = message.get("id") else { continue };
        let method = message["method"].as_str().unwrap_or_default();
        if let (true, Some(ask)) = (method == "tools/call", results.get("ask")) {
            println!("{ask}");
            lines.next();
        }
        let opened = serde_json::json!({ "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {} }, "serverInfo": { "name": "fixed", "version": "1" } });
        let opened = (method == "initialize").then_some(&opened);
        match results.get(method).or(opened).or_else(|| results.get("*")) {
            Some(result) if result.get("error").is_some() => {
                println!(r#"{{"jsonrpc":"2.0","id":{id},"error":{}}}"#, result["error"]);
            }
            Some(result) => println!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
            None => {
                println!(
                    r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no"}}}}"#
                );
            }
        }
    }
}

/// What `taut` sees of the machine: a home of its own, and a project with a file of servers. No test
/// reads the files of whoever runs it.
fn isolate(command: &mut Command) -> &mut Command {
    let home = temporary().join("home");
    std::fs::create_dir_all(&home).unwrap();
    for name in ["XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "NOTES_KEY", "TAUT_DEBUG"] {
        command.env_remove(name);
    }
    at_home(command, &home).current_dir(project())
}

/// Gives a command this home.
fn at_home<'a>(command: &'a mut Command, home: &std::path::Path) -> &'a mut Command {
    if cfg!(windows) {
        command.env("USERPROFILE", home).env_remove("HOME");
        command.env("APPDATA", home.join("AppData/Roaming"));
        command.env("LOCALAPPDATA", home.join("AppData/Local"))
    } else {
        command.env("HOME", home)
    }
}

/// The variable that names the folder of everybody's settings.
const SETTINGS: &str = if cfg!(windows) { "APPDATA" } else { "XDG_CONFIG_HOME" };

/// Where tests put their files. Under Wine cargo's path has no drive; it counts from the one that the
/// tests are started on.
fn temporary() -> PathBuf {
    std::path::absolute(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A project's folder, for what is shown in the help and on the pages.
fn project() -> PathBuf {
    std::path::absolute(env!("CARGO_MANIFEST_DIR")).unwrap().join("tests/command/project")
}

/// `taut` with these arguments; `taut serve` is found on the PATH, as after an installation.
fn taut<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Command {
    let binary = std::path::absolute(env!("CARGO_BIN_EXE_taut")).unwrap();
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
#[derive(Debug)]
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
#[cfg(unix)]
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
