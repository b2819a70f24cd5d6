//! Findings: what is wrong with a server, which hosts have a problem with it, and what to change.
//!
//! Pure: takes facts, returns findings, the worst first. `opening.rs` judges how a server starts,
//! `using.rs` how it answers, `habits.rs` how it writes, `ending.rs` how it ends. The statements about
//! hosts come from tests with about thirty of them in November 2026.

mod ending;
mod habits;
mod opening;
mod using;

use taut::wire::Framing;

use super::facts::Facts;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// No host can use the server, or very few.
    Broken,
    /// Some hosts cannot use it, or have problems with it.
    Hurts,
    /// No host has a problem with it.
    Note,
}

impl Level {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::Hurts => "risky",
            Self::Note => "note",
        }
    }
}

/// Something that is wrong.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) level: Level,
    pub(super) what: String,
    pub(super) hurts: String,
    pub(super) change: String,
    /// What belongs to `what` and has a line each.
    pub(super) list: Vec<String>,
    /// Whether `taut bridge` before the server keeps it from the host.
    pub(super) bridged: bool,
}

impl Finding {
    fn new(
        level: Level,
        what: impl Into<String>,
        hurts: impl Into<String>,
        change: impl Into<String>,
    ) -> Self {
        Self {
            level,
            what: what.into(),
            hurts: hurts.into(),
            change: change.into(),
            list: Vec::new(),
            bridged: false,
        }
    }

    /// The same, of something that `taut bridge` cures.
    fn bridged(self) -> Self {
        Self { bridged: true, ..self }
    }
}

/// The words of `taut bridge` that cure this server, without its command.
pub(super) fn bridge(facts: &Facts) -> Vec<String> {
    let mut words = vec!["bridge".to_owned()];
    let opened = facts.opened.as_ref().and_then(|opened| opened.as_ref().ok());
    if opened.is_some_and(|opened| opened.framing == Framing::Headers) {
        words.extend(["--framing".to_owned(), "headers".to_owned()]);
    }
    // It must not be probed.
    if facts.restarts.contains(&Framing::Lines) || facts.swallowed() || facts.probe_late().is_some()
    {
        let revision = facts.revision().map(|revision| revision.to_string());
        words.extend(revision.into_iter().flat_map(|revision| ["--revision".to_owned(), revision]));
    }
    words.push("--".to_owned());
    words
}

/// All that is wrong, the worst first.
pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let all = [opening::all(facts), using::all(facts), habits::all(facts), ending::all(facts)];
    let mut found: Vec<Finding> = all.into_iter().flatten().collect();
    // Last in its level: a slow start may be due to the machine.
    found.extend(opening::slow(facts));
    found.sort_by_key(|finding| finding.level);
    found
}
