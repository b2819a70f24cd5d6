//! The client against real processes, most of them rude, and against streams in memory.
//!
//! The other process is this binary again: `role` plays what `TAUT_ROLE` says. Linux and Windows only:
//! elsewhere nobody tells what is left of a process.

#![cfg(any(target_os = "linux", windows))]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test that goes wrong should say so, and so should a role"
)]

mod asked;
mod basics;
mod calls;
mod cursors;
// Counts descriptors and dead children in `/proc`: about Unix itself.
#[cfg(unix)]
mod cycles;
mod endings;
mod fake;
mod limits;
mod opening;
mod rude;
mod secrets;
#[path = "../rude/mod.rs"]
mod server;
#[cfg(windows)]
mod windows;

use std::future::IntoFuture;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use server::system::{KILLED, alive, kill};
use taut::{Client, ClientBuilder, Command, Error};

/// Everything is waited for, but never for longer than this.
const DEADLINE: Duration = Duration::from_secs(60);

/// What the other processes do.
#[test]
#[ignore = "run by the other tests, as the server"]
fn role() {
    let role = server::role();
    match role.split_once(' ').unwrap_or((&role, "")) {
        ("host", _) => endings::host(),
        #[cfg(unix)]
        ("idle", _) => endings::idle(),
        ("early", _) => calls::early(),
        ("opening", word) => opening::play(word),
        ("secrets", _) => secrets::play(),
        #[cfg(windows)]
        ("windows", word) => windows::play(word),
        #[cfg(unix)]
        ("cycles", word) => cycles::play(word),
        ("limits", _) => limits::play(false),
        ("kept", _) => limits::play(true),
        _ => server::serve(&role),
    }
    std::process::exit(0);
}

/// A command that plays a role.
fn server(role: &str) -> Command {
    let (program, args) = server::player(role);
    Command::new(program).args(args).env("TAUT_ROLE", role)
}

/// The same as a plain process, which taut does not look after.
fn bystander(role: &str) -> std::process::Command {
    let command = server(role);
    let mut plain = std::process::Command::new(command.program());
    plain.args(command.arguments()).env("TAUT_ROLE", role).stdin(std::process::Stdio::null());
    plain
}

/// Plays a role in a process of its own, which has to end well.
async fn passes(role: &str) {
    let mut process = bystander(role);
    let run = move || process.stdout(std::process::Stdio::null()).output().unwrap();
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[cfg(unix)]
fn sh(script: &str) -> Command {
    Command::new("sh").args(["-c", script])
}

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A builder whose budgets fit tests.
fn quick() -> ClientBuilder {
    Client::builder().probe_timeout(ms(1_000)).start_timeout(ms(20_000))
}

async fn start(role: &str) -> Client {
    in_time(quick().spawn(server(role))).await.unwrap()
}

/// The same for a server that first floods stderr, which takes a while on a busy machine.
async fn start_flooding(role: &str) -> Client {
    in_time(quick().start_timeout(DEADLINE).spawn(server(role))).await.unwrap()
}

/// Opens a connection that must fail, and gives the error's text.
async fn failure(builder: ClientBuilder, command: Command) -> (Error, String) {
    let error = in_time(builder.spawn(command)).await.expect_err("no connection");
    let text = error.to_string();
    (error, text)
}

async fn in_time<F: IntoFuture>(future: F) -> F::Output {
    tokio::time::timeout(DEADLINE, future).await.expect("in time")
}

/// Waits until something is true, while the runtime goes on with its work.
async fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_true() {
        assert!(start.elapsed() < DEADLINE, "never came true: {what}");
        tokio::time::sleep(ms(2)).await;
    }
}

/// The children of this process, dead ones that nobody has waited for included.
#[cfg(unix)]
fn children() -> Vec<String> {
    let us = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((name, rest)) = stat.rsplit_once(") ") else { continue };
        if rest.split(' ').nth(1) == Some(&us) {
            found.push(format!("{name}) {}", &rest[..1]));
        }
    }
    found
}

/// Something that is written from hooks and read by the test.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn push(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}
