//! Subscriptions of a legacy client on a modern server: what they cost, which are kept, and how they end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::raw::{INITIALIZED, Wire, legacy_to_modern, proxy, refusal};

const RESOURCES: &str = r#"{"resources":{"subscribe":true}}"#;

/// As many as `taut serve` takes.
const KEPT: usize = 1_024;

fn subscribe(id: usize) -> String {
    let uri = format!("a:{id}/{}", "x".repeat(100));
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/subscribe","params":{{"uri":"{uri}"}}}}"#
    )
}

/// A modern server that follows so many addresses at most, and refuses a stream of more. Counts the bytes that
/// it is sent.
async fn follows(mut back: Wire, sent: Arc<AtomicUsize>) {
    loop {
        let line = back.next().await;
        if line.is_empty() {
            return;
        }
        sent.fetch_add(line.len(), Ordering::SeqCst);
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["method"] != "subscriptions/listen" {
            continue;
        }
        let filter = &message["params"]["notifications"];
        if filter["resourceSubscriptions"].as_array().is_some_and(|uris| uris.len() > KEPT) {
            back.send(&refusal(&line, r#"{"code":-32603,"message":"too many"}"#)).await;
            continue;
        }
        back.send(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{}}},"notifications":{filter}}}}}"#,
            message["id"]
        ))
        .await;
    }
}

/// The first are kept, and what is sent for all of them grows with their number. C22.
#[tokio::test]
async fn many_subscriptions_cost_their_number_and_the_first_are_kept() {
    for many in [500, 3_000, 20_000] {
        let (builder, mut backs) = proxy();
        let proxy = builder.build();
        let (mut front, back) = legacy_to_modern(&proxy, &mut backs, RESOURCES).await;
        let sent = Arc::new(AtomicUsize::new(0));
        let serving = tokio::spawn(follows(back, sent.clone()));
        front.send(INITIALIZED).await;
        let lines: Vec<String> = (0..many).map(subscribe).collect();
        let burst = lines.join("\n");
        let (mut kept, mut refused) = (Vec::new(), 0);
        let (reader, writer) = front.split();
        let writing = tokio::spawn(async move { writer.send_all(&burst).await.close().await });
        let mut reader = reader;
        for _ in 0..many {
            let answered: Value = serde_json::from_str(&reader.next().await).unwrap();
            match answered["error"].is_null() {
                true => kept.push(answered["id"].as_u64().unwrap()),
                false => refused += 1,
            }
        }
        // The end of the input ends it.
        assert_eq!(reader.next().await, "");
        writing.await.unwrap();
        serving.await.unwrap();
        kept.sort_unstable();
        let expected: Vec<u64> = (0..many.min(KEPT) as u64).collect();
        assert_eq!(kept, expected, "{many}: {refused} refused");
        let bytes: usize = lines.iter().map(String::len).sum();
        let sent = sent.load(Ordering::SeqCst);
        assert!(sent < 20 * bytes.min(3_000 * 200), "{many}: {sent} bytes sent for {bytes}");
    }
}

/// A server that acknowledges nothing does not keep a session whose client has gone. C22.
#[tokio::test(start_paused = true)]
async fn the_end_does_not_wait_for_subscriptions() {
    let (builder, mut backs) = proxy();
    let proxy = builder.drain(Duration::from_secs(600)).build();
    let (mut front, mut back) = legacy_to_modern(&proxy, &mut backs, RESOURCES).await;
    for id in 0..100 {
        front.send(&subscribe(id)).await;
    }
    assert!(back.next().await.contains("subscriptions/listen"));
    let began = tokio::time::Instant::now();
    let (mut reader, writer) = front.split();
    writer.close().await;
    for _ in 0..100 {
        let refused = reader.next().await;
        assert!(refused.contains(r#""error""#), "{refused}");
    }
    assert_eq!(reader.next().await, "");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

/// An address that the server refuses costs the others nothing, wherever it stands.
#[tokio::test]
async fn one_address_that_is_refused_costs_no_other_one() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut front, mut back) = legacy_to_modern(&proxy, &mut backs, RESOURCES).await;
    let refuse = |line: &str| line.contains("\"a:37/");
    let serving = tokio::spawn(async move {
        loop {
            let line = back.next().await;
            if line.is_empty() {
                return;
            }
            let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
            if message["method"] != "subscriptions/listen" {
                continue;
            }
            let filter = &message["params"]["notifications"];
            match refuse(&line) {
                true => back.send(&refusal(&line, r#"{"code":-32602,"message":"bad"}"#)).await,
                false => back.send(&format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{}}},"notifications":{filter}}}}}"#,
                    message["id"]
                ))
                .await,
            }
        }
    });
    let lines: Vec<String> = (0..100).map(subscribe).collect();
    front.send(&lines.join("\n")).await;
    for _ in 0..100 {
        let answered: Value = serde_json::from_str(&front.next().await).unwrap();
        let refused = answered["id"] == 37;
        assert_eq!(!answered["error"].is_null(), refused, "{answered}");
    }
    drop(front);
    serving.await.unwrap();
}
