//! What is wrong with a server, whom it hurts, and what to change.
//!
//! Pure: facts go in, findings come out, the worst first. What hosts do was seen with about thirty of
//! them in November 2026; docs/does-not-connect.md says which.

use std::time::Duration;

use taut::wire::Framing;
use taut::{ConnectReason, Error, Rung, SpawnError};

use super::exam::{Facts, headline};
use crate::output::{size, time};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// No host can use it.
    Broken,
    /// Some hosts cannot, or not well.
    Hurts,
    /// Nobody is hurt.
    Note,
}

impl Level {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::Hurts => "risky",
            Self::Note => "note",
        }
    }
}

/// Something that is wrong.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) level: Level,
    pub(super) what: String,
    pub(super) hurts: String,
    pub(super) change: String,
}

impl Finding {
    fn new(
        level: Level,
        what: impl Into<String>,
        hurts: impl Into<String>,
        change: impl Into<String>,
    ) -> Self {
        Self { level, what: what.into(), hurts: hurts.into(), change: change.into() }
    }
}

/// How long hosts wait for the answer to `initialize`.
const PATIENCE: [(u64, &str); 4] =
    [(5, "gemini"), (27, "claude"), (30, "opencode"), (60, "copilot")];

/// What codex exec has no patience for, and a person notices.
const SOON: Duration = Duration::from_secs(1);

/// What a pipe holds on Linux: more than this on stderr, unread, and a server stands still (E1).
const PIPE: usize = 64 << 10;

const EVERY_HOST: &str = "every host: none of them gets a connection";

/// All that is wrong, the worst first.
pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let mut found: Vec<Finding> = [
        environment(facts),
        opening(facts),
        framing(facts),
        using(facts),
        exits_on_probe(facts),
        swallows_probe(facts),
        junk(facts),
        slow(facts),
        byte_order_mark(facts),
        answers(facts),
        on_eof(facts),
        on_term(facts),
        left(facts),
        code(facts),
        noise(facts),
    ]
    .into_iter()
    .flatten()
    .collect();
    found.sort_by_key(|finding| finding.level);
    found
}

fn environment(facts: &Facts) -> Option<Finding> {
    let names = facts.full_environment.as_ref()?;
    let (what, change) = if names.is_empty() {
        ("it starts only with your whole environment".to_owned(), "find out which variable it needs (it says nothing of it on stderr) and set that in the host's configuration, under \"env\"; here: --env KEY=VALUE".to_owned())
    } else {
        let all = names.join(", ");
        (
            format!("it needs {all} in its environment"),
            format!(
                "set {all} in the host's configuration, under \"env\"; here: --env {}=…",
                names[0]
            ),
        )
    };
    let hurts = "codex, openclaw, vibe, the inspector, and all that is built on the TypeScript or Python \
                 SDK: they pass on HOME, PATH and little else";
    Some(Finding::new(Level::Broken, what, hurts, change))
}

fn opening(facts: &Facts) -> Option<Finding> {
    let error = facts.opened.as_ref()?.as_ref().err()?;
    if facts.full_environment.is_some() {
        // Said already, with the cause.
        return None;
    }
    let (what, change) = match error {
        Error::Spawn(error) => (error.to_string(), spawn_change(error)),
        Error::Connect(error) => reason(&error.reason, facts),
        other => (headline(other), "see what it says with -v"),
    };
    Some(Finding::new(Level::Broken, what, EVERY_HOST, change))
}

fn spawn_change(error: &SpawnError) -> &'static str {
    match error {
        SpawnError::NotFound { .. } => {
            "install it, or give its full path in the host's configuration: a host started from a \
             desktop does not have your shell's PATH"
        }
        SpawnError::NotExecutable { .. } => "chmod +x, or start it with its interpreter",
        SpawnError::BadInterpreter { .. } => "correct the first line of the script",
        SpawnError::MissingDirectory { .. } => "create the directory, or correct --cwd",
        _ => "start it from a shell, and see what that says",
    }
}

fn reason(reason: &ConnectReason, facts: &Facts) -> (String, &'static str) {
    let when = if facts.first_output.is_some() { "" } else { " without a word on stdout" };
    match reason {
        ConnectReason::Exited(exit) if exit.signal.is_some() => (
            format!("it crashed at the start: it {exit}{when}"),
            "its last words on stderr are below; run it under a debugger",
        ),
        ConnectReason::Exited(exit) if exit.success() => (
            format!("it ended at once: it {exit}{when}, as if it had nothing to do"),
            "serve until stdin ends; check that the arguments start the server and not its help",
        ),
        ConnectReason::Exited(exit) => (
            format!("it ended at the start: it {exit}{when}"),
            "its last words on stderr are below; they say what it misses",
        ),
        ConnectReason::Closed => (
            "it closed its stdout and lives on".to_owned(),
            "keep stdout open; a server that goes into the background cannot be used over stdio",
        ),
        ConnectReason::Silent { after, .. } => (
            format!("it says nothing: initialize was not answered within {}", time(*after)),
            "check that it serves stdio (many take a switch such as --stdio), reads line by line, and \
             flushes stdout after each message",
        ),
        ConnectReason::NotJson { first, lines, .. } => (
            format!(
                "it prints text on stdout where JSON should be ({}), first at byte {}: {first:?}",
                if *lines == 1 { "one line".to_owned() } else { format!("{lines} lines") },
                facts.junk.as_ref().map_or(0, |junk| junk.offset),
            ),
            "check that it serves stdio and not HTTP; print logs and banners to stderr",
        ),
        ConnectReason::NoAnswer { after } => (
            format!("it talks, but does not answer initialize (waited {})", time(*after)),
            "answer with the id of the request, of the same JSON type, on one line",
        ),
        ConnectReason::Echo => (
            "it sends back what it is sent: it is an echo, not a server".to_owned(),
            "check the command: this is what cat, or a terminal in between, does",
        ),
        ConnectReason::Refused(error) => (
            format!("it refuses to shake hands: {error}"),
            "answer initialize with a version that it speaks, never with an error",
        ),
        ConnectReason::Malformed(what) => (
            format!("its answer to the handshake cannot be read: {what}"),
            "answer with protocolVersion, capabilities and serverInfo",
        ),
        ConnectReason::Version(version) => (
            format!(
                "it wants to speak version {version:?}, which does not exist or was not asked for"
            ),
            "answer with the version that was asked for, or the newest of its own that exists",
        ),
        ConnectReason::NoCommonVersion(versions) => (
            format!("it speaks only {}, which nobody here does", versions.join(", ")),
            "support 2025-11-25, which every host speaks",
        ),
        _ => ("no connection came of it".to_owned(), "see what it says with -v"),
    }
}

fn framing(facts: &Facts) -> Option<Finding> {
    let opened = facts.opened.as_ref()?.as_ref().ok()?;
    let hurts = "every host: all of them speak one line per message, and read nothing else";
    let change = "read and write one JSON message per line; Content-Length headers belong to language servers";
    if facts.restarts.contains(&Framing::Headers) {
        let what = "it understands only messages with Content-Length headers";
        return Some(Finding::new(Level::Broken, what, hurts, change));
    }
    let what = "it answers lines with Content-Length headers";
    (opened.framing == Framing::Headers).then(|| Finding::new(Level::Broken, what, hurts, change))
}

/// Listing and calling.
fn using(facts: &Facts) -> Option<Finding> {
    let listed = facts.listed.as_ref().and_then(|listed| listed.as_ref().err());
    let called = facts.called.as_ref().and_then(|called| called.as_ref().err());
    let (error, when) = match (listed, called) {
        (Some(error), _) => (error, "after the handshake"),
        (None, Some(error)) => (error, "in the call"),
        (None, None) => return None,
    };
    let (what, change) = match error {
        Error::Lost(lost) => match (lost.exit, lost.running) {
            (Some(exit), _) => {
                (format!("it died {when}: it {exit}"), "its last words on stderr are below")
            }
            (None, Some(_)) => (
                format!("it closed its stdin or stdout {when} and lives on"),
                "keep both open until stdin ends",
            ),
            (None, None) => (format!("it went away {when}"), "see what it says with -v"),
        },
        Error::TimedOut { method, after, ceiling: false } => (
            format!("it stops answering {when}: {method} was not answered within {}", time(*after)),
            "answer every request; do not block the loop that reads stdin",
        ),
        Error::TimedOut { method, after, .. } => (
            format!("{method} reports progress and never ends (waited {})", time(*after)),
            "end the work, and heed notifications/cancelled",
        ),
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
    let hurts = if listed.is_some() {
        "every host: it connects, and no tools appear"
    } else {
        "whoever calls this tool"
    };
    Some(Finding::new(Level::Broken, what, hurts, change))
}

fn exits_on_probe(facts: &Facts) -> Option<Finding> {
    // One that never works has worse to say.
    let works = facts.opened.as_ref().is_some_and(Result::is_ok);
    (works && facts.restarts.contains(&Framing::Lines)).then(|| {
        Finding::new(
            Level::Hurts,
            "it exits when it is asked server/discover before initialize",
            "copilot, rmcp and everything on the Python SDK 2 (fastmcp, openai-agents, pydantic-ai): they \
             probe first, and lose the server; claude has to start it twice",
            "answer a method that is not known with error -32601, and live on",
        )
    })
}

fn swallows_probe(facts: &Facts) -> Option<Finding> {
    facts.swallowed().then(|| {
        Finding::new(
            Level::Hurts,
            "it does not answer server/discover, not even with an error",
            "start-up takes 3 s longer in claude, 10 s in copilot and on the Python SDK 2, 60 s on the \
             TypeScript SDK 2 when it probes",
            "answer a method that is not known with error -32601 at once",
        )
    })
}

fn junk(facts: &Facts) -> Option<Finding> {
    facts.opened.as_ref()?.as_ref().ok()?;
    let junk = facts.junk.as_ref().or(facts.seen.first_junk.as_ref())?;
    let count = facts.seen.junk.max(1);
    let lines = match count {
        1 => "something on stdout that is no message".to_owned(),
        count => format!("{count} lines on stdout that are no messages"),
    };
    let what = format!(
        "it prints {lines}, first at byte {}: {:?} ({})",
        junk.offset, junk.excerpt, junk.fault
    );
    let hurts = "hosts that take the first bad line for the end, or show an error for each; all others \
                 are lucky as long as no line is torn";
    Some(Finding::new(Level::Hurts, what, hurts, "print to stderr; stdout belongs to the protocol"))
}

fn slow(facts: &Facts) -> Option<Finding> {
    let took = facts.took()?;
    if took < SOON {
        return None;
    }
    let lost: Vec<&str> = PATIENCE
        .iter()
        .filter(|(seconds, _)| took > Duration::from_secs(*seconds))
        .map(|(_, host)| *host)
        .collect();
    let what = format!("it takes {} until it is ready", time(took));
    let change = "answer initialize first and load afterwards; install what it needs beforehand (npx and uvx \
                  download on the first run)";
    let (level, hurts) = if lost.is_empty() {
        (
            Level::Note,
            "codex exec, which does not wait: the first turn goes without its tools".to_owned(),
        )
    } else {
        let limits: Vec<_> = PATIENCE.iter().map(|(s, host)| format!("{host} {s} s")).collect();
        (
            Level::Hurts,
            format!(
                "{} give up before (limits: {}); codex exec does not wait at all",
                lost.join(", "),
                limits.join(", ")
            ),
        )
    };
    Some(Finding::new(level, what, hurts, change))
}

fn byte_order_mark(facts: &Facts) -> Option<Finding> {
    facts.seen.byte_order_mark.then(|| {
        Finding::new(
            Level::Hurts,
            "it writes a byte-order mark before its messages",
            "hosts on the official SDKs: for them the first message is no JSON",
            "write UTF-8 without a byte-order mark (on Windows: new UTF8Encoding(false))",
        )
    })
}

fn answers(facts: &Facts) -> Option<Finding> {
    let seen = &facts.seen;
    let (what, change) = if seen.unknown_answers > 0 {
        (
            format!("it answers what nobody asked ({} times)", seen.unknown_answers),
            "answer with the id of the request, and with its JSON type: 1 is not \"1\"",
        )
    } else if seen.late_answers > 0 && facts.called.is_none() {
        (format!("it answers twice ({} times)", seen.late_answers), "answer each request once")
    } else {
        return None;
    };
    let hurts =
        "hosts that take an unknown id for an error, and end the connection or show it to the user";
    Some(Finding::new(Level::Hurts, what, hurts, change))
}

fn on_eof(facts: &Facts) -> Option<Finding> {
    let (ended, _) = facts.ended.as_ref()?;
    if ended.rung <= Rung::Eof {
        return None;
    }
    let change = "end when stdin ends: leave the loop when a read returns nothing";
    if ended.rung == Rung::Term {
        let what = "it does not end when its stdin is closed";
        let hurts = "qwen and continue, which do nothing else and leave an orphan each time; everywhere \
                     else the end takes 2 s longer, and rmcp kills it";
        return Some(Finding::new(Level::Hurts, what, hurts, change));
    }
    let what = "it ends neither when its stdin is closed nor on SIGTERM: it has to be killed";
    let hurts = "gemini, qwen, continue and hermes leave an orphan each time; everywhere else the end takes \
                 4 s longer";
    Some(Finding::new(Level::Hurts, what, hurts, change))
}

fn on_term(facts: &Facts) -> Option<Finding> {
    let killed = facts.ended.as_ref().is_some_and(|(ended, _)| ended.rung >= Rung::Kill);
    (facts.on_term == Some(None) && !killed).then(|| {
        Finding::new(
            Level::Note,
            "it does not end on SIGTERM within 2 s",
            "gemini and supergateway, which send only that, wait for the end of stdin instead",
            "leave SIGTERM alone, or end when it comes",
        )
    })
}

fn left(facts: &Facts) -> Option<Finding> {
    if facts.left.is_empty() {
        return None;
    }
    let names: Vec<_> = facts.left.iter().map(ToString::to_string).collect();
    let escaped = facts.left.iter().any(|process| process.escaped);
    let what = format!("it leaves processes behind when it ends: {}", names.join(", "));
    let hurts = if escaped {
        "every host: what has left the server's session is found by none of them"
    } else {
        "every host that ends only the process that it started, which is most: they pile up"
    };
    Some(Finding::new(
        Level::Hurts,
        what,
        hurts,
        "end its own children before it ends, or give them a pipe whose end they heed",
    ))
}

fn code(facts: &Facts) -> Option<Finding> {
    let (ended, _) = facts.ended.as_ref()?;
    let odd = ended.rung == Rung::Eof && !ended.exit.success();
    odd.then(|| {
        Finding::new(
            Level::Note,
            format!("it {} when its stdin is closed", ended.exit),
            "nobody, but it looks like a crash in logs",
            "exit with 0 when stdin ends",
        )
    })
}

fn noise(facts: &Facts) -> Option<Finding> {
    (facts.stderr_bytes > PIPE).then(|| {
        Finding::new(
            Level::Hurts,
            format!("it floods stderr: {} in this short life", size(facts.stderr_bytes)),
            "hosts that do not read stderr all the time: the pipe is full after 64 KiB, and the server \
             stands still",
            "log less by default",
        )
    })
}
