//! The smallest server: gives back the params of every request, unread.
//!
//! ```sh
//! echo '{"jsonrpc":"2.0","id":1,"method":"echo","params":[2,3]}' | cargo run -p taut --example echo
//! ```

use taut::service::{Failed, RequestParams, ServiceRequest, serve};

async fn echo(
    _method: String,
    params: RequestParams,
    _call: ServiceRequest,
) -> Result<RequestParams, Failed> {
    Ok(params)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> taut::Result<()> {
    serve(echo).serve_stdio().await?;
    Ok(())
}
