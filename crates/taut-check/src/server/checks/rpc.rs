//! JSON-RPC messages and error codes (RPC, ERR).

use serde_json::{Value, json};

use super::{alive, fail, kind, refused, result, short, silent, verdict};
use crate::check::{Check, Revisions, Verdict};
use crate::cx::Cx;
use crate::seen::{Seen, Step, is_response};

/// Lines that are no JSON.
const TORN: [&[u8]; 6] = [
    b"{",
    b"this is no JSON",
    b"{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"ping\",}",
    b"{\"jsonrpc\":\"2.0\",\"id\":79,\"method\":\"ping\"} // comment",
    b"{\"jsonrpc\":\"2.0\",\"id\":80,\"method\":\"ping\"",
    b"{\"jsonrpc\":\"2.0\",\"id\":81,\"method\":\"\xFF\xFE\"",
];

/// How long is listened for an answer that must not come, in milliseconds: it may be behind the barrier's.
pub(super) const QUIET: u64 = 80;

/// Methods that are almost `tools/list` or `ping`.
const ALIKE: [&str; 5] = ["Tools/List", "PING", "tools/list ", "tools/listing", "/tools/list"];

/// A request whose method has the name of a notification that no revision has.
const NOTE: &str = "notifications/taut-check";

/// Methods that no revision has, each with an id.
fn unknown(cx: &Cx<'_>) -> Vec<(Value, &'static str)> {
    let methods = ["taut-check/none", "rpc.discover", "tools/", "resources/none"];
    let numbered = (0..).zip(methods).map(|(n, method)| (cx.id(n), method));
    numbered.chain([(json!("taut-check-unknown"), "prompts/none"), (cx.id(5), NOTE)]).collect()
}

/// JSON that is no message.
fn shapes(cx: &Cx<'_>) -> Vec<String> {
    let ids: Vec<Value> = (0..4).map(|n| cx.id(n)).collect();
    vec![
        "42".to_owned(),
        "\"x\"".to_owned(),
        "null".to_owned(),
        "true".to_owned(),
        "{}".to_owned(),
        "{\"jsonrpc\":\"2.0\",\"id\":NaN,\"method\":\"ping\"}".to_owned(),
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{}}}", ids[0]),
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":null}}", ids[1]),
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":5}}", ids[2]),
    ]
}

pub(super) fn checks() -> Vec<Check> {
    let mut all = messages();
    all.extend(requests());
    all
}

fn messages() -> Vec<Check> {
    vec![
        Check::must("rpc-version", &["RPC-01"], Revisions::ALL,
            "Every message has the member `jsonrpc` with the string \"2.0\".")
            .before()
            .hosts("The TypeScript SDK drops a message without it, and the request runs into its timeout.")
            .after(&["frame-clean"])
            .scan(|_, all| {
                let odd = all.received().filter(|(value, _)| value.is_object() && value["jsonrpc"] != "2.0");
                Verdict::from_faults(odd.map(|(value, frame)| (format!("`jsonrpc` is {}", value["jsonrpc"]), frame.text())).collect())
            }),
        Check::must("rpc-one-of", &["RPC-07"], Revisions::ALL,
            "An answer has a result or an error, not both, and no method.")
            .before()
            .hosts("Strict clients drop it; others take the one they look at first.")
            .after(&["frame-clean"])
            .scan(|_, all| {
                let odd = all.received().filter(|(value, _)| {
                    let (result, error) = (value.get("result").is_some(), value.get("error").is_some());
                    let asks = value.get("method").is_some();
                    value.is_object() && (asks && (result || error) || !asks && result == error)
                });
                Verdict::from_faults(odd.map(|(value, frame)| {
                    let what = if value.get("method").is_some() { "it also has a method" } else { "neither or both" };
                    (format!("{what}: {}", short(value)), frame.text())
                }).collect())
            }),
        Check::must("rpc-result-object", &["RPC-08"], Revisions::ALL,
            "A result is an object, also when it is empty.")
            .before()
            .hosts("`null` for an empty result fails validation in the TypeScript and Python SDKs.")
            .after(&["rpc-one-of"])
            .scan(|_, all| {
                let odd = all.received().filter(|(value, _)| is_response(value) && value.get("result").is_some_and(|result| !result.is_object()));
                Verdict::from_faults(odd.map(|(value, frame)| (format!("the result is {}", kind(&value["result"])), frame.text())).collect())
            }),
        Check::must("rpc-error-shape", &["RPC-09"], Revisions::ALL,
            "An error has an integer `code` and a string `message`.")
            .before()
            .hosts("Clients that cannot read the error drop it, and the request runs into its timeout.")
            .after(&["rpc-one-of"])
            .scan(|_, all| {
                let odd = all.received().filter(|(value, _)| {
                    value.get("error").is_some_and(|error| !error["code"].is_i64() || !error["message"].is_string())
                });
                Verdict::from_faults(odd.map(|(value, frame)| (format!("the error is {}", short(&value["error"])), frame.text())).collect())
            }),
        Check::must("rpc-array", &["RPC-26", "DEP-01"], Revisions::SINCE_0618,
            "A message of the server is an object: there are no batches in this revision.")
            .before()
            .hosts("No client of this revision reads an array, so its answers are lost.")
            .after(&["rpc-batch-refused"])
            .scan(|_, all| {
                let odd = all.frames().filter(|frame| frame.value.as_ref().is_some_and(Value::is_array));
                Verdict::from_faults(odd.map(|frame| ("stdout has an array".to_owned(), frame.text())).collect())
            }),
        Check::must("rpc-once", &["RPC-06", "STD-28"], Revisions::ALL,
            "A plain request is answered once.")
            .sent("one request of each kind that has no side effects, then a short time of silence")
            .hosts("Hosts log an error or drop the session for the second answer.")
            .probe(
                |cx| {
                    let mut steps = vec![Step::Send(cx.harmless_as(&cx.id(0))), Step::Await(cx.id(0))];
                    if cx.survey.declares("tools") {
                        steps.extend([cx.request(1, "tools/list", Value::Null), Step::Await(cx.id(1))]);
                    }
                    steps.push(Step::Listen(60));
                    Ok(steps)
                },
                |cx, seen| {
                    let most = (0..2).map(|n| seen.replies(&cx.id(n)).len()).max().unwrap_or_default();
                    match most > 1 {
                        true => fail(seen, format!("a request was answered {most} times")),
                        false => verdict(alive(seen)),
                    }
                },
            ),
        Check::must("rpc-id-echo", &["RPC-06"], Revisions::ALL,
            "An answer repeats the id of its request, with the same JSON type.")
            .sent("two requests at once, with the ids \"7\" and 7")
            .hosts("Claude Code and supergateway use string ids, most others integers; an id of another type is never matched.")
            .after(&["ping"])
            .probe(
                |cx| {
                    let pair = [json!("7"), json!(7)].map(|id| Step::Send(cx.harmless_as(&id)));
                    Ok(pair.to_vec())
                },
                |_, seen| verdict([json!("7"), json!(7)].iter().try_for_each(|id| result(seen, id).map(|_| ()))),
            ),
        Check::must("rpc-id-methods", &["RPC-06", "RPC-29"], Revisions::ALL,
            "Every kind of request is answered with its own id, also a string or a negative one.")
            .sent("each list, an allowed call, and the first resource, prompt and completion, each with a string and with a negative integer as its id")
            .hosts("Bridges and gateways use string ids; a call whose answer has another id never ends.")
            .after(&["rpc-id-echo", "rpc-id-forms"])
            .probe(
                |cx| {
                    let asked: Vec<Step> = methods(cx).into_iter().map(|(id, method, params)| Step::Send(cx.request_as(&id, method, params))).collect();
                    if asked.is_empty() { Err("the server declares no list".to_owned()) } else { Ok(asked) }
                },
                |cx, seen| verdict(methods(cx).chunks(2).try_for_each(|pair| {
                    let lost = pair.iter().find(|(id, ..)| seen.reply(id).is_none());
                    let refused: Vec<_> = pair.iter().filter(|(id, ..)| seen.code(id).is_some()).collect();
                    match (lost, refused.as_slice()) {
                        (Some((id, ..)), _) => Err(super::unanswered(seen, id)),
                        (None, [(id, method, _)]) => Err(fail(seen, format!("{method} was refused with the id {id}, and served with another"))),
                        _ => Ok(()),
                    }
                })),
            ),
        Check::must("rpc-id-forms", &["RPC-29", "RPC-02", "RPC-06"], Revisions::ALL,
            "0, negative and large integers, the empty string and any other string are ids.")
            .sent("requests with the ids 0, -1, 4294967297, 9007199254740991, \"\", \"0\", and long or odd strings")
            .hosts("0 is the first id of the TypeScript and Python SDKs, so of most hosts.")
            .after(&["rpc-id-echo", "frame-utf8"])
            .probe(
                |cx| Ok(forms().iter().map(|id| Step::Send(cx.harmless_as(id))).collect()),
                |_, seen| verdict(forms().iter().try_for_each(|id| result(seen, id).map(|_| ()))),
            ),
        Check::advice("rpc-id-null", &["RPC-03", "RPC-12"], Revisions::ALL,
            "A message with the id null is no request: it gets no result.")
            .sent("a request with the id null")
            .hosts("An answer with the id null cannot be matched by any host.")
            .probe(
                |cx| Ok(vec![Step::Send(cx.harmless_as(&Value::Null)), Step::Barrier, Step::Listen(QUIET)]),
                |_, seen| {
                    verdict(unusable(seen))
                },
            ),
        Check::advice("rpc-id-type", &["RPC-02", "RPC-16", "RPC-12"], Revisions::ALL,
            "An id that is neither a string nor an integer is refused, or ignored.")
            .sent("requests with the ids true, {} and []")
            .hosts("No host sends them; a server that answers them shows that it does not look at ids, or fails another request.")
            .probe(
                |cx| {
                    let odd = [json!(true), json!({ "a": 1 }), json!([1])];
                    let sent = odd.iter().map(|id| Step::Send(cx.harmless_as(id)));
                    Ok(sent.chain([Step::Barrier, Step::Listen(QUIET)]).collect())
                },
                |_, seen| {
                    let odd = seen.got().find(|value| is_response(value) && value.get("id").is_some_and(|id| id.is_boolean() || id.is_object() || id.is_array()));
                    match odd {
                        Some(odd) => fail(seen, format!("it answered {}", short(odd))),
                        None => verdict(unusable(seen)),
                    }
                },
            ),
        Check::must("rpc-unreadable-id", &["RPC-12", "RPC-13"], Revisions::ALL,
            "When the id of a message cannot be read, the error has no id (or null in old revisions), never another request's id.")
            .sent("a request, then lines that are no JSON")
            .hosts("A wrong id fails a request that has nothing to do with it.")
            .after(&["rpc-once"])
            .probe(
                |cx| {
                    let mut steps = vec![Step::Send(cx.harmless_as(&cx.id(0))), Step::Await(cx.id(0))];
                    steps.extend([b"{\n".to_vec(), b"garbage\n".to_vec()].map(Step::Raw));
                    steps.extend([Step::Barrier, Step::Listen(QUIET)]);
                    Ok(steps)
                },
                |cx, seen| {
                    if seen.replies(&cx.id(0)).len() > 1 {
                        return fail(seen, "the error has the id of the request before");
                    }
                    let known = |id: &Value| id.is_null() || seen.own.iter().any(|own| crate::seen::is_meant(Some(id), own));
                    let odd = seen.got().find(|value| value.get("error").is_some() && value.get("id").is_some_and(|id| !known(id)));
                    match odd {
                        Some(odd) => fail(seen, format!("the error has an id that nobody sent: {}", short(odd))),
                        None => Verdict::Pass,
                    }
                },
            ),
    ]
}

/// Ids of every form. The largest integer is one that every JSON parser reads exactly.
fn forms() -> [Value; 10] {
    let large = [json!(4_294_967_297_i64), json!(9_007_199_254_740_991_i64)];
    let [wide, widest] = large;
    let long = "2f1c9d9e-66c1-4cb2-9d3b-5b7f3a0c6a11/".repeat(4);
    let texts = [json!("ünï-1"), json!("0"), json!(long), json!("a \"quoted\" \\ id")];
    let [odd, zero, long, quoted] = texts;
    [json!(0), json!(-1), json!(""), odd, zero, wide, widest, long, quoted, json!(" Req-ABC ")]
}

/// What came to a message whose id cannot be used: no result, and no error with an id that somebody else may have.
fn unusable(seen: &Seen<'_>) -> Result<(), Verdict> {
    for stray in seen.strays() {
        if super::served(stray) {
            return Err(fail(seen, format!("it got a result: {}", short(stray))));
        }
        if stray.get("id").is_some_and(|id| !id.is_null()) {
            return Err(fail(
                seen,
                format!("the error has an id that nobody sent: {}", short(stray)),
            ));
        }
    }
    alive(seen)
}

/// Requests of several kinds, with ids of several kinds.
fn methods(cx: &Cx<'_>) -> Vec<(Value, &'static str, Value)> {
    let mut all = Vec::new();
    let mut add = |method: &'static str, params: &Value| {
        for id in [json!(format!("taut-check/{method}")), json!(-10 - all.len() as i64)] {
            all.push((id, method, params.clone()));
        }
    };
    super::samples(cx).iter().for_each(|(method, params)| add(method, params));
    all
}

/// No answer to what is broken is fine. One that comes has to have one of these codes: with the id of the message, or
/// without any.
pub(super) fn codes_of_strays(
    cx: &Cx<'_>,
    seen: &Seen<'_>,
    named: &[i64],
    unnamed: &[i64],
) -> Verdict {
    if let Err(verdict) = alive(seen) {
        return verdict;
    }
    for value in seen.got().filter(|value| is_response(value)) {
        let id = value.get("id").unwrap_or(&Value::Null);
        let mine = id.is_null()
            || (0..8).any(|n| *id == cx.id(n))
            || id.as_i64().is_some_and(|id| (77..82).contains(&id));
        if !mine {
            continue;
        }
        let codes = if id.is_null() { unnamed } else { named };
        match value.pointer("/error/code").and_then(Value::as_i64) {
            Some(code) if codes.contains(&code) => {}
            Some(code) => return fail(seen, format!("expected {codes:?}, got {code}")),
            None if value.get("error").is_some() => return super::misshapen(),
            None => return fail(seen, format!("it was served: {}", short(value))),
        }
    }
    Verdict::Pass
}

fn requests() -> Vec<Check> {
    vec![
        Check::must("rpc-notification-silent", &["RPC-11"], Revisions::ALL,
            "A notification is never answered, whatever it says.")
            .sent("unknown notifications, requests without an id, and known notifications with bad params")
            .hosts("An answer without an id is an error in the log of most hosts; some end the session.")
            .silent()
            .probe(
                |cx| Ok([
                    cx.note("notifications/no_such", json!({ "a": 1 })),
                    cx.note("no/such", Value::Null),
                    cx.note("tools/list", cx.request_as(&json!(1), "tools/list", Value::Null)["params"].clone()),
                    cx.note("tools/call", json!({ "name": "taut-check-no-such-tool" })),
                    cx.note("prompts/get", json!({ "name": "taut-check-no-such-prompt" })),
                    cx.note("resources/read", json!({ "uri": "taut-check://none" })),
                    cx.note("completion/complete", json!({})),
                    cx.note("notifications/progress", json!({ "progressToken": "none", "progress": 1 })),
                    cx.note("notifications/progress", json!({ "progress": "no number" })),
                    cx.note("notifications/roots/list_changed", Value::Null),
                    cx.note(cx.harmless(), Value::Null),
                ].into_iter()
                    // supergateway sends it twice. In 2026-07-28 it is gone: `meta-removed-notifications`.
                    .chain((!cx.modern()).then(|| cx.note("notifications/initialized", Value::Null))).collect()),
                |_, seen| verdict(silent(seen)),
            ),
        Check::must("rpc-parse-error", &["RPC-15", "ERR-01"], Revisions::ALL,
            "A line that is no JSON is answered with -32700, or not at all, and the next one is served.")
            .sent("six broken lines, each followed by nothing but the next")
            .hosts("One stray byte from a host's bridge ends a server that gives up here.")
            .after(&["rpc-unreadable-id"])
            .probe(
                |_| {
                    let torn = TORN.iter().map(|line| Step::Raw([line, b"\n" as &[u8]].concat()));
                    Ok(torn.chain([Step::Barrier, Step::Listen(QUIET)]).collect())
                },
                |cx, seen| codes_of_strays(cx, seen, &[-32700], &[-32700]),
            ),
        Check::must("rpc-invalid-request", &["RPC-16", "ERR-01"], Revisions::ALL,
            "JSON that is no message is answered with -32600, or not at all, and the next one is served.")
            .sent("numbers, strings, null, {}, an id that is NaN, and objects without a usable method")
            .hosts("A server that ends here ends with the first odd line of a bridge.")
            .after(&["rpc-unreadable-id"])
            .probe(
                |cx| {
                    let odd = shapes(cx).into_iter().map(|line| Step::Raw(format!("{line}\n").into_bytes()));
                    Ok(odd.chain([Step::Barrier, Step::Listen(QUIET)]).collect())
                },
                // A reader that drops the id cannot tell the two; one that has it can.
                |cx, seen| codes_of_strays(cx, seen, &[-32600, -32602], &[-32600, -32700]),
            ),
        Check::must("rpc-unknown-method", &["RPC-17", "ERR-01"], Revisions::ALL,
            "An unknown method is refused with -32601.")
            .sent("requests for `taut-check/none`, `rpc.discover`, `tools/`, `resources/none`, `notifications/taut-check` and `prompts/none`, the last one with a string as its id")
            .hosts("Hosts probe with methods that a server may not know; any other answer, or none, costs them seconds or the server.")
            .probe(
                |cx| Ok(unknown(cx).into_iter().map(|(id, method)| Step::Send(cx.request_as(&id, method, Value::Null))).collect()),
                |cx, seen| verdict(unknown(cx).iter().try_for_each(|(id, method)| match *method {
                    // A notification with an id is no valid request, either.
                    NOTE => refused(seen, id, &[-32601, -32600]),
                    _ => refused(seen, id, &[-32601]),
                })),
            ),
        Check::must("rpc-method-case", &["RPC-32"], Revisions::ALL,
            "Method names are compared exactly.")
            .sent("requests for `Tools/List`, `PING`, `tools/list ` with a space, `tools/listing` and `/tools/list`")
            .hosts("A server that guesses serves what nobody asked for.")
            .after(&["rpc-unknown-method"])
            .probe(
                |cx| Ok((0..).zip(ALIKE).map(|(n, method)| cx.request(n, method, Value::Null)).collect()),
                |cx, seen| verdict((0..).zip(ALIKE).try_for_each(|(n, _)| refused(seen, &cx.id(n), &[-32601]))),
            ),
        Check::must("rpc-id-reuse", &["RPC-05"], Revisions::MODERN,
            "An id may be used again once its request is answered.")
            .sent("two requests with the same id, one after the other")
            .hosts("A gateway that hands out ids per client uses them again.")
            .probe(
                |cx| Ok(vec![cx.request(0, "server/discover", Value::Null), Step::Await(cx.id(0)), Step::Listen(20),
                    cx.request(0, "server/discover", Value::Null), Step::Barrier]),
                |cx, seen| {
                    let replies = seen.replies(&cx.id(0));
                    match (replies.len(), replies.iter().all(|reply| reply.get("result").is_some())) {
                        (2, true) => Verdict::Pass,
                        (2, false) => fail(seen, "the second request was refused"),
                        _ => alive(seen).err().unwrap_or_else(|| fail(seen, "the second request was not answered")),
                    }
                },
            ),
        Check::must("rpc-later", &["RPC-17", "LIF-12"], Revisions::LEGACY,
            "A method of a later revision is unknown in this session.")
            .weaker(Revisions::BEFORE_0618)
            .sent("`subscriptions/listen` without the `_meta` of 2026-07-28")
            .hosts("A client waits for messages that its revision does not have.")
            .after(&["rpc-unknown-method"])
            .probe(
                |cx| Ok(vec![cx.request(0, "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }))]),
                |cx, seen| verdict(refused(seen, &cx.id(0), &[-32601, -32602, -32600])),
            ),
        Check::must("rpc-removed", &["LIF-18"], Revisions::LEGACY,
            "There is no request `shutdown` or `exit`: -32601.")
            .sent("requests for `shutdown` and `exit`, and the notification `exit`")
            .hosts("A server that takes them for the Language Server Protocol ends in the middle of a session.")
            .after(&["rpc-unknown-method"])
            .probe(
                |cx| Ok(vec![cx.request(0, "shutdown", Value::Null), cx.request(1, "exit", Value::Null), cx.note("exit", Value::Null)]),
                |cx, seen| verdict((0..2).try_for_each(|n| refused(seen, &cx.id(n), &[-32601])).and_then(|()| alive(seen))),
            ),
    ]
}
