//! Invariants 1 to 3: who may name whom.
//!
//! Works on every path in the code, not only on `use` lines: `std::io::Error` written out in a
//! signature reaches the world as well as an import does.

use std::collections::BTreeMap;

use crate::source::Source;
use crate::{LIBRARY, Problem};

/// Bytes in, events out: what may not be named there.
const PURE: &[&str] = &["wire/", "json/", "rpc/", "mcp/", "schema/", "process/shutdown.rs"];
const WORLDLY: &[&[&str]] = &[
    &["std", "env"],
    &["std", "fs"],
    &["std", "io"],
    &["std", "net"],
    &["std", "process"],
    &["std", "thread"],
    &["rustix"],
    &["tokio"],
];
const CLOCKS: &[&[&str]] = &[&["Instant", "now"], &["SystemTime", "now"]];

/// Every module and what stands left of it. A new arrow wants a decision file.
const LAYERS: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("json", &["wire"]),
    // What is secret, and hiding it in any text; knows no message.
    ("secrets", &["lock"]),
    ("rpc", &["wire", "json", "secrets"]),
    ("mcp", &["wire", "json", "rpc"]),
    // What results are checked against; knows JSON and nothing of ours.
    ("schema", &[]),
    ("ending", &[]),
    ("lock", &[]),
    // Knows no type of ours.
    ("macros", &[]),
    ("bell", &["lock"]),
    // The messages of a transport that is no byte stream know which request they belong to.
    ("stream", &["rpc"]),
    ("width", &[]),
    // The calls to Windows that need `unsafe`; knows handles and nothing of ours.
    ("win32", &[]),
    ("threaded", &["lock", "stream"]),
    ("stdio", &["lock", "stream", "threaded", "width", "win32"]),
    // Child processes; knows nothing of messages.
    ("process", &["bell", "lock", "secrets", "stream", "threaded", "width", "win32"]),
    ("error", &["wire", "rpc", "mcp", "schema", "ending", "stdio", "process"]),
    ("driver", &["wire", "json", "rpc", "secrets", "bell", "ending", "lock", "stream"]),
    // The seam for transports outside the crate; knows messages and no method.
    ("transport", &["json", "rpc", "ending", "lock", "stream", "driver"]),
    (
        "service",
        &[
            "wire",
            "json",
            "rpc",
            "ending",
            "error",
            "stream",
            "stdio",
            "process",
            "driver",
            "transport",
        ],
    ),
    (
        "server",
        &[
            "wire",
            "json",
            "rpc",
            "mcp",
            "ending",
            "lock",
            "error",
            "stream",
            "stdio",
            "driver",
            "transport",
            "service",
        ],
    ),
    (
        "client",
        &[
            "wire",
            "json",
            "rpc",
            "mcp",
            "schema",
            "ending",
            "lock",
            "secrets",
            "error",
            "stream",
            "stdio",
            "process",
            "driver",
            "transport",
            "service",
        ],
    ),
    // Forwards what a client asks to another server; stands on the client and on the interface for transports.
    (
        "proxy",
        &[
            // The name of a framing, for the setting of the clients' side; nothing of frames.
            "wire",
            "json",
            "rpc",
            "mcp",
            "ending",
            "error",
            "stream",
            "stdio",
            "driver",
            "transport",
            "service",
            "client",
            "lock",
        ],
    ),
    // The one place that knows both ends: a client joined to a server without a process.
    ("memory", &["rpc", "mcp", "error", "stream", "driver", "server", "client"]),
];

/// The one module that may hold fds 0 to 2.
const STREAMS: &str = "stdio";
const STREAM_CALLS: &[&str] = &["stdin", "stdout", "stderr"];
const STREAM_NUMBERS: &[&str] = &["STDIN_FILENO", "STDOUT_FILENO", "STDERR_FILENO"];

/// Invariant 1.
pub(crate) fn impure(sources: &[Source]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for source in sources.iter().filter(|s| PURE.iter().any(|pure| s.path.starts_with(pure))) {
        for path in paths(&source.code) {
            let worldly = WORLDLY.iter().any(|prefix| path.starts_with(prefix))
                || CLOCKS.iter().any(|clock| path.names.windows(2).any(|pair| pair == *clock));
            if worldly {
                let what = format!(
                    "a pure file names `{}`: take bytes, events or `now` as an argument instead, \
                     or do it in driver.rs, stdio.rs or process/",
                    path.names.join("::")
                );
                problems.push(Problem::new(&in_tree(source), path.line, what));
            }
        }
    }
    problems
}

/// Invariant 2.
pub(crate) fn pointing_right(sources: &[Source]) -> Vec<Problem> {
    let lib = sources.iter().find(|source| source.path == "lib.rs");
    let exports = lib.map(|lib| exports(&lib.code)).unwrap_or_default();
    let mut problems = Vec::new();
    for source in sources.iter().filter(|source| source.path != "lib.rs") {
        let module = module_of(&source.path);
        let Some((_, left)) = LAYERS.iter().find(|(name, _)| *name == module[0]) else {
            let what = format!(
                "module `{}` has no place in the layers: add it to LAYERS in tests/tidy/imports.rs \
                 and to the code map in ARCHITECTURE.md",
                module[0]
            );
            problems.push(Problem::new(&in_tree(source), 1, what));
            continue;
        };
        for path in paths(&source.code) {
            let Some(target) = target(&path, &module, &exports) else { continue };
            let what = match target {
                Target::Unknown(name) => format!(
                    "cannot tell where `crate::{name}` lives: import it from its own module"
                ),
                Target::Module(to) if to == module[0] || left.contains(&to.as_str()) => continue,
                Target::Module(to) => format!(
                    "`{}` may not know `{to}`: imports point left only. Move the code, or turn the \
                     knowledge into an argument; a new arrow needs a decision file and LAYERS",
                    module[0]
                ),
            };
            problems.push(Problem::new(&in_tree(source), path.line, what));
        }
    }
    problems
}

/// Invariant 3.
pub(crate) fn standard_streams(sources: &[Source]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for source in sources.iter().filter(|source| module_of(&source.path)[..1] != [STREAMS]) {
        for path in paths(&source.code) {
            let last = path.names.last().map_or("", String::as_str);
            let touches = (STREAM_CALLS.contains(&last) && path.called_bare)
                || STREAM_NUMBERS.contains(&last)
                || path.starts_with(&["rustix", "stdio"]);
            if touches {
                let what = format!(
                    "`{}` touches a standard stream: only stdio.rs does that. Log through tracing, \
                     speak through stdio::say",
                    path.names.join("::")
                );
                problems.push(Problem::new(&in_tree(source), path.line, what));
            }
        }
    }
    problems
}

pub(crate) fn in_tree(source: &Source) -> String {
    format!("{LIBRARY}{}", source.path)
}

/// `rpc/peer.rs` is `["rpc", "peer"]`, `rpc/mod.rs` is `["rpc"]`.
pub(crate) fn module_of(path: &str) -> Vec<&str> {
    let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
    path.split('/').collect()
}

enum Target {
    Module(String),
    Unknown(String),
}

/// Which top-level module a path leads to; `None` when it stays outside the crate or says nothing.
fn target(path: &Path, module: &[&str], exports: &BTreeMap<String, String>) -> Option<Target> {
    let mut base: Vec<&str> = module.to_vec();
    let mut rest = path.names.iter().map(String::as_str).peekable();
    match rest.peek()? {
        &"crate" => base.clear(),
        &"self" | &"super" => {}
        _ => return None,
    }
    while let Some(step) = rest.next_if(|name| matches!(*name, "crate" | "self" | "super")) {
        if step == "super" {
            base.pop();
        }
    }
    base.extend(rest);
    let first = *base.first()?;
    if LAYERS.iter().any(|(name, _)| *name == first) {
        return Some(Target::Module(first.to_owned()));
    }
    let exported = exports.get(first).map(|home| Target::Module(home.clone()));
    Some(exported.unwrap_or_else(|| Target::Unknown(first.to_owned())))
}

/// The names that `lib.rs` lifts to the root, and the module each is from.
fn exports(lib: &str) -> BTreeMap<String, String> {
    let lifted = paths(lib).into_iter().filter(|path| path.imported).filter_map(|path| {
        let name = path.alias.or_else(|| path.names.last().cloned())?;
        let home = path.names.iter().find(|part| *part != "crate" && *part != "self")?;
        Some((name, home.clone()))
    });
    lifted.collect()
}

/// One path in the code, `use` groups written out.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) line: usize,
    pub(crate) names: Vec<String>,
    pub(crate) alias: Option<String>,
    pub(crate) imported: bool,
    /// A free function called with no argument: `stdin()`, not `.stdin()` nor `fn stdin()`.
    called_bare: bool,
}

impl Path {
    fn starts_with(&self, prefix: &[&str]) -> bool {
        self.names.len() >= prefix.len() && self.names.iter().zip(prefix).all(|(a, b)| a == b)
    }
}

#[derive(Debug, PartialEq)]
pub(crate) enum Token {
    Name(String),
    Sep,
    Mark(char),
}

pub(crate) fn tokens(code: &str) -> Vec<(usize, Token)> {
    let mut tokens = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let mut rest = line;
        while let Some(c) = rest.chars().next() {
            let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let (token, len) = if word > 0 {
                (Some(Token::Name(rest[..word].to_owned())), word)
            } else if rest.starts_with("::") {
                (Some(Token::Sep), 2)
            } else {
                ((!c.is_whitespace()).then_some(Token::Mark(c)), c.len_utf8())
            };
            tokens.extend(token.map(|token| (number + 1, token)));
            rest = &rest[len..];
        }
    }
    tokens
}

pub(crate) fn paths(code: &str) -> Vec<Path> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at].1 {
            Token::Name(word) if word == "use" => {
                at = use_tree(&tokens, at + 1, &[], &mut found);
            }
            Token::Name(_) => at = plain_path(&tokens, at, &mut found),
            _ => at += 1,
        }
    }
    found
}

fn plain_path(tokens: &[(usize, Token)], start: usize, found: &mut Vec<Path>) -> usize {
    let token = |at: usize| tokens.get(at).map(|(_, token)| token);
    let mut names = Vec::new();
    let mut at = start;
    while let Some(Token::Name(name)) = token(at) {
        names.push(name.clone());
        at += 1;
        match (token(at), token(at + 1)) {
            (Some(Token::Sep), Some(Token::Name(_))) => at += 1,
            _ => break,
        }
    }
    let before = start.checked_sub(1).and_then(token);
    let ours = before == Some(&Token::Mark('.')) || before == Some(&Token::Name("fn".to_owned()));
    let called = (token(at), token(at + 1)) == (Some(&Token::Mark('(')), Some(&Token::Mark(')')));
    let line = tokens[start].0;
    found.push(Path { line, names, alias: None, imported: false, called_bare: called && !ours });
    at
}

/// Reads one `use` tree from `at`; returns where the tree ends.
fn use_tree(
    tokens: &[(usize, Token)],
    mut at: usize,
    prefix: &[String],
    found: &mut Vec<Path>,
) -> usize {
    let mut names = prefix.to_vec();
    let mut alias = None;
    let line = tokens.get(at).map_or(0, |(line, _)| *line);
    while let Some((_, token)) = tokens.get(at) {
        match token {
            Token::Name(word) if word == "as" => {
                if let Some((_, Token::Name(name))) = tokens.get(at + 1) {
                    alias = Some(name.clone());
                }
                at += 1;
            }
            // `a::{self}` is `a`.
            Token::Name(word) if word == "self" && !names.is_empty() => {}
            Token::Name(word) => names.push(word.clone()),
            Token::Mark('*') => names.push("*".to_owned()),
            Token::Sep => {}
            Token::Mark('{') => {
                at += 1;
                while !matches!(tokens.get(at), None | Some((_, Token::Mark('}')))) {
                    at = use_tree(tokens, at, &names, found);
                    if matches!(tokens.get(at), Some((_, Token::Mark(',')))) {
                        at += 1;
                    }
                }
                return at + 1;
            }
            Token::Mark(_) => break,
        }
        at += 1;
    }
    found.push(Path { line, names, alias, imported: true, called_bare: false });
    // A mark that no use tree has (a macro's `$`) is stepped over, so that reading always advances.
    if matches!(tokens.get(at), Some((_, Token::Mark(mark))) if !matches!(mark, ',' | '}')) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, code: &str) -> Source {
        Source { path: path.to_owned(), code: code.to_owned(), lines: 0 }
    }

    fn lines(problems: &[Problem]) -> Vec<usize> {
        problems.iter().map(|problem| problem.line).collect()
    }

    #[test]
    fn groups_are_written_out() {
        let read = |code| -> Vec<_> { paths(code).iter().map(|p| p.names.join("::")).collect() };
        assert_eq!(read("use a::{self, b::{c as d, e}, *};"), ["a", "a::b::c", "a::b::e", "a::*"]);
        assert_eq!(read("x: ::std::io::Error,"), ["x", "std::io::Error"]);
    }

    #[test]
    fn a_pure_file_that_reaches_the_world_is_named() {
        let code = "use std::{fmt, io};\nfn a(at: std::time::Instant) {}\nfn b() { Instant::now() }\n\
                    use tokio::time;\nuse std::{\n    fmt,\n    thread,\n};";
        assert_eq!(lines(&impure(&[source("rpc/peer.rs", code)])), [1, 3, 4, 7]);
        assert_eq!(lines(&impure(&[source("process/shutdown.rs", "use std::process;")])), [1]);
        assert!(impure(&[source("driver.rs", code)]).is_empty());
    }

    #[test]
    fn an_import_that_points_right_is_named() {
        let lib = source("lib.rs", "pub use mcp::{Tool, Content as Block};");
        let check = |path, code| {
            let lib = source("lib.rs", &lib.code);
            lines(&pointing_right(&[lib, source(path, code)]))
        };
        assert_eq!(check("wire/decode.rs", "use super::encode;\nuse crate::rpc::Id;"), [2]);
        assert_eq!(
            check("rpc/peer.rs", "use crate::{wire, driver};\nsuper::super::mcp::x();"),
            [1, 2]
        );
        assert_eq!(check("driver.rs", "fn a(t: crate::Tool, b: crate::Block) {}"), [1, 1]);
        assert_eq!(check("server/mod.rs", "use crate::client::Client;"), [1]);
        assert!(check("client/mod.rs", "use crate::{mcp::Tool, Tool as T, driver};").is_empty());
        assert!(check("memory.rs", "use crate::{client::Client, server::Server};").is_empty());
    }

    #[test]
    fn a_module_or_a_name_without_a_place_is_named() {
        assert_eq!(lines(&pointing_right(&[source("util.rs", "")])), [1]);
        assert_eq!(lines(&pointing_right(&[source("rpc/id.rs", "use crate::Mystery;")])), [1]);
    }

    #[test]
    fn a_file_that_touches_a_standard_stream_is_named() {
        let code = "std::io::stdout();\nchild.stdin(pipe).stderr();\nlet n = libc::STDIN_FILENO;\n\
                    use rustix::stdio::stdin;\nfn stderr() {}";
        assert_eq!(lines(&standard_streams(&[source("driver.rs", code)])), [1, 3, 4]);
        assert!(standard_streams(&[source("stdio/unix.rs", code)]).is_empty());
        assert!(standard_streams(&[source("stdio.rs", code)]).is_empty());
    }
}
