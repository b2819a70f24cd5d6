//! Finds secrets that were not named as such before: values of names that sound secret, and what looks like a
//! token of a well-known service.
//!
//! Works on text, not on a tree, so that it finds the same in JSON, in JSON inside a string of JSON to any
//! depth, in headers, in `NAME=value` and in a log line. Looks at one place of a text, with what stands around
//! it; must not know what comes later. Pure.

use std::collections::HashMap;
use std::ops::Range;

use super::looks::{CERTAIN, LIKELY, LONG, SCHEMES, SHORTEST, is_switch};
use super::names::is_secret_name;
use super::spellings::readings;

/// How long a name may be; what is longer is not one.
const LONGEST_NAME: usize = 64;

/// Backslashes before a quote: those of six times JSON in JSON.
const SLASHES: usize = 64;

/// Blanks between a name, its sign and the value.
const BLANKS: usize = 16;

/// What stands before a place and may belong to it.
pub(super) const BEFORE: usize = LONGEST_NAME + 2 * SLASHES + BLANKS;

/// How much of a value has to be seen before it is judged, with what stands before it.
const AHEAD: usize = BLANKS + SLASHES + 32;

/// How much of a word has to be seen to tell a token from a word: the first part of a JWT.
const LONGEST_LOOK: usize = 1 << 10;

/// How many names are remembered with the verdict on them; judging one takes longer than looking it up.
const REMEMBERED: usize = 4096;

/// What is said of a place.
#[derive(Debug)]
pub(super) enum Finding {
    /// No secret is found by looking here.
    No,
    /// More of the text decides.
    More,
    /// A secret begins at `from`.
    Secret { from: usize, quote: Range<usize>, end: End },
}

/// How a value ends.
#[derive(Clone, Debug)]
pub(super) enum End {
    /// With this quote behind so many backslashes. Inside, a backslash takes twice as many as at the level
    /// outside, and one more for the quote itself. `run` counts those that were seen last.
    Quote { quote: u8, slashes: usize, run: usize },
    /// Before what cannot stand in a value without quotes.
    Bare,
    /// Before what cannot stand in a token or in a credential.
    Token,
}

impl End {
    /// Whether the value has ended before this byte, which follows those that were asked about before.
    pub(super) fn is_at(&mut self, byte: u8) -> bool {
        match self {
            Self::Quote { quote, slashes, run } => {
                if byte == b'\\' {
                    *run += 1;
                    return false;
                }
                let outside =
                    *run < *slashes || (*run - *slashes).is_multiple_of(2 * (*slashes + 1));
                if byte == *quote && outside {
                    return true;
                }
                *run = 0;
                false
            }
            Self::Bare => byte.is_ascii_whitespace() || b",;&}])\"'\\{[".contains(&byte),
            Self::Token => !is_word(byte) && !b".~".contains(&byte),
        }
    }

    /// How many of the last bytes belong to the end and not to the value, now that it has ended.
    pub(super) fn behind(&self) -> usize {
        match self {
            Self::Quote { slashes, run, .. } => *run.min(slashes),
            _ => 0,
        }
    }

    /// How many of the last bytes may turn out to belong to the end.
    pub(super) fn unsure(&self) -> usize {
        match self {
            Self::Quote { run, .. } => *run,
            _ => 0,
        }
    }
}

/// Judges places of texts.
#[derive(Debug, Default)]
pub(super) struct Named {
    known: HashMap<Vec<u8>, bool>,
}

impl Named {
    /// What is found by looking at this place. `whole` says that no more comes after the text.
    pub(super) fn look(&mut self, text: &[u8], at: usize, whole: bool) -> Finding {
        match text[at] {
            b':' | b'=' => self.named(text, at, whole),
            // How tokens and `Bearer` begin.
            b'A' | b'B' | b'b' | b'e' | b'g' | b'h' | b'n' | b'p' | b'r' | b's' | b'x' | b'y'
                if at == 0 || !is_word(text[at - 1]) =>
            {
                token(text, at, whole)
            }
            _ => Finding::No,
        }
    }

    /// The value after a colon or an equals sign, if the name before it is a secret's.
    fn named(&mut self, text: &[u8], sign: usize, whole: bool) -> Finding {
        let Some((name, quote)) = name_before(text, sign) else { return Finding::No };
        if !self.sounds_secret(&text[name.clone()]) {
            return Finding::No;
        }
        if !whole && text.len() - sign <= AHEAD {
            return Finding::More;
        }
        value_after(text, sign + 1, &text[name], quote)
    }

    fn sounds_secret(&mut self, name: &[u8]) -> bool {
        if let Some(verdict) = self.known.get(name) {
            return *verdict;
        }
        // Its characters may be written with escapes.
        let readings = readings(name, name.len()).into_iter();
        let mut readings =
            readings.map(|all| all.iter().map(|(byte, _)| *byte).collect::<Vec<_>>());
        let verdict = readings.any(|name| is_secret_name(&String::from_utf8_lossy(&name)));
        if self.known.len() < REMEMBERED {
            self.known.insert(name.to_vec(), verdict);
        }
        verdict
    }
}

/// The name before a sign, and the quote around it with its backslashes.
fn name_before(text: &[u8], sign: usize) -> Option<(Range<usize>, Range<usize>)> {
    let mut end = sign;
    while end > 0 && matches!(text[end - 1], b' ' | b'\t') && sign - end < 4 {
        end -= 1;
    }
    let last = *text.get(end.checked_sub(1)?)?;
    if matches!(last, b'"' | b'\'') {
        let mut quote = end - 1;
        while quote > 0 && text[quote - 1] == b'\\' && end - quote <= SLASHES {
            quote -= 1;
        }
        let start = text[..quote].iter().rev().take(LONGEST_NAME + 1).position(|b| *b == last)?;
        return Some((quote - start..quote, quote..end));
    }
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let long = text[..end].iter().rev().take(LONGEST_NAME + 1).take_while(|b| is_name(b)).count();
    (1..=LONGEST_NAME).contains(&long).then(|| (end - long..end, end..end))
}

/// The value from here on, without its quotes; its scheme, such as `Bearer`, is not part of it.
fn value_after(text: &[u8], from: usize, name: &[u8], name_quote: Range<usize>) -> Finding {
    let skip = |at: usize, set: &[u8], most: usize| {
        at + text[at..].iter().take(most).take_while(|byte| set.contains(byte)).count()
    };
    let mut begin = skip(from, b" \t", BLANKS);
    let slashes = skip(begin, b"\\", SLASHES) - begin;
    let quoted = matches!(text.get(begin + slashes), Some(b'"' | b'\''));
    let mut end = if quoted {
        let quote = text[begin + slashes];
        begin += slashes + 1;
        End::Quote { quote, slashes, run: 0 }
    } else {
        End::Bare
    };
    let scheme = SCHEMES.iter().find(|scheme| {
        text[begin..].len() > scheme.len()
            && text[begin..begin + scheme.len()].eq_ignore_ascii_case(scheme.as_bytes())
    });
    let start = begin + scheme.map_or(0, |scheme| scheme.len());
    if !quoted && scheme.is_some() {
        end = End::Token;
    }
    // A name without quotes may be the last word of a sentence, and `key` is no more than that.
    let weak = name_quote.is_empty()
        || name.eq_ignore_ascii_case(b"key")
        || name.eq_ignore_ascii_case(b"keys");
    let least = if weak { LONG } else { SHORTEST };
    let mut seen = end.clone();
    let over = text[start..].iter().take(LONG).position(|byte| seen.is_at(*byte));
    let long = over.map_or_else(|| (text.len() - start).min(LONG), |over| over - seen.behind());
    let value = &text[start..start + long];
    // `"inputTokens":1234` counts them.
    let counts = !quoted
        && name.to_ascii_lowercase().ends_with(b"tokens")
        && value.iter().all(u8::is_ascii_digit);
    if value.len() < least || (value.len() < LONG && is_switch(value)) || counts {
        return Finding::No;
    }
    // A number or a word without quotes would leave no JSON if it were merely replaced.
    let bare = !quoted && !name_quote.is_empty();
    let quote = if bare { name_quote } else { 0..0 };
    Finding::Secret { from: start, quote, end }
}

/// What can be a part of a token.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'+' | b'/' | b'=')
}

/// A token of a known service, or what follows `Bearer`.
fn token(text: &[u8], at: usize, whole: bool) -> Finding {
    let rest = &text[at..];
    let word = |from: usize| {
        let inside = |byte: &&u8| is_word(**byte) || matches!(byte, b'.' | b'~');
        rest[from..].iter().take(LONGEST_LOOK).take_while(inside).count()
    };
    let found = |from: usize| Finding::Secret { from: at + from, quote: 0..0, end: End::Token };
    let longest = CERTAIN.iter().chain(&LIKELY).map(|beginning| beginning.len()).max().unwrap_or(0);
    if !whole && rest.len() <= longest {
        return Finding::More;
    }
    if rest.len() > 7 && rest[..7].eq_ignore_ascii_case(b"bearer ") {
        let long = word(7);
        let credential = &rest[7..7 + long];
        let telling = credential.iter().any(u8::is_ascii_digit) || long >= 16;
        if long >= LONG && telling {
            return found(7);
        }
        return if !whole && 7 + long == rest.len() { Finding::More } else { Finding::No };
    }
    let starts = |beginning: &str| rest.starts_with(beginning.as_bytes());
    let certain = CERTAIN.iter().any(|beginning| starts(beginning));
    let likely = LIKELY.iter().find(|beginning| starts(beginning));
    if !certain && likely.is_none() {
        return Finding::No;
    }
    let long = word(0);
    let telling = certain
        || likely.is_some_and(|beginning| {
            let inside = rest.get(beginning.len()..long).unwrap_or_default();
            let mixed = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
            // Base64 of any JSON object begins with eyJ; a token has three parts.
            inside.iter().any(mixed) && (*beginning != "eyJ" || inside.contains(&b'.'))
        });
    if long >= LONG && telling {
        return found(0);
    }
    if !whole && long == rest.len() && long < LONGEST_LOOK { Finding::More } else { Finding::No }
}
