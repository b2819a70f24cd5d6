//! What fits where the cursor stands: words of the shell, tools, arguments, their values.
//!
//! Pure: what the server offers, a line and a place in it go in. Must not ask the server.

use serde_json::Value;

use super::order::{LEVELS, WORDS};
use super::words::split;
use crate::arguments::{choices, parameters};
use crate::cmd::list::Offer;
use crate::sanitize;

/// From where on the line is replaced, and what may stand there. A word that is whole ends in a
/// blank.
pub(super) fn complete(offer: &Offer, line: &str, at: usize) -> (usize, Vec<String>) {
    let before = &line[..at];
    // A word that is being typed and has an open quote is its owner's to finish.
    let Ok(mut words) = split(before) else { return (at, Vec::new()) };
    let (typed, start) = match words.pop() {
        Some(last) if !before.ends_with(char::is_whitespace) => (last.text, last.start),
        Some(last) => {
            words.push(last);
            (String::new(), at)
        }
        None => (String::new(), at),
    };
    let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let candidates = match words.as_slice() {
        [] => whole(names().chain(tools(offer))),
        ["call" | "tools"] => whole(tools(offer)),
        ["prompt"] => whole(prompts(offer)),
        ["read" | "subscribe" | "unsubscribe"] => addresses(offer),
        ["log"] => whole(LEVELS.map(str::to_owned).into_iter()),
        ["call", tool, given @ ..] => arguments(offer, tool, given, &typed),
        ["prompt", name, given @ ..] => blanks(offer, name, given),
        [word, ..] if names().any(|name| name == *word) => Vec::new(),
        [tool, given @ ..] => arguments(offer, tool, given, &typed),
    };
    let fits = |word: &String| word.starts_with(&typed) && is_plain(word);
    (start, candidates.into_iter().filter(fits).collect())
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

/// Resources, and what templates begin with.
fn addresses(offer: &Offer) -> Vec<String> {
    let resources = offer.resources.iter().flatten().map(|resource| format!("{} ", resource.uri));
    let families = offer.templates.iter().flatten().filter_map(|template| {
        let fixed = template.uri_template.split('{').next()?;
        (!fixed.is_empty()).then(|| fixed.to_owned())
    });
    resources.chain(families).collect()
}

fn arguments(offer: &Offer, tool: &str, given: &[&str], typed: &str) -> Vec<String> {
    let Some(tool) = offer.tools.iter().flatten().find(|known| known.name == tool) else {
        return Vec::new();
    };
    let schema: Value = tool.input_schema.json().parse().unwrap_or(Value::Null);
    if let Some((key, _)) = typed.split_once('=') {
        let values = choices(&schema, key).into_iter();
        return values.map(|value| format!("{key}={} ", quoted(&value))).collect();
    }
    let used = |name: &str| given.iter().any(|pair| pair.split('=').next() == Some(name));
    let left = parameters(&schema).into_iter().filter(|p| p.kind.ends_with("[]") || !used(&p.name));
    left.map(|parameter| format!("{}=", parameter.name)).collect()
}

fn blanks(offer: &Offer, name: &str, given: &[&str]) -> Vec<String> {
    let prompt = offer.prompts.iter().flatten().find(|prompt| prompt.name == name);
    let takes = prompt.and_then(|prompt| prompt.arguments.as_deref()).unwrap_or_default();
    let used = |name: &str| given.iter().any(|pair| pair.split('=').next() == Some(name));
    let left = takes.iter().filter(|argument| !used(&argument.name));
    left.map(|argument| format!("{}=", argument.name)).collect()
}

fn whole(words: impl Iterator<Item = String>) -> Vec<String> {
    words.map(|word| format!("{word} ")).collect()
}

/// A value as it has to be typed.
fn quoted(value: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_.:/@%+,".contains(letter);
    if !value.is_empty() && value.chars().all(plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\'', "'\\''"))
}

/// SEC-05: what would steer the terminal is not offered.
fn is_plain(word: &str) -> bool {
    matches!(sanitize::line(word), std::borrow::Cow::Borrowed(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use taut::{Prompt, PromptArgument, Resource, ResourceTemplate, Tool};

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
            ]),
            resources: Some(vec![Resource::new("demo://a", "a"), Resource::new("demo://b", "b")]),
            templates: Some(vec![ResourceTemplate::new("demo://city/{city}", "c")]),
            prompts: Some(vec![
                Prompt::new("greet")
                    .arguments([PromptArgument::new("name"), PromptArgument::new("language")]),
            ]),
        }
    }

    #[test]
    fn names_arguments_and_values_are_completed_from_the_schema() {
        let table: [(&str, usize, &[&str]); 20] = [
            ("ord", 0, &["order ", "ordeal "]),
            ("re", 0, &["resources ", "read ", "restart ", "read "]),
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
        ];
        for (line, start, words) in table {
            let (from, found) = complete(&offer(), line, line.len());
            assert_eq!(
                (from, found.as_slice()),
                (start, words.map_to_strings().as_slice()),
                "{line}"
            );
        }
        assert_eq!(complete(&offer(), "order size=x", 7).1, ["size="]);
        assert_eq!(complete(&offer(), "order size='l", 13), (13, Vec::new()));
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
