//! `taut smoke --all`: every server that the files have, and what one of them does to the others.

use serde_json::json;

use super::hosts::Place;
#[cfg(unix)]
use super::terminal::{Terminal, plain};
use super::*;

/// A file with servers of every kind of luck.
fn mixed() -> Place {
    let place = Place::empty();
    let rude = server("2025-11-25");
    let circular = server("2025-11-25 circular");
    let dying = server("2025-11-25 exit-on-initialize");
    let servers = json!({
        "good": { "command": "taut", "args": ["serve"] },
        "nowhere": { "command": "no-such-program" },
        "dying": { "command": dying[0], "args": dying[1..] },
        "lacking": { "command": "npx", "args": ["${NO_SUCH_VARIABLE}"] },
        "strange": { "args": [] },
        "remote": { "type": "http", "url": "http://127.0.0.1:9/mcp" },
        "asleep": { "command": "npx", "disabled": true },
        "old": { "command": rude[0], "args": rude[1..] },
        "circular": { "command": circular[0], "args": circular[1..] },
    });
    place.put(".mcp.json", &json!({ "mcpServers": servers }).to_string());
    place.put(".cursor/mcp.json", r#"{ "mcpServers": { "good": { "command": "other" } } }"#);
    place
}

#[test]
fn one_bad_server_never_stops_the_others() {
    let place = mixed();
    let run = place.run("smoke --all --json").exits(5);
    let json = run.json();
    assert_eq!((&json["ok"], &json["exit"]), (&json!(false), &json!(5)));
    let servers = json["servers"].as_array().unwrap();
    let outcomes: Vec<_> = servers
        .iter()
        .map(|row| (row["name"].as_str().unwrap(), row["outcome"].as_str().unwrap()))
        .collect();
    // In the order of the file, which is that of the alphabet here.
    let expected = [
        ("asleep", "skipped"),
        ("circular", "failed"),
        ("dying", "failed"),
        ("good", "works"),
        ("lacking", "failed"),
        ("nowhere", "failed"),
        ("old", "works"),
        ("remote", "failed"),
        ("strange", "failed"),
    ];
    assert_eq!(outcomes, expected);
    let row = |name: &str| servers.iter().find(|row| row["name"] == name).unwrap();
    assert_eq!(row("good")["era"], "modern");
    assert_eq!(row("old")["revision"], "2025-11-25");
    assert_eq!(row("lacking")["why"], "the variable NO_SUCH_VARIABLE is not set");
    assert!(row("dying")["why"].as_str().unwrap().contains("cannot open the database"));
}

/// P27: package runners that download at the same time break each other's files.
#[test]
// About Unix itself: its shell.
#[cfg(unix)]
fn p27_one_package_is_downloaded_at_a_time() {
    let place = Place::empty();
    let folder = place.home().join("bin");
    std::fs::create_dir_all(&folder).unwrap();
    let lock = folder.join("lock");
    std::os::unix::fs::symlink("/bin/sh", folder.join("npx")).unwrap();
    let script = format!(
        "mkdir {lock} || exit 1; sleep 0.2; rmdir {lock}; exec {taut} serve",
        lock = lock.display(),
        taut = env!("CARGO_BIN_EXE_taut"),
    );
    let entry = json!({ "command": folder.join("npx"), "args": ["-c", script] });
    let servers = json!({ "a": entry, "b": entry, "c": entry, "d": entry });
    place.put(".mcp.json", &json!({ "mcpServers": servers }).to_string());
    let json = place.run("smoke --all --json").exits(0).json();
    assert_eq!(json["servers"].as_array().unwrap().len(), 4, "{json}");
}

#[test]
fn one_that_says_nothing_holds_nobody_up() {
    let place = Place::empty();
    let silent = server("sleeper");
    let servers = json!({
        "a-silent": { "command": silent[0], "args": silent[1..] },
        "b-good": { "command": "taut", "args": ["serve"] },
    });
    place.put(".mcp.json", &json!({ "mcpServers": servers }).to_string());
    let json = place.run("smoke --all --json --start-timeout 5s").exits(4).json();
    let outcome = |at: usize| json["servers"][at]["outcome"].clone();
    assert_eq!((outcome(0), outcome(1)), (json!("failed"), json!("works")));
}

#[test]
fn the_table_has_a_line_for_each_and_the_first_failure_decides() {
    let place = mixed();
    let run = place.run("smoke --all").exits(5);
    let lines: Vec<&str> = run.out.lines().collect();
    assert!(lines[0].starts_with("name      from       revision"), "{}", run.out);
    let line = |name: &str| lines.iter().find(|line| line.starts_with(name)).unwrap();
    assert!(line("good ").contains(" 2026-07-28 modern ") && line("good ").ends_with("✓ works"));
    assert!(line("remote ").contains("✗ http://127.0.0.1:9/mcp: cannot be reached"), "{}", run.out);
    assert!(line("asleep ").ends_with("· off: disabled is true"), "{}", run.out);
    assert!(
        line("nowhere ").ends_with("✗ the program \"no-such-program\" was not found"),
        "{}",
        run.out
    );
    assert!(line("strange ").contains("✗ line 1, column "), "{}", run.out);
    // The cause comes first: the rest may be cut off.
    assert!(line("dying ").contains("cannot open the database"), "{}", run.out);
    assert!(run.out.contains("\n✗ 2 of 8 work, 1 not tried, 1 shadowed, "), "{}", run.out);
    assert!(run.out.ends_with("try: taut smoke circular, for the whole story\n"), "{}", run.out);
}

#[test]
fn the_exit_code_of_all_is_documented() {
    let place = Place::empty();
    place.run("smoke --all").exits(2);
    place
        .put(".mcp.json", r#"{ "mcpServers": { "a": { "command": "taut", "args": ["serve"] } } }"#);
    assert!(place.run("smoke --all").exits(0).out.contains("\n✓ 1 of 1 work, "));
    // All worked, but who knows what else there is.
    place.put(".cursor/mcp.json", "{ nonsense");
    let run = place.run("smoke --all").exits(2);
    assert!(run.out.contains("\n✓ 1 of 1 work, 1 file left out, "), "{}", run.out);
    let place = Place::empty();
    place.put(".mcp.json", r#"{ "mcpServers": { "a": { "command": "taut", "disabled": true } } }"#);
    assert!(place.run("smoke --all").exits(0).out.contains("there is none to try"));
    place.run("smoke --all a").exits(2);
    place.run("smoke --all -- taut serve").exits(2);
}

#[test]
// About Unix itself: signals.
#[cfg(unix)]
fn an_interrupt_ends_all_of_them() {
    let place = Place::empty();
    let word = format!("taut-all-{}", std::process::id());
    let entry = |n: u32| {
        (
            format!("s{n}"),
            json!({ "command": "sh", "args": ["-c", format!("exec sleep 1000 # {word}")] }),
        )
    };
    let servers: serde_json::Map<_, _> = (0..6)
        .map(entry)
        .chain([("a".to_owned(), json!({ "command": "no-such-program" }))])
        .collect();
    place.put(".mcp.json", &json!({ "mcpServers": servers }).to_string());
    // The word stands in the command line of the shell only until it is replaced, so look for a variable.
    let mut command = place.command("smoke --all --inherit-env");
    let child = command.env("TAUT_ALL", &word).spawn().unwrap();
    eventually("four are running", || processes_with(&word).len() >= 5);
    let pid = rustix::process::Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let run: Run = child.wait_with_output().unwrap().into();
    let run = run.exits(130);
    // What was found out until then is shown.
    assert!(run.out.contains("✗ the program \"no-such-program\" was not found"), "{}", run.out);
    assert_eq!(run.out.matches("· interrupted").count(), 6, "{}", run.out);
    eventually("nothing is left", || processes_with(&word).is_empty());
}

/// On a terminal nothing is broken by its edge: the outcome has the room that is left.
#[test]
// About Unix itself: terminals.
#[cfg(unix)]
fn the_table_fits_the_screen() {
    let place = mixed();
    for columns in [100, 80, 40] {
        let terminal = Terminal::run_sized(columns, place.command("smoke --all"));
        let (text, _) = terminal.end();
        let text = plain(&text);
        let table = text.split("name ").nth(1).unwrap().split("\r\n\r\n").next().unwrap();
        for line in table.lines().skip(1) {
            let wide = line.trim_end().chars().count();
            assert!(wide <= usize::from(columns), "{wide} of {columns}: {line:?}");
        }
        assert!(table.contains("✗ the variable NO_SUCH_"), "{columns}: {table}");
    }
}
