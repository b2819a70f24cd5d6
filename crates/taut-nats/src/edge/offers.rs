//! Free slots that workers offer to a call which they had to bounce.
//!
//! A full worker remembers whom it bounced, and tells them one by one when a slot is free. So a call that
//! waits need not guess when to try again, and where. What is not needed is declined: the worker then
//! offers the slot to the next.

use std::collections::VecDeque;

use async_nats::Subject;
use tokio::sync::mpsc;

use super::Edge;
use super::inbox::Inbox;
use crate::connection::Connection;
use crate::frame::{Frame, Kind};
use crate::names::ServiceName;

/// At how many workers a call waits.
const PLACES: usize = 8;

/// The offers to one call.
#[derive(Default)]
pub(super) struct Offers {
    /// Made for the first place: most calls wait nowhere.
    channel: Option<(mpsc::Sender<String>, mpsc::Receiver<String>)>,
    /// Where the call waits; the oldest is given up first.
    places: VecDeque<Inbox>,
}

impl Offers {
    /// Waits for an offer at an inbox that was bounced.
    pub(super) fn add(&mut self, inbox: Inbox) {
        let (sender, _) = self.channel.get_or_insert_with(|| mpsc::channel(PLACES));
        inbox.tell_offers(sender);
        self.places.push_back(inbox);
        if self.places.len() > PLACES {
            self.places.pop_front();
        }
    }

    /// The worker that has a free slot.
    pub(super) async fn next(&mut self) -> String {
        match &mut self.channel {
            // The sender beside it keeps it open.
            Some((_, offers)) => match offers.recv().await {
                Some(worker) => worker,
                None => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    }

    /// The call needs none any more.
    pub(super) async fn close(&mut self, edge: &Edge) {
        let Some(place) = self.places.front() else { return };
        let reply = place.subject.clone();
        self.places.clear();
        let Some((_, offers)) = &mut self.channel else { return };
        while let Ok(worker) = offers.try_recv() {
            decline(&edge.0.connection, &edge.0.service, &worker, &reply).await;
        }
    }
}

/// Tells a worker that its slot is not needed by this call.
pub(super) async fn decline(
    connection: &Connection,
    service: &ServiceName,
    worker: &str,
    reply: &Subject,
) {
    connection.send(&service.of_worker(worker), Some(reply), Frame::bare(Kind::Declined)).await;
}
