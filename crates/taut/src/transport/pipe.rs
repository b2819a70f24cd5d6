//! The two ends of a connection that carries whole messages.
//!
//! Knows messages and their sizes; must not know what they say. Both directions are bounded in bytes:
//! a session that reads slowly makes [`MessageSender::send`] wait, a transport that reads slowly makes
//! the session wait.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use serde::de::IgnoredAny;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

use crate::driver::InPlace;
use crate::lock::lock;
use crate::rpc::Relation;
use crate::stream::{Sink, Source};

/// How many bytes wait in either direction: as much as a pipe holds. A longer message passes alone.
const CAPACITY: usize = 64 << 10;

/// One end of a connection that carries whole messages. Dropping it ends the connection.
#[derive(Debug)]
pub struct MessagePipe {
    sender: MessageSender,
    receiver: MessageReceiver,
}

impl MessagePipe {
    /// The two directions, for use by different tasks.
    #[must_use]
    pub fn split(self) -> (MessageSender, MessageReceiver) {
        (self.sender, self.receiver)
    }

    /// The same pipe, whose receiver polls the session's loop.
    pub(super) fn holding(mut self, session: InPlace) -> Self {
        self.receiver.session = Some(session);
        self
    }

    /// See [`MessageSender::send`].
    ///
    /// # Errors
    /// As there.
    pub async fn send(&self, message: Vec<u8>) -> Result<(), SendMessageError> {
        self.sender.send(message).await
    }

    /// See [`MessageSender::try_send`].
    ///
    /// # Errors
    /// As there.
    pub fn try_send(&self, message: Vec<u8>) -> Result<Option<Vec<u8>>, SendMessageError> {
        self.sender.try_send(message)
    }

    /// See [`MessageReceiver::recv`].
    pub async fn recv(&mut self) -> Option<Outgoing> {
        self.receiver.recv().await
    }

    /// See [`MessageReceiver::poll_recv`].
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<Outgoing>> {
        self.receiver.poll_recv(cx)
    }
}

/// A message that leaves, to be delivered by the transport.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outgoing {
    /// The message, one line of JSON without its newline. Empty if the relation is
    /// [`Relation::Withdrawn`].
    pub json: Vec<u8>,
    /// Which request of the other side it belongs to.
    pub relation: Relation,
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendMessageError {
    /// The session is over.
    Closed,
    /// The message is no JSON. Answer it with −32700.
    NotJson,
    /// The message is longer than the limit, which is this many bytes.
    TooLong {
        /// The limit.
        limit: usize,
    },
}

impl fmt::Display for SendMessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the session is over"),
            Self::NotJson => f.write_str("the message is no JSON"),
            Self::TooLong { limit } => write!(f, "the message is longer than {limit} bytes"),
        }
    }
}

impl std::error::Error for SendMessageError {}

enum Incoming {
    Message(Vec<u8>, OwnedSemaphorePermit),
    End,
    Failed(io::Error),
}

/// Sends messages into a session. Clones send into the same.
#[derive(Clone, Debug)]
pub struct MessageSender {
    to_session: UnboundedSender<Incoming>,
    room: Arc<Semaphore>,
    limit: usize,
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Incoming")
    }
}

impl MessageSender {
    /// Hands one message to the session, and waits while it has no room for it. Messages are taken in
    /// the order in which their sending began. A message that is no JSON-RPC is answered by the session,
    /// as on a pipe.
    ///
    /// # Errors
    /// The session is over, or the message is too long or no JSON. Then it was not taken.
    pub async fn send(&self, message: Vec<u8>) -> Result<(), SendMessageError> {
        let message = self.as_line(message)?;
        let room = self.room.clone().acquire_many_owned(wanted(&message)).await;
        let room = room.map_err(|_| SendMessageError::Closed)?;
        let sent = self.to_session.send(Incoming::Message(message, room));
        sent.map_err(|_| SendMessageError::Closed)
    }

    /// Hands one message to the session if it has room for it now, and gives it back otherwise. It never
    /// overtakes a message that waits.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn try_send(&self, message: Vec<u8>) -> Result<Option<Vec<u8>>, SendMessageError> {
        let message = self.as_line(message)?;
        let room = match self.room.clone().try_acquire_many_owned(wanted(&message)) {
            Ok(room) => room,
            Err(TryAcquireError::NoPermits) => return Ok(Some(message)),
            Err(TryAcquireError::Closed) => return Err(SendMessageError::Closed),
        };
        let sent = self.to_session.send(Incoming::Message(message, room));
        sent.map(|()| None).map_err(|_| SendMessageError::Closed)
    }

    /// The message as one line, if it is short enough.
    fn as_line(&self, mut message: Vec<u8>) -> Result<Vec<u8>, SendMessageError> {
        if message.len() > self.limit {
            return Err(SendMessageError::TooLong { limit: self.limit });
        }
        if memchr::memchr2(b'\n', b'\r', &message).is_some() {
            // In JSON these stand only between tokens, where a blank means the same.
            serde_json::from_slice::<IgnoredAny>(&message)
                .map_err(|_| SendMessageError::NotJson)?;
            for byte in message.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
                *byte = b' ';
            }
        }
        Ok(message)
    }

    /// Says that nothing more will come. What the session has accepted is finished.
    pub fn close(&self) {
        // A session that is over needs no telling.
        let _ = self.to_session.send(Incoming::End);
    }

    /// Ends the session because the transport cannot go on. What was sent before is still taken in. The
    /// session ends with [`Ending::Io`](crate::Ending::Io) and this error, and so does everybody who waits
    /// for an answer; put words for a person into it. Keep receiving until [`MessageReceiver::recv`] returns
    /// `None`: a receiver that is dropped before is a reason to end of its own.
    pub fn fail(&self, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) {
        // A session that is over needs no telling.
        let _ = self.to_session.send(Incoming::Failed(io::Error::other(error)));
    }
}

/// How much room a message takes.
fn wanted(message: &[u8]) -> u32 {
    u32::try_from(message.len().min(CAPACITY)).unwrap_or(u32::MAX)
}

/// Receives what leaves a session.
#[derive(Debug)]
pub struct MessageReceiver {
    outbox: Arc<Outbox>,
    /// The session's loop, if it has no task.
    session: Option<InPlace>,
}

impl MessageReceiver {
    /// The next message to be delivered; `None` once the session is over.
    pub async fn recv(&mut self) -> Option<Outgoing> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// The same, for who polls.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<Outgoing>> {
        // What has left the session already goes first: the session is not polled for nothing.
        if self.session.is_some()
            && let Poll::Ready(next) = self.outbox.poll_next(None)
        {
            return Poll::Ready(next);
        }
        let consumer = match self.poll_session(cx) {
            // Only a session that is polled elsewhere can send while nobody polls here.
            true => None,
            false => Some(cx.waker()),
        };
        self.outbox.poll_next(consumer)
    }

    /// Lets a session that was [opened in place](super::MessageService::open_in_place) go on, without taking
    /// a message. The task is woken when there is more to do. Does nothing, and says so, if the session has
    /// a task of its own.
    pub fn poll_session(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(session) = &mut self.session else { return false };
        // Its end shows itself in the outbox, after what it has sent.
        let _ = session.poll(cx);
        true
    }
}

impl Drop for MessageReceiver {
    fn drop(&mut self) {
        let waiting = {
            let mut state = self.outbox.lock();
            state.gone = true;
            state.queue.clear();
            [state.producer.take(), state.watcher.take()]
        };
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}

#[derive(Debug, Default)]
struct Outbox(Mutex<OutboxState>);

#[derive(Debug, Default)]
struct OutboxState {
    queue: VecDeque<Outgoing>,
    bytes: usize,
    /// The loop, if it waits for room.
    producer: Option<Waker>,
    /// The loop, which waits for the receiver to go.
    watcher: Option<Waker>,
    consumer: Option<Waker>,
    /// Nothing more will be sent.
    over: bool,
    /// Nobody receives any more.
    gone: bool,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, OutboxState> {
        lock(&self.0)
    }

    /// The next message; `None` after the last. While there is none, `consumer` is remembered.
    fn poll_next(&self, consumer: Option<&Waker>) -> Poll<Option<Outgoing>> {
        let (next, producer) = {
            let mut state = self.lock();
            let next = state.queue.pop_front();
            match &next {
                Some(message) => state.bytes -= message.json.len(),
                None if state.over => return Poll::Ready(None),
                None => {
                    state.consumer = consumer.cloned();
                    return Poll::Pending;
                }
            }
            (next, state.producer.take())
        };
        if let Some(producer) = producer {
            producer.wake();
        }
        Poll::Ready(next)
    }

    fn push(&self, message: Outgoing) {
        let consumer = {
            let mut state = self.lock();
            state.bytes += message.json.len();
            state.queue.push_back(message);
            state.consumer.take()
        };
        if let Some(consumer) = consumer {
            consumer.wake();
        }
    }
}

/// The session's end of the incoming direction.
pub(crate) struct MessageSource {
    from_transport: UnboundedReceiver<Incoming>,
    room: Arc<Semaphore>,
    failure: Option<io::Error>,
    /// Nothing more will come.
    over: bool,
}

impl Source for MessageSource {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        let mut bytes = 0;
        // As much as is there, as from a pipe: the loop looks at everything after each read.
        while !self.over && bytes < CAPACITY {
            match self.from_transport.poll_recv(cx) {
                Poll::Ready(Some(Incoming::Message(message, _room))) => {
                    buf.extend_from_slice(&message);
                    buf.push(b'\n');
                    bytes += message.len() + 1;
                }
                Poll::Ready(Some(Incoming::Failed(error))) => {
                    self.failure = Some(error);
                    self.over = true;
                }
                Poll::Ready(Some(Incoming::End) | None) => self.over = true,
                Poll::Pending if bytes == 0 => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        Poll::Ready(Ok(bytes))
    }

    fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }
}

impl Drop for MessageSource {
    fn drop(&mut self) {
        self.room.close();
    }
}

/// The session's end of the outgoing direction.
pub(crate) struct MessageSink {
    outbox: Arc<Outbox>,
    relations: VecDeque<Relation>,
}

impl MessageSink {
    /// Passes on the notes that stand before the next message.
    fn pass_notes(&mut self) {
        while let Some(Relation::Withdrawn(_)) = self.relations.front()
            && let Some(relation) = self.relations.pop_front()
        {
            self.outbox.push(Outgoing { json: Vec::new(), relation });
        }
    }
}

impl Sink for MessageSink {
    const RELATES: bool = true;

    fn relate(&mut self, relations: VecDeque<Relation>) {
        self.relations.extend(relations);
        self.pass_notes();
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        {
            let mut state = self.outbox.lock();
            if state.gone {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            if state.bytes >= CAPACITY {
                state.producer = Some(cx.waker().clone());
                return Poll::Pending;
            }
        }
        // The loop offers whole messages only.
        let end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
        let relation = self.relations.pop_front().unwrap_or(Relation::Unrelated);
        self.outbox.push(Outgoing { json: bytes[..end].to_vec(), relation });
        self.pass_notes();
        Poll::Ready(Ok((end + 1).min(bytes.len())))
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.outbox.lock();
        if state.gone {
            return Poll::Ready(());
        }
        state.watcher = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for MessageSink {
    fn drop(&mut self) {
        let consumer = {
            let mut state = self.outbox.lock();
            state.over = true;
            state.consumer.take()
        };
        if let Some(consumer) = consumer {
            consumer.wake();
        }
    }
}

/// A pipe for messages of at most `limit` bytes, and the session's two ends of it.
pub(crate) fn pipe(limit: usize) -> (MessagePipe, MessageSource, MessageSink) {
    let (to_session, from_transport) = unbounded_channel();
    let room = Arc::new(Semaphore::new(CAPACITY));
    let outbox = Arc::new(Outbox::default());
    let sender = MessageSender { to_session, room: room.clone(), limit };
    let receiver = MessageReceiver { outbox: outbox.clone(), session: None };
    let source = MessageSource { from_transport, room, failure: None, over: false };
    let sink = MessageSink { outbox, relations: VecDeque::new() };
    (MessagePipe { sender, receiver }, source, sink)
}
