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

use super::flag::Flag;
use super::link::Link;
use super::service::{self, Service};
use super::tap::Tap;
use super::waiting::{Owed, finish};
use super::{TURN, YIELD};
use crate::ending::Ending;
use crate::rpc::{CallId, ErrorObject, Event, Failure, PeerRequest};
use crate::stream::Sink;
use crate::wire::{Decoder, Encoder};

/// Answers leave at the latest when so much of them is ready: early enough that a peer on another
/// core works while we do, late enough that writes are few.
const FLUSH: usize = 4 << 10;

/// A handler that kept the loop for so long has made finished answers wait; they leave now.
const SLOW_POLL: Duration = Duration::from_micros(200);

/// A handler that kept the loop for so long blocks, and its author should know.
const BLOCKING_POLL: Duration = Duration::from_millis(100);

/// The output and everything that leads to it.
pub(super) struct Work<W, S: ?Sized> {
    pub(super) sink: Option<W>,
    pub(super) service: Box<S>,
    pub(super) link: Link,
    /// Bytes on their way out, taken from the peer so that writing needs no lock.
    pub(super) writing: Encoder,
    /// Whether the sink still holds some of what it took.
    pub(super) flushing: bool,
    pub(super) tasks: JoinSet<()>,
    grace: Duration,
    pub(super) tap: Tap,
    warned: bool,
    /// The signal of a request that is over, if nobody else has kept it.
    spare: Option<Flag>,
}

impl<W: Sink, S: Service + ?Sized> Work<W, S> {
    pub(super) fn new(link: Link, sink: W, service: Box<S>, grace: Duration) -> Self {
        let serving = link.lock().peer.config().serving;
        Self {
            sink: Some(sink),
            service,
            link,
            writing: Encoder::default(),
            flushing: false,
            tasks: JoinSet::new(),
            grace,
            tap: Tap::new(serving),
            warned: false,
            spare: None,
        }
    }

    /// Begins a pass over everything, with all that needs the lock for it at once.
    pub(super) fn look(&mut self) -> Look {
        let mut state = self.link.lock();
        let due = state.awake();
        let queued = state.peer.has_queued();
        let taken = self.writing.is_empty() && self.sink.is_some();
        let mut relations = None;
        if taken {
            state.peer.output().swap(&mut self.writing);
            relations = W::RELATES.then(|| state.peer.take_relations());
        }
        let more = !state.peer.output().is_empty();
        let wanting = state.peer.wants_input();
        drop(state);
        if taken {
            self.tap.sent(self.writing.bytes());
        }
        if let (Some(sink), Some(relations)) = (&mut self.sink, relations) {
            sink.relate(relations);
        }
        Look { due, queued, more, wanting }
    }

    /// Takes in the next frame, if there is one and more is wanted, or `all` that came.
    pub(super) fn take_frame(
        &mut self,
        cx: &mut Context<'_>,
        now: Instant,
        decoder: &mut Decoder,
        all: bool,
    ) -> Taken {
        // At the end of the input the decoder is asked even if it is empty: it reports a message that was cut off.
        if !all && decoder.held() == 0 {
            return Taken::Nothing { starved: true };
        }
        let (frame, events, troubles, doubted);
        {
            let mut state = self.link.lock();
            // Under the same lock: what others add to the output meanwhile must not turn a request
            // away that was let in.
            if !all && !state.peer.wants_input() {
                return Taken::Nothing { starved: false };
            }
            let Some(next) = decoder.poll_frame() else {
                return Taken::Nothing { starved: true };
            };
            frame = next;
            events = state.peer.handle_frame(now, frame);
            doubted = state.peer.doubts();
            troubles = std::iter::from_fn(|| state.peer.poll_trouble()).collect::<Vec<_>>();
        }
        self.tap.received(&frame);
        let refused = matches!(frame, crate::wire::Frame::Refused { .. });
        for trouble in &troubles {
            self.service.trouble(trouble);
        }
        let mut clock = now;
        for event in events {
            match event {
                Event::Request(request) => clock = self.start(cx, request, clock),
                Event::Notification { method, params } => {
                    isolated(|| self.service.notification(&method, &params));
                    clock = super::now();
                }
                Event::Withdrawn(serial) => {
                    self.service.withdrawn(serial);
                    let cancelled = self.link.lock().cancelled(serial);
                    if let Some(cancelled) = cancelled {
                        cancelled.raise();
                    }
                }
                Event::Progress { call, params } => {
                    let watcher = self.link.lock().take_watcher(call);
                    if let (Some(mut watcher), Some(params)) = (watcher, params.raw()) {
                        isolated(|| watcher(params));
                        let _gone = self.link.lock().put_watcher(call, watcher);
                    }
                }
                Event::Reply { call, outcome } => {
                    let waiter = self.link.lock().take_waiter(call);
                    if let Some((waiter, _)) = waiter {
                        isolated(|| waiter(outcome));
                    }
                }
                Event::StrayError(error) => self.service.stray_error(&error),
            }
        }
        if doubted {
            decoder.distrust();
        }
        if refused { Taken::Refused } else { Taken::Until(clock) }
    }

    /// Starts what waited and has a place now. Says whether there is more after a turn's worth.
    pub(super) fn start_queued(&mut self, cx: &mut Context<'_>) -> bool {
        let began = super::now();
        let mut clock = began;
        while let Some(request) = { self.link.lock().peer.poll_request() } {
            clock = self.start(cx, request, clock);
            if clock - began > TURN {
                return true;
            }
        }
        false
    }

    /// Polls the answer to a request once. What is ready leaves; what waits becomes a task.
    fn start(&mut self, cx: &mut Context<'_>, request: PeerRequest<'_>, began: Instant) -> Instant {
        if self.service.takes_over() {
            self.service.take_over(request);
            return super::now();
        }
        let PeerRequest { ticket, method, params, .. } = request;
        let cancelled = self.spare.take().unwrap_or_default();
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let mut answer = self.service.request(service::IncomingRequest {
                id: ticket.id(),
                serial: ticket.serial(),
                method: &method,
                params: &params,
                cancelled: &cancelled,
                link: &self.link,
                now: began,
            });
            match poll_once(answer.as_mut()) {
                Poll::Ready(outcome) => Ok(outcome),
                Poll::Pending => Err(answer),
            }
        }));
        let ended = super::now();
        let took = ended - began;
        // Not after a panic: its hook may take long to print a backtrace, and the handler did not block.
        if took > BLOCKING_POLL && polled.is_ok() && !std::mem::replace(&mut self.warned, true) {
            self.service.blocked(&method, &params, took);
        }
        match polled.unwrap_or_else(|panic| Ok(Err(panicked(&*panic)))) {
            Ok(outcome) => {
                self.spare = cancelled.is_unused().then_some(cancelled);
                let ready = {
                    let mut state = self.link.lock();
                    state.peer.answer(ticket, outcome);
                    state.peer.output().len()
                };
                if ready >= FLUSH || took > SLOW_POLL {
                    // A failed write shows itself again at the next pass.
                    let _ = self.poll_write(cx, true, &mut 0);
                }
            }
            Err(answer) => {
                self.link.lock().wait_for(ticket.serial(), cancelled.clone());
                let owed = Owed::new(ticket, self.link.clone());
                self.tasks.spawn(finish(answer, owed, cancelled, self.grace));
            }
        }
        ended
    }

    /// Whether something is on its way out already.
    pub(super) fn is_writing(&self) -> bool {
        self.flushing || !self.writing.is_empty()
    }

    /// Writes what was taken from the peer, as far as the other side takes it; then what is there
    /// beyond that, if there is `more`.
    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        mut more: bool,
        written: &mut usize,
    ) -> Result<(), Ending> {
        let Some(sink) = &mut self.sink else { return Ok(()) };
        while *written < YIELD {
            if self.writing.is_empty() && std::mem::take(&mut more) {
                let mut state = self.link.lock();
                state.peer.output().swap(&mut self.writing);
                if W::RELATES {
                    sink.relate(state.peer.take_relations());
                }
                drop(state);
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
                Poll::Ready(Ok(0)) => return Err(write_failed(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(n)) => {
                    self.writing.consume(n);
                    *written += n;
                    // The sink may hold it; it has not left before the sink says so.
                    self.flushing = true;
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
                isolated(|| waiter(Err(failure)));
            }
        }
    }
}

/// What became of an attempt to take in a frame.
pub(super) enum Taken {
    /// One was taken in, and all that came of it is done at this time.
    Until(Instant),
    /// What came is not what the connection began with; it ends now.
    Refused,
    /// None, because there is none, or because no more is wanted.
    Nothing { starved: bool },
}

/// What the loop finds when it wakes up.
pub(super) struct Look {
    /// When a call of ours is overdue.
    pub(super) due: Option<Instant>,
    /// Whether a request waits for its turn.
    pub(super) queued: bool,
    /// Whether there is more to write than was taken.
    pub(super) more: bool,
    /// Whether more should be read.
    pub(super) wanting: bool,
}

/// Polls outside tokio's budget for tasks: with the budget spent, a handler that is ready would seem to
/// wait. No waker is needed, because a future that is not ready is polled again by its own task.
pub(super) fn poll_once<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    let mut cx = Context::from_waker(Waker::noop());
    std::pin::pin!(tokio::task::unconstrained(future)).poll(&mut cx)
}

/// Runs users' code that nobody waits for. C14: a panic in it ends this one run and nothing else.
pub(crate) fn isolated(act: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(act)) {
        log_panic(&*panic);
    }
}

/// C14: a panic costs one request. Its message goes to the log, not to the peer.
pub(super) fn panicked(panic: &(dyn std::any::Any + Send)) -> ErrorObject {
    log_panic(panic);
    ErrorObject::internal("handler panicked")
        .with_data(&serde_json::json!({ "exception": "panic" }))
}

/// Writes the message of a panic to the log.
pub(crate) fn log_panic(panic: &(dyn std::any::Any + Send)) {
    let words = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    tracing::error!(panic = words, "a handler panicked");
}

fn write_failed(error: io::Error) -> Ending {
    match error.kind() {
        // S6: a reader that is gone is a normal end, not an error.
        io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::NotConnected
        | io::ErrorKind::WriteZero => Ending::ReaderGone,
        _ => Ending::Io { during: "writing", error: Arc::new(error) },
    }
}
