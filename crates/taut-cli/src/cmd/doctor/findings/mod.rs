//! What is wrong with a server, whom it hurts, and what to change.
//!
//! Pure: facts go in, findings come out, the worst first: how it opens (`opening.rs`), what it does when
//! it is used (`using.rs`), its habits on the wire (`habits.rs`), how it ends (`ending.rs`). What hosts
//! do was seen with about thirty of them in November 2026.

mod ending;
mod habits;
mod opening;
mod using;

use super::facts::Facts;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// No host can use it, or hardly any.
    Broken,
    /// Some hosts cannot, or not well.
    Hurts,
    /// Nobody is hurt.
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
}

impl Finding {
    fn new(
        level: Level,
        what: impl Into<String>,
        hurts: impl Into<String>,
        change: impl Into<String>,
    ) -> Self {
        Self { level, what: what.into(), hurts: hurts.into(), change: change.into() }
    }
}

/// All that is wrong, the worst first.
pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let all = [opening::all(facts), using::all(facts), habits::all(facts), ending::all(facts)];
    let mut found: Vec<Finding> = all.into_iter().flatten().collect();
    // Last among its equals: what is slow may be the machine.
    found.extend(opening::slow(facts));
    found.sort_by_key(|finding| finding.level);
    found
}
