//! What the check answers a server that asks it something.
//!
//! Knows the questions of the protocol. Must not know any check, nor how messages travel.

use serde_json::{Value, json};

/// What we answer to a server that asks, as a client with these capabilities.
pub(crate) fn reply_to(request: &Value, caps: &Value) -> Value {
    let result = match request["method"].as_str().unwrap_or_default() {
        "ping" => json!({}),
        "roots/list" if caps.get("roots").is_some() => {
            json!({ "roots": [{ "uri": "file:///tmp", "name": "tmp" }] })
        }
        "sampling/createMessage" if caps.get("sampling").is_some() => json!({
            "role": "assistant", "content": { "type": "text", "text": "taut-check" },
            "model": "taut-check", "stopReason": "endTurn",
        }),
        // A page has no fields to fill in.
        "elicitation/create"
            if caps.get("elicitation").is_some() && request["params"]["mode"] == "url" =>
        {
            json!({ "action": "accept" })
        }
        "elicitation/create" if caps.get("elicitation").is_some() => {
            json!({ "action": "accept", "content": filled(&request["params"]["requestedSchema"]) })
        }
        _ => {
            let error =
                json!({ "code": -32601, "message": "taut-check declares no such capability" });
            return json!({ "jsonrpc": "2.0", "id": request["id"], "error": error });
        }
    };
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })
}

/// A form filled in with something that fits.
fn filled(schema: &Value) -> Value {
    let mut content = serde_json::Map::new();
    let fields = schema["properties"].as_object().into_iter().flatten();
    for (name, field) in fields {
        let first = |list: &Value| list.get(0).cloned();
        let value = field.get("default").cloned().or_else(|| match field["type"].as_str() {
            Some("boolean") => Some(json!(true)),
            Some("integer" | "number") => {
                Some(field.get("minimum").cloned().unwrap_or_else(|| json!(1)))
            }
            Some("array") => first(&field["items"]["enum"]).map(|one| json!([one])),
            _ => first(&field["enum"])
                .or_else(|| field["oneOf"].get(0).map(|one| one["const"].clone()))
                .or_else(|| Some(json!(sample_text(field["format"].as_str())))),
        });
        content.extend(value.map(|value| (name.clone(), value)));
    }
    Value::Object(content)
}

fn sample_text(format: Option<&str>) -> &'static str {
    match format {
        Some("email") => "taut@example.com",
        Some("uri") => "https://example.com/",
        Some("date") => "2026-11-16",
        Some("date-time") => "2026-11-16T00:00:00Z",
        _ => "taut-check",
    }
}
