//! docs/scars.md and docs/rules.md: every id once, every proof a test that exists.
//!
//! A transcript proves an id if one of its scenes names it: `transcripts/tools.txt`.

use std::collections::{BTreeMap, BTreeSet};

use crate::{File, Problem};

/// Where a proof may still be owed. The layer that will hold the test, not the date.
const LAYERS: &[&str] =
    &["wire", "rpc", "mcp", "driver", "stdio", "service", "server", "client", "http", "command"];

/// Family and size; ids run from 1 without a gap.
const SCARS: &[(&str, usize)] = &[
    ("F", 28),
    ("S", 21),
    ("L", 22),
    ("C", 23),
    ("P", 30),
    ("E", 11),
    ("W", 11),
    ("H", 17),
    ("T", 29),
];

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
    ("HTP", 13),
    ("HDR", 12),
    ("PAR", 6),
    ("SSE", 14),
    ("GET", 4),
    ("SES", 9),
    ("HCN", 6),
    ("HSC", 6),
    ("ERH", 6),
    ("OSE", 3),
    ("AUS", 7),
    ("AUC", 12),
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
    /// Each test, with its doc comment and what else stands in front of its name.
    tests: BTreeMap<&'a str, Vec<String>>,
    files: BTreeMap<&'a str, &'a str>,
}

impl<'a> Proofs<'a> {
    fn read(tree: &'a [File]) -> Self {
        let code = tree.iter().filter(|file| file.path.ends_with(".rs"));
        let mut tests: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (name, words) in code.flat_map(|file| tests_of(&file.text)) {
            tests.entry(name).or_default().push(words);
        }
        Self {
            tests,
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
            let Some(words) = self.tests.get(name) else {
                if self.files.contains_key(name) {
                    continue;
                }
                return Some(format!(
                    "no test `{name}` in the tree: was it renamed? A file is named from the root"
                ));
            };
            if !in_name(name, id) && !words.iter().any(|words| in_words(words, id)) {
                return Some(format!(
                    "`{name}` does not name it: put {id} into the test's name or doc comment"
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

/// Whether a test's name has `id` in it: `rpc_35_…`, `rsl_01_and_05_…`, `f18_f20_…`.
fn in_name(name: &str, id: &str) -> bool {
    let (family, number) = match id.split_once('-') {
        Some((family, number)) => (family.to_ascii_lowercase(), number),
        None => (String::new(), id),
    };
    let mut current = "";
    for word in name.split('_') {
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        if family.is_empty() && word.eq_ignore_ascii_case(number) {
            return true;
        }
        if is_number && !family.is_empty() && current == family && word == number {
            return true;
        }
        if !is_number && word != "and" {
            current = word;
        }
    }
    false
}

/// Whether `id` is one of the words, or in a range such as "TOL-05 to TOL-09".
fn in_words(words: &str, id: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let words: Vec<&str> = words.split(|c| !is_word(c)).filter(|word| !word.is_empty()).collect();
    let number = |word: &str| -> Option<(String, u32)> {
        let at = word.find(|c: char| c.is_ascii_digit())?;
        Some((word[..at].to_owned(), word[at..].parse().ok()?))
    };
    let in_range = |range: &[&str]| {
        let [first, "to", last] = range else { return false };
        match (number(first), number(last), number(id)) {
            (Some((a, from)), Some((b, to)), Some((family, at))) => {
                a == family && b == family && (from..=to).contains(&at)
            }
            _ => false,
        }
    };
    words.contains(&id) || words.windows(3).any(in_range)
}

/// The functions that carry a test attribute, each with the comments in front of it.
fn tests_of(text: &str) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    let mut marked = false;
    let mut words = String::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[") {
            marked |= line.contains("test]") || line.contains("test(");
        } else if line.starts_with("//") {
            words.push_str(line);
            words.push('\n');
        } else {
            if let Some(name) = function_name(line).filter(|_| marked) {
                found.push((name, std::mem::take(&mut words)));
            }
            marked = false;
            words.clear();
        }
    }
    found
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
        let code = "/// X1 and its reason.\n#[test]\nfn a_real_test() {}\n/// Why.\n#[tokio::test(start_paused = true)]\n\
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
    fn a_test_proves_only_what_it_names() {
        let found = problems("| X1 | a | `a_real_test` |\n| X2 | b | `a_real_test` |");
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].contains("`a_real_test` does not name it: put X2"), "{found:#?}");
        assert!(in_name("rsl_01_and_05_only_modern", "RSL-05") && in_name("f18_f20_ids", "F20"));
        assert!(!in_name("rsl_01_and_05_only_modern", "RSL-50") && !in_name("a_05", "RSL-05"));
        assert!(in_words("/// CAC-01 to CAC-05, and C3.", "CAC-04") && in_words("/// C3.", "C3"));
        assert!(!in_words("/// CAC-01 to CAC-05.", "CAC-06") && !in_words("/// C33.", "C3"));
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
