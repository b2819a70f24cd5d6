//! Arrays in, arrays out.

use serde_json::{Value, json};
use taut::service::{Failed, RequestParams, ServiceRequest, serve};

use super::memory::serving;

async fn later(method: String, params: RequestParams, _: ServiceRequest) -> Result<Value, Failed> {
    if method == "later" {
        tokio::task::yield_now().await;
    }
    Ok(params.read()?)
}

/// F17, F11.
#[tokio::test]
async fn f17_a_batch_is_answered_by_one_array_without_its_notifications() {
    let mut wire = serving(serve(later));
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "later", "params": [1] },
        { "jsonrpc": "2.0", "method": "told" },
        { "jsonrpc": "2.0", "id": "2", "method": "now", "params": [2] },
        7,
    ]);
    let mut answers = wire.ask(&batch.to_string()).await;
    let answers = answers.as_array_mut().unwrap();
    answers.sort_by_key(|answer| answer["id"].to_string());
    assert_eq!(answers.len(), 3);
    assert_eq!((&answers[0]["id"], &answers[0]["result"]), (&json!("2"), &json!([2])));
    assert_eq!((&answers[1]["id"], &answers[1]["result"]), (&json!(1), &json!([1])));
    assert_eq!((&answers[2]["id"], &answers[2]["error"]["code"]), (&json!(null), &json!(-32600)));
}

#[tokio::test]
async fn f17_an_empty_batch_is_refused_and_one_of_notifications_is_not_answered() {
    let mut wire = serving(serve(later));
    wire.send(r#"[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"}]"#).await;
    assert_eq!(wire.ask("[]").await["error"]["code"], -32600);
    wire.send(r#"{"jsonrpc":"2.0","id":1,"method":"now"}"#).await;
    assert_eq!(wire.value().await["id"], 1);
    assert_eq!(wire.finish().await.0, Vec::<Value>::new());
}

/// F14: the answer comes framed as the question was, also while another framing is in use.
#[tokio::test]
async fn f14_each_answer_is_framed_as_its_request_was() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut wire = serving(serve(later));
    let one = r#"{"jsonrpc":"2.0","id":1,"method":"later","params":["é"]}"#;
    let batch = r#"[{"jsonrpc":"2.0","id":2,"method":"now","params":[]}]"#;
    let framed = format!("Content-Length: {}\r\n\r\n{batch}", batch.len());
    wire.to.write_all(format!("{one}\n{framed}").as_bytes()).await.unwrap();
    wire.to.shutdown().await.unwrap();
    let mut all = String::new();
    wire.from.read_to_string(&mut all).await.unwrap();
    let answer = r#"[{"jsonrpc":"2.0","id":2,"result":[]}]"#;
    let first = format!("Content-Length: {}\r\n\r\n{answer}", answer.len());
    assert_eq!(all, format!("{first}{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[\"é\"]}}\n"));
}

/// F25: an input that ends after a header, with nothing of the body there, is told of as any other.
#[tokio::test]
async fn f25_an_input_that_ends_right_after_a_header_is_answered() {
    use tokio::io::AsyncWriteExt;
    for (length, code) in [(9, -32700), (99_999_999, -32600)] {
        let mut wire = serving(serve(later));
        let header = format!("Content-Length: {length}\r\n\r\n");
        wire.to.write_all(header.as_bytes()).await.unwrap();
        let (answers, _) = wire.finish().await;
        assert_eq!(answers.len(), 1, "{length}");
        assert_eq!(answers[0]["error"]["code"], code, "{}", answers[0]);
    }
}
