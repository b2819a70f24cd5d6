//! One stream of a legacy session: events with numbers, kept for clients that come back.
//!
//! Knows order, bounds and who reads; must not know what a message says. A stream outlives the
//! connection that reads it: a client that lost its connection reads on from the last event that it saw
//! (SSE-07 to SSE-10). Of several connections the newest reads; the others stay silent, because a
//! client that came back may have a dead twin whose end was not noticed yet.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Sleep;

use super::session::SessionUse;
use super::silence::Silence;
use super::turn::within;
use crate::sse;

/// The connections that may read one stream. More are dead twins; the oldest is closed.
const READERS: usize = 4;

/// A stream and what is kept of it.
pub(super) struct EventLog {
    number: u64,
    /// How many bytes are kept. One longer message is kept alone.
    bound: usize,
    state: Mutex<LogState>,
}

struct LogState {
    events: VecDeque<(u64, Bytes)>,
    bytes: usize,
    /// The number of the next event. The first is 1; 0 stands for the begin of the stream.
    next: u64,
    /// The number of the event that is read next.
    cursor: u64,
    readers: Vec<(u64, Option<Waker>)>,
    next_reader: u64,
    only_answers: bool,
    /// Nothing more will come.
    finished: bool,
    /// The client is gone and knows no number from which it could read on.
    abandoned: bool,
    /// Woken when there is room again.
    writer: Option<Waker>,
}

/// What an event is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EventKind {
    Answer,
    Other,
}

/// In which form a POST is answered.
pub(super) enum Shape {
    /// Everything there is to say is these answers.
    Answers(Vec<Bytes>),
    Stream,
}

impl EventLog {
    pub(super) fn new(number: u64, bound: usize) -> Arc<Self> {
        let state = LogState {
            events: VecDeque::new(),
            bytes: 0,
            next: 1,
            cursor: 1,
            readers: Vec::new(),
            next_reader: 0,
            only_answers: true,
            finished: false,
            abandoned: false,
            writer: None,
        };
        Arc::new(Self { number, bound, state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// How many bytes are kept.
    pub(super) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.lock().abandoned
    }

    /// Adds an event. Waits while a connection has not yet read what is kept, at most `patience`; then
    /// that connection is closed. Gives the events that nobody read and that had to go.
    pub(super) async fn push(
        &self,
        kind: EventKind,
        event: Bytes,
        patience: Duration,
    ) -> Vec<Bytes> {
        let mut dropped = Vec::new();
        let room = poll_fn(|cx| self.poll_room(cx, event.len(), &mut dropped));
        if within(patience, room).await.is_err() {
            self.kick();
            poll_fn(|cx| self.poll_room(cx, event.len(), &mut dropped)).await;
        }
        let mut state = self.lock();
        state.only_answers &= kind == EventKind::Answer;
        state.bytes += event.len();
        let number = state.next;
        state.next += 1;
        state.events.push_back((number, event));
        wake_reader(state);
        dropped
    }

    fn poll_room(&self, cx: &mut Context<'_>, length: usize, dropped: &mut Vec<Bytes>) -> Poll<()> {
        let mut state = self.lock();
        while state.bytes + length > self.bound
            && let Some((number, _)) = state.events.front()
        {
            let unread = *number >= state.cursor;
            if unread && !state.readers.is_empty() {
                state.writer = Some(cx.waker().clone());
                return Poll::Pending;
            }
            let Some((number, event)) = state.events.pop_front() else { break };
            state.bytes -= event.len();
            if unread {
                state.cursor = number + 1;
                dropped.push(event);
            }
        }
        Poll::Ready(())
    }

    /// Closes the connections that read. What is kept stays.
    fn kick(&self) {
        let readers = std::mem::take(&mut self.lock().readers);
        readers.into_iter().filter_map(|(_, waker)| waker).for_each(Waker::wake);
    }

    /// Says that nothing more will come.
    pub(super) fn finish(&self) {
        let mut state = self.lock();
        state.finished = true;
        let wakers: Vec<Waker> = state.readers.iter_mut().filter_map(|(_, w)| w.take()).collect();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// A connection begins to read, after the event `after` if that is given.
    fn attach(&self, after: Option<u64>) -> u64 {
        let mut state = self.lock();
        if let Some(after) = after {
            let oldest = state.events.front().map_or(state.next, |(number, _)| *number);
            state.cursor = after.saturating_add(1).clamp(oldest, state.next);
        }
        let reader = state.next_reader;
        state.next_reader += 1;
        state.readers.push((reader, None));
        if state.readers.len() > READERS
            && let (_, Some(waker)) = state.readers.remove(0)
        {
            drop(state);
            waker.wake();
        }
        reader
    }

    fn detach(&self, reader: u64, abandon: bool) {
        let mut state = self.lock();
        state.readers.retain(|(id, _)| *id != reader);
        state.abandoned |= abandon && !state.finished;
        let writer = state.writer.take();
        wake_reader(state);
        if let Some(writer) = writer {
            writer.wake();
        }
    }

    /// The next event for `reader`: its number and message; `None` if there will be none.
    fn poll_read(&self, reader: u64, cx: &mut Context<'_>) -> Poll<Option<(u64, Bytes)>> {
        let mut state = self.lock();
        let Some(place) = state.readers.iter().position(|(id, _)| *id == reader) else {
            return Poll::Ready(None);
        };
        let newest = place + 1 == state.readers.len();
        let cursor = state.cursor;
        if newest && let Some(at) = state.events.iter().position(|(number, _)| *number == cursor) {
            let event = state.events.get(at).cloned();
            state.cursor += 1;
            let writer = state.writer.take();
            drop(state);
            if let Some(writer) = writer {
                writer.wake();
            }
            return Poll::Ready(event);
        }
        if state.finished {
            return Poll::Ready(None);
        }
        state.readers[place].1 = Some(cx.waker().clone());
        Poll::Pending
    }

    fn poll_shape(&self, reader: u64, cx: &mut Context<'_>) -> Poll<Shape> {
        let mut state = self.lock();
        if state.finished && state.only_answers && !state.events.is_empty() {
            let answers = state.events.iter().map(|(_, event)| event.clone()).collect();
            return Poll::Ready(Shape::Answers(answers));
        }
        let kicked = !state.readers.iter().any(|(id, _)| *id == reader);
        if state.finished || kicked || !state.only_answers {
            return Poll::Ready(Shape::Stream);
        }
        for (_, waker) in state.readers.iter_mut().filter(|(id, _)| *id == reader) {
            *waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

fn wake_reader(mut state: MutexGuard<'_, LogState>) {
    let waker = state.readers.last_mut().and_then(|(_, waker)| waker.take());
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// How a connection reads a stream.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    /// Whether the client knows that a stream may be closed before its end (2025-11-25).
    pub(super) polls: bool,
    pub(super) keep_alive: Duration,
    /// After how long it is closed, and when the client should come back.
    pub(super) poll_after: Option<Duration>,
    pub(super) retry: Duration,
}

/// One connection that reads a stream: the body of a response.
pub(super) struct StreamReader {
    log: Arc<EventLog>,
    reader: u64,
    /// Whether the client has the head of the response, and so a number to come back with.
    started: bool,
    first: Option<Bytes>,
    over: bool,
    reading: Reading,
    /// `None` before the first wait: most requests are answered without a stream.
    silence: Option<Silence>,
    until: Option<Pin<Box<Sleep>>>,
    _use: SessionUse,
}

impl StreamReader {
    pub(super) fn new(
        log: Arc<EventLog>,
        after: Option<u64>,
        reading: Reading,
        session: SessionUse,
    ) -> Self {
        let reader = log.attach(after);
        Self {
            log,
            reader,
            started: false,
            first: None,
            over: false,
            reading,
            silence: None,
            until: None,
            _use: session,
        }
    }

    /// In which form a POST is to be answered: known once there is something to send, or after
    /// `window`.
    pub(super) async fn shape(&self, window: Duration) -> Shape {
        let shape = poll_fn(|cx| self.log.poll_shape(self.reader, cx));
        within(window, shape).await.unwrap_or(Shape::Stream)
    }

    /// The response begins: the client can come back from now on.
    pub(super) fn start(mut self) -> Self {
        self.started = true;
        if self.reading.polls {
            // SSE-05; SSE-14: older clients would take the empty data for a message.
            self.first = Some(sse::priming(&self.position()).into());
            let until = self.reading.poll_after.map(tokio::time::sleep);
            self.until = until.map(Box::pin);
        }
        self
    }

    /// The id of the last event that was read.
    fn position(&self) -> String {
        let cursor = self.log.lock().cursor;
        event_id(self.log.number, cursor - 1)
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        if self.over {
            return Poll::Ready(None);
        }
        if let Poll::Ready(next) = self.log.poll_read(self.reader, cx) {
            let Some((number, event)) = next else {
                self.over = true;
                return Poll::Ready(None);
            };
            if let Some(silence) = &mut self.silence {
                silence.broken();
            }
            let id = event_id(self.log.number, number);
            return Poll::Ready(Some(sse::event(Some(&id), &event).into()));
        }
        if let Some(until) = &mut self.until
            && until.as_mut().poll(cx).is_ready()
        {
            self.over = true;
            let retry = self.reading.retry.as_millis();
            return Poll::Ready(Some(sse::retry(&self.position(), retry).into()));
        }
        let every = self.reading.keep_alive;
        self.silence.get_or_insert_with(|| Silence::new(every)).poll(cx).map(Some)
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        self.log.detach(self.reader, !self.started);
    }
}

/// The id of an event names its stream (SSE-07).
fn event_id(stream: u64, event: u64) -> String {
    format!("{stream}.{event}")
}

/// The stream and the event that an id names.
pub(super) fn read_event_id(id: &str) -> Option<(u64, u64)> {
    let (stream, event) = id.split_once('.')?;
    Some((stream.parse().ok()?, event.parse().ok()?))
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
