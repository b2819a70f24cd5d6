//! Questions of a server on a terminal: forms, pages, a model; by hand, with mistakes and Ctrl-C.

use super::terminal::{Terminal, plain};
use super::*;

/// Both ways in which a server can ask.
const ERAS: [&str; 2] = ["2025-11-25", "2026-07-28"];

fn call(line: &str) -> Terminal {
    call_with(line, |_| ())
}

fn call_with(line: &str, change: impl FnOnce(&mut Command)) -> Terminal {
    let server = server("asker");
    let mut words: Vec<&str> = line.split_whitespace().collect();
    words.push("--");
    words.extend(server.iter().map(String::as_str));
    Terminal::start_with(&words, change)
}

/// ELI-10: each kind of field, what does not fit is asked again, and it is looked over at the end.
#[test]
fn a_form_is_filled_in_field_by_field() {
    for era in ERAS {
        let mut terminal = call(&format!("call everything --revision {era}"));
        terminal.shows("asker asks:").shows("All of it:");
        terminal
            .shows("E-mail › ")
            .types("ada")
            .shows("\"ada\" does not fit: it has to be an address");
        terminal.shows("E-mail › ").types("ada@example.org");
        terminal.shows("(a whole number, 1 to 10)").shows("count › ").types("11");
        // The line is empty again, whatever kind of field it is, and what was typed is told.
        terminal.shows("count: \"11\" does not fit: it has to be 10 or less").shows("count › ");
        terminal.types("7").shows("ratio [0.5] › ").types("");
        // What would be taken stands beside the line and not in it.
        terminal.shows("Are you sure?").shows("(yes or no, :empty leaves it out)");
        terminal.shows("sure [yes] › ").types("maybe");
        terminal.shows("\"maybe\" does not fit: it has to be yes or no").shows("sure [yes] › ");
        terminal.types("no").shows("1 Small").shows("Large, with care").shows("size › ");
        terminal.types("Lage, with care").shows("did you mean Large, with care?");
        terminal
            .shows("size › ")
            .types("2")
            .shows("with commas between")
            .shows("Colours › ")
            .types("1,2,3");
        terminal
            .shows("\"1,2,3\" does not fit: it has to have 2 choices or fewer, and has 3")
            .shows("Colours › ");
        terminal.types("blue, red").shows("Anything else?").shows("note › ").types("");
        terminal.shows("E-mail: ada@example.org").shows("sure: no").shows("size: Large, with care");
        terminal.shows("note: –").shows("send it? [yes/no/edit] › ").types("");
        let (text, code) = terminal.end();
        assert_eq!(code, Some(0), "{text}");
        let sent = r#"{"count":7,"mail":"ada@example.org","ratio":0.5,"size":"l","sure":false,"tags":["blue","red"]}"#;
        assert!(text.contains(sent), "{text}");
    }
}

/// ELI-07: the three things that a person can do.
#[test]
fn a_form_can_be_declined_and_left() {
    for (keys, said) in [
        (":decline\r", "declined"),
        (":cancel\r", "cancelled"),
        ("\x04", "cancelled"),
        ("5\r", r#"{"count":5}"#),
    ] {
        let mut terminal = call("call number");
        terminal.shows("count › ").press(keys.as_bytes());
        let (text, code) = terminal.end();
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains(&format!("{said}\r\n")), "{keys:?}: {text}");
    }
    let mut terminal = call("call everything");
    terminal.shows("E-mail › ").types("a@b").shows("count › ").types(":back");
    terminal.shows("E-mail [a@b] › ").types("a@b.c").shows("count › ").types("1");
    terminal.shows("ratio [0.5] › ").types(":empty").shows("sure [yes] › ").types("");
    terminal
        .shows("size › ")
        .types("small")
        .shows("Colours › ")
        .types("")
        .shows("note › ")
        .types("");
    terminal.shows("ratio: –").shows("sure: yes");
    terminal.shows("edit] › ").types("what").shows("yes sends it").shows("edit] › ").types("edit");
    terminal.shows("E-mail [a@b.c] › ").types(":decline");
    assert!(terminal.end().0.contains("declined\r\n"));
}

/// SEC-05
#[test]
fn what_a_server_asks_cannot_steer_the_terminal() {
    let mut terminal = call("call rude");
    terminal.shows("first\\u{1b}]0;owned\\u{7}").shows("second\\u{200b}");
    terminal.shows("na\\u{1b}[31mme\\u{202e} [a\\u{7}b] › ");
    terminal.types("c");
    let (text, code) = terminal.end();
    assert_eq!(code, Some(0), "{text}");
    for part in ["\x1b]0;", "\x1b[31mme", "\u{202e}", "\u{200b}"] {
        assert!(!text.contains(part), "{part:?}: {text:?}");
    }
}

#[test]
fn ctrl_c_in_a_form_ends_the_call_and_leaves_the_terminal_as_it_was() {
    for era in ERAS {
        let mut terminal = call(&format!("call number --revision {era}"));
        terminal.shows("count › ");
        eventually("the keys are ours", || !terminal.is_as_before());
        terminal.press(b"4\x03");
        terminal.shows("interrupted");
        eventually("the terminal is as before", || terminal.is_as_before());
        let (text, code) = terminal.end();
        assert_eq!(code, Some(130), "{text}");
    }
}

/// A server that goes away in the middle of a question ends it, and the terminal is given back.
#[test]
fn a_server_that_dies_while_somebody_types_is_told_at_once() {
    let mut terminal = call("call die --revision 2025-11-25");
    terminal.shows("x › ").press(b"half a wo");
    terminal.shows("exited with code 9");
    eventually("the terminal is as before", || terminal.is_as_before());
    let (text, code) = terminal.end();
    assert_eq!(code, Some(5), "{text}");
}

#[test]
fn a_form_goes_on_when_the_window_changes_its_size() {
    let mut terminal = call("call everything");
    terminal.shows("E-mail › ").press(b"somebody.with.a");
    terminal.shows("with.a").resize(24, 10);
    // It is drawn again, and breaks where the window now ends.
    terminal.shows("E-mail").press(b"@b.c");
    terminal.shows("@b.c").resize(100, 30);
    terminal.shows("E-mail › somebody.with.a@b.c").types("");
    terminal.shows("count › ").types(":decline");
    assert!(terminal.end().0.contains("declined\r\n"));
}

/// ELI-09, ELI-12: shown whole, its host named, and opened only when somebody says so.
/// Also SEC-09.
#[test]
fn eli_09_a_page_is_opened_only_with_consent() {
    let folder = std::env::temp_dir().join(format!("taut-open-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (opener, opened) = (folder.join("xdg-open"), folder.join("opened"));
    let script = format!("#!/bin/sh\necho \"$@\" >> {}\n", opened.display());
    rude::system::write_script(&opener, &script);
    let with_opener = |command: &mut Command| {
        let path = command.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap();
        let mut all = folder.clone().into_os_string();
        all.push(":");
        all.push(path);
        command.env("PATH", all);
    };
    let url = "https://good.example@evil.example/login?state=a%20b#end";
    for era in ERAS {
        for (answer, said) in
            [("self", "Accepted(())"), ("no", "Declined"), (":cancel", "Cancelled")]
        {
            let mut terminal = call_with(&format!("call page --revision {era}"), with_opener);
            terminal.shows("asks you to visit a page:").shows("Please log in").shows(url);
            terminal.shows("on evil.example").shows("is a user name, not the host");
            // Enter alone is no consent, and neither is a yes.
            for word in ["", "yes", "y", "o"] {
                terminal.shows("[open/self/no] › ").types(word).shows("type open, self or no");
            }
            terminal.shows("› ").types(answer);
            let (text, code) = terminal.end();
            assert_eq!(code, Some(0), "{text}");
            assert!(text.contains(&format!("{said}\r\n")), "{answer}: {text}");
            assert!(!opened.exists(), "{answer}");
        }
    }
    let mut terminal = call_with("call page", with_opener);
    terminal.shows("[open/self/no] › ").types("open");
    assert!(terminal.end().0.contains("Accepted(())\r\n"));
    eventually("it was opened", || {
        std::fs::read_to_string(&opened).is_ok_and(|t| t.ends_with('\n'))
    });
    assert_eq!(std::fs::read_to_string(&opened).unwrap(), format!("{url}\n"));
    std::fs::remove_dir_all(folder).unwrap();
}

/// SAM-09
#[test]
fn a_person_is_the_model() {
    for era in ERAS {
        let mut terminal = call(&format!("call model --revision {era}"));
        terminal.shows("asker asks a model:").shows("system: Be brief.");
        terminal.shows("user: Say\\u{1b}[2J something.").shows("(at most 99 tokens)");
        terminal.shows("answer › ").types("").shows("say something, or :decline");
        terminal.shows("answer › ").types("two").shows("answer › ").types("lines");
        terminal.shows("answer › ").types("");
        let (text, code) = terminal.end();
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains(r#""text":"two\nlines""#) && text.contains("a person"), "{text}");
    }
    let mut terminal = call("call model");
    terminal.shows("answer › ").types(":decline");
    let (text, code) = terminal.end();
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("the user said no"), "{text}");
}

/// What -v tells meanwhile stands above the line that is typed.
#[test]
fn what_is_told_meanwhile_does_not_break_the_line() {
    let mut terminal = call("call chatty -v --revision 2025-11-25");
    terminal.shows("count › ").types("x").shows("it has to be a whole number").shows("count › ");
    terminal.types("3").shows("{\"count\":3}");
    let (text, code) = terminal.end();
    assert_eq!(code, Some(0), "{text}");
    let text = plain(&text);
    assert!(text.contains("still here"), "the server logs all the time: {text}");
    let question = text.find("How many?").unwrap();
    let prompt = question + text[question..].find("count › ").unwrap();
    assert!(!text[question..prompt].contains("still here"), "{text}");
}

/// A result may go into a pipe while the questions are on the terminal.
#[test]
fn questions_are_on_the_terminal_when_the_result_is_not() {
    let path = std::env::temp_dir().join(format!("taut-form-out-{}", std::process::id()));
    let mut terminal = call(&format!("call number --out {}", path.display()));
    terminal.shows("count › ").types("9");
    assert_eq!(terminal.end().1, Some(0));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), r#"{"count":9}"#);
    std::fs::remove_file(path).unwrap();
}
