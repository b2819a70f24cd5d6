//! The requests of one client that are under way.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, MutexGuard};

use super::state::{FrontState, InFlight, LegacySession};
use crate::driver::{Link, Outcome, Owed};
use crate::lock::lock;
use crate::rpc::{Seed, Ticket, take};

impl FrontState {
    pub(super) fn session(&self) -> Option<Arc<LegacySession>> {
        lock(&self.session).clone()
    }

    pub(super) fn targets(&self) -> MutexGuard<'_, HashMap<u64, InFlight, Seed>> {
        lock(&self.targets)
    }

    /// A request is under way.
    pub(super) fn add(&self, serial: u64, target: InFlight) {
        self.targets().insert(serial, target);
    }

    /// A request is answered.
    pub(super) fn done(&self, serial: u64) {
        let _gone = take(&mut self.targets(), &serial);
    }

    /// The duty to answer a request.
    pub(super) fn owe(&self, ticket: Ticket) -> Owed {
        Owed::new(ticket, self.link.clone())
    }

    /// Works on a request in a task, which ends when the request is withdrawn.
    pub(super) fn spawn(
        self: &Arc<Self>,
        ticket: Ticket,
        work: impl Future<Output = Outcome> + Send + 'static,
    ) {
        let (serial, state) = (ticket.serial(), self.clone());
        let owed = self.owe(ticket);
        // Held while the task is made: it must not be done before it is known.
        let mut targets = self.targets();
        let task = tokio::spawn(async move {
            let outcome = work.await;
            state.done(serial);
            owed.answer(outcome);
        });
        targets.insert(serial, InFlight::Task(task.abort_handle()));
    }

    /// Wakes a connection to the server when the client has read more.
    pub(super) fn wake_when_read(&self, back: &Link) {
        let mut unread = lock(&self.unread);
        if !unread.iter().any(|known| known.is(back)) {
            unread.push(back.clone());
        }
    }
}
