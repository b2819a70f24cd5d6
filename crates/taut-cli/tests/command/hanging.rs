//! A server that says what it lacks, and then hangs: its words are shown while it is waited for, and in the error
//! (issue 19, D1).

use super::terminal::Terminal;
use super::*;

const WORDS: &str = "please set FOO_TOKEN";

/// How the words are printed: as the second line on stdout, on stderr, and as a question without a line end.
const WAYS: [&str; 4] = [
    "echo 'foo server 1.0'; echo 'please set FOO_TOKEN'",
    "echo 'please set FOO_TOKEN' >&2",
    "printf 'please set FOO_TOKEN: '",
    "printf 'please set FOO_TOKEN: ' >&2",
];

fn says(way: &str) -> Vec<String> {
    ["sh", "-c", &format!("{way}; exec sleep 606")].map(str::to_owned).into()
}

/// Shakes hands, and hangs at the first request of this method; before that it says the words.
fn answers_then(way: &str, method: &str) -> Vec<String> {
    let script = format!(
        r#"
while read -r line; do
  id=${{line#*\"id\":}}; id=${{id%%[,\}}]*}}
  case $line in
    *server/discover*) printf '{{"jsonrpc":"2.0","id":%s,"error":{{"code":-32601,"message":"no"}}}}\n' "$id" ;;
    *'"initialize"'*) printf '{{"jsonrpc":"2.0","id":%s,"result":{{"protocolVersion":"2025-06-18","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"f","version":"1"}}}}}}\n' "$id" ;;
    *{method}*) {way}; exec sleep 606 ;;
    *tools/list*) printf '{{"jsonrpc":"2.0","id":%s,"result":{{"tools":[]}}}}\n' "$id" ;;
  esac
done
"#
    );
    ["sh", "-c", &script].map(str::to_owned).into()
}

#[test]
fn what_a_server_said_before_it_hangs_is_in_the_error() {
    for way in WAYS {
        for command in ["smoke", "list", "call x a=1", "doctor", "watch", "shell", "read a:b"] {
            let run = run(&format!("{command} --start-timeout 400ms"), &says(way)).exits(4);
            // Doctor's report is its result; lines are broken where they are full.
            let all = format!("{}{}", run.out, run.err);
            let all = all.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(all.contains(WORDS), "{command}, {way}: {run:?}");
        }
    }
    let run = run("doctor --start-timeout 400ms", &says(WAYS[2])).exits(4);
    assert!(run.out.contains("without a line end: \"please set"), "{}", run.out);
    assert!(run.out.contains("if it waits for an answer"), "{}", run.out);
}

#[test]
fn what_it_says_later_is_in_the_error_of_the_timeout() {
    for way in &WAYS[..2] {
        for (command, method) in
            [("smoke", "tools/list"), ("list", "tools/list"), ("call x --args {}", "tools/call")]
        {
            let run = run(&format!("{command} --timeout 1s"), &answers_then(way, method)).exits(6);
            assert!(run.err.contains(WORDS), "{command}, {way}: {run:?}");
        }
        let server = answers_then(way, "tools/call");
        let run = run_with("shell --timeout 1s", &server, "x {}\n").exits(6);
        assert!(run.err.contains(WORDS), "{way}: {run:?}");
        let run = super::run("call x --args {} --max-time 5s", &server).exits(6);
        assert!(run.err.contains(WORDS), "{way}: {run:?}");
        assert!(run.err.contains("the server wrote meanwhile:"), "{way}: {run:?}");
    }
    let run =
        run("call x --args {} --timeout 1s --json", &answers_then(WAYS[0], "tools/call")).exits(6);
    assert_eq!(run.json()["error"]["stdout"], "foo server 1.0\nplease set FOO_TOKEN\n");
}

/// A variable that is set here, and that a server which hangs asks for.
#[test]
fn doctor_names_a_variable_that_a_hanging_server_lacks() {
    let server = says(WAYS[1]);
    let words = ["doctor", "--start-timeout", "400ms", "--"].map(str::to_owned);
    let mut command = taut(words.iter().chain(&server));
    let run = Run::from(command.env("FOO_TOKEN", "abc").output().unwrap()).exits(4);
    assert!(run.out.contains("FOO_TOKEN is set here"), "{}", run.out);
}

#[test]
fn the_words_are_shown_while_it_is_waited_for_and_after_ctrl_c() {
    for way in &WAYS[..2] {
        let server = says(way);
        for command in ["list", "doctor", "watch", "smoke", "shell"] {
            let words: Vec<&str> =
                [command, "--"].into_iter().chain(server.iter().map(String::as_str)).collect();
            let mut terminal = Terminal::start_with(&words, |_| ());
            terminal.shows(" s) · please set FOO_TOKEN").press(b"\x03");
            terminal.shows("the server wrote meanwhile:").shows("  please set FOO_TOKEN");
            let (text, code) = terminal.end();
            assert_eq!(code, Some(130), "{command}: {text}");
        }
    }
    let server = answers_then(WAYS[1], "tools/call");
    let words: Vec<&str> = ["call", "x", "--args", "{}", "--"]
        .into_iter()
        .chain(server.iter().map(String::as_str))
        .collect();
    let mut terminal = Terminal::start_with(&words, |_| ());
    terminal.shows("calling x (").shows(" s) · please set FOO_TOKEN").press(b"\x03");
    assert_eq!(terminal.end().1, Some(130));
}
