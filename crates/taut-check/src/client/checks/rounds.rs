//! Calls that a server of 2026-07-28 wants once more, and what the client sends then.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{each, misfilled};
use crate::check::{Check, Revisions, Verdict};
use crate::client::record::{Life, Played};
use crate::cx::CAPABILITIES;
use crate::ours::Revision;
use crate::schema::misfit;

/// A result that wants its request once more.
struct Wanted<'a> {
    at: usize,
    request: &'a Value,
    result: &'a Value,
    base: Base<'a>,
}

/// What is wrong with a request that carries an answer to such a result, or should.
enum Fault {
    /// Its params, its state or its id (MRTR-05, MRTR-06).
    State(String),
    /// The answers to questions (MRTR-05).
    Input(String),
    /// It carries what belongs to another request (MRTR-07).
    Leak(String),
}

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::must(
            "client-state",
            &["MRTR-05", "MRTR-06"],
            Revisions::MODERN,
            "A call that is tried once more has the same params, the state as it came, and a new id.",
        )
        .sent("results that want the call once more, with a requestState, with questions, and with both")
        .hosts("A server cannot go on where it was.")
        .after(&["client-meta", "client-id-type", "client-id-in-flight", "client-vocabulary"])
        .played(&["modern", "modern-state", "modern-input"], |played| {
            judge(played, |fault| match fault {
                Fault::State(what) => Some(what),
                _ => None,
            })
        }),
        Check::must(
            "client-state-leak",
            &["MRTR-07"],
            Revisions::MODERN,
            "A requestState and answers are sent with the call that they belong to, and with no other request.",
        )
        .sent("results that want the call once more, with a requestState, with questions, and with both")
        .hosts("A server takes one request for another, and answers what was not asked.")
        .after(&["client-meta", "client-id-type", "client-id-in-flight", "client-vocabulary"])
        .played(&["modern", "modern-state", "modern-input"], |played| {
            judge(played, |fault| match fault {
                Fault::Leak(what) => Some(what),
                _ => None,
            })
        }),
        Check::must(
            "client-input",
            &["MRTR-05", "ELI-07", "SAM-03"],
            Revisions::MODERN,
            "Answers to questions have the keys of the questions, and each is the bare result that its method has.",
        )
        .sent("questions for what the client declares, with odd keys")
        .hosts("A server finds no answer where it looks for one, and asks again.")
        .played(&["modern-input"], |played| {
            judge(played, |fault| match fault {
                Fault::Input(what) => Some(what),
                _ => None,
            })
        }),
        Check::must(
            "client-input-undeclared",
            &["SAM-01", "ELI-01", "ROO-01"],
            Revisions::MODERN,
            "A client that answers questions for sampling, elicitation or roots declares that.",
        )
        .sent("questions for what the client does not declare")
        .hosts("No server asks for what is not declared, so the user never sees it.")
        .played(&["modern-ask", "modern-ask-page"], |played| each(played, |_, life| life.requests().find_map(|(at, value)| {
            let answers = value["params"]["inputResponses"].as_object()?;
            let caps = &value["params"]["_meta"][CAPABILITIES];
            let mut wanted = wanted(life).into_iter().filter(|one| one.at < at);
            let asked = wanted.find_map(|one| one.result.get("inputRequests"))?;
            answers.iter().find_map(|(key, answer)| {
                let method = asked[key]["method"].as_str()?;
                let name = method.split('/').next()?;
                // To decline what it does not know is a polite way to refuse.
                let served = answer["action"] == "accept" || answer.get("content").is_some() || answer.get("roots").is_some();
                // No mode at all means forms.
                let mode = asked[key]["params"]["mode"].as_str().filter(|mode| *mode != "form");
                let declared = caps.get(name).is_some_and(|modes| mode.is_none_or(|mode| modes.get(mode).is_some()));
                (served && !declared).then(|| format!("{name} is not declared{}, and was served", mode.map_or(String::new(), |mode| format!(" with the mode {mode}"))))
            })
        }))),
    ]
}

fn judge(played: &Played<'_>, wrong: impl Fn(Fault) -> Option<String>) -> Verdict {
    let mut again = false;
    let plain = played.scene("modern").into_iter().flat_map(|scene| &scene.lives);
    let twice = plain.into_iter().any(calls_twice);
    let verdict = each(played, |_, life| faults(life, twice).into_iter().find_map(&wrong));
    for (_, life) in played.lives() {
        again |= life.requests().any(|(_, value)| carries(value));
    }
    match verdict {
        Verdict::Pass if !again => Verdict::skip("the client does not try again, which it may"),
        verdict => verdict,
    }
}

/// Whether a client makes the same call twice, one right after the other.
fn calls_twice(life: &Life) -> bool {
    let calls: Vec<Base<'_>> = life.requests().map(|(_, value)| base(value)).collect();
    calls.windows(2).any(|two| two[0] == two[1] && two[0][0] == "tools/call")
}

fn carries(value: &Value) -> bool {
    ["requestState", "inputResponses"].iter().any(|name| value["params"].get(*name).is_some())
}

/// The method, and the params that make a request the one that it is.
type Base<'a> = [&'a Value; 4];

fn base(value: &Value) -> Base<'_> {
    let params = &value["params"];
    [&value["method"], &params["name"], &params["arguments"], &params["uri"]]
}

fn wanted(life: &Life) -> Vec<Wanted<'_>> {
    let mut all = Vec::new();
    for (at, said) in life.said() {
        let asked = said.get("id").and_then(|id| life.request(id, at));
        let result = &said["result"];
        if let (Some((_, request)), "input_required") =
            (asked, result["resultType"].as_str().unwrap_or_default())
        {
            all.push(Wanted { at, request, result, base: base(request) });
        }
    }
    all
}

/// `twice`: the client makes the same call twice where nothing is asked of it, so the second one is no retry.
fn faults(life: &Life, twice: bool) -> Vec<Fault> {
    let mut found = Vec::new();
    let mut open = wanted(life);
    let sent = life.requests().filter_map(|(_, value)| value["params"].get("requestState"));
    let sent: HashSet<String> = sent.map(Value::to_string).collect();
    // The retries that come without their state: the state was never sent, and the same call comes next.
    let mut dropped: HashMap<usize, Vec<Base<'_>>> = HashMap::new();
    for one in open.iter().filter(|_| !twice) {
        let state =
            one.result.get("requestState").filter(|state| !sent.contains(&state.to_string()));
        if let (Some(_), Some(next)) = (state, life.beside(one.at).1) {
            dropped.entry(next).or_default().push(one.base);
        }
    }
    for (at, value) in life.requests() {
        let own = base(value);
        let is_open = |one: &Wanted<'_>| one.at < at && one.request["method"] == value["method"];
        let same = |one: &Wanted<'_>| one.at < at && one.base == own;
        let state = value["params"].get("requestState");
        let exact = |one: &Wanted<'_>| same(one) && one.result.get("requestState") == state;
        if !carries(value) {
            // It stays open: this may be a second call that runs at the same time.
            if dropped.get(&at).is_some_and(|calls| calls.contains(&own)) {
                found.push(Fault::State("the state is missing".to_owned()));
            }
            continue;
        }
        let answers = value["params"]["inputResponses"].as_object();
        let answered = |one: &Wanted<'_>| {
            let asked = one.result["inputRequests"].as_object();
            same(one)
                && asked.map(|all| all.keys().collect::<Vec<_>>())
                    == answers.map(|all| all.keys().collect())
        };
        // Calls that run at the same time may differ in nothing else.
        let place = open.iter().position(|one| exact(one) && answered(one));
        let place = place.or_else(|| open.iter().position(exact));
        let place = place.or_else(|| open.iter().position(answered));
        let place = place.or_else(|| open.iter().position(same));
        if let Some(place) = place {
            let one = open.remove(place);
            found.extend(round(&one, value));
            continue;
        }
        let carried = |one: &Wanted<'_>| {
            let given = one.result.get("requestState");
            one.at < at && given.is_some() && given == state
        };
        // The same call with other params, or another call.
        let tool =
            |value: &Value| [value["params"]["name"].clone(), value["params"]["uri"].clone()];
        let like = |one: &Wanted<'_>| is_open(one) && tool(one.request) == tool(value);
        let retries = |one: &Wanted<'_>| {
            like(one)
                || carried(one)
                    && value["method"] != "tools/list"
                    && life.beside(one.at).1 == Some(at)
        };
        match open.iter().position(retries) {
            Some(place) => {
                open.remove(place);
                found.push(Fault::State("its params are others".to_owned()));
            }
            None => found.push(Fault::Leak(format!(
                "{} carries what belongs to another call",
                value["method"]
            ))),
        }
    }
    found
}

/// What is wrong with a request that answers a result.
fn round(one: &Wanted<'_>, value: &Value) -> Vec<Fault> {
    let mut found = Vec::new();
    let (given, sent) = (one.result.get("requestState"), value["params"].get("requestState"));
    match (given, sent) {
        _ if given == sent => {}
        (None, Some(sent)) => {
            found.push(Fault::State(format!("its state is {sent}, and none was given")));
        }
        (Some(_), None) => found.push(Fault::State("the state is missing".to_owned())),
        (_, Some(sent)) => found.push(Fault::State(format!("its state is {sent}"))),
        (None, None) => {}
    }
    if one.request.get("id") == value.get("id") {
        found.push(Fault::State("its id is the same".to_owned()));
    }
    let empty = Map::new();
    let asked = one.result["inputRequests"].as_object().unwrap_or(&empty);
    let sent = value["params"].get("inputResponses");
    let Some(answers) = sent.map_or(Some(&empty), Value::as_object) else {
        found.push(Fault::Input("`inputResponses` is no object".to_owned()));
        return found;
    };
    if let Some(key) = answers.keys().find(|key| !asked.contains_key(*key)) {
        found.push(Fault::Input(format!("there is no question {key:?}")));
    } else if let Some(key) = asked.keys().find(|key| !answers.contains_key(*key)) {
        found.push(Fault::Input(format!("the question {key:?} is not answered")));
    }
    for (key, answer) in answers {
        let method = asked.get(key).and_then(|question| question["method"].as_str());
        if let Some(what) = method.and_then(|method| odd(method, answer)) {
            found.push(Fault::Input(format!("the answer to {key:?}: {what}")));
        }
    }
    found
}

/// What is wrong with the answer to one question.
fn odd(method: &str, answer: &Value) -> Option<String> {
    let name = match method {
        "elicitation/create" => "ElicitResult",
        "sampling/createMessage" => "CreateMessageResult",
        _ => "ListRootsResult",
    };
    let accepted = answer["action"] == "accept";
    let kept = answer.get("content").is_some_and(|content| !content.is_null());
    let local = |root: &Value| root["uri"].as_str().is_some_and(|uri| uri.starts_with("file://"));
    let roots = answer["roots"].as_array();
    match method {
        "elicitation/create" if !accepted && kept => Some("only accept has content".to_owned()),
        "roots/list" if roots.is_some_and(|all| !all.iter().all(local)) => {
            Some("a root is no file:// address".to_owned())
        }
        _ => misfit(Revision::MODERN, name, answer),
    }
}

/// What is wrong with a form that the client filled in, in a round.
pub(super) fn filled(life: &Life) -> Option<String> {
    let asks: Vec<_> = wanted(life);
    life.requests().filter_map(|(_, value)| value["params"]["inputResponses"].as_object()).find_map(
        |answers| {
            answers.iter().find_map(|(key, answer)| {
                let asked = |one: &Wanted<'_>| {
                    one.result["inputRequests"][key]["method"] == "elicitation/create"
                };
                asks.iter().find(|one| asked(one)).and_then(|_| misfilled(answer, Revision::MODERN))
            })
        },
    )
}
