//! Which arguments of which tools are repeated as HTTP headers, and how.
//!
//! Pure. Knows `x-mcp-header` in the schemas of tools; must not know HTTP. PAR-01 to PAR-05, HDR-07.

use std::collections::{BTreeMap, HashMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

const ANNOTATION: &str = "x-mcp-header";

/// How many tools with annotations are remembered. Real servers have a few dozen; a tool beyond that is
/// sent without its headers, and works where the server does not insist on them.
const MAX_TOOLS: usize = 4096;

/// One argument that is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Annotation {
    /// The name of the header without its prefix.
    header: String,
    /// The names of the properties that lead to the value.
    path: Vec<String>,
}

/// The annotations of the tools that were listed.
#[derive(Debug, Default)]
pub(crate) struct Annotations(HashMap<String, Vec<Annotation>>);

/// A page of a list of tools, after its invalid ones were taken out.
pub(crate) struct Learned {
    /// The page without the invalid tools; `None` if there are none.
    pub(crate) rewritten: Option<String>,
    /// The invalid ones: the name and the reason.
    pub(crate) dropped: Vec<(String, &'static str)>,
}

#[derive(Deserialize)]
struct ListedTool<'a> {
    name: String,
    #[serde(borrow, rename = "inputSchema")]
    schema: Option<&'a RawValue>,
}

impl Annotations {
    /// Learns from the result of `tools/list`.
    pub(crate) fn learn(&mut self, result: &RawValue) -> Learned {
        let mut learned = Learned { rewritten: None, dropped: Vec::new() };
        // Most lists have none, and need not be read.
        if !result.get().contains(ANNOTATION) {
            return learned;
        }
        let page = serde_json::from_str::<BTreeMap<String, &RawValue>>(result.get());
        let Ok(mut page) = page else { return learned };
        let tools = page.get("tools").map(|raw| serde_json::from_str::<Vec<&RawValue>>(raw.get()));
        let Some(Ok(mut tools)) = tools else { return learned };
        tools.retain(|tool| match self.learn_tool(tool) {
            Ok(()) => true,
            Err((name, reason)) => {
                learned.dropped.push((name, reason));
                false
            }
        });
        // What stays is copied as it came.
        if !learned.dropped.is_empty()
            && let Ok(tools) = to_raw_value(&tools)
        {
            page.insert("tools".to_owned(), &tools);
            learned.rewritten = serde_json::to_string(&page).ok();
        }
        learned
    }

    fn learn_tool(&mut self, tool: &RawValue) -> Result<(), (String, &'static str)> {
        // What is no tool at all is for the client to judge.
        let Ok(tool) = serde_json::from_str::<ListedTool<'_>>(tool.get()) else { return Ok(()) };
        let schema = tool.schema.and_then(|raw| serde_json::from_str(raw.get()).ok());
        let mut found = Vec::new();
        if let Some(Value::Object(schema)) = &schema {
            collect(schema, &mut Vec::new(), true, &mut found)
                .and_then(|()| unique(&found))
                .map_err(|reason| (tool.name.clone(), reason))?;
        }
        self.0.remove(&tool.name);
        if !found.is_empty() && self.0.len() < MAX_TOOLS {
            self.0.insert(tool.name, found);
        }
        Ok(())
    }

    /// The headers for a call of this tool with these arguments: names without the prefix, and values.
    pub(crate) fn headers(
        &self,
        tool: &str,
        arguments: Option<&RawValue>,
    ) -> Vec<(String, String)> {
        let Some(annotations) = self.0.get(tool) else { return Vec::new() };
        let arguments = arguments.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        let Some(arguments) = arguments else { return Vec::new() };
        let mut headers = Vec::new();
        for Annotation { header, path } in annotations {
            let value = path.iter().try_fold(&arguments, |at, name| at.get(name));
            if let Some(text) = value.and_then(header_text) {
                headers.push((header.clone(), encode(&text)));
            }
        }
        headers
    }
}

/// What a value looks like in a header; `None` for one that is not repeated (PAR-03).
fn header_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(number) => Some(match number.as_f64() {
            // 42.0 is an integer in JSON Schema.
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9.1e15 => {
                format!("{float:.0}")
            }
            _ => number.to_string(),
        }),
        _ => None,
    }
}

/// Text as a header carries it: plain if it can be, otherwise Base64 between markers (HDR-07).
pub(crate) fn encode(text: &str) -> String {
    let plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let blank_end = text.starts_with(' ') || text.ends_with(' ');
    let looks_encoded = text.starts_with("=?base64?") && text.ends_with("?=");
    if plain && !blank_end && !looks_encoded {
        text.to_owned()
    } else {
        format!("=?base64?{}?=", STANDARD.encode(text))
    }
}

/// Finds the annotations of a schema. `reachable`: so far only `properties` led here (PAR-02).
fn collect(
    schema: &Map<String, Value>,
    path: &mut Vec<String>,
    reachable: bool,
    found: &mut Vec<Annotation>,
) -> Result<(), &'static str> {
    if let Some(annotation) = schema.get(ANNOTATION) {
        if !reachable || path.is_empty() {
            return Err("x-mcp-header stands where properties alone do not lead");
        }
        found.push(Annotation { header: header_name(annotation)?, path: path.clone() });
        match schema.get("type").and_then(Value::as_str) {
            Some("string" | "integer" | "boolean") => {}
            _ => return Err("x-mcp-header is on something else than a string, integer or boolean"),
        }
    }
    for (keyword, value) in schema {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    if let Value::Object(property) = property {
                        path.push(name.clone());
                        collect(property, path, reachable, found)?;
                        path.pop();
                    }
                }
            }
            // Values, not schemas.
            ("default" | "const" | "enum" | "examples" | ANNOTATION, _) => {}
            (_, value) => collect_unreachable(value, path, found)?,
        }
    }
    Ok(())
}

fn collect_unreachable(
    value: &Value,
    path: &mut Vec<String>,
    found: &mut Vec<Annotation>,
) -> Result<(), &'static str> {
    match value {
        Value::Object(map) => collect(map, path, false, found),
        Value::Array(list) => {
            list.iter().try_for_each(|item| collect_unreachable(item, path, found))
        }
        _ => Ok(()),
    }
}

fn header_name(annotation: &Value) -> Result<String, &'static str> {
    let name = annotation.as_str().ok_or("x-mcp-header is no string")?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    match name {
        "" => Err("x-mcp-header is empty"),
        _ if !name.bytes().all(is_token) => Err("x-mcp-header is no header name"),
        _ => Ok(name.to_owned()),
    }
}

fn unique(found: &[Annotation]) -> Result<(), &'static str> {
    let mut seen = HashSet::new();
    match found.iter().all(|annotation| seen.insert(annotation.header.to_ascii_lowercase())) {
        true => Ok(()),
        false => Err("two properties have the same x-mcp-header"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn learn(schema: Value) -> (Annotations, Learned) {
        let mut annotations = Annotations::default();
        let page = json!({ "tools": [
            { "name": "t", "inputSchema": schema }, { "name": "other", "inputSchema": {} }
        ], "nextCursor": "c" });
        let learned = annotations.learn(&to_raw_value(&page).unwrap());
        (annotations, learned)
    }

    fn headers(schema: Value, arguments: Value) -> Vec<(String, String)> {
        let (annotations, learned) = learn(schema);
        assert!(learned.dropped.is_empty(), "{:?}", learned.dropped);
        annotations.headers("t", Some(&to_raw_value(&arguments).unwrap()))
    }

    /// PAR-03: as is, decimal, true or false; absent and null give none, the empty string an empty one.
    #[test]
    fn par_03_arguments_are_repeated_by_kind_at_their_exact_place() {
        let schema = json!({ "type": "object", "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "count": { "type": "integer", "x-mcp-header": "Count" },
            "deep": { "type": "object", "properties": {
                "on": { "type": "boolean", "x-mcp-header": "On" } } },
            "plain": { "type": "string" }
        } });
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut all = headers(
            schema.clone(),
            json!({ "region": "eu", "count": 42, "deep": { "on": true }, "plain": "x" }),
        );
        all.sort();
        assert_eq!(all, [pair("Count", "42"), pair("On", "true"), pair("Region", "eu")]);
        assert_eq!(headers(schema.clone(), json!({ "region": null, "deep": {} })), []);
        assert_eq!(headers(schema.clone(), json!({ "region": "" })), [pair("Region", "")]);
        assert_eq!(headers(schema, json!({ "count": 42.0 })), [pair("Count", "42")]);
    }

    /// HDR-07
    #[test]
    fn hdr_07_what_is_no_plain_text_is_sent_as_base64() {
        let cases = [
            ("plain", "plain"),
            ("us west 1", "us west 1"),
            ("", ""),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            ("a\nb", "=?base64?YQpi?="),
            ("\tx", "=?base64?CXg=?="),
            ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
            ("=?BASE64?x?=", "=?BASE64?x?="),
            ("=?base64?x", "=?base64?x"),
        ];
        for (text, wanted) in cases {
            assert_eq!(encode(text), wanted, "{text:?}");
        }
    }

    /// PAR-04, PAR-02
    #[test]
    fn par_04_a_tool_with_an_invalid_annotation_is_dropped_and_the_others_stay() {
        let property = |kind: Value, header: Value| json!({ "properties": { "a": { "type": kind, "x-mcp-header": header } } });
        let a = || json!({ "type": "string", "x-mcp-header": "A" });
        let bad = [
            property(json!("string"), json!("")),
            property(json!("string"), json!("a b")),
            property(json!("string"), json!("a:b")),
            property(json!("string"), json!("Région")),
            property(json!("string"), json!(7)),
            property(json!("number"), json!("A")),
            property(json!("object"), json!("A")),
            property(json!("array"), json!("A")),
            property(json!("null"), json!("A")),
            property(json!(["string", "null"]), json!("A")),
            json!({ "x-mcp-header": "A", "type": "string" }),
            json!({ "properties": { "a": { "items": a() } } }),
            json!({ "properties": { "a": { "anyOf": [a()] } } }),
            json!({ "$defs": { "a": a() } }),
            json!({ "properties": { "a": a(), "b": { "type": "string", "x-mcp-header": "a" } } }),
        ];
        for schema in bad {
            let (annotations, learned) = learn(schema.clone());
            assert_eq!(learned.dropped.len(), 1, "{schema}");
            assert_eq!(learned.dropped[0].0, "t");
            let page: Value = serde_json::from_str(&learned.rewritten.unwrap()).unwrap();
            assert_eq!(page["tools"].as_array().unwrap().len(), 1);
            assert_eq!(page["nextCursor"], "c");
            assert!(annotations.0.is_empty());
        }
        // A property that is only named so, and values that only look so, are no annotations.
        let fine = json!({ "properties": {
            "x-mcp-header": { "type": "number", "default": { "x-mcp-header": 1 } } } });
        assert!(learn(fine).1.dropped.is_empty());
    }
}
