//! What must not be told by this command itself: values that a server was given, wherever they turn up.
//!
//! Knows which values are secrets (docs/command.md, "What is never shown") and hides them in a text, in
//! every form that they take on the way: inside JSON, inside JSON inside JSON, on one line, escaped for a
//! terminal, cut. Filled before a server starts; names and looks are judged by `mask.rs`. Must not print.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::gate::escape;
use crate::mask;
use crate::unescape;

/// Texts that are never told, the longest first: one that holds another goes before it, or its rest
/// would be left.
static SECRETS: OnceLock<Mutex<Longest>> = OnceLock::new();

type Longest = BTreeSet<(Reverse<usize>, String)>;

/// How often a text may be JSON inside JSON: a message in the text of a tool that quotes a message.
const NESTED: usize = 3;

/// Shorter ones hide nothing but what can be read: they stand everywhere.
const SHORTEST: usize = 4;

/// From here on a value may be a secret although its name promises nothing.
const LONG: usize = 8;

/// From here on it is taken for one, even if it is a plain word.
const LONGER: usize = 16;

/// What a switch is set to. A name that sounds secret (`USE_TOKEN`) does not make it one.
const SWITCHES: [&str; 6] = ["true", "false", "none", "null", "auto", "default"];

/// A value that a server is given, under its name.
pub(crate) fn hide(name: &str, value: &str) {
    let mut secrets = lock(SECRETS.get_or_init(Mutex::default));
    for part in parts(name, value) {
        secrets.extend(forms(part).into_iter().map(|text| (Reverse(text.len()), text)));
    }
}

/// A secret in each form in which it may be told.
fn forms(part: &str) -> Vec<String> {
    let on_a_line = part.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut all = vec![part.to_owned(), on_a_line];
    for json in [inside_json, inside_ascii_json] {
        let mut text = part.to_owned();
        for _ in 0..NESTED {
            text = json(&text);
            all.push(text.clone());
        }
    }
    // As the gate would show each to a terminal.
    let shown: Vec<String> = all
        .iter()
        .flat_map(|text| [escape::clean(text), escape::line(text)])
        .map(Into::into)
        .collect();
    all.extend(shown);
    all.retain(|text| text.len() >= SHORTEST);
    all
}

/// What is secret of our own environment: a server inherits it, or is asked with it.
pub(crate) fn hide_ours() {
    for (name, value) in std::env::vars() {
        if mask::is_secret_name(&name) {
            hide(&name, &value);
        }
    }
}

/// The secrets in a command line, as far as they look like it.
pub(crate) fn hide_words(words: &[String]) {
    let shown = mask::words(words.iter().map(String::as_str));
    for (word, shown) in words.iter().zip(&shown) {
        if word.contains(char::is_whitespace) {
            // A command line inside, as that of `sh -c`: each of its words by itself.
            let inside: Vec<String> = mask::words_of(word).map(str::to_owned).collect();
            hide_words(&inside);
        }
        // What was replaced, without what still stands around it.
        let (before, after) = shown.split_once(mask::HIDDEN).unwrap_or((shown, ""));
        let inside = word.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
        if let Some(inside) = inside.filter(|_| word != shown) {
            // The whole of an address too, for the password in it.
            hide("secret", inside);
            hide("secret", word);
        }
    }
}

/// The text as it may be told.
pub(crate) fn masked(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    let Some(secrets) = SECRETS.get() else { return text };
    let all = lock(secrets);
    for (_, secret) in all.iter() {
        if text.contains(secret.as_str()) {
            text = Cow::Owned(text.replace(secret.as_str(), mask::HIDDEN));
        }
        if let Some(whole) = without_beginnings(&text, secret) {
            text = Cow::Owned(whole);
        }
        if let Some(whole) = without_ends(&text, secret) {
            text = Cow::Owned(whole);
        }
    }
    if text.contains('\\') {
        let hidden = unescape::replaced(&text, NESTED, all.iter().map(|(_, text)| text.as_str()));
        if let Some(hidden) = hidden {
            return Cow::Owned(hidden);
        }
    }
    text
}

/// As [`masked`], for a text whose beginning was cut off, perhaps in the middle of a secret.
pub(crate) fn masked_tail(text: &str) -> String {
    let marked = format!("…{text}");
    let masked = masked(&marked);
    masked.strip_prefix('…').unwrap_or(&masked).to_owned()
}

/// Where the front of a text was cut off in the middle of a secret, the rest of it is hidden too.
fn without_ends(text: &str, secret: &str) -> Option<String> {
    let mut out: Option<String> = None;
    let mut from = 0;
    for (at, mark) in text.match_indices('…') {
        let after = at + mark.len();
        let end = (1..=secret.len().saturating_sub(SHORTEST))
            .filter(|cut| secret.is_char_boundary(*cut))
            .map(|cut| secret[cut..].trim_start())
            .find(|end| end.len() >= SHORTEST && text[after..].starts_with(end));
        if let Some(end) = end {
            let out = out.get_or_insert_with(String::new);
            out.push_str(&text[from..after]);
            out.push_str(mask::HIDDEN);
            from = after + end.len();
        }
    }
    out.map(|out| out + &text[from..])
}

/// Where a text was cut in the middle of a secret, its beginning is hidden too.
fn without_beginnings(text: &str, secret: &str) -> Option<String> {
    let mut out: Option<String> = None;
    let mut from = 0;
    while let Some(at) = text[from..].find('…') {
        let before = &text[from..from + at];
        let long = (SHORTEST..secret.len())
            .rev()
            .filter(|long| secret.is_char_boundary(*long))
            .find(|long| before.ends_with(secret[..*long].trim_end()));
        if let Some(long) = long {
            let kept = before.len() - secret[..long].trim_end().len();
            let start = out.get_or_insert_with(|| text[..from].to_owned());
            start.push_str(&before[..kept]);
            start.push_str(mask::HIDDEN);
        } else if let Some(out) = &mut out {
            out.push_str(before);
        }
        if let Some(out) = &mut out {
            out.push('…');
        }
        from += at + '…'.len_utf8();
    }
    out.map(|out| out + &text[from..])
}

/// The parts of a value that are secrets: all of it, and what may be told alone.
fn parts<'a>(name: &str, value: &'a str) -> Vec<&'a str> {
    if !is_secret(name, value) {
        return Vec::new();
    }
    let mut parts = vec![value];
    // A password is told without its address, a token without its scheme.
    if let Some((_, rest)) = value.split_once("://")
        && let Some((user, _)) = rest.split('/').next().unwrap_or(rest).rsplit_once('@')
    {
        parts.push(user.split_once(':').map_or(user, |(_, password)| password));
    }
    parts.extend(["Bearer ", "Basic ", "token "].iter().filter_map(|s| value.strip_prefix(s)));
    // A key of several lines is told line by line.
    if value.contains('\n') {
        parts.extend(value.lines().map(str::trim).filter(|line| line.len() >= LONG));
    }
    parts.retain(|part| part.len() >= SHORTEST);
    parts
}

fn is_secret(name: &str, value: &str) -> bool {
    if value.len() < SHORTEST || SWITCHES.iter().any(|word| value.eq_ignore_ascii_case(word)) {
        return false;
    }
    // A shell's word for the folder it is in, which only sounds like a password.
    let folder = name == "PWD" && is_path(value);
    if (mask::is_secret_name(name) && !folder) || mask::looks_secret(value) {
        return true;
    }
    if value.len() < LONG || is_path(value) || is_plain_address(value) {
        return false;
    }
    let is_word = value.chars().all(|c| c.is_alphabetic() || "-_.".contains(c));
    value.len() >= LONGER || !(is_word || value.parse::<f64>().is_ok())
}

/// Paths, and lists of them: a traceback without them says nothing.
fn is_path(value: &str) -> bool {
    let from = |start: &str| value.starts_with(start);
    let rooted = ["/", "~/", "./", "../"].into_iter().any(from);
    let drive = value.as_bytes().get(1..3).is_some_and(|after| after == b":\\" || after == b":/");
    (rooted || drive) && !value.contains('\n')
}

/// An address without a user, a query, or a part that looks like a secret.
fn is_plain_address(value: &str) -> bool {
    value.contains("://") && !value.contains(['@', '?', '#', ' ']) && mask::url(value) == value
}

/// A text as it stands in JSON, without the quotes.
fn inside_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// The same as writers that know only ASCII have it: Python's, unless told otherwise.
fn inside_ascii_json(text: &str) -> String {
    let mut out = String::new();
    for letter in inside_json(text).chars() {
        if letter.is_ascii() {
            out.push(letter);
        } else {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-11.
    #[test]
    fn values_that_a_server_is_given_are_masked_wherever_they_stand() {
        hide("LEVEL", "2");
        hide("DB_PASSWORD", "pa\"ss");
        hide("WHATEVER", "a value that is long");
        let line = r#"[mcp] recv json={"text":"pa\"ss and 2, a value that is long"} pa"ss"#;
        assert_eq!(masked(line), r#"[mcp] recv json={"text":"*** and 2, ***"} ***"#);
    }

    /// B2: each of these was told.
    #[test]
    fn a_secret_is_masked_in_every_form_that_it_takes_on_the_way() {
        let secret = "quo\"te\\back\tslash-ö";
        hide("B2_TOKEN", secret);
        let once = serde_json::json!({ "text": secret }).to_string();
        let twice = serde_json::json!({ "text": once }).to_string();
        let thrice = serde_json::json!({ "text": twice }).to_string();
        let ascii = r#"{"t":"quo\"te\\back\tslash-\u00f6"}"#;
        let told = [
            secret.to_owned(),
            once,
            twice,
            thrice,
            ascii.to_owned(),
            escape::line(secret).into_owned(),
            escape::clean(&format!("{secret}\x1b")).into_owned(),
            format!("{secret:?}"),
        ];
        for told in told {
            let masked = masked(&told);
            assert!(masked.contains("***"), "{told}: {masked}");
            assert!(!masked.contains("slash") && !masked.contains("quo"), "{told}: {masked}");
        }
    }

    /// Any character may be written with an escape: `\/` by PHP, `\u0026` by Go.
    #[test]
    fn a_secret_is_masked_however_its_characters_are_escaped() {
        hide("GO_TOKEN", "a&b/c-wörld-77");
        for told in [
            r#"{"t":"caf\u00e9 a\u0026b/c-wörld-77 x"}"#,
            r#"{"t":"caf\u00e9 a&b\/c-w\u00F6rld-77 x"}"#,
            r#"{"t":"caf\u00e9 \u0061&b\u002fc-w\u00f6rl\u0064-77 x"}"#,
        ] {
            assert_eq!(masked(told), r#"{"t":"caf\u00e9 *** x"}"#);
        }
        let nested = r#"{"t":"{\"u\":\"a\\u0026b\\/c-w\\u00F6rld-77 x\"}"}"#;
        assert_eq!(masked(nested), r#"{"t":"{\"u\":\"*** x\"}"}"#);
    }

    #[test]
    fn the_end_of_a_secret_whose_beginning_was_cut_is_masked() {
        hide("TAIL_TOKEN", "walrus-and-carpenter");
        assert_eq!(masked("a …d-carpenter b …ter"), "a …*** b …ter");
        assert_eq!(masked_tail("and-carpenter\nnext"), "***\nnext");
        assert_eq!(masked_tail("plain"), "plain");
    }

    /// Else every output would be stars.
    #[test]
    fn a_setting_is_no_secret() {
        let secret = [
            ("API_KEY", "abcd"),
            ("TOK", "t0k-12345"),
            ("DSN", "postgres://me:pw@db/x"),
            ("HOOK", "https://x.org/a?b=c"),
            ("NOTE", "several words of mine"),
            ("WORD", "abcdefghijklmnop"),
            ("SSH_KEY", "/home/me/.ssh/id"),
        ];
        for (name, value) in secret {
            assert!(is_secret(name, value), "{name}={value}");
        }
        let plain = [
            ("API_KEY", "abc"),
            ("USE_TOKEN", "true"),
            ("NODE_ENV", "production"),
            ("LOG_LEVEL", "very-verbose"),
            ("PORT", "8080"),
            ("SIZE", "1234567890"),
            ("PYTHONPATH", "/home/me/project/src:/opt/lib"),
            ("BASE", "https://api.example.com/v1"),
            ("X", "a1b2c3"),
            ("PWD", "/home/me/project"),
        ];
        for (name, value) in plain {
            assert!(!is_secret(name, value), "{name}={value}");
        }
    }

    #[test]
    fn what_is_told_without_the_rest_is_masked_too() {
        hide("DATABASE_URL", "postgres://me:correct-horse@db/x");
        hide("HEADER", "Bearer battery-staple-77");
        hide("PEM", "-----BEGIN KEY-----\nMIIabcdefgh\n-----END KEY-----");
        hide_words(&["--api-key".into(), "opensesame".into(), "--pin=19283746".into()]);
        hide_words(&["-c".into(), "exec srv --token 'swordfish' --pin=55667788; x".into()]);
        let told = "correct-horse battery-staple-77 MIIabcdefgh opensesame 19283746";
        assert_eq!(masked(told), "*** *** *** *** ***");
        assert_eq!(masked("swordfish 55667788 srv"), "*** *** srv");
    }

    #[test]
    fn the_beginning_of_a_secret_that_was_cut_is_masked() {
        hide("CUT_TOKEN", "zebra-crossing-9");
        assert_eq!(
            masked("its zebra-cros… and zeb… and zebra-crossing-9…"),
            "its ***… and zeb… and ***…"
        );
    }
}
