//! How a connection ends: nothing accepted is lost, nothing waits for ever.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use serde_json::{Value, json};
use taut::Ending;
use taut::service::{Failed, RequestParams, ServiceRequest, serve};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::Instant;

use super::memory::{request, serving};

async fn sleeps(_: String, params: RequestParams, _: ServiceRequest) -> Result<u64, Failed> {
    let [milliseconds] = params.read::<[u64; 1]>()?;
    if milliseconds > 0 {
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    }
    Ok(milliseconds)
}

#[tokio::test(start_paused = true)]
async fn s4_everything_accepted_before_the_end_is_answered() {
    for run in 0..50 {
        let mut wire = serving(serve(sleeps));
        for n in 0..100 {
            wire.send(&request(n, "sleep", &json!([(n * 7 + run) % 201]))).await;
        }
        let (answers, ending) = wire.finish().await;
        let mut ids: Vec<_> = answers.iter().map(|a| a["id"].as_u64().unwrap()).collect();
        ids.sort_unstable();
        assert_eq!(ids, (0..100).collect::<Vec<_>>());
        assert!(matches!(ending, Ending::Eof), "{ending}");
    }
}

#[tokio::test(start_paused = true)]
async fn s5_a_handler_that_never_returns_is_left_behind_at_the_drain_limit() {
    let service = serve(async |_: String, _: RequestParams, _: ServiceRequest| {
        std::future::pending::<Result<(), Failed>>().await
    })
    .drain(Duration::from_secs(3));
    let mut wire = serving(service);
    wire.send(&request(1, "x", &json!([]))).await;
    let began = Instant::now();
    let (answers, ending) = wire.finish().await;
    assert_eq!(answers, Vec::<Value>::new());
    assert!(matches!(ending, Ending::DrainTimedOut { unanswered: 1 }), "{ending}");
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(3) && took < Duration::from_millis(3_100), "{took:?}");
}

/// A limit that no clock can count to is none.
#[tokio::test(start_paused = true)]
async fn without_a_drain_limit_a_call_of_an_hour_is_answered_after_the_end_of_input() {
    let input = format!("{}\n", request(1, "sleep", &json!([3_600_000])));
    let mut output = std::io::Cursor::new(Vec::new());
    let service = serve(sleeps).drain(Duration::MAX);
    let ending = service.serve(input.as_bytes(), &mut output).await;
    assert!(matches!(ending, Ending::Eof), "{ending}");
    let answer: Value = serde_json::from_slice(&output.into_inner()).unwrap();
    assert_eq!(answer["result"], 3_600_000);
}

/// F25: at the end of input the last line counts without its newline.
#[tokio::test(start_paused = true)]
async fn f25_a_last_request_without_a_newline_is_answered() {
    let mut wire = serving(serve(sleeps));
    wire.to.write_all(request(1, "sleep", &json!([5])).as_bytes()).await.unwrap();
    assert_eq!(wire.finish().await.0[0]["result"], 5);
}

/// C17: our end is closed although a handler and the other side go on for ever.
#[tokio::test(start_paused = true)]
async fn c17_close_waits_for_no_handler() {
    let service = serve(async |method: String, _: RequestParams, call: ServiceRequest| {
        if method == "close" {
            call.remote().close();
        }
        std::future::pending::<Result<(), Failed>>().await
    });
    let mut wire = serving(service);
    wire.send(&request(1, "listen", &json!([]))).await;
    wire.send(&request(2, "close", &json!([]))).await;
    let began = Instant::now();
    let mut rest = String::new();
    wire.from.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "");
    assert!(began.elapsed() < Duration::from_secs(1), "the other side sees the end at once");
    drop((wire.to, wire.from));
    assert!(matches!(wire.served.await.unwrap(), Ending::Closed));
}

#[tokio::test(start_paused = true)]
async fn close_reaches_the_other_side_also_in_memory() {
    let remote = serve(sleeps).memory();
    assert_eq!(remote.call::<u64>("sleep", [1]).await.unwrap(), 1);
    let began = Instant::now();
    remote.close();
    assert!(matches!(remote.ended().await, Ending::Closed));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

/// What is queued leaves before our end closes (P11).
#[tokio::test(start_paused = true)]
async fn close_loses_nothing_that_was_said_before() {
    let service = serve(async |_: String, _: RequestParams, call: ServiceRequest| {
        for n in 0..1000 {
            call.remote().notify("said", [n])?;
        }
        call.remote().close();
        Ok::<_, Failed>(())
    });
    let mut wire = super::memory::serving_over(service, 512);
    wire.send(&request(1, "x", &json!([]))).await;
    let mut all = String::new();
    wire.from.read_to_string(&mut all).await.unwrap();
    assert_eq!(all.lines().count(), 1001);
}

/// A writer that keeps what it takes until it is let.
#[derive(Clone, Default)]
struct Keeper(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    taken: usize,
    let_go: bool,
    waker: Option<Waker>,
}

impl AsyncWrite for Keeper {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        b: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.0.lock().unwrap().taken += b.len();
        Poll::Ready(Ok(b.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let mut kept = self.0.lock().unwrap();
        if kept.let_go {
            return Poll::Ready(Ok(()));
        }
        kept.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The turn of output that the loop allows itself must not be taken for the end of it.
#[tokio::test(start_paused = true)]
async fn s4_the_end_waits_until_the_writer_has_let_go_of_every_byte() {
    for size in [10, 65_499, 100_000] {
        let keeper = Keeper::default();
        let writer = keeper.clone();
        let input = request(1, "big", &json!([size]));
        let served = tokio::spawn(async move {
            let service = serve(async |_: String, params: RequestParams, _: ServiceRequest| {
                Ok::<_, Failed>("x".repeat(params.read::<[usize; 1]>()?[0]))
            });
            service.serve(input.as_bytes(), writer).await
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(keeper.0.lock().unwrap().taken > size);
        assert!(!served.is_finished(), "{size}: it ended while the writer held its last words");
        let waker = {
            let mut kept = keeper.0.lock().unwrap();
            kept.let_go = true;
            kept.waker.take()
        };
        waker.unwrap().wake();
        assert!(matches!(served.await.unwrap(), Ending::Eof));
    }
}

/// A writer that takes nothing and fails at nothing.
struct Deaf;

impl AsyncWrite for Deaf {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Poll::Ready(Ok(0))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn a_writer_that_takes_nothing_is_nobody_and_not_a_reason_to_spin() {
    let input = request(1, "sleep", &json!([0]));
    let ending = serve(sleeps).serve(input.as_bytes(), Deaf).await;
    assert!(matches!(ending, Ending::ReaderGone), "{ending}");
}

/// Two servers that take each other for a client must not echo each other into a storm.
#[tokio::test(start_paused = true)]
async fn two_servers_back_to_back_fall_silent_after_a_bad_line() {
    let (left, left_far) = tokio::io::duplex(64 << 10);
    let (right, right_far) = tokio::io::duplex(64 << 10);
    for far in [left_far, right_far] {
        let (reader, writer) = tokio::io::split(far);
        serve(sleeps).connect(reader, writer);
    }
    let (mut left_from, mut left_to) = tokio::io::split(left);
    let (mut right_from, mut right_to) = tokio::io::split(right);
    left_to.write_all(b"this is no message\n").await.unwrap();
    let carried = Arc::new(Mutex::new(0));
    let counts = (carried.clone(), carried.clone());
    tokio::spawn(async move { carry(&mut left_from, &mut right_to, &counts.0).await });
    tokio::spawn(async move { carry(&mut right_from, &mut left_to, &counts.1).await });
    // Until nothing else can happen.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(*carried.lock().unwrap(), 1, "one error, and silence");
}

async fn carry(
    from: &mut (impl AsyncReadExt + Unpin),
    to: &mut (impl AsyncWriteExt + Unpin),
    lines: &Mutex<usize>,
) {
    let mut bytes = [0; 4096];
    loop {
        let n = from.read(&mut bytes).await.unwrap();
        if n == 0 {
            return;
        }
        *lines.lock().unwrap() += bytes[..n].iter().filter(|byte| **byte == b'\n').count();
        to.write_all(&bytes[..n]).await.unwrap();
    }
}
