//! What a server leaves behind outside of its session: ended with the command, or spared where somebody wants that
//! (decision 0023).
//!
//! About Linux itself: elsewhere nothing is adopted.

use std::io::{BufRead as _, BufReader, Write as _};

use super::*;

const SAYS_HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;

/// A word that only one sleep of one test has.
fn sleep(number: u32) -> String {
    format!("{number}00{}", std::process::id())
}

fn sleeping(sleep: &str) -> Vec<u32> {
    processes_with(&format!("^sleep\0{sleep}\0"))
}

fn kill(pids: &[u32]) {
    for pid in pids {
        let pid = rustix::process::Pid::from_raw(i32::try_from(*pid).unwrap()).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// With and without a second fork, as daemons are started.
fn daemons(sleep: &str) -> String {
    let null = "</dev/null >/dev/null 2>&1";
    format!("(setsid sleep {sleep} {null} &); setsid sleep {sleep} {null} &")
}

/// Waits until so many of them sleep.
fn started(sleep: &str, many: usize) {
    eventually("the daemons sleep", || sleeping(sleep).len() == many);
}

/// P30
#[test]
fn what_has_left_its_session_ends_with_the_command() {
    let lines =
        ["list", "smoke", "call add a=1 b=2", "watch --max-time 1s", "shell", "doctor", "check"];
    for (number, line) in (1_u32..).zip(lines) {
        let sleep = sleep(number);
        let script = format!("{} exec taut serve", daemons(&sleep));
        let server = ["sh", "-c", &script].map(str::to_owned);
        let stdin = if line == "shell" { "list\n" } else { "" };
        let run = run_with(line, &server, stdin);
        let left = sleeping(&sleep);
        kill(&left);
        assert!(left.is_empty(), "{line}: {left:?}: {}", run.err);
    }
}

/// A bridge and a trace, as a host has them: ended by the end of their input.
/// P30
#[test]
fn what_has_left_its_session_ends_with_a_bridge_and_a_trace() {
    for (number, command) in [(11, "bridge"), (12, "trace")] {
        let sleep = sleep(number);
        let script = format!("{} exec taut serve", daemons(&sleep));
        let mut child = taut([command, "--", "sh", "-c", &script]);
        let mut child = child.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        writeln!(stdin, "{SAYS_HELLO}").unwrap();
        let mut answer = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut answer).unwrap();
        assert!(answer.contains("protocolVersion"), "{command}: {answer}");
        started(&sleep, 2);
        drop(stdin);
        child.wait().unwrap();
        let left = sleeping(&sleep);
        kill(&left);
        assert!(left.is_empty(), "{command}: {left:?}");
    }
}

/// A server dies, and the bridge starts the next one: what the first has left does not pile up, and what belongs to the
/// second is left alone. No zombie stays either.
#[test]
fn a_bridge_ends_what_a_dead_server_has_left_while_it_goes_on() {
    let (first, second) = (sleep(21), sleep(22));
    let mark = temporary().join("died-once");
    let _ = std::fs::remove_file(&mark);
    let script = format!(
        // What a shell starts beside itself has no stdin unless it is given one.
        "if [ -e '{0}' ]; then {1} exec taut serve; fi; \
         : > '{0}'; exec 3<&0; {2} taut serve <&3 & sleep 1; kill $!",
        mark.display(),
        daemons(&second),
        daemons(&first),
    );
    let mut child =
        taut(["bridge", "--", "sh", "-c", &script]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{SAYS_HELLO}").unwrap();
    started(&second, 2);
    eventually("what the first has left is ended", || sleeping(&first).is_empty());
    eventually("no zombie is left", || {
        let children = format!("/proc/{0}/task/{0}/children", child.id());
        let children = std::fs::read_to_string(children).unwrap();
        !children.split_whitespace().any(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.contains(") Z ")
        })
    });
    assert_eq!(sleeping(&second).len(), 2);
    drop(stdin);
    child.wait().unwrap();
    assert!(sleeping(&second).is_empty());
}

/// What hosts and users share says so, whoever starts it.
/// P30
#[test]
fn what_is_to_live_on_does() {
    let (kept, ended) = (sleep(31), sleep(32));
    let script = format!(
        "export TAUT_LEAVE_RUNNING=1; {} unset TAUT_LEAVE_RUNNING; {} exec taut serve",
        daemons(&kept),
        daemons(&ended),
    );
    let server = ["sh", "-c", &script].map(str::to_owned);
    // The doctor starts it more than once.
    for (line, starts) in [("list", 1), ("doctor", 2)] {
        run(line, &server).exits(0);
        let (left, others) = (sleeping(&kept), sleeping(&ended));
        kill(&left);
        kill(&others);
        assert_eq!((left.len(), others.len()), (2 * starts, 0), "{line}");
    }
    // Of the whole server; the server itself ends all the same.
    let kept = sleep(33);
    let script = format!("{} exec taut serve", daemons(&kept));
    let server = ["sh", "-c", &script].map(str::to_owned);
    run("list --env TAUT_LEAVE_RUNNING=1", &server).exits(0);
    let left = processes_with(&kept);
    kill(&left);
    assert_eq!(left.len(), 2, "{left:?}");
}
