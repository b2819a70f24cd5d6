//! `key=value`, typed by a tool's own schema.
//!
//! Pure: text and a schema go in, arguments or mistakes come out. Must not know the command line, nor
//! ask a server. Reads as much JSON Schema as arguments use: types, enums, `$ref` into the same
//! document, `anyOf` and `oneOf`, arrays by repetition. What it cannot judge it leaves to the server.
//! Takes time in proportion to the schema, and never more than [`STEPS`] for one argument.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fmt;

use serde_json::{Map, Value};

/// How deep references and alternatives are followed: enough for people, too little to go in circles.
const DEPTH: usize = 16;

/// How many parts of a schema are looked at for one argument: alternatives that refer to each other
/// would be a number with 16 digits.
const STEPS: usize = 4_096;

/// What is left to look at for one argument.
struct Budget {
    depth: usize,
    steps: Cell<usize>,
}

impl Budget {
    fn new() -> Self {
        Self { depth: DEPTH, steps: Cell::new(STEPS) }
    }
}

/// One step deeper, or nothing if that is too deep or there were too many.
#[derive(Clone, Copy)]
struct Depth<'a>(&'a Budget, usize);

impl<'a> Depth<'a> {
    fn of(budget: &'a Budget) -> Self {
        Self(budget, budget.depth)
    }

    fn deeper(self) -> Option<Self> {
        let steps = self.0.steps.get().checked_sub(1)?;
        self.0.steps.set(steps);
        Some(Self(self.0, self.1.checked_sub(1)?))
    }
}

/// What is wrong with one argument.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// It is no `key=value`.
    NoPair(String),
    /// The tool knows no such argument; perhaps this one was meant.
    Unknown { key: String, meant: Option<String> },
    /// The value is not what the schema wants.
    Unfit { key: String, value: String, wanted: String, meant: Option<String> },
    /// It takes one value and was given several.
    Repeated(String),
    /// It has to be given.
    Missing { key: String, wanted: String },
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPair(text) => write!(f, "{text:?} is no key=value"),
            Self::Unknown { key, meant: Some(meant) } => {
                write!(f, "there is no argument {key}; did you mean {meant}?")
            }
            Self::Unknown { key, meant: None } => write!(f, "there is no argument {key}"),
            Self::Unfit { key, value, wanted, meant } => {
                write!(f, "{key} must be {wanted}, not {value:?}")?;
                meant.iter().try_for_each(|meant| write!(f, "; did you mean {meant}?"))
            }
            Self::Repeated(key) => write!(f, "{key} takes one value"),
            Self::Missing { key, wanted } => write!(f, "{key} is missing: {wanted}"),
        }
    }
}

/// One argument of a tool, for people.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) required: bool,
    pub(crate) description: String,
}

/// The arguments that a tool takes, those that it needs first.
pub(crate) fn parameters(schema: &Value) -> Vec<Parameter> {
    let needed: HashMap<&str, usize> =
        required(schema).into_iter().enumerate().map(|(at, name)| (name, at)).rev().collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut all: Vec<Parameter> = properties
        .into_iter()
        .flatten()
        .map(|(name, property)| Parameter {
            name: name.clone(),
            kind: kind(schema, property, Depth::of(&Budget::new())),
            required: needed.contains_key(name.as_str()),
            description: property["description"].as_str().unwrap_or_default().to_owned(),
        })
        .collect();
    // In the order of `required`, which is the author's; members of an object have none.
    all.sort_by_key(|p| needed.get(p.name.as_str()).copied().unwrap_or(usize::MAX));
    all
}

/// Reads pairs as the schema wants them.
pub(crate) fn read(pairs: &[String], schema: &Value) -> Result<Map<String, Value>, Vec<Mistake>> {
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
    let tried: HashSet<&str> = pairs.iter().filter_map(|pair| pair.split('=').next()).collect();
    for key in required(schema).into_iter().filter(|key| !tried.contains(key)) {
        let wanted = kind(schema, &schema["properties"][key], Depth::of(&Budget::new()));
        mistakes.push(Mistake::Missing { key: key.to_owned(), wanted });
    }
    if mistakes.is_empty() { Ok(arguments) } else { Err(mistakes) }
}

fn take(
    into: &mut Map<String, Value>,
    schema: &Value,
    key: &str,
    text: &str,
) -> Result<(), Mistake> {
    let property = match schema.get("properties").and_then(|all| all.get(key)) {
        Some(property) => property,
        None if takes_any(schema) => schema.get("additionalProperties").unwrap_or(&Value::Null),
        None => {
            let key = key.to_owned();
            return Err(Mistake::Unknown { meant: nearest(schema, &key), key });
        }
    };
    let budget = Budget::new();
    let depth = Depth::of(&budget);
    let value = fit(schema, property, text, depth).ok_or_else(|| {
        let choices = values(schema, property, Depth::of(&Budget::new()));
        Mistake::Unfit {
            key: key.to_owned(),
            value: text.to_owned(),
            wanted: kind(schema, property, Depth::of(&Budget::new())),
            meant: closest(text, choices.iter().map(String::as_str)).map(str::to_owned),
        }
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

fn required(schema: &Value) -> Vec<&str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether arguments that the schema does not name are welcome. By the letter they are unless it says
/// no; a name that is not in a list is a slip, though, and seldom meant.
fn takes_any(schema: &Value) -> bool {
    let named = schema.get("properties").and_then(Value::as_object).is_some_and(|p| !p.is_empty());
    match schema.get("additionalProperties") {
        Some(Value::Bool(any)) => *any,
        Some(_) => true,
        None => !named,
    }
}

/// The known name that is most like this one, if one is.
fn nearest(schema: &Value, key: &str) -> Option<String> {
    let names = schema.get("properties").and_then(Value::as_object)?.keys();
    closest(key, names.map(String::as_str)).map(str::to_owned)
}

/// The name that a slip of a few letters would make of `typed`.
pub(crate) fn closest<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = (typed.chars().count() / 2).min(3);
    let rated = names.map(|name| (distance(&typed.to_lowercase(), &name.to_lowercase()), name));
    rated.filter(|(far, _)| *far <= most).min().map(|(_, name)| name)
}

/// How many letters have to be put in, left out or changed.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// The value that `text` is under this schema, if it is one.
fn fit(root: &Value, schema: &Value, text: &str, depth: Depth<'_>) -> Option<Value> {
    let depth = depth.deeper()?;
    if let Some(target) = reference(root, schema) {
        return fit(root, target, text, depth);
    }
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        return choices.iter().find(|choice| is_written(choice, text)).cloned();
    }
    if let Some(only) = schema.get("const") {
        return is_written(only, text).then(|| only.clone());
    }
    for word in ["anyOf", "oneOf"] {
        if let Some(ways) = schema.get(word).and_then(Value::as_array) {
            // `null` is only meant when nothing else fits: "null" may be a name.
            return ways.iter().find_map(|way| fit(root, way, text, depth));
        }
    }
    match schema.get("type") {
        Some(Value::String(name)) => fit_type(root, schema, name, text, depth),
        Some(Value::Array(names)) => {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            // Text fits everything, so it comes last.
            let strict = names.iter().filter(|name| **name != "string");
            let found = strict.copied().find_map(|name| fit_type(root, schema, name, text, depth));
            found.or_else(|| names.contains(&"string").then(|| text.into()))
        }
        // Anything goes: JSON if it is, else text.
        _ => Some(serde_json::from_str(text).unwrap_or_else(|_| text.into())),
    }
}

fn fit_type(
    root: &Value,
    schema: &Value,
    name: &str,
    text: &str,
    depth: Depth<'_>,
) -> Option<Value> {
    let json = || serde_json::from_str::<Value>(text.trim()).ok();
    match name {
        "string" => Some(text.into()),
        "integer" => json().filter(|v| v.is_i64() || v.is_u64()),
        "number" => json().filter(Value::is_number),
        "boolean" => json().filter(Value::is_boolean),
        "null" => json().filter(Value::is_null),
        "object" => json().filter(Value::is_object),
        "array" if text.trim_start().starts_with('[') => json().filter(Value::is_array),
        "array" => {
            let item = schema.get("items").unwrap_or(&Value::Null);
            fit(root, item, text, depth).map(|value| vec![value].into())
        }
        _ => json(),
    }
}

fn is_written(choice: &Value, text: &str) -> bool {
    match choice {
        Value::String(name) => name == text,
        other => serde_json::from_str::<Value>(text).is_ok_and(|value| value == *other),
    }
}

/// Where a `$ref` leads, within the same schema.
pub(crate) fn reference<'a>(root: &'a Value, schema: &Value) -> Option<&'a Value> {
    root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
}

/// What an argument can be, if that is a few things.
pub(crate) fn choices(schema: &Value, key: &str) -> Vec<String> {
    let property = schema.get("properties").and_then(|all| all.get(key));
    let budget = Budget::new();
    property.map(|property| values(schema, property, Depth::of(&budget))).unwrap_or_default()
}

fn values(root: &Value, schema: &Value, depth: Depth<'_>) -> Vec<String> {
    let Some(depth) = depth.deeper() else { return Vec::new() };
    if let Some(target) = reference(root, schema) {
        return values(root, target, depth);
    }
    let written = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let all = |ways: &[Value]| ways.iter().flat_map(|way| values(root, way, depth)).collect();
    for word in ["anyOf", "oneOf"] {
        if let Some(ways) = schema.get(word).and_then(Value::as_array) {
            return all(ways);
        }
    }
    match (schema.get("enum").and_then(Value::as_array), schema.get("const"), schema.get("type")) {
        (Some(choices), ..) => choices.iter().map(written).collect(),
        (None, Some(only), _) => vec![written(only)],
        (None, None, Some(Value::String(name))) => match name.as_str() {
            "boolean" => vec!["true".to_owned(), "false".to_owned()],
            "array" => values(root, schema.get("items").unwrap_or(&Value::Null), depth),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// What a schema wants, in a word or two.
fn kind(root: &Value, schema: &Value, depth: Depth<'_>) -> String {
    let Some(depth) = depth.deeper() else { return "any".to_owned() };
    if let Some(target) = reference(root, schema) {
        return kind(root, target, depth);
    }
    let joined = |ways: &[Value], each: &dyn Fn(&Value) -> String| {
        let mut words: Vec<String> = ways.iter().map(each).filter(|word| word != "null").collect();
        words.dedup();
        words.join("|")
    };
    if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
        return joined(choices, &|c| c.as_str().map_or_else(|| c.to_string(), str::to_owned));
    }
    if let Some(only) = schema.get("const") {
        return only.as_str().map_or_else(|| only.to_string(), str::to_owned);
    }
    for word in ["anyOf", "oneOf"] {
        if let Some(ways) = schema.get(word).and_then(Value::as_array) {
            return joined(ways, &|way| kind(root, way, depth));
        }
    }
    match schema.get("type") {
        Some(Value::String(name)) if name == "array" => {
            format!("{}[]", kind(root, schema.get("items").unwrap_or(&Value::Null), depth))
        }
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => joined(names, &|n| n.as_str().unwrap_or("any").to_owned()),
        _ => "any".to_owned(),
    }
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
