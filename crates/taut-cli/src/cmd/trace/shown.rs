//! A record as a line for people, in the live view and in `taut trace view`.
//!
//! Knows terminals through `Reader`; must not know where the records come from.

use std::time::Duration;

use taut_trace::{Calls, End, Event, Kind, Record, Row, Stream, arrow};

use crate::cells::cut;
use crate::gate::Reader;
use crate::output::{BOLD, CYAN, DIM, RED, YELLOW, size, time};

/// How much of a text is shown on its line.
const TEXT: usize = 120;

/// The lines of a record; several for a batch.
pub(super) fn lines(
    reader: Reader,
    number: usize,
    record: &Record,
    calls: &mut Calls,
) -> Vec<String> {
    let start = reader.paint(DIM, format!("{number:>6} {:>10}", seconds(record.at)));
    let rows = calls.handle(record);
    if !rows.is_empty() {
        return rows
            .iter()
            .map(|row| format!("{start} {}", message(reader, record.at, row)))
            .collect();
    }
    let text = |body: &taut_trace::Body| reader.line(&cut(&body.text(), TEXT)).into_owned();
    let rest = match &record.event {
        Event::Start { pid } => reader.paint(DIM, format!("· started as process {pid}")),
        Event::Stderr(body) => format!("{} {}", reader.paint(YELLOW, "!"), text(body)),
        Event::Fault { from, what, .. } => {
            reader.paint(RED, format!("{} no message: {}", arrow(*from), reader.line(what)))
        }
        Event::Close(Stream::Client) => reader.paint(DIM, "· the client closed"),
        Event::Close(Stream::Server) => reader.paint(DIM, "· the server closed its output"),
        Event::Close(Stream::Stderr) => return Vec::new(),
        Event::Gap(gap) => {
            reader.paint(RED, format!("· {} missing: {}", gap.records, reader.line(&gap.why)))
        }
        Event::End(End::Code(0)) => reader.paint(DIM, "· the server ended with code 0"),
        Event::End(End::Code(code)) => {
            reader.paint(RED, format!("· the server ended with code {code}"))
        }
        Event::End(End::Signal(signal)) => {
            reader.paint(RED, format!("· the server was ended by signal {signal}"))
        }
        Event::End(End::NotStarted(why)) => {
            reader.paint(RED, format!("· the server could not be started: {}", reader.line(why)))
        }
        _ => return Vec::new(),
    };
    vec![format!("{start} {rest}")]
}

pub(super) fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

fn message(reader: Reader, at: u64, row: &Row) -> String {
    let mut way = reader.paint(CYAN, arrow(row.from));
    if let Some(link) = &row.link {
        way = format!("{} {way}", reader.paint(DIM, reader.line(&cut(link, TEXT))));
    }
    let talk = &row.talk;
    let bytes = reader.paint(DIM, size(row.bytes));
    let text = |text: &str| reader.line(&cut(text, TEXT)).into_owned();
    match talk.kind() {
        Kind::Request => {
            let id = talk.id.as_deref().unwrap_or_default();
            let id = reader.paint(DIM, format!("id {}", text(id)));
            format!("{way} {}  {id}  {bytes}", reader.paint(BOLD, text(&talk.label())))
        }
        Kind::Notification => format!("{way} {}  {bytes}", text(&talk.label())),
        Kind::Answer => {
            let id = talk.id.as_deref().unwrap_or("null");
            let what = match &row.request {
                Some(open) => {
                    let took = time(Duration::from_micros(at.saturating_sub(open.at)));
                    format!("{}  {took}", text(&open.label))
                }
                None => {
                    reader.paint(RED, format!("answers nothing that was asked, id {}", text(id)))
                }
            };
            match talk.failure() {
                Some(failure) => {
                    format!("{way} {} {what}  {}", reader.paint(RED, "✗"), text(&failure))
                }
                None => format!("{way} ✓ {what}  {bytes}"),
            }
        }
        Kind::Stray => {
            let words = talk.value.as_str().unwrap_or_default();
            format!("{way} {} {}", reader.paint(RED, "no message:"), text(words))
        }
    }
}
