//! First words that are no command, the name of the program in all that is said, and the next command.

#[cfg(unix)]
use std::path::Path;

use serde_json::json;

use super::hosts::Place;
#[cfg(unix)]
use super::terminal::{Terminal, plain};
use super::*;

fn place() -> Place {
    let place = Place::empty();
    let program = env!("CARGO_BIN_EXE_taut");
    let servers = json!({ "good": { "command": program, "args": ["serve"] } });
    place.put(".mcp.json", &json!({ "mcpServers": servers }).to_string());
    place.put("server.py", "");
    place.put("tool", "");
    place
}

/// What people type first, and the one line that they get.
#[cfg(unix)]
const FIRST: [(&str, &str); 42] = [
    ("npx -y some-server", "smoke -- npx -y some-server"),
    ("npx -y some-server --json", "smoke -- npx -y some-server --json"),
    ("uvx some-server", "smoke -- uvx some-server"),
    ("node a.js", "smoke -- node a.js"),
    ("python3 -m server", "smoke -- python3 -m server"),
    ("server.py --verbose", "smoke -- python3 server.py --verbose"),
    ("./server.py", "smoke -- python3 ./server.py"),
    ("server.js", "smoke -- node server.js"),
    ("server.ts", "smoke -- npx -y tsx server.ts"),
    ("/opt/server x", "smoke -- /opt/server x"),
    ("@scope/server", "smoke -- npx -y @scope/server"),
    ("tool", "smoke -- ./tool"),
    ("sh -c x", "smoke -- sh -c x"),
    ("-- npx some-server", "smoke -- npx some-server"),
    ("http://127.0.0.1:9/mcp", "smoke http://127.0.0.1:9/mcp"),
    ("unix:a.sock", "smoke unix:a.sock"),
    ("good", "smoke good"),
    ("good --json", "smoke good"),
    ("good doctor", "doctor good"),
    ("good echo text=x", "call echo text=x good"),
    ("good.echo text=x", "call echo text=x good"),
    ("good/echo", "call echo good"),
    ("echo text=x", "call echo text=x good"),
    ("echo text=x -- npx srv", "call echo text=x -- npx srv"),
    ("install npx srv", "smoke -- npx srv"),
    ("install", "smoke good"),
    ("add name -- npx srv", "smoke -- npx srv"),
    ("add good", "smoke good"),
    ("run server.py", "smoke -- python3 server.py"),
    ("run", "smoke good"),
    ("test npx srv", "smoke -- npx srv"),
    ("ui", "shell good"),
    ("dev server.py", "shell -- python3 server.py"),
    ("inspect npx srv", "list -- npx srv"),
    ("start good", "smoke good"),
    ("connect http://127.0.0.1:9/mcp", "list http://127.0.0.1:9/mcp"),
    ("tools", "list tools good"),
    ("tools -- npx srv", "list tools -- npx srv"),
    ("ls", "list good"),
    ("proxy npx srv", "bridge -- npx srv"),
    ("record npx srv", "trace --record kept.jsonl -- npx srv"),
    ("version", "--version"),
];

#[test]
// About Unix itself: the names of programs there.
#[cfg(unix)]
fn a_first_word_that_is_no_command_gets_one_line_to_paste() {
    let place = place();
    for (typed, line) in FIRST {
        let run = place.run(typed).exits(2);
        let lines: Vec<&str> = run.err.lines().collect();
        assert_eq!(lines.len(), 2, "{typed}: {}", run.err);
        assert!(lines[0].starts_with("error: "), "{typed}: {}", run.err);
        assert_eq!(lines[1], format!("  try: taut {line}"), "{typed}");
        assert_eq!(run.out, "", "{typed}");
    }
    // A slip of the keys is none of these, also where a program has that name.
    for typed in ["smok", "doctr good", "lst", "nonsense"] {
        let run = place.run(typed).exits(2);
        assert!(run.err.contains("unrecognized subcommand"), "{typed}: {}", run.err);
    }
    let json = place.run("--json npx srv").exits(2).json();
    assert_eq!(json["error"]["next"], "taut smoke -- npx srv");
}

#[test]
// About Unix itself: a shell runs the lines.
#[cfg(unix)]
fn the_line_works_when_it_is_pasted() {
    let place = place();
    for typed in ["npx -y some-server", "good", "good.echo text=x", "tools", "install uvx srv"] {
        let said = place.run(typed).exits(2).err;
        let line = said.split("  try: ").nth(1).unwrap().trim();
        let pasted = place.command("");
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(place.project()).env_clear();
        shell.envs(pasted.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let run: Run = shell.output().unwrap().into();
        run.exits(0);
    }
}

#[test]
fn secrets_of_a_first_line_are_masked() {
    let run = place().run("npx srv --api-key s3cr3t-value").exits(2);
    assert!(!run.err.contains("s3cr3t") && run.err.contains("--api-key"), "{}", run.err);
}

/// The same program under another name, which is on the PATH in the folder `bin` of a place.
#[cfg(unix)]
fn called(place: &Place, name: &str, line: &str) -> Command {
    let from = place.command(line);
    let program = place.home().join("../bin").join(name);
    if !program.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_taut"), &program).unwrap();
    }
    // As a shell does it: the word that was typed is the name, not the path.
    let mut command = Command::new(name);
    command.args(from.get_args()).current_dir(place.project()).env_clear();
    command.envs(from.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let path = place.home().join("../bin").canonicalize().unwrap();
    let path = format!("{}:/usr/bin:/bin", path.display());
    command.env("PATH", path).stdin(Stdio::null());
    command
}

/// Whether a text has a command of `taut` itself, which may not exist under this name.
#[cfg(unix)]
fn names_taut(text: &str) -> bool {
    let help = run("help", &[]).exits(0).out;
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let commands: Vec<&str> =
        commands.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.contains(&"smoke"), "{commands:?}");
    let starts = text.match_indices("taut ").filter(|(at, _)| {
        !text[..*at].ends_with(|c: char| c.is_alphanumeric() || "-_/.".contains(c))
    });
    starts.into_iter().any(|(at, _)| {
        let rest = &text[at + "taut ".len()..];
        commands.contains(&rest.split(|c: char| !c.is_ascii_lowercase()).next().unwrap())
    })
}

#[test]
// About Unix itself: links.
#[cfg(unix)]
fn every_line_has_the_name_by_which_the_program_was_started() {
    let place = place();
    let bad = server("2025-11-25 exit-on-initialize");
    let bad = bad.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    place.put("bad.sh", &format!("exec {bad}"));
    let mut wrong = Vec::new();
    for name in ["tautmcp", "taut-cli", "taut-x86_64-linux"] {
        for (line, said) in [
            ("npx -y srv", "NAME smoke -- npx -y srv"),
            ("good", "NAME smoke good"),
            ("-v smoke", "NAME smoke -v"),
            ("list", "`NAME servers`"),
            ("smoke nobody", "NAME smoke good"),
            ("smoke --", "NAME smoke -- npx"),
            ("call good echo text=x", "NAME call echo text=x good"),
            ("call echo good text=x", "NAME call echo text=x good"),
            ("call echo npx srv", "NAME call echo -- npx srv"),
            ("call echo good", "NAME call echo text=… good"),
            ("call echo --text x -- npx", "NAME call echo text=…"),
            ("smoke --call echo text=hi -- npx", "NAME smoke --call echo --args"),
            ("list tool good", "NAME list tools good"),
            ("prompt greet good", "NAME prompt greet"),
            ("read zzz good", "NAME list resources"),
            ("check --only nonsense good", "NAME check --list"),
            ("trace --into nobody", "NAME trace --into good"),
            ("trace view nothing.jsonl", ""),
            ("list unix:nothing.sock", "NAME bridge --listen"),
            ("login good", ""),
            ("doctor", "NAME doctor good"),
            ("smoke good", "next: NAME doctor good"),
            ("doctor good", "next: NAME check good"),
            ("check good --only tools", ""),
            ("smoke -- sh bad.sh", "NAME doctor -- sh bad.sh"),
            ("smoke --all", "NAME doctor --all"),
            ("doctor --all", "NAME check good"),
            ("smoke", "NAME doctor -- NAME serve"),
            ("--help", "NAME smoke -- NAME bridge -- NAME serve"),
            ("smoke --help", "NAME smoke -- NAME serve"),
            ("watch --help", "NAME watch -- NAME serve"),
            ("servers nobody", "`NAME servers`"),
            ("completions bash", "< <(NAME servers --names"),
            ("completions zsh", "#compdef NAME\n"),
            ("completions fish", "complete -c NAME "),
        ] {
            let run: Run = called(&place, name, line).output().unwrap().into();
            let all = run.out + &run.err;
            if !all.contains(&said.replace("NAME", name)) || names_taut(&all) {
                wrong.push(format!("{name} {line}: {all}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(names_taut("  try: taut smoke") && !names_taut("  try: my-taut smoke, taut says"));
}

/// A program that is on no PATH is named by its path, as a word of a shell.
#[test]
// About Unix itself: links.
#[cfg(unix)]
fn a_path_with_a_blank_is_quoted() {
    let place = place();
    let folder = place.project().join("my tools");
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("taut-x86_64-linux");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_taut"), &program).unwrap();
    for typed in [program, "./my tools/taut-x86_64-linux".into()] {
        let from = place.command("good");
        let mut shell = Command::new(&typed);
        shell.arg("good").current_dir(place.project()).env_clear();
        shell.envs(from.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let run: Run = shell.output().unwrap().into();
        let line = format!("  try: '{}' smoke good\n", typed.display());
        assert!(run.exits(2).err.ends_with(&line), "{line}");
    }
}

/// The entries of hosts' files start the program under its own name.
#[test]
// About Unix itself: links.
#[cfg(unix)]
fn an_entry_for_a_host_has_the_name_too() {
    let place = place();
    place.put("banner.sh", "echo a banner\nexec tautmcp serve\n");
    let run: Run = called(&place, "tautmcp", "doctor -- sh banner.sh").output().unwrap().into();
    assert!(
        run.out.contains(r#"{ "command": "tautmcp", "args": ["bridge","--","sh","#),
        "{}",
        run.out
    );
    assert!(
        run.err.contains("next: tautmcp smoke -- tautmcp bridge -- sh banner.sh"),
        "{}",
        run.err
    );
    let run: Run = called(&place, "tautmcp", "trace --into good").output().unwrap().into();
    let said = run.exits(0).err;
    assert!(said.contains("tautmcp trace --out-of good undoes it"), "{said}");
    let text = std::fs::read_to_string(place.project().join(".mcp.json")).unwrap();
    let entry: Value = serde_json::from_str(&text).unwrap();
    let command = entry["mcpServers"]["good"]["command"].as_str().unwrap();
    assert!(Path::new(command).is_absolute() && command.ends_with("/tautmcp"), "{command}");
    let run: Run = called(&place, "tautmcp", "trace --out-of good").output().unwrap().into();
    run.exits(0);
}

/// Texts of ours get the name where they are shown. A new one with the name in it would keep it.
#[test]
fn no_text_in_the_code_names_the_program_by_itself() {
    // Each has its texts renamed in one place.
    const RENAMED: [&str; 7] =
        ["help.rs", "watch.rs", "own.rs", "wrap.rs", "completions.rs", "problem.rs", "nats.rs"];
    let mut folders = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut wrong = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if RENAMED.contains(&name.as_str()) {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            for (number, line) in code.lines().enumerate() {
                let is_comment = line.trim_start().starts_with("//");
                let has = line.contains("try: taut ")
                    || line.contains("`taut ")
                    || line.contains("\"taut smoke")
                    || line.contains("next: taut ");
                let before = code.lines().skip(number.saturating_sub(3)).take(4);
                let renamed = before.into_iter().any(|line| line.contains("own::named("))
                    || code.contains("own::named(text)");
                let for_clap = line.contains("#[command(") || line.contains("arg.help(");
                if !is_comment && has && !renamed && !for_clap {
                    wrong.push(format!("{name}:{}: {}", number + 1, line.trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Alone in a pipe it is a command line that is not whole; for a person it is a look at what is here.
#[test]
// About Unix itself: terminals.
#[cfg(unix)]
fn alone_on_a_terminal_it_shows_what_is_here_and_starts_nothing() {
    let run = place().run("").exits(2);
    assert!(run.err.contains("Usage: taut ") && run.out.is_empty(), "{}", run.err);
    let place = place();
    place
        .put(".mcp.json", r#"{ "mcpServers": { "good": { "command": "npx", "args": ["srv"] } } }"#);
    let (text, code) = Terminal::run(place.command("")).end();
    let text = plain(&text).replace('\r', "");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("  good  npx srv\n"), "{text}");
    let next: Vec<&str> = text.split("next:\n").nth(1).unwrap().lines().collect();
    assert_eq!(next.len(), 3, "{text}");
    let starts = ["  taut smoke good ", "  taut doctor good ", "  taut --help "];
    for (line, start) in next.iter().zip(starts) {
        assert!(line.starts_with(start), "{text}");
    }
    assert!(!place.home().join("../seen").exists(), "a server was started");
    let (text, _) = Terminal::run(Place::empty().command("")).end();
    assert!(plain(&text).contains("  taut smoke -- npx some-server "), "{text}");
}

/// Servers of a person have effects: nothing is started that nobody agreed to.
#[test]
fn doctor_without_a_server_starts_nothing_by_itself() {
    let place = Place::empty();
    place.put(
        ".mcp.json",
        r#"{ "mcpServers": { "a": { "command": "npx" }, "b": { "command": "npx" } } }"#,
    );
    for line in ["doctor", "doctor --json"] {
        let run = place.run(line).exits(2);
        assert!(run.err.contains("hosts' files have 2 servers: a, b"), "{}", run.err);
        assert!(run.err.contains("taut doctor --all"), "{}", run.err);
    }
    assert!(!place.home().join("../seen").exists(), "a server was started");
    let run = Place::empty().run("doctor").exits(2);
    assert!(run.err.contains("no host's file here has a server"), "{}", run.err);
}

#[test]
fn doctor_of_all_has_a_row_for_each() {
    let place = Place::empty();
    let dying = server("2025-11-25 exit-on-initialize");
    let servers = json!({
        "asleep": { "command": "npx", "disabled": true },
        "dying": { "command": dying[0], "args": dying[1..] },
        "good": { "command": "taut", "args": ["serve"] },
        "lacking": { "command": "npx", "args": ["${NO_SUCH_VARIABLE}"] },
    });
    place.put(".mcp.json", &json!({ "mcpServers": servers }).to_string());
    let run = place.run("doctor --all").exits(4);
    let line = |name: &str| run.out.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line("asleep ").ends_with("· off: disabled is true"), "{}", run.out);
    assert!(line("dying ").contains("✗ broken: "), "{}", run.out);
    assert!(line("good ").ends_with("✓ every host should get on with it"), "{}", run.out);
    assert!(line("lacking ").contains("NO_SUCH_VARIABLE is not set"), "{}", run.out);
    assert!(run.out.ends_with("\n✗ 1 of 3 work in every host\n"), "{}", run.out);
    assert_eq!(run.err, "  next: taut doctor dying\n");
    let json = place.run("doctor --all --json").exits(4).json();
    let names: Vec<&str> =
        json["servers"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["asleep", "dying", "good", "lacking"]);
    assert!(json["servers"][2]["findings"].as_array().unwrap().is_empty(), "{json}");
}

#[test]
// About Unix itself: terminals.
#[cfg(unix)]
fn doctor_asks_a_person_before_it_starts_all() {
    let place = Place::empty();
    place.put(".mcp.json", r#"{ "mcpServers": { "a": { "command": "npx" } } }"#);
    let mut terminal = Terminal::run(place.command("doctor"));
    terminal.shows("hosts' files have 1 server: a").shows("[y/N]").types("");
    let (text, code) = terminal.end();
    assert_eq!(code, Some(2), "{text}");
    assert!(plain(&text).contains("nothing was started"), "{text}");
    assert!(!place.home().join("../seen").exists(), "a server was started");
    let mut terminal = Terminal::run(place.command("doctor"));
    terminal.shows("[y/N]").types("y").shows("1 of 1 work in every host");
    let (text, code) = terminal.end();
    assert_eq!(code, Some(0), "{text}");
}

/// Ready to be pasted: what a server says cannot leave its fence, and secrets are masked.
#[test]
// About Unix itself: a shell plays the server.
#[cfg(unix)]
fn the_report_for_an_issue_tracker_is_fenced() {
    let script =
        "echo '```'; echo '@ada ![x](http://x)' >&2; echo \"key $KEY\" >&2; exec taut serve";
    let words = ["doctor", "--markdown", "--env", "KEY=s3cr3t-word-1", "--", "sh", "-c", script];
    let run: Run = taut(words).output().unwrap().into();
    let run = run.exits(0);
    let version = format!("taut {}", env!("CARGO_PKG_VERSION"));
    let system = format!("on {} {}", std::env::consts::OS, std::env::consts::ARCH);
    assert!(run.out.contains(&version) && run.out.contains(&system), "{}", run.out);
    assert!(run.out.contains("\n**1. risky**\n"), "{}", run.out);
    assert!(!run.out.contains("s3cr3t"), "{}", run.out);
    // As a renderer reads it: a fence ends with a line of as many marks.
    let (mut open, mut outside) = (None::<String>, String::new());
    for line in run.out.lines() {
        let marks: String = line.chars().take_while(|c| *c == '`').collect();
        match &open {
            Some(fence) if line == *fence => open = None,
            Some(_) => {}
            None if marks.len() >= 3 => open = Some(marks),
            None => outside += line,
        }
    }
    assert_eq!(open, None, "{}", run.out);
    assert!(!outside.contains("@ada") && !outside.contains("http:"), "{outside}");
    assert!(run.out.contains("@ada") && run.out.contains("<details>"), "{}", run.out);
    assert_eq!(run.err, "", "it is all in the report");
}

#[test]
fn smoke_doctor_and_check_end_with_the_next_command() {
    let serve = " -- taut serve";
    for (line, next) in [
        ("smoke", format!("taut doctor{serve}")),
        (
            "smoke --timeout 20s --call echo",
            format!("taut doctor --timeout 20s --call echo{serve}"),
        ),
        ("doctor", format!("taut check{serve}")),
        (
            "check --only tools --revision 2025-11-25",
            format!("taut check --only tools --revision 2025-11-25 --junit taut.xml{serve}"),
        ),
    ] {
        if line.contains("--call echo") {
            // It takes a text, so it fails; what comes next is the same.
            let run = demo(line);
            assert!(run.err.contains("taut doctor") || run.out.contains("try: "), "{run:?}");
            continue;
        }
        let run = demo(line).exits(0);
        assert_eq!(run.err.lines().last().unwrap(), format!("  next: {next}"), "{line}");
        assert!(!run.out.contains("next:"), "{line}: the last line of stdout is the verdict");
        for quiet in ["-q", "--quiet", "--json"] {
            let run = demo(&format!("{line} {quiet}")).exits(0);
            assert!(!run.err.contains("next:") && !run.out.contains("next:"), "{line} {quiet}");
        }
    }
    let run = run("smoke", &["no-such-program".to_owned()]).exits(4);
    assert!(run.err.ends_with("  next: taut doctor -- no-such-program\n"), "{}", run.err);
}
