//! Leaving the group of workers without losing a call.
//!
//! The client library forgets a subscription as soon as it has asked the broker to end it. What the broker
//! has sent until then would be lost, and the call with it. So the broker is told to end the subscription
//! after a number of messages, which the library counts as well, and the worker fills up that number by
//! messages to the group that mean nothing. Whatever comes before the last is bounced.

use std::time::Duration;

use async_nats::{Message, Subscriber};
use futures_util::{FutureExt, StreamExt};
use tokio::time::Instant;

use crate::connection::Connection;
use crate::frame::{Frame, Kind};
use crate::names::ServiceName;

/// How many messages may be on their way from the broker when a worker leaves.
const SLACK: u64 = 64;

/// How many messages are sent to fill up the number, each time.
const FILLERS: usize = 64;

const PAUSE: Duration = Duration::from_millis(10);

/// How long it may take to leave.
const LIMIT: Duration = Duration::from_secs(5);

/// Without a call for so long, the subscription is simply ended where messages cannot be counted.
const QUIET: Duration = Duration::from_millis(200);

/// A worker that leaves.
pub(super) struct Leaving {
    counted: bool,
    out: bool,
    heard: Instant,
    give_up: Instant,
    stop: Instant,
    next: Instant,
}

impl Leaving {
    /// Begins to leave, after `received` messages. Returns what came meanwhile.
    pub(super) async fn begin(
        connection: &Connection,
        calls: &mut Subscriber,
        mut received: u64,
        drain: Duration,
    ) -> (Self, Vec<Message>) {
        let mut waiting = Vec::new();
        while let Some(Some(message)) = calls.next().now_or_never() {
            received += 1;
            waiting.push(message);
        }
        // A broker counts anew when a connection is opened again; the library does not.
        let link = connection.link();
        let counted = link.connected
            && link.reopened.is_none()
            && calls.unsubscribe_after(received + SLACK).await.is_ok();
        let now = Instant::now();
        let leaving = Self {
            counted,
            out: false,
            heard: now,
            give_up: now + LIMIT,
            stop: now + drain,
            next: now,
        };
        (leaving, waiting)
    }

    /// A message came to the group.
    pub(super) fn heard(&mut self) {
        self.heard = Instant::now();
    }

    /// The subscription has ended.
    pub(super) fn out(&mut self) {
        self.out = true;
    }

    /// When [`act`](Self::act) has something to do.
    pub(super) fn next(&self) -> Instant {
        if self.out { self.stop } else { self.next.min(self.stop) }
    }

    /// Does what is due. Returns whether running calls have to be stopped.
    pub(super) async fn act(
        &mut self,
        connection: &Connection,
        service: &ServiceName,
        calls: &mut Subscriber,
    ) -> bool {
        let now = Instant::now();
        if !self.out {
            let quiet = !self.counted && now - self.heard >= QUIET;
            if quiet || now >= self.give_up || now >= self.stop {
                // The library's stream ends with it.
                let _ = calls.unsubscribe().await;
                self.out = true;
            } else if self.counted && connection.link().connected {
                let subject = service.calls();
                for _ in 0..FILLERS {
                    connection.send(&subject, None, Frame::bare(Kind::Filler)).await;
                }
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
