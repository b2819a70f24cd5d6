//! The checks themselves: which there are, and what one of them means.
//!
//! Checks nothing.

use serde_json::Value;
use taut_check::{Check, Side};

use crate::output::{BOLD, DIM, Output};
use crate::own;
use crate::problem::Problem;

/// A name that no check has is a slip, not an empty run.
pub(super) fn known(only: &[String]) -> Result<(), Problem> {
    let checks = taut_check::checks();
    let fits = |word: &String| {
        checks.iter().any(|check| check.id == word || check.id.starts_with(&format!("{word}-")))
    };
    match only.iter().find(|word| !fits(word)) {
        Some(word) => Err(unknown(word)),
        None => Ok(()),
    }
}

fn unknown(word: &str) -> Problem {
    let checks = taut_check::checks();
    // A word may also begin several of them.
    let areas = checks.iter().filter_map(|check| check.id.split('-').next());
    let close = crate::arguments::closest(word, checks.iter().map(|check| check.id).chain(areas));
    let meant = close.map(|id| format!("; did you mean {id}?")).unwrap_or_default();
    let what = format!("there is no check {word:?}{meant}");
    Problem::Usage { what, next: Some(own::named("taut check --list")) }
}

fn side(check: &Check) -> &'static str {
    match check.side {
        Side::Server => "server",
        Side::Client => "client",
    }
}

/// All checks, a line each.
pub(super) fn list(output: &Output) -> Result<(), Problem> {
    let checks = taut_check::checks();
    if output.json {
        let all: Vec<Value> = checks
            .iter()
            .map(|check| {
                serde_json::json!({ "id": check.id, "side": side(check), "level": check.level.word(),
                    "rules": check.rules, "revisions": check.revisions.names(), "rule": check.rule })
            })
            .collect();
        return output.document(&all);
    }
    let widest = |width: fn(&Check) -> usize| checks.iter().map(width).max().unwrap_or_default();
    let id = widest(|check| check.id.len());
    let revisions = widest(|check| check.revisions.to_string().len());
    let mut text = String::new();
    for check in &checks {
        let head = format!("{:<id$}  {}  {:<6}", check.id, side(check), check.level.word());
        let applies = check.revisions.to_string();
        text += &format!("{head}  {applies:<revisions$}  {}\n", check.rules.join(" "));
    }
    text += &format!(
        "{} checks; `{taut} check --explain ID` tells more of one\n",
        checks.len(),
        taut = own::name()
    );
    output.print(&text)
}

/// One check, with its sentence of the specification.
pub(super) fn explain(output: &Output, id: &str) -> Result<(), Problem> {
    let Some(check) = taut_check::find(id) else { return Err(unknown(id)) };
    let reader = output.out;
    let newest =
        taut_check::Revision::ALL.into_iter().rev().find(|it| check.revisions.contains(*it));
    let page = newest.map(|revision| check.page(revision)).unwrap_or_default();
    if output.json {
        return output.document(&serde_json::json!({ "id": check.id, "rule": check.rule,
            "level": check.level.word(), "side": side(&check), "revisions": check.revisions.names(),
            "rules": check.rules, "page": page, "sent": check.sent, "suffers": check.hosts,
            "sentence": check.text().map(|text| text.sentence),
            "stands": check.text().map(|text| text.page) }));
    }
    let sentence = check.text().map(|text| format!("{}: {}", text.page, text.sentence));
    let title = reader.paint(BOLD, check.id);
    let line =
        |name: &str, text: &str| format!("{} {text}\n", reader.paint(DIM, format!("{name:<10}")));
    let text = format!("{title}\n{}\n\n", check.rule)
        + &line("level", check.level.word())
        + &line("for", side(&check))
        + &line("revisions", &check.revisions.to_string())
        + &line("rules", &format!("{} (docs/rules.md)", check.rules.join(", ")))
        + &line("page", &page)
        + &sentence.map(|words| line("sentence", &words)).unwrap_or_default()
        + &line("sent", check.sent)
        + &line("suffers", check.hosts);
    output.print(&text)
}
