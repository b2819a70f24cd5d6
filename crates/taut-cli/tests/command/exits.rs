//! Every exit code, what is said with it, and pipes that are closed early.

use std::io::Read as _;

use serde_json::json;

use super::*;

/// T5.
#[test]
fn exit_0_it_worked() {
    demo("call echo text=x").exits(0);
}

/// T5.
#[test]
fn exit_1_the_tool_reported_failure() {
    let run = demo("call fail reason=rain").exits(1);
    assert_eq!(
        (run.out.as_str(), run.err.as_str()),
        ("rain\n", "the tool fail reported failure\n")
    );
    assert_eq!(demo("call fail --json").exits(1).json()["isError"], true);
}

/// S18, T5.
#[test]
fn exit_2_the_command_line_is_wrong() {
    for line in ["", "nonsense", "list", "call", "list things", "smoke --timeout never"] {
        let run = run(line, &[]).exits(2);
        assert!(run.err.contains("Usage") || run.err.contains("error"), "{line}: {}", run.err);
        assert_eq!(run.out, "", "{line}");
    }
    for command in ["list", "doctor"] {
        let run = run(&format!("{command} npx some-server"), &[]).exits(2);
        assert!(run.err.contains(&format!("taut {command} -- npx some-server")), "{}", run.err);
    }
    for line in ["smoke --timeout never", "smoke -all", "completions", "man --nonsense"] {
        let run = run(line, &[]).exits(2);
        assert!(!run.err.contains("two dashes"), "{line}: {}", run.err);
    }
    let run = demo("call add a=2 b=x c=1").exits(2);
    assert_eq!(
        run.err,
        "error: the arguments do not fit the tool add\n  b must be a number, not \"x\"\n  there is no \
         argument c\nit takes:\n  a: number  The first number.\n  b: number  The second number.\n  \
         try: taut call add a=… b=… -- …\n"
    );
    assert!(demo("call ehco text=x").exits(2).err.contains("did you mean echo?"));
    assert!(demo("call echo --args [1]").exits(2).err.contains("it is an array"));
    assert!(demo("call echo --args {").exits(2).err.contains("--args must be a JSON object"));
    assert!(demo("call echo --args @/nowhere").exits(2).err.contains("reading /nowhere"));
    let json = demo("call add --json").exits(2).json();
    assert_eq!(json["error"]["kind"], "usage");
}

/// T5.
#[test]
fn exit_3_the_server_refused() {
    let run = demo("call nope --args {}").exits(3);
    assert!(run.err.contains("tools/call was refused"), "{}", run.err);
    assert!(run.err.contains("try:"), "{}", run.err);
    let run = demo("call sample prompt=x").exits(3);
    assert!(run.err.contains("try: answer what it asks"), "{}", run.err);
    let json = demo("read demo://nope --json").exits(3).json();
    assert_eq!((&json["exit"], &json["error"]["code"]), (&json!(3), &json!(-32602)));
    run_no_prompts();
}

fn run_no_prompts() {
    let run = run("prompt x", &server("2025-11-25")).exits(3);
    assert!(run.err.contains("offers no prompts"), "{}", run.err);
}

/// T5, T20.
#[test]
fn exit_4_no_connection() {
    let run = run("list", &["no-such-server".to_owned()]).exits(4);
    assert!(
        run.err.starts_with("error: the program \"no-such-server\" was not found"),
        "{}",
        run.err
    );
    let run = super::run("list", &server("2025-11-25 exit-on-initialize")).exits(4);
    assert!(run.err.contains("exited with code 42"), "{}", run.err);
    assert!(run.err.contains("\n  cannot open the database\n  try: "), "{}", run.err);
    super::run("list --start-timeout 300ms", &server("sleeper")).exits(4);
    super::run("list --revision 2026-07-28", &server("2025-11-25")).exits(4);
}

/// A server whose tool promises an integer and answers with a word.
fn liar() -> Vec<String> {
    let promise = json!({ "type": "object", "properties": { "sum": { "type": "integer" } } });
    answering(&json!({
        "tools/list": { "tools": [{ "name": "sum", "inputSchema": { "type": "object" },
            "annotations": { "readOnlyHint": true }, "outputSchema": promise }] },
        "tools/call": { "content": [{ "type": "text", "text": "five" }],
            "structuredContent": { "sum": "5" } },
    }))
}

/// TOL-13: what it said is shown, and so is what is wrong with it.
#[test]
fn exit_5_the_answer_is_not_what_the_tool_promised() {
    let why = "the answer of sum does not fit the tool's own schema: /sum must be an integer, is a string";
    let run = run("call sum --revision 2025-11-25", &liar()).exits(5);
    assert_eq!((run.out.as_str(), run.err.trim_end()), ("five\n", why));
    let run = super::run("smoke --call sum --revision 2025-11-25", &liar()).exits(5);
    assert!(run.out.contains(why) || run.err.contains(why), "{}{}", run.out, run.err);
}

/// T5.
#[test]
fn exit_5_the_server_broke_the_protocol_or_went_away() {
    let run = run("list tools", &server("2025-11-25 circular")).exits(5);
    assert!(run.err.contains("its list never ends"), "{}", run.err);
    let run = super::run("call die --args {}", &server("2025-11-25")).exits(5);
    let how = if cfg!(windows) { "exited with code" } else { "SIGABRT" };
    assert!(run.err.contains(how) && run.err.contains("about to die"), "{}", run.err);
}

/// T5, T20.
#[test]
fn exit_6_a_request_timed_out() {
    let run = run("call never --args {} --timeout 200ms", &server("2025-11-25 log-stdin")).exits(6);
    // On a busy machine a line before it says that the server is not ready yet.
    assert!(run.err.contains("error: tools/call was not answered within 200ms"), "{}", run.err);
    assert!(run.err.contains("the server's stderr ended with:"), "{}", run.err);
    assert!(run.err.contains("try: give it longer with --timeout"), "{}", run.err);
}

/// `| head`: nobody reads the rest, and nobody is told.
#[test]
fn a_reader_that_has_had_enough_ends_it_quietly() {
    for line in ["call big bytes=10000000", "list --json", "smoke -q", "doctor -q"] {
        let mut words: Vec<&str> = line.split(' ').collect();
        words.extend(["--", "taut", "serve"]);
        let mut child = taut(words).spawn().unwrap();
        let mut first = [0; 1];
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut first).unwrap();
        drop(stdout);
        let run: Run = child.wait_with_output().unwrap().into();
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{line}");
    }
}

/// The same from the very first byte.
#[test]
// About Unix itself: its shell.
#[cfg(unix)]
fn a_reader_that_wants_nothing_ends_it_quietly() {
    let script = "taut list -- taut serve | true; taut --help | true";
    let output = taut(["--version"]);
    let path = output.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap().to_owned();
    let run = Command::new("sh").args(["-c", script]).env("PATH", path).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&run.stderr), "");
}

/// The result is there and lost: neither a success nor a slip of whoever typed it.
/// Also T5.
#[test]
// About Unix itself: `/dev/full`.
#[cfg(unix)]
fn exit_7_the_result_could_not_be_written() {
    for line in ["call echo text=x", "list --json", "smoke", "doctor"] {
        let mut words: Vec<&str> = line.split(' ').collect();
        words.extend(["--", "taut", "serve"]);
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let run: Run = taut(words).stdout(full).output().unwrap().into();
        let run = run.exits(7);
        assert!(run.err.starts_with("error: writing the result: No space left"), "{}", run.err);
    }
    let run = demo("list --out /dev/full").exits(7);
    assert!(run.err.starts_with("error: writing /dev/full: No space left"), "{}", run.err);
}
