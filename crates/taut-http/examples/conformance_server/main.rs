//! The server that the official conformance suite wants to test, on taut.
//!
//! `conformance_server --port 3000` serves it over HTTP at `/mcp`; `conformance_server --stdio` over
//! stdio, for bridges. `interop/http/run` runs the suite against it.

mod asking;
mod offer;

use std::sync::Arc;
use std::time::Duration;

use taut_http::server::{Options, serve};
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let server = asking::add(offer::server()).build()?;
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("--stdio"), None) => Ok(server.serve_stdio().await?),
        (Some("--port"), Some(port)) => {
            let listener = TcpListener::bind(("127.0.0.1", port.parse()?)).await?;
            // The tool `test_reconnection` wants its stream closed while it works.
            let options = Options::new()
                .json_window(Duration::from_millis(400))
                .poll_after(Duration::from_millis(700), Duration::from_millis(500));
            Ok(serve(listener, Arc::new(server), options).await?)
        }
        _ => Err("usage: conformance_server --port PORT | --stdio".into()),
    }
}
