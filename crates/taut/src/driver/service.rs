//! What serves a connection: the interface between the loop and whoever answers.
//!
//! Knows requests, notifications and finished answers; must not know a method or a byte stream. A
//! service returns a future for each request. The loop polls it once on the spot and, if it waits,
//! goes on with it in a task of its own; the service cannot tell the difference.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use super::flag::Flag;
use super::link::Link;
use crate::json::JsonBuf;
use crate::rpc::{ErrorObject, Id, Params, PeerRequest, Trouble};

/// What a request came to.
pub(crate) type Outcome = Result<JsonBuf, ErrorObject>;

/// The answer to a request, when it comes. Dropping it gives the request up.
pub(crate) type AnswerFuture = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// An answer that is there already.
pub(crate) fn ready(outcome: Outcome) -> AnswerFuture {
    Box::pin(std::future::ready(outcome))
}

/// The error for a result that has no JSON form.
pub(crate) fn no_json(error: &serde_json::Error) -> ErrorObject {
    ErrorObject::internal(format!("result has no JSON form: {error}"))
}

/// What serves a connection.
pub(crate) trait Service: Send {
    /// Answers a request.
    fn request(&mut self, request: IncomingRequest<'_>) -> AnswerFuture;

    /// Whether it takes requests over. A proxy does so, because what it relays must keep its order.
    fn takes_over(&self) -> bool {
        false
    }

    /// Takes a request over: it answers by [`Link::answer`], once, whenever it can. Called only if
    /// [`takes_over`](Self::takes_over) says so.
    fn take_over(&mut self, _request: PeerRequest<'_>) {}

    /// The other side has withdrawn the request with this serial.
    fn withdrawn(&mut self, _serial: u64) {}

    /// Whether it can take more. While it cannot, nothing is read; it wakes the loop when it can
    /// again.
    fn has_room(&mut self) -> bool {
        true
    }

    /// Takes in a notification, before anything that came after it.
    fn notification(&mut self, method: &str, params: &Params<'_>);

    /// Takes in an error of the other side that belongs to no request.
    fn stray_error(&mut self, error: &ErrorObject) {
        tracing::warn!(%error, "the other side reports an error that belongs to no request");
    }

    /// Takes in something that is wrong with the stream.
    fn trouble(&mut self, trouble: &Trouble);

    /// A handler kept the loop from its work for so long. Told once.
    fn blocked(&mut self, method: &str, params: &Params<'_>, took: Duration);

    /// Called on every pass of the loop, before it writes: the time for what may wait. Says whether
    /// it has added output.
    fn pump(&mut self) -> bool {
        false
    }

    /// The input has ended. What is open-ended should end now.
    fn input_ended(&mut self) {}
}

/// A request as a service sees it.
pub(crate) struct IncomingRequest<'a> {
    pub(crate) id: &'a Id,
    /// A number that no other request of this connection has, unlike the id.
    pub(crate) serial: u64,
    pub(crate) method: &'a str,
    pub(crate) params: &'a Params<'a>,
    /// Raised when the other side no longer wants the answer.
    pub(crate) cancelled: &'a Flag,
    pub(crate) link: &'a Link,
    /// When it was taken up.
    pub(crate) now: Instant,
}
