//! The rules of the house, checked. Each failure says which file, which line and what to do.
//!
//! The checks are plain functions from text to a list of [`Problem`]s, each with a bad example of
//! its own beside it; the tests here only feed them the tree. Needs Rust and nothing else: no git,
//! no installed tool.

// Clippy's exception for tests covers `#[test]` functions, not what they call.
#![allow(clippy::unwrap_used, clippy::panic)]

mod crates;
mod cycles;
mod imports;
mod ledger;
mod links;
mod names;
mod repo;
mod source;
mod systems;

use std::fmt;
use std::path::{Path, PathBuf};

use source::Source;

/// One broken rule, at one place.
#[derive(Debug, PartialEq, Eq)]
struct Problem {
    file: String,
    line: usize,
    what: String,
}

impl Problem {
    fn new(file: &str, line: usize, what: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

/// One text file of the repository, named from its root with `/` between the parts.
struct File {
    path: String,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Directories that hold what was built or fetched, never what was written.
const NOT_OURS: &[&str] =
    &["target", ".git", "node_modules", ".cache", ".venv", "__pycache__", "corpus", "artifacts"];

/// Every text file of the repository.
fn tree() -> Vec<File> {
    let mut files = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(root().join(&at)).unwrap().flatten() {
            let path = at.join(entry.file_name());
            if NOT_OURS.iter().any(|name| entry.file_name() == *name) {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                open.push(path);
            } else if let Ok(text) = std::fs::read_to_string(entry.path()) {
                let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
                files.push(File { path: parts.join("/"), text });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(
        files.iter().any(|file| file.path == "Cargo.toml"),
        "this is not the repository's root"
    );
    files
}

fn file<'a>(tree: &'a [File], path: &str) -> &'a File {
    tree.iter().find(|file| file.path == path).unwrap_or_else(|| panic!("{path} is missing"))
}

const LIBRARY: &str = "crates/taut/src/";

/// The library's own code: comments, literals and test modules taken out.
fn library(tree: &[File]) -> Vec<Source> {
    let files = tree.iter().filter_map(|file| {
        let path = file.path.strip_prefix(LIBRARY)?;
        path.ends_with(".rs").then_some((path, file.text.as_str()))
    });
    source::read(files)
}

fn assert_clean(problems: &[Problem]) {
    let list: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert!(list.is_empty(), "\n\n{}\n", list.join("\n"));
}

/// Invariant 1.
#[test]
fn pure_files_touch_nothing_of_the_world() {
    assert_clean(&imports::impure(&library(&tree())));
}

#[test]
fn every_link_in_the_documents_leads_somewhere() {
    assert_clean(&links::broken(&tree(), |path| root().join(path).exists()));
}

/// Invariant 2.
#[test]
fn imports_point_left_only() {
    assert_clean(&imports::pointing_right(&library(&tree())));
}

#[test]
fn folders_form_no_import_cycle() {
    assert_clean(&cycles::between_folders(&library(&tree())));
}

#[test]
fn files_of_the_pure_folders_form_no_import_cycle() {
    assert_clean(&cycles::between_files(&library(&tree())));
}

#[test]
fn no_two_types_have_the_same_name() {
    assert_clean(&names::twice(&library(&tree())));
}

/// Invariant 3; the print macros are clippy's part of it.
#[test]
fn only_stdio_touches_the_standard_streams() {
    assert_clean(&imports::standard_streams(&library(&tree())));
}

#[test]
fn a_file_is_read_in_one_sitting() {
    let tree = tree();
    let code = tree.iter().filter(|file| file.path.ends_with(".rs") && file.path.contains("src/"));
    let code = code.map(|file| (file.path.as_str(), file.text.as_str()));
    assert_clean(&source::too_long(&source::read(code)));
}

/// Invariant 10, the part that no lint sees: which files may make an exception.
#[test]
fn unsafe_stands_only_where_a_decision_says_so() {
    assert_clean(&systems::unsafe_elsewhere(&tree()));
}

#[test]
fn a_test_that_is_not_for_windows_says_why() {
    assert_clean(&systems::unexplained(&tree()));
}

#[test]
fn what_only_linux_has_can_be_left_out() {
    assert_clean(&systems::not_left_out(&tree()));
}

#[test]
fn every_scar_says_where_it_is_proven() {
    let tree = tree();
    assert_clean(&ledger::check(file(&tree, "docs/scars.md"), &ledger::scars(), 3, &tree));
}

#[test]
fn every_rule_says_where_it_is_proven() {
    let tree = tree();
    assert_clean(&ledger::check(file(&tree, "docs/rules.md"), &ledger::rules(), 4, &tree));
}

#[test]
fn the_readme_and_the_ci_run_the_same_commands() {
    let tree = tree();
    assert_clean(&repo::commands(file(&tree, "README.md"), file(&tree, ".ci/run")));
}

#[test]
fn nothing_in_the_tree_belongs_to_one_machine() {
    assert_clean(&repo::machine_traces(&tree()));
}

#[test]
fn every_crate_has_a_licence_that_deny_toml_allows() {
    let tree = tree();
    let deny = file(&tree, "deny.toml");
    let allowed = crates::allowed_licences(&deny.text);
    assert!(!allowed.is_empty(), "deny.toml: [licenses] has no `allow` list");
    let (packages, source) = crates::packages(&root());
    assert!(packages.len() > 10, "{source} named only {} crates", packages.len());
    assert_clean(&crates::unlicensed(&packages, &allowed));
}

#[test]
fn a_server_and_a_client_need_few_crates() {
    let crates = crates::normal_dependencies(&root(), &[]);
    assert_clean(&crates::too_many(&crates, crates::LIMIT));
}

/// HTTP and TLS are the affair of `taut-http`, whatever features the library has.
#[test]
fn no_http_crate_enters_the_library() {
    let network = [
        "http",
        "http-body",
        "http-body-util",
        "hyper",
        "hyper-util",
        "hyper-rustls",
        "axum",
        "tower",
        "tower-service",
        "rustls",
        "tokio-rustls",
        "ring",
        "native-tls",
        "openssl",
        "reqwest",
        "h2",
        "async-nats",
    ];
    for features in [&[][..], &["--all-features"]] {
        let crates = crates::normal_dependencies(&root(), features);
        assert_clean(&crates::unwanted(&crates, &network, "HTTP and TLS belong to `taut-http`"));
    }
}

/// The manifest's half of invariant 1.
#[test]
fn the_pure_core_does_not_know_tokio() {
    let crates = crates::normal_dependencies(&root(), &["--no-default-features"]);
    assert_clean(&crates::unwanted(
        &crates,
        &["tokio", "mio", "rustix", "libc"],
        "gate it behind `tokio`",
    ));
}
