//! `--debug` and `taut.yaml`: who decides, what is told, and that no secret is.
//!
//! The lines of one message in each framing are files that people read in a review;
//! `TAUT_BLESS=1 cargo test -p taut-cli` writes them anew.

use super::*;

const SECRET: &str = "hunter2-and-more";

/// A folder of its own for one test.
fn folder(name: &str) -> PathBuf {
    let path = temporary().join(format!("debug-{name}"));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(path.join("taut")).unwrap();
    path
}

fn text(path: &std::path::Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Runs one with these bytes on stdin.
fn fed(mut command: Command, bytes: &str) -> Run {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(bytes.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

fn ping() -> String {
    let headers = format!(r#"{{"Authorization":"Bearer {SECRET}"}}"#);
    let params = format!(r#"{{"apiKey":"{SECRET}","note":"hello","headers":{headers}}}"#);
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{params}}}"#)
}

/// T6.
#[test]
fn the_lines_of_one_message_are_as_they_were_reviewed() {
    let ping = ping();
    let framed = format!("Content-Length: {}\r\n\r\n{ping}", ping.len());
    let kept = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/command/debug");
    for (name, bytes) in [("line", format!("{ping}\n")), ("framed", framed)] {
        let file = folder(name).join("steps.log");
        fed(taut(["serve", &format!("--debug={}", file.display())]), &bytes).exits(0);
        let told = text(&file);
        let path = kept.join(format!("{name}.txt"));
        if std::env::var_os("TAUT_BLESS").is_some() {
            std::fs::write(&path, &told).unwrap();
        }
        assert_eq!(told, text(&path), "{} differs; TAUT_BLESS=1 writes it anew", path.display());
        assert!(told.contains("\"***\"") && !told.contains(SECRET), "{told}");
    }
}

/// Issue 19, D4: a file has every message as it was on the wire, however long; stderr is for people.
#[test]
fn a_file_has_whole_messages_as_they_were() {
    let long = "x".repeat(100_000);
    let ping = format!(
        r#"{{ "jsonrpc":"2.0","id":1, "method":"ping","params":{{"z":1.50,"a":"{long}"}} }}"#
    );
    let file = folder("whole").join("steps.log");
    fed(taut(["serve", &format!("--debug={}", file.display())]), &format!("{ping}\n")).exits(0);
    assert!(text(&file).contains(&format!("json={ping}\n")), "it is cut or changed");
    let run = fed(taut(["serve", "--debug"]), &format!("{ping}\n")).exits(0);
    let line = run.err.lines().find(|line| line.contains("recv json=")).unwrap();
    assert!(line.len() < 5000 && line.ends_with('…'), "{} bytes", line.len());
}

/// The same where the message has escapes or a secret: only the secret changes.
#[test]
fn a_file_has_escapes_as_they_were_and_masks_nothing_but_the_secret() {
    let file = folder("escapes").join("steps.log");
    let written = SECRET.replace('h', "\\u0068").replace("and", r"\u0061n\u0064");
    let params = |key: &str, told: &str| {
        format!(
            r#"{{ "z":1.50,"text":"caf\u00E9 \/ \ud83d\ude00 {told} x","to\u006ben" : {key},"a":[] }}"#
        )
    };
    let message = |params: String| {
        format!(r#"{{ "jsonrpc":"2.0","id":1, "method":"ping","params":{params} }}"#)
    };
    let mut command = taut(["serve", &format!("--debug={}", file.display())]);
    command.env("MY_TOKEN", SECRET);
    fed(command, &format!("{}\n", message(params(r#""hunt\"er""#, &written)))).exits(0);
    let told = text(&file);
    let shown = message(params(r#""***""#, "***"));
    assert!(told.contains(&format!("json={shown}\n")), "{told}");
}

/// All eight: typed, in the environment, in the settings, each there or not.
#[test]
fn what_is_typed_goes_before_the_variable_before_the_settings() {
    // On Windows a server inherits APPDATA, so it writes to the file of its client's settings, too.
    let all = if cfg!(windows) { vec![true] } else { vec![false, true] };
    for serves in all {
        for bits in 0..8 {
            let folder = folder(&format!("order-{serves}-{bits}"));
            let file = |name: &str| folder.join(name);
            let has = |bit: usize| bits & (1 << bit) != 0;
            let mut words = vec![if serves { "serve" } else { "list" }.to_owned()];
            if has(0) {
                words.push(format!("--debug={}", file("typed").display()));
            }
            if !serves {
                words.extend(["--", "taut", "serve"].map(str::to_owned));
            }
            let mut command = taut(words);
            command.env(SETTINGS, &folder);
            if has(1) {
                command.env("TAUT_DEBUG", file("variable"));
            }
            if has(2) {
                // Counted from the file that says it.
                std::fs::write(file("taut/taut.yaml"), "debug: ../settings\n").unwrap();
            }
            fed(command, &format!("{}\n", ping())).exits(0);
            let told: Vec<&str> = ["typed", "variable", "settings"]
                .into_iter()
                .filter(|name| text(&file(name)).contains("[mcp] send"))
                .collect();
            let expected: &[&str] = match bits {
                0 => &[],
                _ if has(0) => &["typed"],
                _ if has(1) => &["variable"],
                _ => &["settings"],
            };
            assert_eq!(told, expected, "serve {serves}, {bits:03b}");
        }
    }
}

#[test]
fn without_a_file_it_is_told_on_stderr_and_the_result_stays_alone() {
    let run = demo("call add a=2 b=3 --debug").exits(0);
    assert_eq!(run.out, "{\"sum\":5}\n");
    for step in
        ["[mcp] send (line) bytes=", "[mcp] stdout chunk=", "[mcp] recv method=(result) id="]
    {
        assert!(run.err.contains(step), "{step}: {}", run.err);
    }
    let off = demo("call add a=2 b=3 --debug=off").exits(0);
    assert_eq!(off.err, "");
}

/// T6, T17.
/// Also SEC-11.
#[test]
fn values_of_the_servers_environment_are_not_told() {
    let line = format!("call echo text={SECRET} --debug --env MY_TOKEN={SECRET}");
    let run = demo(&line).exits(0);
    assert_eq!(run.out, format!("{SECRET}\n"), "the result is what was asked for");
    assert!(run.err.contains(r#""text":"***""#) && !run.err.contains(SECRET), "{}", run.err);
    // Nor what is secret in our own, which a server may inherit.
    let mut command =
        taut(["call", "echo", &format!("text={SECRET}"), "--debug", "--", "taut", "serve"]);
    let run: Run = command.env("SOME_API_KEY", SECRET).output().unwrap().into();
    assert!(!run.exits(0).err.contains(SECRET));
}

#[test]
fn a_file_of_its_own_takes_both_debug_and_transcript() {
    let folder = folder("both");
    let (steps, said) = (folder.join("steps"), folder.join("said"));
    let words =
        ["serve".to_owned(), format!("--debug={}", steps.display()), "--transcript".to_owned()];
    let mut command = taut(words);
    command.arg(&said);
    fed(command, &format!("{}\n", ping())).exits(0);
    assert!(text(&steps).contains("[mcp] recv method=ping"), "{}", text(&steps));
    let said = text(&said);
    assert!(said.starts_with(r#"{"kind":"header","format":"taut-trace""#), "{said}");
    assert!(said.contains(r#""kind":"message","from":"client","message":{"#), "{said}");
}

#[test]
fn settings_are_the_defaults_of_the_options() {
    let folder = folder("defaults");
    let file = folder.join("mine.yaml");
    std::fs::write(&file, "timeout: 1s\nrevision: 2025-06-18\n").unwrap();
    let settings = format!("--settings {}", file.display());
    let slow = "slow steps=1 step_ms=4000";
    demo(&format!("call {slow} {settings}")).exits(6);
    demo(&format!("call {slow} {settings} --timeout 60s")).exits(0);
    let smoke = demo(&format!("smoke --json {settings}")).exits(0).json();
    assert_eq!(smoke["revision"], "2025-06-18");
    let smoke = demo(&format!("--settings {} smoke --json --revision 2025-11-25", file.display()));
    assert_eq!(smoke.exits(0).json()["revision"], "2025-11-25");
}

/// A slip must not become a file of that name.
#[test]
fn what_is_neither_on_nor_off_nor_a_path_is_no_file() {
    let folder = folder("slips");
    let said = "expected on, off, or a file, which has a / or a . in it: ./onn";
    let mut typed = taut(["list", "--debug=onn", "--", "taut", "serve"]);
    let run: Run = typed.current_dir(&folder).output().unwrap().into();
    assert!(run.exits(2).err.contains(said));
    let mut set = taut(["list", "--", "taut", "serve"]);
    let run: Run = set.current_dir(&folder).env("TAUT_DEBUG", "onn").output().unwrap().into();
    let run = run.exits(2);
    assert!(run.err.starts_with(&format!("error: TAUT_DEBUG is \"onn\": {said}")), "{}", run.err);
    assert!(!folder.join("onn").exists());
    let mut set = taut(["list", "--", "taut", "serve"]);
    let run: Run = set.current_dir(&folder).env("TAUT_DEBUG", "./onn").output().unwrap().into();
    run.exits(0);
    assert!(folder.join("onn").exists());
}

#[test]
fn a_mistake_in_the_settings_is_told_with_its_place() {
    let folder = folder("mistakes");
    let file = folder.join("taut/taut.yaml");
    std::fs::write(&file, "# mine\ntimout: 5s\n").unwrap();
    for words in [["list", "--", "taut", "serve"], ["smoke", "--", "taut", "serve"]] {
        let run: Run = taut(words).env(SETTINGS, &folder).output().unwrap().into();
        let told = format!(
            "error: {}:2:1: unknown setting \"timout\", expected one of debug, ",
            file.display()
        );
        assert!(run.err.starts_with(&told), "{}", run.err);
        assert!(run.err.contains("  try: correct it"), "{}", run.err);
        assert_eq!((run.code, run.out.as_str()), (2, ""));
    }
    // What a shell or a host starts is not stopped by it.
    for words in [vec!["completions", "bash"], vec!["man"], vec!["--version"], vec!["help"]] {
        let run: Run = taut(&words).env(SETTINGS, &folder).output().unwrap().into();
        assert_eq!(run.exits(0).err, "", "{words:?}");
    }
    let mut command = taut(["serve"]);
    command.env(SETTINGS, &folder);
    let run = fed(command, &format!("{}\n", ping())).exits(0);
    assert!(run.out.contains("\"result\""), "{}", run.out);
    assert!(
        run.err.starts_with("settings left out: ") && run.err.contains("timout"),
        "{}",
        run.err
    );
    let named: Run = taut([
        OsStr::new("completions"),
        OsStr::new("bash"),
        OsStr::new("--settings"),
        file.as_os_str(),
    ])
    .output()
    .unwrap()
    .into();
    named.exits(2);
    let run = demo("list --settings /no/such/file.yaml").exits(2);
    assert!(
        run.err.starts_with("error: reading the settings in /no/such/file.yaml"),
        "{}",
        run.err
    );
    let run = demo("list --debug=/no/such/folder/steps").exits(2);
    assert!(run.err.starts_with("error: opening /no/such/folder/steps for --debug"), "{}", run.err);
}
