//! A stderr that is in no state to be written to (E9, S7, S8).

use std::fs::File;
use std::io::{Write, pipe};
use std::time::Instant;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::*;

/// Lets the role talk to a stderr nobody reads; then reads it, and lets the role say one more line.
fn drops_and_counts(error: OwnedFd, reader: impl Read + Send + 'static) {
    let mut actor = start_with("talkative", Stdio::piped(), Stdio::piped(), error);
    let mut host = actor.0.stdin.take().unwrap();
    let mut wire = Tail::begun(actor.0.stdout.take().unwrap());
    assert_eq!(wire.line(), "full\n");
    let mut stderr = Tail::of(reader);
    assert!(stderr.line().starts_with("taut: line 0 x"));
    // Until there is room a line may be lost again; the one that gets through tells of them all.
    let mut seen = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    let told = loop {
        host.write_all(b"!").unwrap();
        assert_eq!(wire.line(), "said\n");
        seen.extend(stderr.so_far());
        let text = String::from_utf8_lossy(&seen);
        if let Some((told, _)) =
            text.split_once("back again (").and_then(|(_, t)| t.split_once(')'))
        {
            break told.to_owned();
        }
        assert!(Instant::now() < deadline, "nothing got through");
    };
    let lost: usize = told.split(' ').next().unwrap().parse().unwrap();
    assert!(lost > 100, "{lost} lines lost");
    drop(host);
    actor.ends_well();
}

#[test]
fn e9_a_full_pipe_at_stderr_stalls_nothing() {
    let (reader, error) = pipe().unwrap();
    drops_and_counts(error.into(), reader);
}

#[test]
fn e9_a_full_non_blocking_pipe_at_stderr_stalls_nothing() {
    let (reader, error) = pipe().unwrap();
    fcntl_setfl(&error, fcntl_getfl(&error).unwrap() | OFlags::NONBLOCK).unwrap();
    drops_and_counts(error.into(), reader);
}

#[test]
fn e9_a_full_socket_at_stderr_stalls_nothing() {
    let (reader, error) = socket_pair();
    drops_and_counts(error, reader);
}

/// S8.
#[test]
fn s7_a_stderr_whose_reader_is_gone_is_no_error() {
    for sockets in [false, true] {
        let error = if sockets { socket_pair().1 } else { pipe().unwrap().1.into() };
        let mut actor = start_with("talkative", Stdio::null(), Stdio::piped(), error);
        assert_eq!(Tail::begun(actor.0.stdout.take().unwrap()).rest(), "full\n");
        actor.ends_well();
    }
}

#[test]
fn a_log_file_at_stderr_gets_every_line() {
    let path = std::env::temp_dir().join(format!("taut-stderr-{}", std::process::id()));
    let error = File::create(&path).unwrap();
    let actor = start_with("talkative", Stdio::null(), Stdio::null(), error);
    actor.ends_well();
    let log = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(log.lines().count(), 3000);
}
