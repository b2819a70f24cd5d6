//! Which tool `taut smoke` may call without asking anybody: one that is sure to change nothing.
//!
//! Pure: looks at what tools say about themselves. Must not call anything.

use serde_json::{Map, Value, json};
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

/// Words of a name that promise more than a look, or something that is not for a transcript: whatever such a tool says
/// about itself, a person names it or nobody calls it.
#[rustfmt::skip]
const TOUCHES: [&str; 73] = [
    "add", "append", "apply", "authenticate", "buy", "cancel", "clean", "cleanup", "clear", "click", "close",
    "commit", "connect", "create", "credential", "credentials", "delete", "deploy", "destroy", "disable",
    "download", "drop", "edit", "enable", "env", "environment", "eval", "evaluate", "exec", "execute", "generate",
    "import", "insert", "install", "interact", "invoke", "kill", "launch", "login", "logout", "merge", "move",
    "navigate", "open", "password", "passwords", "patch", "post", "publish", "purge", "push", "put", "record",
    "remove", "rename", "replace", "reset", "restart", "run", "screenshot", "secret", "secrets", "send", "set",
    "shutdown", "start", "stop", "submit", "trigger", "uninstall", "unsafe", "update", "upload",
];

/// Words of a name that need the world: a network, or a program that has to be started.
const WORLD: [&str; 14] = [
    "browse", "browser", "crawl", "download", "fetch", "google", "http", "internet", "scrape",
    "url", "wait", "weather", "web", "website",
];

/// Words of a description that say that a browser is started.
const BROWSERS: [&str; 8] =
    ["browser", "browsers", "chrome", "chromium", "firefox", "playwright", "puppeteer", "selenium"];

/// The words of a name, whether they are joined by signs or by capitals.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before_was_small = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && before_was_small) {
            words.push(String::new());
        }
        before_was_small = c.is_lowercase() || c.is_numeric();
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a tool may do more than look, or needs something that is not here.
fn is_risky(tool: &Tool) -> bool {
    let hints = tool.annotations.as_ref();
    let harmful = hints.is_some_and(|hints| {
        hints.read_only_hint != Some(true) && hints.destructive_hint == Some(true)
    });
    let world = hints.is_some_and(|hints| hints.open_world_hint == Some(true));
    let has =
        |text: &str, list: &[&str]| words(text).iter().any(|word| list.contains(&word.as_str()));
    let text = tool.description.as_deref().unwrap_or_default();
    // What stands further down are details: how a tool works, and for whom.
    let said: String = text.chars().take(DESCRIPTION).collect();
    harmful
        || world
        || has(&tool.name, &TOUCHES)
        || has(&tool.name, &WORLD)
        || has(&said, &BROWSERS)
}

/// How many characters of a description say what a tool does.
const DESCRIPTION: usize = 400;

pub(super) fn pick(tools: &[Tool]) -> Pick {
    if tools.is_empty() {
        return Pick::Nothing("it has no tools".to_owned());
    }
    if let Some((tool, argument)) = tools
        .iter()
        .filter(|tool| tool.name == "echo" && !is_risky(tool))
        .find_map(|tool| Some((tool, only_text(tool)?)))
    {
        return Pick::Call(tool.name.clone(), json!({ argument: GREETING }));
    }
    let free = || tools.iter().filter(|tool| needs_nothing(tool) && !is_risky(tool));
    let read_only = |tool: &&Tool| tool.annotations.as_ref().and_then(|hints| hints.read_only_hint);
    let closed = |tool: &&Tool| {
        tool.annotations.as_ref().and_then(|hints| hints.open_world_hint) == Some(false)
    };
    let says = |tool: &&Tool| read_only(tool) == Some(true);
    let promises = |tool: &&Tool| {
        let words = words(&tool.name);
        let first = words.first().map(String::as_str).unwrap_or_default();
        read_only(tool).is_none() && LOOKS.contains(&first)
    };
    // The one that says most about itself is the surest.
    let surest = free().find(|tool| says(tool) && closed(tool));
    match surest.or_else(|| free().find(says)).or_else(|| free().find(promises)) {
        Some(tool) => Pick::Call(tool.name.clone(), json!({})),
        None => Pick::Nothing("no tool is sure to be harmless without arguments".to_owned()),
    }
}

/// The words that name a tool for a call: one that looks harmless if there is one, with the arguments that it
/// needs. Nothing if there is no tool.
pub(super) fn suggestion(tools: &[Tool]) -> Option<Vec<String>> {
    let only_reads = |tool: &&Tool| {
        tool.annotations.as_ref().and_then(|hints| hints.read_only_hint) == Some(true)
    };
    let harmless = tools.iter().find(|tool| !is_risky(tool));
    let tool = harmless.or_else(|| tools.iter().find(only_reads)).or_else(|| tools.first())?;
    let schema = schema(tool);
    let example = |name: &str| {
        let field = &schema["properties"][name];
        let known = field.get("default").or_else(|| field["enum"].get(0));
        let value = match field["type"].as_str() {
            Some("integer" | "number") => json!(1),
            Some("boolean") => json!(true),
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ => json!("…"),
        };
        (name.to_owned(), known.cloned().unwrap_or(value))
    };
    let read = Schema::of(&schema);
    let arguments: Map<String, Value> = read.required().into_iter().map(example).collect();
    let mut words = vec!["--call".to_owned(), tool.name.clone()];
    if !arguments.is_empty() {
        words.extend(["--args".to_owned(), Value::Object(arguments).to_string()]);
    }
    Some(words)
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

    fn open_world() -> ToolAnnotations {
        ToolAnnotations::new().read_only_hint(true).open_world_hint(true)
    }

    fn closed(name: &str) -> Tool {
        let hints = ToolAnnotations::new().read_only_hint(true).open_world_hint(false);
        tool(name, &[]).annotations(hints)
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
            (vec![read_only("delete_all", &[])], None),
            (vec![read_only("browser_snapshot", &[])], None),
            (vec![read_only("look", &[]).annotations(open_world())], None),
            (vec![read_only("list_pages", &[]).description("Get the pages of the browser.")], None),
            (vec![read_only("getEnv", &[]), read_only("readGraph", &[])], Some("readGraph")),
            (vec![read_only("get_users", &[]), closed("ping")], Some("ping")),
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

    #[test]
    fn what_could_be_called_is_named_with_the_arguments_that_it_needs() {
        let words = |tools: &[Tool]| suggestion(tools).map(|words| words.join(" "));
        assert_eq!(words(&[]), None);
        let tools = [tool("delete_it", &[]), tool("forecast", &["city"])];
        assert_eq!(words(&tools).unwrap(), r#"--call forecast --args {"city":"…"}"#);
        assert_eq!(words(&tools[..1]).unwrap(), "--call delete_it");
    }
}
