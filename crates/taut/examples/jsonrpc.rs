//! A plain JSON-RPC 2.0 server on stdin and stdout. Try it:
//!
//! ```sh
//! echo '{"jsonrpc":"2.0","id":1,"method":"add","params":[2,3]}' | cargo run -p taut --example jsonrpc
//! ```

use serde_json::{Value, json};
use taut::Reject;
use taut::service::{Failed, RequestParams, ServiceRequest, serve};

async fn answer(
    method: String,
    params: RequestParams,
    call: ServiceRequest,
) -> Result<Value, Failed> {
    match method.as_str() {
        "echo" => Ok(params.read()?),
        "add" => Ok(json!(params.read::<Vec<f64>>()?.iter().sum::<f64>())),
        "sleep" => {
            let [milliseconds] = params.read::<[u64; 1]>()?;
            tokio::time::sleep(std::time::Duration::from_millis(milliseconds)).await;
            Ok(json!(milliseconds))
        }
        // Asks the other side in the middle of a call.
        "reverse" => {
            let word: Value = call.remote().call("word", ()).await?;
            let word = word.as_str().unwrap_or_default();
            Ok(json!(word.chars().rev().collect::<String>()))
        }
        "parse" => Ok(json!(params.read::<[String; 1]>()?[0].parse::<i64>()?)),
        _ => Err(Reject::method_not_found(&method).into()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> taut::Result<()> {
    serve(answer).serve_stdio().await?;
    Ok(())
}
