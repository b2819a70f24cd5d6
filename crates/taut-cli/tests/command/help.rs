//! `--help` of each command is a file that people read in a review, and its examples run.
//!
//! `TAUT_BLESS=1 cargo test -p taut-cli` writes the files anew.

use super::*;

const COMMANDS: [&str; 9] =
    ["", "smoke", "list", "call", "read", "prompt", "doctor", "servers", "serve"];

fn help(command: &str) -> String {
    let words = command.split_whitespace().chain(["--help"]);
    let run: Run = taut(words).output().unwrap().into();
    run.exits(0).out
}

#[test]
fn help_is_as_it_was_reviewed() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/command/help");
    for command in COMMANDS {
        let name = if command.is_empty() { "taut" } else { command };
        let path = folder.join(format!("{name}.txt"));
        let text = help(command);
        if std::env::var_os("TAUT_BLESS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(text, kept, "{} differs; TAUT_BLESS=1 writes it anew", path.display());
    }
}

#[test]
fn every_example_in_the_help_runs() {
    let tool = taut(["--version"]);
    let path = tool.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap().to_owned();
    let mut ran = 0;
    for command in COMMANDS {
        let text = help(command);
        let examples = text.split("Examples:\n").nth(1).unwrap_or_else(|| panic!("{command}"));
        for line in examples.lines().take_while(|line| line.starts_with("  ")) {
            // In the overview a few words follow each example.
            let line = line.trim().split("   ").next().unwrap();
            let mut shell = Command::new("sh");
            let run = isolate(shell.args(["-c", line]).env("PATH", &path)).output().unwrap();
            let stderr = String::from_utf8_lossy(&run.stderr);
            assert!(run.status.success(), "{line}: {stderr}");
            ran += 1;
        }
    }
    assert!(ran >= 20, "{ran}");
}

#[test]
fn the_help_has_every_exit_code() {
    let text = help("");
    for code in ["0", "1", "2", "3", "4", "5", "6", "130"] {
        assert!(text.contains(&format!("\n  {code:<5}")), "{code}");
    }
    let run: Run = taut(["--version"]).output().unwrap().into();
    assert_eq!(run.exits(0).out, format!("taut {}\n", env!("CARGO_PKG_VERSION")));
}
