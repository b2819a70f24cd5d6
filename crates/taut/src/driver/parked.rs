//! A request whose handler waits: a task of its own until it is answered or given up.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;

use super::link::{Link, Reply};
use super::token::Token;
use super::work::panicked;
use crate::rpc::{ErrorObject, Ticket};

/// The rest of a handler, and the duty to answer.
pub(crate) struct Parked {
    future: Option<Pin<Box<dyn Future<Output = Reply> + Send>>>,
    ticket: Option<Ticket>,
    token: Token,
    link: Link,
    grace: Duration,
    /// Running since the request was withdrawn.
    last_moments: Option<Pin<Box<Sleep>>>,
}

impl Parked {
    pub(crate) fn new(
        future: Pin<Box<dyn Future<Output = Reply> + Send>>,
        ticket: Ticket,
        token: Token,
        link: Link,
        grace: Duration,
    ) -> Self {
        Self { future: Some(future), ticket: Some(ticket), token, link, grace, last_moments: None }
    }

    /// Drops the handler, then gives the ticket back.
    fn end(&mut self, reply: Reply) -> Poll<()> {
        // A future may panic when dropped, too.
        let future = self.future.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(future)));
        if let Some(ticket) = self.ticket.take() {
            self.link.answer(ticket, reply);
        }
        Poll::Ready(())
    }
}

impl Future for Parked {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let Some(future) = &mut this.future else { return Poll::Ready(()) };
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(Poll::Ready(reply)) => return this.end(reply),
            Ok(Poll::Pending) => {}
            Err(panic) => return this.end(Err(panicked(&*panic))),
        }
        if this.last_moments.is_none() && this.token.poll_raised(cx).is_ready() {
            this.last_moments = Some(Box::pin(tokio::time::sleep(this.grace)));
        }
        if let Some(sleep) = &mut this.last_moments
            && sleep.as_mut().poll(cx).is_ready()
        {
            // Withdrawn, so nothing of this is written.
            return this.end(Err(ErrorObject::internal("request cancelled")));
        }
        Poll::Pending
    }
}

impl Drop for Parked {
    /// Aborted with the loop: the ticket must not be lost, should anybody still count.
    fn drop(&mut self) {
        if self.ticket.is_some() {
            let _ = self.end(Err(ErrorObject::internal("the connection ended")));
        }
    }
}
