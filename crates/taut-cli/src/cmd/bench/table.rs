//! The result for people: a block for each phase, a line for each server.

use std::fmt::Write as _;

use super::phases::{Measured, Phase};
use super::pinning::Pinning;
use super::rounds::{Cell, Plan, Row};
use super::stats::{median, ratio};
use crate::cells::cut;
use crate::output::{BOLD, DIM, GREEN, Output, RED};
use crate::own;

/// How wide a name may be.
const NAME: usize = 16;

/// One of the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    P50,
    P90,
    P99,
    P999,
    Rate,
    Cpu,
    Switches,
    Memory,
    Ratio,
}

impl Column {
    const ALL: [Self; 9] = [
        Self::P50,
        Self::P90,
        Self::P99,
        Self::P999,
        Self::Rate,
        Self::Cpu,
        Self::Switches,
        Self::Memory,
        Self::Ratio,
    ];

    /// In which order they are left out where the screen is narrow, until the rest fits.
    const SPARE: [Self; 7] =
        [Self::P999, Self::Switches, Self::P90, Self::Memory, Self::Cpu, Self::Rate, Self::P99];

    /// Those that there is room for.
    fn that_fit(several: bool, width: usize) -> Vec<Self> {
        let mut columns: Vec<Self> = Self::ALL.into();
        columns.retain(|column| several || *column != Self::Ratio);
        for spare in Self::SPARE {
            if NAME + 2 + columns.iter().map(|column| column.wide()).sum::<usize>() <= width {
                break;
            }
            columns.retain(|column| *column != spare);
        }
        columns
    }

    fn wide(self) -> usize {
        if self == Self::Ratio { 8 } else { 9 }
    }

    fn head(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Rate => "calls/s",
            Self::Cpu => "CPU/call",
            Self::Switches => "switches",
            Self::Memory => "memory",
            Self::Ratio => "×",
        }
    }

    fn figure(self, phase: Phase, cell: &Cell, base: Option<&Cell>) -> String {
        let of = |figure: fn(&Measured) -> f64| median(cell.rounds.iter().flatten().map(figure));
        match self {
            Self::P50 => nanos(of(|m| m.p50)),
            Self::P90 => nanos(of(|m| m.p90)),
            Self::P99 => nanos(of(|m| m.p99)),
            Self::P999 => nanos(of(|m| m.p999)),
            Self::Rate => count(of(|m| m.per_second)),
            Self::Cpu => nanos(of(|m| m.cpu)),
            Self::Switches => digits(of(|m| m.switches)),
            Self::Memory => memory(of(|m| m.peak)),
            Self::Ratio => base.map_or_else(String::new, |base| digits(against(phase, cell, base))),
        }
    }
}

/// All of it.
pub(super) fn show(
    output: &Output,
    plan: &Plan,
    rows: &[Row],
    machine: &str,
    over: &str,
) -> String {
    let reader = output.out;
    let rounds =
        if plan.rounds == 1 { "1 round".to_owned() } else { format!("{} rounds", plan.rounds) };
    let title = reader.paint(BOLD, format!("taut {}", env!("CARGO_PKG_VERSION")));
    let mut out =
        format!("{title}  {}\n", reader.paint(DIM, format!("{rounds}, {over}, {machine}")));
    let several = rows.len() > 1;
    let columns = Column::that_fit(several, output.width().unwrap_or(usize::MAX));
    for (phase, pinning) in plan.keys() {
        let any = rows.iter().any(|row| cell(row, phase, pinning).is_some());
        if !any {
            continue;
        }
        let title = format!("{}, {}", title_of(phase, rows), pinning.words());
        let _ = writeln!(out, "\n{}", reader.paint(BOLD, title));
        let _ = writeln!(out, "{}", reader.paint(DIM, heads(&columns)));
        for row in rows {
            let Some(cell) = cell(row, phase, pinning) else { continue };
            let base = several.then(|| self::cell(&rows[0], phase, pinning)).flatten();
            let name = reader.line(&row.name).into_owned();
            let name = format!("  {:<NAME$}", cut(&name, NAME - 1));
            match figures(&columns, phase, cell, base) {
                Some(figures) => {
                    let _ = writeln!(out, "{name}{figures}");
                }
                None => {
                    let fault = cell.fault.as_ref().map_or_else(String::new, ToString::to_string);
                    let fault = reader.line(&fault).into_owned();
                    let _ = writeln!(out, "{name}{}", reader.paint(RED, format!("✗ {fault}")));
                }
            }
        }
    }
    out += &notes(output, rows, &columns);
    out
}

/// The phase in words; a list has a length, and calls have a name.
fn title_of(phase: Phase, rows: &[Row]) -> String {
    match phase {
        Phase::List => {
            let mut counts: Vec<usize> =
                rows.iter().filter_map(|row| Some(row.facts.as_ref()?.tools())).collect();
            counts.retain(|count| *count > 0);
            let (least, most) = (counts.iter().min(), counts.iter().max());
            match (least, most) {
                (Some(1), Some(1)) => "list of 1 tool".to_owned(),
                (Some(least), Some(most)) if least == most => format!("list of {most} tools"),
                (Some(least), Some(most)) => format!("list of {least} to {most} tools"),
                _ => phase.words(),
            }
        }
        Phase::FireHose => "fire-hose".to_owned(),
        other => other.words(),
    }
}

/// What a phase gave, if it gave anything.
pub(super) fn cell(row: &Row, phase: Phase, pinning: Pinning) -> Option<&Cell> {
    let cell = row.cells.get(&(phase, pinning))?;
    let has = cell.fault.is_some() || cell.rounds.iter().any(Option::is_some);
    has.then_some(cell)
}

fn heads(columns: &[Column]) -> String {
    let heads = columns.iter().map(|column| format!("{:>1$}", column.head(), column.wide()));
    format!("{}{}", " ".repeat(NAME + 2), heads.collect::<String>())
}

fn figures(columns: &[Column], phase: Phase, cell: &Cell, base: Option<&Cell>) -> Option<String> {
    let figure =
        |column: &Column| format!("{:>1$}", column.figure(phase, cell, base), column.wide());
    let any = cell.rounds.iter().any(Option::is_some);
    any.then(|| columns.iter().map(figure).collect::<String>().trim_end().to_owned())
}

/// How many times as long as the first server, in the same rounds.
pub(super) fn against(phase: Phase, own: &Cell, base: &Cell) -> f64 {
    let headline = |cell: &Cell| -> Vec<Option<f64>> {
        cell.rounds.iter().map(|round| round.map(|round| round.headline(phase))).collect()
    };
    ratio(&headline(own), &headline(base))
}

fn notes(output: &Output, rows: &[Row], columns: &[Column]) -> String {
    let reader = output.out;
    let mut out = String::new();
    let mut note = |name: &str, text: &str| {
        let line = format!("{name}: {text}");
        let _ = writeln!(out, "{}", reader.paint(DIM, reader.line(&line)));
    };
    for row in rows {
        if let Some(words) = row.facts.as_ref().map(|facts| facts.target.words()) {
            note(&row.name, &words);
        }
        for text in row.facts.iter().flat_map(|facts| &facts.notes) {
            note(&row.name, text);
        }
        if row.parsed {
            note(&row.name, "its answers differ from each other, so each was parsed");
        }
    }
    if rows.len() > 1 {
        note("×", "how many times as long as the first, round by round, then the median");
    }
    let spared: Vec<&str> = Column::SPARE
        .iter()
        .filter(|column| !columns.contains(column))
        .map(|column| column.head())
        .collect();
    if !spared.is_empty() {
        note("too narrow for", &format!("{}; --json has all", spared.join(", ")));
    }
    let bad = rows.iter().filter(|row| row.first_fault().is_some()).count();
    let verdict = match bad {
        0 => reader.paint(GREEN, "✓ every request was answered exactly once, and rightly"),
        1 => reader.paint(RED, "✗ one of the servers failed in a phase: see above"),
        _ => reader.paint(RED, format!("✗ {bad} servers failed in a phase: see above")),
    };
    let verdict = if rows.len() == 1 && bad == 1 {
        reader.paint(RED, own::named("✗ it failed in a phase: see above, and ask taut doctor why"))
    } else {
        verdict
    };
    format!("\n{out}{verdict}\n")
}

/// Three digits that count.
pub(super) fn digits(value: f64) -> String {
    match value {
        _ if !value.is_finite() => "-".to_owned(),
        _ if value < 0.0995 => format!("{value:.3}"),
        _ if value < 9.995 => format!("{value:.2}"),
        _ if value < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A time from nanoseconds.
pub(super) fn nanos(value: f64) -> String {
    match value {
        _ if !value.is_finite() => "-".to_owned(),
        _ if value < 1e6 => format!("{} µs", digits(value / 1e3)),
        _ if value < 1e9 => format!("{} ms", digits(value / 1e6)),
        _ => format!("{} s", digits(value / 1e9)),
    }
}

/// A number of many.
pub(super) fn count(value: f64) -> String {
    match value {
        _ if !value.is_finite() => "-".to_owned(),
        _ if value < 9_995.0 => format!("{value:.0}"),
        _ if value < 999_500.0 => format!("{:.0}k", value / 1e3),
        _ => format!("{}M", digits(value / 1e6)),
    }
}

fn memory(bytes: f64) -> String {
    if bytes > 0.0 { format!("{} MiB", digits(bytes / 1_048_576.0)) } else { "-".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_left_out_until_the_others_fit() {
        for (several, width, count) in [
            (false, usize::MAX, 8),
            (true, usize::MAX, 9),
            (true, 98, 9),
            (false, 90, 8),
            (false, 80, 6),
            (true, 80, 7),
            (true, 40, 2),
        ] {
            let columns = Column::that_fit(several, width);
            assert_eq!(columns.len(), count, "{several} {width}");
            assert!(heads(&columns).chars().count() <= width);
            assert!(columns.contains(&Column::P50) && columns.contains(&Column::Ratio) == several);
        }
    }

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        let times =
            [(640.0, "0.64 µs"), (41_234.0, "41.2 µs"), (1.5e6, "1.50 ms"), (2e9, "2.00 s")];
        for (value, text) in times {
            assert_eq!(nanos(value), text);
        }
        let counts = [(1_234.0, "1234"), (163_200.0, "163k"), (1.02e6, "1.02M"), (f64::NAN, "-")];
        for (value, text) in counts {
            assert_eq!(count(value), text);
        }
    }
}
