//! Servers by name: one file of each host, in the shape that its own documentation shows.
//!
//! The files are in `hosts/`, copied for each test to a home and a project of its own. `npx`, `uvx` and
//! the others are scripts that write down how they were started and then are the demo.
//!
//! The tests here are about Unix itself: where hosts keep their files there, and scripts. On Windows
//! `files_of_hosts_are_found_in_their_places` in `tests/windows.rs` is the same.

#[cfg(unix)]
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

#[cfg(unix)]
use serde_json::json;

use super::*;

/// A home, a project in it, and programs.
pub(super) struct Place {
    root: PathBuf,
}

impl Place {
    pub(super) fn empty() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("hosts-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let root = temporary().join(name);
        let place = Self { root };
        for folder in ["home/project/.git", "home/project/deep/er", "bin"] {
            std::fs::create_dir_all(place.root.join(folder)).unwrap();
        }
        for program in ["npx", "uvx", "node", "python", "bun"] {
            let script = "#!/bin/sh\n{ echo \"$0 $*\"; pwd; env; } > \"$SEEN\"\nexec taut serve\n";
            let script = script.replace("$SEEN", place.root.join("seen").to_str().unwrap());
            let path = place.root.join("bin").join(program);
            make_program(&path, &script);
        }
        place
    }

    /// With a file of each host.
    #[cfg(unix)]
    pub(super) fn full() -> Self {
        let place = Self::empty();
        let from = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/command/hosts");
        let project = place.project().to_str().unwrap().to_owned();
        copy(&from.join("home"), &place.home(), &project);
        copy(&from.join("project"), &place.project(), &project);
        for folder in ["tools", "mcp-servers/python"] {
            std::fs::create_dir_all(place.project().join(folder)).unwrap();
        }
        place.put(".env", "# for the server\nexport REGION=\"north\"\nCURSOR_NAME=plain\n");
        place
    }

    pub(super) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub(super) fn project(&self) -> PathBuf {
        self.home().join("project")
    }

    /// Writes a file of the project.
    pub(super) fn put(&self, path: &str, text: &str) {
        let path = self.project().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(super) fn command(&self, line: &str) -> Command {
        let mut command = taut(line.split_whitespace());
        let path = command.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap();
        let bin = self.root.join("bin");
        let path = [bin].into_iter().chain(std::env::split_paths(path));
        let path = std::env::join_paths(path.collect::<Vec<_>>()).unwrap();
        at_home(&mut command, &self.home()).env("PATH", path).current_dir(self.project());
        command
    }

    pub(super) fn run(&self, line: &str) -> Run {
        self.command(line).output().unwrap().into()
    }

    /// How the last server was started: its command line, its folder, its environment.
    #[cfg(unix)]
    fn seen(&self) -> (String, PathBuf, BTreeMap<String, String>) {
        let text = std::fs::read_to_string(self.root.join("seen")).unwrap();
        let mut lines = text.lines();
        let line = lines.next().unwrap().replace(self.root.join("bin/").to_str().unwrap(), "");
        let folder = PathBuf::from(lines.next().unwrap());
        let pairs = lines.filter_map(|line| line.split_once('='));
        (line, folder, pairs.map(|(n, v)| (n.to_owned(), v.to_owned())).collect())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// A script that can be started; on Windows by a file beside it, as npm does it.
#[cfg(unix)]
fn make_program(path: &Path, script: &str) {
    rude::system::write_script(path, script);
}

#[cfg(windows)]
fn make_program(path: &Path, script: &str) {
    std::fs::write(path, script).unwrap();
    std::fs::write(path.with_extension("cmd"), "@taut serve\r\n").unwrap();
}

#[cfg(unix)]
fn copy(from: &Path, to: &Path, project: &str) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target, project);
        } else {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            std::fs::write(target, text.replace("@PROJECT@", project)).unwrap();
        }
    }
}

/// Name, host and scope of each server, in the order in which they count.
#[cfg(unix)]
const ALL: [(&str, &str, &str, &str); 25] = [
    ("claude-local", "Claude Code", "local", "stdio"),
    ("shared", "Claude Code", "project", "stdio"),
    ("tracker", "Claude Code", "project", "http"),
    ("events", "Claude Code", "project", "sse"),
    ("everywhere", "Claude Code", "project", "stdio"),
    ("cursor-local", "Cursor", "project", "stdio"),
    ("cursor-remote", "Cursor", "project", "remote"),
    ("code-fetch", "VS Code", "project", "stdio"),
    ("code-search", "VS Code", "project", "stdio"),
    ("code-remote", "VS Code", "project", "http"),
    ("codex-project", "Codex", "project", "stdio"),
    ("oc-local", "opencode", "project", "stdio"),
    ("oc-remote", "opencode", "project", "remote"),
    ("gem-python", "Gemini CLI", "project", "stdio"),
    ("gem-http", "Gemini CLI", "project", "http"),
    ("gem-excluded", "Gemini CLI", "project", "stdio"),
    ("claude-user", "Claude Code", "user", "stdio"),
    ("everywhere", "Claude Code", "user", "stdio"),
    ("desktop-files", "Claude Desktop", "user", "stdio"),
    ("desktop-search", "Claude Desktop", "user", "stdio"),
    ("cursor-user", "Cursor", "user", "stdio"),
    ("code-user", "VS Code", "user", "stdio"),
    ("docs", "Codex", "user", "stdio"),
    ("design", "Codex", "user", "remote"),
    ("resting", "Codex", "user", "stdio"),
];

/// T16: each host's file is read, in the shape that its documentation shows.
#[test]
#[cfg(unix)]
fn the_files_of_every_host_are_read() {
    let place = Place::full();
    let json = place.run("servers --json").exits(0).json();
    let servers = json["servers"].as_array().unwrap();
    let text = |server: &Value, key: &str| server[key].as_str().unwrap_or_default().to_owned();
    let found: Vec<_> = servers
        .iter()
        .map(|s| (text(s, "name"), text(s, "host"), text(s, "scope"), text(s, "transport")))
        .collect();
    let expected = ALL.map(|(a, b, c, d)| (a.into(), b.into(), c.into(), d.into()));
    assert_eq!(found[..ALL.len()], expected, "{found:#?}");
    let rest: Vec<_> = found[ALL.len()..].iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(rest, ["oc-off", "gem-user"]);
    let named = |name: &str| servers.iter().find(|s| s["name"] == name).unwrap();
    for name in ["resting", "oc-off", "gem-excluded"] {
        assert_eq!(named(name)["enabled"], false, "{name}");
    }
    assert_eq!(named("shared")["missing"], json!(["the variable NOTES_TOKEN is not set"]));
    let asks = "its host asks a person for search-key (Key of the search service)";
    assert_eq!(named("code-search")["missing"], json!([asks]));
    let shadowed = servers.iter().find(|s| !s["shadowed_by"].is_null()).unwrap();
    assert_eq!(shadowed["command"], json!(["npx", "from-claude-user"]));
    assert_eq!(shadowed["shadowed_by"], json!(place.project().join(".mcp.json")));
    assert_eq!(json["broken"], json!([]));
}

#[test]
#[cfg(unix)]
fn a_server_of_every_host_is_started_as_its_file_says() {
    let place = Place::full();
    let home = place.home();
    let vars = [
        ("NOTES_TOKEN", "t-1"),
        ("CURSOR_FIXTURE_KEY", "t-2"),
        ("CODEX_FIXTURE_VAR", "t-3"),
        ("OPENCODE_FIXTURE_ARG", "t-4"),
        ("GEMINI_FIXTURE_DB", "t-5"),
        ("GEMINI_FIXTURE_KEY", "t-6"),
        ("ONLY_OURS", "yes"),
    ];
    let project = place.project();
    let script = format!("{}/tools/mcp_server.py", project.display());
    // Name, command line, folder below the project, a variable that it gets, and whether it gets all.
    let table = [
        ("shared", "npx -y @example/team-notes --root ./notes", "", "NOTES_TOKEN=t-1", true),
        ("claude-local", "node local.js", "", "", true),
        ("desktop-search", "npx -y @example/search", "", "SEARCH_API_KEY=fixture-value-1", false),
        (
            "cursor-local",
            &format!("python {script} --home {}/data", home.display()),
            "",
            "API_KEY=t-2",
            false,
        ),
        ("code-fetch", "uvx mcp-server-fetch", "", "", true),
        ("docs", "npx -y @example/docs-mcp", "", "CODEX_FIXTURE_VAR=t-3", false),
        ("codex-project", "node server.js", "tools", "", false),
        ("oc-local", "bun x my-mcp-command t-4", "", "SECRET=from a file", true),
        (
            "gem-python",
            "python -m my_mcp_server --port 8080",
            "mcp-servers/python",
            "API_KEY=t-6",
            true,
        ),
    ];
    for (name, line, folder, variable, whole) in table {
        let mut command = place.command(&format!("list tools {name}"));
        let run: Run = command.envs(vars).output().unwrap().into();
        assert!(run.exits(0).out.starts_with("tools "), "{name}");
        let (seen, at, env) = place.seen();
        assert_eq!((seen.as_str(), at), (line, project.join(folder)), "{name}");
        if let Some((variable, value)) = variable.split_once('=') {
            assert_eq!(env.get(variable).map(String::as_str), Some(value), "{name}");
        }
        assert_eq!(env.contains_key("ONLY_OURS"), whole, "{name}: as its host does");
    }
    let line = format!("npx {}/notes", home.display());
    place.put(
        ".vscode/mcp.json",
        r#"{ "servers": { "it": { "command": "npx", "args": ["~/notes"], "env": { "PATH": "/x/y" } } } }"#,
    );
    Run::from(place.command("list it").output().unwrap()).exits(0);
    let (seen, _, env) = place.seen();
    assert!(seen == line && env["PATH"].ends_with(":/x/y"), "{seen} {}", env["PATH"]);
    // What is typed goes before what is written; the file of variables is read.
    let mut command = place.command("list cursor-local --env API_KEY=mine");
    Run::from(command.envs(vars).output().unwrap()).exits(0);
    let (_, _, env) = place.seen();
    assert_eq!((env["API_KEY"].as_str(), env["REGION"].as_str()), ("mine", "north"));
    assert_eq!(env["CURSOR_NAME"], "plain");
}

/// T16: one broken file costs nobody the others.
#[test]
#[cfg(unix)]
fn a_broken_file_is_reported_with_line_and_column_and_the_others_are_used() {
    let place = Place::empty();
    place.put(".mcp.json", "{\n  \"mcpServers\": {\n    \"a\": { \"command\" \"npx\" }\n  }\n}\n");
    place.put(".cursor/mcp.json", r#"{ "mcpServers": { "b": { "command": "npx" } } }"#);
    place.put(".vscode/mcp.json", "{ \"servers\": [1] }");
    place.put(".codex/config.toml", "[mcp_servers.c]\ncommand = \"npx\n");
    place.put(
        ".gemini/settings.json",
        "{\n  \"mcpServers\": { \"d\": { \"args\": 3,\n  \"command\": 4 } }\n}",
    );
    let run = place.run("servers").exits(2);
    for line in [
        ".mcp.json  Claude Code, project\n  ✗ line 3, column 22: ",
        ".vscode/mcp.json  VS Code, project\n  ✗ line 1, column 14: expected servers by name, found a list",
        ".codex/config.toml  Codex, project\n  ✗ line 2, column 15: ",
        "line 3, column 14: \"command\" must be text, not a number",
        "  b  npx\n",
    ] {
        assert!(run.out.contains(line), "{line}\n{}", run.out);
    }
    let broken = place.run("servers --json").exits(2).json()["broken"].clone();
    assert_eq!((&broken[0]["line"], &broken[0]["column"]), (&json!(3), &json!(22)));
    assert_eq!(broken.as_array().unwrap().len(), 3);
    // Told to who misses a server, and to who wants to know everything.
    assert_eq!(place.run("list tools b").exits(0).err, "");
    for (line, code) in [("list tools b -v", 0), ("list tools bb", 2), ("smoke --all", 2)] {
        let run = place.run(line);
        let told = run.err.contains("left out: .mcp.json: line 3, column 22: ");
        assert!(told && (run.code == code || line.contains("all")), "{line}: {}", run.err);
    }
    let run = place.run("list d").exits(2);
    assert!(run.err.contains(".gemini/settings.json:3:14: d: \"command\" must be"), "{}", run.err);
}

#[test]
#[cfg(unix)]
fn a_name_that_leads_nowhere_says_where_it_was_looked_for() {
    let place = Place::full();
    let run = place.run("smoke desktop-serach").exits(2);
    assert!(
        run.err.contains("there is no server \"desktop-serach\"; did you mean desktop-search?")
    );
    assert!(run.err.contains("from ~/.claude.json, .mcp.json, "), "{}", run.err);
    let run = place.run("smoke tracker").exits(2);
    assert!(
        run.err.contains("tracker in .mcp.json: the variable TRACKER_KEY is not set"),
        "{}",
        run.err
    );
    assert!(run.err.contains("--header \"Authorization: …\""), "{}", run.err);
    let run = place.run("smoke shared").exits(2);
    assert!(
        run.err.contains("shared in .mcp.json: the variable NOTES_TOKEN is not set"),
        "{}",
        run.err
    );
    assert!(run.err.contains("try: --env NOTES_TOKEN=…"), "{}", run.err);
    let run = place.run("smoke code-search").exits(2);
    assert!(run.err.contains("try: --env SEARCH_KEY=…"), "{}", run.err);
    place.run("smoke code-search --env SEARCH_KEY=x").exits(0);
    let run = place.run("smoke resting").exits(4);
    assert!(run.err.contains("resting is switched off in ~/.codex/config.toml"), "{}", run.err);
    let run = place.run("call echo text=x -s everywhere").exits(0);
    assert!(
        run.err.contains("everywhere is the one in .mcp.json; it shadows that in ~/.claude.json")
    );
    assert_eq!(place.seen().0, "uvx from-the-project");
    // A name may stand last everywhere, and first where people put it.
    for line in
        ["call echo text=x everywhere", "read demo://readme everywhere", "prompt hello everywhere"]
    {
        place.run(line).exits(0);
    }
    place.run("call echo --args {\"text\":\"x\"} everywhere").exits(0);
    let run = place.run("call everywhere echo text=x").exits(2);
    assert!(run.err.contains("everywhere is a server; the tool comes first"), "{}", run.err);
    assert!(run.err.contains("try: taut call echo text=x everywhere\n"), "{}", run.err);
    let run = place.run("call echo text=x -s everywhere nonsense").exits(2);
    assert!(run.err.contains("\"nonsense\" is no key=value"), "{}", run.err);
    let run = place.run("call echo text=x --args {} everywhere").exits(2);
    assert!(run.err.contains("only one can be meant"), "{}", run.err);
    let run = place.run("smoke shared -- npx").exits(2);
    assert!(run.err.contains("only one can be meant"), "{}", run.err);
    let run = place.run("list tols -- npx").exits(2);
    assert!(run.err.contains("\"tols\" is not tools, resources,"), "{}", run.err);
    assert!(run.err.contains("try: taut list tools -- …\n"), "{}", run.err);
    let nothing = Place::empty();
    let run = nothing.run("smoke github").exits(2);
    assert!(run.err.contains("no host's file here has a server; `taut servers -v` shows"));
    assert!(run.err.contains("if github is a program: -- github"), "{}", run.err);
    assert!(nothing.run("servers").exits(0).out.contains("no host's file here has a server"));
}

#[test]
#[cfg(unix)]
fn a_project_is_searched_up_to_its_root_and_no_further() {
    let place = Place::empty();
    place.put(".mcp.json", r#"{ "mcpServers": { "top": { "command": "npx" } } }"#);
    place.put("deep/.mcp.json", r#"{ "mcpServers": { "deep": { "command": "npx" } } }"#);
    std::fs::write(
        place.home().join(".mcp.json"),
        r#"{ "mcpServers": { "home": { "command": "npx" } } }"#,
    )
    .unwrap();
    let names = |folder: PathBuf| {
        let run: Run = place.command("servers --json").current_dir(folder).output().unwrap().into();
        let json = run.exits(0).json();
        let servers = json["servers"].as_array().unwrap();
        servers.iter().map(|s| s["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(place.project().join("deep/er")), ["deep", "top"]);
    assert_eq!(names(place.project()), ["top"]);
    assert_eq!(names(place.home()), ["home"]);
    // A server starts where its file is, since that is what its paths mean.
    let mut command = place.command("list top");
    Run::from(command.current_dir(place.project().join("deep/er")).output().unwrap()).exits(0);
    assert_eq!(place.seen().1, place.project());
}

#[test]
#[cfg(unix)]
fn any_file_is_read_by_its_shape_with_config() {
    let place = Place::empty();
    let table = [
        ("a.json", r#"{ "mcpServers": { "it": { "command": "npx", "args": ["${X:-d}"] } } }"#),
        ("b.json", r#"{ "servers": { "it": { "command": "npx", "args": ["${env:X:-d}"] } } }"#),
        ("c.json", r#"{ "mcp": { "it": { "type": "local", "command": ["npx", "d"] } } }"#),
        ("d.json", r#"{ "mcp": { "servers": { "it": { "command": "npx", "args": ["d"] } } } }"#),
        ("e.toml", "[mcp_servers.it]\ncommand = \"npx\"\nargs = [\"d\"]\n"),
    ];
    for (file, text) in table {
        place.put(file, text);
        place.run(&format!("list tools it --config {file}")).exits(0);
        assert_eq!(place.seen().0, "npx d", "{file}");
    }
    place.put(".mcp.json", r#"{ "mcpServers": { "hidden": { "command": "npx" } } }"#);
    let json = place.run("servers --json --config a.json --config b.json").exits(0).json();
    let names = json["servers"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap());
    assert_eq!(names.collect::<Vec<_>>(), ["it", "it"]);
    let run = place.run("servers --config .").exits(2);
    assert!(run.out.contains("Is a directory"), "{}", run.out);
    let script = "taut servers --config <(cat b.json)";
    let mut shell = Command::new("bash");
    let from = place.command("");
    shell.args(["-c", script]).current_dir(place.project()).env_clear();
    shell.envs(from.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let run: Run = shell.output().unwrap().into();
    assert!(run.exits(0).out.contains("npx ${env:X:-d}"));
    place.put("f.json", r#"{ "name": "a package" }"#);
    let run = place.run("servers --config f.json").exits(2);
    assert!(run.out.contains("line 1, column 1: no servers here"), "{}", run.out);
    let run = place.run("smoke it --config nowhere.json").exits(2);
    let said = "error: nowhere.json: there is no such file\nno other file has a server, so there is no \"it\"\n";
    assert!(run.err.starts_with(said), "{}", run.err);
    let run = place.run("list --config nowhere.json").exits(2);
    assert!(
        run.err.contains("which server?\nnowhere.json: there is no such file\n"),
        "{}",
        run.err
    );
}

/// T17: neither what is written in a file nor what it refers to.
/// Also SEC-11.
#[test]
#[cfg(unix)]
fn no_secret_of_a_file_is_shown() {
    let place = Place::full();
    place.put(
        "s.json",
        r#"{ "mcpServers": { "it": { "command": "npx", "env": { "MODE": "hush-1" },
             "args": ["--api-key", "hush-2", "--token=hush-3", "${FROM_ENV}", "https://me:hush-5@x.org/"] } } }"#,
    );
    for line in ["servers", "servers --json", "smoke it", "smoke it --json", "doctor it"] {
        let line = format!("{line} --config s.json");
        let run: Run = place.command(&line).env("FROM_ENV", "hush-4").output().unwrap().into();
        let all = format!("{}{}", run.out, run.err);
        assert!(all.contains("npx") && !all.contains("hush"), "{line}: {all}");
    }
    let all = place.run("servers").exits(0).out;
    assert!(!all.contains("fixture-value"), "{all}");
    assert!(
        all.contains("SEARCH_API_KEY=***") && all.contains("NOTES_TOKEN=${NOTES_TOKEN}"),
        "{all}"
    );
}

/// A reader of JSON keeps one of two and says nothing.
#[test]
#[cfg(unix)]
fn what_is_there_twice_or_misspelt_is_told() {
    let place = Place::empty();
    place.put(
        ".mcp.json",
        r#"{ "mcpServers": { "a": { "command": "x" }, "t": { "comand": "npx" },
             "a": { "command": "npx", "args": ["1"], "args": ["2"] } } }"#,
    );
    let out = place.run("servers").exits(0).out;
    for line in [
        "· it is there twice; the last counts",
        "· it has \"args\" twice; the last counts",
        "it has no \"command\"; is \"comand\" meant to be it?",
    ] {
        assert!(out.contains(line), "{line}: {out}");
    }
    let run = place.run("list tools a").exits(0);
    assert!(
        run.err.contains("a in .mcp.json: it is there twice; the last counts\n"),
        "{}",
        run.err
    );
    assert_eq!(place.seen().0, "npx 2");
    assert!(place.run("smoke t").exits(2).err.contains("is \"comand\" meant to be it?"));
}

/// An entry that has a taut on its own name started servers without end: the load of the machine rose to 1645.
#[test]
// About Unix itself: a shell stands between.
#[cfg(unix)]
fn an_entry_that_starts_taut_on_its_own_name_is_refused() {
    let place = Place::empty();
    place.put(
        ".mcp.json",
        r#"{ "mcpServers": {
            "itself": { "command": "taut", "args": ["bridge", "itself"] },
            "one": { "command": "taut", "args": ["bridge", "other"] },
            "other": { "command": "taut", "args": ["trace", "--quiet", "--record", "kept.jsonl", "one"] },
            "shell": { "command": "sh", "args": ["-c", "exec taut bridge shell"] },
            "plain": { "command": "taut", "args": ["bridge", "behind"] },
            "behind": { "command": "taut", "args": ["serve"] }
        } }"#,
    );
    for name in ["itself", "one", "other", "shell"] {
        let run = place.run(&format!("smoke {name}"));
        assert_ne!(run.code, 0, "{name}: {run:?}");
        let said = format!("{}{}", run.out, run.err);
        assert!(said.contains("it would start itself without end"), "{name}: {said}");
    }
    let direct = place.run("list itself");
    assert!(direct.err.contains("the server's own command"), "{}", direct.err);
    place.run("smoke plain").exits(0);
}

/// A program where a server's name belongs is answered with the line that starts it.
#[test]
// About Unix itself: how its shells quote, and its names of programs.
#[cfg(unix)]
fn a_program_in_the_place_of_a_name_is_answered_with_a_line() {
    let place = Place::empty();
    place.put(
        ".mcp.json",
        r#"{ "mcpServers": { "one": { "command": "taut", "args": ["serve"] } } }"#,
    );
    place.put("mine.py", "");
    for (word, line) in [
        ("uvx", "taut smoke -- uvx '…'"),
        ("mine.py", "taut smoke -- python3 mine.py"),
        ("onne", "taut smoke one"),
    ] {
        let run = place.run(&format!("smoke {word}")).exits(2);
        assert!(run.err.contains(&format!("try: {line}\n")), "{word}: {}", run.err);
    }
}

/// The entry that doctor prints for a server by name replaces the one that is there.
#[test]
// About Unix itself: a shell plays the server.
#[cfg(unix)]
fn the_entry_of_doctor_has_the_name_that_was_asked_for() {
    let place = Place::empty();
    let words = r#"{ "mcpServers": { "weather": { "command": "sh", "args": ["-c", "echo hello; exec taut serve"] } } }"#;
    place.put(".mcp.json", words);
    let run = place.run("doctor weather");
    assert!(run.out.contains(r#""weather": { "command": "taut""#), "{}", run.out);
}
