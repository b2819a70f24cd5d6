//! One frame → one message, read in a single pass, with params and results left raw.
//!
//! Knows the JSON-RPC 2.0 envelope and its five codes; must not know any method. What it decides:
//!
//! | frame | outcome |
//! |---|---|
//! | not UTF-8, not JSON, bytes after the value | −32700 |
//! | `method` with an id | request |
//! | `method` without an id | notification |
//! | `result` or `error`, no `method` | response: matched or dropped, never answered |
//! | anything else | −32600, with the id if one can be read |

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::error::{ErrorObject, code};
use super::id::Id;
use super::params::Params;
use super::quick;
use crate::json::JsonRef;

/// The most entries in a batch. More is a flood, not a batch.
pub const MAX_BATCH: usize = 1_000;

/// A well-formed message.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Message<'a> {
    /// Wants an answer.
    Request {
        /// Repeated in the answer.
        id: Id,
        /// What is wanted.
        method: Cow<'a, str>,
        /// Its params, not yet parsed.
        params: Params<'a>,
    },
    /// Wants none.
    Notification {
        /// What happened.
        method: Cow<'a, str>,
        /// Its params, not yet parsed.
        params: Params<'a>,
    },
    /// Answers a request of ours, or reports an error that belongs to none.
    Response {
        /// Whose answer it is; absent or null in the message is `None`.
        id: Option<Id>,
        /// The answer.
        outcome: Result<&'a RawValue, ErrorObject>,
    },
}

/// What a frame held.
#[derive(Debug)]
#[non_exhaustive]
pub enum Incoming<'a> {
    /// One message.
    One(Message<'a>),
    /// Several, in an array; each good or bad on its own.
    Batch(Vec<Result<Message<'a>, Malformed>>),
}

/// Why a frame is not a message.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Malformed {
    /// What is wrong.
    pub kind: Fault,
    /// Whose message it would have been, if that can be read.
    pub id: Option<Id>,
}

/// What is wrong with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Not UTF-8.
    Encoding,
    /// Not JSON.
    Json,
    /// A value that starts on this line and does not end there.
    SpansLines,
    /// JSON, but not an object.
    NotAnObject,
    /// An array with nothing in it.
    EmptyBatch,
    /// An array with too much in it.
    LongBatch,
    /// An array where none is allowed.
    BatchRefused,
    /// `jsonrpc` is missing or not `"2.0"`.
    Version,
    /// A member that counts occurs twice.
    Duplicate,
    /// The id is neither a string nor an integer, or too long.
    BadId,
    /// `method` is not a string.
    BadMethod,
    /// `params` is neither an object nor an array.
    BadParams,
    /// `method` together with `result` or `error`.
    Hybrid,
    /// None of `method`, `result` and `error`.
    Neither,
    /// A response that cannot be used: both outcomes, or an `error` without code and message.
    BadResponse,
    /// A response whose `jsonrpc` is missing or not `"2.0"`.
    ResponseVersion,
    /// A notification whose `params` is neither an object nor an array.
    BadNotification,
    /// Over the limit.
    TooLong,
    /// A header block that names no body.
    Header,
}

impl Malformed {
    pub(crate) fn new(kind: Fault) -> Self {
        Self { kind, id: None }
    }

    /// Whether it may be answered at all: a response, however broken, never is, nor is a
    /// notification.
    #[must_use]
    pub fn is_answerable(&self) -> bool {
        !self.kind.is_response() && self.kind != Fault::BadNotification
    }
}

impl Fault {
    /// Whether it is a response that is broken.
    pub(crate) const fn is_response(self) -> bool {
        matches!(self, Self::BadResponse | Self::ResponseVersion)
    }

    /// The code that answers it.
    #[must_use]
    pub fn code(self) -> i64 {
        match self {
            Self::Encoding | Self::Json | Self::SpansLines | Self::Header => code::PARSE_ERROR,
            _ => code::INVALID_REQUEST,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Encoding => "not UTF-8",
            Self::Json => "not JSON",
            Self::SpansLines => "message spans lines: write each message on one line",
            Self::NotAnObject => "a message is a JSON object",
            Self::EmptyBatch => "empty batch",
            Self::LongBatch => "batch of more than 1000 messages",
            Self::BatchRefused => "batches are not allowed here",
            Self::Version | Self::ResponseVersion => "jsonrpc is not \"2.0\"",
            Self::Duplicate => "a member occurs twice",
            Self::BadId => "id is not a string or an integer of at most 1024 bytes",
            Self::BadMethod => "method is not a string",
            Self::BadParams => "params is not an object or an array",
            Self::Hybrid => "method together with result or error",
            Self::Neither => "no method, result or error",
            Self::BadResponse => "response without a usable result or error",
            Self::BadNotification => "params of a notification is not an object or an array",
            Self::TooLong => "message too long",
            Self::Header => "bad header",
        })
    }
}

/// Reads one frame.
///
/// # Errors
/// What is wrong with it, and whose it was where that can be read.
pub fn read(bytes: &[u8]) -> Result<Incoming<'_>, Malformed> {
    // Once for the whole frame: serde_json does not look inside the members it skips (F8).
    let text = std::str::from_utf8(bytes).map_err(|_| Malformed::new(Fault::Encoding))?;
    match text.trim_ascii_start().as_bytes().first() {
        Some(b'{') => read_object(text).map(Incoming::One),
        Some(b'[') => read_batch(text).map(Incoming::Batch),
        _ => Err(match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => Malformed::new(Fault::NotAnObject),
            Err(error) => not_json(&error),
        }),
    }
}

fn not_json(error: &serde_json::Error) -> Malformed {
    Malformed::new(if error.is_eof() { Fault::SpansLines } else { Fault::Json })
}

fn read_batch(text: &str) -> Result<Vec<Result<Message<'_>, Malformed>>, Malformed> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let entries = (&mut deserializer)
        .deserialize_seq(BatchVisitor)
        .and_then(|entries| deserializer.end().map(|()| entries))
        .map_err(|error| not_json(&error))?;
    match entries {
        Some(entries) if entries.is_empty() => Err(Malformed::new(Fault::EmptyBatch)),
        Some(entries) => Ok(entries.into_iter().map(|entry| read_entry(entry.get())).collect()),
        None => Err(Malformed::new(Fault::LongBatch)),
    }
}

/// The entries of an array, or nothing if there are too many. Those are not kept: a message full of
/// `1,` would otherwise cost eight times its size.
struct BatchVisitor;

impl<'de> Visitor<'de> for BatchVisitor {
    type Value = Option<Vec<&'de RawValue>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = seq.next_element()? {
            if entries.len() == MAX_BATCH {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(None);
            }
            entries.push(entry);
        }
        Ok(Some(entries))
    }
}

fn read_entry(text: &str) -> Result<Message<'_>, Malformed> {
    match text.starts_with('{') {
        true => read_object(text),
        false => Err(Malformed::new(Fault::NotAnObject)),
    }
}

fn read_object(text: &str) -> Result<Message<'_>, Malformed> {
    match quick::read(text) {
        Some(message) => Ok(message),
        None => read_any(text),
    }
}

/// Reads an object that may be anything.
pub(super) fn read_any(text: &str) -> Result<Message<'_>, Malformed> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let envelope = (&mut deserializer)
        .deserialize_map(EnvelopeVisitor)
        .and_then(|envelope| deserializer.end().map(|()| envelope))
        .map_err(|error| not_json(&error))?;
    envelope.classify()
}

/// The members that count, as they stood.
#[derive(Default)]
struct Envelope<'a> {
    version: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    duplicate: bool,
}

impl<'a> Envelope<'a> {
    fn classify(self) -> Result<Message<'a>, Malformed> {
        let id = self.id.and_then(|raw| Id::from_json(raw.get()));
        let fault = |kind| Malformed { kind, id: id.clone() };
        let is_response = self.method.is_none() && (self.result.is_some() || self.error.is_some());
        let two_point_oh = self.version.is_some_and(|raw| {
            raw.get() == "\"2.0\"" || string(raw).is_some_and(|version| version == "2.0")
        });
        // A response stays one whatever else is wrong with it: answering it would start a storm.
        if is_response && (self.duplicate || !two_point_oh) {
            let duplicate = self.duplicate;
            let kind = if duplicate { Fault::BadResponse } else { Fault::ResponseVersion };
            return Err(Malformed { kind, id: None });
        }
        if self.duplicate {
            return Err(fault(Fault::Duplicate));
        }
        if !two_point_oh {
            return Err(fault(Fault::Version));
        }
        if is_response {
            return self.response(id);
        }
        let Some(method) = self.method else { return Err(fault(Fault::Neither)) };
        // RPC-33, F26: never execute what could also be read as an answer.
        if self.result.is_some() || self.error.is_some() {
            return Err(fault(Fault::Hybrid));
        }
        let Some(method) = string(method) else { return Err(fault(Fault::BadMethod)) };
        if self.params.is_some_and(|raw| !raw.get().starts_with(['{', '['])) {
            // RPC-11: without an id it is a notification, and stays unanswered.
            let asked = self.id.is_some();
            return Err(fault(if asked { Fault::BadParams } else { Fault::BadNotification }));
        }
        let params = Params::from(self.params);
        match (self.id, id) {
            (None, _) => Ok(Message::Notification { method, params }),
            (Some(_), Some(id)) => Ok(Message::Request { id, method, params }),
            // RPC-03: null is neither an id nor the absence of one.
            (Some(_), None) => Err(Malformed::new(Fault::BadId)),
        }
    }

    fn response(self, id: Option<Id>) -> Result<Message<'a>, Malformed> {
        let bad = |id| Malformed { kind: Fault::BadResponse, id };
        let null_id = self.id.is_none_or(|raw| raw.get() == "null");
        let outcome = match (self.result, self.error) {
            (Some(result), None) => Ok(result),
            // A derived reader would take an array for an object.
            (None, Some(error)) if error.get().starts_with('{') => {
                match serde_json::from_str(error.get()) {
                    Ok(error) => Err(error),
                    Err(_) => return Err(bad(id)),
                }
            }
            _ => return Err(bad(id)),
        };
        // F21: only an error may belong to no request.
        if id.is_none() && (outcome.is_ok() || !null_id) {
            return Err(bad(None));
        }
        Ok(Message::Response { id, outcome })
    }
}

fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    JsonRef::from(raw).string()
}

struct EnvelopeVisitor;

impl<'de> Visitor<'de> for EnvelopeVisitor {
    type Value = Envelope<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut envelope = Envelope::default();
        while let Some(member) = map.next_key::<Member>()? {
            let slot = match member {
                Member::Version => &mut envelope.version,
                Member::Id => &mut envelope.id,
                Member::Method => &mut envelope.method,
                Member::Params => &mut envelope.params,
                Member::Result => &mut envelope.result,
                Member::Error => &mut envelope.error,
                Member::Other => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            let value = map.next_value::<&'de RawValue>()?;
            // RPC-35: the first counts for finding the id; the message as a whole is refused.
            if slot.is_some() {
                envelope.duplicate = true;
            } else {
                *slot = Some(value);
            }
        }
        Ok(envelope)
    }
}

/// A member's name, read without keeping it.
pub(super) enum Member {
    Version,
    Id,
    Method,
    Params,
    Result,
    Error,
    Other,
}

impl<'de> serde::Deserialize<'de> for Member {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl Visitor<'_> for NameVisitor {
            type Value = Member;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member name")
            }

            fn visit_str<E>(self, name: &str) -> Result<Member, E> {
                Ok(match name {
                    "jsonrpc" => Member::Version,
                    "id" => Member::Id,
                    "method" => Member::Method,
                    "params" => Member::Params,
                    "result" => Member::Result,
                    "error" => Member::Error,
                    _ => Member::Other,
                })
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
