//! One frame → one message, read in a single pass, with params and results left raw.
//!
//! Knows the JSON-RPC 2.0 envelope; must not know any method. What it decides:
//!
//! | frame | outcome |
//! |---|---|
//! | not UTF-8, not JSON, bytes after the value | −32700 |
//! | `method` with an id | request |
//! | `method` without an id | notification |
//! | `result` or `error`, no `method` | response: matched or dropped, never answered |
//! | anything else | −32600, with the id if one can be read |
//!
//! Of a message that is too long only the first bytes are kept; [`salvage`] finds its id in them.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::error::ErrorObject;
use super::id::Id;
use super::message::{Fault, Malformed, Message, Messages};
use super::params::Params;
use super::quick;
use crate::json::JsonRef;
use crate::json::read::{FromMembers, Name};
use crate::wire::BOM;

/// The most entries in a batch. More is a flood, not a batch.
pub const MAX_BATCH: usize = 1_000;

/// Reads one frame.
///
/// # Errors
/// What is wrong with it, and whose it was where that can be read.
#[inline]
pub fn read(bytes: &[u8]) -> Result<Messages<'_>, Malformed> {
    // Once for the whole frame: serde_json does not look inside the members it skips (F8).
    let text = std::str::from_utf8(bytes).map_err(|_| Malformed::new(Fault::Encoding))?;
    match text.trim_ascii_start().as_bytes().first() {
        Some(b'{') => match quick::read(text) {
            Some(message) => Ok(Messages::One(message)),
            None => read_any(text).map(Messages::One),
        },
        Some(b'[') => read_batch(text).map(Messages::Batch),
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
        true => read_any(text),
        false => Err(Malformed::new(Fault::NotAnObject)),
    }
}

/// Reads an object that may be anything.
pub(super) fn read_any(text: &str) -> Result<Message<'_>, Malformed> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let envelope = RawMessage::from_object(&mut deserializer)
        .and_then(|envelope| deserializer.end().map(|()| envelope))
        .map_err(|error| not_json(&error))?;
    envelope.classify()
}

/// The members that count, as they stood.
#[derive(Default)]
struct RawMessage<'a> {
    version: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    duplicate: bool,
}

impl<'a> RawMessage<'a> {
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
            (None, Some(error)) => match ErrorObject::read(error) {
                Some(error) => Err(error),
                None => return Err(bad(id)),
            },
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

impl<'de> FromMembers<'de> for RawMessage<'de> {
    const EXPECTED: &'static str = "an object";

    fn from_members<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut envelope = Self::default();
        while let Some(Name(member)) = map.next_key()? {
            let slot = match &*member {
                "jsonrpc" => &mut envelope.version,
                "id" => &mut envelope.id,
                "method" => &mut envelope.method,
                "params" => &mut envelope.params,
                "result" => &mut envelope.result,
                "error" => &mut envelope.error,
                _ => {
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

/// What the first bytes of a message tell about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Salvage {
    /// Its id, if that came early enough.
    pub(crate) id: Option<Id>,
    /// Whether it is a response, which must not be answered.
    pub(crate) response: bool,
    /// Whether it asks or tells something.
    pub(crate) request: bool,
}

/// Reads as far as the bytes go.
pub(crate) fn salvage(prefix: &[u8]) -> Salvage {
    // F3: a byte-order mark hides no id.
    let prefix = prefix.strip_prefix(BOM).unwrap_or(prefix);
    let text = match std::str::from_utf8(prefix) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&prefix[..error.valid_up_to()]).unwrap_or_default(),
    };
    let mut found = Salvage::default();
    // It must fail, at the latest where the bytes end; what it saw until then is the answer.
    let _ = serde_json::Deserializer::from_str(text).deserialize_map(PrefixVisitor(&mut found));
    found
}

struct PrefixVisitor<'a>(&'a mut Salvage);

impl<'de> Visitor<'de> for PrefixVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut id = None;
        while let Some(Name(member)) = map.next_key()? {
            // Only what a delimiter follows is whole: `12` may be the start of `123`.
            self.0.id = self.0.id.take().or_else(|| id.take());
            match &*member {
                "id" => {
                    id = Id::from_json(map.next_value::<&'de RawValue>()?.get());
                    continue;
                }
                "result" | "error" => self.0.response = true,
                "method" | "params" => self.0.request = true,
                _ => {}
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
