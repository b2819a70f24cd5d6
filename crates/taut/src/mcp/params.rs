//! A request's params taken apart in one pass: the envelope of `_meta`, and every other member
//! as the raw text it came as.
//!
//! Knows where things stand; must not know which method wants which member, nor how to answer.
//! A server reads the few members its method needs straight from the input, `arguments` into the
//! handler's own type. RPC-14, RPC-35.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess};
use serde_json::value::RawValue;

use super::envelope::{Envelope, MetaError};
use super::read::{FromMembers, Name, ObjectVisitor};

/// The params of one request or notification, taken apart but not read.
#[derive(Debug, Default)]
pub(crate) struct Params<'a> {
    /// The reserved fields of `_meta`; empty when that is absent.
    pub(crate) envelope: Envelope<'a>,
    /// `_meta` as it came, for whoever passes it on.
    pub(crate) meta: Option<&'a RawValue>,
    members: Vec<(Cow<'a, str>, &'a RawValue)>,
}

/// Why params could not be read: the text of a −32602.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum ParamsError {
    /// Params are there and no object (RPC-14).
    NotAnObject,
    /// Something is wrong with `_meta`.
    Meta(MetaError),
    /// A required member is absent.
    Missing(&'static str),
    /// A member has the wrong type.
    Wrong { member: &'static str, reason: serde_json::Error },
}

impl fmt::Display for ParamsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnObject => f.write_str("params must be an object"),
            Self::Meta(error) => error.fmt(f),
            Self::Missing(member) => write!(f, "params lacks {member}"),
            Self::Wrong { member, reason } => {
                write!(f, "params.{member}: {}", without_place(&reason.to_string()))
            }
        }
    }
}

/// Serde's words without the place in a text that the reader has never seen.
pub(crate) fn without_place(words: &str) -> &str {
    words.rfind(" at line ").map_or(words, |at| &words[..at])
}

impl std::error::Error for ParamsError {}

impl From<MetaError> for ParamsError {
    fn from(error: MetaError) -> Self {
        Self::Meta(error)
    }
}

impl<'a> Params<'a> {
    /// Takes `params` apart; absent params are an object without members.
    pub(crate) fn read(params: Option<&'a RawValue>) -> Result<Self, ParamsError> {
        let Some(raw) = params else { return Ok(Self::default()) };
        let Ok(mut params) = serde_json::from_str::<Self>(raw.get()) else {
            return Err(ParamsError::NotAnObject);
        };
        if let Some(meta) = params.meta {
            params.envelope =
                serde_json::from_str(meta.get()).map_err(|_| MetaError::NotAnObject)?;
        }
        Ok(params)
    }

    /// The raw text of a member. Where one is repeated the last counts, for everybody (RPC-35).
    pub(crate) fn raw(&self, member: &str) -> Option<&'a RawValue> {
        self.members.iter().rev().find(|(name, _)| name == member).map(|(_, raw)| *raw)
    }

    /// A member that may be absent or null.
    pub(crate) fn optional<T: Deserialize<'a>>(
        &self,
        member: &'static str,
    ) -> Result<Option<T>, ParamsError> {
        let Some(raw) = self.raw(member) else { return Ok(None) };
        serde_json::from_str(raw.get()).map_err(|reason| ParamsError::Wrong { member, reason })
    }

    /// A member that must be there.
    pub(crate) fn required<T: Deserialize<'a>>(
        &self,
        member: &'static str,
    ) -> Result<T, ParamsError> {
        let raw = self.raw(member).ok_or(ParamsError::Missing(member))?;
        serde_json::from_str(raw.get()).map_err(|reason| ParamsError::Wrong { member, reason })
    }
}

impl<'de> FromMembers<'de> for Params<'de> {
    const EXPECTED: &'static str = "an object";

    fn from_members<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut params = Self::default();
        while let Some((Name(name), value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
            if name == "_meta" {
                params.meta = Some(value);
            } else {
                params.members.push((name, value));
            }
        }
        Ok(params)
    }
}

impl<'de> Deserialize<'de> for Params<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor::<Self>::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn raw(value: &Value) -> Box<RawValue> {
        serde_json::value::to_raw_value(value).unwrap()
    }

    #[test]
    fn members_and_envelope_are_found_in_one_pass() {
        let meta = json!({ "progressToken": 7 });
        let raw = raw(&json!({ "name": "echo", "arguments": { "a": 1 }, "_meta": meta }));
        let params = Params::read(Some(&raw)).unwrap();
        assert_eq!(params.envelope.progress_token().unwrap(), Some(7.into()));
        assert_eq!(params.meta.unwrap().get(), r#"{"progressToken":7}"#);
        assert_eq!(params.required::<String>("name").unwrap(), "echo");
        assert_eq!(params.raw("arguments").unwrap().get(), r#"{"a":1}"#);
        assert!(Params::read(None).unwrap().raw("name").is_none());
    }

    #[test]
    fn rpc_14_params_and_meta_have_to_be_objects() {
        let read = |value: Value| {
            let raw = raw(&value);
            Params::read(Some(&raw)).unwrap_err().to_string()
        };
        assert_eq!(read(json!([])), "params must be an object");
        assert_eq!(read(json!({ "_meta": 1 })), "params._meta must be an object");
    }

    #[test]
    fn members_that_are_missing_or_wrong_are_named() {
        let raw = raw(&json!({ "uri": 5, "cursor": null }));
        let params = Params::read(Some(&raw)).unwrap();
        let name = params.required::<String>("name").unwrap_err();
        assert_eq!(name.to_string(), "params lacks name");
        let uri = params.required::<String>("uri").unwrap_err();
        assert_eq!(uri.to_string(), "params.uri: invalid type: integer `5`, expected a string");
        assert_eq!(params.optional::<String>("cursor").unwrap(), None);
    }

    #[test]
    fn rpc_35_the_last_of_two_equal_members_counts() {
        let raw: Box<RawValue> = serde_json::from_str(r#"{"name":"a","name":"b"}"#).unwrap();
        assert_eq!(Params::read(Some(&raw)).unwrap().required::<String>("name").unwrap(), "b");
    }
}
