//! The report of one server for people: a line for each phase, the findings, the verdict.
//!
//! Must not judge, nor know how a server is started.

use super::facts::{Facts, Phase};
use super::findings::{Finding, Level};
use crate::cells::{cut, pad, wide};
use crate::gate::Style;
use crate::output::{BOLD, CYAN, DIM, GREEN, Output, RED, YELLOW, time};
use crate::problem::Problem;

/// How wide the words of a finding may be: wider is hard to read.
const WIDTH: usize = 100;

/// Columns of one text: a server may have names of megabytes.
pub(super) const LONGEST: usize = 4000;

/// How wide the column of texts is at least, beside the times.
const TEXT: usize = 56;

pub(super) fn show(
    output: &Output,
    name: &str,
    facts: &Facts,
    found: &[Finding],
    entry: Option<&str>,
) -> Result<(), Problem> {
    let reader = output.out;
    let title = reader.paint(BOLD, format!("taut {}", env!("CARGO_PKG_VERSION")));
    let mut text = format!("{title}  {}\n", reader.paint(DIM, format!("$ {}", reader.line(name))));
    for phase in facts.phases() {
        text += &row(output, &phase);
    }
    for (number, finding) in found.iter().enumerate() {
        let style = match finding.level {
            Level::Broken => RED,
            Level::Hurts => YELLOW,
            Level::Note => CYAN,
        };
        let head = format!("{}. {}", number + 1, finding.level.word());
        let head = reader.paint(style, format!("{head:<9}"));
        let width = output.width().unwrap_or(WIDTH).clamp(40, WIDTH);
        let wrapped = |words: &str, indent| wrap(&reader.line(words), width, indent);
        text += &format!("\n{head}  {}\n", wrapped(&finding.what, 11));
        for line in &finding.list {
            text += &format!("{:13}{}\n", "", cut(&reader.line(line), LONGEST));
        }
        text += &format!("   {}   {}\n", reader.paint(DIM, "hurts"), wrapped(&finding.hurts, 11));
        text += &format!("   {}  {}\n", reader.paint(DIM, "change"), wrapped(&finding.change, 11));
    }
    if let Some(entry) = entry {
        let numbered = found.iter().enumerate().filter(|(_, finding)| finding.bridged);
        let numbers: Vec<String> = numbered.map(|(at, _)| (at + 1).to_string()).collect();
        let all =
            if numbers.len() == found.len() { "all of it".to_owned() } else { numbers.join(", ") };
        let label = reader.paint(CYAN, "taut bridge");
        text +=
            &format!("\n{label} cures {all} without a change to the server; in the host's file:\n");
        text += &format!("   {}\n", reader.line(&crate::secrets::masked(entry)));
    }
    let verdict = reader.paint(style_of(facts, found), verdict(facts, found).1);
    output.print(&format!("{text}\n{verdict}\n"))
}

/// The last line: how bad it is, and the words.
pub(super) fn verdict(facts: &Facts, found: &[Finding]) -> (Level, &'static str) {
    let has = |level| found.iter().any(|finding| finding.level == level);
    match (has(Level::Broken), has(Level::Hurts)) {
        (false, false) => (Level::Note, "✓ every host should get on with it"),
        (false, true) => (Level::Hurts, "✓ it works, but not everywhere: see above"),
        _ if facts.error().is_none() && !facts.objections.is_empty() => {
            (Level::Broken, "✗ most hosts cannot use it like this: see above")
        }
        _ if facts.full_environment.is_some() => (
            Level::Broken,
            "✗ only hosts that pass on the whole environment can use it like this: see above",
        ),
        _ => (Level::Broken, "✗ no host can use it like this: see above"),
    }
}

pub(super) fn style_of(facts: &Facts, found: &[Finding]) -> Style {
    match verdict(facts, found).0 {
        Level::Broken => RED,
        Level::Hurts => YELLOW,
        Level::Note => GREEN,
    }
}

/// Breaks words into lines; all but the first are indented, and the first has so much before it.
fn wrap(text: &str, width: usize, indent: usize) -> String {
    // Before it is broken up: no one knows a secret by its half.
    let text = crate::secrets::masked(text);
    let text = cut(&text, LONGEST);
    let mut out = String::new();
    let mut used = indent;
    for (at, word) in text.split(' ').enumerate() {
        let long = wide(word);
        if at > 0 && used + 1 + long > width {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            used = indent;
        } else if at > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += long;
    }
    out
}

pub(super) fn row(output: &Output, phase: &Phase) -> String {
    let reader = output.out;
    let mark = match phase.ok {
        Some(true) => reader.paint(GREEN, "✓"),
        Some(false) => reader.paint(RED, "✗"),
        None => reader.paint(DIM, "·"),
    };
    let text = reader.line(&phase.text);
    let Some(at) = phase.at else {
        let width = output.width().unwrap_or(usize::MAX);
        // The reason of a failure ends with what to do about it, so it is not cut. Names of variables are only a list.
        let text = match phase.name {
            "environment" => cut(&text, width.saturating_sub(18).max(8)).into_owned(),
            _ => wrap(&text, width, 18),
        };
        return format!("  {mark} {:<12}  {text}\n", phase.name);
    };
    // A terminal has the times at its right edge, up to where they are hard to follow.
    let room = output.width().map_or(LONGEST, |width| width.saturating_sub(29).max(8));
    let text = cut(&text, room);
    let pad = pad(&text, room.min(TEXT));
    let at = reader.paint(DIM, format!("{:>11}", time(at)));
    format!("  {mark} {:<12}  {text}{pad}{at}\n", phase.name)
}
