//! Links between the documents: each leads to a file that is there, and to a heading that it has.
//!
//! Addresses of other machines are not looked at: the tests need no network.

use crate::{File, Problem};

/// Every link of every page that leads nowhere.
pub(crate) fn broken(tree: &[File], exists: impl Fn(&str) -> bool) -> Vec<Problem> {
    let mut problems = Vec::new();
    for page in tree.iter().filter(|file| file.path.ends_with(".md")) {
        for (number, target) in links(&page.text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path = match path {
                "" => page.path.clone(),
                path => joined(&page.path, path),
            };
            if !exists(&path) {
                let what = format!("the link {target} leads to {path}, which is not there");
                problems.push(Problem::new(&page.path, number, what));
                continue;
            }
            let other = tree.iter().find(|file| file.path == path && path.ends_with(".md"));
            let has = other.is_none_or(|other| anchors(&other.text).iter().any(|a| a == anchor));
            if !anchor.is_empty() && !has {
                let what = format!("{path} has no heading #{anchor}");
                problems.push(Problem::new(&page.path, number, what));
            }
        }
    }
    problems
}

/// The lines of a page outside of its blocks of code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<&str> = None;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let marks = line.trim_start();
        let marks = &marks[..marks.len() - marks.trim_start_matches('`').len()];
        match fence {
            Some(open) if marks.len() >= open.len() => fence = None,
            Some(_) => {}
            None if marks.len() >= 3 => fence = Some(marks),
            None => return Some((at + 1, line)),
        }
        None
    })
}

/// `[words](target)` and `[word]: target`, outside of code.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        // Every second part stands between marks of code, but a link may have code in its words.
        let mut rest = line;
        while let Some(at) = rest.find("](") {
            let inside = rest[..at].matches('`').count() % 2 == 1;
            let target = rest[at + 2..].split([')', ' ']).next().unwrap_or_default();
            if !inside {
                found.push((number, target.to_owned()));
            }
            rest = &rest[at + 2..];
        }
        if let Some((name, target)) = line.split_once("]: ")
            && name.starts_with('[')
            && !name.contains(' ')
        {
            found.push((number, target.trim().to_owned()));
        }
    }
    found
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for (_, line) in prose(text) {
        for part in line.split("<a id=\"").skip(1).chain(line.split("<a name=\"").skip(1)) {
            all.extend(part.split('"').next().map(str::to_owned));
        }
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let mut words = String::new();
        for c in title.trim().chars().flat_map(char::to_lowercase) {
            match c {
                ' ' => words.push('-'),
                c if c.is_alphanumeric() || c == '-' || c == '_' => words.push(c),
                _ => {}
            }
        }
        let same = all.iter().filter(|known| **known == words).count();
        all.push(if same == 0 { words } else { format!("{words}-{same}") });
    }
    all
}

/// A path beside a page, without `.` and `..`.
fn joined(page: &str, path: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(one: &str) -> Vec<File> {
        let page = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        vec![page("docs/one.md", one), page("two.md", "# Two words, `code`\n## Same\n## Same\n")]
    }

    fn wrong(one: &str) -> usize {
        let tree = pages(one);
        broken(&tree, |path| path == "docs" || tree.iter().any(|file| file.path == path)).len()
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        for good in [
            "[a](../two.md) [b](../two.md#two-words-code) [c](../two.md#same-1) [d](https://x/y)",
            "# Here\n[a](#here) [b](.)",
            "`[a](nothing.md)`\n```\n[a](nothing.md)\n```\n",
            "[`code`](../two.md)",
            "[one]: ../two.md",
        ] {
            assert_eq!(wrong(good), 0, "{good}");
        }
        for bad in [
            "[a](two.md)",
            "[a](../two.md#other)",
            "[a](#here)",
            "[a](../two.md#same-2)",
            "[one]: nothing.md",
            "a [`code`](nothing.md)",
        ] {
            assert_eq!(wrong(bad), 1, "{bad}");
        }
    }
}
