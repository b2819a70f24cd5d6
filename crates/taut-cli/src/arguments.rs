//! `key=value`, typed by a tool's own schema.
//!
//! Pure: text and a schema go in, arguments or mistakes come out. Must not know the command line, nor
//! ask a server, nor how a schema is written (`schema/`). What cannot be judged is left to the server.

use std::collections::HashSet;
use std::fmt;

use serde_json::{Map, Value};

use crate::schema::{Fault, Schema};

/// What is wrong with one argument.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// It is no `key=value`.
    NoPair(String),
    /// It takes one value and was given several.
    Repeated(String),
    /// It looks like JSON and is none.
    NoJson { key: String, why: String },
    /// The value, or something inside it, does not fit.
    Unfit { at: String, fault: Fault },
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPair(text) => write!(f, "{text:?} is no key=value"),
            Self::Repeated(key) => write!(f, "{key} takes one value"),
            Self::NoJson { key, why } => write!(
                f,
                "{key} is no JSON: {why}; a shell removes quotes that are not quoted: {key}='{{\"a\": 1}}'"
            ),
            Self::Unfit { at, fault: Fault::Unknown { meant } } => {
                write!(f, "there is no argument {at}")?;
                meant.iter().try_for_each(|meant| write!(f, "; did you mean {meant}?"))
            }
            Self::Unfit { at, fault: Fault::Missing { wanted } } => {
                write!(f, "{at} is missing: {wanted}")
            }
            Self::Unfit { at, fault } => write!(f, "{at} must {fault}"),
        }
    }
}

/// Reads pairs as the schema wants them, and checks them with all that is inside.
pub(crate) fn read(pairs: &[String], schema: &Value) -> Result<Map<String, Value>, Vec<Mistake>> {
    let schema = Schema::of(schema);
    let mut arguments: Map<String, Value> = Map::new();
    let mut mistakes = Vec::new();
    for pair in pairs {
        match pair.split_once('=').filter(|(key, _)| !key.is_empty()) {
            Some((key, text)) => {
                if let Err(mistake) = take(&mut arguments, schema, key, text) {
                    mistakes.push(mistake);
                }
            }
            None => mistakes.push(Mistake::NoPair(pair.clone())),
        }
    }
    for (key, value) in &arguments {
        let faults = schema.field(key).map(|field| field.check(value)).unwrap_or_default();
        let faults = faults.into_iter();
        mistakes.extend(
            faults.map(|(place, fault)| Mistake::Unfit { at: format!("{key}{place}"), fault }),
        );
    }
    let tried: HashSet<&str> = pairs.iter().filter_map(|pair| pair.split('=').next()).collect();
    for key in schema.required().into_iter().filter(|key| !tried.contains(key)) {
        let wanted = schema.field(key).map_or_else(|| "any value".to_owned(), Schema::wanted);
        mistakes.push(Mistake::Unfit { at: key.to_owned(), fault: Fault::Missing { wanted } });
    }
    if mistakes.is_empty() { Ok(arguments) } else { Err(mistakes) }
}

fn take(
    into: &mut Map<String, Value>,
    schema: Schema<'_>,
    key: &str,
    text: &str,
) -> Result<(), Mistake> {
    let unfit = |fault| Mistake::Unfit { at: key.to_owned(), fault };
    let field = schema.field(key).ok_or_else(|| unfit(schema.unknown(key)))?;
    let value = field.fit(text).ok_or_else(|| match broken_json(text) {
        Some(why) => Mistake::NoJson { key: key.to_owned(), why },
        None => unfit(field.other(&text.into())),
    })?;
    match into.get_mut(key) {
        None => drop(into.insert(key.to_owned(), value)),
        Some(Value::Array(all)) => match value {
            Value::Array(more) => all.extend(more),
            one => all.push(one),
        },
        Some(_) => return Err(Mistake::Repeated(key.to_owned())),
    }
    Ok(())
}

/// What is wrong with a text that begins as JSON does.
fn broken_json(text: &str) -> Option<String> {
    let begins = text.trim_start().starts_with(['{', '[']);
    serde_json::from_str::<Value>(text).err().filter(|_| begins).map(|error| error.to_string())
}

/// Longer words are no slips: the time to compare two grows with the product of their lengths, and both may come
/// from a server.
const LONGEST_SLIP: usize = 100;

/// The name that a slip of a few letters would make of `typed`.
pub(crate) fn closest<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = |word: &str| word.chars().take(LONGEST_SLIP + 1).count();
    let typed_length = length(typed);
    if typed_length > LONGEST_SLIP {
        return None;
    }
    let most = (typed_length / 2).min(3);
    let typed = typed.to_lowercase();
    let near = names.filter(|name| length(name).abs_diff(typed_length) <= most);
    let rated = near.map(|name| (distance(&typed, &name.to_lowercase()), name));
    rated.filter(|(far, _)| *far <= most).min().map(|(_, name)| name)
}

/// How many letters have to be put in, left out or changed, or swapped with the next.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: [Vec<usize>; 3] = [Vec::new(), Vec::new(), (0..=b.len()).collect()];
    for (i, x) in a.iter().enumerate() {
        rows.rotate_left(1);
        let [before, above, row] = &mut rows;
        row.clear();
        row.push(i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = above[j] + usize::from(x != y);
            let mut least = changed.min(row[j] + 1).min(above[j + 1] + 1);
            if i > 0 && j > 0 && a[i - 1] == *y && b[j - 1] == *x {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
    }
    rows[2][b.len()]
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
