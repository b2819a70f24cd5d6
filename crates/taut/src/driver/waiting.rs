//! A request whose handler waits: a task of its own until it is answered or given up.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::flag::Flag;
use super::join::{Either, first};
use super::link::Link;
use super::service::{AnswerFuture, Outcome};
use super::work::panicked;
use crate::rpc::{ErrorObject, Ticket};

/// Carries a request to its end: until it is answered, or `grace` after it was cancelled.
pub(super) async fn finish(answer: AnswerFuture, owed: Owed, cancelled: Flag, grace: Duration) {
    let given_up = async {
        cancelled.raised().await;
        tokio::time::sleep(grace).await;
    };
    let outcome = match first(Isolated(Some(answer)), given_up).await {
        Either::First(outcome) => outcome,
        // Cancelled, so nothing of this is written.
        Either::Second(()) => Err(ErrorObject::internal("request cancelled")),
    };
    owed.answer(outcome);
}

/// The duty to answer one request. Dropped with the loop, it still gives the ticket back.
pub(crate) struct Owed {
    ticket: Option<Ticket>,
    link: Link,
}

impl Owed {
    pub(crate) fn new(ticket: Ticket, link: Link) -> Self {
        Self { ticket: Some(ticket), link }
    }

    /// Answers the request.
    pub(crate) fn answer(mut self, outcome: Outcome) {
        if let Some(ticket) = self.ticket.take() {
            self.link.answer(ticket, outcome);
        }
    }
}

impl Drop for Owed {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.link.answer(ticket, Err(ErrorObject::internal("the connection ended")));
        }
    }
}

/// C14: users' code may panic when it is polled, and also when it is dropped.
struct Isolated(Option<AnswerFuture>);

impl Future for Isolated {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let Some(answer) = &mut self.0 else { return Poll::Pending };
        let outcome = match catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(cx))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(outcome)) => outcome,
            Err(panic) => Err(panicked(&*panic)),
        };
        self.drop_answer();
        Poll::Ready(outcome)
    }
}

impl Isolated {
    fn drop_answer(&mut self) {
        let answer = self.0.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(answer)));
    }
}

impl Drop for Isolated {
    fn drop(&mut self) {
        self.drop_answer();
    }
}
