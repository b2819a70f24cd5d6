//! A form: named fields in the order they are shown.
//!
//! Knows the object around the fields, and leaves out what a revision cannot show; must not know
//! the kinds of field. ELI-02.

use std::collections::HashSet;

use serde::de::{Deserialize, Deserializer, Error, MapAccess};

use super::extra::Extra;
use super::field::FormField;
use super::write::{Target, WriteJson, serialize_any};
use crate::json::ObjectWriter;
use crate::json::read::{FromMembers, Name, ObjectVisitor, fixed_member};

/// The fields of a form, in the order they are shown.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
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
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a field that may be left empty.
    #[must_use]
    pub fn optional(mut self, name: impl Into<String>, field: impl Into<FormField>) -> Self {
        self.fields.push((name.into(), field.into()));
        self
    }

    /// Adds a field that has to be filled in.
    #[must_use]
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
struct Fields(Vec<(String, FormField)>);

impl<'de> FromMembers<'de> for Fields {
    const EXPECTED: &'static str = "an object of fields";

    fn from_members<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut fields = Vec::new();
        while let Some((name, value)) = map.next_entry()? {
            fields.push((name, FormField::read(value).map_err(A::Error::custom)?));
        }
        Ok(Self(fields))
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor::<Self>::new())
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
        let mut fields: Option<Fields> = None;
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

impl<'de> Deserialize<'de> for FormSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor::<Self>::new())
    }
}

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
}
