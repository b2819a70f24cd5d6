//! Whether a client goes on where nothing is wrong, or where it is not the client's business.

use std::collections::HashSet;

use serde_json::Value;

use super::asked::RUDE;
use super::{UNDER_WAY, each};
use crate::check::{Check, Revisions, Verdict};
use crate::client::record::{Life, Note};

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::should(
            "client-stderr",
            &["STD-07", "STD-06"],
            Revisions::ALL,
            "Lines on stderr are no failure: the client goes on as with any other server.",
        )
        .sent("a server that writes a line to stderr with each answer")
        .hosts("Most servers log to stderr, and could not be used.")
        .played(&["dual", "chatty"], |played| {
            let asked = |name: &str| -> Option<HashSet<String>> {
                let lives = &played.scene(name)?.lives;
                let methods = lives.iter().flat_map(|life| life.requests());
                Some(methods.map(|(_, value)| value["method"].to_string()).collect())
            };
            let (Some(plain), Some(chatty)) = (asked("dual"), asked("chatty")) else {
                return Verdict::skip("the client does not speak this revision to both servers");
            };
            match plain.iter().find(|method| !chatty.contains(*method)) {
                Some(missing) => Verdict::fail(format!("chatty: {missing} never came, and it does where stderr is quiet")),
                None => Verdict::Pass,
            }
        }),
        Check::should(
            "client-timeout",
            &["TMO-02"],
            Revisions::SINCE_0326,
            "A client that does not wait any longer for an answer, and goes on, cancels the request.",
        )
        .sent("servers with three tools that leave the first `tools/call` unanswered, and one that leaves a list of prompts or resources unanswered")
        .hosts("A server works on what nobody waits for.")
        .after(&["client-vocabulary", "client-cancel-own"])
        .played(&["stuck", "legacy-stuck", "stuck-list"], |played| {
            each(played, |name, life| {
                let silent = |value: &Value| match name {
                    "stuck" | "legacy-stuck" => value["method"] == "tools/call",
                    _ => value["method"].as_str().is_some_and(|it| it.ends_with("/list") && it != "tools/list"),
                };
                // Who was answered waits for nothing, however late the next request comes.
                let open = |at: usize| life.reply(at).is_none();
                let calls: Vec<_> = life.requests().filter(|(at, value)| silent(value) && open(*at)).collect();
                let cancels = |id: Option<&Value>| life.cancelled(id, 0).is_some();
                // Others that run at the same time begin within this, but for those that come from time to time.
                let timed = |value: &Value| value["method"] == "ping" || value["method"] == "subscriptions/listen";
                let later = |call: usize| life.requests().any(|(at, value)| {
                    at > call && life.when(at) > life.when(call) + 2_000 && !timed(value)
                });
                let (_, call) = calls.iter().find(|(at, call)| later(*at) && !cancels(call.get("id")))?;
                Some(format!("{} with the id {} was given up, and not cancelled", call["method"], call["id"]))
            })
        }),
        Check::should(
            "client-late-answer",
            &["CAN-05", "CAN-06"],
            Revisions::ALL,
            "An answer that comes after the request was cancelled is ignored: the client goes on as without it.",
        )
        .sent("two servers that leave the first `tools/call` unanswered, one of which answers when it is cancelled")
        .hosts("Every call that is cancelled a moment too late ends the session.")
        .after(&["client-timeout", "client-cancel-own"])
        .played(&["stuck", "late"], |played| {
            // How much the client asks for after its first cancellation; nothing if it cancels nothing.
            let later = |name: &str| -> Option<usize> {
                let lives = &played.scene(name)?.lives;
                let cancels = |life: &'_ Life| Some(life.first("notifications/cancelled")?.0);
                let (life, at) = lives.iter().find_map(|life| Some((life, cancels(life)?)))?;
                let later = life.requests().filter(|(place, value)| *place > at && value["method"] != "ping");
                Some(later.count())
            };
            match (later("stuck"), later("late")) {
                (Some(plain), Some(late)) if late < plain && played.ended.contains(&"late") => {
                    Verdict::fail("late: the client ended, and it does not where no late answer comes")
                }
                (Some(_), Some(_)) => Verdict::Pass,
                _ => Verdict::skip("the client cancelled no call"),
            }
        }),
        // Advice: a request that cannot be cancelled may be answered.
        Check::advice(
            "client-cancelled",
            &["CAN-03"],
            Revisions::LEGACY,
            "A request of the server that is cancelled is not answered any more.",
        )
        .sent("`sampling/createMessage`, its cancellation, and a ping")
        .hosts("A server gets an answer that it does not wait for.")
        .played(RUDE, |played| {
            each(played, |_, life| {
                let answered = |id: &str| life.heard().find(|(_, value)| value["id"] == id).map(|(at, _)| at);
                // The ping was read after the cancellation, and answered long before.
                let (ping, sampled) = (answered("after-0")?, answered("sampling-0")?);
                (life.when(sampled) > life.when(ping) + UNDER_WAY)
                    .then(|| "sampling-0 was cancelled, and answered all the same".to_owned())
            })
        }),
        Check::should(
            "client-cancel-malformed",
            &["CAN-07"],
            Revisions::LEGACY,
            "Malformed cancellations are ignored: the client goes on as with any other server.",
        )
        .sent("`notifications/cancelled` without a requestId, with null and with an object")
        .hosts("One broken message of a server ends the session.")
        .played(&["legacy", "odd"], |played| {
            let lives = |name: &str| played.scene(name).into_iter().flat_map(|scene| &scene.lives);
            let calls = |name: &str| lives(name).any(|life| life.first("tools/call").is_some());
            let listed = |name: &str| lives(name).any(|life| life.first("tools/list").is_some());
            let left = |name: &str| lives(name).any(left_open);
            let at_once = lives("odd").any(|life| left_open(life) && left_soon(life));
            if !calls("legacy") || !listed("odd") {
                return Verdict::skip("the client calls no tool after it has listed them");
            }
            match !calls("odd") || at_once && !left("legacy") {
                true => Verdict::fail("odd: the client ended, and it does not where no cancellation comes"),
                false => Verdict::Pass,
            }
        }),
    ]
}

/// Whether the client left while it waited for the answer to a request of its own.
fn left_open(life: &Life) -> bool {
    let Some(closed) = life.notes.iter().position(|note| matches!(note, Note::Eof { .. })) else {
        return false;
    };
    life.requests().any(|(at, value)| {
        let answered = life.reply(at).is_some_and(|(place, _)| place < closed);
        at < closed && !answered && life.cancelled(value.get("id"), at).is_none()
    })
}

/// Within how many milliseconds a client leaves that takes a message for the end. One that has no more time may leave later.
const SOON: u64 = 800;

/// Whether the client left soon after a cancellation of the server's.
fn left_soon(life: &Life) -> bool {
    let last = life.said().filter(|(_, value)| value["method"] == "notifications/cancelled").last();
    last.is_some_and(|(place, _)| !life.left_after(place, SOON))
}
