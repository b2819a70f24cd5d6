//! A call of ours that waits for its answer.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use super::link::Link;
use crate::rpc::CallId;

/// A call under way. Dropping it withdraws the call on the wire.
pub(crate) struct PendingCall<T> {
    pub(super) link: Link,
    pub(super) call: CallId,
    pub(super) answered: oneshot::Receiver<T>,
    pub(super) done: bool,
}

impl<T> PendingCall<T> {
    /// Lets the call run on although nobody waits for its answer.
    pub(crate) fn detach(mut self) {
        self.done = true;
    }
}

impl<T> Future for PendingCall<T> {
    /// `None` if the loop was dropped before an answer came.
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let answer = std::task::ready!(Pin::new(&mut self.answered).poll(cx));
        self.done = true;
        Poll::Ready(answer.ok())
    }
}

impl<T> Drop for PendingCall<T> {
    fn drop(&mut self) {
        if !self.done {
            self.link.cancel(self.call, "no longer wanted");
        }
    }
}
