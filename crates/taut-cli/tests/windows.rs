//! The command on Windows, or under Wine: what people type, where files are, and what is left behind.
//!
//! `tests/command` runs here too, less what is about Unix itself: terminals, signals, `/proc`. This file has
//! what Windows has in their place, and the README's own lines.

#![cfg(windows)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that goes wrong should say so, and so should a role"
)]

#[path = "../../taut/tests/rude/system.rs"]
mod system;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::windows::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Everything is waited for, but never for longer than this.
const DEADLINE: Duration = Duration::from_secs(60);

/// A console of its own, so that Ctrl-C reaches nobody else.
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

/// What the other process does: it starts `taut` in its own console, waits until a call is on its way, and
/// presses Ctrl-C there. Or it is a server that neither answers nor ends.
#[test]
#[ignore = "run by the other tests, as the console"]
fn role() {
    while std::env::var("TAUT_ROLE").is_ok_and(|role| role == "stay") {
        std::thread::sleep(DEADLINE);
    }
    std::io::stdin().read_line(&mut String::new()).unwrap();
    system::ignore_ctrl_c();
    let words = std::env::var("TAUT_ROLE").unwrap();
    let mut taut = Command::new(binary());
    taut.args(words.split(' ')).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut taut = taut.spawn().unwrap();
    let mut lines = BufReader::new(taut.stderr.take().unwrap()).lines();
    let begun = lines.by_ref().map_while(Result::ok).any(|line| line.contains("step 1 of"));
    assert!(begun, "the call never began");
    system::press_ctrl_c();
    // The rest is read, so that nothing waits for a reader.
    lines.map_while(Result::ok).for_each(drop);
    println!("exit {:?}", taut.wait().unwrap().code());
}

/// Waits until something is true.
fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_true() {
        assert!(began.elapsed() < DEADLINE, "never came true: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Under Wine cargo's path has no drive; it counts from the one that the tests are started on.
fn binary() -> PathBuf {
    std::path::absolute(env!("CARGO_BIN_EXE_taut")).unwrap()
}

/// A home of a test's own, so that no test reads the files of whoever runs it. Removed with it.
struct Home(PathBuf);

impl Home {
    fn new(name: &str) -> Self {
        let home = std::env::temp_dir().join(format!("taut-{}-{name}", std::process::id()));
        std::fs::create_dir_all(home.join("project")).unwrap();
        Self(home)
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// A file that starts the demo server as `npx.cmd` starts Node, on the PATH.
    fn shim(&self, name: &str) {
        self.write(&format!(r"bin\{name}"), "@ECHO off\r\ntaut serve %*\r\n");
    }

    /// The same for a server that neither answers nor ends, a child of the `cmd.exe` that starts it.
    fn staying_shim(&self, name: &str) {
        let (program, args) = system::player("");
        let text = format!("@ECHO off\r\n\"{program}\" {}\r\n", args.join(" "));
        self.write(&format!(r"bin\{name}"), &text);
    }

    /// `taut`, found on the PATH as after an installation.
    fn taut(&self, args: &[&str]) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let (own, bin) = (binary(), self.0.join("bin"));
        let mut command = Command::new(&own);
        command
            .args(args)
            .current_dir(self.0.join("project"))
            .env("PATH", format!("{};{};{path}", own.parent().unwrap().display(), bin.display()))
            .env("USERPROFILE", &self.0)
            .env("APPDATA", self.0.join(r"AppData\Roaming"))
            .env("LOCALAPPDATA", self.0.join(r"AppData\Local"))
            .env_remove("HOME")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, args: &[&str]) -> Run {
        self.taut(args).output().unwrap().into()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[derive(Debug)]
struct Run {
    code: i32,
    out: String,
    err: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Run {
    #[track_caller]
    fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }
}

const DEMO: [&str; 3] = ["--", "taut", "serve"];

fn demo<'a>(line: &[&'a str]) -> Vec<&'a str> {
    line.iter().copied().chain(DEMO).collect()
}

/// The README's own lines.
#[test]
fn smoke_and_call_work_as_the_readme_shows_them() {
    let home = Home::new("readme");
    let smoke = home.run(&["smoke"]).exits(0);
    assert!(smoke.out.contains("it works: "), "{smoke:?}");
    let call = home.run(&demo(&["call", "echo", "text=hi"])).exits(0);
    assert_eq!(call.out, "hi\n", "{call:?}");
    let sum = home.run(&demo(&["call", "add", "a=2", "b=3"])).exits(0);
    assert!(sum.out.contains('5'), "{sum:?}");
}

#[test]
fn results_are_the_same_bytes_in_json_and_lines_never_end_in_crlf() {
    let home = Home::new("json");
    let run = home.run(&demo(&["list", "tools", "--json"])).exits(0);
    let tools: Value = serde_json::from_str(&run.out).unwrap();
    assert!(tools.to_string().contains("\"echo\""), "{tools}");
    assert!(!run.out.contains('\r'), "{run:?}");
    let run = home.run(&demo(&["call", "echo", "text=é😀"])).exits(0);
    assert_eq!(run.out, "é😀\n");
}

#[test]
fn exit_codes_and_errors_say_what_went_wrong() {
    let home = Home::new("codes");
    let failed = home.run(&demo(&["call", "fail", "reason=rain"])).exits(1);
    assert!(failed.out.contains("rain") || failed.err.contains("rain"), "{failed:?}");
    let typed = home.run(&["no-such-word"]).exits(2);
    assert!(typed.err.contains("no-such-word"), "{typed:?}");
    let missing = home.run(&["list", "--", "no-such-server"]).exits(4);
    assert!(missing.err.contains("not found") && missing.err.contains("looked in"), "{missing:?}");
}

/// Each in the place where its host keeps it on Windows.
#[test]
fn files_of_hosts_are_found_in_their_places() {
    let home = Home::new("hosts");
    let server = |name: &str, key: &str| {
        format!(r#"{{ "{key}": {{ "{name}": {{ "command": "taut", "args": ["serve"] }} }} }}"#)
    };
    let desktop = r"AppData\Roaming\Claude\claude_desktop_config.json";
    home.write(desktop, &server("desktop", "mcpServers"));
    home.write(r"AppData\Roaming\Code\User\mcp.json", &server("code", "servers"));
    home.write(r".cursor\mcp.json", &server("cursor", "mcpServers"));
    home.write(r".claude.json", &server("claude", "mcpServers"));
    home.write(
        r".codex\config.toml",
        "[mcp_servers.codex]\ncommand = \"taut\"\nargs = [\"serve\"]\n",
    );
    home.write(r"project\.mcp.json", &server("here", "mcpServers"));
    home.write(r".gemini\settings.json", &server("gemini", "mcpServers"));
    home.write(
        r".config\opencode\opencode.json",
        r#"{ "mcp": { "opencode": { "type": "local", "command": ["taut", "serve"] } } }"#,
    );
    let listed = home.run(&["servers"]).exits(0);
    for name in ["desktop", "code", "cursor", "claude", "codex", "here", "gemini", "opencode"] {
        assert!(listed.out.contains(name), "{name} in {listed:?}");
        home.run(&["list", "tools", name]).exits(0);
    }
    // One kind of separator.
    assert!(listed.out.contains(r"~\.cursor\mcp.json") && !listed.out.contains("~/"), "{listed:?}");

    // Where Codex was told to keep its file; Windows does not tell the case of a variable's name.
    let other = "[mcp_servers.elsewhere]\ncommand = \"taut\"\nargs = [\"serve\"]\n";
    let file = home.write(r"other\config.toml", other);
    let mut taut = home.taut(&["servers"]);
    let listed: Run = taut.env("Codex_Home", file.parent().unwrap()).output().unwrap().into();
    assert!(listed.out.contains("elsewhere"), "{listed:?}");
}

#[test]
fn doctor_speaks_of_windows_and_not_of_signals() {
    let home = Home::new("doctor");
    let healthy = home.run(&demo(&["doctor"]));
    let said = format!("{}{}", healthy.out, healthy.err);
    assert!(healthy.code == 0 && !said.contains("SIG"), "{healthy:?}");
}

#[test]
fn a_reader_that_goes_away_is_not_worth_a_word() {
    let home = Home::new("reader");
    let mut child = home.taut(&demo(&["call", "big", "bytes=4194304"])).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0]).unwrap();
    drop(stdout);
    let run: Run = child.wait_with_output().unwrap().into();
    assert_eq!((run.exits(0)).err, "");
}

/// `taut serve` as a host starts it: lines in, lines out, the end of input ends it.
#[test]
fn a_host_is_served_over_pipes() {
    let home = Home::new("serve");
    let mut server = home.taut(&["serve"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = server.stdin.take().unwrap();
    let mut stdout = BufReader::new(server.stdout.take().unwrap());
    let open = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    stdin.write_all(format!("{open}\r\n").as_bytes()).unwrap();
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert!(
        line.contains("\"id\":1") && line.ends_with("}\n") && !line.ends_with("\r\n"),
        "{line:?}"
    );
    drop(stdin);
    line.clear();
    assert_eq!(stdout.read_line(&mut line).unwrap(), 0, "{line:?}");
    assert!(server.wait().unwrap().success());
}

#[test]
fn paths_of_windows_are_shown_as_people_write_them() {
    let home = Home::new("paths");
    let given =
        home.write("my servers.json", r#"{ "mcpServers": { "x": { "command": "taut" } } }"#);
    assert!(given.is_absolute() && Path::new(&given).exists());
    let run = home.run(&["servers", "--config", given.to_str().unwrap()]).exits(0);
    assert!(run.out.contains("my servers.json"), "{run:?}");
}

/// The call is withdrawn, the command says that it was interrupted, and neither it nor the server is left.
#[test]
fn ctrl_c_ends_a_call_and_its_server() {
    let home = Home::new("ctrl-c");
    let (program, args) = system::player("");
    let mut console = home.taut(&[]);
    let path = console.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap().to_owned();
    console = Command::new(program);
    console.args(args).env("PATH", path).creation_flags(CREATE_NO_WINDOW);
    console.env("TAUT_ROLE", "call slow steps=1000 step_ms=50 -v -- taut serve");
    let mut console = console.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let counted = system::Counted::new(&console);
    console.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let run = console.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&run.stdout), "exit Some(130)\n");
    eventually("nothing is left", || counted.processes().0 == 0);
    assert!(counted.processes().1 >= 3, "console, command and server");
}

/// A process whose descendants are counted; killed when dropped.
struct Held(Child, system::Counted);

impl Held {
    fn start(mut command: Command) -> Self {
        let child = command.stdin(Stdio::piped()).spawn().unwrap();
        let counted = system::Counted::new(&child);
        Self(child, counted)
    }

    fn leaves_nothing(&self) {
        eventually("nothing is left", || self.1.processes().0 == 0);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The bridge between a host and a server, both of them processes: it ends with its host.
#[test]
fn a_bridge_carries_messages_and_ends_with_its_host() {
    let home = Home::new("bridge");
    let mut bridge = Held::start(home.taut(&demo(&["bridge"])));
    let mut stdin = bridge.0.stdin.take().unwrap();
    let mut lines = BufReader::new(bridge.0.stdout.take().unwrap()).lines();
    let open = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}}}"#;
    stdin.write_all(format!("{open}\n{ready}\n{call}\n").as_bytes()).unwrap();
    let mut answer = |id: i32| {
        let mut all = lines.by_ref().map(|line| serde_json::from_str::<Value>(&line.unwrap()));
        all.find(|answer| answer.as_ref().unwrap()["id"] == id).unwrap().unwrap()
    };
    assert_eq!(answer(1)["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(answer(2)["result"]["content"][0]["text"], "hi");
    drop(stdin);
    assert!(bridge.0.wait().unwrap().success());
    bridge.leaves_nothing();
}

/// A bridge that is killed takes its server with it. T8.
#[test]
fn a_bridge_that_is_killed_leaves_no_server() {
    let home = Home::new("killed");
    let mut bridge = Held::start(home.taut(&demo(&["bridge", "--listen", "127.0.0.1:0"])));
    let mut address = String::new();
    BufReader::new(bridge.0.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
    let port = address.trim().strip_prefix("tcp:").unwrap();
    for server in [address.trim(), &format!("http://{port}/mcp")] {
        let call = home.run(&["call", "echo", "text=hi", server]).exits(0);
        assert_eq!(call.out, "hi\n", "{server}: {call:?}");
    }
    bridge.0.kill().unwrap();
    bridge.0.wait().unwrap();
    bridge.leaves_nothing();
}

/// What went over the wire is in the capture, in the order in which it went.
#[test]
fn a_trace_is_written_while_a_host_is_served() {
    let home = Home::new("trace");
    let file = home.0.join("session.jsonl");
    let shown = file.display().to_string();
    let traced = [
        "call", "echo", "text=hi", "--", "taut", "trace", "--record", &shown, "--", "taut", "serve",
    ];
    assert_eq!(home.run(&traced).exits(0).out, "hi\n");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"tools/call\"") && text.contains("taut-demo"), "{text}");
    let view = home.run(&["trace", "view", &shown]).exits(0);
    assert!(view.out.contains("tools/call"), "{view:?}");
}

/// W1: the server is found as by every other command, and its words come back from a replay as they were.
#[test]
fn w1_a_trace_starts_a_cmd_file_by_its_bare_name() {
    let home = Home::new("trace-cmd");
    home.shim("shim.cmd");
    let file = home.0.join("session.jsonl").display().to_string();
    let call = ["call", "echo", "text=hi", "--", "taut", "trace", "--record", &file, "--", "shim"];
    assert_eq!(home.run(&call).exits(0).out, "hi\n");
    let again = home.run(&["trace", "replay", &file, "--", "shim"]);
    assert!(
        again.out.contains("messages sent") || again.err.contains("messages sent"),
        "{again:?}"
    );
    let missing = home.run(&["trace", "--", "no-such-server"]).exits(4);
    assert!(missing.err.contains("not found") && missing.err.contains("looked in"), "{missing:?}");
    let refused = home.run(&["trace", "--", "shim", "100%"]);
    assert!(refused.err.contains("percent sign"), "{refused:?}");
}

/// P14: the server does not read, so the end of its input tells it nothing.
#[test]
fn p14_a_trace_that_is_killed_leaves_neither_the_server_nor_what_started_it() {
    let home = Home::new("trace-killed");
    home.staying_shim("stay.cmd");
    let mut taut = home.taut(&["trace", "--record", "x.jsonl", "--", "stay"]);
    taut.env("TAUT_ROLE", "stay");
    let mut trace = Held::start(taut);
    eventually("trace, cmd and server run", || trace.1.processes().0 >= 3);
    trace.0.kill().unwrap();
    trace.0.wait().unwrap();
    trace.leaves_nothing();
}

/// W1, and P14: a check finds a `.cmd` file, and leaves nothing of it behind when it is killed.
#[test]
fn a_check_starts_a_cmd_file_and_leaves_nothing_when_it_is_killed() {
    let home = Home::new("check");
    home.shim("shim.cmd");
    home.staying_shim("stay.cmd");
    let run = home.run(&["check", "--only", "ping", "--", "shim"]);
    assert!(run.code == 0 && run.out.contains("ping"), "{run:?}");
    let mut taut = home.taut(&["check", "--", "stay"]);
    taut.env("TAUT_ROLE", "stay");
    let mut check = Held::start(taut);
    eventually("check, cmd and server run", || check.1.processes().0 >= 3);
    check.0.kill().unwrap();
    check.0.wait().unwrap();
    check.leaves_nothing();
}
