//! How a client opens: the handshake, the probe, and what every request of 2026-07-28 carries.

use serde_json::Value;

use super::each;
use crate::check::{Check, Revisions, Verdict};
use crate::client::offers::FUTURE;
use crate::client::record::Life;
use crate::cx::{CAPABILITIES, CLIENT_INFO, VERSION};
use crate::ours::Revision;
use crate::seen::{is_notification, is_request, is_response};

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::must("client-first", &["LIF-01"], Revisions::LEGACY, "`initialize` comes first; only a probe with `server/discover`, or a ping, may come before it.")
            .hosts("A server refuses what comes before the handshake.")
            .played(&["dual", "legacy", "slow", "pages"], |played| each(played, |_, life| {
                // What names its version itself belongs to no session.
                let own = |value: &Value| value["params"]["_meta"].get(VERSION).is_some();
                let before = |value: &Value| value["method"] == "server/discover" || value["method"] == "ping" || own(value);
                let first = life.heard().find(|(at, value)| value["method"].is_string() && !before(value) && !cancels_probe(life, *at, value))?.1;
                if first["method"] != "initialize" {
                    return Some(format!("the first message is {}", first["method"]));
                }
                // A session is opened once.
                let opened = life.said().find(|(_, value)| value["result"].get("protocolVersion").is_some())?.0;
                let again = life.requests().find(|(at, value)| *at > opened && value["method"] == "initialize");
                again.map(|_| "initialize came again after it was answered".to_owned())
            })),
        Check::must("client-refused", &["LIF-01", "LIF-08"], Revisions::LEGACY, "After a handshake that was refused the client does not go on as if it were open.")
            .sent("an error as the answer to `initialize`, from a server of 2026-07-28 only")
            .hosts("A server gets requests of a session that it never opened.")
            .after(&["client-waits"])
            .played(&["modern", "modern-full"], |played| each(played, |_, life| {
                let (told, _) = life.reply(life.first("initialize")?.0).filter(|(_, value)| value.get("error").is_some())?;
                let opening = ["initialize", "server/discover", "ping", "notifications/cancelled"];
                let odd = |value: &Value| {
                    let modern = value["params"]["_meta"].get(VERSION).is_some();
                    value["method"].as_str().is_some_and(|method| !opening.contains(&method)) && !modern
                };
                let (_, value) = life.heard().find(|(at, value)| *at > told && odd(value))?;
                Some(format!("it went on with {}", value["method"]))
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
            .after(&["client-notification-id", "client-clean", "client-waits"])
        .played(&["dual", "legacy", "legacy-2024", "legacy-0326", "legacy-0618", "pages", "slow"], |played| each(played, |name, life| {
                let (begun, opened) = life.first("initialize")?;
                let (told, answer) = life.reply(begun)?;
                // LIF-07: one that cannot speak the version it is offered says nothing more.
                let offered = answer["result"]["protocolVersion"] != opened["params"]["protocolVersion"];
                let left = !life.heard().any(|(at, value)| at > told && !cancels_probe(life, at, value));
                // One that was ended before it could read the answer owes nothing.
                if left && !life.left_after(told, PATIENT) {
                    return None;
                }
                let came = life.first("notifications/initialized");
                let never = came.is_none_or(|(_, value)| value.get("id").is_some());
                // Where the answer takes a second, nobody sends something else at the same time by chance.
                let early = |(at, value): (usize, &Value)| {
                    let method = value["method"].as_str().unwrap_or_default();
                    at > told && came.is_some_and(|(came, _)| at < came) && !["ping", "server/discover", "initialize"].contains(&method)
                };
                if name == "slow" && life.requests().any(early) {
                    return Some("it came after other requests".to_owned());
                }
                // One request may have been sent before the handshake was answered; that is told elsewhere.
                let answers = life.said().filter(|(at, value)| *at > told && is_response(value) && came.is_some_and(|(came, _)| *at < came));
                let own = |id: Option<&Value>| life.requests().any(|(_, one)| one.get("id") == id && one["method"] != "ping");
                if answers.filter(|(_, value)| own(value.get("id"))).count() > 1 {
                    return Some("it came after other requests".to_owned());
                }
                (never && !(offered && left)).then(|| "it never came".to_owned())
            })),
        Check::should("client-waits", &["LIF-09"], Revisions::LEGACY, "Before the handshake is answered the client sends nothing but pings.")
            .sent("a server that takes a second for each answer, and one that leaves the handshake unanswered")
            .hosts("A server refuses what comes too early.")
            .played(&["slow", "mute"], |played| each(played, |name, life| {
                let (begun, _) = life.first("initialize")?;
                let answered = life.reply(begun).map_or(usize::MAX, |(at, _)| at);
                // Who waits no longer may try to open it in another way.
                let other = |value: &Value| value["method"] == "initialize" || value["params"]["_meta"].get(VERSION).is_some();
                let harmless = |value: &Value| is_response(value) || ["ping", "notifications/cancelled"].iter().any(|method| value["method"] == *method);
                let mut early = life.heard().filter(|(at, value)| begun < *at && *at < answered && !harmless(value));
                let (_, odd) = early.find(|(_, value)| name != "mute" || !other(value))?;
                Some(format!("{} came before the answer", odd["method"]))
            })),
        Check::must("client-batch", &["RPC-24", "RPC-26", "DEP-01"], Revisions::ALL, "`initialize` is never in a batch, and batches are sent in 2025-03-26 only.")
            .hosts("Servers of other revisions drop it.")
            .played(&[], |played| each(played, |_, life| {
                life.heard().filter_map(|(_, value)| value.as_array()).find_map(|list| {
                    let opening = list.iter().any(|one| one["method"] == "initialize");
                    (opening || played.revision.as_str() != "2025-03-26").then(|| "a batch came".to_owned())
                })
            })),
        Check::should("client-offer", &["LIF-07"], Revisions::LEGACY, "A client that cannot speak the version it is offered ends the connection.")
            .sent("servers that agree on 1999-01-01, and on a version of the future")
            .after(&["client-waits"])
        .hosts("Both sides go on in a version that one of them does not know.")
            .played(&["offer", "offer-later"], |played| each(played, |_, life| {
                let (begun, _) = life.reply(life.first("initialize")?.0)?;
                if life.left_after(begun, STAYS) {
                    return Some("it stayed".to_owned());
                }
                let more = life.requests().find(|(at, value)| *at > begun && !["initialize", "server/discover", "ping"].iter().any(|method| value["method"] == *method));
                more.map(|(_, value)| format!("it went on with {}", value["method"]))
            })),
        Check::must("client-fallback", &["PRB-04", "PRB-05"], Revisions::LEGACY, "A client that probes goes on with `initialize` after any other error than -32022, and after silence.")
            .sent("servers that answer the probe with -32601, -32602, -32600, -32603, -32000 and 0, and not at all")
            .hosts("Every older server that answers otherwise cannot be used.")
            .after(&["client-batch"])
            .played(FALLS_BACK, |played| {
                let probes = played.lives().any(|(_, life)| life.first("server/discover").is_some());
                let opens = |name: &str| played.scene(name).is_some_and(|scene| scene.lives.iter().any(|life| life.first("initialize").is_some()));
                let missing = FALLS_BACK.iter().copied().find(|name| !opens(name));
                match missing {
                    // It may wait for longer than we do.
                    Some("legacy-silent") if probes && !played.ended.contains(&"legacy-silent") => {
                        Verdict::skip("the client waited for an answer to its probe for longer than this check")
                    }
                    Some(name) if probes => Verdict::fail(format!("{name}: initialize never came")),
                    _ => Verdict::Pass,
                }
            }),
        Check::advice("client-fallback-exit", &["PRB-07"], Revisions::LEGACY, "A client whose probe ends the server starts it again, and sends `initialize`.")
            .sent("a server that ends at `server/discover`")
            .hosts("Servers on rmcp that know no probe end at it.")
            .after(&["client-batch"])
            .played(&["legacy", "legacy-exits"], |played| {
                let probes = played.scene("legacy").is_some_and(|scene| scene.lives.iter().any(|life| life.first("server/discover").is_some()));
                let opens = played.scene("legacy-exits").is_some_and(|scene| scene.lives.iter().any(|life| life.first("initialize").is_some()));
                match probes {
                    true if !opens => Verdict::fail("legacy-exits: initialize never came"),
                    _ => Verdict::Pass,
                }
            }),
        Check::must("client-notification-id", &["RPC-10", "LIF-08"], Revisions::ALL, "A notification has no id.")
            .hosts("A server answers it, or refuses it as an unknown request.")
            .played(&[], |played| super::every(played, |value| {
                let method = value["method"].as_str()?;
                (method.starts_with("notifications/") && value.get("id").is_some()).then(|| format!("{method} has an id"))
            })),
        Check::must("client-capabilities", &["LIF-12"], Revisions::STRUCTURED_LEGACY, "The client asks only for what the server declares.")
            .sent("servers that declare tools and nothing else, and one with resources and no subscriptions")
            .hosts("A server refuses it; a strict one ends.")
            .after(&["client-initialize"])
            .played(&[], |played| each(played, |_, life| undeclared(life, played.revision))),
        Check::should("client-capabilities-old", &["LIF-11"], Revisions::BEFORE_0618, "The client asks only for what the server declares.")
            .sent("a server that declares tools and nothing else")
            .hosts("A server refuses it; a strict one ends.")
            .after(&["client-initialize"])
            .played(&[], |played| each(played, |_, life| undeclared(life, played.revision))),
        Check::must("client-vocabulary", &["LIF-12", "LIF-11", "LIF-18", "DEP-02", "DEP-03", "CAN-09", "TSX-13"], Revisions::ALL, "The client sends only requests and notifications that the revision has, and that clients send.")
            .weaker(Revisions::BEFORE_0618)
            .hosts("A server refuses a request that it does not know, and drops a notification.")
            .after(&["client-no-handshake", "client-capabilities", "client-capabilities-old"])
            .played(&[], |played| each(played, |_, life| {
                // A probe comes before the handshake, or the server is asked again once it has no answers any more.
                let opened = life.first("notifications/initialized").map_or(usize::MAX, |(at, _)| at);
                let served = |at: usize| life.reply(at).is_some_and(|(_, answer)| answer.get("result").is_some());
                let begun = opened != usize::MAX && life.first("initialize").is_some_and(|(at, _)| served(at));
                let probe = life.requests().find(|(at, value)| begun && *at > opened && value["method"] == "server/discover" && !served(*at));
                let probe = probe.filter(|_| !played.revision.is_modern() && life.first("server/discover").is_none_or(|(at, _)| at > opened));
                if probe.is_some() {
                    return Some("server/discover is not part of this revision".to_owned());
                }
                life.heard().flat_map(|(_, value)| crate::seen::messages(value)).find_map(|value| {
                    let method = value["method"].as_str()?;
                    let modern = value["params"]["_meta"].get(VERSION).is_some();
                    if ["shutdown", "exit", "$/cancelRequest"].contains(&method) {
                        return Some(format!("there is no {method} in this protocol"));
                    }
                    if OF_SERVERS.contains(&method) {
                        return Some(format!("{method} is what servers send"));
                    }
                    let areas = ["tools/", "prompts/", "resources/", "completion/", "logging/", "subscriptions/"];
                    let foreign = is_request(value) && areas.iter().any(|area| method.starts_with(area));
                    let Some(defined) = crate::schema::method_definition(method) else {
                        return foreign.then(|| format!("there is no {method} in this protocol"));
                    };
                    // A probe and a handshake belong to no session; names of others are no names of the protocol.
                    let opening = ["initialize", "server/discover", "notifications/cancelled"].contains(&method);
                    let other = is_request(value) && modern != played.revision.is_modern();
                    (!opening && !other && !crate::schema::defines(played.revision, defined)).then(|| format!("{method} is not part of this revision"))
                })
            })),
    ]
}

/// The scenarios in which a probe shows that the server is an older one.
const FALLS_BACK: &[&str] = &[
    "legacy",
    "legacy-odd",
    "legacy-invalid",
    "legacy-custom",
    "legacy-internal",
    "legacy-zero",
    "legacy-silent",
];

/// How long a client stays that has read an answer and has nothing more to say, in milliseconds.
const PATIENT: u64 = 3_000;

/// How long a client may stay with a server whose version it cannot speak, in milliseconds: it may have to ask a person.
const STAYS: u64 = 12_000;

/// The handshake that came although it was not due. Who waits no longer for the answer to its probe may try one, and so may
/// who probes only after its handshake was refused.
fn handshake(life: &Life) -> Option<String> {
    let probe = life.first("server/discover");
    let odd = |(at, value): &(usize, &Value)| {
        let done = is_notification(value) && value["method"] == "notifications/initialized";
        let is_handshake = done || value["method"] == "initialize";
        let is_odd = match probe {
            Some((place, _)) if place < *at => {
                life.reply(place).is_some_and(|(answered, _)| answered < *at)
            }
            Some(_) => done,
            None => done || *at > 0,
        };
        is_handshake && is_odd
    };
    life.heard().find(odd).map(|(_, value)| format!("{} came", value["method"]))
}

/// What the client does that nobody declares.
fn undeclared(life: &Life, revision: Revision) -> Option<String> {
    let (opened, opening) = life.first("initialize")?;
    let changed = life.first("notifications/roots/list_changed").is_some();
    if changed && opening["params"]["capabilities"]["roots"]["listChanged"] != true {
        return Some("it tells of changed roots, and does not declare that".to_owned());
    }
    let answer = life.reply(opened).map(|(_, answer)| &answer["result"]["capabilities"])?;
    let areas = [
        ("prompts/", "prompts"),
        ("resources/", "resources"),
        ("logging/", "logging"),
        // Before 2025-11-25 there are no tasks; that is told elsewhere.
        ("tasks/", if revision == Revision::V2025_11_25 { "tasks" } else { "tools" }),
        // Before 2025-03-26 there is no such capability.
        ("completion/", if revision == Revision::V2024_11_05 { "tools" } else { "completions" }),
    ];
    life.requests().filter(|(at, _)| *at > opened).find_map(|(_, value)| {
        let method = value["method"].as_str()?;
        // In the older revisions nobody knows the member.
        if value["params"].get("task").is_some() && revision == Revision::V2025_11_25 {
            return Some(format!("{method} asks for a task, of a server that declares none"));
        }
        let has = |name: &str| answer.get(name).is_some();
        let missing = areas.iter().find(|(area, name)| method.starts_with(area) && !has(name));
        if let Some((_, name)) = missing {
            return Some(format!("{method} was asked of a server that does not declare {name}"));
        }
        let subscribes = ["resources/subscribe", "resources/unsubscribe"].contains(&method);
        (subscribes && answer["resources"]["subscribe"] != true)
            .then(|| format!("{method} was asked of a server that declares no subscriptions"))
    })
}

/// What only servers send.
const OF_SERVERS: [&str; 10] = [
    "notifications/message",
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/elicitation/complete",
    "notifications/subscriptions/acknowledged",
    "sampling/createMessage",
    "elicitation/create",
    "roots/list",
];

/// Whether a message cancels a probe that was sent before it, which a client does that waited long enough (TMO-02).
fn cancels_probe(life: &Life, at: usize, value: &Value) -> bool {
    let mut probes =
        life.requests().filter(|(place, one)| *place < at && one["method"] == "server/discover");
    value["method"] == "notifications/cancelled"
        && probes.any(|(_, probe)| probe.get("id") == value["params"].get("requestId"))
}

/// The requests that belong to 2026-07-28. A handshake does not, nor what follows it: `client-no-handshake` judges
/// whether it may come.
fn modern_requests(life: &Life) -> impl Iterator<Item = &Value> {
    life.requests().map(|(_, value)| value).take_while(|value| value["method"] != "initialize")
}

pub(super) fn modern() -> Vec<Check> {
    vec![
        Check::must("client-meta", &["MET-01"], Revisions::MODERN, "Every request carries the version and the client's capabilities in `_meta`.")
            .hosts("A server has to refuse it with -32602.")
            .played(&[], |played| each(played, |_, life| {
                let requests = modern_requests(life);
                // One that is no request is told elsewhere.
                let noted = |value: &&Value| value["method"].as_str().is_some_and(|it| it.starts_with("notifications/"));
                requests.filter(|value| !noted(value)).find_map(|value| {
                    let meta = &value["params"]["_meta"];
                    let whole = meta[VERSION].is_string() && meta[CAPABILITIES].is_object();
                    (!whole).then(|| format!("{} has the `_meta` {meta}", value["method"]))
                })
            })),
        Check::should("client-info", &["MET-03"], Revisions::MODERN, "Every request names the client and its version in `_meta`.")
            .hosts("A server cannot say in its logs who asked.")
            .after(&["client-meta", "client-notification-id"])
        .played(&[], |played| each(played, |_, life| {
                modern_requests(life).find_map(|value| {
                    let info = &value["params"]["_meta"][CLIENT_INFO];
                    let whole = info["name"].is_string() && info["version"].is_string();
                    (!whole).then(|| format!("{} names the client as {info}", value["method"]))
                })
            })),
        Check::must("client-no-answers", &["STD-22", "RPC-36", "DEP-04"], Revisions::MODERN, "A client of 2026-07-28 writes no answers.")
            .hosts("A server never asks, so it drops them.")
            .played(&[], |played| each(played, |_, life| {
                life.heard().map(|(_, value)| value).find(|value| is_response(value)).map(|value| format!("it answered {value}"))
            })),
        Check::should("client-no-handshake", &["PRB-02", "DEP-03"], Revisions::MODERN, "After a good answer to the probe there is no handshake.")
            .hosts("A server ends up in a mixture of both eras.")
            .played(&["dual", "modern", "modern-full"], |played| each(played, |_, life| handshake(life))),
        Check::should("client-version-chosen", &["PRB-02", "VER-02"], Revisions::MODERN, "After the answer to its probe the client names a version that the server offers, and that the client can know.")
            .sent("a version of the future, 2026-07-28 and 2025-11-25, in this order")
            .hosts("A server refuses every request.")
            .after(&["client-meta"])
            .played(&[], |played| each(played, |_, life| {
                let (at, told) = life.said().find(|(_, value)| value["result"]["supportedVersions"].is_array())?;
                let offered = &told["result"]["supportedVersions"];
                let named = life.requests().filter(|(place, _)| *place > at).filter_map(|(_, value)| value["params"]["_meta"].get(VERSION));
                let known = |version: &Value| version.as_str().is_some_and(|version| Revision::parse(version).is_some_and(Revision::is_modern));
                let mut odd = named.filter(|version| !known(version) || offered.as_array().is_none_or(|list| !list.contains(version)));
                odd.next().map(|version| format!("it names {version}"))
            })),
        Check::should("client-version-retry", &["PRB-03", "VER-02"], Revisions::MODERN, "After -32022 the client tries a version that was offered, or gives up; it does not send `initialize`.")
            .sent("a server that refuses every version but one of the future")
            .hosts("A server of 2026-07-28 is spoken to as if it were of an older revision.")
            .played(&["modern-version"], |played| each(played, |_, life| {
                let named = |value: &Value| value["params"]["_meta"].get(VERSION).cloned();
                let (told, refusal) = life.said().find(|(at, value)| {
                    value["error"]["code"] == -32022 && life.asked(*at).is_some_and(|asked| named(asked).is_some())
                })?;
                // To name the same one again is judged below.
                let before: Vec<Value> = life.requests().filter(|(at, _)| *at < told).filter_map(|(_, value)| named(value)).collect();
                let offered = refusal["error"]["data"]["supported"].as_array()?;
                let mut after = life.requests().filter(|(at, _)| *at > told).filter_map(|(_, value)| named(value));
                if let Some(odd) = after.find(|version| !offered.contains(version) && !before.contains(version)) {
                    return Some(format!("it names {odd}, which was not offered"));
                }
                let (at, _) = life.first("initialize")?;
                (at > told).then(|| "initialize came after -32022".to_owned())
            })),
        Check::should("client-version-repeat", &["VER-02"], Revisions::MODERN, "A client whose version was refused does not go on with it: it chooses another one that was offered, or gives up.")
            .sent("a server that refuses every version but one of the future")
            .hosts("A server answers the same error for ever.")
            .after(&["client-version-retry"])
            .played(&["modern-version"], |played| each(played, |_, life| {
                // Requests may have been under way at the first refusal.
                let told = life.said().filter(|(_, value)| value["error"]["code"] == -32022).nth(1)?;
                let offered = &told.1["error"]["data"]["supported"];
                let named = |value: &Value| value["params"]["_meta"].get(VERSION).cloned();
                let odd = life.requests().filter(|(at, _)| *at > told.0).filter_map(|(_, value)| named(value));
                let mut odd = odd.filter(|version| offered.as_array().is_none_or(|list| !list.contains(version)));
                if let Some(version) = odd.next() {
                    return Some(format!("{version} came again after it was refused twice"));
                }
                // Nobody can speak the only one that is offered.
                let mut all = life.requests().filter_map(|(_, value)| named(value));
                all.find(|version| *version == FUTURE).map(|version| format!("it names {version}, which it cannot know"))
            })),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::handshake;
    use crate::client::record::{Life, Note};

    #[test]
    fn a_handshake_is_odd_only_after_the_answer_to_the_probe() {
        let request =
            |id: i64, method: &str| json!({ "jsonrpc": "2.0", "id": id, "method": method });
        let heard = |value: Value| Note::Heard { at: 0, line: Vec::new(), value: Some(value) };
        let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
        let probe = heard(request(1, "server/discover"));
        let open = heard(request(2, "initialize"));
        let answer = Note::Said { at: 0, value: answer };
        let life = |notes: [Note; 3]| Life::of(notes.into());
        let late = life([probe.clone(), open.clone(), answer.clone()]);
        assert_eq!(handshake(&late), None);
        let odd = life([probe, answer, open]);
        assert_eq!(handshake(&odd), Some("\"initialize\" came".to_owned()));
    }
}
