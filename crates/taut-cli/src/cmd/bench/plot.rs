//! The result as a picture: how long a call takes, how many there are in a second, and both time and
//! cost against size. What each panel shows is decided here, how it is drawn in `panel.rs`.

use std::fmt::Write as _;

use super::document::middle;
use super::panel::{Curve, Curves, Dots, Place, escape};
use super::phases::{Measured, Phase};
use super::pinning::Pinning;
use super::rounds::{Plan, Row};
use super::table::{count, nanos};

/// Colours that can be told apart on white and on black.
const COLOURS: [&str; 12] = [
    "#e8590c", "#4269d0", "#2f9e44", "#a463f2", "#c99200", "#0b9bb0", "#e64980", "#7f8a99",
    "#9c6b4e", "#6cc5b0", "#97bbf5", "#b2a400",
];
const WIDTH: f64 = 1060.0;
/// Where the right column begins.
const MIDDLE: f64 = 530.0;

const STYLE: &str = "\
text{font:12px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2328}\
.t{font-size:15px;font-weight:600}.d{fill:#59636e}.e{text-anchor:end}.m{text-anchor:middle}\
.g{stroke:#d1d9e0;stroke-width:1}.b{fill:#fff}\
@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.d{fill:#9198a1}.g{stroke:#30363d}.b{fill:#0d1117}}";

/// The whole picture: as many panels as there are figures for.
pub(super) fn draw(plan: &Plan, rows: &[Row]) -> String {
    let height = (26.0 * rows.len() as f64 + 120.0).max(330.0);
    let mut panels = Vec::new();
    let mut places = (0..4).map(|at| Place {
        left: if at % 2 == 0 { 0.0 } else { MIDDLE },
        top: height * f64::from(at / 2),
        width: MIDDLE,
        height,
    });
    for panel in [latency(plan, rows), rate(plan, rows)].into_iter().flatten() {
        panels.extend(places.next().map(|place| panel.draw(place)));
    }
    let time = curves(rows, "Time of a call against its size", |measured| measured.p50);
    let cost = curves(rows, "CPU of the server against size", |measured| measured.cpu);
    for panel in [time, cost].into_iter().flatten() {
        panels.extend(places.next().map(|place| panel.draw(place)));
    }
    let whole = height * panels.len().div_ceil(2).max(1) as f64;
    let name = rows.first().map_or("", |row| &row.name);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {whole}\" role=\"img\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n\
         <rect class=\"b\" width=\"{WIDTH}\" height=\"{whole}\" rx=\"8\"/>\n",
        escape(&format!("{name} as taut bench measured it"))
    );
    for panel in panels {
        let _ = write!(out, "{panel}");
    }
    out.push_str("</svg>\n");
    out
}

fn named(rows: &[Row]) -> impl Iterator<Item = (&Row, &'static str)> {
    rows.iter().zip(COLOURS.iter().copied().cycle())
}

fn of(row: &Row, phase: Phase, pinning: Pinning) -> Option<Measured> {
    let measured = middle(row.cells.get(&(phase, pinning))?);
    measured.p50.is_finite().then_some(measured)
}

/// A dot for the median, a line from there to the worst in a hundred.
fn latency(plan: &Plan, rows: &[Row]) -> Option<Dots> {
    let pinning = *plan.pinnings.first()?;
    let mut dots = Dots {
        title: "One call after the other".to_owned(),
        about: format!("64 bytes, {}; dot: median, line: to p99", pinning.words()),
        unit: nanos,
        rows: Vec::new(),
    };
    for (row, colour) in named(rows) {
        if let Some(measured) = of(row, Phase::Sequential, pinning) {
            dots.rows.push((row.name.clone(), colour, measured.p50, measured.p99));
        }
    }
    (!dots.rows.is_empty()).then_some(dots)
}

/// Calls in a second, with the most in flight that were tried.
fn rate(plan: &Plan, rows: &[Row]) -> Option<Dots> {
    let pinning = *plan.pinnings.last()?;
    let flights = plan.phases.iter().filter_map(|phase| match phase {
        Phase::InFlight(count) => Some(*count),
        _ => None,
    });
    let most = flights.max()?;
    let mut dots = Dots {
        title: format!("Calls in a second, {most} in flight"),
        about: format!("64 bytes, {}; more is better", pinning.words()),
        unit: count,
        rows: Vec::new(),
    };
    for (row, colour) in named(rows) {
        if let Some(measured) = of(row, Phase::InFlight(most), pinning) {
            dots.rows.push((row.name.clone(), colour, measured.per_second, measured.per_second));
        }
    }
    (!dots.rows.is_empty()).then_some(dots)
}

fn curves(rows: &[Row], title: &str, figure: fn(&Measured) -> f64) -> Option<Curves> {
    let mut all = Vec::new();
    for (row, colour) in named(rows) {
        let mut points = Vec::new();
        for ((phase, _), cell) in &row.cells {
            let value = figure(&middle(cell));
            if let (Phase::Payload(size), true) = (phase, value.is_finite() && value > 0.0) {
                points.push((*size as f64, value));
            }
        }
        if !points.is_empty() {
            all.push(Curve { name: row.name.clone(), colour, points });
        }
    }
    let about = "median of calls with a text that is sent back".to_owned();
    (!all.is_empty()).then(|| Curves { title: title.to_owned(), about, lines: all })
}
