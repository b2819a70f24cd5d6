//! Ids of calls: 0 and the empty string are ids like any other (RPC).

use serde_json::{Value, json};

use super::{fail, short, verdict};
use crate::check::{Check, Revisions};
use crate::cx::Cx;
use crate::seen::Step;

/// Ids that look like none where a program asks only whether they are there.
fn empty() -> [Value; 2] {
    [json!(0), json!("")]
}

/// The request that is sent with each of these ids: an allowed call, or the first list.
fn asked(cx: &Cx<'_>) -> Result<(&'static str, Value), String> {
    let all = super::samples(cx);
    let call = all.iter().find(|(method, _)| *method == "tools/call");
    call.or_else(|| all.first()).cloned().ok_or_else(|| "the server has no list".to_owned())
}

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::must(
            "rpc-id-call",
            &["RPC-29", "RPC-06"],
            Revisions::ALL,
            "A call with the id 0, or with the empty string, is answered like any other.",
        )
        .sent("an allowed call, or the first list, with the ids 0, \"\" and another")
        .hosts("0 is the first id of some hosts; a server that takes it for none never answers.")
        .after(&["rpc-id-forms", "rpc-id-methods"])
        .once()
        .fresh(
            |cx| {
                let (method, params) = asked(cx)?;
                let send = |id: &Value| Step::Send(cx.request_as(id, method, params.clone()));
                let mut steps = vec![Step::Open(json!({}))];
                steps.extend(empty().iter().flat_map(|id| [send(id), Step::Await(id.clone())]));
                steps.extend([send(&cx.id(0)), Step::Await(cx.id(0)), Step::Barrier]);
                Ok(steps)
            },
            |cx, seen| {
                let served = seen.result(&cx.id(0)).is_some();
                verdict(empty().iter().try_for_each(|id| match seen.reply(id) {
                    None => Err(super::unanswered(seen, id)),
                    Some(reply) if served && reply["error"].is_object() => Err(fail(
                        seen,
                        format!("the id {id} was refused, and another served: {}", short(reply)),
                    )),
                    Some(_) => Ok(()),
                }))
            },
        ),
    ]
}
