//! What a client does with an array, and with a wish for a task.

use serde_json::{Value, json};

use super::each;
use crate::check::{Check, Revisions, Verdict};
use crate::client::record::{Life, Note};

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::must(
            "client-batch-received",
            &["RPC-22", "RPC-25"],
            Revisions::ONLY_0326,
            "The client accepts a batch, and answers it with one array.",
        )
        .sent("a batch of two pings and a notification, and one of a notification alone")
        .hosts("A server of 2025-03-26 may send batches, and waits for the answers.")
        .after(&["client-ping", "client-silent"])
        .played(&["legacy-0326"], |played| {
            let answers = |life: &Life| {
                let arrays = life.heard().filter_map(|(_, value)| value.as_array());
                let has = |list: &&Vec<Value>, id: &str| {
                    list.iter().any(|one| one["id"] == id && one.get("result").is_some())
                };
                arrays.into_iter().any(|list| {
                    list.len() == 2 && has(&list, "batch-1") && has(&list, "batch-2")
                })
            };
            let said = |life: &Life| life.said().find(|(_, value)| value.is_array()).map(|(at, _)| at);
            let stayed = |life: &Life| {
                let Some(Note::Said { at, .. }) = said(life).map(|said| &life.notes[said]) else {
                    return false;
                };
                let answered = life.answer(&json!("batch-1")).is_some();
                answered || life.left().is_none_or(|left| left > at + 1000)
            };
            match played.lives().any(|(_, life)| stayed(life) || answers(life)) {
                true => each(played, |_, life| {
                    if life.heard().any(|(_, value)| value.as_array().is_some_and(Vec::is_empty)) {
                        return Some("an empty array came back".to_owned());
                    }
                    (stayed(life) && !answers(life)).then(|| "no array came back".to_owned())
                }),
                false => Verdict::skip("the client ended before it could answer"),
            }
        }),
        Check::advice(
            "client-batch-refused",
            &["RPC-26", "DEP-01"],
            Revisions::STRUCTURED_LEGACY,
            "An array is no message since 2025-06-18: the client carries out nothing of it.",
        )
        .sent("an array with a ping")
        .hosts("A server cannot tell which revision the client speaks.")
        .played(&["array", "array-0618"], |played| {
            each(played, |_, life| {
                let reply = life.answer(&json!("array-1"))?;
                reply.get("result").map(|_| format!("it answered {reply}"))
            })
        }),
        Check::must(
            "client-task-ignored",
            &["TSK-02"],
            Revisions::ONLY_1125,
            "A client without tasks ignores the wish for one, and answers as without it.",
        )
        .sent("`sampling/createMessage` and `elicitation/create` with `task`")
        .hosts("A server that hands every request over as a task gets an error, or a task that nobody runs.")
        .after(&["client-ping", "client-once"])
        .played(&["rude"], |played| each(played, |_, life| {
            let tasks = &life.first("initialize")?.1["params"]["capabilities"]["tasks"]["requests"];
            let asked = [
                ("task-1", "sampling-1", tasks["sampling"].get("createMessage")),
                ("task-2", "elicit-1", tasks["elicitation"].get("create")),
            ];
            asked.iter().filter(|(.., declared)| declared.is_none()).find_map(|(id, plain, _)| {
                let reply = life.answer(&json!(id))?;
                if reply["result"].get("task").is_some() {
                    return Some(format!("tasks are not declared, and {id} became one"));
                }
                // A person may refuse what was asked before.
                let served = life.answer(&json!(plain)).is_some_and(|reply| reply.get("result").is_some());
                let refused = [-32600, -32601, -32602, -32603].iter().any(|code| reply["error"]["code"] == *code);
                (served && refused).then(|| format!("{plain} was served, and with `task` it was refused"))
            })
        })),
    ]
}
