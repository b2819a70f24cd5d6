//! `_meta`: its reserved keys and the open map.
//!
//! Knows keys and the revisions they belong to; must not know what a request must carry: that is
//! in `request_meta.rs`. MET-05, MET-07, TRC-01, LIF-20.

use std::borrow::Cow;

use serde::de::MapAccess;

use super::macros::read_members;
use super::revision::Revision;
use super::write::{Target, WriteJson, serialize_any};
use crate::json::read::{FromMembers, Name};
use crate::json::{ObjectWriter, RawJson};
use crate::rpc::Id;

/// The reserved keys of `_meta`.
pub mod meta_keys {
    /// The revision a modern request is written in.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// What the sender of a modern request can do.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// Who sends a modern request.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// Who answers a modern request.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// The least severe log line a modern request wants to see.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// The `subscriptions/listen` request a notification belongs to.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// The task a message of 2025-11-25 belongs to.
    pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
    /// Asks for progress notifications that carry this token.
    pub const PROGRESS_TOKEN: &str = "progressToken";
    /// W3C trace context.
    pub const TRACEPARENT: &str = "traceparent";
    /// W3C trace context, vendor part.
    pub const TRACESTATE: &str = "tracestate";
    /// W3C baggage.
    pub const BAGGAGE: &str = "baggage";
}

/// The open `_meta` map of an object, a request or a result.
///
/// Values are shared raw JSON, so that stamping each result with the server's identity copies
/// nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// Ordered by key. A list, because there are few, and most often one.
    entries: Vec<(Cow<'static, str>, RawJson)>,
}

impl Meta {
    /// An empty map.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What each modern request has to carry (MET-01).
    #[must_use]
    pub fn request(revision: Revision, capabilities: RawJson) -> Self {
        Self::new()
            .with(meta_keys::PROTOCOL_VERSION, serde_json::Value::from(revision.as_str()))
            .with(meta_keys::CLIENT_CAPABILITIES, capabilities)
    }

    /// Adds an entry, replacing one with the same key.
    #[must_use]
    pub fn with(mut self, key: impl Into<Cow<'static, str>>, value: impl Into<RawJson>) -> Self {
        self.insert(key, value);
        self
    }

    /// Adds an entry, replacing one with the same key.
    pub fn insert(&mut self, key: impl Into<Cow<'static, str>>, value: impl Into<RawJson>) {
        let (key, value) = (key.into(), value.into());
        match self.place(&key) {
            Ok(at) => self.entries[at].1 = value,
            Err(at) => self.entries.insert(at, (key, value)),
        }
    }

    /// The value under `key`.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&RawJson> {
        self.place(key).ok().map(|at| &self.entries[at].1)
    }

    /// Where `key` is, or where it belongs.
    fn place(&self, key: &str) -> Result<usize, usize> {
        self.entries.binary_search_by(|(other, _)| (**other).cmp(key))
    }

    /// Takes the value under `key` out.
    pub fn remove(&mut self, key: &str) -> Option<RawJson> {
        self.place(key).ok().map(|at| self.entries.remove(at).1)
    }

    /// All entries, ordered by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.entries.iter().map(|(key, value)| (&**key, value))
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The `subscriptions/listen` request that a notification belongs to (SUB-03).
    #[must_use]
    pub fn subscription_id(&self) -> Option<Id> {
        Id::from_json(self.value(meta_keys::SUBSCRIPTION_ID)?.text())
    }

    /// Whether anything is left to write in this shape.
    pub(super) fn has_any(&self, target: Target) -> bool {
        self.is_empty() || self.iter().any(|(key, _)| known_in(key, target))
    }
}

/// The protocol's own keys are written only where they have a meaning; everybody else's pass
/// (LIF-20, TRC-01).
fn known_in(key: &str, target: Target) -> bool {
    match key {
        meta_keys::PROTOCOL_VERSION
        | meta_keys::CLIENT_CAPABILITIES
        | meta_keys::CLIENT_INFO
        | meta_keys::SERVER_INFO
        | meta_keys::LOG_LEVEL
        | meta_keys::SUBSCRIPTION_ID => target.since(Revision::V2026_07_28),
        meta_keys::RELATED_TASK => {
            target.since(Revision::V2025_11_25) && target.until(Revision::V2025_11_25)
        }
        _ => true,
    }
}

impl WriteJson for Meta {
    fn write_json(&self, target: Target, out: &mut Vec<u8>) {
        let mut object = ObjectWriter::new(out);
        for (key, value) in self.iter().filter(|(key, _)| known_in(key, target)) {
            value.write_json(target, object.member(key));
        }
        object.end();
    }
}

serialize_any!(Meta);

impl<'de> FromMembers<'de> for Meta {
    const EXPECTED: &'static str = "a _meta object";

    fn from_members<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut entries = Vec::new();
        while let Some((Name(key), value)) = map.next_entry::<Name<'de>, RawJson>()? {
            // The key that each modern result carries is not copied each time.
            let key = match &*key {
                meta_keys::SERVER_INFO => Cow::Borrowed(meta_keys::SERVER_INFO),
                _ => Cow::Owned(key.into_owned()),
            };
            entries.push((key, value));
        }
        // F27: all at once, because putting each in its place would be the square of them. The sort
        // keeps the order of equal keys, of which the last counts.
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        entries.dedup_by(|(later, value), (key, kept)| {
            let same = later == key;
            if same {
                std::mem::swap(value, kept);
            }
            same
        });
        Ok(Self { entries })
    }
}

read_members!(Meta);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn meta() -> Meta {
        serde_json::from_value(json!({
            "io.modelcontextprotocol/serverInfo": { "name": "s", "version": "1" },
            "io.modelcontextprotocol/related-task": { "taskId": "t" },
            "traceparent": "00-1",
            "com.example/x": [1, null],
        }))
        .unwrap()
    }

    fn keys_at(meta: &Meta, revision: Revision) -> Vec<String> {
        let written = serde_json::to_value(meta.at(revision)).unwrap();
        written.as_object().unwrap().keys().cloned().collect()
    }

    #[test]
    fn foreign_keys_pass_in_every_revision_and_our_own_only_where_they_mean_something() {
        assert_eq!(keys_at(&meta(), Revision::V2024_11_05), ["com.example/x", "traceparent"]);
        assert_eq!(
            keys_at(&meta(), Revision::V2025_11_25),
            ["com.example/x", meta_keys::RELATED_TASK, "traceparent"]
        );
        assert_eq!(
            keys_at(&meta(), Revision::MODERN),
            ["com.example/x", meta_keys::SERVER_INFO, "traceparent"]
        );
    }

    #[test]
    fn what_is_inside_can_be_read() {
        assert_eq!(meta().server_info().unwrap().name, "s");
        assert_eq!(meta().subscription_id(), None);
        let tagged = Meta::new().with(meta_keys::SUBSCRIPTION_ID, Id::from(7));
        assert_eq!(tagged.subscription_id(), Some(Id::from(7)));
    }

    #[test]
    fn a_repeated_key_counts_once_and_the_last_wins() {
        let meta: Meta = serde_json::from_str(r#"{"a":1,"a":2}"#).unwrap();
        assert_eq!(serde_json::to_string(&meta).unwrap(), r#"{"a":2}"#);
    }
}
