//! What a server writes besides answers, and how it writes them.

use super::opening::advice;
use super::{Finding, Level};
use crate::cmd::doctor::facts::Facts;
use crate::output::size;

/// What a pipe holds on Linux: more than this, unread, and a server stands still (E1).
const PIPE: usize = 64 << 10;

pub(super) fn all(facts: &Facts) -> Vec<Finding> {
    let all = [
        backlog(facts),
        junk(facts),
        byte_order_mark(facts),
        answers(facts),
        noise(facts),
        carriage_return(facts),
        closed_stderr(facts),
    ];
    all.into_iter().flatten().collect()
}

fn junk(facts: &Facts) -> Option<Finding> {
    facts.opened.as_ref()?.as_ref().ok()?;
    let junk = facts.junk.as_ref().or(facts.seen.first_invalid.as_ref())?;
    let count = facts.seen.invalid_messages.max(1);
    let lines = match count {
        1 => "something on stdout that is no message".to_owned(),
        count => format!("{count} lines on stdout that are no messages"),
    };
    let what = format!(
        "it prints {lines}, first at byte {}: \"{}\" ({})",
        junk.offset, junk.excerpt, junk.fault
    );
    let hurts = "hosts that take the first bad line for the end, or show an error for each; all others \
                 are lucky as long as no line is torn";
    Some(Finding::new(Level::Hurts, what, hurts, advice(junk.fault)).bridged())
}

fn byte_order_mark(facts: &Facts) -> Option<Finding> {
    facts.seen.byte_order_mark.then(|| {
        Finding::new(
            Level::Hurts,
            "it writes a byte-order mark before its messages",
            "hosts on the official SDKs: for them the first message is no JSON",
            "write UTF-8 without a byte-order mark (on Windows: new UTF8Encoding(false))",
        )
        .bridged()
    })
}

fn answers(facts: &Facts) -> Option<Finding> {
    let seen = &facts.seen;
    // The probe may have been given up, and answered after all.
    let twice = seen.late_answers.saturating_sub(u64::from(facts.probe_given_up()));
    let (what, change) = if seen.unknown_answers > 0 {
        let id = seen.first_unknown.as_deref().unwrap_or_default();
        (
            format!(
                "it answers what nobody asked ({} times), first with the id {id}",
                seen.unknown_answers
            ),
            "answer with the id of the request, and with its JSON type: 1 is not \"1\"",
        )
    } else if twice > 0 && facts.called.is_none() {
        (format!("it answers twice ({twice} times)"), "answer each request once")
    } else {
        return None;
    };
    let hurts =
        "hosts that take an unknown id for an error, and end the connection or show it to the user";
    Some(Finding::new(Level::Hurts, what, hurts, change).bridged())
}

fn noise(facts: &Facts) -> Option<Finding> {
    if facts.stderr_bytes <= PIPE {
        return None;
    }
    // One that was not probed was quiet.
    let probed = facts.second.is_some() && facts.stderr_unprobed <= PIPE;
    let when = if probed { " when it is asked server/discover" } else { "" };
    let endless = if facts.stderr_endless { ", in lines that do not end" } else { "" };
    let change = match (probed, facts.stderr_endless) {
        (true, _) => "log a method that is not known in one line, if at all",
        (_, true) => "draw progress bars only if stderr is a terminal; log less by default",
        _ => "log less by default",
    };
    Some(Finding::new(
        Level::Hurts,
        format!("it floods stderr{when}: {} in this short life{endless}", size(facts.stderr_bytes)),
        "hosts that do not read stderr all the time: the pipe is full after 64 KiB, and the server \
         stands still",
        change,
    ).bridged())
}

fn backlog(facts: &Facts) -> Option<Finding> {
    let bytes = usize::try_from(facts.backlog).unwrap_or(usize::MAX);
    (bytes > PIPE).then(|| {
        Finding::new(
            Level::Hurts,
            format!("it goes on writing after its stdin is closed: {} came", size(bytes)),
            "hosts that stop reading when they close: the pipe is full after 64 KiB, and the server hangs \
             until it is killed",
            "write nothing more once stdin has ended but the answers that are still owed",
        )
        .bridged()
    })
}

fn carriage_return(facts: &Facts) -> Option<Finding> {
    facts.seen.carriage_return.then(|| {
        Finding::new(
            Level::Note,
            "it ends its lines with CRLF (\\r\\n)",
            "no host that reads JSON, where a carriage return is a blank; one that cuts or compares lines \
             itself stumbles",
            "end messages with \\n alone: on Windows write stdout in binary, not in text mode (Python: \
             sys.stdout.reconfigure(newline=\"\\n\"))",
        )
        .bridged()
    })
}

fn closed_stderr(facts: &Facts) -> Option<Finding> {
    facts.stderr_closed.then(|| {
        Finding::new(
            Level::Note,
            "it closes its stderr while it runs",
            "whoever has to find out why it fails: hosts keep stderr in their logs, and nothing that comes \
             later is there; a host may also take it for the end of the server",
            "leave stderr open, as a program and not as a daemon does",
        )
    })
}
