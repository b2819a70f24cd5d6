//! The checks for servers, by area. This file has what their judges share.

mod advice;
mod apart;
mod asked;
mod asking;
mod batch;
mod beside;
mod calls;
mod cancel;
mod dialect;
mod envelope;
mod fixture;
mod frame;
mod gone;
mod handles;
mod ids;
mod init;
mod listen;
mod lists;
mod meta;
mod modern;
mod own;
mod pages;
mod prompts;
mod resources;
mod rounds;
mod rpc;
mod scans;
mod serve;
mod shapes;
mod steady;
mod tasked;
mod tasks;
mod tools;

pub(crate) use meta::{is_key, is_reserved, odd_trace};
use serde_json::{Value, json};

use crate::check::{Check, Verdict};
use crate::cx::{Cx, Listing};
use crate::seen::Seen;

/// All checks for servers, in the order of reports.
pub(crate) fn all() -> Vec<Check> {
    let mut all = frame::checks();
    all.extend(rpc::checks());
    all.extend(ids::checks());
    all.extend(apart::checks());
    all.extend(batch::checks());
    all.extend(shapes::checks());
    all.extend(init::checks());
    all.extend(cancel::checks());
    all.extend(serve::checks());
    all.extend(beside::checks());
    all.extend(tools::checks());
    all.extend(resources::checks());
    all.extend(prompts::checks());
    all.extend(pages::checks());
    all.extend(tasks::checks());
    all.extend(tasked::checks());
    all.extend(handles::checks());
    all.extend(calls::checks());
    all.extend(fixture::checks());
    all.extend(rounds::checks());
    all.extend(envelope::checks());
    all.extend(modern::checks());
    all.extend(gone::checks());
    all.extend(meta::checks());
    all.extend(listen::checks());
    all.extend(own::checks());
    all.extend(asking::checks());
    all.extend(asked::checks());
    all.extend(steady::checks());
    all.extend(scans::checks());
    all.extend(advice::checks());
    all
}

/// Fails, and shows all that was received.
fn fail(seen: &Seen<'_>, what: impl Into<String>) -> Verdict {
    Verdict::Fail { what: what.into(), shown: seen.lines() }
}

/// Fails if the server ended or does not answer any more.
fn alive(seen: &Seen<'_>) -> Result<(), Verdict> {
    if seen.flooded {
        return Err(fail(seen, "the server wrote without end, so it was ended"));
    }
    if seen.died {
        return Err(fail(seen, "the server ended"));
    }
    if !seen.barrier && seen.frames().any(joined) {
        return Err(Verdict::Blocked("frame-line explains it".to_owned()));
    }
    if !seen.barrier {
        return Err(fail(seen, SILENT));
    }
    Ok(())
}

/// The result of a request, or a failure.
fn result<'a>(seen: &Seen<'a>, id: &Value) -> Result<&'a Value, Verdict> {
    let Some(reply) = seen.reply(id) else { return Err(unanswered(seen, id)) };
    match reply.get("result") {
        Some(result) if !result.is_object() => {
            Err(Verdict::Blocked("rpc-result-object explains it".to_owned()))
        }
        Some(result) => Ok(result),
        None if !reply["error"]["code"].is_i64() => Err(misshapen()),
        None => Err(fail(seen, format!("request {id} was refused: {}", short(&reply["error"])))),
    }
}

/// How a failure is told that `rpc-error-id` explains.
pub(super) const IDLESS: &str = "an error without an id came";

/// How a failure is told where the server is there and silent.
pub(super) const SILENT: &str = "the server answers nothing any more";

/// An error that names no request.
fn idless<'a>(seen: &Seen<'a>) -> Option<&'a Value> {
    let strays = seen.strays().into_iter();
    strays
        .into_iter()
        .find(|value| value.get("error").is_some() && value.get("id").is_none_or(Value::is_null))
}

/// Whether a line has several messages, one behind the other.
fn joined(frame: &crate::wire::Frame) -> bool {
    let mut values = serde_json::Deserializer::from_slice(&frame.raw).into_iter::<Value>();
    let message = |value: &Value| value.get("jsonrpc").is_some();
    let two = values.by_ref().take(2).filter(|value| value.as_ref().is_ok_and(message)).count();
    frame.value.is_none() && two == 2
}

/// Whether an answer is a result, and no error beside it: `rpc-one-of` tells of both.
fn served(reply: &Value) -> bool {
    reply.get("result").is_some() && !reply["error"].is_object()
}

/// What an answer that is missing means.
fn unanswered(seen: &Seen<'_>, id: &Value) -> Verdict {
    if let Err(verdict) = alive(seen) {
        return verdict;
    }
    let mine =
        |value: &Value| value.get("method").is_none() && crate::seen::is_meant(value.get("id"), id);
    // An answer that stands in a line which is no JSON.
    let torn = seen.frames().filter(|frame| frame.fault == Some(crate::wire::Fault::NotJson));
    let torn = torn.map(|frame| frame.text().replace("\": ", "\":"));
    if torn.into_iter().any(|text| text.contains(&format!("\"id\":{id},"))) {
        return Verdict::Blocked("frame-clean or frame-line explains it".to_owned());
    }
    match seen.got().any(mine) {
        true => Verdict::Blocked("rpc-one-of explains it".to_owned()),
        false if idless(seen).is_some() => {
            fail(seen, format!("request {id} was not answered; {IDLESS}"))
        }
        false => fail(seen, format!("request {id} was not answered")),
    }
}

/// Passes if a request was refused with one of these codes.
fn refused(seen: &Seen<'_>, id: &Value, codes: &[i64]) -> Result<(), Verdict> {
    let Some(reply) = seen.reply(id) else { return Err(unanswered(seen, id)) };
    let wanted: Vec<_> = codes.iter().map(ToString::to_string).collect();
    let wanted = wanted.join(" or ");
    match reply.pointer("/error/code").and_then(Value::as_i64) {
        Some(code) if codes.contains(&code) => Ok(()),
        Some(code) => Err(fail(seen, format!("expected error {wanted}, got {code}"))),
        // A code that is no integer breaks every answer of this kind alike.
        None if reply.get("error").is_some() => Err(misshapen()),
        None => Err(fail(seen, format!("expected error {wanted}, got {}", short(reply)))),
    }
}

/// Where an error came whose code cannot be read.
fn misshapen() -> Verdict {
    Verdict::Blocked("rpc-error-shape explains it".to_owned())
}

/// Passes if a request was refused, with whatever code.
fn refused_somehow(seen: &Seen<'_>, id: &Value) -> Result<(), Verdict> {
    let Some(reply) = seen.reply(id) else { return Err(unanswered(seen, id)) };
    match reply.get("error") {
        Some(_) => Ok(()),
        None => Err(fail(seen, format!("expected an error, got {}", short(reply)))),
    }
}

/// Passes if no answer came that belongs to no request, and the server still answers.
fn silent(seen: &Seen<'_>) -> Result<(), Verdict> {
    if let Some(stray) = seen.strays().first() {
        return Err(fail(seen, format!("it was answered: {}", short(stray))));
    }
    alive(seen)
}

/// From the early exits above to a verdict.
fn verdict(judged: Result<(), Verdict>) -> Verdict {
    judged.map_or_else(|verdict| verdict, |()| Verdict::Pass)
}

/// A value on one short line.
pub(crate) fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(160) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The kind of a value, in words.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Skips unless the server declares a capability.
fn needs(cx: &Cx<'_>, capability: &str) -> Result<(), String> {
    match cx.survey.declares(capability) {
        true => Ok(()),
        false => Err(format!("the server does not declare {}", capability.replace('/', "."))),
    }
}

/// The lists that a server declares, with the method that gives each.
fn lists<'a>(cx: &Cx<'a>) -> Vec<(&'static str, &'static str, &'a Listing)> {
    let survey = cx.survey;
    let all = [
        ("tools/list", "tools", &survey.tools),
        ("resources/list", "resources", &survey.resources),
        ("resources/templates/list", "resourceTemplates", &survey.templates),
        ("prompts/list", "prompts", &survey.prompts),
    ];
    all.into_iter().filter(|(_, _, listing)| listing.asked).collect()
}

/// A request of each kind that the server has: the lists that it gave, and the first of what they name.
pub(super) fn samples(cx: &Cx<'_>) -> Vec<(&'static str, Value)> {
    let survey = cx.survey;
    let given = lists(cx).into_iter().filter(|(_, _, list)| !list.pages.is_empty());
    let mut all: Vec<(&str, Value)> = given.map(|(method, ..)| (method, json!({}))).collect();
    if let Ok(call) = survey.call(|call| call.took_ms < crate::cx::SLOW) {
        all.push(("tools/call", json!({ "name": call.tool, "arguments": call.args })));
    }
    let uri = survey.resources.items.first().and_then(|item| item["uri"].as_str());
    all.extend(uri.map(|uri| ("resources/read", json!({ "uri": uri }))));
    let prompt = survey.prompts.items.iter().find(|prompt| prompt["name"].is_string());
    all.extend(prompt.map(|prompt| {
        let params = json!({ "name": prompt["name"], "arguments": prompts::filled(prompt) });
        ("prompts/get", params)
    }));
    let completes = survey.declares("completions");
    let complete = prompts::completions(cx).into_iter().next().filter(|_| completes);
    all.extend(complete.map(|params| ("completion/complete", params)));
    all
}
