//! Mistakes made while building: all of them reported, before a byte is read.

use serde_json::json;
use taut::types::{CompletionReference, PromptReference};
use taut::{Error, NoArgs, Resource, ResourceTemplate, Server, ServerBuilder, Tool};

use crate::fixture::Echo;

fn mistakes<S: Send + Sync + 'static>(server: ServerBuilder<S>) -> Vec<String> {
    match server.build() {
        Err(Error::Build { mistakes }) => mistakes,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was built"),
    }
}

/// TOL-03, TOL-21.
#[test]
fn tol_21_bad_and_duplicate_names_are_all_reported_before_a_byte_is_read() {
    let long = "x".repeat(129);
    let server = Server::builder("bad", "1")
        .tool(("has space", "Tool has space."), async |_: NoArgs, _| ())
        .tool(("", "Tool ."), async |_: NoArgs, _| ())
        .tool((long.as_str(), "A tool."), async |_: NoArgs, _| ())
        .tool(("same", "Tool same."), async |_: NoArgs, _| ())
        .tool("same", async |Echo { text }, _| text)
        .tool("list", async |_: Vec<u8>, _| ())
        .raw_tool(Tool::new("raw").input_schema(json!({ "type": "string" })), async |_, _| ())
        .resource(Resource::new("no-scheme", "r"), async |_| "x")
        .resource(Resource::new("a:b", "r"), async |_| "x")
        .resource(Resource::new("a:b", "again"), async |_| "x")
        .resource_template(ResourceTemplate::new("x:{?q}", "t"), async |_: NoArgs, _| "x")
        .prompt("p", async |_: NoArgs, _| "x")
        .prompt("p", async |_: NoArgs, _| "x")
        .completion(
            CompletionReference::Prompt(PromptReference::new("p")),
            "nothing",
            async |_, _| Vec::new(),
        );
    let found = mistakes(server);
    let wanted = [
        "tool name \"has space\"",
        "tool name \"\"",
        "tool name \"xxx",
        "two tools are called \"same\"",
        "tool \"list\"",
        "tool \"raw\"",
        "resource \"no-scheme\"",
        "two resources are at \"a:b\"",
        "resource template \"x:{?q}\"",
        "two prompts are called \"p\"",
        "completion: ",
    ];
    assert_eq!(found.len(), wanted.len(), "{found:#?}");
    for (found, wanted) in found.iter().zip(wanted) {
        assert!(found.starts_with(wanted), "{found} should start with {wanted}");
    }
}

/// State and settings are told in any order, and a handle for changes takes none of them away.
#[tokio::test]
async fn settings_are_kept_whatever_else_is_told() {
    let server = Server::with_state("good", "1", 7u8)
        .instructions("read me")
        .changing()
        .on_bad_arguments(|bad| Some(taut::Reject::new(42, bad.tool.to_owned())))
        .tool("echo", async |Echo { text }, _: taut::Call<u8>| text)
        .logging()
        .build()
        .unwrap();
    let changes = server.changes();
    changes
        .add_tool(("state", "Tool state."), async |_: NoArgs, call: taut::Call<u8>| *call.state())
        .unwrap();
    let mut wire = crate::wire::Wire::to(server);
    let welcome = wire.shake_hands("2025-11-25").await;
    assert_eq!(welcome["instructions"], "read me");
    assert_eq!(welcome["capabilities"]["logging"], json!({}));
    wire.call(1, "echo", json!({})).await;
    let refused = wire.next().await;
    assert_eq!(refused["error"]["code"], 42, "{refused}");
    wire.call(2, "state", json!({})).await;
    let state = wire.next().await;
    assert_eq!(state["result"]["content"][0]["text"], "7", "{state}");
}
