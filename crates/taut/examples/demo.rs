//! The demo server: one of each thing. The same as `taut serve`, to read and to copy from.

#[path = "../../taut-cli/src/demo.rs"]
mod demo;

#[tokio::main(flavor = "current_thread")]
async fn main() -> taut::Result<()> {
    demo::server().serve_stdio().await
}
