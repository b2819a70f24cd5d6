//! What the loop does with a frame, a request, an answer: everything but the input.
//!
//! Apart from the input so that a frame can be borrowed from the decoder meanwhile.

use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::link::{Link, Reply};
use super::parked::Parked;
use super::tap::Tap;
use super::token::Token;
use super::{Incoming, Service, Started, YIELD};
use crate::ending::Ending;
use crate::rpc::{CallId, ErrorObject, Event, Failure, Request};
use crate::stream::Sink;
use crate::wire::{Encoder, Frame};

/// Answers leave at the latest when so much of them is ready: early enough that a peer on another
/// core works while we do, late enough that writes are few.
const FLUSH: usize = 4 << 10;

/// A handler that kept the loop for so long has made finished answers wait; they leave now.
const SLOW_POLL: Duration = Duration::from_micros(200);

/// A handler that kept the loop for so long blocks, and its author should know.
const BLOCKING_POLL: Duration = Duration::from_millis(100);

/// The output and everything that leads to it.
pub(super) struct Work<W, S> {
    pub(super) sink: Option<W>,
    pub(super) service: S,
    pub(super) link: Link,
    /// Bytes on their way out, taken from the peer so that writing needs no lock.
    pub(super) writing: Encoder,
    /// Whether the sink still holds some of what it took.
    pub(super) flushing: bool,
    pub(super) tasks: JoinSet<()>,
    grace: Duration,
    pub(super) tap: Tap,
    warned: bool,
}

impl<W: Sink, S: Service> Work<W, S> {
    pub(super) fn new(link: Link, sink: W, service: S, grace: Duration) -> Self {
        Self {
            sink: Some(sink),
            service,
            link,
            writing: Encoder::default(),
            flushing: false,
            tasks: JoinSet::new(),
            grace,
            tap: Tap::default(),
            warned: false,
        }
    }

    pub(super) fn take_frame(
        &mut self,
        cx: &mut Context<'_>,
        now: Instant,
        frame: Frame<'_>,
    ) -> Instant {
        self.tap.received(&frame);
        let (events, troubles) = {
            let mut state = self.link.lock();
            let events = state.peer.handle_frame(now, frame);
            let troubles: Vec<_> = std::iter::from_fn(|| state.peer.poll_trouble()).collect();
            (events, troubles)
        };
        for trouble in &troubles {
            self.service.trouble(trouble);
        }
        let mut clock = now;
        for event in events {
            match event {
                Event::Request(request) => clock = self.start(cx, request, clock),
                Event::Notification { method, params } => {
                    self.service.notification(&method, params);
                }
                Event::Withdrawn(serial) => {
                    let token = self.link.lock().withdrawn(serial);
                    if let Some(token) = token {
                        token.raise();
                    }
                }
                Event::Progress { call, params } => {
                    let watcher = self.link.lock().take_watcher(call);
                    if let Some(mut watcher) = watcher {
                        watcher(params);
                        let _gone = self.link.lock().put_watcher(call, watcher);
                    }
                }
                Event::Reply { call, outcome } => {
                    let waiter = self.link.lock().take_waiter(call);
                    if let Some((waiter, _)) = waiter {
                        waiter(outcome);
                    }
                }
                Event::StrayError(error) => self.service.stray_error(&error),
            }
        }
        clock
    }

    pub(super) fn start_queued(&mut self, cx: &mut Context<'_>) {
        loop {
            let request = self.link.lock().peer.poll_request();
            let Some(request) = request else { return };
            self.start(cx, request, Instant::now());
        }
    }

    /// Begins a request, and finishes it if its handler does at once.
    fn start(&mut self, cx: &mut Context<'_>, request: Request<'_>, began: Instant) -> Instant {
        let Request { ticket, method, params, .. } = request;
        let token = Token::default();
        let incoming = Incoming {
            id: ticket.id(),
            serial: ticket.serial(),
            method: &method,
            params: params.as_deref(),
            token: &token,
            link: &self.link,
        };
        let service = &mut self.service;
        let first = catch_unwind(AssertUnwindSafe(|| match service.request(incoming) {
            Started::Done(reply) => First::Done(reply),
            Started::Going(mut future) => match poll_once(&mut future) {
                Poll::Ready(reply) => First::Done(reply),
                Poll::Pending => First::Going(future),
            },
        }));
        let ended = Instant::now();
        let took = ended - began;
        if took > BLOCKING_POLL && !std::mem::replace(&mut self.warned, true) {
            self.service.blocked(&method, params.as_deref(), took);
        }
        match first.unwrap_or_else(|panic| First::Done(Err(panicked(&*panic)))) {
            First::Done(reply) => {
                let outcome = reply.as_ref().map(AsRef::as_ref).map_err(Clone::clone);
                let ready = {
                    let mut state = self.link.lock();
                    state.peer.answer(ticket, outcome);
                    state.peer.output().len()
                };
                if ready >= FLUSH || took > SLOW_POLL {
                    // A failed write shows itself again at the next pass.
                    let _ = self.poll_write(cx, &mut 0);
                }
            }
            First::Going(future) => {
                self.link.lock().park(ticket.serial(), token.clone());
                let parked = Parked::new(future, ticket, token, self.link.clone(), self.grace);
                self.tasks.spawn(parked);
            }
        }
        ended
    }

    /// Writes what is ready, as far as the other side takes it.
    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        written: &mut usize,
    ) -> Result<(), Ending> {
        let Some(sink) = &mut self.sink else { return Ok(()) };
        while *written < YIELD {
            if self.writing.is_empty() {
                self.link.lock().peer.output().swap(&mut self.writing);
                self.tap.sent(self.writing.bytes());
            }
            if self.writing.is_empty() {
                let flushed = sink.poll_flush(cx);
                self.flushing = flushed.is_pending();
                return match flushed {
                    Poll::Ready(Err(error)) => Err(write_failed(error)),
                    _ => Ok(()),
                };
            }
            match sink.poll_write(cx, self.writing.bytes()) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(n)) => {
                    self.writing.consume(n);
                    *written += n;
                }
                Poll::Ready(Err(error)) => return Err(write_failed(error)),
            }
        }
        Ok(())
    }

    pub(super) fn fail(&mut self, lost: Vec<(CallId, Failure)>) {
        for (call, failure) in lost {
            let waiter = self.link.lock().take_waiter(call);
            if let Some((waiter, _)) = waiter {
                waiter(Err(failure));
            }
        }
    }
}

enum First {
    Done(Reply),
    Going(Pin<Box<dyn Future<Output = Reply> + Send>>),
}

/// Polls outside the cooperative budget, which is for tasks: a handler that finds it spent would
/// wait for nothing. Nobody needs waking, because what is not ready is polled again by its task.
fn poll_once(future: &mut Pin<Box<dyn Future<Output = Reply> + Send>>) -> Poll<Reply> {
    let mut cx = Context::from_waker(Waker::noop());
    Pin::new(&mut tokio::task::unconstrained(future)).poll(&mut cx)
}

/// C14: a panic costs one request. Its words are for the log, not for the wire.
pub(crate) fn panicked(panic: &(dyn std::any::Any + Send)) -> ErrorObject {
    let words = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    tracing::error!(panic = words, "a handler panicked");
    ErrorObject::internal("handler panicked")
        .with_data(&serde_json::json!({ "exception": "panic" }))
}

fn write_failed(error: io::Error) -> Ending {
    match error.kind() {
        // S6: who vanished is not told about it, and nobody panics.
        io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::NotConnected
        | io::ErrorKind::WriteZero => Ending::ReaderGone,
        _ => Ending::Io { during: "writing", error: Arc::new(error) },
    }
}
