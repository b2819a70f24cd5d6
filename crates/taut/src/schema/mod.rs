//! JSON Schema, as far as results are checked against it: a value in, a verdict out, within bounds.
//!
//! Knows the schema language; must not know tools or results, and fetches nothing: a reference leads
//! to a place in the same schema, or the schema is not used (TOL-29). A schema is somebody else's
//! text, so whatever it says costs a bounded number of steps, of nested calls and of bytes (TOL-30).
//! Why not a crate: docs/decisions/0008-checking-results.md.
//!
//! 2020-12, 2019-09, draft-07 and draft-06. `format` and the `content…` keywords are notes, as the
//! newer dialects have it. What cannot be checked is said, never passed over: dynamic references,
//! `unevaluated…`, an `$id` inside.

mod compare;
mod pattern;
mod read;
mod rule;
mod run;

use std::fmt;

use serde_json::Value;

use rule::Node;
use run::CheckRun;

/// The longest schema that is used, in bytes. Generated ones have a few KiB, the largest known some
/// tens.
const MAX_SCHEMA: usize = 256 << 10;

/// Subschemas in one schema at most: as many as fit into the longest schema if each has a name.
const MAX_SUBSCHEMAS: usize = 10_000;

/// Patterns in one schema at most. Each is compiled, and holds memory for as long as the schema.
const MAX_PATTERNS: usize = 64;

/// The longest value that is checked, in bytes. Its tree takes some ten times as much.
const MAX_VALUE: usize = 16 << 20;

/// Steps that one check may take: five times what the longest value needs with a plain schema, and
/// less than a second. Two lines of `allOf` that refer to each other's neighbours can ask for more
/// steps than there are atoms.
const MAX_STEPS: u64 = 50_000_000;

/// How deep subschemas may apply within each other, levels of the value and references together. A
/// value has 128 levels at most; this many calls fit into any thread's stack.
const MAX_NESTING: usize = 384;

/// A JSON Schema that was read once and can be used many times.
///
/// Reads 2020-12, 2019-09, draft-07 and draft-06. It never fetches anything, and each use costs a
/// bounded number of steps, so a schema may come from somebody else.
pub struct Validator {
    nodes: Vec<Node>,
}

impl Validator {
    /// Reads a schema.
    ///
    /// # Errors
    ///
    /// If the text is no schema, is too long, or uses what cannot be validated here.
    pub fn new(text: &str) -> Result<Self, SchemaFault> {
        if text.len() > MAX_SCHEMA {
            return Err(SchemaFault::TooLong { bytes: text.len(), limit: MAX_SCHEMA });
        }
        let invalid = |error: serde_json::Error| {
            let (at, what) = (String::new(), error.to_string());
            SchemaFault::Invalid { at, what }
        };
        let root: Value = serde_json::from_str(text).map_err(invalid)?;
        Self::part(&root, "")
    }

    /// Reads one part of a schema, for a document that defines many types: `pointer` is a JSON
    /// pointer to it, such as `/$defs/Tool`. References in it still lead anywhere in the schema.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and if there is no such part.
    pub fn part(schema: &Value, pointer: &str) -> Result<Self, SchemaFault> {
        read::nodes(schema, pointer).map(|nodes| Self { nodes })
    }

    /// Validates a value, given as JSON text.
    ///
    /// # Errors
    ///
    /// If it does not fit the schema, is no JSON, or takes too much to validate.
    pub fn validate(&self, text: &str) -> Result<(), Unfit> {
        self.check_within(text, MAX_STEPS)
    }

    fn check_within(&self, text: &str, steps: u64) -> Result<(), Unfit> {
        if text.len() > MAX_VALUE {
            return Err(Unfit::TooLong { bytes: text.len(), limit: MAX_VALUE });
        }
        let unread = |error: serde_json::Error| {
            let wanted = format!("cannot be read: {error}");
            Unfit::Misfit(Misfit { path: String::new(), rule: String::new(), wanted })
        };
        let value: Value = serde_json::from_str(text).map_err(unread)?;
        CheckRun::new(&self.nodes, steps).check(&value).map_err(|unfit| *unfit)
    }
}

worded! {
    /// Why a value did not pass.
    #[derive(Debug, PartialEq)]
    #[non_exhaustive]
    pub enum Unfit {
        /// It is not what the schema wants.
        Misfit(misfit: Misfit) = "{misfit}",
        /// It would take more steps, or more nested ones, than a check may.
        TooMuch = "it takes too many steps to validate",
        /// It is too long.
        TooLong {
            /// How long it is.
            bytes: usize,
            /// How long it may be.
            limit: usize,
        } = "it has {bytes} bytes, {limit} are the limit",
    }
}

impl std::error::Error for Unfit {}

/// Where a value is not what its schema wants.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Misfit {
    /// Where in the value, as a JSON pointer; empty for the value itself.
    pub path: String,
    /// Where in the schema the rule stands, as a JSON pointer.
    pub rule: String,
    /// What was wanted there, in words. No value of the result is repeated in it.
    pub wanted: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "it" } else { &self.path };
        write!(f, "{path} {}", self.wanted)
    }
}

worded! {
    /// Why a schema cannot be used for checking.
    #[derive(Clone, Debug, PartialEq)]
    #[non_exhaustive]
    pub enum SchemaFault {
        /// It is too long.
        TooLong {
            /// How long it is.
            bytes: usize,
            /// How long it may be.
            limit: usize,
        } = "it has {bytes} bytes, {limit} are the limit",
        /// It has too many parts.
        TooMany {
            /// The parts of the schema that are not supported.
            what: &'static str,
            /// How many there may be.
            limit: usize,
        } = "it has more than {limit} {what}",
        /// It is written in a dialect that is not known (TOL-28).
        Dialect {
            /// What it says in `$schema`.
            uri: String,
        } = "its dialect {uri:?} is not known",
        /// It refers to something else than a path within itself. Nothing is ever fetched (TOL-29).
        Reference {
            /// What it refers to.
            uri: String,
        } = "it refers to {uri:?}: only paths within it are followed, nothing is fetched",
        /// It uses a keyword that is not checked here.
        Unsupported {
            /// The place in the schema, as a JSON pointer.
            at: String,
            /// The keyword.
            keyword: String,
        } = "it uses {keyword} at {at:?}, which cannot be checked here",
        /// It is no schema.
        Invalid {
            /// The place in the schema, as a JSON pointer.
            at: String,
            /// What is wrong there.
            what: String,
        } = "it is no schema: at {at:?} {what}",
    }
}

impl std::error::Error for SchemaFault {}

#[cfg(test)]
mod tests;
