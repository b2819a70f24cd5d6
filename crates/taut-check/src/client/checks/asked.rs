//! What a client does when a server asks it something.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::{each, misfilled};
use crate::check::{Check, Revisions, Verdict};
use crate::client::record::{Life, Played};
use crate::seen::{is_request, is_response, messages};

/// The scenarios that ask a lot, for every older revision.
pub(super) const RUDE: &[&str] = &["rude", "rude-0618", "legacy-0326", "legacy-2024"];

/// How long the roots of a client may take, in milliseconds: less than the played server waits for them.
const PATIENCE: u64 = 3_900;

/// What is wrong with the progress that a client tells.
fn misreported(life: &Life) -> Option<String> {
    let token_of =
        |value: &Value| value.pointer("/params/_meta/progressToken").map(Value::to_string);
    let mut asked: HashMap<String, &Value> = HashMap::new();
    for (_, value) in life.said() {
        if let Some(token) = token_of(value) {
            asked.entry(token).or_insert(value);
        }
    }
    let mut last: HashMap<String, f64> = HashMap::new();
    for (at, value) in life.heard() {
        for note in messages(value).iter().filter(|one| one["method"] == "notifications/progress") {
            let token = &note["params"]["progressToken"];
            let Some(asked) = asked.get(&token.to_string()) else {
                return Some(format!("no request has the token {token}"));
            };
            let answered = asked.get("id").and_then(|id| life.answered(id));
            if answered.is_some_and(|place| place < at) {
                return Some(format!("progress of {token} came after its request was answered"));
            }
            let now = note["params"]["progress"].as_f64().unwrap_or_default();
            if last.insert(token.to_string(), now).is_some_and(|then| then >= now) {
                return Some(format!("the progress of {token} does not rise: {now}"));
            }
        }
    }
    None
}

pub(super) fn checks() -> Vec<Check> {
    fn answer(played: &Played<'_>, judge: impl Fn(&Life) -> Option<String>) -> Verdict {
        // One that left at once may have had no time to answer: only what it did answer is judged.
        let judged = |life: &Life| {
            let said = life.said().any(|(_, value)| value["id"] == "ping-1");
            let last = ["elicit-1", "sampling-1"].map(|id| life.answer(&json!(id)));
            let asked = life.said().any(|(_, value)| value["id"] == "elicit-1");
            let had_time = if asked { last[0].is_some() } else { last[1].is_some() };
            said && (life.stayed_after("ping-1") || had_time)
        };
        match played.lives().any(|(_, life)| judged(life)) {
            true => each(played, |_, life| judged(life).then(|| judge(life)).flatten()),
            false => Verdict::skip("the client ended before it could answer"),
        }
    }
    /// The code of the answer, where the capability was not declared.
    fn refused(life: &Life, id: &str, capability: &str) -> Option<String> {
        let declared =
            life.first("initialize")?.1["params"]["capabilities"].get(capability).is_some();
        let code = life.answer(&json!(id)).map(|reply| reply["error"]["code"].clone());
        match code {
            _ if declared => None,
            Some(code) if code == -32601 => None,
            Some(code) => {
                Some(format!("{capability} is not declared, and the answer has the code {code}"))
            }
            None => Some(format!("the request for {capability} was not answered")),
        }
    }
    /// An id as text, the same for a number and for its digits.
    fn text(id: &Value) -> String {
        id.as_str().map_or_else(|| id.to_string(), str::to_owned)
    }
    /// The id of an answer that is this one in another JSON type.
    fn alike<'a>(life: &'a Life, id: &Value) -> Option<&'a Value> {
        let heard = life.heard().flat_map(|(_, value)| messages(value));
        let mut answers =
            heard.filter(|value| is_response(value)).filter_map(|value| value.get("id"));
        answers.find(|other| *other != id && text(other) == text(id))
    }
    /// What the client declared in its handshake.
    fn caps(life: &Life) -> Option<&Value> {
        Some(&life.first("initialize")?.1["params"]["capabilities"])
    }
    vec![
        Check::must(
            "client-ping",
            &["PNG-01", "RPC-06", "RPC-29", "STD-06", "STD-07"],
            Revisions::LEGACY,
            "The client answers `ping` with an empty result and the same id.",
        )
        .sent("pings with and without params, after 400 KiB on stderr, in a batch, and before the handshake is answered")
        .hosts("Servers that ping end the session.")
        .played(&["rude", "rude-0618", "legacy-0326", "legacy-2024", "slow", "odd"], |played| {
            let early = each(played, |_, life| {
                let said = life.said().flat_map(|(_, value)| messages(value));
                let refused = |id: &Value| life.answer(id).is_some_and(|reply| reply.get("result").is_none() && reply.get("error").is_some());
                let mut ids = said.filter(|one| one["method"] == "ping").filter_map(|one| one.get("id"));
                if let Some(id) = ids.find(|id| refused(id)) {
                    return Some(format!("the ping {id} was refused"));
                }
                let went_on = life.first("notifications/initialized").is_some();
                let silent = went_on && life.stayed_after("early-1") && life.answer(&json!("early-1")).is_none();
                silent.then(|| "a ping before the answer to initialize was not answered".to_owned())
            });
            if early.failed() {
                return early;
            }
            answer(played, |life| {
                [json!("ping-1"), json!(0)].iter().find_map(|id| {
                    let reply = life.answer(id);
                    let empty = reply
                        .and_then(|reply| reply["result"].as_object())
                        .is_some_and(|result| result.keys().all(|key| key == "_meta"));
                    let answered = || match (reply, alike(life, id)) {
                        (Some(reply), _) => reply.to_string(),
                        (None, Some(other)) => format!("the id {other}"),
                        (None, None) => "nothing".to_owned(),
                    };
                    (!empty).then(|| format!("ping {id} was answered with {}", answered()))
                })
            })
        }),
        Check::must(
            "client-unknown-request",
            &["RPC-17", "RPC-32", "ERR-01"],
            Revisions::LEGACY,
            "The client refuses an unknown request with -32601; names are compared exactly.",
        )
        .sent("the requests `taut-check/none`, `Ping`, `ping` with a space behind it, `sampling/none`, and `tasks/list`, which is known to clients with tasks only")
        .hosts("A server waits for the answer for ever.")
        .after(&["client-ping", "client-once"])
        .played(RUDE, |played| {
            answer(played, |life| {
                let tasks = caps(life).and_then(|caps| caps.get("tasks")).is_some();
                // To decline what it does not know is a polite way to refuse.
                let asked = [("sampling-1", "sampling"), ("elicit-1", "elicitation")];
                let silent = |(id, name): &&(&str, &str)| {
                    let declared = caps(life).is_none_or(|caps| caps.get(*name).is_some());
                    !declared && life.stayed_after(id) && life.answer(&json!(id)).is_none()
                };
                if let Some((_, name)) = asked.iter().find(silent) {
                    return Some(format!("{name} is not declared, and the request for it got no answer"));
                }
                let number = json!(7701);
                if let (None, Some(other)) = (life.answer(&number), alike(life, &number)) {
                    return Some(format!("the answer to {number} has the id {other}"));
                }
                let ids = ["none-1", "case-1", "case-2", "begin-1", "tasks-1"];
                let ids = ids.iter().filter(|id| !tasks || **id != "tasks-1").map(|id| json!(id));
                ids.chain([number]).find_map(|id| match life.answer(&id).map(|reply| &reply["error"]["code"]) {
                    Some(code) if *code == -32601 => None,
                    Some(code) => Some(format!("the answer to {id} has the code {code}")),
                    None => Some(format!("{id} got no answer")),
                })
            })
        }),
        Check::should(
            "client-roots-undeclared",
            &["ERR-16"],
            Revisions::LEGACY,
            "A client that does not declare roots refuses `roots/list` with -32601.",
        )
        .sent("`roots/list`")
        .hosts("A server takes an empty list for no access.")
        .after(&["client-unknown-request", "client-once", "client-initialize"])
        .played(RUDE, |played| answer(played, |life| refused(life, "roots-1", "roots"))),
        Check::must(
            "client-roots",
            &["ROO-02"],
            Revisions::LEGACY,
            "A client that declares roots answers `roots/list` with file:// addresses.",
        )
        .sent("`roots/list`")
        .hosts("A server cannot tell where it may work.")
        .after(&["client-once", "client-ping"])
        .played(RUDE, |played| {
            answer(played, |life| {
                life.first("initialize")?.1["params"]["capabilities"]["roots"].as_object()?;
                let Some(reply) = life.answer(&json!("roots-1")) else {
                    // A person may be asked first; the server waits for that.
                    let (asked, _) = life.said().find(|(_, value)| value["id"] == "roots-1")?;
                    return life.left_after(asked, PATIENCE).then(|| "roots/list got no answer".to_owned());
                };
                let roots = &reply["result"]["roots"];
                let fits = roots.as_array().is_some_and(|list| {
                    list.iter().all(|root| {
                        root["uri"].as_str().is_some_and(|uri| uri.starts_with("file://"))
                    })
                });
                (!fits).then(|| format!("the roots are {roots}"))
            })
        }),
        Check::must(
            "client-declared",
            &["SAM-01", "ELI-01", "ELI-03", "LIF-12"],
            Revisions::LEGACY,
            "A client that declares sampling or elicitation does not refuse a plain request for it as unknown or invalid.",
        )
        .sent("`sampling/createMessage`, and `elicitation/create` without a mode, which means a form, and with the mode url")
        .hosts("A tool that asks because the client said that it may fails.")
        .played(RUDE, |played| {
            answer(played, |life| {
                let caps = caps(life)?;
                // One that declares url alone has no forms.
                let forms = caps.get("elicitation").is_some_and(|modes| {
                    modes.get("form").is_some() || modes.get("url").is_none()
                });
                let pages = caps["elicitation"].get("url").is_some();
                let asked = [("sampling-1", caps.get("sampling").is_some()), ("elicit-1", forms), ("elicit-2", pages)];
                asked.iter().filter(|(_, declared)| *declared).find_map(|(id, _)| {
                    let code = &life.answer(&json!(id))?["error"]["code"];
                    [-32601, -32602]
                        .iter()
                        .any(|refused| code == refused)
                        .then(|| format!("{id} is declared, and was refused with {code}"))
                })
            })
        }),
        Check::must(
            "client-undeclared",
            &["SAM-01", "ELI-01"],
            Revisions::LEGACY,
            "A client that serves sampling or elicitation declares it.",
        )
        .sent("`sampling/createMessage` and `elicitation/create`")
        .hosts("No server asks for what is not declared, so the user never sees it.")
        .after(&["client-initialize"])
        .played(RUDE, |played| {
            answer(played, |life| {
                let caps = caps(life)?;
                let result = |id: &str| life.answer(&json!(id)).map(|reply| &reply["result"]);
                let sampled = result("sampling-1").is_some_and(|result| result.get("content").is_some());
                // To decline what it does not know is a polite way to refuse.
                let filled = result("elicit-1").is_some_and(|result| result["action"] == "accept");
                let served = [("sampling", sampled), ("elicitation", filled)];
                let odd = served.iter().find(|(name, served)| *served && caps.get(*name).is_none());
                odd.map(|(name, _)| format!("{name} is not declared, and was served"))
            })
        }),
        Check::must(
            "client-elicited",
            &["ELI-07"],
            Revisions::STRUCTURED_LEGACY,
            "An answer to an elicitation has the action accept, decline or cancel; only accept has content.",
        )
        .sent("`elicitation/create`")
        .hosts("A server reads what the user did not want to give.")
        .after(&["client-unknown-request"])
        .played(RUDE, |played| {
            answer(played, |life| {
                let result = life.answer(&json!("elicit-1"))?.get("result")?;
                let accepted = result["action"] == "accept";
                let known = accepted || result["action"] == "decline" || result["action"] == "cancel";
                let empty = |result: &Value| result.get("content").is_none_or(Value::is_null);
                // A page has nothing to fill in.
                let page = life.answer(&json!("elicit-2")).and_then(|reply| reply.get("result"));
                let fits = known && (accepted || empty(result));
                let odd = if fits { page.filter(|page| !empty(page)) } else { Some(result) };
                odd.map(|odd| format!("the answer is {odd}"))
            })
        }),
        Check::should(
            "client-form",
            &["ELI-10", "ELI-07"],
            Revisions::SINCE_0618,
            "A form that is accepted is filled in as its schema says.",
        )
        .sent("a form with one field of each kind that the revision has, all required")
        .hosts("A server gets values that it cannot use.")
        .after(&["client-elicited", "client-input"])
        .played(&["rude", "rude-0618", "modern-input"], |played| {
            each(played, |_, life| {
                let legacy = life.answer(&json!("elicit-1")).and_then(|reply| misfilled(&reply["result"], played.revision));
                legacy.or_else(|| super::rounds::filled(life))
            })
        }),
        Check::must(
            "client-once",
            &["RPC-06", "STD-28"],
            Revisions::LEGACY,
            "The client answers a request once, and with its id.",
        )
        .sent("pings and other requests")
        .hosts("A server takes the second answer for the answer to another request.")
        .played(&["rude", "rude-0618", "odd", "legacy-0326", "legacy-2024"], |played| {
            each(played, |_, life| {
                let heard = life.heard().flat_map(|(_, value)| messages(value));
                let mut answered = HashSet::new();
                let answers: Vec<&Value> = heard.filter(|value| is_response(value)).collect();
                let mut ids = answers.iter().filter_map(|value| value.get("id"));
                if let Some(twice) = ids.find(|id| !id.is_null() && !answered.insert(id.to_string())) {
                    return Some(format!("the request {twice} was answered twice"));
                }
                // One without an id belongs to a request that has no other answer.
                let nameless = |value: &&&Value| value["id"].is_null() && !refuses_array(life, value);
                let nameless = answers.iter().filter(nameless).count();
                let asked = life.said().flat_map(|(_, value)| messages(value)).filter(|value| is_request(value));
                let open = asked.filter(|value| !answered.contains(&value["id"].to_string())).count();
                (nameless > 0 && nameless <= open).then(|| "an answer has no id".to_owned())
            })
        }),
        Check::must(
            "client-progress",
            &["PRG-04", "PRG-07", "PRG-08", "PRG-09", "PRG-11"],
            Revisions::ALL,
            "The client tells progress only of a request that asked for it, with the token as it came and rising numbers, and not after its answer.",
        )
        .sent("requests without a progressToken, and `sampling/createMessage` with the token 77")
        .hosts("A server cannot tell what it is about; some end the session.")
        .played(&[], |played| each(played, |_, life| misreported(life))),
        Check::must(
            "client-mode",
            &["ERR-17"],
            Revisions::ONLY_1125,
            "A request for elicitation in a mode that the client does not declare is refused with -32602.",
        )
        .sent("`elicitation/create` with the mode url, and without a mode, which means a form")
        .hosts("A server believes that the user was sent to its page.")
        .played(RUDE, |played| {
            answer(played, |life| {
                let modes = caps(life)?.get("elicitation").filter(|modes| modes.is_object())?;
                // No mode at all means forms.
                let (url, form) = (modes.get("url").is_some(), modes.get("form").is_some());
                let undeclared = [("url", "elicit-2", !url), ("form", "elicit-1", url && !form)];
                undeclared.iter().filter(|(.., it)| *it).find_map(|(mode, id, _)| {
                    let Some(reply) = life.answer(&json!(id)) else {
                        // One that answers other requests, and had its time, left this one out.
                        let silent = life.answer(&json!("none-1")).is_some() && life.stayed_after(id);
                        return silent.then(|| format!("{mode} is not declared, and the request got no answer"));
                    };
                    let code = &reply["error"]["code"];
                    (*code != -32602).then(|| format!("{mode} is not declared, and the answer has the code {code}"))
                })
            })
        }),
        Check::must(
            "client-sampling-tools",
            &["LIF-12", "SAM-05"],
            Revisions::ONLY_1125,
            "A request for sampling with tools is refused by a client that does not declare `sampling.tools`.",
        )
        .sent("`sampling/createMessage` with tools")
        .hosts("A server believes that the model saw its tools.")
        .played(RUDE, |played| {
            answer(played, |life| {
                let sampling = caps(life)?.get("sampling")?;
                let reply = life.answer(&json!("sampling-2"))?;
                (sampling.get("tools").is_none() && reply["result"].is_object())
                    .then(|| "sampling.tools is not declared, and the request was served".to_owned())
            })
        }),
        Check::must(
            "client-silent",
            &["RPC-11", "RPC-21", "CAN-07"],
            Revisions::LEGACY,
            "The client answers no notification and no answer.",
        )
        .sent("unknown notifications, cancellations and an answer that belong to nothing, and malformed cancellations")
        .hosts("A server gets answers that it never asked for.")
        .after(&["client-once"])
        .played(&[], |played| {
            each(played, |_, life| {
                let asked: Vec<&Value> = life
                    .said()
                    .flat_map(|(_, value)| messages(value))
                    .filter(|value| is_request(value))
                    .filter_map(|value| value.get("id"))
                    .collect();
                let heard = life.heard().flat_map(|(_, value)| messages(value));
                let stray = heard.into_iter().find(|value| {
                    // An id of another JSON type is told by the checks of ids.
                    let known = |id: &Value| asked.iter().any(|asked| text(asked) == text(id));
                    is_response(value)
                        && value.get("id").is_none_or(|id| id.is_null() || !known(id))
                        && !refuses_array(life, value)
                });
                stray.map(|stray| format!("it answered {stray}"))
            })
        }),
        Check::must(
            "client-id-forms",
            &["RPC-29", "CAN-07", "RPC-06"],
            Revisions::LEGACY,
            "The client answers requests with the ids \"\", -1 and \"7\", also after malformed cancellations.",
        )
        .sent("malformed cancellations, then pings with the ids \"\", -1, \"7\" and \"odd-last\"")
        .hosts("A server waits for the answer for ever.")
        .after(&["client-ping", "client-silent"])
        .played(&["odd"], |played| {
            let judged = |life: &Life| {
                life.stayed_after("odd-last") || life.answer(&json!("odd-last")).is_some()
            };
            match played.lives().any(|(_, life)| judged(life)) {
                true => each(played, |_, life| {
                    let ids = [json!(""), json!(-1), json!("7"), json!("odd-last")];
                    let missing = ids.iter().find(|id| life.answer(id).is_none());
                    let missing = missing.filter(|_| judged(life))?;
                    Some(format!("the ping with the id {missing} was not answered"))
                }),
                false => Verdict::skip("the client ended before it could answer"),
            }
        }),
    ]
}

/// Whether it is an error for an array that the client could not read: it knows no id in it (RPC-12), and
/// `client-batch-received` tells it.
pub(super) fn refuses_array(life: &Life, value: &Value) -> bool {
    let error = value["id"].is_null() && value.get("error").is_some();
    let read = life.answer(&json!("batch-1")).is_some();
    error && !read && life.has_array()
}
