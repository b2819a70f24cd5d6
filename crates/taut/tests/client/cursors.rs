//! A server whose lists never end, and whose cursors are large.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use taut::service::{Failed, RequestParams, ServiceRequest, serve};
use taut::{Client, Error, Reject};

use crate::{in_time, quick};

/// What one cursor has.
const CURSOR: usize = 100 << 10;

/// What a list may have.
const LIST: usize = 1 << 20;

/// A client of such a server, and how many pages the server was asked for.
async fn connected() -> (Client, Arc<AtomicUsize>) {
    let pages = Arc::new(AtomicUsize::new(0));
    let counted = pages.clone();
    let server = serve(move |method: String, _: RequestParams, _: ServiceRequest| {
        let pages = counted.clone();
        async move {
            Ok::<_, Failed>(match method.as_str() {
                "initialize" => json!({
                    "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                    "serverInfo": { "name": "cursors", "version": "1" },
                }),
                "tools/list" => {
                    let page = pages.fetch_add(1, Ordering::SeqCst);
                    let cursor = format!("{page}{}", "x".repeat(CURSOR));
                    let tool =
                        json!({ "name": format!("t{page}"), "inputSchema": { "type": "object" } });
                    json!({ "tools": [tool], "nextCursor": cursor })
                }
                "tools/call" => json!({ "content": [], "structuredContent": { "a": 1 } }),
                _ => return Err(Reject::method_not_found(&method).into()),
            })
        }
    });
    let (near, far) = tokio::io::duplex(64 << 10);
    let (reader, writer) = tokio::io::split(far);
    tokio::spawn(async move { server.serve(reader, writer).await });
    let (reader, writer) = tokio::io::split(near);
    let builder = quick().max_list_bytes(LIST);
    (in_time(builder.connect(reader, writer)).await.unwrap(), pages)
}

/// Each way through pages ends where the cursors have used up what a list may have.
#[tokio::test]
async fn cursors_count_wherever_a_list_is_read() {
    let (client, pages) = connected().await;
    let few = |before: usize| {
        let asked = pages.load(Ordering::SeqCst) - before;
        assert!(asked <= LIST / CURSOR + 1, "asked for {asked} pages");
        pages.load(Ordering::SeqCst)
    };
    let error = in_time(client.tools()).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit: LIST, .. }), "{error}");
    let before = few(0);
    let mut tools = client.tools();
    let error = loop {
        match in_time(tools.next()).await {
            Ok(tool) => assert!(tool.is_some(), "it ends without an error"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::TooLarge { setting, .. } if setting.contains("max_list_bytes")));
    assert!(in_time(tools.next()).await.unwrap().is_none());
    let before = few(before);
    // A call reads the list for the schema of its tool, and goes on without one.
    let answer = in_time(client.call("unlisted", json!({}))).await.unwrap();
    assert_eq!(answer.structured_content.as_ref().unwrap().text(), r#"{"a":1}"#);
    few(before);
}
