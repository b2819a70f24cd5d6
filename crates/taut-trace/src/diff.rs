//! What differs between what was said in two sessions.
//!
//! Pure. Things are matched by name (`script.rs`), so a missing one does not shift all that follow; the
//! order of those that both have is compared by itself.

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;

use crate::compare::{Difference, Ignore, differences};
use crate::format::Side;
use crate::script::{Key, Step};

/// One thing that was said.
#[derive(Clone, Debug)]
pub struct Said {
    /// Its name.
    pub key: Key,
    /// What was said, without id and progress token.
    pub value: Value,
}

impl Said {
    /// What a step says; nothing for the end of a stream.
    #[must_use]
    pub fn of(step: &Step) -> Option<Self> {
        Some(Self::new(step.key.clone()?, &step.talk.value))
    }

    /// What a message says.
    #[must_use]
    pub fn new(key: Key, value: &Value) -> Self {
        let mut value = value.clone();
        if let Some(members) = value.as_object_mut() {
            members.remove("id");
            if let Some(params) = members.get_mut("params").and_then(Value::as_object_mut) {
                params.remove("progressToken");
                // A question for an answer that nobody gives: the id of another session.
                params.remove("requestId");
                if let Some(meta) = params.get_mut("_meta").and_then(Value::as_object_mut) {
                    meta.remove("progressToken");
                }
            }
        }
        Self { key, value }
    }
}

/// One difference between two sessions.
#[derive(Clone, Debug)]
pub enum Finding {
    /// Both have it, with other content.
    Changed {
        /// What.
        key: Key,
        /// Where.
        places: Vec<Difference>,
    },
    /// It succeeded, and fails now.
    Fails {
        /// What.
        key: Key,
        /// The error.
        error: Value,
    },
    /// It is not there any more.
    Missing {
        /// What.
        key: Key,
    },
    /// It is new.
    Extra {
        /// What.
        key: Key,
        /// What is said.
        value: Value,
    },
    /// Both have it, in another order.
    Moved {
        /// What.
        key: Key,
        /// What comes right before it now.
        after: Option<Key>,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed { key, places } => {
                write!(f, "changed: {key}")?;
                places.iter().try_for_each(|place| write!(f, "\n  {place}"))
            }
            Self::Fails { key, error } => write!(f, "fails now: {key}\n  {error}"),
            Self::Missing { key } => write!(f, "missing: {key}"),
            Self::Extra { key, value } => write!(f, "new: {key}\n  {value}"),
            Self::Moved { key, after: Some(after) } => {
                write!(f, "other order: {key} comes after {after} now")
            }
            Self::Moved { key, after: None } => write!(f, "other order: {key} comes first now"),
        }
    }
}

impl Finding {
    /// A word for its kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Changed { .. } => "changed",
            Self::Fails { .. } => "fails",
            Self::Missing { .. } => "missing",
            Self::Extra { .. } => "new",
            Self::Moved { .. } => "order",
        }
    }

    /// What it is about.
    #[must_use]
    pub fn key(&self) -> &Key {
        match self {
            Self::Changed { key, .. }
            | Self::Fails { key, .. }
            | Self::Missing { key }
            | Self::Extra { key, .. }
            | Self::Moved { key, .. } => key,
        }
    }
}

/// What was said in the steps of a capture, by this side or by both.
#[must_use]
pub fn said(steps: &[Step], from: Option<Side>) -> Vec<Said> {
    let of_side = steps.iter().filter(|step| from.is_none_or(|side| side == step.from));
    of_side.filter_map(Said::of).collect()
}

/// All differences between what was recorded and what is said now.
#[must_use]
pub fn compare(recorded: &[Said], now: &[Said], ignore: &[Ignore]) -> Vec<Finding> {
    let places: HashMap<&Key, usize> =
        now.iter().enumerate().map(|(at, said)| (&said.key, at)).collect();
    let mut findings = Vec::new();
    let mut matched = Vec::new();
    for (at, said) in recorded.iter().enumerate() {
        let Some(place) = places.get(&said.key) else {
            findings.push(Finding::Missing { key: said.key.clone() });
            continue;
        };
        matched.push((*place, at));
        let actual = &now[*place].value;
        if said.value.get("error").is_none()
            && let Some(error) = actual.get("error")
        {
            findings.push(Finding::Fails { key: said.key.clone(), error: error.clone() });
            continue;
        }
        let places = differences(&said.value, actual, ignore);
        if !places.is_empty() {
            findings.push(Finding::Changed { key: said.key.clone(), places });
        }
    }
    let known: HashMap<&Key, ()> = recorded.iter().map(|said| (&said.key, ())).collect();
    for said in now.iter().filter(|said| !known.contains_key(&said.key)) {
        findings.push(Finding::Extra { key: said.key.clone(), value: said.value.clone() });
    }
    findings.extend(moved(matched, recorded));
    findings
}

/// Those that have to change their place, as few as possible, for the order to be the same.
fn moved(mut matched: Vec<(usize, usize)>, recorded: &[Said]) -> Vec<Finding> {
    matched.sort_unstable();
    let order: Vec<usize> = matched.into_iter().map(|(_, at)| at).collect();
    let kept = longest_rising(&order);
    let mut findings = Vec::new();
    for (place, at) in order.iter().enumerate() {
        if !kept.contains(&place) {
            let after = place.checked_sub(1).map(|before| recorded[order[before]].key.clone());
            findings.push(Finding::Moved { key: recorded[*at].key.clone(), after });
        }
    }
    findings
}

/// The places of a longest rising run within a sequence of different numbers.
fn longest_rising(numbers: &[usize]) -> std::collections::HashSet<usize> {
    // For each length, the place of the smallest number that ends a run of it.
    let mut ends: Vec<usize> = Vec::new();
    let mut before = vec![None; numbers.len()];
    for (place, number) in numbers.iter().enumerate() {
        let length = ends.partition_point(|end| numbers[*end] < *number);
        before[place] = length.checked_sub(1).map(|shorter| ends[shorter]);
        if length == ends.len() {
            ends.push(place);
        } else {
            ends[length] = place;
        }
    }
    let mut kept = std::collections::HashSet::new();
    let mut next = ends.last().copied();
    while let Some(place) = next {
        kept.insert(place);
        next = before[place];
    }
    kept
}
