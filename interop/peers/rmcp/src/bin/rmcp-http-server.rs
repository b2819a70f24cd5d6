//! rmcp as a server over Streamable HTTP: what `rmcp-server` offers, `--transport http:PORT`.

#![allow(dead_code, reason = "the other server's own main is not used here")]

#[path = "rmcp-server.rs"]
mod server;

use std::sync::Arc;

use axum::serve::ListenerExt as _;

use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::tower::StreamableHttpService;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let options = rust_common::offer::options();
    let port = options.transport.strip_prefix("http:").and_then(|port| port.parse().ok());
    let port: u16 = port.ok_or_else(|| std::io::Error::other("give --transport http:PORT"))?;
    let make = move || Ok(server::Peer::new(&options));
    let sessions = Arc::<LocalSessionManager>::default();
    let service = StreamableHttpService::new(make, sessions, Default::default());
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    // Without this every answer waits 40 ms for the client's kernel, which is nothing of rmcp's.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await
}
