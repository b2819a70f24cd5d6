//! Two futures side by side: the first that is ready.
//!
//! tokio's macros would do the same, but they add a procedural macro to every user's build.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;

/// Which of two futures was ready.
pub(crate) enum Either<A, B> {
    First(A),
    Second(B),
}

/// Runs two futures until one is ready and drops the other. The first is polled first.
pub(crate) async fn first<A: Future, B: Future>(a: A, b: B) -> Either<A::Output, B::Output> {
    let (mut a, mut b) = (pin!(a), pin!(b));
    std::future::poll_fn(|cx| {
        if let Poll::Ready(value) = a.as_mut().poll(cx) {
            return Poll::Ready(Either::First(value));
        }
        b.as_mut().poll(cx).map(Either::Second)
    })
    .await
}
