//! The file of `--answer`: prepared answers to the questions of a server.
//!
//! A list has one entry per question; a map has one value per field, for every form. Reads the file and
//! is pure otherwise. Must not print or ask.

use std::collections::VecDeque;
use std::path::Path;

use serde_json::{Map, Value};
use taut::types::JsonObject;

use crate::files;
use crate::forms::Form;
use crate::problem::{Problem, without_place};

/// The members of a map that answer something else than a form.
pub(crate) const SAMPLING: &str = "$sampling";
pub(crate) const URL: &str = "$url";

/// What the file says to a question.
#[derive(Debug, PartialEq)]
pub(crate) enum Said<T> {
    Answer(T),
    Decline,
    Cancel,
}

/// What a model is made to say.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Speech {
    pub(crate) text: String,
    pub(crate) model: Option<String>,
}

/// The answers of one run.
#[derive(Debug)]
pub(crate) struct Answers {
    fields: Option<Map<String, Value>>,
    /// The list; of a map, what it says to a model.
    queue: VecDeque<Value>,
    /// Of a map, what it says to a page.
    page: Option<Value>,
}

impl Answers {
    pub(crate) fn load(path: &Path) -> Result<Self, Problem> {
        let text = match path == "-" {
            true => files::stdin(files::MESSAGE)?.map_err(|error| Problem::File {
                what: "reading the answers from stdin".to_owned(),
                error,
            })?,
            false => files::text(path, files::MESSAGE)?,
        };
        Self::parse(&text).map_err(|why| Problem::Usage {
            what: format!("{} has no answers: {why}", path.display()),
            next: Some(
                "a list of answers in order, or a map of fields: {\"size\": \"large\"}".to_owned(),
            ),
        })
    }

    fn parse(text: &str) -> Result<Self, String> {
        // A file without a word answers nothing, and shows what is asked.
        let value: Option<Value> = if text.trim().is_empty() {
            None
        } else {
            serde_saphyr::from_str(text).map_err(one_line)?
        };
        let none = Self { fields: None, queue: VecDeque::new(), page: None };
        match value {
            None | Some(Value::Null) => Ok(none),
            Some(Value::Array(all)) => Ok(Self { queue: all.into(), ..none }),
            Some(Value::Object(mut fields)) => {
                let queue = match fields.remove(SAMPLING) {
                    Some(Value::Array(all)) => all.into(),
                    one => one.into_iter().collect(),
                };
                let page = fields.remove(URL);
                Ok(Self { fields: Some(fields), queue, page })
            }
            // `echo accept | taut call … --answer -`
            Some(Value::String(text)) if !text.contains(char::is_whitespace) => {
                Ok(Self { queue: [Value::String(text)].into(), ..none })
            }
            Some(_) => Err("it is neither a list nor a map".to_owned()),
        }
    }

    /// Whether the file is a map of fields, not a list of answers in order.
    pub(crate) fn is_map(&self) -> bool {
        self.fields.is_some()
    }

    /// Whether it has something to say to a model that is asked.
    pub(crate) fn has_speech(&self) -> bool {
        self.queue
            .iter()
            .any(|entry| speech(entry).is_ok_and(|said| matches!(said, Said::Answer(_))))
    }

    /// Whether it agrees to visit a page.
    pub(crate) fn has_consent(&self) -> bool {
        self.page.iter().chain(&self.queue).any(|entry| entry == "accept")
    }

    /// What it says to a form; nothing if it says nothing.
    pub(crate) fn form(&mut self, form: &Form) -> Option<Result<Said<JsonObject>, String>> {
        let (given, strict) = match &self.fields {
            // A map has fields for all forms; those of this one are taken.
            Some(fields) => (Value::Object(fields.clone()), false),
            None => (self.queue.pop_front()?, true),
        };
        Some(match word(&given) {
            Some(said) => Ok(said),
            None => {
                let empty = Map::new();
                let values = match &given {
                    Value::Object(values) => values,
                    Value::String(accept) if accept == "accept" => &empty,
                    other => return Some(Err(format!("{other} is no answer to a form"))),
                };
                form.fill(values, strict).map(Said::Answer).map_err(|mistakes| {
                    let each = mistakes.iter().map(|(name, why)| format!("{name}: {why}"));
                    each.collect::<Vec<_>>().join("; ")
                })
            }
        })
    }

    /// What it says to a page.
    pub(crate) fn page(&mut self) -> Option<Result<Said<()>, String>> {
        let given = match (&self.page, &self.fields) {
            (Some(page), _) => page.clone(),
            (None, Some(_)) => return None,
            (None, None) => self.queue.pop_front()?,
        };
        Some(match word(&given) {
            Some(said) => Ok(said),
            None if given == "accept" => Ok(Said::Answer(())),
            None => Err(format!("{given} is no answer to a page; accept, decline or cancel is")),
        })
    }

    /// What it makes a model say.
    pub(crate) fn speech(&mut self) -> Option<Result<Said<Speech>, String>> {
        self.queue.pop_front().map(|given| speech(&given))
    }
}

fn speech(given: &Value) -> Result<Said<Speech>, String> {
    if let Some(said) = word(given) {
        return Ok(said);
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match given {
        Value::String(text) if text != "accept" => {
            Ok(Said::Answer(Speech { text: text.clone(), model: None }))
        }
        Value::Object(members) if members.get("text").is_some_and(Value::is_string) => {
            let text_of = |name| members.get(name).and_then(text);
            Ok(Said::Answer(Speech {
                text: text_of("text").unwrap_or_default(),
                model: text_of("model"),
            }))
        }
        other => Err(format!("{other} is no answer of a model; text is")),
    }
}

/// "No" in either way.
fn word<T>(given: &Value) -> Option<Said<T>> {
    match given.as_str()? {
        "decline" => Some(Said::Decline),
        "cancel" => Some(Said::Cancel),
        _ => None,
    }
}

/// `line 1, column 2: unclosed bracket '{'`, without a picture of it.
fn one_line(error: serde_saphyr::Error) -> String {
    let words = error.without_snippet().to_string();
    let words = without_place(&words).split_whitespace().collect::<Vec<_>>().join(" ");
    match error.location() {
        Some(at) => format!("line {}, column {}: {words}", at.line(), at.column()),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn form() -> Form {
        let schema = json!({ "type": "object", "required": ["size"], "properties": {
            "size": { "type": "string", "enum": ["small", "large"] },
            "milk": { "type": "boolean", "default": true },
        } });
        Form::of(&serde_json::from_value(schema).unwrap())
    }

    fn content(value: Value) -> Option<Result<Said<JsonObject>, String>> {
        Some(Ok(Said::Answer(value.as_object().unwrap().clone())))
    }

    #[test]
    fn a_list_is_used_up_in_order_whatever_is_asked() {
        let text = "- size: large\n  milk: no\n- decline\n- a poem\n- accept\n- cancel\n- size: huge\n\
                    - {size: small, suger: 1}\n- 7\n";
        let mut answers = Answers::parse(text).unwrap();
        assert!(answers.has_speech() && answers.has_consent());
        assert_eq!(answers.form(&form()), content(json!({ "size": "large", "milk": false })));
        assert_eq!(answers.form(&form()), Some(Ok(Said::Decline)));
        let poem = Speech { text: "a poem".to_owned(), model: None };
        assert_eq!(answers.speech(), Some(Ok(Said::Answer(poem))));
        assert_eq!(answers.page(), Some(Ok(Said::Answer(()))));
        assert_eq!(answers.page(), Some(Ok(Said::Cancel)));
        let said = answers.form(&form()).unwrap().unwrap_err();
        assert_eq!(said, "size: \"huge\" is not one of them");
        let said = answers.form(&form()).unwrap().unwrap_err();
        assert_eq!(said, "suger: the form has no such field");
        assert_eq!(answers.form(&form()).unwrap().unwrap_err(), "7 is no answer to a form");
        assert_eq!(answers.form(&form()), None);
    }

    #[test]
    fn a_map_answers_every_form_that_has_its_fields() {
        let text = r#"{ "size": "large", "right": true, "$sampling": ["one", { "text": "two", "model": "m" }], "$url": "accept" }"#;
        let mut answers = Answers::parse(text).unwrap();
        assert!(answers.has_speech() && answers.has_consent());
        for _ in 0..2 {
            assert_eq!(answers.form(&form()), content(json!({ "size": "large", "milk": true })));
        }
        assert_eq!(answers.page(), Some(Ok(Said::Answer(()))));
        let said = |answers: &mut Answers| match answers.speech() {
            Some(Ok(Said::Answer(speech))) => (speech.text, speech.model),
            other => panic!("{other:?}"),
        };
        assert_eq!(said(&mut answers), ("one".to_owned(), None));
        assert_eq!(said(&mut answers), ("two".to_owned(), Some("m".to_owned())));
        assert_eq!(answers.speech(), None);
        let mut answers = Answers::parse("right: true").unwrap();
        assert!(!answers.has_speech() && !answers.has_consent());
        let said = answers.form(&form()).unwrap().unwrap_err();
        assert_eq!(said, "size: it has to be filled in");
        assert_eq!(answers.page(), None);
    }

    #[test]
    fn an_empty_file_answers_nothing_and_a_broken_one_is_refused() {
        for text in ["", " \n", "# nothing\n", "null"] {
            assert_eq!(Answers::parse(text).unwrap().form(&form()), None, "{text:?}");
        }
        for text in ["just words", "12", "a: [", "{\"a\": 1"] {
            assert!(Answers::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn accept_takes_the_defaults() {
        let schema =
            json!({ "type": "object", "properties": { "n": { "type": "integer", "default": 3 } } });
        let form = Form::of(&serde_json::from_value(schema).unwrap());
        let mut answers = Answers::parse("[accept]").unwrap();
        assert_eq!(answers.form(&form), content(json!({ "n": 3 })));
    }
}
