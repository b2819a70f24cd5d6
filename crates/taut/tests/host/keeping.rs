//! Lists that are kept for as long as they hold.

use serde_json::{Value, json};
use taut::Client;

use super::fake::{Fake, MODERN, result, text};
use super::*;

/// A server whose list of tools holds for so long, in two pages; it changes when it is called.
async fn listing(ttl: Value, keep: bool) -> (Fake, Client) {
    let mut listen = Value::Null;
    Fake::connect(
        Client::builder().keep_lists(keep),
        MODERN,
        move |message| match message["method"].as_str() {
            Some("tools/list") => {
                let first = message["params"].get("cursor").is_none();
                let mut page = json!({ "tools": [{ "name": if first { "a" } else { "b" },
                    "inputSchema": { "type": "object" } }], "ttlMs": ttl });
                if first {
                    page["nextCursor"] = json!("2");
                }
                vec![result(message, page)]
            }
            Some("subscriptions/listen") => {
                listen = message["id"].clone();
                Vec::new()
            }
            Some("tools/call") => vec![
                json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {
                    "_meta": { "io.modelcontextprotocol/subscriptionId": listen } } }),
                text(message, "x"),
            ],
            _ => Vec::new(),
        },
    )
    .await
}

async fn names(client: &Client) -> Vec<String> {
    in_time(client.tools()).await.unwrap().into_iter().map(|tool| tool.name).collect()
}

/// CAC-03, CAC-04: page by page, for as long as the server said; nothing said is no time.
#[tokio::test(start_paused = true)]
async fn cac_04_a_list_is_asked_for_again_once_its_time_is_over() {
    let (fake, client) = listing(json!(1000), true).await;
    for _ in 0..3 {
        assert_eq!(names(&client).await, ["a", "b"]);
    }
    assert_eq!(fake.of("tools/list").len(), 2);
    tokio::time::advance(Duration::from_millis(1001)).await;
    assert_eq!(names(&client).await, ["a", "b"]);
    assert_eq!(fake.of("tools/list").len(), 4);
    for ttl in [json!(0), json!(-5), json!(null)] {
        let (fake, client) = listing(ttl, true).await;
        names(&client).await;
        names(&client).await;
        assert_eq!(fake.of("tools/list").len(), 4);
    }
}

/// CAC-06
#[tokio::test]
async fn cac_06_a_note_of_change_ends_what_was_kept() {
    let (fake, client) = listing(json!(600_000), true).await;
    names(&client).await;
    client.call("a", ()).await.unwrap();
    names(&client).await;
    assert_eq!(fake.of("tools/list").len(), 4);
}

#[tokio::test]
async fn nothing_is_kept_unless_it_was_asked_for() {
    let (fake, client) = listing(json!(600_000), false).await;
    names(&client).await;
    names(&client).await;
    assert_eq!(fake.of("tools/list").len(), 4);
    assert_eq!(fake.of("subscriptions/listen").len(), 0);
}
