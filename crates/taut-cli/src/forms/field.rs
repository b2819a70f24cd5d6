//! One field of a form: what it takes, and whether something fits.
//!
//! Knows how people write each kind of value. `schema/` says what a field takes. Must not know the other fields.

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde_json::{Number, Value, json};

use crate::arguments::closest;
use crate::schema::{
    Choice, Count, Fault, Format, Range, Schema, Shape, bounded, number, whole_number,
};

/// One field, ready to be filled in.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    schema: Value,
    pub(crate) required: bool,
    /// What stands there to begin with; nothing if the server's own does not fit.
    pub(crate) default: Option<Value>,
}

/// What a field takes.
pub(crate) enum Kind<'a> {
    Text {
        length: Count,
        format: Option<Format>,
    },
    Number {
        whole: bool,
        range: Range<'a>,
    },
    YesNo,
    One(Vec<Choice<'a>>),
    Several {
        choices: Vec<Choice<'a>>,
        count: Count,
    },
    /// Something else: JSON if it is, else text. The server judges.
    Any,
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
    WrongFormat(Format),
    NoChoice {
        typed: String,
        meant: Option<String>,
    },
    /// It is too small, too large, too short or too long.
    Beyond(Fault),
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
            Self::WrongFormat(format) => write!(f, "it has to be {}", format.words()),
            Self::NoChoice { typed, meant: Some(meant) } => {
                write!(f, "{typed:?} is not one of them; did you mean {meant}?")
            }
            Self::NoChoice { typed, meant: None } => write!(f, "{typed:?} is not one of them"),
            // The value was told before it.
            Self::Beyond(Fault::Bound { wanted, .. }) => write!(f, "it has to be {wanted}"),
            Self::Beyond(fault) => write!(f, "it has to {fault}"),
        }
    }
}

impl From<Fault> for Mistake {
    fn from(fault: Fault) -> Self {
        Self::Beyond(fault)
    }
}

impl Field {
    pub(super) fn of(name: &str, schema: Value, required: bool) -> Self {
        let mut field = Self { name: name.to_owned(), schema, required, default: None };
        let default = field.place().default().and_then(|value| field.check(value).ok());
        field.default = default;
        field
    }

    fn place(&self) -> Schema<'_> {
        Schema::of(&self.schema)
    }

    /// What it takes.
    pub(crate) fn kind(&self) -> Kind<'_> {
        match self.place().shape() {
            Some(Shape::Text(text)) => {
                Kind::Text { length: text.length, format: text.format.and_then(Format::of) }
            }
            Some(Shape::Number { whole, range }) => Kind::Number { whole, range },
            Some(Shape::Boolean) => Kind::YesNo,
            Some(Shape::Choice(choices)) => Kind::One(choices),
            Some(Shape::List { item, count }) => match item.shape() {
                Some(Shape::Choice(choices)) => Kind::Several { choices, count },
                _ => Kind::Any,
            },
            _ => Kind::Any,
        }
    }

    /// What people know it by.
    pub(crate) fn label(&self) -> &str {
        self.place().title().unwrap_or(&self.name)
    }

    /// What to fill in, if it says more than the label.
    pub(crate) fn about(&self) -> Option<&str> {
        self.place().description()
    }

    /// The choices, if there are any.
    pub(crate) fn choices(&self) -> Vec<Choice<'_>> {
        match self.kind() {
            Kind::One(choices) | Kind::Several { choices, .. } => choices,
            _ => Vec::new(),
        }
    }

    /// What it takes, in a few words.
    pub(crate) fn wanted(&self) -> String {
        let names =
            |choices: &[Choice<'_>]| choices.iter().map(Choice::text).collect::<Vec<_>>().join("|");
        let bounds = |words: Option<String>| words.map(|w| format!(", {w}")).unwrap_or_default();
        match self.kind() {
            Kind::Text { length, format } => {
                let what = format.as_ref().map_or("text", Format::words);
                format!("{what}{}", bounds(bounded(length.least, length.most, "character")))
            }
            Kind::Number { whole, range } => {
                let what = if whole { "a whole number" } else { "a number" };
                let (least, most) = (range.least.map(number), range.most.map(number));
                format!("{what}{}", bounds(bounded(least, most, "")))
            }
            Kind::YesNo => "yes or no".to_owned(),
            Kind::One(choices) => names(&choices),
            Kind::Several { choices, count } => {
                let bounds = bounds(bounded(count.least, count.most, ""));
                format!("any of {}{bounds}", names(&choices))
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
        let value = match self.kind() {
            // The one way to type a text of no length.
            Kind::Text { .. } if trimmed == "\"\"" => json!(""),
            Kind::Several { choices, .. } => json!(Picker::of(&choices).pick_all(trimmed)?),
            Kind::Any => serde_json::from_str(trimmed).unwrap_or_else(|_| json!(typed)),
            _ => json!(typed),
        };
        self.check(&value).map(Some)
    }

    /// A value from elsewhere, such as a file: as it is if it fits, else what its text is if typed.
    pub(crate) fn check(&self, value: &Value) -> Result<Value, Mistake> {
        match self.kind() {
            Kind::Text { length, format } => {
                // A file may have a number or a date where text is wanted.
                let text = plain(value)?;
                length.check(text.chars().count() as u64, "character")?;
                match format {
                    Some(format) if !format.fits(&text) => Err(Mistake::WrongFormat(format)),
                    _ => Ok(json!(text)),
                }
            }
            Kind::Number { whole, range } => {
                let wrong = || if whole { Mistake::NotWhole } else { Mistake::NoNumber };
                let number: Number = match value {
                    Value::Number(number) => number.clone(),
                    Value::String(text) => text.trim().parse().map_err(|_| wrong())?,
                    _ => return Err(wrong()),
                };
                // 5.0 is a whole number, and servers that read 5 do not all read 5.0.
                let tidy = whole_number(&number);
                if whole && tidy.is_none() {
                    return Err(Mistake::NotWhole);
                }
                range.check(&number)?;
                Ok(tidy.unwrap_or(Value::Number(number)))
            }
            Kind::YesNo => match value {
                Value::Bool(yes) => Ok(json!(yes)),
                Value::String(text) => {
                    yes_or_no(text.trim()).map(Value::from).ok_or(Mistake::NotYesNo)
                }
                _ => Err(Mistake::NotYesNo),
            },
            Kind::One(choices) => {
                let one = Picker::of(&choices).pick(&plain(value)?)?;
                Ok(choices[one].value.clone())
            }
            Kind::Several { choices, count } => {
                let picker = Picker::of(&choices);
                let all = value.as_array().ok_or(Mistake::NoList)?.iter();
                let chosen = picker.each_once(all.map(|each| picker.pick(&plain(each)?)))?;
                count.check(chosen.len() as u64, "choice")?;
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
                let choices = self.choices();
                let choice = choices.iter().find(|choice| choice.value == value);
                choice.map_or_else(|| text.clone(), Choice::shown)
            }
            Value::Array(all) => {
                let choices = self.choices();
                let titles =
                    choices.iter().rev().filter_map(|c| Some((c.value.as_str()?, c.shown())));
                let titles: HashMap<&str, String> = titles.collect();
                let title = |each: &Value| titles.get(each.as_str()?).cloned();
                let shown = all.iter().map(|each| title(each).unwrap_or_else(|| self.shown(each)));
                shown.collect::<Vec<_>>().join(", ")
            }
            other => other.to_string(),
        }
    }

    pub(super) fn example(&self) -> Value {
        if let Some(value) = &self.default {
            return value.clone();
        }
        match self.kind() {
            Kind::Text { .. } | Kind::Any => json!("…"),
            Kind::Number { range, .. } => {
                let bound = range.least.or(range.most);
                bound.map_or_else(|| json!(1), |n| whole_number(n).unwrap_or_else(|| json!(n)))
            }
            Kind::YesNo => json!(true),
            Kind::One(choices) => json!(choices.first().map(|choice| choice.value)),
            Kind::Several { choices, .. } => {
                json!(choices.iter().take(1).map(|choice| choice.value).collect::<Vec<_>>())
            }
        }
    }
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

/// Finds choices by what was typed, in a time that does not grow with the number of choices.
struct Picker<'a, 'c> {
    choices: &'c [Choice<'a>],
    by_value: HashMap<String, usize>,
    by_title: HashMap<String, usize>,
    /// Values and titles in lower case.
    by_either: HashMap<String, usize>,
}

impl<'a, 'c> Picker<'a, 'c> {
    fn of(choices: &'c [Choice<'a>]) -> Self {
        let mut picker = Self {
            choices,
            by_value: HashMap::with_capacity(choices.len()),
            by_title: HashMap::with_capacity(choices.len()),
            by_either: HashMap::with_capacity(choices.len()),
        };
        // Where several have the same name, the first has it.
        for (n, choice) in choices.iter().enumerate() {
            let (value, title) = (choice.text(), choice.shown());
            for name in [&value, &title] {
                picker.by_either.entry(name.to_lowercase()).or_insert(n);
            }
            picker.by_value.entry(value).or_insert(n);
            picker.by_title.entry(title).or_insert(n);
        }
        picker
    }

    /// The place of the choice that was typed: by its value, its title, or its number in the list.
    fn pick(&self, typed: &str) -> Result<usize, Mistake> {
        let typed = typed.trim();
        let number = || typed.parse::<usize>().ok()?.checked_sub(1);
        let found = self.by_value.get(typed).or_else(|| self.by_title.get(typed));
        let found = found.or_else(|| self.by_either.get(&typed.to_lowercase())).copied();
        found.or_else(|| number().filter(|&n| n < self.choices.len())).ok_or_else(|| {
            let names: Vec<String> = self.choices.iter().map(Choice::shown).collect();
            let meant = closest(typed, names.iter().map(String::as_str)).map(str::to_owned);
            Mistake::NoChoice { typed: typed.to_owned(), meant }
        })
    }

    /// Those that were typed, with commas between them, each once.
    fn pick_all(&self, typed: &str) -> Result<Vec<&'a Value>, Mistake> {
        // A title may have a comma in it.
        if let Ok(one) = self.pick(typed) {
            return Ok(vec![self.choices[one].value]);
        }
        let parts = typed.split(',').map(str::trim).filter(|part| !part.is_empty());
        self.each_once(parts.map(|part| self.pick(part)))
    }

    fn each_once(
        &self,
        picked: impl Iterator<Item = Result<usize, Mistake>>,
    ) -> Result<Vec<&'a Value>, Mistake> {
        let mut seen = HashSet::new();
        let mut chosen = Vec::new();
        for one in picked {
            let one = one?;
            if seen.insert(one) {
                chosen.push(self.choices[one].value);
            }
        }
        Ok(chosen)
    }
}
