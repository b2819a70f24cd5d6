//! Long messages under a limit on memory, and how much of it one takes. Issue 19, A5.

use std::io::{BufRead as _, BufReader};
use std::process::Child;

use super::*;

/// The demo server behind a pipe, in a shell that may set limits before.
fn serve(before: &str) -> Child {
    let line = format!("{before} exec \"$0\" serve");
    let mut command = Command::new("sh");
    isolate(command.args(["-c", &line, env!("CARGO_BIN_EXE_taut")]));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn echo(id: usize, bytes: usize) -> Vec<u8> {
    let text = "x".repeat(bytes);
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{text}"}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
    .into_bytes()
}

/// Sends from a thread, because answers may be longer than a pipe.
fn sends(
    child: &mut Child,
    messages: Vec<Vec<u8>>,
) -> std::thread::JoinHandle<std::process::ChildStdin> {
    let mut stdin = child.stdin.take().unwrap();
    std::thread::spawn(move || {
        for message in messages {
            let _ = stdin.write_all(&message).and_then(|()| stdin.write_all(b"\n"));
        }
        stdin
    })
}

#[test]
fn a_message_that_memory_has_no_room_for_is_refused_and_the_next_is_served() {
    let mut child = serve("ulimit -v 200000;");
    let sender = sends(&mut child, vec![echo(1, 10), echo(2, 60 << 20), echo(3, 10)]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || {
        let line =
            lines.next().unwrap_or_else(|| panic!("it ended: {:?}", child.try_wait())).unwrap();
        serde_json::from_str::<Value>(&line).unwrap()
    };
    assert_eq!(next()["result"]["content"][0]["text"], "xxxxxxxxxx");
    let refused = next();
    assert_eq!(refused["id"], 2);
    let words = refused["error"]["message"].as_str().unwrap();
    assert!(words.contains("memory"), "{refused}");
    assert_eq!(next()["id"], 3);
    drop(sender.join().unwrap());
    assert!(child.wait().unwrap().success());
}

/// Peak of resident memory, in KiB.
fn peak(child: &Child) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// What it takes before the long one is that of the program, which is large where it is not optimized. One at a
/// time: what several take together depends on how quickly the client reads.
#[test]
fn a_long_echo_after_shorter_ones_takes_less_than_four_times_its_length() {
    const LONG: usize = 16 << 20;
    let mut child = serve("");
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut turn = |id: usize, bytes: usize| {
        let sender = sends(&mut child, vec![echo(id, bytes)]);
        let mut line = Vec::new();
        reader.read_until(b'\n', &mut line).unwrap();
        assert!(line.len() > bytes);
        child.stdin = Some(sender.join().unwrap());
        peak(&child)
    };
    let base = turn(0, 10);
    for id in 1..6 {
        turn(id, 1 << 20);
    }
    let took = (6..9).map(|id| turn(id, LONG)).max().unwrap() - base;
    assert!(took < 4 * LONG / 1024, "{took} KiB for {} KiB", LONG / 1024);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}
