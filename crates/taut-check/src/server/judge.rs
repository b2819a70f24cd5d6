//! Verdicts over all sessions, and failures that another failure explains.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::carry::{Outcome, Surveys};
use super::checks::{IDLESS, SILENT};
use super::run::ServerCheck;
use crate::check::{Check, Kind, Verdict};
use crate::cx::{Cx, Survey};
use crate::ours::Revision;
use crate::report::Row;
use crate::seen::{All, Session};

/// How a verdict ends that another failure explains.
pub(super) const EXPLAINS: &str = " explains it";

/// The check that explains answers which are missing because their errors have no id.
const ERROR_ID: &str = "rpc-error-id";

/// The checks that explain answers which are missing because several messages came at once.
const TOGETHER: [&str; 2] = ["frame-match", "frame-split"];

/// The check that explains answers which are missing because their line does not end.
const LINES: &str = "frame-line";

/// Carries out the checks that send nothing.
pub(super) fn scans(
    checks: &[Check],
    settings: &ServerCheck,
    surveys: &Surveys,
    closed: &[(Revision, String)],
    sessions: &[Session],
    outcomes: &mut Vec<(Revision, Outcome)>,
) {
    let opens: Vec<String> = surveys.iter().map(|(it, _)| it.as_str().to_owned()).collect();
    let unopened = closed.iter().map(|(revision, why)| {
        let closed = Some(why.clone());
        (*revision, Survey { closed, opens: opens.clone(), ..Survey::default() })
    });
    let unopened: Surveys = unopened.collect();
    for (revision, survey) in surveys.iter().chain(&unopened) {
        let all = All::new(sessions.iter().filter(|session| session.revision == *revision));
        for (index, check) in checks.iter().enumerate() {
            let Kind::Scan(judge) = check.kind else { continue };
            if !settings.wants(check) || !check.revisions.contains(*revision) {
                continue;
            }
            if survey.closed.is_some() && !check.before {
                continue;
            }
            let base = 0;
            let cx = Cx { revision: *revision, base, survey, fixture: settings.fixture };
            let verdict = judge(&cx, &all);
            // Where the server does not open, a rule that was not broken was not kept either.
            if survey.closed.is_some() && !verdict.failed() {
                continue;
            }
            let exchange = match &verdict {
                Verdict::Fail { shown, .. } => {
                    shown.iter().map(|line| format!("< {line}")).collect()
                }
                _ => Vec::new(),
            };
            let took = Duration::ZERO;
            let outcome = Outcome { check: index, verdict, exchange, again: false, took };
            outcomes.push((*revision, outcome));
        }
    }
}

/// Turns failures that another failure explains into `Blocked`, each with its reason. Of failures that explain each other the
/// first one stays, and advice explains nothing, so that something always fails where something is wrong.
pub(crate) fn explain(checks: &[Check], rows: &mut [Row]) {
    let mut shown: HashMap<Revision, HashSet<String>> = HashMap::new();
    for row in rows.iter().filter(|row| row.breaks() && row.id != "schema-valid") {
        if let Verdict::Fail { shown: lines, .. } = &row.verdict {
            shown.entry(row.revision).or_default().extend(lines.iter().map(|line| nameless(line)));
        }
    }
    let failed: HashSet<(Revision, &'static str)> =
        rows.iter().filter(|row| row.breaks()).map(|row| (row.revision, row.id)).collect();
    let mut causes: Causes = HashMap::new();
    for row in rows.iter().filter(|row| row.verdict.failed()) {
        let has_failed = |id: &'static str| failed.contains(&(row.revision, id));
        let cause = cause(checks, row, has_failed);
        causes.extend(cause.map(|cause| ((row.revision, row.id), cause)));
    }
    let place = |id: &str| checks.iter().position(|check| check.id == id);
    for row in rows.iter_mut().filter(|row| row.verdict.failed()) {
        let circle = circle(&causes, row.revision, row.id);
        let stays = circle.iter().min_by_key(|id| place(id)) == Some(&row.id);
        if let Some(cause) = causes.get(&(row.revision, row.id)).filter(|_| !stays) {
            row.verdict = Verdict::Blocked(format!("{cause}{EXPLAINS}"));
            continue;
        }
        let Verdict::Fail { shown: own, .. } = &row.verdict else { continue };
        let lines = shown.get(&row.revision);
        let told = |line: &String| lines.is_some_and(|lines| lines.contains(&nameless(line)));
        if row.id == "schema-valid" && !own.is_empty() && own.iter().all(told) {
            let why = "other checks name what is wrong with these messages".to_owned();
            row.verdict = Verdict::Blocked(why);
        }
    }
}

/// Which failure explains which.
type Causes = HashMap<(Revision, &'static str), &'static str>;

/// The failure that explains this one.
fn cause(
    checks: &[Check],
    row: &Row,
    has_failed: impl Fn(&'static str) -> bool,
) -> Option<&'static str> {
    let words = row.verdict.words();
    let idless = words.ends_with(IDLESS) && row.id != ERROR_ID;
    let lost = words.contains("was not answered") || words.ends_with(SILENT);
    let lost = lost && !TOGETHER.contains(&row.id);
    let after = checks.iter().find(|check| check.id == row.id).map_or(&[] as &[_], |c| c.after);
    let likely = [(ERROR_ID, idless), (TOGETHER[0], lost), (LINES, lost)];
    let likely = likely.into_iter().filter(|(_, fits)| *fits).map(|(id, _)| id);
    after.iter().copied().chain(likely).find(|id| has_failed(id))
}

/// The failures that explain each other, and this one among them; none if its causes end somewhere else.
fn circle(causes: &Causes, revision: Revision, id: &'static str) -> Vec<&'static str> {
    let mut chain = vec![id];
    while let Some(next) = chain.last().and_then(|last| causes.get(&(revision, *last))) {
        if *next == id {
            return chain;
        }
        if chain.contains(next) {
            break;
        }
        chain.push(*next);
    }
    Vec::new()
}

/// A message without its id: the same answer to another request is the same fault.
fn nameless(line: &str) -> String {
    let Ok(mut message) = serde_json::from_str::<serde_json::Value>(line) else {
        return line.to_owned();
    };
    if let Some(members) = message.as_object_mut() {
        members.remove("id");
    }
    message.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of these checks, all failed, and what became of them.
    fn explained(ids: &[&'static str]) -> Vec<(&'static str, bool)> {
        let checks = crate::checks();
        let row = |id: &&'static str| {
            let check = checks.iter().find(|check| check.id == *id).unwrap();
            let verdict = Verdict::fail("request 5 was not answered");
            Row::new(check, Revision::V2025_11_25, verdict, Vec::new())
        };
        let mut rows: Vec<Row> = ids.iter().map(row).collect();
        explain(&checks, &mut rows);
        rows.iter().map(|row| (row.id, row.verdict.failed())).collect()
    }

    #[test]
    fn a_failure_is_explained_by_another_one() {
        assert_eq!(explained(&["ping"]), [("ping", true)]);
        assert_eq!(explained(&["frame-line", "ping"]), [("frame-line", true), ("ping", false)]);
    }

    #[test]
    fn advice_explains_no_message_that_does_not_fit_its_schema() {
        let checks = crate::checks();
        let told = |other: &str| {
            let find = |id: &str| checks.iter().find(|check| check.id == id).unwrap();
            let row = |id: &str, line: &str| {
                let shown = vec![line.to_owned()];
                let verdict = Verdict::Fail { what: "odd".to_owned(), shown };
                Row::new(find(id), Revision::V2025_11_25, verdict, Vec::new())
            };
            let mut rows = [
                row(other, r#"{"id":1,"result":{}}"#),
                row("schema-valid", r#"{"id":2,"result":{}}"#),
            ];
            explain(&checks, &mut rows);
            rows[1].verdict.failed()
        };
        assert!(told("result-legacy"));
        assert!(!told("meta-keys"));
    }

    #[test]
    fn of_failures_that_explain_each_other_one_stays() {
        let all = explained(&["frame-match", "ping", "rpc-answers-on"]);
        assert_eq!(all.iter().filter(|(_, failed)| *failed).count(), 1, "{all:?}");
    }
}
