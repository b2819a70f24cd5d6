//! Calls that an edge gives up, and what it then says of them: to its client, and to the worker that has them.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::json;
use taut::{Client, Meta};
use taut_nats::EdgeOptions;
use tokio::time::Instant;

use crate::broker::Broker;
use crate::fleet::{Shared, edge, fast, worker};
use crate::reason;

/// A worker by hand, whose id is `hand`: it takes all calls, and says what the test says.
struct ByHandWorker {
    client: async_nats::Client,
    calls: async_nats::Subscriber,
    own: async_nats::Subscriber,
}

impl ByHandWorker {
    async fn new(broker: &Broker) -> Self {
        let client = async_nats::connect(broker.url()).await.unwrap();
        let calls = client.queue_subscribe("mcp.test.call", "mcp".into()).await.unwrap();
        let mut own = client.subscribe("mcp.test.worker.hand").await.unwrap();
        // What comes back says that the broker knows of both.
        client.publish("mcp.test.worker.hand", "".into()).await.unwrap();
        own.next().await.unwrap();
        Self { client, calls, own }
    }

    async fn say(&self, reply: &str, from: Option<&str>, headers: &[(&'static str, &str)]) {
        let mut map = async_nats::HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, *value);
        }
        let reply = reply.to_owned();
        match from {
            Some(from) => {
                let from = from.to_owned();
                let published =
                    self.client.publish_with_reply_and_headers(reply, from, map, "".into());
                published.await.unwrap();
            }
            None => self.client.publish_with_headers(reply, map, "".into()).await.unwrap(),
        }
    }

    /// Waits until an edge withdraws this call.
    async fn told_to_cancel(&mut self, call: &str) {
        loop {
            let told = self.own.next().await.unwrap();
            let kind = told.headers.as_ref().and_then(|headers| headers.get("Mcp-Fleet"));
            if kind.is_some_and(|kind| kind.as_str() == "cancel") {
                assert_eq!(told.reply.unwrap().as_str(), call);
                return;
            }
        }
    }
}

/// A client of an edge that waits so long for a sign, after its real worker has left.
async fn alone(broker: &Broker, options: EdgeOptions) -> Client {
    let shared = Shared::new();
    let one = worker(broker, "one", &shared, fast()).await;
    let client = edge(broker, options).await.open(Client::builder()).await.unwrap();
    one.stop().await;
    client
}

/// Without this, a worker that was frozen would run a call that nobody waits for, and keep its slot for as long as it
/// waits for acks.
#[tokio::test]
async fn a_worker_that_takes_a_call_too_late_is_told_that_nobody_waits() {
    let broker = Broker::start(&[]).await;
    let client = alone(&broker, EdgeOptions::new().accept(Duration::from_millis(200))).await;
    let mut hand = ByHandWorker::new(&broker).await;
    let call = tokio::spawn(client.call("count", json!({})).into_future());
    let taken = hand.calls.next().await.unwrap().reply.unwrap();
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(reason(&error), ("silent".to_owned(), true));
    let accepted = [("Mcp-Fleet", "accepted"), ("Mcp-Worker", "hand"), ("Mcp-Heartbeat", "600000")];
    hand.say(&taken, None, &accepted).await;
    hand.told_to_cancel(&taken).await;
    // If that is lost, the next heartbeat is answered in the same way.
    let gone = "mcp.test.worker.hand.gone.1";
    hand.say(&taken, Some(gone), &[("Mcp-Fleet", "heartbeat")]).await;
    hand.told_to_cancel(&taken).await;
    // One that leads elsewhere is not.
    hand.say(&taken, Some("mcp.other.worker.hand.gone.1"), &[("Mcp-Fleet", "heartbeat")]).await;
    hand.say(&taken, Some(gone), &[("Mcp-Fleet", "heartbeat")]).await;
    hand.told_to_cancel(&taken).await;
}

#[tokio::test]
async fn a_deadline_while_all_workers_are_full_says_busy() {
    let broker = Broker::start(&[]).await;
    let shared = Shared::new();
    let one = worker(&broker, "one", &shared, fast().slots(1)).await;
    let held = edge(&broker, EdgeOptions::new()).await.open(Client::builder()).await.unwrap();
    let held = tokio::spawn(held.call("hold", json!({})).into_future());
    shared.world.began.notified().await;
    // A slot is needed to open a client, so this one is opened while another worker has one.
    let two = worker(&broker, "two", &shared, fast()).await;
    let options = EdgeOptions::new().deadline(Duration::from_millis(400));
    let client = edge(&broker, options).await.open(Client::builder()).await.unwrap();
    two.stop().await;
    let began = Instant::now();
    let error = client.call("count", json!({})).await.unwrap_err();
    assert_eq!(reason(&error), ("busy".to_owned(), false), "{error}");
    assert!(error.to_string().contains("400ms"), "{error}");
    // Long before it would have given up without a deadline.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    shared.go.add_permits(1);
    held.await.unwrap().unwrap();
    one.stop().await;
}

#[tokio::test]
async fn a_deadline_while_a_worker_runs_the_call_ends_it() {
    let broker = Broker::start(&[]).await;
    let shared = Shared::new();
    let one = worker(&broker, "one", &shared, fast()).await;
    let options = EdgeOptions::new().deadline(Duration::from_secs(2));
    let client = edge(&broker, options).await.open(Client::builder()).await.unwrap();
    let error = client.call("hold", json!({})).await.unwrap_err();
    let (why, may_have_run) = reason(&error);
    // The edge and the worker look at the same moment; either may be the first to say so.
    assert!(["deadline", "worker"].contains(&why.as_str()) && may_have_run, "{error}");
    assert!(error.to_string().contains("deadline"), "{error}");
    shared.world.dropped.notified().await;
    client.call("count", json!({})).await.unwrap();
    one.stop().await;
}

/// Whether a lost call may be repeated is asked of the workers. If they do not answer, that is asked once for all.
#[tokio::test]
async fn many_calls_that_are_lost_together_are_told_together() {
    let broker = Broker::start(&[]).await;
    let client = alone(&broker, EdgeOptions::new().accept(Duration::from_millis(500))).await;
    let _frozen = ByHandWorker::new(&broker).await;
    let began = Instant::now();
    let calls: Vec<_> =
        (0..64).map(|_| tokio::spawn(client.call("count", json!({})).into_future())).collect();
    for call in calls {
        let error = call.await.unwrap().unwrap_err();
        assert_eq!(reason(&error), ("silent".to_owned(), true));
    }
    // The question takes 3 times 500 ms; 64 of them would take more than a minute and a half.
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

/// The context is in the JSON for the server, and in headers for whoever watches the broker.
#[tokio::test]
async fn trace_context_travels_in_headers_and_in_the_request() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let broker = Broker::start(&[]).await;
    let traced = |client: &Client| {
        let meta = Meta::new().with("traceparent", json!(PARENT));
        client.call("count", json!({})).meta(meta.with("tracestate", json!("vendor=1")))
    };
    for options in [EdgeOptions::new(), EdgeOptions::new().deadline(Duration::from_secs(60))] {
        let client = alone(&broker, options).await;
        let mut hand = ByHandWorker::new(&broker).await;
        let call = tokio::spawn(traced(&client).into_future());
        let taken = hand.calls.next().await.unwrap();
        let headers = taken.headers.unwrap();
        let header = |name: &str| headers.get(name).map(ToString::to_string);
        assert_eq!(header("traceparent").as_deref(), Some(PARENT));
        assert_eq!(header("tracestate").as_deref(), Some("vendor=1"));
        let request: serde_json::Value = serde_json::from_slice(&taken.payload).unwrap();
        assert_eq!(request["params"]["_meta"]["traceparent"], PARENT);
        let answer = json!({
            "jsonrpc": "2.0", "id": request["id"],
            "result": { "resultType": "complete", "content": [] },
        });
        hand.client.publish(taken.reply.unwrap(), answer.to_string().into()).await.unwrap();
        call.await.unwrap().unwrap();
    }
}
