//! What passes the specification and still breaks hosts: a pure look at a list of tools.
//!
//! `taut doctor` shows it. Knows hosts; must not ask the server anything.

use serde_json::Value;

/// Something that hosts trip over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lint {
    /// Its name, such as `integer-format`.
    pub id: &'static str,
    /// The tools that have it.
    pub tools: Vec<String>,
    /// What it is.
    pub what: String,
    /// Whom it hurts.
    pub hurts: &'static str,
    /// What to change.
    pub change: &'static str,
}

/// The longest name that model providers take.
const LONGEST_NAME: usize = 64;

/// The formats that Rust's schemars writes for integers and floats, which are no part of JSON Schema.
const RUST_FORMATS: [&str; 14] = [
    "int8", "int16", "int32", "int64", "int128", "int", "uint8", "uint16", "uint32", "uint64",
    "uint128", "uint", "float", "double",
];

/// One kind of trouble: its name, how a tool shows it, what it is, whom it hurts, what to change.
type Rule = (&'static str, fn(&Value) -> bool, &'static str, &'static str, &'static str);

const RULES: [Rule; 6] = [
    (
        "integer-format",
        |tool| {
            anywhere(&tool["inputSchema"], &|schema| {
                schema["format"].as_str().is_some_and(|format| RUST_FORMATS.contains(&format))
            })
        },
        "the schema has a `format` such as uint32, which JSON Schema does not know",
        "AutoGen loads none of the server's tools; strict validators reject the schema",
        "leave `format` out of numbers, and use `minimum` and `maximum`",
    ),
    (
        "type-array",
        |tool| anywhere(&tool["inputSchema"], &|schema| schema["type"].is_array()),
        "the schema has a list of types, such as [\"string\", \"null\"]",
        "AutoGen loads none of the server's tools; Gemini refuses the declaration",
        "make the field optional instead of nullable, or use `anyOf`",
    ),
    (
        "open-object",
        |tool| tool["inputSchema"].get("additionalProperties").is_none(),
        "the schema does not say `additionalProperties`",
        "hosts that ask for strict function calls have to rewrite the schema, or give it up",
        "say `\"additionalProperties\": false`",
    ),
    (
        "long-name",
        |tool| tool["name"].as_str().is_some_and(|name| name.chars().count() > LONGEST_NAME),
        "the name has more than 64 characters",
        "model providers refuse it; hosts that put the server's name before it reach the limit even earlier",
        "use a shorter name",
    ),
    (
        "root-reference",
        |tool| tool["inputSchema"].get("$ref").is_some(),
        "the schema is a `$ref` at its root",
        "hosts that read `properties` from the root show a tool without arguments",
        "write the object out at the root",
    ),
    (
        "no-annotations",
        |tool| tool["annotations"].get("readOnlyHint").is_none(),
        "there is no `readOnlyHint` in the annotations",
        "Codex and Claude Code ask the user before every call, also of a tool that only reads",
        "say `readOnlyHint`, and `destructiveHint` where it is false",
    ),
];

/// Looks at the tools of a server, as `tools/list` gave them, and at how many pages that took.
#[must_use]
pub fn lint(tools: &[Value], pages: usize) -> Vec<Lint> {
    let mut found: Vec<Lint> = Vec::new();
    for (id, has, what, hurts, change) in RULES {
        let named = tools.iter().filter(|tool| has(tool)).filter_map(|tool| tool["name"].as_str());
        let named: Vec<String> = named.map(str::to_owned).collect();
        if !named.is_empty() {
            found.push(Lint { id, tools: named, what: what.to_owned(), hurts, change });
        }
    }
    if pages > 1 {
        found.push(Lint {
            id: "paged-list",
            tools: Vec::new(),
            what: format!("the list of {} tools comes in {pages} pages", tools.len()),
            hurts: "some hosts read the first page only, so the other tools are not there",
            change: "give all tools in one page, if they are fewer than some hundred",
        });
    }
    found
}

/// Whether a schema, or one inside it, has something. Looks through objects and lists alike.
fn anywhere(schema: &Value, has: &dyn Fn(&Value) -> bool) -> bool {
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                if has(value) {
                    return true;
                }
                open.extend(members.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ids(tool: &Value, pages: usize) -> Vec<&'static str> {
        lint(std::slice::from_ref(tool), pages).iter().map(|lint| lint.id).collect()
    }

    fn good() -> Value {
        json!({ "name": "add", "annotations": { "readOnlyHint": true }, "inputSchema": {
            "type": "object", "additionalProperties": false,
            "properties": { "a": { "type": "number" } } } })
    }

    #[test]
    fn a_tool_that_every_host_takes_is_left_alone() {
        assert_eq!(ids(&good(), 1), [""; 0]);
    }

    #[test]
    fn each_trouble_is_found_alone() {
        let mut tool = good();
        tool["inputSchema"]["properties"]["a"] = json!({ "type": "integer", "format": "uint32" });
        assert_eq!(ids(&tool, 1), ["integer-format"]);
        let mut tool = good();
        tool["inputSchema"]["properties"]["a"]["type"] = json!(["number", "null"]);
        assert_eq!(ids(&tool, 1), ["type-array"]);
        let mut tool = good();
        tool["inputSchema"] = json!({ "type": "object" });
        assert_eq!(ids(&tool, 1), ["open-object"]);
        let mut tool = good();
        tool["name"] = json!("a".repeat(65));
        assert_eq!(ids(&tool, 1), ["long-name"]);
        let mut tool = good();
        tool["inputSchema"]["$ref"] = json!("#/$defs/Add");
        assert_eq!(ids(&tool, 1), ["root-reference"]);
        let mut tool = good();
        tool["annotations"] = json!({ "title": "Add" });
        assert_eq!(ids(&tool, 1), ["no-annotations"]);
        assert_eq!(ids(&good(), 2), ["paged-list"]);
    }
}
