//! A server whose every word is written by a stranger: escapes, invisible letters, huge schemas.
//!
//! Speaks 2025-11-25 by hand, because no library would send this.

use std::io::{BufRead as _, Write as _};

use serde_json::{Map, Value, json};

/// `hostile SEED` says random things; `properties N` has a tool with so many arguments;
/// `pages BYTES` has a list that never ends, in pages of that size; `cursors BYTES` one whose cursors have that size.
pub(super) fn serve(role: &str) {
    let (kind, number) = role.split_once(' ').unwrap();
    let number: u64 = number.parse().unwrap();
    let mut random = Random(number);
    if kind == "hostile" {
        eprintln!("{}", random.text());
    }
    let mut page = 0;
    for line in std::io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line.unwrap()) else { continue };
        let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) else {
            continue;
        };
        let answer = match kind {
            "hostile" => random.answer(method, &message["params"]),
            "properties" => properties(method, number),
            _ => {
                page += 1;
                let bytes = usize::try_from(number).unwrap();
                let (text, cursor) = if kind == "cursors" { (0, bytes) } else { (bytes, 0) };
                pages(method, text, &format!("{page}{}", "x".repeat(cursor)))
            }
        };
        let answer = match answer {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        };
        let mut out = std::io::stdout().lock();
        if kind == "hostile" && method == "tools/call" {
            let text = random.text();
            let log = json!({ "level": "error", "logger": random.text(), "data": text });
            let note =
                json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": log });
            writeln!(out, "{note}").unwrap();
            writeln!(out, "not JSON {}", random.text().replace('\n', " ")).unwrap();
        }
        writeln!(out, "{answer}").and_then(|()| out.flush()).unwrap();
    }
}

type Answer = Result<Value, Value>;

fn opened(name: &str, version: &str) -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": { "tools": {}, "prompts": {}, "resources": {}, "logging": {} },
        "serverInfo": { "name": name, "version": version },
    })
}

fn unknown() -> Answer {
    Err(json!({ "code": -32601, "message": "no such method" }))
}

fn properties(method: &str, count: u64) -> Answer {
    match method {
        "initialize" => Ok(opened("many", "1")),
        "tools/list" => {
            let names: Vec<String> = (0..count).map(|n| format!("property_{n}")).collect();
            let all: Map<String, Value> =
                names.iter().map(|name| (name.clone(), json!({ "type": "string" }))).collect();
            let schema = json!({ "type": "object", "properties": all, "required": names });
            Ok(json!({ "tools": [{ "name": "many", "inputSchema": schema }] }))
        }
        "prompts/list" => Ok(json!({ "prompts": [] })),
        "resources/list" => Ok(json!({ "resources": [] })),
        _ => unknown(),
    }
}

fn pages(method: &str, bytes: usize, cursor: &str) -> Answer {
    let schema = json!({ "type": "object", "description": "x".repeat(bytes) });
    match method {
        "initialize" => Ok(opened("pages", "1")),
        "tools/list" => Ok(json!({
            "tools": [{ "name": format!("tool_{:.5}", cursor), "inputSchema": schema }],
            "nextCursor": cursor,
        })),
        _ => unknown(),
    }
}

/// Texts that nobody should see as they are.
pub(super) struct Random(pub(super) u64);

/// What steers a terminal or cannot be seen, and a style that is none of ours.
const PARTS: [&str; 18] = [
    "\x1b]0;owned\x07",
    "\x1b[2J",
    "\x1b[35m",
    "\u{9b}35m",
    "\u{202e}",
    "\u{2066}",
    "\u{200b}",
    "\u{fe0f}",
    "\u{e0100}",
    "\u{3164}",
    "\u{115f}",
    "\u{2800}",
    "\r",
    "\x08",
    "\x7f",
    "\x1bc",
    "\x1bP1$r",
    "\u{f0000}\u{f0001}",
];

impl Random {
    fn next(&mut self) -> usize {
        // Knuth's; any will do.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize
    }

    /// Some words with several of the parts in between.
    pub(super) fn text(&mut self) -> String {
        let words = ["key", "a", "größe", "日本", "x=1", "path/to", "\n", "\t", "\"", "{}"];
        (0..3 + self.next() % 4)
            .map(|_| {
                format!("{}{}", words[self.next() % words.len()], PARTS[self.next() % PARTS.len()])
            })
            .collect()
    }

    fn answer(&mut self, method: &str, params: &Value) -> Answer {
        Ok(match method {
            "initialize" => {
                let mut opened = opened(&self.text(), &self.text());
                opened["serverInfo"]["title"] = json!(self.text());
                opened["instructions"] = json!(self.text());
                opened
            }
            "tools/list" => json!({ "tools": [self.tool("x"), self.tool("fails"), {
                "name": self.text(), "title": self.text(), "description": self.text(),
                "inputSchema": self.schema(),
            }] }),
            "tools/call" if params["name"] == "fails" => {
                return Err(json!({
                    "code": -32000, "message": self.text(), "data": { "why": self.text() },
                }));
            }
            "tools/call" => json!({ "isError": self.next().is_multiple_of(2), "content": [
                { "type": "text", "text": self.text() },
                { "type": "image", "data": "aGk=", "mimeType": self.text() },
                { "type": "resource_link", "uri": self.text(), "name": self.text() },
                { "type": self.text(), "more": self.text() },
            ], "structuredContent": { self.text(): self.text() } }),
            "prompts/list" => json!({ "prompts": [{
                "name": "p", "description": self.text(),
                "arguments": [{ "name": self.text(), "description": self.text(), "required": true }],
            }, { "name": "free", "title": self.text() }] }),
            "prompts/get" => json!({ "description": self.text(), "messages": [
                { "role": self.text(), "content": { "type": "text", "text": self.text() } },
            ] }),
            "resources/list" => json!({ "resources": [{
                "uri": self.text(), "name": self.text(), "mimeType": self.text(),
                "description": self.text(),
            }] }),
            "resources/templates/list" => json!({ "resourceTemplates": [{
                "uriTemplate": self.text(), "name": self.text(), "mimeType": self.text(),
            }] }),
            "resources/read" => json!({ "contents": [
                { "uri": self.text(), "mimeType": self.text(), "text": self.text() },
                { "uri": self.text(), "mimeType": self.text(), "blob": "aGk=" },
            ] }),
            _ => return Err(json!({ "code": -32601, "message": self.text() })),
        })
    }

    fn tool(&mut self, name: &str) -> Value {
        json!({ "name": name, "title": self.text(), "description": self.text(),
                "inputSchema": self.schema(), "annotations": { "title": self.text() } })
    }

    fn schema(&mut self) -> Value {
        let (first, second) = (self.text(), self.text());
        json!({ "type": "object", "required": [first], "properties": {
            first: { "type": self.text(), "description": self.text(), "default": self.text() },
            second: { "enum": [self.text(), self.text()], "title": self.text() },
        } })
    }
}
