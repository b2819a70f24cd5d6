//! Framing and streams (STD).

use serde_json::{Value, json};

use super::{fail, result, short, silent, verdict};
use crate::check::{Check, Revisions, Verdict};
use crate::cx::{Cx, initialize};
use crate::seen::{Seen, Step, is_notification, is_request, is_response};
use crate::wire::Fault;

/// Calls that are under way at once, by the number of their id.
const CALLS: std::ops::Range<i64> = 50..62;

/// What each of them says.
fn said(n: i64) -> String {
    format!("taut-check-{n}")
}

fn echo(cx: &Cx<'_>, call: &crate::cx::Called, n: i64) -> Value {
    let mut args = call.args.clone();
    args[call.echoes.as_deref().unwrap_or_default()] = json!(said(n));
    cx.request_as(&cx.id(n), "tools/call", json!({ "name": call.tool, "arguments": args }))
}

/// What shows that a list with full `_meta` was served otherwise than before, because a request without any came between.
fn remembers(cx: &Cx<'_>, seen: &Seen<'_>) -> Option<String> {
    let typed = |result: &Value| result["resultType"].is_string();
    let lists = super::lists(cx).into_iter().filter(|(.., list)| list.pages.iter().any(typed));
    let methods: Vec<&str> = lists.map(|(method, ..)| method).collect();
    let samples = (53..).zip(super::samples(cx));
    let asked = [(1, "tools/list")].into_iter().chain(samples.map(|(n, (method, _))| (n, method)));
    asked.filter(|(_, method)| methods.contains(method)).find_map(|(n, method)| {
        let reply = seen.reply(&cx.id(n))?;
        match reply.get("result") {
            Some(result) if typed(result) => None,
            Some(_) => Some(format!("after a request without `_meta`, {method} with full `_meta` is answered as one of an older revision")),
            None => Some(format!("after a request without `_meta`, {method} with full `_meta` is refused: {}", short(&reply["error"]))),
        }
    })
}

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::must("frame-line", &["STD-01"], Revisions::ALL,
            "A message is one line of JSON that ends with LF and holds no raw LF.")
            .before()
            .hosts("Every host reads line by line: a message over several lines is lost, and so is one with a Content-Length header.")
            .scan(|_, all| {
                let faults = all.frames().filter_map(|frame| match frame.fault {
                    Some(Fault::ManyLines) => Some(("a message stands on several lines".to_owned(), frame.text())),
                    Some(Fault::Headers) => Some(("a message has a Content-Length header".to_owned(), frame.text())),
                    Some(Fault::Unended) => Some(("the last message has no newline".to_owned(), frame.text())),
                    Some(Fault::NotJson) if super::joined(frame) => Some(("two messages stand on one line".to_owned(), frame.text())),
                    _ => None,
                });
                Verdict::from_faults(faults.collect())
            }),
        Check::must("frame-utf8", &["STD-02"], Revisions::SINCE_0326,
            "All message text is UTF-8, without a byte order mark.")
            .before()
            .hosts("Python hosts raise an error in their read loop; a byte order mark makes the TypeScript SDK drop the line.")
            .scan(|_, all| {
                let faults = all.frames().filter_map(|frame| match frame.fault {
                    Some(Fault::NotUtf8) => Some(("stdout has bytes that are not UTF-8".to_owned(), frame.text())),
                    Some(Fault::Bom) => Some(("a line begins with a byte order mark".to_owned(), frame.text())),
                    _ => None,
                });
                Verdict::from_faults(faults.collect())
            }),
        Check::must("frame-clean", &["STD-03"], Revisions::ALL,
            "Stdout carries nothing but messages: no banner, no log line, no blank line.")
            .before()
            .hosts("Some hosts drop the session at the first such line, others log an error for each; mcp-go and the Go SDK end the connection.")
            .after(&["frame-line", "rpc-batch-empty", "rpc-batch-notifications"])
            .scan(|_, all| {
                let faults = all.frames().filter_map(|frame| match (&frame.value, frame.fault) {
                    (None, Some(Fault::NotJson)) => {
                        let text = frame.text();
                        let what = if text.trim().is_empty() { "a blank line".to_owned() } else { format!("no JSON: {text:.80}") };
                        Some((format!("stdout has {what}"), text))
                    }
                    (Some(value), _) if !may_be_message(value) => {
                        Some((format!("stdout has JSON that is no message: {}", short(value)), frame.text()))
                    }
                    _ => None,
                });
                Verdict::from_faults(faults.collect())
            }),
        Check::must("frame-separators", &["STD-12"], Revisions::ALL,
            "Only LF ends a message: U+2028, U+2029 and U+0085 are ordinary characters.")
            .sent("a request whose `_meta` has these characters unescaped")
            .hosts("A model's text has them now and then; a server that splits there never answers, and the host waits for its timeout.")
            .after(&["ping"])
            .probe(
                |cx| {
                    let mut message = cx.harmless_as(&cx.id(0));
                    message["params"]["_meta"]["example.com/text"] = json!("a\u{2028}b\u{2029}c\u{85}d");
                    Ok(vec![Step::Send(message)])
                },
                |cx, seen| verdict(result(seen, &cx.id(0)).map(|_| ())),
            ),
        Check::must("frame-json", &["STD-01", "RPC-20"], Revisions::ALL,
            "Any JSON on a line is a message: spaces, escapes and the order of members do not matter.")
            .sent("a request with spaces and tabs between tokens, escaped member names and `jsonrpc` last")
            .hosts("The TypeScript SDK writes `jsonrpc` last, Python writes spaces; a server with a hand-written parser fails with one of them.")
            .after(&["ping"])
            .probe(
                |cx| {
                    let params = cx.harmless_as(&cx.id(0))["params"].to_string();
                    let params = if params == "null" { "{}".to_owned() } else { params.replace("\":", "\" :\t") };
                    let (id, method) = (cx.id(0), cx.harmless().replace('i', "\\u0069"));
                    let line = format!("  {{ \"p\\u0061rams\" : {params},\t\"m\\u0065thod\":\"{method}\" , \"id\": {id},\"jsonrpc\" :\"2.0\" }} \n");
                    Ok(vec![Step::Raw(line.into_bytes()), Step::Await(cx.id(0))])
                },
                |cx, seen| verdict(result(seen, &cx.id(0)).map(|_| ())),
            ),
        Check::must("frame-split", &["STD-01", "STD-02"], Revisions::ALL,
            "A message ends at LF, not at the end of a read: it may come in parts, and several may come at once.")
            .sent("one request in three writes, cut inside a character, then two requests in one write")
            .hosts("Claude Code and pi send several messages in one write; long messages arrive in parts from every host.")
            .after(&["ping"])
            .probe(
                |cx| {
                    let mut message = cx.harmless_as(&cx.id(0));
                    message["params"]["_meta"]["example.com/text"] = json!("grün 漢字 🎈");
                    let mut bytes = message.to_string().into_bytes();
                    bytes.push(b'\n');
                    let cut = bytes.iter().position(|byte| *byte == 0xE6).map_or(20, |at| at + 1);
                    let (first, rest) = bytes.split_at(cut);
                    let (second, third) = rest.split_at(4);
                    let pair = format!("{}\n{}\n", cx.harmless_as(&cx.id(1)), cx.harmless_as(&cx.id(2)));
                    Ok(vec![
                        Step::Raw(first.to_vec()), Step::Listen(80), Step::Raw(second.to_vec()),
                        Step::Listen(80), Step::Raw(third.to_vec()), Step::Await(cx.id(0)),
                        Step::Raw(pair.into_bytes()), Step::Await(cx.id(1)), Step::Await(cx.id(2)),
                    ])
                },
                |cx, seen| verdict((0..3).try_for_each(|n| result(seen, &cx.id(n)).map(|_| ()))),
            ),
        Check::should("frame-exit", &["STD-17"], Revisions::ALL,
            "The server exits soon after its stdin ends.")
            .sent("the handshake, an allowed call, a subscription to a resource, one request, then the end of stdin; 8 seconds are allowed")
            .once()
            .hosts("Qwen Code, Continue, Gemini CLI and Hermes leave an orphan behind: they only close stdin, or send one signal.")
            .fresh(
                |cx| {
                    let mut steps = vec![Step::Open(json!({}))];
                    // One whose call has started something may not end any more.
                    let call = cx.survey.call(|call| call.took_ms < crate::cx::SLOW).ok();
                    let call = call.map(|call| cx.request(0, "tools/call", json!({ "name": call.tool, "arguments": call.args })));
                    steps.extend(call.into_iter().flat_map(|call| [call, Step::Await(cx.id(0))]));
                    // Nor one that watches something.
                    let listed = cx.survey.resources.items.first().filter(|_| !cx.modern() && cx.survey.declares("resources/subscribe"));
                    let subscribe = listed.map(|item| cx.request(1, "resources/subscribe", json!({ "uri": item["uri"] })));
                    steps.extend(subscribe.into_iter().flat_map(|subscribe| [subscribe, Step::Await(cx.id(1))]));
                    steps.extend([Step::Barrier, Step::Close]);
                    Ok(steps)
                },
                |_, seen| match seen.gone {
                    Some(_) => Verdict::Pass,
                    None => fail(seen, "it still ran when the time was over"),
                },
            ),
        Check::should("frame-exit-early", &["STD-17"], Revisions::ALL,
            "The server exits when its stdin ends before any message.")
            .sent("the end of stdin, and nothing else")
            .hosts("A host that gives up on a start leaves a process behind otherwise.")
            .after(&["frame-exit"])
            .once()
            .fresh(
                |_| Ok(vec![Step::Close]),
                |_, seen| match seen.gone {
                    Some(_) => Verdict::Pass,
                    None => fail(seen, "it still ran when the time was over"),
                },
            ),
        Check::should("frame-exit-opening", &["STD-17"], Revisions::LEGACY,
            "The server exits when its stdin ends in the middle of the handshake.")
            .sent("`initialize`, and the end of stdin once it is answered")
            .hosts("A host that gives up on a start leaves a process behind otherwise.")
            .after(&["frame-exit", "frame-exit-early"])
            .once()
            .fresh(
                |cx| Ok(vec![Step::Send(initialize(&cx.id(0), cx.revision.as_str(), &json!({}))), Step::Await(cx.id(0)), Step::Close]),
                |_, seen| match seen.gone {
                    Some(_) => Verdict::Pass,
                    None => fail(seen, "it still ran when the time was over"),
                },
            ),
        Check::should("frame-exit-midline", &["STD-17", "STD-14"], Revisions::ALL,
            "The server exits when its stdin ends in the middle of a line.")
            .sent("the handshake, half a request, then the end of stdin")
            .hosts("A host that is killed while it writes leaves a process behind otherwise.")
            .after(&["frame-exit"])
            .once()
            .fresh(
                |cx| {
                    let half = cx.harmless_as(&cx.id(0)).to_string();
                    let half = half.as_bytes()[..half.len() / 2].to_vec();
                    Ok(vec![Step::Open(json!({})), Step::Raw(half), Step::Close])
                },
                |_, seen| match seen.gone {
                    Some(_) => Verdict::Pass,
                    None => fail(seen, "it still ran when the time was over"),
                },
            ),
        Check::should("frame-exit-busy", &["STD-17"], Revisions::ALL,
            "The server exits when its stdin ends while a call is under way.")
            .sent("an allowed call that takes at least 300 ms, and the end of stdin in its middle")
            .hosts("A host that is closed while a tool works leaves a process behind otherwise.")
            .after(&["frame-exit"])
            .once()
            .fresh(
                |cx| {
                    let call = cx.survey.short_slow_call()?;
                    let params = json!({ "name": call.tool, "arguments": call.args });
                    Ok(vec![Step::Open(json!({})), cx.request(0, "tools/call", params), Step::Listen(60), Step::Close])
                },
                |_, seen| match seen.gone {
                    Some(_) => Verdict::Pass,
                    None => fail(seen, "it still ran when the time was over"),
                },
            ),
        Check::must("frame-direction", &["STD-21", "RPC-36", "DEP-04"], Revisions::MODERN,
            "A server sends no requests.")
            .hosts("Clients of 2026-07-28 have no way to answer; a server that waits for an answer hangs.")
            .scan(|_, all| {
                let asked = all.received().filter(|(value, _)| is_request(value));
                Verdict::from_faults(asked.map(|(value, frame)| (format!("the server asked {}", value["method"]), frame.text())).collect())
            }),
        Check::must("frame-kinds", &["STD-23"], Revisions::MODERN,
            "Stdout has only answers, notifications of a running request, and notifications of a subscription.")
            .hosts("A client has to drop everything else, so what the server wanted to say is lost.")
            .scan(|cx, all| {
                const KNOWN: [&str; 8] = ["notifications/progress", "notifications/message",
                    "notifications/cancelled", "notifications/tools/list_changed",
                    "notifications/prompts/list_changed", "notifications/resources/list_changed",
                    "notifications/resources/updated", "notifications/subscriptions/acknowledged"];
                let odd = all.notifications().filter(|(value, _)| {
                    value["method"].as_str().is_none_or(|method| !KNOWN.contains(&method) && !super::init::may_extend(cx, method))
                });
                Verdict::from_faults(odd.map(|(value, frame)| (format!("the server sent {}", value["method"]), frame.text())).collect())
            }),
        Check::must("frame-acknowledged", &["STD-23", "SUB-01"], Revisions::MODERN,
            "An acknowledgement belongs to a subscription that the client asked for.")
            .hosts("A client has no stream that it could belong to.")
            .after(&["listen-ack"])
            .scan(|_, all| {
                let mut faults = Vec::new();
                for (session, _) in &all.sessions {
                    let listens: Vec<&(usize, Value)> = session.sent.iter().filter(|(_, value)| value["method"] == "subscriptions/listen").collect();
                    for (at, value, frame) in session.received().filter(|(_, value, _)| value["method"] == "notifications/subscriptions/acknowledged") {
                        let id = value["params"]["_meta"].get(crate::cx::SUBSCRIPTION);
                        if !listens.iter().any(|(place, listen)| *place < at && id.is_some_and(|id| crate::seen::is_meant(Some(id), &listen["id"]))) {
                            faults.push(("an acknowledgement came, and nobody asked for a subscription".to_owned(), frame.text()));
                        }
                    }
                }
                Verdict::from_faults(faults)
            }),
        Check::must("frame-stateless", &["STD-25", "MET-02"], Revisions::MODERN,
            "Nothing of an earlier request is used for a later one.")
            .sent("requests of each kind that the server has with full `_meta`, each followed by one without any, and the lists with full `_meta` again")
            .hosts("Two clients behind one gateway would get each other's capabilities and identity.")
            .fresh(
                |cx| {
                    let bare = |n: i64, method: &str, params: Value| Step::Send(json!({ "jsonrpc": "2.0", "id": cx.id(n), "method": method, "params": params }));
                    let list = cx.survey.declares("tools").then(|| cx.request(1, "tools/list", Value::Null));
                    let mut steps = vec![Step::Open(json!({})), cx.request(0, "server/discover", Value::Null), Step::Await(cx.id(0))];
                    steps.extend([bare(2, "tools/list", json!({})), Step::Await(cx.id(2))]);
                    // Some servers choose a revision with the first request of a client that is not `server/discover`.
                    steps.extend(list.into_iter().flat_map(|list| [list, Step::Await(cx.id(1))]));
                    for (n, (method, params)) in (3..).zip(super::samples(cx)) {
                        // The same with `_meta` before: it is not remembered for others of its kind.
                        let full = [cx.request(n + 50, method, params.clone()), Step::Await(cx.id(n + 50))];
                        steps.extend(full.into_iter().chain([bare(n, method, params), Step::Await(cx.id(n))]));
                    }
                    Ok(steps)
                },
                |cx, seen| verdict(remembers(cx, seen).map_or(Ok(()), |what| Err(fail(seen, what))).and_then(|()| (2..).map(|n| cx.id(n)).take_while(|id| seen.own.contains(id)).try_for_each(|id| match seen.reply(&id) {
                    None => Err(super::unanswered(seen, &id)),
                    Some(reply) if reply.get("error").is_some() => Ok(()),
                    // Served as a request of an older revision, which it may be.
                    Some(reply) if cx.survey.dual && reply["result"].get("resultType").is_none() => Ok(()),
                    Some(_) => Err(fail(seen, "a request without `_meta` was served as one of 2026-07-28")),
                }))),
            ),
        Check::must("frame-match", &["STD-28", "STD-26"], Revisions::ALL,
            "Every request is answered with its own id, however many are under way.")
            .sent("48 requests in one write, then 12 calls of the allowed tool `echo`, each with another text")
            .hosts("Claude Code sends its first requests together; an answer that is missing costs it the server.")
            .after(&["ping"])
            .probe(
                |cx| {
                    let lines: String = (0..48).map(|n| format!("{}\n", cx.harmless_as(&cx.id(n)))).collect();
                    let mut steps = vec![Step::Raw(lines.into_bytes())];
                    steps.extend((0..48).map(|n| Step::Await(cx.id(n))));
                    if let Ok(call) = cx.survey.echo() {
                        let lines: String = CALLS.map(|n| format!("{}\n", echo(cx, call, n))).collect();
                        steps.push(Step::Raw(lines.into_bytes()));
                        steps.extend(CALLS.map(|n| Step::Await(cx.id(n))));
                    }
                    Ok(steps)
                },
                |cx, seen| verdict((0..48).try_for_each(|n| result(seen, &cx.id(n)).map(|_| ())).and_then(|()| {
                    let crossed = CALLS.filter(|n| seen.own.contains(&cx.id(*n))).find(|n| {
                        let blocks = seen.result(&cx.id(*n)).and_then(|result| result["content"].as_array());
                        let texts: Vec<&str> = blocks.into_iter().flatten().filter_map(|block| block["text"].as_str()).collect();
                        // Only a text that belongs to another call is an answer to that one.
                        { CALLS }.any(|other| other != *n && texts.contains(&said(other).as_str()))
                    });
                    match crossed {
                        Some(n) => Err(fail(seen, format!("request {} got the answer of another", cx.id(n)))),
                        None => Ok(()),
                    }
                })),
            ),
        Check::must("frame-once", &["STD-28", "RPC-06"], Revisions::ALL,
            "A request is answered once, and nothing is answered that was not asked.")
            .before()
            .hosts("Hosts log an error or drop the session for an answer that they do not know.")
            .after(&["frame-match", "rpc-once", "rpc-notification-silent", "rpc-id-echo", "cancel-race", "rpc-id-forms", "cancel-malformed", "cancel-unknown",
                "log-gone", "meta-removed-notifications", "rpc-batch-notifications", "rpc-unreadable-id",
                "listen-answer", "cancel-silent", "cancel-silent-modern", "listen-cancel", "cancel-ids",
                "rpc-batch", "rpc-error-id", "frame-separators", "frame-json", "frame-split", "rpc-id-null", "rpc-id-type",
                "rpc-invalid-request", "rpc-parse-error"])
            .scan(|_, all| {
                let mut faults = Vec::new();
                for (session, requests) in &all.sessions {
                    let mut counted: std::collections::HashMap<String, usize> = std::collections::HashMap::new();
                    for (at, value, frame) in session.received().filter(|(_, value, _)| is_response(value)) {
                        let Some(id) = value.get("id").filter(|id| !id.is_null()) else {
                            // An error may answer what has no id that could be read, and a result a request whose id
                            // is null, which `rpc-id-null` looks at.
                            let asked = session.sent.iter().any(|(place, sent)| {
                                *place < at && is_request(sent) && sent.get("id") == Some(&Value::Null)
                            });
                            if asked && super::served(value) {
                                continue;
                            }
                            if super::served(value) || !unreadable_before(session, at) {
                                faults.push(("an answer without an id belongs to nothing".to_owned(), frame.text()));
                            }
                            continue;
                        };
                        let sent = requests.count(id) + unreadable(session, id) + rounded(session, id);
                        let count = counted.entry(id.to_string()).or_default();
                        *count += 1;
                        if sent == 0 {
                            faults.push((format!("the id {id} was never asked"), frame.text()));
                        } else if *count > sent {
                            faults.push((format!("the id {id} was answered {count} times"), frame.text()));
                        }
                    }
                }
                Verdict::from_faults(faults)
            }),
        Check::must("frame-quiet-notifications", &["STD-03", "RPC-10"], Revisions::ALL,
            "A server's notification has a method that begins with `notifications/`, and no id.")
            .before()
            .hosts("With an id it is a request, and the host answers it with an error.")
            .after(&["frame-direction"])
            .scan(|_, all| {
                let odd = all.received().filter(|(value, _)| {
                    let method = value["method"].as_str().unwrap_or_default();
                    is_request(value) && method.starts_with("notifications/")
                        || is_notification(value) && !method.starts_with("notifications/")
                });
                Verdict::from_faults(odd.map(|(value, frame)| (format!("{} has an id, or has none", value["method"]), frame.text())).collect())
            }),
        Check::advice("frame-empty-lines", &["STD-10"], Revisions::ALL,
            "Blank lines are no messages: nothing is answered.")
            .sent("empty lines and lines of spaces, then a request")
            .hosts("Windows shells and some bridges write them.")
            .silent()
            .probe(
                |_| Ok(vec![Step::Raw(b"\n  \n\t\n".to_vec())]),
                |_, seen| match silent(seen) {
                    Err(verdict) if seen.died || !seen.barrier => verdict,
                    // An error without an id is a fair answer to a line that is no JSON.
                    _ => Verdict::Pass,
                },
            ),
    ]
}

/// How often an id was sent in a message that is no request, such as one without a method.
fn unreadable(session: &crate::seen::Session, id: &Value) -> usize {
    let odd =
        session.sent.iter().filter(|(_, value)| !is_request(value) && value.get("id") == Some(id));
    // What is no JSON may still have an id that can be made out.
    let torn = session.torn.iter().filter(|text| text.contains(&format!("\"id\":{id}")));
    odd.count() + torn.count()
}

/// How often a larger id was sent that many JSON parsers round to this one: `rpc-big-id` tells it (RPC-28).
fn rounded(session: &crate::seen::Session, id: &Value) -> usize {
    let large = |id: &Value| id.as_f64().filter(|id| id.abs() >= 9_007_199_254_740_992.0);
    let Some(given) = large(id) else { return 0 };
    let same = |sent: &Value| sent != id && large(sent) == Some(given);
    session.sent.iter().filter(|(_, value)| value.get("id").is_some_and(same)).count()
}

/// Whether anything was sent before a place that a server may fail to read, so that its error has no id: what is no
/// plain request or notification, a long line, or a large id.
fn unreadable_before(session: &crate::seen::Session, at: usize) -> bool {
    const LARGEST: i64 = 1 << 53;
    const LONG: usize = 60_000;
    let plain = |value: &Value| {
        let small = |id: &Value| id.as_i64().is_some_and(|id| (-LARGEST..=LARGEST).contains(&id));
        value.get("id").is_none_or(|id| id.is_string() || small(id))
            && value["jsonrpc"] == "2.0"
            && value["method"].is_string()
            && value.get("params").is_none_or(Value::is_object)
    };
    let odd = |entry: &crate::process::Entry| match &entry.what {
        crate::process::What::Sent(bytes) => bytes.len() > LONG || bytes.first() == Some(&b'['),
        _ => false,
    };
    !session.torn.is_empty()
        || session.entries.iter().take(at).any(odd)
        || session.sent.iter().any(|(place, value)| *place < at && !plain(value))
}

/// Whether JSON looks like a message: other checks say what is wrong with one that is not quite.
fn may_be_message(value: &Value) -> bool {
    match value {
        Value::Array(list) => !list.is_empty() && list.iter().all(may_be_message),
        Value::Object(members) => {
            ["jsonrpc", "method", "result", "error"].iter().any(|name| members.contains_key(*name))
        }
        _ => false,
    }
}
