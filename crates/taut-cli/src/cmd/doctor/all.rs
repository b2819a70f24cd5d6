//! `taut doctor` without a server: all that the hosts' files have, one after another, a row for each.
//!
//! Nothing is started by accident: on a terminal it asks first, and elsewhere only `--all` starts them. One at a time,
//! because two that start at once make each other slow. Must not judge.

use std::fmt::Write as _;
use std::io::{BufRead as _, IsTerminal as _};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use super::show::{style_of, verdict};
use super::{Doctor, Seen, examine};
use crate::args::Options;
use crate::cells::{cut, pad, wide};
use crate::heard::Heard;
use crate::hosts::{Found, Server, Surroundings, find, none_named, target_of, tell_broken};
use crate::output::{BOLD, CYAN, DIM, GREEN, Output, RED, time};
use crate::own;
use crate::problem::{Exit, Problem};
use crate::session::quoted;
use crate::signals::Interrupts;

/// Less than this of what was found says nothing.
const ROOM: usize = 32;

/// What came of one server.
enum Came {
    Seen(Box<Seen>),
    /// It could not be started, and why.
    Failed(Problem),
    /// It is switched off, and where.
    Off(String),
}

pub(super) async fn run(output: &Output, args: &Doctor) -> Result<Exit, Problem> {
    let found = find(Surroundings::here(), &args.options.config);
    let servers: Vec<&Server> = found.visible().collect();
    let started: Vec<&str> =
        servers.iter().filter(|s| s.off.is_none()).map(|server| server.name.as_str()).collect();
    if started.is_empty() {
        return Err(none_named(&found));
    }
    if !args.all {
        agreed(output, &started).await?;
    }
    tell_broken(output, &found);
    let mut interrupts = Interrupts::new()?;
    let mut rows = Vec::new();
    for (at, server) in servers.iter().enumerate() {
        let words = format!("{} of {}: {}", at + 1, servers.len(), server.name);
        rows.push((*server, one(output, args, &found, server, &words, &mut interrupts).await?));
    }
    let exit = rows.iter().map(|(_, came)| came.exit()).find(|exit| *exit != Exit::Worked);
    let exit = match exit {
        Some(exit) => exit,
        None if !found.broken.is_empty() => Exit::Usage,
        None => Exit::Worked,
    };
    if output.json {
        let rows: Vec<Value> = rows.iter().map(|(server, came)| came.document(server)).collect();
        let broken: Vec<_> = found.broken.iter().map(|broken| broken.document()).collect();
        output.document(&json!({ "servers": rows, "broken": broken, "exit": exit as u8 }))?;
        return Ok(exit);
    }
    output.print(&table(output, &rows))?;
    let worst = rows.iter().max_by_key(|(_, came)| came.badness());
    if let Some((server, came)) = worst.filter(|_| !args.quiet) {
        let what = if came.badness() > 0 { "doctor" } else { "check" };
        output.note_next(&format!("{} {what} {}", own::name(), quoted([&server.name])));
    }
    Ok(exit)
}

/// Whether they may be started: asked on a terminal, never taken for granted.
async fn agreed(output: &Output, names: &[&str]) -> Result<(), Problem> {
    let one = format!("{} doctor {}", own::name(), quoted([names[0]]));
    let count = match names.len() {
        1 => "1 server".to_owned(),
        count => format!("{count} servers"),
    };
    let listed = output.err.line(&names.join(", ")).into_owned();
    if output.json || !std::io::stdin().is_terminal() || !output.err.terminal {
        return Err(Problem::Usage {
            what: format!("which server? hosts' files have {count}: {listed}"),
            next: Some(format!(
                "{one}, or {} doctor --all, which starts each of them",
                own::name()
            )),
        });
    }
    output.note(&format!("hosts' files have {count}: {listed}"));
    output.ask("each is started up to three times, one after another; start them? [y/N]");
    let mut interrupts = Interrupts::new()?;
    // A read from a terminal cannot be called off; it ends with the process.
    let typed = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map(|_| line)
    });
    let typed = tokio::select! {
        typed = typed => typed.ok().and_then(Result::ok).unwrap_or_default(),
        () = interrupts.next() => return Err(Problem::Interrupted),
    };
    match typed.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Problem::Usage { what: "nothing was started".to_owned(), next: Some(one) }),
    }
}

async fn one(
    output: &Output,
    args: &Doctor,
    found: &Found,
    server: &Server,
    words: &str,
    interrupts: &mut Interrupts,
) -> Result<Came, Problem> {
    if let Some(off) = &server.off {
        return Ok(Came::Off(off.clone()));
    }
    let options: &Options = &args.options;
    let target = match target_of(found, server, options) {
        Ok(target) => target,
        Err(problem) => return Ok(Came::Failed(problem)),
    };
    // What one of them writes is not shown beside the others.
    let output = Output { heard: Arc::new(Heard::deaf()), ..output.clone() };
    let began = Instant::now();
    let seen = examine(&output, target, None, args.lint, words, interrupts).await?;
    Ok(Came::Seen(Box::new(Seen { took: began.elapsed(), ..seen })))
}

impl Came {
    fn exit(&self) -> Exit {
        match self {
            Self::Seen(seen) => seen.exit,
            Self::Failed(problem) => problem.exit(),
            Self::Off(_) => Exit::Worked,
        }
    }

    /// How much there is to do about it.
    fn badness(&self) -> u8 {
        match self {
            Self::Seen(seen) if seen.exit != Exit::Worked => 3,
            Self::Failed(_) => 2,
            Self::Seen(seen) if !seen.is_fine() => 1,
            Self::Seen(_) | Self::Off(_) => 0,
        }
    }

    fn document(&self, server: &Server) -> Value {
        let mut about = match self {
            Self::Seen(seen) => seen.document(),
            Self::Failed(problem) => problem.json(),
            Self::Off(why) => json!({ "skipped": why }),
        };
        about["name"] = json!(server.name);
        about["from"] = json!(server.place.path);
        about
    }
}

fn table(output: &Output, rows: &[(&Server, Came)]) -> String {
    let reader = output.out;
    let names: Vec<String> =
        rows.iter().map(|(server, _)| reader.line(&server.name).into_owned()).collect();
    let widest = names.iter().map(|name| wide(name)).max().unwrap_or(0).clamp(4, 24);
    let room = output.width().map_or(usize::MAX, |all| all.saturating_sub(widest + 12).max(ROOM));
    let head = format!("name{}      time  what was found", " ".repeat(widest - 4));
    let mut text = format!("{}\n", reader.paint(BOLD, head));
    for ((_, came), name) in rows.iter().zip(&names) {
        let name = cut(name, widest);
        let (style, took, words) = match came {
            Came::Seen(seen) => {
                let first = seen.found.first().filter(|_| !seen.is_fine());
                let words = match first {
                    Some(first) => {
                        let what = first.what.split("; ").next().unwrap_or_default();
                        format!("{}: {what}", first.level.word())
                    }
                    None => verdict(&seen.facts, &seen.found).1.to_owned(),
                };
                let mark = if seen.exit == Exit::Worked { "✓" } else { "✗" };
                let style = style_of(&seen.facts, &seen.found);
                (style, time(seen.took), format!("{mark} {}", words.trim_start_matches(['✓', ' '])))
            }
            Came::Failed(problem) => (RED, "-".to_owned(), format!("✗ {problem}")),
            Came::Off(why) => (DIM, "-".to_owned(), format!("· off: {why}")),
        };
        let words = crate::secrets::masked(&words);
        let words = cut(&reader.line(&words), room).into_owned();
        let _ = writeln!(
            text,
            "{}{}  {took:>8}  {}",
            reader.paint(CYAN, &name),
            pad(&name, widest),
            reader.paint(style, words)
        );
    }
    let count = |is: fn(&Came) -> bool| rows.iter().filter(|(_, came)| is(came)).count();
    let fine = count(|came| matches!(came, Came::Seen(_)) && came.badness() == 0);
    let tried = rows.len() - count(|came| matches!(came, Came::Off(_)));
    let (style, mark) = if fine == tried { (GREEN, "✓") } else { (RED, "✗") };
    let last = format!("{mark} {fine} of {tried} work in every host");
    let _ = writeln!(text, "\n{}", reader.paint(style, last));
    text
}
