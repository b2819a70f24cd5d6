//! Text from a stranger, made safe for a terminal.
//!
//! Knows which characters steer a terminal or deceive the eye: control characters, those that change
//! the direction of text, and those that cannot be seen. `gate` calls it for everything but content that
//! was asked for as it is. SEC-05.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Escapes what must not reach a terminal; line ends and tabs stay.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    lines(text, is_harmful)
}

/// As [`clean`], for content in a pipe: only control characters are escaped. Characters without width belong to
/// the text there, as in many emoji and in Persian. JSON stays the same document, because a program may read it.
pub(crate) fn content(text: &str) -> Cow<'_, str> {
    let escaped = lines(text, char::is_control);
    let is_json = || serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if matches!(escaped, Cow::Owned(_)) && is_json() {
        return as_json(text, char::is_control);
    }
    escaped
}

/// Escapes line by line; a line may end as on Windows.
fn lines(text: &str, harmful: impl Fn(char) -> bool) -> Cow<'_, str> {
    let harmful = |character| harmful(character) && !matches!(character, '\n' | '\t');
    if !text.contains('\r') {
        return escape(text, harmful);
    }
    let lines: Vec<_> = text.split("\r\n").map(|line| escape(line, harmful)).collect();
    if lines.iter().all(|line| matches!(line, Cow::Borrowed(_))) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(lines.join("\r\n"))
}

/// As [`clean`], for text that has one line to itself: whatever breaks the line becomes a space.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    if text.contains(['\n', '\r', '\t']) {
        let words: Vec<&str> = text.split_whitespace().collect();
        return Cow::Owned(escape(&words.join(" "), is_harmful).into_owned());
    }
    escape(text, is_harmful)
}

/// As [`clean`], for JSON, which stays the same document.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    as_json(text, is_harmful)
}

/// Line ends and tabs stand between values, everything else that is harmful can only stand in a string.
fn as_json(text: &str, harmful: impl Fn(char) -> bool) -> Cow<'_, str> {
    let harmful = |character| harmful(character) && !matches!(character, '\n' | '\t');
    if !text.chars().any(harmful) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if character == '\r' {
            out.push(' ');
        } else if harmful(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

fn escape(text: &str, harmful: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&harmful) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if harmful(character) {
            let _ = write!(out, "{}", character.escape_unicode());
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            // Direction.
            '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{206F}'
            // Without width, and line ends that are none.
            | '\u{00AD}' | '\u{034F}' | '\u{17B4}' | '\u{17B5}' | '\u{200B}'..='\u{200D}'
            | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}' | '\u{FEFF}' | '\u{FFF0}'..='\u{FFFB}'
            | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}'
            // Letters and a picture that are blank.
            | '\u{115F}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{FFA0}' | '\u{1D159}'
            // Variation selectors: they can carry a whole text behind one letter.
            | '\u{180B}'..='\u{180F}' | '\u{FE00}'..='\u{FE0F}'
            // Tags and more selectors: whole alphabets that nobody sees.
            | '\u{E0000}'..='\u{E0FFF}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sec_05_what_steers_or_hides_is_escaped_and_the_rest_stays() {
        let table = [
            ("plain ä 漢字 😀", "plain ä 漢字 😀"),
            ("a\tb\nc", "a\tb\nc"),
            ("\x1b[2Jx", "\\u{1b}[2Jx"),
            ("a\rb", "a\\u{d}b"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("abc\u{202e}fed", "abc\\u{202e}fed"),
            ("a\u{200b}b\u{feff}", "a\\u{200b}b\\u{feff}"),
            ("\u{e0041}", "\\u{e0041}"),
            ("a\u{fe01}\u{e0150}b", "a\\u{fe01}\\u{e0150}b"),
            ("\u{3164}\u{115f}\u{2800}", "\\u{3164}\\u{115f}\\u{2800}"),
        ];
        for (text, cleaned) in table {
            assert_eq!(clean(text), cleaned, "{text:?}");
        }
        assert_eq!(line("a\nb\t\tc\x07"), "a b c\\u{7}");
    }

    #[test]
    fn a_line_may_end_as_on_windows() {
        assert_eq!(clean("a\r\nb\tc\r\n"), "a\r\nb\tc\r\n");
        assert_eq!(clean("a\r\n\x07\rb\r\n"), "a\r\n\\u{7}\\u{d}b\r\n");
        assert_eq!(content("a\r\nb\rc"), "a\r\nb\\u{d}c");
    }

    #[test]
    fn sec_05_content_in_a_pipe_has_no_control_characters_and_is_else_as_it_was() {
        let kept = "❤\u{fe0f} می\u{200c}خواهم\u{202e}\n\ta\r\n";
        assert_eq!(content(kept), kept);
        assert_eq!(content("a\x1b[2J\u{9b}\0"), "a\\u{1b}[2J\\u{9b}\\u{0}");
        // A document stays one.
        let escaped = "{\"a\": \n\t\"\\u009b\u{200b}\"   }";
        assert_eq!(content("{\"a\": \n\t\"\u{9b}\u{200b}\" \r }"), escaped);
    }

    #[test]
    fn a_document_stays_the_same_document() {
        let value = serde_json::json!({ "a": "\u{202e}x\u{9b}\u{e0041}\u{7f}", "b": "\n" });
        let text = serde_json::to_string_pretty(&value).unwrap();
        let cleaned = json(&text);
        assert!(!cleaned.chars().any(|c| is_harmful(c) && c != '\n'), "{cleaned:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&cleaned).unwrap(), value);
        // As a server may have written it.
        assert_eq!(json("{\t\"a\":\r\n\"\u{202e}\"}"), "{\t\"a\": \n\"\\u202e\"}");
    }
}
