//! A plain JSON-RPC service that is asked in memory: no process, no stream. The program ends by itself, because the
//! connection ends with the last handle on it. Try it:
//!
//! ```sh
//! cargo run -p taut --example memory
//! ```

use std::io::Write as _;

use taut::Reject;
use taut::service::{Failed, RequestParams, ServiceRequest, serve};

async fn answer(method: String, params: RequestParams, _: ServiceRequest) -> Result<f64, Failed> {
    match method.as_str() {
        "add" => Ok(params.read::<Vec<f64>>()?.iter().sum()),
        _ => Err(Reject::method_not_found(&method).into()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let remote = serve(answer).memory();
    let sum: f64 = remote.call("add", [2.0, 3.0]).await?;
    writeln!(std::io::stdout(), "{sum}")?;
    Ok(())
}
