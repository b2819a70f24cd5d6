//! Patterns: schemas write them as JavaScript does, and ours is an engine that takes linear time.
//!
//! What such an engine cannot do (looking around, referring back) makes a schema unusable, which is
//! said; it is never the reason for a long wait.

use regex::{Regex, RegexBuilder};

/// Bytes that one pattern may take when compiled: room for a class of letters or two, repeated.
const MAX_COMPILED: usize = 256 << 10;

pub(super) fn compile(pattern: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(&translated(pattern))
        .size_limit(MAX_COMPILED)
        .dfa_size_limit(MAX_COMPILED)
        .build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(limit) => format!("a pattern needs more than {limit} bytes"),
        _ => format!("{pattern:?} is no pattern that can be used"),
    })
}

/// The same pattern for our engine: there `\d` and `\w` know all scripts and `[` inside a class opens
/// another.
fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut in_class = false;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('d') => out.push_str("[0-9]"),
                Some('D') => out.push_str("[^0-9]"),
                Some('w') => out.push_str("[A-Za-z0-9_]"),
                Some('W') => out.push_str("[^A-Za-z0-9_]"),
                Some(escaped) => out.extend(['\\', escaped]),
                None => out.push('\\'),
            },
            '[' | '&' | '~' if in_class => out.extend(['\\', c]),
            '[' => {
                in_class = true;
                out.push(c);
            }
            ']' => {
                in_class = false;
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_schemas() {
        let table = [
            (r"^\d+$", "12", true),
            (r"^\d+$", "١٢", false),
            (r"^[\w.-]+@example\.org$", "a.b-c@example.org", true),
            (r"^[^\W\d]$", "a", true),
            (r"^[^\W\d]$", "1", false),
            ("^[[&]$", "[", true),
            (r"^a\/b\-c$", "a/b-c", true),
            (r"^\p{Lu}", "É", true),
            ("b", "abc", true),
        ];
        for (pattern, text, want) in table {
            assert_eq!(compile(pattern).unwrap().is_match(text), want, "{pattern} {text}");
        }
    }

    #[test]
    fn what_cannot_be_done_in_linear_time_or_little_space_is_said() {
        for pattern in ["(?=a)b", r"(a)\1", "(((a{100}){100}){100})", "("] {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
    }
}
