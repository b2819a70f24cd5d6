//! Failures that are known: a run is held against them, so that only new ones fail it.

use std::collections::BTreeSet;

use super::Report;

/// Known failures, one `id@revision` a line. `#` begins a comment.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    known: BTreeSet<String>,
}

/// A run beside what was known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Failures that were not known.
    pub new: Vec<String>,
    /// Failures that were known.
    pub known: Vec<String>,
    /// Known failures that are gone: to be taken out of the file.
    pub fixed: Vec<String>,
}

impl Baseline {
    /// Reads a file of known failures.
    ///
    /// # Errors
    ///
    /// If a line is not `id@revision`: says which.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut known = BTreeSet::new();
        for (number, line) in text.lines().enumerate() {
            let entry = line.split('#').next().unwrap_or_default().trim();
            if entry.is_empty() {
                continue;
            }
            if !entry.contains('@') {
                let example = "rpc-unknown-method@2025-11-25";
                return Err(format!("line {}: {entry:?} is not like {example}", number + 1));
            }
            known.insert(entry.to_owned());
        }
        Ok(Self { known })
    }

    /// The failures of a run, in the form of the file.
    #[must_use]
    pub fn write(report: &Report) -> String {
        let mut text = String::from("# Known failures of `taut check`. A new one fails the run.\n");
        for row in report.failures() {
            text.push_str(&format!("{}  # {}\n", row.key(), row.words().replace('\n', " ")));
        }
        text
    }

    /// Holds a run against what is known.
    #[must_use]
    pub fn compare(&self, report: &Report) -> Compared {
        let failed: BTreeSet<String> = report.failures().map(super::Row::key).collect();
        let (known, new) = failed.iter().cloned().partition(|key| self.known.contains(key));
        let tried: BTreeSet<String> = report.rows.iter().map(super::Row::key).collect();
        // A warning that is known from a strict run is still there.
        let broken: BTreeSet<String> =
            report.failures().chain(report.warnings()).map(super::Row::key).collect();
        let gone = |key: &&String| tried.contains(*key) && !broken.contains(*key);
        let fixed = self.known.iter().filter(gone).cloned().collect();
        Compared { new, known, fixed }
    }
}
