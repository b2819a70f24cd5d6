//! Which tool `taut smoke` may call without asking anybody: one that is sure to change nothing.
//!
//! Pure: looks at what tools say about themselves. Must not call anything.

use serde_json::{Value, json};
use taut::Tool;

use crate::schema::Schema;

const GREETING: &str = "hello from taut";

/// Which tool to call, or why none.
#[derive(Debug, PartialEq)]
pub(super) enum Pick {
    Call(String, Value),
    Nothing(String),
}

/// Names that promise to look and not to touch. Only for tools that say nothing about themselves.
const LOOKS: [&str; 12] = [
    "get", "list", "read", "show", "search", "find", "ping", "status", "version", "help", "whoami",
    "describe",
];

pub(super) fn pick(tools: &[Tool]) -> Pick {
    if tools.is_empty() {
        return Pick::Nothing("it has no tools".to_owned());
    }
    let is_harmful = |tool: &Tool| {
        let hints = tool.annotations.as_ref();
        hints.is_some_and(|hints| {
            hints.read_only_hint != Some(true) && hints.destructive_hint == Some(true)
        })
    };
    if let Some((tool, argument)) = tools
        .iter()
        .filter(|tool| tool.name == "echo" && !is_harmful(tool))
        .find_map(|tool| Some((tool, only_text(tool)?)))
    {
        return Pick::Call(tool.name.clone(), json!({ argument: GREETING }));
    }
    let says = |tool: &&Tool| {
        let read_only = tool.annotations.as_ref().and_then(|hints| hints.read_only_hint);
        read_only == Some(true) && needs_nothing(tool)
    };
    let promises = |tool: &&Tool| {
        let word = tool.name.split(['_', '-', '.', '/']).next().unwrap_or_default().to_lowercase();
        let silent = tool.annotations.as_ref().is_none_or(|hints| hints.read_only_hint.is_none());
        silent && !is_harmful(tool) && needs_nothing(tool) && LOOKS.contains(&word.as_str())
    };
    match tools.iter().find(says).or_else(|| tools.iter().find(promises)) {
        Some(tool) => Pick::Call(tool.name.clone(), json!({})),
        None => Pick::Nothing(
            "no tool is sure to be harmless without arguments; name one with --call".to_owned(),
        ),
    }
}

fn schema(tool: &Tool) -> Value {
    tool.input_schema.json().parse().unwrap_or(Value::Null)
}

/// Whether a tool can be called without arguments.
fn needs_nothing(tool: &Tool) -> bool {
    Schema::of(&schema(tool)).required().is_empty()
}

/// The one argument that a tool needs, if that is one and text.
fn only_text(tool: &Tool) -> Option<String> {
    let schema = schema(tool);
    let schema = Schema::of(&schema);
    let fields = schema.fields();
    match (schema.required().as_slice(), fields.first()) {
        // Something that has to be given and is not described cannot be guessed.
        ([_], Some(one)) if one.required && one.schema.kind() == "string" => {
            Some(one.name.to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Map;
    use taut::types::ToolAnnotations;

    fn tool(name: &str, required: &[&str]) -> Tool {
        let properties: Map<String, Value> =
            required.iter().map(|n| ((*n).to_owned(), json!({ "type": "string" }))).collect();
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        Tool::new(name).input_schema(schema)
    }

    fn read_only(name: &str, required: &[&str]) -> Tool {
        tool(name, required).annotations(ToolAnnotations::new().read_only_hint(true))
    }

    fn destructive(name: &str) -> Tool {
        tool(name, &[]).annotations(ToolAnnotations::new().destructive_hint(true))
    }

    #[test]
    fn nothing_is_called_that_may_change_something() {
        let table: Vec<(Vec<Tool>, Option<&str>)> = vec![
            (vec![], None),
            (vec![tool("delete_all", &[])], None),
            (vec![tool("run", &[]), tool("get_time", &[])], Some("get_time")),
            (vec![tool("get_time", &["zone"])], None),
            (vec![destructive("list_and_delete"), destructive("get_x")], None),
            (vec![read_only("delete_all", &[])], Some("delete_all")),
            (vec![read_only("look", &["where"])], None),
            (vec![tool("getaway", &[])], None),
            (vec![read_only("look", &[]), tool("echo", &["message"])], Some("echo")),
            (vec![tool("echo", &["a", "b"]), read_only("look", &[])], Some("look")),
        ];
        for (tools, called) in table {
            let names: Vec<_> = tools.iter().map(|tool| tool.name.clone()).collect();
            match pick(&tools) {
                Pick::Call(name, _) => assert_eq!(Some(name.as_str()), called, "{names:?}"),
                Pick::Nothing(_) => assert_eq!(None, called, "{names:?}"),
            }
        }
        assert_eq!(
            pick(&[tool("echo", &["message"])]),
            Pick::Call("echo".into(), json!({ "message": GREETING }))
        );
    }
}
