//! Pages of lists, and tasks (PAG, TSK).

use serde_json::{Value, json};

use super::{kind, lists, needs, refused, refused_somehow, short, verdict};
use crate::check::{Check, Revisions, Verdict};
use crate::cx::{Cx, Listing};
use crate::seen::Step;

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::should(
            "page-bad-cursor",
            &["PAG-04"],
            Revisions::ALL,
            "A cursor that the server did not give is refused with -32602.",
        )
        .sent("each declared list with the cursor `taut-check-no-such-cursor`")
        .hosts("A host that lost its place reads the first page for ever, or misses the rest.")
        .probe(
            |cx| with_cursor(cx, &json!("taut-check-no-such-cursor")),
            |cx, seen| {
                verdict((0..lists(cx).len()).try_for_each(|n| {
                    let id = cx.id(i64::try_from(n).unwrap_or(0));
                    // A server without templates may not know the method.
                    if seen.code(&id) == Some(-32601) {
                        Ok(())
                    } else {
                        refused(seen, &id, &[-32602])
                    }
                }))
            },
        ),
        Check::advice(
            "page-cursor-type",
            &["PAG-07", "RPC-18"],
            Revisions::ALL,
            "A cursor that is no string is refused with -32602.",
        )
        .sent("each declared list with the cursor 5")
        .hosts("No host sends it; a server that goes on does not look at what it gets.")
        .probe(
            |cx| with_cursor(cx, &json!(5)),
            |cx, seen| {
                verdict((0..lists(cx).len()).try_for_each(|n| {
                    let id = cx.id(i64::try_from(n).unwrap_or(0));
                    if seen.code(&id) == Some(-32601) {
                        Ok(())
                    } else {
                        refused(seen, &id, &[-32602, -32600])
                    }
                }))
            },
        ),
        Check::must(
            "page-next",
            &["PAG-05", "PAG-02"],
            Revisions::ALL,
            "`nextCursor` is a string or is left out, and the page that it names can be read.",
        )
        .hosts("Hosts that follow it get only a part of the list, or an error.")
        .scan(|cx, all| {
            let mut faults = Vec::new();
            for answer in all.answers() {
                let Some(next) = answer.result().and_then(|result| result.get("nextCursor")) else {
                    continue;
                };
                if answer.method.ends_with("/list") && !next.is_string() {
                    faults.push((format!("nextCursor is {}", kind(next)), answer.line.text()));
                }
            }
            for (method, _, listing) in lists(cx) {
                if let (true, Some(last)) = (listing.lost, listing.pages.last()) {
                    faults.push((
                        format!("the next page of {method} was not answered"),
                        last.to_string(),
                    ));
                }
                if let (Some(error), false) = (&listing.error, listing.pages.is_empty()) {
                    faults.push((
                        format!(
                            "the next page of {method} was refused: {}",
                            short(&error["error"])
                        ),
                        error.to_string(),
                    ));
                }
            }
            Verdict::from_faults(faults)
        }),
        Check::advice(
            "page-ends",
            &["PAG-05"],
            Revisions::ALL,
            "A list that is read page by page comes to an end.",
        )
        .hosts("Hosts read for ever, or give up and show nothing.")
        .scan(|cx, _| {
            let endless = |listing: &Listing| listing.endless.clone();
            let found = lists(cx)
                .into_iter()
                .find_map(|(method, _, listing)| endless(listing).map(|why| (method, why)));
            match found {
                Some((method, why)) => Verdict::fail(format!("{method} has no end: {why}")),
                None => Verdict::Pass,
            }
        }),
        Check::must(
            "tasks-absent",
            &["TSK-13", "RPC-17"],
            Revisions::NOT_1125,
            "`tasks/get` is refused with -32601 where the server has no tasks.",
        )
        .sent("`tasks/get`")
        .hosts("A client that tries tasks believes that they are there.")
        .after(&["rpc-unknown-method", "extension-shape"])
        .probe(
            |cx| {
                if cx.survey.declares("extensions/io.modelcontextprotocol~1tasks") {
                    return Err("the server declares the tasks extension".to_owned());
                }
                if cx.survey.declares("tasks") {
                    return Err(
                        "the server declares tasks, which it may not know to be newer".to_owned()
                    );
                }
                Ok(vec![cx.request(0, "tasks/get", json!({ "taskId": "none" }))])
            },
            |cx, seen| verdict(refused(seen, &cx.id(0), &[-32601])),
        ),
        Check::must(
            "tasks-unknown",
            &["TSK-08", "LIF-17"],
            Revisions::ONLY_1125,
            "An unknown task is refused with -32602.",
        )
        .sent("`tasks/get`, `tasks/result` and `tasks/cancel` for a task that does not exist")
        .hosts("A client polls a task that it lost for ever.")
        .probe(
            |cx| {
                needs(cx, "tasks")?;
                Ok(["tasks/get", "tasks/result", "tasks/cancel"]
                    .iter()
                    .enumerate()
                    .map(|(n, method)| {
                        cx.request(
                            i64::try_from(n).unwrap_or(0),
                            method,
                            json!({ "taskId": "taut-check-no-such-task" }),
                        )
                    })
                    .collect())
            },
            |cx, seen| {
                verdict((0..3).try_for_each(|n| match n {
                    // Not every server that has tasks can cancel them.
                    2 if !cx.survey.declares("tasks/cancel") => refused_somehow(seen, &cx.id(n)),
                    _ => refused(seen, &cx.id(n), &[-32602]),
                }))
            },
        ),
    ]
}

fn with_cursor(cx: &Cx<'_>, cursor: &Value) -> Result<Vec<Step>, String> {
    let lists = lists(cx);
    if lists.is_empty() {
        return Err("the server declares no list".to_owned());
    }
    Ok(lists
        .iter()
        .enumerate()
        .map(|(n, (method, ..))| {
            cx.request(i64::try_from(n).unwrap_or(0), method, json!({ "cursor": cursor }))
        })
        .collect())
}
