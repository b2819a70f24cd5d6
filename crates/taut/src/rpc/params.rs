//! The params of a request or a notification, with the places of their members.
//!
//! Knows that params are an object, an array or absent (RPC-14), and which of two equal members counts
//! (RPC-35); must not know any method. Only the reader of messages makes params with known places.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::ErrorObject;
use crate::json::JsonRef;
use crate::json::scan::MemberIndex;

/// The params of one message, checked but not parsed. They may be absent.
#[derive(Clone, Debug)]
pub struct Params<'a> {
    raw: Option<Cow<'a, RawValue>>,
    index: MemberIndex,
}

impl<'a> Params<'a> {
    /// No params.
    pub const ABSENT: Params<'static> = Params { raw: None, index: MemberIndex::UNKNOWN };

    /// Params that the scanner has read.
    pub(super) fn scanned(raw: &'a RawValue, index: MemberIndex) -> Self {
        Self { raw: Some(Cow::Borrowed(raw)), index }
    }

    /// The same params with their own copy of the text.
    #[must_use]
    pub fn into_owned(self) -> Params<'static> {
        Params { raw: self.raw.map(|raw| Cow::Owned(raw.into_owned())), index: self.index }
    }

    /// The JSON, if there are any params.
    #[must_use]
    pub fn raw(&self) -> Option<&RawValue> {
        self.raw.as_deref()
    }

    /// Reads all params as a `T`. Absent params are read as `null`.
    ///
    /// # Errors
    /// When they are no `T`.
    pub fn read<'s, T: Deserialize<'s>>(&'s self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.raw().map_or("null", RawValue::get))
    }

    /// Whether they are an array, which has no members.
    pub(crate) fn is_array(&self) -> bool {
        self.raw().is_some_and(|raw| raw.get().starts_with('['))
    }

    /// The text of one member. Where one is repeated, the last counts (RPC-35). `None` if there is no
    /// such member.
    pub(crate) fn member(&self, name: &str) -> Option<JsonRef<'_>> {
        let raw = self.raw()?;
        match self.index.member(raw.get(), name) {
            Some(indexed) => indexed,
            None => search(raw, name),
        }
    }

    /// A member that may be absent or null; a −32602 if it is something else.
    pub(crate) fn optional<'s, T>(&'s self, name: &str) -> Result<Option<T>, ErrorObject>
    where
        T: Deserialize<'s>,
    {
        self.member(name).map_or(Ok(None), |member| read_member(name, member))
    }

    /// A member that must be there; a −32602 if it is not, or is something else.
    pub(crate) fn required<'s, T>(&'s self, name: &str) -> Result<T, ErrorObject>
    where
        T: Deserialize<'s>,
    {
        let missing = || ErrorObject::invalid_params(format!("params lacks {name}"));
        read_member(name, self.member(name).ok_or_else(missing)?)
    }

    /// A member that must be there and a string, borrowed where it has no escapes.
    pub(crate) fn string(&self, name: &str) -> Result<Cow<'_, str>, ErrorObject> {
        match self.member(name).and_then(JsonRef::string) {
            Some(text) => Ok(text),
            None => self.required::<String>(name).map(Cow::Owned),
        }
    }
}

/// Searches params whose places are not known, which few are.
#[cold]
fn search<'s>(params: &'s RawValue, name: &str) -> Option<JsonRef<'s>> {
    JsonRef::from(params).member(name)
}

impl<'a> From<Option<&'a RawValue>> for Params<'a> {
    fn from(raw: Option<&'a RawValue>) -> Self {
        Self { raw: raw.map(Cow::Borrowed), index: MemberIndex::UNKNOWN }
    }
}

fn read_member<'s, T: Deserialize<'s>>(name: &str, member: JsonRef<'s>) -> Result<T, ErrorObject> {
    member.read().map_err(|reason| {
        let reason = reason.to_string();
        ErrorObject::invalid_params(format!("params.{name}: {}", without_place(&reason)))
    })
}

/// What serde_json says, without the line and column of a text that the reader has never seen.
pub(crate) fn without_place(words: &str) -> &str {
    words.rfind(" at line ").map_or(words, |at| &words[..at])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn raw(value: &Value) -> Box<RawValue> {
        serde_json::value::to_raw_value(value).unwrap()
    }

    #[test]
    fn members_are_found_in_params_with_and_without_known_places() {
        let meta = json!({ "progressToken": 7 });
        let text = raw(&json!({ "name": "echo", "arguments": { "a": 1 }, "_meta": meta }));
        let (scanned, index, _) = crate::json::scan::object(text.get()).unwrap();
        let owned = Params::scanned(scanned, index).into_owned();
        for params in [Params::from(Some(&*text)), Params::scanned(scanned, index), owned] {
            assert_eq!(params.member("_meta").unwrap().text(), r#"{"progressToken":7}"#);
            assert_eq!(params.string("name").unwrap(), "echo");
            assert_eq!(params.member("arguments").unwrap().text(), r#"{"a":1}"#);
            assert!(params.member("cursor").is_none());
        }
        assert!(Params::ABSENT.member("name").is_none());
        assert!(Params::from(Some(&*raw(&json!([1])))).member("name").is_none());
    }

    #[test]
    fn members_that_are_missing_or_wrong_are_named() {
        let raw = raw(&json!({ "uri": 5, "cursor": null }));
        let params = Params::from(Some(&*raw));
        let name = params.required::<String>("name").unwrap_err();
        assert_eq!(name.message, "params lacks name");
        let uri = params.string("uri").unwrap_err();
        assert_eq!(uri.message, "params.uri: invalid type: integer `5`, expected a string");
        assert_eq!(params.optional::<String>("cursor").unwrap(), None);
    }

    #[test]
    fn rpc_35_the_last_of_two_equal_members_counts() {
        let last = |text: &str| {
            let (raw, index, _) = crate::json::scan::object(text).unwrap();
            Params::scanned(raw, index).string("name").unwrap().into_owned()
        };
        assert_eq!(last(r#"{"name":"a","name":"b"}"#), "b");
        assert_eq!(last(r#"{"n\u0061me":"a","1":1,"2":2,"name":"b","3":3}"#), "b");
        assert_eq!(last(r#"{"name":"a","1":1,"2":2,"3":3,"4":4,"5":5,"name":"b","6":6}"#), "b");
    }
}
