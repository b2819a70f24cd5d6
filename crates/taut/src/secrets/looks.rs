//! Which values are secret, by their name and by their look.
//!
//! Knows how tokens of services begin, and what is an ordinary setting; must not know texts in which a value
//! stands. Pure. In doubt a value is a secret, unless hiding it would blank out ordinary text.

use super::names::is_secret_name;

/// A value that is shorter hides nothing but what can be read: it stands everywhere.
pub(super) const SHORTEST: usize = 4;

/// From here on a value may be a secret although its name promises little or nothing.
pub(super) const LONG: usize = 8;

/// From here on it is taken for one, even if it is a plain word.
const LONGER: usize = 16;

/// What a switch is set to. A name that sounds secret (`USE_TOKEN`) does not make it one.
const SWITCHES: [&str; 6] = ["true", "false", "none", "null", "auto", "default"];

/// How tokens of well-known services begin; the first group says it all, the second needs a digit or
/// a capital letter after it to be told from a word.
pub(super) const CERTAIN: [&str; 12] = [
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
pub(super) const LIKELY: [&str; 12] =
    ["sk-", "sk_", "rk_", "pk_", "AKIA", "ASIA", "npm_", "hf_", "AIza", "pypi-", "eyJ", "ya29."];

/// Words before a credential, in a header or in a sentence.
pub(super) const SCHEMES: [&str; 3] = ["Bearer ", "Basic ", "token "];

/// What a shell keeps about folders has names that sound secret.
const FOLDERS: [&str; 2] = ["PWD", "OLDPWD"];

/// Whether a value looks like a secret by itself, whatever its name: a token of a well-known service, or a
/// long run of mixed characters.
#[must_use]
pub fn looks_secret(value: &str) -> bool {
    let value = value.strip_prefix("Bearer ").unwrap_or(value);
    if value.len() < 12 || value.contains(['/', ' ', '$', '{']) {
        return false;
    }
    if CERTAIN.iter().chain(&LIKELY).any(|beginning| value.starts_with(beginning)) {
        return true;
    }
    let has = |is: fn(&char) -> bool| value.chars().any(|c| is(&c));
    let plain = value.chars().all(|c| c.is_ascii_alphanumeric() || "-_+=".contains(c));
    let mixed =
        has(char::is_ascii_uppercase) && has(char::is_ascii_lowercase) && has(char::is_ascii_digit);
    let hex = value.chars().filter(|c| *c != '-').all(|c| c.is_ascii_hexdigit());
    plain && ((mixed && value.len() >= 20) || (hex && value.len() >= 32))
}

/// Whether the value that a server is given under this name is a secret. Paths, plain addresses, numbers,
/// switches and short words are not: without them nothing that a server says could be read.
#[must_use]
pub fn is_secret(name: &str, value: &str) -> bool {
    if value.len() < SHORTEST || is_switch(value.as_bytes()) {
        return false;
    }
    let folder = FOLDERS.contains(&name) && is_path(value);
    if (is_secret_name(name) && !folder) || looks_secret(value) {
        return true;
    }
    if value.len() < LONG || is_path(value) || is_plain_address(value) {
        return false;
    }
    let is_word = value.chars().all(|c| c.is_alphabetic() || "-_.".contains(c));
    value.len() >= LONGER || !(is_word || value.parse::<f64>().is_ok())
}

/// Whether it is what a switch is set to.
pub(super) fn is_switch(value: &[u8]) -> bool {
    SWITCHES.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()))
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
    value.contains("://")
        && !value.contains(['@', '?', '#', ' '])
        && !value.split('/').any(looks_secret)
}

/// All of a secret value, and what of it may be told without the rest: a password without its address, a
/// token without its scheme, a key line by line.
pub(super) fn parts(value: &str) -> Vec<&str> {
    let mut parts = vec![value];
    if let Some(user) = user_info(value) {
        parts.push(user.split_once(':').map_or(user, |(_, password)| password));
    }
    parts.extend(SCHEMES.iter().filter_map(|scheme| value.strip_prefix(scheme)));
    if value.contains('\n') {
        parts.extend(value.lines().map(str::trim).filter(|line| line.len() >= LONG));
    }
    parts.retain(|part| part.len() >= SHORTEST);
    parts
}

/// The name and the password in an address: what stands before the `@`. People write passwords as they are, with the
/// marks that would end the name of a host: where that has what is no port, all up to the last `@` counts.
#[must_use]
pub fn user_info(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next()?;
    if let Some((user, _)) = host.rsplit_once('@') {
        return Some(user);
    }
    let (_, port) = host.rsplit_once(':')?;
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_port = digits || host.starts_with('[');
    rest.rsplit_once('@').filter(|_| !is_port).map(|(user, _)| user)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("URL", "https://x.org/s/Ab12Cd34Ef56Gh78Ij90Kl/mcp"),
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
    fn the_password_of_an_address_is_found_however_it_is_written() {
        for (address, found) in [
            ("https://me:pw@x.org/p", Some("me:pw")),
            ("postgres://me:p/w@db/x", Some("me:p/w")),
            ("postgres://me:p?w#@db/x", Some("me:p?w#")),
            ("redis://:p@w@db:6379/0", Some(":p@w")),
            ("https://token@x.org", Some("token")),
            ("https://x.org:8080/@scope/a", None),
            ("https://x.org/mail?to=me@x.org", None),
            ("http://[::1]:80/a@b", None),
            ("no address: me@x.org", None),
        ] {
            assert_eq!(user_info(address), found, "{address}");
        }
        assert!(parts("postgres://me:p/wö+rd@db/x").contains(&"p/wö+rd"));
    }
}
