//! The way that the proxy's table of features takes here: a proxy, an edge, a broker, a worker and its proxy.

use std::sync::Arc;
use std::time::Duration;

use taut::{Client, ClientBuilder, Proxy, Revision};
use taut_nats::{Edge, EdgeOptions, Worker, WorkerOptions};

use crate::broker::Broker;
use crate::fleet::eventually;
use crate::world::{connect, proxy_to, server};

/// A client in front of an edge, and a server behind a worker, pinned to one revision on each side.
pub(crate) async fn joined(front: Revision, back: Revision, client: ClientBuilder) -> Client {
    let broker = Broker::start(&[]).await;
    let (behind, _) = proxy_to(server(), back);
    let name: taut_nats::ServiceName = "table".parse().unwrap();
    let answers = Arc::new(behind.build());
    let worker = Worker::new(broker.connect().await, name.clone(), answers, WorkerOptions::new());
    let connection = broker.connect().await;
    let edge = Edge::new(connection.clone(), name.clone(), EdgeOptions::new()).await.unwrap();
    // Both end with the test.
    tokio::spawn(async move {
        let _broker = broker;
        worker.run(std::future::pending()).await.unwrap();
    });
    eventually(async || {
        let workers = taut_nats::fleet(&connection, Some(&name), Duration::from_secs(5)).await;
        !workers.unwrap().is_empty()
    })
    .await;
    let connector = move |client: ClientBuilder| {
        let edge = edge.clone();
        async move { edge.open(client).await }
    };
    let client = connect(&Proxy::builder(connector).build(), client.revision(front)).await.unwrap();
    assert_eq!(client.revision(), front);
    client
}
