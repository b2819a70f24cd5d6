//! What a schema asks for, rule by rule, once it has been read.

use std::cmp::Ordering;
use std::collections::HashMap;

use regex::Regex;
use serde_json::{Number, Value};

/// A subschema's place among all.
pub(super) type NodeId = usize;

/// One subschema.
pub(super) struct Node {
    /// Where it stands, as a JSON pointer.
    pub(super) at: String,
    /// Each with its keyword.
    pub(super) rules: Vec<(String, Rule)>,
}

pub(super) enum Rule {
    /// The schema `false`.
    Never,
    /// One of these types.
    Type(Vec<JsonType>),
    /// One of these values.
    Enum(Vec<Value>),
    /// A number within this limit.
    Bound(Number, Limit),
    MultipleOf(Number),
    /// A text, a list or an object of a length within this limit.
    Size(JsonType, u64, Limit),
    Pattern(Regex),
    Unique,
    Required(Vec<String>),
    /// Where this member is, these are, too.
    Needs(String, Vec<String>),
    /// Where this member is, this applies.
    When(String, NodeId),
    Items {
        first: Vec<NodeId>,
        rest: Option<NodeId>,
    },
    Contains {
        item: NodeId,
        least: u64,
        most: u64,
    },
    Members {
        named: HashMap<String, NodeId>,
        patterns: Vec<(Regex, NodeId)>,
        rest: Option<NodeId>,
    },
    Names(NodeId),
    /// `allOf`, and `$ref` as the only one.
    All(Vec<NodeId>),
    Any(Vec<NodeId>),
    One(Vec<NodeId>),
    Not(NodeId),
    If {
        test: NodeId,
        then: Option<NodeId>,
        otherwise: Option<NodeId>,
    },
}

/// The ways in which a value may compare to a bound, and what they are called.
pub(super) type Limit = (&'static [Ordering], &'static str);

pub(super) const AT_LEAST: Limit = (&[Ordering::Equal, Ordering::Greater], "at least");
pub(super) const AT_MOST: Limit = (&[Ordering::Equal, Ordering::Less], "at most");
pub(super) const MORE_THAN: Limit = (&[Ordering::Greater], "more than");
pub(super) const LESS_THAN: Limit = (&[Ordering::Less], "less than");

/// The types of JSON; an integer is a number, too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum JsonType {
    Null,
    Boolean,
    Integer,
    Number,
    Text,
    List,
    Object,
}

impl JsonType {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "string" => Self::Text,
            "array" => Self::List,
            "object" => Self::Object,
            _ => return None,
        })
    }

    /// The narrowest kind of a value. `1.0` is an integer.
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if number.as_f64().is_some_and(|n| n.fract() == 0.0) => {
                Self::Integer
            }
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::Text,
            Value::Array(_) => Self::List,
            Value::Object(_) => Self::Object,
        }
    }

    pub(super) fn accepts(self, other: Self) -> bool {
        self == other || (self, other) == (Self::Number, Self::Integer)
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::Text => "a string",
            Self::List => "an array",
            Self::Object => "an object",
        }
    }
}
