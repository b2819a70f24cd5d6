//! Schemas are made when somebody lists them, and are none the worse for it.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;
use serde_json::json;
use taut::schemars::{Schema, SchemaGenerator, json_schema};
use taut::types::{CompletionReference, PromptReference};
use taut::{JsonSchema, NoArgs, Server};

use crate::wire::Wire;

static MADE: AtomicUsize = AtomicUsize::new(0);

/// Arguments that know how often their schema was made.
#[derive(Deserialize)]
struct Counted {
    text: String,
}

impl JsonSchema for Counted {
    fn schema_name() -> Cow<'static, str> {
        "Counted".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        MADE.fetch_add(1, Ordering::SeqCst);
        json_schema!({
            "type": "object",
            "description": "Say it.",
            "properties": { "text": { "type": "string" } },
            "required": ["text"],
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_schema_is_made_once_and_not_before_it_is_listed() {
    let server = Server::builder("late", "1")
        .changing()
        .tool("say", async |Counted { text }, _call| text)
        .prompt("say", async |Counted { text }, _call| text)
        .completion(
            CompletionReference::Prompt(PromptReference::new("say")),
            "text",
            async |_, _| vec!["hello".to_owned()],
        )
        .build()
        .unwrap();
    let changes = server.changes();
    let server = Arc::new(server);
    let mut wire = Wire::to_shared(&server);
    wire.shake_hands("2025-11-25").await;
    wire.send(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "say", "arguments": { "text": "hi" } } }))
        .await;
    assert_eq!(wire.next().await["result"]["content"][0]["text"], "hi");
    wire.send(json!({ "jsonrpc": "2.0", "id": 2, "method": "completion/complete",
        "params": { "ref": { "type": "ref/prompt", "name": "say" },
            "argument": { "name": "text", "value": "" } } }))
        .await;
    assert_eq!(wire.next().await["result"]["completion"]["values"], json!(["hello"]));
    assert_eq!(MADE.load(Ordering::SeqCst), 0, "nobody has listed anything");

    changes.add_tool(("other", "Tool other."), async |_: NoArgs, _call| ()).unwrap();
    for revision in ["2025-06-18", "2025-11-25"] {
        let mut wire = Wire::to_shared(&server);
        wire.shake_hands(revision).await;
        wire.send(json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list" })).await;
        let tool = wire.next().await["result"]["tools"][0].clone();
        assert_eq!(tool["description"], "Say it.");
        assert_eq!(tool["inputSchema"]["properties"]["text"]["type"], "string");
        assert_eq!(tool["inputSchema"].get("description"), None);
    }
    assert!(changes.remove_tool("other"));
    let mut wire = Wire::to_shared(&server);
    wire.ask(4, "tools/list", json!({})).await;
    assert_eq!(wire.next().await["result"]["tools"].as_array().unwrap().len(), 1);
    assert_eq!(MADE.load(Ordering::SeqCst), 1, "for every revision, also after a change");

    wire.ask(5, "prompts/list", json!({})).await;
    let prompt = wire.next().await["result"]["prompts"][0].clone();
    assert_eq!(prompt["description"], "Say it.");
    assert_eq!(prompt["arguments"], json!([{ "name": "text", "required": true }]));
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind", content = "of", rename_all = "lowercase")]
enum Shape {
    Circle(f64),
    Square(f64),
}

/// TOL-03
#[tokio::test(start_paused = true)]
async fn tol_03_an_enum_that_is_read_as_an_object_says_so_in_its_schema() {
    let mut wire = Wire::to(
        Server::builder("shapes", "1")
            .tool("area", async |shape: Shape, _call| match shape {
                Shape::Circle(radius) => 3.0 * radius * radius,
                Shape::Square(side) => side * side,
            })
            .build()
            .unwrap(),
    );
    wire.ask(1, "tools/list", json!({})).await;
    let schema = wire.next().await["result"]["tools"][0]["inputSchema"].clone();
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["oneOf"].as_array().unwrap().len(), 2);
    wire.call(2, "area", json!({ "kind": "square", "of": 3.0 })).await;
    assert_eq!(wire.next().await["result"]["content"][0]["text"], "9");
}

#[derive(Deserialize)]
struct Denied {
    #[serde(default, rename = "x")]
    _x: u8,
}

impl JsonSchema for Denied {
    fn schema_name() -> Cow<'static, str> {
        "Denied".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// TOL-03
#[tokio::test(start_paused = true)]
async fn tol_03_a_struct_whose_schema_denies_it_is_told_when_it_is_listed() {
    let mut wire = Wire::to(
        Server::builder("denied", "1")
            .tool("odd", async |_: Denied, _call| "served")
            .build()
            .unwrap(),
    );
    wire.ask(1, "tools/list", json!({})).await;
    let error = wire.next().await["error"].clone();
    assert_eq!(error["code"], -32603);
    assert!(error["message"].as_str().unwrap().contains("tool \"odd\""), "{error}");
    wire.call(2, "odd", json!({})).await;
    assert_eq!(wire.next().await["result"]["content"][0]["text"], "served");
}
