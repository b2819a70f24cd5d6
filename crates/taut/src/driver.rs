//! The one loop: read → decode → peer → handler → peer → encode → write.
//!
//! Knows frames, peers and time; must not know a method name or a descriptor. Its priorities, in
//! this order: what is ready leaves, what waited starts, then more is read. So a slow reader slows
//! intake instead of growing memory.
//!
//! A handler's future is polled once right here. Most finish at once, and their answer leaves in
//! the same pass with no task, no lock contention and no other thread. One that waits is spawned.

use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use tokio::task::JoinSet;
use tokio::time::Sleep;

use crate::ending::Ending;
use crate::link::{Close, Link, Reply};
use crate::parked::Parked;
use crate::rpc::{ErrorObject, Event, Failure, Id, Request, Trouble};
use crate::stream::{Sink, Source};
use crate::tap::Tap;
use crate::token::Token;
use crate::wire::{Decoder, Encoder, Frame};

/// Answers leave at the latest when so much of them is ready: early enough that a peer on another
/// core works while we do, late enough that writes are few.
const FLUSH: usize = 4 << 10;

/// A handler that kept the loop for so long has made finished answers wait; they leave now.
const SLOW_POLL: Duration = Duration::from_micros(200);

/// A handler that kept the loop for so long blocks, and its author should know.
const BLOCKING_POLL: Duration = Duration::from_millis(100);

/// After so much output the loop lets others run.
const YIELD: usize = 64 << 10;

/// How long what is ready may take to leave when the connection is being ended.
const FLUSH_LIMIT: Duration = Duration::from_millis(250);

/// What serves a connection.
pub(crate) trait Service: Send {
    /// Begins to answer a request.
    fn request(&mut self, incoming: Incoming<'_>) -> Started;

    /// Takes in a notification, before anything that came after it.
    fn notification(&mut self, method: &str, params: Option<&RawValue>);

    /// Takes in an error of the other side that belongs to no request.
    fn stray_error(&mut self, error: &ErrorObject) {
        tracing::warn!(%error, "the other side reports an error that belongs to no request");
    }

    /// Takes in something that is wrong with the stream.
    fn trouble(&mut self, trouble: &Trouble);

    /// A handler kept the loop from its work for so long. Told once.
    fn blocked(&mut self, method: &str, params: Option<&RawValue>, took: Duration);

    /// The input has ended. What is open-ended should end now.
    fn input_ended(&mut self) {}
}

/// A request as a service sees it.
pub(crate) struct Incoming<'a> {
    pub(crate) id: &'a Id,
    pub(crate) serial: u64,
    pub(crate) method: &'a str,
    pub(crate) params: Option<&'a RawValue>,
    pub(crate) token: &'a Token,
    pub(crate) link: &'a Link,
}

/// How far a service got with a request.
pub(crate) enum Started {
    /// To the end.
    Done(Reply),
    /// Not far: this is the rest of it.
    Going(Pin<Box<dyn Future<Output = Reply> + Send>>),
}

/// How the loop behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// How long accepted requests may take once the input has ended.
    pub(crate) drain: Duration,
    /// How long a withdrawn request may go on before its future is dropped.
    pub(crate) grace: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { drain: Duration::from_secs(30), grace: Duration::from_secs(1) }
    }
}

/// Runs a connection to its end.
///
/// `stop` is ready when somebody outside wants it to end, with the reason.
pub(crate) async fn run<R, W, S, F>(
    link: Link,
    source: R,
    sink: W,
    service: S,
    options: Options,
    stop: F,
) -> Ending
where
    R: Source,
    W: Sink,
    S: Service,
    F: Future<Output = Ending>,
{
    let decoder = Decoder::new(link.lock().peer.config().limits);
    let mut stop = std::pin::pin!(stop);
    let mut driver = Driver {
        source: Some(source),
        decoder,
        work: Work {
            sink: Some(sink),
            service,
            writing: Encoder::default(),
            flushing: false,
            tasks: JoinSet::new(),
            grace: options.grace,
            tap: Tap::default(),
            warned: false,
            link: link.clone(),
        },
        timer: Alarm::default(),
        limit: Alarm::default(),
        drain: options.drain,
        phase: Phase::Open,
    };
    let ending = std::future::poll_fn(|cx| driver.poll(cx, stop.as_mut())).await;
    driver.finish(ending)
}

struct Driver<R, W, S> {
    source: Option<R>,
    decoder: Decoder,
    work: Work<W, S>,
    /// The next deadline of a call of ours.
    timer: Alarm,
    /// When the phase is over, done or not.
    limit: Alarm,
    drain: Duration,
    phase: Phase,
}

/// How far the end has come.
enum Phase {
    Open,
    /// The input has ended; what was accepted is being finished.
    Draining,
    /// Nothing new is finished; what is ready is being written.
    Flushing(Ending),
    /// We have closed our end and read until the other side closes its own.
    Leaving,
}

/// Everything but the input, so that a frame can be borrowed from the decoder meanwhile.
struct Work<W, S> {
    sink: Option<W>,
    service: S,
    link: Link,
    /// Bytes on their way out, taken from the peer so that writing needs no lock.
    writing: Encoder,
    /// Whether the sink still holds some of what it took.
    flushing: bool,
    tasks: JoinSet<()>,
    grace: Duration,
    tap: Tap,
    warned: bool,
}

impl<R: Source, W: Sink, S: Service> Driver<R, W, S> {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        stop: Pin<&mut impl Future<Output = Ending>>,
    ) -> Poll<Ending> {
        self.work.link.lock().awake();
        if !matches!(self.phase, Phase::Flushing(_))
            && let Poll::Ready(ending) = stop.poll(cx)
        {
            self.flush_then(ending);
        }
        loop {
            while let Poll::Ready(Some(_)) = self.work.tasks.poll_join_next(cx) {}
            self.tell_time(cx);
            self.work.start_queued(cx);
            let mut written = 0;
            if let Err(ending) = self.work.poll_write(cx, &mut written) {
                return Poll::Ready(ending);
            }
            let read = self.poll_read(cx);
            if let Some(ending) = self.poll_phase(cx) {
                return Poll::Ready(ending);
            }
            if read || written >= YIELD {
                // Others run now: spawned handlers, timers, whatever else lives here.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let mut state = self.work.link.lock();
            let idle = state.peer.output().is_empty() || !self.work.writing.is_empty();
            let close_asked = match state.close {
                Close::No => false,
                Close::Politely => matches!(self.phase, Phase::Open),
                Close::Now => true,
            };
            if idle && !close_asked {
                state.sleep(cx);
                return Poll::Pending;
            }
        }
    }

    /// Reads once and takes in what came. Says whether anything did.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> bool {
        if matches!(self.phase, Phase::Flushing(_)) {
            return false;
        }
        let mut any = self.take_frames(cx);
        if self.source.is_none() || !self.work.link.lock().peer.wants_input() {
            return any;
        }
        let Some(source) = &mut self.source else { return any };
        match source.poll_read(cx, self.decoder.space()) {
            Poll::Pending => return any,
            Poll::Ready(Ok(bytes)) if bytes > 0 => {
                self.work.tap.read(bytes);
                any = true;
            }
            Poll::Ready(end) => {
                // S3: a peer that hangs up on a socket is an error there, and an end all the same.
                if let Err(error) = end {
                    tracing::debug!(%error, "reading ended with an error");
                }
                self.source = None;
                self.decoder.finish();
                self.take_frames(cx);
                self.input_ended();
                return true;
            }
        }
        self.take_frames(cx);
        any
    }

    /// Takes in the frames that are whole, as long as more is wanted.
    fn take_frames(&mut self, cx: &mut Context<'_>) -> bool {
        let mut any = false;
        let mut now = Instant::now();
        while self.work.link.lock().peer.wants_input() || self.source.is_none() {
            let Some(frame) = self.decoder.poll_frame() else { break };
            any = true;
            now = self.work.take_frame(cx, now, frame);
        }
        any
    }

    fn input_ended(&mut self) {
        let lost = {
            let mut state = self.work.link.lock();
            state.peer.handle_eof();
            std::iter::from_fn(|| state.peer.poll_lost()).collect::<Vec<_>>()
        };
        self.work.fail(lost);
        self.work.service.input_ended();
        if matches!(self.phase, Phase::Open) {
            self.phase = Phase::Draining;
            self.limit.set(Instant::now() + self.drain);
        }
    }

    fn flush_then(&mut self, ending: Ending) {
        self.phase = Phase::Flushing(ending);
        self.limit.set(Instant::now() + FLUSH_LIMIT);
    }

    /// Time passes for our calls.
    fn tell_time(&mut self, cx: &mut Context<'_>) {
        loop {
            let due = self.work.link.lock().peer.poll_timeout();
            match due {
                Some(due) => self.timer.set(due),
                None => self.timer.clear(),
            }
            if self.timer.poll(cx).is_pending() {
                return;
            }
            let lost = {
                let mut state = self.work.link.lock();
                state.peer.handle_timeout(Instant::now());
                std::iter::from_fn(|| state.peer.poll_lost()).collect::<Vec<_>>()
            };
            self.work.fail(lost);
        }
    }

    /// What the phase has come to, if it is over.
    fn poll_phase(&mut self, cx: &mut Context<'_>) -> Option<Ending> {
        if let Some(sink) = &mut self.work.sink
            && sink.poll_gone(cx).is_ready()
        {
            return Some(Ending::ReaderGone);
        }
        let (flushed, unanswered, close, stuck) = {
            let mut state = self.work.link.lock();
            let waiting = state.peer.output().len() + self.work.writing.len();
            let stuck = state.peer.is_stuck().then_some(waiting);
            let flushed = waiting == 0 && !self.work.flushing;
            (flushed, state.peer.unanswered(), state.close, stuck)
        };
        if let Some(bytes) = stuck {
            return Some(Ending::Stuck { bytes });
        }
        match close {
            Close::Now => return Some(Ending::Closed),
            Close::Politely if matches!(self.phase, Phase::Open) => {
                self.phase = Phase::Leaving;
                self.limit.set(Instant::now() + FLUSH_LIMIT);
            }
            _ => {}
        }
        let late = self.limit.poll(cx).is_ready();
        match &self.phase {
            Phase::Open => None,
            Phase::Draining if flushed && unanswered == 0 => Some(Ending::Eof),
            Phase::Draining => late.then_some(Ending::DrainTimedOut { unanswered }),
            Phase::Flushing(ending) => (flushed || late).then(|| ending.clone()),
            Phase::Leaving => {
                if (flushed || late) && self.work.sink.take().is_some() {
                    self.limit.set(Instant::now() + self.drain);
                }
                let left = self.work.sink.is_none() && (self.source.is_none() || late);
                left.then_some(Ending::Closed)
            }
        }
    }

    fn finish(mut self, ending: Ending) -> Ending {
        // Handlers first: what they hold may want to say goodbye through the link.
        self.work.tasks.abort_all();
        let (wakers, lost) = {
            let mut state = self.work.link.lock();
            let wakers = state.end(ending.clone());
            (wakers, std::iter::from_fn(|| state.peer.poll_lost()).collect::<Vec<_>>())
        };
        self.work.fail(lost);
        wakers.into_iter().for_each(Waker::wake);
        ending
    }
}

impl<W: Sink, S: Service> Work<W, S> {
    fn take_frame(&mut self, cx: &mut Context<'_>, now: Instant, frame: Frame<'_>) -> Instant {
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

    fn start_queued(&mut self, cx: &mut Context<'_>) {
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
    fn poll_write(&mut self, cx: &mut Context<'_>, written: &mut usize) -> Result<(), Ending> {
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

    fn fail(&mut self, lost: Vec<(crate::rpc::CallId, Failure)>) {
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

/// A moment to wait for, which may move.
#[derive(Default)]
struct Alarm {
    at: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    fn set(&mut self, at: Instant) {
        if self.at == Some(at) {
            return;
        }
        self.at = Some(at);
        match &mut self.sleep {
            Some(sleep) => sleep.as_mut().reset(at.into()),
            empty => *empty = Some(Box::pin(tokio::time::sleep_until(at.into()))),
        }
    }

    fn clear(&mut self) {
        self.at = None;
    }

    /// Ready once, when the moment has come.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (Some(_), Some(sleep)) = (self.at, &mut self.sleep) else { return Poll::Pending };
        std::task::ready!(sleep.as_mut().poll(cx));
        self.at = None;
        Poll::Ready(())
    }
}
