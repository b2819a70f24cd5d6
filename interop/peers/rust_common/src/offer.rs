//! Names, schemas and answers of every Rust peer's server.

use serde_json::{Value, json};

pub const CITIES: [&str; 6] = ["Amsterdam", "Athens", "Berlin", "Bern", "Lisbon", "Tokyo"];
pub const LANGUAGES: [&str; 4] = ["Dutch", "English", "German", "Japanese"];
pub const README: &str = "# interop peer\n\nOne of each thing that an MCP server can do.\n";
pub const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// What the command line says.
pub struct Options {
    pub tools: usize,
    pub page: usize,
    /// `mt` or `cur`, if told.
    pub runtime: String,
    /// `stdio` or `pipes`, if told.
    pub transport: String,
}

pub fn options() -> Options {
    let mut options =
        Options { tools: 0, page: 0, runtime: "mt".into(), transport: "stdio".into() };
    let mut words = std::env::args().skip(1);
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        match name.as_str() {
            "--tools" => options.tools = value.parse().expect("a number"),
            "--page" => options.page = value.parse().expect("a number"),
            "--runtime" => options.runtime = value,
            "--transport" => options.transport = value,
            other => panic!("there is no option {other}"),
        }
    }
    options
}

/// (name, description, input schema) of each tool.
pub fn tools(extra: usize) -> Vec<(String, String, Value)> {
    let takes = |required: &[&str], all: &[(&str, &str)]| {
        let properties: serde_json::Map<_, _> =
            all.iter().map(|(name, kind)| ((*name).to_owned(), json!({ "type": kind }))).collect();
        json!({ "type": "object", "properties": properties, "required": required })
    };
    let named = [
        ("echo", "Say it again.", takes(&["text"], &[("text", "string")])),
        ("add", "Add two numbers.", takes(&["a", "b"], &[("a", "number"), ("b", "number")])),
        (
            "slow",
            "Take a while, with progress.",
            takes(&[], &[("steps", "integer"), ("step_ms", "integer")]),
        ),
        ("fail", "Fail.", takes(&[], &[("reason", "string")])),
        ("big", "Return so many bytes of text.", takes(&["bytes"], &[("bytes", "integer")])),
        (
            "log",
            "Write a line to the client's log.",
            takes(&["message"], &[("level", "string"), ("message", "string")]),
        ),
        ("ask", "Order a coffee.", takes(&[], &[])),
        ("sample", "Ask the client's model.", takes(&["prompt"], &[("prompt", "string")])),
        ("roots", "Tell which folders the client works in.", takes(&[], &[])),
        (
            "add_tool",
            "Add a tool.",
            takes(&["name", "says"], &[("name", "string"), ("says", "string")]),
        ),
        ("touch", "Change the resource demo://touched.", takes(&[], &[])),
    ];
    let named =
        named.into_iter().map(|(name, what, takes)| (name.to_owned(), what.to_owned(), takes));
    let plain = (0..extra).map(|n| {
        let schema = takes(&["text"], &[("text", "string")]);
        (format!("tool_{n:03}"), format!("Plain tool number {n}."), schema)
    });
    named.chain(plain).collect()
}

pub fn sum_schema() -> Value {
    json!({ "type": "object", "properties": { "sum": { "type": "number" } }, "required": ["sum"] })
}

/// The form of the tool `ask`.
pub fn coffee() -> Value {
    json!({
        "type": "object",
        "properties": {
            "size": { "type": "string", "enum": ["small", "large"] },
            "milk": { "type": "boolean", "default": true },
            "name": { "type": "string" },
        },
        "required": ["size"],
    })
}

/// What the tool `ask` says to a filled-in form.
pub fn order(form: &Value) -> String {
    let milk = if form["milk"].as_bool().unwrap_or(true) { "with milk" } else { "black" };
    let size = form["size"].as_str().unwrap_or("small");
    format!("one {size} coffee, {milk}, for {}", form["name"].as_str().unwrap_or("you"))
}

pub fn big(bytes: usize) -> String {
    "0123456789abcdef".repeat(bytes.div_ceil(16))[..bytes].to_owned()
}

/// The resource weather://{city}/today.
pub fn weather(uri: &str) -> Option<String> {
    let city = uri.strip_prefix("weather://")?.strip_suffix("/today")?;
    let known = CITIES.iter().find(|known| known.eq_ignore_ascii_case(city))?;
    Some(format!("{known}: sunny, as always in a demo"))
}

/// (is the assistant's, text) of each message of the prompt `greet`.
pub fn greeting(name: &str, language: &str) -> [(bool, String); 3] {
    [
        (false, format!("Greet {name} in {language}.")),
        (true, "With pleasure. In one sentence or in two?".to_owned()),
        (false, "In one.".to_owned()),
    ]
}

/// Completions of the argument called `name`.
pub fn completions(name: &str, start: &str) -> Vec<String> {
    let words: &[&str] = match name {
        "language" => &LANGUAGES,
        "city" => &CITIES,
        _ => &[],
    };
    let start = start.to_lowercase();
    words.iter().filter(|w| w.to_lowercase().starts_with(&start)).map(|w| (*w).to_owned()).collect()
}
