//! stderr: drained, kept, passed on.

use std::sync::Mutex;

use super::*;

#[tokio::test]
async fn e1_a_flood_on_stderr_that_nobody_reads_blocks_nothing() {
    let flood = "head -c 10485760 /dev/zero | tr '\\0' x >&2; echo done; cat >/dev/null";
    let options = ChildOptions { tail_limit: 1000, ..ChildOptions::default() };
    let (child, mut stdout, _stdin) = Child::start(&sh(flood), options).await.unwrap();
    assert_eq!(lines(&mut stdout, 1).await, ["done"]);
    eventually_async("the tail is full", || child.tail() == "x".repeat(1000)).await;
}

/// E2. Bounded pieces are what keeps memory flat.
#[tokio::test]
async fn e2_a_line_without_end_comes_in_pieces() {
    let longest = Arc::new(Mutex::new((0, 0)));
    let seen = Arc::clone(&longest);
    let sink: LineSink = Arc::new(move |piece| {
        let mut seen = seen.lock().unwrap();
        *seen = (seen.0.max(piece.len()), seen.1 + piece.len());
    });
    let options = ChildOptions { on_stderr: Some(sink), ..ChildOptions::default() };
    let bar = "head -c 4194304 /dev/zero | tr '\\0' '\\r' >&2";
    let (child, _stdout, _stdin) = Child::start(&sh(bar), options).await.unwrap();
    in_time(child.exited()).await;
    let (longest, total) = *longest.lock().unwrap();
    assert!(longest <= 8 * 1024, "a piece of {longest} bytes");
    // A carriage return at the end of a piece counts as its line end.
    assert!(total > 4_190_000, "only {total} bytes came through");
}

#[tokio::test]
async fn e3_closing_stderr_early_is_harmless() {
    let (child, mut stdout, stdin) = start(sh("echo last >&2; exec 2>&-; read x; echo $x")).await;
    let mut stdin = stdin;
    write_all(&mut stdin, b"still here\n").await.unwrap();
    assert_eq!(lines(&mut stdout, 1).await, ["still here"]);
    assert_eq!(in_time(child.exited()).await.code, Some(0));
    assert_eq!(child.tail(), "last\n");
}

#[tokio::test]
async fn e4_the_end_of_stderr_is_there_when_the_end_is_reported() {
    let words = "w".repeat(1023) + "\n";
    let command = sh("printf '%s\\n' \"$WORDS\" >&2; exit 9").env("WORDS", words.trim_end());
    for _ in 0..500 {
        let (child, _stdout, _stdin) = start(command.clone()).await;
        assert_eq!(in_time(child.exited()).await.code, Some(9));
        assert_eq!(child.tail(), words);
    }
}

#[tokio::test]
async fn lines_reach_the_sink_whole_and_the_last_one_without_its_newline_too() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let copy = Arc::clone(&seen);
    let sink: LineSink = Arc::new(move |line| copy.lock().unwrap().push(line.to_owned()));
    let options = ChildOptions { on_stderr: Some(sink), ..ChildOptions::default() };
    let script = "printf 'one\\r\\n\\ntwo \\377\\nend' >&2";
    let (child, _stdout, _stdin) = Child::start(&sh(script), options).await.unwrap();
    in_time(child.exited()).await;
    assert_eq!(*seen.lock().unwrap(), ["one", "", "two \u{fffd}", "end"]);
    assert_eq!(child.tail(), "one\r\n\ntwo \u{fffd}\nend");
}

#[tokio::test]
async fn a_sink_that_panics_gets_no_more_lines_and_the_drain_goes_on() {
    let sink: LineSink = Arc::new(|line| assert!(line.is_empty(), "this panic is part of a test"));
    let options = ChildOptions { on_stderr: Some(sink), ..ChildOptions::default() };
    let script = "echo a >&2; echo b >&2; exit 4";
    let (child, _stdout, _stdin) = Child::start(&sh(script), options).await.unwrap();
    assert_eq!(in_time(child.exited()).await.code, Some(4));
    assert_eq!(child.tail(), "a\nb\n");
}
