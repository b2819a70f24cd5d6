//! What only Windows has: shims, quoting, windows, jobs. One test for each scar from W1 to W11.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::windows::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::server::system;
use super::*;

/// A console of its own, without a window.
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

/// What a process of these tests does.
pub(super) fn play(word: &str) {
    match word.split_once(' ').unwrap_or((word, "")) {
        ("tell", _) => tell(),
        ("host", phase) => host(phase),
        ("host-with-console", _) => host_with_console(),
        ("host-with-variables", _) => host_with_variables(),
        ("leaver", _) => leaver(),
        ("chatter", _) => chatter(),
        ("orphan", _) => orphan(),
        ("grandchild", _) => {
            mark();
            std::thread::sleep(Duration::from_secs(1_000));
        }
        (other, _) => panic!("no such role: {other}"),
    }
}

/// Says what it was started with, and serves.
fn tell() {
    let args: Vec<String> = std::env::args().skip_while(|arg| arg != "--").skip(1).collect();
    let env: Vec<_> = std::env::vars().map(|(name, _)| name).collect();
    let directory = std::env::current_dir().unwrap();
    let (window, console) = (system::has_window(), system::console_processes());
    eprintln!(
        "{}",
        json!({ "args": args, "env": env, "directory": directory, "window": window, "console": console })
    );
    server::serve("2025-11-25");
}

/// Starts a server that tells, and gives what it told.
async fn told(command: Command) -> Value {
    let client = in_time(quick().spawn(command)).await.unwrap();
    let text = in_time(client.call("echo", json!({ "text": "é😀 \\ \"" }))).await.unwrap();
    // W6: bytes pass as they are, whatever the code page.
    assert_eq!(text.text().unwrap(), "é😀 \\ \"");
    in_time(client.close()).await.unwrap();
    let stderr = client.stderr();
    serde_json::from_str(stderr.lines().next().unwrap()).unwrap()
}

/// A folder of a test's own, with a blank in its name. Removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("taut {} {name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    /// A file that starts this binary as `npx.cmd` starts Node, and the same name for a Unix shell.
    fn shim(&self, name: &str) {
        self.shim_with(name, "cmd");
    }

    fn shim_with(&self, name: &str, extension: &str) {
        let binary = std::env::current_exe().unwrap();
        let text = format!("@ECHO off\r\n\"{}\" %*\r\n", binary.display());
        std::fs::write(self.0.join(format!("{name}.{extension}")), text).unwrap();
        std::fs::write(self.0.join(name), "#!/bin/sh\nexit 1\n").unwrap();
    }

    /// The processes that have left their mark here.
    fn pids(&self) -> Vec<u32> {
        let entries = std::fs::read_dir(&self.0).unwrap().flatten();
        entries.filter_map(|e| e.file_name().to_str()?.strip_prefix("pid-")?.parse().ok()).collect()
    }

    fn clear(&self) {
        for entry in std::fs::read_dir(&self.0).unwrap().flatten() {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A command for this binary, or for a shim that passes its arguments on.
fn telling(program: impl Into<std::ffi::OsString>, args: &[&str]) -> Command {
    let (_, role) = system::player("");
    Command::new(program)
        .args(role)
        .arg("--")
        .args(args.iter().copied())
        .env("TAUT_ROLE", "windows tell")
}

fn this_binary() -> PathBuf {
    std::env::current_exe().unwrap()
}

/// The folder first, then what Windows needs to start anything.
fn path_with(folder: &Folder) -> String {
    let own = std::env::var("PATH").unwrap();
    format!("{};{own}", folder.0.display())
}

#[tokio::test]
async fn w1_a_bare_name_finds_the_cmd_file_and_its_arguments_arrive() {
    let args = ["-y", "two words", "a&b|c<d>e^f", "(x)", "it's", "semi;colon,comma=", "{\"a\":1}"];
    for extension in ["cmd", "bat"] {
        let folder = Folder::new(extension);
        folder.shim_with("shim", extension);
        let command = telling("shim", &args).env("PATH", path_with(&folder));
        assert_eq!(told(command).await["args"], json!(args), "{extension}");
    }
}

#[tokio::test]
async fn w1_an_argument_that_cmd_would_change_is_refused_and_the_error_says_why() {
    let folder = Folder::new("refused");
    folder.shim("shim");
    for (arg, words) in [("100%", "percent sign"), ("two\nlines", "line end")] {
        let command = telling("shim", &[arg]).env("PATH", path_with(&folder));
        let (_, text) = failure(quick(), command).await;
        assert!(text.contains(words) && text.contains("instead"), "{text}");
    }
}

/// W2: neither a window nor the console of the host, into which a server could write. Without a screen nothing
/// has a window, so it is the console that tells whether the server was started as it should be.
#[test]
fn w2_no_window_pops_up() {
    let mut host = bystander("windows host-with-console");
    let output = host.creation_flags(CREATE_NO_WINDOW).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Starts a server from a host that has a console.
fn host_with_console() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let told = runtime.block_on(told(telling(this_binary(), &[])));
    let us = std::process::id();
    assert!(system::console_processes().contains(&us), "this process has a console");
    let theirs: Vec<u32> = serde_json::from_value(told["console"].clone()).unwrap();
    assert!(!theirs.contains(&us), "{us} in {theirs:?}");
    assert_eq!(told["window"], json!(false));
}

/// What programs need there.
const NEEDED: [&str; 6] =
    ["COMSPEC", "PATHEXT", "SYSTEMROOT", "WINDIR", "PROGRAMDATA", "PROGRAMFILES"];

/// The host has them all, as Windows gives them to every process. Wine leaves some out.
#[test]
fn w3_the_child_has_what_windows_programs_need_and_names_are_case_blind() {
    let mut host = bystander("windows host-with-variables");
    for name in NEEDED.into_iter().filter(|name| std::env::var_os(name).is_none()) {
        host.env(name, r"C:\given");
    }
    let output = host.env("TAUT_NOT_LISTED", "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn host_with_variables() {
    for name in NEEDED.into_iter().chain(["TAUT_NOT_LISTED"]) {
        assert!(std::env::var_os(name).is_some(), "the host has no {name}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let command = telling(this_binary(), &[]).env("Path", std::env::var("PATH").unwrap());
    let told = runtime.block_on(told(command));
    let names: Vec<String> = serde_json::from_value(told["env"].clone()).unwrap();
    let has = |wanted: &str| names.iter().filter(|name| name.eq_ignore_ascii_case(wanted)).count();
    for name in NEEDED.into_iter().chain(["PATH"]) {
        assert_eq!(has(name), 1, "{name} in {names:?}");
    }
    assert_eq!(has("TAUT_NOT_LISTED"), 0, "what is not in the list stays here");
}

#[tokio::test]
async fn w4_a_program_that_is_not_found_is_told_with_where_it_was_looked_for() {
    let folder = Folder::new("w4");
    let path = folder.0.display().to_string();
    let (_, text) = failure(quick(), Command::new("no-such-server").env("PATH", &path)).await;
    assert!(text.contains("not found") && text.contains(&path), "{text}");
    // A file that is no program is told apart from one that is not there.
    std::fs::write(folder.0.join("script"), "#!/bin/sh\n").unwrap();
    let (_, text) = failure(quick(), Command::new("script").env("PATH", &path)).await;
    assert!(text.contains("not a program that Windows can start"), "{text}");
}

/// W5, W7: no signal, and no grandchild after the close.
#[tokio::test]
async fn w5_w7_a_close_that_had_to_terminate_leaves_nothing_when_it_returns() {
    let builder = quick().eof_grace(ms(150));
    let client = in_time(builder.spawn(server("2025-11-25 ignore-eof"))).await.unwrap();
    let grandchild = in_time(client.call("grandchild", ())).await.unwrap();
    let pids = [client.pid().unwrap(), grandchild.text().unwrap().parse().unwrap()];
    assert!(pids.into_iter().all(alive));
    let closed = in_time(client.close()).await.unwrap();
    assert_eq!(closed.to_string(), "the server exited with code 1 after it was terminated");
    assert!(!pids.into_iter().any(alive));
}

/// W7: the same after a polite end, and after a drop.
#[tokio::test]
async fn w7_descendants_go_with_the_server_also_when_it_went_by_itself() {
    let client = start("2025-11-25").await;
    let grandchild = in_time(client.call("grandchild", ())).await.unwrap();
    let grandchild: u32 = grandchild.text().unwrap().parse().unwrap();
    in_time(client.close()).await.unwrap();
    assert!(!alive(grandchild));

    let client = start("2025-11-25 ignore-eof").await;
    let grandchild = in_time(client.call("grandchild", ())).await.unwrap();
    let pids = [client.pid().unwrap(), grandchild.text().unwrap().parse().unwrap()];
    drop(client);
    eventually("both are gone", || !pids.into_iter().any(alive)).await;
}

/// P12, P9: with `leave_group` a descendant outlives the close, and what it goes on to write delays nothing.
#[tokio::test]
async fn p12_a_close_with_leave_group_leaves_a_descendant_that_chatters_and_returns() {
    let folder = Folder::new("left");
    let command = server("windows leaver").env("TAUT_PLACE", &folder.0);
    let client = in_time(quick().leave_group(true).spawn(command)).await.unwrap();
    eventually("the descendant chatters", || client.stderr().contains("chatter")).await;
    in_time(client.close()).await.unwrap();
    let pids = folder.pids();
    assert_eq!(pids.len(), 1);
    assert!(pids.iter().all(|pid| alive(*pid)), "it was left");
    pids.iter().for_each(|pid| kill(*pid));
    eventually("it is gone", || !pids.iter().any(|pid| alive(*pid))).await;
}

/// A server that leaves a descendant behind, which has its stderr.
fn leaver() {
    let mut descendant = system::sleeper();
    descendant.env("TAUT_ROLE", "windows chatter");
    #[allow(clippy::zombie_processes, reason = "leaving it behind is the bad habit")]
    let _ = descendant.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    server::serve("2025-11-25");
}

/// Writes to stderr for as long as there is somebody to end it, and not without end if there is nobody.
fn chatter() {
    mark();
    let end = Instant::now() + DEADLINE * 2;
    while Instant::now() < end {
        // The reader may be gone.
        let _ = std::io::stderr().write_all(b"chatter\n");
        std::thread::sleep(ms(20));
    }
}

/// W8: one thread for everything, and a runtime of several.
#[test]
fn w8_a_client_works_in_a_runtime_of_one_thread_and_of_many() {
    let one = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let many = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for runtime in [one, many] {
        runtime.block_on(async {
            let client = start("2025-11-25").await;
            let sum = in_time(client.call("add", json!({ "a": 2, "b": 3 }))).await.unwrap();
            assert_eq!(sum.text().unwrap(), "5");
            in_time(client.close()).await.unwrap();
        });
    }
}

const NASTY: [&str; 20] = [
    "",
    " ",
    "two words",
    "tab\there",
    "\"",
    "\"\"",
    "say \"hi\"",
    "back\\slash",
    "trailing\\",
    "trailing blank\\ ",
    "blank and trailing\\",
    "\\\"",
    "\\\\\"",
    "\\\\server\\share\\",
    "%PATH%",
    "a&b|c<d>e^f",
    "line\nend",
    "'single'",
    "é😀",
    "--flag=\"x y\"",
];

#[tokio::test]
async fn w9_twenty_nasty_arguments_arrive_as_they_are() {
    assert_eq!(told(telling(this_binary(), &NASTY)).await["args"], json!(NASTY));
}

#[tokio::test]
async fn w10_a_relative_program_counts_from_the_directory_it_starts_in() {
    let folder = Folder::new("w10");
    folder.shim("shim");
    for program in [r".\shim.cmd", r".\shim", "./shim"] {
        let told = told(telling(program, &["x"]).current_dir(&folder.0)).await;
        assert_eq!(told["args"], json!(["x"]), "{program}");
        let directory: PathBuf = serde_json::from_value(told["directory"].clone()).unwrap();
        assert_eq!(directory, folder.0);
    }
    let (_, text) = failure(quick(), telling(r".\shim", &[])).await;
    assert!(text.contains("not found") && text.contains("shim"), "{text}");
}

/// W11: pipes hold 4 KiB here, and everything that is longer goes through all the same.
#[tokio::test]
async fn w11_what_is_longer_than_a_pipe_goes_through_both_ways_beside_a_flood_on_stderr() {
    let client = start_flooding("2025-11-25 flood").await;
    let big = in_time(client.call("big", json!({ "size": 2 << 20 }))).await.unwrap();
    assert_eq!(big.text().unwrap().len(), 2 << 20);
    let text = "x".repeat(300_000);
    let echo = in_time(client.call("echo", json!({ "text": text }))).await.unwrap();
    assert_eq!(echo.text().unwrap(), text);
    in_time(client.close()).await.unwrap();
}

/// S16, P6: a handle that anybody in the host has made inheritable stays in the host.
#[tokio::test]
async fn a_server_inherits_its_three_pipes_and_nothing_else() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    system::make_inheritable(&writer);
    let client = start("2025-11-25").await;
    drop(writer);
    let read = tokio::task::spawn_blocking(move || reader.read(&mut [0]));
    assert_eq!(in_time(read).await.unwrap().unwrap(), 0, "nobody else holds the other end");
    in_time(client.close()).await.unwrap();
}

/// A mark in the folder of the test, with the number of this process.
fn mark() {
    let place = PathBuf::from(std::env::var_os("TAUT_PLACE").unwrap());
    std::fs::write(place.join(format!("pid-{}", std::process::id())), "").unwrap();
}

/// A server with a grandchild that both live for ever.
fn orphan() {
    mark();
    let mut grandchild = system::sleeper();
    grandchild.env("TAUT_ROLE", "windows grandchild");
    #[allow(clippy::zombie_processes, reason = "leaving it behind is the bad habit")]
    let _ = grandchild.stdout(Stdio::null()).spawn().unwrap();
    server::serve("2025-11-25 ignore-eof");
}

/// A host that will be killed. It starts nothing before it is counted.
fn host(phase: &str) {
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let place = std::env::var_os("TAUT_PLACE").unwrap();
        let command = server("windows orphan").env("TAUT_PLACE", place);
        println!("starting");
        // With any framing but this ruled out there is one server, however long it takes to start. A second one
        // beside it would have a grandchild too.
        let builder = quick().framing(taut::wire::Framing::Lines).start_timeout(DEADLINE);
        let builder = builder.eof_grace(Duration::from_secs(1_000));
        let client = builder.spawn(command).await.unwrap();
        match phase {
            "call" => {
                println!("ready");
                let _ = client.call("never", ()).await;
            }
            "closing" => {
                println!("ready");
                let _ = client.close().await;
            }
            _ => println!("ready"),
        }
        std::future::pending::<()>().await;
    });
}

/// Reads the host's output until it says so.
fn until(host: &mut Child, word: &str) {
    let mut stdout = BufReader::new(host.stdout.as_mut().unwrap());
    let mut line = String::new();
    while line.trim() != word {
        line.clear();
        assert_ne!(stdout.read_line(&mut line).unwrap(), 0, "the host never said {word}");
    }
}

/// How often a host is killed in each phase.
const KILLS: u32 = 100;

/// How many of them had a server and a grandchild by then, at least, and how many more may be killed to see that.
const WHOLE: usize = 10;
const MORE: u32 = 50;

/// Kills hosts in this phase: at the word, and each a little later than the one before. After each, the job in
/// which the host was has no process any more, and the system's list has none of those that were there.
///
/// Those that say "starting" are killed at moments from there to a little after the whole start. How long that
/// takes, the first tells, which is killed when it is done. If the machine has become slower since, so that few of
/// them were whole, more are killed, and later.
async fn kill_hosts(phase: &str, word: &str) {
    let folder = Folder::new(phase);
    let (mut started, mut whole) = (0, 0);
    let mut latest = ms(100);
    for n in 0..KILLS + MORE {
        if n >= KILLS && whole >= WHOLE {
            break;
        }
        let mut host = bystander(&format!("windows host {phase}"))
            .env("TAUT_PLACE", &folder.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let counted = system::Counted::new(&host);
        host.stdin.take().unwrap().write_all(b"go\n").unwrap();
        until(&mut host, word);
        let said = Instant::now();
        if word == "ready" || n == 0 {
            eventually("server and grandchild run", || folder.pids().len() >= 2).await;
            assert_eq!(folder.pids().len(), 2, "{phase}, {n}: one server and its grandchild");
        }
        if word == "starting" && n == 0 {
            latest = said.elapsed() * 5 / 4;
        }
        tokio::time::sleep(latest * n / KILLS * if n < KILLS { 1 } else { 4 }).await;
        let before = system::all_processes();
        host.kill().unwrap();
        host.wait().unwrap();
        eventually("the job is empty", || counted.processes().0 == 0).await;
        started += counted.processes().1;
        let after = system::all_processes();
        let marks = folder.pids();
        whole += usize::from(marks.len() == 2);
        let left = |pid: &u32| after.iter().any(|one| one.0 == *pid && before.contains(one));
        assert_eq!(marks.iter().filter(|pid| left(pid)).count(), 0, "{phase}, {n}");
        folder.clear();
    }
    eprintln!(
        "{phase}: {KILLS} hosts or more killed, {whole} with server and grandchild, {started} processes"
    );
    assert!(started > 2 * KILLS && whole >= WHOLE, "something was there to be left");
}

#[tokio::test]
async fn p14_a_host_killed_while_it_starts_a_server_leaves_nothing() {
    kill_hosts("start", "starting").await;
}

#[tokio::test]
async fn p14_a_host_killed_while_idle_leaves_nothing() {
    kill_hosts("idle", "ready").await;
}

#[tokio::test]
async fn p14_a_host_killed_during_a_call_leaves_nothing() {
    kill_hosts("call", "ready").await;
}

#[tokio::test]
async fn p14_a_host_killed_while_it_closes_leaves_nothing() {
    kill_hosts("closing", "ready").await;
}
