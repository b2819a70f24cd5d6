//! What a server says of itself in one revision: its capabilities, its lists, and the allowed calls.
//!
//! Asks only what every client asks. Calls only what it was told to call.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::checks::samples;
use super::session::Live;
use crate::cx::{CAPABILITIES, Called, Cx, Listing, SLOW, Survey, askable, request};
use crate::ours::Revision;
use crate::process::Entry;
use crate::seen::{is_request, messages};

/// Pages of one list that are read at most. What is behind them is not looked at.
const MAX_PAGES: usize = 400;

/// How many bytes the pages of one list may have, their cursors included. What is behind them is not looked at.
const MAX_BYTES: usize = 64 << 20;

/// How many pages in a row may bring nothing new, at the last page that is read.
const NOTHING_NEW: usize = 50;

/// How long an answer may take after one did not come.
const HUNG: std::time::Duration = std::time::Duration::from_secs(2);

/// Tools of the official conformance fixture that ask nothing back.
pub(crate) const FIXTURE: [&str; 9] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_error_handling",
    "test_tool_with_progress",
];

/// Fills in the survey of an open session.
pub(crate) fn survey(
    live: &mut Live,
    revision: Revision,
    opened: Value,
    calls: &[(String, Value)],
    fixture: bool,
    limit: std::time::Duration,
) -> Survey {
    let mut survey = Survey { opened: Some(opened), ..Survey::default() };
    let mut next = 10;
    // Who left one request unanswered may leave them all.
    let patience = std::cell::Cell::new(limit);
    let mut list = |live: &mut Live, declared: bool, method: &str, member: &str| {
        let mut listing = Listing { asked: declared, ..Listing::default() };
        let mut cursor: Option<Value> = None;
        let (mut turns, mut known, mut stale) = (HashSet::new(), HashSet::new(), 0);
        let mut bytes = 0;
        let more = |pages: usize, bytes: usize| pages < MAX_PAGES && bytes < MAX_BYTES;
        while declared && more(listing.pages.len(), bytes) && !live.is_over() {
            next += 1;
            let asked = cursor.take();
            let params = asked.as_ref().map_or(Value::Null, |cursor| json!({ "cursor": cursor }));
            let message = request(revision, &Value::from(next), method, params, &json!({}));
            let Some(reply) = live.ask(&message, patience.get()) else {
                listing.lost = true;
                patience.set(limit.min(HUNG));
                break;
            };
            let Some(page) = reply.get("result") else {
                listing.error = Some(reply);
                break;
            };
            bytes += page.to_string().len();
            let items = page[member].as_array().into_iter().flatten();
            let new = items.clone().filter(|item| known.insert(item.to_string())).count();
            stale = if new == 0 { stale + 1 } else { 0 };
            listing.items.extend(items.cloned());
            listing.pages.push(page.clone());
            // The same page for the same cursor: it goes round in a circle.
            if let Some(cursor) = asked
                && page.get("nextCursor").is_some_and(Value::is_string)
                && !turns.insert((cursor.to_string(), page.to_string()))
            {
                listing.endless = Some(format!("the cursor {cursor} came a second time"));
                break;
            }
            if listing.pages.len() == MAX_PAGES && stale >= NOTHING_NEW {
                let what = format!("{stale} pages in a row had nothing new, and none was the last");
                listing.endless = Some(what);
            }
            match page.get("nextCursor") {
                Some(next) if next.is_string() => cursor = Some(next.clone()),
                _ => break,
            }
        }
        listing
    };
    let declared = |survey: &Survey, path: &str| survey.declares(path);
    survey.tools = list(live, declared(&survey, "tools"), "tools/list", "tools");
    let resources = declared(&survey, "resources");
    survey.resources = list(live, resources, "resources/list", "resources");
    survey.templates = list(live, resources, "resources/templates/list", "resourceTemplates");
    survey.prompts = list(live, declared(&survey, "prompts"), "prompts/list", "prompts");
    let mut wanted = calls.to_vec();
    if fixture {
        let known = FIXTURE.iter().filter(|name| survey.tool(name).is_some());
        wanted.extend(known.map(|name| ((*name).to_owned(), json!({}))));
    }
    for (at, (tool, args)) in wanted.into_iter().enumerate() {
        let id = Value::from(500 + at);
        let params = json!({ "name": tool, "arguments": args });
        let message = request(revision, &id, "tools/call", params, &json!({}));
        let (reply, mut took_ms) = live.timed_ask(&message, patience.get());
        if reply.is_some() && took_ms >= SLOW {
            // Once more: a quick call may have met a busy machine.
            let mut again = message.clone();
            again["id"] = Value::from(700 + at);
            took_ms = took_ms.min(live.timed_ask(&again, patience.get()).1);
        }
        if reply.is_none() {
            patience.set(limit.min(HUNG));
        }
        let echoes = reply.as_ref().and_then(|reply| echoed(&args, reply));
        let mut called = Called { tool, args, reply, took_ms, echoes, asks: Vec::new() };
        if revision.is_modern() && at < calls.len() && called.is_quick() && called.reply.is_some() {
            // What it needs may be missing, or it has no use for an answer yet.
            let mut again = message.clone();
            again["id"] = Value::from(800 + at);
            again["params"]["_meta"][CAPABILITIES] = askable(revision);
            let reply = live.ask(&again, patience.get());
            called.asks = reply.as_ref().map(questions).unwrap_or_default();
            if called.asks.is_empty() {
                called.asks = called.reply.as_ref().map(questions).unwrap_or_default();
            }
        }
        survey.calls.push(called);
    }
    if revision.is_modern() {
        elsewhere(live, &survey, patience.get());
    }
    survey
}

/// What may not ask back, from a client that can be asked: `result-type-known` looks at the answers.
fn elsewhere(live: &mut Live, survey: &Survey, limit: std::time::Duration) {
    let cx = Cx { revision: Revision::MODERN, base: 900, survey, fixture: false };
    let may = ["tools/call", "prompts/get", "resources/read"];
    let all = samples(&cx).into_iter().filter(|(method, _)| !may.contains(method));
    let mut patience = limit;
    for (n, (method, params)) in (0..).zip(all) {
        let message = request(cx.revision, &cx.id(n), method, params, &askable(cx.revision));
        if live.ask(&message, patience).is_none() {
            patience = limit.min(HUNG);
        }
    }
}

/// The methods of the questions in a result.
fn questions(reply: &Value) -> Vec<String> {
    let result = &reply["result"];
    let asked = result["inputRequests"].as_object().into_iter().flatten();
    let methods = asked.filter_map(|(_, entry)| entry["method"].as_str());
    match result["resultType"] == "input_required" {
        true => methods.map(str::to_owned).collect(),
        false => Vec::new(),
    }
}

/// Makes the allowed calls in a session whose client can be asked, and notes what each asks by requests of the server's
/// own. One that asks is made twice: the ids of two questions differ.
pub(crate) fn ask_back(
    live: &mut Live,
    revision: Revision,
    calls: &mut [Called],
    limit: std::time::Duration,
) {
    let (caps, mut patience) = (askable(revision), limit);
    for (at, called) in calls.iter_mut().enumerate().filter(|(_, called)| called.is_quick()) {
        for turn in 0..2 {
            let id = Value::from(500 + 2 * at + turn);
            let params = json!({ "name": called.tool, "arguments": called.args });
            let mark = live.process.log.len();
            let message = request(revision, &id, "tools/call", params, &json!({}));
            let reply = live.ask(&message, patience);
            let came = live.process.log[mark..].iter().filter_map(Entry::value);
            let came = came.flat_map(messages).filter(|value| is_request(value));
            let methods = came.filter_map(|value| value["method"].as_str());
            let can = |method: &&str| {
                let question = QUESTIONS.iter().find(|(known, _)| known == method);
                question.is_some_and(|(_, capability)| caps.get(capability).is_some())
            };
            called.asks.extend(methods.filter(can).map(str::to_owned));
            if reply.is_none() {
                patience = limit.min(HUNG);
            }
            if reply.is_none() || called.asks.is_empty() {
                break;
            }
        }
    }
}

/// What a server may ask a client in the older revisions, beside a ping, and what a client declares for it.
const QUESTIONS: [(&str, &str); 3] = [
    ("elicitation/create", "elicitation"),
    ("sampling/createMessage", "sampling"),
    ("roots/list", "roots"),
];

/// The argument whose text comes back.
fn echoed(args: &Value, reply: &Value) -> Option<String> {
    let texts = reply["result"]["content"].as_array()?;
    let told = |text: &str| texts.iter().any(|block| block["text"].as_str() == Some(text));
    let mut found = args.as_object()?.iter();
    found.find(|(_, value)| value.as_str().is_some_and(told)).map(|(name, _)| name.clone())
}

/// Gives a quick call the shortest time that it took in any revision: the others met a busy machine, and what needs a quick
/// call must not depend on that.
pub(super) fn even_out(surveys: &mut [(Revision, Survey)]) {
    let worked = surveys.iter().flat_map(|(_, survey)| &survey.calls).filter(|call| call.worked());
    let times: Vec<(String, Value, u64)> = worked
        .filter(|call| call.took_ms < SLOW)
        .map(|call| (call.tool.clone(), call.args.clone(), call.took_ms))
        .collect();
    for call in surveys.iter_mut().flat_map(|(_, survey)| &mut survey.calls) {
        let same = times.iter().filter(|(tool, args, _)| *tool == call.tool && *args == call.args);
        if let Some(least) = same.map(|(_, _, took)| *took).min().filter(|_| call.worked()) {
            call.took_ms = call.took_ms.min(least);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(calls: [(&str, u64, bool); 3]) -> Survey {
        let called = |(tool, took_ms, fails): (&str, u64, bool)| Called {
            tool: tool.to_owned(),
            args: json!({}),
            reply: Some(json!({ "result": { "content": [], "isError": fails } })),
            took_ms,
            echoes: None,
            asks: Vec::new(),
        };
        Survey { calls: calls.map(called).into(), ..Survey::default() }
    }

    #[test]
    fn a_quick_call_is_quick_in_all_revisions_and_a_slow_one_keeps_its_time() {
        let first = survey([("echo", 40, false), ("slow", 610, false), ("odd", 5, true)]);
        let second = survey([("echo", 420, false), ("slow", 700, false), ("odd", 180, false)]);
        let mut surveys = [(Revision::V2025_03_26, first), (Revision::V2025_06_18, second)];
        even_out(&mut surveys);
        let times =
            |at: usize| surveys[at].1.calls.iter().map(|call| call.took_ms).collect::<Vec<_>>();
        assert_eq!(times(0), [40, 610, 5]);
        assert_eq!(times(1), [40, 700, 180], "what failed at once says nothing of what works");
    }
}
