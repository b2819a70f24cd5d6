//! The modern era: a run ends with its questions, and the handler runs again from the top.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use taut::{AskError, Call, NoArgs, Server, server::CallEvent};

use crate::fixture::{Counter, Line, coffee, line, until};
use crate::host::{Host, MODERN, accept, everything, key_of, only_key, text};

fn say(line: &str) -> Value {
    accept(json!({ "line": line }))
}

async fn both(_: NoArgs, call: Call) -> Result<String, AskError> {
    let (one, other) = tokio::join!(line(&call, "one?"), line(&call, "other?"));
    Ok(format!("{} {}", one?, other?))
}

fn pair() -> Server {
    Server::builder("pair", "1").tool(("both", "Tool both."), both).build().unwrap()
}

/// MRTR-02, MRTR-03, MRTR-14
#[tokio::test(start_paused = true)]
async fn mrtr_03_two_questions_in_one_join_leave_in_one_result() {
    let mut host = Host::modern(pair()).await;
    let first = host.call("both", json!({})).await;
    let result = first["result"].as_object().unwrap();
    let members: Vec<_> = result.keys().map(String::as_str).collect();
    assert_eq!(members, ["_meta", "inputRequests", "requestState", "resultType"]);
    let questions = result["inputRequests"].as_object().unwrap();
    assert_eq!(questions.len(), 2);
    for question in questions.values() {
        let members: Vec<_> = question.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(members, ["method", "params"]);
    }
    let answers = json!({ key_of(&first, "one?"): say("1"), key_of(&first, "other?"): say("2") });
    assert_eq!(text(&host.retry("both", json!({}), &first, answers).await), "1 2");
}

/// A key of the handler's own is what the client sees; asked again under it, the answer is there.
#[tokio::test(start_paused = true)]
async fn a_question_has_the_key_that_its_handler_gives() {
    use taut::types::{FormField, FormSchema};
    let server = Server::builder("keys", "1")
        .tool(("named", "Ask twice."), async |_: NoArgs, call: Call| {
            let form = || FormSchema::new().required("line", FormField::text());
            let one = call.ask_form_as("line", "one?", form()).await?.accepted();
            let two = call.ask_form_as("line", "two?", form()).await?.accepted();
            let line = |answer: Option<taut::types::JsonObject>| answer.unwrap()["line"].clone();
            Ok::<_, AskError>(format!("{} {}", line(one), line(two)))
        })
        .build()
        .unwrap();
    let mut host = Host::modern(server).await;
    let first = host.call("named", json!({})).await;
    assert_eq!(only_key(&first), "line");
    let second = host.retry("named", json!({}), &first, json!({ "line": say("1") })).await;
    assert_eq!(only_key(&second), "2-line");
    let done = host.retry("named", json!({}), &second, json!({ "2-line": say("2") })).await;
    assert_eq!(text(&done), r#""1" "2""#);
}

/// MRTR-11
#[tokio::test(start_paused = true)]
async fn mrtr_11_who_answers_half_is_asked_for_the_rest() {
    let mut host = Host::modern(pair()).await;
    let first = host.call("both", json!({})).await;
    let other = key_of(&first, "other?");
    let again = host.retry("both", json!({}), &first, json!({ &other: say("2") })).await;
    assert_eq!(only_key(&again), key_of(&first, "one?"));
    let nothing = host.retry("both", json!({}), &again, json!({})).await;
    assert_eq!(only_key(&nothing), key_of(&first, "one?"), "nothing is as good as late");
    let answers = json!({ only_key(&nothing): say("1") });
    assert_eq!(text(&host.retry("both", json!({}), &nothing, answers).await), "1 2");
}

/// MRTR-13: what waits for an answer is with the client, and nothing of it is here.
#[tokio::test(start_paused = true)]
async fn mrtr_13_a_client_that_never_answers_costs_nothing() {
    let held = Counter::default();
    let server = Server::with_state("held", "1", held.clone())
        .tool(("hold", "Tool hold."), async |_: NoArgs, call: Call<Counter>| {
            let mine = call.state().clone();
            let theirs = call.clone();
            // A task that asks must not outlive the run either.
            let task = tokio::spawn(async move {
                let mine = theirs.state().clone();
                let answer = line(&theirs, "in a task?").await;
                mine.up();
                answer
            });
            let answer = line(&call, "here?").await;
            mine.up();
            task.await.ok();
            answer
        })
        .build()
        .unwrap();
    let mut host = Host::modern(server).await;
    let idle = held.holders();
    for _ in 0..100 {
        assert_eq!(host.call("hold", json!({})).await["result"]["resultType"], "input_required");
    }
    until("all runs are gone", || held.holders() == idle).await;
}

/// A side effect under `once` happens once over three runs; what stands beside it happens thrice.
#[tokio::test(start_paused = true)]
async fn once_is_once_over_three_runs() {
    let (paid, runs) = (Counter::default(), Counter::default());
    let server = Server::with_state("shop", "1", (paid.clone(), runs.clone()))
        .tool(("buy", "Tool buy."), async |_: NoArgs, call: Call<(Counter, Counter)>| {
            call.state().1.up();
            let receipt = call.once("pay", async { call.state().0.up() }).await?;
            let first = line(&call, "first?").await?;
            let second = line(&call, "second?").await?;
            Ok::<_, AskError>(format!("receipt {receipt}: {first} {second}"))
        })
        .build()
        .unwrap();
    let server = Arc::new(server);
    let mut host = Host::new(&server, MODERN, everything()).await;
    let params = json!({ "name": "buy", "arguments": {} });
    let echo = |_: &str, params: &Value| say(params["message"].as_str().unwrap());
    let answer = host.settle("tools/call", params.clone(), echo).await;
    assert_eq!(text(&answer), "receipt 1: first? second?");
    assert_eq!((paid.count(), runs.count()), (1, 3));
    // In a legacy session there is but one run.
    let mut host = Host::new(&server, "2025-11-25", everything()).await;
    let answer = host.settle("tools/call", params, echo).await;
    assert_eq!(text(&answer), "receipt 2: first? second?");
    assert_eq!((paid.count(), runs.count()), (2, 4));
}

/// A result that is no longer what the handler wants is an error, not a wrong value.
#[tokio::test(start_paused = true)]
async fn what_once_kept_in_another_shape_is_an_error() {
    let server = Server::builder("odd", "1")
        .tool(("odd", "Tool odd."), async |_: NoArgs, call: Call| {
            call.once("k", async { "text".to_owned() }).await?;
            call.once("k", async { 5u8 }).await?;
            Ok::<_, AskError>("no")
        })
        .build()
        .unwrap();
    let answer = Host::modern(server).await.call("odd", json!({})).await;
    assert!(text(&answer).starts_with("once(\"k\"): invalid type"), "{answer}");
}

/// The same words asked twice are two questions, told apart by their order.
#[tokio::test(start_paused = true)]
async fn the_same_question_may_be_asked_again() {
    let server = Server::builder("again", "1")
        .tool(("again", "Tool again."), async |_: NoArgs, call: Call| {
            let mut tries = 1;
            while line(&call, "the password?").await? != "swordfish" {
                tries += 1;
            }
            Ok::<_, AskError>(tries)
        })
        .build()
        .unwrap();
    let mut host = Host::modern(server).await;
    let mut words = ["a", "b", "swordfish"].into_iter();
    let params = json!({ "name": "again", "arguments": {} });
    let answer = host.settle("tools/call", params, |_, _| say(words.next().unwrap())).await;
    assert_eq!(text(&answer), "3");
}

/// Two chains side by side: the first answer of one must not move the questions of the other.
#[tokio::test(start_paused = true)]
async fn chains_side_by_side_ask_each_question_once() {
    async fn chain(call: &Call, name: &str) -> Result<String, AskError> {
        let first = line(call, &format!("{name}1")).await?;
        let second = line(call, &format!("{name}2")).await?;
        Ok(first + &second)
    }
    let server = Server::builder("chains", "1")
        .tool(("chains", "Tool chains."), async |_: NoArgs, call: Call| {
            let (a, b) = tokio::join!(chain(&call, "a"), chain(&call, "b"));
            Ok::<_, AskError>(a? + &b?)
        })
        .build()
        .unwrap();
    let mut host = Host::modern(server).await;
    let params = json!({ "name": "chains", "arguments": {} });
    let echo = |_: &str, params: &Value| say(params["message"].as_str().unwrap());
    let answer = host.settle("tools/call", params, echo).await;
    assert_eq!(text(&answer), "a1a2b1b2");
    assert_eq!(host.asked.len(), 4, "{:?}", host.asked);
}

/// A question that lost a race before the run stopped is not put.
#[tokio::test(start_paused = true)]
async fn a_question_that_was_dropped_is_not_asked() {
    let server = Server::builder("race", "1")
        .tool(("race", "Tool race."), async |_: NoArgs, call: Call| {
            tokio::select! {
                biased;
                _ = line(&call, "lost?") => {}
                () = std::future::ready(()) => {}
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            line(&call, "kept?").await
        })
        .build()
        .unwrap();
    let mut host = Host::modern(server).await;
    let first = host.call("race", json!({})).await;
    assert_eq!(only_key(&first), key_of(&first, "kept?"));
}

/// Each run is a call of its own to the hook: one that asks has ended, and has not failed.
#[tokio::test(start_paused = true)]
async fn on_call_sees_a_question_as_an_end_that_is_no_failure() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let server = Server::builder("seen", "1")
        .tool(("coffee", "Tool coffee."), coffee)
        .on_call(move |moment| {
            log.lock().unwrap().push(match moment {
                CallEvent::Started { .. } => "began",
                CallEvent::Finished { failed: false, asking: true, .. } => "asks",
                CallEvent::Finished { failed: false, asking: false, .. } => "done",
                CallEvent::Finished { failed: true, asking: false, .. } => "failed",
                _ => "else",
            });
            Ok(())
        })
        .build()
        .unwrap();
    let mut host = Host::modern(server).await;
    let first = host.call("coffee", json!({})).await;
    let key = only_key(&first);
    host.retry("coffee", json!({}), &first, json!({ &key: { "action": "decline" } })).await;
    host.retry("coffee", json!({}), &first, json!({ &key: 5 })).await;
    let seen = seen.lock().unwrap();
    assert_eq!(*seen, ["began", "asks", "began", "done", "began", "failed"]);
}

/// MRTR-10: arguments spelled otherwise are the same arguments.
#[tokio::test(start_paused = true)]
async fn a_retry_may_spell_its_arguments_otherwise() {
    let server = Server::builder("spell", "1")
        .tool("say", async |Line { line: words }, call: Call| line(&call, &words).await)
        .build()
        .unwrap();
    let mut host = Host::modern(server).await;
    let first = host.call("say", json!({ "line": "a" })).await;
    let state = first["result"]["requestState"].as_str().unwrap().replace('"', "\\\"");
    let key = only_key(&first);
    let spelled = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\",\"params\":{{\"name\":\"say\",\
         \"arguments\":{{ \"\\u006cine\" : \"\\u0061\" }},\"requestState\":\"{state}\",\
         \"inputResponses\":{{\"{key}\":{{\"action\":\"accept\",\"content\":{{\"line\":\"b\"}}}}}},\
         \"_meta\":{{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
         \"io.modelcontextprotocol/clientCapabilities\":{{\"elicitation\":{{}}}}}}}}}}\n"
    );
    host.wire.send_bytes(spelled.as_bytes()).await;
    let answer = host.wire.next().await;
    assert_eq!(text(&answer), "b");
}
