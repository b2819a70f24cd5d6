//! Whose message it was, read from the first bytes of one that was too long to keep.
//!
//! Knows that JSON may stop anywhere. Used so that an over-long request is refused by its id, and
//! an over-long answer fails the one call that waits for it (F10).

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::id::Id;
use super::message::Member;

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
        while let Some(member) = map.next_key::<Member>()? {
            // Only what a delimiter follows is whole: `12` may be the start of `123`.
            self.0.id = self.0.id.take().or_else(|| id.take());
            match member {
                Member::Id => id = Id::from_json(map.next_value::<&'de RawValue>()?.get()),
                Member::Result | Member::Error => {
                    self.0.response = true;
                    map.next_value::<IgnoredAny>()?;
                }
                member => {
                    self.0.request |= matches!(member, Member::Method | Member::Params);
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f10_the_id_is_found_if_it_stands_before_the_cut() {
        let check = |prefix: &str, id: Option<&str>, response, request| {
            let id = id.and_then(Id::from_json);
            assert_eq!(salvage(prefix.as_bytes()), Salvage { id, response, request }, "{prefix}");
        };
        check(r#"{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":"bbb"#, Some("7"), false, true);
        check(r#"{"id":"s","result":{"content":[{"te"#, Some("\"s\""), true, false);
        check(r#"{"method":"x","params":{"id":3,"a":""#, None, false, true);
        check(r#"{"id":5,"params":{"a":""#, Some("5"), false, true);
        check(r#"{"id":5,"x":{"result":1,"a":""#, Some("5"), false, false);
        check(r#"{"id":12"#, None, false, false);
        check("[[[[", None, false, false);
        check("", None, false, false);
        assert_eq!(salvage(b"{\"id\":1,\"x\":\"\xE2\x80").id, Some(Id::from(1)));
    }
}
