//! A server with an echo and two hundred tools more, for asking it which they are.

use serde_json::json;
use taut::{JsonSchema, Server, Tool};

/// Say it again.
#[derive(serde::Deserialize, JsonSchema)]
#[schemars(crate = "taut::schemars")]
struct Echo {
    text: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> taut::Result<()> {
    let mut server = Server::builder("tools", "1.0").tool("echo", async |Echo { text }, _call| text);
    for number in 1..=200 {
        let schema = json!({
            "type": "object",
            "properties": {
                "text": { "type": "string", "description": "What to say." },
                "times": { "type": "integer", "minimum": 1, "maximum": 100 },
            },
            "required": ["text"],
        });
        let tool = Tool::new(format!("tool_{number}"))
            .description("Does nothing, and is described at some length while it does.")
            .input_schema(schema);
        server = server.raw_tool(tool, async |_arguments, _call| "");
    }
    server.serve_stdio().await
}
