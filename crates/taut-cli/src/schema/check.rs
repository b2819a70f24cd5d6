//! Values and a schema: what a typed text is, and what does not fit.
//!
//! Pure. Refuses only what the schema rules out by type, by value, by bounds or by names. Patterns and the
//! formats of arguments are left to the server, which may read them differently. Takes time in proportion
//! to the value, and never more than [`LOOKS`] looks.

use std::fmt;

use serde_json::{Number, Value, json};

use super::words::{bounded, number};
use super::{Budget, Count, Range, STEPS, Schema, Shape, Walk};
use crate::arguments::closest;

/// How many parts of a value and its schema are looked at. What is left over is the server's to judge.
const LOOKS: usize = 50_000;

/// How many faults of one value are told.
const FAULTS: usize = 10;

/// Characters of a value that are told.
const SHOWN: usize = 60;

/// What is wrong with a value, in words that follow "must".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is something else.
    Other { wanted: String, value: String, meant: Option<String> },
    /// It is out of bounds.
    Bound { wanted: String, value: String },
    /// It has too few or too many parts.
    Count { wanted: String, has: u64 },
    /// It has to be given.
    Missing { wanted: String },
    /// The schema names no such field.
    Unknown { meant: Option<String> },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other { wanted, value, meant } => {
                write!(f, "be {wanted}, not {value}")?;
                meant.iter().try_for_each(|meant| write!(f, "; did you mean {meant}?"))
            }
            Self::Bound { wanted, value } => write!(f, "be {wanted}, not {value}"),
            Self::Count { wanted, has } => write!(f, "have {wanted}, and has {has}"),
            Self::Missing { wanted } => write!(f, "be given: {wanted}"),
            Self::Unknown { .. } => f.write_str("be left out"),
        }
    }
}

/// A number as a whole number, if it is one: 5.0 is 5, which all servers read.
pub(crate) fn whole_number(number: &Number) -> Option<Value> {
    // Every f64 up to this is a whole number of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if !number.is_f64() {
        return Some(Value::Number(number.clone()));
    }
    let size = number.as_f64()?;
    // Checked just here.
    #[allow(clippy::cast_possible_truncation)]
    (size.fract() == 0.0 && size.abs() <= EXACT).then(|| json!(size as i64))
}

impl Count {
    /// What is wrong with so many.
    pub(crate) fn check(self, has: u64, unit: &str) -> Result<(), Fault> {
        let too_few = self.least.is_some_and(|least| has < least);
        let too_many = self.most.is_some_and(|most| has > most);
        if !too_few && !too_many {
            return Ok(());
        }
        let (least, most) = (self.least.filter(|_| too_few), self.most.filter(|_| too_many));
        let wanted = bounded(least, most, unit).unwrap_or_default();
        Err(Fault::Count { wanted, has })
    }
}

impl Range<'_> {
    /// What is wrong with this number.
    pub(crate) fn check(&self, value: &Number) -> Result<(), Fault> {
        let size = |number: &Number| number.as_f64().unwrap_or(f64::NAN);
        let has = size(value);
        let table = [
            (self.least.filter(|least| has < size(least)), "", " or more"),
            (self.most.filter(|most| has > size(most)), "", " or less"),
            (self.above.filter(|above| has <= size(above)), "more than ", ""),
            (self.below.filter(|below| has >= size(below)), "less than ", ""),
        ];
        for (bound, before, after) in table {
            if let Some(bound) = bound {
                let wanted = format!("{before}{}{after}", number(bound));
                return Err(Fault::Bound { wanted, value: number(value) });
            }
        }
        Ok(())
    }
}

/// What does not fit, with its place: `.name`, `[2]`. Its words are made only for what is told.
type Found<'a> = Vec<(String, Wrong<'a>)>;

enum Wrong<'a> {
    /// It is something else.
    Other(Schema<'a>, &'a Value),
    Missing(Option<Schema<'a>>),
    Unknown(Schema<'a>, &'a str),
    Beyond(Fault),
}

impl Wrong<'_> {
    fn told(self) -> Fault {
        match self {
            Self::Other(schema, value) => schema.other(value),
            Self::Missing(schema) => Fault::Missing {
                wanted: schema.map_or_else(|| "any value".to_owned(), Schema::wanted),
            },
            Self::Unknown(schema, name) => schema.unknown(name),
            Self::Beyond(fault) => fault,
        }
    }
}

impl Schema<'_> {
    /// The value that a text is under this schema, if it is one. Its inside may still be wrong.
    pub(crate) fn fit(self, text: &str) -> Option<Value> {
        fit(self, text, Budget::new(STEPS).walk())
    }

    /// What does not fit, and where, counted from the value itself.
    pub(crate) fn check(self, value: &Value) -> Vec<(String, Fault)> {
        let mut found = Vec::new();
        check(self, value, "", Budget::new(LOOKS).walk(), &mut found);
        found.into_iter().map(|(place, wrong)| (place, wrong.told())).collect()
    }

    /// What is wrong with a value that is something else than is wanted.
    pub(crate) fn other(self, value: &Value) -> Fault {
        let typed = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let choices = self.values();
        let meant = closest(&typed, choices.iter().map(String::as_str)).map(str::to_owned);
        Fault::Other { wanted: self.wanted(), value: shown(value), meant }
    }
}

/// A value in a message: its beginning.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The value that `text` is, if it is one.
fn fit(schema: Schema<'_>, text: &str, walk: Walk<'_>) -> Option<Value> {
    let json = || serde_json::from_str::<Value>(text.trim()).ok();
    let shape = walk.deeper().and_then(|walk| Some((walk, schema.shape()?)));
    // A schema that goes in circles: the server judges.
    let Some((walk, shape)) = shape else { return Some(json().unwrap_or_else(|| text.into())) };
    match shape {
        Shape::Choice(choices) => {
            let is = |value: &Value| match value {
                Value::String(name) => name == text,
                other => json().is_some_and(|value| value == *other),
            };
            choices.iter().find(|choice| is(choice.value)).map(|choice| choice.value.clone())
        }
        Shape::Ways(ways) => {
            // Text fits everything, so it comes last; and "null" may be a name.
            let is_text = |way: &Schema<'_>| matches!(way.shape(), Some(Shape::Text(_)));
            let several = ways.iter().all(|way| way.only.is_some());
            let (last, first): (Vec<Schema<'_>>, Vec<Schema<'_>>) =
                ways.into_iter().partition(|way| several && is_text(way));
            let all: Vec<Value> =
                first.into_iter().chain(last).filter_map(|way| fit(way, text, walk)).collect();
            let whole = |value: &&Value| {
                let mut found = Vec::new();
                check(schema, value, "", walk, &mut found);
                found.is_empty()
            };
            all.iter().find(whole).or_else(|| all.first()).cloned()
        }
        Shape::Text(_) => Some(text.into()),
        Shape::Number { whole: true, .. } => json().and_then(|v| whole_number(v.as_number()?)),
        Shape::Number { .. } => json().filter(Value::is_number),
        Shape::Boolean => json().filter(Value::is_boolean),
        Shape::Null => json().filter(Value::is_null),
        Shape::Object => json().filter(Value::is_object),
        Shape::List { .. } if text.trim_start().starts_with('[') => json().filter(Value::is_array),
        Shape::List { item, .. } => fit(item, text, walk).map(|value| vec![value].into()),
        // Anything goes: JSON if it is, else text.
        Shape::Any => Some(json().unwrap_or_else(|| text.into())),
    }
}

fn check<'a>(
    schema: Schema<'a>,
    value: &'a Value,
    at: &str,
    walk: Walk<'_>,
    found: &mut Found<'a>,
) {
    // Too deep or too much: the server judges.
    let shape = walk.deeper().and_then(|walk| Some((walk, schema.shape()?)));
    let Some((walk, shape)) = shape.filter(|_| found.len() < FAULTS) else { return };
    // A value inside this one begins anew: only references and alternatives go deeper in the schema alone.
    let inside = walk.0.walk();
    let mut add = |wrong: Wrong<'a>| found.push((at.to_owned(), wrong));
    let mut beyond = |bounds: Result<(), Fault>| bounds.map_err(Wrong::Beyond).err().map(&mut add);
    match (shape, value) {
        (Shape::Any, _) | (Shape::Null, Value::Null) | (Shape::Boolean, Value::Bool(_)) => {}
        (Shape::Choice(choices), _) if choices.iter().any(|choice| same(choice.value, value)) => {}
        (Shape::Text(text), Value::String(has)) => {
            beyond(text.length.check(has.chars().count() as u64, "character"));
        }
        (Shape::Number { whole, range }, Value::Number(has))
            if !whole || whole_number(has).is_some() =>
        {
            beyond(range.check(has));
        }
        (Shape::List { item, count }, Value::Array(all)) => {
            beyond(count.check(all.len() as u64, "item"));
            for (place, each) in all.iter().enumerate() {
                check(item, each, &format!("{at}[{place}]"), inside, found);
            }
        }
        (Shape::Object, Value::Object(has)) => {
            for name in schema.required().into_iter().filter(|name| !has.contains_key(*name)) {
                found.push((format!("{at}.{name}"), Wrong::Missing(schema.field(name))));
            }
            for (name, each) in has {
                let place = format!("{at}.{name}");
                match schema.field(name) {
                    Some(field) => check(field, each, &place, inside, found),
                    None => found.push((place, Wrong::Unknown(schema, name))),
                }
            }
        }
        (Shape::Ways(ways), _) => {
            let mut close: Vec<Found<'a>> = Vec::new();
            for way in ways {
                let mut this = Vec::new();
                check(way, value, at, walk, &mut this);
                if this.is_empty() {
                    return;
                }
                // It is of this kind, and wrong inside.
                if this
                    .iter()
                    .all(|(place, wrong)| place != at || !matches!(wrong, Wrong::Other(..)))
                {
                    close.push(this);
                }
            }
            match close.pop() {
                Some(only) if close.is_empty() => found.extend(only),
                _ => add(Wrong::Other(schema, value)),
            }
        }
        _ => add(Wrong::Other(schema, value)),
    }
}

/// Whether two values are the same; 3 is 3.0.
fn same(a: &Value, b: &Value) -> bool {
    a == b || a.as_f64().is_some_and(|a| b.as_f64() == Some(a))
}

impl Schema<'_> {
    /// What is wrong with a field that the schema does not name.
    pub(crate) fn unknown(self, name: &str) -> Fault {
        Fault::Unknown { meant: closest(name, self.names()).map(str::to_owned) }
    }
}
