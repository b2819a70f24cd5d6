//! Which addresses belong to a resource template, and what stands in its blanks. RES-04.
//!
//! The part of RFC 6570 that can be read backwards: literals, `{name}` for one path segment, and
//! `{+name}` or `{name*}` for anything. Each blank takes as little as it can, the last one the rest.

use std::fmt;

/// A pattern for addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Blank { name: String, slashes: bool },
}

/// Why a pattern cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BadTemplate {
    Unclosed,
    Name(String),
    Adjacent,
}

impl fmt::Display for BadTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unclosed => f.write_str("a brace is not closed"),
            Self::Name(name) => {
                write!(f, "{{{name}}} is not supported: use {{name}}, {{+name}} or {{name*}}")
            }
            Self::Adjacent => f.write_str("two blanks need something between them"),
        }
    }
}

impl Template {
    pub(super) fn parse(pattern: &str) -> Result<Self, BadTemplate> {
        let mut parts = Vec::new();
        let mut rest = pattern;
        while let Some(open) = rest.find('{') {
            if open > 0 {
                parts.push(Part::Literal(rest[..open].to_owned()));
            } else if matches!(parts.last(), Some(Part::Blank { .. })) {
                return Err(BadTemplate::Adjacent);
            }
            let close = rest[open..].find('}').ok_or(BadTemplate::Unclosed)? + open;
            let inside = &rest[open + 1..close];
            let (name, slashes) = match (inside.strip_prefix('+'), inside.strip_suffix('*')) {
                (Some(name), _) | (None, Some(name)) => (name, true),
                (None, None) => (inside, false),
            };
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            if name.is_empty() || !name.chars().all(plain) {
                return Err(BadTemplate::Name(inside.to_owned()));
            }
            parts.push(Part::Blank { name: name.to_owned(), slashes });
            rest = &rest[close + 1..];
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.to_owned()));
        }
        Ok(Self { parts })
    }

    /// The names of the blanks.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Blank { name, .. } => Some(name.as_str()),
            Part::Literal(_) => None,
        })
    }

    /// What stands in the blanks of `uri`, percent-decoded, if it fits.
    pub(super) fn fit(&self, uri: &str) -> Option<Vec<(&str, String)>> {
        let mut found = Vec::new();
        let mut rest = uri;
        for (at, part) in self.parts.iter().enumerate() {
            match part {
                Part::Literal(text) => rest = rest.strip_prefix(text.as_str())?,
                Part::Blank { name, slashes } => {
                    let end = match self.parts.get(at + 1) {
                        Some(Part::Literal(text)) => rest.find(text.as_str())?,
                        _ => rest.len(),
                    };
                    let value = &rest[..end];
                    if value.is_empty() || (!slashes && value.contains('/')) {
                        return None;
                    }
                    found.push((name.as_str(), percent_decoded(value)?));
                    rest = &rest[end..];
                }
            }
        }
        rest.is_empty().then_some(found)
    }
}

/// `None` if what is left is not text.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = match (first, tail) {
            (b'%', [high, low, ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                digit(high).zip(digit(low)).map(|(high, low)| (high * 16 + low) as u8)
            }
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(pattern: &str, uri: &str) -> Option<String> {
        let template = Template::parse(pattern).unwrap();
        let found = template.fit(uri)?;
        Some(found.iter().map(|(name, value)| format!("{name}={value};")).collect())
    }

    #[test]
    fn blanks_take_a_segment_or_the_rest() {
        for (pattern, uri, want) in [
            ("note://{id}", "note://7", Some("id=7;")),
            ("note://{id}", "note://7/8", None),
            ("note://{id}", "note://", None),
            ("file:///{+path}", "file:///a/b.txt", Some("path=a/b.txt;")),
            ("file:///{path*}", "file:///a%20b", Some("path=a b;")),
            ("db://{table}/rows/{row}", "db://t/rows/9", Some("table=t;row=9;")),
            ("db://{table}/rows/{row}", "db://t/9", None),
            ("x://{a}.json", "x://b.json", Some("a=b;")),
            ("x://{a}", "x://%ff", None),
            ("x://{a}", "x://100%", Some("a=100%;")),
        ] {
            assert_eq!(fit(pattern, uri).as_deref(), want, "{pattern} {uri}");
        }
    }

    #[test]
    fn patterns_that_cannot_be_read_backwards_are_refused() {
        assert_eq!(Template::parse("a{b"), Err(BadTemplate::Unclosed));
        assert_eq!(Template::parse("a{?q}"), Err(BadTemplate::Name("?q".into())));
        assert_eq!(Template::parse("{a}{b}"), Err(BadTemplate::Adjacent));
    }
}
