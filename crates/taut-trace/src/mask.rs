//! Hides secrets in the text of a message: values that are known, values of names that sound secret,
//! and what looks like a token of a known service.
//!
//! Works on text, not on a tree, so that it finds the same in JSON, in JSON inside a string of JSON to
//! any depth, in headers, in `NAME=value` and in a log line. Everything else stays byte for byte. Pure.

use std::collections::HashMap;

/// What stands in place of a secret.
pub const MASK: &str = "***";

/// Shorter values are not masked: they stand everywhere, and masking them would hide nothing else.
pub const SHORTEST: usize = 8;

/// How long a name may be; what is longer is not one.
const LONGEST_NAME: usize = 64;

/// How many names are remembered with the verdict on them; judging one takes longer than looking it up.
const REMEMBERED: usize = 4096;

/// How tokens of well-known services begin; the first group says it all, the second needs a digit or
/// a capital letter after it to be told from a word.
const CERTAIN: [&str; 12] = [
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxa-",
    "xoxb-",
    "xoxp-",
    "xoxr-",
    "xoxs-",
];
const LIKELY: [&str; 12] =
    ["sk-", "sk_", "rk_", "pk_", "AKIA", "ASIA", "npm_", "hf_", "AIza", "pypi-", "eyJ", "ya29."];

/// Words before a credential, in a header or in a sentence.
const SCHEMES: [&str; 3] = ["Bearer ", "Basic ", "token "];

/// Finds and hides secrets.
#[derive(Debug, Default)]
pub struct Masker {
    /// Texts to hide, in every form that they may have, by their first byte; the longest first. Empty, or
    /// one list for each byte: every byte of every message is looked up here.
    values: Vec<Vec<String>>,
    longest: usize,
    on: bool,
    known: HashMap<Vec<u8>, bool>,
}

impl Masker {
    /// Hides nothing.
    #[must_use]
    pub fn off() -> Self {
        Self::default()
    }

    /// Hides the values of names that [secrets have](taut::is_secret_name), and tokens.
    #[must_use]
    pub fn on() -> Self {
        Self { on: true, ..Self::default() }
    }

    /// Whether it hides anything.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Also hides this value, wherever it stands, if it is long enough.
    pub fn hide(&mut self, value: &str) {
        if !self.on {
            return;
        }
        for part in parts(value) {
            for form in forms(part) {
                self.longest = self.longest.max(form.len());
                let Some(first) = form.bytes().next() else { continue };
                self.values.resize_with(256, Vec::new);
                let known = &mut self.values[usize::from(first)];
                if !known.contains(&form) {
                    known.push(form);
                    // One that holds another goes first, or its rest would be left.
                    known.sort_by_key(|text| std::cmp::Reverse(text.len()));
                }
            }
        }
    }

    /// Appends the text with its secrets hidden, and the place of each mask in what was appended.
    pub fn apply(&mut self, text: &[u8], out: &mut Vec<u8>, masked: &mut Vec<usize>) {
        if !self.is_on() {
            out.extend_from_slice(text);
            return;
        }
        let began = out.len();
        let mut copied = 0;
        let mut at = 0;
        while at < text.len() {
            match self.secret_at(text, at) {
                Some(secret) if secret.to > secret.from && secret.from >= copied => {
                    out.extend_from_slice(&text[copied..secret.from]);
                    out.extend_from_slice(secret.quote);
                    masked.push(out.len() - began);
                    out.extend_from_slice(MASK.as_bytes());
                    out.extend_from_slice(secret.quote);
                    (copied, at) = (secret.to, secret.to);
                }
                _ => at += 1,
            }
        }
        out.extend_from_slice(&text[copied..]);
    }

    /// The same for text that was cut: its end may be the beginning of a secret.
    pub fn apply_to_cut(&mut self, text: &[u8], out: &mut Vec<u8>, masked: &mut Vec<usize>) {
        let kept = text.len().saturating_sub(self.longest);
        let starts = |from: usize| {
            let rest = &text[from..];
            let values = self.starting_with(rest[0]);
            values
                .iter()
                .any(|value| value.len() > rest.len() && value.as_bytes().starts_with(rest))
        };
        let end = (kept..text.len()).find(|from| starts(*from)).unwrap_or(text.len());
        self.apply(&text[..end], out, masked);
    }

    fn starting_with(&self, byte: u8) -> &[String] {
        self.values.get(usize::from(byte)).map_or(&[], Vec::as_slice)
    }

    /// The secret that is found by looking at this byte; it may begin later.
    fn secret_at<'t>(&mut self, text: &'t [u8], at: usize) -> Option<Secret<'t>> {
        let byte = text[at];
        let rest = &text[at..];
        let known = self.starting_with(byte).iter().find(|v| rest.starts_with(v.as_bytes()));
        if let Some(value) = known {
            return Some(Secret { from: at, to: at + value.len(), quote: b"" });
        }
        match byte {
            b':' | b'=' => self.named(text, at),
            // How tokens and `Bearer` begin.
            b'A' | b'B' | b'b' | b'e' | b'g' | b'h' | b'n' | b'p' | b'r' | b's' | b'x' | b'y'
                if at == 0 || !is_word(text[at - 1]) =>
            {
                token(text, at)
            }
            _ => None,
        }
    }

    /// The value after a colon or an equals sign, if the name before it is a secret's.
    fn named<'t>(&mut self, text: &'t [u8], sign: usize) -> Option<Secret<'t>> {
        let (name, quote) = name_before(text, sign)?;
        if !self.sounds_secret(name) {
            return None;
        }
        value_after(text, sign + 1, quote)
    }

    fn sounds_secret(&mut self, name: &[u8]) -> bool {
        if let Some(verdict) = self.known.get(name) {
            return *verdict;
        }
        let verdict = taut::is_secret_name(&String::from_utf8_lossy(name));
        if self.known.len() < REMEMBERED {
            self.known.insert(name.to_vec(), verdict);
        }
        verdict
    }
}

/// Whether a text begins as the tokens of well-known services do.
#[must_use]
pub fn begins_like_token(text: &str) -> bool {
    CERTAIN.iter().chain(&LIKELY).any(|beginning| text.starts_with(beginning))
}

/// Where a secret stands, and the quotes that its mask needs.
struct Secret<'t> {
    from: usize,
    to: usize,
    quote: &'t [u8],
}

/// The parts of a value that may be told without the rest: a password without its address, a key line
/// by line.
fn parts(value: &str) -> Vec<&str> {
    let mut parts = vec![value];
    if let Some((_, rest)) = value.split_once("://")
        && let Some((user, _)) = rest.split('/').next().unwrap_or(rest).rsplit_once('@')
    {
        parts.push(user.split_once(':').map_or(user, |(_, password)| password));
    }
    parts.extend(SCHEMES.iter().filter_map(|scheme| value.strip_prefix(scheme)));
    if value.contains('\n') {
        parts.extend(value.lines().map(str::trim));
    }
    parts.retain(|part| part.len() >= SHORTEST);
    parts
}

/// How often a text may be wrapped in JSON and still be found, if it has characters that are escaped. The
/// others look the same at any depth.
const DEEPEST: usize = 6;

/// A text as it is, and as it stands in JSON, in JSON in JSON and so on; each with characters beyond ASCII
/// as they are and escaped, and slashes as they are and escaped.
fn forms(text: &str) -> Vec<String> {
    let mut forms = vec![text.to_owned()];
    for (ascii, slash) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut form = text.to_owned();
        for _ in 0..DEEPEST {
            form = escaped(&form, ascii, slash);
            if !forms.contains(&form) {
                forms.push(form.clone());
            }
        }
    }
    forms
}

fn escaped(text: &str, ascii: bool, slash: bool) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    let mut out = String::new();
    for c in quoted[1..quoted.len() - 1].chars() {
        match c {
            '/' if slash => out.push_str("\\/"),
            c if ascii && !c.is_ascii() => {
                let mut units = [0; 2];
                c.encode_utf16(&mut units)
                    .iter()
                    .for_each(|u| out.push_str(&format!("\\u{u:04x}")));
            }
            c => out.push(c),
        }
    }
    out
}

/// The name before a sign, and the quote around it with its backslashes.
fn name_before(text: &[u8], sign: usize) -> Option<(&[u8], &[u8])> {
    let mut end = sign;
    while end > 0 && matches!(text[end - 1], b' ' | b'\t') && sign - end < 4 {
        end -= 1;
    }
    let last = *text.get(end.checked_sub(1)?)?;
    if matches!(last, b'"' | b'\'') {
        let mut quote = end - 1;
        while quote > 0 && text[quote - 1] == b'\\' {
            quote -= 1;
        }
        let start = text[..quote].iter().rev().take(LONGEST_NAME + 1).position(|b| *b == last)?;
        return Some((&text[quote - start..quote], &text[quote..end]));
    }
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let long = text[..end].iter().rev().take(LONGEST_NAME + 1).take_while(|b| is_name(b)).count();
    (1..=LONGEST_NAME).contains(&long).then(|| (&text[end - long..end], &b""[..]))
}

/// The value from here on, without its quotes; its scheme, such as `Bearer`, is not part of it.
fn value_after<'t>(text: &'t [u8], from: usize, name_quote: &'t [u8]) -> Option<Secret<'t>> {
    let skip = |at: usize, set: &[u8]| {
        at + text[at..].iter().take_while(|byte| set.contains(byte)).count()
    };
    let mut begin = skip(from, b" \t");
    let slashes = skip(begin, b"\\") - begin;
    let quoted = matches!(text.get(begin + slashes), Some(b'"' | b'\''));
    let end = if quoted {
        let quote = text[begin + slashes];
        begin += slashes + 1;
        begin + closing(&text[begin..], quote, slashes)
    } else {
        let stop = |byte: &u8| byte.is_ascii_whitespace() || b",;&}])\"'\\{[".contains(byte);
        begin + text[begin..].iter().position(stop).unwrap_or(text.len() - begin)
    };
    let scheme = SCHEMES.iter().find(|scheme| {
        text[begin..].len() > scheme.len()
            && text[begin..begin + scheme.len()].eq_ignore_ascii_case(scheme.as_bytes())
    });
    let (mut start, mut stop) = (begin + scheme.map_or(0, |scheme| scheme.len()), end);
    if !quoted && scheme.is_some() {
        let word = text[start..].iter().position(|b| !is_word(*b) && !b"+/=.~".contains(b));
        stop = start + word.unwrap_or(text.len() - start);
    }
    start = start.min(stop);
    let value = &text[start..stop];
    if value.len() < SHORTEST {
        return None;
    }
    // A number or a word without quotes would leave no JSON if it were merely replaced.
    let bare = !quoted && !name_quote.is_empty();
    let literal = matches!(value, b"true" | b"false" | b"null");
    (!literal).then_some(Secret {
        from: start,
        to: stop,
        quote: if bare { name_quote } else { b"" },
    })
}

/// How far it is to the quote that ends a text which began with a quote behind so many backslashes.
/// Inside, a backslash takes twice as many as at the level outside, and one more for the quote itself.
fn closing(text: &[u8], quote: u8, slashes: usize) -> usize {
    let mut run = 0;
    for (at, byte) in text.iter().enumerate() {
        if *byte == b'\\' {
            run += 1;
            continue;
        }
        let ends = run < slashes || (run - slashes).is_multiple_of(2 * (slashes + 1));
        if *byte == quote && ends {
            return at - run.min(slashes);
        }
        run = 0;
    }
    text.len()
}

/// What can be a part of a token.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'+' | b'/' | b'=')
}

/// A token of a known service, or what follows `Bearer`.
fn token(text: &[u8], at: usize) -> Option<Secret<'static>> {
    let rest = &text[at..];
    let word = |from: usize| {
        let inside = |byte: &&u8| is_word(**byte) || matches!(byte, b'.' | b'~');
        rest[from..].iter().take_while(inside).count()
    };
    if rest.len() > 7 && rest[..7].eq_ignore_ascii_case(b"bearer ") {
        let long = word(7);
        let credential = &rest[7..7 + long];
        let telling = credential.iter().any(u8::is_ascii_digit) || long >= 16;
        return (long >= SHORTEST && telling).then_some(Secret {
            from: at + 7,
            to: at + 7 + long,
            quote: b"",
        });
    }
    let starts = |beginning: &str| rest.starts_with(beginning.as_bytes());
    let certain = CERTAIN.iter().any(|beginning| starts(beginning));
    let likely = LIKELY.iter().find(|beginning| starts(beginning));
    if !certain && likely.is_none() {
        return None;
    }
    let long = word(0);
    let telling = certain
        || likely.is_some_and(|beginning| {
            let inside = rest.get(beginning.len()..long).unwrap_or_default();
            let mixed = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
            // Base64 of any JSON object begins with eyJ; a token has three parts.
            inside.iter().any(mixed) && (*beginning != "eyJ" || inside.contains(&b'.'))
        });
    (long >= SHORTEST && telling).then_some(Secret { from: at, to: at + long, quote: b"" })
}

#[cfg(test)]
#[path = "mask_tests.rs"]
mod tests;
