//! The result for programs: everything that was measured, round by round.

use serde_json::{Value, json};

use super::phases::{Measured, Phase};
use super::rounds::{Cell, Plan, Row};
use super::stats::median;
use super::table::against;
use super::target::Target;
use crate::problem::Exit;
use crate::session::shown;

/// One document.
pub(super) fn document(
    plan: &Plan,
    rows: &[Row],
    machine: &Value,
    over: &str,
    exit: Exit,
) -> Value {
    let phases: Vec<Value> = plan
        .keys()
        .into_iter()
        .filter_map(|(phase, pinning)| {
            let cell = |row| super::table::cell(row, phase, pinning);
            let base = rows.first().and_then(cell);
            let servers: Vec<Value> = rows
                .iter()
                .filter_map(|row| Some(one(&row.name, phase, cell(row)?, base)))
                .collect();
            if servers.is_empty() {
                return None;
            }
            let mut entry =
                json!({ "phase": phase.key(), "cores": pinning.key(), "servers": servers });
            match phase {
                Phase::InFlight(count) => entry["in_flight"] = json!(count),
                Phase::Payload(size) => entry["bytes"] = json!(size),
                _ => {}
            }
            Some(entry)
        })
        .collect();
    json!({
        "taut": env!("CARGO_PKG_VERSION"),
        "machine": machine,
        "rounds": plan.rounds,
        "over": over,
        "servers": rows.iter().map(server).collect::<Vec<_>>(),
        "phases": phases,
        "exit": exit as u8,
    })
}

fn server(row: &Row) -> Value {
    let mut entry = json!({ "name": row.name, "command": shown(&row.words),
        "failed": row.first_fault().map(ToString::to_string) });
    let Some(facts) = &row.facts else { return entry };
    entry["server"] = json!({ "name": facts.opened.name, "version": facts.opened.version });
    entry["era"] = json!(facts.era());
    entry["revision"] = json!(facts.opened.revision);
    entry["tools"] = json!(facts.tools());
    entry["called"] = match &facts.target {
        Target::Tool { name, argument, repeats } => {
            json!({ "tool": name, "argument": argument, "compared": repeats })
        }
        Target::Fixed { name, arguments } => {
            let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
            json!({ "tool": name, "arguments": arguments, "compared": false })
        }
        Target::Ping => json!("ping"),
        Target::List => json!("tools/list"),
    };
    entry["parsed"] = json!(row.parsed);
    entry["notes"] = json!(facts.notes);
    entry
}

fn one(name: &str, phase: Phase, cell: &Cell, base: Option<&Cell>) -> Value {
    let rounds: Vec<Value> =
        cell.rounds.iter().map(|round| round.as_ref().map_or(Value::Null, figures)).collect();
    let mut entry = json!({ "name": name, "rounds": rounds });
    if let Some(fault) = &cell.fault {
        entry["fault"] = json!(fault.to_string());
    }
    if cell.rounds.iter().any(Option::is_some) {
        entry["median"] = figures(&middle(cell));
        let ratio = base.map_or(f64::NAN, |base| against(phase, cell, base));
        entry["ratio"] = rounded(ratio);
    }
    entry
}

/// Each figure's median over the rounds.
pub(super) fn middle(cell: &Cell) -> Measured {
    let of = |figure: fn(&Measured) -> f64| median(cell.rounds.iter().flatten().map(figure));
    Measured {
        calls: of(|m| m.calls as f64) as usize,
        p50: of(|m| m.p50),
        p90: of(|m| m.p90),
        p99: of(|m| m.p99),
        p999: of(|m| m.p999),
        per_second: of(|m| m.per_second),
        cpu: of(|m| m.cpu),
        switches: of(|m| m.switches),
        peak: of(|m| m.peak),
    }
}

fn figures(of: &Measured) -> Value {
    json!({
        "calls": of.calls,
        "p50_us": rounded(of.p50 / 1e3),
        "p90_us": rounded(of.p90 / 1e3),
        "p99_us": rounded(of.p99 / 1e3),
        "p999_us": rounded(of.p999 / 1e3),
        "per_second": rounded(of.per_second),
        "cpu_us": rounded(of.cpu / 1e3),
        "switches": rounded(of.switches),
        "peak_bytes": rounded(of.peak),
    })
}

/// Four places are more than any clock gives.
fn rounded(value: f64) -> Value {
    if value.is_finite() { json!((value * 1e4).round() / 1e4) } else { Value::Null }
}
