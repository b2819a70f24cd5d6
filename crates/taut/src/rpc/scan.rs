//! Where a JSON value ends, and whether it is one.
//!
//! Knows the grammar of RFC 8259 and builds nothing. It refuses whatever serde_json refuses, which
//! tests and a fuzz target show, and leaves what is unusual to it: a nest that is too deep, and any
//! control character, which hardly anybody puts between two tokens. So a string ends at its quote, and
//! one wide look over the whole finds what may not stand in it.

use serde::de::value::{BorrowedStrDeserializer, Error, MapDeserializer};
use serde::de::{Deserialize, Deserializer, Visitor};
use serde_json::value::RawValue;

/// The deepest nesting it follows: one bit of a word for each level.
const DEEPEST: u32 = u64::BITS;

/// The object or array at the front of `text`, and what follows it. Nothing: there is none, or it is
/// unusual.
pub(super) fn container(text: &str) -> Option<(&RawValue, &str)> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let (value, rest) = text.split_at_checked(end_of_value(text.as_bytes())?)?;
    if has_control(value.as_bytes()) {
        return None;
    }
    Some((<&RawValue>::deserialize(Checked(value)).ok()?, rest))
}

fn has_control(bytes: &[u8]) -> bool {
    // Without a way out half-way, so that many bytes are compared at once.
    let any = |bytes: &[u8]| bytes.iter().fold(false, |any, byte| any | (*byte < b' '));
    let (wide, rest) = bytes.as_chunks::<32>();
    wide.iter().any(|bytes| any(bytes)) || any(rest)
}

/// Text that is known to be JSON. serde_json makes a [`RawValue`] of it without looking at it again.
struct Checked<'a>(&'a str);

impl<'de> Deserializer<'de> for Checked<'de> {
    type Error = Error;

    /// How a raw value is asked for: under a name, which it wants to hear again.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        let text = BorrowedStrDeserializer::<Error>::new(self.0);
        visitor.visit_map(MapDeserializer::new(std::iter::once((name, text))))
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(self.0)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Where the value at the front ends.
fn end_of_value(json: &[u8]) -> Option<usize> {
    // One bit for each level, the innermost lowest: whether it is an object.
    let (mut levels, mut depth) = (0u64, 0u32);
    let mut at = 0;
    loop {
        match json.get(at)? {
            b'"' => at = end_of_string(json, at)?,
            open @ (b'{' | b'[') => {
                let object = *open == b'{';
                at = after_blanks(json, at + 1);
                // An empty one is a value like a number, and no level.
                if json.get(at) == Some(&(open + 2)) {
                    at += 1;
                } else if depth < DEEPEST {
                    levels = levels << 1 | u64::from(object);
                    depth += 1;
                    if object {
                        at = after_name(json, at)?;
                    }
                    continue;
                } else {
                    return None;
                }
            }
            b'-' | b'0'..=b'9' => at = end_of_number(json, at)?,
            b't' => at = after_word(json, at, b"true")?,
            b'f' => at = after_word(json, at, b"false")?,
            b'n' => at = after_word(json, at, b"null")?,
            _ => return None,
        }
        // A value has ended: what it stands in goes on, or ends as well.
        loop {
            if depth == 0 {
                return Some(at);
            }
            at = after_blanks(json, at);
            let object = levels & 1 == 1;
            match json.get(at)? {
                b',' => {
                    at = after_blanks(json, at + 1);
                    if object {
                        at = after_name(json, at)?;
                    }
                    break;
                }
                b'}' if object => {}
                b']' if !object => {}
                _ => return None,
            }
            at += 1;
            levels >>= 1;
            depth -= 1;
        }
    }
}

fn after_blanks(json: &[u8], mut at: usize) -> usize {
    while let Some(b' ') = json.get(at) {
        at += 1;
    }
    at
}

/// Where the value of a member begins, whose name begins at `at`.
fn after_name(json: &[u8], at: usize) -> Option<usize> {
    if json.get(at) != Some(&b'"') {
        return None;
    }
    let colon = after_blanks(json, end_of_string(json, at)?);
    (json.get(colon) == Some(&b':')).then(|| after_blanks(json, colon + 1))
}

fn after_word(json: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    json[at..].starts_with(word).then_some(at + word.len())
}

fn end_of_number(json: &[u8], mut at: usize) -> Option<usize> {
    let digits = |from: usize| {
        let count = json[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        (count > 0).then_some(from + count)
    };
    at += usize::from(json[at] == b'-');
    at = match json.get(at) {
        Some(b'0') if json.get(at + 1).is_some_and(u8::is_ascii_digit) => return None,
        Some(b'0') => at + 1,
        _ => digits(at)?,
    };
    if json.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if let Some(b'e' | b'E') = json.get(at) {
        at += 1;
        at += usize::from(matches!(json.get(at), Some(b'+' | b'-')));
        at = digits(at)?;
    }
    Some(at)
}

/// Where the string whose first quote is at `at` ends.
fn end_of_string(json: &[u8], at: usize) -> Option<usize> {
    let mut at = quote_or_escape(json, at + 1)?;
    while json[at] != b'"' {
        at = match json.get(at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => at + 2,
            b'u' if json.get(at + 2..at + 6)?.iter().all(u8::is_ascii_hexdigit) => at + 6,
            _ => return None,
        };
        at = quote_or_escape(json, at)?;
    }
    Some(at + 1)
}

/// The first quote or backslash from `at` on.
pub(super) fn quote_or_escape(json: &[u8], at: usize) -> Option<usize> {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    let rest = json.get(at..)?;
    // Most strings are names, for which setting up a wide search takes longer than finding.
    if let Some(word) = rest.first_chunk() {
        let word = u64::from_le_bytes(*word);
        // A byte is zero if taking one from it borrows: its high bit is then set, and was not before.
        // A borrow may mark bytes behind it as well, but the first mark is right.
        let quote = word ^ (EACH * b'"' as u64);
        let escape = word ^ (EACH * b'\\' as u64);
        let zero = quote.wrapping_sub(EACH) & !quote | escape.wrapping_sub(EACH) & !escape;
        let marks = zero & (EACH << 7);
        if marks != 0 {
            return Some(at + marks.trailing_zeros() as usize / 8);
        }
    }
    memchr::memchr2(b'"', b'\\', rest).map(|found| at + found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
        let proper = proper(text).filter(|(value, _)| !has_control(value.as_bytes()));
        assert_eq!(quick, proper, "{text}");
        quick.is_some()
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
