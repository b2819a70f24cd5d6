//! The report for people: failures first, with the bytes, then a table by area.

use std::fmt::Write as _;

use super::{Report, Row};
use crate::check::{Level, Verdict};
use crate::ours::Revision;

/// How much of a line is shown, in characters.
const LINE: usize = 220;

/// How many lines of an exchange are shown.
const LINES: usize = 12;

/// How many of advice, which is there to be skimmed.
const LINES_OF_ADVICE: usize = 3;

/// What a part of the table says, for who gives it a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// A rule was kept.
    Good,
    /// A MUST was broken.
    Bad,
    /// A SHOULD was broken, or a MUST by the SDK.
    Weak,
    /// Advice that was not followed.
    Advice,
    /// What was wrong, in words.
    Strong,
}

/// The report as text. `paint` may put colours around a part; [`plain`] puts none. It ends with what to do next if
/// `taut` is the name of the command to do it with.
#[must_use]
pub fn table(report: &Report, taut: Option<&str>, paint: &dyn Fn(Tone, &str) -> String) -> String {
    let mut text = String::new();
    let mut findings = report.findings();
    // What fails the run comes first.
    findings.sort_by_key(|rows| weight(rows[0]));
    findings.iter().for_each(|rows| text.push_str(&failure(rows, paint)));
    for (revision, why) in &report.closed {
        let _ = writeln!(text, "{}  not spoken: {}", revision.as_str(), cut(why));
    }
    if !report.closed.is_empty() {
        text.push('\n');
    }
    if !report.revisions().is_empty() {
        text.push_str(&areas(report, paint));
    }
    let seconds = report.took.as_secs_f64();
    let pass = report.count("pass");
    let found = |fits: fn(&Row) -> bool| findings.iter().filter(|rows| fits(rows[0])).count();
    let (fail, warn) = (found(Row::fails), found(Row::warns));
    let (skip, blocked) = (report.count("skip"), report.count("blocked"));
    let advice = findings.len() - fail - warn;
    let sum = format!(
        "{pass} passed, {fail} failed, {warn} warnings, {skip} skipped, {blocked} not judged, {advice} pieces of advice; {} starts, {seconds:.1} s",
        report.starts
    );
    let mark = if report.passed() { paint(Tone::Good, "✓") } else { paint(Tone::Bad, "✗") };
    let _ = writeln!(text, "\n{mark} {sum}");
    for call in &report.idle {
        let _ = match &call.came {
            None => writeln!(
                text,
                "{} the server has no tool {:?}, so what needs it was not checked: correct --call, or leave it out",
                paint(Tone::Bad, "✗"),
                call.tool
            ),
            Some(came) => writeln!(
                text,
                "the call of {:?} worked in no revision, so what needs one that works was not checked: {}",
                call.tool,
                cut(came)
            ),
        };
    }
    text.push_str(&next(report, taut, &findings));
    if report.revisions().is_empty() {
        let taut = taut.unwrap_or("taut");
        let _ = writeln!(
            text,
            "nothing could be checked: the server opens in none of the revisions above; `{taut} doctor` says why"
        );
    }
    text
}

/// A text without colours.
#[must_use]
pub fn plain(_: Tone, text: &str) -> String {
    text.to_owned()
}

/// What fails the run comes first, then what the server's author can mend, then by level.
fn weight(row: &Row) -> (bool, bool, Level) {
    (!row.fails(), row.sdk.is_some(), row.level)
}

/// Whose fault it is, and what to do next.
fn next(report: &Report, taut: Option<&str>, findings: &[Vec<&Row>]) -> String {
    let Some(first) = findings.iter().min_by_key(|rows| weight(rows[0])) else {
        return String::new();
    };
    let mut text = String::new();
    let its = findings.iter().filter(|rows| rows[0].sdk.is_some()).count();
    if let Some(sdk) = report.sdk.as_ref().filter(|_| its > 0) {
        let lenient = findings.iter().any(|rows| rows[0].sdk.is_some() && rows[0].warns());
        let _ = writeln!(
            text,
            "{its} of these {} {} of the {}: the own example of {} fails them too (docs/conformance.md){}",
            findings.len(),
            if its == 1 { "is" } else { "are" },
            sdk.name,
            sdk.package,
            if lenient { "; they do not fail the run" } else { "" }
        );
    }
    let Some(taut) = taut else { return text };
    let _ = writeln!(
        text,
        "next: {taut} check --explain {} shows its sentence of the specification",
        first[0].id
    );
    match findings.iter().any(|rows| rows[0].fails()) {
        true => text.push_str(
            "      --baseline known.txt keeps what fails now in a file: from then on only new failures fail a run\n",
        ),
        false if findings.iter().any(|rows| rows[0].warns()) => {
            text.push_str("      --strict makes a failure of each warning\n");
        }
        false => {}
    }
    text
}

fn failure(rows: &[&Row], paint: &dyn Fn(Tone, &str) -> String) -> String {
    let row = rows[0];
    let revisions: Vec<&str> = rows.iter().map(|row| row.revision.as_str()).collect();
    let (mark, style) = match row.level {
        Level::Advice => ("·", Tone::Advice),
        Level::Should if row.fails() => ("✗", Tone::Weak),
        Level::Must if row.fails() => ("✗", Tone::Bad),
        Level::Must | Level::Should => ("!", Tone::Weak),
    };
    let head = paint(style, &format!("{mark} {} {}", row.level.word(), row.id));
    let mut text = format!("{head}  {}  {}\n", row.rules.join(" "), revisions.join(" "));
    let _ = writeln!(text, "  {}\n  {}", row.rule, paint(Tone::Strong, &cut(row.words())));
    if let Some(sdk) = row.sdk {
        let _ = writeln!(text, "  whose fault: the SDK's; the own example of {sdk} fails it too");
    }
    let _ = writeln!(text, "  who suffers: {}", row.hosts);
    let lines = if row.level == Level::Advice { LINES_OF_ADVICE } else { LINES };
    for line in row.exchange.iter().take(lines) {
        let _ = writeln!(text, "    {}", cut(line));
    }
    if row.exchange.len() > lines {
        let _ = writeln!(text, "    … {} more", row.exchange.len() - lines);
    }
    text.push('\n');
    text
}

/// One line per area, one column per revision: passed of tried.
fn areas(report: &Report, paint: &dyn Fn(Tone, &str) -> String) -> String {
    let revisions = report.revisions();
    let mut areas: Vec<&str> = report.rows.iter().map(|row| row.area).collect();
    areas.sort_unstable();
    areas.dedup();
    let mut text = format!("{:<12}", "area");
    revisions.iter().for_each(|revision| text.push_str(&format!(" {:>11}", revision.as_str())));
    text.push('\n');
    for area in areas {
        let _ = write!(text, "{area:<12}");
        for revision in &revisions {
            text.push_str(&cell(report, area, *revision, paint));
        }
        text.push('\n');
    }
    text
}

fn cell(
    report: &Report,
    area: &str,
    revision: Revision,
    paint: &dyn Fn(Tone, &str) -> String,
) -> String {
    let (passed, tried) = counts(report, area, revision);
    let text = if tried == 0 { "-".to_owned() } else { format!("{passed}/{tried}") };
    let fails = |row: &&Row| row.area == area && row.revision == revision && row.fails();
    let style = match passed == tried {
        true => Tone::Good,
        false if report.rows.iter().any(|row| fails(&row)) => Tone::Bad,
        false => Tone::Weak,
    };
    format!(" {}{}", " ".repeat(11_usize.saturating_sub(text.len())), paint(style, &text))
}

/// How many checks of an area passed, and how many gave a verdict. Advice does not count.
pub(super) fn counts(report: &Report, area: &str, revision: Revision) -> (usize, usize) {
    let rows = report
        .rows
        .iter()
        .filter(|row| row.area == area && row.revision == revision && row.level != Level::Advice);
    let mut passed = 0;
    let mut tried = 0;
    for row in rows {
        match row.verdict {
            Verdict::Pass => (passed, tried) = (passed + 1, tried + 1),
            Verdict::Fail { .. } => tried += 1,
            Verdict::Skip(_) | Verdict::Blocked(_) => {}
        }
    }
    (passed, tried)
}

fn cut(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match line.char_indices().nth(LINE) {
        Some((end, _)) => format!("{}… ({} bytes)", &line[..end], text.len()),
        None => line,
    }
}
