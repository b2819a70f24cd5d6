//! The requests of one client that are under way.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use serde_json::value::RawValue;

use super::state::{FrontRequest, FrontState, InFlight, LegacySession, WakeList};
use super::text::{JsonText, raw_outcome, with_token};
use crate::driver::{Link, Outcome, Owed, Watcher};
use crate::json::JsonRef;
use crate::lock::lock;
use crate::mcp::Method;
use crate::rpc::{CallId, ErrorObject, Failure, Id, Seed, Ticket, take};

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

    /// Asks the client something. It is sent at once; the future waits for the answer.
    pub(super) fn ask<P: FnOnce(CallId) -> Option<JsonText>>(
        &self,
        about: Option<&Id>,
        method: &str,
        params: P,
        watcher: Option<Watcher>,
    ) -> impl Future<Output = Outcome> + Send + use<P> {
        let gone = || ErrorObject::internal("the client has gone");
        let read = move |outcome: Result<&RawValue, Failure>| raw_outcome(outcome, gone);
        let sent = self.link.call(about, method, params, None, watcher, read);
        async move {
            match sent {
                Ok(pending) => pending.await.unwrap_or_else(|| Err(gone())),
                Err(_) => Err(gone()),
            }
        }
    }
}

impl WakeList {
    pub(super) fn add(&self, link: &Link) {
        let mut links = lock(&self.links);
        if !links.iter().any(|known| known.is(link)) {
            links.push(link.clone());
        }
        self.any.store(true, Ordering::Release);
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    /// Wakes all of them, and forgets them.
    pub(super) fn wake(&self) {
        if self.any.swap(false, Ordering::AcqRel) {
            let links = std::mem::take(&mut *lock(&self.links));
            links.iter().for_each(Link::wake);
        }
    }
}

impl FrontRequest {
    pub(super) fn new(front: &Arc<FrontState>, ticket: &Ticket) -> Self {
        Self { front: front.clone(), id: ticket.id().clone(), serial: ticket.serial() }
    }

    /// Tells the client something that belongs to the request, as long as that waits for its answer.
    /// `params` is JSON.
    pub(super) fn tell(&self, method: &str, params: String) {
        let params = JsonText(params);
        let _ = self.front.link.notify_about(&self.id, self.serial, method, Some(&params));
    }

    /// Passes a report of progress on, under the client's own token.
    pub(super) fn report(&self, report: JsonRef<'_>, token: &str) {
        if let Some(text) = with_token(report, token) {
            self.tell(Method::Progress.as_str(), text);
        }
    }

    /// Passes all reports of progress on.
    pub(super) fn watcher(&self, token: JsonRef<'_>) -> Watcher {
        let (request, token) = (self.clone(), token.text().to_owned());
        Box::new(move |report| request.report(JsonRef::from(report), &token))
    }
}
