//! What fits where the cursor stands: words of the shell, tools, arguments, their values.
//!
//! Pure: what the server offers, a line and a place in it go in. Must not ask the server; what it could
//! be asked is a [`Question`], and `interact.rs` asks it.

use std::borrow::Cow;

use serde_json::Value;
use taut::types::{CompletionReference, PromptReference, ResourceReference};

use super::order::{LEVELS, WORDS};
use super::words::{quoted, split_open};
use crate::cmd::list::Offer;
use crate::gate::escape;
use crate::schema::{Schema, Shape};

/// Something that may stand there, as it is meant and not as it is typed.
struct Fit {
    key: Option<String>,
    text: String,
    /// Whether nothing can follow in the same word.
    whole: bool,
}

/// What the server can be asked about the word where the cursor stands.
#[derive(Debug, PartialEq)]
pub(super) struct Question {
    pub(super) reference: CompletionReference,
    pub(super) argument: String,
    pub(super) value: String,
    pub(super) chosen: Vec<(String, String)>,
    /// What stands around an answer in the word.
    around: (String, String),
}

impl Question {
    fn fit(&self, answer: &str) -> Fit {
        let (before, after) = &self.around;
        match &self.reference {
            CompletionReference::Prompt(_) => {
                Fit { key: Some(self.argument.clone()), text: answer.to_owned(), whole: true }
            }
            _ => Fit {
                key: None,
                text: format!("{before}{answer}{after}"),
                whole: !after.contains('{') && !after.ends_with('/'),
            },
        }
    }
}

/// The word where the cursor stands, where it begins, the words before it, and its quote.
fn word_at(line: &str, at: usize) -> Option<(String, usize, Vec<String>, Option<char>)> {
    let before = &line[..at];
    let (mut words, quote) = split_open(before).ok()?;
    let begun = quote.is_some() || !before.ends_with(char::is_whitespace);
    let (typed, start) = match words.pop_if(|_| begun) {
        Some(last) => (last.text, last.start),
        None => (String::new(), at),
    };
    Some((typed, start, words.into_iter().map(|word| word.text).collect(), quote))
}

/// What to ask the server, if this word is one that it can complete.
pub(super) fn question(offer: &Offer, line: &str, at: usize) -> Option<Question> {
    let (typed, _, words, _) = word_at(line, at)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["prompt" | "complete", name, given @ ..] => {
            let (key, value) = typed.split_once('=')?;
            offer.prompts.iter().flatten().find(|prompt| prompt.name == *name)?;
            let chosen = given.iter().filter_map(|pair| pair.split_once('='));
            Some(Question {
                reference: CompletionReference::Prompt(PromptReference::new(*name)),
                argument: key.to_owned(),
                value: value.to_owned(),
                chosen: chosen.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
                around: Default::default(),
            })
        }
        ["read" | "subscribe"] => {
            let templates = offer.templates.iter().flatten();
            templates.filter_map(|template| of_template(&template.uri_template, &typed)).next()
        }
        _ => None,
    }
}

/// Which variable of a template is being typed, if the address so far fits it.
fn of_template(template: &str, typed: &str) -> Option<Question> {
    let (mut rest, mut left) = (template, typed);
    let mut chosen = Vec::new();
    loop {
        let (literal, after) = rest.split_once('{')?;
        left = left.strip_prefix(literal)?;
        let (name, after) = after.split_once('}')?;
        let next = after.split('{').next().unwrap_or_default();
        let end = if next.is_empty() { None } else { left.find(next) };
        let Some(end) = end else {
            let done = &typed[..typed.len() - left.len()];
            return Some(Question {
                reference: CompletionReference::Resource(ResourceReference::new(template)),
                argument: name.to_owned(),
                value: left.to_owned(),
                chosen,
                around: (done.to_owned(), next.to_owned()),
            });
        };
        chosen.push((name.to_owned(), left[..end].to_owned()));
        (rest, left) = (after, &left[end..]);
    }
}

/// From where on the line is replaced, and what may stand there: what the schema says, or else what the
/// server has answered. A word that is whole ends in a blank.
pub(super) fn complete(
    offer: &Offer,
    line: &str,
    at: usize,
    answered: Option<(&Question, &[String])>,
) -> (usize, Vec<String>) {
    let Some((typed, start, words, quote)) = word_at(line, at) else { return (at, Vec::new()) };
    let before = &line[..at];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let fits = match words.as_slice() {
        [] => whole(names().chain(tools(offer))),
        ["call" | "tools"] => whole(tools(offer)),
        ["prompt"] => whole(prompts(offer)),
        ["complete"] => whole(prompts(offer).chain(templates(offer))),
        ["read" | "subscribe" | "unsubscribe"] => addresses(offer),
        ["log"] => whole(LEVELS.map(str::to_owned).into_iter()),
        ["call", tool, given @ ..] => arguments(offer, tool, given, &typed),
        ["prompt" | "complete", name, given @ ..] => blanks(offer, name, given),
        [word, ..] if names().any(|name| name == *word) => Vec::new(),
        [tool, given @ ..] => arguments(offer, tool, given, &typed),
    };
    let mut fits = fits;
    fits.retain(|fit| fit.begins_with(&typed));
    if let Some((question, answers)) = answered {
        // The server knows what begins like this, in whatever letters.
        fits.extend(answers.iter().map(|answer| question.fit(answer)));
    }
    let fits = fits.iter().filter(|fit| fit.is_plain());
    // A quote that was begun at a value belongs to the value.
    let quote = |fit: &Fit| quote.filter(|_| fit.key.is_none() || before[start..].contains('='));
    (start, fits.map(|fit| fit.written(quote(fit))).collect())
}

impl Fit {
    fn begins_with(&self, typed: &str) -> bool {
        match &self.key {
            Some(key) => format!("{key}={}", self.text).starts_with(typed),
            None => self.text.starts_with(typed),
        }
    }

    /// SEC-05: what would steer the terminal is not offered.
    fn is_plain(&self) -> bool {
        let plain = |text: &str| matches!(escape::line(text), Cow::Borrowed(_));
        plain(&self.text) && self.key.as_deref().is_none_or(plain)
    }

    /// As it has to be typed.
    fn written(&self, quote: Option<char>) -> String {
        let key = self.key.as_ref().map(|key| format!("{}=", quoted(key, None)));
        let key = key.unwrap_or_default();
        match self.whole {
            true => format!("{key}{} ", quoted(&self.text, quote)),
            false if self.text.is_empty() => key,
            // Whoever goes on typing closes the quote.
            false => format!("{key}{}{}", quote.map(String::from).unwrap_or_default(), self.text),
        }
    }
}

fn names() -> impl Iterator<Item = String> {
    WORDS.iter().map(|(name, ..)| (*name).to_owned())
}

fn tools(offer: &Offer) -> impl Iterator<Item = String> {
    offer.tools.iter().flatten().map(|tool| tool.name.clone())
}

fn prompts(offer: &Offer) -> impl Iterator<Item = String> {
    offer.prompts.iter().flatten().map(|prompt| prompt.name.clone())
}

fn templates(offer: &Offer) -> impl Iterator<Item = String> {
    offer.templates.iter().flatten().map(|template| template.uri_template.clone())
}

/// Resources, and what templates begin with.
fn addresses(offer: &Offer) -> Vec<Fit> {
    let resources = whole(offer.resources.iter().flatten().map(|resource| resource.uri.clone()));
    let families = offer.templates.iter().flatten().filter_map(|template| {
        let text = template.uri_template.split('{').next()?.to_owned();
        (!text.is_empty()).then_some(Fit { key: None, text, whole: false })
    });
    resources.into_iter().chain(families).collect()
}

fn arguments(offer: &Offer, tool: &str, given: &[&str], typed: &str) -> Vec<Fit> {
    let Some(tool) = offer.tools.iter().flatten().find(|known| known.name == tool) else {
        return Vec::new();
    };
    let schema: Value = tool.input_schema.json().parse().unwrap_or(Value::Null);
    let schema = Schema::of(&schema);
    if let Some((key, _)) = typed.split_once('=') {
        let values = schema.field(key).map(Schema::values).unwrap_or_default().into_iter();
        return values.map(|text| Fit { key: Some(key.to_owned()), text, whole: true }).collect();
    }
    let used = |name: &str| given.iter().any(|pair| pair.split('=').next() == Some(name));
    let repeats = |schema: Schema<'_>| matches!(schema.shape(), Some(Shape::List { .. }));
    let fields = schema.fields().into_iter();
    let left = fields.filter(|field| repeats(field.schema) || !used(field.name));
    left.map(|field| key(field.name)).collect()
}

fn blanks(offer: &Offer, name: &str, given: &[&str]) -> Vec<Fit> {
    let prompt = offer.prompts.iter().flatten().find(|prompt| prompt.name == name);
    let takes = prompt.and_then(|prompt| prompt.arguments.as_deref()).unwrap_or_default();
    let used = |name: &str| given.iter().any(|pair| pair.split('=').next() == Some(name));
    let left = takes.iter().filter(|argument| !used(&argument.name));
    left.map(|argument| key(argument.name.clone())).collect()
}

fn whole(words: impl Iterator<Item = String>) -> Vec<Fit> {
    words.map(|text| Fit { key: None, text, whole: true }).collect()
}

fn key(name: impl Into<String>) -> Fit {
    Fit { key: Some(name.into()), text: String::new(), whole: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use taut::types::PromptArgument;
    use taut::{Prompt, Resource, ResourceTemplate, Tool};

    fn offer() -> Offer {
        let schema = json!({ "type": "object", "required": ["size"], "properties": {
            "size": { "$ref": "#/$defs/Size" },
            "milk": { "type": "boolean" },
            "mode": { "oneOf": [{ "const": "very hot" }, { "const": "cold" }] },
            "tags": { "type": "array", "items": { "type": "string", "enum": ["a", "b"] } },
        }, "$defs": { "Size": { "type": "string", "enum": ["small", "large"] } } });
        Offer {
            tools: Some(vec![
                Tool::new("order").input_schema(schema),
                Tool::new("ordeal"),
                Tool::new("read"),
                Tool::new("bad\u{1b}[2J"),
                Tool::new("two words").input_schema(json!({ "properties": { "my key": {} } })),
            ]),
            resources: Some(vec![Resource::new("demo://a", "a"), Resource::new("demo://b", "b")]),
            templates: Some(vec![ResourceTemplate::new("demo://city/{city}", "c")]),
            prompts: Some(vec![
                Prompt::new("greet")
                    .arguments([PromptArgument::new("name"), PromptArgument::new("language")]),
            ]),
            ..Offer::default()
        }
    }

    #[test]
    fn names_arguments_and_values_are_completed_from_the_schema() {
        let table: [(&str, usize, &[&str]); 34] = [
            ("ord", 0, &["order ", "ordeal "]),
            ("re", 0, &["resources ", "read ", "restart ", "read "]),
            ("comp", 0, &["complete "]),
            ("complete gr", 9, &["greet "]),
            ("complete demo://", 9, &["demo://city/{city} "]),
            ("complete greet name=x ", 22, &["language="]),
            ("bad", 0, &[]),
            ("qui", 0, &["quit "]),
            ("call ord", 5, &["order ", "ordeal "]),
            ("tools ordea", 6, &["ordeal "]),
            ("order ", 6, &["size=", "milk=", "mode=", "tags="]),
            ("order s", 6, &["size="]),
            ("order size=large ", 17, &["milk=", "mode=", "tags="]),
            ("order tags=a ta", 13, &["tags="]),
            ("order size=", 6, &["size=small ", "size=large "]),
            ("call order size=l", 11, &["size=large "]),
            ("order milk=", 6, &["milk=true ", "milk=false "]),
            ("order mode=", 6, &["mode='very hot' ", "mode=cold "]),
            ("order tags=", 6, &["tags=a ", "tags=b "]),
            ("order nothing=", 6, &[]),
            ("read demo://", 5, &["demo://a ", "demo://b ", "demo://city/"]),
            ("prompt greet name=x ", 20, &["language="]),
            ("log wa", 4, &["warning "]),
            ("quit ", 5, &[]),
            // Names and values with a blank, quoted as they were begun.
            ("two", 0, &["'two words' "]),
            ("\"two", 0, &["\"two words\" "]),
            ("'two w", 0, &["'two words' "]),
            ("two\\ w", 0, &["'two words' "]),
            ("call \"two ", 5, &["\"two words\" "]),
            ("'two words' ", 12, &["'my key'="]),
            ("order mode=v", 6, &["mode='very hot' "]),
            ("order mode=\"very h", 6, &["mode=\"very hot\" "]),
            ("order size='l", 6, &["size='large' "]),
            ("read 'demo://c", 5, &["'demo://city/"]),
        ];
        for (line, start, words) in table {
            let (from, found) = complete(&offer(), line, line.len(), None);
            assert_eq!(
                (from, found.as_slice()),
                (start, words.map_to_strings().as_slice()),
                "{line}"
            );
        }
        assert_eq!(complete(&offer(), "order size=x", 7, None).1, ["size="]);
    }

    #[test]
    fn what_only_the_server_knows_is_asked_of_it() {
        let asked = |line: &str| question(&offer(), line, line.len());
        let with = |line: &str, answers: &[&str]| {
            let answers: Vec<String> = answers.iter().map(|answer| (*answer).to_owned()).collect();
            complete(&offer(), line, line.len(), asked(line).as_ref().map(|q| (q, &answers[..]))).1
        };
        let question = asked("prompt greet name=x language=D").unwrap();
        assert_eq!((question.argument.as_str(), question.value.as_str()), ("language", "D"));
        assert_eq!(question.chosen, [("name".to_owned(), "x".to_owned())]);
        assert_eq!(
            with("prompt greet language=d", &["Dutch", "b\u{1b}[2Jad"]),
            ["language=Dutch "]
        );
        let question = asked("read demo://city/B").unwrap();
        assert_eq!((question.argument.as_str(), question.value.as_str()), ("city", "B"));
        assert_eq!(
            with("read demo://city/B", &["Bern", "Berlin"]),
            ["demo://city/Bern ", "demo://city/Berlin "]
        );
        let two = of_template("x://{a}/{b}.md", "x://one/tw").unwrap();
        assert_eq!((two.argument.as_str(), two.value.as_str()), ("b", "tw"));
        assert_eq!(two.chosen, [("a".to_owned(), "one".to_owned())]);
        for line in ["order size=l", "prompt nobody x=", "read other://", "prompt greet lang"] {
            assert_eq!(asked(line), None, "{line}");
        }
    }

    trait MapToStrings {
        fn map_to_strings(&self) -> Vec<String>;
    }

    impl MapToStrings for [&str] {
        fn map_to_strings(&self) -> Vec<String> {
            self.iter().map(|word| (*word).to_owned()).collect()
        }
    }
}
