//! JSON with comments and TOML as one kind of tree that knows where everything stands.
//!
//! Pure: text goes in, a tree or a fault with line and column comes out. Must not know what a server
//! is. Comments and commas too many are allowed in every JSON file, as VS Code and opencode do; what
//! else JSON5 allows is not, because no host does.

use std::fmt;

use jsonc_parser::ast::Value as Json;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use toml::de::{DeTable, DeValue};

/// What is wrong, and where: both count from 1, a column in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.what)
    }
}

/// A value, and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) at: usize,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    /// A number, or a date: as it is written.
    Other(String),
    Text(String),
    List(Vec<Node>),
    /// In the order of the file, each with the place of its name.
    Table(Vec<(String, usize, Node)>),
}

impl Node {
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        // Of two with one name the last counts, as in every reader of JSON that hosts use.
        self.members().iter().rev().find(|(known, _, _)| known == name).map(|(_, _, node)| node)
    }

    pub(crate) fn members(&self) -> &[(String, usize, Self)] {
        match &self.kind {
            Kind::Table(members) => members,
            _ => &[],
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn bool(&self) -> Option<bool> {
        match &self.kind {
            Kind::Bool(value) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn name_of_kind(&self) -> &'static str {
        match &self.kind {
            Kind::Null => "null",
            Kind::Bool(_) => "true or false",
            Kind::Other(_) => "a number",
            Kind::Text(_) => "text",
            Kind::List(_) => "a list",
            Kind::Table(_) => "an object",
        }
    }
}

/// Line and column of a place in a text, from 1.
pub(crate) fn position(text: &str, at: usize) -> (usize, usize) {
    let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let begin = before.rfind('\n').map_or(0, |newline| newline + 1);
    (line, before[begin..].trim_start_matches('\u{feff}').chars().count() + 1)
}

/// Lines and columns of many places in a text, each found without counting from the start.
pub(crate) struct Lines<'a> {
    text: &'a str,
    begins: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let begins = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Self { text, begins }
    }

    /// Line and column of a place, from 1.
    pub(crate) fn position(&self, at: usize) -> (usize, usize) {
        let line = self.begins.partition_point(|begin| *begin <= at.min(self.text.len()));
        let begin = self.begins[line.saturating_sub(1)];
        // A column says where on a screen, and no screen is that wide: a file on one line stays quick.
        const WIDEST: usize = 1 << 16;
        let until = at.min(self.text.len());
        if until - begin > WIDEST {
            return (line, until - begin + 1);
        }
        let (_, column) = position(&self.text[begin..], until - begin);
        (line, column)
    }
}

pub(crate) fn fault(text: &str, at: usize, what: impl Into<String>) -> Fault {
    let (line, column) = position(text, at);
    Fault { line, column, what: what.into() }
}

/// Reads JSON; an empty file is an empty object, as hosts leave one behind.
pub(crate) fn json(text: &str) -> Result<Node, Fault> {
    let strict = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let skipped = text.len() - text.trim_start_matches('\u{feff}').len();
    let parsed = parse_to_ast(&text[skipped..], &CollectOptions::default(), &strict);
    match parsed {
        Ok(parsed) => Ok(parsed
            .value
            .map_or(Node { at: 0, kind: Kind::Table(Vec::new()) }, |v| from_json(v, skipped))),
        Err(error) => {
            let what = lower(&error.kind().to_string());
            Err(fault(text, error.range().start + skipped, what))
        }
    }
}

fn from_json(value: Json<'_>, skipped: usize) -> Node {
    use jsonc_parser::common::Ranged as _;
    let at = value.start() + skipped;
    let kind = match value {
        Json::NullKeyword(_) => Kind::Null,
        Json::BooleanLit(lit) => Kind::Bool(lit.value),
        Json::NumberLit(lit) => Kind::Other(lit.value.to_owned()),
        Json::StringLit(lit) => Kind::Text(lit.value.into_owned()),
        Json::Array(array) => {
            Kind::List(array.elements.into_iter().map(|each| from_json(each, skipped)).collect())
        }
        Json::Object(object) => {
            let members = object.properties.into_iter().map(|property| {
                let at = property.range.start + skipped;
                (property.name.into_string(), at, from_json(property.value, skipped))
            });
            Kind::Table(members.collect())
        }
    };
    Node { at, kind }
}

/// Reads TOML.
pub(crate) fn toml(text: &str) -> Result<Node, Fault> {
    match DeTable::parse(text) {
        Ok(table) => Ok(Node { at: 0, kind: from_table(table.into_inner()) }),
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            Err(fault(text, at, lower(error.message().lines().next().unwrap_or("not TOML"))))
        }
    }
}

fn from_table(table: DeTable<'_>) -> Kind {
    let members = table.into_iter().map(|(name, value)| {
        let (at, begin) = (name.span().start, value.span().start);
        (
            name.into_inner().into_owned(),
            at,
            Node { at: begin, kind: from_toml(value.into_inner()) },
        )
    });
    let mut members: Vec<_> = members.collect();
    // The parser sorts them by name; people know them by their order.
    members.sort_by_key(|(_, at, _)| *at);
    Kind::Table(members)
}

fn from_toml(value: DeValue<'_>) -> Kind {
    match value {
        DeValue::String(text) => Kind::Text(text.into_owned()),
        DeValue::Boolean(value) => Kind::Bool(value),
        DeValue::Integer(number) => Kind::Other(number.to_string()),
        DeValue::Float(number) => Kind::Other(number.to_string()),
        DeValue::Datetime(date) => Kind::Other(date.to_string()),
        DeValue::Array(items) => {
            let items = items.into_iter().map(|item| {
                let at = item.span().start;
                Node { at, kind: from_toml(item.into_inner()) }
            });
            Kind::List(items.collect())
        }
        DeValue::Table(table) => from_table(table),
    }
}

/// The first letter small: it is printed inside a sentence of ours.
fn lower(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_a_comma_too_many_are_allowed_and_nothing_else_is() {
        let read = json("\u{feff}{ // one\n /* two */ \"a\": [1, true,], }").unwrap();
        let Kind::List(items) = &read.member("a").unwrap().kind else { panic!("{read:?}") };
        assert_eq!(items.len(), 2);
        assert_eq!(json("").unwrap().members().len(), 0);
        for text in ["{a: 1}", "{'a': 1}", "{\"a\": 1 \"b\": 2}", "{\"a\": 0x1}", "{} {}", "{"] {
            assert!(json(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_fault_is_where_an_editor_shows_it() {
        let table = [
            (json("{\n  \"größe\": x\n}"), (2, 12)),
            (json("\u{feff}{ x }"), (1, 3)),
            (json("{\r\n\"a\": 1,\r\n]"), (3, 1)),
            (toml("a = 1\nb = = 2\n"), (2, 5)),
            (toml("[x]\na = 1\na = 2\n"), (3, 1)),
        ];
        for (read, place) in table {
            let fault = read.unwrap_err();
            assert_eq!((fault.line, fault.column), place, "{fault}");
        }
    }

    #[test]
    fn members_keep_the_order_of_the_file() {
        let read = toml("[z.b]\nx = 1\n[z.a]\ny = [\"1\", 2]\n").unwrap();
        let z = read.member("z").unwrap();
        assert_eq!(z.members().iter().map(|(n, _, _)| n.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(position("x\ny", z.members()[1].1), (2, 2));
    }
}
