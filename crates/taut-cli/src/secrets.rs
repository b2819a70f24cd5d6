//! What must not be told by this command: values that a server was given, wherever they turn up.
//!
//! Knows where secrets come from (docs/command.md, "What is never shown"): the environment, command lines, files of
//! hosts. What is secret and how it is found in a text is the library's policy. Filled before a server starts, and with
//! each token of a login. Must not print.

use std::borrow::Cow;
use std::sync::LazyLock;

use taut::secrets::{Secrets, is_secret, is_secret_name};

use crate::gate::escape;
use crate::mask;

/// Values that are never told by this process.
static SECRETS: LazyLock<Secrets> = LazyLock::new(Secrets::new);

/// The same, for those that mask by themselves: captures, and stderr of servers.
pub(crate) fn all() -> &'static Secrets {
    &SECRETS
}

/// A value that a server is given, under its name.
pub(crate) fn hide(name: &str, value: &str) {
    SECRETS.hide(name, value);
    // As the gate shows it to a terminal, which is no writing of any language.
    for shown in [escape::clean(value), escape::line(value)] {
        if shown != value && is_secret(name, value) {
            SECRETS.hide_always(&shown);
        }
    }
}

/// What is secret of our own environment: a server inherits it, or is asked with it.
pub(crate) fn hide_ours() {
    for (name, value) in std::env::vars() {
        if is_secret_name(&name) {
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
    SECRETS.masked(text)
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

    /// B2: as the gate shows it to a terminal.
    #[test]
    fn a_secret_is_masked_as_the_gate_shows_it() {
        let secret = "quo\"te\\back\tslash-ö\u{1b}\u{200b}end";
        hide("B2_TOKEN", secret);
        let told = [
            secret.to_owned(),
            escape::line(secret).into_owned(),
            escape::clean(secret).into_owned(),
            escape::json(&serde_json::json!({ "text": secret }).to_string()).into_owned(),
            format!("{secret:?}"),
        ];
        for told in told {
            let masked = masked(&told);
            assert!(masked.contains("***"), "{told}: {masked}");
            assert!(!masked.contains("slash") && !masked.contains("quo"), "{told}: {masked}");
        }
    }

    #[test]
    fn what_is_told_without_the_rest_is_masked_too() {
        hide_words(&["--api-key".into(), "opensesame".into(), "--pin=19283746".into()]);
        hide_words(&["-c".into(), "exec srv --token 'swordfish' --pin=55667788; x".into()]);
        hide_words(&["https://me:correct-horse@example.org/x".into()]);
        let told = "correct-horse opensesame 19283746";
        assert_eq!(masked(told), "*** *** ***");
        assert_eq!(masked("swordfish 55667788 srv"), "*** *** srv");
    }
}
