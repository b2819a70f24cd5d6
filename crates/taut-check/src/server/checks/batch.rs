//! Batches: obligatory in 2025-03-26, and no messages in the other revisions (RPC).

use serde_json::{Value, json};

use super::rpc::{QUIET, codes_of_strays};
use super::{alive, fail, silent, verdict};
use crate::check::{Check, Revisions, Verdict};
use crate::cx::Cx;
use crate::process::Entry;
use crate::seen::{Seen, Step, is_response};

/// Batches that are less plain than the first one, each with the id of its last request.
fn batches(cx: &Cx<'_>) -> Vec<(Value, Value)> {
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/no_such" });
    let mut many: Vec<Value> = (11..17).map(|n| cx.harmless_as(&cx.id(n))).collect();
    many.push(cx.harmless_as(&json!(cx.id(11).to_string())));
    let all = vec![
        (json!([cx.harmless_as(&cx.id(10)), note]), cx.id(10)),
        (Value::Array(many), cx.id(16)),
        (json!([cx.harmless_as(&cx.id(20)), 1]), cx.id(20)),
        (json!([note, cx.harmless_as(&cx.id(21))]), cx.id(21)),
    ];
    let kinds: Vec<Value> = kinds(cx)
        .iter()
        .map(|(id, method, params)| cx.request_as(id, method, params.clone()))
        .collect();
    let last = kinds.last().map(|request| request["id"].clone());
    all.into_iter().chain(last.map(|last| (Value::Array(kinds), last))).collect()
}

/// A request of each kind that the server has.
fn kinds(cx: &Cx<'_>) -> Vec<(Value, &'static str, Value)> {
    let all = (30..).zip(super::samples(cx));
    all.map(|(n, (method, params))| (cx.id(n), method, params)).collect()
}

/// A batch with a call that is cancelled, and the ids of the others.
fn cancelled(cx: &Cx<'_>) -> Result<(Value, [Value; 3]), String> {
    let call = cx.survey.short_slow_call()?;
    let others = [json!(""), json!(0), cx.id(1)];
    let slow = cx.request_as(
        &cx.id(0),
        "tools/call",
        json!({ "name": call.tool, "arguments": call.args }),
    );
    let batch = [slow].into_iter().chain(others.iter().map(|id| cx.harmless_as(id)));
    Ok((batch.collect(), others))
}

/// The arrays that came as answers. A server may also put what it sends by itself into one (RPC-23).
fn arrays<'a>(seen: &Seen<'a>) -> Vec<&'a Vec<Value>> {
    let arrays = seen.entries.iter().filter_map(Entry::value).filter_map(Value::as_array);
    let own = |array: &Vec<Value>| {
        !array.is_empty() && array.iter().all(|one| one.get("method").is_some())
    };
    arrays.filter(|array| !own(array)).collect()
}

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::must("rpc-batch", &["RPC-22", "RPC-25"], Revisions::ONLY_0326,
            "A batch is accepted, and answered with one array that has one answer per request.")
            .sent("an array of a request for a method that does not exist, two more and a notification; then an array of one request")
            .hosts("2025-03-26 obliges a server to accept batches; clients of that revision may send them.")
            .probe(
                |cx| Ok(vec![Step::Send(json!([cx.request_as(&cx.id(2), "taut-check/none", Value::Null), cx.harmless_as(&cx.id(0)),
                    { "jsonrpc": "2.0", "method": "notifications/no_such" }, cx.harmless_as(&cx.id(1))])), Step::Await(cx.id(1)),
                    Step::Send(json!([cx.harmless_as(&cx.id(3))])), Step::Await(cx.id(3))]),
                |cx, seen| {
                    if let Err(verdict) = alive(seen) {
                        return verdict;
                    }
                    let arrays = arrays(seen);
                    let alone = |array: &&Vec<Value>| array.iter().any(|one| one.get("id") == Some(&cx.id(3)));
                    let Some(array) = arrays.iter().find(|array| !alone(array)) else { return fail(seen, "no array came back") };
                    if !arrays.iter().any(alone) {
                        return fail(seen, "no array came back for a batch of one request");
                    }
                    let has = |id: Value| array.iter().any(|one| one.get("id") == Some(&id) && one.get("result").is_some());
                    let refused = array.iter().any(|one| one.get("id") == Some(&cx.id(2)) && one.get("error").is_some());
                    match array.len() == 3 && has(cx.id(0)) && has(cx.id(1)) && refused {
                        true => Verdict::Pass,
                        false => fail(seen, "the array has other than one answer per request"),
                    }
                },
            ),
        Check::should("rpc-batch-mixed", &["RPC-25"], Revisions::ONLY_0326,
            "Each request of a batch is answered in its array, whatever stands beside it.")
            .sent("an array of a request and a notification, and the other way round; one of seven requests, two of them with the ids n and \"n\"; one of a request and the number 1; one of each list, an allowed call, and the first resource, prompt and completion")
            .hosts("A client of that revision that sends a batch waits for an answer to each of its requests.")
            .after(&["rpc-batch"])
            .probe(
                |cx| {
                    // One that serves a batch beside other requests may take as long for it as for all its requests.
                    let all = batches(cx).into_iter();
                    Ok(all.flat_map(|(batch, last)| [Step::Send(batch), Step::Await(last)]).chain([Step::Barrier, Step::Listen(QUIET)]).collect())
                },
                |cx, seen| {
                    let arrays = arrays(seen);
                    let answered = |array: &Vec<Value>, id: &Value| array.iter().any(|one| is_response(one) && one.get("id") == Some(id));
                    let together = batches(cx).into_iter().try_for_each(|(batch, _)| {
                        let ids: Vec<&Value> = batch.as_array().into_iter().flatten().filter_map(|one| one.get("id")).collect();
                        match arrays.iter().any(|array| ids.iter().all(|id| answered(array, id))) {
                            true => Ok(()),
                            false => Err(fail(seen, format!("no array answers all requests of {}", super::short(&batch)))),
                        }
                    });
                    // Alone it was served: it is no batch that such a code speaks of then.
                    let refused = kinds(cx).into_iter().find(|(id, ..)| seen.code(id).is_some_and(|code| [-32600, -32601].contains(&code)));
                    verdict(alive(seen).and(together).and_then(|()| match refused {
                        Some((id, method, _)) => Err(fail(seen, format!("{method}, request {id}, is refused in a batch"))),
                        None => Ok(()),
                    }))
                },
            ),
        Check::should("rpc-batch-cancel", &["RPC-25", "RPC-29"], Revisions::ONLY_0326,
            "All requests of a batch are answered in its array, whatever their ids; one that is cancelled takes nothing from the others.")
            .sent("an array of an allowed call that takes at least 300 ms and of requests with the ids \"\", 0 and another; then the cancellation of the call")
            .hosts("A user stops one call, and the host waits for the others until their timeout.")
            .after(&["rpc-batch", "rpc-batch-mixed", "rpc-id-forms"])
            .once()
            .fresh(
                |cx| {
                    let (batch, [_, _, last]) = cancelled(cx)?;
                    let cancel = cx.note("notifications/cancelled", json!({ "requestId": cx.id(0) }));
                    Ok(vec![Step::Open(json!({})), Step::Send(batch), Step::Listen(60), cancel, Step::Await(last), Step::Barrier])
                },
                |cx, seen| {
                    let (_, others) = match cancelled(cx) {
                        Ok(found) => found,
                        Err(why) => return Verdict::skip(why),
                    };
                    let answered = |array: &Vec<Value>, id: &Value| array.iter().any(|one| is_response(one) && one.get("id") == Some(id));
                    let whole = arrays(seen).into_iter().any(|array| others.iter().all(|id| answered(array, id)));
                    verdict(alive(seen).and_then(|()| match whole {
                        true => Ok(()),
                        false => Err(fail(seen, "no array answers the requests that were not cancelled")),
                    }))
                },
            ),
        Check::must("rpc-batch-notifications", &["RPC-25"], Revisions::ONLY_0326,
            "A batch of notifications alone is not answered.")
            .sent("an array of two notifications")
            .hosts("An empty array as an answer is no message.")
            .silent()
            .after(&["rpc-batch"])
            .probe(
                |_| Ok(vec![Step::Send(json!([{ "jsonrpc": "2.0", "method": "notifications/no_such" },
                    { "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 12345 } }]))]),
                |_, seen| {
                    if !arrays(seen).is_empty() {
                        return fail(seen, "an array came back");
                    }
                    verdict(silent(seen))
                },
            ),
        Check::must("rpc-batch-empty", &["RPC-25"], Revisions::ONLY_0326,
            "An empty batch is invalid: one error -32600, and no array.")
            .sent("[]")
            .hosts("No host sends it; a crash on it is what is looked for.")
            .after(&["rpc-batch"])
            .probe(
                |_| Ok(vec![Step::Raw(b"[]\n".to_vec()), Step::Barrier, Step::Listen(QUIET)]),
                |cx, seen| {
                    if !arrays(seen).is_empty() {
                        return fail(seen, "an array came back");
                    }
                    match seen.strays().len() {
                        1 => codes_of_strays(cx, seen, &[-32600], &[-32600]),
                        n => alive(seen).err().unwrap_or_else(|| fail(seen, format!("{n} answers came, one is due"))),
                    }
                },
            ),
        Check::advice("rpc-batch-refused", &["RPC-26", "DEP-01"], Revisions::NOT_0326,
            "An array is no message in this revision: it is refused or dropped, and not carried out.")
            .sent("an array of two requests, and one of a single request")
            .hosts("A gateway that counts requests per line is passed by.")
            .probe(
                |cx| Ok(vec![Step::Raw(format!("{}\n", json!([cx.harmless_as(&cx.id(0)), cx.harmless_as(&cx.id(1))])).into_bytes()),
                    Step::Raw(format!("{}\n", json!([cx.harmless_as(&cx.id(2))])).into_bytes()), Step::Barrier, Step::Listen(QUIET)]),
                |cx, seen| {
                    if let Err(verdict) = alive(seen) {
                        return verdict;
                    }
                    let served = (0..3).any(|n| seen.result(&cx.id(n)).is_some());
                    // JSON-RPC has batches, and this revision says neither yes nor no.
                    match served && cx.revision.as_str() != "2024-11-05" {
                        true => fail(seen, "the requests in it were served"),
                        false => Verdict::Pass,
                    }
                },
            ),
    ]
}
