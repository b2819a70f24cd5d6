//! One field of a form: what it takes, and whether something fits.
//!
//! Knows the kinds of field and how people write each. Must not know the other fields.

use std::fmt;

use serde_json::{Number, Value, json};
use taut::types::{ChoiceField, FormField, NumberKind};

use super::format::Format;
use crate::arguments::closest;

/// One field, ready to be filled in.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    title: Option<String>,
    description: Option<String>,
    pub(crate) required: bool,
    pub(crate) kind: Kind,
    /// What stands there to begin with; nothing if the server's own does not fit.
    pub(crate) default: Option<Value>,
}

/// What a field takes.
#[derive(Debug, PartialEq)]
pub(crate) enum Kind {
    Text {
        least: Option<u64>,
        most: Option<u64>,
        format: Option<Format>,
    },
    Number {
        whole: bool,
        least: Option<f64>,
        most: Option<f64>,
    },
    YesNo,
    One(Vec<Choice>),
    Several {
        choices: Vec<Choice>,
        least: Option<u64>,
        most: Option<u64>,
    },
    /// A kind that nobody knows yet: JSON if it is, else text. The server judges.
    Any,
}

/// One of the things to choose from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) value: String,
    pub(crate) title: Option<String>,
}

impl Choice {
    pub(crate) fn shown(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.value)
    }
}

/// Why something does not fit.
#[derive(Debug, PartialEq)]
pub(crate) enum Mistake {
    Missing,
    NoSuchField,
    NoNumber,
    NotWhole,
    NoText,
    NotYesNo,
    NoList,
    TooSmall(f64),
    TooLarge(f64),
    TooShort { least: u64, has: u64 },
    TooLong { most: u64, has: u64 },
    WrongFormat(Format),
    NoChoice { typed: String, meant: Option<String> },
    TooFew(u64),
    TooMany(u64),
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("it has to be filled in"),
            Self::NoSuchField => f.write_str("the form has no such field"),
            Self::NoNumber => f.write_str("it has to be a number, such as 12 or 1.5"),
            Self::NotWhole => f.write_str("it has to be a whole number, such as 12"),
            Self::NoText => f.write_str("it has to be text"),
            Self::NotYesNo => f.write_str("it has to be yes or no"),
            Self::NoList => f.write_str("it has to be a list"),
            Self::TooSmall(least) => write!(f, "it has to be {least} or more"),
            Self::TooLarge(most) => write!(f, "it has to be {most} or less"),
            Self::TooShort { least, has } => {
                write!(f, "it has to have {least} characters or more, and has {has}")
            }
            Self::TooLong { most, has } => {
                write!(f, "it has to have {most} characters or fewer, and has {has}")
            }
            Self::WrongFormat(format) => write!(f, "it has to be {}", format.words()),
            Self::NoChoice { typed, meant: Some(meant) } => {
                write!(f, "{typed:?} is not one of them; did you mean {meant}?")
            }
            Self::NoChoice { typed, meant: None } => write!(f, "{typed:?} is not one of them"),
            Self::TooFew(least) => write!(f, "choose {least} or more"),
            Self::TooMany(most) => write!(f, "choose {most} or fewer"),
        }
    }
}

impl Field {
    pub(super) fn of(name: &str, field: &FormField, required: bool) -> Self {
        let (title, description, kind, default) = match field {
            FormField::Text(text) => (
                text.title.clone(),
                text.description.clone(),
                Kind::Text {
                    least: text.min_length,
                    most: text.max_length,
                    format: text.format.as_deref().and_then(Format::of),
                },
                text.default.clone().map(Value::from),
            ),
            FormField::Number(number) => (
                number.title.clone(),
                number.description.clone(),
                Kind::Number {
                    whole: number.kind == NumberKind::Integer,
                    least: number.minimum,
                    most: number.maximum,
                },
                number.default.and_then(tidy),
            ),
            FormField::Boolean(yes) => (
                yes.title.clone(),
                yes.description.clone(),
                Kind::YesNo,
                yes.default.map(Value::from),
            ),
            FormField::Choice(choice) => of_choice(choice),
            FormField::Other(schema) => {
                let word = |member: &str| schema.get(member)?.as_str().map(str::to_owned);
                (word("title"), word("description"), Kind::Any, schema.get("default").cloned())
            }
            _ => (None, None, Kind::Any, None),
        };
        let mut field =
            Self { name: name.to_owned(), title, description, required, kind, default: None };
        field.default = default.filter(|value| field.check(value).is_ok());
        field
    }

    /// What people know it by.
    pub(crate) fn label(&self) -> &str {
        self.title.as_deref().filter(|title| !title.is_empty()).unwrap_or(&self.name)
    }

    /// What to fill in, if it says more than the label.
    pub(crate) fn about(&self) -> Option<&str> {
        self.description.as_deref().filter(|about| !about.is_empty())
    }

    /// The choices, if there are any.
    pub(crate) fn choices(&self) -> &[Choice] {
        match &self.kind {
            Kind::One(choices) | Kind::Several { choices, .. } => choices,
            _ => &[],
        }
    }

    /// What it takes, in a few words.
    pub(crate) fn wanted(&self) -> String {
        let names = |choices: &[Choice]| {
            choices.iter().map(|choice| choice.value.as_str()).collect::<Vec<_>>().join("|")
        };
        match &self.kind {
            Kind::Text { least, most, format } => {
                let what = format.as_ref().map_or("text", Format::words);
                format!("{what}{}", bounds(least.as_ref(), most.as_ref(), " characters"))
            }
            Kind::Number { whole, least, most } => {
                let what = if *whole { "a whole number" } else { "a number" };
                format!("{what}{}", bounds(least.as_ref(), most.as_ref(), ""))
            }
            Kind::YesNo => "yes or no".to_owned(),
            Kind::One(choices) => names(choices),
            Kind::Several { choices, least, most } => {
                format!("any of {}{}", names(choices), bounds(least.as_ref(), most.as_ref(), ""))
            }
            Kind::Any => "anything".to_owned(),
        }
    }

    /// What was typed, as the field wants it; nothing if it is left out.
    pub(crate) fn read(&self, typed: &str) -> Result<Option<Value>, Mistake> {
        let trimmed = typed.trim();
        if trimmed.is_empty() {
            return if self.required { Err(Mistake::Missing) } else { Ok(None) };
        }
        let value = match &self.kind {
            // The one way to type a text of no length.
            Kind::Text { .. } if trimmed == "\"\"" => json!(""),
            Kind::Text { .. } => json!(typed),
            Kind::Number { .. } => {
                json!(trimmed.parse::<Number>().map_err(|_| Mistake::NoNumber)?)
            }
            Kind::YesNo => json!(yes_or_no(trimmed).ok_or(Mistake::NotYesNo)?),
            Kind::One(choices) => json!(pick(choices, trimmed)?),
            Kind::Several { choices, .. } => json!(pick_all(choices, trimmed)?),
            Kind::Any => serde_json::from_str(trimmed).unwrap_or_else(|_| json!(typed)),
        };
        self.check(&value).map(Some)
    }

    /// A value from elsewhere, such as a file: as it is if it fits, else what its text is if typed.
    pub(crate) fn check(&self, value: &Value) -> Result<Value, Mistake> {
        match &self.kind {
            Kind::Text { least, most, format } => {
                let text = match value {
                    Value::String(text) => text.clone(),
                    // A file may have a number or a date where text is wanted.
                    Value::Number(_) | Value::Bool(_) => value.to_string(),
                    _ => return Err(Mistake::NoText),
                };
                fits_text(&text, *least, *most, format.as_ref())?;
                Ok(json!(text))
            }
            Kind::Number { whole, least, most } => {
                let number = match value {
                    Value::Number(number) => number.clone(),
                    Value::String(text) => text.trim().parse().map_err(|_| Mistake::NoNumber)?,
                    _ => return Err(Mistake::NoNumber),
                };
                fits_number(number, *whole, *least, *most)
            }
            Kind::YesNo => match value {
                Value::Bool(yes) => Ok(json!(yes)),
                Value::String(text) => {
                    yes_or_no(text.trim()).map(Value::from).ok_or(Mistake::NotYesNo)
                }
                _ => Err(Mistake::NotYesNo),
            },
            Kind::One(choices) => Ok(json!(pick(choices, &plain(value)?)?)),
            Kind::Several { choices, least, most } => {
                let mut chosen: Vec<&str> = Vec::new();
                for each in value.as_array().ok_or(Mistake::NoList)? {
                    let one = pick(choices, &plain(each)?)?;
                    if !chosen.contains(&one) {
                        chosen.push(one);
                    }
                }
                let count = chosen.len() as u64;
                if let Some(least) = least.filter(|least| count < *least) {
                    return Err(Mistake::TooFew(least));
                }
                if let Some(most) = most.filter(|most| count > *most) {
                    return Err(Mistake::TooMany(most));
                }
                Ok(json!(chosen))
            }
            Kind::Any => Ok(value.clone()),
        }
    }

    /// What it is when nobody says anything.
    pub(super) fn left_out(&self) -> Result<Option<Value>, Mistake> {
        match &self.default {
            Some(value) => Ok(Some(value.clone())),
            None if self.required => Err(Mistake::Missing),
            None => Ok(None),
        }
    }

    /// A value of it as people read and type it.
    pub(crate) fn shown(&self, value: &Value) -> String {
        match value {
            Value::Bool(true) => "yes".to_owned(),
            Value::Bool(false) => "no".to_owned(),
            Value::String(text) => {
                let choice = self.choices().iter().find(|choice| choice.value == *text);
                choice.map_or(text.as_str(), Choice::shown).to_owned()
            }
            Value::Array(all) => {
                all.iter().map(|each| self.shown(each)).collect::<Vec<_>>().join(", ")
            }
            other => other.to_string(),
        }
    }

    pub(super) fn example(&self) -> Value {
        if let Some(value) = &self.default {
            return value.clone();
        }
        match &self.kind {
            Kind::Text { .. } | Kind::Any => json!("…"),
            Kind::Number { least, most, .. } => {
                least.or(*most).and_then(tidy).unwrap_or_else(|| json!(1))
            }
            Kind::YesNo => json!(true),
            Kind::One(choices) => json!(choices.first().map(|choice| &choice.value)),
            Kind::Several { choices, .. } => {
                json!(choices.iter().take(1).map(|choice| &choice.value).collect::<Vec<_>>())
            }
        }
    }
}

type Parts = (Option<String>, Option<String>, Kind, Option<Value>);

fn of_choice(field: &ChoiceField) -> Parts {
    let word = |member: &str| field.rest.get(member)?.as_str().map(str::to_owned);
    let count = |member: &str| field.rest.get(member)?.as_u64();
    let choices = field
        .choices
        .iter()
        .map(|choice| Choice { value: choice.value.clone(), title: choice.title.clone() })
        .collect();
    let kind = if field.several {
        Kind::Several { choices, least: count("minItems"), most: count("maxItems") }
    } else {
        Kind::One(choices)
    };
    (word("title"), word("description"), kind, field.rest.get("default").cloned())
}

/// A number as JSON, whole ones without a fraction.
fn tidy(number: f64) -> Option<Value> {
    // Every f64 up to this is a whole number of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        // Checked just above.
        #[allow(clippy::cast_possible_truncation)]
        return Some(json!(number as i64));
    }
    Number::from_f64(number).map(Value::Number)
}

fn fits_text(
    text: &str,
    least: Option<u64>,
    most: Option<u64>,
    format: Option<&Format>,
) -> Result<(), Mistake> {
    let has = text.chars().count() as u64;
    if let Some(least) = least.filter(|least| has < *least) {
        return Err(Mistake::TooShort { least, has });
    }
    if let Some(most) = most.filter(|most| has > *most) {
        return Err(Mistake::TooLong { most, has });
    }
    match format {
        Some(format) if !format.fits(text) => Err(Mistake::WrongFormat(*format)),
        _ => Ok(()),
    }
}

fn fits_number(
    number: Number,
    whole: bool,
    least: Option<f64>,
    most: Option<f64>,
) -> Result<Value, Mistake> {
    let size = number.as_f64().unwrap_or(f64::NAN);
    let mut value = Value::Number(number);
    if whole && value.is_f64() {
        // 5.0 is a whole number, and servers that read 5 do not all read 5.0.
        value = tidy(size).filter(|tidy| !tidy.is_f64()).ok_or(Mistake::NotWhole)?;
    }
    if let Some(least) = least.filter(|least| size < *least) {
        return Err(Mistake::TooSmall(least));
    }
    if let Some(most) = most.filter(|most| size > *most) {
        return Err(Mistake::TooLarge(most));
    }
    Ok(value)
}

fn yes_or_no(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "yes" | "y" | "true" => Some(true),
        "no" | "n" | "false" => Some(false),
        _ => None,
    }
}

fn plain(value: &Value) -> Result<String, Mistake> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        _ => Err(Mistake::NoText),
    }
}

/// The choice that was typed: its value, its title, or its number in the list.
fn pick<'a>(choices: &'a [Choice], typed: &str) -> Result<&'a str, Mistake> {
    let typed = typed.trim();
    let by = |fits: &dyn Fn(&Choice) -> bool| choices.iter().find(|choice| fits(choice));
    let same = |a: &str| a.to_lowercase() == typed.to_lowercase();
    let number = || typed.parse::<usize>().ok().and_then(|n| choices.get(n.checked_sub(1)?));
    let found = by(&|choice| choice.value == typed)
        .or_else(|| by(&|choice| choice.shown() == typed))
        .or_else(|| by(&|choice| same(&choice.value) || same(choice.shown())))
        .or_else(number);
    found.map(|choice| choice.value.as_str()).ok_or_else(|| {
        let names = choices.iter().map(Choice::shown);
        let meant = closest(typed, names).map(str::to_owned);
        Mistake::NoChoice { typed: typed.to_owned(), meant }
    })
}

fn pick_all<'a>(choices: &'a [Choice], typed: &str) -> Result<Vec<&'a str>, Mistake> {
    // A title may have a comma in it.
    if let Ok(one) = pick(choices, typed) {
        return Ok(vec![one]);
    }
    typed
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(|p| pick(choices, p))
        .collect()
}

fn bounds<T: fmt::Display>(least: Option<&T>, most: Option<&T>, unit: &str) -> String {
    match (least, most) {
        (Some(least), Some(most)) => format!(", {least} to {most}{unit}"),
        (Some(least), None) => format!(", {least}{unit} or more"),
        (None, Some(most)) => format!(", {most}{unit} or less"),
        (None, None) => String::new(),
    }
}
