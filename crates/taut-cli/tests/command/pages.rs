//! The pages about the command: each command in a `console` block runs, and prints what stands there.
//!
//! Times, process numbers and what differs between machines are left out of the comparison.
//! `TAUT_BLESS=1 cargo test -p taut-cli` writes what is printed into the pages.

use std::fmt::Write as _;

use super::hosts::Place;
use super::*;

#[test]
fn the_page_about_servers_that_do_not_connect_tells_the_truth() {
    check("docs/does-not-connect.md");
}

#[test]
fn the_page_about_the_command_tells_the_truth() {
    check("docs/command.md");
}

#[test]
fn the_readme_tells_the_truth() {
    check("README.md");
}

#[test]
fn the_page_about_the_bridge_tells_the_truth() {
    check("docs/bridge.md");
}

#[cfg(feature = "http")]
#[test]
fn the_page_about_one_server_for_a_team_tells_the_truth() {
    check("docs/guides/team.md");
}

fn read(page: &str) -> (PathBuf, String) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    (path, text)
}

/// The lines of a page that begin with our name, in blocks of a shell, without what is said of them.
fn lines(text: &str) -> Vec<String> {
    let blocks = text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let lines = blocks.flat_map(str::lines).filter(|line| line.starts_with("taut "));
    lines.map(|line| line.split("  #").next().unwrap().trim().to_owned()).collect()
}

/// Runs a line where every package runner starts the demo, which has the tools that are called.
fn runs(place: &Place, line: &str) -> Run {
    let from = place.command("");
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(place.project()).env_clear();
    shell.envs(from.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.stdin(Stdio::null()).output().unwrap().into()
}

/// A place with a capture, which some lines read.
fn place() -> Place {
    let place = Place::empty();
    let kept = std::fs::read_to_string(project().join("session.jsonl")).unwrap();
    place.put("kept.jsonl", &kept);
    place.put("server.py", "");
    place
}

/// Each line of the cures runs, but for those that need another machine or go on until they are ended.
#[test]
fn the_cures_are_commands_that_work() {
    let (_, text) = read("docs/cures.md");
    let place = place();
    let all = lines(&text);
    assert!(all.len() >= 15, "{all:?}");
    for line in all {
        // These wait for clients, for a person, or for a server far away: that they are understood is enough.
        let waits = ["--listen", "https://", "--page"].iter().any(|part| line.contains(part));
        let line = if waits { format!("{line} --help") } else { line };
        let line = if waits { line.replace(" -- npx some-server", "") } else { line };
        let run = runs(&place, &line);
        // A difference to the capture is a result of the replay.
        assert!(run.code == 0 || (run.code == 1 && line.contains("replay")), "{line}: {run:?}");
    }
}

/// What an agent is given as its instructions: short, each command works, and the codes are all there are.
#[test]
fn the_skill_tells_the_truth() {
    let (_, text) = read("packaging/skill/SKILL.md");
    assert!(text.lines().count() <= 80, "{} lines", text.lines().count());
    let place = place();
    let mut all = lines(&text);
    let table = text.lines().filter(|line| line.starts_with("| ") && line.contains("| `taut "));
    for line in table {
        let command = line.split("| `").nth(1).unwrap().split('`').next().unwrap();
        all.push(command.replace("TOOL key=value …", "add a=2 b=3").replace("FILE", "new.jsonl"));
    }
    assert!(all.len() >= 10, "{all:?}");
    for line in all {
        // The demo stands in for the servers of the examples.
        let line = line
            .replace("CMD", "npx some-server")
            .replace("get_current_time timezone=Europe/Zurich", "add a=2 b=3");
        let run = runs(&place, &line);
        assert_eq!(run.code, 0, "{line}: {run:?}");
        if line.contains("--json") {
            run.json();
        }
    }
    let codes = |text: &str| -> Vec<u8> {
        let first = text
            .lines()
            .filter_map(|line| line.trim_start_matches("| ").split(' ').find(|w| !w.is_empty()));
        first.filter_map(|word| word.parse().ok()).filter(|code| *code < 100).collect()
    };
    let help = run("--help", &[]).exits(0).out;
    let help = codes(help.split("Exit codes:").nth(1).unwrap());
    assert_eq!(
        codes(text.split("## Exit codes").nth(1).unwrap().split("##").next().unwrap()),
        help
    );
}

fn check(page: &str) {
    let (path, text) = read(page);
    let tool = taut(["--version"]);
    let search = tool.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap().to_owned();
    // What a command writes is in a folder of the test.
    let folder = temporary().join("pages").join(page.replace('/', "-"));
    std::fs::create_dir_all(&folder).unwrap();
    for file in [".mcp.json", "session.jsonl"] {
        std::fs::copy(project().join(file), folder.join(file)).unwrap();
    }
    let (mut written, mut ran) = (String::new(), 0);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let _ = writeln!(written, "{line}");
        if line != "```console" {
            continue;
        }
        while let Some(command) = lines.next_if(|line| line.starts_with("$ ")) {
            let _ = writeln!(written, "{command}");
            let mut expected = String::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with("$ ") && *line != "```") {
                let _ = writeln!(expected, "{line}");
            }
            let script = format!("exec 2>&1; {}", &command[2..]);
            let print = || {
                let mut shell = Command::new("sh");
                let shell = shell.args(["-c", &script]).env("PATH", &search);
                let run = isolate(shell).current_dir(&folder).output().unwrap();
                portable(&String::from_utf8(run.stdout).unwrap())
            };
            let mut printed = print();
            if std::env::var_os("TAUT_BLESS").is_none() {
                // A machine so busy that a server is slow earns a finding; one try of three is not.
                for _ in 0..2 {
                    if plain(&printed) != plain(&expected) {
                        printed = print();
                    }
                }
                assert_eq!(plain(&printed), plain(&expected), "{page}: {command}\n{printed}");
            }
            written.push_str(&printed);
            if !printed.ends_with('\n') {
                written.push('\n');
            }
            ran += 1;
        }
    }
    assert!(ran > 3, "{page}: {ran}");
    if std::env::var_os("TAUT_BLESS").is_some() {
        std::fs::write(path, written).unwrap();
    }
}

/// Without the places of the machine that it was printed on.
fn portable(text: &str) -> String {
    let ours = PathBuf::from(env!("CARGO_BIN_EXE_taut"));
    let text = text.replace(ours.parent().unwrap().to_str().unwrap(), "/usr/local/bin");
    let mut out = String::new();
    for line in text.lines() {
        let line = match line.split_once(" environment   ") {
            Some((start, _)) => {
                format!(
                    "{start} environment   HOME LOGNAME PATH SHELL TERM USER; 31 of yours withheld"
                )
            }
            None => line.to_owned(),
        };
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

/// What has to be the same on every machine and at any time.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.get(1) == Some(&"started") {
            out.push_str("started\n");
            continue;
        }
        for (at, word) in words.iter().enumerate() {
            let unit = words.get(at + 1).map(|next| next.trim_end_matches([',', ')', '"', ';']));
            let before = at.checked_sub(1).map(|at| words[at].trim_start_matches('('));
            let timed = matches!(unit, Some("ms" | "s" | "min")) && word.parse::<f64>().is_ok();
            let word = if timed || before == Some("process") { "N" } else { word };
            let word = if matches!(word, "ms" | "s" | "min") { "t" } else { word };
            // Where lines are broken does not matter.
            let _ = write!(out, "{word} ");
        }
    }
    // A time within a sentence: "within 1.0 s", "after 12 ms".
    out.replace(" ms", " t").replace(" s,", " t,")
}
