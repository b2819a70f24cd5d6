//! `taut watch`: what a server tells by itself, in words and as JSON, until it is enough.

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout};

use serde_json::json;

#[cfg(unix)]
use super::terminal::Terminal;
use super::*;

/// A server that tells of a change when a file appears in a folder of its own.
struct Watched {
    folder: PathBuf,
}

impl Watched {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("taut-watch-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self { folder }
    }

    fn server(&self) -> Vec<String> {
        server(&format!("asker {}", self.folder.display()))
    }

    fn change(&self, what: &str) {
        std::fs::write(self.folder.join(what), "").unwrap();
    }

    fn start(&self, line: &str) -> (Child, Lines<BufReader<ChildStdout>>) {
        let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        words.push("--".to_owned());
        words.extend(self.server());
        let mut child = taut(words).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        (child, lines)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn document(lines: &mut Lines<BufReader<ChildStdout>>) -> Value {
    serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
}

#[test]
fn changes_are_told_as_they_come_in_every_era() {
    for era in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let watched = Watched::new(era);
        let line = format!("watch --json --resource asker://note --count 3 --revision {era}");
        let (mut child, mut lines) = watched.start(&line);
        let start = document(&mut lines);
        assert_eq!((&start["event"], &start["server"]), (&json!("watching"), &json!("asker")));
        let changes = start["changes"].as_array().unwrap();
        assert!(changes.contains(&json!("tools")) && changes.contains(&json!("asker://note")));
        watched.change("tool");
        let change = document(&mut lines);
        assert_eq!((&change["event"], &change["what"]), (&json!("change"), &json!("tools")));
        let time = change["time"].as_str().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
        for _ in 0..2 {
            watched.change("resource");
            let change = document(&mut lines);
            assert_eq!(
                (&change["what"], &change["uri"]),
                (&json!("resource"), &json!("asker://note"))
            );
        }
        assert!(lines.next().is_none(), "three are enough");
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn changes_are_words_with_a_time_for_people() {
    let watched = Watched::new("words");
    let (mut child, mut lines) = watched.start("watch --resource asker://note --count 1");
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    let start = stderr.next().unwrap().unwrap();
    assert_eq!(start, "watching asker: tools, prompts, resources, asker://note");
    watched.change("resource");
    let line = lines.next().unwrap().unwrap();
    assert!(line.starts_with("20") && line.ends_with("Z asker://note has changed"), "{line}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Most servers agree to tell of whatever they are asked for.
#[test]
fn a_resource_that_the_server_does_not_list_is_remarked_on() {
    for era in ["2025-11-25", "2026-07-28"] {
        let line = format!(
            "watch --resource asker://note --resource no:where --for 50ms --revision {era}"
        );
        let run = run(&line, &server("asker"));
        let remark = "no:where is none of the resources that the server lists; it agreed to it\n";
        assert!(run.err.contains(remark), "{era}: {}", run.err);
        assert!(!run.err.contains("asker://note is none"), "{}", run.err);
    }
}

#[test]
fn logs_are_told_from_a_level_on() {
    let run = run("watch --count 1", &server("2025-11-25 greet")).exits(0);
    assert!(run.out.ends_with("Z info hello\n"), "{}", run.out);
    let run = super::run("watch --count 1 --json", &server("2025-11-25 greet")).exits(0);
    let last: Value = serde_json::from_str(run.out.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["event"], &last["level"], &last["data"]),
        (&json!("log"), &json!("info"), &json!("hello"))
    );
    super::run("watch --level loud", &server("2025-11-25")).exits(2);
}

/// How each ending is told: enough, too late, the server's, the user's.
#[test]
fn it_ends_when_it_is_told_to() {
    demo("watch --for 50ms").exits(0);
    demo("watch --for 50ms --count 1").exits(6);
    let watched = Watched::new("ends");
    let (mut child, mut lines) = watched.start("watch --json");
    document(&mut lines);
    watched.change("exit");
    let ended = document(&mut lines);
    assert_eq!(ended["event"], "ended");
    assert!(ended["how"].as_str().unwrap().contains("exited with code 9"), "{ended}");
    assert_eq!(child.wait().unwrap().code(), Some(5));
    let run = run("watch --resource x:y", &server("2025-11-25")).exits(3);
    assert!(run.err.contains("offers no"), "{}", run.err);
    super::run("watch", &["no-such-server".to_owned()]).exits(4);
    let run = super::run("watch --for 50ms", &server("2025-11-25")).exits(0);
    assert!(run.err.contains("tells of no changes and has no log"), "{}", run.err);
}

#[test]
// About Unix itself: terminals.
#[cfg(unix)]
fn ctrl_c_ends_it_and_the_server() {
    let mark = format!("watch-{}", std::process::id());
    let server = server(&format!("2025-11-25 {mark}"));
    let mut words = vec!["watch", "--"];
    words.extend(server.iter().map(String::as_str));
    let mut terminal = Terminal::start_with(&words, |_| ());
    terminal.shows("tells of no changes").press(b"\x03");
    let (text, code) = terminal.end();
    assert_eq!(code, Some(130), "{text}");
    assert!(!text.contains("error"), "the usual way to end it: {text}");
    eventually("nothing is left", || processes_with(&mark).is_empty());
}
