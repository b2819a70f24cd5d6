//! A form of a server: its fields, what fits into each, and the answer.
//!
//! Pure: takes a schema and text or JSON, returns a checked answer or the mistakes. Text of the server is
//! kept as it is; the gate escapes it when it is shown. Must not know a terminal or a file. ELI-02, ELI-10.

mod field;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::{Map, Value};
use taut::types::{FormSchema, JsonObject};

pub(crate) use field::{Field, Kind, Mistake};

/// The fields in the order they are asked.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) fields: Vec<Field>,
}

impl Form {
    pub(crate) fn of(schema: &FormSchema) -> Self {
        let required: HashSet<&String> = schema.required.iter().collect();
        // As JSON, which `schema/` reads; its members have no order, so that comes from the fields.
        let mut whole = serde_json::to_value(schema).unwrap_or_default();
        let mut field = |name: &String| {
            let schema = whole.get_mut("properties").and_then(|all| all.get_mut(name));
            Field::of(name, schema.map(Value::take).unwrap_or_default(), required.contains(name))
        };
        Self { fields: schema.fields.iter().map(|(name, _)| field(name)).collect() }
    }

    /// The answer that these values are. What is not given is left to its default, if it has one.
    ///
    /// With `strict`, a value for a field that there is not is a mistake.
    pub(crate) fn fill(
        &self,
        given: &Map<String, Value>,
        strict: bool,
    ) -> Result<JsonObject, Vec<(String, Mistake)>> {
        let mut content = JsonObject::new();
        let mut mistakes = Vec::new();
        for field in &self.fields {
            let checked = match given.get(&field.name) {
                Some(Value::Null) | None => field.left_out(),
                Some(value) => field.check(value).map(Some),
            };
            match checked {
                Ok(Some(value)) => drop(content.insert(field.name.clone(), value)),
                Ok(None) => {}
                Err(mistake) => mistakes.push((field.name.clone(), mistake)),
            }
        }
        if strict {
            let known: HashSet<&String> = self.fields.iter().map(|field| &field.name).collect();
            let unknown = given.keys().filter(|name| !known.contains(name));
            mistakes.extend(unknown.map(|name| (name.clone(), Mistake::NoSuchField)));
        }
        if mistakes.is_empty() { Ok(content) } else { Err(mistakes) }
    }

    /// What it asks for, a line for each field.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.fields
            .iter()
            .map(|field| {
                let mut line = format!("{}: {}", field.name, field.wanted());
                match (&field.default, field.required) {
                    (Some(value), _) => {
                        let _ = write!(line, " (default {})", field.shown(value));
                    }
                    (None, false) => line.push_str(" (optional)"),
                    (None, true) => {}
                }
                if let Some(about) = field.about() {
                    let _ = write!(line, "  {about}");
                }
                line
            })
            .collect()
    }

    /// An answer to begin with, for somebody who writes a file of them.
    pub(crate) fn example(&self) -> Value {
        let asked = self.fields.iter().filter(|field| field.required || field.default.is_some());
        Value::Object(asked.map(|field| (field.name.clone(), field.example())).collect())
    }
}
