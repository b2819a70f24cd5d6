//! Leaving the group of workers without losing a call.
//!
//! The client library forgets a subscription as soon as it has asked the broker to end it. What the broker
//! has sent until then would be lost, and the call with it. So the library is told to end it after more messages than
//! there will ever be: it keeps the subscription, and the broker, which takes a number of more than nine digits for
//! none, ends it at once. Then the worker sends a message to itself. The broker keeps the order of what it sends to one
//! connection, so when that message is back, every call that came to the group is there. All of them are bounced.
//!
//! A worker that has no call any more ends the subscription for itself in the same way: an edge to which it had offered a
//! slot may send a call there at any time.
//!
//! A broker that does not take the number so goes on sending calls, which are bounced, until the time is over.

use std::time::Duration;

use async_nats::{Message, Subject, Subscriber};
use futures_util::StreamExt;
use tokio::time::Instant;

use super::Worker;
use crate::connection::Connection;
use crate::frame::{Frame, Kind};

/// More digits than nats-server reads; without that limit it is -1 for a signed number of 64 bits, which is none as well.
const NEVER: u64 = u64::MAX;

/// When the message to itself is sent again, for a connection that was just opened again.
const PAUSE: Duration = Duration::from_millis(250);

/// How long it may take to leave.
const LIMIT: Duration = Duration::from_secs(5);

/// Sends the message that a worker sends to itself.
pub(super) async fn send_marker(connection: &Connection, worker: &Subject) {
    connection.send(worker, None, Frame::bare(Kind::Filler)).await;
}

fn is_marker(message: &Message) -> bool {
    Frame::read(message, || Kind::Answer).is_ok_and(|frame| frame.kind == Kind::Filler)
}

/// A worker that leaves.
pub(super) struct Leaving {
    /// Whether the subscription was ended here too: what it still has is read.
    closed: bool,
    out: bool,
    give_up: Instant,
    stop: Instant,
    next: Instant,
}

impl Leaving {
    /// Begins to leave. Running calls may take as long as `drain`.
    pub(super) async fn begin(calls: &mut Subscriber, drain: Duration) -> Self {
        // If the connection is closed for good, the stream ends by itself.
        let _ = calls.unsubscribe_after(NEVER).await;
        let now = Instant::now();
        Self { closed: false, out: false, give_up: now + LIMIT, stop: now + drain, next: now }
    }

    /// Looks at a message to this worker. Says whether it was the worker's own.
    pub(super) async fn heard(&mut self, message: &Message, calls: &mut Subscriber) -> bool {
        let ours = is_marker(message);
        if ours {
            self.close(calls).await;
        }
        ours
    }

    async fn close(&mut self, calls: &mut Subscriber) {
        if !self.closed {
            self.closed = true;
            // The stream ends after what it has. Without a connection there may be no room to say it.
            let asked = tokio::time::timeout(Duration::from_secs(1), calls.unsubscribe()).await;
            self.out = !matches!(asked, Ok(Ok(())));
        }
    }

    /// The subscription has ended.
    pub(super) fn out(&mut self) {
        self.out = true;
    }

    /// When [`act`](Self::act) has something to do.
    pub(super) fn next(&self) -> Instant {
        if self.closed { self.stop } else { self.next.min(self.stop) }
    }

    /// Does what is due. Returns whether running calls have to be stopped.
    pub(super) async fn act(
        &mut self,
        connection: &Connection,
        worker: &Subject,
        calls: &mut Subscriber,
    ) -> bool {
        let now = Instant::now();
        if !self.closed {
            if now >= self.give_up || now >= self.stop {
                tracing::warn!("the broker did not confirm that this worker has left the group");
                self.close(calls).await;
            } else if connection.link().connected {
                send_marker(connection, worker).await;
            }
            self.next = Instant::now() + PAUSE;
        }
        let stop = now >= self.stop;
        if stop {
            // Said again later, for a call that had no room to hear it.
            self.stop = now + Duration::from_secs(1);
        }
        stop
    }

    /// Whether no call can come any more.
    pub(super) fn left(&self) -> bool {
        self.out
    }
}

impl Worker {
    /// Bounces the calls that are on their way to this worker itself, when it has none any more. Returns when the broker
    /// has everything that was sent.
    pub(super) async fn bounce_the_rest(&mut self, mut own: Subscriber, mut gone: Subscriber) {
        self.closing = true;
        // As for the group.
        let _ = own.unsubscribe_after(NEVER).await;
        self.round_trip("last", &mut own, &mut gone).await;
        let asked = tokio::time::timeout(Duration::from_secs(1), own.unsubscribe()).await;
        while let Ok(Ok(())) = asked
            && let Some(message) = own.next().await
        {
            self.told(message);
        }
        while self.tasks.join_next().await.is_some() {}
        // The library says that something was flushed when the connection has no room for it yet.
        self.round_trip("sent", &mut own, &mut gone).await;
    }

    /// Waits until a message to this worker is back, unless there is no connection. Calls have numbers, so none has this
    /// word.
    async fn round_trip(&mut self, word: &str, own: &mut Subscriber, gone: &mut Subscriber) {
        let marker: Subject = format!("{}.gone.{word}", self.subject).into();
        let give_up = Instant::now() + LIMIT;
        let mut again = Instant::now();
        while self.connection.link().connected && Instant::now() < give_up {
            if Instant::now() >= again {
                send_marker(&self.connection, &marker).await;
                again = Instant::now() + PAUSE;
            }
            tokio::select! {
                biased;
                Some(message) = own.next() => self.told(message),
                Some(notice) = gone.next() => if notice.subject == marker {
                    return;
                },
                () = tokio::time::sleep_until(again) => {}
            }
        }
    }
}
