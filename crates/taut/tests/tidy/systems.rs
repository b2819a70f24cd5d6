//! What belongs to one system: where `unsafe` may stand, that a test which is left out on Windows says why, and that
//! what only Linux has can be left out.

use crate::{File, Problem};

/// Files that may allow `unsafe`, each with the decision that names it.
const UNSAFE: &[(&str, &str)] = &[
    ("crates/taut-cli/src/closed.rs", "docs/decisions/0025-closed-stdout.md"),
    ("crates/taut-cli/src/memory.rs", "docs/decisions/0018-memory-back.md"),
    ("crates/taut/src/process/unix.rs", "docs/decisions/0004-children.md"),
    ("crates/taut/src/win32.rs", "docs/decisions/0013-windows.md"),
    ("crates/taut/tests/rude/system.rs", "docs/decisions/0013-windows.md"),
];

/// `unsafe` is allowed only where a decision says so, and each of them cites its decision. Spelled in two halves: this
/// file is checked too.
pub(crate) fn unsafe_elsewhere(tree: &[File]) -> Vec<Problem> {
    let allows = concat!("allow(unsafe", "_code");
    let mut problems = Vec::new();
    for file in tree.iter().filter(|file| file.path.ends_with(".rs")) {
        let decision = UNSAFE.iter().find(|(path, _)| *path == file.path).map(|(_, why)| *why);
        for (number, line) in file.text.lines().enumerate() {
            let what = match decision {
                _ if !line.contains(allows) => continue,
                None => "no decision allows `unsafe` in this file: write one, and add the file to \
                         UNSAFE in tests/tidy/systems.rs"
                    .to_owned(),
                Some(why) if !line.contains(why) => format!("its reason must name {why}"),
                Some(_) => continue,
            };
            problems.push(Problem::new(&file.path, number + 1, what));
        }
    }
    problems
}

/// How a test says why it is not for every system: it is about another one, or Wine cannot run it in time.
const REASONS: [&str; 3] = ["about unix itself", "about linux itself", "under wine"];

/// Tests and modules of tests that only Unix or Linux has must say why: in the comments and attributes around
/// them, beside them, or for a whole file at its head.
pub(crate) fn unexplained(tree: &[File]) -> Vec<Problem> {
    let code = tree.iter().filter(|f| f.path.starts_with("crates/") && f.path.ends_with(".rs"));
    code.flat_map(unexplained_in).collect()
}

fn unexplained_in(file: &File) -> Vec<Problem> {
    let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
    let head = lines.iter().take_while(|line| line.starts_with("//!") || line.is_empty());
    let head: Vec<String> = head.map(|line| line.trim_start_matches("//!").to_owned()).collect();
    if explains(&head.join("")) {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if !is_for_one_system(line) {
            continue;
        }
        let belongs = |line: &&&str| line.starts_with("//") || line.starts_with("#[");
        let before = lines[..at].iter().rev().take_while(belongs).count();
        let after = lines[at..].iter().skip(1).take_while(belongs).count();
        let item = lines.get(at + after + 1).copied().unwrap_or_default();
        let around = &lines[at - before..=(at + after + 1).min(lines.len() - 1)];
        if is_tested(around, item, &file.path, line) && !explains(&around.join("")) {
            let what = "say why Windows is left out, above this line: // About Unix itself: …";
            problems.push(Problem::new(&file.path, at + 1, what));
        }
    }
    problems
}

fn is_for_one_system(line: &str) -> bool {
    let Some(cfg) = line.strip_prefix("#![cfg(").or_else(|| line.strip_prefix("#[cfg(")) else {
        return false;
    };
    let systems = ["unix", "target_os = \"linux\""];
    let cfg = cfg.strip_prefix("all(test, ").or_else(|| cfg.strip_prefix("all(")).unwrap_or(cfg);
    systems.iter().any(|system| cfg.starts_with(system))
}

/// Whether what follows is a test or holds tests.
fn is_tested(around: &[&str], item: &str, path: &str, cfg: &str) -> bool {
    let has = |what: &str| around.iter().any(|line| line.starts_with(what));
    let is_module = item.split(' ').any(|word| word == "mod");
    let in_tests = path.contains("/tests/");
    cfg.starts_with("#![")
        || has("#[test]")
        || has("#[tokio::test")
        || (is_module && (in_tests || has("#[cfg(test)]") || has("#[cfg(all(test")))
}

fn explains(text: &str) -> bool {
    let text = text.to_lowercase();
    REASONS.iter().any(|reason| text.contains(reason))
}

/// What only Linux has must be absent with the cfg `taut_portable`, or `scripts/portable` would not test what a Mac has.
pub(crate) fn not_left_out(tree: &[File]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let product = |file: &&File| file.path.starts_with("crates/") && file.path.contains("/src/");
    for file in tree.iter().filter(product).filter(|file| file.path.ends_with(".rs")) {
        for (number, line) in file.text.lines().enumerate() {
            if line.contains("target_os = \"linux\"") && !line.contains("not(taut_portable)") {
                let what =
                    "write all(target_os = \"linux\", not(taut_portable)): docs/platforms.md";
                problems.push(Problem::new(&file.path, number + 1, what));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn unsafe_without_a_decision_or_its_name_is_found() {
        let allow =
            |why: &str| format!("#[{}, reason = \"{why}\")]\n", concat!("allow(unsafe", "_code"));
        let tree = [
            file("crates/taut/src/rpc/read.rs", &allow("faster")),
            file("crates/taut/src/win32.rs", &allow("faster")),
            file("crates/taut-cli/src/memory.rs", &allow("docs/decisions/0018-memory-back.md")),
        ];
        let found: Vec<_> = unsafe_elsewhere(&tree).into_iter().map(|found| found.file).collect();
        assert_eq!(found, ["crates/taut/src/rpc/read.rs", "crates/taut/src/win32.rs"]);
    }

    #[test]
    fn what_only_linux_has_and_is_not_left_out_is_found() {
        let table = [
            ("crates/a/src/x.rs", "#[cfg(target_os = \"linux\")]\n", 1),
            ("crates/a/src/x.rs", "#[cfg(not(target_os = \"linux\"))]\n", 1),
            ("crates/a/src/x.rs", "#[cfg(all(target_os = \"linux\", not(taut_portable)))]\n", 0),
            ("crates/a/src/x.rs", "#[cfg(any(target_os = \"linux\", windows))]\nmod tests;\n", 1),
            ("crates/a/tests/x.rs", "#[cfg(target_os = \"linux\")]\n", 0),
        ];
        for (path, text, count) in table {
            assert_eq!(not_left_out(&[file(path, text)]).len(), count, "{text}");
        }
    }

    #[test]
    fn a_test_for_one_system_without_a_reason_is_found() {
        let table = [
            ("#[test]\n#[cfg(unix)]\nfn a() {}\n", 1),
            ("#[cfg(target_os = \"linux\")]\n#[tokio::test]\nasync fn a() {}\n", 1),
            ("// About Unix itself: signals.\n#[test]\n#[cfg(unix)]\nfn a() {}\n", 0),
            ("// About Unix itself: signals.\n\n#[test]\n#[cfg(unix)]\nfn a() {}\n", 1),
            (
                "//! The tests here are about Unix\n//! itself.\n#[test]\n#[cfg(unix)]\nfn a() {}\n",
                0,
            ),
            ("#[cfg(unix)]\nmod processes;\n", 1),
            ("#[cfg(unix)]\nmod processes; // About Unix itself: signals.\n", 0),
            ("#![cfg(unix)]\n", 1),
            ("#[cfg(unix)]\nuse a::b;\n#[cfg(unix)]\nfn helper() {}\n", 0),
        ];
        for (text, count) in table {
            let found = unexplained(&[file("crates/taut/tests/x.rs", text)]);
            assert_eq!(found.len(), count, "{text}");
        }
        let own = "#[cfg(test)]\n#[cfg(unix)]\nmod tests {\n";
        assert_eq!(unexplained(&[file("crates/taut/src/x.rs", own)]).len(), 1);
        assert_eq!(unexplained(&[file("crates/taut/src/x.rs", "#[cfg(unix)]\nmod unix;\n")]), []);
    }
}
