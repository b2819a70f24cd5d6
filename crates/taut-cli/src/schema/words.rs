//! A schema for people: in a word, in a sentence, and whole with every field below the other.
//!
//! Pure. Shows as deep and as many fields as anybody reads. Must not judge a value.

use std::fmt::Write as _;

use serde_json::{Number, Value};

use super::{Budget, STEPS, Schema, Shape, Walk, whole_number};
use crate::cells::cut;
use crate::own;

/// How deep fields within fields are shown.
const DEPTH: usize = 6;

/// Fields that are shown of one schema at most.
const MOST: usize = 500;

/// A number as people write it: 5, not 5.0.
pub(crate) fn number(number: &Number) -> String {
    whole_number(number).map_or_else(|| number.to_string(), |whole| whole.to_string())
}

/// `1 item or more`, `2 to 5 characters`; without a unit, plain numbers.
pub(crate) fn bounded<N: ToString>(
    least: Option<N>,
    most: Option<N>,
    unit: &str,
) -> Option<String> {
    let (least, most) = (least.map(|n| n.to_string()), most.map(|n| n.to_string()));
    let several = |count: &str| match unit {
        "" => String::new(),
        unit if count == "1" => format!(" {unit}"),
        unit => format!(" {unit}s"),
    };
    let fewer = if unit.is_empty() { "less" } else { "fewer" };
    Some(match (least, most) {
        (Some(least), Some(most)) if least == most => format!("{least}{}", several(&least)),
        (Some(least), Some(most)) => format!("{least} to {most}{}", several(&most)),
        (Some(least), None) => format!("{least}{} or more", several(&least)),
        (None, Some(most)) => format!("{most}{} or {fewer}", several(&most)),
        (None, None) => return None,
    })
}

impl Schema<'_> {
    /// What it wants, in a word: `string`, `integer[]`, `small|large`.
    pub(crate) fn kind(self) -> String {
        kind(self, Budget::new(STEPS).walk())
    }

    /// What it wants, after "must be": `a whole number`.
    pub(crate) fn wanted(self) -> String {
        wanted(self, Budget::new(STEPS).walk())
    }

    /// What there is to choose from, as people type it, if that is a few things.
    pub(crate) fn values(self) -> Vec<String> {
        values(self, Budget::new(STEPS).walk())
    }
}

fn joined(words: impl Iterator<Item = String>, between: &str) -> String {
    let mut words: Vec<String> = words.filter(|word| word != "null").collect();
    words.dedup();
    words.join(between)
}

/// Things to choose from; more say no more.
fn choices_of(choices: &[super::Choice<'_>]) -> String {
    const SHOWN: usize = 40;
    const WIDTH: usize = 80;
    let shown = choices.iter().take(SHOWN).map(|choice| cut(&choice.text(), WIDTH).into_owned());
    let more = (choices.len() > SHOWN).then(|| format!("… {} more", choices.len() - SHOWN));
    joined(shown.chain(more), "|")
}

fn kind(schema: Schema<'_>, walk: Walk<'_>) -> String {
    let shape = walk.deeper().and_then(|walk| Some((walk, schema.shape()?)));
    let Some((walk, shape)) = shape else { return "any".to_owned() };
    match shape {
        Shape::Any => "any".to_owned(),
        Shape::Null => "null".to_owned(),
        Shape::Boolean => "boolean".to_owned(),
        Shape::Text(_) => "string".to_owned(),
        Shape::Number { whole: true, .. } => "integer".to_owned(),
        Shape::Number { .. } => "number".to_owned(),
        Shape::Object => "object".to_owned(),
        Shape::Choice(choices) => choices_of(&choices),
        Shape::Ways(ways) => joined(ways.into_iter().map(|way| kind(way, walk)), "|"),
        Shape::List { item, .. } => match kind(item, walk) {
            several if several.contains('|') => format!("({several})[]"),
            one => format!("{one}[]"),
        },
    }
}

fn wanted(schema: Schema<'_>, walk: Walk<'_>) -> String {
    let shape = walk.deeper().and_then(|walk| Some((walk, schema.shape()?)));
    let Some((walk, shape)) = shape else { return "any value".to_owned() };
    match shape {
        Shape::Any => "any value".to_owned(),
        Shape::Null => "null".to_owned(),
        Shape::Boolean => "true or false".to_owned(),
        Shape::Text(_) => "text".to_owned(),
        Shape::Number { whole: true, .. } => "a whole number".to_owned(),
        Shape::Number { .. } => "a number".to_owned(),
        Shape::Object => "a JSON object".to_owned(),
        Shape::Choice(choices) => choices_of(&choices),
        Shape::Ways(ways) => joined(ways.into_iter().map(|way| wanted(way, walk)), " or "),
        Shape::List { item, .. } => match item.shape() {
            None | Some(Shape::Any) => "a list".to_owned(),
            Some(Shape::Number { whole: true, .. }) => "a list of whole numbers".to_owned(),
            Some(Shape::Number { .. }) => "a list of numbers".to_owned(),
            Some(Shape::Text(_)) => "a list of texts".to_owned(),
            Some(Shape::Object) => "a list of JSON objects".to_owned(),
            Some(_) => format!("a list of {}", kind(item, walk)),
        },
    }
}

fn values(schema: Schema<'_>, walk: Walk<'_>) -> Vec<String> {
    let shape = walk.deeper().and_then(|walk| Some((walk, schema.shape()?)));
    let Some((walk, shape)) = shape else { return Vec::new() };
    match shape {
        Shape::Choice(choices) => choices.iter().map(super::Choice::text).collect(),
        Shape::Boolean => vec!["true".to_owned(), "false".to_owned()],
        Shape::Ways(ways) => ways.into_iter().flat_map(|way| values(way, walk)).collect(),
        Shape::List { item, .. } => values(item, walk),
        _ => Vec::new(),
    }
}

/// The fields of a schema, one to a line.
pub(crate) fn fields(schema: Schema<'_>) -> String {
    let mut text = String::new();
    let mut left = MOST;
    object(&mut text, schema, 1, &mut left);
    if left == 0 {
        text.push_str(&own::named("  … and more: `taut list --json` shows all of it\n"));
    }
    text
}

fn object(text: &mut String, schema: Schema<'_>, depth: usize, left: &mut usize) {
    for field in schema.fields() {
        if *left == 0 {
            return;
        }
        *left -= 1;
        let mut about = Vec::new();
        if !field.required {
            about.push("optional".to_owned());
        }
        about.extend(limits(field.schema));
        let about =
            if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
        let description = one_line(field.schema.description().unwrap_or_default());
        let (name, kind) = (one_line(field.name), one_line(&field.schema.kind()));
        let line = format!("{}{name}: {kind}{about}  {description}", "  ".repeat(depth));
        let _ = writeln!(text, "{}", line.trim_end());
        if depth < DEPTH {
            object(text, inside(field.schema), depth + 1, left);
        }
    }
}

/// What is inside a field: of a list, what it is a list of; of alternatives, the one that has fields.
fn inside(schema: Schema<'_>) -> Schema<'_> {
    let mut place = schema;
    for _ in 0..DEPTH {
        place = match place.shape() {
            Some(Shape::List { item, .. }) => item,
            Some(Shape::Ways(ways)) => {
                let has_fields = |way: &Schema<'_>| !inside_one(*way).fields().is_empty();
                match ways.into_iter().find(has_fields) {
                    Some(way) => way,
                    None => return place,
                }
            }
            _ => return place,
        };
    }
    place
}

/// A way, or what a way that is a list is a list of.
fn inside_one(way: Schema<'_>) -> Schema<'_> {
    match way.shape() {
        Some(Shape::List { item, .. }) => item,
        _ => way,
    }
}

/// The rest of what a schema says about a value, in words.
fn limits(schema: Schema<'_>) -> Vec<String> {
    let mut all = bounds(schema.resolved());
    if let Some(Shape::List { item, .. }) = schema.shape() {
        let each = bounds(item.resolved());
        all.extend(each.into_iter().map(|words| format!("each {words}")));
    }
    all.extend(schema.default().map(|value| format!("default {value}")));
    all
}

/// Ranges, lengths, format and pattern.
fn bounds(place: Schema<'_>) -> Vec<String> {
    let mut all = Vec::new();
    let range = place.range();
    all.extend(bounded(range.least.map(number), range.most.map(number), ""));
    all.extend(range.above.map(|least| format!("more than {}", number(least))));
    all.extend(range.below.map(|most| format!("less than {}", number(most))));
    let step = place.get("multipleOf").and_then(Value::as_number);
    all.extend(step.map(|step| format!("a multiple of {}", number(step))));
    for (least, most, unit) in
        [("minLength", "maxLength", "character"), ("minItems", "maxItems", "item")]
    {
        let count = place.count(least, most);
        all.extend(bounded(count.least, count.most, unit));
    }
    for word in ["format", "pattern"] {
        let text = place.get(word).and_then(Value::as_str);
        // The size of a number in memory is nothing to a person.
        let text = text.filter(|text| !["double", "float", "int32", "int64"].contains(text));
        all.extend(text.map(|text| format!("{word} {}", one_line(text))));
    }
    all
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
