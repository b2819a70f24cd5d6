//! The sentences of the specification: what each check rests on, and how strong that is.
//!
//! Reads `texts.txt`. Must not know what a check does.

use crate::check::Level;

const TEXTS: &str = include_str!("../texts.txt");

/// A sentence of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    /// The word of the sentence.
    pub level: Level,
    /// Its page, `schema` with the names of types, or the name of another document.
    pub page: &'static str,
    /// The sentence: in quotation marks where it is quoted, else in our words.
    pub sentence: &'static str,
}

/// The sentence that the check with this name rests on.
pub(crate) fn of(id: &str) -> Option<Text> {
    let mut text = None;
    for line in TEXTS.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix("  ") {
            Some(ids) if ids.split(' ').any(|one| one == id) => return text,
            Some(_) => {}
            None => text = parse(line).or(text),
        }
    }
    None
}

fn parse(line: &'static str) -> Option<Text> {
    let (level, rest) = line.split_once(" | ")?;
    let (page, sentence) = rest.split_once(" | ")?;
    let level = match level {
        "MUST" => Level::Must,
        "SHOULD" => Level::Should,
        _ => return None,
    };
    Some(Text { level, page, sentence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ours::Revision;

    #[test]
    fn every_must_has_a_sentence_with_that_word_or_a_type_of_the_schema() {
        for check in crate::checks() {
            let text = of(check.id);
            assert_eq!(text.map_or(Level::Advice, |it| it.level), check.level, "{}", check.id);
            let Some(text) = text.filter(|it| it.level == Level::Must) else { continue };
            match text.page.strip_prefix("schema ") {
                Some(names) => names.split(' ').for_each(known),
                None => assert!(text.sentence.contains("MUST"), "{}: {}", check.id, text.sentence),
            }
        }
    }

    #[test]
    fn every_sentence_stands_once_and_belongs_to_a_check() {
        let checks = crate::checks();
        let mut ids: Vec<&str> = TEXTS
            .lines()
            .filter_map(|line| line.strip_prefix("  "))
            .flat_map(|ids| ids.split(' '))
            .collect();
        for id in &ids {
            assert!(checks.iter().any(|check| check.id == *id), "{id} is no check");
        }
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "one stands twice");
        let heads = TEXTS.lines().filter(|line| !line.starts_with(['#', ' ']) && !line.is_empty());
        heads.for_each(|line| assert!(parse(line).is_some(), "{line}"));
    }

    /// What the specification never makes a MUST, and every second server does otherwise.
    #[test]
    fn what_the_text_does_not_demand_is_no_must() {
        let none = [
            "tools-unknown",
            "init-params",
            "page-cursor-type",
            "tools-request",
            "resources-request",
            "prompts-request",
            "prompts-argument-type",
            "complete-reference",
            "complete-request",
            "rpc-params",
            "listen-filter",
        ];
        for id in none {
            assert_ne!(crate::find(id).unwrap().level, Level::Must, "{id}");
        }
        let old = crate::find("init-vocabulary").unwrap();
        assert_eq!(old.level_in(Revision::V2025_03_26), Level::Should);
        assert_eq!(old.level_in(Revision::V2025_06_18), Level::Must);
    }

    fn known(name: &str) {
        let has = |revision| crate::schema::defines(revision, name);
        assert!(Revision::ALL.into_iter().any(has), "the schemas have no {name}");
    }
}
