//! Messages between a client and a server of the same era: only ids and progress tokens change.
//!
//! Knows how to patch both in place; must not know what a message says otherwise. The answer is written
//! to the client on the server's own loop, so that messages keep the order in which the server sent them.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::state::{
    Back, BackSlot, CallKind, FrontRequest, FrontState, InFlight, ProxiedCall, WayToAsk,
};
use super::text::{no_answer, raw_outcome};
use super::translate::{adapted_result, progress_token, relayed_params, with_progress_token};
use crate::driver::{Either, Outcome, first};
use crate::json::edit::around;
use crate::json::{JsonBuf, JsonRef, quote};
use crate::mcp::{Level, Method, RequestMeta, Revision, meta_keys};
use crate::rpc::{Failure, Id, Params, PeerRequest};

/// Relays a request whose client and server speak the same era.
pub(super) fn relay(
    front: &Arc<FrontState>,
    back: &Arc<Back>,
    request: PeerRequest<'_>,
    revision: Revision,
    pool: Option<&Arc<BackSlot>>,
) {
    let PeerRequest { ticket, method, params, .. } = request;
    let known = Method::parse(&method);
    let listen = known == Some(Method::Listen);
    // Read once: to walk over its members costs as much as to write the request.
    let meta = params.member("_meta").map(RequestMeta::read).unwrap_or_default();
    let level = meta.log_level.filter(|_| revision.is_modern());
    let level: Option<Level> = level.and_then(|level| level.read().ok());
    let kind = if listen { CallKind::Listen } else { CallKind::Request };
    let request = FrontRequest::new(front, &ticket);
    let call = ProxiedCall { level, kind, ..ProxiedCall::new(request, WayToAsk::Requests) };
    if listen || back.gate.is_some() {
        let relayed = slowly(call, back.clone(), method.into_owned(), params.into_owned());
        return front.spawn(ticket, relayed);
    }
    let written = meta.progress_token;
    let watcher = written.map(|token| call.request.watcher(token));
    let (serial, owed) = (ticket.serial(), front.owe(ticket));
    let pool = pool.map(Arc::downgrade);
    let number = back.link.reserve_call();
    front.add(serial, InFlight::Call(back.link.clone(), number));
    let mut guard = back.state.enter(number.number(), call);
    let (answered, owner) = (front.clone(), Arc::downgrade(back));
    let older = (revision < back.revision()).then_some(revision);
    let name: Cow<'static, str> = match known {
        Some(known) => known.as_str().into(),
        None => method.clone().into_owned().into(),
    };
    let waiter = move |outcome: Result<&RawValue, Failure>| {
        guard.answered = true;
        drop(guard);
        answered.done(serial);
        if let (Ok(raw), Some(slot)) = (&outcome, pool.and_then(|slot| slot.upgrade())) {
            let state = JsonRef::from(*raw).member("requestState").and_then(JsonRef::string);
            if let Some(state) = state {
                answered.shared.remember(&state, &slot);
            }
        }
        let lost = || match owner.upgrade() {
            Some(back) => back.lost(&name),
            None => no_answer("lost", "the connection to the server is closed", true),
        };
        let outcome = match (outcome, older) {
            (Ok(raw), Some(revision)) => {
                Ok(JsonBuf::copied(&[&adapted_result(known, JsonRef::from(raw), revision)]))
            }
            (outcome, _) => raw_outcome(outcome, lost),
        };
        owed.answer(outcome);
    };
    let token = number.number().to_string();
    let write = |out: &mut Vec<u8>, id: &Id| {
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        out.extend_from_slice(id.as_bytes());
        out.extend_from_slice(b",\"method\":");
        quote(out, &method);
        if let Some(raw) = params.raw() {
            let pieces = with_progress_token(raw.get(), written, &token);
            out.extend_from_slice(b",\"params\":");
            pieces.iter().for_each(|piece| out.extend_from_slice(piece.as_bytes()));
        }
        out.push(b'}');
    };
    back.link.start_call(number, None, &method, write, watcher, Box::new(waiter));
}

/// Relays a request in a task of its own: one that has to wait for its turn, or a stream of changes, which
/// also ends when the client closes its end.
async fn slowly(
    call: ProxiedCall,
    back: Arc<Back>,
    method: String,
    params: Params<'static>,
) -> Outcome {
    let listen = matches!(call.kind, CallKind::Listen);
    let _turn = if listen { None } else { back.turn().await };
    let (closing, id) = (call.request.front.closing.clone(), call.request.id.clone());
    let watcher = progress_token(&params).map(|token| call.request.watcher(token));
    let text = |token: &str| {
        relayed_params(&params, token).map_or_else(|| "{}".into(), |text| text.concat())
    };
    let mut calling = back.call(call, &method, text, watcher);
    if !listen {
        return calling.answer().await;
    }
    // SUB-14: an open stream does not keep the process.
    match first(calling.answer(), closing.raised()).await {
        Either::First(outcome) => outcome.map(|result| end_of_listen(result.as_json(), &id)),
        Either::Second(()) => {
            let tag = format!("{{\"{}\":{}}}", meta_keys::SUBSCRIPTION_ID, id.as_json());
            Ok(JsonBuf::copied(&["{\"resultType\":\"complete\",\"_meta\":", &tag, "}"]))
        }
    }
}

/// The result that ends a stream of changes, under the client's own id.
fn end_of_listen(result: JsonRef<'_>, id: &Id) -> JsonBuf {
    let tag = result.member("_meta").and_then(|meta| meta.member(meta_keys::SUBSCRIPTION_ID));
    match tag {
        Some(tag) => JsonBuf::copied(&around(result.text(), tag.text(), id.as_json())),
        None => JsonBuf::copied(&[result.text()]),
    }
}
