//! How a session of the older revisions opens (LIF), and what a server declares.

use serde_json::{Value, json};

use super::{fail, refused, short, verdict};
use crate::check::{Check, Revisions, Verdict};
use crate::cx::{Cx, initialize};
use crate::ours::Revision;
use crate::seen::{Seen, Step, is_request};

/// A version in the answer to `initialize` that a handshake may agree on.
fn is_legacy(version: &Value) -> bool {
    let known = version.as_str().and_then(Revision::parse);
    known.is_some_and(|revision| !revision.is_modern())
}

/// Judges the answer to a version that no server speaks.
fn counter_offer(cx: &Cx<'_>, seen: &Seen<'_>) -> Verdict {
    let Some(reply) = seen.reply(&cx.id(0)) else {
        return super::unanswered(seen, &cx.id(0));
    };
    let offered = &reply["result"]["protocolVersion"];
    match reply.get("result") {
        Some(_) if is_legacy(offered) => Verdict::Pass,
        Some(_) => fail(seen, format!("it agreed on {offered}")),
        // The page of the lifecycle shows such an error as an example.
        None if reply.pointer("/error/data/supported").is_some() => Verdict::Pass,
        None => fail(
            seen,
            format!("it was refused, and no version was offered: {}", short(&reply["error"])),
        ),
    }
}

pub(super) fn checks() -> Vec<Check> {
    let mut all = opening();
    all.extend(declared());
    all
}

fn opening() -> Vec<Check> {
    vec![
        Check::must("init-opens", &["LIF-03", "DIS-01"], Revisions::ALL,
            "The server opens a session in at least one revision.")
            .before()
            .hosts("No host can use it.")
            .after(&["init-result", "rpc-one-of", "rpc-result-object", "frame-clean", "frame-line", "frame-utf8"])
            .scan(|cx, all| match &cx.survey.closed {
                Some(why) if cx.survey.opens.is_empty() => Verdict::Fail {
                    what: why.clone(),
                    shown: all.frames().take(20).map(crate::wire::Frame::text).collect(),
                },
                _ => Verdict::Pass,
            }),
        Check::must("init-result", &["LIF-03"], Revisions::LEGACY,
            "The answer to `initialize` has protocolVersion, capabilities and serverInfo with name and version.")
            .before()
            .hosts("The official SDKs validate it and give up on the server otherwise.")
            .scan(|cx, all| {
                let mut faults = Vec::new();
                for answer in all.answers() {
                    let Some(result) = answer.result().filter(|_| answer.method == "initialize") else { continue };
                    let info = &result["serverInfo"];
                    let what = if !result["protocolVersion"].is_string() {
                        "protocolVersion is no string"
                    } else if !result["capabilities"].is_object() {
                        "capabilities are no object"
                    } else if !info["name"].is_string() || !info["version"].is_string() {
                        "serverInfo has no name or no version"
                    } else if super::lists::misfit(cx, "Implementation", info).is_some() {
                        "a member of serverInfo has the wrong type"
                    } else if result.get("instructions").is_some_and(|text| !text.is_string()) {
                        "instructions are no string"
                    } else {
                        continue;
                    };
                    faults.push((what.to_owned(), answer.line.text()));
                }
                Verdict::from_faults(faults)
            }),
        Check::must("init-offer", &["LIF-05", "ERR-19"], Revisions::LEGACY,
            "A version that the server does not know is answered with one that it does, not with an error.")
            .sent("`initialize` for 1999-01-01")
            .hosts("Every new revision would lock out every older server.")
            .once()
            .fresh(
                |cx| Ok(vec![Step::Send(initialize(&cx.id(0), "1999-01-01", &json!({}))), Step::Await(cx.id(0))]),
                counter_offer,
            ),
        Check::must("init-offer-future", &["LIF-05"], Revisions::LEGACY,
            "A version from the future is answered with one that the server knows, not with an error.")
            .sent("`initialize` for 2099-12-31")
            .hosts("Every new revision would lock out every older server.")
            .after(&["init-offer"])
            .once()
            .fresh(
                |cx| Ok(vec![Step::Send(initialize(&cx.id(0), "2099-12-31", &json!({}))), Step::Await(cx.id(0))]),
                counter_offer,
            ),
        Check::must("init-offer-word", &["LIF-05"], Revisions::LEGACY,
            "A version that is no date is answered with one that the server knows, not with an error.")
            .sent("`initialize` for `latest`")
            .hosts("A version is a text that is compared; a server that reads a date from it ends at the first other one.")
            .after(&["init-offer"])
            .once()
            .fresh(
                |cx| Ok(vec![Step::Send(initialize(&cx.id(0), "latest", &json!({}))), Step::Await(cx.id(0))]),
                counter_offer,
            ),
        Check::must("init-offer-between", &["LIF-05"], Revisions::LEGACY,
            "A version between two that exist is answered with one that the server knows.")
            .sent("`initialize` for 2025-01-15")
            .hosts("A server that only compares with its oldest and newest version agrees to one that neither side speaks.")
            .after(&["init-offer"])
            .once()
            .fresh(
                |cx| Ok(vec![Step::Send(initialize(&cx.id(0), "2025-01-15", &json!({}))), Step::Await(cx.id(0))]),
                counter_offer,
            ),
        Check::should("init-quiet-declared", &["LIF-10"], Revisions::LEGACY,
            "Before `notifications/initialized` the server asks nothing but ping, even of a client that declares much.")
            .sent("`initialize` with roots, sampling and elicitation declared, and nothing for 200 ms")
            .hosts("A client that is not ready drops the request, and the server waits for its answer.")
            .once()
            .fresh(
                |cx| {
                    let caps = json!({ "roots": { "listChanged": true }, "sampling": {}, "elicitation": {} });
                    Ok(vec![Step::Send(initialize(&cx.id(0), cx.revision.as_str(), &caps)), Step::Await(cx.id(0)), Step::Listen(200)])
                },
                |_, seen| match seen.got().find(|value| is_request(value) && value["method"] != "ping") {
                    Some(asked) => fail(seen, format!("it asked {} before the handshake was over", asked["method"])),
                    None => Verdict::Pass,
                },
            ),
        Check::must("init-offer-holds", &["LIF-04", "LIF-05"], Revisions::LEGACY,
            "The version that the server offers is one that it agrees to when it is asked for.")
            .hosts("A client that retries with the offered version never connects.")
            .scan(|cx, all| {
                let mut faults = Vec::new();
                for answer in all.answers().filter(|answer| answer.method == "initialize") {
                    let offered = answer.reply["result"]["protocolVersion"].as_str().unwrap_or_default();
                    let tried = cx.survey.tried.iter().any(|tried| tried == offered);
                    if tried && !cx.survey.opens.iter().any(|opens| opens == offered) {
                        let what = format!("{offered} was offered, and not agreed on when it was asked for");
                        faults.push((what, answer.line.text()));
                    }
                }
                Verdict::from_faults(faults)
            }),
        Check::should("init-offer-newest", &["LIF-05"], Revisions::LEGACY,
            "The version that is offered for an unknown one is the newest that the server has.")
            .hosts("A client of a newer revision is held to the oldest one, without what came since.")
            .after(&["init-offer", "init-offer-holds"])
            .scan(|cx, all| {
                let legacy = |version: &str| is_legacy(&json!(version));
                let newest = cx.survey.opens.iter().filter(|opens| legacy(opens)).max();
                let unknown = all.answers().filter(|answer| {
                    let asked = answer.params["protocolVersion"].as_str();
                    answer.method == "initialize" && asked.is_some_and(|asked| Revision::parse(asked).is_none())
                });
                let older = unknown.filter_map(|answer| {
                    let offered = answer.reply["result"]["protocolVersion"].as_str().filter(|it| legacy(it))?;
                    let newer = newest.filter(|newest| newest.as_str() > offered)?;
                    Some((format!("{offered} was offered, and it also speaks {newer}"), answer.line.text()))
                });
                Verdict::from_faults(older.collect())
            }),
        Check::must("init-modern", &["LIF-06"], Revisions::LEGACY,
            "A handshake for 2026-07-28 is answered with an older version that the server knows.")
            .sent("`initialize` for 2026-07-28")
            .hosts("rmcp 3.8 asks for it in its handshake by default, and goes on in a mixture of both eras.")
            .after(&["init-offer"])
            .once()
            .fresh(
                |cx| Ok(vec![Step::Send(initialize(&cx.id(0), "2026-07-28", &json!({}))), Step::Await(cx.id(0))]),
                |cx, seen| {
                    let Some(reply) = seen.reply(&cx.id(0)) else {
                        return super::unanswered(seen, &cx.id(0));
                    };
                    // One that has -32022 may name its versions with it.
                    let refused = !super::served(reply) && reply.pointer("/error/data/supported").is_none();
                    match reply["result"]["protocolVersion"] == "2026-07-28" {
                        true => fail(seen, "it agreed on 2026-07-28"),
                        false if refused => fail(seen, format!("it was refused, and no version was offered: {}", short(&reply["error"]))),
                        false => Verdict::Pass,
                    }
                },
            ),
        Check::advice("init-params", &["LIF-02", "RPC-18"], Revisions::LEGACY,
            "`initialize` without a protocolVersion, or with a number for it, is refused with -32602.")
            .sent("`initialize` without protocolVersion, then with 5")
            .hosts("No host does it; a server that goes on guesses what was agreed.")
            .once()
            .fresh(
                |cx| {
                    let info = json!({ "name": "taut-check", "version": "1" });
                    let without = json!({ "capabilities": {}, "clientInfo": info });
                    let number = json!({ "protocolVersion": 5, "capabilities": {}, "clientInfo": info });
                    let ask = |n: i64, params: &Value| Step::Send(json!({ "jsonrpc": "2.0", "id": cx.id(n), "method": "initialize", "params": params }));
                    Ok(vec![ask(0, &without), Step::Await(cx.id(0)), ask(1, &number), Step::Await(cx.id(1))])
                },
                |cx, seen| verdict((0..2).try_for_each(|n| match seen.reply(&cx.id(n)) {
                    // A server may end after a handshake that failed.
                    None if n > 0 && seen.died => Ok(()),
                    _ => refused(seen, &cx.id(n), &[-32602, -32600]),
                })),
            ),
        Check::should("init-quiet", &["LIF-10"], Revisions::LEGACY,
            "Before `notifications/initialized` the server sends nothing but pings and logs.")
            .hosts("Hosts that have not registered anything yet drop it, or fail the handshake.")
            .after(&["init-vocabulary", "frame-quiet-notifications"])
            .scan(|_, all| {
                let mut faults = Vec::new();
                for (session, _) in &all.sessions {
                    let ready = session.sent.iter().find(|(_, value)| value["method"] == "notifications/initialized").map(|(at, _)| *at);
                    for (at, value, frame) in session.received() {
                        let method = value["method"].as_str().unwrap_or_default();
                        let early = ready.is_none_or(|ready| at < ready);
                        if early && !method.is_empty() && !["ping", "notifications/message"].contains(&method) {
                            faults.push((format!("{method} came before the session was open"), frame.text()));
                        }
                    }
                }
                Verdict::from_faults(faults)
            }),
        Check::must("init-capabilities", &["LIF-12", "LIF-11", "SAM-01", "SAM-05", "ROO-01", "ELI-01", "ELI-04"], Revisions::LEGACY,
            "The server asks the client only for what the client declared.")
            .weaker(Revisions::BEFORE_0618)
            .hosts("Codex, Gemini CLI and most SDK hosts declare no sampling: the request fails and the tool with it.")
            .after(&["frame-quiet-notifications"])
            .scan(|_, all| {
                let mut faults = Vec::new();
                for (session, _) in &all.sessions {
                    let opened = session.sent.iter().find(|(_, value)| value["method"] == "initialize");
                    let caps = opened.map(|(_, value)| value["params"]["capabilities"].clone()).unwrap_or_default();
                    // Who is told that roots have changed may ask for them, declared or not.
                    let told = session.sent.iter().find(|(_, value)| value["method"] == "notifications/roots/list_changed");
                    let told = told.map_or(usize::MAX, |(at, _)| *at);
                    for (at, value, frame) in session.received().filter(|(_, value, _)| is_request(value)) {
                        let needed = match value["method"].as_str().unwrap_or_default() {
                            "roots/list" if at > told => continue,
                            "roots/list" => "roots",
                            "sampling/createMessage" => "sampling",
                            "elicitation/create" => "elicitation",
                            _ => continue,
                        };
                        if caps.get(needed).is_none() {
                            faults.push((format!("it asked {} of a client without {needed}", value["method"]), frame.text()));
                        } else if let Some(what) = super::fixture::undeclared(&value["method"], &value["params"], &caps) {
                            faults.push((format!("{} {what}", value["method"]), frame.text()));
                        }
                    }
                }
                Verdict::from_faults(faults)
            }),
        Check::must("init-vocabulary", &["LIF-12", "LIF-11"], Revisions::LEGACY,
            "The server sends only requests and notifications that the agreed revision has.")
            .weaker(Revisions::BEFORE_0618)
            .hosts("A client of that revision refuses or drops what it does not know.")
            .after(&["init-capabilities", "frame-quiet-notifications"])
            .scan(|cx, all| {
                let known = |method: &str| {
                    let defined = crate::schema::method_definition(method);
                    defined.is_some_and(|name| crate::schema::defines(cx.revision, name)) && method != "initialize"
                };
                let odd = all.received().filter(|(value, _)| {
                    value["method"].as_str().is_some_and(|method| !known(method) && !may_extend(cx, method))
                });
                Verdict::from_faults(odd.map(|(value, frame)| (format!("{} is not part of this revision", value["method"]), frame.text())).collect())
            }),
    ]
}

/// Whether a message may belong to something that the server declares beside the protocol: an experimental capability
/// or an extension. Names of the protocol's own never do.
pub(super) fn may_extend(cx: &Cx<'_>, method: &str) -> bool {
    let declared = |name: &str| {
        let members = cx.survey.capabilities().get(name).and_then(Value::as_object);
        members.is_some_and(|members| !members.is_empty())
    };
    let extended = cx.survey.capabilities().get("extensions").and_then(Value::as_object);
    let mut extensions = extended.into_iter().flatten().map(|(name, _)| name.as_str());
    crate::schema::method_definition(method).is_none()
        && (declared("experimental")
            || extensions
                .any(|name| name != super::handles::NAME || method == "notifications/tasks"))
}

/// A capability, the method behind it, and what its result has to have in it.
fn declares(cx: &Cx<'_>, seen: &Seen<'_>, capability: &str, member: &str) -> Verdict {
    let declared = cx.survey.declares(capability);
    let Some(reply) = seen.reply(&cx.id(0)) else {
        return super::unanswered(seen, &cx.id(0));
    };
    let served = reply["result"][member].as_array().is_some_and(|list| !list.is_empty());
    match (declared, reply.get("result")) {
        (true, None) => fail(
            seen,
            format!(
                "{capability} is declared, and its list was refused: {}",
                short(&reply["error"])
            ),
        ),
        (false, Some(_)) if served => {
            fail(seen, format!("{capability} is not declared, and there is a list of them"))
        }
        _ => Verdict::Pass,
    }
}

fn declared() -> Vec<Check> {
    vec![
        Check::must("tools-declared", &["TOL-01", "LIF-17", "DIS-05"], Revisions::ALL,
            "A server that has tools declares `tools`, and one that declares it answers `tools/list`.")
            .sent("`tools/list`")
            .hosts("No host asks for tools that are not declared: they are invisible.")
            .after(&["init-result", "discover-result"])
            .probe(|cx| Ok(vec![cx.request(0, "tools/list", Value::Null)]),
                |cx, seen| declares(cx, seen, "tools", "tools")),
        Check::must("resources-declared", &["RES-01", "LIF-17", "DIS-05"], Revisions::ALL,
            "A server that has resources declares `resources`, and one that declares it answers `resources/list`.")
            .sent("`resources/list`")
            .hosts("No host asks for resources that are not declared: they are invisible.")
            .after(&["init-result", "discover-result"])
            .probe(|cx| Ok(vec![cx.request(0, "resources/list", Value::Null)]),
                |cx, seen| declares(cx, seen, "resources", "resources")),
        Check::must("prompts-declared", &["PRM-01", "LIF-17", "DIS-05"], Revisions::ALL,
            "A server that has prompts declares `prompts`, and one that declares it answers `prompts/list`.")
            .sent("`prompts/list`")
            .hosts("No host asks for prompts that are not declared: they are invisible.")
            .after(&["init-result", "discover-result"])
            .probe(|cx| Ok(vec![cx.request(0, "prompts/list", Value::Null)]),
                |cx, seen| declares(cx, seen, "prompts", "prompts")),
        Check::must("init-capability-shape", &["LIF-17"], Revisions::ALL,
            "Each declared capability is an object, and its flags are booleans.")
            .hosts("The official SDKs validate it and give up on the server otherwise.")
            .after(&["init-result", "discover-result"])
            .scan(|cx, all| {
                let mut faults = Vec::new();
                for answer in all.answers() {
                    let Some(result) = answer.result().filter(|_| ["initialize", "server/discover"].contains(&answer.method)) else { continue };
                    for (name, value) in result["capabilities"].as_object().into_iter().flatten() {
                        let flags = ["listChanged", "subscribe"].iter().filter_map(|flag| value.get(*flag));
                        if !value.is_object() || flags.into_iter().any(|flag| !flag.is_boolean()) {
                            faults.push((format!("the capability {name} is {}", short(value)), answer.line.text()));
                        }
                    }
                    let modern = super::modern::own(answer.params);
                    let mut rest = result["capabilities"].clone();
                    // `extension-shape` tells of these.
                    rest.as_object_mut().into_iter().for_each(|members| drop(members.remove("extensions")));
                    let what = super::lists::misfit(cx, "ServerCapabilities", &rest).filter(|_| modern == cx.modern());
                    faults.extend(what.map(|what| (what, answer.line.text())));
                }
                Verdict::from_faults(faults)
            }),
        Check::must("ping", &["PNG-01"], Revisions::LEGACY,
            "`ping` is answered at once with a result, which may be empty.")
            .sent("`ping` without params, with {}, and with `_meta`")
            .hosts("Gemini CLI pings before it lists; hosts that ping to see whether a server lives restart it otherwise.")
            .probe(
                |cx| {
                    let empty = json!({ "jsonrpc": "2.0", "id": cx.id(1), "method": "ping", "params": {} });
                    Ok(vec![cx.request(0, "ping", Value::Null), Step::Send(empty), cx.request(2, "ping", json!({ "_meta": { "x": 1 } }))])
                },
                |cx, seen| verdict((0..3).try_for_each(|n| super::result(seen, &cx.id(n)).map(|_| ()))),
            ),
        Check::must("ping-always", &["PNG-01"], Revisions::LEGACY,
            "`ping` is answered with a result at any time of a session, also after a request that was refused.")
            .hosts("Hosts that ping to see whether a server lives restart it otherwise.")
            .after(&["ping", "frame-once"])
            .scan(|_, all| {
                let mut faults = Vec::new();
                for (session, requests) in &all.sessions {
                    let ready = session.sent.iter().find(|(_, value)| value["method"] == "notifications/initialized").map(|(at, _)| *at);
                    for (at, value, frame) in session.received().filter(|(_, value, _)| value["error"].is_object()) {
                        // The pings between probes are plain ones, with ids of their own.
                        let plain = value["id"].as_i64().is_some_and(|id| id >= crate::server::session::BARRIERS);
                        let asked = requests.before(&value["id"], at).filter(|(place, request)| request["method"] == "ping" && ready.is_some_and(|ready| ready < *place));
                        if plain && asked.is_some() {
                            faults.push((format!("ping was refused: {}", short(&value["error"])), frame.text()));
                        }
                    }
                }
                Verdict::from_faults(faults)
            }),
    ]
}
