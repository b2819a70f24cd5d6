//! Which arguments of which tools are repeated as HTTP headers, as far as tools were listed.
//!
//! Pure. Knows lists of tools; what an annotation means it asks `taut` for. PAR-03, PAR-04.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use taut::types::{BadParameterHeader, ParameterHeader, parameter_values};

use crate::headers::encode;

/// How many tools with annotations are remembered. Real servers have a few dozen; a tool beyond that is
/// sent without its headers, and works where the server does not insist on them.
const MAX_TOOLS: usize = 4096;

/// The annotations of the tools that were listed.
#[derive(Debug, Default)]
pub(crate) struct Annotations(HashMap<String, Vec<ParameterHeader>>);

/// A page of a list of tools, after its invalid ones were taken out.
pub(crate) struct Learned {
    /// The page without the invalid tools; `None` if there are none.
    pub(crate) rewritten: Option<String>,
    /// The invalid ones: the name and the reason.
    pub(crate) dropped: Vec<(String, BadParameterHeader)>,
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
        let page = serde_json::from_str::<BTreeMap<String, &RawValue>>(result.get());
        let Ok(mut page) = page else { return learned };
        let tools = page.get("tools").map(|raw| serde_json::from_str::<Vec<&RawValue>>(raw.get()));
        let Some(Ok(mut tools)) = tools else { return learned };
        tools.retain(|tool| match self.learn_tool(tool) {
            Ok(()) => true,
            Err(dropped) => {
                learned.dropped.push(dropped);
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

    fn learn_tool(&mut self, tool: &RawValue) -> Result<(), (String, BadParameterHeader)> {
        // What is no tool at all is for the client to judge.
        let Ok(tool) = serde_json::from_str::<ListedTool<'_>>(tool.get()) else { return Ok(()) };
        let schema = tool.schema.map_or("{}", RawValue::get);
        match ParameterHeader::of_schema(schema) {
            Ok(found) if found.is_empty() => drop(self.0.remove(&tool.name)),
            Ok(found) if self.0.len() < MAX_TOOLS => drop(self.0.insert(tool.name, found)),
            Ok(_) => {}
            Err(reason) => return Err((tool.name, reason)),
        }
        Ok(())
    }

    /// The headers for a call of this tool with these arguments: names without the prefix, and values.
    pub(crate) fn headers(
        &self,
        tool: &str,
        arguments: Option<&RawValue>,
    ) -> Vec<(String, String)> {
        let Some(known) = self.0.get(tool) else { return Vec::new() };
        let values = parameter_values(known, arguments.map(Into::into));
        values
            .into_iter()
            .map(|(name, text)| (name.to_owned(), encode(&text).into_owned()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

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
