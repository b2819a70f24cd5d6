//! The smallest server that is of use: `cargo run -p taut --example calc`, or name it in a host's settings.

use taut::{JsonSchema, Server};

/// Add two numbers.
#[derive(serde::Deserialize, JsonSchema)]
struct Add {
    a: f64,
    b: f64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> taut::Result<()> {
    Server::builder("calc", "1.0")
        .tool("add", async |Add { a, b }, _call| a + b)
        .serve_stdio()
        .await
}
