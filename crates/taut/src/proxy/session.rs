//! Who a client is, its legacy session, and the stream of changes that a modern server is asked for in its name.
//!
//! Knows how a handshake is answered, what a client follows, and what has to be said again after a restart; must
//! not know other requests.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use tokio::sync::oneshot;

use super::followed::Followed;
use super::state::{
    AbortOnDrop, Back, BackCall, BackSlot, CallKind, FrontRequest, FrontState, Identity,
    LegacySession, ProxiedCall, SessionStream, WayToAsk,
};
use super::translate::{envelope, modern_params, replaced, union, welcome};
use crate::client::list_changes;
use crate::driver::{Either, Flag, first};
use crate::json::{JsonBuf, JsonRef};
use crate::lock::lock;
use crate::mcp::{
    Asker, Era, Implementation, Level, Method, Revision, ServerCapabilities, meta_keys,
};
use crate::rpc::{ErrorObject, Id, NoId, Params, code};

/// How long a stream of changes that ended is left alone at first. As long as a server that died.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The longest pause; each is twice the one before.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl LegacySession {
    pub(super) fn new(slot: Arc<BackSlot>, asker: Arc<Asker>, max_followed: usize) -> Self {
        Self {
            slot,
            asker,
            revision: OnceLock::new(),
            level: Mutex::default(),
            initialized: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            followed: Mutex::new(Followed::new(max_followed)),
            changes: Mutex::default(),
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

    /// What the next stream names.
    fn followed(&self) -> Vec<String> {
        let changes = lock(&self.changes);
        let mut all = lock(&self.followed).all();
        all.retain(|uri| !changes.is_untried(uri));
        all
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
            lock(&self.changes).has_room();
            self.clone().open_stream(front.clone(), back.clone());
            return;
        }
        // A server that several clients share was told when it was opened.
        if self.slot.dedicated {
            let _ = back.link.notify(None, Method::Initialized.as_str(), None);
        }
        for uri in self.followed() {
            back.subscribe(&uri, true);
        }
        if let Some(level) = self.level() {
            back.set_level(&level);
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
        let filter = filter(back.capabilities(), self.followed());
        if filter == "{}" {
            // There is nothing to hear of.
            *stream = None;
            return Ok(filter);
        }
        let envelope = self.envelope();
        let (ack, acknowledged) = oneshot::channel();
        let told = Arc::new(SessionStream { ack: Mutex::new(Some(ack)), ended: Flag::default() });
        // No request of the client: the stream belongs to the whole session.
        let request = FrontRequest { front: front.clone(), id: Id::from(0), serial: u64::MAX };
        let kind = CallKind::SessionListen(told.clone());
        let call = ProxiedCall { kind, ..ProxiedCall::new(request, WayToAsk::Refused) };
        let params = |_: &str| {
            let added = [("notifications", filter.as_str())];
            modern_params(&Params::ABSENT, &envelope, "0", &added)
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
        *stream = Some(AbortOnDrop(task.abort_handle()));
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
fn filter(offer: &ServerCapabilities, uris: Vec<String>) -> String {
    let mut filter = list_changes(offer);
    filter.resource_subscriptions = Some(uris).filter(|uris| !uris.is_empty());
    serde_json::to_string(&filter).unwrap_or_else(|_| "{}".to_owned())
}

/// Both sides agree: the result of `initialize`.
pub(super) fn agree(
    front: &Arc<FrontState>,
    session: &LegacySession,
    back: &Arc<Back>,
    asked: Revision,
    pinned: bool,
) -> JsonBuf {
    let agreed = &back.client.0.agreed;
    let revision = if back.is_modern() || pinned { asked } else { back.revision() };
    let _ = session.revision.set(revision);
    let no_id = if revision.has_errors_without_id() { NoId::Absent } else { NoId::Null };
    front.link.agree(no_id, revision.has_batches());
    if back.is_modern() {
        return JsonBuf::copied(&[&welcome(agreed, revision)]);
    }
    let result = JsonRef::from(agreed.opening.raw());
    if revision == back.revision() {
        return JsonBuf::copied(&[result.text()]);
    }
    JsonBuf::copied(&[&at_revision(result, revision)])
}

/// The params or the result of `initialize` with another version.
pub(super) fn at_revision(opening: JsonRef<'_>, revision: Revision) -> String {
    replaced(opening, "protocolVersion", &format!("\"{revision}\""))
}

/// Who a modern request says that it comes from. A legacy server is told that everything can be asked
/// that the proxy can pass on, but for roots that this client does not have.
pub(super) fn identity_of(params: &Params<'_>) -> Identity {
    let info = info_of(params);
    let declared =
        params.member("_meta").and_then(|meta| meta.member(meta_keys::CLIENT_CAPABILITIES));
    let roots = declared.and_then(|declared| declared.member("roots"));
    let capabilities = union(roots.is_some_and(JsonRef::is_object));
    Identity { era: Era::Modern, initialize: None, info, capabilities }
}

/// The name that a modern request gives its sender.
pub(super) fn info_of(params: &Params<'_>) -> Option<Implementation> {
    let info = params.member("_meta").and_then(|meta| meta.member(meta_keys::CLIENT_INFO));
    info.and_then(|info| info.read().ok())
}
