//! What must not be told by this command itself: values that a server was given, wherever they turn up.
//!
//! Knows which values are secrets (docs/command.md, "What is never shown") and hides them in a text.
//! Filled before a server starts; names and looks are judged by `hosts/mask.rs`. Must not print.

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::hosts::mask;

/// Texts that are never told, the longest first.
static SECRETS: OnceLock<Mutex<Vec<String>>> = OnceLock::new();

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
        for text in [part.to_owned(), inside_json(part)] {
            if !secrets.contains(&text) {
                secrets.push(text);
            }
        }
    }
    // One that holds another goes first, or its rest would be left.
    secrets.sort_by_key(|text| std::cmp::Reverse(text.len()));
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
    for secret in lock(secrets).iter() {
        if text.contains(secret.as_str()) {
            text = Cow::Owned(text.replace(secret.as_str(), mask::HIDDEN));
        }
        if let Some(whole) = without_beginnings(&text, secret) {
            text = Cow::Owned(whole);
        }
    }
    text
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
        let told = "correct-horse battery-staple-77 MIIabcdefgh opensesame 19283746";
        assert_eq!(masked(told), "*** *** *** *** ***");
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
