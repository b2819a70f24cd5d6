//! The pages about the command: each command in a `console` block runs, and prints what stands there.
//!
//! Times, process numbers and what differs between machines are left out of the comparison.
//! `TAUT_BLESS=1 cargo test -p taut-cli` writes what is printed into the pages.

use std::fmt::Write as _;

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

fn check(page: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let tool = taut(["--version"]);
    let search = tool.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap().to_owned();
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
                let run = isolate(shell).output().unwrap();
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
