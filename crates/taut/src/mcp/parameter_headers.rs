//! Parameters of a tool that HTTP repeats in headers: which, and with what value.
//!
//! Knows schemas and JSON values; must not know HTTP. PAR-01 to PAR-05, HDR-09.

use std::fmt;

use serde_json::{Map, Value};

use crate::json::JsonRef;

/// The member of a property's schema that names its header.
const ANNOTATION: &str = "x-mcp-header";

/// How deep properties are searched. Real schemas are a few levels deep.
const MAX_DEPTH: usize = 64;

/// A parameter that a call of a tool repeats in the header `Mcp-Param-` + name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParameterHeader {
    name: String,
    path: Vec<String>,
    integer: bool,
}

/// Why the annotations of a tool cannot be used (PAR-02). A client leaves such a tool out (PAR-04).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BadParameterHeader {
    /// What the annotation says.
    pub header: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl fmt::Display for BadParameterHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{ANNOTATION} {:?}: {}", self.header, self.reason)
    }
}

impl std::error::Error for BadParameterHeader {}

impl ParameterHeader {
    /// The parameters that `schema`, the input schema of a tool, asks to repeat.
    ///
    /// # Errors
    /// An annotation breaks the rules: its name is no token or not unique, or the parameter is not a
    /// string, integer or boolean that is reached through `properties` alone.
    pub fn of_schema(schema: &str) -> Result<Vec<Self>, BadParameterHeader> {
        // Hardly any tool has one.
        if !schema.contains(ANNOTATION) {
            return Ok(Vec::new());
        }
        let Ok(Value::Object(schema)) = serde_json::from_str(schema) else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        search(&schema, &mut Vec::new(), true, &mut found)?;
        for (at, header) in found.iter().enumerate() {
            let same = |other: &Self| other.name.eq_ignore_ascii_case(&header.name);
            if found[..at].iter().any(same) {
                return Err(bad(&header.name, "two parameters have this header"));
            }
        }
        Ok(found)
    }

    /// The name, without `Mcp-Param-`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the header has to say in a call with `arguments`. `None` if the parameter is absent or
    /// null, or no string, number or boolean: then there is no header.
    #[must_use]
    pub fn value(&self, arguments: Option<JsonRef<'_>>) -> Option<String> {
        let mut at = arguments?;
        for member in &self.path {
            at = at.member(member)?;
        }
        match at.text() {
            "null" => None,
            text @ ("true" | "false") => Some(text.to_owned()),
            text if text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
                Some(integer(text).map_or_else(|| text.to_owned(), |number| number.to_string()))
            }
            _ => at.string().map(std::borrow::Cow::into_owned),
        }
    }

    /// Whether a header with the value `given` says the same as `expected`. HDR-09: integers are
    /// compared as numbers.
    #[must_use]
    pub fn same_value(&self, given: &str, expected: &str) -> bool {
        given == expected
            || (self.integer && integer(given).is_some() && integer(given) == integer(expected))
    }
}

/// The integer that a text names, also if it is written as 42.0 or 4.2e1.
fn integer(text: &str) -> Option<i64> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let number: f64 = serde_json::from_str(text).ok()?;
    /// Beyond this, neighbouring integers are the same number.
    const EXACT: f64 = 9_007_199_254_740_991.0;
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

fn bad(header: &str, reason: &'static str) -> BadParameterHeader {
    BadParameterHeader { header: header.to_owned(), reason }
}

/// Collects the annotations of `schema`, which is at `path`. `reachable`: through `properties` alone.
fn search(
    schema: &Map<String, Value>,
    path: &mut Vec<String>,
    reachable: bool,
    found: &mut Vec<ParameterHeader>,
) -> Result<(), BadParameterHeader> {
    if path.len() > MAX_DEPTH {
        return Ok(());
    }
    if let Some(name) = schema.get(ANNOTATION) {
        found.push(annotated(name, schema, path, reachable)?);
    }
    let mut below = |step: &String, inner: &Map<String, Value>, reachable: bool| {
        path.push(step.clone());
        let searched = search(inner, path, reachable, found);
        path.pop();
        searched
    };
    for (keyword, value) in schema {
        match (keyword.as_str(), value) {
            (ANNOTATION | "default" | "const" | "enum" | "examples", _) => {}
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    property.as_object().map_or(Ok(()), |p| below(name, p, reachable))?;
                }
            }
            (_, Value::Object(inner)) => below(keyword, inner, false)?,
            (_, Value::Array(inner)) => {
                let mut inner = inner.iter().filter_map(Value::as_object);
                inner.try_for_each(|inner| below(keyword, inner, false))?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn annotated(
    name: &Value,
    schema: &Map<String, Value>,
    path: &[String],
    reachable: bool,
) -> Result<ParameterHeader, BadParameterHeader> {
    let Some(name) = name.as_str() else {
        return Err(bad(&name.to_string(), "the name of a header is a string"));
    };
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Err(bad(name, "the name of a header is a token of letters, digits and -._~"));
    }
    if !reachable || path.is_empty() {
        return Err(bad(name, "the parameter must be reached through `properties` alone"));
    }
    let kind = schema.get("type").and_then(Value::as_str);
    if !matches!(kind, Some("string" | "integer" | "boolean")) {
        return Err(bad(name, "the parameter must be a string, an integer or a boolean"));
    }
    let integer = kind == Some("integer");
    Ok(ParameterHeader { name: name.to_owned(), path: path.to_vec(), integer })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn headers(schema: Value) -> Result<Vec<ParameterHeader>, BadParameterHeader> {
        ParameterHeader::of_schema(&schema.to_string())
    }

    /// PAR-01, PAR-03, HDR-09.
    #[test]
    fn par_03_values_are_found_at_their_path() {
        let headers = headers(json!({ "type": "object", "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "deep": { "type": "object", "properties": {
                "count": { "type": "integer", "x-mcp-header": "Count" },
                "dry": { "type": "boolean", "x-mcp-header": "Dry" },
            }},
            "other": { "type": "string" },
        }}))
        .unwrap();
        let values = |arguments: &str| {
            let raw: Box<serde_json::value::RawValue> = serde_json::from_str(arguments).unwrap();
            let value = |header: &ParameterHeader| header.value(Some((&*raw).into()));
            let value =
                |header| Some(format!("{}={}", ParameterHeader::name(header), value(header)?));
            headers.iter().filter_map(value).collect::<Vec<_>>()
        };
        let all = values(r#"{"region":"é","deep":{"count":42.0,"dry":true}}"#);
        assert_eq!(all, ["Count=42", "Dry=true", "Region=é"]);
        assert_eq!(values(r#"{"region":"","deep":{"count":null}}"#), ["Region="]);
        assert!(values(r#"{"count":1}"#).is_empty());
        let count = headers.iter().find(|header| header.name() == "Count").unwrap();
        // HDR-09
        assert!(count.same_value("42.0", "42") && !count.same_value("43", "42"));
        let region = headers.iter().find(|header| header.name() == "Region").unwrap();
        assert!(!region.same_value("42.0", "42"));
    }

    #[test]
    fn par_02_annotations_that_break_the_rules() {
        let property = |property: Value| headers(json!({ "properties": { "a": property } }));
        for (kind, name) in [("number", "A"), ("string", ""), ("string", "a b"), ("object", "A")] {
            let result = property(json!({ "type": kind, "x-mcp-header": name }));
            assert!(result.is_err(), "{kind} {name:?}");
        }
        assert!(property(json!({ "type": "string", "x-mcp-header": 5 })).is_err());
        let inner = json!({ "type": "string", "x-mcp-header": "A" });
        for keyword in ["items", "anyOf", "if"] {
            let hidden = match keyword {
                "anyOf" => json!([inner]),
                _ => inner.clone(),
            };
            assert!(property(json!({ keyword: hidden })).is_err(), "{keyword}");
        }
        let twice = json!({ "properties": {
            "a": inner, "b": { "type": "string", "x-mcp-header": "a" }
        }});
        assert!(headers(twice).is_err());
        assert_eq!(property(inner).unwrap().len(), 1);
        // A value that only looks like an annotation.
        let value = json!({ "type": "object", "default": { "x-mcp-header": "A" } });
        assert_eq!(property(value), Ok(Vec::new()));
    }
}
