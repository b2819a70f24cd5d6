//! Finds a text in JSON although some of its characters are written with escapes, and replaces it there.
//!
//! Pure. Everything else in the JSON stays byte for byte. `secrets.rs` uses it, because a server may write any
//! character of a secret as `\uXXXX`.

use std::ops::Range;

use crate::mask::HIDDEN;

/// A text without its escapes, and where each of its bytes stood before.
struct Plain {
    text: String,
    /// For each byte the place of what it was written with.
    from: Vec<Range<usize>>,
}

impl Plain {
    fn of(text: &str) -> Self {
        let from = (0..text.len()).map(|at| at..at + 1).collect();
        Self { text: text.to_owned(), from }
    }

    /// The same with one layer of escapes less.
    fn unescaped(&self) -> Self {
        let mut plain = Self { text: String::new(), from: Vec::new() };
        let mut at = 0;
        while let Some(letter) = self.text[at..].chars().next() {
            let (letter, long) =
                escape(&self.text[at..]).unwrap_or_else(|| (letter, letter.len_utf8()));
            plain.text.push(letter);
            let place = self.from[at].start..self.from[at + long - 1].end;
            plain.from.extend(std::iter::repeat_n(place, letter.len_utf8()));
            at += long;
        }
        plain
    }
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
    let mut plain = Plain::of(text);
    let mut places: Vec<Range<usize>> = Vec::new();
    for _ in 0..layers {
        plain = plain.unescaped();
        for word in words.clone().filter(|word| !word.is_empty()) {
            let found = plain.text.match_indices(word);
            places.extend(
                found.map(|(at, word)| plain.from[at].start..plain.from[at + word.len() - 1].end),
            );
        }
        if !plain.text.contains('\\') {
            break;
        }
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
