//! One connection to the server: the calls that are open on it, and what the server says unasked.
//!
//! Knows whose each call is, and to whom a question, a log line or a change belongs; must not know how a
//! connection is opened. stdio has no link between a question and a call, so a question belongs to the
//! only call that is open, or waits until only one is.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use tokio::sync::{Notify, Semaphore, mpsc, oneshot};

use super::ProxyShared;
use super::front::FrontState;
use super::relay::{Text, lost, raw_outcome};
use super::to_legacy::Streams;
use super::translate::{progress_token, relayed_params};
use crate::client::{Client, Relay};
use crate::driver::{AnswerFuture, IncomingRequest, Link, Outcome, PendingCall, Watcher, ready};
use crate::json::edit::{Edit, around, edited};
use crate::json::{JsonBuf, JsonRef};
use crate::mcp::{Level, Method, Revision, ServerCapabilities, WriteJson, meta_keys};
use crate::rpc::{ErrorObject, Id, Params};

/// So much may wait to be sent to the server before clients are no longer read. As much again may be on
/// its way.
const CROWDED: usize = 128 << 10;

/// So much may wait to be sent to the only client of a server before the server is no longer read.
const CLIENT_CROWDED: usize = 4 << 20;

/// A connection to the server.
pub(super) struct Back {
    pub(super) client: Client,
    pub(super) link: Link,
    pub(super) state: Arc<BackState>,
    /// One request at a time, if that is wanted.
    pub(super) gate: Option<Arc<Semaphore>>,
    /// The server's name and version as JSON, as the modern revision has it.
    info: String,
}

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
        call: OpenCall,
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
                Some(Text(params(&id.number().to_string())))
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

    /// Subscribes anew to what streams follow, after a restart.
    pub(super) fn resubscribe(self: &Arc<Self>) {
        for uri in self.state.streams.followed() {
            super::to_legacy::subscribe(self, &uri, true);
        }
    }
}

/// A call of ours under way. Dropped, it is withdrawn.
pub(super) struct BackCall {
    pending: Option<PendingCall<Outcome>>,
    guard: Option<OpenGuard>,
    back: Arc<Back>,
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

/// A question of a legacy server, on its way to a modern client.
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) params: Option<String>,
    pub(super) reply: oneshot::Sender<Outcome>,
}

/// A call that is open on a connection, and whose it is.
#[derive(Clone)]
pub(super) struct OpenCall {
    pub(super) front: Arc<FrontState>,
    pub(super) id: Id,
    pub(super) serial: u64,
    /// The least severe log line that a modern request wants to see.
    pub(super) level: Option<Level>,
    /// Where questions go, if the client is modern and the server is not.
    pub(super) asked: Option<mpsc::UnboundedSender<Asked>>,
    pub(super) kind: CallKind,
}

/// What a call is for.
#[derive(Clone)]
pub(super) enum CallKind {
    Request,
    /// A stream of changes that a modern client has opened itself.
    Listen,
    /// A stream of changes that the proxy keeps for a legacy session; told when it was acknowledged.
    SessionListen(Arc<Mutex<Option<oneshot::Sender<String>>>>),
}

/// An open call; dropped, it is over.
pub(super) struct OpenGuard {
    state: Arc<BackState>,
    number: u64,
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.state.leave(self.number);
    }
}

/// What belongs to a connection and has to be known where messages come in.
pub(super) struct BackState {
    this: Weak<Self>,
    dedicated: bool,
    shared: Weak<ProxyShared>,
    link: OnceLock<Link>,
    revision: OnceLock<Revision>,
    calls: Mutex<HashMap<u64, OpenCall>>,
    changed: Notify,
    sessions: Mutex<Vec<Weak<FrontState>>>,
    /// The streams of changes of modern clients, where the server is legacy.
    pub(super) streams: Streams,
    /// Clients that wait until less has to be sent.
    waiting: Mutex<Vec<Link>>,
    has_waiting: AtomicBool,
    open: AtomicUsize,
    over: AtomicBool,
    /// The level that a legacy server was told for the sake of modern requests.
    pub(super) level: Mutex<Option<Level>>,
}

impl BackState {
    /// For a connection that one legacy session has to itself, or that several clients share.
    pub(super) fn new(shared: &Arc<ProxyShared>, dedicated: bool) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            this: this.clone(),
            dedicated,
            shared: Arc::downgrade(shared),
            link: OnceLock::new(),
            revision: OnceLock::new(),
            calls: Mutex::default(),
            changed: Notify::new(),
            sessions: Mutex::default(),
            streams: Streams::default(),
            waiting: Mutex::default(),
            has_waiting: AtomicBool::new(false),
            open: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            level: Mutex::default(),
        })
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<u64, OpenCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn open_calls(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// A call is open from now on.
    pub(super) fn enter(self: &Arc<Self>, number: u64, call: OpenCall) -> OpenGuard {
        self.calls().insert(number, call);
        self.open.fetch_add(1, Ordering::Relaxed);
        OpenGuard { state: self.clone(), number }
    }

    fn leave(&self, number: u64) {
        let _gone = self.calls().remove(&number);
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    /// Another request of the client goes on with this call.
    pub(super) fn rebind(&self, number: u64, front: &Arc<FrontState>, id: &Id, serial: u64) {
        if let Some(call) = self.calls().get_mut(&number) {
            call.front = front.clone();
            (call.id, call.serial) = (id.clone(), serial);
        }
    }

    pub(super) fn call(&self, number: u64) -> Option<OpenCall> {
        self.calls().get(&number).cloned()
    }

    pub(super) fn attach(&self, front: &Arc<FrontState>) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|known| {
            known.strong_count() > 0 && !Weak::ptr_eq(known, &Arc::downgrade(front))
        });
        sessions.push(Arc::downgrade(front));
    }

    pub(super) fn sessions(&self) -> Vec<Weak<FrontState>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The connection has ended: clients that wait for room are let go.
    pub(super) fn over(&self) {
        self.over.store(true, Ordering::Release);
        self.wake_waiting();
    }

    pub(super) fn has_streams(&self) -> bool {
        !self.streams.is_empty()
    }

    pub(super) fn adopt_streams(&self, lost: &Self) {
        self.streams.adopt(&lost.streams);
    }

    /// Whether so much waits to be sent that clients should not be read. `link` is woken when there is
    /// room again.
    pub(super) fn is_crowded(&self, link: &Link) -> bool {
        let crowded = |own: &Link| own.output_waiting() > CROWDED;
        if self.over.load(Ordering::Acquire) || !self.link.get().is_some_and(crowded) {
            return false;
        }
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(link.clone());
        self.has_waiting.store(true, Ordering::Release);
        true
    }

    fn wake_waiting(&self) {
        if self.has_waiting.swap(false, Ordering::AcqRel) {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let links = std::mem::take(&mut *waiting);
            drop(waiting);
            links.iter().for_each(Link::wake);
        }
    }

    /// The only client, where there is one: a legacy session that shares the connection with nobody.
    fn only_session(&self) -> Option<Arc<FrontState>> {
        if !self.dedicated {
            return None;
        }
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.first().and_then(Weak::upgrade)
    }

    /// The request that something belongs to, if only one is open.
    fn only_call(&self) -> Option<OpenCall> {
        let calls = self.calls();
        let mut requests = calls.values().filter(|call| matches!(call.kind, CallKind::Request));
        match (requests.next(), requests.next()) {
            (Some(only), None) => Some(only.clone()),
            _ => None,
        }
    }

    /// The call that a question belongs to: the only one, or the one that is left in time.
    async fn whose(&self) -> Result<OpenCall, ErrorObject> {
        let limit = self.shared.upgrade().map(|shared| shared.settings.attribution);
        let found = async {
            loop {
                let mut changed = std::pin::pin!(self.changed.notified());
                changed.as_mut().enable();
                if let Some(call) = self.only_call() {
                    return Some(call);
                }
                if self.open_calls() == 0 {
                    return None;
                }
                changed.await;
            }
        };
        let found = tokio::time::timeout(limit.unwrap_or_default(), found).await;
        match found {
            Ok(Some(call)) => Ok(call),
            Ok(None) => Err(ErrorObject::internal(
                "nobody can be asked: no request of a client is under way",
            )),
            Err(_) => Err(ErrorObject::internal(
                "nobody can be asked: several requests are under way, and nothing tells to which of \
                 them the question belongs; --serial sends one at a time",
            )),
        }
    }

    /// Tells every client of a change of every list, because some may have been missed.
    pub(super) fn tell_all_changed(&self, offer: &ServerCapabilities) {
        let lists = [
            (offer.tools.as_ref().and_then(|tools| tools.list_changed), Method::ToolsChanged),
            (
                offer.prompts.as_ref().and_then(|prompts| prompts.list_changed),
                Method::PromptsChanged,
            ),
            (
                offer.resources.as_ref().and_then(|resources| resources.list_changed),
                Method::ResourcesChanged,
            ),
        ];
        for (_, method) in lists.iter().filter(|(told, _)| *told == Some(true)) {
            for front in self.sessions().iter().filter_map(Weak::upgrade) {
                let _ = front.link.notify(None, method.as_str(), None);
            }
            self.streams.tell(*method, None);
        }
    }

    /// A notification of a legacy server.
    fn legacy_notification(&self, method: &str, params: &Params<'_>) {
        let known = Method::parse(method);
        if let Some(known) = known {
            self.streams.tell(known, params.raw().map(JsonRef::from));
        }
        if known == Some(Method::Message) {
            return self.log(params);
        }
        for front in self.sessions().iter().filter_map(Weak::upgrade) {
            forward(&front, self.about(&front).as_ref(), method, params);
        }
    }

    /// The request that an unmarked message to this client most likely belongs to.
    fn about(&self, front: &Arc<FrontState>) -> Option<Id> {
        self.only_call().filter(|call| Arc::ptr_eq(&call.front, front)).map(|call| call.id)
    }

    /// A log line goes to the session that is alone here, or to the only request that wants lines.
    fn log(&self, params: &Params<'_>) {
        if let Some(front) = self.only_session() {
            let about = self.about(&front);
            return forward(&front, about.as_ref(), Method::Message.as_str(), params);
        }
        let level: Option<Level> = params.optional("level").ok().flatten();
        let wanting: Vec<OpenCall> = {
            let calls = self.calls();
            let wants = |call: &&OpenCall| match (&call.level, &level) {
                (Some(least), Some(level)) => level >= least,
                (None, _) => call.front.session().is_some(),
                _ => false,
            };
            let requests = calls.values().filter(|call| matches!(call.kind, CallKind::Request));
            requests.filter(wants).cloned().collect()
        };
        // With several nobody knows whose it is, and another's line is nobody's to see.
        if let [only] = &wanting[..] {
            let text = Text::of(params);
            let method = Method::Message.as_str();
            let _ = only.front.link.notify_about(&only.id, only.serial, method, Some(&text));
        }
    }

    /// A notification of a modern server.
    fn modern_notification(&self, method: &str, params: &Params<'_>) {
        let known = Method::parse(method);
        if known == Some(Method::Message) {
            return self.log(params);
        }
        let meta = params.member("_meta").filter(|meta| meta.is_object());
        let tag = meta.and_then(|meta| meta.member(meta_keys::SUBSCRIPTION_ID));
        let number = tag.and_then(|tag| tag.text().trim_matches('"').parse().ok());
        match number.and_then(|number| self.call(number)) {
            Some(OpenCall { front, id, serial, kind: CallKind::Listen, .. }) => {
                let (text, tag) =
                    (params.raw().map_or("{}", |raw| raw.get()), tag.unwrap_or_default());
                let text = Text(around(text, tag.text(), id.as_json()).concat());
                let _ = front.link.notify_about(&id, serial, method, Some(&text));
            }
            Some(OpenCall { front, kind: CallKind::SessionListen(ack), .. }) => {
                if known == Some(Method::Acknowledged) {
                    let filter = params.member("notifications").map_or("{}", JsonRef::text);
                    let ack = ack.lock().unwrap_or_else(PoisonError::into_inner).take();
                    if let Some(ack) = ack {
                        let _ = ack.send(filter.to_owned());
                    }
                } else {
                    let text = Text(untagged(params));
                    let _ = front.link.notify(None, method, Some(&text));
                }
            }
            _ if tag.is_some() => {}
            // What is new to us is passed on where it is clear to whom.
            _ => {
                if let Some(call) = self.only_call() {
                    let text = Text::of(params);
                    let _ =
                        call.front.link.notify_about(&call.id, call.serial, method, Some(&text));
                }
            }
        }
    }
}

/// The params of a notification without what marks it as part of a stream.
fn untagged(params: &Params<'_>) -> String {
    let text = params.raw().map_or("{}", |raw| raw.get());
    edited(
        JsonRef::sound(text),
        |name, value| match name {
            "_meta" if value.is_object() => {
                let meta = edited(
                    value,
                    |key, _| match key {
                        meta_keys::SUBSCRIPTION_ID => Edit::Drop,
                        _ => Edit::Keep,
                    },
                    &[],
                );
                if meta == "{}" { Edit::Drop } else { Edit::Put(meta) }
            }
            _ => Edit::Keep,
        },
        &[],
    )
}

/// Passes a notification on as it is.
fn forward(front: &FrontState, about: Option<&Id>, method: &str, params: &Params<'_>) {
    let text = params.raw().map(|raw| Text(raw.get().to_owned()));
    let _ = front.link.notify(about, method, text.as_ref().map(|text| text as _));
}

impl Relay for BackState {
    fn request(&self, request: IncomingRequest<'_>) -> AnswerFuture {
        let modern = self.revision.get().is_some_and(|revision| revision.is_modern());
        let known = Method::parse(request.method);
        if modern {
            // STD-22: a modern client writes no response, not even to a server that breaks the rules.
            request.link.forget(request.id);
            return ready(Err(ErrorObject::method_not_found(request.method)));
        }
        if known == Some(Method::Ping) {
            return ready(Ok(JsonBuf::copied(&["{}"])));
        }
        let method = request.method.to_owned();
        let params = request.params.clone().into_owned();
        let cancelled = request.cancelled.clone();
        let back = request.link.clone();
        let only = self.only_session();
        let about = only.as_ref().and_then(|front| self.about(front));
        let state = self.this.upgrade();
        Box::pin(async move {
            let asking = async {
                if let Some(front) = only {
                    return ask(&front, about.as_ref(), &method, &params, &back).await;
                }
                let state = state.ok_or_else(|| ErrorObject::internal("the proxy has ended"))?;
                let call = state.whose().await?;
                match (&call.asked, known) {
                    (Some(asked), Some(method)) if method.is_embedded_in_modern() => {
                        let (reply, answer) = oneshot::channel();
                        let params = params.raw().map(|raw| raw.get().to_owned());
                        let _ = asked.send(Asked { method, params, reply });
                        let gone = || ErrorObject::internal("the client did not answer");
                        answer.await.unwrap_or_else(|_| Err(gone()))
                    }
                    (Some(_), _) => Err(ErrorObject::method_not_found(&method)),
                    (None, _) => ask(&call.front, Some(&call.id), &method, &params, &back).await,
                }
            };
            match crate::driver::first(asking, cancelled.raised()).await {
                crate::driver::Either::First(outcome) => outcome,
                crate::driver::Either::Second(()) => {
                    Err(ErrorObject::internal("the question was withdrawn"))
                }
            }
        })
    }

    fn notification(&self, method: &str, params: &Params<'_>) {
        match self.revision.get() {
            Some(revision) if revision.is_modern() => self.modern_notification(method, params),
            Some(_) => self.legacy_notification(method, params),
            // Before the connection is open nothing is anybody's.
            None => {}
        }
    }

    fn pump(&self) {
        if self.has_waiting.load(Ordering::Acquire)
            && self.link.get().is_some_and(|link| link.output_waiting() <= CROWDED / 2)
        {
            self.wake_waiting();
        }
    }

    fn has_room(&self) -> bool {
        let Some(front) = self.only_session() else { return true };
        let (Some(own), true) = (self.link.get(), front.link.output_waiting() > CLIENT_CROWDED)
        else {
            return true;
        };
        front.wake_when_read(own);
        false
    }
}

/// Asks a legacy client what a legacy server asks.
async fn ask(
    front: &Arc<FrontState>,
    about: Option<&Id>,
    method: &str,
    params: &Params<'_>,
    back: &Link,
) -> Outcome {
    let watcher = progress_token(params).map(|token| {
        let (back, token) = (back.clone(), token.text().to_owned());
        let watch: Watcher = Box::new(move |params| {
            if let Some(text) = super::relay::with_token(JsonRef::from(params), &token) {
                let _ = back.notify(None, Method::Progress.as_str(), Some(&Text(text)));
            }
        });
        watch
    });
    let pending = front.link.call(
        about,
        method,
        |call| {
            let token = call.number().to_string();
            relayed_params(params, &token).map(|pieces| Text(pieces.concat()))
        },
        None,
        watcher,
        |outcome| raw_outcome(outcome, || ErrorObject::internal("the client has gone")),
    );
    let gone = || Err(ErrorObject::internal("the client has gone"));
    match pending {
        Ok(pending) => pending.await.unwrap_or_else(gone),
        Err(_) => gone(),
    }
}
