//! The one loop: read → decode → peer → handler → peer → encode → write.
//!
//! Knows frames, peers and time; must not know a method name or a descriptor. Its priorities, in
//! this order: what is ready leaves, what waited starts, then more is read. So a slow reader slows
//! intake instead of growing memory.
//!
//! A handler's future is polled once right here. Most finish at once, and their answer leaves in
//! the same pass with no task, no lock contention and no other thread. One that waits is spawned.

mod alarm;
mod body;
mod flag;
mod in_place;
mod intake;
mod join;
mod link;
mod pending;
mod service;

mod steps;
mod tap;
mod waiting;
mod work;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::bell::Bell;
use crate::ending::Ending;
use crate::stream::{Sink, Source};
use crate::wire::Decoder;

use alarm::Alarm;
use work::{Look, Taken, Work};

pub(crate) use body::Body;
pub(crate) use flag::Flag;
pub(crate) use in_place::InPlace;
pub(crate) use intake::{HasRoom, Intake};
pub(crate) use join::{Either, first};
pub(crate) use link::{Close, Link, Watcher};
pub(crate) use pending::PendingCall;
pub(crate) use service::{AnswerFuture, IncomingRequest, Outcome, Service, no_json, ready};

pub use steps::Steps;
pub(crate) use waiting::Owed;
pub(crate) use work::{isolated, log_panic};

/// After so much input or output the loop lets others run: as much as a pipe holds.
const YIELD: usize = 64 << 10;

/// After so many reads, too. Many, because a peer that asks one thing at a time often has the next
/// question there by the time the answer is out, and yielding costs more than answering; few enough
/// to stay inside the budget that tokio gives a task.
const READS: usize = 32;

/// Handlers that took so long together let others run before the next: timers, spawned work.
const TURN: Duration = Duration::from_millis(10);

/// How long what is ready may take to leave when the connection is being ended.
const FLUSH_LIMIT: Duration = Duration::from_millis(250);

/// What [`Ending::Io`] names when a transport says that it cannot go on.
const TRANSPORT: &str = "the connection";

with_defaults! {
    /// How the loop behaves.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Options {
        /// How long accepted requests may take once the input has ended.
        pub(crate) drain: Duration = Duration::from_secs(30),
        /// How long a withdrawn request may go on before its future is dropped.
        pub(crate) grace: Duration = Duration::from_secs(1),
        /// After so much input the loop lets others run.
        pub(crate) turn: usize = YIELD,
    }
}

/// Runs a connection to its end.
///
/// `stop` is ready when somebody outside wants it to end, with the reason.
pub(crate) async fn run(
    link: Link,
    source: impl Source,
    sink: impl Sink,
    service: Box<impl Service + ?Sized>,
    options: Options,
    stop: impl Future<Output = Ending>,
) -> Ending {
    run_within(link, source, sink, service, (options, Intake::default()), stop).await
}

/// The same with bounds on messages that have begun.
pub(crate) async fn run_within(
    link: Link,
    source: impl Source,
    sink: impl Sink,
    service: Box<impl Service + ?Sized>,
    (options, intake): (Options, Intake),
    stop: impl Future<Output = Ending>,
) -> Ending {
    let config = {
        let mut state = link.lock();
        let config = *state.peer.config();
        state.peer.doubt_lengths(!config.socket);
        config
    };
    let decoder = match config.socket {
        true => Decoder::for_socket(config.limits),
        false => Decoder::new(config.limits),
    };
    let mut stop = std::pin::pin!(stop);
    let mut driver = Driver {
        source: Some(source),
        decoder,
        starved: true,
        reading: false,
        intake,
        taken: 0,
        work: Work::new(link, sink, service, options.grace),
        timer: Alarm::default(),
        limit: Alarm::default(),
        drain: options.drain,
        turn: options.turn,
        phase: Phase::Open,
        stop: Bell::default(),
        gone: Bell::default(),
    };
    let ending = std::future::poll_fn(|cx| driver.poll(cx, stop.as_mut())).await;
    driver.end(&ending);
    ending
}

/// The time, as timers see it: a test may have stopped it.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

struct Driver<R, W: Sink, S: Service + ?Sized> {
    source: Option<R>,
    decoder: Decoder,
    /// Whether the decoder holds no whole frame.
    starved: bool,
    /// Whether the last pass looked for input, and was not kept from it by what is to be done first.
    reading: bool,
    intake: Intake,
    /// Bytes taken in since the loop last let others run.
    taken: usize,
    work: Work<W, S>,
    /// The next deadline of a call of ours.
    timer: Alarm,
    /// When the phase is over, done or not.
    limit: Alarm,
    drain: Duration,
    turn: usize,
    phase: Phase,
    /// Rings when somebody outside wants the end.
    stop: Bell,
    /// Rings when the reader of our output goes away.
    gone: Bell,
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

/// What is to be done when there is nothing to read.
enum Idle {
    End(Ending),
    /// Something has changed: look again.
    Again,
    Sleep,
}

impl<R: Source, W: Sink, S: Service + ?Sized> Driver<R, W, S> {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        stop: Pin<&mut impl Future<Output = Ending>>,
    ) -> Poll<Ending> {
        if !matches!(self.phase, Phase::Flushing(_))
            && let Poll::Ready(ending) = self.stop.poll(cx, |cx| stop.poll(cx))
        {
            self.flush(ending);
        }
        let (mut reads, mut written) = (0, 0);
        self.taken = 0;
        loop {
            let Look { due, queued, mut more, wanting } = self.work.look();
            while !self.work.tasks.is_empty()
                && let Poll::Ready(Some(_)) = self.work.tasks.poll_join_next(cx)
            {}
            more |= queued | self.tell_time(cx, due);
            let more_queued = queued && self.work.start_queued(cx);
            more |= self.work.service.pump();
            // Other threads that add output set the flag for changes, so that the loop does not sleep over it.
            if (more || self.work.is_writing())
                && let Err(ending) = self.work.poll_write(cx, more, &mut written)
            {
                return Poll::Ready(ending);
            }
            if more_queued || reads >= READS || self.taken >= self.turn || written >= YIELD {
                return self.poll_yield(cx);
            }
            if self.poll_read(cx, wanting) {
                reads += 1;
                continue;
            }
            let given_up = self.poll_intake(cx);
            match self.poll_idle(cx) {
                Idle::End(ending) => return Poll::Ready(ending),
                Idle::Again => {}
                Idle::Sleep if given_up => {}
                Idle::Sleep => return Poll::Pending,
            }
        }
    }

    /// Lets other tasks of the runtime run: spawned handlers, timers.
    fn poll_yield(&mut self, cx: &mut Context<'_>) -> Poll<Ending> {
        // Also a peer that always has more to read must not keep the connection from ending.
        self.poll_intake(cx);
        if let Idle::End(ending) = self.poll_idle(cx) {
            return Poll::Ready(ending);
        }
        // With tokio's `yield_now`: a task that wakes itself may be polled again before the others.
        if std::pin::pin!(tokio::task::yield_now()).poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Reads once and takes in what came, if that is (or just was) wanted. Says whether anything came.
    fn poll_read(&mut self, cx: &mut Context<'_>, wanting: bool) -> bool {
        if matches!(self.phase, Phase::Flushing(_)) {
            return false;
        }
        if !self.starved {
            let any = self.work.service.has_room() && self.take_frames(cx);
            if any || !self.starved {
                return any;
            }
        }
        self.reading = false;
        let Some(source) = &mut self.source else { return false };
        if !wanting && !self.work.link.lock().peer.wants_input() || !self.work.service.has_room() {
            return false;
        }
        if self.intake.is_full() {
            return false;
        }
        self.reading = true;
        match source.poll_read(cx, self.decoder.space()) {
            Poll::Pending => return self.decoder.pause() && self.take_frames(cx),
            Poll::Ready(Ok(bytes)) if bytes > 0 => {
                self.taken += bytes;
                self.work.tap.read(bytes);
            }
            Poll::Ready(end) => {
                // S3: a peer that hangs up on a socket is an error there, and an end all the same.
                if let Err(error) = end {
                    tracing::debug!(%error, "reading ended with an error");
                }
                let failure = source.take_failure();
                self.source = None;
                self.decoder.finish();
                self.take_frames(cx);
                match failure {
                    Some(error) => {
                        self.flush(Ending::Io { during: TRANSPORT, error: Arc::new(error) });
                    }
                    None => self.input_ended(),
                }
                return true;
            }
        }
        let whole = self.take_frames(cx);
        self.intake.read(self.decoder.held(), whole);
        true
    }

    /// Takes in the frames that are whole, as long as more is wanted. Says whether there was one.
    fn take_frames(&mut self, cx: &mut Context<'_>) -> bool {
        let mut clock = now();
        let turn = clock + TURN;
        let mut any = false;
        loop {
            let all = self.source.is_none();
            match self.work.take_frame(cx, clock, &mut self.decoder, all) {
                Taken::Until(ended) => clock = ended,
                Taken::Refused => {
                    self.source = None;
                    self.starved = true;
                    self.flush(Ending::Refused);
                    return true;
                }
                Taken::Nothing { starved } => {
                    self.starved = starved;
                    return any;
                }
            }
            any = true;
            if !self.work.service.has_room() && !all {
                self.starved = false;
                return any;
            }
            if clock > turn {
                self.taken = YIELD;
                self.starved = false;
                return any;
            }
        }
    }

    /// From here on only what is ready is written.
    fn flush(&mut self, ending: Ending) {
        self.phase = Phase::Flushing(ending);
        self.limit.set_after(FLUSH_LIMIT);
    }

    fn input_ended(&mut self) {
        let lost = {
            let mut state = self.work.link.lock();
            state.peer.handle_eof();
            state.lost()
        };
        self.work.fail(lost);
        self.work.service.input_ended();
        if matches!(self.phase, Phase::Open) {
            self.phase = Phase::Draining;
            self.limit.set_after(self.drain);
        }
    }

    /// Time passes for our calls. Says whether any ran out of it.
    fn tell_time(&mut self, cx: &mut Context<'_>, mut due: Option<Instant>) -> bool {
        let mut any = false;
        loop {
            match due {
                Some(due) => self.timer.set(due),
                None => self.timer.clear(),
            }
            if self.timer.poll(cx).is_pending() {
                return any;
            }
            any = true;
            let lost = {
                let mut state = self.work.link.lock();
                state.peer.handle_timeout(now());
                due = state.peer.poll_timeout();
                state.lost()
            };
            self.work.fail(lost);
        }
    }

    /// There is nothing to read: whether it is over, and if not, to sleep until something happens.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Idle {
        if let Some(sink) = &mut self.work.sink
            && self.gone.poll(cx, |cx| sink.poll_gone(cx)).is_ready()
        {
            return Idle::End(match &self.phase {
                Phase::Flushing(ending) => ending.clone(),
                _ => Ending::ReaderGone,
            });
        }
        let late = self.limit.poll(cx).is_ready();
        let (flushed, unanswered) = {
            let mut state = self.work.link.lock();
            let waiting = state.peer.output().len() + self.work.writing.len();
            // What was already taken out of the peer to be written counts, too.
            if waiting > state.peer.config().output_cap || state.peer.is_stuck() {
                return Idle::End(Ending::Stuck { bytes: waiting });
            }
            match (state.close, &self.phase) {
                (Close::Now, _) => return Idle::End(Ending::Closed),
                (Close::Politely, Phase::Open) => {
                    self.phase = Phase::Leaving;
                    self.limit.set_after(FLUSH_LIMIT);
                    return Idle::Again;
                }
                _ => {}
            }
            // Somebody did something since we looked, on another thread perhaps. It may concern
            // more than the output: a deadline, a place among the running.
            if state.has_changed() && !late {
                return Idle::Again;
            }
            state.sleep(cx);
            // A side that only calls need not answer a peer that is gone, although a handler, which may
            // ask a person, still works on an answer.
            let serving = state.peer.config().serving;
            let unanswered = if serving { state.peer.unanswered() } else { 0 };
            (waiting == 0 && !self.work.flushing, unanswered)
        };
        let over = match &self.phase {
            Phase::Open => None,
            Phase::Draining if flushed && unanswered == 0 && self.starved => Some(Ending::Eof),
            Phase::Draining => late.then(|| {
                self.work.link.note_dropped();
                Ending::DrainTimedOut { unanswered }
            }),
            Phase::Flushing(ending) => (flushed || late).then(|| ending.clone()),
            Phase::Leaving => return self.poll_leave(cx, flushed, late),
        };
        over.map_or(Idle::Sleep, Idle::End)
    }

    /// Closes our end once everything is written, then waits for the other side to close its own.
    fn poll_leave(&mut self, cx: &mut Context<'_>, flushed: bool, late: bool) -> Idle {
        if let Some(sink) = &mut self.work.sink {
            if !(late || flushed && sink.poll_close(cx).is_ready()) {
                return Idle::Sleep;
            }
            self.work.sink = None;
            self.limit.set_after(self.drain);
            return Idle::Again;
        }
        if self.source.is_none() || late { Idle::End(Ending::Closed) } else { Idle::Sleep }
    }
}

impl<R, W: Sink, S: Service + ?Sized> Driver<R, W, S> {
    /// Ends the connection, and tells everybody who waits for something.
    fn end(&mut self, ending: &Ending) {
        // Handlers first: what they own may use the link when it is dropped.
        self.work.tasks.abort_all();
        let lost = self.work.link.end(ending.clone());
        self.work.fail(lost);
    }
}

/// Dropping the loop before its end closes the connection, and everybody who waits for an answer is told.
impl<R, W: Sink, S: Service + ?Sized> Drop for Driver<R, W, S> {
    fn drop(&mut self) {
        if self.work.link.lock().ended.is_none() {
            self.end(&Ending::Closed);
        }
    }
}
