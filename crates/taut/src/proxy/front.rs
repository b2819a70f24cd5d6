//! One connection of a client: where each of its messages goes.
//!
//! Knows both eras of clients; must not know how a message reads in the other era. A legacy session has a
//! connection to the server of its own; modern requests share one with those of the same principal.

use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::connector::ProxyEvent;
use super::relay::relay;
use super::session::{agree, at_revision, identity_of, info_of};
use super::state::{
    Back, BackSlot, BackState, FrontState, Identity, InFlight, LegacySession, ProxyShared, WakeList,
};
use super::text::JsonText;
use super::translate::completed;
use super::{to_legacy, to_modern};
use crate::driver::{AnswerFuture, Flag, IncomingRequest, Link, Service, ready};
use crate::json::{JsonBuf, JsonRef, RawJson};
use crate::lock::lock;
use crate::mcp::{
    Accept, Era, Implementation, Method, RequestMeta, Revision, UNSUPPORTED_PROTOCOL_VERSION,
    UnsupportedVersion, Verdict,
};
use crate::rpc::{ErrorObject, NoId, Params, PeerRequest, Trouble, excerpt, take};
use crate::service::Reporter;
use crate::transport::Principal;

/// So little may be left unread when a connection to the server is woken.
const READ_AGAIN: usize = 32 << 10;

/// The loop's service for one client.
pub(super) struct Front {
    state: Arc<FrontState>,
    accept: Accept,
    /// The shared place that was used last.
    shared_slot: Option<Arc<BackSlot>>,
    /// The connections that the last requests went to, for asking whether they have room: the session's
    /// own, and the shared one.
    used: [Option<Arc<BackState>>; 2],
    /// The client's name, once that was told.
    joined: Option<String>,
    /// More than [`MANY`] requests were under way since there was none.
    busy: bool,
    reporter: Reporter,
}

/// When a client has fewer requests under way, they take little memory.
const MANY: usize = 512;

impl Front {
    pub(super) fn new(
        shared: Arc<ProxyShared>,
        link: Link,
        principal: Principal,
        on_stdio: bool,
    ) -> Self {
        // As a server: until a revision is agreed the newest rules hold.
        link.agree(NoId::Absent, false);
        let state = Arc::new(FrontState {
            shared,
            link,
            principal,
            session: Mutex::default(),
            targets: Mutex::default(),
            unread: WakeList::default(),
            closing: Flag::default(),
        });
        Self {
            state,
            accept: Accept::default(),
            shared_slot: None,
            used: [None, None],
            joined: None,
            busy: false,
            reporter: Reporter::new(on_stdio),
        }
    }

    fn dispatch(&mut self, request: PeerRequest<'_>) {
        let meta = request.params.member("_meta");
        let odd = request.params.is_array() || meta.is_some_and(|meta| !meta.is_object());
        let modern = meta.is_some_and(RequestMeta::claims_modern);
        let served = self.state.shared.settings.front_era;
        let session = self.state.session();
        let known = Method::parse(&request.method);
        match (known, session) {
            _ if odd => self.refuse(request),
            _ if modern && served == Some(Era::Legacy) => self.refuse(request),
            _ if modern => self.modern(request),
            (Some(Method::Initialize), _) if served == Some(Era::Modern) => self.refuse(request),
            (Some(Method::Initialize), Some(session)) if session.has_failed() => {
                self.accept = Accept::default();
                self.initialize(request);
            }
            (Some(Method::Initialize), None) => self.initialize(request),
            (Some(Method::Initialize), Some(_)) | (_, None) => self.refuse(request),
            (_, Some(session)) => self.legacy(&session, request),
        }
    }

    /// Tells who the client is, at its first request.
    fn join(&mut self, info: Option<&Implementation>, revision: Revision) {
        if self.joined.is_none() {
            let name = info.map(|info| excerpt(&format!("{} {}", info.name, info.version)));
            let client = name.unwrap_or_else(|| "unnamed".to_owned());
            self.joined = Some(client.clone());
            self.state.shared.tell(&ProxyEvent::Joined { client, revision });
        }
    }

    /// Answers what reaches no server: a ping, or the error that says what is wrong.
    fn refuse(&mut self, request: PeerRequest<'_>) {
        let outcome = match self.accept.judge(&request.method, &request.params) {
            Verdict::Pong => Ok(JsonBuf::copied(&["{}"])),
            Verdict::Refuse(error) => Err(error),
            Verdict::Welcome(_) | Verdict::Serve(..) => Err(self.other_era(&request.params)),
        };
        self.state.link.answer(request.ticket, outcome);
    }

    /// The error for a client of the era that is not served here. It lists what is, so that a client of both
    /// eras goes on in the other one (ERA-04).
    fn other_era(&self, params: &Params<'_>) -> ErrorObject {
        let settings = &self.state.shared.settings;
        let (served, only) = (settings.front_era, settings.front_revision);
        let revisions = Revision::ALL.iter().filter(|revision| Some(revision.era()) == served);
        let revisions = revisions.filter(|revision| only.is_none_or(|only| only == **revision));
        let supported: Vec<_> = revisions.map(ToString::to_string).collect();
        let message = format!("this side speaks {} only", supported.join(", "));
        let asked = params.string("protocolVersion").ok();
        let requested = asked.map_or_else(|| Revision::MODERN.to_string(), Cow::into_owned);
        ErrorObject::new(UNSUPPORTED_PROTOCOL_VERSION, message)
            .with_data(&UnsupportedVersion::new(supported, requested))
    }

    /// The handshake of a legacy session opens a connection to the server, in the client's own words.
    fn initialize(&mut self, request: PeerRequest<'_>) {
        let revision = match self.accept.judge(&request.method, &request.params) {
            Verdict::Welcome(revision) => revision,
            Verdict::Refuse(error) => return self.state.link.answer(request.ticket, Err(error)),
            _ => return self.refuse(request),
        };
        let only = self.state.shared.settings.front_revision;
        let revision = only.unwrap_or(revision);
        let asker = self.accept.session().map(|terms| terms.asker.clone()).unwrap_or_default();
        let initialize = request.params.raw().map(|raw| {
            let completed = completed(JsonRef::from(raw), asker.info.as_ref());
            let params = completed.as_deref().map_or_else(|| JsonRef::from(raw), JsonRef::sound);
            match only {
                Some(only) => RawJson::from(JsonRef::sound(&at_revision(params, only))),
                None => RawJson::from(params),
            }
        });
        self.join(asker.info.as_ref(), revision);
        let identity = Identity {
            era: Era::Legacy,
            initialize: initialize.map(|params| (revision, params)),
            info: asker.info.clone(),
            capabilities: asker.capabilities.clone(),
        };
        let shared = &self.state.shared;
        let slot = match shared.settings.children {
            Some(_) => shared.shared_slot(&self.state.principal, || identity.clone()),
            None => BackSlot::new(shared, identity, true),
        };
        let max_followed = shared.settings.max_subscription_bytes;
        let session = Arc::new(LegacySession::new(slot.clone(), asker, max_followed));
        *lock(&self.state.session) = Some(session.clone());
        let (front, ticket) = (self.state.clone(), request.ticket);
        let pinned = only.is_some() || shared.settings.client.settings.revision.is_some();
        slot.run(
            0,
            Box::new(move |back| {
                let outcome = match back {
                    Ok(back) => Ok(agree(&front, &session, back, revision, pinned)),
                    Err(error) => {
                        session.fail();
                        Err(error.clone())
                    }
                };
                let agreed = outcome.is_ok();
                front.link.answer(ticket, outcome);
                // Not before: nothing the server says reaches a client whose handshake is not answered.
                if agreed {
                    session.slot.attach(&front);
                }
            }),
        );
    }

    fn legacy(&mut self, session: &Arc<LegacySession>, request: PeerRequest<'_>) {
        let served = session.clone();
        self.forward(0, &session.slot, request, move |front, back, request| {
            serve_legacy(front, &served, back, request);
        });
    }

    /// Serves a request now, or when there is a connection. `place` is the one in `used`.
    fn forward(
        &mut self,
        place: usize,
        slot: &Arc<BackSlot>,
        request: PeerRequest<'_>,
        serve: impl FnOnce(&Arc<FrontState>, &Arc<Back>, PeerRequest<'_>) + Send + 'static,
    ) {
        let Some(back) = slot.ready() else { return wait(slot, &self.state, request, serve) };
        keep(&mut self.used[place], &back);
        serve(&self.state, &back, request);
    }

    fn modern(&mut self, request: PeerRequest<'_>) {
        self.accept.saw_modern();
        if self.joined.is_none() {
            self.join(info_of(&request.params).as_ref(), Revision::MODERN);
        }
        let state = &self.state;
        let request_state = request.params.member("requestState").and_then(JsonRef::string);
        let routed = request_state.as_deref().and_then(|text| state.shared.route(text));
        let slot = routed.unwrap_or_else(|| {
            state.shared.shared_slot(&state.principal, || identity_of(&request.params))
        });
        let owner = Arc::downgrade(&slot);
        self.forward(1, &slot, request, move |front, back, request| {
            if let Some(slot) = owner.upgrade() {
                serve_modern(front, &slot, back, request);
            }
        });
        self.shared_slot = Some(slot);
    }
}

/// Remembers where a request went.
fn keep(used: &mut Option<Arc<BackState>>, back: &Arc<Back>) {
    if !used.as_ref().is_some_and(|used| Arc::ptr_eq(used, &back.state)) {
        *used = Some(back.state.clone());
    }
}

/// Keeps a request until there is a connection.
fn wait(
    slot: &Arc<BackSlot>,
    front: &Arc<FrontState>,
    request: PeerRequest<'_>,
    serve: impl FnOnce(&Arc<FrontState>, &Arc<Back>, PeerRequest<'_>) + Send + 'static,
) {
    let request = request.into_owned();
    let size = request.params.raw().map_or(0, |raw| raw.get().len());
    let front = front.clone();
    slot.run(
        size,
        Box::new(move |back| match back {
            Ok(back) if front.link.is_live(request.ticket.id(), request.ticket.serial()) => {
                serve(&front, back, request);
            }
            // Withdrawn while it waited: the ticket goes back, and nothing is written.
            Ok(_) => front.link.answer(request.ticket, Err(ErrorObject::internal("withdrawn"))),
            Err(error) => front.link.answer(request.ticket, Err(error.clone())),
        }),
    );
}

fn serve_legacy(
    front: &Arc<FrontState>,
    session: &Arc<LegacySession>,
    back: &Arc<Back>,
    request: PeerRequest<'_>,
) {
    if back.is_modern() {
        return to_modern::serve(front, session, back, request);
    }
    session.note(Method::parse(&request.method), &request.params);
    relay(front, back, request, session.revision(), None);
}

fn serve_modern(
    front: &Arc<FrontState>,
    slot: &Arc<BackSlot>,
    back: &Arc<Back>,
    request: PeerRequest<'_>,
) {
    if !back.is_modern() {
        return to_legacy::serve(front, back, request);
    }
    let pool = front.shared.settings.children.is_some_and(|children| children > 1);
    relay(front, back, request, Revision::MODERN, pool.then_some(slot));
}

impl Service for Front {
    fn takes_over(&self) -> bool {
        true
    }

    fn take_over(&mut self, request: PeerRequest<'_>) {
        self.dispatch(request);
    }

    /// Every request is taken over.
    fn request(&mut self, request: IncomingRequest<'_>) -> AnswerFuture {
        ready(Err(ErrorObject::method_not_found(request.method)))
    }

    fn notification(&mut self, method: &str, params: &Params<'_>) {
        let known = Method::parse(method);
        let Some(session) = self.state.session() else {
            // What modern clients may tell in later revisions goes to a server that speaks theirs.
            if let Some(back) = self.shared_slot.as_ref().and_then(|slot| slot.ready())
                && back.is_modern()
            {
                let params = params.raw();
                let _ = back.link.notify(None, method, params.as_ref().map(|params| params as _));
            }
            return;
        };
        let text = params.raw().map(|raw| raw.get().to_owned());
        let size = text.as_ref().map_or(0, String::len);
        let (front, method, slot) = (self.state.clone(), method.to_owned(), session.slot.clone());
        if let Some(back) = slot.ready() {
            keep(&mut self.used[0], &back);
        }
        slot.run(
            size,
            Box::new(move |back| {
                let said = known == Some(Method::Initialized)
                    && session.initialized.swap(true, Ordering::AcqRel);
                // It is ready, whether or not there is a server now: the next one is told.
                let Ok(back) = back else { return };
                if known == Some(Method::Initialized) {
                    if said {
                        return;
                    }
                    if back.is_modern() {
                        return session.clone().open_stream(front, back.clone());
                    }
                    if !session.slot.dedicated {
                        return;
                    }
                }
                if !back.is_modern() {
                    let text = text.map(JsonText);
                    let _ = back.link.notify(None, &method, text.as_ref().map(|text| text as _));
                }
            }),
        );
    }

    fn withdrawn(&mut self, serial: u64) {
        let target = take(&mut self.state.targets(), &serial);
        withdraw(target);
    }

    fn has_room(&mut self) -> bool {
        !self.used.iter().flatten().any(|used| used.is_crowded(&self.state.link))
    }

    fn pump(&mut self) -> bool {
        let under_way = self.state.targets().len();
        if under_way > MANY {
            self.busy = true;
        } else if under_way == 0 && std::mem::take(&mut self.busy) {
            self.state.shared.tell(&ProxyEvent::Calm);
        }
        let FrontState { unread, link, .. } = &*self.state;
        if !unread.is_empty() && link.output_waiting() <= READ_AGAIN {
            unread.wake();
        }
        false
    }

    fn input_ended(&mut self) {
        // SUB-14: an open stream does not keep the process.
        self.state.closing.raise();
    }

    fn trouble(&mut self, trouble: &Trouble) {
        self.reporter.trouble(trouble);
    }

    fn blocked(&mut self, method: &str, _: &Params<'_>, took: Duration) {
        tracing::warn!(method, ?took, "relaying kept the connection waiting");
    }
}

fn withdraw(target: Option<InFlight>) {
    match target {
        Some(InFlight::Call(link, call)) => link.cancel(call, "no longer wanted"),
        Some(InFlight::Task(task)) => task.abort(),
        None => {}
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.state.closing.raise();
        let targets = std::mem::take(&mut *self.state.targets());
        targets.into_values().for_each(|target| withdraw(Some(target)));
        self.state.unread.wake();
        if let Some(client) = self.joined.take() {
            self.state.shared.tell(&ProxyEvent::Left { client });
        }
        let session = lock(&self.state.session).take();
        if let Some(session) = session
            && self.state.shared.settings.children.is_none()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move { session.slot.close().await });
        }
    }
}
