//! Times that no clock can count: every option that takes one means "for ever" by it.

use super::http::Listening;
use super::*;

/// More hours than any clock counts.
const LONGEST: &str = "99999999999999h";

/// The times of every command that talks to one server.
const COMMON: &[&str] = &["--timeout", "--start-timeout", "--max-time"];

/// A capture that `taut trace replay` plays.
const CAPTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/trace/captures/modern.jsonl");

/// Each command with its times, the words with which it ends by itself against the demo, and how it ends. A watch ends
/// by nothing but its time, and a login finds no server.
const TABLE: &[(&str, &[&str], &str, i32)] = &[
    ("smoke", COMMON, "", 0),
    ("list", COMMON, "tools", 0),
    ("call", COMMON, "echo text=hello", 0),
    ("read", COMMON, "demo://touched", 0),
    ("prompt", COMMON, "hello", 0),
    ("complete", COMMON, "greet name=A", 0),
    ("shell", COMMON, "", 0),
    ("watch", &["--for", "--timeout", "--start-timeout"], "--max-time 300ms", 6),
    ("trace replay", &["--timeout"], CAPTURE, 0),
    ("bridge", &["--session-idle", "--drain", "--start-timeout"], "--listen 127.0.0.1:0", 0),
    ("login", &["--browser-timeout"], "http://127.0.0.1:9/mcp", 4),
    ("doctor", COMMON, "", 0),
    ("check", COMMON, "--only ping", 0),
    ("bench", &["--timeout"], "--quick --only sequential", 0),
    ("serve", &["--drain"], "", 0),
];

/// The words under "Commands:" in a help.
fn commands(help: &str) -> impl Iterator<Item = &str> {
    let (_, rest) = help.split_once("Commands:\n").unwrap_or_default();
    rest.lines().take_while(|line| line.starts_with("  ")).filter_map(|line| {
        // What goes on from the line before is further to the right.
        line.strip_prefix("  ").filter(|line| !line.starts_with(' '))?.split(' ').next()
    })
}

/// A new option that is a time gets its row.
#[test]
fn every_option_that_is_a_time_stands_in_the_table() {
    let help = |words: &str| run(&format!("{words} --help"), &[]).exits(0).out;
    let mut all: Vec<String> = commands(&help("")).map(str::to_owned).collect();
    assert!(all.len() > 15, "{all:?}");
    all.extend(commands(&help("trace")).map(|command| format!("trace {command}")));
    for command in all {
        let help = help(&command);
        let times: Vec<&str> = help
            .lines()
            .filter_map(|line| line.trim_start().split_once(" <TIME>"))
            .filter_map(|(option, _)| option.split(' ').next_back())
            .collect();
        let row = TABLE.iter().find(|(known, ..)| *known == command);
        let known = row.map_or(&[][..], |(_, options, ..)| *options);
        let missing: Vec<_> = times.iter().filter(|time| !known.contains(time)).collect();
        // Options of a fleet, which tests without a broker cannot use; and the one that ends a watch.
        let broker = ["--wait", "--deadline", "--max-time"];
        let missing: Vec<_> = missing.into_iter().filter(|time| !broker.contains(*time)).collect();
        assert!(missing.is_empty() || command == "worker", "{command}: {missing:?} has no row");
    }
}

/// With the longest times each command does what it does with others.
#[test]
fn every_time_may_be_as_long_as_one_likes() {
    let bench = cfg!(all(target_os = "linux", not(taut_portable)));
    let here = |name: &str| name != "bridge" && (name != "bench" || bench);
    for (command, options, words, code) in TABLE.iter().filter(|(name, ..)| here(name)) {
        let times: Vec<_> = options.iter().map(|option| format!("{option} {LONGEST}")).collect();
        let line = format!("{command} {words} {}", times.join(" "));
        let run = match *command {
            "login" | "serve" => run(&line, &[]),
            "trace replay" => run(&line, &["taut", "trace", "mock", CAPTURE].map(str::to_owned)),
            _ => demo(&line),
        };
        assert_eq!(run.code, *code, "{command}: {}\n{}", run.out, run.err);
        assert!(!run.err.contains("panicked"), "{command}: {}", run.err);
    }
    let (_, options, ..) = TABLE.iter().find(|(name, ..)| *name == "bridge").unwrap();
    let times: Vec<_> = options.iter().map(|option| format!("{option} {LONGEST}")).collect();
    let bridge = Listening::start(&times.join(" "), &["taut".to_owned(), "serve".to_owned()]);
    let session = bridge.open();
    assert_eq!(bridge.echo(&session).status, 200);
}
