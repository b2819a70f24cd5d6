//! Streams of changes: what is on the wire, and how they end.

use serde_json::{Value, json};
use taut::types::SubscriptionFilter;
use taut::{Change, Client, Error};

use super::fake::{Fake, LEGACY, MODERN, error, result, text};
use super::*;

fn everything() -> SubscriptionFilter {
    SubscriptionFilter::new()
        .tools_list_changed(true)
        .resource_subscriptions(["a:1".to_owned(), "a:2".to_owned()])
}

fn tagged(id: &Value, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": id });
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

fn ack(listen: &Value) -> Value {
    let filter = listen["params"]["notifications"].clone();
    tagged(
        &listen["id"],
        "notifications/subscriptions/acknowledged",
        json!({ "notifications": filter }),
    )
}

fn updated(uri: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": uri } })
}

/// SUB-07: the stream ends on the wire when it is dropped here.
#[tokio::test]
async fn sub_07_a_modern_stream_is_acknowledged_and_withdrawn_when_dropped() {
    let (fake, client) =
        Fake::connect(Client::builder(), MODERN, |message| match message["method"].as_str() {
            Some("subscriptions/listen") => {
                let note = json!({ "uri": "a:1" });
                let method = "notifications/resources/updated";
                vec![ack(message), tagged(&message["id"], method, note)]
            }
            _ => Vec::new(),
        })
        .await;
    let mut changes = in_time(client.listen(everything())).await.unwrap();
    assert_eq!(*changes.honoured(), everything());
    let change = in_time(changes.next()).await.unwrap();
    assert_eq!(change, Some(Change::Resource("a:1".into())));
    let listen = &fake.of("subscriptions/listen")[0];
    // SUB-10
    assert!(listen["params"]["_meta"].get("progressToken").is_none(), "{listen}");
    drop(changes);
    let cancelled = &fake.wait("notifications/cancelled", 1).await[0];
    assert_eq!(cancelled["params"]["requestId"], listen["id"]);
}

/// TMO-06: hours of silence are no reason to give it up.
#[tokio::test(start_paused = true)]
async fn tmo_06_a_stream_has_no_deadline() {
    let mut listen = Value::Null;
    let (fake, client) =
        Fake::connect(Client::builder(), MODERN, move |message| match message["method"].as_str() {
            Some("subscriptions/listen") => {
                listen = message["id"].clone();
                vec![ack(message)]
            }
            Some("tools/call") => {
                let note = tagged(&listen, "notifications/tools/list_changed", json!({}));
                vec![note, text(message, "x")]
            }
            _ => Vec::new(),
        })
        .await;
    let mut changes = client.listen(everything()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
    client.call("a", ()).await.unwrap();
    assert_eq!(changes.next().await.unwrap(), Some(Change::Tools));
    assert_eq!(fake.of("notifications/cancelled").len(), 0);
}

/// SUB-09, CAN-11: by a result, or by a notification.
#[tokio::test]
async fn sub_09_a_server_may_end_a_stream_in_two_ways() {
    for by_result in [true, false] {
        let (fake, client) = Fake::connect(Client::builder(), MODERN, move |message| {
            let id = &message["id"];
            let end = if by_result {
                result(message, json!({ "resultType": "complete" }))
            } else {
                json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
                    "params": { "requestId": id } })
            };
            let note = tagged(id, "notifications/tools/list_changed", json!({}));
            vec![ack(message), note, end]
        })
        .await;
        let mut changes = in_time(client.listen(everything())).await.unwrap();
        assert_eq!(in_time(changes.next()).await.unwrap(), Some(Change::Tools));
        assert_eq!(in_time(changes.next()).await.unwrap(), None);
        assert_eq!(in_time(changes.next()).await.unwrap(), None);
        assert_eq!(fake.of("subscriptions/listen").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_refused_or_never_acknowledged_is_none() {
    let refusing = |message: &Value| vec![error(message, -32601)];
    let (_, client) = Fake::connect(Client::builder(), MODERN, refusing).await;
    assert!(matches!(client.listen(everything()).await, Err(Error::Refused { .. })));
    let (fake, client) = Fake::connect(Client::builder(), MODERN, |_| Vec::new()).await;
    assert!(matches!(client.listen(everything()).await, Err(Error::TimedOut { .. })));
    fake.wait("notifications/cancelled", 1).await;
}

/// RES-07, RES-08: each resource is subscribed to once, however many listen.
#[tokio::test]
async fn a_legacy_stream_subscribes_once_and_unsubscribes_with_the_last() {
    let (fake, client) =
        Fake::connect(Client::builder(), LEGACY, |message| match message["method"].as_str() {
            Some("tools/call") => vec![updated("a:1"), updated("b:9"), text(message, "x")],
            Some("notifications/initialized") => Vec::new(),
            _ => vec![result(message, json!({}))],
        })
        .await;
    let mut one = in_time(client.listen(everything())).await.unwrap();
    let mut two = in_time(client.listen(everything())).await.unwrap();
    assert_eq!(fake.of("resources/subscribe").len(), 2);
    client.call("a", ()).await.unwrap();
    for stream in [&mut one, &mut two] {
        let change = in_time(stream.next()).await.unwrap();
        assert_eq!(change, Some(Change::Resource("a:1".into())));
    }
    drop(one);
    client.call("a", ()).await.unwrap();
    assert_eq!(fake.of("resources/unsubscribe").len(), 0);
    assert_eq!(in_time(two.next()).await.unwrap(), Some(Change::Resource("a:1".into())));
    drop(two);
    fake.wait("resources/unsubscribe", 2).await;
}

/// Invariant 7: a flood of notes is kept in few places, in both eras.
#[tokio::test]
async fn twenty_thousand_notes_are_a_handful_of_changes() {
    for revision in [LEGACY, MODERN] {
        let listen = Arc::new(Mutex::new(Value::Null));
        let builder = Client::builder().max_change_bytes(128 << 10);
        let (_, client) =
            Fake::connect(builder, revision, move |message| match message["method"].as_str() {
                Some("subscriptions/listen") => {
                    *listen.lock().unwrap() = message["id"].clone();
                    vec![ack(message)]
                }
                Some("tools/call") => {
                    let id = listen.lock().unwrap().clone();
                    let note = |n: usize| {
                        let params = json!({ "uri": format!("a:1/{n}") });
                        tagged(&id, "notifications/resources/updated", params)
                    };
                    let tools = tagged(&id, "notifications/tools/list_changed", json!({}));
                    let mut all: Vec<_> = (0..10_000).map(note).collect();
                    all.extend(std::iter::repeat_n(tools, 10_000));
                    all.push(text(message, "x"));
                    all
                }
                Some("notifications/initialized") => Vec::new(),
                _ => vec![result(message, json!({}))],
            })
            .await;
        let mut changes = in_time(client.listen(everything())).await.unwrap();
        in_time(client.call("a", ())).await.unwrap();
        client.close().await.unwrap();
        let mut count = 0;
        let mut anything = false;
        while let Some(change) = in_time(changes.next()).await.unwrap() {
            anything |= change == Change::Anything;
            count += 1;
        }
        assert!(anything && count < 2_000, "{revision}: {count}");
    }
}

#[tokio::test]
async fn nothing_is_asked_of_a_server_that_offers_nothing() {
    let server = taut::Server::builder("bare", "1")
        .tool(("t", "Tool t."), async |_: taut::NoArgs, _call| "x")
        .build()
        .unwrap();
    for revision in taut::Revision::ALL {
        let builder = Client::builder().revision(revision);
        let client = taut::memory_with(&server, builder).await.unwrap();
        let refused = client.listen(everything()).await;
        assert!(matches!(refused, Err(Error::NotOffered { .. })), "{revision}");
    }
}
