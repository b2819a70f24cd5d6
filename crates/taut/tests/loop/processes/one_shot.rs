//! A hundred calls piped in, the pipe closed, every answer wanted.

use std::fs::File;
use std::io::{Read, Write};
use std::process::Stdio;

use serde_json::{Value, json};
use taut::wire::{Decoder, Frame, Framing, Limits};

use crate::memory::request;
use crate::process::{Scratch, Server, example, sockets};

/// The calls, some of which take their time.
fn calls(framing: Framing) -> String {
    let messages = (0..100).map(|n| match n % 4 {
        0 => request(n, "sleep", &json!([n * 2])),
        _ => request(n, "echo", &json!(["é", n])),
    });
    messages
        .map(|message| match framing {
            Framing::Headers => format!("Content-Length: {}\r\n\r\n{message}", message.len()),
            _ => format!("{message}\n"),
        })
        .collect()
}

/// Each is answered once, in the framing of the question.
fn check(answers: &[u8], framing: Framing) {
    let mut decoder = Decoder::new(Limits::default());
    decoder.push(answers);
    decoder.finish();
    let mut seen = [false; 100];
    while let Some(frame) = decoder.poll_frame() {
        let Frame::Message { bytes, framing: found, .. } = frame else { panic!("{frame:?}") };
        assert_eq!(found, framing);
        let answer: Value = serde_json::from_slice(bytes).unwrap();
        let id = answer["id"].as_u64().unwrap();
        let wanted = if id.is_multiple_of(4) { json!(id * 2) } else { json!(["é", id]) };
        assert_eq!(answer["result"], wanted);
        assert!(!std::mem::replace(&mut seen[id as usize], true), "{id} twice");
    }
    assert_eq!(seen, [true; 100], "every call is answered");
}

const FRAMINGS: [Framing; 2] = [Framing::Lines, Framing::Headers];

fn through(mut server: Server, framing: Framing) {
    server.send(calls(framing));
    server.to = None;
    check(server.rest().as_bytes(), framing);
    server.ends_well();
}

#[test]
fn s4_a_hundred_calls_through_pipes_are_all_answered() {
    for framing in FRAMINGS {
        through(Server::start(example()), framing);
    }
}

/// STD-29.
#[test]
fn s4_a_hundred_calls_through_sockets_are_all_answered() {
    for framing in FRAMINGS {
        let ((stdin, to), (stdout, from)) = (sockets(), sockets());
        through(Server::over(example(), stdin, stdout, to, from), framing);
    }
}

/// STD-29.
#[test]
fn s4_a_hundred_calls_through_named_fifos_are_all_answered() {
    for framing in FRAMINGS {
        let scratch = Scratch::new();
        let ((stdin, to), (from, stdout)) = (scratch.fifo("in"), scratch.fifo("out"));
        through(Server::over(example(), stdin.into(), stdout.into(), to, from), framing);
    }
}

#[test]
fn s4_a_hundred_calls_from_a_file_are_all_answered_into_a_file() {
    for framing in FRAMINGS {
        let scratch = Scratch::new();
        std::fs::write(scratch.path("in"), calls(framing)).unwrap();
        let mut command = example();
        command.stdin(File::open(scratch.path("in")).unwrap());
        command.stdout(File::create(scratch.path("out")).unwrap());
        assert!(command.status().unwrap().success());
        let mut answers = Vec::new();
        File::open(scratch.path("out")).unwrap().read_to_end(&mut answers).unwrap();
        check(&answers, framing);
    }
}

/// S4 as it was reported: mixed delays, closed at once, again and again.
#[test]
fn s4_fifty_runs_with_mixed_delays_lose_nothing() {
    for run in 0..50 {
        let mut server = Server::start(example());
        let all: String =
            (0..100).map(|n| request(n, "sleep", &json!([(n * 7 + run) % 201])) + "\n").collect();
        server.send(all);
        server.to = None;
        assert_eq!(server.rest().lines().count(), 100, "run {run}");
        server.ends_well();
    }
}

/// S10: what is ready leaves, with nothing behind it to push it out.
#[test]
fn s10_each_answer_comes_while_the_input_stays_open() {
    let mut server = Server::start(example());
    for n in 0..100 {
        let answer = server.ask(&request(n, "echo", &json!([n])));
        assert_eq!(answer["result"][0], n);
    }
}

/// S20, S2: a server with nothing to do waits, and costs nothing.
#[test]
fn s2_s20_an_idle_server_stays_and_uses_no_time() {
    let mut server = Server::start(example());
    server.ask(&request(1, "echo", &json!([1])));
    let before = server.cpu();
    assert_eq!(server.ends_within(std::time::Duration::from_secs(1)), None, "it stays");
    assert!((server.cpu() - before).as_millis() <= 50, "{:?}", server.cpu() - before);
    assert_eq!(server.ask(&request(2, "echo", &json!([2])))["id"], 2);
    // Then at the end of input, with something left to do.
    server.send(request(3, "sleep", &json!([1000])) + "\n");
    server.to = None;
    let before = server.cpu();
    assert_eq!(server.value()["id"], 3);
    assert!((server.cpu() - before).as_millis() <= 50, "{:?}", server.cpu() - before);
    server.ends_well();
}

/// S18: what cannot be served says so where people look, never on the wire.
#[test]
fn s18_a_closed_stdin_is_an_end_and_a_closed_stdout_no_panic() {
    let mut command = example();
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty());
    let mut closed = std::process::Command::new("sh");
    closed.arg("-c").arg("exec \"$0\" >&- 2>&-").arg(example().get_program());
    let mut child = closed.stdin(Stdio::piped()).spawn().unwrap();
    let _ =
        child.stdin.take().unwrap().write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}\n");
    assert!(child.wait().unwrap().success());
}

/// W6: the bytes do not depend on the locale.
#[test]
fn w6_the_locale_changes_nothing() {
    let mut outputs = ["C", "POSIX", "de_DE.ISO-8859-1"].map(|locale| {
        let mut command = example();
        command.env("LC_ALL", locale).env("LANG", locale);
        let mut server = Server::start(command);
        server.send(request(1, "echo", &json!(["é漢"])) + "\n");
        server.to = None;
        server.rest()
    });
    outputs.sort();
    assert_eq!(outputs[0], outputs[2]);
    assert!(outputs[0].contains("é漢"), "{}", outputs[0]);
}

/// S3: a hang-up on a socket is an error there, and an end all the same.
#[test]
fn s3_a_socket_that_is_reset_is_the_end_of_input() {
    let ((stdin, mut to), (stdout, from)) = (sockets(), sockets());
    let mut server = Server::over(example(), stdin, stdout, std::io::sink(), from);
    to.write_all((request(1, "echo", &json!([1])) + "\n").as_bytes()).unwrap();
    assert_eq!(server.value()["id"], 1);
    // Closed for both directions with bytes unread at the other end: the kernel says reset.
    to.write_all(b"{").unwrap();
    to.shutdown(std::net::Shutdown::Both).unwrap();
    drop(to);
    assert!(server.ends_within(crate::PATIENCE).expect("it lives on").success());
}

/// A message that does not fit widens the pipes that it went through, unless somebody has chosen their
/// width; and it arrives either way.
#[test]
fn a_long_message_widens_its_pipes_but_not_those_of_a_chosen_width() {
    use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
    for chosen in [None, Some(4 << 10)] {
        let (stdin, to) = std::io::pipe().unwrap();
        let (from, stdout) = std::io::pipe().unwrap();
        let usual = fcntl_getpipe_size(&to).unwrap();
        let ends = (to.try_clone().unwrap(), from.try_clone().unwrap());
        if let Some(width) = chosen {
            fcntl_setpipe_size(&ends.0, width).unwrap();
            fcntl_setpipe_size(&ends.1, width).unwrap();
        }
        let mut server = Server::over(example(), stdin.into(), stdout.into(), to, from);
        let text = "x".repeat(1 << 20);
        assert_eq!(server.ask(&request(1, "echo", &json!([text])))["result"][0], text);
        assert_eq!(server.ask(&request(2, "echo", &json!([2])))["result"][0], 2);
        let widths = (fcntl_getpipe_size(&ends.0).unwrap(), fcntl_getpipe_size(&ends.1).unwrap());
        match chosen {
            None => assert!(widths.0 > usual && widths.1 > usual, "{widths:?}"),
            Some(width) => assert_eq!(widths, (width, width)),
        }
        drop(ends);
        server.to = None;
        server.ends_well();
    }
}
