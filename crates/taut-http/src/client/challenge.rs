//! What a server says in `WWW-Authenticate`: RFC 9110 section 11.6.1, RFC 6750, RFC 9728.
//!
//! Pure. Reads the Bearer challenge, whatever other challenges stand beside it.

use std::fmt;

use hyper::HeaderMap;

/// The Bearer challenge of a server. Values are what the server wrote.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Challenge {
    params: Vec<(String, String)>,
}

/// The values are a server's own words. In an error they hold no secret of ours.
impl fmt::Debug for Challenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.params.iter().map(|(name, value)| (name, value))).finish()
    }
}

impl Challenge {
    /// Reads the values of all `WWW-Authenticate` headers; `None` if none of them is for Bearer.
    pub(crate) fn read<'a>(values: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut found: Option<Self> = None;
        for value in values {
            let mut bearer = false;
            for part in parts(value) {
                match part {
                    Part::Scheme(scheme) => {
                        bearer = scheme.eq_ignore_ascii_case("bearer");
                        if bearer {
                            found.get_or_insert_default();
                        }
                    }
                    Part::Param(name, value) => {
                        if let Some(found) = found.as_mut().filter(|_| bearer) {
                            found.params.push((name.to_ascii_lowercase(), value));
                        }
                    }
                }
            }
        }
        found
    }

    /// The same without what was sent as a secret, for an error.
    pub(crate) fn without_secrets(mut self, sent: &HeaderMap) -> Self {
        for (_, value) in &mut self.params {
            *value = super::http::without_secrets(value, sent);
        }
        self
    }

    fn param(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The kind of error: `invalid_token`, `insufficient_scope`.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        self.param("error")
    }

    /// The error in words, shortened.
    #[must_use]
    pub fn description(&self) -> Option<String> {
        Some(super::http::excerpt(self.param("error_description")?))
    }

    /// The scopes that are needed, separated by blanks.
    #[must_use]
    pub fn scope(&self) -> Option<&str> {
        self.param("scope")
    }

    /// Where the metadata of the protected resource is.
    #[must_use]
    pub fn resource_metadata(&self) -> Option<&str> {
        self.param("resource_metadata")
    }
}

enum Part<'a> {
    Scheme(&'a str),
    Param(&'a str, String),
}

/// Cuts a header into schemes and their parameters. What cannot be read is skipped.
fn parts(value: &str) -> Vec<Part<'_>> {
    let mut found = Vec::new();
    let mut rest = value;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let end = rest.find(|c: char| !is_token(c)).unwrap_or(rest.len());
        if end == 0 {
            // Something else than a token: go on behind it.
            let mut characters = rest.chars();
            if characters.next().is_none() {
                return found;
            }
            rest = characters.as_str();
            continue;
        }
        let (token, behind) = rest.split_at(end);
        let trimmed = behind.trim_start_matches([' ', '\t']);
        match trimmed.strip_prefix('=') {
            Some(value) => {
                let (value, behind) = param_value(value.trim_start_matches([' ', '\t']));
                found.push(Part::Param(token, value));
                rest = behind;
            }
            None => {
                found.push(Part::Scheme(token));
                rest = behind;
            }
        }
    }
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

fn param_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bearer_challenge_is_found_among_others() {
        let read = |values: &[&str]| Challenge::read(values.iter().copied());
        let challenge = read(&[
            r#"Basic realm="a, b", Bearer error="insufficient_scope", scope="a b", resource_metadata = "https://x/.well-known", error_description="say \"please\"""#,
        ])
        .unwrap();
        assert_eq!(challenge.error(), Some("insufficient_scope"));
        assert_eq!(challenge.scope(), Some("a b"));
        assert_eq!(challenge.resource_metadata(), Some("https://x/.well-known"));
        assert_eq!(challenge.description().as_deref(), Some("say \"please\""));
        assert_eq!(challenge.param("realm"), None);
        assert_eq!(read(&["Basic realm=x"]), None);
        assert_eq!(read(&["Bearer"]), Some(Challenge::default()));
        let two = read(&["Negotiate abc==", "bearer scope=x"]).unwrap();
        assert_eq!(two.scope(), Some("x"));
        for broken in ["Bearer scope=\"", "Bearer =,=\"\\", "Bearer é scope=x", ",,,", ""] {
            let _ = read(&[broken]);
        }
    }
}
