//! What a server does when it is listed and called.

use std::time::Duration;

use taut::Error;
use taut_check::lint::{Lint, Rule};

use super::{Finding, Level};
use crate::cmd::doctor::facts::{Facts, headline};
use crate::output::{size, time};
use crate::strict::{Objection, Who};

/// More than this instead of an answer is a flood: far above what logs and progress take.
const FLOOD: u64 = 4 << 20;

pub(super) fn all(facts: &Facts) -> Vec<Finding> {
    let refused = facts.objections.iter().map(refused);
    using(facts).into_iter().chain(refused).chain(undeclared(facts)).chain(schemas(facts)).collect()
}

/// How many places a finding about schemas names: enough to find the rest.
const PLACES: usize = 3;

/// One finding for each rule that schemas break.
fn schemas(facts: &Facts) -> Vec<Finding> {
    let mut rules: Vec<Rule> = facts.lints.iter().map(|lint| lint.rule).collect();
    // What only makes a tool hard to use is for its author, not for who wonders why it does not work.
    rules.retain(|rule| rule.is_serious() || facts.lints_wanted);
    rules.sort_unstable();
    rules.dedup();
    let finding = |rule: Rule| {
        let all: Vec<&Lint> = facts.lints.iter().filter(|lint| lint.rule == rule).collect();
        let named: Vec<String> = all.iter().take(PLACES).map(ToString::to_string).collect();
        let more = match all.len().saturating_sub(PLACES) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let what = format!("{}: {}{more}", rule.name(), named.join("; "));
        let level = if rule.is_serious() { Level::Hurts } else { Level::Note };
        Finding::new(level, what, rule.hurts(), rule.change())
    };
    rules.into_iter().map(finding).collect()
}

/// What works here, and not with others.
fn refused(objection: &Objection) -> Finding {
    let level = match objection.who {
        Who::Sdks => Level::Broken,
        Who::TypeScript | Who::Models => Level::Hurts,
    };
    Finding::new(level, objection.what.clone(), objection.hurts, objection.change.clone())
}

fn using(facts: &Facts) -> Option<Finding> {
    let listed = facts.listed.as_ref().and_then(|listed| listed.as_ref().err());
    let called = facts.called.as_ref().and_then(|called| called.as_ref().err());
    let (error, when) = match (listed, called, &facts.after_call) {
        (Some(error), ..) => (error, "after the handshake"),
        (None, Some(error), _) => (error, "in the call"),
        (None, None, Some(error)) => (error, "after the call"),
        (None, None, None) => return None,
    };
    let (what, change) = match error {
        Error::Lost(lost) => match (lost.exit, lost.running) {
            (Some(exit), _) => (
                format!("it died {when}: it {exit}"),
                match facts.stderr.is_empty() {
                    true => {
                        "it wrote nothing on stderr: start it in a shell, and let it say why it ends"
                    }
                    false => "read the end of its stderr below",
                },
            ),
            (None, Some(_)) => {
                let pipe = if facts.seen.stdin_closed { "stdin" } else { "stdout" };
                (
                    format!("it closed its {pipe} {when} and lives on"),
                    "keep stdin and stdout open until stdin ends",
                )
            }
            (None, None) => (format!("it went away {when}"), "see what it says with -v"),
        },
        Error::TimedOut { method, after, .. } => mute(facts, when, method, *after),
        Error::Violation { method, what } => (
            format!("it breaks the protocol in its answer to {method}: {what}"),
            "see the schema of this revision",
        ),
        Error::Refused { method, error } => (
            format!("it refuses {method}: {error}"),
            "serve what the capabilities promise, or do not declare it",
        ),
        other => (headline(other), "see what it says with -v"),
    };
    if let Some(list) = listed.and_then(besides_tools) {
        let hurts =
            format!("hosts that show {list}: they get none, or an error; tools are not affected");
        return Some(Finding::new(Level::Hurts, what, hurts, change));
    }
    let hurts = match (listed, error) {
        (Some(_), _) => "every host: it connects, and no tools appear",
        (None, Error::Lost(_)) => "every host that calls this tool: it loses the server with it",
        (None, _) => "every host that calls this tool: it waits, and gives up",
    };
    let found = Finding::new(Level::Broken, what, hurts, change);
    // One that dies in a call is started again for the next.
    let started_again = listed.is_none() && matches!(error, Error::Lost(_));
    Some(if started_again { found.bridged() } else { found })
}

/// What is not listed, if it is something that a host can do without: the tools were listed before it.
fn besides_tools(error: &Error) -> Option<&'static str> {
    let (Error::Violation { method, .. } | Error::Refused { method, .. }) = error else {
        return None;
    };
    Some(match &**method {
        "resources/list" => "resources",
        "resources/templates/list" => "templates of resources",
        "prompts/list" => "prompts",
        _ => return None,
    })
}

/// Why no answer came, by what came instead.
fn mute(facts: &Facts, when: &str, method: &str, after: Duration) -> (String, &'static str) {
    let waited = format!("{method} was not answered within {}", time(after));
    match &facts.mute {
        Some(mute) if mute.stopped => (
            format!("its process is stopped {when}, as if by SIGSTOP: {waited}"),
            "find out what stops it: a program that reads from the terminal, or prompts on it, is \
             stopped by the system",
        ),
        Some(mute) if mute.bytes > FLOOD => {
            let came = size(usize::try_from(mute.bytes).unwrap_or(usize::MAX));
            (
                format!("it writes without end {when}: {came} came, and no answer among it"),
                "end each message with a newline, and stop",
            )
        }
        Some(mute) if mute.reports > 0 => (
            format!("it reports progress for ever {when} ({} times): {waited}", mute.reports),
            "end the work, and heed notifications/cancelled: the official SDKs wait 60 s, whatever is \
             reported",
        ),
        _ if facts.seen.first_unknown.is_some() => {
            let id = facts.seen.first_unknown.as_deref().unwrap_or_default();
            (
                format!("it answers {when} with an id that nobody asked with, {id}: {waited}"),
                "answer with the id of the request, and with its JSON type: 1 is not \"1\"",
            )
        }
        _ => (
            format!("it stops answering {when}: {waited}"),
            "answer every request; do not block the loop that reads stdin",
        ),
    }
}

fn undeclared(facts: &Facts) -> Option<Finding> {
    let method = facts.refused.first()?;
    Some(Finding::new(
        Level::Hurts,
        format!("it asks the host for {method}, although the host did not say that it can do that"),
        "cline, droid, continue, openclaw, langchain, crewai and all that runs on an SDK as it comes: they \
         declare no capabilities, and answer with an error or not at all",
        "look at the capabilities in initialize before asking, and do without what is not there",
    ))
}
