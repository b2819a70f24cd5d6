//! What 2026-07-28 does not have any more: methods, notifications and fields (DEP).

use serde_json::{Value, json};

use super::modern::own;
use super::{fail, refused, short, silent, verdict};
use crate::check::{Check, Revisions, Verdict};
use crate::cx::Cx;
use crate::seen::{Seen, Step};

pub(super) fn checks() -> Vec<Check> {
    fn all_refused(cx: &Cx<'_>, seen: &Seen<'_>, count: i64) -> Verdict {
        verdict((0..count).try_for_each(|n| refused(seen, &cx.id(n), &[-32601])))
    }
    vec![
        Check::must("ping-gone", &["PNG-05", "DEP-02"], Revisions::MODERN, "`ping` is gone: -32601.")
            .sent("`ping` with the `_meta` of 2026-07-28")
            .hosts("A client believes that a request of another era was understood.")
            .after(&["rpc-unknown-method"])
            .probe(|cx| Ok(vec![cx.request(0, "ping", Value::Null)]), |cx, seen| all_refused(cx, seen, 1)),
        Check::must("log-gone", &["LOG-08", "DEP-02"], Revisions::MODERN, "`logging/setLevel` is gone: -32601.")
            .sent("`logging/setLevel` with the `_meta` of 2026-07-28")
            .hosts("A client waits for logs that never come.")
            .after(&["rpc-unknown-method"])
            .probe(|cx| Ok(vec![cx.request(0, "logging/setLevel", json!({ "level": "info" }))]), |cx, seen| all_refused(cx, seen, 1)),
        Check::must("resources-gone", &["RES-09", "DEP-02"], Revisions::MODERN, "`resources/subscribe` and `resources/unsubscribe` are gone: -32601.")
            .sent("both with the `_meta` of 2026-07-28")
            .hosts("A client waits for updates that never come.")
            .after(&["rpc-unknown-method"])
            .probe(
                |cx| Ok(vec![cx.request(0, "resources/subscribe", json!({ "uri": "taut-check://x" })), cx.request(1, "resources/unsubscribe", json!({ "uri": "taut-check://x" }))]),
                |cx, seen| all_refused(cx, seen, 2),
            ),
        Check::must("tasks-gone", &["TSX-13", "DEP-02"], Revisions::MODERN, "`tasks/list` and `tasks/result` are gone: -32601.")
            .sent("both with the `_meta` of 2026-07-28")
            .hosts("A client believes that tasks of the older form are there.")
            .after(&["rpc-unknown-method"])
            .probe(
                |cx| Ok(vec![cx.request(0, "tasks/list", Value::Null), cx.request(1, "tasks/result", json!({ "taskId": "x" }))]),
                |cx, seen| all_refused(cx, seen, 2),
            ),
        Check::must("init-gone", &["DEP-02"], Revisions::MODERN, "`initialize` with the `_meta` of 2026-07-28 is refused.")
            .sent("`initialize` with the `_meta` of 2026-07-28")
            .hosts("A client ends up in a mixture of both eras.")
            .fresh(
                |cx| Ok(vec![Step::Open(json!({})), cx.request(0, "initialize", json!({ "protocolVersion": "2026-07-28", "capabilities": {}, "clientInfo": { "name": "taut-check", "version": "1" } })), Step::Await(cx.id(0))]),
                |cx, seen| match seen.reply(&cx.id(0)) {
                    // One that also speaks an older revision may take it for a handshake of that.
                    Some(reply) if reply["result"]["protocolVersion"] == "2026-07-28" => fail(seen, "it agreed on 2026-07-28"),
                    Some(reply) if reply.get("result").is_some() && !cx.survey.dual => fail(seen, "it was served"),
                    Some(_) => Verdict::Pass,
                    None => super::unanswered(seen, &cx.id(0)),
                },
            ),
        Check::must("meta-removed-notifications", &["DEP-03", "RPC-11", "ROO-04"], Revisions::MODERN, "Notifications that are gone are ignored.")
            .after(&["rpc-notification-silent"])
            .sent("initialized, roots/list_changed and tasks/status")
            .hosts("A client that speaks both eras may send them.")
            .silent()
            .probe(
                |cx| Ok(vec![cx.note("notifications/initialized", Value::Null), cx.note("notifications/roots/list_changed", Value::Null),
                    cx.note("notifications/tasks/status", json!({ "taskId": "x" }))]),
                |_, seen| verdict(silent(seen)),
            ),
        Check::advice("meta-removed-fields", &["DEP-06", "ELI-06"], Revisions::MODERN,
            "Fields that are gone are not sent: Tool.execution, capabilities.tasks, elicitationId.")
            .hosts("A client reads a promise into them that the revision does not have.")
            .scan(|_, all| {
                let mut faults = Vec::new();
                for answer in all.answers().filter(|answer| own(answer.params)) {
                    let Some(result) = answer.result() else { continue };
                    let tools = result["tools"].as_array().into_iter().flatten();
                    let asked = result["inputRequests"].as_object().into_iter().flatten();
                    let what = if tools.into_iter().any(|tool| tool.get("execution").is_some()) {
                        "a tool has `execution`"
                    } else if answer.method == "server/discover" && result["capabilities"].get("tasks").is_some() {
                        "capabilities have `tasks`"
                    } else if asked.into_iter().any(|(_, entry)| entry["params"].get("elicitationId").is_some()) {
                        "a question has `elicitationId`"
                    } else {
                        continue;
                    };
                    faults.push((what.to_owned(), answer.line.text()));
                }
                Verdict::from_faults(faults)
            }),
        Check::should("init-names-versions", &["ERA-04"], Revisions::MODERN,
            "A server that speaks only 2026-07-28 names its versions when it refuses `initialize`.")
            .sent("`initialize` for 2025-11-25, as the first message")
            .hosts("A host of an older revision cannot tell its user why it does not connect.")
            .once()
            .fresh(
                |cx| {
                    if cx.survey.dual || cx.survey.opens.len() > 1 {
                        return Err("the server also speaks an older revision".to_owned());
                    }
                    if cx.survey.tried.len() < 2 {
                        return Err("only one revision is checked".to_owned());
                    }
                    Ok(vec![Step::Send(crate::cx::initialize(&cx.id(0), "2025-11-25", &json!({}))), Step::Await(cx.id(0))])
                },
                |cx, seen| match seen.reply(&cx.id(0)) {
                    Some(reply) if reply["error"].to_string().contains("2026-07-28") => Verdict::Pass,
                    Some(reply) => fail(seen, format!("the answer names no version: {}", short(reply))),
                    None => super::unanswered(seen, &cx.id(0)),
                },
            ),
    ]
}
