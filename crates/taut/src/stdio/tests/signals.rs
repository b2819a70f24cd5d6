//! SIGINT and SIGTERM, with a loop that obeys and one that cannot.

use std::os::unix::process::ExitStatusExt;

use rustix::process::{Signal, kill_process};

use super::*;

/// A role that has said that it waits. A shell ignores SIGINT for its background jobs, and so would
/// the role if the tests were one of them.
fn waiting(role: &str) -> (Actor, Tail) {
    let mut command = Command::new("env");
    command.arg("--default-signal=INT,TERM").arg(std::env::current_exe().unwrap());
    command.args(ARGS).env(ROLE, role);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut actor = Actor(command.spawn().unwrap());
    let mut wire = Tail::begun(actor.0.stdout.take().unwrap());
    assert_eq!(wire.line(), "waiting\n");
    (actor, wire)
}

#[test]
fn a_signal_is_told_to_the_loop_while_stdin_is_open() {
    for (signal, name) in [(Signal::INT, "SIGINT\n"), (Signal::TERM, "SIGTERM\n")] {
        let (actor, mut wire) = waiting("stoppable");
        kill_process(actor.pid(), signal).unwrap();
        assert_eq!(wire.line(), name);
        actor.ends_well();
    }
}

#[test]
fn s9_a_frozen_loop_is_ended_by_the_guard() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let (mut actor, mut wire) = waiting("frozen");
        kill_process(actor.pid(), signal).unwrap();
        assert_eq!(wire.line(), "told\n");
        assert_eq!(actor.exit().code(), Some(code));
        let said = Tail::of(actor.0.stderr.take().unwrap()).rest();
        assert!(said.contains("did not stop in time"), "{said:?}");
    }
}

/// The runtime is dropped in the ordinary way while the thread sits in its read.
#[test]
fn s9_a_parked_read_does_not_hold_the_process() {
    let (terminal, host) = terminal();
    let mut actor = start_with("stoppable", terminal, Stdio::piped(), Stdio::inherit());
    let mut wire = Tail::begun(actor.0.stdout.take().unwrap());
    assert_eq!(wire.line(), "waiting\n");
    kill_process(actor.pid(), Signal::TERM).unwrap();
    assert_eq!(wire.rest(), "SIGTERM\n");
    actor.ends_well();
    drop(host);
}

/// Claude Code sends SIGINT and 0.1 s later SIGTERM.
#[test]
fn a_second_signal_ends_the_process_at_once() {
    let (mut actor, mut wire) = waiting("frozen-for-an-hour");
    kill_process(actor.pid(), Signal::INT).unwrap();
    assert_eq!(wire.line(), "told\n");
    kill_process(actor.pid(), Signal::TERM).unwrap();
    assert_eq!(actor.exit().code(), Some(143));
}

/// The role also checks that fifty watches leave no thread and no descriptor behind.
#[test]
fn after_the_loop_a_signal_does_what_it_did_before() {
    for signal in [Signal::INT, Signal::TERM] {
        let (mut actor, _wire) = waiting("watched-before");
        kill_process(actor.pid(), signal).unwrap();
        assert_eq!(actor.exit().signal(), Some(signal.as_raw()));
    }
}

#[test]
fn after_the_loop_an_ignored_signal_is_ignored_again() {
    let mut shell = behind_shell("ignored-before", "trap '' INT;", "");
    let mut actor = Actor(shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    let mut wire = Tail::begun(actor.0.stdout.take().unwrap());
    assert_eq!(wire.line(), "waiting\n");
    kill_process(actor.pid(), Signal::INT).unwrap();
    assert_eq!(wire.rest(), "seen\n");
    actor.ends_well();
}

#[test]
fn after_the_loop_a_handler_of_the_program_is_alone_again() {
    let (actor, wire) = waiting("own-handler");
    kill_process(actor.pid(), Signal::TERM).unwrap();
    assert_eq!(wire.rest(), "seen\n");
    actor.ends_well();
}
