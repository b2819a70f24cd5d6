//! No two types of the library have the same name, unless they are the same idea.
//!
//! A reader who meets `Params` in two files has to ask which of them it is. What differs by platform,
//! or is private to a few lines, may be in the list below, with the reason.

use std::collections::BTreeMap;

use crate::Problem;
use crate::imports::{Token, in_tree, tokens};
use crate::source::Source;

/// Names that occur more than once, and why that is right.
const ALLOWED: &[(&str, &str)] = &[
    ("ExitWatch", PLATFORMS),
    ("PipeEnd", PLATFORMS),
    ("Process", PLATFORMS),
    ("ReadPipe", PLATFORMS),
    ("WritePipe", PLATFORMS),
    ("Signal", PLATFORMS),
    ("Signals", PLATFORMS),
    ("Watchdog", PLATFORMS),
    ("Wire", PLATFORMS),
    ("ReadHalf", HALVES),
    ("WriteHalf", HALVES),
];

const PLATFORMS: &str = "the same thing on another platform; only one of them is compiled";
const HALVES: &str =
    "the same half of stdio, for descriptors that can wait and for those that cannot";

pub(crate) fn twice(sources: &[Source]) -> Vec<Problem> {
    let mut found: BTreeMap<String, Vec<(String, usize)>> = BTreeMap::new();
    for source in sources {
        for (line, name) in types(&source.code) {
            found.entry(name).or_default().push((in_tree(source), line));
        }
    }
    let excused = |name: &str| ALLOWED.iter().any(|(known, _)| *known == name);
    let mut problems = Vec::new();
    for (name, places) in &found {
        if places.len() > 1 && !excused(name) {
            let all: Vec<_> = places.iter().map(|(file, line)| format!("{file}:{line}")).collect();
            let what = format!(
                "{} types are called `{name}` ({}): rename all but one after what it is, or add it \
                 with the reason to ALLOWED in tests/tidy/names.rs",
                places.len(),
                all.join(", ")
            );
            problems.push(Problem::new(&places[1].0, places[1].1, what));
        }
    }
    let listed = ALLOWED.iter().map(|(name, _)| *name);
    for name in listed.filter(|name| found.get(*name).is_none_or(|places| places.len() < 2)) {
        let what = format!("`{name}` is there once or not at all: take it from the list");
        problems.push(Problem::new("crates/taut/tests/tidy/names.rs", 1, what));
    }
    problems
}

/// The types that are defined here, with their lines. Associated types are not.
fn types(code: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = code.lines().collect();
    let tokens = tokens(code);
    let defined = tokens.windows(2).filter_map(|pair| {
        let [(line, Token::Name(word)), (_, Token::Name(name))] = pair else { return None };
        let at_the_margin = lines.get(line - 1).is_some_and(|line| !line.starts_with(' '));
        let defines = match word.as_str() {
            "struct" | "enum" | "trait" | "union" => true,
            "type" => at_the_margin,
            _ => false,
        };
        let is_type = name.starts_with(|first: char| first.is_ascii_uppercase());
        (defines && is_type).then(|| (*line, name.clone()))
    });
    defined.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_type_is_found_and_nothing_else() {
        let code = "pub struct A<'a>(u8);\npub(crate) enum B {}\ntrait C: A {\n    type Output;\n}\n\
                    type D = A;\nmacro_rules! m { ($Name:ident) => { struct $Name; } }\n\
                    fn f() {\n    struct E;\n}\nlet union = a;\n";
        let found: Vec<_> = types(code).into_iter().map(|(_, name)| name).collect();
        assert_eq!(found, ["A", "B", "C", "D", "E"]);
    }

    #[test]
    fn a_name_in_two_files_is_named_once() {
        let source = |path: &str| Source {
            path: path.to_owned(),
            code: "\nstruct Same;".to_owned(),
            lines: 0,
        };
        let found = twice(&[source("a.rs"), source("b.rs"), source("c.rs")]);
        let found: Vec<_> =
            found.iter().filter(|problem| problem.what.contains("called `Same`")).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].file.as_str(), found[0].line), ("crates/taut/src/b.rs", 2));
    }
}
