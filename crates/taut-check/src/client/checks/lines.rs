//! What a client writes, line by line.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{UNDER_WAY, each, every};
use crate::check::{Check, Revisions, Verdict};
use crate::client::record::{Life, Note, Played, is_header};
use crate::cx::VERSION;
use crate::ours::Revision;
use crate::schema::objection;
use crate::seen::{is_request, is_response};

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::must(
            "client-clean",
            &["STD-04", "STD-01", "STD-02"],
            Revisions::ALL,
            "The client writes nothing but messages, each on one line of UTF-8.",
        )
        .hosts("A server that reads line by line drops it, or ends.")
        .played(&[], |played| {
            // Half a message is what is left of a client that was ended; but not in one scenario after the other.
            let halves = halves(played);
            if halves.len() > 2 {
                return Verdict::fail(format!("{}: its last line has no end", halves[0]));
            }
            each(played, |name, life| {
                let trial = played.scene(name).is_some_and(|scene| scene.is_trial(life));
                let unfinished = life.notes.iter().find_map(|note| match note {
                    Note::Unfinished { line } if serde_json::from_slice::<Value>(line).is_ok() => {
                        Some("its last message has no newline".to_owned())
                    }
                    _ => None,
                });
                let unclean = life.lines().find_map(|(line, value)| match value {
                    None if trial && is_header(line) => None,
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
                // The length ends a message that has headers.
                unclean.or_else(|| unfinished.filter(|_| !trial))
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
            "No id is used twice in a session, which begins with `initialize`.",
        )
        .hosts("A server answers the wrong one of two requests.")
        .after(&["client-notification-id", "client-id-type"])
        .played(&[], |played| {
            each(played, |_, life| {
                let begun = life.first("initialize")?.0;
                repeated(life, begun, |_, _| true)
            })
        }),
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
                repeated(life, 0, |used, at| !life.is_over(used, at))
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
        .after(&["client-unknown-request", "client-roots", "client-task-ignored", "client-silent", "client-progress-token", "client-info", "client-cancel-own", "client-elicited", "client-input", "client-cursor", "client-meta-fields", "client-state",
            "client-meta",
            "client-id-type",
            "client-version-member",
            "client-initialize",
            "client-notification-id",
            "client-no-answers",
        ])
        .played(&[], |played| {
            each(played, |_, life| {
                // Old schemas know no error without an id, and what cannot be read has none.
                let idless = |value: &Value| {
                    value.get("error").is_some() && value.get("id").is_none_or(Value::is_null)
                };
                let whole = |(_, value): &(usize, &Value)| value.is_object() && !idless(value);
                life.heard().filter(whole).find_map(|(_, value)| {
                    let revision = revision_of(value, played.revision)?;
                    let method = value
                        .get("id")
                        .filter(|_| is_response(value))
                        .and_then(|id| life.ours(id))
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
                // If the last request with a token is over, those before it are: each was when the next one came.
                let mut last: HashMap<String, usize> = HashMap::new();
                for (at, value) in life.requests() {
                    if value["params"].get("progressToken").is_some() {
                        return Some("a token is in `params`, and not in `_meta`".to_owned());
                    }
                    let Some(token) = token(value) else { continue };
                    if !token.is_string() && !token.is_i64() && !token.is_u64() {
                        return Some(format!("the token is {token}"));
                    }
                    let other = last.insert(token.to_string(), at);
                    if other.is_some_and(|asked| !life.is_over(asked, at)) {
                        return Some(format!("the token {token} belongs to two requests"));
                    }
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
            let late = cancelled_late(played);
            // One may have crossed the answer, but not one that came long before.
            let odd = late.iter().find(|(_, millis)| *millis > LONG_AGO).or_else(|| late.get(1));
            if let Some((id, _)) = odd {
                return Verdict::fail(format!("it cancels requests that are answered already, such as {id}"));
            }
            each(played, |_, life| {
                let mut unknown: Vec<&Value> = Vec::new();
                let mut known = HashSet::new();
                for (at, value) in life.heard() {
                    if value["method"] != "notifications/cancelled" {
                        continue;
                    }
                    let id = &value["params"]["requestId"];
                    match life.request(id, at) {
                        Some((_, request)) if request["method"] == "initialize" => {
                            return Some("it cancelled initialize".to_owned());
                        }
                        // A request that came in an array.
                        None if life.asked_in_array(id, at) => {}
                        None if known.insert(id.to_string()) => unknown.push(id),
                        _ => {}
                    }
                }
                // A line that was not kept may have had one of them.
                let skipped = life.notes.iter().filter(|note| matches!(note, Note::Skipped));
                let id = unknown.get(skipped.count())?;
                Some(format!("it cancelled {id}, which it never asked"))
            })
        }),
    ]
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

/// The first id that is used a second time from a place on, where that counts: a judge gets both places.
fn repeated(life: &Life, from: usize, counts: impl Fn(usize, usize) -> bool) -> Option<String> {
    // If the last use counts for nothing, those before it do not either: what ended it ended them.
    let mut used: HashMap<String, usize> = HashMap::new();
    for (at, value) in life.requests().filter(|(at, _)| *at >= from) {
        let id = value["id"].to_string();
        if used.get(&id).is_some_and(|place| counts(*place, at)) {
            return Some(format!("the id {id} is used twice"));
        }
        used.insert(id, at);
    }
    None
}

/// How long before its cancellation an answer was certainly read, in milliseconds.
const LONG_AGO: u64 = 2_000;

/// The requests that were answered before the client cancelled them, each with the milliseconds in between.
fn cancelled_late(played: &Played<'_>) -> Vec<(String, u64)> {
    // Where answers take a second, they cross with a client that waits as long.
    let lives = played.lives().filter(|(name, _)| !["slow", "modern-slow"].contains(name));
    let patience = patience(played);
    let late = |life: &Life| -> Vec<(String, u64)> {
        let cancels =
            life.heard().filter(|(_, value)| value["method"] == "notifications/cancelled");
        let answered = cancels.filter_map(|(at, value)| {
            let id = value["params"].get("requestId")?;
            // Both sides may end a stream, and the pages of the specification differ on how (CAN-12).
            let plain = |one: &Value| one["method"] != "subscriptions/listen";
            let (asked, request) = life.request(id, at).filter(|(_, one)| plain(one))?;
            let (place, _) = life.reply(asked).filter(|(place, _)| *place < at)?;
            let millis = life.when(at).saturating_sub(life.when(place));
            // Who has many requests under way may not have read this answer yet.
            let (earlier, later) = life.beside(asked);
            let alone = earlier.is_none_or(|other| life.is_over(other, asked))
                && later.is_none_or(|other| other > at);
            // Who cancels after a time of its own, whatever it hears, may cross the answer each time.
            let waited = life.when(at).saturating_sub(life.when(asked));
            let least = request["method"].as_str().and_then(|method| patience.get(method));
            let timed = millis <= UNDER_WAY && least.is_some_and(|least| waited + CLOCK >= *least);
            (alone && !timed || millis > LONG_AGO).then(|| (id.to_string(), millis))
        });
        let mut all: Vec<_> = answered.collect();
        // To cancel twice is once too often, and no more.
        all.sort();
        all.dedup_by(|one, other| one.0 == other.0);
        all
    };
    lives.flat_map(|(_, life)| late(life)).collect()
}

/// How far two waits of the same length may differ, in milliseconds.
const CLOCK: u64 = 50;

/// The shortest time that the client waited before it cancelled a request that was not answered, by method.
fn patience<'a>(played: &'a Played<'_>) -> HashMap<&'a str, u64> {
    let mut least: HashMap<&str, u64> = HashMap::new();
    for (_, life) in played.lives() {
        for (asked, request) in life.requests() {
            let cancelled = life.cancelled(request.get("id"), asked);
            let Some((method, cancelled)) = request["method"].as_str().zip(cancelled) else {
                continue;
            };
            if life.reply(asked).is_none_or(|(place, _)| place > cancelled) {
                let waited = life.when(cancelled).saturating_sub(life.when(asked));
                least.entry(method).and_modify(|best| *best = waited.min(*best)).or_insert(waited);
            }
        }
    }
    least
}

/// The scenarios that the client ended by itself, and in the middle of a line.
fn halves(played: &Played<'_>) -> Vec<&'static str> {
    let half = |life: &Life| life.notes.iter().any(|note| matches!(note, Note::Unfinished { .. }));
    let own = played.scenes.iter().filter(|scene| scene.ended.is_some());
    own.filter(|scene| scene.lives.iter().any(half)).map(|scene| scene.name).collect()
}
