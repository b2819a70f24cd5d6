//! Signs of life on a stream that has nothing to say.
//!
//! Knows time; must not know what is said. SSE-11.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, Sleep};

use crate::sse;

/// When the next sign of life is due.
pub(super) struct Silence {
    every: Duration,
    last_sent: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Silence {
    /// It begins now. `every` is a duration that a clock can count (the options see to that).
    pub(super) fn new(every: Duration) -> Self {
        let last_sent = Instant::now();
        let timer = Box::pin(tokio::time::sleep_until(last_sent + every));
        Self { every, last_sent, timer }
    }

    /// Something was sent.
    pub(super) fn broken(&mut self) {
        self.last_sent = Instant::now();
    }

    /// The sign of life, once it is due.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        // The timer is set anew only when it rings: a stream that speaks need not move it each time.
        while self.timer.as_mut().poll(cx).is_ready() {
            let (due, now) = (self.last_sent + self.every, Instant::now());
            if due <= now {
                self.last_sent = now;
                self.timer.as_mut().reset(now + self.every);
                return Poll::Ready(Bytes::from_static(sse::KEEP_ALIVE));
            }
            self.timer.as_mut().reset(due);
        }
        Poll::Pending
    }
}
