//! The end of a connection: what was accepted is finished, what was not is not begun.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use taut::{Ending, NoArgs, Server};

use crate::fixture::{self, slow};
use crate::wire::Wire;

/// S4: a hundred calls in flight when stdin closes, all answered.
#[tokio::test(start_paused = true)]
async fn s4_closing_the_input_with_a_hundred_calls_in_flight_loses_none() {
    let mut wire = Wire::to(fixture::named("full"));
    for n in 0..100 {
        wire.call(n, "slow", json!({ "step_ms": 1000 + n })).await;
    }
    let (answers, ending) = wire.finish().await;
    let ids: BTreeSet<u64> = answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    assert_eq!((answers.len(), ids.len()), (100, 100));
    assert!(answers.iter().all(|answer| answer["result"]["content"][0]["text"] == "done"));
    assert!(matches!(ending, Some(Ending::Eof)));
}

/// The same from a process, where the pipe and the exit are real.
/// Also STD-15.
// About Unix itself: sockets as stdin and stdout.
#[cfg(unix)]
#[tokio::test]
async fn s4_a_process_answers_a_hundred_calls_after_its_input_has_closed() {
    let (mut wire, served) = crate::process::start("full").await;
    for n in 0..100 {
        wire.call(n, "slow", json!({ "step_ms": 50 + n })).await;
    }
    let (answers, _) = wire.finish().await;
    let ids: BTreeSet<u64> = answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    assert_eq!((answers.len(), ids.len()), (100, 100));
    assert!(served.ends_well());
}

#[tokio::test(start_paused = true)]
async fn what_takes_longer_than_the_drain_limit_is_given_up_and_counted() {
    let server = Server::builder("calm", "1")
        .tool("slow", slow)
        .drain(Duration::from_secs(3))
        .build()
        .unwrap();
    let mut wire = Wire::to(server);
    wire.call(1, "slow", json!({ "step_ms": 1000 })).await;
    wire.call(2, "slow", json!({ "step_ms": 10_000 })).await;
    let (answers, ending) = wire.finish().await;
    assert_eq!(answers.len(), 1);
    assert!(matches!(ending, Some(Ending::DrainTimedOut { unanswered: 1 })), "{ending:?}");
}

/// Limits that no clock can hold mean no limit.
#[tokio::test(start_paused = true)]
async fn limits_of_everything_are_no_limits() {
    let server = Server::builder("patient", "1")
        .tool("slow", slow)
        .tool(("deadline", "Tool deadline."), async |_: NoArgs, call: taut::Call| {
            call.deadline().is_some()
        })
        .drain(Duration::MAX)
        .cancel_grace(Duration::MAX)
        .call_timeout(Duration::MAX)
        .ask_timeout(Duration::MAX)
        .ask_state_lifetime(Duration::MAX)
        .cache(Duration::MAX, taut::types::CacheScope::Public)
        .build()
        .unwrap();
    let mut wire = Wire::to(server);
    wire.call(1, "deadline", json!({})).await;
    assert_eq!(wire.next().await["result"]["content"][0]["text"], "false");
    wire.ask(2, "tools/list", json!({})).await;
    assert!(wire.next().await["result"]["tools"].is_array());
    wire.call(3, "slow", json!({ "step_ms": 5_000 })).await;
    let (answers, ending) = wire.finish().await;
    assert_eq!(answers[0]["result"]["content"][0]["text"], "done");
    assert!(matches!(ending, Some(Ending::Eof)), "{ending:?}");
}

/// STD-21, STD-23, DEP-04: whatever is asked of it, a server sends no request of its own in the
/// modern era, and nothing that is neither an answer nor a note of a request.
/// Also CAN-11.
#[tokio::test(start_paused = true)]
async fn std_21_everything_on_stdout_is_an_answer_or_a_note_of_a_request() {
    let mut wire = Wire::to(fixture::named("full"));
    let meta = json!({ "progressToken": "t", "io.modelcontextprotocol/logLevel": "debug" });
    let calls = [
        ("slow", json!({ "steps": 5, "step_ms": 100 })),
        ("log", json!({ "level": "error", "data": 1 })),
        ("panic", json!({})),
        ("blocks", json!({})),
    ];
    for (n, (tool, arguments)) in calls.into_iter().enumerate() {
        let params = json!({ "name": tool, "arguments": arguments });
        wire.ask_with(n, "tools/call", params, meta.clone()).await;
    }
    let (messages, _) = wire.finish().await;
    let mut answers = 0;
    for message in messages {
        match message["method"].as_str() {
            None => answers += 1,
            Some("notifications/progress" | "notifications/message") => {
                assert!(message.get("id").is_none(), "{message}");
                assert!(message["params"].get("_meta").is_none(), "{message}");
            }
            Some(_) => panic!("{message}"),
        }
    }
    assert_eq!(answers, 4);
}

/// L11: a connection on which nothing is asked is a connection on which nothing is said.
#[tokio::test(start_paused = true)]
async fn l11_a_server_does_not_speak_first() {
    let server = Server::builder("quiet", "1")
        .tool(("x", "Tool x."), async |_: NoArgs, _| ())
        .logging()
        .build()
        .unwrap();
    let (said, ending) = Wire::to(server).finish().await;
    assert!(said.is_empty() && matches!(ending, Some(Ending::Eof)));
}
