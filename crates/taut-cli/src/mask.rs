//! What looks like a secret on a command line, in an address and in the environment.
//!
//! Pure. Which names and looks are secret is the library's policy (`taut::secrets`).
//! Names decide first, then the look of a value; a mere reference (`${TOKEN}`) says nothing and
//! stays. `secrets.rs` hides the values, wherever they turn up. In doubt something is hidden: what is
//! hidden here still stands in the file.

pub(crate) use taut::secrets::MASK as HIDDEN;
use taut::secrets::{is_secret_name, looks_secret, user_info};

/// A value of the environment: always hidden, unless it is a mere reference.
pub(crate) fn env(value: &str) -> String {
    reference(value).unwrap_or_else(|| HIDDEN.to_owned())
}

/// A command line as it may be shown.
pub(crate) fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut after_secret = false;
    let mut shown = Vec::new();
    for word in words {
        // A switch takes the next word; what looks like another switch is none.
        let hidden = std::mem::take(&mut after_secret) && !word.starts_with('-');
        after_secret = word.starts_with('-') && !word.contains('=') && is_secret_name(word);
        shown.push(if hidden { env(word) } else { one(word) });
    }
    shown
}

/// One word of a command line, or the value of a header without its name.
pub(crate) fn one(word: &str) -> String {
    let separated = [word.split_once('='), word.split_once(": ")].into_iter().flatten();
    for (name, value) in separated {
        let mark = &word[name.len()..word.len() - value.len()];
        if !name.contains("://") && is_secret_name(name) && !name.contains(' ') {
            return format!("{name}{mark}{}", env(value));
        }
        if looks_secret(value) {
            return format!("{name}{mark}{HIDDEN}");
        }
    }
    if looks_secret(word) {
        return HIDDEN.to_owned();
    }
    if word.contains(char::is_whitespace) {
        return script(word);
    }
    if word.contains("://") { url(word) } else { word.to_owned() }
}

/// Marks of a shell that may stand around a word.
const MARKS: [char; 8] = ['\'', '"', '`', ';', '(', ')', '&', '|'];

/// The words of a text such as that of `sh -c`, without the marks of the shell around them.
pub(crate) fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(char::is_whitespace).map(|word| word.trim_matches(MARKS))
}

/// A word that is a command line itself, as that of `sh -c`.
fn script(text: &str) -> String {
    let (mut out, mut from) = (String::new(), 0);
    for (word, shown) in words_of(text).zip(words(words_of(text))) {
        // They stand in this order, with blanks and marks between them.
        let at = from + text[from..].find(word).unwrap_or(0);
        out.push_str(&text[from..at]);
        out.push_str(&shown);
        from = at + word.len();
    }
    out + &text[from..]
}

/// An address without the password and the secrets in its query.
pub(crate) fn url(address: &str) -> String {
    let address = match (user_info(address), address.split_once("://")) {
        (Some(user), Some((scheme, rest))) => {
            format!("{scheme}://{HIDDEN}{}", &rest[user.len()..])
        }
        _ => address.to_owned(),
    };
    let (start, query) = match address.split_once('?') {
        Some((start, query)) => (start, Some(query)),
        None => (&*address, None),
    };
    let mut shown = start.to_owned();
    if let Some(query) = query {
        let mut hidden = false;
        let pairs = query.split('&').map(|pair| match pair.split_once('=') {
            Some((name, value)) => {
                hidden = is_secret_name(name) || looks_secret(value);
                if hidden { format!("{name}={}", env(value)) } else { pair.to_owned() }
            }
            // A secret was written as it is, and has this mark in it.
            None if hidden => HIDDEN.to_owned(),
            None => pair.to_owned(),
        });
        shown = format!("{shown}?{}", pairs.collect::<Vec<_>>().join("&"));
    }
    // A secret may be a part of the path.
    let parts = shown.split('/').map(|part| if looks_secret(part) { HIDDEN } else { part });
    parts.collect::<Vec<_>>().join("/")
}

/// A value that only refers to a variable, without a default that somebody wrote there.
fn reference(value: &str) -> Option<String> {
    let (scheme, rest) = match value.split_once(' ') {
        Some((scheme @ ("Bearer" | "Basic" | "token"), rest)) => (format!("{scheme} "), rest),
        _ => (String::new(), value),
    };
    let inside = rest
        .strip_prefix("${")
        .or_else(|| rest.strip_prefix('{').filter(|inside| inside.contains(':')));
    let word = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "_:-".contains(c));
    if let Some(inside) = inside.and_then(|inside| inside.strip_suffix('}')) {
        return match inside.split_once(":-") {
            Some((name, _)) if word(name) => Some(format!("{scheme}${{{name}:-{HIDDEN}}}")),
            None if word(inside) => Some(value.to_owned()),
            _ => None,
        };
    }
    rest.strip_prefix('$').filter(|name| !name.is_empty() && word(name)).map(|_| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_secret_is_hidden_and_nothing_else() {
        let table = [
            (
                "npx -y @modelcontextprotocol/server-github",
                "npx -y @modelcontextprotocol/server-github",
            ),
            ("srv --api-key abc --port 80", "srv --api-key *** --port 80"),
            ("srv --api-key=abc -v", "srv --api-key=*** -v"),
            ("srv --token ${TOKEN}", "srv --token ${TOKEN}"),
            ("srv --token ${TOKEN:-abc}", "srv --token ${TOKEN:-***}"),
            ("srv --password --verbose", "srv --password --verbose"),
            (
                "docker run -e GITHUB_TOKEN=abc -e LEVEL=2",
                "docker run -e GITHUB_TOKEN=*** -e LEVEL=2",
            ),
            ("srv ghp_0123456789abcdef", "srv ***"),
            ("srv 0123456789abcdef0123456789abcdef", "srv ***"),
            ("srv postgres://me:pw@db/x", "srv postgres://***@db/x"),
            ("srv postgres://me:p/w?o&d@db/x", "srv postgres://***@db/x"),
            (
                "srv https://x.org/mcp?apiKey=a/b&c&page=2",
                "srv https://x.org/mcp?apiKey=***&***&page=2",
            ),
            ("srv https://x.org/mcp?apiKey=1&page=2", "srv https://x.org/mcp?apiKey=***&page=2"),
            ("srv https://x.org/s/Ab12Cd34Ef56Gh78Ij90Kl/mcp", "srv https://x.org/s/***/mcp"),
            ("srv --keyboard us --path /etc/keys", "srv --keyboard us --path /etc/keys"),
            ("srv --signingKey abc --sessionCookie=x", "srv --signingKey *** --sessionCookie=***"),
        ];
        for (line, shown) in table {
            assert_eq!(words(line.split(' ')).join(" "), shown);
        }
        for (script, shown) in [
            ("exec srv --token 'abc' -v", "exec srv --token '***' -v"),
            ("export API_KEY=abc;\n exec srv", "export API_KEY=***;\n exec srv"),
            ("(srv ghp_0123456789abcdef) &", "(srv ***) &"),
            ("srv \"$TOKEN\" && echo it's", "srv \"$TOKEN\" && echo it's"),
            ("  ", "  "),
        ] {
            assert_eq!(words(["sh", "-c", script]), ["sh", "-c", shown]);
        }
        assert_eq!(words(["-H", "Authorization: Bearer abc"]), ["-H", "Authorization: ***"]);
        assert_eq!(
            words(["-H", "Authorization: Bearer ${T}"]),
            ["-H", "Authorization: Bearer ${T}"]
        );
        assert_eq!(
            (env("2").as_str(), env("{env:A}").as_str(), env("$A").as_str()),
            ("***", "{env:A}", "$A")
        );
    }
}
