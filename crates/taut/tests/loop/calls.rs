//! Calling the other side: its answers, its silence, and what is left on the wire.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use taut::service::{Failed, Remote, RequestParams, ServiceRequest, serve};
use taut::{Ending, Error};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

use super::memory::{request, serving};

async fn refuse(method: String, _: RequestParams, _: ServiceRequest) -> Result<(), Failed> {
    Err(taut::Reject::method_not_found(&method).into())
}

/// A side that calls, and the other end of its wire.
fn calling() -> (Remote, BufReader<ReadHalf<DuplexStream>>, WriteHalf<DuplexStream>) {
    let (near, far) = tokio::io::duplex(64 << 10);
    let (reader, writer) = tokio::io::split(near);
    let remote = serve(refuse).connect(reader, writer);
    let (from, to) = tokio::io::split(far);
    (remote, BufReader::new(from), to)
}

async fn line(from: &mut BufReader<ReadHalf<DuplexStream>>) -> Value {
    let mut line = String::new();
    from.read_line(&mut line).await.unwrap();
    serde_json::from_str(&line).unwrap()
}

#[tokio::test(start_paused = true)]
async fn c4_c10_a_call_that_times_out_leaves_one_withdrawal_on_the_wire() {
    let (remote, mut from, mut to) = calling();
    let began = tokio::time::Instant::now();
    let error = remote.call::<Value>("slow", ()).timeout(Duration::from_secs(7)).await.unwrap_err();
    assert!(matches!(error, Error::TimedOut { ceiling: false, .. }), "{error}");
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(7) && took < Duration::from_millis(7_100), "{took:?}");
    let asked = line(&mut from).await;
    assert_eq!(asked["method"], "slow");
    let cancelled = line(&mut from).await;
    assert_eq!(cancelled["method"], "$/cancelRequest");
    assert_eq!(cancelled["params"]["id"], asked["id"]);
    // C4: the answer that comes too late harms nobody.
    to.write_all(
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":1}}\n", asked["id"]).as_bytes(),
    )
    .await
    .unwrap();
    let next = tokio::spawn(remote.call::<u32>("next", ()).into_future());
    let asked = line(&mut from).await;
    assert_eq!(asked["method"], "next", "nothing else was written in between");
    to.write_all(
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":2}}\n", asked["id"]).as_bytes(),
    )
    .await
    .unwrap();
    assert_eq!(next.await.unwrap().unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_is_withdrawn_once() {
    let (remote, mut from, _to) = calling();
    let call = tokio::spawn(remote.call::<Value>("slow", ()).into_future());
    let asked = line(&mut from).await;
    call.abort();
    let cancelled = line(&mut from).await;
    assert_eq!(cancelled["method"], "$/cancelRequest");
    assert_eq!(cancelled["params"]["id"], asked["id"]);
    remote.notify("after", ()).unwrap();
    assert_eq!(line(&mut from).await["method"], "after");
}

/// C11: nobody reads, so the call itself never leaves. Its time runs all the same.
#[tokio::test(start_paused = true)]
async fn c11_a_write_that_is_stuck_does_not_defeat_the_timeout_or_the_close() {
    let (remote, _from, _to) = calling();
    let big = "x".repeat(1 << 20);
    let error = remote.call::<Value>("big", [big]).timeout(Duration::from_secs(1)).await;
    assert!(matches!(error, Err(Error::TimedOut { .. })));
    // Made while the loop waits for the pipe, so that only this wakes it.
    let error = remote.call::<Value>("small", ()).timeout(Duration::from_secs(1)).await;
    assert!(matches!(error, Err(Error::TimedOut { .. })));
    remote.close();
    let began = tokio::time::Instant::now();
    assert!(matches!(remote.ended().await, Ending::Closed));
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

#[tokio::test]
async fn c12_calls_fail_at_once_when_the_other_side_goes() {
    let (remote, mut from, to) = calling();
    let calls: Vec<_> = (0..10)
        .map(|_| tokio::spawn(remote.call::<Value>("never", ()).without_timeout().into_future()))
        .collect();
    for _ in 0..10 {
        line(&mut from).await;
    }
    drop((from, to));
    for call in calls {
        assert!(matches!(call.await.unwrap(), Err(Error::Ended(_))));
    }
    assert!(matches!(remote.call::<Value>("more", ()).await, Err(Error::Ended(_))));
    remote.ended().await;
    assert!(matches!(remote.notify("more", ()), Err(Error::Ended(_))));
}

#[tokio::test]
async fn c12_calls_fail_at_once_when_the_loop_itself_is_dropped() {
    let (near, far) = tokio::io::duplex(1024);
    let (give, take) = tokio::sync::oneshot::channel();
    let give = std::sync::Mutex::new(Some(give));
    let served = tokio::spawn(async move {
        let (reader, writer) = tokio::io::split(near);
        let handler = move |_: String, _: RequestParams, call: ServiceRequest| {
            let give = give.lock().unwrap().take();
            async move {
                if let Some(give) = give {
                    let _ = give.send(call.remote().clone());
                }
                std::future::pending::<Result<(), Failed>>().await
            }
        };
        serve(handler).serve(reader, writer).await
    });
    let (from, mut to) = tokio::io::split(far);
    to.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}\n").await.unwrap();
    let remote = take.await.unwrap();
    let call = tokio::spawn(remote.call::<Value>("never", ()).without_timeout().into_future());
    line(&mut BufReader::new(from)).await;
    served.abort();
    let error = tokio::time::timeout(super::PATIENCE, call).await.unwrap().unwrap();
    assert!(matches!(error, Err(Error::Ended(Ending::Closed))), "{error:?}");
    assert!(matches!(remote.ended().await, Ending::Closed));
}

async fn asks_back(
    method: String,
    _: RequestParams,
    call: ServiceRequest,
) -> Result<Value, Failed> {
    let remote = call.remote();
    match method.as_str() {
        "ask" => Ok(remote.call("question", json!({ "n": 1 })).await?),
        "ask impatiently" => {
            Ok(remote.call("question", ()).timeout(Duration::from_secs(2)).await?)
        }
        _ => Ok(json!("no question")),
    }
}

#[tokio::test(start_paused = true)]
async fn c13_a_handler_that_asks_back_blocks_nobody_and_its_question_ends_by_itself() {
    let mut wire = serving(serve(asks_back));
    let question = wire.ask(&request(1, "ask", &json!([]))).await;
    assert_eq!((&question["method"], &question["params"]), (&json!("question"), &json!({"n": 1})));
    // The other side asks in turn before it answers.
    assert_eq!(wire.ask(&request(2, "other", &json!([]))).await["result"], "no question");
    wire.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": "yes"}).to_string()).await;
    let answer = wire.value().await;
    assert_eq!((&answer["id"], &answer["result"]), (&json!(1), &json!("yes")));

    let question = wire.ask(&request(3, "ask impatiently", &json!([]))).await;
    let cancelled = wire.value().await;
    assert_eq!(cancelled["params"]["id"], question["id"]);
    let answer = wire.value().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(3), &json!(-32603)));
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_told_from_an_error_and_from_the_end() {
    let (remote, mut from, mut to) = calling();
    for (answer, wanted) in [
        (json!({ "result": "text" }), "broke the protocol"),
        (json!({ "error": { "code": -1, "message": "no" } }), "was refused"),
        (json!({}), ""),
    ] {
        let call = tokio::spawn(remote.call::<u32>("number", ()).into_future());
        let mut message = json!({ "jsonrpc": "2.0", "id": line(&mut from).await["id"] });
        let Some(members) = answer.as_object().filter(|members| !members.is_empty()) else {
            drop((from, to));
            assert!(matches!(call.await.unwrap(), Err(Error::Ended(_))));
            return;
        };
        message.as_object_mut().unwrap().extend(members.clone());
        to.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        let error = call.await.unwrap().unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
    }
}

/// L10 and every wake-up there is: many callers on many threads, none forgotten.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn l10_no_answer_is_lost_between_many_threads() {
    let service = serve(async |method: String, params: RequestParams, call: ServiceRequest| {
        if method == "later" {
            tokio::task::yield_now().await;
        }
        let [n] = params.read::<[usize; 1]>()?;
        if n % 16 == 0 {
            let echoed: usize = call.remote().call("back", [n]).await?;
            return Ok::<_, Failed>(echoed);
        }
        Ok(n)
    });
    let (near, far) = tokio::io::duplex(4096);
    let (reader, writer) = tokio::io::split(far);
    let _there = service.connect(reader, writer);
    let (reader, writer) = tokio::io::split(near);
    let back = serve(async |_: String, params: RequestParams, _: ServiceRequest| {
        Ok::<_, Failed>(params.read::<[usize; 1]>()?[0])
    });
    let remote = back.connect(reader, writer);
    let done = Arc::new(AtomicUsize::new(0));
    let callers: Vec<_> = (0..16)
        .map(|caller| {
            let (remote, done) = (remote.clone(), done.clone());
            tokio::spawn(async move {
                for n in 0..500 {
                    let n = caller * 1000 + n;
                    let method = if n % 3 == 0 { "later" } else { "now" };
                    assert_eq!(remote.call::<usize>(method, [n]).await.unwrap(), n);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for caller in callers {
        let finished = tokio::time::timeout(super::PATIENCE * 2, caller).await;
        finished.unwrap_or_else(|_| panic!("stuck after {done:?} calls")).unwrap();
    }
}

/// A future that is dropped must leave nothing behind: a host may ask in a loop whether it is over.
#[tokio::test]
async fn waiting_for_the_end_and_giving_up_leaves_nothing_behind() {
    struct Silent;
    impl std::task::Wake for Silent {
        fn wake(self: Arc<Self>) {
            drop(self);
        }
    }
    let remote = serve(refuse).memory();
    let silent = Arc::new(Silent);
    for _ in 0..20_000 {
        let waker = std::task::Waker::from(silent.clone());
        let mut cx = std::task::Context::from_waker(&waker);
        assert!(std::pin::pin!(remote.ended()).poll(&mut cx).is_pending());
    }
    assert_eq!(Arc::strong_count(&silent), 1);
}
