//! The one loop: read → decode → peer → handler → peer → encode → write.
//!
//! Knows frames, peers and time; must not know a method name or a descriptor. Its priorities, in
//! this order: what is ready leaves, what waited starts, then more is read. So a slow reader slows
//! intake instead of growing memory.
//!
//! A handler's future is polled once right here. Most finish at once, and their answer leaves in
//! the same pass with no task, no lock contention and no other thread. One that waits is spawned.

mod alarm;
mod link;
mod parked;
mod tap;
mod token;
mod work;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;

use crate::ending::Ending;
use crate::rpc::{ErrorObject, Id, Trouble};
use crate::stream::{Sink, Source};
use crate::wire::Decoder;

use alarm::Alarm;
use work::Work;

pub(crate) use link::{Close, Link, PendingCall, Reply, Watcher};
pub(crate) use token::Token;

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
        work: Work::new(link, sink, service, options.grace),
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
