//! What a server says unasked: questions, log lines, changes.
//!
//! Knows to whom a question, a log line or a change belongs; must not know how a
//! connection is opened. stdio has no link between a question and a call, so a question belongs to the
//! only call that is open, or waits until only one is.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::calls::CROWDED;
use super::state::{
    Asked, BackState, CallKind, FrontRequest, FrontState, HeldQuestion, HeldQuestions, InFlight,
    ProxiedCall, WayToAsk,
};
use super::text::{JsonText, with_token};
use super::translate::{object_of, progress_token, relayed_params, without};
use crate::client::{Relay, SessionState, list_changes};
use crate::driver::{
    AnswerFuture, Either, IncomingRequest, Link, Outcome, Watcher, first, now, ready,
};
use crate::json::edit::{Edit, around, edited};
use crate::json::{JsonBuf, JsonRef};
use crate::lock::lock;
use crate::mcp::{Level, Method, ServerCapabilities, meta_keys};
use crate::rpc::{CallId, ErrorObject, Id, Params, take};

/// So much may wait to be sent to the only client of a server before the server is no longer read.
const CLIENT_CROWDED: usize = 128 << 10;

/// How long a question that comes with the handshake waits for its end: the proxy only has to take the answer in. A
/// server that asks before it answers is held up that long.
const OPENING: Duration = Duration::from_secs(1);

/// What a question takes beside its params.
const QUESTION: usize = 256;

impl Drop for HeldQuestion {
    fn drop(&mut self) {
        let mut held = lock(&self.state.held);
        held.count -= 1;
        held.bytes -= self.size;
    }
}

impl BackState {
    /// Counts a question with params of this size, if there is room for it.
    ///
    /// # Errors
    /// The error for the server, which names the bounds.
    pub(super) fn hold(self: &Arc<Self>, params: usize) -> Result<HeldQuestion, ErrorObject> {
        let Some(shared) = self.shared.upgrade() else {
            return Err(ErrorObject::internal("the proxy has ended"));
        };
        let (max, max_bytes) = (shared.settings.max_held, shared.settings.max_held_bytes);
        let mut held = lock(&self.held);
        let HeldQuestions { count, bytes } = &mut *held;
        if *count >= max || *bytes >= max_bytes {
            return Err(ErrorObject::internal(format!(
                "too many questions wait for answers: {count} of {max} questions, {bytes} of \
                 {max_bytes} bytes (ProxyBuilder::questions)"
            )));
        }
        let size = params + QUESTION;
        *count += 1;
        *bytes += size;
        Ok(HeldQuestion { state: self.clone(), size })
    }

    /// The only client, where there is one: a legacy session that shares the connection with nobody.
    fn only_session(&self) -> Option<Arc<FrontState>> {
        self.sessions.owner.get()?;
        lock(&self.sessions.fronts).first().and_then(Weak::upgrade)
    }

    /// The request that something belongs to, if only one is open. One that waits for its client counts
    /// only where there is no other: its server waits as well.
    fn only_call(&self) -> Option<ProxiedCall> {
        let calls = self.calls();
        let of = |parked: bool| {
            let requests = calls.values().filter(|call| matches!(call.kind, CallKind::Request));
            let mut found = requests.filter(|call| call.parked == parked);
            (found.next(), found.next())
        };
        match (of(false), of(true)) {
            ((Some(only), None), _) | ((None, _), (Some(only), None)) => Some(only.clone()),
            _ => None,
        }
    }

    /// The same for what may not reach a client by mistake, and came at this time: nothing may belong to another
    /// client's call that was withdrawn.
    fn certain_call(&self, at: Instant) -> Option<ProxiedCall> {
        let call = self.only_call()?;
        let hidden = lock(&self.ghosts).hides_other(&call.request.front, at);
        (!hidden).then_some(call)
    }

    /// The call that a question belongs to: the only one, or the one that is left in time.
    async fn whose(&self) -> Result<ProxiedCall, ErrorObject> {
        let limit = self.shared.upgrade().map(|shared| shared.settings.attribution);
        let came = now();
        let found = async {
            loop {
                let mut changed = std::pin::pin!(self.changed.notified());
                changed.as_mut().enable();
                if let Some(call) = self.certain_call(came) {
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
                "nobody can be asked: several requests are under way, or one was cancelled just now, and nothing \
                 tells to which of them the question belongs; --serial sends one at a time",
            )),
        }
    }

    /// Whether the answer to a question for roots is known: none of the clients that it may be meant for has any.
    fn has_no_roots(&self) -> bool {
        let calls = self.calls();
        let mut requests =
            calls.values().filter(|call| matches!(call.kind, CallKind::Request)).peekable();
        match requests.peek() {
            None => !self.promised_roots,
            Some(_) => requests.all(|call| !call.has_roots()),
        }
    }

    /// Tells every client of a change of every list, because some may have been missed.
    pub(super) fn tell_all_changed(&self, offer: &ServerCapabilities) {
        let told = list_changes(offer);
        let lists = [
            (told.tools_list_changed, Method::ToolsChanged),
            (told.prompts_list_changed, Method::PromptsChanged),
            (told.resources_list_changed, Method::ResourcesChanged),
        ];
        for (_, method) in lists.iter().filter(|(told, _)| *told == Some(true)) {
            for front in self.sessions.all() {
                let _ = front.link.notify(None, method.as_str(), None);
            }
            self.streams.tell(*method, None);
        }
    }

    /// A notification, now that the connection is ready for clients.
    pub(super) fn hear(&self, method: &str, params: &Params<'_>) {
        match self.revision.get() {
            Some(revision) if revision.is_modern() => self.modern_notification(method, params),
            _ => self.legacy_notification(method, params),
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
        if known == Some(Method::Cancelled) {
            // It came too late for its question, and its id means something else to a client.
            return;
        }
        for front in self.sessions.all() {
            forward(&front, self.about(&front).as_ref(), method, params);
        }
    }

    /// The request that an unmarked message to this client most likely belongs to.
    fn about(&self, front: &Arc<FrontState>) -> Option<Id> {
        let call = self.only_call().filter(|call| Arc::ptr_eq(&call.request.front, front));
        call.map(|call| call.request.id)
    }

    /// A log line goes to the session that is alone here, or to the only request that wants lines, unless it may
    /// be another client's: that one's line is nobody's to see.
    fn log(&self, params: &Params<'_>) {
        if let Some(front) = self.only_session() {
            let about = self.about(&front);
            return forward(&front, about.as_ref(), Method::Message.as_str(), params);
        }
        let level: Option<Level> = params.optional("level").ok().flatten();
        let only = {
            let calls = self.calls();
            let wants = |call: &&ProxiedCall| match (&call.level, &level) {
                (Some(least), Some(level)) => level >= least,
                (None, _) => call.request.front.session().is_some(),
                _ => false,
            };
            let requests = || calls.values().filter(|call| matches!(call.kind, CallKind::Request));
            let mut wanting = requests().filter(wants);
            let (Some(only), None) = (wanting.next(), wanting.next()) else { return };
            let front = &only.request.front;
            // A modern server logs for requests that want it and for no others, and is silent about one that was cancelled.
            // The server of a parked call waits.
            let modern = self.revision.get().is_some_and(|revision| revision.is_modern());
            let of_other = |call: &ProxiedCall| {
                let may = wants(&call) || !modern;
                may && !call.parked && !Arc::ptr_eq(&call.request.front, front)
            };
            if requests().any(of_other) || (!modern && lock(&self.ghosts).hides_other(front, now()))
            {
                return;
            }
            only.clone()
        };
        only.request.tell(Method::Message.as_str(), object_of(params).text().to_owned());
    }

    /// A modern server ends a stream of changes (CAN-11). It cancels nothing else.
    fn stream_ended(&self, params: &Params<'_>) {
        let Some(written) = params.member("requestId") else { return };
        match number(written).and_then(|number| self.call(number)) {
            Some(ProxiedCall { request, kind: CallKind::Listen, .. }) => {
                request.tell(Method::Cancelled.as_str(), renamed(params, written, &request.id));
                // It has had its end, and gets no answer.
                request.front.link.forget(&request.id);
                let target = take(&mut request.front.targets(), &request.serial);
                if let Some(InFlight::Task(task)) = target {
                    task.abort();
                }
            }
            Some(ProxiedCall { kind: CallKind::SessionListen(stream), .. }) => stream.ended.raise(),
            _ => {}
        }
    }

    /// A notification of a modern server.
    fn modern_notification(&self, method: &str, params: &Params<'_>) {
        let known = Method::parse(method);
        if known == Some(Method::Message) {
            return self.log(params);
        }
        if known == Some(Method::Cancelled) {
            return self.stream_ended(params);
        }
        let meta = params.member("_meta").filter(|meta| meta.is_object());
        let tag = meta.and_then(|meta| meta.member(meta_keys::SUBSCRIPTION_ID));
        match tag.and_then(number).and_then(|number| self.call(number)) {
            Some(ProxiedCall { request, kind: CallKind::Listen, .. }) => {
                request.tell(method, renamed(params, tag.unwrap_or_default(), &request.id));
            }
            Some(ProxiedCall { request, kind: CallKind::SessionListen(stream), .. }) => {
                let Some(session) = request.front.session() else { return };
                let mut heard = lock(&session.heard);
                if known == Some(Method::Acknowledged) {
                    let filter = params.member("notifications").map_or("{}", JsonRef::text);
                    *heard = Some(stream.clone());
                    let ack = lock(&stream.ack).take();
                    if let Some(ack) = ack {
                        let _ = ack.send(filter.to_owned());
                    }
                } else if heard.as_ref().is_some_and(|heard| Arc::ptr_eq(heard, &stream)) {
                    let text = JsonText(untagged(params));
                    let _ = request.front.link.notify(None, method, Some(&text));
                }
            }
            _ if tag.is_some() => {}
            // What is new to us is passed on where it is clear to whom.
            _ => {
                if let Some(call) = self.certain_call(now()) {
                    call.request.tell(method, object_of(params).text().to_owned());
                }
            }
        }
    }
}

/// The number that a server names one of our calls by.
fn number(id: JsonRef<'_>) -> Option<u64> {
    id.text().trim_matches('"').parse().ok()
}

/// The params of a notification with the client's own id in the place of ours.
fn renamed(params: &Params<'_>, written: JsonRef<'_>, id: &Id) -> String {
    around(object_of(params).text(), written.text(), id.as_json()).concat()
}

/// The params of a notification without what marks it as part of a stream.
fn untagged(params: &Params<'_>) -> String {
    let change = |name: &str, value: JsonRef<'_>| match name {
        "_meta" if value.is_object() => match without(value, &[meta_keys::SUBSCRIPTION_ID], &[]) {
            empty if empty == "{}" => Edit::Drop,
            meta => Edit::Put(meta),
        },
        _ => Edit::Keep,
    };
    edited(object_of(params), change, &[])
}

/// Passes a notification on as it is.
fn forward(front: &FrontState, about: Option<&Id>, method: &str, params: &Params<'_>) {
    let params = params.raw();
    let _ = front.link.notify(about, method, params.as_ref().map(|params| params as _));
}

impl Relay for BackState {
    fn request(self: Arc<Self>, request: IncomingRequest<'_>) -> AnswerFuture {
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
        let opened = self.opened.is_raised();
        let only = self.only_session().filter(|_| opened);
        let about = only.as_ref().and_then(|front| self.about(front));
        let held = match self.hold(params.raw().map_or(0, |raw| raw.get().len())) {
            Ok(held) => held,
            Err(error) => return ready(Err(error)),
        };
        Box::pin(async move {
            let asking = async {
                let (mut only, mut about) = (only, about);
                if !opened {
                    // A server may ask as soon as it has answered the handshake. One that asks before waits in vain.
                    let opened = tokio::time::timeout(OPENING, self.opened.raised()).await;
                    opened.map_err(|_| {
                        ErrorObject::internal("nobody can be asked: the handshake is not over")
                    })?;
                    only = self.only_session();
                    about = only.as_ref().and_then(|front| self.about(front));
                }
                if let Some(front) = only {
                    let _held = held;
                    return ask(&front, about.as_ref(), &method, &params, &back).await;
                }
                let no_roots = || Ok(JsonBuf::copied(&["{\"roots\":[]}"]));
                if known == Some(Method::ListRoots) && self.has_no_roots() {
                    return no_roots();
                }
                let call = self.whose().await?;
                match (&call.questions, known) {
                    (_, Some(Method::ListRoots)) if !call.has_roots() => no_roots(),
                    (WayToAsk::Inside(asked), Some(method)) if method.is_embedded_in_modern() => {
                        let (reply, answer) = oneshot::channel();
                        let params = params.raw().map(|raw| raw.get().to_owned());
                        let _ = asked.send(Asked { _held: held, method, params, reply });
                        let gone = || ErrorObject::internal("the client did not answer");
                        answer.await.unwrap_or_else(|_| Err(gone()))
                    }
                    (WayToAsk::Inside(_), _) => Err(ErrorObject::method_not_found(&method)),
                    (WayToAsk::Refused, _) => Err(ErrorObject::internal(
                        "nobody can be asked: the only request under way is one of 2026-07-28 whose \
                         result has no place for questions",
                    )),
                    (WayToAsk::Requests, _) => {
                        let FrontRequest { front, id, .. } = &call.request;
                        ask(front, Some(id), &method, &params, &back).await
                    }
                }
            };
            match first(asking, cancelled.raised()).await {
                Either::First(outcome) => outcome,
                Either::Second(()) => Err(ErrorObject::internal("the question was withdrawn")),
            }
        })
    }

    fn notification(&self, from: &Arc<SessionState>, method: &str, params: &Params<'_>) {
        if !self.keep_early(from, method, params) {
            self.hear(method, params);
        }
    }

    fn late(&self, call: u64) {
        if lock(&self.ghosts).answered(call) {
            self.changed.notify_waiters();
        }
    }

    fn pump(&self) {
        if !self.waiting.is_empty()
            && self.link.get().is_some_and(|link| link.output_waiting() <= CROWDED / 2)
        {
            self.waiting.wake();
        }
    }

    fn has_room(&self) -> bool {
        if self.sessions.owner.get().is_none_or(|client| client.output_waiting() <= CLIENT_CROWDED)
        {
            return true;
        }
        let (Some(own), Some(front)) = (self.link.get(), self.only_session()) else { return true };
        front.unread.add(own);
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
            if let Some(text) = with_token(JsonRef::from(params), &token) {
                let _ = back.notify(None, Method::Progress.as_str(), Some(&JsonText(text)));
            }
        });
        watch
    });
    let params = |call: CallId| {
        let token = call.number().to_string();
        relayed_params(params, &token).map(|pieces| JsonText(pieces.concat()))
    };
    front.ask(about, method, params, watcher).await
}
