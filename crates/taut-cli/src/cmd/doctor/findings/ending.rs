//! How a server ends, and what it leaves.

use taut::process::ShutdownStep;

use super::{Finding, Level};
use crate::cmd::doctor::facts::Facts;

pub(super) fn all(facts: &Facts) -> Vec<Finding> {
    let all = [on_eof(facts), on_term(facts), left(facts), code(facts)];
    all.into_iter().flatten().collect()
}

fn on_eof(facts: &Facts) -> Option<Finding> {
    let (ended, _) = facts.ended.as_ref()?;
    if ended.step == ShutdownStep::Unasked && facts.error().is_none() {
        let what = format!("it ends by itself: it {} before its stdin was closed", ended.exit);
        let hurts = "every host: the tools are there, and are gone when they are called";
        let change = "serve until stdin ends, however long nothing comes";
        return Some(Finding::new(Level::Hurts, what, hurts, change).bridged());
    }
    if ended.step <= ShutdownStep::Eof {
        return None;
    }
    let change = "end when stdin ends: leave the loop when a read returns nothing";
    if cfg!(windows) {
        let what = "it does not end when its stdin is closed: it has to be terminated";
        let hurts = "every host on Windows, where nothing else asks a server to end: those without a \
                     job object leave an orphan each time";
        return Some(Finding::new(Level::Hurts, what, hurts, change).bridged());
    }
    if ended.step == ShutdownStep::Term {
        let what = "it does not end when its stdin is closed";
        let hurts = "qwen and continue, which do nothing else and leave an orphan each time; everywhere \
                     else the end takes 2 s longer, and rmcp kills it";
        return Some(Finding::new(Level::Hurts, what, hurts, change).bridged());
    }
    let what = "it ends neither when its stdin is closed nor on SIGTERM: it has to be killed";
    let hurts = "gemini, qwen, continue and hermes leave an orphan each time; everywhere else the end takes \
                 4 s longer";
    Some(Finding::new(Level::Hurts, what, hurts, change).bridged())
}

fn on_term(facts: &Facts) -> Option<Finding> {
    let killed = facts.ended.as_ref().is_some_and(|(ended, _)| ended.step >= ShutdownStep::Kill);
    (facts.on_term == Some(None) && !killed).then(|| {
        Finding::new(
            Level::Note,
            "it does not end on SIGTERM within 2 s",
            "gemini and supergateway, which send only that, wait for the end of stdin instead",
            "leave SIGTERM alone, or end when it comes",
        )
        .bridged()
    })
}

fn left(facts: &Facts) -> Option<Finding> {
    if facts.left.is_empty() {
        return None;
    }
    let names: Vec<_> = facts.left.iter().map(ToString::to_string).collect();
    let escaped = facts.left.iter().any(|process| process.escaped);
    let what = format!("it leaves processes behind when it ends: {}", names.join(", "));
    let change = "end its own children before it ends, or give them a pipe whose end they heed";
    let hurts = match escaped {
        true => "every host: what has left the server's session is found by none of them",
        false => {
            "every host that ends only the process that it started, which is most: they pile up"
        }
    };
    Some(Finding::new(Level::Hurts, what, hurts, change).bridged())
}

fn code(facts: &Facts) -> Option<Finding> {
    let (ended, _) = facts.ended.as_ref()?;
    let odd = ended.step == ShutdownStep::Eof && !ended.exit.success();
    odd.then(|| {
        Finding::new(
            Level::Note,
            format!("it {} when its stdin is closed", ended.exit),
            "nobody, but it looks like a crash in logs",
            "exit with 0 when stdin ends",
        )
    })
}
