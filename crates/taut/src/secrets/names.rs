//! Which names say that a value is secret.
//!
//! Knows how names are written; must not know texts or values. Pure.

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
}
