//! What is code in a Rust file: comments and literals blanked, test modules taken out, lines kept.
//!
//! Knows just enough Rust to find where those begin and end; names and paths are `imports.rs`'s.

use crate::Problem;

/// A file without its comments, literals and tests.
pub(crate) struct Source {
    /// As it was given: from the root, or from the library's `src/`.
    pub(crate) path: String,
    /// Same lines as the file; what is left out is spaces.
    pub(crate) code: String,
    /// How many lines are not tests; comments and blank lines are read too, so they count.
    pub(crate) lines: usize,
}

/// Reads files, leaving out those that are `#[cfg(test)] mod x;` as a whole.
pub(crate) fn read<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Source> {
    let mut sources = Vec::new();
    let mut tests = Vec::new();
    for (path, text) in files {
        let stripped = strip(text);
        tests.extend(stripped.test_modules.iter().map(|module| match module {
            Elsewhere::Module(name) => format!("{}{name}", home(path)),
            Elsewhere::Path(name) => format!("{}{name}", split(path).0),
        }));
        let lines = text.lines().count() - stripped.test_lines;
        sources.push(Source { path: path.to_owned(), code: stripped.code, lines });
    }
    sources.retain(|source| {
        let is = |module: &String| {
            let rest = source.path.strip_prefix(module.as_str());
            rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        };
        !tests.iter().any(is)
    });
    sources
}

/// Directory, with its slash, and name.
fn split(path: &str) -> (&str, &str) {
    path.rfind('/').map_or(("", path), |at| path.split_at(at + 1))
}

/// The directory, with its slash, where a file's child modules live.
fn home(path: &str) -> String {
    let (dir, name) = split(path);
    match name {
        "mod.rs" | "lib.rs" | "main.rs" => dir.to_owned(),
        _ => format!("{dir}{}/", name.trim_end_matches(".rs")),
    }
}

/// A file larger than this is a question: is it two things? The style says about 400; the rest is
/// room for the one more function that should not force a split on its own.
const MAX_LINES: usize = 450;

/// Files that may be longer, each with its reason.
const LONG_FOR_A_REASON: &[(&str, &str)] = &[];

pub(crate) fn too_long(sources: &[Source]) -> Vec<Problem> {
    let excused = |path: &str| LONG_FOR_A_REASON.iter().any(|(excused, _)| *excused == path);
    let long = sources.iter().filter(|s| s.lines > MAX_LINES && !excused(&s.path));
    long.map(|source| {
        let what = format!(
            "{} lines outside of tests, {MAX_LINES} at most: split it by concern, or add it with a \
             reason to LONG_FOR_A_REASON in tests/tidy/source.rs",
            source.lines
        );
        Problem::new(&source.path, MAX_LINES + 1, what)
    })
    .collect()
}

struct Stripped {
    code: String,
    test_lines: usize,
    test_modules: Vec<Elsewhere>,
}

/// A test module in a file of its own, told by its name or by its path without `.rs`.
enum Elsewhere {
    Module(String),
    Path(String),
}

fn strip(text: &str) -> Stripped {
    let chars: Vec<char> = text.chars().collect();
    let mut code = blank(&chars);
    let mut stripped = Stripped { code: String::new(), test_lines: 0, test_modules: Vec::new() };
    for marker in ["#![cfg(test)]", "#[cfg(test)]", "#[cfg(all(test"] {
        while let Some(start) = find(&code, marker) {
            let whole = marker.starts_with("#!");
            let end = if whole { code.len() } else { end_of_item(&code, start) };
            let item: String = code[start..end].iter().collect();
            let written: String = chars[start..end].iter().collect();
            stripped.test_modules.extend(module_elsewhere(&item, &written));
            stripped.test_lines += item.trim_end().lines().count();
            code[start..end].iter_mut().filter(|c| **c != '\n').for_each(|c| *c = ' ');
        }
    }
    stripped.code = code.into_iter().collect();
    stripped
}

fn find(code: &[char], what: &str) -> Option<usize> {
    let what: Vec<char> = what.chars().collect();
    code.windows(what.len()).position(|window| window == what)
}

/// `mod tests;` names a file, `mod tests { … }` does not. `#[path = "…"]` is a literal, so it stands
/// only in the item as it was written.
fn module_elsewhere(item: &str, written: &str) -> Option<Elsewhere> {
    let name = item.strip_suffix(';')?.rsplit_once("mod ")?.1.trim();
    if let Some((_, path)) = written.split_once("#[path = \"") {
        return Some(Elsewhere::Path(path.split('"').next()?.trim_end_matches(".rs").to_owned()));
    }
    let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_name.then(|| Elsewhere::Module(name.to_owned()))
}

/// Where the item that an attribute at `start` belongs to ends: after its `;`, its closing brace,
/// or before the brace that closes what it stands in.
fn end_of_item(code: &[char], start: usize) -> usize {
    let mut depth = 0_i32;
    for (at, c) in code.iter().enumerate().skip(start) {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => {
                depth -= 1;
                if depth < 0 {
                    return at;
                }
                if depth == 0 && *c == '}' {
                    return at + 1;
                }
            }
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// The text with comments and the contents of literals replaced by spaces.
fn blank(chars: &[char]) -> Vec<char> {
    let mut out = chars.to_vec();
    let mut at = 0;
    while at < chars.len() {
        let end = literal_or_comment(chars, at);
        out[at..end].iter_mut().filter(|c| **c != '\n').for_each(|c| *c = ' ');
        at = end.max(at + 1);
    }
    out
}

/// The end of the comment or literal that begins at `at`, or `at` when none does.
fn literal_or_comment(chars: &[char], at: usize) -> usize {
    let next = |ahead: usize| chars.get(at + ahead).copied().unwrap_or(' ');
    match chars[at] {
        '/' if next(1) == '/' => {
            chars[at..].iter().position(|c| *c == '\n').map_or(chars.len(), |len| at + len)
        }
        '/' if next(1) == '*' => block_comment(chars, at),
        '"' => quoted(chars, at + 1, '"'),
        'r' if !continues_a_word(chars, at) => raw_string(chars, at),
        '\'' if next(1) == '\\' => quoted(chars, at + 1, '\''),
        '\'' if next(2) == '\'' => at + 3,
        _ => at,
    }
}

fn block_comment(chars: &[char], start: usize) -> usize {
    let mut depth = 0;
    let mut at = start;
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

fn quoted(chars: &[char], from: usize, close: char) -> usize {
    let mut at = from;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            c if c == close => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// `r` after a letter is the end of a name, unless that letter is the `b` or `c` of `br"…"`.
fn continues_a_word(chars: &[char], at: usize) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let before = |back: usize| at.checked_sub(back).map_or(' ', |index| chars[index]);
    let prefix = matches!(before(1), 'b' | 'c') && !word(before(2));
    word(before(1)) && !prefix
}

fn raw_string(chars: &[char], at: usize) -> usize {
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    if chars.get(at + 1 + hashes) != Some(&'"') {
        return at;
    }
    let close: String = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    let body = at + 2 + hashes;
    find(&chars[body..], &close).map_or(chars.len(), |len| body + len + close.len())
}

#[test]
fn comments_and_literals_are_not_code() {
    let text =
        "a // tokio\nb /* x /* y */ z */ c\n\"tok\\\"io\" d r#\"e\"f\"# '\"' 'g: '\\'' h br\"i\"";
    let chars: Vec<char> = text.chars().collect();
    let code: String = blank(&chars).into_iter().collect();
    let words: Vec<_> = code.split_whitespace().collect();
    assert_eq!(words, ["a", "b", "c", "d", "'g:", "h", "b"]);
    assert_eq!(code.lines().count(), text.lines().count());
}

#[test]
fn test_modules_are_not_code_and_do_not_count() {
    let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { { } }\n}\nfn c() {}\n";
    let stripped = strip(text);
    assert!(stripped.code.contains("fn c()") && !stripped.code.contains("fn b()"));
    assert_eq!(read([("a.rs", text)].into_iter())[0].lines, 2);
}

#[test]
fn a_test_module_in_a_file_of_its_own_is_left_out() {
    let files = [
        ("rpc/mod.rs", "#[cfg(test)]\nmod checks;"),
        ("rpc/checks.rs", "use tokio;"),
        ("rpc/id.rs", "#[cfg(test)]\n#[path = \"id_tests.rs\"]\nmod tests;\nmod more;"),
        ("rpc/id_tests.rs", "use tokio;"),
        ("rpc/id/more.rs", ""),
    ];
    let paths: Vec<_> = read(files.into_iter()).into_iter().map(|source| source.path).collect();
    assert_eq!(paths, ["rpc/mod.rs", "rpc/id.rs", "rpc/id/more.rs"]);
}

#[test]
fn a_file_that_is_too_long_is_named() {
    let long = "x\n".repeat(MAX_LINES + 1);
    let problems = too_long(&read([("a.rs", long.as_str()), ("b.rs", "x\n")].into_iter()));
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].file, "a.rs");
}
