//! What a client makes of an answer, as far as its next request shows it: odd characters, a cursor, a resultType.

use serde_json::{Value, json};

use super::{UNDER_WAY, each};
use crate::check::{Check, Revisions, Verdict};
use crate::client::offers::INVALID;
use crate::client::record::Life;
use crate::ours::Revision;

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
                let given_up = life.cancelled(list.get("id"), at).is_some_and(|place| life.when(place) < life.when(answered) + UNDER_WAY);
                if given_up || life.closed_before(answered) {
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
        .sent("lists in several pages, with odd cursors")
        .hosts("A server refuses a cursor that it did not give.")
        .after(&["client-id-type", "client-id-fresh", "client-id-in-flight"])
        .played(&[], |played| {
            each(played, |_, life| {
                let all: Vec<(&Value, &Value)> = life
                    .said()
                    .filter_map(|(at, value)| Some((&life.asked(at)?["method"], value["result"].get("nextCursor")?)))
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
                let mut lists = life.requests().filter(|(_, value)| is_list(value));
                if lists.any(|(_, value)| value["params"].get("nextCursor").is_some()) {
                    return Some("it sends `nextCursor`, and no `cursor`".to_owned());
                }
                LISTS.iter().find_map(|method| cut_short(life, method, played.revision))
            })
        }),
        Check::should(
            "client-last-page",
            &["PAG-02"],
            Revisions::ALL,
            "A page without `nextCursor` is the last one: the client asks for no page after it.",
        )
        .sent("lists in several pages")
        .hosts("A server refuses a cursor that it did not give.")
        .after(&["client-cursor", "client-id-type"])
        .played(&["pages", "legacy-0618"], |played| {
            each(played, |_, life| {
                LISTS.iter().find_map(|method| went_on(life, method))
            })
        }),
        Check::must(
            "client-result-type",
            &["RSL-03"],
            Revisions::MODERN,
            "A result with a `resultType` that the client does not know is invalid: it uses nothing of it.",
        )
        .sent("a list of tools with an unknown `resultType` and a cursor, and the result of a call with such a type and a state")
        .hosts("A client takes a step on the way for the answer.")
        .played(&["modern-type", "modern-type-call"], |played| {
            each(played, |_, life| {
                let odd = json!(INVALID);
                let mut requests = life.requests().map(|(_, value)| &value["params"]);
                if requests.any(|params| params["cursor"] == odd || params["requestState"] == odd) {
                    return Some("it used the cursor or the state of this result".to_owned());
                }
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

/// The methods whose results come in pages.
const LISTS: [&str; 4] =
    ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];

fn is_list(value: &Value) -> bool {
    LISTS.iter().any(|method| value["method"] == *method)
}

/// The pages of a list that the client got, each with its place.
fn pages<'a>(life: &'a Life, method: &'a str) -> impl Iterator<Item = (usize, &'a Value)> {
    let result = |(at, value): (usize, &'a Value)| Some((at, value.get("result")?));
    let pages = life.said().filter_map(result);
    pages.filter(move |(at, _)| life.asked(*at).is_some_and(|asked| asked["method"] == method))
}

/// Why the client took a page that is not the last one for that. One that reads no further pages at all may.
fn cut_short(life: &Life, method: &str, revision: Revision) -> Option<String> {
    let mut given = pages(life, method).filter(|(_, page)| page.get("nextCursor").is_some());
    let (_, page) = given.by_ref().skip(1).last()?;
    let last = &page["nextCursor"];
    let mut lists = life.requests().filter(|(_, value)| value["method"] == method);
    if lists.any(|(_, value)| value["params"].get("cursor") == Some(last)) {
        return None;
    }
    let empty = page
        .as_object()
        .is_some_and(|all| all.values().any(|list| list.as_array().is_some_and(Vec::is_empty)));
    match last.as_str() {
        Some("") if revision.is_modern() => {
            Some(format!("an empty cursor of {method} was taken for the end"))
        }
        _ if empty => Some(format!("an empty page of {method} was taken for the last one")),
        _ => None,
    }
}

/// The cursor that came after the last page of a list.
fn went_on(life: &Life, method: &str) -> Option<String> {
    let (ended, _) = pages(life, method).find(|(_, page)| page.get("nextCursor").is_none())?;
    let lists = || life.requests().filter(|(_, value)| value["method"] == method);
    let begins =
        |(at, value): &(usize, &Value)| *at < ended && value["params"].get("cursor").is_none();
    // Two that run at the same time share the cursors.
    if lists().filter(begins).count() > 1 {
        return None;
    }
    // One that begins again has cursors again.
    let cursors =
        lists().filter(|(at, _)| *at > ended).map(|(_, value)| value["params"].get("cursor"));
    let cursor = cursors.take_while(Option::is_some).next().flatten()?;
    Some(format!("the cursor {cursor} came after the last page of {method}"))
}
