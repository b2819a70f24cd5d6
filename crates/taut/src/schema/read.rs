//! From a schema's JSON to its rules. Every subschema becomes a node once, however many refer to it.
//!
//! Walks with a list of what is still to be read, not by calling itself: no schema is too deep for
//! it. What is wrong in a schema is found here, so that a check never meets it.

use std::collections::HashMap;

use regex::Regex;
use serde_json::{Map, Number, Value};

use super::rule::{AT_LEAST, AT_MOST, JsonType, LESS_THAN, MORE_THAN, Node, NodeId, Rule};
use super::{MAX_PATTERNS, MAX_SUBSCHEMAS, SchemaFault, pattern};

type ReadResult<T> = Result<T, SchemaFault>;
type SchemaMembers = Map<String, Value>;

/// The dialects, as far as they differ for us.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Draft {
    /// draft-06 and draft-07: nothing counts beside a `$ref`.
    Draft7,
    /// 2019-09: `items` may still be a list.
    V2019,
    V2020,
}

/// Reads all that can be reached from the place where it starts, which is the first node.
pub(super) fn nodes(root: &Value, start: &str) -> ReadResult<Vec<Node>> {
    let dialect = dialect(root)?;
    let base = root["$id"].as_str().map(|id| id.trim_end_matches('#')).unwrap_or_default();
    let mut reader =
        SchemaReader { root, base, dialect, ids: HashMap::new(), found: vec![], patterns: 0 };
    reader.id(start.to_owned())?;
    let mut nodes = Vec::new();
    while let Some(at) = reader.found.get(nodes.len()).cloned() {
        let rules = reader.rules(&at)?;
        nodes.push(Node { at, rules });
    }
    Ok(nodes)
}

/// TOL-28: no dialect named means 2020-12, and one that is not known is no guess.
fn dialect(root: &Value) -> ReadResult<Draft> {
    let Some(uri) = root.get("$schema").and_then(Value::as_str) else { return Ok(Draft::V2020) };
    let name =
        uri.trim_end_matches('#').trim_start_matches("https://").trim_start_matches("http://");
    Ok(match name {
        "json-schema.org/draft/2020-12/schema" => Draft::V2020,
        "json-schema.org/draft/2019-09/schema" => Draft::V2019,
        "json-schema.org/draft-07/schema" | "json-schema.org/draft-06/schema" => Draft::Draft7,
        _ => return Err(SchemaFault::Dialect { uri: uri.to_owned() }),
    })
}

struct SchemaReader<'a> {
    root: &'a Value,
    /// The root's own name: what refers to it refers to the schema itself.
    base: &'a str,
    dialect: Draft,
    ids: HashMap<String, NodeId>,
    /// Where each node stands, in the order of their ids.
    found: Vec<String>,
    patterns: usize,
}

impl<'a> SchemaReader<'a> {
    /// The node for the subschema at a place, which will be read in its turn.
    fn id(&mut self, at: String) -> ReadResult<NodeId> {
        if let Some(id) = self.ids.get(&at) {
            return Ok(*id);
        }
        if self.found.len() == MAX_SUBSCHEMAS {
            return Err(SchemaFault::TooMany { what: "subschemas", limit: MAX_SUBSCHEMAS });
        }
        let id = self.found.len();
        self.ids.insert(at.clone(), id);
        self.found.push(at);
        Ok(id)
    }

    fn rules(&mut self, at: &str) -> ReadResult<Vec<(String, Rule)>> {
        let root = self.root;
        let members = match root.pointer(at) {
            Some(Value::Bool(true)) => return Ok(Vec::new()),
            Some(Value::Bool(false)) => return Ok(vec![(String::new(), Rule::Never)]),
            Some(Value::Object(members)) => members,
            _ => return Err(invalid(at, "", "is no schema")),
        };
        // An `$id` inside changes what every reference below it means.
        if !at.is_empty() && members.get("$id").is_some_and(Value::is_string) {
            return Err(unsupported(at, "$id"));
        }
        if let Some(target) = members.get("$ref") {
            let target = target.as_str().ok_or_else(|| invalid(at, "$ref", "is no text"))?;
            let mut rules = vec![("$ref".to_owned(), Rule::All(vec![self.referred(target)?]))];
            if self.dialect > Draft::Draft7 {
                rules.extend(self.own_rules(at, members)?);
            }
            return Ok(rules);
        }
        self.own_rules(at, members)
    }

    /// TOL-29: a path within the schema, or nothing.
    fn referred(&mut self, uri: &str) -> ReadResult<NodeId> {
        let nowhere = || SchemaFault::Reference { uri: uri.to_owned() };
        let own = uri.strip_prefix(self.base).unwrap_or(uri);
        let path = if own.is_empty() { "" } else { own.strip_prefix('#').ok_or_else(nowhere)? };
        let path = percent_decoded(path).ok_or_else(nowhere)?;
        self.root.pointer(&path).ok_or_else(nowhere)?;
        self.id(path)
    }

    /// Every rule but `$ref`.
    fn own_rules(
        &mut self,
        at: &str,
        members: &'a SchemaMembers,
    ) -> ReadResult<Vec<(String, Rule)>> {
        let mut rules = Vec::new();
        let mut add = |keyword: &str, rule| rules.push((keyword.to_owned(), rule));
        for (keyword, value) in members {
            let found = self.simple(at, keyword, value)?.into_iter();
            found.chain(self.applied(at, keyword, value)?).for_each(|rule| add(keyword, rule));
        }
        self.items(at, members)?.into_iter().for_each(|rule| add("items", rule));
        self.contains(at, members)?.into_iter().for_each(|rule| add("contains", rule));
        self.members(at, members)?.into_iter().for_each(|rule| add("properties", rule));
        if members.contains_key("if") {
            let then = self.part(at, members, "then")?;
            let otherwise = self.part(at, members, "else")?;
            add("if", Rule::If { test: self.id(below(at, "if"))?, then, otherwise });
        }
        Ok(rules)
    }

    /// A subschema that may be absent.
    fn part(
        &mut self,
        at: &str,
        members: &SchemaMembers,
        name: &str,
    ) -> ReadResult<Option<NodeId>> {
        members.contains_key(name).then(|| self.id(below(at, name))).transpose()
    }

    /// Keywords that look at a value and nothing else.
    fn simple(&mut self, at: &str, keyword: &str, value: &Value) -> ReadResult<Option<Rule>> {
        let bad = |what| invalid(at, keyword, what);
        let number = || value.as_number().cloned().ok_or_else(|| bad("is no number"));
        let size = || size(value).ok_or_else(|| bad("is no length"));
        Ok(Some(match keyword {
            "type" => Rule::Type(kinds(value).ok_or_else(|| bad("names no type"))?),
            "enum" => Rule::Enum(value.as_array().ok_or_else(|| bad("is no list"))?.clone()),
            "const" => Rule::Enum(vec![value.clone()]),
            "minimum" => Rule::Bound(number()?, AT_LEAST),
            "maximum" => Rule::Bound(number()?, AT_MOST),
            "exclusiveMinimum" => Rule::Bound(number()?, MORE_THAN),
            "exclusiveMaximum" => Rule::Bound(number()?, LESS_THAN),
            "multipleOf" => {
                let of = number()?;
                if of.as_f64().is_none_or(|of| of <= 0.0) {
                    return Err(bad("is not above zero"));
                }
                Rule::MultipleOf(of)
            }
            "minLength" => Rule::Size(JsonType::Text, size()?, AT_LEAST),
            "maxLength" => Rule::Size(JsonType::Text, size()?, AT_MOST),
            "minItems" => Rule::Size(JsonType::List, size()?, AT_LEAST),
            "maxItems" => Rule::Size(JsonType::List, size()?, AT_MOST),
            "minProperties" => Rule::Size(JsonType::Object, size()?, AT_LEAST),
            "maxProperties" => Rule::Size(JsonType::Object, size()?, AT_MOST),
            "pattern" => {
                let text = value.as_str().ok_or_else(|| bad("is no text"))?;
                Rule::Pattern(self.pattern(at, keyword, text)?)
            }
            "uniqueItems" if value == &Value::Bool(true) => Rule::Unique,
            "required" => Rule::Required(names(value).ok_or_else(|| bad("is no list of names"))?),
            _ => return Ok(None),
        }))
    }

    /// Keywords that apply subschemas, each for itself.
    fn applied(&mut self, at: &str, keyword: &str, value: &Value) -> ReadResult<Vec<Rule>> {
        let newer = self.dialect > Draft::Draft7;
        Ok(match keyword {
            "allOf" => vec![Rule::All(self.list(at, keyword, value)?)],
            "anyOf" => vec![Rule::Any(self.list(at, keyword, value)?)],
            "oneOf" => vec![Rule::One(self.list(at, keyword, value)?)],
            "not" => vec![Rule::Not(self.id(below(at, keyword))?)],
            "propertyNames" => vec![Rule::Names(self.id(below(at, keyword))?)],
            "dependentSchemas" if newer => {
                let schemas = self.map(at, keyword, value)?.into_iter();
                schemas.map(|(name, id)| Rule::When(name, id)).collect()
            }
            "dependentRequired" | "dependencies" if newer == (keyword == "dependentRequired") => {
                let object =
                    value.as_object().ok_or_else(|| invalid(at, keyword, "is no object"))?;
                let mut rules = Vec::new();
                for (name, needed) in object {
                    rules.push(match names(needed) {
                        Some(others) => Rule::Needs(name.clone(), others),
                        None if newer => return Err(invalid(at, keyword, "is no list of names")),
                        None => {
                            Rule::When(name.clone(), self.id(below(&below(at, keyword), name))?)
                        }
                    });
                }
                rules
            }
            "$dynamicRef" | "$recursiveRef" | "unevaluatedItems" | "unevaluatedProperties"
                if newer =>
            {
                return Err(unsupported(at, keyword));
            }
            _ => Vec::new(),
        })
    }

    fn items(&mut self, at: &str, members: &'a SchemaMembers) -> ReadResult<Option<Rule>> {
        let (first, rest) = match (members.get("items"), self.dialect) {
            (_, Draft::V2020) => ("prefixItems", "items"),
            (Some(Value::Array(_)), _) => ("items", "additionalItems"),
            _ => ("", "items"),
        };
        let listed = match members.get(first) {
            Some(list) => self.list(at, first, list)?,
            None => Vec::new(),
        };
        let rest = self.part(at, members, rest)?;
        let any = !listed.is_empty() || rest.is_some();
        Ok(any.then_some(Rule::Items { first: listed, rest }))
    }

    fn contains(&mut self, at: &str, members: &SchemaMembers) -> ReadResult<Option<Rule>> {
        if !members.contains_key("contains") {
            return Ok(None);
        }
        let limit = |keyword: &str, unless: u64| match members.get(keyword) {
            Some(value) if self.dialect > Draft::Draft7 => {
                size(value).ok_or_else(|| invalid(at, keyword, "is no length"))
            }
            _ => Ok(unless),
        };
        let (least, most) = (limit("minContains", 1)?, limit("maxContains", u64::MAX)?);
        Ok(Some(Rule::Contains { item: self.id(below(at, "contains"))?, least, most }))
    }

    fn members(&mut self, at: &str, members: &'a SchemaMembers) -> ReadResult<Option<Rule>> {
        let mut named = HashMap::new();
        if let Some(value) = members.get("properties") {
            named.extend(self.map(at, "properties", value)?);
        }
        let mut patterns = Vec::new();
        if let Some(value) = members.get("patternProperties") {
            for (name, id) in self.map(at, "patternProperties", value)? {
                patterns.push((self.pattern(at, "patternProperties", &name)?, id));
            }
        }
        let rest = self.part(at, members, "additionalProperties")?;
        let any = !named.is_empty() || !patterns.is_empty() || rest.is_some();
        Ok(any.then_some(Rule::Members { named, patterns, rest }))
    }

    fn pattern(&mut self, at: &str, keyword: &str, text: &str) -> ReadResult<Regex> {
        self.patterns += 1;
        if self.patterns > MAX_PATTERNS {
            return Err(SchemaFault::TooMany { what: "patterns", limit: MAX_PATTERNS });
        }
        pattern::compile(text).map_err(|what| invalid(at, keyword, what))
    }

    fn list(&mut self, at: &str, keyword: &str, value: &Value) -> ReadResult<Vec<NodeId>> {
        let list = value.as_array().ok_or_else(|| invalid(at, keyword, "is no list"))?;
        let at = below(at, keyword);
        (0..list.len()).map(|index| self.id(format!("{at}/{index}"))).collect()
    }

    fn map(&mut self, at: &str, keyword: &str, value: &Value) -> ReadResult<Vec<(String, NodeId)>> {
        let object = value.as_object().ok_or_else(|| invalid(at, keyword, "is no object"))?;
        let at = below(at, keyword);
        object.keys().map(|name| Ok((name.clone(), self.id(below(&at, name))?))).collect()
    }
}

fn invalid(at: &str, keyword: &str, what: impl Into<String>) -> SchemaFault {
    let at = if keyword.is_empty() { at.to_owned() } else { below(at, keyword) };
    SchemaFault::Invalid { at, what: what.into() }
}

fn unsupported(at: &str, keyword: &str) -> SchemaFault {
    SchemaFault::Unsupported { at: at.to_owned(), keyword: keyword.to_owned() }
}

/// The pointer to a member of what another points to.
fn below(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn kinds(value: &Value) -> Option<Vec<JsonType>> {
    match value {
        Value::String(name) => Some(vec![JsonType::named(name)?]),
        Value::Array(names) => names.iter().map(|name| JsonType::named(name.as_str()?)).collect(),
        _ => None,
    }
}

/// A whole number from zero on; `2.0` is one.
fn size(value: &Value) -> Option<u64> {
    let whole = |n: f64| (n >= 0.0 && n.fract() == 0.0).then_some(n as u64);
    value.as_u64().or_else(|| value.as_number().and_then(Number::as_f64).and_then(whole))
}

fn names(value: &Value) -> Option<Vec<String>> {
    let list = value.as_array()?.iter();
    list.map(|name| name.as_str().map(str::to_owned)).collect()
}

/// The path in a reference is part of an address, and written like one.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        bytes.push(match byte {
            b'%' => u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?,
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}
