//! JSON for a log: whole and byte for byte as it was on the wire, except where a secret stands.
//!
//! Works on the text, not on a parsed value: writing a value again would change its escapes, its numbers and
//! the order of its members.

use std::borrow::Cow;

/// Words that say that a value is secret, where one is a whole word of its name: `privateKey`, but not
/// `keyboard`.
const WORDS: [&str; 12] = [
    "auth",
    "bearer",
    "jwt",
    "key",
    "keys",
    "pass",
    "passphrase",
    "pat",
    "pin",
    "pwd",
    "sig",
    "signature",
];

/// The same, anywhere in the letters and digits of a name.
const PARTS: [&str; 8] =
    ["token", "secret", "password", "passwd", "authorization", "apikey", "credential", "cookie"];

/// Names that only sound secret: a number that one follows a call by, and how much a model may say.
const HARMLESS: [&str; 3] = ["progresstoken", "maxtokens", "tokens"];

/// The frame as a log may show it: as it is, but for secrets.
pub(crate) fn masked(bytes: &[u8]) -> String {
    masked_text(&String::from_utf8_lossy(bytes))
}

/// The same for a text, which may be no JSON but have been meant to be: whatever follows a quoted name and
/// a colon is a value.
pub(crate) fn masked_text(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('"') {
        let name = &rest[at + 1..];
        let end = quoted(name);
        let after = name.get(end + 1..).unwrap_or_default();
        let value = after.trim_start().strip_prefix(':').map(str::trim_start);
        let is_secret = |value: &&str| {
            !value.starts_with(['{', '[']) && is_secret_name(&unescaped(&name[..end]))
        };
        match value.filter(is_secret) {
            Some(value) => {
                let stop = match value.strip_prefix('"') {
                    Some(inside) => 1 + (quoted(inside) + 1).min(inside.len()),
                    // What stands between a number and the next member is not a part of it.
                    None => {
                        let end = value.find([',', '}', ']', '\n']).unwrap_or(value.len());
                        value[..end].trim_end().len()
                    }
                };
                out.push_str(&rest[..rest.len() - value.len()]);
                out.push_str("\"***\"");
                rest = &value[stop..];
            }
            None => {
                out.push_str(&rest[..rest.len() - after.len()]);
                rest = after;
            }
        }
    }
    out + rest
}

/// A name without the escapes that it may be written with: `to\u006ben` is `token`. What is no JSON stays.
fn unescaped(name: &str) -> Cow<'_, str> {
    if !name.contains('\\') {
        return name.into();
    }
    serde_json::from_str::<String>(&format!("\"{name}\"")).map_or_else(|_| name.into(), Cow::Owned)
}

/// How long a text is up to the quote that ends it, or in all.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    let ends = |c: char| {
        let end = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        end
    };
    text.find(ends).unwrap_or(text.len())
}

/// Whether values with this name are secrets, in any of the usual styles: `apiKey`, `API_KEY`,
/// `--api-key`. The library, the command and captures all ask this one list.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let letters = letters.to_ascii_lowercase();
    if HARMLESS.contains(&letters.as_str()) {
        return false;
    }
    PARTS.iter().any(|part| letters.contains(part))
        || words(name).any(|word| WORDS.iter().any(|known| known.eq_ignore_ascii_case(word)))
}

/// The words of a name in any of the usual styles.
fn words(name: &str) -> impl Iterator<Item = &str> {
    let is_word = |c: char| c.is_alphanumeric();
    name.split(move |c| !is_word(c)).flat_map(|part| {
        let mut rest = part;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            // `privateKey`: a capital after a small letter begins a word.
            let small = |(at, c): (usize, char)| {
                let next = rest[at + c.len_utf8()..].chars().next();
                (c.is_lowercase() && next.is_some_and(char::is_uppercase))
                    .then_some(at + c.len_utf8())
            };
            let end = rest.char_indices().find_map(small).unwrap_or(rest.len());
            let (word, tail) = rest.split_at(end);
            rest = tail;
            Some(word)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_by_the_name_of_their_member_at_any_depth() {
        let line = br#"{"a":{"API_KEY":"k1","list":[{"accessToken":"k2"}]},"progressToken":7}"#;
        let text = masked(line);
        assert!(!text.contains("k1") && !text.contains("k2") && text.contains("7"), "{text}");
    }

    #[test]
    fn a_message_that_is_broken_hides_its_secrets_too() {
        let table = [
            (r#"{"a":1,"apiKey":"hunter2""#, r#"{"a":1,"apiKey":"***""#),
            (r#"{"token" : "hunt\"er2", "b":2"#, r#"{"token" : "***", "b":2"#),
            (r#"{"password":"hunter2"#, r#"{"password":"***""#),
            (r#"{"pwd":12345,"x""#, r#"{"pwd":"***","x""#),
            (r#"{"auth":{"user":"me","key":"k"}"#, r#"{"auth":{"user":"me","key":"***"}"#),
            ("Serving HTTP on port 8000", "Serving HTTP on port 8000"),
            (r#"say "token" to me"#, r#"say "token" to me"#),
            (r#""key":"#, r#""key":"***""#),
            ("\"", "\""),
        ];
        for (text, shown) in table {
            assert_eq!(masked_text(text), shown);
        }
        assert!(!masked(br#"{"secret":"hunter2""#).contains("hunter2"));
    }

    #[test]
    fn a_name_is_judged_by_its_words() {
        for name in [
            "key",
            "privateKey",
            "X-Auth",
            "DB_PASS",
            "client_secret_2",
            "Authorization",
            "API_KEY",
            "--api-key",
            "X-Api-Key",
            "apikey",
            "accessKey",
            "dbPass",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "keyboard",
            "compass",
            "monkey",
            "progressToken",
            "max_tokens",
            "author",
            "pattern",
            "",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    /// Issue 19, D4: escapes were decoded, and a message with one lost its order and its numbers.
    #[test]
    fn a_frame_is_whole_and_as_it_was() {
        let long = "é".repeat(9000);
        let text = format!(
            r#"{{ "z":1.50, "a":"caf\u00e9 \/ \ud83d\ude00 {long}","to\u006ben" : "hunt\"er2" , "pin":12345 ,"b":[ ] }}"#
        );
        let shown = text.replace(r#""hunt\"er2""#, r#""***""#).replace("12345", r#""***""#);
        assert_eq!(masked(text.as_bytes()), shown);
        let plain = r#"{"text":"na\u00EFve","n":1e3, "a":{}}"#;
        assert_eq!(masked(plain.as_bytes()), plain);
    }
}
