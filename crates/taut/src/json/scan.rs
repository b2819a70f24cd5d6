//! Finds where a JSON value ends, and checks it on the way.
//!
//! Knows the grammar of RFC 8259 and builds no values. It refuses everything that serde_json refuses;
//! tests and a fuzz target show that. It returns `None` for sound but unusual text, which the caller
//! then gives to serde_json: nesting that is too deep, and control characters between two tokens.

use serde_json::value::RawValue;

use super::plain::{far, near, plain};
use super::text::{JsonRef, checked};

/// The deepest nesting it follows: one bit of a word for each level.
const DEEPEST: u32 = u64::BITS;

/// The object or array at the front of `text`, and what follows it. `None` if there is none, or if
/// it is unusual.
pub(crate) fn container(text: &str) -> Option<(&RawValue, &str)> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let rest = after_value(text.as_bytes())?;
    let (value, rest) = text.split_at_checked(text.len() - rest.len())?;
    Some((checked(value)?, rest))
}

/// The object at the front of `text`, the places of its members, and what follows it. `None` if there
/// is no object, or if it is unusual.
pub(crate) fn object(text: &str) -> Option<(&RawValue, MemberIndex, &str)> {
    let json = text.as_bytes();
    let mut index = MemberIndex { places: [MemberPlace([0; 4]); INDEXED], count: 0 };
    let mut rest = after_blanks(json.strip_prefix(b"{")?);
    if rest.first() != Some(&b'}') {
        loop {
            let name = rest.strip_prefix(b"\"")?;
            let name_end = &name[plain(name)..];
            let is_plain = name_end.first() == Some(&b'"');
            let after = if is_plain { &name_end[1..] } else { after_string(name)? };
            let value = after_blanks(after_blanks(after).strip_prefix(b":")?);
            rest = after_value(value)?;
            match is_plain {
                true => index.add(json, [name, name_end, value, rest]),
                false => index = MemberIndex::UNKNOWN,
            }
            match after_blanks(rest) {
                [b',', next @ ..] => rest = after_blanks(next),
                end => {
                    rest = end;
                    break;
                }
            }
        }
    }
    rest = rest.strip_prefix(b"}")?;
    let (value, rest) = text.split_at_checked(text.len() - rest.len())?;
    if u32::try_from(value.len()).is_err() {
        index = MemberIndex::UNKNOWN;
    }
    Some((checked(value)?, index, rest))
}

/// The largest number of members whose places are kept: `name`, `arguments` and `_meta`.
const INDEXED: usize = 3;

/// Where each member of an object is, if it has few. [`object`] makes it while it checks the object,
/// so that a reader need not search for a member. It belongs to the text that it was made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberIndex {
    places: [MemberPlace; INDEXED],
    /// How many members there are. More than [`INDEXED`]: the places are not known.
    count: u8,
}

/// Where the name of a member begins and ends, without its quotes, and where its value does.
#[derive(Clone, Copy, Debug)]
struct MemberPlace([u32; 4]);

impl MemberIndex {
    /// The index of an object of which nothing is known.
    pub(crate) const UNKNOWN: Self =
        Self { places: [MemberPlace([0; 4]); INDEXED], count: u8::MAX };

    /// Adds a member whose name has no escapes. `rests` are what is left of `text` where the name
    /// begins and ends, and where the value does.
    #[inline]
    fn add(&mut self, text: &[u8], rests: [&[u8]; 4]) {
        if let Some(place) = self.places.get_mut(usize::from(self.count)) {
            let at = |rest: &[u8]| (text.len() - rest.len()) as u32;
            // Not with `map`, which is compiled to a call and a loop.
            *place = MemberPlace([at(rests[0]), at(rests[1]), at(rests[2]), at(rests[3])]);
        }
        self.count = self.count.saturating_add(1);
    }

    /// The last member called `wanted` of the object that this index belongs to. The outer `None`
    /// says that the places are not known, and that the member has to be searched for.
    pub(crate) fn member<'a>(&self, object: &'a str, wanted: &str) -> Option<Option<JsonRef<'a>>> {
        let known = self.places.get(..usize::from(self.count))?;
        let is_wanted = |place: &&MemberPlace| {
            let MemberPlace([from, to, ..]) = **place;
            object.as_bytes().get(from as usize..to as usize) == Some(wanted.as_bytes())
        };
        let value = |MemberPlace([_, _, from, to]): &MemberPlace| {
            JsonRef::sound(object.get(*from as usize..*to as usize).unwrap_or_default())
        };
        Some(known.iter().rfind(is_wanted).map(value))
    }
}

/// What follows the value at the front.
fn after_value(json: &[u8]) -> Option<&[u8]> {
    // One bit for each level, the innermost lowest: whether it is an object.
    let (mut levels, mut depth) = (0u64, 0u32);
    let mut rest = json;
    loop {
        rest = match rest.split_first()? {
            (b'"', rest) => after_string(rest)?,
            (open @ (b'{' | b'['), inside) => {
                let inside = after_blanks(inside);
                match inside.split_first()? {
                    // An empty one is a value like a number, and no level.
                    (close, after) if *close == open + 2 => after,
                    _ if depth == DEEPEST => return None,
                    _ => {
                        let object = *open == b'{';
                        levels = levels << 1 | u64::from(object);
                        depth += 1;
                        rest = if object { after_name(inside)? } else { inside };
                        continue;
                    }
                }
            }
            (b'-' | b'0'..=b'9', _) => after_number(rest)?,
            (b't', rest) => rest.strip_prefix(b"rue")?,
            (b'f', rest) => rest.strip_prefix(b"alse")?,
            (b'n', rest) => rest.strip_prefix(b"ull")?,
            _ => return None,
        };
        // A value has ended. The object or array around it goes on, or ends as well.
        loop {
            if depth == 0 {
                return Some(rest);
            }
            let object = levels & 1 == 1;
            match after_blanks(rest).split_first()? {
                (b',', after) => {
                    let next = after_blanks(after);
                    rest = if object { after_name(next)? } else { next };
                    break;
                }
                (b'}', after) if object => rest = after,
                (b']', after) if !object => rest = after,
                _ => return None,
            }
            levels >>= 1;
            depth -= 1;
        }
    }
}

fn after_blanks(mut json: &[u8]) -> &[u8] {
    while let [b' ', rest @ ..] = json {
        json = rest;
    }
    json
}

/// What follows the name of a member and its colon.
fn after_name(json: &[u8]) -> Option<&[u8]> {
    let rest = after_blanks(after_string(json.strip_prefix(b"\"")?)?);
    Some(after_blanks(rest.strip_prefix(b":")?))
}

fn after_number(json: &[u8]) -> Option<&[u8]> {
    let json = json.strip_prefix(b"-").unwrap_or(json);
    let mut rest = match json {
        // No digit may follow a leading zero.
        [b'0', rest @ ..] => rest,
        _ => after_digits(json)?,
    };
    if let [b'.', fraction @ ..] = rest {
        rest = after_digits(fraction)?;
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let ([b'+' | b'-', digits @ ..] | digits) = exponent;
        rest = after_digits(digits)?;
    }
    Some(rest)
}

fn after_digits(json: &[u8]) -> Option<&[u8]> {
    let count = json.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (count > 0).then(|| &json[count..])
}

/// What follows a string whose first quote has been passed.
// Not inlined, and nothing has to be kept across it: this is most of the work, and can use all registers.
#[inline(never)]
fn after_string(json: &[u8]) -> Option<&[u8]> {
    match near(json) {
        Some(end) if json[end] == b'"' => Some(&json[end + 1..]),
        _ => after_long_string(json),
    }
}

/// The same for what is long, or has escapes.
#[inline(never)]
fn after_long_string(mut json: &[u8]) -> Option<&[u8]> {
    json = &json[far(json)..];
    loop {
        json = match json {
            [b'"', rest @ ..] => return Some(rest),
            [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', rest @ ..] => rest,
            [b'\\', b'u', code @ ..] => {
                let (digits, rest) = code.split_first_chunk::<4>()?;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(rest)?
            }
            _ => return None,
        };
        json = &json[plain(json)..];
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::JsonRef;

    /// What serde_json finds at the front of `text`.
    fn proper(text: &str) -> Option<(&str, &str)> {
        text.starts_with(['{', '[']).then_some(())?;
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
        let value = values.next()?.ok()?.get();
        Some((value, &text[values.byte_offset()..]))
    }

    /// Whether both find the same, and something; what has a control character is not ours.
    fn agree(text: &str) -> bool {
        let quick = container(text).map(|(value, rest)| (value.get(), rest));
        let usual = |text: &str| text.bytes().all(|byte| byte >= b' ');
        let proper = proper(text).filter(|(value, _)| usual(value));
        assert_eq!(quick, proper, "{text}");
        agree_on_members(text);
        quick.is_some()
    }

    /// Whether an object is found as any container is, with its members where they are.
    fn agree_on_members(text: &str) {
        let found = object(text);
        let container = container(text).filter(|_| text.starts_with('{'));
        let whole = found.map(|(value, _, rest)| (value.get(), rest));
        assert_eq!(whole, container.map(|(value, rest)| (value.get(), rest)), "{text}");
        let Some((object, index, _)) = found else { return };
        let object = JsonRef::from(object);
        let names = object.members().into_iter().flatten().map(|(name, _)| name);
        for name in names.chain(["no name".into()]) {
            if let Some(indexed) = index.member(object.text(), &name) {
                let proper = object.member(&name).map(JsonRef::text);
                assert_eq!(indexed.map(JsonRef::text), proper, "{name:?} in {text}");
            }
        }
    }

    #[test]
    fn the_places_of_a_few_members_are_kept_and_others_are_searched_for() {
        for (text, known) in [
            ("{}", true),
            ("{ }", true),
            (r#"{"name":"echo","arguments":{"text":"a,b"}}"#, true),
            (r#"{ "a" : [1, {"b": 2}] , "c":"\"","c":-1}"#, true),
            (r#"{"a":1,"b":2,"c":3,"d":4}"#, false),
            (r#"{"\u0061":1}"#, false),
            (r#"{"\u0061":1,"a":2}"#, false),
        ] {
            agree_on_members(text);
            let (value, index, _) = object(text).unwrap();
            assert_eq!(index.member(value.get(), "a").is_some(), known, "{text}");
        }
        assert!(MemberIndex::UNKNOWN.member("{\"a\":1}", "a").is_none());
    }

    #[test]
    fn every_kind_of_value_ends_where_serde_json_says() {
        for text in [
            "{}",
            "[]",
            "{ }",
            "[ ]",
            "null",
            "true",
            "false",
            "0",
            "-0",
            "10",
            "-1.5e-3",
            "1E+9",
            "1e999",
            "\"\"",
            "\"a\\u0041\\n\\/\\ud800\"",
            "[1,[2,{\"a\":[{}]}],\"]\"]",
            "{\"a\" : 1 ,  \"b\":[ ] }",
            "{\"a\":{\"b\":{\"c\":[null,true]}}}",
            "\"é漢\"",
            "\"0123456701234567012345670123456701234567012345670123456701234567\\\"x\"",
        ] {
            assert!(agree(&format!("[{text}]")) && agree(&format!("{{\"\":{text}}} \"")), "{text}");
        }
    }

    #[test]
    fn what_is_no_value_is_none() {
        for text in [
            "{",
            "[",
            "{]",
            "[}",
            "[1,]",
            "{\"a\":1,}",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "[,]",
            "{,}",
            "nul",
            "tru",
            "+1",
            "-",
            "01",
            "-01.5",
            ".5",
            "1.",
            "1e",
            "1e+",
            "\"",
            "\"\\\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\\u123",
            "\"a\tb\"",
            "\"\u{0}\"",
            "[1 2]",
            "{\"a\":1 \"b\":2}",
            "[[]",
            "{\"a\":[}",
            "'a'",
            "\u{a0}1",
        ] {
            agree(text);
            assert!(!agree(&format!("[{text}]")) && !agree(&format!("{{\"a\":{text}}}")), "{text}");
        }
        assert!(container("1").is_none());
    }

    #[test]
    fn what_has_a_control_character_is_left_to_serde_json() {
        for text in ["[\n]", "{\t\"a\":1}", "[\"a\u{1f}\"]", "[1\r]"] {
            assert!(container(text).is_none(), "{text}");
        }
        assert!(container("[] \n").is_some());
    }

    #[test]
    fn what_is_nested_too_deep_is_left_to_serde_json() {
        let nest = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        // The innermost is empty, and so no level.
        assert!(container(&nest(DEEPEST as usize + 1)).is_some());
        assert!(container(&nest(DEEPEST as usize + 2)).is_none());
    }

    #[test]
    fn a_string_ends_at_the_same_byte_however_long_it_is() {
        for length in 0..100 {
            for odd in ["\"", "\\\"x\"", "\u{1f}\"", "é\"", "\u{7f}\""] {
                agree(&format!("[\"{}{odd}] and a tail of some length", "a".repeat(length)));
                agree(&format!("[\"{}{odd}]", "\u{ff}".repeat(length)));
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_made_of_json_is_judged_as_serde_json_does(
            text in r#"([{}\[\],:" \n]|"[a-c]{0,20}"|"a":|\\u00|\\"|true|null|-?[0-9.eE+]{1,4}|é|\{"a":1\}|\[1\]){0,24}"#,
        ) {
            agree(&text);
        }

        #[test]
        fn any_sound_value_with_any_character_changed_is_judged_as_serde_json_does(
            texts in prop::collection::vec(".{0,50}", 4),
            at in any::<prop::sample::Index>(),
            with in prop::option::of(prop_oneof![Just('"'), Just('\\'), Just('}'), Just(','), Just('\n'), Just('0'), any::<char>()]),
        ) {
            let sound = serde_json::json!({ &texts[0]: [texts[1], { "k": texts[2], "n": -1.25e7 }], "t": [[], {}, true], "l": texts[3] });
            let mut chars: Vec<char> = sound.to_string().chars().collect();
            if let Some(with) = with {
                let at = at.index(chars.len());
                chars[at] = with;
            }
            agree(&chars.into_iter().collect::<String>());
        }
    }
}
