//! What a client makes of an answer, as far as its next request shows it: odd characters, a cursor, a resultType.

use serde_json::Value;

use super::{UNDER_WAY, each};
use crate::check::{Check, Revisions, Verdict};
use crate::client::offers::{CURSORS, INVALID};

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
        .after(&["client-id-in-flight"])
        .played(&["legacy", "modern", "legacy-odd", "modern-slow"], |played| {
            // What the client does after it has listed the tools of a server.
            let went_on = |names: [&str; 2]| {
                let scene = names.into_iter().find_map(|name| played.scene(name))?;
                let life = scene.lives.iter().find(|life| life.first("tools/list").is_some())?;
                let (at, list) = life.first("tools/list")?;
                // Who gave the list up before it was there never had it.
                let (answered, _) = life.reply(at)?;
                let given_up = life.cancelled(list.get("id")).is_some_and(|place| life.when(place) < life.when(answered) + UNDER_WAY);
                if given_up || life.closed().is_some_and(|left| left <= life.when(answered)) {
                    return None;
                }
                let mut later = life.requests().filter(|(place, _)| *place > at);
                Some(later.any(|(_, value)| value["method"] == "tools/call"))
            };
            match (went_on(["legacy", "modern"]), went_on(["legacy-odd", "modern-slow"])) {
                (Some(true), Some(false)) => Verdict::fail(
                    "no tool was called, and one is called where the list is plain",
                ),
                (Some(true), Some(true)) => Verdict::Pass,
                _ => Verdict::skip("the client calls no tool after it has listed them"),
            }
        }),
        Check::must(
            "client-cursor",
            &["PAG-01", "PAG-03", "PAG-06"],
            Revisions::ALL,
            "A client that reads further pages sends the cursor as it got it, also an empty one, and goes on after an empty page.",
        )
        .sent("a list of tools in several pages, with odd cursors")
        .hosts("A server refuses a cursor that it did not give.")
        .after(&["client-id-type", "client-id-fresh", "client-id-in-flight"])
        .played(&[], |played| {
            each(played, |_, life| {
                let all: Vec<(&Value, &Value)> = life
                    .said()
                    .filter_map(|(at, value)| Some((&life.asked(at)?["method"], value["result"].get("nextCursor")?)))
                    .collect();
                let of_tools = all.iter().filter(|(method, _)| *method == "tools/list");
                let given: Vec<&Value> = of_tools.map(|(_, cursor)| *cursor).collect();
                let lists: Vec<&Value> = life
                    .requests()
                    .filter(|(_, value)| value["method"] == "tools/list")
                    .map(|(_, value)| value)
                    .collect();
                let odd = life
                    .requests()
                    .map(|(_, value)| value)
                    .filter(|value| value["method"].as_str().is_some_and(|it| it.ends_with("/list")))
                    .filter_map(|value| Some((&value["method"], value["params"].get("cursor")?)))
                    .find(|one| !all.contains(one));
                if let Some((method, odd)) = odd {
                    return Some(format!("the cursor {odd} was never given for {method}"));
                }
                if lists.iter().any(|value| value["params"].get("nextCursor").is_some()) {
                    return Some("it sends `nextCursor`, and no `cursor`".to_owned());
                }
                let sent = |cursor: &Value| {
                    lists.iter().any(|value| value["params"].get("cursor") == Some(cursor))
                };
                // One that reads no further pages at all may.
                let last = given.last().filter(|last| !sent(last) && given.len() > 1)?;
                match last.as_str() {
                    Some("") if played.revision.is_modern() => {
                        Some("an empty cursor was taken for the end".to_owned())
                    }
                    Some(cursor) if cursor == CURSORS[2] => {
                        Some("a page without tools was taken for the last one".to_owned())
                    }
                    _ => None,
                }
            })
        }),
        Check::should(
            "client-last-page",
            &["PAG-02"],
            Revisions::ALL,
            "A page without `nextCursor` is the last one: the client asks for no page after it.",
        )
        .sent("a list of tools in several pages")
        .hosts("A server refuses a cursor that it did not give.")
        .after(&["client-cursor", "client-id-type"])
        .played(&["pages"], |played| {
            each(played, |_, life| {
                let listed = |id: Option<&Value>, before: usize| {
                    let mut lists = life.requests().filter(|(place, _)| *place < before);
                    lists.any(|(_, value)| value["method"] == "tools/list" && value.get("id") == id)
                };
                let mut last = life.said().filter(|(at, value)| {
                    let result = &value["result"];
                    let end = result.get("tools").is_some() && result.get("nextCursor").is_none();
                    end && listed(value.get("id"), *at)
                });
                let (ended, _) = last.next()?;
                let begins = |(at, value): &(usize, &Value)| {
                    *at < ended && value["method"] == "tools/list" && value["params"].get("cursor").is_none()
                };
                // Two that run at the same time share the cursors.
                if life.requests().filter(begins).count() > 1 {
                    return None;
                }
                let lists = life.requests().filter(|(at, value)| *at > ended && value["method"] == "tools/list");
                // One that begins again has cursors again.
                let mut lists = lists.map(|(_, value)| value["params"].get("cursor")).take_while(Option::is_some);
                lists.next().flatten().map(|cursor| format!("the cursor {cursor} came after the last page"))
            })
        }),
        Check::must(
            "client-result-type",
            &["RSL-03"],
            Revisions::MODERN,
            "A result with a `resultType` that the client does not know is invalid: it uses nothing of it.",
        )
        .sent("a list of tools with an unknown `resultType`")
        .hosts("A client takes a step on the way for the answer.")
        .played(&["modern-type"], |played| {
            each(played, |_, life| {
                let mut calls = life.requests().filter(|(_, value)| value["method"] == "tools/call");
                let used = calls.any(|(_, value)| value["params"]["name"] == INVALID);
                used.then(|| "it called a tool that only this list has".to_owned())
            })
        }),
        Check::must(
            "client-result-plain",
            &["RSL-02"],
            Revisions::MODERN,
            "A result without `resultType` is complete: the client goes on as with any other server.",
        )
        .sent("a server that leaves `resultType` out")
        .hosts("Servers that were written before the member existed cannot be used.")
        .played(&["modern", "modern-plain"], |played| {
            let asked = |name: &str| -> Option<Vec<String>> {
                let lives = &played.scene(name)?.lives;
                let methods = lives.iter().flat_map(|life| life.requests());
                Some(methods.map(|(_, value)| value["method"].to_string()).collect())
            };
            let (Some(full), Some(plain)) = (asked("modern"), asked("modern-plain")) else {
                return Verdict::skip("the client does not speak this revision to both servers");
            };
            // One that was still at work may have had no time. A handshake comes where a probe took too long.
            match full.iter().find(|method| !plain.contains(*method) && **method != r#""initialize""#) {
                Some(missing) if played.ended.contains(&"modern-plain") => Verdict::fail(format!(
                    "modern-plain: {missing} never came, and it does where results have a `resultType`"
                )),
                _ => Verdict::Pass,
            }
        }),
    ]
}
