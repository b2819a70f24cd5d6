//! One tool called in one line, for tests: through the whole of the server, over a pipe in memory.
//!
//! Knows just enough of a client to say what a request must say; the client proper is elsewhere.

use std::future::{Future, IntoFuture};
use std::pin::pin;

use serde::Serialize;

use super::Server;
use crate::error::{Error, Result};
use crate::mcp::{CallToolResult, Method, Revision, meta_keys};
use crate::service::{self, refuse};
use crate::stream::pipe_in_memory;

impl<S: Send + Sync + 'static> Server<S> {
    /// Calls a tool as a host of the newest revision does, in memory: a test in one line.
    ///
    /// What the tool itself failed with is an `Ok` whose [`failed`](CallToolResult::failed) is
    /// true, as a model would read it.
    ///
    /// ```
    /// # use taut::{JsonSchema, Server};
    /// # #[derive(serde::Deserialize, JsonSchema)]
    /// # struct Add { a: f64, b: f64 }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> taut::Result<()> {
    /// let server =
    ///     Server::builder("calc", "1.0").tool("add", async |Add { a, b }, _call| a + b).build()?;
    /// let sum = server.call_tool("add", serde_json::json!({ "a": 2, "b": 3 })).await?;
    /// assert_eq!(sum.content[0].as_text(), Some("5"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The call was answered with a JSON-RPC error: no such tool, or a [`Reject`](crate::Reject).
    pub async fn call_tool(&self, name: &str, arguments: impl Serialize) -> Result<CallToolResult> {
        let method = Method::CallTool.as_str();
        let arguments = serde_json::to_value(arguments)
            .map_err(|error| Error::Encode { method: method.into(), reason: error.to_string() })?;
        let params = serde_json::json!({
            "name": name,
            "arguments": arguments,
            "_meta": {
                meta_keys::PROTOCOL_VERSION: Revision::MODERN.as_str(),
                meta_keys::CLIENT_CAPABILITIES: {},
            },
        });
        let [near, far] = pipe_in_memory();
        let host = service::serve(refuse).connect(near.0, near.1);
        let mut serving = pin!(self.serve(far.0, far.1));
        let mut calling = pin!(host.call(method, params).into_future());
        std::future::poll_fn(|cx| {
            let answer = calling.as_mut().poll(cx);
            if answer.is_pending() {
                // Does not end while the host holds its end of the pipe, which it does here.
                let _ = serving.as_mut().poll(cx);
            }
            answer
        })
        .await
    }
}
