//! One check: a value against the rules, step by step, until one does not hold or there are too many.
//!
//! Stops at the first rule that does not hold. Every step is counted before it is made.

use std::fmt::Write;
use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::compare::{compare, is_multiple, numbers};
use super::rule::{JsonType, Limit, Node, NodeId, Rule};
use super::{MAX_NESTING, Misfit, Unfit};

/// How much of what a schema lists is repeated in a message, in characters.
const LONGEST_LIST: usize = 200;

/// Boxed: a check calls itself for every part of a value, and a large result would take the stack of each call.
type CheckResult<T = ()> = Result<T, Box<Unfit>>;

/// Nothing if a rule holds, or what it wants.
type Holds = CheckResult<Option<String>>;

/// A step down into a value.
enum PathStep<'v> {
    Member(&'v str),
    Item(usize),
}

pub(super) struct CheckRun<'s, 'v> {
    nodes: &'s [Node],
    left: u64,
    nesting: usize,
    path: Vec<PathStep<'v>>,
    /// How many alternatives are being tried. What does not fit one of them is not reported.
    trying: usize,
}

impl<'s, 'v> CheckRun<'s, 'v> {
    pub(super) fn new(nodes: &'s [Node], steps: u64) -> Self {
        Self { nodes, left: steps, nesting: 0, path: Vec::new(), trying: 0 }
    }

    /// Whether the whole value fits the whole schema.
    pub(super) fn check(mut self, value: &'v Value) -> CheckResult {
        self.apply(0, value)
    }

    fn spend(&mut self, steps: usize) -> CheckResult {
        self.left = self.left.checked_sub(steps as u64).ok_or_else(|| Box::new(Unfit::TooMuch))?;
        Ok(())
    }

    fn apply(&mut self, id: NodeId, value: &'v Value) -> CheckResult {
        let nodes = self.nodes;
        let Some(node) = nodes.get(id) else { return Ok(()) };
        if self.nesting == MAX_NESTING {
            return Err(Box::new(Unfit::TooMuch));
        }
        self.nesting += 1;
        self.spend(1 + node.rules.len())?;
        for (keyword, rule) in &node.rules {
            match self.holds(rule, value)? {
                None => {}
                Some(wanted) => return Err(self.misfit(node, keyword, wanted)),
            }
        }
        self.nesting -= 1;
        Ok(())
    }

    /// What is wanted, in words, if anybody is going to read them.
    fn unless(&self, fits: bool, words: impl FnOnce() -> String) -> Option<String> {
        (!fits).then(|| if self.trying > 0 { String::new() } else { words() })
    }

    fn misfit(&self, node: &Node, keyword: &str, wanted: String) -> Box<Unfit> {
        if self.trying > 0 {
            let (path, rule) = (String::new(), String::new());
            return Box::new(Unfit::Misfit(Misfit { path, rule, wanted }));
        }
        let mut path = String::new();
        for step in &self.path {
            // Writing to a string cannot fail.
            let _ = match step {
                PathStep::Member(name) => {
                    write!(path, "/{}", name.replace('~', "~0").replace('/', "~1"))
                }
                PathStep::Item(index) => write!(path, "/{index}"),
            };
        }
        let rule =
            if keyword.is_empty() { node.at.clone() } else { format!("{}/{keyword}", node.at) };
        Box::new(Unfit::Misfit(Misfit { path, rule, wanted }))
    }

    /// Applies a subschema to a part of the value.
    fn below(&mut self, step: PathStep<'v>, id: NodeId, value: &'v Value) -> CheckResult {
        self.path.push(step);
        self.apply(id, value)?;
        self.path.pop();
        Ok(())
    }

    /// Whether a subschema fits, without ending the check if it does not.
    fn fits(&mut self, id: NodeId, value: &'v Value) -> CheckResult<bool> {
        let (nesting, depth) = (self.nesting, self.path.len());
        self.trying += 1;
        let verdict = self.apply(id, value);
        self.trying -= 1;
        match verdict {
            Ok(()) => Ok(true),
            Err(unfit) if matches!(*unfit, Unfit::Misfit(_)) => {
                self.nesting = nesting;
                self.path.truncate(depth);
                Ok(false)
            }
            Err(unfit) => Err(unfit),
        }
    }

    /// How many of these fit; no more are tried than `enough`.
    fn count(&mut self, ids: &[NodeId], value: &'v Value, enough: usize) -> CheckResult<usize> {
        let mut found = 0;
        for id in ids {
            found += usize::from(self.fits(*id, value)?);
            if found == enough {
                break;
            }
        }
        Ok(found)
    }

    /// Nothing if the rule holds, or what it wants. Rules that go down into
    /// a value are kept apart from those that do not, so that each nested call uses little stack.
    fn holds(&mut self, rule: &'s Rule, value: &'v Value) -> Holds {
        match (rule, value) {
            (Rule::Items { first, rest }, Value::Array(items)) => self.items(first, *rest, items),
            (Rule::Contains { item, least, most }, Value::Array(items)) => {
                self.contains(*item, *least..=*most, items)
            }
            (Rule::Members { .. }, Value::Object(members)) => self.members(rule, members),
            (Rule::Names(id), Value::Object(members)) => self.names(*id, members),
            (Rule::When(name, id), Value::Object(members)) if members.contains_key(name) => {
                self.apply(*id, value).map(|()| None)
            }
            (Rule::All(ids), _) => {
                ids.iter().try_for_each(|id| self.apply(*id, value)).map(|()| None)
            }
            (Rule::Any(ids), _) => {
                self.count(ids, value, 1).map(|n| self.unless(n == 1, || none(ids)))
            }
            (Rule::One(ids), _) => match self.count(ids, value, 2)? {
                2 => Ok(Some("must fit only one of the alternatives, and fits more".to_owned())),
                n => Ok(self.unless(n == 1, || none(ids))),
            },
            (Rule::Not(id), _) => {
                let fits = self.fits(*id, value)?;
                Ok(fits.then(|| "must not be what the schema rules out".to_owned()))
            }
            (Rule::If { test, then, otherwise }, _) => {
                let next = if self.fits(*test, value)? { then } else { otherwise };
                next.map_or(Ok(()), |id| self.apply(id, value)).map(|()| None)
            }
            _ => self.asserted(rule, value),
        }
    }

    fn items(&mut self, first: &[NodeId], rest: Option<NodeId>, items: &'v [Value]) -> Holds {
        for (index, item) in items.iter().enumerate() {
            if let Some(id) = first.get(index).copied().or(rest) {
                self.below(PathStep::Item(index), id, item)?;
            }
        }
        Ok(None)
    }

    fn contains(&mut self, id: NodeId, wanted: RangeInclusive<u64>, items: &'v [Value]) -> Holds {
        let mut found = 0;
        for item in items {
            found += u64::from(self.fits(id, item)?);
        }
        let least = *wanted.start();
        Ok(self.unless(wanted.contains(&found), || {
            format!("must have {least} or more items of a kind, not too many; has {found}")
        }))
    }

    fn members(&mut self, rule: &'s Rule, members: &'v Map<String, Value>) -> Holds {
        let Rule::Members { named, patterns, rest } = rule else { return Ok(None) };
        for (name, member) in members {
            self.spend(1 + patterns.len() * (1 + name.len() / 8))?;
            let own = named.get(name);
            let mut met = own.is_some();
            if let Some(id) = own {
                self.below(PathStep::Member(name), *id, member)?;
            }
            for (_, id) in patterns.iter().filter(|(pattern, _)| pattern.is_match(name)) {
                met = true;
                self.below(PathStep::Member(name), *id, member)?;
            }
            if let Some(id) = rest.filter(|_| !met) {
                self.below(PathStep::Member(name), id, member)?;
            }
        }
        Ok(None)
    }

    fn names(&mut self, id: NodeId, members: &Map<String, Value>) -> Holds {
        for name in members.keys() {
            // The name is checked as a value of its own: it has no place in the value that is checked.
            let text = Value::String(name.clone());
            let Self { nodes, left, nesting, .. } = *self;
            let mut run = CheckRun { nodes, left, nesting, path: Vec::new(), trying: 0 };
            let verdict = run.fits(id, &text);
            self.left = run.left;
            if !verdict? {
                return Ok(Some(format!("must not have a member named {name:?}")));
            }
        }
        Ok(None)
    }

    /// Rules that look at a value and apply nothing to its parts.
    fn asserted(&mut self, rule: &'s Rule, value: &'v Value) -> Holds {
        Ok(match (rule, value) {
            (Rule::Never, _) => Some("must not be there".to_owned()),
            (Rule::Type(kinds), _) => {
                let is = JsonType::of(value);
                let fits = kinds.iter().any(|kind| kind.accepts(is));
                self.unless(fits, || wrong_type(kinds, is))
            }
            (Rule::Enum(options), _) => self.none_of(options, value)?,
            (Rule::Bound(bound, (orders, words)), Value::Number(number)) => {
                let fits = orders.contains(&numbers(number, bound));
                self.unless(fits, || format!("must be {words} {bound}"))
            }
            (Rule::MultipleOf(of), Value::Number(number)) => {
                self.unless(is_multiple(number, of), || format!("must be a multiple of {of}"))
            }
            (Rule::Size(kind, size, limit), _) => self.wrong_size(*kind, *size, *limit, value)?,
            (Rule::Pattern(pattern), Value::String(text)) => {
                self.spend(text.len() / 8)?;
                let fits = pattern.is_match(text);
                self.unless(fits, || format!("must match {:?}", pattern.as_str()))
            }
            (Rule::Unique, Value::Array(items)) => self.repeated(items)?,
            (Rule::Required(names), Value::Object(members)) => {
                self.spend(names.len())?;
                let missing = names.iter().find(|name| !members.contains_key(*name));
                missing.map(|name| format!("must have the member {name:?}"))
            }
            (Rule::Needs(name, others), Value::Object(members)) if members.contains_key(name) => {
                self.spend(others.len())?;
                let missing = others.iter().find(|name| !members.contains_key(*name));
                missing.map(|other| format!("must have {other:?} beside {name:?}"))
            }
            // A rule about another kind of value.
            _ => None,
        })
    }

    fn none_of(&mut self, options: &[Value], value: &Value) -> Holds {
        let mut spent = 0;
        let found =
            options.iter().any(|option| compare(option, value, &mut spent, self.left).is_eq());
        self.spend(usize::try_from(spent).unwrap_or(usize::MAX))?;
        Ok(self.unless(found, || {
            let list = options.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let short: String = list.chars().take(LONGEST_LIST).collect();
            let more = if short.len() < list.len() { " …" } else { "" };
            let words = if options.len() == 1 { "must be" } else { "must be one of" };
            format!("{words} {short}{more}")
        }))
    }

    fn repeated(&mut self, items: &[Value]) -> Holds {
        let (mut spent, limit) = (0, self.left);
        let mut sorted: Vec<&Value> = items.iter().collect();
        sorted.sort_by(|a, b| compare(a, b, &mut spent, limit));
        let twice =
            sorted.windows(2).any(|pair| compare(pair[0], pair[1], &mut spent, limit).is_eq());
        self.spend(usize::try_from(spent).unwrap_or(usize::MAX))?;
        Ok(twice.then(|| "must not have an item twice".to_owned()))
    }

    fn wrong_size(&mut self, kind: JsonType, size: u64, limit: Limit, value: &Value) -> Holds {
        let (has, things) = match (kind, value) {
            (JsonType::Text, Value::String(text)) => {
                self.spend(text.len() / 64)?;
                (text.chars().count(), "characters")
            }
            (JsonType::List, Value::Array(items)) => (items.len(), "items"),
            (JsonType::Object, Value::Object(members)) => (members.len(), "members"),
            _ => return Ok(None),
        };
        let (orders, words) = limit;
        let fits = orders.contains(&(has as u64).cmp(&size));
        Ok(self.unless(fits, || format!("must have {words} {size} {things}, has {has}")))
    }
}

fn wrong_type(kinds: &[JsonType], is: JsonType) -> String {
    let words: Vec<&str> = kinds.iter().map(|kind| kind.words()).collect();
    format!("must be {}, is {}", words.join(" or "), is.words())
}

fn none(ids: &[NodeId]) -> String {
    format!("must fit one of {} alternatives, and fits none", ids.len())
}
