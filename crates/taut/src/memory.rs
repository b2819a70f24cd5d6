//! A client joined to a server without a process, so that users test as we do.

use crate::client::{Client, ClientBuilder};
use crate::error::Result;
use crate::server::Server;
use crate::stream::pipe_in_memory;

/// A client joined to `server` in memory, in the middle of nothing but the protocol.
///
/// ```
/// # use taut::{JsonSchema, Server};
/// # use serde_json::json;
/// # #[derive(serde::Deserialize, JsonSchema)]
/// # struct Add { a: f64, b: f64 }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> taut::Result<()> {
/// let server =
///     Server::builder("calc", "1.0").tool("add", async |Add { a, b }, _call| a + b).build()?;
/// let client = taut::memory(&server).await?;
/// assert_eq!(client.call("add", json!({ "a": 2, "b": 3 })).await?.text()?, "5");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The two do not agree on a revision.
pub async fn memory<S: Send + Sync + 'static>(server: &Server<S>) -> Result<Client> {
    memory_with(server, Client::builder()).await
}

/// As [`memory`], with a client of your own settings: another revision, other capabilities.
///
/// # Errors
/// The two do not agree on a revision.
pub async fn memory_with<S: Send + Sync + 'static>(
    server: &Server<S>,
    client: ClientBuilder,
) -> Result<Client> {
    let [near, far] = pipe_in_memory();
    let server = server.clone();
    tokio::spawn(async move { server.serve(far.0, far.1).await });
    client.connect(near.0, near.1).await
}
