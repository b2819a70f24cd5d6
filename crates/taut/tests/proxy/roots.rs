//! A legacy server behind modern clients: roots of clients that have none, and what a tool says for itself.

use crate::raw::{answer, front, modern_params, opened_legacy, proxy, refusal};

/// Roots: answered where a client has none, and declared only where one has.
#[tokio::test]
async fn roots_are_declared_to_a_legacy_server_only_where_the_client_has_them() {
    for (capabilities, declared) in [("{}", false), (r#"{"roots":{}}"#, true)] {
        let (builder, mut backs) = proxy();
        let proxy = builder.build();
        let mut front = front(&proxy);
        let params = modern_params(r#""name":"t","#, capabilities);
        front
            .send(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#))
            .await;
        let mut back = backs.recv().await.unwrap();
        let probe = back.next().await;
        back.send(&refusal(&probe, r#"{"code":-32601,"message":"what?"}"#)).await;
        let initialize = back.next().await;
        assert_eq!(initialize.contains(r#""roots":{"#), declared, "{initialize}");
    }
}

/// Servers ask for roots although nobody declared them, and whatever is going on: the answer is known.
#[tokio::test]
async fn roots_of_clients_that_have_none_are_answered_with_none() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let mut front = front(&proxy);
    let none = |id: &str, method: &str| {
        let params = modern_params(r#""name":"t","#, "{}");
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
    };
    let (ask, roots) = (
        r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#,
        r#"{"jsonrpc":"2.0","id":"q","result":{"roots":[]}}"#,
    );
    front.send(&none("1", "tools/list")).await;
    let mut back = opened_legacy(&mut backs, r#"{"tools":{}}"#).await;
    // During a list, which has no place for questions.
    let list = back.next().await;
    back.send(ask).await;
    assert_eq!(back.next().await, roots);
    back.send(&answer(&list, r#"{"tools":[]}"#)).await;
    front.next().await;
    // Outside of any request.
    back.send(ask).await;
    assert_eq!(back.next().await, roots);
    // During several calls.
    front.send(&none("2", "tools/call")).await;
    front.send(&none("3", "tools/call")).await;
    let (first, _) = (back.next().await, back.next().await);
    back.send(ask).await;
    assert_eq!(back.next().await, roots);
    // And the tool's own words arrive, whatever it says.
    let words = r#"{"content":[{"type":"text","text":"no browser here"}],"isError":true}"#;
    back.send(&answer(&first, words)).await;
    let failed = front.next().await;
    assert!(
        failed.contains(r#""id":2,"result""#) && failed.contains("no browser here"),
        "{failed}"
    );
}

/// A tool that fails after a question that its client does not offer says why in its own words.
/// C23.
#[tokio::test]
async fn the_words_of_a_tool_that_fails_are_never_replaced() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let mut front = front(&proxy);
    let call = |id: u32| {
        let params = modern_params(r#""name":"t","#, "{}");
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)
    };
    front.send(&call(1)).await;
    let mut back = opened_legacy(&mut backs, r#"{"tools":{}}"#).await;
    let ask = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}"#;
    for (id, failed, code) in [
        (1, r#"{"content":[{"type":"text","text":"own words"}],"isError":true}"#, "\"result\""),
        (
            2,
            r#"{"content":[],"structuredContent":{"why":"own words"},"isError":true}"#,
            "\"result\"",
        ),
        (3, r#"{"code":-32603,"message":"own words"}"#, "-32021"),
    ] {
        if id > 1 {
            front.send(&call(id)).await;
        }
        let request = back.next().await;
        back.send(ask).await;
        let refused = back.next().await;
        assert!(refused.contains(r#""id":"q","error""#), "{refused}");
        let answered = match failed.starts_with(r#"{"code"#) {
            true => refusal(&request, failed),
            false => answer(&request, failed),
        };
        back.send(&answered).await;
        let told = front.next().await;
        assert!(told.contains("own words") && told.contains(code), "{told}");
    }
}
