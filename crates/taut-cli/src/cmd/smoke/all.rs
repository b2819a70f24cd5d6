//! `taut smoke --all`: every server that was found, a few at once, and a table.
//!
//! A server that fails does not stop the others. This file chooses the servers and prints the table;
//! `steps.rs` checks one server.

use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tokio::task::{JoinSet, LocalSet};

use super::transcript::{Transcript, millis};
use crate::args::Options;
use crate::cells::{cut, cut_front, pad, wide};
use crate::debug;
use crate::heard::Heard;
use crate::hosts::{
    Found, How, Server, Surroundings, Target, find, none_found, target_of, tell_broken,
};
use crate::output::{BOLD, CYAN, DIM, GREEN, Output, RED, YELLOW, time};
use crate::own;
use crate::problem::{Exit, Problem};
use crate::signals::Interrupts;
use crate::spinner::Spinner;
use crate::typed;

/// How many are tried at once: enough not to wait for each `npx` in turn, too few to make one slow.
const AT_ONCE: usize = 4;

/// What came of one server.
struct Row {
    name: String,
    /// Where it was found.
    from: String,
    outcome: Outcome,
    report: Map<String, Value>,
    took: Option<Duration>,
}

enum Outcome {
    Works,
    Failed { exit: Exit, why: String },
    Skipped(String),
}

pub(super) async fn run(output: &Output, options: &Options, quiet: bool) -> Result<Exit, Problem> {
    let began = Instant::now();
    let found = find(Surroundings::here(), &options.config);
    let servers: Vec<&Server> = found.visible().collect();
    if servers.is_empty() {
        return Err(none_found(&found));
    }
    tell_broken(output, &found);
    let (rows, interrupted) =
        LocalSet::new().run_until(try_all(output, options, &found, &servers)).await?;
    let failed = rows.iter().find_map(|row| match row.outcome {
        Outcome::Failed { exit, .. } => Some(exit),
        _ => None,
    });
    let exit = match failed {
        _ if interrupted => Exit::Interrupted,
        Some(exit) => exit,
        // Who knows which servers it has.
        None if !found.broken.is_empty() => Exit::Usage,
        None => Exit::Worked,
    };
    if output.json {
        let rows: Vec<Value> = rows.into_iter().map(Row::document).collect();
        let broken: Vec<_> = found.broken.iter().map(|broken| broken.document()).collect();
        let document = json!({
            "servers": rows, "broken": broken, "ok": exit == Exit::Worked, "exit": exit as u8,
            "total_ms": millis(began.elapsed()),
        });
        output.document(&document)?;
    } else {
        output.print(&table(output, &found, &rows, (began.elapsed(), interrupted)))?;
        // A line `try:` names another after a failure.
        if !quiet && failed.is_none() && !interrupted {
            output.note_next(&typed::again("smoke", "doctor", &[]));
        }
    }
    Ok(exit)
}

/// All of them, in the order of the files whatever the order in which they end.
async fn try_all(
    output: &Output,
    options: &Options,
    found: &Found,
    servers: &[&Server],
) -> Result<(Vec<Row>, bool), Problem> {
    let mut interrupts = Interrupts::new()?;
    let spinner = Spinner::start(output, "starting the servers");
    // The output of several servers at once would be unreadable.
    let at_once = if output.verbose || debug::is_heard() { 1 } else { AT_ONCE };
    let mut rows: Vec<Option<Row>> = servers.iter().map(|_| None).collect();
    let mut running = JoinSet::new();
    let mut waiting = servers.iter().enumerate();
    let mut done = 0;
    // One download at a time: package runners break each other's files.
    let downloads = Rc::new(tokio::sync::Mutex::new(()));
    loop {
        spinner.say(format!("{done} of {} tried", servers.len()));
        while running.len() < at_once
            && let Some((at, server)) = waiting.next()
        {
            match prepare(found, server, options) {
                Ok(target) => {
                    // What one of them writes is not shown beside the others.
                    let output = Output { heard: Arc::new(Heard::deaf()), ..output.clone() };
                    let options = options.clone();
                    // From here on, not from when it is first polled: no signal may fall between.
                    let mut heard = Interrupts::new()?;
                    let downloads = target.reach.package_runner().map(|_| downloads.clone());
                    running.spawn_local(async move {
                        let _turn = match &downloads {
                            Some(downloads) => Some(downloads.lock().await),
                            None => None,
                        };
                        (at, try_one(&output, &options, target, &mut heard).await)
                    });
                }
                Err(row) => {
                    done += 1;
                    rows[at] = Some(row);
                }
            }
        }
        if running.is_empty() {
            break;
        }
        let ended = tokio::select! {
            biased;
            () = interrupts.next() => None,
            ended = running.join_next() => ended,
        };
        // A server's own way out tells of the signal too, perhaps before we hear it.
        let Some(Ok((at, (outcome, report, took)))) = ended else { break };
        let outcome = match outcome {
            Err(Problem::Interrupted) => break,
            outcome => outcome?,
        };
        done += 1;
        let row = Row { outcome, report, took: Some(took), ..Row::skipped(found, servers[at], "") };
        rows[at] = Some(row);
    }
    let interrupted = rows.iter().any(Option::is_none);
    // Each of them has heard it, and ends its server. What is known by now is worth showing.
    while running.join_next().await.is_some() {}
    let rows = rows.into_iter().zip(servers);
    let rows =
        rows.map(|(row, server)| row.unwrap_or_else(|| Row::skipped(found, server, "interrupted")));
    Ok((rows.collect(), interrupted))
}

/// What to start, or why nothing is started.
fn prepare(found: &Found, server: &Server, options: &Options) -> Result<Target, Row> {
    if let Some(off) = &server.off {
        return Err(Row::skipped(found, server, format!("off: {off}")));
    }
    target_of(found, server, options).map_err(|problem| {
        let missing = server.missing(&found.around);
        let words: Vec<String> = missing.iter().map(ToString::to_string).collect();
        let why = match &server.how {
            How::Wrong(what) => format!("line {}, column {}: {what}", server.line, server.column),
            _ if words.is_empty() => problem.to_string(),
            _ => words.join(", "),
        };
        let outcome = Outcome::Failed { exit: problem.exit(), why };
        Row { outcome, ..Row::skipped(found, server, "") }
    })
}

type Tried = (Result<Outcome, Problem>, Map<String, Value>, Duration);

async fn try_one(
    output: &Output,
    options: &Options,
    target: Target,
    interrupts: &mut Interrupts,
) -> Tried {
    let began = Instant::now();
    let mut smoke = Transcript::silent(output, &target.shown);
    let ran = smoke.run(options, target.reach, None, interrupts).await;
    let why = smoke.failure();
    let outcome = ran.map(|exit| match exit {
        Exit::Worked => Outcome::Works,
        _ => Outcome::Failed { exit, why },
    });
    (outcome, smoke.report, began.elapsed())
}

impl Row {
    /// A server that was not started.
    fn skipped(found: &Found, server: &Server, why: impl Into<String>) -> Self {
        Self {
            name: server.name.clone(),
            from: found.shown(&server.place.path),
            outcome: Outcome::Skipped(why.into()),
            report: Map::new(),
            took: None,
        }
    }

    fn document(self) -> Value {
        let mut about = Map::new();
        about.insert("name".to_owned(), json!(self.name));
        about.insert("from".to_owned(), json!(self.from));
        let (word, why) = match self.outcome {
            Outcome::Works => ("works", None),
            Outcome::Failed { why, .. } => ("failed", Some(why)),
            Outcome::Skipped(why) => ("skipped", Some(why)),
        };
        about.insert("outcome".to_owned(), json!(word));
        about.extend(why.map(|why| ("why".to_owned(), json!(why))));
        about.extend(self.took.map(|took| ("ms".to_owned(), millis(took))));
        about.extend(self.report);
        Value::Object(about)
    }

    fn cells(&self) -> [String; 5] {
        let text = |key: &str| self.report.get(key).and_then(Value::as_str).unwrap_or("-");
        let revision = match text("era") {
            "-" => "-".to_owned(),
            era => format!("{} {era}", text("revision")),
        };
        let tools = self.report.get("tools").and_then(Value::as_array).map(Vec::len);
        [
            self.name.clone(),
            self.from.clone(),
            revision,
            tools.map_or_else(|| "-".to_owned(), |count| count.to_string()),
            self.took.map_or_else(|| "-".to_owned(), time),
        ]
    }
}

const HEAD: [&str; 5] = ["name", "from", "revision", "tools", "time"];

/// Less than this of an outcome says nothing.
const OUTCOME: usize = 32;

/// Less than this of a path, neither.
const FROM: usize = 14;

/// How wide each column is; none at all for one that is left out. The outcome gets what is left, and on
/// a narrow screen the others give way to it: the path first, which only says where to look.
fn widths(mut wide: [usize; 5], width: Option<usize>) -> ([usize; 5], usize) {
    let Some(width) = width else { return (wide, usize::MAX) };
    let used = |wide: &[usize; 5]| wide.iter().filter(|w| **w > 0).map(|w| w + 2).sum::<usize>();
    let lack = (used(&wide) + OUTCOME).saturating_sub(width);
    wide[1] = wide[1].saturating_sub(lack).max(FROM.min(wide[1]));
    for spare in [1, 3, 2, 4] {
        if used(&wide) + OUTCOME > width {
            wide[spare] = 0;
        }
    }
    wide[0] = wide[0].min((width / 2).max(8));
    (wide, width.saturating_sub(used(&wide)))
}

fn table(output: &Output, found: &Found, rows: &[Row], end: (Duration, bool)) -> String {
    let reader = output.out;
    let cells: Vec<[String; 5]> =
        rows.iter().map(|row| row.cells().map(|cell| reader.line(&cell).into_owned())).collect();
    let widest: [usize; 5] = std::array::from_fn(|at| {
        cells.iter().map(|row| wide(&row[at])).chain([HEAD[at].len()]).max().unwrap_or(0)
    });
    let (widths, room) = widths(widest, output.width());
    let line = |cells: [&str; 5]| {
        let mut line = String::new();
        for (at, cell) in cells.into_iter().enumerate().filter(|(at, _)| widths[*at] > 0) {
            let cell = if at == 1 { cut_front(cell, widths[at]) } else { cut(cell, widths[at]) };
            let pad = pad(&cell, widths[at]);
            // Numbers stand at the right of their column.
            let _ =
                if at < 3 { write!(line, "{cell}{pad}  ") } else { write!(line, "{pad}{cell}  ") };
        }
        line
    };
    let mut text = format!("{}\n", reader.paint(BOLD, format!("{}outcome", line(HEAD))));
    for (row, cells) in rows.iter().zip(&cells) {
        let line = line(std::array::from_fn(|at| cells[at].as_str()));
        let (style, words) = match &row.outcome {
            Outcome::Works => (GREEN, "✓ works".to_owned()),
            // Where it was looked for, what to try: in the story of that one server.
            Outcome::Failed { why, .. } => (RED, format!("✗ {}", brief(why))),
            Outcome::Skipped(why) => (DIM, format!("· {why}")),
        };
        let words = reader.line(&words).into_owned();
        let _ = writeln!(text, "{line}{}", reader.paint(style, cut(&words, room)));
    }
    let _ = writeln!(text, "\n{}", verdict(output, found, rows, end));
    let failed = rows.iter().find(|row| matches!(row.outcome, Outcome::Failed { .. }));
    if let Some(row) = failed {
        let next = format!(
            "{taut} smoke {}, for the whole story",
            reader.line(&row.name),
            taut = own::name()
        );
        let _ = writeln!(text, "{} {next}", reader.paint(CYAN, "  try:"));
    }
    text
}

/// Why a server failed, on one line: the last that it said, which is the cause more often than not, then how it ended.
fn brief(why: &str) -> String {
    let ended = why.split("; ").next().unwrap_or(why);
    let said =
        why.split_once("its last lines on ").and_then(|(_, lines)| lines.lines().skip(1).last());
    match said.map(str::trim).filter(|said| !said.is_empty()) {
        Some(said) => format!("{said}: {ended}"),
        None => ended.to_owned(),
    }
}

/// How it went all in all, after so long; whether it was interrupted.
fn verdict(
    output: &Output,
    found: &Found,
    rows: &[Row],
    (took, interrupted): (Duration, bool),
) -> String {
    let reader = output.out;
    let count = |is: fn(&Outcome) -> bool| rows.iter().filter(|row| is(&row.outcome)).count();
    let works = count(|outcome| matches!(outcome, Outcome::Works));
    let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
    let tried = rows.len() - skipped;
    let mut rest = String::new();
    let broken = found.broken.len();
    let files = if broken == 1 { "file left out" } else { "files left out" };
    let shadowed = found.servers.len() - rows.len();
    for (count, what) in [(skipped, "not tried"), (shadowed, "shadowed"), (broken, files)] {
        if count > 0 {
            let _ = write!(rest, ", {count} {what}");
        }
    }
    let rest = format!("{rest}, {} in all", time(took));
    if interrupted {
        return reader.paint(RED, format!("✗ interrupted: {works} of {tried} work{rest}"));
    }
    if tried == 0 {
        return reader.paint(YELLOW, format!("· there is none to try{rest}"));
    }
    let (style, mark) = if works == tried { (GREEN, "✓") } else { (RED, "✗") };
    reader.paint(style, format!("{mark} {works} of {tried} work{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_has_room_at_every_width_and_the_path_gives_way_first() {
        let wide = [10, 60, 17, 5, 6];
        assert_eq!(widths(wide, None), (wide, usize::MAX));
        assert_eq!(widths(wide, Some(150)), (wide, 42));
        assert_eq!(widths(wide, Some(100)), ([10, 20, 17, 5, 6], 32));
        assert_eq!(widths(wide, Some(80)), ([10, 0, 17, 5, 6], 34));
        assert_eq!(widths(wide, Some(60)), ([10, 0, 0, 0, 6], 40));
        assert_eq!(widths(wide, Some(40)), ([10, 0, 0, 0, 0], 28));
        assert_eq!(widths([30, 9, 1, 1, 1], Some(40)).1, 18);
    }
}
