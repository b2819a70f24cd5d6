//! Forms: the flat little schemas that an elicitation may ask with.
//!
//! Knows the kinds of field, their order, and how each revision writes them; what a revision cannot
//! show is left out. Must not know who fills them in. ELI-02, ELI-10.

use std::collections::HashSet;

use serde::de::{Error, MapAccess};
use serde_json::{Map, Value, json};

use super::extra::Extra;
use super::macros::{read_members, variants, wire_enum, wire_struct};
use super::revision::Revision;
use super::write::{Target, WriteJson, serialize_any};
use crate::json::ObjectWriter;
use crate::json::read::{FromMembers, Name, fixed_member};

/// The fields of a form, in the order they are shown.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
#[must_use = "nobody sees a form until a question shows it"]
pub struct FormSchema {
    /// The fields by name.
    pub fields: Vec<(String, FormField)>,
    /// The names of those that have to be filled in.
    pub required: Vec<String>,
    /// Members this version of taut does not know, kept as they came.
    pub extra: Extra,
}

impl FormSchema {
    /// A form without fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a field that may be left empty.
    pub fn optional(mut self, name: impl Into<String>, field: impl Into<FormField>) -> Self {
        self.fields.push((name.into(), field.into()));
        self
    }

    /// Adds a field that has to be filled in.
    pub fn required(mut self, name: impl Into<String>, field: impl Into<FormField>) -> Self {
        let name = name.into();
        self.required.push(name.clone());
        self.optional(name, field)
    }

    /// Whether every field can be written for this reader; one that cannot is left out.
    pub(super) fn fits(&self, target: Target) -> bool {
        self.fields.iter().all(|(_, field)| field.fits(target))
    }
}

/// The `properties` of a form: a list, because a person sees their order.
#[derive(Default)]
struct FormFields(Vec<(String, FormField)>);

impl<'de> FromMembers<'de> for FormFields {
    const EXPECTED: &'static str = "an object of fields";

    fn from_members<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut fields = Vec::new();
        while let Some((name, value)) = map.next_entry()? {
            fields.push((name, FormField::read(value).map_err(A::Error::custom)?));
        }
        Ok(Self(fields))
    }
}

impl WriteJson for FormSchema {
    fn write_json(&self, target: Target, out: &mut Vec<u8>) {
        let (fit, unfit): (Vec<_>, Vec<_>) =
            self.fields.iter().partition(|(_, field)| field.fits(target));
        let mut object = ObjectWriter::new(out);
        object.value("type", "object");
        let mut properties = ObjectWriter::new(object.member("properties"));
        for (name, field) in fit {
            field.write_json(target, properties.member(name));
        }
        properties.end();
        let left_out: HashSet<_> = unfit.into_iter().map(|(name, _)| name).collect();
        let required: Vec<_> =
            self.required.iter().filter(|name| !left_out.contains(name)).collect();
        if !required.is_empty() {
            object.value("required", &required);
        }
        for (member, value) in &self.extra {
            if !["type", "properties", "required"].contains(&member.as_str()) {
                object.value(member, value);
            }
        }
        object.end();
    }
}

serialize_any!(FormSchema);

impl<'de> FromMembers<'de> for FormSchema {
    const EXPECTED: &'static str = "an object schema with fields";

    fn from_members<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut form = Self::new();
        let mut fields: Option<FormFields> = None;
        while let Some(Name(name)) = map.next_key()? {
            match &*name {
                "type" => fixed_member(&mut map, "type", "object")?,
                "properties" => fields = Some(map.next_value()?),
                "required" => {
                    form.required = map.next_value::<Option<_>>()?.unwrap_or_default();
                }
                _ => {
                    form.extra.insert(name.into_owned(), map.next_value()?);
                }
            }
        }
        form.fields = fields.ok_or_else(|| A::Error::missing_field("properties"))?.0;
        Ok(form)
    }
}

read_members!(FormFields, FormSchema);

wire_struct! {
    /// A line of text.
    #[derive(Default)]
    pub struct TextField tagged "type" = "string" () {
        /// A name for people.
        may title: String = "title";
        /// What to fill in.
        may description: String = "description";
        /// The least number of characters.
        num min_length: u64 = "minLength";
        /// The largest number of characters.
        num max_length: u64 = "maxLength";
        /// What kind of text: `email`, `uri`, `date` or `date-time`.
        may format: String = "format";
        /// What stands there to begin with.
        may default: String = "default" since V2025_11_25;
    }
}

wire_enum! {
    /// Which numbers a field takes.
    #[derive(Default)]
    pub enum NumberKind {
        /// Any.
        #[default]
        Number = "number",
        /// Whole ones.
        Integer = "integer",
    }
}

wire_struct! {
    /// A number.
    #[derive(Default)]
    pub struct NumberField() {
        /// Which numbers it takes.
        has kind: NumberKind = "type";
        /// A name for people.
        may title: String = "title";
        /// What to fill in.
        may description: String = "description";
        /// The smallest.
        may minimum: f64 = "minimum";
        /// The largest.
        may maximum: f64 = "maximum";
        /// What stands there to begin with.
        may default: f64 = "default" since V2025_11_25;
    }

    /// Yes or no.
    #[derive(Default)]
    pub struct BooleanField tagged "type" = "boolean" () {
        /// A name for people.
        may title: String = "title";
        /// What to decide.
        may description: String = "description";
        /// What stands there to begin with.
        may default: bool = "default";
    }
}

/// One of the things to choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// What the answer says.
    pub value: String,
    /// What people see, if that is something else.
    pub title: Option<String>,
}

impl Choice {
    /// A choice that people see under another name.
    #[must_use]
    pub fn titled(value: impl Into<String>, title: impl Into<String>) -> Self {
        Self { value: value.into(), title: Some(title.into()) }
    }

    fn shown(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.value)
    }
}

impl<T: Into<String>> From<T> for Choice {
    fn from(value: T) -> Self {
        Self { value: value.into(), title: None }
    }
}

/// One, or several, of a few things; what the members besides the choices say is in `rest`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ChoiceField {
    /// What to choose from.
    pub choices: Vec<Choice>,
    /// More than one may be chosen.
    pub several: bool,
    /// `title`, `description`, `default`, `minItems`, `maxItems` and what else there is.
    pub rest: Map<String, Value>,
}

impl ChoiceField {
    fn of<T: Into<Choice>>(choices: impl IntoIterator<Item = T>, several: bool) -> Self {
        let choices = choices.into_iter().map(Into::into).collect();
        Self { choices, several, rest: Map::new() }
    }

    /// Adds a member such as `title` or `default`.
    #[must_use]
    pub fn with(mut self, member: impl Into<String>, value: impl Into<Value>) -> Self {
        self.rest.insert(member.into(), value.into());
        self
    }

    fn titled(&self) -> bool {
        self.choices.iter().any(|choice| choice.title.is_some())
    }

    fn write_choices(&self, target: Target, object: &mut ObjectWriter<'_>) {
        let values: Vec<_> = self.choices.iter().map(|choice| &choice.value).collect();
        let pairs = || -> Vec<Value> {
            let pair = |choice: &Choice| json!({ "const": choice.value, "title": choice.shown() });
            self.choices.iter().map(pair).collect()
        };
        match (self.several, self.titled()) {
            (true, true) => object.value("items", &json!({ "anyOf": pairs() })),
            (true, false) => object.value("items", &json!({ "type": "string", "enum": values })),
            (false, false) => object.value("enum", &values),
            (false, true) if target.since(Revision::V2025_11_25) => object.value("oneOf", &pairs()),
            // ELI-10: how 2025-06-18 says the same.
            (false, true) => {
                object.value("enum", &values);
                let shown: Vec<_> = self.choices.iter().map(Choice::shown).collect();
                object.value("enumNames", &shown);
            }
        }
    }

    /// The choices in `schema`, in whichever of the five ways they are written.
    fn read(mut schema: Map<String, Value>) -> Option<Self> {
        let several = schema.get("type")? == "array";
        let mut source = if several {
            match schema.remove("items")? {
                Value::Object(items) => items,
                _ => return None,
            }
        } else {
            std::mem::take(&mut schema)
        };
        let choices = if let Some(pairs) = source.remove(if several { "anyOf" } else { "oneOf" }) {
            let word = |pair: &Value, member| Some(pair.get(member)?.as_str()?.to_owned());
            let choice = |pair: &Value| {
                Some(Choice { value: word(pair, "const")?, title: word(pair, "title") })
            };
            pairs.as_array()?.iter().map(choice).collect::<Option<Vec<_>>>()?
        } else {
            let values = source.remove("enum")?;
            let names = source.remove("enumNames");
            let names = names.as_ref().and_then(Value::as_array);
            let choice = |(at, value): (usize, &Value)| {
                let title = names.and_then(|names| names.get(at)?.as_str()).map(str::to_owned);
                Some(Choice { value: value.as_str()?.to_owned(), title })
            };
            values.as_array()?.iter().enumerate().map(choice).collect::<Option<Vec<_>>>()?
        };
        let mut rest = if several { schema } else { source };
        rest.remove("type");
        Some(Self { choices, several, rest })
    }
}

impl WriteJson for ChoiceField {
    fn write_json(&self, target: Target, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::new(out);
        object.value("type", if self.several { "array" } else { "string" });
        self.write_choices(target, &mut object);
        let known = ["type", "items", "enum", "enumNames", "oneOf"];
        for (member, value) in &self.rest {
            // ELI-10: defaults on choices came with 2025-11-25.
            let too_new = member == "default" && !target.since(Revision::V2025_11_25);
            // The names of 2025-06-18, given by hand, stay what they are in any revision.
            let by_hand = member == "enumNames" && !self.titled() && !self.several;
            if !too_new && (by_hand || !known.contains(&member.as_str())) {
                object.value(member, value);
            }
        }
        object.end();
    }
}

/// One field of a form.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[must_use = "a field does nothing until it stands in a form"]
pub enum FormField {
    /// A line of text.
    Text(TextField),
    /// A number.
    Number(NumberField),
    /// Yes or no.
    Boolean(BooleanField),
    /// One or several of a few things.
    Choice(ChoiceField),
    /// A kind this version of taut does not know, kept as it came.
    Other(Value),
}

impl FormField {
    /// A line of text.
    pub fn text() -> Self {
        TextField::new().into()
    }

    /// A number.
    pub fn number() -> Self {
        NumberField::new().into()
    }

    /// A whole number.
    pub fn integer() -> Self {
        NumberField::new().kind(NumberKind::Integer).into()
    }

    /// Yes or no.
    pub fn boolean() -> Self {
        BooleanField::new().into()
    }

    /// One of these.
    pub fn one<T: Into<Choice>>(choices: impl IntoIterator<Item = T>) -> Self {
        ChoiceField::of(choices, false).into()
    }

    /// Any of these; from 2025-11-25 on.
    pub fn several<T: Into<Choice>>(choices: impl IntoIterator<Item = T>) -> Self {
        ChoiceField::of(choices, true).into()
    }

    /// Whether `target` knows this kind of field: several choices came with 2025-11-25.
    pub(super) fn fits(&self, target: Target) -> bool {
        match self {
            Self::Choice(choice) => !choice.several || target.since(Revision::V2025_11_25),
            _ => true,
        }
    }

    /// The field that this schema describes. Read from a `Value`, because any member may tell the kind.
    pub(super) fn read(value: Value) -> Result<Self, serde_json::Error> {
        let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
        let choice = ["enum", "oneOf", "items"].iter().any(|member| value.get(member).is_some());
        match kind {
            "string" | "array" if choice => {
                let read = value.as_object().cloned().and_then(ChoiceField::read);
                Ok(read.map_or(Self::Other(value), Self::Choice))
            }
            "string" => serde_json::from_value(value).map(Self::Text),
            "number" | "integer" => serde_json::from_value(value).map(Self::Number),
            "boolean" => serde_json::from_value(value).map(Self::Boolean),
            _ => Ok(Self::Other(value)),
        }
    }
}

variants!(
    FormField: Text(TextField),
    Number(NumberField),
    Boolean(BooleanField),
    Choice(ChoiceField)
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::Revision;

    #[test]
    fn fields_keep_their_order_both_ways() {
        let form = FormSchema::new()
            .required("zeta", FormField::text())
            .optional("alpha", FormField::boolean())
            .required("mid", FormField::integer());
        let text = serde_json::to_string(&form).unwrap();
        assert_eq!(
            text,
            concat!(
                r#"{"type":"object","properties":{"zeta":{"type":"string"},"#,
                r#""alpha":{"type":"boolean"},"mid":{"type":"integer"}},"#,
                r#""required":["zeta","mid"]}"#
            )
        );
        assert_eq!(serde_json::from_str::<FormSchema>(&text).unwrap(), form);
    }

    #[test]
    fn a_field_that_a_revision_cannot_show_is_left_out_and_not_required() {
        let form = FormSchema::new()
            .required("tags", FormField::several(["a"]))
            .required("name", FormField::text());
        let text = serde_json::to_string(&form.at(Revision::V2025_06_18)).unwrap();
        assert_eq!(
            text,
            r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#
        );
    }

    #[test]
    fn a_schema_that_is_no_form_is_refused_and_what_else_it_says_is_kept() {
        let read = |text| serde_json::from_str::<FormSchema>(text);
        assert!(read(r#"{"type":"array","properties":{}}"#).is_err());
        assert!(read(r#"{"type":"object"}"#).is_err());
        let text = r#"{"type":"object","properties":{},"$schema":"x"}"#;
        assert_eq!(serde_json::to_string(&read(text).unwrap()).unwrap(), text);
    }

    fn at(field: &FormField, revision: Revision) -> Value {
        serde_json::to_value(field.at(revision)).unwrap()
    }

    #[test]
    fn every_kind_of_field_is_read_back_as_it_was_written() {
        let kinds = [
            FormField::text(),
            TextField::new().title("T").min_length(1).format("email").default("a@b").into(),
            FormField::integer(),
            NumberField::new().minimum(0.5).maximum(9).into(),
            FormField::boolean(),
            FormField::one(["a", "b"]),
            FormField::one([Choice::titled("a", "A"), Choice::titled("b", "B")]),
            FormField::several(["a", "b"]),
            FormField::several([Choice::titled("a", "A")]),
            FormField::Other(json!({ "type": "colour" })),
        ];
        for field in kinds {
            let read = FormField::read(at(&field, Revision::MODERN)).unwrap();
            assert_eq!(read, field);
        }
    }

    #[test]
    fn eli_10_titles_of_choices_are_written_the_way_each_revision_reads_them() {
        let FormField::Choice(choice) = FormField::one([Choice::titled("a", "A")]) else {
            panic!()
        };
        let field = FormField::from(choice.with("default", "a").with("description", "d"));
        assert_eq!(
            at(&field, Revision::V2025_06_18),
            json!({ "type": "string", "enum": ["a"], "enumNames": ["A"], "description": "d" })
        );
        let newer = at(&field, Revision::V2025_11_25);
        assert_eq!(newer["oneOf"], json!([{ "const": "a", "title": "A" }]));
        assert_eq!(newer["default"], "a");
        let older = FormField::read(at(&field, Revision::V2025_06_18)).unwrap();
        assert_eq!(at(&older, Revision::V2025_11_25)["oneOf"], newer["oneOf"]);
        let FormField::Choice(choice) = FormField::one(["a"]) else { panic!() };
        let by_hand = FormField::from(choice.with("enumNames", json!(["A"])));
        assert_eq!(at(&by_hand, Revision::V2025_11_25)["enumNames"], json!(["A"]));
    }

    #[test]
    fn eli_10_defaults_came_with_2025_11_25_except_for_yes_or_no() {
        let has = |field: FormField| at(&field, Revision::V2025_06_18).get("default").is_some();
        assert!(!has(TextField::new().default("x").into()));
        assert!(!has(NumberField::new().default(1).into()));
        assert!(has(BooleanField::new().default(true).into()));
    }

    #[test]
    fn choices_that_make_no_sense_are_kept_and_not_guessed_at() {
        for odd in [
            json!({ "type": "string", "enum": [1, 2] }),
            json!({ "type": "array", "items": true }),
            json!({ "type": "string", "oneOf": "x" }),
        ] {
            assert_eq!(FormField::read(odd.clone()).unwrap(), FormField::Other(odd));
        }
    }
}
