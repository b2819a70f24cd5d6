//! taut
mod demo;

#[tokio::main(flavor = "current_thread")]
async fn main() -> taut::Result<()> {
    demo::server().serve_stdio().await
}
