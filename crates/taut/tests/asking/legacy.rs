//! A legacy session: a question is a request to the client, with all that can happen to one.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use taut::{AskError, Call, Ending, NoArgs, Server};

use crate::fixture::{Counter, asking, line, until};
use crate::host::{Host, everything, text};

const REVISION: &str = "2025-11-25";

async fn session<S: Send + Sync + 'static>(server: Server<S>) -> Host {
    Host::new(&Arc::new(server), REVISION, everything()).await
}

/// Sends a call that asks, and takes the question.
async fn question(host: &mut Host, tool: &str) -> Value {
    host.send("tools/call", json!({ "name": tool, "arguments": {} })).await;
    let question = host.wire.next().await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    question
}

/// C13: while it waits for the user it serves others.
#[tokio::test(start_paused = true)]
async fn c13_a_question_that_nobody_answers_holds_up_nothing_else() {
    let mut host = session(asking()).await;
    question(&mut host, "coffee").await;
    assert!(host.request("tools/list", json!({})).await["result"].is_object());
    assert!(host.request("ping", json!({})).await["result"].is_object());
}

/// CAN-05: whoever cancels a call need not answer for it; the question is withdrawn at once.
#[tokio::test(start_paused = true)]
async fn cancelling_a_call_withdraws_its_question() {
    let mut host = session(asking()).await;
    let question = question(&mut host, "coffee").await;
    let began = tokio::time::Instant::now();
    host.wire.notify("notifications/cancelled", json!({ "requestId": 1 })).await;
    let withdrawn = host.wire.next().await;
    assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    // CAN-10: and nothing is answered.
    assert!(host.wire.is_silent(Duration::from_secs(60)).await);
}

/// What a handler does with a call that was cancelled while it asked.
#[tokio::test(start_paused = true)]
async fn a_handler_learns_that_its_question_was_withdrawn_and_may_tidy_up() {
    let tidied = Counter::default();
    let server = Server::with_state("tidy", "1", tidied.clone())
        .tool(("ask", "Tool ask."), async |_: NoArgs, call: Call<Counter>| {
            let asked = line(&call, "well?").await;
            if let Err(AskError::Withdrawn) = asked {
                call.state().up();
            }
            asked
        })
        .build()
        .unwrap();
    let mut host = session(server).await;
    question(&mut host, "ask").await;
    host.wire.notify("notifications/cancelled", json!({ "requestId": 1 })).await;
    host.wire.next().await;
    until("it tidied up", || tidied.count() == 1).await;
}

/// C13: a deadline of its own, because a person is slow and may have gone home.
#[tokio::test(start_paused = true)]
async fn c13_a_question_has_a_deadline_and_is_then_withdrawn() {
    let server = Server::builder("brief", "1")
        .tool(("coffee", "Tool coffee."), crate::fixture::coffee)
        .ask_timeout(Duration::from_secs(5))
        .build()
        .unwrap();
    let mut host = session(server).await;
    let question = question(&mut host, "coffee").await;
    let withdrawn = host.wire.next().await;
    assert_eq!(withdrawn["method"], "notifications/cancelled", "{withdrawn}");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    let answer = host.wire.next().await;
    assert_eq!(text(&answer), "the client did not answer within 5s");
    assert_eq!(answer["result"]["isError"], true);
    // A late answer is nobody's.
    let late = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "accept" } });
    host.wire.send(late).await;
    assert!(host.wire.is_silent(Duration::from_secs(60)).await);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_answers_with_an_error_fails_the_call_with_its_words() {
    let mut host = session(asking()).await;
    let question = question(&mut host, "coffee").await;
    let error = json!({ "code": -32602, "message": "no such mode" });
    host.wire.send(json!({ "jsonrpc": "2.0", "id": question["id"], "error": error })).await;
    let answer = host.wire.next().await;
    assert_eq!(answer["result"]["isError"], true);
    assert!(text(&answer).contains("no such mode"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_read_fails_the_call_with_words() {
    let mut host = session(asking()).await;
    let question = question(&mut host, "coffee").await;
    host.wire.send(json!({ "jsonrpc": "2.0", "id": question["id"], "result": {} })).await;
    let answer = host.wire.next().await;
    assert!(text(&answer).starts_with("the answer cannot be read: "), "{answer}");
}

/// S4: the end of the input is the end of the question, and the call is answered still.
#[tokio::test(start_paused = true)]
async fn at_the_end_of_the_input_a_call_that_asks_is_answered_and_the_server_ends() {
    let mut host = session(asking()).await;
    question(&mut host, "coffee").await;
    let (rest, ending) = host.wire.finish().await;
    let answers: Vec<_> = rest.iter().filter(|message| message["id"] == 1).collect();
    assert_eq!(answers.len(), 1, "{rest:?}");
    assert_eq!(text(answers[0]), "the connection or the call ended before the answer came");
    assert!(matches!(ending, Some(Ending::Eof)), "{ending:?}");
}

/// The time of a call includes that of its questions.
#[tokio::test(start_paused = true)]
async fn a_call_that_runs_out_of_time_while_it_asks_withdraws_its_question() {
    let server = Server::builder("brief", "1")
        .tool(("coffee", "Tool coffee."), crate::fixture::coffee)
        .call_timeout(Duration::from_secs(5))
        .build()
        .unwrap();
    let mut host = session(server).await;
    let question = question(&mut host, "coffee").await;
    let mut rest = [host.wire.next().await, host.wire.next().await];
    rest.sort_by_key(|message| message["id"].is_null());
    assert_eq!(rest[0]["error"]["message"], "the server gave up after 5s");
    assert_eq!(rest[1]["params"]["requestId"], question["id"]);
}
