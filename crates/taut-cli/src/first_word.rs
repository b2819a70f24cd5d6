//! A first word that is no command of ours: a program, a server, a tool, an address, or a word of another tool.
//!
//! Says what was meant, as one line that can be pasted. Starts nothing.

use std::ffi::OsString;

use crate::hosts::{Found, Surroundings, find};
use crate::mask;
use crate::own;
use crate::problem::Problem;
use crate::programs;
use crate::remote::is_url;
use crate::typed;

/// Words of other tools, and the words of ours that come closest.
const OTHERS: [(&str, &[&str]); 31] = [
    ("install", &["smoke"]),
    ("add", &["smoke"]),
    ("remove", &["servers"]),
    ("uninstall", &["servers"]),
    ("run", &["smoke"]),
    ("test", &["smoke"]),
    ("try", &["smoke"]),
    ("ping", &["smoke"]),
    ("start", &["smoke"]),
    ("health", &["smoke"]),
    ("connect", &["list"]),
    ("inspect", &["list"]),
    ("inspector", &["list"]),
    ("discover", &["list"]),
    ("ls", &["list"]),
    ("tools", &["list", "tools"]),
    ("resources", &["list", "resources"]),
    ("templates", &["list", "templates"]),
    ("prompts", &["list", "prompts"]),
    ("ui", &["shell"]),
    ("dev", &["shell"]),
    ("chat", &["shell"]),
    ("validate", &["check"]),
    ("conformance", &["check"]),
    ("debug", &["doctor"]),
    ("proxy", &["bridge"]),
    ("gateway", &["bridge"]),
    ("record", &["trace", "--record", "kept.jsonl"]),
    ("mock", &["trace", "mock", "kept.jsonl"]),
    ("replay", &["trace", "replay", "kept.jsonl"]),
    ("version", &["--version"]),
];

/// What was meant by a line whose first word is no command.
pub(crate) fn meant(typed: &[OsString]) -> Option<Problem> {
    let words = typed.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
    // Our own options stand too early, which is said of a command of ours.
    let words: Vec<String> =
        words.skip_while(|word| word.starts_with('-') && word != "--").collect();
    let [first, rest @ ..] = words.as_slice() else { return None };
    if own::is_command(first) {
        return None;
    }
    // `taut -- npx some-server`, where the command is missing.
    if first == "--" && !rest.is_empty() {
        return Some(said("no command stands before the --".to_owned(), &["smoke"], words.clone()));
    }
    let found = find(Surroundings::here(), &[]);
    let is_server = |word: &str| found.named(word).is_some();
    let shown = mask::words([first.as_str()]).join(" ");
    if is_server(first) {
        return Some(server(first, rest));
    }
    if is_url(first) || ["tcp:", "unix:", "nats:"].iter().any(|kind| first.starts_with(kind)) {
        return Some(said(
            format!("{shown} is the address of a server"),
            &["smoke"],
            vec![first.clone()],
        ));
    }
    if let Some((_, ours)) = OTHERS.iter().find(|(word, _)| word == first) {
        let what = match *first == "install" || *first == "add" {
            true => format!(
                "taut has no command {first}: it changes no host's file, but tries the server"
            ),
            false => format!("taut has no command {first}; this one comes closest"),
        };
        return Some(said(what, ours, target(rest, ours, &found)));
    }
    if let Some((name, tool)) = first.split_once(['.', '/', ':'])
        && is_server(name)
        && !tool.is_empty()
    {
        let words = [&[tool.to_owned()], rest, &[name.to_owned()]].concat();
        return Some(said(format!("{name} is a server, {tool} may be its tool"), &["call"], words));
    }
    let program = || {
        let words = [vec!["--".to_owned()], programs::command(first, rest)].concat();
        said(
            format!("{shown} is a program; a server's command goes after two dashes"),
            &["smoke"],
            words,
        )
    };
    if programs::is_runner(first) || programs::is_path(first) {
        return Some(program());
    }
    if let Some(problem) = tool(first, rest, &found) {
        return Some(problem);
    }
    let plain = !first.starts_with('-') && own::closest_command(first).is_none();
    (plain && taut::Command::new(first).find_program().is_ok()).then(program)
}

/// A server's name, and what stands behind it: a command of ours, a tool with its arguments, or nothing.
fn server(name: &str, rest: &[String]) -> Problem {
    let what = format!("{name} is a server; its name comes last");
    let named = |words: &[String]| [words, &[name.to_owned()]].concat();
    match rest.first() {
        Some(word) if own::is_command(word) => said(what, &[], named(rest)),
        Some(word) if !word.starts_with('-') => said(what, &["call"], named(rest)),
        _ => said(format!("{name} is a server"), &["smoke"], vec![name.to_owned()]),
    }
}

/// A word with arguments behind it may be a tool.
fn tool(word: &str, rest: &[String], found: &Found) -> Option<Problem> {
    let mut pairs = rest.iter().take_while(|word| *word != "--");
    if !pairs.any(|pair| pair.contains('=') && !pair.starts_with('-')) {
        return None;
    }
    let mut words = [&[word.to_owned()], rest].concat();
    let ours = rest.iter().take_while(|word| *word != "--");
    let named =
        ours.clone().any(|word| !word.contains('=')) || rest.iter().any(|word| word == "--");
    if !named {
        let mut servers = found.visible().map(|server| server.name.clone());
        words.push(match (servers.next(), servers.next()) {
            (Some(one), None) => one,
            _ => "SERVER".to_owned(),
        });
    }
    Some(said(
        format!("taut has no command {word}; if it is a tool, it is called"),
        &["call"],
        words,
    ))
}

/// The server that the words after another tool's word mean: an address, a name, or a command after two dashes.
fn target(rest: &[String], ours: &[&str], found: &Found) -> Vec<String> {
    // What needs no server.
    if ["servers", "--version"].contains(&ours[0]) || (ours.len() > 1 && ours[1] == "mock") {
        return Vec::new();
    }
    if let Some(at) = rest.iter().position(|word| word == "--")
        && at + 1 < rest.len()
    {
        return rest[at..].to_vec();
    }
    let plain: Vec<&String> = rest.iter().filter(|word| !word.starts_with('-')).collect();
    if let Some(word) = plain.iter().find(|word| is_url(word) || found.named(word).is_some()) {
        return vec![(*word).clone()];
    }
    let begins = rest.iter().position(|word| !word.starts_with('-'));
    if let Some(at) = begins {
        return [vec!["--".to_owned()], programs::command(&rest[at], &rest[at + 1..])].concat();
    }
    let mut servers = found.visible().filter(|server| server.off.is_none());
    match servers.next() {
        Some(server) => vec![server.name.clone()],
        None if ours == ["smoke"] => Vec::new(),
        None => ["--", "taut", "serve"].map(str::to_owned).to_vec(),
    }
}

/// What is wrong, and the line that is meant.
fn said(what: String, ours: &[&str], rest: Vec<String>) -> Problem {
    let words: Vec<String> = ours.iter().map(|&word| word.to_owned()).chain(rest).collect();
    // The demo is our own program, under whatever name.
    let line = match words.as_slice() {
        [before @ .., dashes, taut, serve]
            if dashes == "--" && taut == "taut" && serve == "serve" =>
        {
            format!("{} -- {} serve", typed::line(before), own::name())
        }
        words => typed::line(words),
    };
    Problem::Usage { what, next: Some(line) }
}
