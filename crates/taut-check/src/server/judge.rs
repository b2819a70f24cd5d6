//! Verdicts over all sessions, and failures that another failure explains.

use std::collections::{HashMap, HashSet};

use super::carry::{Outcome, Surveys};
use super::checks::{IDLESS, SILENT};
use super::run::ServerCheck;
use crate::check::{Check, Kind, Verdict};
use crate::cx::{Cx, Survey};
use crate::ours::Revision;
use crate::report::Row;
use crate::seen::{All, Session};

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
            let outcome = Outcome { check: index, verdict, exchange, again: false };
            outcomes.push((*revision, outcome));
        }
    }
}

/// Turns failures that another failure explains into `Blocked`, each with its reason.
pub(crate) fn explain(checks: &[Check], rows: &mut [Row]) {
    let failed: Vec<(Revision, &'static str)> =
        rows.iter().filter(|row| row.verdict.failed()).map(|row| (row.revision, row.id)).collect();
    let mut shown: HashMap<Revision, HashSet<String>> = HashMap::new();
    for row in rows.iter().filter(|row| row.id != "schema-valid") {
        if let Verdict::Fail { shown: lines, .. } = &row.verdict {
            shown.entry(row.revision).or_default().extend(lines.iter().map(|line| nameless(line)));
        }
    }
    for row in rows.iter_mut().filter(|row| row.verdict.failed()) {
        let after = checks.iter().find(|check| check.id == row.id).map_or(&[] as &[_], |c| c.after);
        let has_failed = |id: &&'static str| failed.contains(&(row.revision, *id));
        let idless = row.verdict.words().ends_with(IDLESS) && row.id != ERROR_ID;
        let cause = after.iter().find(|id| has_failed(id));
        let cause = cause.or_else(|| Some(&ERROR_ID).filter(|id| idless && has_failed(id)));
        let words = row.verdict.words();
        let lost = words.contains("was not answered") || words.ends_with(SILENT);
        let lost = lost && !TOGETHER.contains(&row.id);
        let cause = cause.or_else(|| Some(&TOGETHER[0]).filter(|id| lost && has_failed(id)));
        let cause = cause.or_else(|| Some(&LINES).filter(|id| lost && has_failed(id)));
        if let Some(cause) = cause {
            row.verdict = Verdict::Blocked(format!("{cause} explains it"));
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
