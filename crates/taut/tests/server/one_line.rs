//! `Server::call_tool`: what a user's test sees.

use serde_json::json;
use taut::{Call, Error, NoArgs, Reject, Server};

use crate::fixture::{Add, Echo, slow};

#[tokio::test]
async fn a_tool_is_called_in_one_line() {
    let server =
        Server::builder("calc", "1").tool("add", async |Add { a, b }, _| a + b).build().unwrap();
    let sum = server.call_tool("add", json!({ "a": 2, "b": 3 })).await.unwrap();
    assert_eq!(sum.content[0].as_text(), Some("5"));
    assert!(!sum.failed());
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_waits_is_waited_for() {
    let server = Server::builder("calc", "1").tool("slow", slow).build().unwrap();
    let done = server.call_tool("slow", json!({ "step_ms": 30_000 })).await.unwrap();
    assert_eq!(done.content[0].as_text(), Some("done"));
}

#[tokio::test]
async fn failure_of_the_tool_is_a_result_and_everything_else_an_error() {
    let server = Server::builder("odd", "1")
        .tool(("fail", "Tool fail."), async |_: NoArgs, _| Err::<(), _>("no luck"))
        .tool("echo", async |Echo { text }, _| text)
        .tool(("reject", "Tool reject."), async |_: NoArgs, _| {
            Err::<(), _>(Reject::new(7, "never"))
        })
        .build()
        .unwrap();
    let failed = server.call_tool("fail", json!({})).await.unwrap();
    assert!(failed.failed() && failed.content[0].as_text() == Some("no luck"));
    assert!(server.call_tool("echo", json!({ "text": 1 })).await.unwrap().failed());
    let refused = server.call_tool("reject", json!({})).await.unwrap_err();
    assert!(matches!(refused, Error::Refused { error, .. } if error.code == 7));
    let unknown = server.call_tool("nope", json!({})).await.unwrap_err().to_string();
    assert_eq!(unknown, "tools/call was refused: unknown tool: nope (-32602)");
}

#[tokio::test]
async fn the_newest_revision_is_spoken() {
    let server = Server::builder("calc", "1")
        .tool(("which", "Tool which."), async |_: NoArgs, call: Call| call.revision().to_string())
        .build()
        .unwrap();
    let which = server.call_tool("which", json!({})).await.unwrap();
    assert_eq!(which.content[0].as_text(), Some("2026-07-28"));
}
