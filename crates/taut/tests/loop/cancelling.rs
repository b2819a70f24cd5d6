//! Requests that are no longer wanted.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use taut::service::{Failed, RequestParams, ServiceRequest, serve};
use tokio::time::Instant;

use super::memory::{request, serving};

const CANCEL: &str = r#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}"#;

/// Notes when it goes.
struct Goes(Arc<Mutex<Option<Instant>>>);

impl Drop for Goes {
    fn drop(&mut self) {
        *self.0.lock().unwrap() = Some(Instant::now());
    }
}

#[tokio::test(start_paused = true)]
async fn c3_a_cancelled_request_is_answered_so_and_never_again() {
    let service = serve(async |method: String, _: RequestParams, call: ServiceRequest| {
        if method == "stubborn" {
            call.cancelled().await;
            assert!(call.is_cancelled());
            call.remote().notify("noticed", ())?;
            return Ok(json!("too late"));
        }
        Ok::<Value, Failed>(json!("fresh"))
    });
    let mut wire = serving(service);
    wire.send(&request(1, "stubborn", &json!([]))).await;
    let answer = wire.ask(CANCEL).await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32800)));
    assert_eq!(wire.value().await["method"], "noticed");
    assert_eq!(wire.ask(&request(1, "again", &json!([]))).await["result"], "fresh");
    wire.send(CANCEL).await;
    assert_eq!(wire.finish().await.0, Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn a_future_that_ignores_the_cancellation_is_dropped_a_second_later() {
    let gone = Arc::new(Mutex::new(None));
    let noted = gone.clone();
    let service = serve(move |_: String, _: RequestParams, _: ServiceRequest| {
        let goes = Goes(noted.clone());
        async move {
            let _goes = goes;
            std::future::pending::<Result<(), Failed>>().await
        }
    });
    let mut wire = serving(service);
    wire.send(&request(1, "x", &json!([]))).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let cancelled = Instant::now();
    assert_eq!(wire.ask(CANCEL).await["error"]["code"], -32800);
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(*gone.lock().unwrap(), None, "it has a second to tidy up");
    tokio::time::sleep(Duration::from_millis(200)).await;
    let took = gone.lock().unwrap().unwrap() - cancelled;
    assert!(took >= Duration::from_secs(1) && took < Duration::from_millis(1_100), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_cancelled_while_it_waits_never_starts() {
    let started = Arc::new(Mutex::new(Vec::new()));
    let noted = started.clone();
    let service = serve(move |method: String, _: RequestParams, _: ServiceRequest| {
        noted.lock().unwrap().push(method);
        async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok::<_, Failed>(())
        }
    })
    .config(|config| config.running = 1);
    let mut wire = serving(service);
    wire.send(&request(2, "first", &json!([]))).await;
    wire.send(&request(1, "cancelled", &json!([]))).await;
    wire.send(&request(3, "last", &json!([]))).await;
    assert_eq!(wire.ask(CANCEL).await["error"]["code"], -32800);
    let (rest, _) = wire.finish().await;
    assert_eq!(rest.iter().map(|answer| &answer["id"]).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(*started.lock().unwrap(), ["first", "last"]);
}

/// C1: what is slow holds up nothing, not even its own cancellation.
#[tokio::test(start_paused = true)]
async fn c1_a_slow_request_holds_up_neither_others_nor_its_own_cancellation() {
    let service = serve(async |method: String, _: RequestParams, _: ServiceRequest| {
        if method == "slow" {
            tokio::time::sleep(Duration::from_secs(30)).await;
        }
        Ok::<_, Failed>(method)
    });
    let mut wire = serving(service);
    let began = Instant::now();
    wire.send(&request(1, "slow", &json!([]))).await;
    assert_eq!(wire.ask(&request(2, "quick", &json!([]))).await["result"], "quick");
    assert_eq!(wire.ask(CANCEL).await["error"]["code"], -32800);
    assert!(began.elapsed() < Duration::from_millis(50), "{:?}", began.elapsed());
}

/// C6: the first keeps its place and its answer.
#[tokio::test(start_paused = true)]
async fn c6_a_second_request_with_an_id_in_flight_is_refused_and_the_first_is_untouched() {
    let service = serve(async |method: String, _: RequestParams, _: ServiceRequest| {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok::<_, Failed>(method)
    });
    let mut wire = serving(service);
    wire.send(&request(1, "first", &json!([]))).await;
    let second = wire.ask(&request(1, "second", &json!([]))).await;
    assert_eq!((&second["id"], &second["error"]["code"]), (&json!(1), &json!(-32600)));
    assert_eq!(wire.value().await["result"], "first");
    assert_eq!(wire.ask(&request(1, "third", &json!([]))).await["result"], "third");
}
