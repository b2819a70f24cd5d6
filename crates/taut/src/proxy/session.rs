//! A legacy session, and the stream of changes that a modern server is asked for in its name.
//!
//! Knows what a client follows and what has to be said again after a restart; must not know requests.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use tokio::sync::oneshot;

use super::calls::{set_level, subscribe};
use super::state::{
    Back, BackCall, BackSlot, CallKind, FrontState, LegacySession, ProxiedCall, SessionStream,
    WayToAsk,
};
use super::translate::{envelope, modern_params};
use crate::driver::{Either, Flag, first};
use crate::lock::lock;
use crate::mcp::{Asker, Level, Method, Revision, ServerCapabilities};
use crate::rpc::{ErrorObject, Id, Params, code};

/// How long a stream of changes that ended is left alone at first. As long as a server that died.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The longest pause; each is twice the one before.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl Drop for LegacySession {
    fn drop(&mut self) {
        if let Some(stream) = self.stream.get_mut().take() {
            stream.abort();
        }
    }
}

impl LegacySession {
    pub(super) fn new(slot: Arc<BackSlot>, asker: Arc<Asker>) -> Self {
        Self {
            slot,
            asker,
            revision: OnceLock::new(),
            level: Mutex::default(),
            initialized: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            followed: Mutex::default(),
            heard: Mutex::default(),
            stream: tokio::sync::Mutex::new(None),
        }
    }

    pub(super) fn revision(&self) -> Revision {
        self.revision.get().copied().unwrap_or(Revision::LATEST_LEGACY)
    }

    /// No connection came of it: the client may try again.
    pub(super) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    fn followed(&self) -> Vec<String> {
        lock(&self.followed).all()
    }

    fn level(&self) -> Option<Level> {
        lock(&self.level).clone()
    }

    /// Notes what a relayed request means for a session that may have to be taken up again.
    pub(super) fn note(&self, method: Option<Method>, params: &Params<'_>) {
        let uri = || params.optional::<String>("uri").ok().flatten();
        let mut followed = lock(&self.followed);
        match method {
            Some(Method::Subscribe) => {
                if let Some(uri) = uri().filter(|uri| !followed.contains(uri)) {
                    // Beyond the bound an address is only not followed again after a restart.
                    let _ = followed.add(&uri);
                }
            }
            Some(Method::Unsubscribe) => {
                if let Some(uri) = uri() {
                    followed.remove(&uri);
                }
            }
            Some(Method::SetLevel) => {
                drop(followed);
                let level = params.optional::<Level>("level").ok().flatten();
                *lock(&self.level) = level;
            }
            _ => {}
        }
    }

    /// Goes on with a connection that stands in for a lost one.
    pub(super) fn resume(self: &Arc<Self>, front: &Arc<FrontState>, back: &Arc<Back>) {
        if !self.initialized.load(Ordering::Acquire) {
            return;
        }
        if back.is_modern() {
            self.clone().open_stream(front.clone(), back.clone());
            return;
        }
        // A server that several clients share was told when it was opened.
        if self.slot.dedicated {
            let _ = back.link.notify(None, Method::Initialized.as_str(), None);
        }
        for uri in self.followed() {
            subscribe(back, &uri, true);
        }
        if let Some(level) = self.level() {
            set_level(back, &level);
        }
    }

    /// Opens the stream of changes, in the background. One that the server refuses is tried again.
    pub(super) fn open_stream(self: Arc<Self>, front: Arc<FrontState>, back: Arc<Back>) {
        tokio::spawn(async move {
            let opened = self.listen(&front, &back).await;
            let session = Arc::downgrade(&self);
            drop(self);
            if opened.is_err_and(|error| error.code != code::METHOD_NOT_FOUND) {
                listen_again(session, front, back).await;
            }
        });
    }

    /// Opens a stream for all that the client follows, in place of the one that is open. Returns what
    /// the server has acknowledged.
    pub(super) async fn listen(
        self: &Arc<Self>,
        front: &Arc<FrontState>,
        back: &Arc<Back>,
    ) -> Result<String, ErrorObject> {
        let mut stream = self.stream.lock().await;
        let filter = filter(back.capabilities(), &self.followed());
        if filter == "{}" {
            // There is nothing to hear of.
            if let Some(old) = stream.take() {
                old.abort();
            }
            return Ok(filter);
        }
        let members = self.envelope();
        let members: Vec<(&str, &str)> =
            members.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let (ack, acknowledged) = oneshot::channel();
        let told = Arc::new(SessionStream { ack: Mutex::new(Some(ack)), ended: Flag::default() });
        let call = ProxiedCall {
            front: front.clone(),
            id: Id::from(0),
            serial: u64::MAX,
            level: None,
            questions: WayToAsk::Refused,
            kind: CallKind::SessionListen(told.clone()),
            parked: false,
        };
        let params = |_: &str| {
            let added = [("notifications", filter.as_str())];
            modern_params(&Params::ABSENT, &members, "0", &added)
        };
        let mut listening = back.call(call, Method::Listen.as_str(), params, None);
        let acked = match first(acknowledged, listening.answer()).await {
            Either::First(acked) => acked.ok(),
            Either::Second(ended) => {
                return Err(ended.err().unwrap_or_else(|| {
                    ErrorObject::internal("the server ended the stream of changes at once")
                }));
            }
        };
        let ended = told.ended.clone();
        let kept =
            keep_listening(Arc::downgrade(self), front.clone(), back.clone(), listening, ended);
        let task = tokio::spawn(kept);
        // The new one is open, so nothing is missed when the old one ends.
        if let Some(old) = stream.replace(task.abort_handle()) {
            old.abort();
        }
        Ok(acked.unwrap_or_else(|| "{}".to_owned()))
    }

    pub(super) fn envelope(&self) -> Vec<(&'static str, String)> {
        envelope(self.asker.info.as_ref(), &self.asker.capabilities, self.level().as_ref())
    }
}

/// Waits until the server ends a stream, and opens it again. Who replaces the stream aborts this.
fn keep_listening(
    session: Weak<LegacySession>,
    front: Arc<FrontState>,
    back: Arc<Back>,
    mut listening: BackCall,
    ended: Flag,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let _ = first(listening.answer(), ended.raised()).await;
        drop(listening);
        listen_again(session, front, back).await;
    })
}

/// Opens a stream in place of one that ended, or that did not open, as long as there is a connection.
async fn listen_again(session: Weak<LegacySession>, front: Arc<FrontState>, back: Arc<Back>) {
    let mut pause = FIRST_PAUSE;
    while back.client.0.session.is_up() {
        tokio::time::sleep(pause).await;
        let Some(session) = session.upgrade() else { return };
        if session.listen(&front, &back).await.is_ok() {
            // Changes may have been missed.
            return back.state.tell_all_changed(back.capabilities());
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// What a legacy client hears of unasked, and what it follows.
fn filter(offer: &ServerCapabilities, uris: &[String]) -> String {
    let mut members = Vec::new();
    let mut add = |told: Option<bool>, name: &str| {
        if told == Some(true) {
            members.push(format!("\"{name}\":true"));
        }
    };
    add(offer.tools.as_ref().and_then(|offer| offer.list_changed), "toolsListChanged");
    add(offer.prompts.as_ref().and_then(|offer| offer.list_changed), "promptsListChanged");
    add(offer.resources.as_ref().and_then(|offer| offer.list_changed), "resourcesListChanged");
    if !uris.is_empty() {
        let uris = serde_json::to_string(uris).unwrap_or_else(|_| "[]".to_owned());
        members.push(format!("\"resourceSubscriptions\":{uris}"));
    }
    format!("{{{}}}", members.join(","))
}
