//! What a check is: its rules, where it applies, what it sends and how the answer is judged.
//!
//! Plain data with two functions. Must not start or read anything: `server/run.rs` does that.

use std::fmt;

use crate::cx::Cx;
use crate::ours::Revision;
use crate::seen::{All, Seen, Step};
use crate::texts::Text;

/// Who has to keep the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The server is started and checked.
    Server,
    /// The client is started and checked.
    Client,
}

/// How strong the rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The specification says MUST, MUST NOT or REQUIRED.
    Must,
    /// The specification says SHOULD or SHOULD NOT.
    Should,
    /// It says MAY, or says nothing and hosts still depend on it. Never fails.
    Advice,
}

impl Level {
    /// The word that reports use.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
            Self::Advice => "advice",
        }
    }
}

/// What came of a check in one revision.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The rule was kept.
    Pass,
    /// The rule was broken: what was wrong, and the messages that show it.
    Fail {
        /// What was wrong, in words.
        what: String,
        /// The lines that show it, as they were received.
        shown: Vec<String>,
    },
    /// It could not be tried: what is missing, such as a tool to call.
    Skip(String),
    /// It could not be judged, because something else is broken. Says what.
    Blocked(String),
}

impl Verdict {
    pub(crate) fn fail(what: impl Into<String>) -> Self {
        Self::Fail { what: what.into(), shown: Vec::new() }
    }

    pub(crate) fn skip(what: impl Into<String>) -> Self {
        Self::Skip(what.into())
    }

    /// Passes if there is no fault; else fails with the first, and shows all.
    pub(crate) fn from_faults(faults: Vec<(String, String)>) -> Self {
        let Some((first, _)) = faults.first() else { return Self::Pass };
        let more = match faults.len() {
            1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        let what = format!("{first}{more}");
        Self::Fail { what, shown: faults.into_iter().map(|(_, line)| line).collect() }
    }

    /// Whether the rule was broken.
    #[must_use]
    pub fn failed(&self) -> bool {
        matches!(self, Self::Fail { .. })
    }

    /// What was wrong, or why it was not tried.
    #[must_use]
    pub fn words(&self) -> &str {
        match self {
            Self::Pass => "",
            Self::Fail { what, .. } => what,
            Self::Skip(why) | Self::Blocked(why) => why,
        }
    }

    /// The word that reports use.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail { .. } => "fail",
            Self::Skip(_) => "skip",
            Self::Blocked(_) => "blocked",
        }
    }
}

/// The revisions that a check applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revisions(u8);

impl Revisions {
    /// All five.
    pub const ALL: Self = Self(0b11111);
    /// The four that begin with a handshake.
    pub const LEGACY: Self = Self(0b01111);
    /// 2026-07-28.
    pub const MODERN: Self = Self(0b10000);
    /// From 2025-03-26 on.
    pub const SINCE_0326: Self = Self(0b11110);
    /// From 2025-06-18 on.
    pub const SINCE_0618: Self = Self(0b11100);
    /// From 2025-11-25 on.
    pub const SINCE_1125: Self = Self(0b11000);
    /// 2025-03-26 only.
    pub const ONLY_0326: Self = Self(0b00010);
    /// All but 2025-03-26.
    pub const NOT_0326: Self = Self(0b11101);
    /// 2024-11-05 and 2025-03-26.
    pub const BEFORE_0618: Self = Self(0b00011);
    /// From 2025-03-26 to 2025-11-25.
    pub const LEGACY_SINCE_0326: Self = Self(0b01110);
    /// 2025-11-25 only.
    pub const ONLY_1125: Self = Self(0b01000);
    /// All but 2025-11-25.
    pub const NOT_1125: Self = Self(0b10111);
    /// 2025-06-18 and 2025-11-25.
    pub const STRUCTURED_LEGACY: Self = Self(0b01100);

    /// Whether it is one of them.
    #[must_use]
    pub fn contains(self, revision: Revision) -> bool {
        let index = Revision::ALL.iter().position(|known| *known == revision);
        index.is_some_and(|index| self.0 & (1 << index) != 0)
    }

    /// Their names, oldest first.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        let all = Revision::ALL.iter().filter(|revision| self.contains(**revision));
        all.map(|revision| revision.as_str()).collect()
    }
}

impl fmt::Display for Revisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ALL => f.write_str("all"),
            _ => f.write_str(&self.names().join(", ")),
        }
    }
}

/// What a probe sends, or why it cannot.
pub(crate) type Sends = Result<Vec<Step>, String>;

/// How a check is carried out.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// In an open session, together with others. A harmless request follows it.
    Probe(fn(&Cx<'_>) -> Sends, fn(&Cx<'_>, &Seen<'_>) -> Verdict),
    /// In a process of its own, from its first byte on.
    Fresh(fn(&Cx<'_>) -> Sends, fn(&Cx<'_>, &Seen<'_>) -> Verdict),
    /// Sends nothing: looks at all that was said in one revision.
    Scan(fn(&Cx<'_>, &All<'_>) -> Verdict),
    /// A client with a played server; `client/` has the scenarios.
    Played(&'static [&'static str], fn(&crate::client::Played<'_>) -> Verdict),
}

/// One check.
pub struct Check {
    /// Its name, such as `rpc-unknown-method`.
    pub id: &'static str,
    /// Whom it is for.
    pub side: Side,
    /// How strong its rule is.
    pub level: Level,
    /// The ids of its rules in docs/rules.md.
    pub rules: &'static [&'static str],
    /// Where it applies.
    pub revisions: Revisions,
    /// What has to hold, in one sentence.
    pub rule: &'static str,
    /// What is sent, in words.
    pub sent: &'static str,
    /// Who suffers otherwise.
    pub hosts: &'static str,
    pub(crate) weaker: Option<Revisions>,
    pub(crate) once: bool,
    pub(crate) silent: bool,
    pub(crate) before: bool,
    pub(crate) after: &'static [&'static str],
    pub(crate) kind: Kind,
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Check {
    fn new(
        level: Level,
        id: &'static str,
        rules: &'static [&'static str],
        revisions: Revisions,
        rule: &'static str,
    ) -> Self {
        let (sent, hosts) = ("", "");
        let kind = Kind::Scan(|_, _| Verdict::skip("nothing to do"));
        let side = Side::Server;
        let (once, silent, before, after) = (false, false, false, &[] as &[_]);
        Self {
            id,
            side,
            level,
            rules,
            revisions,
            rule,
            sent,
            hosts,
            weaker: None,
            once,
            silent,
            before,
            after,
            kind,
        }
    }

    pub(crate) fn must(
        id: &'static str,
        rules: &'static [&'static str],
        revisions: Revisions,
        rule: &'static str,
    ) -> Self {
        Self::new(Level::Must, id, rules, revisions, rule)
    }

    pub(crate) fn should(
        id: &'static str,
        rules: &'static [&'static str],
        revisions: Revisions,
        rule: &'static str,
    ) -> Self {
        Self::new(Level::Should, id, rules, revisions, rule)
    }

    pub(crate) fn advice(
        id: &'static str,
        rules: &'static [&'static str],
        revisions: Revisions,
        rule: &'static str,
    ) -> Self {
        Self::new(Level::Advice, id, rules, revisions, rule)
    }

    pub(crate) fn sent(self, sent: &'static str) -> Self {
        Self { sent, ..self }
    }

    pub(crate) fn hosts(self, hosts: &'static str) -> Self {
        Self { hosts, ..self }
    }

    /// The text of these revisions has SHOULD for it.
    pub(crate) fn weaker(self, revisions: Revisions) -> Self {
        Self { weaker: Some(revisions), ..self }
    }

    /// How strong its rule is in a revision.
    #[must_use]
    pub fn level_in(&self, revision: Revision) -> Level {
        match self.weaker.is_some_and(|weaker| weaker.contains(revision)) {
            true => self.level.max(Level::Should),
            false => self.level,
        }
    }

    /// The sentence of the specification that it rests on; advice may have none.
    #[must_use]
    pub fn text(&self) -> Option<Text> {
        crate::texts::of(self.id)
    }

    /// Not judged where one of these failed, because that explains it.
    pub(crate) fn after(self, after: &'static [&'static str]) -> Self {
        Self { after, ..self }
    }

    /// Wants no answer at all: tried alone again if an answer came that belongs to nothing.
    pub(crate) fn silent(self) -> Self {
        Self { silent: true, ..self }
    }

    /// Also judged where the session did not open: what it looks at holds for any message.
    pub(crate) fn before(self) -> Self {
        Self { before: true, ..self }
    }

    /// Tried in one of its revisions only, the newest: what it does depends on none.
    pub(crate) fn once(self) -> Self {
        Self { once: true, ..self }
    }

    pub(crate) fn probe(
        self,
        sends: fn(&Cx<'_>) -> Sends,
        judge: fn(&Cx<'_>, &Seen<'_>) -> Verdict,
    ) -> Self {
        Self { kind: Kind::Probe(sends, judge), ..self }
    }

    pub(crate) fn fresh(
        self,
        sends: fn(&Cx<'_>) -> Sends,
        judge: fn(&Cx<'_>, &Seen<'_>) -> Verdict,
    ) -> Self {
        Self { kind: Kind::Fresh(sends, judge), ..self }
    }

    pub(crate) fn scan(self, judge: fn(&Cx<'_>, &All<'_>) -> Verdict) -> Self {
        Self {
            kind: Kind::Scan(judge),
            sent: "nothing of its own: it looks at all messages",
            ..self
        }
    }

    pub(crate) fn played(
        self,
        scenarios: &'static [&'static str],
        judge: fn(&crate::client::Played<'_>) -> Verdict,
    ) -> Self {
        Self { kind: Kind::Played(scenarios, judge), side: Side::Client, ..self }
    }

    /// The part of the protocol that it belongs to: the first word of its name.
    #[must_use]
    pub fn area(&self) -> &'static str {
        self.id.split('-').next().unwrap_or(self.id)
    }

    /// The page of the specification that has the rule, for a revision.
    #[must_use]
    pub fn page(&self, revision: Revision) -> String {
        let old = revision < Revision::V2025_03_26;
        let modern = revision.is_modern();
        let page = match self.area() {
            "frame" if modern => "basic/transports/stdio",
            "cancel" if modern => "basic/patterns/cancellation",
            "progress" if modern => "basic/patterns/progress",
            "listen" => "basic/patterns/subscriptions",
            "input" if modern => "basic/patterns/mrtr",
            "init" | "version" if modern => "basic/versioning",
            "discover" => "server/discover",
            "cache" => "server/utilities/caching",
            "frame" => "basic/transports",
            "init" | "opens" => "basic/lifecycle",
            "ping" if !modern => "basic/utilities/ping",
            "cancel" => "basic/utilities/cancellation",
            "progress" => "basic/utilities/progress",
            "log" => "server/utilities/logging",
            "page" => "server/utilities/pagination",
            "tools" => "server/tools",
            "resources" => "server/resources",
            "prompts" => "server/prompts",
            "complete" => "server/utilities/completion",
            "tasks" if revision == Revision::V2025_11_25 => "basic/utilities/tasks",
            "schema" => "schema",
            _ if old => "basic/messages",
            _ => "basic",
        };
        format!("https://modelcontextprotocol.io/specification/{}/{page}", revision.as_str())
    }
}
