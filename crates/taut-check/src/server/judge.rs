//! Verdicts over all sessions, and failures that another failure explains.

use super::carry::{Outcome, Surveys};
use super::run::ServerCheck;
use crate::check::{Check, Kind, Verdict};
use crate::cx::Cx;
use crate::ours::Revision;
use crate::report::Row;
use crate::seen::{All, Session};

/// Carries out the checks that send nothing.
pub(super) fn scans(
    checks: &[Check],
    settings: &ServerCheck,
    surveys: &Surveys,
    sessions: &[Session],
    outcomes: &mut Vec<(Revision, Outcome)>,
) {
    for (revision, survey) in surveys {
        let all = All::new(sessions.iter().filter(|session| session.revision == *revision));
        for (index, check) in checks.iter().enumerate() {
            let Kind::Scan(judge) = check.kind else { continue };
            if !settings.wants(check) || !check.revisions.contains(*revision) {
                continue;
            }
            let base = 0;
            let cx = Cx { revision: *revision, base, survey, fixture: settings.fixture };
            let verdict = judge(&cx, &all);
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
    let shown: Vec<(Revision, Vec<String>)> = rows
        .iter()
        .filter(|row| row.id != "schema-valid")
        .filter_map(|row| match &row.verdict {
            Verdict::Fail { shown, .. } => Some((row.revision, shown.clone())),
            _ => None,
        })
        .collect();
    for row in rows.iter_mut().filter(|row| row.verdict.failed()) {
        let after = checks.iter().find(|check| check.id == row.id).map_or(&[] as &[_], |c| c.after);
        let cause = after.iter().find(|id| failed.contains(&(row.revision, **id)));
        if let Some(cause) = cause {
            row.verdict = Verdict::Blocked(format!("{cause} explains it"));
            continue;
        }
        let Verdict::Fail { shown: own, .. } = &row.verdict else { continue };
        let told = |line: &String| {
            shown.iter().any(|(revision, lines)| *revision == row.revision && lines.contains(line))
        };
        if row.id == "schema-valid" && !own.is_empty() && own.iter().all(told) {
            let why = "other checks name what is wrong with these messages".to_owned();
            row.verdict = Verdict::Blocked(why);
        }
    }
}
