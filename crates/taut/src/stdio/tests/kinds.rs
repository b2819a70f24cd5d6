//! Every kind of descriptor a host may put at 0 and 1.

use std::fs::File;
use std::io::{Write, pipe};
use std::path::PathBuf;
use std::process::Stdio;

use rustix::fs::{OFlags, fcntl_getfl};

use super::*;

/// More than any pipe or socket holds, so that both directions have to wait.
fn payload() -> Vec<u8> {
    let line = b"the quick brown fox jumps over the lazy dog\n";
    line.iter().copied().cycle().take(2 << 20).collect()
}

fn echoes(tail: &mut Tail, driven: &str) {
    assert_eq!(tail.line().trim_end(), driven);
    let sent = payload();
    let back = tail.exactly(sent.len());
    assert!(back == sent.to_ascii_uppercase(), "the bytes are not the same");
}

#[test]
fn pipes_are_driven_by_readiness_and_keep_their_flags() {
    let (input, host) = pipe().unwrap();
    let (reader, output) = pipe().unwrap();
    let theirs = (input.try_clone().unwrap(), output.try_clone().unwrap());
    let actor = start("echo", input, output);
    let mut tail = Tail::begun(reader);
    feed(host, payload());
    echoes(&mut tail, "ready");
    assert!(!fcntl_getfl(&theirs.0).unwrap().contains(OFlags::NONBLOCK));
    assert!(!fcntl_getfl(&theirs.1).unwrap().contains(OFlags::NONBLOCK));
    drop(theirs);
    assert_eq!(tail.rest(), "");
    actor.ends_well();
}

/// W11
#[test]
fn pipes_of_one_page_lose_nothing() {
    let (input, host) = pipe().unwrap();
    let (reader, output) = pipe().unwrap();
    rustix::pipe::fcntl_setpipe_size(&host, 4096).unwrap();
    rustix::pipe::fcntl_setpipe_size(&reader, 4096).unwrap();
    let actor = start("echo", input, output);
    let mut tail = Tail::begun(reader);
    feed(host, payload());
    echoes(&mut tail, "ready");
    actor.ends_well();
}

#[test]
fn two_sockets_are_driven_by_readiness_and_keep_their_flags() {
    let (host, input) = socket_pair();
    let (reader, output) = socket_pair();
    let theirs = (input.try_clone().unwrap(), output.try_clone().unwrap());
    let actor = start("echo", input, output);
    let mut tail = Tail::begun(reader);
    feed(host, payload());
    echoes(&mut tail, "ready");
    assert!(!fcntl_getfl(&theirs.0).unwrap().contains(OFlags::NONBLOCK));
    assert!(!fcntl_getfl(&theirs.1).unwrap().contains(OFlags::NONBLOCK));
    drop(theirs);
    assert_eq!(tail.rest(), "");
    actor.ends_well();
}

#[test]
fn one_socket_may_be_both() {
    let (host, theirs) = socket_pair();
    let actor = start("echo", theirs.try_clone().unwrap(), theirs);
    let mut tail = Tail::begun(host.try_clone().unwrap());
    feed(host.try_clone().unwrap(), payload());
    echoes(&mut tail, "ready");
    host.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(tail.rest(), "");
    actor.ends_well();
}

/// A directory of its own for one test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("taut-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn named_fifos_are_driven_by_threads() {
    let place = Place::new("fifo");
    let open = |name: &str| {
        let path = place.join(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        // Read and write, which does not wait for the other side, and keeps the path openable.
        let both = File::options().read(true).write(true).open(&path).unwrap();
        let reader = File::open(&path).unwrap();
        let writer = File::options().write(true).open(&path).unwrap();
        drop(both);
        (reader, writer)
    };
    let (input, host) = open("in");
    let (reader, output) = open("out");
    let actor = start("echo", input, output);
    let mut tail = Tail::begun(reader);
    feed(host, payload());
    echoes(&mut tail, "thread");
    assert_eq!(tail.rest(), "");
    actor.ends_well();
}

#[test]
fn a_fifo_that_somebody_made_non_blocking_still_works() {
    let place = Place::new("fifo-nonblocking");
    let path = place.join("in");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let both = File::options().read(true).write(true).open(&path).unwrap();
    let input = File::open(&path).unwrap();
    rustix::fs::fcntl_setfl(&input, fcntl_getfl(&input).unwrap() | OFlags::NONBLOCK).unwrap();
    let mut actor = start("echo", input, Stdio::piped());
    let mut tail = Tail::begun(actor.0.stdout.take().unwrap());
    assert_eq!(tail.line(), "thread ready\n");
    (&both).write_all(b"hello\n").unwrap();
    assert_eq!(tail.line(), "HELLO\n");
    drop(both);
    assert_eq!(tail.rest(), "");
    actor.ends_well();
}

#[test]
fn files_are_driven_by_threads() {
    let place = Place::new("file");
    std::fs::write(place.join("in"), payload()).unwrap();
    let input = File::open(place.join("in")).unwrap();
    let actor = start("echo", input, File::create(place.join("out")).unwrap());
    actor.ends_well();
    let mut tail = Tail::begun(File::open(place.join("out")).unwrap());
    echoes(&mut tail, "thread");
    assert_eq!(tail.rest(), "");
}

#[test]
fn terminals_are_driven_by_threads() {
    let (terminal, mut host) = terminal();
    let actor = start("echo", terminal.try_clone().unwrap(), terminal);
    let mut tail = Tail::of(host.try_clone().unwrap());
    // A terminal turns each newline into two bytes on the way out.
    tail.until(b"--- the wire ---\r\n");
    tail.until(b"thread\r\n");
    host.write_all(b"hello\n").unwrap();
    tail.until(b"HELLO\r\n");
    // Control-D at the start of a line.
    host.write_all(&[4]).unwrap();
    actor.ends_well();
}

/// std opens the null device where a standard descriptor is missing at start.
#[test]
fn a_closed_stdin_is_an_end_of_input() {
    let child = behind_shell("echo", "", "<&-").stdout(Stdio::piped()).spawn().unwrap();
    let mut actor = Actor(child);
    Tail::begun(actor.0.stdout.take().unwrap()).rest();
    actor.ends_well();
}

#[test]
fn a_closed_stdout_does_no_harm() {
    let child = behind_shell("echo", "", ">&-").stdin(Stdio::null()).spawn().unwrap();
    Actor(child).ends_well();
}

#[test]
fn s8_a_closed_stderr_is_not_given_to_the_next_file() {
    let mut shell = behind_shell("opens-a-file", "", "2>&-");
    let mut actor = Actor(shell.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap());
    assert_eq!(Tail::begun(actor.0.stdout.take().unwrap()).rest(), "fine\n");
    actor.ends_well();
}
