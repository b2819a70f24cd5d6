//! The calls that are open on one connection to the server, and whose each of them is.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, Weak};

use serde_json::{Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::state::{
    Back, BackCall, BackState, CallKind, FrontRequest, FrontState, OpenGuard, ProxiedCall,
    ProxyShared, SlotSessions, WayToAsk,
};
use super::text::{JsonText, closed, no_answer, raw_outcome};
use super::translate::server_info;
use crate::client::Client;
use crate::driver::{Link, Outcome, PendingCall, Watcher, now};
use crate::lock::lock;
use crate::mcp::{Level, Method, Revision, ServerCapabilities};
use crate::rpc::{ErrorObject, Seed, take};

/// So much may wait to be sent to the server before clients are no longer read. As much again may be on
/// its way.
pub(super) const CROWDED: usize = 64 << 10;

impl Back {
    pub(super) fn new(
        shared: &Arc<ProxyShared>,
        client: Client,
        state: Arc<BackState>,
    ) -> Arc<Self> {
        let link = client.0.session.link.clone();
        let _ = state.link.set(link.clone());
        let _ = state.revision.set(client.revision());
        let gate = shared.settings.serial.then(|| Semaphore::new(1));
        let info = server_info(&client.0.agreed);
        Arc::new(Self { client, link, state, gate, info })
    }

    pub(super) fn revision(&self) -> Revision {
        self.client.revision()
    }

    /// Waits for the turn of a request, if there is one at a time.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.gate.as_ref()?.acquire().await.ok()
    }

    pub(super) fn is_modern(&self) -> bool {
        self.revision().is_modern()
    }

    pub(super) fn capabilities(&self) -> &ServerCapabilities {
        &self.client.0.agreed.capabilities
    }

    /// The error for a call that the end of the connection has cut off.
    pub(super) fn lost(&self, method: &str) -> ErrorObject {
        let words = self.client.0.session.lost(method.to_owned().into()).to_string();
        no_answer("lost", words, true)
    }

    /// Calls the server for `call`. `params` is told the progress token to use.
    pub(super) fn call(
        self: &Arc<Self>,
        call: ProxiedCall,
        method: &str,
        params: impl FnOnce(&str) -> String,
        watcher: Option<Watcher>,
    ) -> BackCall {
        let mut guard = None;
        let (state, back) = (&self.state, Arc::downgrade(self));
        let name = method.to_owned();
        let pending = self.link.call(
            None,
            method,
            |id| {
                guard = Some(state.enter(id.number(), call));
                Some(JsonText(params(&id.number().to_string())))
            },
            None,
            watcher,
            move |outcome| {
                raw_outcome(outcome, || match back.upgrade() {
                    Some(back) => back.lost(&name),
                    None => no_answer("lost", "the connection to the server is closed", true),
                })
            },
        );
        BackCall { pending: pending.ok(), guard, back: self.clone() }
    }
}

impl ProxiedCall {
    /// A call that is made for `request`, and that asks its client in this way.
    pub(super) fn new(request: FrontRequest, questions: WayToAsk) -> Self {
        let kind = CallKind::Request;
        Self { request, level: None, questions, kind, roots: false, parked: false }
    }

    /// Whether its client has roots.
    pub(super) fn has_roots(&self) -> bool {
        match self.questions {
            WayToAsk::Requests => self
                .request
                .front
                .session()
                .is_some_and(|session| session.asker.capabilities.roots.is_some()),
            WayToAsk::Inside(_) | WayToAsk::Refused => self.roots,
        }
    }
}

impl BackCall {
    /// The number of the call on the wire.
    pub(super) fn number(&self) -> u64 {
        self.guard.as_ref().map_or(0, |guard| guard.number)
    }

    /// Waits for the answer. May be called again if it was not waited for to the end.
    pub(super) async fn answer(&mut self) -> Outcome {
        // Nothing was sent: the connection had ended.
        let Some(pending) = &mut self.pending else { return Err(closed()) };
        let outcome = pending.await;
        if let Some(guard) = &mut self.guard {
            guard.answered = true;
        }
        outcome.unwrap_or_else(|| Err(self.back.lost("")))
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.state.leave(self.number, self.answered);
    }
}

impl SlotSessions {
    /// The clients that are still there.
    pub(super) fn all(&self) -> Vec<Arc<FrontState>> {
        lock(&self.fronts).iter().filter_map(Weak::upgrade).collect()
    }
}

impl BackState {
    pub(super) fn calls(&self) -> MutexGuard<'_, HashMap<u64, ProxiedCall, Seed>> {
        lock(&self.calls)
    }

    pub(super) fn open_calls(&self) -> usize {
        self.calls().len()
    }

    /// A call is open from now on.
    pub(super) fn enter(self: &Arc<Self>, number: u64, call: ProxiedCall) -> OpenGuard {
        let is_request = matches!(call.kind, CallKind::Request);
        self.calls().insert(number, call);
        if is_request && self.early_lines.load(Ordering::Acquire) {
            self.tell_early_lines();
        }
        OpenGuard { state: self.clone(), number, answered: false }
    }

    fn leave(&self, number: u64, answered: bool) {
        let ghostly = !answered && !self.over.load(Ordering::Acquire);
        let shared = self.shared.upgrade().filter(|_| ghostly);
        let gone = {
            let mut calls = self.calls();
            let gone = take(&mut calls, &number);
            if let (Some(call), Some(shared)) = (&gone, &shared) {
                // Under the lock of the calls: no question may find it in neither place.
                lock(&self.ghosts).add(number, call, now(), shared.settings.attribution);
            }
            gone
        };
        drop(gone);
        self.changed.notify_waiters();
    }

    /// Another request of the client goes on with this call.
    pub(super) fn rebind(&self, number: u64, request: &FrontRequest) {
        if let Some(call) = self.calls().get_mut(&number) {
            call.parked = false;
            call.request = request.clone();
        }
    }

    /// This call waits for its client from now on.
    pub(super) fn park(&self, number: u64) {
        if let Some(call) = self.calls().get_mut(&number) {
            call.parked = true;
        }
        self.changed.notify_waiters();
    }

    pub(super) fn call(&self, number: u64) -> Option<ProxiedCall> {
        self.calls().get(&number).cloned()
    }

    /// The connection has ended: clients that wait for room are let go.
    pub(super) fn over(&self) {
        self.over.store(true, Ordering::Release);
        self.waiting.wake();
    }

    /// Whether so much waits to be sent that clients should not be read. `link` is woken when there is
    /// room again.
    pub(super) fn is_crowded(&self, link: &Link) -> bool {
        let crowded = |own: &Link| own.output_waiting() > CROWDED;
        let is_crowded =
            || !self.over.load(Ordering::Acquire) && self.link.get().is_some_and(crowded);
        if !is_crowded() {
            return false;
        }
        self.waiting.add(link);
        // Once more: there may have been room before the link was in the list.
        is_crowded()
    }
}

/// Requests that the proxy itself makes of a legacy server.
impl Back {
    /// Sets the log level. Nobody waits for the answer.
    pub(super) fn set_level(&self, level: &Level) {
        self.request(Method::SetLevel, json!({ "level": level }))
            .into_iter()
            .for_each(PendingCall::detach);
    }

    /// Subscribes to a resource, or ends that. Nobody waits for the answer.
    pub(super) fn subscribe(&self, uri: &str, follow: bool) {
        let method = if follow { Method::Subscribe } else { Method::Unsubscribe };
        self.request(method, json!({ "uri": uri })).into_iter().for_each(PendingCall::detach);
    }

    /// Subscribes to a resource. Says whether the server did.
    pub(super) async fn subscribed(&self, uri: &str) -> bool {
        match self.request(Method::Subscribe, json!({ "uri": uri })) {
            Some(pending) => pending.await == Some(true),
            None => false,
        }
    }

    /// Says whether it succeeded; `None` if the connection is over.
    fn request(&self, method: Method, params: Value) -> Option<PendingCall<bool>> {
        let link = &self.link;
        link.call(None, method.as_str(), |_| Some(params), None, None, |done| done.is_ok()).ok()
    }
}
