//! Every MUST and SHOULD is checked, on each side that has to keep it, or docs/check.md says why it cannot be.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use taut_check::{Level, Side};

const RULES: &str = include_str!("../rules.txt");
const PAGE: &str = include_str!("../../../docs/check.md");

/// The rules that a side has to keep, by their strength in the ledger.
fn binding(side: &str) -> BTreeSet<String> {
    let rules = RULES.lines().filter(|line| !line.starts_with('#'));
    let parts = rules.map(|line| line.split(' ').collect::<Vec<_>>());
    let strong = |words: &Vec<&str>| words[2].starts_with("MUST") || words[2].starts_with("SHOULD");
    let obeys = |words: &Vec<&str>| words[1] == side || words[1] == "both";
    parts.filter(strong).filter(obeys).map(|words| words[0].to_owned()).collect()
}

/// The rules that a check of a side proves.
fn checked(side: Side) -> BTreeSet<String> {
    let checks = taut_check::checks().into_iter().filter(|check| check.side == side);
    checks.flat_map(|check| check.rules).map(|rule| (*rule).to_owned()).collect()
}

/// The rules that the page lists under a heading, with ranges such as `TSK-03 to TSK-07`.
fn listed(heading: &str) -> BTreeSet<String> {
    let section = PAGE.split(&format!("### {heading}\n")).nth(1).unwrap();
    let section = section.split("\n#").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let mut rules = BTreeSet::new();
    for part in rows.flat_map(|row| row.split(", ")) {
        let (first, last) = part.split_once(" to ").unwrap_or((part, part));
        let (Some((area, from)), Some((_, to))) = (first.split_once('-'), last.split_once('-'))
        else {
            continue;
        };
        let (Ok(from), Ok(to)) = (from.parse::<u32>(), to.parse::<u32>()) else { continue };
        rules.extend((from..=to).map(|number| format!("{area}-{number:02}")));
    }
    rules
}

#[test]
fn every_binding_rule_is_checked_or_the_page_says_why_not() {
    assert_eq!(RULES.lines().filter(|line| !line.starts_with('#')).count(), 394);
    for (side, name, heading) in
        [(Side::Server, "server", "Servers"), (Side::Client, "client", "Clients")]
    {
        let (checked, listed) = (checked(side), listed(heading));
        let missing: Vec<_> =
            binding(name).into_iter().filter(|rule| !checked.contains(rule)).collect();
        let unexplained: Vec<_> = missing.iter().filter(|rule| !listed.contains(*rule)).collect();
        assert!(unexplained.is_empty(), "{name}: neither checked nor listed: {unexplained:?}");
        let untrue: Vec<_> = listed.iter().filter(|rule| !missing.contains(rule)).collect();
        assert!(untrue.is_empty(), "{name}: listed, and checked or not binding: {untrue:?}");
    }
}

#[test]
fn a_check_is_as_strong_as_the_strongest_of_its_rules_at_most() {
    let strength = |rule: &str| {
        let line = RULES.lines().find(|line| line.starts_with(rule)).unwrap();
        let word = line.split(' ').nth(2).unwrap();
        match word {
            _ if word.starts_with("MUST") => Level::Must,
            _ if word.starts_with("SHOULD") => Level::Should,
            _ => Level::Advice,
        }
    };
    for check in taut_check::checks() {
        let strongest = check.rules.iter().map(|rule| strength(rule)).min().unwrap();
        assert!(
            check.level >= strongest,
            "{} is {:?}, its rules are {strongest:?}",
            check.id,
            check.level
        );
    }
}
