//! `requestState` passes through other hands: what comes back is checked, in every way it can be wrong.

use std::time::Duration;

use serde_json::{Value, json};
use taut::{Call, Server};

use crate::fixture::{Line, asking, coffee, line};
use crate::host::{Host, accept, only_key, text};

fn small(required: &Value) -> Value {
    json!({ only_key(required): accept(json!({ "size": "small" })) })
}

fn refusal(answer: &Value) -> &str {
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    answer["error"]["message"].as_str().unwrap()
}

/// MRTR-09, SEC-08
#[tokio::test(start_paused = true)]
async fn mrtr_09_a_state_that_was_tampered_with_is_refused_wherever_it_was_changed() {
    let mut host = Host::modern(asking()).await;
    let first = host.call("coffee", json!({})).await;
    let state = first["result"]["requestState"].as_str().unwrap().to_owned();
    for at in (0..state.len()).step_by(7) {
        let mut bytes = state.clone().into_bytes();
        bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
        let mut forged = first.clone();
        forged["result"]["requestState"] = String::from_utf8(bytes).unwrap().into();
        let answer = host.retry("coffee", json!({}), &forged, small(&first)).await;
        let words = refusal(&answer);
        assert!(words.contains("start again") && words.contains("TAUT_SEAL_KEY"), "{words}");
    }
    let answer = host.retry("coffee", json!({}), &first, small(&first)).await;
    assert_eq!(answer["result"]["resultType"], "input_required", "the true one still holds");
}

/// MRTR-10: a state belongs to one method, one name and one set of arguments.
#[tokio::test(start_paused = true)]
async fn mrtr_10_a_state_of_another_request_is_refused() {
    let server = Server::builder("pay", "1")
        .tool("pay", async |Line { line: to }, call: Call| line(&call, &to).await)
        .tool("give", async |Line { line: to }, call: Call| line(&call, &to).await)
        .prompt("pay", async |Line { line: to }, call: Call| line(&call, &to).await)
        .build()
        .unwrap();
    let mut host = Host::modern(server).await;
    let first = host.call("pay", json!({ "line": "Ada" })).await;
    let answers = json!({ only_key(&first): accept(json!({ "line": "yes" })) });
    for (tool, to) in [("pay", "Eve"), ("give", "Ada")] {
        let swapped = host.retry(tool, json!({ "line": to }), &first, answers.clone()).await;
        assert!(refusal(&swapped).contains("belongs to another request"));
    }
    let params = json!({
        "name": "pay",
        "arguments": { "line": "Ada" },
        "requestState": first["result"]["requestState"],
        "inputResponses": answers,
    });
    assert!(refusal(&host.request("prompts/get", params).await).contains("another request"));
    let right = host.retry("pay", json!({ "line": "Ada" }), &first, answers).await;
    assert_eq!(text(&right), "yes");
}

/// MRTR-10. The clock that states expire by is the system's, which no test can stop: a lifetime of
/// nothing is over with the second in which it began.
#[tokio::test]
async fn mrtr_10_a_state_that_is_too_old_is_refused() {
    let server = Server::builder("old", "1")
        .tool(("coffee", "Tool coffee."), coffee)
        .ask_state_lifetime(Duration::ZERO)
        .build()
        .unwrap();
    let mut host = Host::modern(server).await;
    let first = host.call("coffee", json!({})).await;
    let began = std::time::SystemTime::now();
    loop {
        let answer = host.retry("coffee", json!({}), &first, small(&first)).await;
        if answer["error"].is_object() {
            assert_eq!(refusal(&answer), "requestState has expired; start again without it");
            return;
        }
        assert!(began.elapsed().unwrap() < Duration::from_secs(20), "it never expires");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn mrtr_09_a_state_that_is_too_long_or_no_text_is_refused() {
    let mut host = Host::modern(asking()).await;
    for state in [json!("x".repeat(65 << 10)), json!(""), json!(7), json!({})] {
        let params = json!({ "name": "coffee", "arguments": {}, "requestState": state });
        refusal(&host.request("tools/call", params).await);
    }
}

/// What would not fit into a state ends the call with words, not with a state that nobody takes.
#[tokio::test(start_paused = true)]
async fn what_is_too_much_to_remember_is_an_error_that_says_so() {
    let server = Server::builder("large", "1")
        .tool("large", async |Line { line: much }, call: Call| {
            call.once("much", async { much }).await?;
            line(&call, "and?").await
        })
        .build()
        .unwrap();
    let mut host = Host::modern(server).await;
    let error = host.call("large", json!({ "line": "x".repeat(65 << 10) })).await["error"].clone();
    assert_eq!(error["code"], -32603);
    assert!(error["message"].as_str().unwrap().contains("over 65536 bytes"), "{error}");
}

/// Another process of the same server takes the answer if it has the same key, and says what to set
/// if it has not.
#[tokio::test(start_paused = true)]
async fn a_server_with_the_same_key_takes_over_and_one_with_another_says_what_to_set() {
    let with = |key: &str| {
        Server::builder("keyed", "1")
            .tool(("coffee", "Tool coffee."), coffee)
            .seal_key(key)
            .build()
            .unwrap()
    };
    let first = Host::modern(with("k")).await.call("coffee", json!({})).await;
    let mut same = Host::modern(with("k")).await;
    let second = same.retry("coffee", json!({}), &first, small(&first)).await;
    assert_eq!(second["result"]["resultType"], "input_required");
    let mut other = Host::modern(with("l")).await;
    let answer = other.retry("coffee", json!({}), &first, small(&first)).await;
    assert!(refusal(&answer).contains("give both the same key"));
}

#[test]
fn an_empty_key_is_a_mistake() {
    let Err(error) = Server::builder("keyless", "1").seal_key("").build() else { panic!("built") };
    assert!(error.to_string().contains("empty key"), "{error}");
}

/// MRTR-12: answers that nobody asked for are passed over, with and without a state.
#[tokio::test(start_paused = true)]
async fn mrtr_12_stray_answers_are_passed_over() {
    let mut host = Host::modern(asking()).await;
    let stray = json!({ "1-0000000000000000": accept(json!({ "size": "huge" })), "x": 5 });
    let params = json!({ "name": "coffee", "arguments": {}, "inputResponses": stray });
    let first = host.request("tools/call", params).await;
    assert_eq!(first["result"]["resultType"], "input_required");
    let mut answers = small(&first);
    answers.as_object_mut().unwrap().extend(stray.as_object().unwrap().clone());
    let second = host.retry("coffee", json!({}), &first, answers).await;
    let state = second["result"]["requestState"].as_str().unwrap();
    assert!(!state.contains("huge"), "what nobody asked for is not carried along: {state}");
}

/// MRTR-12
#[tokio::test(start_paused = true)]
async fn mrtr_12_malformed_answers_are_refused_by_name() {
    let mut host = Host::modern(asking()).await;
    let first = host.call("coffee", json!({})).await;
    let key = only_key(&first);
    for bad in [json!(5), json!([]), json!("x"), json!(true)] {
        let answer = host.retry("coffee", json!({}), &first, bad).await;
        assert!(refusal(&answer).contains("inputResponses"), "{answer}");
    }
    for bad in [json!(5), json!({}), json!({ "action": 5 }), json!(null)] {
        let answer = host.retry("coffee", json!({}), &first, json!({ &key: bad })).await;
        assert!(refusal(&answer).contains(&key), "{answer}");
    }
}

/// An earlier answer cannot be changed by sending another with a later round.
#[tokio::test(start_paused = true)]
async fn what_was_answered_stays_answered() {
    let mut host = Host::modern(asking()).await;
    let first = host.call("coffee", json!({})).await;
    let second = host.retry("coffee", json!({}), &first, small(&first)).await;
    let answers = json!({
        only_key(&first): accept(json!({ "size": "large" })),
        only_key(&second): accept(json!({ "right": true })),
    });
    let last = host.retry("coffee", json!({}), &second, answers).await;
    assert_eq!(text(&last), "one small coffee, with milk, for you");
}
