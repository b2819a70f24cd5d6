//! How a server starts and opens, and how fast.

use std::time::Duration;

use taut::rpc::Fault;
use taut::wire::Framing;
use taut::{
    Error,
    error::{ConnectReason, SecondProcess},
    process::{NotFoundHint, SpawnError},
};

use super::{Finding, Level};
use crate::cmd::doctor::facts::{Facts, few, headline};
use crate::output::time;
use crate::variables;

/// How long hosts wait for the answer to `initialize`.
const PATIENCE: [(u64, &str); 4] =
    [(5, "gemini"), (27, "claude"), (30, "opencode"), (60, "copilot")];

/// What codex exec has no patience for, and a person notices.
const SOON: Duration = Duration::from_secs(1);

/// What claude -p (2.1.325) has no patience for: its first turn has no tools of a server that takes so long.
const AT_FIRST: Duration = Duration::from_secs(2);

/// Refusals of the probe that real servers give and every host takes for an older server: the method is
/// not known, or nothing is before `initialize`.
const USUAL: [i64; 3] = [-32601, -32602, -32600];

/// Who passes on which environment.
const SHORT_LIST: &str = "codex, openclaw, vibe, the inspector, and all that is built on the TypeScript or Python SDK: they \
                          pass on HOME, PATH and little else. It works in claude, gemini, qwen, opencode, copilot, \
                          droid, cline, continue, pi, supergateway and rmcp, which pass on their whole environment";

const EVERY_HOST: &str = "every host: none of them gets a connection";

pub(super) fn all(facts: &Facts) -> Vec<Finding> {
    let all = [
        environment(facts),
        opening(facts),
        framing(facts),
        modern_only(facts),
        exits_on_probe(facts),
        swallows_probe(facts),
        late_probe(facts),
        probe_code(facts),
    ];
    all.into_iter().flatten().collect()
}

fn environment(facts: &Facts) -> Option<Finding> {
    let names = facts.full_environment.as_ref()?;
    let hosts = "set it in the host's configuration, under \"env\"; here: --env";
    let (what, change) = match (names.as_slice(), facts.network.as_slice()) {
        ([], []) => (
            "it starts only with your whole environment".to_owned(),
            format!(
                "find out which variable it needs (it says nothing of it on stderr) and {hosts} KEY=VALUE"
            ),
        ),
        ([], network) => (
            format!(
                "it starts only with your whole environment, perhaps for the variables about certificates and proxies \
                 that are set here: {}",
                few(network)
            ),
            format!("find out which it needs and {hosts} {}=\"${}\"", network[0], network[0]),
        ),
        ([name, ..], _) => (
            format!("it needs {} in its environment", names.join(", ")),
            format!("{hosts} {name}=…").replacen("set it", &format!("set {}", names.join(", ")), 1),
        ),
    };
    Some(Finding::new(Level::Broken, what, SHORT_LIST, change))
}

fn opening(facts: &Facts) -> Option<Finding> {
    let error = facts.opened.as_ref()?.as_ref().err()?;
    if facts.full_environment.is_some() {
        // Said already, with the cause.
        return None;
    }
    let (what, change) = match error {
        Error::Spawn(error) => {
            let (what, change) = spawn(error);
            let list = searched(error);
            return Some(Finding { list, ..Finding::new(Level::Broken, what, EVERY_HOST, change) });
        }
        Error::Connect(failed) => {
            let (what, change) = reason(&failed.reason, facts);
            let change = match variables::hint(error) {
                // What it said there is the cause, and the name is only a part of that.
                Some(hint) if facts.stderr.is_empty() && !facts.said_on_stdout().is_empty() => {
                    format!("{change}; {hint}")
                }
                Some(hint) => hint,
                None => change.to_owned(),
            };
            (what, change)
        }
        // Nobody listens there; the words say both.
        other if facts.socket.is_some() => {
            let text = headline(other);
            let (what, change) =
                text.split_once("; ").unwrap_or((&text, "see that it listens there"));
            (what.to_owned(), change.to_owned())
        }
        other => (headline(other), "see what it says with -v".to_owned()),
    };
    Some(Finding::new(Level::Broken, what, EVERY_HOST, change))
}

/// What is wrong and what to change: the error says both in one breath.
fn spawn(error: &SpawnError) -> (String, String) {
    let text = error.to_string();
    if let SpawnError::NotFound { program, hint, searched } = error {
        let looked = if searched.is_empty() { "" } else { "; looked in:" };
        let what = format!("the program {program:?} was not found{looked}");
        let change = match hint {
            NotFoundHint::NotOnPath => {
                "install it, or give its full path in the host's configuration: a host started from \
                 a desktop does not have your shell's PATH"
                    .to_owned()
            }
            hint => hint.to_string(),
        };
        return (what, change);
    }
    match text.rsplit_once("; ") {
        Some((what, change)) => (what.to_owned(), change.to_owned()),
        None => (text, "start it from a shell, and see what that says".to_owned()),
    }
}

/// The folders in which a program was looked for, each once.
fn searched(error: &SpawnError) -> Vec<String> {
    let SpawnError::NotFound { searched, .. } = error else { return Vec::new() };
    let mut folders: Vec<String> = Vec::new();
    for folder in searched.iter().map(|folder| folder.display().to_string()) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

fn reason(reason: &ConnectReason, facts: &Facts) -> (String, &'static str) {
    let when = match (facts.first_output.is_some(), facts.said_on_stdout()) {
        // Where it complained on stderr, a banner is not why it ended.
        (_, said) if !said.is_empty() && facts.stderr.is_empty() => {
            format!(" after it wrote on stdout: {said}")
        }
        (_, said) if !said.is_empty() => String::new(),
        (true, _) => String::new(),
        (false, _) => " without a word on stdout".to_owned(),
    };
    match reason {
        ConnectReason::Exited(exit) if exit.signal.is_some() => (
            format!("it crashed at the start: it {exit}{when}"),
            "read the end of its stderr below, and run it under a debugger",
        ),
        ConnectReason::Exited(exit) if exit.success() => (
            format!("it ended at once: it {exit}{when}, as if it had nothing to do"),
            "serve until stdin ends; check that the arguments start the server and not its help",
        ),
        ConnectReason::Exited(exit) => (
            format!("it ended at the start: it {exit}{when}"),
            if facts.said_on_stdout().is_empty() && facts.stderr.is_empty() {
                "it wrote nothing on stderr either: start it in a shell, and let it say why it ends"
            } else if !facts.stderr.is_empty() {
                "read the end of its stderr below; it says what is missing"
            } else {
                "do what it says there; the server should write that to stderr, where hosts look for it"
            },
        ),
        ConnectReason::Closed => (
            "it closed its stdout and lives on".to_owned(),
            "keep stdout open; a server that goes into the background cannot be used over stdio",
        ),
        ConnectReason::Silent {
            second: Some(SecondProcess { fault: Some((fault, first)), .. }),
            ..
        } if matches!(fault, Fault::Length | Fault::Header) => not_json(*fault, 1, first, 0),
        ConnectReason::Silent { after, .. } => (
            format!("it says nothing: initialize was not answered within {}", time(*after)),
            "check that it flushes stdout after each message, serves stdio (many take a switch such as \
             --stdio), and reads line by line",
        ),
        ConnectReason::Unflushed { after } => (
            format!(
                "it does not flush stdout: nothing came for {}, and all of it when its stdin was closed",
                time(*after)
            ),
            "flush stdout after each message (Python: print(…, flush=True) or sys.stdout.flush())",
        ),
        ConnectReason::NotJson { first, lines, fault, .. } => {
            not_json(*fault, *lines, first, facts.junk.as_ref().map_or(0, |junk| junk.offset))
        }
        ConnectReason::NoAnswer { stray: Some(id), .. } => (
            format!(
                "it answers what nobody asked, and not initialize: the id of its answer is {id}"
            ),
            if id.starts_with('"') {
                "answer with the id of the request as it came: 1 is not \"1\""
            } else {
                "answer with the id of the request"
            },
        ),
        ConnectReason::NoAnswer { .. } if !facts.stdout.is_empty() => (
            format!(
                "it prints text on stdout where JSON should be, without a line end: \"{}\"",
                facts.stdout.trim()
            ),
            "if it waits for an answer, take that from the environment or from an argument: stdin and stdout \
             belong to the protocol",
        ),
        ConnectReason::NoAnswer { after, .. } => (
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

/// Something came that is no message: text, or JSON that is nearly one.
fn not_json(fault: Fault, lines: u64, first: &str, offset: u64) -> (String, &'static str) {
    let what = match fault {
        Fault::SpansLines => "it writes messages over several lines",
        Fault::Version | Fault::ResponseVersion => "its messages have no \"jsonrpc\":\"2.0\"",
        Fault::Length | Fault::Header => {
            return (
                format!("it answers in a frame that cannot be read ({fault}): {first}"),
                "write one JSON message per line, as every host reads it; a Content-Length counts the bytes of the \
                 message in UTF-8, and an empty line (\\r\\n\\r\\n) ends the header",
            );
        }
        Fault::Json | Fault::Encoding => {
            let lines = if lines == 1 { "one line".to_owned() } else { format!("{lines} lines") };
            return (
                format!(
                    "it prints text on stdout where JSON should be ({lines}), first at byte {offset}: \
                     \"{first}\""
                ),
                "check that it serves stdio and not HTTP; print logs and banners to stderr",
            );
        }
        _ => {
            let what = format!("it writes JSON that is no message ({fault}): {first}");
            return (
                what,
                "see what a message has to look like: a JSON object with jsonrpc, id and result",
            );
        }
    };
    (format!("{what}, first at byte {offset}: {first}"), advice(fault))
}

/// What to change about what is no message.
pub(super) fn advice(fault: Fault) -> &'static str {
    match fault {
        Fault::SpansLines => {
            "write each message on one line, without line breaks in it (Python: json.dumps without \
             indent; JavaScript: JSON.stringify with one argument)"
        }
        Fault::Version | Fault::ResponseVersion => "add \"jsonrpc\":\"2.0\" to every message",
        _ => "print to stderr; stdout belongs to the protocol",
    }
}

fn framing(facts: &Facts) -> Option<Finding> {
    let opened = facts.opened.as_ref()?.as_ref().ok()?;
    let hurts = "every host: all of them speak one line per message, and read nothing else";
    let change = "read and write one JSON message per line; Content-Length headers belong to language servers";
    if facts.beside.is_some() && opened.framing == Framing::Headers {
        let what = "it understands only messages with Content-Length headers";
        return Some(Finding::new(Level::Broken, what, hurts, change).bridged());
    }
    let what = "it answers lines with Content-Length headers";
    (opened.framing == Framing::Headers)
        .then(|| Finding::new(Level::Broken, what, hurts, change).bridged())
}

fn modern_only(facts: &Facts) -> Option<Finding> {
    facts.modern_only.then(|| {
        Finding::new(
            Level::Hurts,
            "it speaks only 2026-07-28: it refuses initialize",
            "codex, gemini, cline and every other host that begins with initialize: no connection",
            "also answer initialize, with 2025-11-25",
        )
        .bridged()
    })
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
        .bridged()
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
        .bridged()
    })
}

fn late_probe(facts: &Facts) -> Option<Finding> {
    let took = facts.probe_late()?;
    Some(Finding::new(
        Level::Hurts,
        format!("it answers server/discover only after {}", time(took)),
        "claude, which waits 3 s for it and goes on as if the server had not heard; start-up takes that \
         much longer in copilot and on the Python SDK 2 (up to 10 s) and on the TypeScript SDK 2 when it \
         probes (up to 60 s)",
        "answer a method that is not known with error -32601 at once, and keep slow work out of the loop \
         that reads stdin",
    )
    .bridged())
}

/// How fast it is.
pub(super) fn slow(facts: &Facts) -> Option<Finding> {
    let took = facts.took()?;
    if took < SOON {
        return None;
    }
    let lost: Vec<&str> = PATIENCE
        .iter()
        .filter(|(seconds, _)| took > Duration::from_secs(*seconds))
        .map(|(_, host)| *host)
        .collect();
    let no_patience = match took < AT_FIRST {
        true => "codex exec, which does not wait",
        false => "codex exec, which does not wait, and claude -p, which waits less than 2 s",
    };
    let what = format!("it takes {} until it is ready", time(took));
    let change = "answer initialize first and load afterwards; install what it needs beforehand (npx and uvx \
                  download on the first run)";
    let (level, hurts) = if lost.is_empty() {
        (Level::Note, format!("{no_patience}: the first turn goes without its tools"))
    } else {
        let limits: Vec<_> = PATIENCE.iter().map(|(s, host)| format!("{host} {s} s")).collect();
        (
            Level::Hurts,
            format!(
                "{} give{} up before (limits: {}); in {no_patience}, the first turn goes without its tools",
                lost.join(", "),
                if lost.len() == 1 { "s" } else { "" },
                limits.join(", ")
            ),
        )
    };
    Some(Finding::new(level, what, hurts, change))
}

fn probe_code(facts: &Facts) -> Option<Finding> {
    let (_, code) = facts.probe_answered?;
    let code = code.filter(|code| !USUAL.contains(code) && !facts.is_modern())?;
    Some(Finding::new(
        Level::Note,
        format!("it refuses server/discover with error {code}, which does not say what is wrong"),
        "hosts that take only -32601 for an older server: they give up, instead of going on with \
         initialize",
        "answer a method that is not known with error -32601",
    ))
}
