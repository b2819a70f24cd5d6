//! A loop without a task: whoever waits for its output polls it.
//!
//! Knows when the loop has asked to be polled; must not know what it carries. A request that is answered on
//! the spot then costs no switch between tasks.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use crate::bell::Bell;
use crate::ending::Ending;

/// A loop that goes on when it is polled. Dropping it ends the connection.
pub(crate) struct InPlace {
    /// `None` once it has ended. The mutex is never locked: it is there so that what holds the loop can be
    /// shared between threads.
    running: Mutex<Option<Pin<Box<dyn Future<Output = Ending> + Send>>>>,
    /// Rings when the loop wants to be polled.
    wanting: Bell,
}

impl InPlace {
    pub(crate) fn new(running: impl Future<Output = Ending> + Send + 'static) -> Self {
        Self { running: Mutex::new(Some(Box::pin(running))), wanting: Bell::default() }
    }

    /// Lets the loop go on if it has something to do. Ready once it has ended.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        let slot = self.running.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(running) = slot else { return Poll::Ready(()) };
        let ended = self.wanting.poll(cx, |cx| running.as_mut().poll(cx));
        ended.map(|_| *slot = None)
    }
}

impl fmt::Debug for InPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InPlace")
    }
}
