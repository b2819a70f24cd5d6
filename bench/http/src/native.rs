//! The tool `echo`, served by taut-http. Prints its address on stdout.

use taut::{JsonSchema, Server};
use taut_http::server::{Options, serve};

#[derive(serde::Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server =
        Server::builder("native", "1").tool("echo", async |Echo { text }, _call| text).build()?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    serve(listener, std::sync::Arc::new(server), Options::new().connections(4096)).await?;
    Ok(())
}
