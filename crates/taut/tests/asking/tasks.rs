//! Asking from a task that the handler started.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use taut::{AskError, Call, NoArgs, Server};

use crate::fixture::{Counter, line, until};
use crate::host::{Host, REVISIONS, accept, everything, text};

type Seen = Arc<Mutex<Vec<String>>>;

async fn in_a_task(_: NoArgs, call: Call<Seen>) -> Result<String, AskError> {
    let theirs = call.clone();
    let asking = tokio::spawn(async move {
        let answer = line(&theirs, "from a task?").await;
        let seen = format!("{answer:?}");
        theirs.state().lock().unwrap().push(seen);
        answer
    });
    asking.await.unwrap()
}

/// C13: a task that asks wakes the run that has to stop for it, and ends when that has stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c13_a_task_may_ask_and_does_not_outlive_its_run() {
    let seen = Seen::default();
    let server = Server::with_state("tasks", "1", seen.clone())
        .tool(("ask", "Tool ask."), in_a_task)
        .build()
        .unwrap();
    let server = Arc::new(server);
    for revision in REVISIONS {
        let mut host = Host::new(&server, revision, everything()).await;
        let params = json!({ "name": "ask", "arguments": {} });
        let yes = |_: &str, _: &Value| accept(json!({ "line": "yes" }));
        let answer = host.settle("tools/call", params, yes).await;
        assert_eq!(text(&answer), "yes", "{revision}");
    }
    let modern_runs = || {
        let seen = seen.lock().unwrap();
        (seen.iter().filter(|s| *s == "Err(Ended)").count(), seen.len())
    };
    let all = async {
        while modern_runs() != (1, 4) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), all).await.expect("a task was left behind");
}

/// Once the call is answered nobody is asked on its behalf, in neither era.
#[tokio::test(start_paused = true)]
async fn a_task_that_asks_after_its_call_has_ended_asks_nobody() {
    let late = Counter::default();
    let server = Server::with_state("late", "1", late.clone())
        .tool(("late", "Tool late."), async |_: NoArgs, call: Call<Counter>| {
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                if let Err(AskError::Ended) = line(&call, "too late?").await {
                    call.state().up();
                }
            });
            "done"
        })
        .build()
        .unwrap();
    let server = Arc::new(server);
    for (n, revision) in REVISIONS.into_iter().enumerate() {
        let mut host = Host::new(&server, revision, everything()).await;
        assert_eq!(text(&host.call("late", json!({})).await), "done");
        assert!(host.wire.is_silent(Duration::from_secs(5)).await, "{revision}");
        until("it noticed", || late.count() == n + 1).await;
    }
}
