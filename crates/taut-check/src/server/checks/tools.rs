//! Tools as they are listed, and requests for tools that do not exist (TOL).

use serde_json::{Value, json};

use super::lists::{has_list, items, misfit, named};
use super::{dialect, needs, refused, short, verdict};
use crate::check::{Check, Revisions, Verdict};
use crate::cx::Cx;
use crate::seen::{All, Seen, Step, is_response};
use crate::wire::Frame;

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::must("tools-list", &["TOL-02"], Revisions::ALL, "`tools/list` gives an array `tools`, maybe empty.")
            .hosts("The official SDKs refuse the whole list.")
            .scan(|_, all| has_list(all, "tools/list", "tools")),
        Check::must("tools-shape", &["TOL-03", "TOL-17", "TOL-19"], Revisions::ALL,
            "Each tool has a name, and an inputSchema that is a valid object schema; its other members have their types.")
            .hosts("One such tool makes the official SDKs refuse the whole list, so the host shows no tools at all.")
            .scan(|cx, all| items(all, "tools/list", "tools", |tool| {
                named(tool, &["name"]).or_else(|| {
                    let schema = &tool["inputSchema"];
                    if schema["type"] != "object" {
                        return Some(format!("the inputSchema of {} is {}", tool["name"], short(schema)));
                    }
                    dialect::fault(schema).map(|what| format!("in the inputSchema of {} {what}", tool["name"])).or_else(|| {
                        // An outputSchema is judged by `tools-output-schema`.
                        let mut tool = tool.clone();
                        tool.as_object_mut().into_iter().for_each(|members| drop(members.remove("outputSchema")));
                        misfit(cx, "Tool", &tool)
                    })
                })
            })),
        Check::must("tools-output-schema", &["TOL-15"], Revisions::STRUCTURED_LEGACY,
            "An outputSchema is a valid object schema in these revisions.")
            .hosts("The official SDKs refuse the whole list.")
            .scan(|_, all| items(all, "tools/list", "tools", |tool| {
                let schema = tool.get("outputSchema")?;
                if schema["type"] != "object" {
                    return Some(format!("the outputSchema of {} is {}", tool["name"], short(schema)));
                }
                dialect::fault(schema).map(|what| format!("in the outputSchema of {} {what}", tool["name"]))
            })),
        Check::should("tools-names", &["TOL-21"], Revisions::SINCE_1125,
            "A tool's name has 1 to 128 of the characters A-Z a-z 0-9 _ - . and is the only one of its kind.")
            .hosts("Model providers refuse other names; hosts cut or change them, or leave the tool out.")
            .after(&["tools-order", "tools-shape", "page-ends"])
            .scan(|cx, all| {
                let names: Vec<&str> = cx.survey.tools.items.iter().filter_map(|tool| tool["name"].as_str()).collect();
                let line = all.answers().find(|answer| answer.method == "tools/list").map(|answer| answer.line.text()).unwrap_or_default();
                let fits = |name: &str| (1..=128).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
                if let Some(name) = names.iter().find(|name| !fits(name)) {
                    return Verdict::from_faults(vec![(format!("the name {name:?} does not fit"), line)]);
                }
                let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
                match twice {
                    // A list without an end repeats itself.
                    Some(_) if cx.survey.tools.endless.is_some() => Verdict::Pass,
                    Some((_, name)) => Verdict::from_faults(vec![(format!("the name {name:?} stands twice"), line)]),
                    None => Verdict::Pass,
                }
            }),
        Check::advice("tools-unknown", &["TOL-05"], Revisions::ALL, "An unknown tool is refused with -32602.")
            .sent("`tools/call` for `taut-check-no-such-tool`, and for the name of an allowed call with more behind it")
            .hosts("A result with isError looks to a model like a tool that exists and failed, so it tries again.")
            .probe(
                |cx| {
                    needs(cx, "tools")?;
                    let mut steps = vec![cx.request(0, "tools/call", json!({ "name": "taut-check-no-such-tool", "arguments": {} }))];
                    let call = cx.survey.call(|call| call.took_ms < crate::cx::SLOW).ok();
                    steps.extend(call.map(|call| cx.request(1, "tools/call", json!({ "name": format!("{}_taut_check", call.tool), "arguments": call.args }))));
                    Ok(steps)
                },
                |cx, seen| verdict((0..2).filter(|n| seen.own.contains(&cx.id(*n))).try_for_each(|n| refused(seen, &cx.id(n), &[-32602]))),
            ),
        Check::should("tools-case", &["TOL-21"], Revisions::SINCE_1125, "Names of tools are compared exactly, also their case.")
            .sent("an allowed call with the case of each letter in its name changed")
            .hosts("A user allowed one tool, and another one runs.")
            .after(&["tools-unknown"])
            .probe(
                |cx| {
                    let call = cx.survey.call(|call| call.took_ms < crate::cx::SLOW && cx.survey.tool(&other_case(&call.tool)).is_none() && other_case(&call.tool) != call.tool)?;
                    Ok(vec![cx.request(0, "tools/call", json!({ "name": other_case(&call.tool), "arguments": call.args }))])
                },
                |cx, seen| match seen.result(&cx.id(0)) {
                    Some(result) if result["isError"] != true => super::fail(seen, "the tool ran"),
                    _ => verdict(super::alive(seen)),
                },
            ),
        Check::advice("tools-request", &["TOL-09", "RPC-18"], Revisions::ALL,
            "`tools/call` without a name, or with one that is no string, is refused with -32602.")
            .sent("`tools/call` with {}, with the name null, and with the name 5")
            .hosts("No host sends it; a server that goes on calls something that nobody named.")
            .probe(
                |cx| {
                    needs(cx, "tools")?;
                    Ok(vec![
                        cx.request(0, "tools/call", json!({ "arguments": {} })),
                        cx.request(1, "tools/call", json!({ "name": null })),
                        cx.request(2, "tools/call", json!({ "name": 5, "arguments": {} })),
                    ])
                },
                |cx, seen| verdict((0..3).try_for_each(|n| refused(seen, &cx.id(n), &[-32602]))),
            ),
        Check::should("tools-order", &["TOL-22"], Revisions::MODERN,
            "Tools are listed in the same order each time, on all pages.")
            .hosts("A changed order spoils the cache of a model's prompt: each turn costs more and starts later.")
            .after(&["tools-same", "tools-steady", "tools-first", "meta-client-same"])
            .scan(|cx, all| listed(cx, all, true)),
        Check::must("tools-same", &["TOL-23"], Revisions::MODERN,
            "The list of tools does not depend on the connection, nor on what was asked before.")
            .hosts("A gateway with several processes shows tools that come and go.")
            .after(&["meta-client-same"])
            .scan(|cx, all| listed(cx, all, false)),
        Check::must("tools-steady", &["TOL-23"], Revisions::MODERN,
            "The list of tools is the same on all its pages in another process, and after other requests.")
            .sent("the allowed calls that are quick, a resource, a prompt, a completion and an open subscription, then `tools/list` page by page, in a process of its own")
            .hosts("A host that lists once shows tools that are gone, and not those that came.")
            .after(&["meta-client-same", "page-next", "page-ends"])
            .fresh(
                |cx| {
                    needs(cx, "tools")?;
                    let last = i64::try_from(cx.survey.tools.pages.len()).unwrap_or(i64::MAX) - 1;
                    if !(0..20).contains(&last) {
                        return Err("the list cannot be read, or has very many pages".to_owned());
                    }
                    let mut steps = vec![Step::Open(json!({}))];
                    let others = super::samples(cx).into_iter().filter(|(method, _)| !method.ends_with("/list") && *method != "tools/call");
                    let quick = cx.survey.calls.iter().filter(|call| call.worked() && call.took_ms < crate::cx::SLOW).take(20);
                    let calls = quick.map(|call| ("tools/call", json!({ "name": call.tool, "arguments": call.args })));
                    for (n, (method, params)) in (61..).zip(others.chain(calls)) {
                        steps.extend([cx.request(n, method, params), Step::Await(cx.id(n))]);
                    }
                    steps.push(cx.request(60, "subscriptions/listen", json!({ "notifications": { "promptsListChanged": true } })));
                    steps.push(cx.request(0, "tools/list", Value::Null));
                    steps.extend((0..last).map(|n| Step::Follow(cx.id(n), cx.id(n + 1), next_page)));
                    steps.push(Step::Await(cx.id(last)));
                    Ok(steps)
                },
                |cx, seen| same_tools(cx, seen, "another process lists other tools after other requests"),
            ),
        Check::must("tools-first", &["TOL-23"], Revisions::MODERN,
            "The list of tools is the same where it is the first that is asked for.")
            .sent("`tools/list` page by page, as the first requests of a process")
            .hosts("A client that knows the server does not ask `server/discover`, and misses tools.")
            .after(&["tools-steady", "meta-client-same", "page-next", "page-ends"])
            .fresh(
                |cx| {
                    needs(cx, "tools")?;
                    let last = i64::try_from(cx.survey.tools.pages.len()).unwrap_or(i64::MAX) - 1;
                    if !(0..20).contains(&last) {
                        return Err("the list cannot be read, or has very many pages".to_owned());
                    }
                    let mut steps = vec![cx.request(0, "tools/list", Value::Null)];
                    steps.extend((0..last).map(|n| Step::Follow(cx.id(n), cx.id(n + 1), next_page)));
                    steps.push(Step::Await(cx.id(last)));
                    Ok(steps)
                },
                |cx, seen| same_tools(cx, seen, "the list has other tools where nothing was asked before"),
            ),
    ]
}

/// Whether the pages that came have the tools of the survey.
fn same_tools(cx: &Cx<'_>, seen: &Seen<'_>, what: &str) -> Verdict {
    let pages = &cx.survey.tools.pages;
    let again: Vec<&Value> = (0..).zip(pages).map_while(|(n, _)| seen.result(&cx.id(n))).collect();
    let ended = again.last().is_some_and(|page| page.get("nextCursor").is_none());
    if again.len() < pages.len() && !ended {
        return Verdict::skip("the list could not be read again");
    }
    let all = |pages: &[&Value]| {
        let mut all: Vec<String> = pages.iter().flat_map(|page| names(page, false)).collect();
        all.sort();
        all
    };
    match all(&again) == all(&pages.iter().collect::<Vec<_>>()) {
        true => Verdict::Pass,
        false => super::fail(seen, what),
    }
}

/// The request for the page that an answer names.
pub(super) fn next_page(reply: &Value, id: &Value, request: &Value) -> Option<Value> {
    let cursor = reply["result"].get("nextCursor")?;
    let mut next = request.clone();
    (next["id"], next["params"]["cursor"]) = (id.clone(), cursor.clone());
    Some(next)
}

fn other_case(name: &str) -> String {
    let other = |c: char| {
        if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }
    };
    name.chars().map(other).collect()
}

/// The names of the tools on a page, in their order or sorted.
pub(super) fn names(result: &Value, ordered: bool) -> Vec<String> {
    let tools = result["tools"].as_array().into_iter().flatten();
    let mut names: Vec<String> = tools.map(|tool| tool["name"].to_string()).collect();
    if !ordered {
        names.sort();
    }
    names
}

/// A list of tools that one session read.
struct Reading<'a> {
    /// The names on its pages so far.
    tools: Vec<String>,
    /// The id of the last request, and the cursor of the page that comes next.
    id: i64,
    next: Option<&'a Value>,
    line: &'a Frame,
}

/// All lists of tools that were read, page by page.
fn readings<'a>(all: &'a All<'_>) -> Vec<Reading<'a>> {
    let mut found: Vec<Reading<'a>> = Vec::new();
    for (session, requests) in &all.sessions {
        let begun = found.len();
        for (at, reply, line) in session.received().filter(|(_, reply, _)| is_response(reply)) {
            let Some((_, request)) = reply.get("id").and_then(|id| requests.before(id, at)) else {
                continue;
            };
            let page = &reply["result"];
            let listed =
                request["method"] == "tools/list" && super::modern::own(&request["params"]);
            if !listed || !page.is_object() || reply["error"].is_object() {
                continue;
            }
            let (tools, next) =
                (names(page, true), page.get("nextCursor").filter(|it| it.is_string()));
            let Some(id) = request["id"].as_i64() else { continue };
            let Some(cursor) = request["params"].get("cursor") else {
                found.push(Reading { tools, id, next, line });
                continue;
            };
            // Who reads on counts its ids on.
            let mut begun = found[begun..].iter_mut();
            if let Some(reading) = begun.find(|it| it.next == Some(cursor) && it.id + 1 == id) {
                reading.tools.extend(tools);
                (reading.id, reading.next, reading.line) = (id, next, line);
            }
        }
    }
    found
}

/// Compares all lists of tools with the one of the survey, page by page. One that was not read to its end has to be the
/// beginning of it.
fn listed(cx: &Cx<'_>, all: &All<'_>, ordered: bool) -> Verdict {
    let survey = &cx.survey.tools;
    if survey.pages.is_empty() {
        return Verdict::skip("the server does not declare tools");
    }
    let whole: Vec<String> = survey.pages.iter().flat_map(|page| names(page, true)).collect();
    let ended = survey.pages.last().is_some_and(|page| page.get("nextCursor").is_none());
    // A tool may stand on another page in another order. Where it stands on two of them, the order is all that is judged.
    let twice = whole.iter().enumerate().any(|(at, name)| whole[..at].contains(name));
    let sorted = |names: &[String]| {
        let mut names = names.to_vec();
        names.sort();
        names
    };
    let same = |reading: &Reading<'_>| {
        let tools = &reading.tools;
        match (ordered, reading.next) {
            // The survey may have stopped before the last page.
            (true, _) if !ended => tools.iter().zip(&whole).all(|(one, other)| one == other),
            (true, Some(_)) => whole.starts_with(tools),
            (true, None) => *tools == whole,
            (false, _) if twice || !ended => true,
            (false, Some(_)) => tools.iter().all(|name| whole.contains(name)),
            (false, None) => sorted(tools) == sorted(&whole),
        }
    };
    let odd = readings(all).into_iter().filter(|reading| !same(reading));
    Verdict::from_faults(
        odd.map(|reading| ("two lists of tools differ".to_owned(), reading.line.text())).collect(),
    )
}
