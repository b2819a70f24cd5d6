//! Three brokers that are one cluster.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use taut::Client;
use taut_nats::{EdgeOptions, WorkerOptions};

use crate::broker::{Broker, cluster};
use crate::fleet::{Running, Shared, client, edge, eventually, fast, worker};

/// Waits until what is on one node is known on another.
async fn seen_from(node: &Broker, worker: &Running) {
    let connection = node.connect().await;
    eventually(async || {
        let fleet = taut_nats::fleet(&connection, None, Duration::from_secs(5)).await.unwrap();
        fleet.iter().any(|one| one.worker == worker.id)
    })
    .await;
}

#[tokio::test]
async fn a_worker_on_one_node_serves_the_edges_on_all() {
    let nodes = cluster().await;
    let shared = Shared::new();
    let one = worker(&nodes[0], "one", &shared, fast()).await;
    for node in &nodes {
        seen_from(node, &one).await;
        let client = client(node).await;
        let sum = client.call("add", json!({ "a": 2, "b": 3 })).await.unwrap();
        assert_eq!(sum.text().unwrap(), "5");
    }
    one.stop().await;
}

/// Kills the node of the worker or of the edge while a call runs, which then ends while nobody is connected there.
async fn outlives(killed: usize) {
    let mut nodes = cluster().await;
    let shared = Shared::new();
    let patient = WorkerOptions::new().heartbeat(Duration::from_secs(2));
    let one = worker(&nodes[0], "one", &shared, patient).await;
    seen_from(&nodes[1], &one).await;
    let edge = edge(&nodes[1], EdgeOptions::new()).await;
    let client = edge.open(Client::builder()).await.unwrap();
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let call = client.call("hold", json!({})).progress(move |_| {
        let _ = told.send(());
    });
    let held = tokio::spawn(call.into_future());
    heard.recv().await.unwrap();
    nodes[killed].kill();
    shared.go.add_permits(1);
    assert_eq!(held.await.unwrap().unwrap().text().unwrap(), "held");
    assert_eq!(shared.world.held.load(Ordering::SeqCst), 0);
    // Both ends work on through the nodes that are left.
    client.call("count", json!({})).await.unwrap();
    assert_eq!(shared.world.runs.load(Ordering::SeqCst), 1);
    one.stop().await;
}

#[tokio::test]
async fn an_answer_outlives_the_node_of_its_worker() {
    outlives(0).await;
}

#[tokio::test]
async fn an_answer_outlives_the_node_of_its_edge() {
    outlives(1).await;
}
