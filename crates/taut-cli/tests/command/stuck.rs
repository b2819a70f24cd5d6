//! A reader that does not read, and work that does not end: signals and limits work all the same
//! (issue 19, A3 and A4).

use std::io::Read as _;
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

use super::*;

/// A server that writes much: its stderr, or the answer to a call.
fn big(words: &str) -> Command {
    taut(words.split_whitespace().chain(["--", "taut", "serve"]))
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// How the command ended, which it has to soon.
#[track_caller]
fn ends(child: &mut Child) -> i32 {
    let mut code = None;
    eventually("the command ends", || {
        code = child.try_wait().unwrap();
        code.is_some()
    });
    code.unwrap().code().expect("an exit code, not a signal")
}

/// Waits until a process waits in a write to a full pipe: all its threads sleep, and time passes.
fn is_full(child: &Child, pipe: &str) {
    let path = format!("/proc/{}/task", child.id());
    eventually(&format!("{pipe} is full"), || {
        std::fs::read_dir(&path).into_iter().flatten().flatten().any(|task| {
            let waits = std::fs::read_to_string(task.path().join("wchan")).unwrap_or_default();
            let call = std::fs::read_to_string(task.path().join("syscall")).unwrap_or_default();
            waits.contains("pipe_write") || waits.contains("wait") && call.starts_with("1 ")
        })
    });
}

#[test]
fn a_full_stdout_does_not_keep_signals_away() {
    for (name, sent) in [("SIGINT", Signal::INT), ("SIGTERM", Signal::TERM)] {
        let mut child = big("call big bytes=1000000").spawn().unwrap();
        is_full(&child, "stdout");
        let began = Instant::now();
        signal(&child, sent);
        assert_eq!(ends(&mut child), 130, "{name}");
        assert!(began.elapsed() < Duration::from_secs(20), "{name}: {:?}", began.elapsed());
    }
}

/// The document of the error must not wait for the reader that the result waited for.
#[test]
fn one_signal_ends_a_command_in_every_form_of_output() {
    for line in
        ["list --json", "list tools --json", "smoke --json", "call big bytes=5000000 --json"]
    {
        for sent in [Signal::TERM, Signal::INT] {
            let server = ["--", "taut", "serve", "--tools", "20000"];
            let mut child = taut(line.split_whitespace().chain(server)).spawn().unwrap();
            is_full(&child, "stdout");
            let began = Instant::now();
            signal(&child, sent);
            assert_eq!(ends(&mut child), 130, "{line} {sent:?}");
            assert!(began.elapsed() < Duration::from_secs(20), "{line}: {:?}", began.elapsed());
        }
    }
}

/// The same where the pipe was full before: the document of the interrupt is the first that does not fit.
#[test]
fn one_signal_ends_a_command_whose_stdout_was_full_before() {
    use std::io::BufRead as _;
    for sent in [Signal::TERM, Signal::INT] {
        let (_reader, mut writer) = std::io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        // First in large pieces, then to the last byte.
        for piece in [&[b' '; 4096][..], b" "] {
            while writer.write(piece).is_ok() {}
        }
        rustix::io::ioctl_fionbio(&writer, false).unwrap();
        let mut command = big("call slow steps=1000 step_ms=1000 --json --debug");
        let mut child = command.stdout(writer).spawn().unwrap();
        let stderr = std::io::BufReader::new(child.stderr.take().unwrap());
        let mut lines = stderr.lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("send json=") && line.contains("tools/call")));
        let rest = std::thread::spawn(move || lines.count());
        signal(&child, sent);
        assert_eq!(ends(&mut child), 130, "{sent:?}");
        rest.join().unwrap();
    }
}

#[test]
fn a_full_stdout_does_not_keep_max_time_away() {
    let mut child = big("call big bytes=1000000 --max-time 2s").spawn().unwrap();
    assert_eq!(ends(&mut child), 6);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("--max-time"), "{said}");
}

/// With a full stderr every step that is told would stop the connection.
#[test]
fn a_full_stderr_keeps_neither_signals_nor_timeouts_away() {
    let line = "call slow steps=100000 step_ms=1 --debug --timeout 300s";
    let mut child = big(line).spawn().unwrap();
    is_full(&child, "stderr");
    signal(&child, Signal::INT);
    assert_eq!(ends(&mut child), 130);

    // Progress counts as a sign of life, so the limit is the one for all of it.
    let mut child = big("call slow steps=100000 step_ms=1 --debug --max-time 3s").spawn().unwrap();
    assert_eq!(ends(&mut child), 6);

    // One that floods stderr and never answers: the timeout strikes although nobody reads.
    let server = ["sh", "-c", FLOODS].map(str::to_owned);
    let line = ["call", "x", "--args", "{}", "-v", "--timeout", "2s", "--"].map(str::to_owned);
    let mut child = taut(line.iter().chain(&server)).spawn().unwrap();
    assert_eq!(ends(&mut child), 6);
}

/// Answers the handshake, and then only writes to stderr.
const FLOODS: &str = r#"
while read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *server/discover*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"f","version":"1"}}}\n' "$id" ;;
    *tools/call*) while :; do echo "a line of noise that nobody reads, and another one after it" >&2; done & ;;
  esac
done
kill %1 2>/dev/null
"#;

#[test]
fn max_time_ends_what_waits_for_a_server() {
    let began = Instant::now();
    let run = demo("call slow steps=1000 step_ms=1000 --max-time 500ms").exits(6);
    assert!(run.err.contains("it was not done within 500ms"), "{}", run.err);
    assert!(began.elapsed() < Duration::from_secs(30));
    // A server that heeds nothing is killed.
    run_ignoring("list --max-time 500ms");
}

fn run_ignoring(line: &str) {
    let server = ["sh", "-c", "trap '' TERM; while :; do sleep 100000607; done"].map(str::to_owned);
    let run = run(line, &server).exits(6);
    assert!(run.err.contains("--max-time"), "{}", run.err);
    eventually("nothing is left behind", || processes_with("100000607").is_empty());
}

/// Runs the command, which is killed when it has used so many seconds of processor time. Unlike the time on the
/// wall that does not depend on what else the machine does.
fn within(seconds: u32, line: &str, server: &[String]) -> Run {
    let mut command = Command::new("sh");
    command.args(["-c", &format!(r#"ulimit -t {seconds}; exec "$0" "$@""#)]);
    let usual = taut(line.split_whitespace());
    command.arg(usual.get_program()).args(usual.get_args());
    if !server.is_empty() {
        command.arg("--").args(server);
    }
    for (name, value) in usual.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::null()).output().unwrap().into()
}

/// A server that heeds nothing, and a process of it that has left its session: both are gone when the time is
/// over, whatever the command was doing.
#[test]
// About Linux itself: what is left behind is found in `/proc`.
#[cfg(all(target_os = "linux", not(taut_portable)))]
fn max_time_is_a_hard_limit_and_nothing_of_the_server_is_left() {
    let sleep = format!("sleep 3000{}", std::process::id());
    let deaf = format!("trap '' TERM INT HUP; setsid {sleep} & (setsid {sleep} &) ; ");
    let serves = format!("{deaf} taut serve; exec {sleep}");
    let silent = format!("{deaf} while :; do {sleep}; done");
    let call = "call slow steps=1000 step_ms=1000";
    for (line, script) in [
        ("list", &silent),
        ("watch", &silent),
        ("doctor", &silent),
        (call, &serves),
        ("watch", &serves),
        ("shell", &serves),
    ] {
        let server = ["sh", "-c", script].map(str::to_owned);
        let json = if matches!(line, "list" | "doctor") { " --json" } else { "" };
        // What the shell does in a session that nobody ends.
        let stdin = if line == "shell" { "slow steps=1000 step_ms=1000\n" } else { "" };
        let run = run_with(&format!("{line}{json} --max-time 1s"), &server, stdin).exits(6);
        assert!(run.err.contains("error: it was not done within 1s"), "{line}: {}", run.err);
        assert!(!run.err.contains("once more"), "{line}: {}", run.err);
        if !json.is_empty() {
            assert_eq!(run.json()["error"]["kind"], "timeout", "{line}");
        }
        eventually("nothing is left behind", || {
            processes_with(&sleep.replace(' ', "\0")).is_empty()
        });
    }
}

/// A3: 40,000 took 41 s, and 300,000 ignored two SIGINT and two SIGTERM.
#[test]
fn a_tool_with_many_properties_is_listed_and_called_at_once() {
    let server = server("properties 40000");
    let listed = within(30, "list tools", &server).exits(0);
    assert!(listed.out.contains("property_39999"), "{}", listed.out.len());
    let called = within(30, "call many property_1=x", &server).exits(2);
    assert!(called.err.contains("property_0 is missing"), "{}", called.err.len());
    assert!(called.err.len() < 100_000 && called.err.contains("left out"), "{}", called.err.len());
}

/// A3: 20,000 took 16 s.
#[test]
fn many_servers_are_shown_at_once() {
    let entry =
        |n: usize| format!(r#""server-{n}": {{ "command": "x", "args": ["${{NO_{n}}}"] }}"#);
    let all: Vec<String> = (0..20_000).map(entry).collect();
    let file = temporary().join("many.json");
    for between in [", ", ",\n"] {
        let text = format!(r#"{{ "mcpServers": {{ {} }} }}"#, all.join(between));
        std::fs::write(&file, text).unwrap();
        let shown = within(15, &format!("servers --config {}", file.display()), &[]).exits(0);
        assert!(shown.out.contains("server-19999"), "{}", shown.out.len());
    }
}

/// A4: a project's file may name what never ends.
#[test]
fn a_project_that_names_a_device_or_a_pipe_is_refused() {
    let folder = temporary().join("endless");
    std::fs::create_dir_all(&folder).unwrap();
    let pipe = folder.join("pipe");
    let _ = std::fs::remove_file(&pipe);
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let text = serde_json::json!({ "mcp": {
        "zero": { "type": "local", "command": ["x", "{file:/dev/zero}"] },
        "pipe": { "type": "local", "command": ["x", format!("{{file:{}}}", pipe.display())] },
    } });
    let file = folder.join("opencode.json");
    std::fs::write(&file, text.to_string()).unwrap();
    let env_file = serde_json::json!({ "servers": {
        "env": { "command": "x", "envFile": pipe },
    } });
    let vscode = folder.join("mcp.json");
    std::fs::write(&vscode, env_file.to_string()).unwrap();
    for (file, count) in [(file, 2), (vscode, 1)] {
        let mut child = taut(["servers", "--config", file.to_str().unwrap()]).spawn().unwrap();
        assert_eq!(ends(&mut child), 0);
        let mut shown = String::new();
        child.stdout.take().unwrap().read_to_string(&mut shown).unwrap();
        assert_eq!(shown.matches("it is not a regular file").count(), count, "{shown}");
    }
}

/// A2, where the command lists by itself: the whole list is bounded in bytes.
#[test]
fn a_list_without_end_is_given_up_by_its_size() {
    let run = run("list tools", &server("pages 8000000")).exits(5);
    assert!(run.err.contains("more than 64 MiB"), "{}", run.err);
}

/// The same if the cursors are what is large.
#[test]
fn a_list_with_cursors_without_end_is_given_up() {
    for line in ["list tools", "smoke", "doctor", "bench --quick --only list"] {
        let run = run(line, &server("cursors 8000000"));
        assert_ne!(run.code, 0, "{line}: {}", run.out);
        assert!((run.out + &run.err).contains("64 MiB"), "{line}");
    }
}

/// A1, the command's part: what it tells by itself, and panics, never stop the server.
#[test]
fn a_server_whose_stderr_nobody_reads_goes_on_and_ends_with_its_input() {
    let debug = ["serve", "--debug"].map(str::to_owned);
    let ping = |id: usize| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    let panics = |id: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"panic","arguments":{{}}}}}}"#
        )
    };
    let plain = ["serve"].map(str::to_owned);
    for (words, count, request) in
        [(&debug[..], 3_000, &ping as &dyn Fn(usize) -> String), (&plain[..], 1_500, &panics)]
    {
        let mut child = taut(words).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let opening = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        let requests: String = (1..=count).map(|id| format!("{}\n", request(id))).collect();
        let writing = std::thread::spawn(move || {
            let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
            stdin.write_all(format!("{opening}\n{initialized}\n{requests}").as_bytes()).unwrap();
        });
        let mut answers = String::new();
        child.stdout.take().unwrap().read_to_string(&mut answers).unwrap();
        writing.join().unwrap();
        assert_eq!(answers.lines().count(), count + 1, "{words:?}");
        assert_eq!(ends(&mut child), 0, "{words:?}");
    }
}

/// A3: Ctrl-C works while the command computes: it is heard by a thread of its own.
#[test]
fn an_interrupt_ends_a_computation() {
    let server = server("properties 150000");
    let words = ["list", "tools", "--"].map(str::to_owned);
    for _ in 0..5 {
        let mut child = taut(words.iter().chain(&server)).spawn().unwrap();
        let stat = format!("/proc/{}/stat", child.id());
        let mut over = false;
        // In ticks of the clock, of which there are a hundred in a second.
        eventually("it computes", || {
            over = child.try_wait().unwrap().is_some();
            let text = std::fs::read_to_string(&stat).unwrap_or_default();
            let used = text.split(' ').nth(13).and_then(|ticks| ticks.parse::<u64>().ok());
            over || used.is_some_and(|ticks| ticks > 40)
        });
        if over {
            continue;
        }
        signal(&child, Signal::INT);
        let began = Instant::now();
        drop(child.stdout.take());
        let code = ends(&mut child);
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        if code == 130 {
            return;
        }
    }
    panic!("it was never interrupted");
}

/// P26: whichever command starts a server, by whichever way: a descriptor that taut was given by its parent does not
/// reach it.
// About Linux itself: descriptors, and what of them `/proc` tells.
#[test]
#[cfg(target_os = "linux")]
fn a_descriptor_that_taut_inherited_does_not_reach_a_server() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("inherited");
    std::fs::create_dir_all(&folder).unwrap();
    let secret = folder.join("secret-of-the-parent");
    std::fs::write(&secret, "").unwrap();
    for line in
        ["list", "bench --only start --rounds 1", "check --only rpc", "trace --quiet", "bridge"]
    {
        let seen = folder.join("seen");
        let _ = std::fs::remove_file(&seen);
        let script = format!("exec 9<{}; exec \"$@\"", secret.display());
        let server = format!(
            "ls -l /proc/$$/fd >>{}; exec {} serve",
            seen.display(),
            env!("CARGO_BIN_EXE_taut")
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_taut")]).args(line.split(' '));
        command.args(["--", "sh", "-c", &server]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        use std::io::Write as _;
        // What opens the server behind a bridge.
        let opening = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}\n";
        let _ = child.stdin.take().unwrap().write_all(opening);
        child.wait().unwrap();
        let seen = std::fs::read_to_string(&seen).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(
            seen.contains(" 0 -> ") && !seen.contains("secret-of-the-parent"),
            "{line}: {seen}"
        );
    }
}
