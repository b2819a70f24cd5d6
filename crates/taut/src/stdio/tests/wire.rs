//! Who can reach the wire, and who sees that it has ended.

use std::io::{Read, Write, pipe};
use std::net::Shutdown;
use std::process::Stdio;
use std::sync::mpsc;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::*;

#[test]
fn s13_s14_s15_s19_prints_and_children_reach_stderr_and_never_the_wire() {
    let (input, mut host) = pipe().unwrap();
    let mut actor = start_with("noise", input, Stdio::piped(), Stdio::piped());
    let stderr = Tail::of(actor.0.stderr.take().unwrap());
    let wire = Tail::begun(actor.0.stdout.take().unwrap());
    host.write_all(b"pure\n").unwrap();
    drop(host);
    assert_eq!(wire.rest(), "pure\n");
    actor.ends_well();
    let said = stderr.rest();
    for words in ["printed\n", "written\n", "from a child\n", "printed later\n"] {
        assert!(said.contains(words), "{words:?} is missing in {said:?}");
    }
}

#[test]
fn s13_a_stderr_that_is_the_wire_is_silenced() {
    let mut shell = behind_shell("noise", "", "2>&1");
    let child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut actor = Actor(child);
    let wire = Tail::begun(actor.0.stdout.take().unwrap());
    actor.0.stdin.take().unwrap().write_all(b"pure\n").unwrap();
    assert_eq!(wire.rest(), "pure\n");
    actor.ends_well();
}

fn outlived(input: OwnedFd, mut host: impl Write + Send + 'static, wire: (Tail, OwnedFd)) {
    let (mut wire, output) = wire;
    let actor = start_with("outlived", input, output, Stdio::null());
    wire.until(MARK);
    let pid = wire.line().trim().parse().ok().and_then(Pid::from_raw).unwrap();
    assert_eq!(wire.rest(), "");
    actor.ends_well();
    assert!(in_time(move || host.write_all(b"anybody?").is_err()), "nobody has stdin");
    assert_eq!(test_kill_process(pid), Ok(()), "the child is alive, or this proves nothing");
    kill_process(pid, Signal::KILL).unwrap();
}

#[test]
fn s16_a_child_that_outlives_us_does_not_hold_the_wire() {
    let (input, host) = pipe().unwrap();
    let (reader, output) = pipe().unwrap();
    outlived(input.into(), host, (Tail::of(reader), output.into()));
    // Sockets are not reopened: here it is the claimed descriptors themselves that must not leak.
    let (host, input) = socket_pair();
    let (reader, output) = socket_pair();
    outlived(input, host, (Tail::of(reader), output));
}

#[test]
fn s17_a_second_claim_is_refused_with_advice() {
    let mut actor = start("twice", Stdio::null(), Stdio::piped());
    let said = Tail::begun(actor.0.stdout.take().unwrap()).rest();
    assert!(said.contains("already carry") && said.contains("of its own"), "{said:?}");
    actor.ends_well();
}

#[test]
fn without_a_runtime_the_wire_is_refused_and_stays_unused() {
    let mut actor = start("no-runtime", Stdio::null(), Stdio::piped());
    assert_eq!(Tail::begun(actor.0.stdout.take().unwrap()).rest(), "thread ready\n");
    actor.ends_well();
}

/// A host that reads one line, then, if the pipe is to be full, nothing, and then goes away. Its
/// own end of our input stays open and idle throughout.
fn goes_away(
    role: &str,
    (input, mut host): (OwnedFd, impl Write),
    (mut reader, output): (impl Read + Send, OwnedFd),
) {
    let mut actor = start_with(role, input, output, Stdio::piped());
    host.write_all(b"hello\n").unwrap();
    read_until(&mut reader, b"waiting\n");
    if role == "stalled-until-gone" {
        Tail::of(actor.0.stderr.take().unwrap()).until(b"stalled\n");
    }
    drop(reader);
    actor.ends_well();
}

/// Step 10 of a byte's journey: watched, not found out by writing.
#[test]
fn a_reader_that_goes_away_is_noticed_on_a_pipe() {
    for role in ["until-gone", "stalled-until-gone"] {
        let (input, host) = pipe().unwrap();
        let (reader, output) = pipe().unwrap();
        goes_away(role, (input.into(), host), (reader, output.into()));
    }
}

#[test]
fn a_reader_that_goes_away_is_noticed_on_a_socket() {
    for role in ["until-gone", "stalled-until-gone"] {
        let (host, input) = socket_pair();
        goes_away(role, (input, host), socket_pair());
    }
}

#[test]
fn a_host_that_only_ends_its_input_on_a_shared_socket_is_not_gone() {
    let (mut host, theirs) = socket_pair();
    let actor = start("half-closed", theirs.try_clone().unwrap(), theirs);
    read_until(&mut host, b"waiting\n");
    host.shutdown(Shutdown::Write).unwrap();
    read_until(&mut host, b"still here\n");
    drop(host);
    actor.ends_well();
}

/// The host reset the socket: it closed it with bytes of ours unread.
#[test]
fn s3_a_reset_socket_ends_the_input() {
    let (mut host, theirs) = socket_pair();
    let actor = start("echo", theirs.try_clone().unwrap(), theirs);
    read_until(&mut host, MARK);
    let unread = PollFlags::IN;
    let timeout = Timespec::try_from(PATIENCE).unwrap();
    assert_eq!(poll(&mut [PollFd::new(&host, unread)], Some(&timeout)), Ok(1));
    drop(host);
    actor.ends_well();
}

#[test]
fn s6_a_write_to_nobody_is_an_error_and_no_death() {
    for sockets in [false, true] {
        let (input, host) = pipe().unwrap();
        let actor = if sockets {
            let (mut reader, output) = socket_pair();
            let actor = start("broken-pipe", input, output);
            read_until(&mut reader, b"waiting\n");
            actor
        } else {
            let (mut reader, output) = pipe().unwrap();
            let actor = start("broken-pipe", input, output);
            read_until(&mut reader, b"waiting\n");
            actor
        };
        drop(host);
        actor.ends_well();
    }
}

/// Byte by byte, so that nothing behind `end` is consumed.
fn read_until(from: &mut (impl Read + Send), end: &[u8]) {
    std::thread::scope(|scope| {
        let (done, result) = mpsc::channel();
        scope.spawn(move || {
            let mut seen = Vec::new();
            let mut byte = [0];
            while !seen.ends_with(end) && matches!(from.read(&mut byte), Ok(1)) {
                seen.push(byte[0]);
            }
            let _ = done.send(seen);
        });
        let seen = result.recv_timeout(PATIENCE).unwrap_or_else(|_| std::process::abort());
        assert!(seen.ends_with(end), "{:?}", String::from_utf8_lossy(&seen));
    });
}
