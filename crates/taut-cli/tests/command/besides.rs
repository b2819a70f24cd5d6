//! What works, and is told all the same: things that other clients are less patient with.

use super::*;

/// A line of `taut smoke` that is neither a success nor a failure.
fn aside(name: &str, text: &str) -> String {
    format!("  · {name:<10}  {text}\n")
}

#[track_caller]
fn smoke_says(role: &str, name: &str, text: &str) {
    let run = run("smoke", &server(&format!("2025-11-25 {role}"))).exits(0);
    assert!(run.out.contains(&aside(name, text)), "{role}: {}", run.out);
    assert!(run.out.contains("✓ it works: "), "{role}: {}", run.out);
}

#[test]
fn smoke_says_what_else_was_printed_on_stdout() {
    let banner = "38 lines that are no messages, the first: Welcome to the rude server!";
    smoke_says("banner", "stdout", banner);
    let told = run("smoke", &server("2025-11-25 banner")).exits(0);
    let verdict = told.out.lines().last().unwrap();
    assert!(verdict.contains("38 stray lines on stdout"), "{verdict}");
    let json = run("smoke --json", &server("2025-11-25 banner")).exits(0).json();
    assert_eq!(json["junk"]["lines"], 38);
    let quiet = run("smoke", &server("2025-11-25")).exits(0);
    assert_eq!(quiet.out.matches("·").count(), 1, "only that nothing was called: {}", quiet.out);
}

#[test]
fn smoke_says_which_answers_came_too_often() {
    smoke_says("twice", "answers", "it answered 4 requests twice, or too late");
    let strays = "it answered what nobody asked, 8 times; first the id 99999";
    smoke_says("unknown-id", "ids", strays);
}

#[test]
fn smoke_says_what_a_probe_has_cost_that_was_not_answered() {
    let run = run("smoke", &server("2025-11-25 swallow-probe")).exits(0);
    let line = "  · probe       server/discover was not answered, which cost 5.";
    assert!(run.out.contains(line), "{}", run.out);
    assert!(!run.out.contains("twice"), "{}", run.out);
}

/// An answer with another id is not an answer; which id it has is what helps.
#[test]
fn an_answer_with_another_id_is_told_with_that_id() {
    let never = "error: the server did not answer initialize within 3s, although it answered something \
                 that was never asked: the id is";
    for (command, role, id) in [
        ("list", "wrong-id", "99999\n"),
        ("smoke", "text-id", "\"2\", a string, and ours are numbers\n"),
    ] {
        let line = format!("{command} --start-timeout 3s");
        let run = run(&line, &server(&format!("2025-11-25 {role}"))).exits(4);
        assert!(run.err.starts_with(&format!("{never} {id}")), "{role}: {}", run.err);
    }
    let run = run("call stray --args {} --timeout 1s", &server("2025-11-25")).exits(6);
    let note = "an answer came that belongs to nothing: its id is \"never\", a string, and ours are \
                numbers\nerror: tools/call was not answered within 1s\n";
    assert!(run.err.starts_with(note), "{}", run.err);
}

/// The one thing to do stands beside the error, where it is known.
#[test]
fn what_to_try_fits_why_it_did_not_connect() {
    let silent = server("sleeper");
    let flush = "flush stdout after each message; in Python: print(…, flush=True)";
    let serve = "see that it serves stdio and flushes its output; it may still be downloading (npx, uvx, \
                 docker): install it first, or give it longer with --start-timeout; `taut doctor` shows more";
    let answer = "answer with the id of the request, and with its JSON type";
    for (server, next) in [
        (server("2025-11-25 no-flush"), flush),
        (silent, serve),
        (server("2025-11-25 wrong-id"), answer),
    ] {
        // On a busy machine a server may have no time to show what is wrong; not in one of three tries.
        let mut tries = (0..3).map(|_| run("list --start-timeout 2s", &server).exits(4).err);
        let hint = format!("  try: {next}\n");
        let said = tries.find(|said| said.ends_with(&hint));
        assert!(said.is_some(), "{next}: {}", run("list --start-timeout 2s", &server).err);
    }
}

/// A server that ends by itself did so before anybody asked it to, and that is no success. Whether it is
/// faster than the one who closes its stdin is not for us to say.
#[test]
fn smoke_does_not_praise_an_end_that_nobody_asked_for() {
    let run = run("smoke --call answer-and-exit", &server("2025-11-25")).exits(0);
    let ended = run.out.lines().find(|line| line.contains("ended ")).unwrap();
    let mark = if ended.contains("once its stdin was closed") { "  ✓ " } else { "  · " };
    assert!(ended.starts_with(mark), "{}", run.out);
}
