//! The fast path for messages in the usual form.
//!
//! Knows requests, notifications and results as every common library writes them: members in any order,
//! no blanks between tokens, no escapes in names, no repeated or additional members. For anything else
//! it returns `None`, and `read.rs` reads the message. Tests show that both read the same.

use std::borrow::Cow;

use super::id::Id;
use super::message::Message;
use super::params::Params;
use crate::json::{plain, scan};

/// Reads a plain request, notification or result. `None` if the message is not in the usual form.
pub(super) fn read(text: &str) -> Option<Message<'_>> {
    let mut rest = text.strip_prefix('{')?;
    let (mut version, mut id, mut method) = (None, None, None);
    let (mut params, mut result) = (Params::ABSENT, None);
    loop {
        // The first letter tells which it may be.
        let again = match rest.as_bytes().get(1)? {
            b'j' => {
                rest = rest.strip_prefix(r#""jsonrpc":"2.0""#)?;
                version.replace(()).is_some()
            }
            b'i' => {
                let (found, after) = plain_id(rest.strip_prefix(r#""id":"#)?)?;
                rest = after;
                id.replace(found).is_some()
            }
            b'm' => {
                let (found, after) = plain_string(rest.strip_prefix(r#""method":"#)?)?;
                rest = after;
                method.replace(&found[1..found.len() - 1]).is_some()
            }
            b'p' => {
                rest = rest.strip_prefix(r#""params":"#)?;
                let again = params.raw().is_some();
                let (raw, index);
                (raw, index, rest) = match rest.as_bytes().first()? {
                    b'{' => scan::object(rest)?,
                    _ => scan::container(rest)
                        .map(|(raw, rest)| (raw, scan::MemberIndex::UNKNOWN, rest))?,
                };
                params = Params::scanned(raw, index);
                again
            }
            b'r' => {
                let (found, after) = scan::container(rest.strip_prefix(r#""result":"#)?)?;
                rest = after;
                result.replace(found).is_some()
            }
            _ => return None,
        };
        match rest.as_bytes() {
            _ if again => return None,
            b"}" => break,
            [b',', ..] => rest = &rest[1..],
            _ => return None,
        }
    }
    version?;
    Some(match (id, method, result) {
        (Some(id), Some(method), None) => {
            Message::Request { id: Id::from_plain(id)?, method: Cow::Borrowed(method), params }
        }
        (None, Some(method), None) => {
            Message::Notification { method: Cow::Borrowed(method), params }
        }
        (Some(id), None, Some(result)) if params.raw().is_none() => {
            Message::Response { id: Some(Id::from_plain(id)?), outcome: Ok(result) }
        }
        _ => return None,
    })
}

/// A string without escapes, with its quotes, and what follows it.
fn plain_string(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix('"')?.as_bytes();
    let end = plain(inside);
    (inside.get(end) == Some(&b'"')).then(|| text.split_at(end + 2))
}

/// A plain string or a plain integer, and what follows it.
fn plain_id(text: &str) -> Option<(&str, &str)> {
    if text.starts_with('"') {
        return plain_string(text);
    }
    let end = text.bytes().position(|byte| !byte.is_ascii_digit())?;
    // JSON knows no leading zero, and an empty number is none.
    if end == 0 || (end > 1 && text.starts_with('0')) {
        return None;
    }
    Some(text.split_at(end))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rpc::read::read_any;

    /// All that a message holds. Only one of the two ways knows the places of the members.
    fn parts(message: &Message<'_>) -> String {
        match message {
            Message::Request { id, method, params } => format!("{id} {method} {:?}", params.raw()),
            Message::Notification { method, params } => format!("{method} {:?}", params.raw()),
            Message::Response { id, outcome } => format!("{id:?} {outcome:?}"),
        }
    }

    /// What it accepts, the proper way reads the same.
    fn agrees(text: &str) -> bool {
        let Some(quick) = read(text) else { return false };
        let proper = read_any(text);
        assert_eq!(parts(&quick), parts(&proper.unwrap()), "{text}");
        true
    }

    #[test]
    fn what_libraries_write_is_read_quickly_and_the_same() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":[1,"}",{}]}}"#,
            r#"{"method":"ping","params":[],"jsonrpc":"2.0","id":"a-1"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"id":18446744073709551616,"jsonrpc":"2.0","method":""}"#,
            r#"{"jsonrpc":"2.0","id":0,"method":"é"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"\n"}]}}"#,
            r#"{"result":[],"id":"a-1","jsonrpc":"2.0"}"#,
        ] {
            assert!(agrees(text), "{text}");
        }
    }

    #[test]
    fn what_is_unusual_or_wrong_is_left_to_the_proper_way() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"method":"x" }"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":01,"method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":-1,"method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a\u0062"}"#,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\tb\"}",
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x",}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","more":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
            r#"{"jsonrpc":"2.0","result":{}}"#,
            r#"{"id":1,"result":{}}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#,
            r#"{"id":1,"method":"x"}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            "{",
            "{}",
        ] {
            assert!(read(text).is_none(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_message_with_any_byte_changed_is_read_the_same_or_not_at_all(
            order in prop_oneof![
                Just([0, 1, 2, 3]).prop_shuffle(),
                Just([0, 1, 4, 4]).prop_shuffle(),
                Just([0, 1, 4, 2]).prop_shuffle(),
            ],
            without in 0..6usize,
            id in prop_oneof!["[0-9]{1,25}", "\"[a-z\\\\\"]{0,6}\"", "-?[0-9.e]{1,4}"],
            method in "[a-z/\\\\]{0,8}",
            params in prop_oneof![Just("{}"), Just("[1,{\"a\":\"]\"}]"), Just("null"), Just("{\"a\":1")],
            at in any::<prop::sample::Index>(),
            with in prop::option::of(prop_oneof![Just('"'), Just('{'), Just('}'), Just(','), Just(' '), Just('\\'), Just('0'), any::<char>()]),
        ) {
            let members = [
                r#""jsonrpc":"2.0""#.to_owned(),
                format!("\"id\":{id}"),
                format!("\"method\":\"{method}\""),
                format!("\"params\":{params}"),
                format!("\"result\":{params}"),
            ];
            let order: Vec<_> = order.into_iter().filter(|n| *n != without).collect();
            let text = order.iter().map(|n| members[*n].as_str()).collect::<Vec<_>>().join(",");
            let mut chars: Vec<char> = format!("{{{text}}}").chars().collect();
            if let Some(with) = with {
                let at = at.index(chars.len());
                chars[at] = with;
            }
            agrees(&chars.into_iter().collect::<String>());
        }
    }
}
