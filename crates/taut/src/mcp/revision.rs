//! The five revisions of the protocol, their order, and what each of them has.
//!
//! Knows dates and features; must not know messages. Matrix sections 1 to 5.

use std::fmt;
use std::str::FromStr;

/// One published revision of the Model Context Protocol; later ones compare greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Revision {
    /// 2024-11-05, the first.
    V2024_11_05,
    /// 2025-03-26: batches, tool annotations, audio.
    V2025_03_26,
    /// 2025-06-18: structured results, titles, resource links, elicitation.
    V2025_06_18,
    /// 2025-11-25: icons, URL elicitation, sampling with tools.
    V2025_11_25,
    /// 2026-07-28: no handshake, `_meta` on each request.
    V2026_07_28,
}

/// How a connection opens: with a handshake, or with `_meta` on each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// The four revisions that begin with `initialize`.
    Legacy,
    /// Stateless: each request names its revision.
    Modern,
}

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The newest revision a handshake can agree on, and so the counter-offer (LIF-05, LIF-06).
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;

    /// The modern revision.
    pub const MODERN: Self = Self::V2026_07_28;

    /// The date that names this revision on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision with this name, if taut speaks it.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == name)
    }

    /// Which of the two ways of opening a connection this revision uses.
    #[must_use]
    pub const fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// Whether this revision opens without a handshake.
    #[must_use]
    pub fn is_modern(self) -> bool {
        self.era() == Era::Modern
    }

    /// Whether an array of messages is a message (RPC-22, RPC-26).
    #[must_use]
    pub fn has_batches(self) -> bool {
        self == Self::V2025_03_26
    }
}

/// A method for each feature that a revision brought and later ones kept.
macro_rules! since {
    ($($(#[$doc:meta])* $name:ident: $revision:ident;)*) => {
        impl Revision {$(
            $(#[$doc])*
            #[must_use]
            pub fn $name(self) -> bool {
                self >= Self::$revision
            }
        )*}
    };
}

since! {
    /// Whether `completions` is a capability; before, the method just exists (CMP-01).
    has_completions_capability: V2025_03_26;
    /// Whether a tool result may carry `structuredContent`, and a tool its `outputSchema`.
    has_structured_content: V2025_06_18;
    /// Whether a server may ask the user a question (ELI-01).
    has_elicitation: V2025_06_18;
    /// Whether a question may send the user to a URL (ELI-05).
    has_url_elicitation: V2025_11_25;
    /// Whether sampling may offer tools and hold several blocks per message (SAM-05, SAM-07).
    has_sampling_tools: V2025_11_25;
    /// Whether an error may leave its id out; before, the schema knows no such error
    /// (RPC-12, RPC-13).
    has_errors_without_id: V2025_11_25;
    /// Whether structured content and its schema may be something else than an object
    /// (TOL-10, TOL-11, TOL-15, TOL-16).
    has_any_structured_content: V2026_07_28;
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A protocol version that taut does not speak.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownRevision {
    /// What was asked for.
    pub name: String,
}

impl fmt::Display for UnknownRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown protocol revision {:?}", self.name)
    }
}

impl std::error::Error for UnknownRevision {}

impl FromStr for Revision {
    type Err = UnknownRevision;

    fn from_str(name: &str) -> Result<Self, UnknownRevision> {
        Self::parse(name).ok_or_else(|| UnknownRevision { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_revision_is_read_back_from_its_own_name() {
        for revision in Revision::ALL {
            assert_eq!(revision.to_string().parse(), Ok(revision));
        }
    }

    #[test]
    fn an_unknown_revision_says_what_was_asked_for() {
        let error = "2025-06-19".parse::<Revision>().unwrap_err();
        assert_eq!(error.to_string(), "unknown protocol revision \"2025-06-19\"");
        assert_eq!(Revision::parse("2025-06-18 "), None);
    }

    #[test]
    fn order_follows_the_dates_and_only_the_last_is_modern() {
        assert!(Revision::ALL.is_sorted());
        let modern: Vec<_> = Revision::ALL.into_iter().filter(|r| r.is_modern()).collect();
        assert_eq!(modern, [Revision::MODERN]);
        let newest_legacy = Revision::ALL.into_iter().filter(|r| r.era() == Era::Legacy).max();
        assert_eq!(newest_legacy, Some(Revision::LATEST_LEGACY));
    }

    #[test]
    fn features_appear_where_the_matrix_says() {
        let first = |has: fn(Revision) -> bool| Revision::ALL.into_iter().find(|r| has(*r));
        assert_eq!(first(Revision::has_completions_capability), Some(Revision::V2025_03_26));
        assert_eq!(first(Revision::has_structured_content), Some(Revision::V2025_06_18));
        assert_eq!(first(Revision::has_sampling_tools), Some(Revision::V2025_11_25));
        assert_eq!(first(Revision::has_any_structured_content), Some(Revision::V2026_07_28));
        let batches: Vec<_> = Revision::ALL.into_iter().filter(|r| r.has_batches()).collect();
        assert_eq!(batches, [Revision::V2025_03_26]);
    }
}
