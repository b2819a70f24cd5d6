//! An MCP server inside a web server that has other things to do.
//!
//! `cargo run -p taut-http --example axum`, then `curl http://127.0.0.1:3000/health`, and any MCP client
//! at `http://127.0.0.1:3000/mcp`.

use axum::Router;
use axum::routing::get;
use taut::{JsonSchema, Server};
use taut_http::server::{HttpService, Options};

/// Add two numbers.
#[derive(serde::Deserialize, JsonSchema)]
struct Add {
    a: f64,
    b: f64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let calc =
        Server::builder("calc", "1.0").tool("add", async |Add { a, b }, _call| a + b).build()?;
    // Names and addresses of the loopback are served. Behind a reverse proxy, add its public name:
    // Options::new().allow_host("mcp.example.com").token(…)
    let mcp = HttpService::new(calc, Options::new());
    let app = Router::new().route("/health", get(|| async { "ok" })).route_service("/mcp", mcp);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, app).await?;
    Ok(())
}
