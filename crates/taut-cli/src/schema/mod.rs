//! The one reading of JSON Schema: for arguments of tools, forms, lists, completion and `taut smoke`.
//!
//! Pure. [`Schema`] is a place in a document, [`Shape`] what a value there may be. Follows references into
//! the same document, `anyOf`, `oneOf` and `allOf` of one. What it does not understand is [`Shape::Any`], so
//! that the server decides. `check.rs` judges values, `words.rs` describes for people. Must not know who asks.

mod check;
mod format;
#[cfg(test)]
mod tests;
mod words;

use std::cell::Cell;
use std::collections::HashMap;

use serde_json::{Number, Value};

pub(crate) use check::{Fault, whole_number};
pub(crate) use format::Format;
pub(crate) use words::{bounded, fields, number};

/// How deep references and alternatives are followed: enough for people, too little to go in circles.
const DEPTH: usize = 16;

/// How many parts of a schema are looked at for one argument: alternatives that refer to each other
/// would be a number with 16 digits.
const STEPS: usize = 4_096;

/// What is left to look at.
struct Budget(Cell<usize>);

impl Budget {
    const fn new(steps: usize) -> Self {
        Self(Cell::new(steps))
    }

    const fn walk(&self) -> Walk<'_> {
        Walk(self, DEPTH)
    }
}

/// How deep a reader is in the schema, and how much it may still look at.
#[derive(Clone, Copy)]
struct Walk<'a>(&'a Budget, usize);

impl Walk<'_> {
    /// One step deeper, or nothing if that is too deep or there were too many.
    fn deeper(self) -> Option<Self> {
        let steps = self.0.0.get().checked_sub(1)?;
        self.0.0.set(steps);
        Some(Self(self.0, self.1.checked_sub(1)?))
    }
}

/// A place in a schema's document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schema<'a> {
    root: &'a Value,
    here: &'a Value,
    /// The one type of several that is meant.
    only: Option<&'a str>,
}

/// What a value may be.
#[derive(Debug)]
pub(crate) enum Shape<'a> {
    /// Anything, as far as is understood.
    Any,
    Null,
    Boolean,
    Text(Text<'a>),
    Number {
        whole: bool,
        range: Range<'a>,
    },
    /// One of a few values.
    Choice(Vec<Choice<'a>>),
    List {
        item: Schema<'a>,
        count: Count,
    },
    /// An object; [`Schema::fields`] has its fields.
    Object,
    /// What any of these takes.
    Ways(Vec<Schema<'a>>),
}

/// What a text has to be like.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    pub(crate) length: Count,
    pub(crate) format: Option<&'a str>,
}

/// The bounds of a number.
#[derive(Debug)]
pub(crate) struct Range<'a> {
    pub(crate) least: Option<&'a Number>,
    pub(crate) most: Option<&'a Number>,
    pub(crate) above: Option<&'a Number>,
    pub(crate) below: Option<&'a Number>,
}

/// How many characters or items there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) least: Option<u64>,
    pub(crate) most: Option<u64>,
}

/// One of a few values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice<'a> {
    pub(crate) value: &'a Value,
    pub(crate) title: Option<&'a str>,
}

impl Choice<'_> {
    /// The value as people type it.
    pub(crate) fn text(&self) -> String {
        self.value.as_str().map_or_else(|| self.value.to_string(), str::to_owned)
    }

    /// The title, or the value as people type it.
    pub(crate) fn shown(&self) -> String {
        self.title.map_or_else(|| self.text(), str::to_owned)
    }
}

/// One field of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field<'a> {
    pub(crate) name: &'a str,
    pub(crate) schema: Schema<'a>,
    pub(crate) required: bool,
}

impl<'a> Schema<'a> {
    /// The whole of a document.
    pub(crate) const fn of(root: &'a Value) -> Self {
        Self { root, here: root, only: None }
    }

    const fn at(self, here: &'a Value) -> Self {
        Self { root: self.root, here, only: None }
    }

    fn get(self, member: &str) -> Option<&'a Value> {
        self.here.get(member)
    }

    /// A text that describes it: the one here, or where a reference leads.
    fn word(self, member: &str) -> Option<&'a str> {
        let here = self.get(member).and_then(Value::as_str);
        here.or_else(|| self.resolved().get(member)?.as_str())
    }

    pub(crate) fn title(self) -> Option<&'a str> {
        self.word("title").filter(|title| !title.is_empty())
    }

    pub(crate) fn description(self) -> Option<&'a str> {
        self.word("description").filter(|text| !text.is_empty())
    }

    pub(crate) fn default(self) -> Option<&'a Value> {
        let default = self.get("default").or_else(|| self.resolved().get("default"));
        default.filter(|value| !value.is_null())
    }

    /// Where references and an `allOf` of one lead; the place itself if they go in circles.
    fn resolved(self) -> Self {
        self.target().unwrap_or(self)
    }

    /// The same; nothing if they go in circles.
    fn target(self) -> Option<Self> {
        let mut place = self;
        for _ in 0..DEPTH {
            let next = match (place.get("$ref").and_then(Value::as_str), place.get("allOf")) {
                (Some(path), _) => path.strip_prefix('#').and_then(|path| self.root.pointer(path)),
                // Older Pydantic writes a reference with a default like this.
                (None, Some(Value::Array(all))) if all.len() == 1 => all.first(),
                _ => None,
            };
            match next {
                Some(next) => place = place.at(next),
                None => return Some(place),
            }
        }
        None
    }

    /// What a value here may be; nothing if the schema refers to itself without end.
    pub(crate) fn shape(self) -> Option<Shape<'a>> {
        let place = self.target()?;
        if let Some(choices) = place.choices() {
            return Some(Shape::Choice(choices));
        }
        for word in ["anyOf", "oneOf"] {
            if let (Some(ways), None) = (place.get(word).and_then(Value::as_array), place.only) {
                return Some(Shape::Ways(ways.iter().map(|way| place.at(way)).collect()));
            }
        }
        let named = place.only.or_else(|| place.get("type").and_then(Value::as_str));
        if let (None, Some(names)) = (named, place.get("type").and_then(Value::as_array)) {
            let names = names.iter().filter_map(Value::as_str);
            let ways = names.map(|name| Self { only: Some(name), ..place });
            return Some(Shape::Ways(ways.collect()));
        }
        let has = |member: &str| place.get(member).is_some();
        Some(match named {
            Some("null") => Shape::Null,
            Some("boolean") => Shape::Boolean,
            Some("string") => Shape::Text(place.text()),
            Some(name @ ("integer" | "number")) => {
                Shape::Number { whole: name == "integer", range: place.range() }
            }
            Some("array") => place.list(),
            Some("object") => Shape::Object,
            None if has("properties") => Shape::Object,
            None if has("items") => place.list(),
            _ => Shape::Any,
        })
    }

    /// The values of `enum`, of `const`, or of alternatives that are one value each.
    fn choices(self) -> Option<Vec<Choice<'a>>> {
        let list = |member: &str| self.get(member).and_then(Value::as_array);
        if let Some(values) = list("enum") {
            let titles = list("enumNames");
            let title = |at: usize| titles?.get(at)?.as_str();
            let all = values.iter().enumerate();
            return Some(all.map(|(at, value)| Choice { value, title: title(at) }).collect());
        }
        if let Some(value) = self.get("const") {
            return Some(vec![Choice { value, title: None }]);
        }
        let ways = list("oneOf").or_else(|| list("anyOf")).filter(|ways| !ways.is_empty())?;
        let one = |way: &'a Value| {
            let title = way.get("title").and_then(Value::as_str);
            Some(Choice { value: way.get("const")?, title })
        };
        ways.iter().map(one).collect()
    }

    fn text(self) -> Text<'a> {
        let format = self.get("format").and_then(Value::as_str);
        Text { length: self.count("minLength", "maxLength"), format }
    }

    fn list(self) -> Shape<'a> {
        let items = self.get("items").filter(|items| items.is_object());
        let item = self.at(items.unwrap_or(&Value::Null));
        Shape::List { item, count: self.count("minItems", "maxItems") }
    }

    fn count(self, least: &str, most: &str) -> Count {
        let count = |member| self.get(member).and_then(Value::as_u64);
        Count { least: count(least), most: count(most) }
    }

    fn range(self) -> Range<'a> {
        let number = |member| self.get(member).and_then(Value::as_number);
        Range {
            least: number("minimum"),
            most: number("maximum"),
            above: number("exclusiveMinimum"),
            below: number("exclusiveMaximum"),
        }
    }

    fn properties(self) -> Option<&'a serde_json::Map<String, Value>> {
        self.get("properties").and_then(Value::as_object)
    }

    /// The names that have to be given.
    pub(crate) fn required(self) -> Vec<&'a str> {
        let names = self.resolved().get("required").and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The fields of an object that the schema names, those that it needs first.
    pub(crate) fn fields(self) -> Vec<Field<'a>> {
        let place = self.resolved();
        let needed: HashMap<&str, usize> =
            place.required().into_iter().enumerate().map(|(at, name)| (name, at)).rev().collect();
        let all = place.properties().into_iter().flatten();
        let mut all: Vec<Field<'_>> = all
            .map(|(name, schema)| Field {
                name,
                schema: place.at(schema),
                required: needed.contains_key(name.as_str()),
            })
            .collect();
        // In the order of `required`, which is the author's; members of an object have none.
        all.sort_by_key(|field| needed.get(field.name).copied().unwrap_or(usize::MAX));
        all
    }

    /// The schema of one field of an object: of a named one, or of any other if others are welcome.
    pub(crate) fn field(self, name: &str) -> Option<Self> {
        let place = self.resolved();
        if let Some(schema) = place.properties().and_then(|all| all.get(name)) {
            return Some(place.at(schema));
        }
        // By the letter, others are welcome unless the schema says no. But a name that is not in a list is
        // most often a typing error.
        let other = match place.get("additionalProperties") {
            Some(Value::Bool(any)) => any.then_some(&Value::Null),
            Some(schema) => Some(schema),
            None => {
                place.properties().is_none_or(serde_json::Map::is_empty).then_some(&Value::Null)
            }
        };
        other.map(|schema| place.at(schema))
    }

    /// The named fields of an object, without an order.
    fn names(self) -> impl Iterator<Item = &'a str> {
        self.resolved().properties().into_iter().flatten().map(|(name, _)| name.as_str())
    }
}
