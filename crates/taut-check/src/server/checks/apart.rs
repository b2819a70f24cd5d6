//! Each request of 2026-07-28 stands for itself, in whichever process it is read (STD).

use serde_json::{Value, json};

use super::{lists, result, verdict};
use crate::check::{Check, Revisions};
use crate::cx::Cx;
use crate::seen::Step;

/// The first list that was read, and that a new process is asked for.
fn list(cx: &Cx<'_>) -> Result<&'static str, String> {
    let mut given = lists(cx).into_iter().filter(|(_, _, listing)| !listing.pages.is_empty());
    let first = given.next().map(|(method, ..)| method);
    first.ok_or_else(|| "the server has no list".to_owned())
}

/// A list with more than one page, and the cursor of its second page.
fn second_page(cx: &Cx<'_>) -> Result<(&'static str, Value), String> {
    let mut paged = lists(cx).into_iter().filter_map(|(method, _, listing)| {
        let cursor = listing.pages.first()?.get("nextCursor")?;
        (listing.pages.len() > 1 && cursor.is_string()).then(|| (method, cursor.clone()))
    });
    paged.next().ok_or_else(|| "no list has more than one page".to_owned())
}

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::must(
            "frame-first",
            &["STD-25", "STD-26"],
            Revisions::MODERN,
            "Any request may be the first of a process: `server/discover` need not come before it.")
            .sent("a list as the first message")
            .hosts("A client that knows the server does not ask again; each request to a new process of a gateway fails.")
            .once()
            .fresh(
                |cx| Ok(vec![cx.request(0, list(cx)?, Value::Null), Step::Await(cx.id(0)), Step::Barrier]),
                |cx, seen| verdict(result(seen, &cx.id(0)).map(|_| ())),
            ),
        Check::should("page-restart", &["STD-26"], Revisions::MODERN,
            "The next page of a list can be read from another process.")
            .sent("a list with the cursor that another process of the server gave")
            .hosts("A gateway with two processes, or a server that was started again, gives a client half of the list.")
            .after(&["frame-first", "page-next"])
            .once()
            .fresh(
                |cx| {
                    let (method, cursor) = second_page(cx)?;
                    Ok(vec![Step::Open(json!({})), cx.request(0, method, json!({ "cursor": cursor })), Step::Await(cx.id(0)), Step::Barrier])
                },
                |cx, seen| verdict(result(seen, &cx.id(0)).map(|_| ())),
            ),
    ]
}
