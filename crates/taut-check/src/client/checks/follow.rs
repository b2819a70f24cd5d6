//! What a client makes of an answer, as far as its next request shows it: odd characters, a state, a cursor.

use serde_json::Value;

use super::each;
use crate::check::{Check, Revisions, Verdict};
use crate::client::play::STATE;
use crate::client::record::Life;

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::must(
            "client-separators",
            &["STD-12"],
            Revisions::ALL,
            "Only LF ends a message: U+2028, U+2029 and U+0085 are ordinary characters.",
        )
        .sent("a list of tools with these characters unescaped in a description")
        .hosts("A client that splits there never sees the tools.")
        .played(&["legacy", "modern", "odd", "modern-ask"], |played| {
            // What the client does after it has listed the tools of a server.
            let went_on = |names: [&str; 2]| {
                let scene = names.into_iter().find_map(|name| played.scene(name))?;
                let life = scene.lives.iter().find(|life| life.first("tools/list").is_some())?;
                let (at, _) = life.first("tools/list")?;
                let mut later = life.requests().filter(|(place, _)| *place > at);
                Some(later.any(|(_, value)| value["method"] == "tools/call"))
            };
            match (went_on(["legacy", "modern"]), went_on(["odd", "modern-ask"])) {
                (Some(true), Some(false)) => Verdict::fail(
                    "no tool was called, and one is called where the list is plain",
                ),
                (Some(true), Some(true)) => Verdict::Pass,
                _ => Verdict::skip("the client calls no tool after it has listed them"),
            }
        }),
        Check::must(
            "client-state",
            &["MRTR-05", "MRTR-06"],
            Revisions::MODERN,
            "A call that is tried once more has the same params, the state as it came, and a new id.",
        )
        .sent("a result of `tools/call` that has a requestState and no questions")
        .hosts("A server cannot go on where it was.")
        .played(&["modern-state"], |played| {
            let calls = |life: &Life| -> Vec<Value> {
                let all = life.requests().filter(|(_, value)| value["method"] == "tools/call");
                all.map(|(_, value)| value.clone()).collect()
            };
            match played.lives().any(|(_, life)| calls(life).len() > 1) {
                true => each(played, |_, life| {
                    let calls = calls(life);
                    let (first, again) = (calls.first()?, calls.get(1)?);
                    let same = |name: &str| first["params"].get(name) == again["params"].get(name);
                    if !same("name") || !same("arguments") {
                        // Another call, maybe.
                        return again["params"].get("requestState").map(|_| "its params are others".to_owned());
                    }
                    match &again["params"]["requestState"] {
                        Value::String(state) if state == STATE && first["id"] != again["id"] => None,
                        Value::String(state) if state == STATE => Some("its id is the same".to_owned()),
                        other => Some(format!("its state is {other}")),
                    }
                }),
                false => Verdict::skip("the client does not try again, which it may"),
            }
        }),
        Check::must(
            "client-state-leak",
            &["MRTR-07"],
            Revisions::MODERN,
            "A requestState is sent with the call that it belongs to, and with no other request.",
        )
        .sent("a result of `tools/call` that has a requestState and no questions")
        .hosts("A server takes one request for another, and answers what was not asked.")
        .after(&["client-state"])
        .played(&["modern-state"], |played| {
            each(played, |_, life| {
                let (_, first) = life.first("tools/call")?;
                let same = |value: &Value, name: &str| first["params"].get(name) == value["params"].get(name);
                let carries = |value: &Value| {
                    ["requestState", "inputResponses"].iter().any(|name| value["params"].get(*name).is_some())
                };
                let other = life.requests().map(|(_, value)| value).find(|value| {
                    let again = value["method"] == "tools/call" && same(value, "name") && same(value, "arguments");
                    carries(value) && !again
                });
                other.map(|value| format!("{} carries the state of another call", value["method"]))
            })
        }),
        Check::must(
            "client-cursor",
            &["PAG-01", "PAG-03", "PAG-06"],
            Revisions::ALL,
            "A client that reads further pages sends the cursor as it got it, also an empty one.",
        )
        .sent("a list of tools in three pages")
        .hosts("A server refuses a cursor that it did not give.")
        .after(&["client-id-type"])
        .played(&["pages"], |played| {
            each(played, |_, life| {
                let given: Vec<&Value> = life
                    .said()
                    .filter_map(|(_, value)| value["result"].get("nextCursor"))
                    .collect();
                let lists: Vec<&Value> = life
                    .requests()
                    .filter(|(_, value)| value["method"] == "tools/list")
                    .map(|(_, value)| value)
                    .collect();
                let odd = lists
                    .iter()
                    .filter_map(|value| value["params"].get("cursor"))
                    .find(|cursor| !given.contains(cursor));
                if let Some(odd) = odd {
                    return Some(format!("the cursor {odd} was never given"));
                }
                let pages =
                    lists.iter().filter(|value| value["params"].get("cursor").is_some()).count();
                let ended_early = pages == 1 && given.len() == 2 && given[1] == "";
                ended_early.then(|| "an empty cursor was taken for the end".to_owned())
            })
        }),
    ]
}
