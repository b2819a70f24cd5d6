//! What goes wrong between an edge and its workers, and what is then true of each call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;
use taut::Client;
use taut_nats::{EdgeOptions, WorkerOptions};

use crate::broker::Broker;
use crate::fleet::{Shared, client, edge, eventually, fast, worker};
use crate::reason;

/// What a worker says that takes a call and is then not heard of again.
const ACCEPTED: &[(&str, &str)] =
    &[("Mcp-Fleet", "accepted"), ("Mcp-Worker", "mute"), ("Mcp-Heartbeat", "50")];
const NOTHING: &[(&str, &str)] = &[];

/// A worker that takes one call, says this about it, and nothing more.
async fn mute(broker: &Broker, says: &'static [(&str, &str)]) -> tokio::task::JoinHandle<()> {
    let client = async_nats::connect(broker.url()).await.unwrap();
    let mut calls = client.queue_subscribe("mcp.test.call", "mcp".into()).await.unwrap();
    client.flush().await.unwrap();
    tokio::spawn(async move {
        let call = calls.next().await.unwrap();
        drop(calls);
        if !says.is_empty() {
            let mut headers = async_nats::HeaderMap::new();
            says.iter().for_each(|(name, value)| headers.insert(*name, *value));
            let reply = call.reply.unwrap();
            client.publish_with_headers(reply, headers, "".into()).await.unwrap();
        }
        client.flush().await.unwrap();
    })
}

/// An edge by hand.
pub(crate) struct ByHand(async_nats::Client);

impl ByHand {
    pub(crate) async fn new(broker: &Broker) -> Self {
        Self(async_nats::connect(broker.url()).await.unwrap())
    }

    pub(crate) async fn tell(&self, subject: &str, reply: &str, headers: &[(&'static str, &str)]) {
        self.publish(subject, reply, headers, "").await;
    }

    async fn publish(
        &self,
        subject: &str,
        reply: &str,
        headers: &[(&'static str, &str)],
        json: &str,
    ) {
        let mut map = async_nats::HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, *value);
        }
        let (subject, reply, json) = (subject.to_owned(), reply.to_owned(), json.to_owned());
        self.0.publish_with_reply_and_headers(subject, reply, map, json.into()).await.unwrap();
    }

    /// Calls a tool. The inbox of the call is `_INBOX.hand.1`.
    pub(crate) async fn call(&self, tool: &str) -> async_nats::Subscriber {
        let inbox = self.0.subscribe("_INBOX.hand.*").await.unwrap();
        let request = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": tool, "arguments": {}, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {},
            } },
        });
        let headers = [("Mcp-Fleet", "call"), ("Mcp-Method", "tools/call")];
        self.publish("mcp.test.call", "_INBOX.hand.1", &headers, &request.to_string()).await;
        inbox
    }
}

/// Calls a tool until the mute worker has had one. Returns how each went.
async fn call_until_taken(
    broker: &Broker,
    says: &'static [(&str, &str)],
    tool: &str,
) -> (usize, Vec<(String, bool)>) {
    let shared = Shared::new();
    let real = worker(broker, "real", &shared, fast()).await;
    let edge = edge(broker, EdgeOptions::new().accept(Duration::from_millis(500))).await;
    let client = edge.open(Client::builder()).await.unwrap();
    let taken = mute(broker, says).await;
    let (mut answered, mut failed) = (0, Vec::new());
    while !taken.is_finished() {
        match client.call(tool, json!({})).await {
            Ok(_) => answered += 1,
            Err(error) => failed.push(reason(&error)),
        }
    }
    let ran = shared.world.runs.load(Ordering::SeqCst);
    assert_eq!(ran, answered, "each answer is one run");
    real.stop().await;
    (answered, failed)
}

#[tokio::test]
async fn a_call_that_was_taken_and_lost_may_have_run() {
    let broker = Broker::start(&[]).await;
    let (_, failed) = call_until_taken(&broker, ACCEPTED, "count").await;
    assert_eq!(failed, [("lost".to_owned(), true)]);
}

#[tokio::test]
async fn a_call_that_nobody_said_to_have_taken_may_have_run() {
    let broker = Broker::start(&[]).await;
    let (_, failed) = call_until_taken(&broker, NOTHING, "count").await;
    assert_eq!(failed, [("silent".to_owned(), true)]);
}

#[tokio::test]
async fn what_may_run_twice_is_repeated() {
    let broker = Broker::start(&[]).await;
    for says in [ACCEPTED, NOTHING, FAILED] {
        let (answered, failed) = call_until_taken(&broker, says, "count_freely").await;
        assert_eq!(failed, []);
        assert!(answered > 0);
    }
}

const FAILED: &[(&str, &str)] = &[("Mcp-Fleet", "failed")];
const REFUSED: &[(&str, &str)] = &[("Mcp-Fleet", "failed"), ("Mcp-May-Have-Run", "no")];

#[tokio::test]
async fn a_call_that_failed_is_repeated_only_if_it_did_not_run() {
    let broker = Broker::start(&[]).await;
    let (_, failed) = call_until_taken(&broker, FAILED, "count").await;
    assert_eq!(failed, [("worker".to_owned(), true)]);
    let (answered, failed) = call_until_taken(&broker, REFUSED, "count").await;
    assert_eq!(failed, []);
    assert!(answered > 0);
}

#[tokio::test]
async fn a_worker_that_crashes_fails_its_calls_soon() {
    let broker = Broker::start(&[]).await;
    let shared = Shared::new();
    let one = worker(&broker, "one", &shared, fast()).await;
    let client = client(&broker).await;
    let held = tokio::spawn(client.call("hold", json!({})).into_future());
    shared.world.began.notified().await;
    one.crash();
    let error = held.await.unwrap().unwrap_err();
    assert_eq!(reason(&error), ("lost".to_owned(), true));
}

#[tokio::test]
async fn an_edge_that_is_gone_has_its_calls_cancelled() {
    let broker = Broker::start(&[]).await;
    let shared = Shared::new();
    let one = worker(&broker, "one", &shared, fast()).await;
    // An edge by hand, whose inbox ends after it has sent its call.
    let by_hand = ByHand::new(&broker).await;
    let mut inbox = by_hand.call("hold").await;
    let accepted = inbox.next().await.unwrap();
    assert_eq!(accepted.headers.unwrap().get("Mcp-Worker").unwrap().as_str(), one.id);
    shared.world.began.notified().await;
    drop(inbox);
    by_hand.0.flush().await.unwrap();
    eventually(async || shared.world.held.load(Ordering::SeqCst) == 0).await;
    one.stop().await;
}

#[tokio::test]
async fn without_a_broker_nothing_runs_and_with_it_all_goes_on() {
    let mut broker = Broker::start(&[]).await;
    let shared = Shared::new();
    let one = worker(&broker, "one", &shared, fast()).await;
    let edge = edge(&broker, EdgeOptions::new().wait(Duration::from_millis(500))).await;
    let client = edge.open(Client::builder()).await.unwrap();
    client.call("count", json!({})).await.unwrap();
    broker.kill();
    // The first may have been on its way when the broker died.
    let mut failed = Vec::new();
    while failed.last().is_none_or(|(reason, _): &(String, bool)| reason != "disconnected") {
        failed.push(reason(&client.call("count", json!({})).await.unwrap_err()));
    }
    assert_eq!(failed.last(), Some(&("disconnected".to_owned(), false)));
    assert_eq!(shared.world.runs.load(Ordering::SeqCst), 1);
    broker.restart().await;
    eventually(async || client.call("add", json!({ "a": 1, "b": 1 })).await.is_ok()).await;
    one.stop().await;
}

#[tokio::test]
async fn a_call_that_runs_outlives_a_restart_of_the_broker() {
    let mut broker = Broker::start(&[]).await;
    let shared = Shared::new();
    let patient = WorkerOptions::new().heartbeat(Duration::from_secs(2));
    let one = worker(&broker, "one", &shared, patient).await;
    let client = client(&broker).await;
    // Progress is heard after *accepted*, so the edge knows its worker when the broker dies.
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let call = client.call("hold", json!({})).progress(move |_| {
        let _ = told.send(());
    });
    let held = tokio::spawn(call.into_future());
    heard.recv().await.unwrap();
    broker.kill();
    // The answer is sent while there is no broker, and asked for when there is one.
    shared.go.add_permits(1);
    eventually(async || shared.world.held.load(Ordering::SeqCst) == 0).await;
    broker.restart().await;
    assert_eq!(held.await.unwrap().unwrap().text().unwrap(), "held");
    assert_eq!(shared.world.runs.load(Ordering::SeqCst), 0);
    one.stop().await;
}

/// An edge by hand asks for what it has got already.
#[tokio::test]
async fn an_answer_is_sent_again_when_an_edge_asks_for_it() {
    let broker = Broker::start(&[]).await;
    let shared = Shared::new();
    let one = worker(&broker, "one", &shared, fast()).await;
    let by_hand = ByHand::new(&broker).await;
    let mut inbox = by_hand.call("count").await;
    // To an edge, a message without headers is a whole answer.
    let kind = |message: &async_nats::Message| match &message.headers {
        Some(headers) => headers.get("Mcp-Fleet").unwrap().to_string(),
        None => "answer".to_owned(),
    };
    let mut answer = inbox.next().await.unwrap();
    // If that took longer than 5 ms.
    if kind(&answer) == "accepted" {
        let named = answer.headers.as_ref().unwrap().get("Mcp-Worker").unwrap().to_string();
        assert_eq!(named, one.id);
        answer = inbox.next().await.unwrap();
    }
    assert_eq!(kind(&answer), "answer");
    let worker = format!("mcp.test.worker.{}", one.id);
    for (taken, heard) in [("0", Some(&answer)), ("0", Some(&answer)), ("1", None)] {
        by_hand
            .tell(&worker, "_INBOX.hand.1", &[("Mcp-Fleet", "again"), ("Mcp-Sequence", taken)])
            .await;
        if let Some(answer) = heard {
            let again = inbox.next().await.unwrap();
            assert_eq!((kind(&again), &again.payload), (kind(answer), &answer.payload));
        }
    }
    // Of a call that it never had it says so. Nothing came for the third question in between.
    by_hand.tell(&worker, "_INBOX.hand.2", &[("Mcp-Fleet", "again"), ("Mcp-Sequence", "0")]).await;
    let unknown = inbox.next().await.unwrap();
    assert_eq!((kind(&unknown).as_str(), unknown.subject.as_str()), ("unknown", "_INBOX.hand.2"));
    assert_eq!(shared.world.runs.load(Ordering::SeqCst), 1);
    one.stop().await;
}

/// Nothing was heard of it, so there is nobody to tell yet.
#[tokio::test]
async fn who_takes_a_call_that_was_withdrawn_before_is_told() {
    let broker = Broker::start(&[]).await;
    let shared = Shared::new();
    let one = worker(&broker, "one", &shared, fast()).await;
    // However long this takes on a machine that is full, the edge does not give up.
    let edge = edge(&broker, EdgeOptions::new().accept(Duration::from_secs(1000))).await;
    let client = edge.open(Client::builder()).await.unwrap();
    one.stop().await;
    let late = async_nats::connect(broker.url()).await.unwrap();
    let mut calls = late.queue_subscribe("mcp.test.call", "mcp".into()).await.unwrap();
    let mut own = late.subscribe("mcp.test.worker.late").await.unwrap();
    // What comes back says that the broker knows of both.
    late.publish("mcp.test.worker.late", "".into()).await.unwrap();
    own.next().await.unwrap();
    let call = tokio::spawn(client.call("count", json!({})).into_future());
    // What the worker that left has sent to the group may come before.
    let mut next_call = async || loop {
        let message = calls.next().await.unwrap();
        if message.headers.is_none() {
            return message;
        }
    };
    let taken = next_call().await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    // Its client has told the edge of that before this one.
    let other = tokio::spawn(client.call("count", json!({})).into_future());
    let second = next_call().await;
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("Mcp-Fleet", "accepted");
    headers.insert("Mcp-Worker", "late");
    headers.insert("Mcp-Heartbeat", "600000");
    let reply = taken.reply.unwrap();
    late.publish_with_headers(reply.clone(), headers, "".into()).await.unwrap();
    let told = own.next().await.unwrap();
    assert_eq!(told.headers.unwrap().get("Mcp-Fleet").unwrap().as_str(), "cancel");
    assert_eq!(told.reply, Some(reply));
    // An answer at the subject for all of them, with the call's own as its reply subject.
    let request: serde_json::Value = serde_json::from_slice(&second.payload).unwrap();
    let answer = json!({
        "jsonrpc": "2.0", "id": request["id"],
        "result": { "resultType": "complete", "content": [{ "type": "text", "text": "late" }] },
    });
    let name = second.reply.unwrap();
    let answers = format!("{}.answer", name.rsplit_once('.').unwrap().0);
    late.publish_with_reply(answers, name, answer.to_string().into()).await.unwrap();
    assert_eq!(other.await.unwrap().unwrap().text().unwrap(), "late");
}

/// A request without headers, as an edge sends most of them.
#[tokio::test]
async fn what_is_no_request_is_refused() {
    let broker = Broker::start(&[]).await;
    let shared = Shared::new();
    let one = worker(&broker, "one", &shared, fast()).await;
    let client = async_nats::connect(broker.url()).await.unwrap();
    let ask = async |json: &'static str| {
        let inbox = client.new_inbox();
        let mut answers = client.subscribe(inbox.clone()).await.unwrap();
        client.publish_with_reply("mcp.test.call", inbox, json.into()).await.unwrap();
        loop {
            let answer = answers.next().await.unwrap();
            let kind = answer.headers.as_ref().map(|headers| headers.get("Mcp-Fleet").unwrap());
            // What says that it is worked on comes before, if that takes longer than 5 ms.
            if kind.is_none_or(|kind| !["accepted", "heartbeat"].contains(&kind.as_str())) {
                return answer;
            }
        }
    };
    let table = [
        "",
        "{}",
        r#"{"jsonrpc":"2.0","method":"tools/call"}"#,
        // It begins as a request, and is no JSON.
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{]}"#,
    ];
    for json in table {
        let answer = ask(json).await;
        let headers = answer.headers.unwrap();
        let header = |name: &str| headers.get(name).unwrap().as_str();
        assert_eq!((header("Mcp-Fleet"), header("Mcp-May-Have-Run")), ("failed", "no"), "{json}");
        assert_eq!(&answer.payload[..], b"the message is no request", "{json}");
    }
    let json = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}"#;
    let answer = ask(json).await;
    assert!(answer.headers.is_none(), "{answer:?}");
    assert!(answer.payload.starts_with(br#"{"jsonrpc":"2.0","id":1,"#), "{answer:?}");
    one.stop().await;
}

#[tokio::test]
async fn workers_can_be_replaced_one_by_one_without_a_failed_call() {
    let broker = Broker::start(&[]).await;
    let shared = Shared::new();
    let mut workers = Vec::new();
    for name in ["a", "b", "c"] {
        workers.push(worker(&broker, name, &shared, fast()).await);
    }
    let done = Arc::new(AtomicBool::new(false));
    let client = client(&broker).await;
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let (client, done) = (client.clone(), done.clone());
            tokio::spawn(async move {
                let mut answered = 0;
                while !done.load(Ordering::Relaxed) {
                    client.call("count", json!({})).await.unwrap();
                    answered += 1;
                }
                answered
            })
        })
        .collect();
    for name in ["d", "e", "f"] {
        workers.push(worker(&broker, name, &shared, fast()).await);
        workers.remove(0).stop().await;
    }
    done.store(true, Ordering::Relaxed);
    let mut answered = 0;
    for caller in callers {
        answered += caller.await.unwrap();
    }
    assert!(answered > 0);
    assert_eq!(shared.world.runs.load(Ordering::SeqCst), answered);
    for worker in workers {
        worker.stop().await;
    }
}
