//! A request's params taken apart: `_meta`, and every other member as the raw text it came as.
//!
//! Knows where things stand; must not know which method wants which member, nor how to answer.
//! A server reads the few members its method needs straight from the input, `arguments` into the
//! handler's own type. RPC-14, RPC-35.

use std::borrow::Cow;
use std::fmt;

use serde::de::Deserialize;
use serde_json::value::RawValue;

use super::envelope::MetaError;
use crate::rpc::{Part, Places};

/// The params of one request or notification, taken apart but not read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Params<'a> {
    /// `_meta` as it came: an object, if it is there.
    pub(crate) meta: Option<Part<'a>>,
    /// All of them, if there are any.
    object: Option<Part<'a>>,
    /// Where its members are, if that is known. Otherwise they are looked for one by one: no method
    /// wants many.
    places: &'a Places,
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
        Self::noted(params, &Places::UNKNOWN)
    }

    /// The same for who may know where the members are.
    pub(crate) fn noted(
        params: Option<&'a RawValue>,
        places: &'a Places,
    ) -> Result<Self, ParamsError> {
        let object = params.map(Part::from);
        if object.is_some_and(|object| !object.is_object()) {
            return Err(ParamsError::NotAnObject);
        }
        let mut read = Self { meta: None, object, places };
        read.meta = read.raw("_meta");
        if read.meta.is_some_and(|meta| !meta.is_object()) {
            return Err(MetaError::NotAnObject.into());
        }
        Ok(read)
    }

    /// A member as it came. Where one is repeated the last counts, for everybody (RPC-35).
    pub(crate) fn raw(&self, member: &str) -> Option<Part<'a>> {
        let object = self.object?;
        self.places.member(object, member).unwrap_or_else(|| object.member(member))
    }

    /// A member that may be absent or null.
    pub(crate) fn optional<T: Deserialize<'a>>(
        &self,
        member: &'static str,
    ) -> Result<Option<T>, ParamsError> {
        let Some(raw) = self.raw(member) else { return Ok(None) };
        raw.read().map_err(|reason| ParamsError::Wrong { member, reason })
    }

    /// A member that must be there.
    pub(crate) fn required<T: Deserialize<'a>>(
        &self,
        member: &'static str,
    ) -> Result<T, ParamsError> {
        let raw = self.raw(member).ok_or(ParamsError::Missing(member))?;
        raw.read().map_err(|reason| ParamsError::Wrong { member, reason })
    }

    /// A member that must be there and a string, borrowed where that is possible.
    pub(crate) fn text(&self, member: &'static str) -> Result<Cow<'a, str>, ParamsError> {
        match self.raw(member).and_then(Part::string) {
            Some(text) => Ok(text),
            None => self.required::<String>(member).map(Cow::Owned),
        }
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
    fn members_and_meta_are_found_in_one_pass() {
        let meta = json!({ "progressToken": 7 });
        let raw = raw(&json!({ "name": "echo", "arguments": { "a": 1 }, "_meta": meta }));
        let params = Params::read(Some(&raw)).unwrap();
        assert_eq!(params.meta.unwrap().text(), r#"{"progressToken":7}"#);
        assert_eq!(params.text("name").unwrap(), "echo");
        assert_eq!(params.raw("arguments").unwrap().text(), r#"{"a":1}"#);
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
        let uri = params.text("uri").unwrap_err();
        assert_eq!(uri.to_string(), "params.uri: invalid type: integer `5`, expected a string");
        assert_eq!(params.optional::<String>("cursor").unwrap(), None);
    }

    #[test]
    fn rpc_35_the_last_of_two_equal_members_counts() {
        let last = |text: &str| {
            let raw: Box<RawValue> = serde_json::from_str(text).unwrap();
            Params::read(Some(&raw)).unwrap().text("name").unwrap().into_owned()
        };
        assert_eq!(last(r#"{"name":"a","name":"b"}"#), "b");
        assert_eq!(last(r#"{"n\u0061me":"a","1":1,"2":2,"name":"b","3":3}"#), "b");
        assert_eq!(last(r#"{"name":"a","1":1,"2":2,"3":3,"4":4,"5":5,"name":"b","6":6}"#), "b");
    }
}
