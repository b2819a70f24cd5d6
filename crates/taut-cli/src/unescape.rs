//! Finds a text in JSON although some of its characters are written with escapes, and replaces it there.
//!
//! Pure. Everything else in the JSON stays byte for byte. `secrets.rs` uses it, because a server may write any
//! character of a secret as `\uXXXX`.

use std::borrow::Cow;
use std::ops::Range;

use crate::mask::HIDDEN;

/// The characters of a text, each with the place of what it is written with.
fn letters(text: &str) -> impl Iterator<Item = (char, Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let letter = text[at..].chars().next()?;
        let (letter, long) = escape(&text[at..]).unwrap_or_else(|| (letter, letter.len_utf8()));
        at += long;
        Some((letter, at - long..at))
    })
}

/// The text with one layer of escapes less.
fn unescaped(text: &str) -> String {
    letters(text).map(|(letter, _)| letter).collect()
}

/// Where places in the unescaped text stand in the text itself. Found by reading it once more: a place for each byte
/// would take many times the memory of a long message.
fn before(text: &str, places: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut wanted: Vec<usize> =
        places.iter().flat_map(|place| [place.start, place.end - 1]).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let (mut found, mut at) = (Vec::with_capacity(wanted.len()), 0);
    for (letter, from) in letters(text) {
        at += letter.len_utf8();
        while found.len() < wanted.len() && wanted[found.len()] < at {
            found.push(from.clone());
        }
    }
    let of = |byte: usize| wanted.binary_search(&byte).ok().and_then(|at| found.get(at));
    let whole = |place: &Range<usize>| Some(of(place.start)?.start..of(place.end - 1)?.end);
    places.iter().filter_map(whole).collect()
}

/// The character that a text begins with if that is an escape, and how long the escape is.
fn escape(text: &str) -> Option<(char, usize)> {
    let rest = text.strip_prefix('\\')?;
    let letter = match rest.chars().next()? {
        letter @ ('"' | '\\' | '/') => letter,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => return unicode(text),
        _ => return None,
    };
    Some((letter, 2))
}

/// The same for `\uXXXX`, and for two of them that are one character.
fn unicode(text: &str) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let first = unit(0)?;
    if let Some(letter) = char::from_u32(u32::from(first)) {
        return Some((letter, 6));
    }
    let pair = [first, unit(6)?];
    char::decode_utf16(pair).next()?.ok().map(|letter| (letter, 12))
}

/// The text with each of `words` replaced wherever it stands under up to `layers` of escapes; `None` if none
/// does.
pub(crate) fn replaced<'a>(
    text: &str,
    layers: usize,
    words: impl Iterator<Item = &'a str> + Clone,
) -> Option<String> {
    let mut texts = vec![Cow::Borrowed(text)];
    let mut places: Vec<Range<usize>> = Vec::new();
    while texts.len() <= layers
        && let Some(last) = texts.last().filter(|last| last.contains('\\'))
    {
        let plain = unescaped(last);
        let words = words.clone().filter(|word| !word.is_empty());
        let found: Vec<Range<usize>> = words
            .flat_map(|word| plain.match_indices(word).map(|(at, word)| at..at + word.len()))
            .collect();
        places.extend(texts.iter().rev().fold(found, |found, text| before(text, &found)));
        texts.push(plain.into());
    }
    if places.is_empty() {
        return None;
    }
    places.sort_by_key(|place| (place.start, place.end));
    let (mut out, mut done) = (String::new(), 0);
    for place in places {
        if place.start >= done {
            out.push_str(&text[done..place.start]);
            out.push_str(HIDDEN);
        }
        done = done.max(place.end);
    }
    Some(out + &text[done..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_under_its_escapes_and_nothing_else_changes() {
        let words = || ["hunter2", "a/b", "né"].into_iter();
        for (text, shown) in [
            (r#"{"a":"\u0068unter2","b":"\n"}"#, Some(r#"{"a":"***","b":"\n"}"#)),
            (r#"\u0068unter\u0032 a\/b \t a\/b"#, Some(r"*** *** \t ***")),
            (r#"{"text":"{\"t\":\"\\u0068unter2\"}"}"#, Some(r#"{"text":"{\"t\":\"***\"}"}"#)),
            (r"n\u00e9, n\u00e", Some(r"***, n\u00e")),
            (r"\ud83d\ude00hunter2\ud83d", Some(r"\ud83d\ude00***\ud83d")),
            (r"hunter\\u0032 three layers", Some("*** three layers")),
            (r"\n hunter \u", None),
            ("", None),
        ] {
            assert_eq!(replaced(text, 3, words()).as_deref(), shown, "{text}");
        }
        assert_eq!(replaced(r"hunter\\u0032", 1, words()), None, "that is two layers");
    }
}
