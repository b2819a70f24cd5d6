//! However a client deals with its questions, the result is the same, and each is answered once.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use taut::{AskError, Call, NoArgs, Server};

use crate::fixture::{Counter, line};
use crate::host::{Host, accept, text};

async fn chain(call: &Call<Counter>, name: &str, length: usize) -> Result<String, AskError> {
    let mut said = String::new();
    for n in 0..length {
        // What follows depends on what was said before.
        said = line(call, &format!("{name}{n}{said}")).await?;
        call.once(&format!("{name}{n}"), async { call.state().up() }).await?;
    }
    Ok(said)
}

async fn chains(_: NoArgs, call: Call<Counter>) -> Result<String, AskError> {
    let (a, b) = tokio::join!(chain(&call, "a", 3), chain(&call, "b", 2));
    let (a, b) = (a?, b?);
    let third = format!("c{a}");
    let (c, d) = tokio::join!(chain(&call, &third, 1), chain(&call, "d", 2));
    Ok(format!("{b} {} {}", c?, d?))
}

fn answer_to(message: &str) -> String {
    format!("<{}>", message.len())
}

/// Answers what `choose` says in each round; gives the result and how often each was answered.
async fn play(rounds: &[u8]) -> (String, BTreeMap<String, usize>, usize) {
    let effects = Counter::default();
    let server = Server::with_state("chains", "1", effects.clone())
        .tool(("chains", "Tool chains."), chains)
        .build()
        .unwrap();
    let mut host = Host::modern(server).await;
    let mut answered = BTreeMap::new();
    let mut rounds = rounds.iter();
    let mut message = host.call("chains", json!({})).await;
    while message["result"]["resultType"] == "input_required" {
        // Out of ideas: everything at once.
        let chosen = rounds.next().copied().unwrap_or(u8::MAX);
        let questions = message["result"]["inputRequests"].as_object().unwrap().clone();
        let mut responses = json!({});
        for (at, (key, question)) in questions.iter().enumerate() {
            if chosen & (1 << at) != 0 {
                let words = question["params"]["message"].as_str().unwrap();
                responses[key] = accept(json!({ "line": answer_to(words) }));
                *answered.entry(words.to_owned()).or_default() += 1;
            }
        }
        message = host.retry("chains", json!({}), &message, responses).await;
    }
    (text(&message).to_owned(), answered, effects.count())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn mrtr_11_any_order_of_answers_gives_the_same_result(rounds in prop::collection::vec(0u8..4, 0..16)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (wanted, ..) = runtime.block_on(play(&[]));
        let (found, answered, effects) = runtime.block_on(play(&rounds));
        prop_assert_eq!(found, wanted);
        prop_assert!(answered.values().all(|times| *times == 1), "{:?}", answered);
        prop_assert_eq!(answered.len(), 8);
        prop_assert_eq!(effects, 8);
    }
}

/// The same handler with a client that is asked by requests.
#[tokio::test(start_paused = true)]
async fn a_legacy_client_gets_the_same_result() {
    let (wanted, ..) = play(&[]).await;
    let server = Server::with_state("chains", "1", Counter::default())
        .tool(("chains", "Tool chains."), chains)
        .build()
        .unwrap();
    let server = std::sync::Arc::new(server);
    let mut host = Host::new(&server, "2025-11-25", crate::host::everything()).await;
    let params = json!({ "name": "chains", "arguments": {} });
    let echo = |_: &str, params: &Value| {
        accept(json!({ "line": answer_to(params["message"].as_str().unwrap()) }))
    };
    let answer = host.settle("tools/call", params, echo).await;
    assert_eq!(text(&answer), wanted);
}
