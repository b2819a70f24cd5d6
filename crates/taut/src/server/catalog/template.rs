//! Which addresses belong to a resource template, and what stands in its blanks. RES-04.
//!
//! The part of RFC 6570 that can be read backwards: literals, `{name}` for one path segment, and
//! `{+name}` or `{name*}` for anything. Of several ways to fit, each blank takes as little as it can,
//! the first one first. The work grows with the length of the address, whatever the template is.

/// A pattern for addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UriTemplate {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Blank { name: String, slashes: bool },
}

impl UriTemplate {
    /// Reads a pattern.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(crate) fn parse(pattern: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = pattern;
        while let Some(open) = rest.find('{') {
            if open > 0 {
                parts.push(Part::Literal(rest[..open].to_owned()));
            } else if matches!(parts.last(), Some(Part::Blank { .. })) {
                return Err("two blanks need something between them".to_owned());
            }
            let close = rest[open..].find('}').ok_or("a brace is not closed")? + open;
            let inside = &rest[open + 1..close];
            let (name, slashes) = match (inside.strip_prefix('+'), inside.strip_suffix('*')) {
                (Some(name), _) | (None, Some(name)) => (name, true),
                (None, None) => (inside, false),
            };
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            if name.is_empty() || !name.chars().all(plain) {
                return Err(format!(
                    "{{{inside}}} is not supported: use {{name}}, {{+name}} or {{name*}}"
                ));
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
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Blank { name, .. } => Some(name.as_str()),
            Part::Literal(_) => None,
        })
    }

    /// What stands in the blanks of `uri`, percent-decoded, if it fits.
    pub(crate) fn fit(&self, uri: &str) -> Option<Vec<(&str, String)>> {
        let fits = self.positions_that_fit(uri)?;
        let mut found = Vec::new();
        let mut at = 0;
        for (part, next) in self.parts.iter().zip(&fits[1..]) {
            match part {
                Part::Literal(text) => at += text.len(),
                Part::Blank { name, .. } => {
                    // The nearest place from which the rest fits; at least one character away.
                    let end = next.first_from(at + 1)?;
                    found.push((name.as_str(), percent_decoded(&uri[at..end])?));
                    at = end;
                }
            }
        }
        Some(found)
    }

    /// For each part the places in `uri` from which it and all that follow fit to the end; then, as
    /// one more, the end. Nothing if the whole does not fit.
    fn positions_that_fit(&self, uri: &str) -> Option<Vec<Bits>> {
        let bytes = uri.as_bytes();
        if let Some(Part::Literal(text)) = self.parts.first().filter(|_| self.parts.len() > 1)
            && !uri.starts_with(text.as_str())
        {
            return None;
        }
        if let Some(Part::Literal(text)) = self.parts.last()
            && !uri.ends_with(text.as_str())
        {
            return None;
        }
        let mut end = Bits::new(bytes.len() + 1);
        end.set(bytes.len());
        let mut fits = vec![end];
        for part in self.parts.iter().rev() {
            let next = &fits[fits.len() - 1];
            let mut here = Bits::new(bytes.len() + 1);
            match part {
                Part::Literal(text) => {
                    for at in 0..=bytes.len().saturating_sub(text.len()) {
                        if next.get(at + text.len()) && bytes[at..].starts_with(text.as_bytes()) {
                            here.set(at);
                        }
                    }
                }
                Part::Blank { slashes, .. } => {
                    // From the right: whether there is a place further on, before the next slash.
                    let mut reachable = false;
                    for at in (0..bytes.len()).rev() {
                        reachable |= next.get(at + 1);
                        if !slashes && bytes[at] == b'/' {
                            reachable = false;
                        }
                        if reachable && uri.is_char_boundary(at) {
                            here.set(at);
                        }
                    }
                }
            }
            fits.push(here);
        }
        fits.reverse();
        fits[0].get(0).then_some(fits)
    }
}

/// A bit for each place in an address.
#[derive(Clone, Debug)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(bits: usize) -> Self {
        Self(vec![0; bits.div_ceil(64)])
    }

    fn set(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    fn get(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// The first bit that is set, from `at` on.
    fn first_from(&self, at: usize) -> Option<usize> {
        (at..self.0.len() * 64).find(|at| self.get(*at))
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
        let template = UriTemplate::parse(pattern).unwrap();
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
            ("x://{a}.json", "x://b.json.json", Some("a=b.json;")),
            ("x://{+a}-{b}", "x://p-q/r-s", Some("a=p-q/r;b=s;")),
            ("x://{a}-{b}-c", "x://1-2-3-c", Some("a=1;b=2-3;")),
            ("x://{a}/é{b}", "x://ü/éß", Some("a=ü;b=ß;")),
            ("x://{a}", "x://a/", None),
            ("plain:text", "plain:text", Some("")),
            ("plain:text", "plain:texts", None),
            ("x://{a}", "x://%ff", None),
            ("x://{a}", "x://100%", Some("a=100%;")),
        ] {
            assert_eq!(fit(pattern, uri).as_deref(), want, "{pattern} {uri}");
        }
    }

    /// Would take minutes if each blank tried each place for each place of the one before.
    #[test]
    fn f27_many_blanks_and_a_long_address_cost_no_more_than_their_length() {
        let pattern = format!("x://{}!", "{+a}-".repeat(30));
        let template = UriTemplate::parse(&pattern).unwrap();
        assert_eq!(template.fit(&format!("x://{}", "a-".repeat(50_000))), None);
        assert!(template.fit(&format!("x://{}!", "a-".repeat(50_000))).is_some());
    }

    #[test]
    fn patterns_that_cannot_be_read_backwards_are_refused() {
        let fault = |pattern| UriTemplate::parse(pattern).unwrap_err();
        assert_eq!(fault("a{b"), "a brace is not closed");
        assert!(fault("a{?q}").starts_with("{?q} is not supported: use {name}"));
        assert_eq!(fault("{a}{b}"), "two blanks need something between them");
    }
}
