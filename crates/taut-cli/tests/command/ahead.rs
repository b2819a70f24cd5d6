//! Lines that are there before anybody asks for them: pasted, or typed while a call runs.

use super::shell::{Folder, leaves};
use super::terminal::Terminal;
use super::*;

#[test]
fn all_lines_of_a_paste_are_done_in_order() {
    let folder = Folder::new("paste");
    // As terminals send it: without brackets, and with, from one that was not asked for them.
    for (begin, end) in [("", ""), ("\x1b[200~", "\x1b[201~")] {
        let mut terminal = folder.demo();
        let lines = "echo text=one\recho text=two\radd a=1 b=2\r";
        terminal.press(format!("{begin}{lines}{end}").as_bytes());
        terminal.shows("\rone\r\n").shows("\rtwo\r\n").shows(r#""sum": 3"#).shows("› ");
        leaves(terminal);
    }
}

/// More than any buffer on the way holds at once.
#[test]
fn a_long_paste_arrives_whole() {
    let folder = Folder::new("long-paste");
    let mut terminal = folder.demo();
    let lines: String = (0..200).map(|n| format!("echo text=line-{n:03}-of-many\r")).collect();
    terminal.press(lines.as_bytes());
    for n in 0..200 {
        terminal.shows(&format!("\rline-{n:03}-of-many\r\n"));
    }
    terminal.shows("› ");
    leaves(terminal);
}

#[test]
fn lines_typed_while_a_call_runs_are_kept_and_not_drawn_into_its_progress() {
    let folder = Folder::new("ahead");
    let mut terminal = folder.demo();
    terminal.types("slow steps=20 step_ms=50").shows("of 20");
    terminal.types("echo text=one").types("echo text=twx\x7fo").types("echo text=three");
    terminal.shows("done after 20 steps");
    let before = terminal.text();
    let before = &before[..before.find("done after").unwrap()];
    assert!(!before.contains("text=one"), "{before:?}");
    terminal.shows("\rone\r\n").shows("\rtwo\r\n").shows("\rthree\r\n").shows("› ");
    leaves(terminal);
}

/// The first of them opens a form, the others fill it in.
#[test]
fn answers_may_be_pasted_with_the_call_that_asks() {
    let folder = Folder::new("paste-form");
    let mut terminal = folder.asker("");
    let lines = ["number", "12", "7", "paint colour=cobalt coats=2", ""];
    terminal.press(lines.join("\r").as_bytes());
    terminal.shows("10 or less").shows(r#"{"count":7}"#).shows("\r2 Cobalt\r\n").shows("asker › ");
    leaves(terminal);
}

#[test]
fn all_answers_of_a_paste_arrive_in_the_form() {
    let server = server("asker");
    let mut words = vec!["call", "everything", "--"];
    words.extend(server.iter().map(String::as_str));
    let mut terminal = Terminal::start_with(&words, |_| ());
    let answers = ["a@b.c", "3", "", "no", "2", "red, blue", "a note", "yes", ""];
    terminal.shows("E-mail › ").press(answers.join("\r").as_bytes());
    let (text, code) = terminal.end();
    assert_eq!(code, Some(0), "{text}");
    let sent = r#"{"count":3,"mail":"a@b.c","note":"a note","ratio":0.5,"size":"l","sure":false,"tags":["red","blue"]}"#;
    assert!(text.contains(sent), "{text}");
}

/// Whoever has typed ahead has the terminal back as it was, however it ends.
#[test]
fn the_terminal_is_as_before_once_the_command_has_ended() {
    let folder = Folder::new("given-back");
    for last in ["quit\r", "\x04"] {
        let mut terminal = folder.demo();
        terminal.types("echo text=a").shows("\ra\r\n").shows("› ");
        terminal.press(last.as_bytes());
        let ended = terminal.ended();
        assert!(ended.is_as_before());
    }
}

/// Ctrl-Z in the middle of a line and in the middle of a call; a shell that does nothing about the
/// terminal, and `fg`.
#[test]
fn after_ctrl_z_and_fg_the_line_and_the_keys_are_there_again() {
    let folder = Folder::new("stop");
    let script = "set -m; taut shell -- taut serve; \
                  while kill -0 %1 2>/dev/null; do echo it rests; read -r line; fg; done";
    let mut command = taut(["-"]);
    let (path, home) = (of(&command, "PATH"), of(&command, "HOME"));
    command = Command::new("sh");
    command.args(["-c", script]).env("PATH", path).env("HOME", home);
    command.env("XDG_STATE_HOME", folder.path());
    let mut terminal = Terminal::run(command);
    terminal.shows("taut-demo › ").press(b"echo text=ha");
    terminal.shows("text=ha").press(b"\x1a");
    terminal.shows("it rests");
    assert!(terminal.is_as_before(), "the shell has the terminal as it was");
    terminal.types("").shows("taut shell").shows("taut-demo › echo text=ha");
    eventually("the keys are ours", || !terminal.is_as_before());
    terminal.press(b"lf\r");
    terminal.shows("\rhalf\r\n").shows("› ").press(b"ech\t");
    terminal.shows("echo ").types("text=whole").shows("\rwhole\r\n").shows("› ");
    terminal.types("slow steps=1000 step_ms=50").shows("of 1000").press(b"\x1a");
    terminal.shows("it rests");
    assert!(terminal.is_as_before());
    terminal.types("").shows("taut shell");
    eventually("the keys are ours", || !terminal.is_as_before());
    // Ctrl-C takes the call away, and nothing that was typed.
    terminal.types("echo text=ahead").press(b"\x03");
    terminal.shows("withdrawn").shows("\rahead\r\n").shows("› ");
    leaves(terminal);
}

/// Where no shell could wake it, Ctrl-Z does nothing.
#[test]
fn ctrl_z_stops_nothing_that_could_not_go_on() {
    let folder = Folder::new("no-stop");
    let mut terminal = folder.demo();
    terminal.press(b"echo te\x1axt=on\r");
    terminal.shows("\ron\r\n").shows("› ");
    leaves(terminal);
}

fn of(command: &Command, name: &str) -> std::ffi::OsString {
    let found = command.get_envs().find(|(known, _)| *known == name);
    found.and_then(|(_, value)| value).unwrap().to_owned()
}
