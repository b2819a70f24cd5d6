//! `taut trace view`: a capture in the terminal, as a page, or as a document to send.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use taut_trace::{Calls, Capture, Event, Reader, Record, document, talks};

use super::{page, shown};
use crate::cells::{pad, wide};
use crate::gate::escape;
use crate::help;
use crate::output::{BOLD, DIM, Output, RED, size, time};
use crate::own;
use crate::problem::{Exit, Problem};

/// How often a file that is followed is looked at again.
const AGAIN: Duration = Duration::from_millis(100);

/// A file that was written to so recently is taken for one that still grows.
const RECENT: Duration = Duration::from_secs(10);

#[derive(clap::Args)]
#[command(after_help = help::TRACE_VIEW)]
pub(crate) struct View {
    /// The capture.
    file: PathBuf,
    /// Go on as it grows, until the server has ended.
    #[arg(long, short)]
    follow: bool,
    /// Show only lines in which this text stands, in small or capital letters.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Show how often and how fast each thing was asked, instead of the lines.
    #[arg(long, conflicts_with_all = ["follow", "filter"])]
    stats: bool,
    /// Show one line in full, with the request or answer that belongs to it.
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["follow", "filter", "stats"])]
    only: Option<usize>,
    /// Show it as a page in a browser, until interrupted.
    #[arg(long, conflicts_with_all = ["stats", "only", "filter"])]
    page: bool,
    /// Write it as one HTML document that needs nothing else.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["stats", "only", "filter", "page"])]
    html: Option<PathBuf>,
}

pub(super) fn run(output: &Output, args: &View) -> Result<Exit, Problem> {
    if args.page {
        return serve(output, args);
    }
    if let Some(to) = &args.html {
        return export(output, &args.file, to);
    }
    if args.stats {
        return stats(output, &load(&args.file)?);
    }
    if let Some(number) = args.only {
        return only(output, &load(&args.file)?, number);
    }
    lines(output, args)
}

/// Reads what passed on one connection. A capture of several, of `taut bridge`, needs the name of one.
pub(super) fn load_link(path: &Path, link: Option<&str>) -> Result<Capture, Problem> {
    let capture = load(path)?;
    let links = capture.links();
    match (link, links.as_slice()) {
        (None, []) => Ok(capture),
        (Some(link), all) if all.contains(&link) => Ok(capture.only(link)),
        (None, [_]) => {
            let link = links[0].to_owned();
            Ok(capture.only(&link))
        }
        (_, all) => {
            let names: Vec<String> = all.iter().take(20).map(|link| format!("{link:?}")).collect();
            let what = match link {
                Some(link) if all.is_empty() => {
                    format!("{}: --link {link:?}: it has one connection only", path.display())
                }
                Some(link) => format!("{}: there is no connection {link:?}", path.display()),
                None => format!("{} has several connections", path.display()),
            };
            let next =
                (!names.is_empty()).then(|| format!("--link with one of {}", names.join(", ")));
            Err(Problem::Usage { what, next })
        }
    }
}

/// Reads a capture, or says what is wrong with it.
pub(super) fn load(path: &Path) -> Result<Capture, Problem> {
    let capture = Capture::read(BufReader::new(open(path)?));
    capture.map_err(|error| unreadable(path, &error))
}

fn open(path: &Path) -> Result<File, Problem> {
    File::open(path)
        .map_err(|error| Problem::File { what: format!("reading {}", path.display()), error })
}

fn unreadable(path: &Path, error: &taut_trace::ReadError) -> Problem {
    Problem::Usage {
        what: format!("{}: {error}", path.display()),
        next: Some(own::named("taut trace --record FILE -- COMMAND makes a capture")),
    }
}

fn lines(output: &Output, args: &View) -> Result<Exit, Problem> {
    let path = &args.file;
    let mut reader = Reader::new(BufReader::new(open(path)?)).map_err(|e| unreadable(path, &e))?;
    let mut calls = Calls::default();
    let filter = args.filter.as_ref().map(|text| text.to_lowercase());
    let mut number = 0;
    loop {
        let record = reader.next_record().map_err(|error| Problem::File {
            what: format!("reading {}", path.display()),
            error,
        })?;
        let Some(record) = record else {
            if args.follow {
                std::thread::sleep(AGAIN);
                continue;
            }
            break;
        };
        number += 1;
        for line in shown::lines(output.out, number, &record, &mut calls) {
            let whole = || whole(&record).to_lowercase();
            let wanted =
                |text: &String| line.to_lowercase().contains(text) || whole().contains(text);
            if filter.as_ref().is_none_or(wanted) {
                output.print(&format!("{line}\n"))?;
            }
        }
        if args.follow && matches!(record.event, Event::End(_)) {
            break;
        }
    }
    for open in calls.open() {
        let words = if open.cancelled { "was cancelled" } else { "has no answer" };
        let at = shown::seconds(open.at);
        output.note(
            &output.err.paint(DIM, format!("{} at {at} {words}", output.err.line(&open.label))),
        );
    }
    if reader.damaged() > 0 {
        output.note(&format!("{} lines could not be read and were left out", reader.damaged()));
    }
    Ok(Exit::Worked)
}

/// Everything that a record says, for searching.
fn whole(record: &Record) -> String {
    match &record.event {
        Event::Message(message) => message.body.text().into_owned(),
        Event::Stderr(body) => body.text().into_owned(),
        _ => String::new(),
    }
}

fn stats(output: &Output, capture: &Capture) -> Result<Exit, Problem> {
    let mut calls = Calls::default();
    for record in &capture.records {
        calls.handle(record);
    }
    let last = capture.records.last().map_or(0, |record| record.at);
    let (up, down) = calls.bytes;
    output.print(&format!(
        "{} messages in {}, {} to the server, {} from it\n",
        calls.messages,
        time(Duration::from_micros(last)),
        size(usize::try_from(up).unwrap_or(usize::MAX)),
        size(usize::try_from(down).unwrap_or(usize::MAX)),
    ))?;
    let mut table =
        vec![["what", "calls", "failed", "open", "p50", "p90", "p99", "max"].map(str::to_owned)];
    for ((link, client, label), figures) in &calls.figures {
        let link = link.as_ref().map_or_else(String::new, |link| format!("{link} "));
        let way = if *client { "" } else { "← " };
        let open = figures.calls.saturating_sub(figures.answered() + figures.cancelled);
        let at = |percent| {
            figures
                .percentile(percent)
                .map_or_else(|| "-".to_owned(), |t| time(Duration::from_micros(t)))
        };
        let count = |n: usize| n.to_string();
        table.push([
            format!("{}{way}{}", output.out.line(&link), output.out.line(label)),
            count(figures.calls),
            count(figures.failed),
            count(open),
            at(50),
            at(90),
            at(99),
            at(100),
        ]);
    }
    let widths: Vec<usize> = (0..8)
        .map(|column| table.iter().map(|row| wide(&row[column])).max().unwrap_or(0))
        .collect();
    for (at, row) in table.iter().enumerate() {
        let cell = |column: usize| {
            let blank = pad(&row[column], widths[column]);
            if column == 0 {
                format!("{}{blank}", row[column])
            } else {
                format!("{blank}{}", row[column])
            }
        };
        let line = (0..8).map(cell).collect::<Vec<_>>().join("  ");
        let failed = at > 0 && (row[2] != "0" || row[3] != "0");
        let line = match (at, failed) {
            (0, _) => output.out.paint(DIM, line),
            (_, true) => output.out.paint(RED, line),
            _ => line,
        };
        output.print(&format!("{line}\n"))?;
    }
    for (count, what) in [
        (calls.stray as u64, "lines of the server are no messages"),
        (calls.missing, "records are missing"),
    ] {
        if count > 0 {
            output.print(&format!("{}\n", output.out.paint(RED, format!("{count} {what}"))))?;
        }
    }
    Ok(Exit::Worked)
}

fn only(output: &Output, capture: &Capture, number: usize) -> Result<Exit, Problem> {
    let Some(record) = number.checked_sub(1).and_then(|at| capture.records.get(at)) else {
        let what = format!("there is no line {number}; the capture has {}", capture.records.len());
        return Err(Problem::Usage {
            what,
            next: Some(own::named("taut trace view FILE shows the numbers")),
        });
    };
    let mut shown = vec![(number, record)];
    if let Event::Message(message) = &record.event {
        let own: Vec<(bool, String)> = ids(message);
        let belongs = |other: &&(usize, &Record)| match &other.1.event {
            Event::Message(m) if m.from != message.from && m.link == message.link => {
                ids(m).iter().any(|(answer, id)| own.contains(&(!answer, id.clone())))
            }
            _ => false,
        };
        let all: Vec<(usize, &Record)> =
            capture.records.iter().enumerate().map(|(at, record)| (at + 1, record)).collect();
        let mut before = all[..number - 1].iter().rev();
        let mut after = all[number..].iter();
        // An answer belongs to the last request before it, a request to the first answer after it.
        let is_answer = own.first().is_some_and(|(answer, _)| *answer);
        let other = if is_answer { before.find(belongs) } else { after.find(belongs) };
        shown.extend(other.copied());
        shown.sort_by_key(|(number, _)| *number);
    }
    let mut calls = Calls::default();
    for (number, record) in shown {
        for line in shown::lines(output.out, number, record, &mut calls) {
            output.print(&format!("{}\n", output.out.paint(BOLD, line)))?;
        }
        let text = whole(record);
        let text = match serde_json::from_str::<Value>(&text) {
            Ok(value) => {
                let text = serde_json::to_string_pretty(&value).unwrap_or(text);
                escape::json(&text).into_owned()
            }
            Err(_) => text,
        };
        output.print(&format!("{}\n", output.out.text(&text)))?;
    }
    Ok(Exit::Worked)
}

/// The ids in a message, and whether each is that of an answer.
fn ids(message: &taut_trace::Message) -> Vec<(bool, String)> {
    let id = |talk: taut_trace::Talk| Some((talk.kind() == taut_trace::Kind::Answer, talk.id?));
    talks(&message.body).into_iter().filter_map(id).collect()
}

fn export(output: &Output, from: &Path, to: &Path) -> Result<Exit, Problem> {
    // Nothing is written if it is no capture.
    load(from)?;
    let lines = std::fs::read(from)
        .map_err(|error| Problem::File { what: format!("reading {}", from.display()), error })?;
    let html = document(&page::random()?, Some(&String::from_utf8_lossy(&lines)));
    let failed = |error| Problem::File { what: format!("writing {}", to.display()), error };
    let (mut file, _) = taut_trace::create(to, "trace").map_err(failed)?;
    io::Write::write_all(&mut file, html.as_bytes()).map_err(failed)?;
    output.note(&format!(
        "{} is one document of {}; it needs nothing else",
        to.display(),
        size(html.len())
    ));
    Ok(Exit::Worked)
}

fn serve(output: &Output, args: &View) -> Result<Exit, Problem> {
    let file = open(&args.file)?;
    Reader::new(BufReader::new(&file)).map_err(|error| unreadable(&args.file, &error))?;
    let changed = file.metadata().and_then(|about| about.modified()).ok();
    let age = changed.and_then(|time| SystemTime::now().duration_since(time).ok());
    let grows = args.follow || age.is_none_or(|age| age < RECENT);
    let address = page::serve(file, grows)?;
    output.print(&format!("{address}\n"))?;
    output.note("open it in a browser; Ctrl-C ends this");
    loop {
        std::thread::park();
    }
}
