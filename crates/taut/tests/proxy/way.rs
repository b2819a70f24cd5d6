//! The way that the table of features takes here: one proxy. `taut-nats` has another one, over a broker.

use taut::{Client, ClientBuilder, Revision};

use crate::world::{connect, proxy_to, server};

/// A client behind a proxy, pinned to one revision on each side.
pub(crate) async fn joined(front: Revision, back: Revision, client: ClientBuilder) -> Client {
    let (proxy, _) = proxy_to(server(), back);
    let client = connect(&proxy.build(), client.revision(front)).await.unwrap();
    assert_eq!(client.revision(), front);
    client
}
