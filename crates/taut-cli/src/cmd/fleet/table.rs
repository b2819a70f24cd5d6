//! `taut fleet`: who serves what on a broker.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;
use taut_nats::{WorkerReport, fleet};

use crate::cells::{pad, wide};
use crate::help;
use crate::nats::{NatsArgs, name};
use crate::output::{BOLD, DIM, Output};
use crate::problem::{Exit, Problem};

/// How long workers may take to answer.
const LIMIT: Duration = Duration::from_secs(3);

#[derive(clap::Args)]
#[command(after_help = help::FLEET)]
pub(crate) struct FleetArgs {
    /// Only this service.
    service: Option<String>,
    #[command(flatten)]
    broker: NatsArgs,
    /// Print one JSON document.
    #[arg(long, help_heading = "Output")]
    json: bool,
}

pub(super) async fn run(output: &Output, args: &FleetArgs) -> Result<Exit, Problem> {
    let service = args.service.as_deref().map(name).transpose()?;
    let connection = args.broker.connect("fleet").await?;
    let workers = fleet(&connection, service.as_ref(), LIMIT).await?;
    if args.json {
        output.document(&json!({ "broker": connection.url(), "workers": workers }))?;
    } else if workers.is_empty() {
        let what = args.service.as_deref().unwrap_or("anything");
        output.print(&format!("nobody serves {what} at {}\n", connection.url()))?;
    } else {
        output.print(&shown(output, &workers))?;
    }
    // For scripts: whether there is anybody.
    Ok(if workers.is_empty() { Exit::NoConnection } else { Exit::Worked })
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

fn shown(output: &Output, workers: &[WorkerReport]) -> String {
    let reader = output.out;
    let rows: Vec<[String; 9]> = workers
        .iter()
        .map(|worker| cells(worker).map(|cell| reader.line(&cell).into_owned()))
        .collect();
    let heads = HEADS.map(str::to_owned);
    let widths: [usize; 9] = std::array::from_fn(|column| {
        rows.iter().chain([&heads]).map(|row| wide(&row[column])).max().unwrap_or(0)
    });
    let line = |row: &[String; 9]| {
        let padded =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell}{}", pad(cell, width)));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut text = format!("{}\n", reader.paint(BOLD, line(&heads)));
    for row in &rows {
        let _ = writeln!(text, "{}", line(row));
    }
    let (busy, slots) =
        workers.iter().fold((0, 0), |(busy, slots), one| (busy + one.busy, slots + one.slots));
    let total = format!("{} workers, {busy} of {slots} slots busy", workers.len());
    let _ = writeln!(text, "{}", reader.paint(DIM, total));
    text
}
