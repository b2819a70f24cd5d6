//! `taut fleet`: who serves what on a broker. On a terminal it is drawn again and again.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;
use taut_nats::{Connection, ServiceName, WorkerReport, fleet};

use crate::cells::{cut, pad, wide};
use crate::gate;
use crate::help;
use crate::nats::{NatsArgs, name};
use crate::output::{BOLD, DIM, Output};
use crate::problem::{Exit, Problem};
use crate::signals::Interrupts;

/// How long workers may take to answer.
const LIMIT: Duration = Duration::from_secs(3);

/// How long a table stands before it is drawn again.
const PAUSE: Duration = Duration::from_secs(1);

/// How many lines a terminal has that does not say so.
const ROWS: usize = 24;

#[derive(clap::Args)]
#[command(after_help = help::FLEET)]
pub(crate) struct FleetArgs {
    /// Only this service.
    service: Option<String>,
    #[command(flatten)]
    broker: NatsArgs,
    /// On a terminal, print the table once and end; elsewhere it always is so.
    #[arg(long, help_heading = "Output")]
    once: bool,
    /// Print one JSON document.
    #[arg(long, help_heading = "Output")]
    json: bool,
}

pub(super) async fn run(output: &Output, args: &FleetArgs) -> Result<Exit, Problem> {
    let service = args.service.as_deref().map(name).transpose()?;
    let connection = args.broker.connect("fleet").await?;
    if output.on_terminal() && !args.once && !args.json {
        watch(output, &connection, service.as_ref()).await?;
        return Ok(Exit::Worked);
    }
    let workers = fleet(&connection, service.as_ref(), LIMIT).await?;
    if args.json {
        output.document(&json!({ "broker": connection.url(), "workers": workers }))?;
    } else {
        output.print(&table(output, &connection, service.as_ref(), &workers, None))?;
    }
    // For scripts: whether there is anybody.
    Ok(if workers.is_empty() { Exit::NoConnection } else { Exit::Worked })
}

/// Draws the table again and again, until Ctrl-C.
async fn watch(
    output: &Output,
    connection: &Connection,
    service: Option<&ServiceName>,
) -> Result<(), Problem> {
    let mut interrupts = Interrupts::new()?;
    let mut drawn = 0;
    loop {
        let workers = tokio::select! {
            workers = fleet(connection, service, LIMIT) => workers?,
            () = interrupts.next() => return Ok(()),
        };
        // The cursor stands below the last line.
        let rows = gate::rows_of_stdout().unwrap_or(ROWS).saturating_sub(1);
        let text = table(output, connection, service, &workers, Some(rows));
        gate::result(&output.out.pass(&text).over(drawn)).map_err(Problem::output)?;
        drawn = text.lines().count();
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = interrupts.next() => return Ok(()),
        }
    }
}

/// The table, or that there is nobody. It has at most so many lines, if that is said, and a line then fits the terminal.
fn table(
    output: &Output,
    connection: &Connection,
    service: Option<&ServiceName>,
    workers: &[WorkerReport],
    rows: Option<usize>,
) -> String {
    if workers.is_empty() {
        let what = service.map_or("anything", ServiceName::as_str);
        let url = connection.url();
        return match connection.is_connected() {
            true => format!("nobody serves {what} at {url}\n"),
            false => format!("no connection to {url}; it is opened again by itself\n"),
        };
    }
    shown(output, workers, rows)
}

const HEADS: [&str; 9] =
    ["SERVICE", "WORKER", "SERVER", "BUSY", "LISTENS", "CALLS", "ERRORS", "BOUNCED", "MEAN"];

fn cells(worker: &WorkerReport) -> [String; 9] {
    [
        worker.service.clone(),
        worker.worker.clone(),
        worker.server.clone().unwrap_or_default(),
        format!("{}/{}", worker.busy, worker.slots),
        worker.listens.to_string(),
        worker.calls.to_string(),
        worker.errors.to_string(),
        worker.bounced.to_string(),
        format!("{:.1} ms", worker.average_ms),
    ]
}

fn shown(output: &Output, workers: &[WorkerReport], rows: Option<usize>) -> String {
    let reader = output.out;
    // A line that is wider than the terminal would take two, and could not be drawn over.
    let width = output.width().filter(|_| rows.is_some()).unwrap_or(usize::MAX);
    // The heads and the sum have a line each.
    let most = rows.map_or(usize::MAX, |rows| rows.saturating_sub(2).max(1));
    let rows: Vec<[String; 9]> = workers
        .iter()
        .take(most)
        .map(|worker| cells(worker).map(|cell| reader.line(&cell).into_owned()))
        .collect();
    let heads = HEADS.map(str::to_owned);
    let widths: [usize; 9] = std::array::from_fn(|column| {
        rows.iter().chain([&heads]).map(|row| wide(&row[column])).max().unwrap_or(0)
    });
    let line = |row: &[String; 9]| {
        let padded =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell}{}", pad(cell, width)));
        cut(padded.collect::<Vec<_>>().join("  ").trim_end(), width.saturating_sub(1)).into_owned()
    };
    let mut text = format!("{}\n", reader.paint(BOLD, line(&heads)));
    for row in &rows {
        let _ = writeln!(text, "{}", line(row));
    }
    let (busy, slots) =
        workers.iter().fold((0, 0), |(busy, slots), one| (busy + one.busy, slots + one.slots));
    let mut total = format!("{} workers, {busy} of {slots} slots busy", workers.len());
    if workers.len() > rows.len() {
        let _ = write!(total, "; {} are not shown", workers.len() - rows.len());
    }
    let total = cut(&total, width.saturating_sub(1));
    let _ = writeln!(text, "{}", reader.paint(DIM, total));
    text
}
