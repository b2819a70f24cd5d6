//! Mistakes made while building: all of them reported, before a byte is read.

use serde_json::json;
use taut::{
    CompletionReference, Error, NoArgs, PromptReference, Resource, ResourceTemplate, Server, Tool,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fixture::Echo;

async fn mistakes<S: Send + Sync + 'static>(server: Server<S>) -> Vec<String> {
    let (mut ours, theirs) = tokio::io::duplex(1024);
    ours.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await.unwrap();
    let (reader, writer) = tokio::io::split(theirs);
    let Err(Error::Build { mistakes }) = server.serve(reader, writer).await else {
        panic!("it was served")
    };
    let mut said = Vec::new();
    ours.read_to_end(&mut said).await.unwrap();
    assert!(said.is_empty(), "nothing is answered");
    mistakes
}

/// TOL-03, TOL-21.
#[tokio::test]
async fn tol_21_bad_and_duplicate_names_are_all_reported_before_a_byte_is_read() {
    let long = "x".repeat(129);
    let server = Server::new("bad", "1")
        .tool("has space", async |_: NoArgs, _| ())
        .tool("", async |_: NoArgs, _| ())
        .tool(long.as_str(), async |_: NoArgs, _| ())
        .tool("same", async |_: NoArgs, _| ())
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
    let found = mistakes(server).await;
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

#[tokio::test]
async fn state_after_a_handler_is_a_mistake_and_settings_before_it_are_kept() {
    let late = Server::new("bad", "1").tool("x", async |_: NoArgs, _| ()).state(7);
    assert_eq!(mistakes(late).await, ["state() must come before the first handler"]);
    let early = Server::new("good", "1").instructions("read me").logging().state(7);
    let mut wire = crate::wire::Wire::to(early);
    let welcome = wire.shake_hands("2025-11-25").await;
    assert_eq!(welcome["instructions"], "read me");
    assert_eq!(welcome["capabilities"], json!({ "logging": {} }));
}
