//! The calls that are open on one connection to the server, and whose each of them is.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use serde_json::json;
use tokio::sync::{Notify, Semaphore};

use super::state::{
    Back, BackCall, BackState, FrontState, LocalStreams, OpenGuard, ProxiedCall, ProxyShared,
};
use super::text::{JsonText, lost, raw_outcome};
use crate::client::Client;
use crate::driver::{Link, Outcome, Watcher};
use crate::lock::lock;
use crate::mcp::{Level, Method, Revision, ServerCapabilities, WriteJson};
use crate::rpc::{ErrorObject, Id, Seed, take};

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
        let gate = shared.settings.serial.then(|| Arc::new(Semaphore::new(1)));
        let info = client
            .server_info()
            .and_then(|info| serde_json::to_string(&info.at(Revision::MODERN)).ok());
        let info = info.unwrap_or_else(|| r#"{"name":"unnamed","version":"0"}"#.to_owned());
        Arc::new(Self { client, link, state, gate, info })
    }

    pub(super) fn revision(&self) -> Revision {
        self.client.revision()
    }

    /// The server's name and version as JSON.
    pub(super) fn info(&self) -> &str {
        &self.info
    }

    pub(super) fn is_modern(&self) -> bool {
        self.revision().is_modern()
    }

    pub(super) fn capabilities(&self) -> &ServerCapabilities {
        &self.client.0.agreed.capabilities
    }

    /// The error for a call that the end of the connection has cut off.
    pub(super) fn lost(&self, method: &str) -> ErrorObject {
        lost(&self.client, method)
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
                    None => ErrorObject::internal("the connection to the server is closed"),
                })
            },
        );
        BackCall { pending: pending.ok(), guard, back: self.clone() }
    }
}

impl BackCall {
    /// The number of the call on the wire.
    pub(super) fn number(&self) -> u64 {
        self.guard.as_ref().map_or(0, |guard| guard.number)
    }

    /// Waits for the answer. May be called again if it was not waited for to the end.
    pub(super) async fn answer(&mut self) -> Outcome {
        let Some(pending) = &mut self.pending else { return Err(self.back.lost("")) };
        let outcome = pending.await;
        outcome.unwrap_or_else(|| Err(self.back.lost("")))
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.state.leave(self.number);
    }
}

impl BackState {
    /// For a connection that one legacy session has to itself, or that several clients share.
    pub(super) fn new(
        shared: &Arc<ProxyShared>,
        dedicated: bool,
        streams: Arc<LocalStreams>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            this: this.clone(),
            dedicated,
            shared: Arc::downgrade(shared),
            link: OnceLock::new(),
            revision: OnceLock::new(),
            calls: Mutex::default(),
            changed: Notify::new(),
            sessions: Mutex::default(),
            owner: OnceLock::new(),
            streams,
            waiting: Mutex::default(),
            has_waiting: AtomicBool::new(false),
            open: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            held: Mutex::default(),
            level: Mutex::default(),
        })
    }

    pub(super) fn calls(&self) -> MutexGuard<'_, HashMap<u64, ProxiedCall, Seed>> {
        lock(&self.calls)
    }

    pub(super) fn open_calls(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// A call is open from now on.
    pub(super) fn enter(self: &Arc<Self>, number: u64, call: ProxiedCall) -> OpenGuard {
        self.calls().insert(number, call);
        self.open.fetch_add(1, Ordering::Relaxed);
        OpenGuard { state: self.clone(), number }
    }

    fn leave(&self, number: u64) {
        let _gone = take(&mut self.calls(), &number);
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    /// Another request of the client goes on with this call.
    pub(super) fn rebind(&self, number: u64, front: &Arc<FrontState>, id: &Id, serial: u64) {
        if let Some(call) = self.calls().get_mut(&number) {
            call.parked = false;
            call.front = front.clone();
            (call.id, call.serial) = (id.clone(), serial);
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

    pub(super) fn attach(&self, front: &Arc<FrontState>) {
        let mut sessions = lock(&self.sessions);
        sessions.retain(|known| {
            known.strong_count() > 0 && !Weak::ptr_eq(known, &Arc::downgrade(front))
        });
        sessions.push(Arc::downgrade(front));
        if self.dedicated {
            let _ = self.owner.set(front.link.clone());
        }
    }

    pub(super) fn sessions(&self) -> Vec<Weak<FrontState>> {
        lock(&self.sessions).clone()
    }

    /// The connection has ended: clients that wait for room are let go.
    pub(super) fn over(&self) {
        self.over.store(true, Ordering::Release);
        self.wake_waiting();
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
        let mut waiting = lock(&self.waiting);
        if !waiting.iter().any(|known| known.is(link)) {
            waiting.push(link.clone());
        }
        drop(waiting);
        self.has_waiting.store(true, Ordering::Release);
        // Once more: there may have been room before the link was in the list.
        is_crowded()
    }

    pub(super) fn wake_waiting(&self) {
        if self.has_waiting.swap(false, Ordering::AcqRel) {
            let mut waiting = lock(&self.waiting);
            let links = std::mem::take(&mut *waiting);
            drop(waiting);
            links.iter().for_each(Link::wake);
        }
    }
}

/// Tells a legacy server its log level. Nobody waits for the answer.
pub(super) fn set_level(back: &Arc<Back>, level: &Level) {
    request(back, Method::SetLevel, json!({ "level": level }).to_string());
}

/// Subscribes a legacy server to a resource, or ends that. Nobody waits for the answer.
pub(super) fn subscribe(back: &Arc<Back>, uri: &str, follow: bool) {
    let method = if follow { Method::Subscribe } else { Method::Unsubscribe };
    request(back, method, json!({ "uri": uri }).to_string());
}

fn request(back: &Arc<Back>, method: Method, params: String) {
    let sent =
        back.link.call(None, method.as_str(), |_| Some(JsonText(params)), None, None, |_| ());
    if let Ok(pending) = sent {
        pending.detach();
    }
}

/// Subscribes a legacy server to a resource. Says whether it did.
pub(super) async fn subscribed(back: &Arc<Back>, uri: &str) -> bool {
    let params = JsonText(json!({ "uri": uri }).to_string());
    let method = Method::Subscribe.as_str();
    let sent =
        back.link.call(None, method, |_| Some(params), None, None, |outcome| outcome.is_ok());
    match sent {
        Ok(pending) => pending.await == Some(true),
        Err(_) => false,
    }
}
