//! What a server asks of a client.

use serde_json::{Value, json};

use super::fake::{Fake, text};
use super::*;

/// A server that asks `question` when it is called, then answers the call.
async fn asking(revision: &'static str, question: Value) -> (Fake, Client) {
    Fake::connect(revision, move |message| match message["method"].as_str() {
        Some("tools/call") => vec![question.clone(), text(message, "x")],
        _ => Vec::new(),
    })
    .await
}

fn question(method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": "q", "method": method, "params": {} })
}

async fn response(fake: &Fake) -> Value {
    let find = || fake.got().into_iter().find(|message| message["id"] == "q");
    eventually("an answer", || find().is_some()).await;
    find().unwrap()
}

/// C13, ERR-16: nobody waits for what was not declared.
#[tokio::test]
async fn err_16_what_was_not_declared_is_refused_at_once() {
    for method in ["roots/list", "sampling/createMessage", "elicitation/create", "what/ever"] {
        let (fake, client) = asking("2025-11-25", question(method)).await;
        client.call("a", ()).await.unwrap();
        let response = response(&fake).await;
        assert_eq!(response["error"]["code"], -32601, "{response}");
        assert_eq!(client.diagnostics().refused, 1);
    }
}

/// PNG-01, PNG-03
#[tokio::test]
async fn png_01_a_ping_is_answered() {
    let (fake, client) = asking("2025-06-18", question("ping")).await;
    client.call("a", ()).await.unwrap();
    assert_eq!(response(&fake).await["result"], json!({}));
}

/// STD-22, RPC-36: not even to a server that breaks the rules.
#[tokio::test]
async fn std_22_a_modern_client_writes_no_response() {
    for method in ["ping", "roots/list", "what/ever"] {
        let (fake, client) = asking("2026-07-28", question(method)).await;
        client.call("a", ()).await.unwrap();
        client.call("a", ()).await.unwrap();
        assert_eq!(fake.methods(), ["server/discover", "tools/call", "tools/call"]);
    }
}

/// The same with a real process: it answers the call with the code that it was given.
#[tokio::test]
async fn c13_a_server_that_asks_for_something_undeclared_gets_an_answer_and_goes_on() {
    let client = start("2025-11-25").await;
    let answer = in_time(client.call("ask", ())).await.unwrap();
    assert_eq!(answer.text().unwrap(), "-32601");
}
