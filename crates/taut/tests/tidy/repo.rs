//! The repository as a whole: the commands it promises, and nothing of the machine it was made on.

use crate::{File, Problem};

const TRY_IT: &str = "cargo run --release -- smoke";
const TEST_IT: &str = "cargo test --workspace";

/// The two commands stand in the README on lines of their own, and CI runs the second as it stands.
pub(crate) fn commands(readme: &File, ci: &File) -> Vec<Problem> {
    let mut problems = Vec::new();
    for command in [TRY_IT, TEST_IT] {
        if !readme.text.lines().any(|line| line.trim() == command) {
            let what = format!("`{command}` must stand on a line of its own");
            problems.push(Problem::new(&readme.path, 1, what));
        }
    }
    let runs = |line: &str| line.trim() == TEST_IT || line.trim() == format!("run {TEST_IT}");
    if !ci.text.lines().any(runs) {
        let what = format!("CI must run the README's `{TEST_IT}`, word for word");
        problems.push(Problem::new(&ci.path, 1, what));
    }
    problems
}

/// Directories of the machines this was written on. Spelled in two halves: this file is checked too.
const HERE: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/")];

/// Settings that lead a build to one place's mirror.
const MIRRORS: &[&str] = &[
    concat!("replace", "-with"),
    concat!("[regis", "tries"),
    concat!("[sour", "ce."),
    concat!("index", "-url"),
];

/// What may follow, wherever a lock file says where a crate or package came from.
const PUBLIC: &[(&str, &str)] = &[
    (concat!("regis", "try+"), "https://github.com/rust-lang/crates.io-index"),
    (concat!("spar", "se+"), "https://index.crates.io/"),
    (concat!("\"reso", "lved\": \""), "https://registry.npmjs.org/"),
];

pub(crate) fn machine_traces(tree: &[File]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in tree {
        for (number, line) in file.text.lines().enumerate() {
            if let Some(what) = trace(line) {
                problems.push(Problem::new(&file.path, number + 1, what));
            }
        }
    }
    problems
}

fn trace(line: &str) -> Option<String> {
    let starts_a_path = |at: usize| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/~}".contains(c))
    };
    if let Some(here) =
        HERE.iter().find(|h| line.match_indices(**h).any(|(at, _)| starts_a_path(at)))
    {
        return Some(format!(
            "`{here}` is a path of one machine: say it from the repository's root"
        ));
    }
    if let Some(mirror) = MIRRORS.iter().find(|mirror| line.contains(**mirror)) {
        return Some(format!(
            "`{mirror}` sends builds to a mirror: that belongs in a user's own config"
        ));
    }
    let astray = PUBLIC.iter().find(|(key, home)| {
        line.match_indices(*key).any(|(at, _)| !line[at + key.len()..].starts_with(home))
    });
    astray.map(|(_, home)| format!("this came from a private registry: fetch it from {home}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_command_that_drifts_is_named() {
        let readme = file("README.md", &format!("    {TRY_IT}\n    {TEST_IT}\n"));
        let good = file(".ci/run", &format!("run {TEST_IT}\n"));
        assert!(commands(&readme, &good).is_empty());
        let commented = file(".ci/run", &format!("# run {TEST_IT}\nrun cargo test\n"));
        assert_eq!(commands(&readme, &commented)[0].file, ".ci/run");
        assert_eq!(commands(&file("README.md", TEST_IT), &good)[0].file, "README.md");
    }

    #[test]
    fn a_path_of_one_machine_is_named() {
        let [one, other] = [HERE[0], HERE[1]];
        let bad =
            format!("ok\nsee {one}shared\n\"{other}x\"\nhttps://example.org{one}x\nmy{one}\n");
        let lines: Vec<_> = machine_traces(&[file("a", &bad)]).iter().map(|p| p.line).collect();
        assert_eq!(lines, [2, 3]);
    }

    #[test]
    fn a_private_registry_is_named() {
        for (key, home) in PUBLIC {
            assert!(trace(&format!("{key}{home}")).is_none());
            assert!(trace(&format!("{key}https://mirror.example/")).is_some(), "{key}");
        }
        for mirror in MIRRORS {
            assert!(trace(&format!("{mirror} = 1")).is_some(), "{mirror}");
        }
    }
}
