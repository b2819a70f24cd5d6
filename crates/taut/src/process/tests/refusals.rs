//! Programs that cannot be started, or die at once: each says why in its own words.

use std::collections::BTreeSet;

use super::*;

async fn refusal(command: Command) -> SpawnError {
    let started = Instant::now();
    let error =
        in_time(Child::start(&command, ChildOptions::default())).await.map(|_| ()).unwrap_err();
    // P18: a refusal comes at once; the bound is far above what it takes.
    assert!(started.elapsed() < ms(5_000), "{error}");
    error
}

async fn not_found(command: Command) -> (Vec<std::path::PathBuf>, NotFoundHint) {
    match refusal(command).await {
        SpawnError::NotFound { searched, hint, .. } => (searched, hint),
        other => panic!("{other}"),
    }
}

/// P17: the system says "no such file" to four of these.
#[tokio::test]
async fn p17_p18_every_reason_has_its_own_words() {
    let dir = Dir::new("reasons");
    let plain = dir.file("plain", b"#!/bin/sh\n", 0o644);
    let script = dir.file("script", b"#! /no/such/interpreter -x\n", 0o755);
    let crlf = dir.file("crlf", b"#!/bin/sh\r\necho\r\n", 0o755);
    let missing = dir.0.join("missing");

    let mut texts = BTreeSet::new();
    let cases = [
        (Command::new("taut-no-such-program"), "not found"),
        (Command::new(&missing), "check the path"),
        (Command::new(&plain), "chmod +x"),
        (Command::new(&dir.0), "is a directory"),
        (Command::new(&script), "\"/no/such/interpreter\", which does not exist"),
        (Command::new(&crlf), "Unix line ends"),
        (Command::new("true").current_dir(&missing), "to start the program in does not exist"),
        (Command::new("true").arg("a\0b"), "could not start \"true\""),
        (Command::new("true").env("A=B", "x"), "name of an environment variable"),
        (Command::new(""), "program \"\" not found"),
    ];
    let count = cases.len();
    for (command, expected) in cases {
        let text = refusal(command).await.to_string();
        assert!(text.contains(expected), "{text:?} lacks {expected:?}");
        assert!(!text.ends_with('.') && !text.starts_with(char::is_uppercase), "{text}");
        texts.insert(text);
    }
    assert_eq!(texts.len(), count);
}

#[tokio::test]
async fn p17_a_script_names_the_interpreter_it_asks_for() {
    let dir = Dir::new("interpreter");
    let script = dir.file("s", b"#!\t/no/such/python3 -u\nprint()\n", 0o755);
    match refusal(Command::new(&script)).await {
        SpawnError::BadInterpreter { path, interpreter } => {
            assert_eq!((path, interpreter.as_path()), (script, Path::new("/no/such/python3")));
        }
        other => panic!("{other}"),
    }
}

/// A glibc binary on a musl system, in effect.
#[tokio::test]
async fn p17_a_binary_without_its_loader_is_told_apart_from_a_missing_one() {
    let dir = Dir::new("loader");
    let mut binary = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let at = memchr::memmem::find(&binary, b"/ld-linux").expect("a dynamic test binary");
    binary[at..at + 9].copy_from_slice(b"/no-linux");
    let path = dir.file("binary", &binary, 0o755);
    assert!(matches!(refusal(Command::new(path)).await, SpawnError::MissingLoader { .. }));
}

#[tokio::test]
async fn p17_ways_to_die_are_told_apart() {
    for (script, text, last) in [
        ("echo no config >&2; exit 42", "exited with code 42", "no config\n"),
        ("kill -SEGV $$", "was killed by signal 11 (SIGSEGV)", ""),
        ("kill -KILL $$", "was killed by signal 9 (SIGKILL)", ""),
    ] {
        let (child, _stdout, _stdin) = start(sh(script)).await;
        let exit = ExitStatus { core_dumped: false, ..in_time(child.exited()).await };
        assert_eq!((exit.to_string().as_str(), child.tail().as_str()), (text, last));
    }
}

#[tokio::test]
async fn w4_a_program_that_is_not_found_says_where_it_was_looked_for() {
    let name = "taut-no-such-program";
    let (searched, hint) = not_found(Command::new(name).env("PATH", "/a:/b")).await;
    assert_eq!((searched, hint), (vec!["/a".into(), "/b".into()], NotFoundHint::NotOnPath));
    let text = refusal(Command::new(name).env("PATH", "/a:/b")).await.to_string();
    assert!(text.contains("looked in /a, /b; install it"), "{text}");
}

#[tokio::test]
async fn w4_the_likely_mistake_is_named() {
    let spaces = Command::new("npx -y some-server");
    assert_eq!(not_found(spaces).await.1, NotFoundHint::Spaces);
    let no_path = Command::new("taut-no-such-program").clear_env();
    assert_eq!(not_found(no_path).await.1, NotFoundHint::NoPath);
    let elsewhere = Command::new("sh").env("PATH", "/nowhere");
    assert!(
        matches!(not_found(elsewhere).await.1, NotFoundHint::OnOurPath(dir) if dir.is_absolute())
    );
    let given = Command::new("./taut-no-such-program").current_dir("/tmp");
    let (searched, hint) = not_found(given).await;
    assert_eq!(
        (searched, hint),
        (vec!["/tmp/./taut-no-such-program".into()], NotFoundHint::GivenPath)
    );
}

#[tokio::test]
async fn one_that_may_not_be_executed_hides_nothing_behind_it() {
    let (one, two) = (Dir::new("path-one"), Dir::new("path-two"));
    one.file("taut-twice", b"#!/bin/sh\n", 0o644);
    two.file("taut-twice", b"#!/bin/sh\nexit 6\n", 0o755);
    let path = format!("{}:{}", one.0.display(), two.0.display());
    let (child, _stdout, _stdin) = start(Command::new("taut-twice").env("PATH", path)).await;
    assert_eq!(in_time(child.exited()).await.code, Some(6));
}
