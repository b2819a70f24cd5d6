//! Subscriptions of 2026-07-28 (SUB).

use serde_json::{Value, json};

use super::{alive, fail, refused, short, verdict};
use crate::check::{Check, Revisions, Verdict};
use crate::cx::{Cx, LOG_LEVEL, SUBSCRIPTION};
use crate::process::{Entry, What};
use crate::seen::{Seen, Step, is_meant, is_notification, is_response, messages};

const ACK: &str = "notifications/subscriptions/acknowledged";

/// How long an acknowledged subscription is left alone, in milliseconds: a server in which nothing changes ends it then.
const SETTLE: u64 = 60;

/// Everything that can be listened to.
fn everything(cx: &Cx<'_>) -> Value {
    let uri = cx
        .survey
        .resources
        .items
        .first()
        .map_or_else(|| json!("taut-check://x"), |item| item["uri"].clone());
    json!({ "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": [uri] })
}

fn listen(cx: &Cx<'_>, id: &Value, filter: &Value) -> Step {
    Step::Send(cx.request_as(id, "subscriptions/listen", json!({ "notifications": filter })))
}

/// The ids of three subscriptions.
fn ids(cx: &Cx<'_>) -> [Value; 3] {
    [cx.id(0), json!(format!("listen-{}", cx.base)), json!(0)]
}

fn cancel(cx: &Cx<'_>, id: &Value) -> Step {
    cx.note("notifications/cancelled", json!({ "requestId": id }))
}

/// Whether a filter asks for changes of this uri. It may lie below one that was asked for (RES-10).
fn covers(wanted: &Value, uri: &Value) -> bool {
    let (Some(list), Some(uri)) = (wanted.as_array(), uri.as_str()) else {
        return *wanted != json!(false);
    };
    list.iter().filter_map(Value::as_str).any(|asked| uri.starts_with(asked.trim_end_matches('/')))
}

/// Allowed calls, while a subscription is open or after it: what they change is told, and `listen-unasked` looks at how.
fn calls(cx: &Cx<'_>) -> Vec<Step> {
    let quick =
        cx.survey.calls.iter().filter(|call| call.worked() && call.took_ms < crate::cx::SLOW);
    let calls = (50..).zip(quick.take(10)).flat_map(|(n, call)| {
        let params = json!({ "name": call.tool, "arguments": call.args });
        [cx.request(n, "tools/call", params), Step::Await(cx.id(n))]
    });
    calls.collect()
}

/// The allowed calls with logs and progress, while a subscription is open: `progress-untagged` looks at what comes.
fn told(cx: &Cx<'_>) -> Vec<Step> {
    let slow = cx.survey.short_slow_call().ok();
    let quick =
        cx.survey.calls.iter().filter(|call| call.worked() && call.took_ms < crate::cx::SLOW);
    let calls = (50..).zip(quick.take(20).chain(slow)).flat_map(|(n, call)| {
        let meta = json!({ LOG_LEVEL: "debug", "progressToken": format!("taut-check-listen-{n}") });
        let params = json!({ "name": call.tool, "arguments": call.args, "_meta": meta });
        [cx.request(n, "tools/call", params), Step::Await(cx.id(n))]
    });
    calls.collect()
}

/// Whether the server has anything to listen to. One without may refuse.
fn offers(cx: &Cx<'_>) -> bool {
    ["tools/listChanged", "prompts/listChanged", "resources/listChanged", "resources/subscribe"]
        .iter()
        .any(|flag| cx.survey.declares(flag))
}

/// What came after the cancellation was written. A subscription that the server ended before that is over, too.
fn after_cancellation<'a>(seen: &Seen<'a>) -> Vec<&'a Value> {
    let cancels = |entry: &Entry| match &entry.what {
        What::Sent(bytes) => String::from_utf8_lossy(bytes).contains("notifications/cancelled"),
        _ => false,
    };
    let later = seen.entries.iter().skip_while(|entry| !cancels(entry));
    later.filter_map(Entry::value).flat_map(messages).collect()
}

/// The messages that carry the id of a subscription.
fn tagged<'a>(seen: &Seen<'a>, id: &Value) -> Vec<&'a Value> {
    seen.notifications()
        .filter(|value| value["params"]["_meta"].get(SUBSCRIPTION) == Some(id))
        .collect()
}

/// Why a subscription is not judged that was refused before it was acknowledged: a server may have a limit, or nothing
/// to offer (SUB-12, SUB-13). That a declared method is unknown, or a good filter invalid, is another matter.
pub(super) fn refusal(cx: &Cx<'_>, seen: &Seen<'_>, id: &Value) -> Option<Verdict> {
    let error = seen.reply(id).map(|reply| &reply["error"]).filter(|error| error.is_object())?;
    let wrong = [-32700, -32600, -32601, -32602];
    let may = !offers(cx) || error["code"].as_i64().is_some_and(|code| !wrong.contains(&code));
    let acked = tagged(seen, id).iter().any(|value| value["method"] == ACK);
    let why = || {
        let told = short(error);
        Verdict::Skip(format!("the server refuses the subscription, which it may: {told}"))
    };
    (may && !acked).then(why)
}

/// Passes a server that refuses, which it may; else the acknowledgement of a stream.
fn acknowledged<'a>(
    cx: &Cx<'_>,
    seen: &Seen<'a>,
    id: &Value,
) -> Result<Option<&'a Value>, Verdict> {
    if let Some(ack) = tagged(seen, id).into_iter().find(|value| value["method"] == ACK) {
        return Ok(Some(ack));
    }
    if let Some(refusal) = refusal(cx, seen, id) {
        return Err(refusal);
    }
    match seen.reply(id) {
        Some(reply) => Err(fail(seen, format!("no acknowledgement came, but {}", short(reply)))),
        None => {
            alive(seen)?;
            let other = seen.notifications().find(|value| value["method"] == ACK);
            let what = match other {
                Some(ack) => {
                    format!("the acknowledgement does not carry the id {id}: {}", short(ack))
                }
                None => "no acknowledgement came".to_owned(),
            };
            Err(fail(seen, what))
        }
    }
}

/// Params of `subscriptions/listen` that do not fit its schema.
fn filters() -> [Value; 5] {
    [
        json!({}),
        json!({ "notifications": [] }),
        json!({ "notifications": "all" }),
        json!({ "notifications": { "toolsListChanged": "yes" } }),
        json!({ "notifications": { "resourceSubscriptions": "taut-check://x" } }),
    ]
}

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::must("listen-ack", &["SUB-01", "SUB-03"], Revisions::MODERN,
            "A subscription begins with its acknowledgement, which carries the id of the request with its JSON type.")
            .sent("`subscriptions/listen` with an integer, with a string and with 0 as its id")
            .hosts("A client cannot tell that it listens, or to which stream a change belongs.")
            .after(&["rpc-id-forms", "rpc-interleaved"])
            .probe(
                |cx| {
                    let mut steps = vec![listen(cx, &cx.id(0), &everything(cx)), Step::Hear(ACK)];
                    steps.extend(ids(cx)[1..].iter().flat_map(|id| [listen(cx, id, &json!({ "toolsListChanged": true })), Step::Hear(ACK)]));
                    steps.extend([Step::Barrier, Step::Listen(60)]);
                    steps.extend(ids(cx).iter().map(|id| cancel(cx, id)));
                    Ok(steps)
                },
                |cx, seen| verdict(ids(cx).iter().try_for_each(|id| {
                    let Some(_) = acknowledged(cx, seen, id)? else { return Ok(()) };
                    let first = tagged(seen, id);
                    match first.first().is_some_and(|value| value["method"] == ACK) {
                        true => Ok(()),
                        false => Err(fail(seen, "another message came before the acknowledgement")),
                    }
                })),
            ),
        Check::must("listen-subset", &["SUB-02"], Revisions::MODERN,
            "The acknowledgement names what is honoured: a part of what was asked for, and only what the server can do.")
            .sent("`subscriptions/listen` for everything, then for prompts alone, and the allowed calls")
            .hosts("A client waits for changes that never come.")
            .after(&["listen-ack", "tools-declared", "resources-declared", "prompts-declared"])
            .probe(
                |cx| {
                    let mut steps = vec![listen(cx, &cx.id(0), &everything(cx)), Step::Hear(ACK), listen(cx, &cx.id(1), &json!({ "promptsListChanged": true })), Step::Hear(ACK), Step::Barrier];
                    steps.extend(calls(cx));
                    steps.extend([Step::Listen(60), cancel(cx, &cx.id(0)), cancel(cx, &cx.id(1))]);
                    Ok(steps)
                },
                |cx, seen| verdict((0..2).try_for_each(|n| {
                    let Some(ack) = acknowledged(cx, seen, &cx.id(n))? else { return Ok(()) };
                    let honoured = &ack["params"]["notifications"];
                    let Some(members) = honoured.as_object() else { return Err(fail(seen, "the acknowledgement has no object `notifications`")) };
                    for (name, value) in members {
                        let flag = match name.as_str() {
                            "toolsListChanged" => "tools/listChanged",
                            "promptsListChanged" => "prompts/listChanged",
                            "resourcesListChanged" => "resources/listChanged",
                            "resourceSubscriptions" => "resources/subscribe",
                            _ => continue,
                        };
                        let says_yes = *value == json!(true) || value.as_array().is_some_and(|list| !list.is_empty());
                        if n == 1 && name != "promptsListChanged" && says_yes {
                            return Err(fail(seen, format!("{name} was not asked for")));
                        }
                        if says_yes && !cx.survey.declares(flag) {
                            return Err(fail(seen, format!("{name} is honoured, and {} is not declared", flag.replace('/', "."))));
                        }
                        if *value == json!(false) {
                            return Err(fail(seen, format!("{name} is false; what is not honoured is left out")));
                        }
                    }
                    Ok(())
                })),
            ),
        Check::should("listen-answer", &["SUB-05"], Revisions::MODERN, "A subscription has no answer while it is open.")
            .sent("`subscriptions/listen`, then nothing for a while")
            .hosts("A client takes the answer for the end, and listens again, and again.")
            .after(&["listen-ack"])
            .probe(
                |cx| {
                    if !offers(cx) {
                        return Err("the server declares nothing that changes".to_owned());
                    }
                    Ok(vec![listen(cx, &cx.id(0), &everything(cx)), Step::Hear(ACK), Step::Barrier, Step::Listen(120), Step::Send(cx.harmless_as(&cx.id(1))), Step::Await(cx.id(1)), cancel(cx, &cx.id(0))])
                },
                |cx, seen| {
                    if let Some(refusal) = refusal(cx, seen, &cx.id(0)) {
                        return refusal;
                    }
                    let marker = seen.got().position(|value| is_meant(value.get("id"), &cx.id(1)));
                    let answer = seen.got().position(|value| is_meant(value.get("id"), &cx.id(0)));
                    match (answer, marker) {
                        (Some(answer), Some(marker)) if answer < marker => fail(seen, "it was answered while it was open"),
                        _ => verdict(alive(seen)),
                    }
                },
            ),
        Check::must("listen-cancel", &["SUB-07", "CAN-10"], Revisions::MODERN, "A cancelled subscription is over: nothing more carries its id.")
            .sent("`subscriptions/listen`, its cancellation, then a request and the allowed calls")
            .hosts("A client hears of changes on a stream that it closed.")
            .after(&["listen-ack", "listen-answer"])
            .probe(
                |cx| {
                    let mut steps = vec![listen(cx, &cx.id(0), &everything(cx)), Step::Hear(ACK), Step::Listen(SETTLE), cancel(cx, &cx.id(0)), Step::Barrier,
                        Step::Send(cx.harmless_as(&cx.id(1))), Step::Await(cx.id(1))];
                    steps.extend(calls(cx));
                    steps.push(Step::Listen(120));
                    Ok(steps)
                },
                |cx, seen| {
                    // One that refused it at once never had a subscription to cancel.
                    let acknowledged = tagged(seen, &cx.id(0)).into_iter().any(|value| value["method"] == ACK);
                    let after = after_cancellation(seen);
                    let answer = |value: &&Value| is_response(value) && is_meant(value.get("id"), &cx.id(0));
                    if let Some(reply) = after.iter().copied().find(answer).filter(|_| acknowledged) {
                        return fail(seen, format!("it was answered after it was cancelled: {}", short(reply)));
                    }
                    let told = |value: &&Value| value["method"] == "notifications/cancelled" && value["params"].get("requestId") == Some(&cx.id(0));
                    if after.iter().any(told) {
                        return fail(seen, "the server cancelled it, too, after the client had");
                    }
                    let marker = seen.got().position(|value| is_meant(value.get("id"), &cx.id(1)));
                    let late = seen.got().skip(marker.map_or(usize::MAX, |at| at + 1));
                    match late.into_iter().find(|value| value["params"]["_meta"].get(SUBSCRIPTION) == Some(&cx.id(0))) {
                        Some(value) => fail(seen, format!("it still carried {}", value["method"])),
                        None => verdict(alive(seen)),
                    }
                },
            ),
        Check::advice("listen-filter", &["SUB-11", "RPC-18"], Revisions::MODERN,
            "`subscriptions/listen` without an object `notifications`, or with members of another type in it, is refused with -32602.")
            .sent("`subscriptions/listen` with a good filter; then without one, with a list and with a text for it, and with texts where its members are true or a list")
            .hosts("A client believes that it listens to something.")
            .probe(
                |cx| {
                    let good = [listen(cx, &cx.id(9), &everything(cx)), Step::Hear(ACK), cancel(cx, &cx.id(9))];
                    let bad = filters().into_iter().zip(0..).map(|(params, n)| cx.request(n, "subscriptions/listen", params));
                    Ok(good.into_iter().chain(bad).chain([Step::Barrier, Step::Listen(60)]).collect())
                },
                |cx, seen| {
                    // What is refused whatever it says was refused for another reason.
                    if let Some(refusal) = refusal(cx, seen, &cx.id(9)) {
                        return refusal;
                    }
                    verdict(filters().iter().zip(0..).try_for_each(|(params, n)| match seen.code(&cx.id(n)) {
                        Some(-32601) if !offers(cx) => Ok(()),
                        None if tagged(seen, &cx.id(n)).iter().any(|value| value["method"] == ACK) => {
                            Err(fail(seen, format!("it was acknowledged with the params {}", short(params))))
                        }
                        _ => refused(seen, &cx.id(n), &[-32602]),
                    }))
                },
            ),
        Check::must("listen-unasked", &["SUB-04", "SUB-03", "TOL-25"], Revisions::MODERN, "Changes are told to subscriptions that asked for them, and to nobody else.")
            .hosts("A client drops what it did not ask for.")
            .scan(|_, all| {
                let mut faults = Vec::new();
                for (session, _) in &all.sessions {
                    let listens: Vec<&(usize, Value)> = session.sent.iter().filter(|(_, value)| value["method"] == "subscriptions/listen").collect();
                    for (at, value, frame) in session.received().filter(|(_, value, _)| is_notification(value)) {
                        let member = match value["method"].as_str().unwrap_or_default() {
                            "notifications/tools/list_changed" => "toolsListChanged",
                            "notifications/prompts/list_changed" => "promptsListChanged",
                            "notifications/resources/list_changed" => "resourcesListChanged",
                            "notifications/resources/updated" => "resourceSubscriptions",
                            _ => continue,
                        };
                        let id = value["params"]["_meta"].get(SUBSCRIPTION);
                        let asked = listens.iter().any(|(place, listen)| {
                            let wanted = listen["params"]["notifications"].get(member);
                            *place < at && Some(&listen["id"]) == id && wanted.is_some_and(|wanted| covers(wanted, &value["params"]["uri"]))
                        });
                        if !asked {
                            faults.push((format!("{} belongs to no subscription that asked for it", value["method"]), frame.text()));
                        }
                    }
                }
                Verdict::from_faults(faults)
            }),
        Check::advice("listen-two", &["SUB-06"], Revisions::MODERN, "Two subscriptions may be open, and others are served meanwhile.")
            .sent("two `subscriptions/listen`, then a request")
            .hosts("A second window of the same host hears nothing, or the server hangs.")
            .after(&["listen-ack", "listen-subset"])
            .probe(
                |cx| Ok(vec![listen(cx, &cx.id(0), &everything(cx)), Step::Hear(ACK), listen(cx, &cx.id(1), &everything(cx)), Step::Hear(ACK), Step::Barrier, Step::Listen(60),
                    Step::Send(cx.harmless_as(&cx.id(2))), Step::Await(cx.id(2)), cancel(cx, &cx.id(0)), cancel(cx, &cx.id(1))]),
                |cx, seen| verdict(acknowledged(cx, seen, &cx.id(0)).and_then(|_| acknowledged(cx, seen, &cx.id(1)))
                    .and_then(|_| super::result(seen, &cx.id(2))).map(|_| ())),
            ),
        Check::must("listen-others", &["RPC-06", "SUB-14", "STD-26"], Revisions::MODERN, "All other requests are answered while a subscription is open.")
            .sent("`subscriptions/listen`, then each list, an allowed call, and the first resource, prompt and completion; the allowed calls with a logLevel and a progressToken")
            .hosts("Every host that listens to changes can do nothing else any more.")
            .after(&["listen-ack"])
            .probe(
                |cx| {
                    let mut steps = vec![listen(cx, &cx.id(0), &everything(cx)), Step::Hear(ACK)];
                    steps.extend((10..).zip(super::samples(cx)).flat_map(|(n, (method, params))| [cx.request(n, method, params), Step::Await(cx.id(n))]));
                    steps.extend(told(cx));
                    steps.push(cancel(cx, &cx.id(0)));
                    Ok(steps)
                },
                |cx, seen| verdict((10..).zip(super::samples(cx)).try_for_each(|(n, _)| match seen.reply(&cx.id(n)) {
                    Some(_) => Ok(()),
                    None => Err(super::unanswered(seen, &cx.id(n))),
                })),
            ),
        Check::should("listen-exit", &["STD-17", "SUB-14", "SUB-09"], Revisions::MODERN, "An open subscription does not keep the server alive after its stdin ended.")
            .sent("two `subscriptions/listen`, then the end of stdin")
            .hosts("Every host that listens leaves a process behind.")
            .after(&["frame-exit"])
            .once()
            .fresh(
                |cx| Ok(vec![Step::Open(json!({})), listen(cx, &cx.id(0), &everything(cx)), listen(cx, &cx.id(1), &everything(cx)), Step::Barrier, Step::Close]),
                |_, seen| if seen.gone.is_some() { Verdict::Pass } else { fail(seen, "it still ran when the time was over") },
            ),
        Check::should("listen-end", &["SUB-09"], Revisions::MODERN, "A subscription that the server ends with a result says which one it was.")
            .hosts("A client cannot tell which of its streams is over.")
            .after(&["listen-ack", "listen-answer", "listen-cancel"])
            .scan(|_, all| {
                let mut faults = Vec::new();
                for answer in all.answers().filter(|answer| answer.method == "subscriptions/listen") {
                    let Some(result) = answer.result() else { continue };
                    let tag = result["_meta"].get(SUBSCRIPTION);
                    if tag.is_none() || tag != answer.reply.get("id") || result["resultType"] != "complete" {
                        faults.push(("the result is not complete, or does not carry the id of its subscription".to_owned(), answer.line.text()));
                    }
                }
                Verdict::from_faults(faults)
            }),
    ]
}
