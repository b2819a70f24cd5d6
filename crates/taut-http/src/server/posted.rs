//! What the body of a POST holds, told apart before anybody serves it.
//!
//! Knows the JSON-RPC envelope and the era of a request; must not know sessions. HTP-05, HTP-06,
//! ERH-04.

use http::StatusCode;
use http::request::Parts;
use serde_json::value::RawValue;
use taut::Revision;
use taut::rpc::{ErrorObject, Fault, Id, Malformed, Message, Messages, code};
use taut::types::{ParameterHeader, claimed_version, method_names};

use super::guard::single;
use super::modern::ModernRequest;
use super::refusal::Refusal;
use crate::headers;

/// What was posted.
pub(super) enum Posted {
    Request {
        id: Id,
        /// Whether it opens a session.
        opens: bool,
    },
    /// A notification, or a response.
    Other,
    Batch(Vec<Entry>),
}

/// One entry of an array.
pub(super) enum Entry {
    Message {
        /// The id, if it is a request.
        id: Option<Id>,
        json: Vec<u8>,
    },
    Malformed {
        /// The id, if it could be read.
        id: Option<Id>,
        error: ErrorObject,
    },
}

/// Who serves what was posted.
pub(super) enum Era {
    Legacy(Posted),
    /// A modern request that was checked.
    Modern {
        id: Id,
        /// Whether it lists tools.
        lists: bool,
    },
    /// A notification of the modern revision, which has no meaning over HTTP (HTP-12).
    Ignored,
}

/// The error for what is no message. Here a message may span lines, so one that does not end is no JSON.
fn fault(kind: Fault) -> ErrorObject {
    let kind = if kind == Fault::SpansLines { Fault::Json } else { kind };
    ErrorObject::new(kind.code(), kind.to_string())
}

/// The refusal of a body that is no message (HTP-07, HTP-11).
pub(super) fn malformed(malformed: &Malformed) -> Refusal {
    Refusal::with_error(StatusCode::BAD_REQUEST, fault(malformed.kind)).of(malformed.id.as_ref())
}

/// Tells eras apart (ERH-04) and checks what belongs to a modern request. `parameters` says which
/// parameters of a tool are repeated in headers.
pub(super) fn judge(
    head: &Parts,
    body: &[u8],
    parameters: impl FnOnce(&str) -> Vec<ParameterHeader>,
) -> Result<Era, Refusal> {
    let version = single(&head.headers, &headers::PROTOCOL_VERSION)?;
    let says_modern = version == Some(Revision::MODERN.as_str());
    match taut::rpc::read(body).map_err(|error| malformed(&error))? {
        Messages::One(Message::Request { id, method, params }) => {
            let opens = method == method_names::INITIALIZE;
            let claims = claimed_version(&params).is_some();
            if claims || (says_modern && !opens) {
                let request = ModernRequest { id: &id, method: &method, params: &params };
                request.check(&head.headers, parameters)?;
                return Ok(Era::Modern { lists: method == method_names::LIST_TOOLS, id });
            }
            Ok(Era::Legacy(Posted::Request { id, opens }))
        }
        Messages::One(Message::Notification { .. }) if says_modern => Ok(Era::Ignored),
        Messages::One(_) if says_modern => Err(Refusal::bad_request(
            "2026-07-28 has no requests of the server, and so no responses of the client",
        )),
        Messages::Batch(_) if says_modern => Err(Refusal::bad_request(
            "an array is no message in 2026-07-28: send each message in a POST of its own",
        )),
        Messages::One(_) => Ok(Era::Legacy(Posted::Other)),
        Messages::Batch(_) => entries(body).map(|entries| Era::Legacy(Posted::Batch(entries))),
        _ => Err(Refusal::bad_request("this kind of message is not served")),
    }
}

/// The messages of an array, which was read once already.
pub(super) fn entries(body: &[u8]) -> Result<Vec<Entry>, Refusal> {
    let not_json = |_| {
        let error = ErrorObject::new(code::PARSE_ERROR, "not JSON");
        Refusal::with_error(StatusCode::BAD_REQUEST, error)
    };
    let raw: Vec<&RawValue> = serde_json::from_slice(body).map_err(not_json)?;
    raw.into_iter().map(|raw| entry(raw.get())).collect()
}

fn entry(text: &str) -> Result<Entry, Refusal> {
    Ok(match taut::rpc::read(text.as_bytes()) {
        Ok(Messages::One(Message::Request { method, .. }))
            if method == method_names::INITIALIZE =>
        {
            return Err(Refusal::bad_request("initialize must not be part of an array"));
        }
        Ok(Messages::One(Message::Request { id, .. })) => {
            Entry::Message { id: Some(id), json: text.into() }
        }
        Ok(Messages::One(_)) => Entry::Message { id: None, json: text.into() },
        Ok(_) => Entry::Malformed {
            id: None,
            error: ErrorObject::invalid_request("an array in an array"),
        },
        Err(Malformed { kind, id, .. }) => Entry::Malformed { id, error: fault(kind) },
    })
}
