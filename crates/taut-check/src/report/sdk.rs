//! Whose fault a failure is: the SDK's, where its own example fails in the same way.
//!
//! Reads `sdks.txt`, which comes from docs/conformance.md. Must not know what a check does.

use serde_json::Value;

const SDKS: &str = include_str!("../../sdks.txt");

/// How much of the words of a failure is compared, in characters: the page cuts long ones.
const COMPARED: usize = 48;

/// An SDK whose own example was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sdk {
    /// Its package, with the version that was checked, such as `mcp 2.3.0`.
    pub package: &'static str,
    /// Its name, such as `Python SDK 2.x`.
    pub name: &'static str,
    modern: bool,
    marks: Vec<&'static str>,
    fails: Vec<(&'static str, String)>,
}

impl Sdk {
    /// Whether its own example fails this check in this way.
    pub(crate) fn fails(&self, id: &str, words: &str) -> bool {
        let words = alike(words);
        self.fails.iter().any(|(known, how)| *known == id && *how == words)
    }
}

/// All SDKs of the list.
pub(crate) fn all() -> Vec<Sdk> {
    let mut all: Vec<Sdk> = Vec::new();
    for line in SDKS.lines().filter(|line| !line.starts_with('#')) {
        if let Some(head) = line.strip_prefix("sdk ") {
            let mut parts = head.split(" | ");
            let mut next = || parts.next().unwrap_or_default();
            let (package, name, modern) = (next(), next(), next() == "both");
            all.push(Sdk { package, name, modern, marks: Vec::new(), fails: Vec::new() });
        }
        let Some(sdk) = all.last_mut() else { continue };
        match (line.strip_prefix("mark "), line.split_once(" | ")) {
            (Some(mark), _) => sdk.marks.push(mark),
            (None, Some((id, how))) if !line.starts_with("sdk ") => {
                sdk.fails.push((id, alike(how)))
            }
            _ => {}
        }
    }
    all
}

/// The SDK that the messages of a server's errors give away; none if they fit none, or more than one.
pub(crate) fn of<'a>(errors: impl Iterator<Item = &'a Value>, modern: bool) -> Option<Sdk> {
    let mut known = all();
    known.retain(|sdk| sdk.modern == modern);
    let mut fits = vec![false; known.len()];
    for message in errors.filter_map(|error| error["message"].as_str()) {
        for (sdk, fits) in known.iter().zip(&mut fits) {
            *fits |= sdk.marks.iter().any(|mark| match mark.strip_prefix('=') {
                Some(whole) => message == whole,
                None => message.contains(mark),
            });
        }
    }
    let mut found = known.into_iter().zip(fits).filter(|(_, fits)| *fits).map(|(sdk, _)| sdk);
    found.next().filter(|_| found.next().is_none())
}

/// The words of a failure without what differs from server to server: the message that came, and the numbers of requests.
pub(crate) fn alike(words: &str) -> String {
    let head = words.split('{').next().unwrap_or_default().trim_end();
    let mut text = String::new();
    let mut digits = String::new();
    for c in head.chars().chain([' ']) {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        match digits.len() >= 3 && !text.ends_with('-') {
            true => text.push('N'),
            false => text.push_str(&digits),
        }
        digits.clear();
        text.push(c);
    }
    text.trim_end().chars().take(COMPARED).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_list_has_what_the_page_of_conformance_shows() {
        let page = include_str!("../../../../docs/conformance.md");
        for sdk in all() {
            assert!(page.contains(&format!(" | {} | ", sdk.package)), "{}", sdk.package);
            assert!(!sdk.marks.is_empty() && sdk.fails.len() > 2, "{}", sdk.name);
            let heading = format!("\n{}: {}, as a server", sdk.name, sdk.package);
            let section = page.split(&heading).nth(1).unwrap().split("\n## ").next().unwrap();
            for (id, how) in &sdk.fails {
                let mut rows = section.lines().filter_map(|line| {
                    let mut cells = line.strip_prefix("| ")?.splitn(5, " | ");
                    let name = cells.next()?;
                    Some((name, alike(cells.nth(3)?.trim_end_matches(" |"))))
                });
                let there = rows.any(|(name, seen)| name == *id && seen.starts_with(how.as_str()));
                assert!(there, "{}: {id} | {how}", sdk.name);
            }
        }
    }

    #[test]
    fn an_sdk_is_known_by_its_errors_and_its_failures_by_their_words() {
        let zod = json!({ "code": -32603, "message": "[\n {\n \"code\": \"invalid_type\"" });
        let sdk = of([&zod].into_iter(), false).unwrap();
        assert_eq!(sdk.name, "TypeScript SDK 1.x");
        assert!(sdk.fails("rpc-batch", "no array came back"));
        assert!(!sdk.fails("rpc-batch", "the server ended"));
        assert!(sdk.fails("rpc-big-id", "request 9007199254740993 was not answered"));
        assert_eq!(of([&zod].into_iter(), true).unwrap().name, "TypeScript SDK 2.x");
        assert_eq!(of([&json!({ "message": "no" })].into_iter(), true), None);
    }
}
