//! Every command against the demo: in a pipe, and as JSON.

use serde_json::json;

use super::*;

#[test]
fn smoke_without_a_command_starts_its_own_demo() {
    let run = run("smoke", &[]).exits(0);
    let lines: Vec<&str> = run.out.lines().collect();
    assert!(lines[0].ends_with("$ taut serve"), "{}", run.out);
    for part in ["started", "agreed      2026-07-28 (modern), lines", "server      taut-demo"] {
        assert!(run.out.contains(part), "{part}: {}", run.out);
    }
    assert!(run.out.contains(r#"called      echo {"text":"hello from taut"}"#), "{}", run.out);
    assert!(run.out.contains("ended       exited with code 0 once its stdin was closed"));
    assert!(lines.last().unwrap().starts_with("✓ it works: "), "{}", run.out);
    assert_eq!(run.err, "  next: taut doctor -- taut serve\n");
    assert!(!run.out.contains('\x1b'), "no colours in a pipe");
}

#[test]
fn smoke_speaks_every_revision() {
    for revision in taut::Revision::ALL {
        let run = demo(&format!("smoke --json --revision {revision}")).exits(0).json();
        assert_eq!(run["revision"], revision.as_str());
        assert_eq!(run["called"]["text"], "hello from taut");
        assert_eq!(run["ok"], true);
    }
    let run = demo("smoke --json --framing headers").exits(0).json();
    assert_eq!(run["framing"], "Content-Length");
}

#[test]
fn smoke_calls_nothing_that_is_not_sure_to_be_harmless() {
    let run = run("smoke", &server("2025-11-25")).exits(0);
    assert!(run.out.contains("called      nothing: no tool is sure"), "{}", run.out);
    assert!(run.out.contains("(legacy)"), "{}", run.out);
}

/// E6, E7, T3.
#[test]
fn smoke_shows_the_servers_stderr_only_when_it_fails() {
    let fine = run("smoke", &server("2025-11-25 greet log-stdin")).exits(0);
    assert_eq!(fine.err, "");
    let live = run("smoke -v", &server("2025-11-25 log-stdin")).exits(0);
    assert!(live.err.contains("stderr │ got {"), "{}", live.err);
    let failed = run("smoke", &server("2025-11-25 die-on-list")).exits(5);
    assert!(failed.err.contains("about to die"), "{}", failed.err);
    assert!(failed.out.contains("✗ it failed to list"), "{}", failed.out);
    let document = run("smoke --json", &server("2025-11-25 die-on-list")).exits(5).json();
    assert_eq!((&document["ok"], &document["error"]["kind"]), (&json!(false), &json!("violation")));
}

#[test]
fn list_shows_everything_or_one_kind() {
    let all = demo("list").exits(0);
    for part in ["tools 14", "resources 3", "templates 1", "prompts 2"] {
        assert!(all.out.contains(part), "{part}: {}", all.out);
    }
    assert!(all.out.contains("  add       a: number, b: number"), "{}", all.out);
    let some = demo("list prompts").exits(0);
    assert!(some.out.starts_with("prompts 2\n") && !some.out.contains("tools"), "{}", some.out);
    let json = demo("list --json").exits(0).json();
    assert_eq!(json["tools"][1]["inputSchema"]["required"], json!(["a", "b"]));
    assert_eq!(json["templates"][0]["uriTemplate"], "weather://{city}/today");
    let json = demo("list tools --json").exits(0).json();
    assert_eq!(json.as_object().unwrap().len(), 1);
    let none = run("list prompts", &server("2025-11-25")).exits(0);
    assert_eq!(none.out, "the server offers no prompts\n");
    let pages = run("list tools --json", &server("2025-11-25")).exits(0).json();
    assert_eq!(pages["tools"].as_array().unwrap().len(), 6, "all three pages");
}

#[test]
fn call_prints_the_result_and_nothing_else() {
    assert_eq!(demo("call echo text=hi").exits(0).out, "hi\n");
    assert_eq!(demo("call add a=2 b=3").exits(0).out, "{\"sum\":5}\n");
    let run = demo("call add a=2 b=3 --json").exits(0);
    assert_eq!(run.json()["structuredContent"], json!({ "sum": 5 }));
    assert_eq!(run.err, "");
    assert_eq!(demo("call image").exits(0).out, "A red dot:\n[image/png, 85 bytes]\n");
    let run = demo("call slow steps=3 step_ms=1").exits(0);
    assert_eq!((run.out.as_str(), run.err.as_str()), ("done after 3 steps\n", ""));
}

#[test]
fn verbose_tells_logs_and_progress_as_they_come() {
    for revision in ["2025-06-18", "2026-07-28"] {
        let run = demo(&format!("call log message=hi -v --revision {revision}")).exits(0);
        assert!(run.err.contains("server │ info demo: \"hi\"\n"), "{revision}: {}", run.err);
        assert_eq!(run.out, "logged\n");
    }
    let run = demo("call slow steps=2 step_ms=1 -v").exits(0);
    assert!(run.err.contains("0 % · step 1 of 2\n"), "{}", run.err);
}

#[test]
fn call_takes_json_from_the_line_a_file_or_stdin() {
    let serve = ["taut".to_owned(), "serve".to_owned()];
    assert_eq!(demo(r#"call echo --args {"text":"a"}"#).exits(0).out, "a\n");
    let path = std::env::temp_dir().join(format!("taut-args-{}.json", std::process::id()));
    std::fs::write(&path, r#"{ "text": "from a file" }"#).unwrap();
    let line = format!("call echo --args @{}", path.display());
    assert_eq!(run(&line, &serve).exits(0).out, "from a file\n");
    std::fs::remove_file(path).unwrap();
    let run = run_with("call echo --args -", &serve, r#"{"text":"from stdin"}"#);
    assert_eq!(run.exits(0).out, "from stdin\n");
}

/// Behind a pipe there may be a terminal. What is meant as data is as it was sent.
#[test]
fn sec_05_control_characters_reach_a_pipe_only_as_data() {
    let echo = |json: &str, more: &[&str]| {
        let words = [&["call", "echo", "--args", json], more, &["--", "taut", "serve"]].concat();
        Run::from(taut(words).output().unwrap()).exits(0)
    };
    let sent = r#"{"text":"\u001b[2J\u202eab"}"#;
    let run = echo(sent, &[]);
    assert_eq!(run.out, "\\u{1b}[2J\u{202e}ab\n");
    let told =
        "control characters of the result are shown as \\u{…}; --out - gives them as they are\n";
    assert_eq!(run.err, told);
    let run = echo(sent, &["--out", "-"]);
    assert_eq!((run.out.as_str(), run.err.as_str()), ("\u{1b}[2J\u{202e}ab", ""));
    let run = echo(sent, &["--json"]);
    assert_eq!(run.json()["content"][0]["text"], "\u{1b}[2J\u{202e}ab");
    assert!(!run.out.contains('\u{202e}'), "{}", run.out);
    // JSON as text is still JSON, lines may end as on Windows, and what cannot be seen is not harmful here.
    let run = echo(r#"{"text":"{\"a\": \"\u009b\"}"}"#, &[]);
    assert_eq!(run.json(), json!({ "a": "\u{9b}" }));
    assert!(!run.out.contains('\u{9b}'), "{}", run.out);
    let run = echo(r#"{"text":"a\r\n❤\ufe0f\tb"}"#, &[]);
    assert_eq!((run.out.as_str(), run.err.as_str()), ("a\r\n❤\u{fe0f}\tb\n", ""));
    // A resource that is redirected is the resource.
    let server = answering(&json!({
        "initialize": { "protocolVersion": "2025-11-25", "capabilities": { "resources": {} },
            "serverInfo": { "name": "fixed", "version": "1" } },
        "resources/read": { "contents": [{ "uri": "a:b", "text": "\u{1b}[1mbold\r" }] },
    }));
    assert_eq!(super::run("read a:b", &server).exits(0).out, "\u{1b}[1mbold\r");
    assert_eq!(super::run("read a:b --out -", &server).exits(0).out, "\u{1b}[1mbold\r");
}

#[test]
fn read_gives_the_resource_itself() {
    let run = demo("read demo://readme").exits(0);
    assert_eq!(run.out, "# taut demo\n\nOne of each thing that an MCP server can do.\n");
    assert_eq!(demo("read weather://Bern/today").exits(0).out, "Bern: sunny, as always in a demo");
    let words = ["read", "demo://dot.png", "--", "taut", "serve"];
    let bytes = taut(words).output().unwrap().stdout;
    assert!(bytes.starts_with(b"\x89PNG") && bytes.len() == 85);
    let json = demo("read demo://dot.png --json").exits(0).json();
    assert_eq!(json["contents"][0]["mimeType"], "image/png");
}

/// T24: a large result is kept whole.
#[test]
fn out_puts_the_content_into_a_file() {
    let path = std::env::temp_dir().join(format!("taut-out-{}", std::process::id()));
    let shown = path.display();
    let run = demo(&format!("call image --out {shown}")).exits(0);
    assert_eq!(run.out, "");
    assert_eq!(run.err, format!("image/png, 85 bytes in {shown}\n"));
    assert!(std::fs::read(&path).unwrap().starts_with(b"\x89PNG"));
    demo(&format!("list tools --json --out {shown}")).exits(0);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(serde_json::from_str::<Value>(&text).unwrap()["tools"].is_array(), "{text}");
    std::fs::remove_file(path).unwrap();
    let run = demo("call image --out /nowhere/at/all").exits(2);
    assert!(run.err.starts_with("error: cannot write /nowhere/at/all: "), "{}", run.err);
}

#[test]
fn prompt_shows_who_says_what() {
    let run = demo("prompt greet name=Ada language=Dutch").exits(0);
    assert!(run.out.starts_with("user\nGreet Ada in Dutch.\nassistant\n"), "{}", run.out);
    let json = demo("prompt greet name=Ada --json").exits(0).json();
    assert_eq!(json["messages"][0]["content"]["text"], "Greet Ada in English.");
    let run = demo("prompt greet nme=Ada").exits(2);
    assert!(run.err.contains(
        "there is no argument nme; did you mean name?\n  name is missing: Whom to greet."
    ));
    assert!(demo("prompt gret").exits(2).err.contains("did you mean greet?"));
}

/// T4.
#[test]
// About Unix itself: a shell tells its arguments. `w9_twenty_nasty_arguments_arrive_as_they_are` is the same on Windows.
#[cfg(unix)]
fn everything_after_two_dashes_reaches_the_server_untouched() {
    let script = r#"printf '%s\n' "$@" >&2; exit 9"#;
    let server = ["sh", "-c", script, "sh", "--json", "-v", "--", "--timeout", "", "a b"];
    let run = run("list", &server.map(str::to_owned)).exits(4);
    assert!(run.err.contains("\n  --json\n  -v\n  --\n  --timeout\n  a b\n"), "{}", run.err);
}

#[test]
// About Unix itself: a shell tells its environment. `w3_the_child_has_what_windows_programs_need_and_names_are_case_blind` is
// the same on Windows.
#[cfg(unix)]
fn the_environment_is_short_unless_told_otherwise() {
    let names = |options: &str| {
        let mut words: Vec<String> = vec!["list".into()];
        words.extend(options.split_whitespace().map(str::to_owned));
        words.extend(["--", "sh", "-c", "env >&2; pwd >&2; exit 9"].map(str::to_owned));
        let output = taut(words).env("COLOUR", "dark1").output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let short = names("");
    assert!(!short.contains("dark1") && short.contains("PATH="), "{short}");
    assert!(names("--inherit-env -v").contains("COLOUR=dark1"));
    let set = names("--env COLOUR=mine --env OTHER=a=b --cwd /tmp");
    assert!(
        set.contains("COLOUR=mine") && set.contains("OTHER=a=b") && set.contains("\n  /tmp\n"),
        "{set}"
    );
}

/// A server without a version, and one that does not even start.
#[test]
// About Unix itself: a shell plays the server.
#[cfg(unix)]
fn no_line_ends_in_a_blank() {
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"fasty","version":""}}}"#;
    let fasty = ["sh", "-c", "read -r line; echo \"$0\"; exec cat > /dev/null", answer];
    let fasty = fasty.map(str::to_owned);
    for (line, server) in [
        ("smoke --revision 2025-11-25", fasty.as_slice()),
        ("doctor --revision 2025-11-25", &fasty),
        ("shell --revision 2025-11-25", &fasty),
        ("smoke", &["false".to_owned()]),
    ] {
        let run = run_with(line, server, "info\n");
        let mut lines = run.out.lines().chain(run.err.lines());
        let bad = lines.find(|line| line.ends_with([' ', ',', ':']) && !line.ends_with("stderr:"));
        assert_eq!(bad, None, "{line}");
        assert!(server.len() == 1 || run.out.contains("fasty"), "{line}: {}", run.out);
    }
}
