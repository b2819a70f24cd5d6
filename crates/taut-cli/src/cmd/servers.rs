//! `taut servers`: which servers the hosts' files have, in which file, and which of them are used.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::cells::{cut, pad, wide};
use crate::help;
use crate::hosts::{Found, How, Server, Surroundings, find, unknown};
use crate::mask;
use crate::output::{BOLD, CYAN, DIM, Output, RED, YELLOW};
use crate::own;
use crate::problem::{Exit, Problem};
use crate::session::quoted;

#[derive(clap::Args)]
#[command(after_help = help::SERVERS)]
pub(crate) struct Servers {
    /// Only those with this name.
    pub(crate) name: Option<String>,
    /// Read only this file, of any host; can be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
    /// Print only the names, for scripts.
    #[arg(long, conflicts_with = "json")]
    pub(crate) names: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    /// Also show the files that do not exist.
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

pub(crate) fn run(output: &Output, args: &Servers) -> Result<Exit, Problem> {
    let mut found = find(Surroundings::here(), &args.config);
    if let Some(name) = &args.name {
        if found.named(name).is_none() {
            return Err(match unknown(&found, name) {
                Problem::Usage { what, .. } => Problem::Usage {
                    what,
                    next: Some(own::named(
                        "`taut servers` shows all of them, -v also where they may be",
                    )),
                },
                problem => problem,
            });
        }
        found.servers.retain(|server| server.name == *name);
    }
    if args.names {
        let names: String =
            found.visible().map(|server| format!("{}\n", output.out.line(&server.name))).collect();
        output.print(&names)?;
    } else if args.json {
        output.document(&document(&found))?;
    } else {
        output.print(&shown(output, &found, args.verbose))?;
    }
    Ok(if found.broken.is_empty() { Exit::Worked } else { Exit::Usage })
}

/// What `taut` alone shows on a terminal: the servers that are here, and what to type next. Starts nothing.
pub(crate) fn overview(output: &Output) -> Result<Exit, Problem> {
    let found = find(Surroundings::here(), &[]);
    let name = output.out.paint(BOLD, format!("taut {}", env!("CARGO_PKG_VERSION")));
    let mut text = format!("{name}  try, check and debug any MCP server\n\n");
    text += &shown(output, &found, false);
    let first = found.visible().find(|server| server.off.is_none());
    let first = first.map(|server| quoted([&server.name]));
    let lines = match &first {
        Some(name) => [
            (format!("smoke {name}"), "does it work?"),
            (format!("doctor {name}"), "which hosts have problems with it?"),
            ("--help".to_owned(), "all commands"),
        ],
        None => [
            ("smoke".to_owned(), "the demo, from its start to its end"),
            ("smoke -- npx some-server".to_owned(), "your own server, by its command"),
            ("--help".to_owned(), "all commands"),
        ],
    };
    let lines = lines.map(|(words, what)| (format!("{} {words}", own::name()), what));
    let widest = lines.iter().map(|(line, _)| wide(line)).max().unwrap_or(0);
    text += "\nnext:\n";
    for (line, what) in &lines {
        let pad = pad(line, widest);
        let line = output.out.line(line);
        let _ = writeln!(
            text,
            "  {}{pad}  {}",
            output.out.paint(CYAN, line),
            output.out.paint(DIM, what)
        );
    }
    output.print(&text)?;
    Ok(Exit::Worked)
}

/// What a person has to know about a server before it can be used.
fn marks(found: &Found, server: &Server) -> Vec<String> {
    let mut marks = Vec::new();
    if let Some(path) = &server.shadowed_by {
        marks.push(format!("shadowed by {}", found.shown(path)));
    }
    if let How::Remote { kind, .. } = &server.how {
        marks.push(format!("over the network: {kind}"));
    }
    if let How::Wrong(what) = &server.how {
        marks.push(format!("line {}, column {}: {what}", server.line, server.column));
    }
    marks.extend(server.notes.iter().cloned());
    marks.extend(server.off.iter().map(|off| format!("off: {off}")));
    marks.extend(server.missing(&found.around).iter().map(ToString::to_string));
    marks
}

/// The command line or the address, without secrets.
fn line(server: &Server) -> String {
    match &server.how {
        How::Stdio(stdio) => {
            let mut line = mask::words(stdio.words.iter().map(String::as_str)).join(" ");
            for (name, value) in &stdio.env {
                let _ = write!(line, "  {name}={}", mask::env(value));
            }
            line
        }
        How::Remote { url, .. } => mask::url(url),
        How::Wrong(_) => String::new(),
    }
}

/// By file, in the order in which they count.
fn shown(output: &Output, found: &Found, verbose: bool) -> String {
    let reader = output.out;
    let widest = found.servers.iter().map(|server| wide(&server.name)).max();
    let widest = widest.unwrap_or(0).min(24);
    let (mut text, mut told) = (String::new(), Vec::new());
    for (place, there) in &found.looked {
        let own: Vec<&Server> =
            found.servers.iter().filter(|server| server.place == *place).collect();
        // Claude Code has one file for two scopes.
        let broken = found.broken.iter().find(|broken| broken.path == place.path);
        let broken = broken.filter(|broken| !told.contains(&&broken.path));
        told.extend(broken.map(|broken| &broken.path));
        if own.is_empty() && broken.is_none() && (*there || !verbose) {
            continue;
        }
        let file = reader.paint(BOLD, reader.line(&found.shown(&place.path)));
        let whose = format!("{}, {}", place.host.name(), place.scope.name());
        let absent = if *there { "" } else { ", not there" };
        let _ = writeln!(text, "{file}  {}", reader.paint(DIM, format!("{whose}{absent}")));
        if let Some(broken) = broken {
            let why = broken.why.to_string();
            let _ = writeln!(text, "  {}", reader.paint(RED, format!("✗ {}", reader.line(&why))));
        }
        for server in own {
            let name = reader.line(&server.name).into_owned();
            let pad = pad(&name, widest);
            let line = line(server);
            let room = output.width().map_or(usize::MAX, |width| width.saturating_sub(widest + 4));
            let line = cut(&line, room.max(20)).into_owned();
            let row = format!("  {}{pad}  {}", reader.paint(CYAN, name), reader.line(&line));
            let _ = writeln!(text, "{}", row.trim_end());
            for mark in marks(found, server) {
                let mark = reader.paint(YELLOW, format!("· {}", reader.line(&mark)));
                let _ = writeln!(text, "  {}  {mark}", " ".repeat(widest));
            }
        }
    }
    if found.servers.is_empty() && found.broken.is_empty() {
        text += "no host's file here has a server\n";
        if !verbose {
            text += "-v shows where they may be; --config FILE reads any file\n";
        }
    }
    text
}

fn document(found: &Found) -> Value {
    let servers = found.servers.iter().map(|server| {
        let mut about = Map::new();
        let mut put = |key: &str, value: Value| drop(about.insert(key.to_owned(), value));
        put("name", json!(server.name));
        put("host", json!(server.place.host.name()));
        put("scope", json!(server.place.scope.name()));
        put("file", json!(server.place.path));
        put("line", json!(server.line));
        match &server.how {
            How::Stdio(stdio) => {
                let env = stdio.env.iter().map(|(n, v)| (n.clone(), json!(mask::env(v))));
                put("transport", json!("stdio"));
                put("command", json!(mask::words(stdio.words.iter().map(String::as_str))));
                put("env", Value::Object(env.collect()));
                put("whole_env", json!(server.place.host.inherits()));
            }
            How::Remote { kind, url, headers } => {
                let headers = headers.iter().map(|(n, v)| (n.clone(), json!(mask::env(v))));
                put("headers", Value::Object(headers.collect()));
                put("transport", json!(kind));
                put("url", json!(mask::url(url)));
            }
            How::Wrong(what) => put("error", json!(what)),
        }
        put("enabled", json!(server.off.is_none()));
        put("notes", json!(server.notes));
        put("shadowed_by", json!(server.shadowed_by));
        let missing = server.missing(&found.around);
        put("missing", json!(missing.iter().map(ToString::to_string).collect::<Vec<_>>()));
        Value::Object(about)
    });
    let broken = found.broken.iter().map(|broken| broken.document());
    let mut absent: Vec<_> = Vec::new();
    for (place, _) in found.looked.iter().filter(|(_, there)| !there) {
        if !absent.contains(&&place.path) {
            absent.push(&place.path);
        }
    }
    json!({
        "servers": servers.collect::<Vec<_>>(),
        "broken": broken.collect::<Vec<_>>(),
        "absent": absent,
    })
}
