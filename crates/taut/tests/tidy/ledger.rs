//! docs/scars.md and docs/rules.md: every id once, every proof a test that exists.
//!
//! A transcript proves an id if one of its scenes names it: `transcripts/tools.txt`.

use std::collections::{BTreeMap, BTreeSet};

use crate::{File, Problem};

/// Where a proof may still be owed. The layer that will hold the test, not the date.
const LAYERS: &[&str] =
    &["wire", "rpc", "mcp", "driver", "stdio", "service", "server", "client", "command"];

/// Family and size; ids run from 1 without a gap.
const SCARS: &[(&str, usize)] =
    &[("F", 27), ("S", 20), ("L", 20), ("C", 20), ("P", 25), ("E", 9), ("W", 11), ("T", 26)];

const RULES: &[(&str, usize)] = &[
    ("STD", 29),
    ("RPC", 36),
    ("ERR", 19),
    ("LIF", 20),
    ("PNG", 6),
    ("CAN", 15),
    ("PRG", 12),
    ("TMO", 6),
    ("LOG", 14),
    ("PAG", 7),
    ("TOL", 37),
    ("RES", 15),
    ("PRM", 7),
    ("CMP", 5),
    ("ROO", 7),
    ("SAM", 11),
    ("ELI", 12),
    ("TSK", 13),
    ("TSX", 13),
    ("MET", 10),
    ("RSL", 5),
    ("DIS", 7),
    ("VER", 4),
    ("CAP", 3),
    ("MRTR", 17),
    ("SUB", 14),
    ("CAC", 9),
    ("TRC", 2),
    ("EXT", 5),
    ("ERA", 7),
    ("PRB", 9),
    ("DEP", 6),
    ("SEC", 12),
];

pub(crate) fn scars() -> Vec<String> {
    let ids = SCARS.iter().flat_map(|(family, n)| (1..=*n).map(move |i| format!("{family}{i}")));
    ids.collect()
}

pub(crate) fn rules() -> Vec<String> {
    let ids =
        RULES.iter().flat_map(|(family, n)| (1..=*n).map(move |i| format!("{family}-{i:02}")));
    ids.collect()
}

/// Checks one ledger: rows of `cells` cells, the id in the first, the proof in the last.
pub(crate) fn check(ledger: &File, ids: &[String], cells: usize, tree: &[File]) -> Vec<Problem> {
    let proofs = Proofs::read(tree);
    let known: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut problems = Vec::new();
    for (line, row) in rows(&ledger.text) {
        let mut report = |what: String| problems.push(Problem::new(&ledger.path, line, what));
        if row.len() != cells {
            report(format!("{} cells, {cells} wanted: a cell may hold no pipe", row.len()));
            continue;
        }
        let id = row[0];
        if !known.contains(id) {
            report(format!("`{id}` is no id of this ledger"));
        } else if let Some(first) = seen.insert(id, line) {
            report(format!("{id} stands on line {first} already: keep one row"));
        }
        if row[cells - 2].is_empty() {
            report(format!("{id} says nothing: one line in our own words"));
        }
        if let Some(what) = proofs.fault(id, row[cells - 1]) {
            report(format!("{id}: {what}"));
        }
    }
    let missing = ids.iter().filter(|id| !seen.contains_key(id.as_str()));
    problems.extend(missing.map(|id| Problem::new(&ledger.path, 1, format!("{id} has no row"))));
    problems
}

/// The body rows of every pipe table: headers and rulers left out.
fn rows(text: &str) -> Vec<(usize, Vec<&str>)> {
    let lines: Vec<&str> = text.lines().collect();
    let is_row = |at: usize| lines.get(at).is_some_and(|line| line.starts_with('|'));
    let is_ruler = |at: usize| lines.get(at).is_some_and(|line| line.starts_with("|-"));
    let body = (0..lines.len()).filter(|at| is_row(*at) && !is_ruler(*at) && !is_ruler(at + 1));
    body.map(|at| (at + 1, lines[at].trim().trim_matches('|').split('|').map(str::trim).collect()))
        .collect()
}

/// Where transcripts are; a ledger names them from there.
const TRANSCRIPTS: &str = "crates/taut/tests/";

/// What can be named as a proof.
struct Proofs<'a> {
    tests: BTreeSet<&'a str>,
    files: BTreeMap<&'a str, &'a str>,
}

impl<'a> Proofs<'a> {
    fn read(tree: &'a [File]) -> Self {
        let code = tree.iter().filter(|file| file.path.ends_with(".rs"));
        Self {
            tests: code.flat_map(|file| test_names(&file.text)).collect(),
            files: tree.iter().map(|file| (file.path.as_str(), file.text.as_str())).collect(),
        }
    }

    /// What is wrong with a proof: `later: <layer>`, `not ours: <reason>`, or names in backticks.
    fn fault(&self, id: &str, proof: &str) -> Option<String> {
        if let Some(layer) = proof.strip_prefix("later: ") {
            let known = LAYERS.contains(&layer);
            return (!known).then(|| format!("no layer `{layer}`: one of {}", LAYERS.join(", ")));
        }
        if let Some(reason) = proof.strip_prefix("not ours: ") {
            return reason.is_empty().then(|| "say why it is not ours".to_owned());
        }
        for name in proof.split(',').map(str::trim) {
            let Some(name) = name.strip_prefix('`').and_then(|name| name.strip_suffix('`')) else {
                return Some(format!(
                    "`{proof}` is no proof: name tests in backticks, `later: <layer>` or \
                     `not ours: <reason>`"
                ));
            };
            if name.starts_with("transcripts/") {
                let text = self.files.get(format!("{TRANSCRIPTS}{name}").as_str());
                if !text.is_some_and(|text| has_scene(text, id)) {
                    return Some(format!("no scene of {name} names it in its title"));
                }
                continue;
            }
            let found = self.tests.contains(name) || self.files.contains_key(name);
            if !found {
                return Some(format!(
                    "no test `{name}` in the tree: was it renamed? A file is named from the root"
                ));
            }
        }
        None
    }
}

/// Whether the title of a scene names `id`.
fn has_scene(transcript: &str, id: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let mut titles = transcript.lines().filter_map(|line| line.strip_prefix("== "));
    titles.any(|title| title.split(|c| !is_word(c)).any(|word| word == id))
}

/// The functions that carry a test attribute.
fn test_names(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut marked = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[") {
            marked |= line.contains("test]") || line.contains("test(");
        } else if let Some(name) = function_name(line) {
            if marked {
                names.push(name);
            }
            marked = false;
        } else if !line.starts_with("//") && !line.is_empty() {
            marked = false;
        }
    }
    names
}

fn function_name(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    line.strip_prefix("fn ")?.split(['(', '<']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(proof_rows: &str) -> Vec<String> {
        let ledger = File {
            path: "docs/x.md".to_owned(),
            text: format!("| id | what | proof |\n|---|---|---|\n{proof_rows}"),
        };
        let code = "#[test]\nfn a_real_test() {}\n/// Why.\n#[tokio::test(start_paused = true)]\n\
                    // X1\nasync fn an_async_one() {}\nfn no_test() {}\n#[cfg(test)]\nfn helper() {}";
        let scenes = "# X2 in a remark\n== a scene (X1, X22), on full\n> X2\n";
        let tree = [
            File { path: "t.rs".to_owned(), text: code.to_owned() },
            File {
                path: "crates/taut/tests/transcripts/a.txt".to_owned(),
                text: scenes.to_owned(),
            },
        ];
        let ids = ["X1".to_owned(), "X2".to_owned()];
        check(&ledger, &ids, 3, &tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn all_three_kinds_of_proof_are_accepted() {
        assert!(
            problems("| X1 | a | `a_real_test`, `t.rs` |\n| X2 | b | later: wire |").is_empty()
        );
        assert!(problems("| X1 | a | `an_async_one` |\n| X2 | b | not ours: no HTTP |").is_empty());
    }

    #[test]
    fn a_transcript_proves_what_the_title_of_a_scene_names() {
        let rows = |x1: &str, x2: &str| problems(&format!("| X1 | a | {x1} |\n| X2 | b | {x2} |"));
        let a = "`transcripts/a.txt`";
        assert!(rows(a, "later: wire").is_empty());
        assert!(rows(&format!("{a}, `a_real_test`"), "later: wire").is_empty());
        assert_eq!(rows(a, a).len(), 1, "X2 stands in a remark and in a message only");
        assert_eq!(rows("`transcripts/b.txt`", "later: wire").len(), 1);
    }

    #[test]
    fn a_missing_a_double_and_an_unknown_id_are_named() {
        let found =
            problems("| X1 | a | later: rpc |\n| X1 | a | later: rpc |\n| X9 | a | later: rpc |");
        assert_eq!(found.len(), 3, "{found:#?}");
        assert!(found[0].starts_with("docs/x.md:4: X1 stands on line 3"));
        assert!(found[1].starts_with("docs/x.md:5: `X9`"));
        assert!(found[2].contains("X2 has no row"));
    }

    #[test]
    fn a_proof_that_proves_nothing_is_named() {
        let bad =
            ["`gone`", "`no_test`", "`helper`", "a_real_test", "later: soon", "not ours: ", ""];
        for proof in bad {
            let found = problems(&format!("| X1 | a | {proof} |\n| X2 | b | later: wire |"));
            assert_eq!(found.len(), 1, "{proof}: {found:#?}");
        }
    }

    #[test]
    fn a_row_with_a_pipe_too_many_or_no_words_is_named() {
        assert_eq!(problems("| X1 | a | b | later: rpc |\n| X2 | b | later: wire |").len(), 2);
        assert_eq!(problems("| X1 |  | later: rpc |\n| X2 | b | later: wire |").len(), 1);
    }
}
