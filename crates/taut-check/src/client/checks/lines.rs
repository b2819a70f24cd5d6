//! What a client writes, line by line, and how it ends its server.

use serde_json::Value;

use super::{each, every};
use crate::check::{Check, Revisions, Verdict};
use crate::client::play::STUBBORN;
use crate::client::record::{Life, Note, Played};
use crate::cx::VERSION;
use crate::ours::Revision;
use crate::schema::objection;
use crate::seen::{is_request, is_response};

pub(super) fn checks() -> Vec<Check> {
    let mut all = plain();
    all.push(terminates());
    all
}

fn plain() -> Vec<Check> {
    vec![
        Check::must(
            "client-clean",
            &["STD-04", "STD-01", "STD-02"],
            Revisions::ALL,
            "The client writes nothing but messages, each on one line of UTF-8.",
        )
        .hosts("A server that reads line by line drops it, or ends.")
        .played(&[], |played| {
            each(played, |_, life| {
                // Half a message is what is left of a client that was ended.
                let unfinished = life.notes.iter().find_map(|note| match note {
                    Note::Unfinished { line } if serde_json::from_slice::<Value>(line).is_ok() => {
                        Some("its last message has no newline".to_owned())
                    }
                    _ => None,
                });
                let unclean = life.lines().find_map(|(line, value)| match value {
                    None => {
                        Some(format!("a line is no JSON: {:.80}", String::from_utf8_lossy(line)))
                    }
                    Some(value @ Value::Object(_)) if !is_message(value) => {
                        Some(format!("a line is no message: {value}"))
                    }
                    // Whether a batch may come is a question of its own.
                    Some(Value::Object(_) | Value::Array(_)) => None,
                    Some(other) => Some(format!("a line is no message: {other}")),
                });
                unclean.or(unfinished)
            })
        }),
        Check::must(
            "client-version-member",
            &["RPC-01"],
            Revisions::ALL,
            "Every message has the member `jsonrpc` with the string \"2.0\".",
        )
        .hosts("Strict servers drop the message.")
        .played(&[], |played| {
            every(played, |value| {
                (is_message(value) && value["jsonrpc"] != "2.0").then(|| format!("`jsonrpc` is {}", value["jsonrpc"]))
            })
        }),
        Check::must(
            "client-id-type",
            &["RPC-02", "RPC-03"],
            Revisions::ALL,
            "The id of a request is a string or an integer.",
        )
        .hosts("A server cannot answer it.")
        .after(&["client-notification-id"])
        .played(&[], |played| {
            every(played, |value| {
                let id = value.get("id").filter(|_| is_request(value))?;
                (!id.is_string() && !id.is_i64() && !id.is_u64()).then(|| format!("the id is {id}"))
            })
        }),
        Check::must(
            "client-id-fresh",
            &["RPC-04"],
            Revisions::LEGACY,
            "No id is used twice in a session.",
        )
        .hosts("A server answers the wrong one of two requests.")
        .after(&["client-notification-id", "client-id-type"])
        .played(&[], |played| each(played, |_, life| repeated(life, |_, _| true))),
        Check::must(
            "client-id-in-flight",
            &["RPC-05"],
            Revisions::MODERN,
            "No id is used again before its request is answered.",
        )
        .hosts("A server answers the wrong one of two requests.")
        .after(&["client-notification-id", "client-id-type"])
        .played(&[], |played| {
            each(played, |_, life| {
                repeated(life, |id, at| {
                    !life.said().any(|(place, value)| place < at && value.get("id") == Some(id))
                })
            })
        }),
        Check::must(
            "client-shape",
            &[
                "RPC-07", "RPC-08", "RPC-09", "RPC-14", "LIF-02", "SAM-01", "SAM-03", "ELI-01",
                "ELI-07", "ROO-01", "ROO-02", "LOG-06", "CMP-03",
            ],
            Revisions::ALL,
            "Every message fits the official JSON schema of its revision.",
        )
        .hosts("A server that validates refuses it.")
        .after(&["client-unknown-request", "client-roots", "client-silent", "client-progress-token", "client-info", "client-cancel-own", "client-elicited", "client-input", "client-cursor", "client-meta-fields", "client-state",
            "client-meta",
            "client-id-type",
            "client-version-member",
            "client-initialize",
            "client-notification-id",
            "client-no-answers",
        ])
        .played(&[], |played| {
            each(played, |_, life| {
                let said = |id: &Value| {
                    life.said()
                        .map(|(_, value)| value)
                        .find(|value| is_request(value) && value.get("id") == Some(id))
                };
                life.heard().filter(|(_, value)| value.is_object()).find_map(|(_, value)| {
                    let revision = revision_of(value, played.revision)?;
                    let method = value
                        .get("id")
                        .filter(|_| is_response(value))
                        .and_then(said)
                        .and_then(|asked| asked["method"].as_str());
                    objection(revision, value, method)
                })
            })
        }),
        Check::must(
            "client-one-of",
            &["RPC-07", "RPC-08"],
            Revisions::LEGACY,
            "An answer of the client has a result or an error, and not both; a result is an object.",
        )
        .hosts("A server takes the one that it looks at first.")
        .played(&[], |played| {
            every(played, |value| {
                if !is_response(value) {
                    return None;
                }
                let both = value.get("result").is_some() && value.get("error").is_some();
                let odd = value.get("result").is_some_and(|result| !result.is_object());
                (both || odd).then(|| format!("it answered {value}"))
            })
        }),
        Check::must(
            "client-progress-token",
            &["PRG-01", "PRG-02"],
            Revisions::ALL,
            "A progressToken is a string or an integer, and no two running requests share one.",
        )
        .hosts("A server reports the progress of one call to another.")
        .after(&["client-id-fresh", "client-id-in-flight"])
        .played(&[], |played| {
            each(played, |_, life| {
                let token = |value: &Value| value.pointer("/params/_meta/progressToken").cloned();
                let mut open: Vec<(Value, Value)> = Vec::new();
                for (at, value) in life.requests() {
                    open.retain(|(_, id)| {
                        !life.said().any(|(place, said)| place < at && said.get("id") == Some(id))
                    });
                    if value["params"].get("progressToken").is_some() {
                        return Some("a token is in `params`, and not in `_meta`".to_owned());
                    }
                    let Some(token) = token(value) else { continue };
                    if !token.is_string() && !token.is_i64() && !token.is_u64() {
                        return Some(format!("the token is {token}"));
                    }
                    if open.iter().any(|(other, _)| *other == token) {
                        return Some(format!("the token {token} belongs to two requests"));
                    }
                    open.push((token, value["id"].clone()));
                }
                None
            })
        }),
        Check::must(
            "client-cancel-own",
            &["CAN-02", "LIF-16"],
            Revisions::ALL,
            "The client cancels only requests of its own that are under way, and never `initialize`.",
        )
        .hosts("A server cancels somebody else's call.")
        .after(&["client-clean", "client-batch", "client-id-type", "client-id-fresh", "client-id-in-flight"])
        .played(&[], |played| {
            // One or two may have crossed the answer.
            if let Some(late) = cancelled_late(played).get(2) {
                return Verdict::fail(format!("it cancels requests that are answered already, such as {late}"));
            }
            each(played, |_, life| {
                let mut unknown = Vec::new();
                for (at, value) in life.heard() {
                    if value["method"] != "notifications/cancelled" {
                        continue;
                    }
                    let id = &value["params"]["requestId"];
                    let mut before = life.requests().filter(|(place, _)| *place < at);
                    match before.find(|(_, request)| request.get("id") == Some(id)) {
                        Some((_, request)) if request["method"] == "initialize" => {
                            return Some("it cancelled initialize".to_owned());
                        }
                        None if !unknown.contains(&id) => unknown.push(id),
                        _ => {}
                    }
                }
                // A line that was not kept may have had one of them.
                let skipped = life.notes.iter().filter(|note| matches!(note, Note::Skipped));
                let id = unknown.get(skipped.count())?;
                Some(format!("it cancelled {id}, which it never asked"))
            })
        }),
        Check::should(
            "client-closes-first",
            &["STD-18"],
            Revisions::ALL,
            "The client closes the server's stdin, and waits, before it signals or kills.",
        )
        .sent("a server that does not end when its stdin ends")
        .hosts("A server cannot write down what it has to keep.")
        .after(&["client-ends-server"])
        .played(&["stubborn"], |played| {
            // One that we had to end took the server with it.
            if played.scenes.iter().any(|scene| scene.ended.is_none()) {
                return Verdict::skip("the client was still at work when its time was over");
            }
            each(played, |_, life| {
                let closed = life.closed();
                let lived = |closed: u64| {
                    let later = |note: &Note| matches!(note, Note::Alive { at } if *at >= closed + 20);
                    life.notes.iter().any(later)
                };
                let used = life.said().count() > 1 && !life.cut;
                match closed {
                    None if used => Some("the server was ended while its stdin was open".to_owned()),
                    Some(closed) if used && !lived(closed) => {
                        Some("the server was ended as soon as its stdin was closed".to_owned())
                    }
                    _ => None,
                }
            })
        }),
        Check::should(
            "client-ends-server",
            &["STD-18"],
            Revisions::ALL,
            "The client ends the server when it ends: it closes stdin, then signals, then kills.",
        )
        .sent("a server that does not end when its stdin ends, and one that also ignores SIGTERM")
        .hosts("Every session leaves a process behind.")
        .played(&["stubborn", "deaf", "legacy", "dual"], |played| {
            if played.scenes.iter().all(|scene| scene.ended.is_none()) {
                return Verdict::skip("the client was still at work when its time was over");
            }
            for scene in &played.scenes {
                let Some(ended) = scene.ended else { continue };
                let last = scene
                    .lives
                    .iter()
                    .flat_map(|life| &life.notes)
                    .filter_map(|note| match note {
                        Note::Alive { at } | Note::Heard { at, .. } | Note::Said { at, .. } => {
                            Some(*at)
                        }
                        _ => None,
                    })
                    .max()
                    .unwrap_or_default();
                let closed = scene.lives.iter().filter_map(Life::closed).max();
                if closed.is_some_and(|closed| last >= closed + STUBBORN) {
                    return Verdict::fail(format!("{}: nobody ended the server", scene.name));
                }
                if last > ended + 5_000 {
                    return Verdict::fail(format!(
                        "{}: the server was there {} ms after the client was gone",
                        scene.name,
                        last - ended
                    ));
                }
            }
            Verdict::Pass
        }),
    ]
}

/// Whether the client sends SIGTERM to a server that stays after its stdin was closed.
fn terminates() -> Check {
    Check::should(
        "client-terminates",
        &["STD-18"],
        Revisions::ALL,
        "A server that stays after its stdin was closed gets SIGTERM, and time, before it is killed.",
    )
    .sent("a server that ignores the end of its stdin, and SIGTERM; not on Windows, which has no such signal")
    .hosts("A server cannot write down what it has to keep.")
    .after(&["client-ends-server", "client-closes-first"])
    .played(&["deaf"], |played| {
        if cfg!(windows) {
            return Verdict::skip("Windows has no SIGTERM");
        }
        if played.scenes.iter().any(|scene| scene.ended.is_none()) {
            return Verdict::skip("the client was still at work when its time was over");
        }
        each(played, |_, life| {
            let told = life.notes.iter().any(|note| matches!(note, Note::Term));
            let used = life.said().count() > 1 && !life.cut && life.closed().is_some();
            (used && !told).then(|| "the server was killed, and got no SIGTERM before".to_owned())
        })
    })
}

/// Whether it has what only messages have.
fn is_message(value: &Value) -> bool {
    ["method", "result", "error"].iter().any(|name| value.get(*name).is_some())
}

/// The revision that a message of the client is written in: the probe and the handshake name their own. Nothing for one
/// that is not known.
fn revision_of(value: &Value, agreed: Revision) -> Option<Revision> {
    let named = value["params"]["_meta"][VERSION].as_str();
    match value["method"].as_str() {
        // A probe is judged with the servers that understand it.
        Some("server/discover") if !agreed.is_modern() => None,
        Some("server/discover") => named.and_then(Revision::parse).filter(|it| it.is_modern()),
        Some("initialize") => {
            let named = value["params"]["protocolVersion"].as_str().and_then(Revision::parse);
            named.filter(|revision| !revision.is_modern())
        }
        _ => Some(agreed),
    }
}

/// The first id that is used a second time, where that counts.
fn repeated(life: &Life, counts: impl Fn(&Value, usize) -> bool) -> Option<String> {
    let mut used: Vec<&Value> = Vec::new();
    for (at, value) in life.requests() {
        let id = &value["id"];
        if used.contains(&id) && counts(id, at) {
            return Some(format!("the id {id} is used twice"));
        }
        used.push(id);
    }
    None
}

/// The requests that were answered before the client cancelled them, one from each life.
fn cancelled_late(played: &Played<'_>) -> Vec<String> {
    let late = |life: &Life| {
        let mut cancels =
            life.heard().filter(|(_, value)| value["method"] == "notifications/cancelled");
        cancels.find_map(|(at, value)| {
            let id = value["params"].get("requestId")?;
            let before = |place: usize| place < at;
            // Both sides may end a stream, and the pages of the specification differ on how (CAN-12).
            let plain = |one: &Value| one["method"] != "subscriptions/listen";
            let is_own = |one: &Value| one.get("id") == Some(id) && plain(one);
            let own = life.requests().any(|(place, one)| before(place) && is_own(one));
            let mut answers = life.said().filter(|(_, one)| is_response(one));
            let answered = answers.any(|(place, one)| before(place) && one.get("id") == Some(id));
            (own && answered).then(|| id.to_string())
        })
    };
    played.lives().filter_map(|(_, life)| late(life)).collect()
}
