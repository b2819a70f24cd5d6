//! Changes single members of an object and copies all others as they were written.
//!
//! Knows members and their text; must not know what any of them means. What is kept keeps its bytes:
//! the digits of numbers, the escapes of strings and names, the order of members, even repeated ones.

use super::text::JsonRef;
use super::write::ObjectWriter;

/// What becomes of a member.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Edit {
    Keep,
    Drop,
    /// The member keeps its name and place and gets this JSON text as its value.
    Put(String),
}

/// Appends `object` to `out`: each member as `change` says, then the members of `added`, which are
/// names and JSON texts. What is no object is copied.
pub(crate) fn edit(
    object: JsonRef<'_>,
    out: &mut Vec<u8>,
    mut change: impl FnMut(&str, JsonRef<'_>) -> Edit,
    added: &[(&str, &str)],
) {
    let Some(mut members) = object.members() else {
        out.extend_from_slice(object.text().as_bytes());
        return;
    };
    let mut edited = ObjectWriter::new(out);
    while let Some((written, name, value)) = members.next_as_written() {
        let put = match change(&name, value) {
            Edit::Drop => continue,
            Edit::Keep => None,
            Edit::Put(text) => Some(text),
        };
        let out = edited.raw(",");
        out.extend_from_slice(written.as_bytes());
        out.push(b':');
        out.extend_from_slice(put.as_deref().unwrap_or_else(|| value.text()).as_bytes());
    }
    for (name, value) in added {
        edited.member(name).extend_from_slice(value.as_bytes());
    }
    edited.end();
}

/// The same as a string.
pub(crate) fn edited(
    object: JsonRef<'_>,
    change: impl FnMut(&str, JsonRef<'_>) -> Edit,
    added: &[(&str, &str)],
) -> String {
    let mut out = Vec::with_capacity(object.text().len() + 64);
    edit(object, &mut out, change, added);
    // Made of JSON text only, which is UTF-8.
    String::from_utf8(out).unwrap_or_else(|_| "null".to_owned())
}

/// `whole` with `part`, which is a piece of it, replaced by `new`: the text before it, `new`, and the
/// text behind it. Where `part` is no piece of `whole`, all of it stands before.
pub(crate) fn around<'a>(whole: &'a str, part: &str, new: &'a str) -> [&'a str; 3] {
    let at = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize);
    let split = at.and_then(|at| Some((whole.get(..at)?, whole.get(at + part.len()..)?)));
    match split {
        Some((before, behind)) => [before, new, behind],
        None => [whole, "", ""],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_keeps_its_bytes() {
        let text = r#"{ "n" : 1e400 , "\u0061":-0,"d":1,"d":2, "s":"\ud800\u2028","x":[ 1 , 2 ]}"#;
        let object = JsonRef::sound(text);
        assert_eq!(
            edited(object, |_, _| Edit::Keep, &[]),
            r#"{"n":1e400,"\u0061":-0,"d":1,"d":2,"s":"\ud800\u2028","x":[ 1 , 2 ]}"#
        );
        let change = |name: &str, _: JsonRef<'_>| match name {
            "a" => Edit::Put("7".into()),
            "d" => Edit::Drop,
            _ => Edit::Keep,
        };
        assert_eq!(
            edited(object, change, &[("new", "true")]),
            r#"{"n":1e400,"\u0061":7,"s":"\ud800\u2028","x":[ 1 , 2 ],"new":true}"#
        );
        assert_eq!(edited(JsonRef::sound("{}"), |_, _| Edit::Keep, &[("a", "1")]), r#"{"a":1}"#);
        assert_eq!(edited(JsonRef::sound("{\"a\":1}"), |_, _| Edit::Drop, &[]), "{}");
        assert_eq!(edited(JsonRef::sound("[1]"), |_, _| Edit::Drop, &[("a", "1")]), "[1]");
    }

    #[test]
    fn a_piece_is_replaced_in_place() {
        let whole = r#"{"a":{"t": 12 }}"#;
        let token = JsonRef::sound(whole).member("a").and_then(|a| a.member("t")).unwrap();
        assert_eq!(around(whole, token.text(), "\"x\"").concat(), r#"{"a":{"t": "x" }}"#);
        assert_eq!(around(whole, "elsewhere", "x").concat(), whole);
    }
}
