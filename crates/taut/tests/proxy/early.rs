//! What a server says before its connection is ready for clients: kept, bounded, and told in order.

use std::time::Duration;

use taut::{Client, Revision};

use crate::raw::{INITIALIZE, INITIALIZED, Wire, answer, front, legacy, modern, proxy};

const WELCOME: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"b","version":"2"}}"#;
const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

fn log(data: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"{data}"}}}}"#
    )
}

/// Reads until a line has this text, and returns what came before it.
async fn until(from: &mut Wire, text: &str) -> Vec<String> {
    let mut before = Vec::new();
    loop {
        let line = from.next().await;
        assert!(!line.is_empty(), "ended without {text}: {before:?}");
        if line.contains(text) {
            return before;
        }
        before.push(line);
    }
}

/// L21.
#[tokio::test]
async fn what_a_server_says_with_its_handshake_comes_right_after_it() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let mut front = front(&proxy);
    front.send(INITIALIZE).await;
    let mut back = backs.recv().await.unwrap();
    let initialize = back.next().await;
    // In one write, as a server does that logs once it is there.
    back.send(&[&*answer(&initialize, WELCOME), &log("one"), CHANGED, &log("two")].join("\n"))
        .await;
    assert!(front.next().await.contains(r#""id":"i","result""#));
    assert_eq!(front.next().await, log("one"));
    assert_eq!(front.next().await, CHANGED);
    assert_eq!(front.next().await, log("two"));
    back.send(&log("three")).await;
    assert_eq!(front.next().await, log("three"));
}

/// L21.
#[tokio::test]
async fn what_a_restarted_server_says_with_its_handshake_arrives() {
    let (builder, mut backs) = proxy();
    let policy = taut::RestartPolicy::new().first_delay(Duration::from_millis(1));
    let proxy = builder.restart(policy).build();
    let (mut front, back) = legacy(&proxy, &mut backs).await;
    drop(back);
    let mut back = backs.recv().await.unwrap();
    let initialize = back.next().await;
    back.send(&[&*answer(&initialize, WELCOME), &log("back again")].join("\n")).await;
    assert_eq!(front.next().await, CHANGED);
    assert_eq!(front.next().await, log("back again"));
    assert_eq!(back.next().await, INITIALIZED);
}

/// Also what comes before the answer to the handshake, as far as there is room for it. L21.
#[tokio::test]
async fn what_a_server_says_too_early_is_bounded_in_bytes() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let mut front = front(&proxy);
    front.send(INITIALIZE).await;
    let mut back = backs.recv().await.unwrap();
    let initialize = back.next().await;
    let line = log(&"x".repeat(1 << 10));
    for _ in 0..2_000 {
        back.send(&line).await;
    }
    back.send(&answer(&initialize, WELCOME)).await;
    assert!(front.next().await.contains(r#""id":"i","result""#));
    front.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await;
    let request = back.next().await;
    back.send(&answer(&request, r#"{"tools":[]}"#)).await;
    let told = until(&mut front, r#""id":1,"result""#).await;
    let lines = told.iter().filter(|told| **told == line).count();
    assert!((100..=300).contains(&lines), "{lines} lines of a kilobyte");
    // A change may have been among what was dropped.
    assert!(told.contains(&CHANGED.to_owned()));
}

/// The lines of a start are for the request that the server was started for.
#[tokio::test]
async fn the_first_lines_of_a_server_reach_the_modern_request_that_wants_them() {
    let (builder, mut backs) = proxy();
    let proxy = builder.client(Client::builder().revision(Revision::V2025_06_18)).build();
    let mut front = front(&proxy);
    let level = r#""_meta":{"io.modelcontextprotocol/logLevel":"debug","#;
    front.send(&modern("1", "tools/call", r#""name":"t","#).replace(r#""_meta":{"#, level)).await;
    let mut back = backs.recv().await.unwrap();
    let initialize = back.next().await;
    back.send(&[&*answer(&initialize, WELCOME), &log("starting")].join("\n")).await;
    assert_eq!(front.next().await, log("starting"));
    until(&mut back, "tools/call").await;
}

#[tokio::test]
async fn a_question_that_comes_with_the_handshake_reaches_the_client() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let mut front = front(&proxy);
    front.send(INITIALIZE).await;
    let mut back = backs.recv().await.unwrap();
    let initialize = back.next().await;
    let question = r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#;
    back.send(&[&*answer(&initialize, WELCOME), question].join("\n")).await;
    assert!(front.next().await.contains(r#""id":"i","result""#));
    let asked = front.next().await;
    assert!(asked.contains("roots/list"), "{asked}");
    front.send(&answer(&asked, r#"{"roots":[]}"#)).await;
    assert_eq!(back.next().await, r#"{"jsonrpc":"2.0","id":"q","result":{"roots":[]}}"#);
}
