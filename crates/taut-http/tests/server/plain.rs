//! Services that speak JSON-RPC and no MCP.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use taut::service::{Failed, RequestParams, Serve, ServiceRequest, serve};
use taut_http::server::{HttpService, Options};
use tokio::sync::Semaphore;

use crate::support::{Direct, within};

/// Adds numbers, waits for the test, reports progress, asks the client.
fn service(gate: &Arc<Semaphore>) -> Serve {
    let gate = gate.clone();
    serve(move |method: String, params: RequestParams, request: ServiceRequest| {
        let gate = gate.clone();
        async move {
            match method.as_str() {
                "add" => Ok::<_, Failed>(json!(params.read::<Vec<f64>>()?.iter().sum::<f64>())),
                "wait" => {
                    gate.acquire().await?.forget();
                    Ok(json!("waited"))
                }
                "report" => {
                    for step in 1..=2 {
                        request.remote().notify("progress", json!({ "step": step }))?;
                    }
                    gate.acquire().await?.forget();
                    Ok(json!("reported"))
                }
                "ask" => Ok(request.remote().call::<Value>("who", json!({})).await?),
                _ => Err(taut::Reject::method_not_found(&method).into()),
            }
        }
    })
}

fn direct(change: impl FnOnce(Serve) -> Serve, options: Options) -> (Direct, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    (Direct(HttpService::new(change(service(&gate)), options)), gate)
}

fn ask(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// A message that is longer than the service takes is 413, alone and in an array, and nothing hangs.
#[tokio::test]
async fn a_message_over_the_limit_of_the_service_is_413() {
    let small = |service: Serve| service.config(|config| config.limits.message = 1000);
    let (http, _) = direct(small, Options::new());
    let long = ask(1, "add", json!(vec![1; 1000]));
    for body in [long.clone(), json!([ask(2, "add", json!([1])), long])] {
        let reply = http.post(&[], body).await;
        assert_eq!(reply.status, 413);
        let answer = reply.json().await;
        assert!(answer["error"]["message"].to_string().contains("1000 bytes"), "{answer}");
    }
    assert_eq!(http.post(&[], ask(3, "add", json!([1, 2]))).await.json().await["result"], 3.0);
}

/// The limit for what is finished after the end of an input is no limit for a call: its body is no end.
#[tokio::test(start_paused = true)]
async fn a_call_may_take_longer_than_the_drain_limit_of_the_service() {
    let limit = Duration::from_millis(10);
    let (http, gate) = direct(|service| service.drain(limit), Options::new());
    // The clock goes on when nothing else can.
    let later = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        gate.add_permits(1);
    };
    let (reply, ()) = tokio::join!(http.post(&[], ask(1, "wait", json!({}))), later);
    assert_eq!(reply.status, 200);
    assert_eq!(reply.json().await["result"], "waited");
}

/// Notifications before the answer reach a client that takes a stream; one that takes JSON gets the answer.
#[tokio::test]
async fn notifications_come_before_the_answer_where_a_stream_is_taken() {
    for accept in ["application/json, text/event-stream", "text/event-stream"] {
        let (http, gate) = direct(|service| service, Options::new());
        let mut reply = http.post(&[("accept", accept)], ask(7, "report", json!({}))).await;
        assert!(reply.status == 200 && reply.is_stream(), "{accept}");
        for step in 1..=2 {
            let event = reply.event().await.unwrap();
            assert_eq!(event.data["method"], "progress");
            assert_eq!(event.data["params"]["step"], step);
        }
        gate.add_permits(1);
        let event = reply.event().await.unwrap();
        assert_eq!((&event.data["id"], &event.data["result"]), (&json!(7), &json!("reported")));
        assert_eq!(reply.event().await, None);
    }
    for accept in ["application/json", "*/*", "-"] {
        let (http, gate) = direct(|service| service, Options::new());
        gate.add_permits(1);
        let reply = http.post(&[("accept", accept)], ask(7, "report", json!({}))).await;
        assert_eq!(reply.status, 200, "{accept}");
        assert_eq!(reply.json().await["result"], "reported", "{accept}");
    }
    // Without any notification the answer is JSON, also to a client that takes both.
    let (http, _) = direct(|service| service, Options::new());
    let reply = http.post(&[], ask(1, "add", json!([1]))).await;
    assert_eq!(reply.json().await["result"], 1.0);
}

/// The answers to an array are one array, on a stream as well; signs of life come while it is waited for.
#[tokio::test]
async fn an_array_on_a_stream_is_answered_with_one() {
    let options = Options::new().keep_alive(Duration::from_millis(20));
    let (http, gate) = direct(|service| service, options.json_window(Duration::from_millis(20)));
    let batch = json!([ask(1, "add", json!([1])), ask(2, "wait", json!({})), 5]);
    let mut reply = http.post(&[], batch).await;
    assert!(reply.is_stream());
    assert_eq!(reply.piece().await, Some(Err("keep-alive".to_owned())));
    gate.add_permits(1);
    let event = reply.event().await.unwrap();
    let mut ids: Vec<String> =
        event.data.as_array().unwrap().iter().map(|answer| answer["id"].to_string()).collect();
    ids.sort();
    assert_eq!(ids, ["1", "2", "null"]);
    assert_eq!(reply.event().await, None);
}

/// JSON alone may be asked for; what is neither JSON nor a stream is 406.
#[tokio::test]
async fn what_is_sent_is_all_that_has_to_be_accepted() {
    let (http, _) = direct(|service| service, Options::new());
    let add = ask(1, "add", json!([1, 2]));
    let reply = http.post(&[("accept", "application/json")], &add).await;
    assert_eq!((reply.status.as_u16(), reply.json().await["result"].clone()), (200, json!(3.0)));
    assert_eq!(http.post(&[("accept", "text/html")], &add).await.status, 406);
    assert_eq!(http.post(&[("content-type", "text/plain")], &add).await.status, 415);
}

/// An error whose request is not known has `"id": null`, as JSON-RPC demands.
#[tokio::test]
async fn an_error_without_a_request_has_a_null_id() {
    let (http, _) = direct(|service| service, Options::new().body_limit(100));
    let long = " ".repeat(200);
    for (body, status) in [("{", 400), ("[]", 400), (r#"{"jsonrpc":"2.0"}"#, 400), (&long, 413)] {
        let reply = http.post(&[], body).await;
        assert_eq!(reply.status, status, "{body}");
        let answer = reply.json().await;
        assert_eq!(answer.get("id"), Some(&Value::Null), "{body}: {answer}");
    }
    let answers = http.post(&[], "[5]").await.json().await;
    assert_eq!(answers[0].get("id"), Some(&Value::Null), "{answers}");
    let reply = http.send(Method::GET, &[], "").await;
    assert_eq!(reply.json().await.get("id"), Some(&Value::Null));
}

/// A client over HTTP cannot be asked: the service learns that at once.
#[tokio::test]
async fn a_service_that_asks_is_told_that_nobody_answers() {
    for accept in ["application/json", "application/json, text/event-stream"] {
        let (http, _) = direct(|service| service, Options::new());
        let reply = within(http.post(&[("accept", accept)], ask(1, "ask", json!({})))).await;
        let answer = reply.json().await;
        let said = answer["error"].to_string();
        assert!(said.contains("cannot be asked"), "{answer}");
    }
}
