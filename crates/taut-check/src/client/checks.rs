//! The checks for clients: what a played server can see of them.

use serde_json::{Value, json};

use super::record::{Life, Note, Played};
use crate::check::{Check, Revisions, Verdict};
use crate::cx::{CAPABILITIES, CLIENT_INFO, VERSION};
use crate::schema::objection;
use crate::seen::{is_notification, is_request, is_response, messages};

/// Looks at every life, and fails with the first fault of each.
fn each(played: &Played<'_>, wrong: impl Fn(&'static str, &Life) -> Option<String>) -> Verdict {
    let mut shown = Vec::new();
    let mut first = None;
    for (name, life) in played.lives() {
        if let Some(what) = wrong(name, life) {
            first.get_or_insert(format!("{name}: {what}"));
            shown.extend(life.shown());
        }
    }
    match first {
        Some(what) => Verdict::Fail { what, shown },
        None => Verdict::Pass,
    }
}

/// What is wrong with a message of the client, over all scenarios.
fn every(played: &Played<'_>, wrong: impl Fn(&Value) -> Option<String>) -> Verdict {
    each(played, |_, life| life.heard().flat_map(|(_, value)| messages(value)).find_map(&wrong))
}

pub(crate) fn all() -> Vec<Check> {
    let mut all = lines();
    all.extend(opening());
    all.extend(asked());
    all.extend(modern());
    all
}

fn lines() -> Vec<Check> {
    vec![
        Check::must("client-clean", &["STD-04", "STD-01", "STD-02"], Revisions::ALL,
            "The client writes nothing but messages, each on one line of UTF-8.")
            .hosts("A server that reads line by line drops it, or ends.")
            .played(&[], |played| each(played, |_, life| {
                life.lines().find_map(|(line, value)| match value {
                    None => Some(format!("a line is no JSON: {:.80}", String::from_utf8_lossy(line))),
                    // Whether a batch may come is a question of its own.
                    Some(Value::Object(_) | Value::Array(_)) => None,
                    Some(other) => Some(format!("a line is no message: {other}")),
                })
            })),
        Check::must("client-version-member", &["RPC-01"], Revisions::ALL, "Every message has the member `jsonrpc` with the string \"2.0\".")
            .hosts("Strict servers drop the message.")
            .played(&[], |played| every(played, |value| (value["jsonrpc"] != "2.0").then(|| format!("`jsonrpc` is {}", value["jsonrpc"])))),
        Check::must("client-id-type", &["RPC-02", "RPC-03"], Revisions::ALL, "The id of a request is a string or an integer.")
            .hosts("A server cannot answer it.")
            .played(&[], |played| every(played, |value| {
                let id = value.get("id").filter(|_| is_request(value))?;
                (!id.is_string() && !id.is_i64() && !id.is_u64()).then(|| format!("the id is {id}"))
            })),
        Check::must("client-id-fresh", &["RPC-04"], Revisions::LEGACY, "No id is used twice in a session.")
            .hosts("A server answers the wrong one of two requests.")
            .played(&[], |played| each(played, |_, life| repeated(life, |_, _| true))),
        Check::must("client-id-in-flight", &["RPC-05"], Revisions::MODERN, "No id is used again before its request is answered.")
            .hosts("A server answers the wrong one of two requests.")
            .played(&[], |played| each(played, |_, life| repeated(life, |id, at| {
                !life.said().any(|(place, value)| place < at && value.get("id") == Some(id))
            }))),
        Check::must("client-shape", &["RPC-07", "RPC-08", "RPC-09", "RPC-14"], Revisions::ALL,
            "Every message fits the official JSON schema of its revision.")
            .hosts("A server that validates refuses it.")
            .after(&["client-meta", "client-id-type", "client-version-member"])
            .played(&[], |played| each(played, |_, life| {
                let said = |id: &Value| life.said().map(|(_, value)| value).find(|value| is_request(value) && value.get("id") == Some(id));
                life.heard().filter(|(_, value)| value.is_object()).find_map(|(_, value)| {
                    // The probe and the handshake are judged by checks of their own.
                    let opening = ["server/discover", "initialize"].iter().any(|method| value["method"] == *method);
                    let method = value.get("id").filter(|_| is_response(value)).and_then(said).and_then(|asked| asked["method"].as_str());
                    if opening { None } else { objection(played.revision, value, method) }
                })
            })),
        Check::must("client-progress-token", &["PRG-01", "PRG-02"], Revisions::ALL, "A progressToken is a string or an integer, and no two running requests share one.")
            .hosts("A server reports the progress of one call to another.")
            .played(&[], |played| each(played, |_, life| {
                let token = |value: &Value| value.pointer("/params/_meta/progressToken").cloned();
                let mut open: Vec<(Value, Value)> = Vec::new();
                for (at, value) in life.requests() {
                    open.retain(|(_, id)| !life.said().any(|(place, said)| place < at && said.get("id") == Some(id)));
                    let Some(token) = token(value) else { continue };
                    if !token.is_string() && !token.is_i64() && !token.is_u64() {
                        return Some(format!("the token is {token}"));
                    }
                    if open.iter().any(|(other, _)| *other == token) {
                        return Some(format!("the token {token} belongs to two requests"));
                    }
                    open.push((token, value["id"].clone()));
                }
                None
            })),
        Check::must("client-cancel-own", &["CAN-02", "LIF-16"], Revisions::ALL, "The client cancels only requests of its own, and never `initialize`.")
            .hosts("A server cancels somebody else's call.")
            .played(&[], |played| each(played, |_, life| {
                life.heard().filter(|(_, value)| value["method"] == "notifications/cancelled").find_map(|(at, value)| {
                    let id = &value["params"]["requestId"];
                    let target = life.requests().find(|(place, request)| *place < at && request.get("id") == Some(id));
                    match target {
                        None => Some(format!("it cancelled {id}, which it never asked")),
                        Some((_, request)) if request["method"] == "initialize" => Some("it cancelled initialize".to_owned()),
                        Some(_) => None,
                    }
                })
            })),
        Check::should("client-ends-server", &["STD-18"], Revisions::ALL, "The client ends the server when it ends: it closes stdin, then signals, then kills.")
            .sent("a server that does not end when its stdin ends")
            .hosts("Every session leaves a process behind.")
            .played(&["stubborn", "legacy", "dual"], |played| {
                for scene in &played.scenes {
                    let Some(ended) = scene.ended else { return Verdict::fail(format!("{}: the client did not end in time", scene.name)) };
                    let last = scene.lives.iter().flat_map(|life| &life.notes).filter_map(|note| match note {
                        Note::Alive { at } | Note::Heard { at, .. } | Note::Said { at, .. } => Some(*at),
                        Note::Eof => None,
                    }).max().unwrap_or_default();
                    if last > ended + 5_000 {
                        return Verdict::fail(format!("{}: the server was there {} ms after the client was gone", scene.name, last - ended));
                    }
                }
                Verdict::Pass
            }),
    ]
}

/// The first id that is used a second time, where that counts.
fn repeated(life: &Life, counts: impl Fn(&Value, usize) -> bool) -> Option<String> {
    let mut used: Vec<&Value> = Vec::new();
    for (at, value) in life.requests() {
        let id = &value["id"];
        if used.contains(&id) && counts(id, at) {
            return Some(format!("the id {id} is used twice"));
        }
        used.push(id);
    }
    None
}

fn opening() -> Vec<Check> {
    vec![
        Check::must("client-first", &["LIF-01"], Revisions::LEGACY, "`initialize` comes first; only a probe with `server/discover` may come before it.")
            .hosts("A server refuses what comes before the handshake.")
            .played(&["dual", "legacy", "slow", "pages"], |played| each(played, |_, life| {
                let first = life.heard().find(|(_, value)| value["method"] != "server/discover")?.1;
                (first["method"] != "initialize").then(|| format!("the first message is {}", first["method"]))
            })),
        Check::must("client-initialize", &["LIF-02"], Revisions::LEGACY, "`initialize` has protocolVersion, capabilities and clientInfo with name and version.")
            .hosts("Servers that validate refuse the handshake.")
            .played(&[], |played| each(played, |_, life| {
                let params = &life.first("initialize")?.1["params"];
                let info = &params["clientInfo"];
                let whole = params["protocolVersion"].is_string() && params["capabilities"].is_object() && info["name"].is_string() && info["version"].is_string();
                (!whole).then(|| format!("the params are {params}"))
            })),
        Check::must("client-initialized", &["LIF-08"], Revisions::LEGACY, "After the handshake the client sends `notifications/initialized`.")
            .hosts("Strict servers wait for it and answer nothing.")
            .played(&["dual", "legacy", "legacy-2024", "pages"], |played| each(played, |_, life| {
                life.first("initialize")?;
                life.first("notifications/initialized").is_none().then(|| "it never came".to_owned())
            })),
        Check::should("client-waits", &["LIF-09"], Revisions::LEGACY, "Before the handshake is answered the client sends nothing but pings.")
            .sent("a server that takes a second for each answer")
            .hosts("A server refuses what comes too early.")
            .played(&["slow"], |played| each(played, |_, life| {
                let (begun, opened) = life.first("initialize")?;
                let answered = life.said().find(|(_, value)| value.get("id") == opened.get("id")).map_or(usize::MAX, |(at, _)| at);
                life.heard().filter(|(at, _)| begun < *at && *at < answered).map(|(_, value)| &value["method"])
                    .find(|method| **method != "ping").map(|method| format!("{method} came before the answer"))
            })),
        Check::must("client-batch", &["RPC-24", "RPC-26"], Revisions::ALL, "`initialize` is never in a batch, and batches are sent in 2025-03-26 only.")
            .hosts("Servers of other revisions drop it.")
            .played(&[], |played| each(played, |_, life| {
                life.heard().filter_map(|(_, value)| value.as_array()).find_map(|list| {
                    let opening = list.iter().any(|one| one["method"] == "initialize");
                    (opening || played.revision.as_str() != "2025-03-26").then(|| "a batch came".to_owned())
                })
            })),
        Check::should("client-offer", &["LIF-07"], Revisions::LEGACY, "A client that cannot speak the version it is offered ends the connection.")
            .sent("a server that agrees on 1999-01-01")
            .hosts("Both sides go on in a version that one of them does not know.")
            .played(&["offer"], |played| each(played, |_, life| {
                let begun = life.first("initialize")?.0;
                let more = life.requests().find(|(at, value)| *at > begun && value["method"] != "initialize" && value["method"] != "server/discover");
                more.map(|(_, value)| format!("it went on with {}", value["method"]))
            })),
        Check::must("client-fallback", &["PRB-04", "PRB-05"], Revisions::LEGACY, "A client that probes goes on with `initialize` after any other error than -32022, and after silence.")
            .sent("servers that answer the probe with -32601, with -32602, and not at all")
            .hosts("Every older server that answers otherwise cannot be used.")
            .played(&["legacy", "legacy-odd", "legacy-silent"], |played| {
                let probes = played.lives().any(|(_, life)| life.first("server/discover").is_some());
                let opens = |name: &str| played.scene(name).is_some_and(|scene| scene.lives.iter().any(|life| life.first("initialize").is_some()));
                let missing = ["legacy", "legacy-odd", "legacy-silent"].into_iter().find(|name| !opens(name));
                match missing {
                    Some(name) if probes => Verdict::fail(format!("{name}: initialize never came")),
                    _ => Verdict::Pass,
                }
            }),
    ]
}

fn asked() -> Vec<Check> {
    fn answer(played: &Played<'_>, judge: impl Fn(&Life) -> Option<String>) -> Verdict {
        let asked = played.lives().any(|(_, life)| life.said().any(|(_, value)| value["id"] == "ping-1"));
        match asked {
            true => each(played, |_, life| life.said().any(|(_, value)| value["id"] == "ping-1").then(|| judge(life)).flatten()),
            false => Verdict::skip("the client asked nothing after the handshake, so it was not asked either"),
        }
    }
    /// The code of the answer, where the capability was not declared.
    fn refused(life: &Life, id: &str, capability: &str) -> Option<String> {
        let declared = life.first("initialize")?.1["params"]["capabilities"].get(capability).is_some();
        let code = life.answer(&json!(id)).map(|reply| reply["error"]["code"].clone());
        match code {
            _ if declared => None,
            Some(code) if code == -32601 => None,
            Some(code) => Some(format!("{capability} is not declared, and the answer has the code {code}")),
            None => Some(format!("the request for {capability} was not answered")),
        }
    }
    vec![
        Check::must("client-ping", &["PNG-01", "RPC-06"], Revisions::LEGACY, "The client answers `ping` with an empty result and the same id.")
            .sent("pings with the ids \"ping-1\" and 0")
            .hosts("Servers that ping end the session.")
            .played(&["rude"], |played| answer(played, |life| {
                [json!("ping-1"), json!(0)].iter().find_map(|id| {
                    let reply = life.answer(id);
                    let empty = reply.and_then(|reply| reply["result"].as_object()).is_some_and(|result| result.keys().all(|key| key == "_meta"));
                    (!empty).then(|| format!("ping {id} was answered with {}", reply.map_or("nothing".to_owned(), ToString::to_string)))
                })
            })),
        Check::must("client-unknown-request", &["RPC-17"], Revisions::LEGACY, "The client refuses an unknown request with -32601.")
            .sent("the request `taut-check/none`")
            .hosts("A server waits for the answer for ever.")
            .played(&["rude"], |played| answer(played, |life| {
                let code = life.answer(&json!("none-1")).map(|reply| reply["error"]["code"].clone());
                (code != Some(json!(-32601))).then(|| format!("the answer has the code {}", code.unwrap_or_default()))
            })),
        Check::should("client-roots-undeclared", &["ERR-16"], Revisions::LEGACY, "A client that does not declare roots refuses `roots/list` with -32601.")
            .sent("`roots/list`")
            .hosts("A server takes an empty list for no access.")
            .played(&["rude"], |played| answer(played, |life| refused(life, "roots-1", "roots"))),
        Check::must("client-roots", &["ROO-02"], Revisions::LEGACY, "A client that declares roots answers `roots/list` with file:// addresses.")
            .sent("`roots/list`")
            .hosts("A server cannot tell where it may work.")
            .played(&["rude"], |played| answer(played, |life| {
                life.first("initialize")?.1["params"]["capabilities"].get("roots")?;
                let roots = life.answer(&json!("roots-1")).map(|reply| reply["result"]["roots"].clone()).unwrap_or_default();
                let fits = roots.as_array().is_some_and(|list| list.iter().all(|root| root["uri"].as_str().is_some_and(|uri| uri.starts_with("file://"))));
                (!fits).then(|| format!("the roots are {roots}"))
            })),
        Check::must("client-silent", &["RPC-11", "RPC-21"], Revisions::LEGACY, "The client answers no notification and no answer.")
            .sent("unknown notifications, a cancellation and an answer that belong to nothing")
            .hosts("A server gets answers that it never asked for.")
            .played(&["rude"], |played| answer(played, |life| {
                let asked: Vec<&Value> = life.said().filter(|(_, value)| is_request(value)).filter_map(|(_, value)| value.get("id")).collect();
                let stray = life.heard().map(|(_, value)| value).find(|value| is_response(value) && value.get("id").is_none_or(|id| !asked.contains(&id)));
                stray.map(|stray| format!("it answered {stray}"))
            })),
        Check::must("client-cursor", &["PAG-01", "PAG-03", "PAG-06"], Revisions::ALL, "A client that reads further pages sends the cursor as it got it, also an empty one.")
            .sent("a list of tools in three pages")
            .hosts("A server refuses a cursor that it did not give.")
            .played(&["pages"], |played| each(played, |_, life| {
                let given: Vec<&Value> = life.said().filter_map(|(_, value)| value["result"].get("nextCursor")).collect();
                let lists: Vec<&Value> = life.requests().filter(|(_, value)| value["method"] == "tools/list").map(|(_, value)| value).collect();
                let odd = lists.iter().filter_map(|value| value["params"].get("cursor")).find(|cursor| !given.contains(cursor));
                if let Some(odd) = odd {
                    return Some(format!("the cursor {odd} was never given"));
                }
                let pages = lists.iter().filter(|value| value["params"].get("cursor").is_some()).count();
                let ended_early = pages == 1 && given.len() == 2 && given[1] == "";
                ended_early.then(|| "an empty cursor was taken for the end".to_owned())
            })),
    ]
}

fn modern() -> Vec<Check> {
    vec![
        Check::must("client-meta", &["MET-01"], Revisions::MODERN, "Every request carries the version and the client's capabilities in `_meta`.")
            .hosts("A server has to refuse it with -32602.")
            .played(&[], |played| each(played, |_, life| {
                life.requests().find_map(|(_, value)| {
                    let meta = &value["params"]["_meta"];
                    let whole = meta[VERSION].is_string() && meta[CAPABILITIES].is_object();
                    (!whole).then(|| format!("{} has the `_meta` {meta}", value["method"]))
                })
            })),
        Check::should("client-info", &["MET-03"], Revisions::MODERN, "Every request names the client in `_meta`.")
            .hosts("A server cannot say in its logs who asked.")
            .played(&[], |played| each(played, |_, life| {
                life.requests().find_map(|(_, value)| {
                    let info = &value["params"]["_meta"][CLIENT_INFO];
                    (!info["name"].is_string()).then(|| format!("{} does not name the client", value["method"]))
                })
            })),
        Check::must("client-no-answers", &["STD-22", "RPC-36"], Revisions::MODERN, "A client of 2026-07-28 writes no answers.")
            .hosts("A server never asks, so it drops them.")
            .played(&[], |played| each(played, |_, life| {
                life.heard().map(|(_, value)| value).find(|value| is_response(value)).map(|value| format!("it answered {value}"))
            })),
        Check::must("client-no-handshake", &["PRB-02", "DEP-03"], Revisions::MODERN, "After a good answer to the probe there is no handshake.")
            .hosts("A server ends up in a mixture of both eras.")
            .played(&["dual", "modern"], |played| each(played, |_, life| {
                let odd = life.heard().map(|(_, value)| value).find(|value| value["method"] == "initialize" || is_notification(value) && value["method"] == "notifications/initialized");
                odd.map(|value| format!("{} came", value["method"]))
            })),
        Check::should("client-version-retry", &["PRB-03", "VER-02"], Revisions::MODERN, "After -32022 the client tries again with a version that was offered, and not with `initialize`.")
            .sent("a server that refuses the first version and offers 2026-07-28")
            .hosts("A client gives up on a server that it could speak to.")
            .played(&["modern-version"], |played| {
                let retried = played.lives().map(|(_, life)| life.requests().filter(|(_, value)| value["params"]["_meta"][VERSION] == "2026-07-28").count()).sum::<usize>() > 1;
                let opened = played.lives().any(|(_, life)| life.first("initialize").is_some());
                match (opened, retried) {
                    (true, _) => Verdict::fail("initialize came after -32022"),
                    (false, false) => Verdict::fail("it did not try again"),
                    _ => Verdict::Pass,
                }
            }),
    ]
}
