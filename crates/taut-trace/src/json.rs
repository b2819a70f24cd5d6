//! A look into JSON text without rendering it anew: where a member stands, and text with it replaced.
//!
//! Pure. Whatever is not replaced stays byte for byte as it was.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::Value;
use serde_json::value::RawValue;

/// Where the value of a member stands in the text, along a path of names.
pub(crate) fn place(text: &str, path: &[&str]) -> Option<Range<usize>> {
    let mut range = 0..text.len();
    for name in path {
        let inside = text.get(range.clone())?;
        let members: HashMap<&str, &RawValue> = borrowed(inside)?;
        let value = members.get(name)?.get();
        // The value is a part of the text, so its address says where.
        let start = range.start + (value.as_ptr() as usize).checked_sub(inside.as_ptr() as usize)?;
        range = start..start + value.len();
    }
    Some(range)
}

/// Names with an escape in them cannot be borrowed; those that are looked for have none.
fn borrowed(text: &str) -> Option<HashMap<&str, &RawValue>> {
    serde_json::from_str(text).ok().or_else(|| {
        let owned: HashMap<String, &RawValue> = serde_json::from_str(text).ok()?;
        let plain = owned.into_iter().filter_map(|(name, value)| {
            let start = text.find(&format!("\"{name}\""))? + 1;
            Some((text.get(start..start + name.len())?, value))
        });
        Some(plain.collect())
    })
}

/// The text of a member's value.
pub(crate) fn member<'t>(text: &'t str, path: &[&str]) -> Option<&'t str> {
    text.get(place(text, path)?)
}

/// The text with the value of one member replaced; as it is if there is no such member.
pub(crate) fn replaced(text: &str, path: &[&str], value: &str) -> String {
    match place(text, path) {
        Some(range) => format!("{}{value}{}", &text[..range.start], &text[range.end..]),
        None => text.to_owned(),
    }
}

/// The text with each string that is a key of `others` replaced by what is there. One reading of the text, however
/// many there are.
pub(crate) fn exchanged(text: &str, others: &HashMap<String, String>) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(start) = rest.find('"') {
        let mut escaped = false;
        let is_end = |c: char| {
            let end = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            end
        };
        let Some(long) = rest[start + 1..].find(is_end) else { break };
        let end = start + long + 2;
        let string = &rest[start..end];
        out.push_str(&rest[..start]);
        out.push_str(others.get(string).map_or(string, String::as_str));
        rest = &rest[end..];
    }
    out + rest
}

/// A value written so that equal values are equal text: members by name.
pub(crate) fn canonical(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    sorted.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_strings_are_exchanged_and_nothing_else() {
        let others = [(r#""a""#, r#""x\"y""#), (r#""\"""#, r#""q""#)];
        let others = others.map(|(old, new)| (old.to_owned(), new.to_owned())).into();
        for (text, now) in [
            (r#"{"a":"a","b":["ba","\""]}"#, r#"{"x\"y":"x\"y","b":["ba","q"]}"#),
            (r#""\"a\"""#, r#""\"a\"""#),
            ("no string, \"half", "no string, \"half"),
        ] {
            assert_eq!(exchanged(text, &others), now);
        }
    }

    #[test]
    fn a_member_is_found_and_replaced_and_the_rest_stays() {
        let text = r#"{"a\n":1, "id" : 7 ,"params":{"_meta":{"progressToken":"x"}, "z":1.0e2}}"#;
        assert_eq!(member(text, &["id"]), Some("7"));
        assert_eq!(member(text, &["params", "_meta", "progressToken"]), Some("\"x\""));
        assert_eq!(member(text, &["params", "nothing"]), None);
        assert_eq!(
            replaced(text, &["params", "_meta", "progressToken"], "12"),
            r#"{"a\n":1, "id" : 7 ,"params":{"_meta":{"progressToken":12}, "z":1.0e2}}"#
        );
        assert_eq!(replaced(text, &["x"], "1"), text);
        assert_eq!(member("[1]", &["x"]), None);
    }
}
