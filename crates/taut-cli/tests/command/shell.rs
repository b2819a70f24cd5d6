//! `taut shell`: at a prompt, with every key that matters, and from scripts.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::terminal::Terminal;
use super::*;

/// A folder of its own for what a shell remembers, gone after the test.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("taut-shell-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(super) fn path(&self) -> &std::path::Path {
        &self.0
    }

    pub(super) fn shell(&self, options: &str, server: &[String]) -> Terminal {
        let mut words: Vec<&str> = vec!["shell"];
        words.extend(options.split_whitespace());
        words.push("--");
        words.extend(server.iter().map(String::as_str));
        Terminal::start_with(&words, |command| {
            command.env("XDG_STATE_HOME", &self.0);
        })
    }

    pub(super) fn demo(&self) -> Terminal {
        let mut terminal = self.shell("", &["taut".to_owned(), "serve".to_owned()]);
        terminal.shows("taut-demo ").shows("14 tools").shows("taut-demo › ");
        terminal
    }

    pub(super) fn asker(&self, options: &str) -> Terminal {
        let mut terminal = self.shell(options, &server("asker"));
        terminal.shows("asker › ");
        terminal
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[track_caller]
pub(super) fn leaves(mut terminal: Terminal) -> String {
    terminal.press(b"\x04");
    let (text, code) = terminal.end();
    assert_eq!(code, Some(0), "{text}");
    text
}

/// T26.
#[test]
fn several_calls_are_made_in_one_session() {
    let folder = Folder::new("several");
    let mut terminal = folder.demo();
    terminal.types("touch").shows("\rtouched once\r\n").shows("› ");
    terminal.types("call touch").shows("\rtouched 2 times\r\n").shows("› ");
    terminal.types("echo text='hello there'").shows("\rhello there\r\n").shows("› ");
    terminal.types(r#"add {"a": 1, "b": 2}"#).shows(r#""sum": 3"#).shows("› ");
    terminal.types("read demo://touched").shows("\r2\r\n").shows("› ");
    terminal.types("prompt greet name=Ada").shows("Greet Ada in English.").shows("› ");
    terminal.types("info").shows("taut-demo").shows("2026-07-28").shows("› ");
    terminal.types("tools add").shows("it takes:").shows("a: number").shows("› ");
    terminal.types("help").shows("withdraws the call").shows("› ");
    terminal.types("log level=warning message=mind").shows("warning demo: mind").shows("› ");
    terminal.types("fail reason=rain").shows("rain").shows("reported failure").shows("› ");
    terminal.types("ehco").shows("did you mean echo?").shows("› ");
    terminal.types("quit");
    let (text, code) = terminal.end();
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn tab_completes_tools_arguments_and_values() {
    let folder = Folder::new("tab");
    let mut terminal = folder.asker("");
    terminal.press(b"pai\t");
    terminal.shows("paint ").press(b"col\t");
    terminal.shows("colour=").press(b"cob\t");
    terminal.shows("colour=cobalt ").press(b"coa\t");
    terminal.shows("coats=").types("2").shows("\r2 Cobalt\r\n").shows("› ");
    // Two fit: both are shown, and the line is still there.
    terminal.press(b"paint colour=c\t\t");
    terminal.shows("colour=crimson").shows("colour=cobalt").shows("paint colour=c");
    terminal.press(b"\x03");
    terminal.shows("› ");
    leaves(terminal);
}

#[test]
fn what_was_typed_is_remembered_for_its_owner_alone() {
    let folder = Folder::new("history");
    let mut terminal = folder.demo();
    terminal.types("echo text=first").shows("\rfirst\r\n").shows("› ");
    terminal.types(" echo text=secret").shows("\rsecret\r\n").shows("› ");
    leaves(terminal);
    let file = folder.0.join("taut/history");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{mode:o}");
    let mode = std::fs::metadata(file.parent().unwrap()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "{mode:o}");
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(kept.contains("echo text=first") && !kept.contains("secret"), "{kept}");
    let mut terminal = folder.demo();
    // Up, and Enter.
    terminal.press(b"\x1b[A");
    terminal.shows("echo text=first").types("").shows("\rfirst\r\n").shows("› ");
    leaves(terminal);
}

/// CAN-01: the call is withdrawn on the wire, and the session lives.
#[test]
fn ctrl_c_withdraws_the_call_that_runs_and_nothing_else() {
    let folder = Folder::new("ctrl-c");
    let mut terminal = folder.shell("-v", &server("2025-11-25 log-stdin"));
    terminal.shows("rude › ").types("call never {}").shows("tools/call");
    terminal.press(b"\x03");
    terminal.shows("withdrawn").shows("notifications/cancelled").shows("› ");
    // At the prompt it clears the line.
    terminal.press(b"half a line\x03");
    terminal.shows("Ctrl-D or quit leaves").shows("› ");
    terminal.types("tools").shows("tools 6").shows("› ");
    leaves(terminal);
    let mut terminal = folder.demo();
    terminal.types("slow steps=1000 step_ms=50").shows("of 1000");
    terminal.press(b"\x03");
    terminal.shows("withdrawn").shows("› ").types("echo text=alive").shows("\ralive\r\n");
    terminal.shows("› ");
    leaves(terminal);
}

/// What the server tells stands above the line that is typed, and the line is as it was.
#[test]
fn news_come_while_somebody_types_and_do_not_break_the_line() {
    let folder = Folder::new("news");
    let flag = folder.0.join("now");
    let mut terminal = folder.asker("");
    terminal.types(&format!("later file={}", flag.display())).shows("later, then").shows("› ");
    terminal.press(b"paint colour=crimson");
    terminal.shows("paint colour=crimson");
    std::fs::write(&flag, "").unwrap();
    terminal.shows("the tools have changed\r\n").shows("asker › paint colour=crimson");
    terminal.types(" coats=3").shows("\r3 Crimson\r\n").shows("› ");
    // The new tool is known to the keys at once.
    terminal.press(b"fre\t");
    terminal.shows("fresh ").types("").shows("\rnew here\r\n").shows("› ");
    leaves(terminal);
}

#[test]
fn a_server_that_dies_is_told_and_can_be_started_again() {
    let folder = Folder::new("dies");
    let mut terminal = folder.shell("", &server("2025-11-25"));
    terminal.shows("rude › ");
    terminal.types("call exit {}").shows("exited with code 7").shows("› ");
    terminal.types("tools").shows("there is no server").shows("restart").shows("› ");
    terminal.types("restart").shows("rude 1").shows("rude › ");
    terminal.types("tools").shows("tools 6").shows("› ");
    // Also when nobody has asked anything of it.
    terminal.types("info").shows("process       ");
    terminal.shows("› ");
    let text = terminal.text();
    let pid = text.rsplit("process       ").next().unwrap().split_whitespace().next().unwrap();
    let pid = rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap();
    terminal.press(b"tool");
    terminal.shows("tool");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    terminal.shows("SIGKILL").shows("restart starts it again").shows("› tool");
    terminal.press(b"\x15");
    terminal.types("restart").shows("rude › ").types("tools").shows("tools 6").shows("› ");
    leaves(terminal);
}

#[test]
fn the_line_fits_the_window_when_its_size_changes() {
    let folder = Folder::new("resize");
    let mut terminal = folder.demo();
    terminal.press(b"echo text=0123456789012345678901234567890123456789");
    terminal.shows("0123456789");
    terminal.resize(30, 20);
    // Drawn anew, and broken where the window ends now.
    terminal.shows("taut-demo › echo text=01234567").press(b"end");
    terminal.shows("end").resize(90, 30);
    terminal.shows("taut-demo › echo text=0123456789012345678901234567890123456789end");
    terminal.types("").shows("\r0123456789012345678901234567890123456789end\r\n").shows("› ");
    leaves(terminal);
}

#[test]
fn questions_are_asked_and_left_within_the_session() {
    let folder = Folder::new("asks");
    for era in ["2025-11-25", "2026-07-28"] {
        let mut terminal = folder.asker(&format!("--revision {era}"));
        terminal.types("number").shows("How many?").shows("count › ").types("4");
        terminal.shows(r#"{"count":4}"#).shows("asker › ");
        // What was typed into a form is no command.
        terminal.types("number").shows("count › ").press(b"\x1b[A\x03");
        terminal.shows("withdrawn").shows("asker › ");
        terminal.press(b"\x1b[A");
        terminal.shows("number").types("").shows("count › ").types(":decline");
        terminal.shows("declined").shows("asker › ");
        leaves(terminal);
    }
}

#[test]
fn the_end_of_the_terminal_ends_the_server() {
    let folder = Folder::new("hangup");
    let mark = format!("hangup-{}", std::process::id());
    let mut terminal = folder.shell("", &server(&format!("2025-11-25 {mark}")));
    terminal.shows("rude › ");
    assert!(processes_with(&mark).len() >= 2);
    drop(terminal);
    eventually("nothing is left", || processes_with(&mark).is_empty());
}

fn script(options: &str, lines: &str) -> Run {
    let serve = ["taut".to_owned(), "serve".to_owned()];
    run_with(&format!("shell {options}"), &serve, lines)
}

#[test]
fn a_script_does_its_lines_in_order_and_stops_at_the_first_that_fails() {
    let run = script("", "# two calls\n\ntouch\ntouch\n").exits(0);
    assert_eq!((run.out.as_str(), run.err.as_str()), ("touched once\ntouched 2 times\n", ""));
    let run = script("", "echo text=a\nfail reason=rain\necho text=b\n").exits(1);
    assert_eq!(run.out, "a\nrain\n");
    let said = "the tool fail reported failure\nstdin:2: exit 1: fail reason=rain\n";
    assert_eq!(run.err, said);
    let run = script("--keep-going", "echo text=a\nnope\nfail\nread demo://nope\necho text=b\n");
    let run = run.exits(2);
    assert!(run.out.ends_with("b\n"), "{}", run.out);
    for part in ["stdin:2: exit 2: nope", "stdin:3: exit 1: fail", "stdin:4: exit 3: "] {
        assert!(run.err.contains(part), "{part}: {}", run.err);
    }
    let run = script("", "echo 'x\n").exits(2);
    assert!(run.err.contains("a ' is not closed") && run.err.contains("stdin:1:"), "{}", run.err);
    assert_eq!(script("", "quit\nfail\n").exits(0).out, "");
}

#[test]
fn a_script_may_be_a_file_and_its_questions_are_answered_from_one() {
    let folder = Folder::new("script");
    let (lines, answers) = (folder.0.join("lines"), folder.0.join("answers.yaml"));
    std::fs::write(&lines, "ask\nask\n").unwrap();
    std::fs::write(&answers, "- size: large\n- right: yes\n").unwrap();
    let options = format!("--script {} --answer {}", lines.display(), answers.display());
    let run = script(&options, "").exits(3);
    assert_eq!(run.out, "one large coffee, with milk, for you\nno coffee then\n");
    assert!(run.err.contains(&format!("{}:2: exit 3: ask", lines.display())), "{}", run.err);
    let run = script("--script /nowhere", "").exits(2);
    assert!(run.err.contains("reading /nowhere"), "{}", run.err);
}

#[test]
fn with_json_each_line_is_a_document() {
    let lines =
        "echo text=a\nlog debug\nlog level=warning message=mind\nadd_tool name=n says=s\nnope\n";
    let run = script("--json", lines).exits(2);
    let documents: Vec<Value> =
        run.out.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let of_line = |n: u64| documents.iter().find(|document| document["line"] == n).unwrap();
    assert_eq!(of_line(1)["result"]["content"][0]["text"], "a");
    assert_eq!((&of_line(1)["typed"], &of_line(1)["exit"]), (&json!("echo text=a"), &json!(0)));
    assert_eq!(of_line(5)["error"]["kind"], "usage");
    let event = |kind: &str| documents.iter().find(|document| document["event"] == kind).unwrap();
    assert_eq!(event("log")["data"], "mind");
    assert_eq!(event("change")["what"], "tools");
    assert_eq!(run.err, "");
}

/// Who writes the lines may wait for what the last one said.
#[test]
fn lines_from_a_pipe_are_done_as_they_come() {
    use std::io::{BufRead as _, BufReader};
    let mut child = taut(["shell", "--json", "--", "taut", "serve"]);
    let mut child = child.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for text in ["touched once", "touched 2 times", "touched 3 times"] {
        writeln!(stdin, "touch").unwrap();
        let document: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(document["result"]["content"][0]["text"], text);
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

/// An error shows what the server has said since the call began, and nothing that is older.
#[test]
fn old_words_on_stderr_are_not_told_with_a_new_failure() {
    let server = server("2025-11-25 log-stdin");
    let run = run_with("shell --keep-going", &server, "tools\nread x:y\ncall nope {}\n").exits(3);
    let (first, second) = run.err.split_once("stdin:2:").unwrap();
    assert!(!first.contains("stderr ended with"), "it was not asked: {first}");
    assert!(second.contains("stderr ended with") && second.contains("tools/call"), "{second}");
    assert!(!second.contains("tools/list") && !second.contains("initialize"), "{second}");
}

#[test]
fn a_subscription_is_confirmed_and_refused_in_the_words_of_the_revision() {
    for era in ["2025-11-25", "2026-07-28"] {
        let lines = "subscribe asker://note\nunsubscribe asker://note\n";
        let run = run_with(&format!("shell --revision {era}"), &server("asker"), lines).exits(0);
        let told =
            "changes of asker://note will be told\nchanges of asker://note are no longer told\n";
        assert_eq!(run.err, told);
    }
    for (command, lines) in [("shell", "subscribe x:y\n"), ("watch --resource x:y", "")] {
        let run = run_with(command, &server("2025-11-25"), lines).exits(3);
        let said =
            "the server offers no changes of resources, so resources/subscribe was not asked";
        assert!(run.err.contains(said) && !run.err.contains("listen"), "{}", run.err);
    }
}

#[test]
fn a_server_that_goes_away_ends_a_script() {
    let run = run_with("shell", &server("2025-11-25"), "tools\ncall exit {}\ntools\n").exits(5);
    assert!(
        run.err.contains("exited with code 7") && run.err.contains("stdin:2: exit 5"),
        "{}",
        run.err
    );
    run_with("shell", &["no-such-server".to_owned()], "tools\n").exits(4);
}
