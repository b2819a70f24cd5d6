//! Folders of the library form no import cycle: each can be read, changed and removed without those
//! that stand on it.
//!
//! A folder's `mod.rs` (or the file with the folder's name beside it) is its front: it may re-export
//! what is in the folders below. A file that stands beside folders counts as one of them; every other
//! file counts with the folder that it is in. Names are followed through the re-exports to where they
//! live.

use std::collections::{BTreeMap, BTreeSet};

use crate::imports::{Path, in_tree, module_of, paths};
use crate::source::Source;
use crate::{LIBRARY, Problem};

/// Folders where a cycle is still being taken apart, each with what is in the way. To be emptied.
const UNDER_WORK: &[(&str, &str)] = &[];

/// Folders of which the files form no cycle either.
const WITHOUT_FILE_CYCLES: &[&str] = &["wire", "json", "rpc", "mcp", "schema"];

/// One import: where it stands, and the file that it leads to.
struct Edge {
    from: usize,
    line: usize,
    to: usize,
}

pub(crate) fn between_folders(sources: &[Source]) -> Vec<Problem> {
    let tree = Tree::new(sources);
    let edges: Vec<Edge> =
        tree.edges().into_iter().filter(|edge| !tree.is_front_of(edge)).collect();
    cycles(&edges, |file| tree.folder(file))
        .into_iter()
        .filter(|(names, _)| !names.iter().all(|name| UNDER_WORK.iter().any(|(at, _)| at == name)))
        .map(|(names, edge)| tree.problem(edge, &names, "folders"))
        .collect()
}

pub(crate) fn between_files(sources: &[Source]) -> Vec<Problem> {
    let tree = Tree::new(sources);
    let checked = |file: usize| WITHOUT_FILE_CYCLES.contains(&module_of(&sources[file].path)[0]);
    let mut edges = tree.edges();
    edges.retain(|edge| checked(edge.from) && checked(edge.to) && !tree.is_front_of(edge));
    cycles(&edges, |file| sources[file].path.clone())
        .into_iter()
        .map(|(names, edge)| tree.problem(edge, &names, "files"))
        .collect()
}

/// The groups of nodes that import each other, in whatever number of steps, with one of the imports.
fn cycles(edges: &[Edge], node: impl Fn(usize) -> String) -> Vec<(Vec<String>, &Edge)> {
    let mut direct: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for edge in edges {
        let (from, to) = (node(edge.from), node(edge.to));
        if from != to {
            direct.entry(from).or_default().insert(to);
        }
    }
    let reached = |start: &String| {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&String> = direct.get(start).into_iter().flatten().collect();
        while let Some(next) = open.pop() {
            if seen.insert(next.clone()) {
                open.extend(direct.get(next).into_iter().flatten());
            }
        }
        seen
    };
    let reach: BTreeMap<&String, BTreeSet<String>> =
        direct.keys().map(|name| (name, reached(name))).collect();
    let mut groups: BTreeSet<Vec<String>> = BTreeSet::new();
    for (name, to) in &reach {
        if to.contains(*name) {
            let back = |other: &&String| reach.get(*other).is_some_and(|to| to.contains(*name));
            groups.insert(to.iter().filter(back).cloned().collect());
        }
    }
    let witness = |group: &Vec<String>| {
        edges.iter().find(|edge| {
            let (from, to) = (node(edge.from), node(edge.to));
            from != to && group.contains(&from) && group.contains(&to)
        })
    };
    groups.into_iter().filter_map(|group| Some((group.clone(), witness(&group)?))).collect()
}

struct Tree<'a> {
    sources: &'a [Source],
    /// The file of each module, by its path in the crate.
    files: BTreeMap<Vec<String>, usize>,
    /// What each module imports, by the name under which it is known there.
    names: BTreeMap<Vec<String>, BTreeMap<String, Vec<String>>>,
}

impl<'a> Tree<'a> {
    fn new(sources: &'a [Source]) -> Self {
        let module = |source: &Source| -> Vec<String> {
            let path = module_of(&source.path);
            path.into_iter().filter(|name| *name != "lib").map(str::to_owned).collect()
        };
        let files: BTreeMap<_, _> =
            sources.iter().enumerate().map(|(at, source)| (module(source), at)).collect();
        let mut tree = Self { sources, files, names: BTreeMap::new() };
        for source in sources {
            let here = module(source);
            let imported = paths(&source.code).into_iter().filter(|path| path.imported);
            let known = imported.filter_map(|path| {
                let name = path.alias.clone().or_else(|| path.names.last().cloned())?;
                Some((name, tree.absolute(&path, &here)?))
            });
            let known = known.collect();
            tree.names.insert(here, known);
        }
        tree
    }

    /// Where a path leads, from the root of the crate; nothing if it leaves the crate.
    fn absolute(&self, path: &Path, here: &[String]) -> Option<Vec<String>> {
        let mut base = here.to_vec();
        let mut rest = path.names.iter().peekable();
        match rest.peek()?.as_str() {
            "crate" => base.clear(),
            "self" | "super" => {}
            child => {
                base.push(child.to_owned());
                self.files.get(&base)?;
                base.pop();
            }
        }
        while let Some(step) =
            rest.next_if(|name| matches!(name.as_str(), "crate" | "self" | "super"))
        {
            if step == "super" {
                base.pop();
            }
        }
        base.extend(rest.cloned());
        Some(base)
    }

    /// The file in which the thing at this path is defined.
    fn file(&self, mut path: Vec<String>) -> Option<usize> {
        for _ in 0..8 {
            let known = (0..=path.len()).rev().find(|n| self.files.contains_key(&path[..*n]))?;
            let (module, rest) = path.split_at(known);
            let through = rest.first().and_then(|name| self.names.get(module)?.get(name));
            match through {
                Some(through) if through[..] != path[..=known] => {
                    path = [through, &rest[1..]].concat();
                }
                _ => return self.files.get(module).copied(),
            }
        }
        None
    }

    fn edges(&self) -> Vec<Edge> {
        let mut edges = Vec::new();
        for (here, from) in &self.files {
            for path in paths(&self.sources[*from].code) {
                let to = self.absolute(&path, here).and_then(|path| self.file(path));
                if let Some(to) = to.filter(|to| to != from) {
                    edges.push(Edge { from: *from, line: path.line, to });
                }
            }
        }
        edges
    }

    /// Whether a front imports what is below it.
    fn is_front_of(&self, edge: &Edge) -> bool {
        let front = module_of(&self.sources[edge.from].path);
        let below = module_of(&self.sources[edge.to].path);
        front == ["lib"] || (self.is_front(edge.from) && below.starts_with(&front))
    }

    fn is_front(&self, file: usize) -> bool {
        let path = &self.sources[file].path;
        let module = module_of(path);
        let has_below = |other: &Vec<String>| {
            other.len() > module.len() && other.iter().zip(&module).all(|(a, b)| a == b)
        };
        path.ends_with("/mod.rs") || self.files.keys().any(has_below)
    }

    /// The folder that a file belongs to. A file in no folder, or beside folders, is one by itself.
    fn folder(&self, file: usize) -> String {
        let mut module = module_of(&self.sources[file].path);
        let parent = module[..module.len() - 1].join("/");
        let in_a_folder = |source: &Source| {
            let below = source.path.strip_prefix(&parent).and_then(|rest| rest.strip_prefix('/'));
            below.is_some_and(|below| below.contains('/'))
        };
        let beside_folders = self.sources.iter().any(in_a_folder);
        if !self.is_front(file) && module.len() > 1 && !beside_folders {
            module.pop();
        }
        module.join("/")
    }

    fn problem(&self, edge: &Edge, names: &[String], what: &str) -> Problem {
        let text = format!(
            "the {what} {} import each other; this line leads to {LIBRARY}{}. Move what both need \
             into a place of its own, or turn one of the imports into an argument",
            names.join(", "),
            self.sources[edge.to].path
        );
        Problem::new(&in_tree(&self.sources[edge.from]), edge.line, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(files: &[(&str, &str)]) -> Vec<Source> {
        let source = |(path, code): &(&str, &str)| Source {
            path: (*path).to_owned(),
            code: (*code).to_owned(),
            lines: 0,
        };
        files.iter().map(source).collect()
    }

    #[test]
    fn a_folder_and_a_file_beside_it_may_not_use_each_other() {
        let files = [
            ("lib.rs", "mod rpc;"),
            ("rpc/mod.rs", "mod error; mod peer; mod talk; pub use peer::Peer;"),
            ("rpc/error.rs", "pub struct Error;"),
            ("rpc/peer/mod.rs", "use super::{error::Error, talk::Talk}; pub struct Peer;"),
            ("rpc/talk.rs", "pub struct Talk;"),
        ];
        assert!(between_folders(&sources(&files)).is_empty());
        // Through the front, but it is there all the same.
        let mut bad = files;
        bad[4].1 = "use crate::rpc::Peer;";
        let found = between_folders(&sources(&bad));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].what.contains("rpc/peer, rpc/talk"), "{found:?}");
    }

    #[test]
    fn a_cycle_of_three_folders_is_named_once() {
        let files = [
            ("a/mod.rs", "mod x;"),
            ("a/x.rs", "use crate::b::y::Y;"),
            ("b/mod.rs", "pub mod y;"),
            ("b/y.rs", "fn f() { crate::c() }"),
            ("c.rs", "use super::a::x::X;"),
        ];
        let found = between_folders(&sources(&files));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].what.contains("folders a, b, c "), "{found:?}");
    }

    #[test]
    fn two_files_that_import_each_other_are_named() {
        let files = [
            ("rpc/mod.rs", "mod a; mod b;"),
            ("rpc/a.rs", "use super::b::B;"),
            ("rpc/b.rs", "use super::a::A;"),
        ];
        assert!(between_folders(&sources(&files)).is_empty());
        assert_eq!(between_files(&sources(&files)).len(), 1);
    }
}
