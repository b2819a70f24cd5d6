//! What came of a run: rows, counts, and the forms in which they are told.

mod baseline;
mod json;
mod junit;
mod sarif;
pub(crate) mod sdk;
mod table;

pub use baseline::{Baseline, Compared};
pub use sdk::Sdk;
pub use table::{Tone, plain, table};

use std::ffi::OsString;
use std::time::Duration;

use crate::check::{Check, Level, Side, Verdict};
use crate::ours::Revision;

/// How many lines of an exchange a report has at most.
const MAX_SHOWN: usize = 400;

/// One check in one revision.
#[derive(Clone, Debug)]
pub struct Row {
    /// The check.
    pub id: &'static str,
    /// Whom it is for.
    pub side: Side,
    /// How strong its rule is.
    pub level: Level,
    /// The rules that it proves.
    pub rules: &'static [&'static str],
    /// What has to hold.
    pub rule: &'static str,
    /// Who suffers otherwise.
    pub hosts: &'static str,
    /// The part of the protocol.
    pub area: &'static str,
    /// The page of the specification.
    pub page: String,
    /// In which revision.
    pub revision: Revision,
    /// What came of it.
    pub verdict: Verdict,
    /// What was sent (`>`) and received (`<`), if it failed.
    pub exchange: Vec<String>,
    /// How long it took; nothing for what only looks at messages.
    pub took: Duration,
    /// The package of the SDK whose own example fails in the same way, with its version.
    pub sdk: Option<&'static str>,
    /// Whether a broken SHOULD fails the run, and what the SDK breaks.
    pub strict: bool,
}

impl Row {
    pub(crate) fn new(
        check: &Check,
        revision: Revision,
        verdict: Verdict,
        mut exchange: Vec<String>,
    ) -> Self {
        exchange.truncate(MAX_SHOWN);
        Self {
            id: check.id,
            side: check.side,
            level: check.level_in(revision),
            rules: check.rules,
            rule: check.rule,
            hosts: check.hosts,
            area: check.area(),
            page: check.page(revision),
            revision,
            verdict,
            exchange,
            took: Duration::ZERO,
            sdk: None,
            strict: false,
        }
    }

    /// Whether it makes the run fail: a broken MUST that is not the SDK's does. Where the run is strict, so does every broken
    /// MUST and SHOULD. Advice never does.
    #[must_use]
    pub fn fails(&self) -> bool {
        self.breaks() && (self.strict || (self.level == Level::Must && self.sdk.is_none()))
    }

    /// Whether it is a warning: a broken SHOULD, or a MUST that the SDK breaks, which does not make the run fail.
    #[must_use]
    pub fn warns(&self) -> bool {
        self.breaks() && !self.fails()
    }

    /// Whether a MUST or a SHOULD was broken.
    pub(crate) fn breaks(&self) -> bool {
        self.verdict.failed() && self.level != Level::Advice
    }

    /// What was wrong, or why it was not tried.
    #[must_use]
    pub fn words(&self) -> &str {
        self.verdict.words()
    }

    /// Its name in a baseline and in reports of machines: `id@revision`.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}@{}", self.id, self.revision.as_str())
    }
}

/// A call that was allowed and did not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleCall {
    /// The tool.
    pub tool: String,
    /// What came; nothing if no revision lists such a tool, which is a slip of who allowed it.
    pub came: Option<String>,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The program that was checked, with its arguments.
    pub program: Vec<OsString>,
    /// Every check in every revision that was opened.
    pub rows: Vec<Row>,
    /// The revisions that did not open, and why.
    pub closed: Vec<(Revision, String)>,
    /// Calls that were allowed and worked in no revision, so that what needs them was not checked.
    pub idle: Vec<IdleCall>,
    /// The SDK that the server stands on, if its errors give it away.
    pub sdk: Option<Sdk>,
    /// How many processes were started.
    pub starts: usize,
    /// How long it took.
    pub took: Duration,
}

impl Report {
    pub(crate) fn new(
        program: Vec<OsString>,
        rows: Vec<Row>,
        closed: Vec<(Revision, String)>,
        starts: usize,
        took: Duration,
    ) -> Self {
        Self { program, rows, closed, idle: Vec::new(), sdk: None, starts, took }
    }

    /// The revisions that were checked.
    #[must_use]
    pub fn revisions(&self) -> Vec<Revision> {
        let mut all = self.told();
        all.retain(|revision| !self.closed.iter().any(|(closed, _)| closed == revision));
        all
    }

    /// The revisions that have rows: those that were checked, and those that did not open and broke a rule.
    pub(crate) fn told(&self) -> Vec<Revision> {
        let mut all: Vec<Revision> = self.rows.iter().map(|row| row.revision).collect();
        all.sort();
        all.dedup();
        all
    }

    /// The rows that make the run fail.
    pub fn failures(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.fails())
    }

    /// The rows of a broken SHOULD, or of a MUST that the SDK breaks, that do not make the run fail.
    pub fn warnings(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.warns())
    }

    /// A broken SHOULD makes the run fail as well, and what the SDK breaks.
    pub(crate) fn strict(mut self, strict: bool) -> Self {
        self.rows.iter_mut().for_each(|row| row.strict = strict);
        self
    }

    /// Names the SDK, and the failures that its own example has too.
    pub(crate) fn blamed(mut self, sdk: Option<Sdk>) -> Self {
        for row in self.rows.iter_mut().filter(|row| row.verdict.failed()) {
            let its = sdk.as_ref().filter(|sdk| sdk.fails(row.id, row.verdict.words()));
            row.sdk = its.map(|sdk| sdk.package);
        }
        self.sdk = sdk;
        self
    }

    /// What failed, each with its rows: the same finding in several revisions is one.
    pub(crate) fn findings(&self) -> Vec<Vec<&Row>> {
        let mut all: Vec<Vec<&Row>> = Vec::new();
        for row in self.rows.iter().filter(|row| row.verdict.failed()) {
            let same = |other: &Row| {
                other.id == row.id
                    && other.level == row.level
                    && sdk::alike(other.words()) == sdk::alike(row.words())
            };
            match all.iter_mut().find(|found| same(found[0])) {
                Some(found) => found.push(row),
                None => all.push(vec![row]),
            }
        }
        all
    }

    /// Whether nothing at all was found, not even something to advise.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.passed() && !self.rows.iter().any(|row| row.verdict.failed())
    }

    /// Advice that was not followed.
    pub fn advice(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.level == Level::Advice && row.verdict.failed())
    }

    /// Whether something was checked, every tool that may be called is there, and nothing failed.
    #[must_use]
    pub fn passed(&self) -> bool {
        !self.rows.is_empty()
            && self.unlisted().next().is_none()
            && self.failures().next().is_none()
    }

    /// Tools that were allowed to be called, and that the server does not have.
    pub fn unlisted(&self) -> impl Iterator<Item = &str> {
        self.idle.iter().filter(|call| call.came.is_none()).map(|call| call.tool.as_str())
    }

    /// How many rows have this verdict.
    #[must_use]
    pub fn count(&self, word: &str) -> usize {
        self.rows
            .iter()
            .filter(|row| row.verdict.word() == word && row.level != Level::Advice)
            .count()
    }

    /// The program as one line.
    #[must_use]
    pub fn command(&self) -> String {
        let words: Vec<_> = self.program.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    /// Panics with the failures if there are any: for tests.
    ///
    /// # Panics
    ///
    /// If a check failed, or nothing could be checked.
    #[allow(clippy::panic, reason = "it is for tests, and says so")]
    pub fn assert_passed(&self) {
        if !self.passed() {
            panic!("{}", table(self, None, &plain));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Revisions;

    /// A server on the TypeScript SDK 1.x that breaks these rules, each with a MUST.
    fn broken(rules: [(&'static str, &str); 2]) -> Report {
        let rows = rules.map(|(id, what)| {
            let check = Check::must(id, &["RPC-22"], Revisions::ALL, "It holds.").hosts("All.");
            Row::new(&check, Revision::V2025_03_26, Verdict::fail(what), Vec::new())
        });
        let sdk = sdk::all().into_iter().find(|sdk| sdk.name == "TypeScript SDK 1.x");
        Report::new(Vec::new(), rows.into(), Vec::new(), 1, Duration::ZERO).blamed(sdk)
    }

    #[test]
    fn what_the_sdk_breaks_is_a_warning_and_fails_a_strict_run() {
        let its = [("rpc-batch", "no array came back"), ("rpc-batch", "no array came back")];
        let report = broken(its);
        assert!(report.passed());
        assert_eq!((report.failures().count(), report.warnings().count()), (0, 2));
        let text = table(&report, Some("taut"), &plain);
        assert!(text.contains("! MUST rpc-batch"), "{text}");
        assert!(text.contains("whose fault: the SDK's"), "{text}");
        assert!(text.contains("they do not fail the run"), "{text}");
        assert!(text.contains("--strict makes a failure of each warning"), "{text}");
        assert!(report.junit().contains(" failures=\"0\""), "{}", report.junit());
        assert!(report.junit().contains("warning: no array came back (the SDK's: "));
        assert_eq!(report.sarif("README.md")["runs"][0]["results"][0]["level"], "warning");
        assert_eq!(report.json()["checks"][0]["fails"], false);

        let strict = broken(its).strict(true);
        assert!(!strict.passed());
        let text = table(&strict, Some("taut"), &plain);
        assert!(text.contains("✗ MUST rpc-batch"), "{text}");
        assert!(!text.contains("they do not fail the run"), "{text}");
    }

    #[test]
    fn what_the_server_breaks_by_itself_fails_the_run_and_comes_first() {
        let report = broken([("rpc-batch", "no array came back"), ("ping", "it was refused")]);
        assert!(!report.passed());
        assert_eq!((report.failures().count(), report.warnings().count()), (1, 1));
        let text = table(&report, Some("taut"), &plain);
        assert!(text.starts_with("✗ MUST ping"), "{text}");
        assert!(text.contains("next: taut check --explain ping"), "{text}");
        assert_eq!(report.sarif("README.md")["runs"][0]["results"][1]["level"], "error");
    }
}
