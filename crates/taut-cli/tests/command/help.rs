//! `--help` of each command is a file that people read in a review, and its examples run.
//!
//! `TAUT_BLESS=1 cargo test -p taut-cli` writes the files anew.

use super::*;

const COMMANDS: [&str; 22] = [
    "",
    "smoke",
    "list",
    "call",
    "read",
    "prompt",
    "complete",
    "shell",
    "watch",
    "bridge",
    "trace",
    "trace view",
    "trace mock",
    "trace replay",
    "trace diff",
    "doctor",
    "check",
    "servers",
    "bench",
    "serve",
    "completions",
    "man",
];

fn help(command: &str) -> String {
    let words = command.split_whitespace().chain(["--help"]);
    let run: Run = taut(words).output().unwrap().into();
    run.exits(0).out
}

/// The commands that this system has.
fn commands() -> impl Iterator<Item = &'static str> {
    COMMANDS.into_iter().filter(|command| cfg!(unix) || *command != "bench")
}

#[test]
fn help_is_as_it_was_reviewed() {
    let folder = std::path::absolute(env!("CARGO_MANIFEST_DIR")).unwrap();
    let folder = folder.join("tests/command/help");
    // On Windows the list of commands has one less; see the next test.
    for command in commands().filter(|command| cfg!(unix) || !command.is_empty()) {
        let name = if command.is_empty() { "taut" } else { command };
        let path = folder.join(format!("{}.txt", name.replace(' ', "-")));
        let text = help(command).replace("taut.exe", "taut");
        if std::env::var_os("TAUT_BLESS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(text, kept, "{} differs; TAUT_BLESS=1 writes it anew", path.display());
    }
}

#[test]
#[cfg(windows)]
fn help_names_what_windows_has_and_nothing_else() {
    let text = help("");
    for other in ["bench", "XDG", "unix:"] {
        assert!(!text.contains(other), "{other} in {text}");
    }
    assert!(text.contains(r"Settings are read from %APPDATA%\taut\taut.yaml: debug,"), "{text}");
}

#[test]
// About Unix itself: its shells.
#[cfg(unix)]
fn every_example_in_the_help_runs() {
    let tool = taut(["--version"]);
    let path = tool.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap().to_owned();
    let mut ran = 0;
    let folder = temporary().join("examples");
    std::fs::create_dir_all(&folder).unwrap();
    for file in [".mcp.json", "session.jsonl"] {
        std::fs::copy(project().join(file), folder.join(file)).unwrap();
    }
    for command in COMMANDS {
        // On one machine several tests may listen at once.
        let text = help(command).replace("127.0.0.1:7000", "127.0.0.1:0");
        let examples = text.split("Examples:\n").nth(1).unwrap_or_else(|| panic!("{command}"));
        for line in examples.lines().take_while(|line| line.starts_with("  ")) {
            // In the overview a few words follow each example.
            let line = line.trim().split("   ").next().unwrap();
            let mut shell = Command::new("sh");
            // As for a person, but without one: stdin is empty, and files go into a folder of the test.
            // So that a signal reaches the command.
            let line = if lasts(line) { format!("exec {line} 2>&1") } else { line.to_owned() };
            let shell = isolate(shell.args(["-c", &line]).env("PATH", &path));
            shell.current_dir(&folder).stdin(Stdio::null());
            ran += 1;
            if lasts(&line) {
                until_it_is_told_to_end(shell, &line);
                continue;
            }
            let run = shell.output().unwrap();
            let stderr = String::from_utf8_lossy(&run.stderr);
            assert!(run.status.success(), "{line}: {stderr}");
        }
    }
    assert!(ran >= 20, "{ran}");
}

/// Whether an example goes on until somebody ends it.
#[cfg(unix)]
fn lasts(line: &str) -> bool {
    line.contains(" --listen ") || line.contains("taut watch ")
}

/// Runs an example until it says that it is ready, and interrupts it.
#[cfg(unix)]
fn until_it_is_told_to_end(shell: &mut Command, line: &str) {
    use std::io::BufRead as _;
    let mut child = shell.stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut first).unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let wants = if line.contains("taut watch ") { 130 } else { 0 };
    assert_eq!(child.wait().unwrap().code(), Some(wants), "{line}: {first}");
}

/// Issue 19, D: no line of the help is wider than a terminal, except examples, which are to be copied.
#[test]
// About Unix itself: terminals.
#[cfg(unix)]
fn the_help_fits_a_terminal_of_80_columns() {
    for command in commands() {
        let words: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let (text, code) = terminal::Terminal::sized(80, &words, |_| ()).end();
        assert_eq!(code, Some(0), "{text}");
        for line in terminal::plain(&text).lines() {
            let example = line.starts_with("  taut ") || line.starts_with("  echo ");
            let wide = line.trim_end().chars().count() > 80;
            assert!(!wide || example || line.starts_with("  printf "), "{command}: {line}");
        }
    }
}

#[test]
fn the_help_has_every_exit_code() {
    let text = help("");
    for code in ["0", "1", "2", "3", "4", "5", "6", "7", "130"] {
        assert!(text.contains(&format!("\n  {code:<5}")), "{code}");
    }
    let run: Run = taut(["--version"]).output().unwrap().into();
    let out = run.exits(0).out;
    let names: Vec<&str> =
        out.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(names, ["taut", "commit", "target", "build", "features", "upgrade"], "{out}");
    assert!(out.starts_with(&format!("taut {}\n", env!("CARGO_PKG_VERSION"))), "{out}");
    let run: Run = taut(["--version", "--json"]).output().unwrap().into();
    let document: Value = serde_json::from_str(&run.exits(0).out).unwrap();
    assert_eq!(document["version"], env!("CARGO_PKG_VERSION"));
}

/// As bash calls it: the words so far, and which of them the cursor is in.
#[cfg(unix)]
fn completed(line: &str) -> Vec<String> {
    completed_in(&project(), line)
}

#[cfg(unix)]
fn completed_in(folder: &std::path::Path, line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let script = format!(
        "compopt() {{ :; }}; source <(taut completions bash); COMP_WORDS=({}); COMP_CWORD={}; \
         _taut_with_servers taut '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        words.len() - 1,
        words[words.len() - 1],
        words[words.len() - 2],
    );
    let tool = taut(["--version"]);
    let path = tool.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap().to_owned();
    let mut shell = Command::new("bash");
    let shell = isolate(shell.args(["--norc", "-c", &script]).env("PATH", path));
    let run = shell.current_dir(folder).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&run.stderr), "", "{line}");
    String::from_utf8(run.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
// About Unix itself: its shells.
#[cfg(unix)]
fn a_shell_completes_commands_options_and_names_of_servers() {
    assert_eq!(completed("taut smo"), ["smoke"]);
    assert_eq!(completed("taut smoke de"), ["demo"]);
    assert_eq!(completed("taut call add -s no"), ["notes"]);
    assert_eq!(completed("taut list t"), ["tools", "templates"]);
    assert_eq!(completed("taut list tools de"), ["demo"]);
    assert_eq!(completed("taut call add a=2 de"), ["demo"]);
    assert!(!completed("taut call de").contains(&"demo".to_owned()), "a tool stands there");
    assert_eq!(completed("taut read x --ser"), ["--server"]);
    assert!(!completed("taut smoke -- de").contains(&"demo".to_owned()));
    for (shell, lines) in [
        (
            "zsh",
            [
                "by default:_taut_kinds' ",
                "'::second -- A server by name (see `taut servers`), a URL, tcp\\:HOST\\:PORT or unix\\:PATH:_taut_servers'",
            ],
        ),
        ("fish", ["taut servers --names", "-l framing"]),
    ] {
        let run: Run = taut(["completions", shell]).output().unwrap().into();
        let out = run.exits(0).out;
        assert!(lines.iter().all(|line| out.contains(line)), "{shell}: {out}");
        assert!(!out.contains(":_default"), "{shell}: files where none are meant");
    }
    let run: Run = taut(["completions", "tcsh"]).output().unwrap().into();
    assert!(run.exits(2).err.contains("bash, elvish, fish, powershell or zsh"));
}

#[test]
// About Unix itself: its shells.
#[cfg(unix)]
fn a_shell_offers_files_only_where_files_are_meant() {
    assert_eq!(completed("taut smoke --framing "), ["lines", "headers"]);
    assert_eq!(completed("taut list --revision 2026"), ["2026-07-28"]);
    assert_eq!(completed("taut man smo"), ["smoke"]);
    assert_eq!(completed("taut smoke --timeout x"), ["x"]);
    // The names of this folder's files: no server, no option.
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests");
    assert_eq!(completed_in(&folder, "taut man comm"), [""]);
    // What follows two dashes is a command of its own.
    assert!(completed("taut smoke -- bas").contains(&"bash".to_owned()));
    assert_eq!(completed_in(&folder, "taut smoke -- cat comm"), ["command"]);
}

#[test]
// About Unix itself: its shells.
#[cfg(unix)]
fn a_name_with_a_blank_is_one_word() {
    let place = hosts::Place::empty();
    place.put(".mcp.json", r#"{ "mcpServers": { "my server": { "command": "npx" } } }"#);
    assert_eq!(completed_in(&place.project(), "taut smoke m"), ["my\\ server"]);
    assert_eq!(completed_in(&place.project(), "taut list -s \"my"), ["my server"]);
}

#[test]
fn there_is_a_manual_page_for_each_command() {
    let run: Run = taut(["man"]).output().unwrap().into();
    let page = run.exits(0).out;
    assert!(page.contains(".TH taut 1") && page.contains("taut\\-smoke(1)"), "{page}");
    let run: Run = taut(["man", "smoke"]).output().unwrap().into();
    let page = run.exits(0).out;
    assert!(page.contains(".TH taut-smoke 1") && page.contains("start\\-timeout"), "{page}");
    let run: Run = taut(["man", "smok"]).output().unwrap().into();
    assert!(run.exits(2).err.contains("did you mean smoke?"));
    let dir = temporary().join("man");
    std::fs::create_dir_all(&dir).unwrap();
    Run::from(taut([OsStr::new("man"), OsStr::new("--dir"), dir.as_os_str()]).output().unwrap())
        .exits(0);
    for command in commands().filter(|command| !command.contains(' ')) {
        let dash = if command.is_empty() { "" } else { "-" };
        assert!(dir.join(format!("taut{dash}{command}.1")).exists(), "{command}");
    }
}
