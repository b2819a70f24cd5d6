//! Captures that are used again: those in the repository, and a fresh one of the demo.

use super::*;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trace/captures")
}

/// All captures of the repository: both eras, both framings, questions of the server, failures.
fn all() -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|e| e == "jsonl")).collect();
    // What the help shows.
    files.push(folder().join("../../command/project/session.jsonl"));
    files.sort();
    assert!(files.len() >= 5, "{files:?}");
    files
}

/// T7
#[test]
fn every_capture_replays_against_its_own_mock_without_a_difference() {
    let place = Place::new();
    for path in all() {
        let path = path.to_str().unwrap();
        let (out, _) =
            place.exits(0, &["trace", "replay", path, "--", "taut", "trace", "mock", path]);
        assert!(out.contains("no difference"), "{path}: {out}");
        place.exits(0, &["trace", "diff", path, path]);
    }
}

/// The demo says today what it said when these were recorded.
#[test]
fn every_capture_replays_against_the_server_that_it_is_of() {
    let place = Place::new();
    for path in all() {
        let words = ["trace", "replay", path.to_str().unwrap(), "--", "taut", "serve"];
        let (out, _) = place.exits(0, &words);
        assert!(out.contains("no difference"), "{out}");
    }
}

#[test]
fn what_a_server_does_differently_is_shown() {
    let place = Place::new();
    let original = std::fs::read_to_string(folder().join("legacy.jsonl")).unwrap();
    let base = place.put("project/base.jsonl", &original);
    let base = base.to_str().unwrap();
    let lines: Vec<&str> = original.lines().collect();
    let find = |word: &str| {
        lines.iter().position(|line| line.contains(word)).unwrap_or_else(|| panic!("{word}"))
    };
    let with = |change: &dyn Fn(&mut Vec<String>)| {
        let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        change(&mut lines);
        place.put("project/other.jsonl", &(lines.join("\n") + "\n"))
    };
    let (answer, progress) = (find("\"sum\":5"), find("notifications/progress"));
    let error = "\"error\":{\"code\":-32603,\"message\":\"it broke\"}}}";
    let changes = [
        "changed: the answer to tools/call add",
        "missing: notifications/progress",
        "fails now: the answer to tools/call add",
        "other order: ",
    ];
    // One file after the other: each change is made from the original.
    for (at, words) in changes.iter().enumerate() {
        let other = match at {
            0 => with(&|l| l[answer] = l[answer].replace("\"sum\":5", "\"sum\":6")),
            1 => with(&|l| drop(l.remove(progress))),
            // Two things that the server said one after the other.
            3 => with(&|l| {
                let pair = (1..l.len()).find(|at| {
                    let said = |line: &str| line.contains("\"from\":\"server\"");
                    said(&l[*at - 1]) && said(&l[*at]) && l[*at].contains("\"result\"")
                });
                let at = pair.unwrap();
                l.swap(at - 1, at);
            }),
            _ => with(&|l| {
                let place = l[answer].find("\"result\"").unwrap();
                l[answer] = format!("{}{error}", &l[answer][..place]);
            }),
        };
        let other = other.to_str().unwrap();
        for line in [
            vec!["trace", "diff", base, other],
            vec!["trace", "replay", base, "--timeout", "1s", "--", "taut", "trace", "mock", other],
        ] {
            let (out, _) = place.exits(1, &line);
            assert!(out.contains(words), "{words}: {out}");
        }
    }
    let (out, _) = place.exits(0, &["trace", "diff", base, base, "--json"]);
    assert!(out.contains("\"differences\": []") || out.contains("\"differences\":[]"), "{out}");
}

#[test]
fn a_capture_is_shown_as_lines_as_figures_and_one_exchange_in_full() {
    let place = Place::new();
    let path = folder().join("legacy.jsonl");
    let path = path.to_str().unwrap();
    let (out, _) = place.exits(0, &["trace", "view", path]);
    assert!(out.contains("→ tools/call echo") && out.contains("← ✓ tools/call echo"), "{out}");
    let number = out.lines().find(|line| line.contains("→ tools/call add")).unwrap();
    let number = number.split_whitespace().next().unwrap().to_owned();
    let (out, _) = place.exits(0, &["trace", "view", path, "--only", &number]);
    assert!(out.contains("\"a\": 2") && out.contains("\"sum\": 5"), "{out}");
    let (out, _) = place.exits(0, &["trace", "view", path, "--filter", "NO COFFEE"]);
    assert_eq!(out.lines().count(), 2, "{out}");
    let (out, _) = place.exits(0, &["trace", "view", path, "--stats"]);
    assert!(out.lines().any(|line| line.starts_with("tools/call slow")), "{out}");
    let (_, err) = place.exits(2, &["trace", "view", path, "--only", "9999"]);
    assert!(err.contains("there is no line 9999"), "{err}");
    let (_, err) = place.exits(2, &["trace", "view", "/proc/self/status"]);
    assert!(err.contains("not a capture"), "{err}");
}

#[test]
fn a_capture_that_grows_is_followed_to_its_end() {
    let place = Place::new();
    let mut server =
        place.taut().args(["trace", "-q", "--record", "x.jsonl", "--", "cat"]).spawn().unwrap();
    eventually("the capture is there", || place.at("project/x.jsonl").exists());
    let viewer =
        place.taut().args(["trace", "view", "-f", "x.jsonl"]).stdin(Stdio::null()).spawn().unwrap();
    server
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"late\"}\n")
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    drop(server.stdin.take());
    ended(&mut server);
    let output = viewer.wait_with_output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.contains("→ late") && out.contains("the server ended with code 0"), "{out}");
}

#[test]
fn a_folder_gets_a_new_private_file_for_each_session() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    for _ in 0..2 {
        assert!(
            place
                .run(&["trace", "-q", "--record", "kept/", "--as", "my server", "--", "true"])
                .status
                .success()
        );
    }
    let files: Vec<_> = std::fs::read_dir(place.at("project/kept")).unwrap().flatten().collect();
    assert_eq!(files.len(), 2);
    for file in files {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(file.file_name().to_str().unwrap().starts_with("my_server-"));
    }
}
