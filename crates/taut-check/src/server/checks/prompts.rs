//! Prompts and completion (PRM, CMP).

use serde_json::{Value, json};

use super::lists::{TRIED, has_list, is_block, items, misfit, named};
use super::{fail, needs, refused, result, short, verdict};
use crate::check::{Check, Revisions, Verdict};
use crate::cx::Cx;
use crate::seen::{Step, is_count};

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::must("prompts-list", &["PRM-02"], Revisions::ALL,
            "`prompts/list` gives an array `prompts`, each with a name; arguments have a name, too, and other members their types.")
            .hosts("The official SDKs refuse the whole list.")
            .scan(|cx, all| match has_list(all, "prompts/list", "prompts") {
                Verdict::Pass => items(all, "prompts/list", "prompts", |item| {
                    named(item, &["name"]).or_else(|| {
                        let arguments = item.get("arguments")?;
                        let Some(list) = arguments.as_array() else { return Some("`arguments` is no array".to_owned()) };
                        list.iter().find_map(|argument| named(argument, &["name"]))
                    }).or_else(|| misfit(cx, "Prompt", item))
                }),
                failed => failed,
            }),
        Check::must("prompts-get", &["PRM-03", "PRM-07"], Revisions::ALL,
            "`prompts/get` gives an array `messages`, each with the role user or assistant and one content block.")
            .sent("`prompts/get` for each prompt, 20 at most, with a text for each of its arguments")
            .hosts("The official SDKs refuse the answer.")
            .probe(
                |cx| {
                    prompt(cx, |_| true)?;
                    let named = cx.survey.prompts.items.iter().filter(|prompt| prompt["name"].is_string()).take(TRIED);
                    Ok(named.zip(0..).flat_map(|(prompt, n)| {
                        [cx.request(n, "prompts/get", json!({ "name": prompt["name"], "arguments": filled(prompt) })), Step::Await(cx.id(n))]
                    }).collect())
                },
                |cx, seen| {
                    let mut got = 0;
                    for id in (0..).zip(0..TRIED).map(|(n, _)| cx.id(n)).take_while(|id| seen.own.contains(id)) {
                        // It may not like what was filled in, or may not be able to make it now.
                        if seen.code(&id).is_some_and(|code| code != -32601) {
                            continue;
                        }
                        let result = match result(seen, &id) {
                            Ok(result) => result,
                            Err(verdict) => return verdict,
                        };
                        got += 1;
                        if result["resultType"] == "input_required" {
                            continue;
                        }
                        let Some(messages) = result["messages"].as_array() else { return fail(seen, "`messages` is no array") };
                        let odd = |message: &&Value| {
                            !["user", "assistant"].iter().any(|role| message["role"] == *role) || !is_block(cx.revision.as_str(), &message["content"])
                        };
                        if let Some(message) = messages.iter().find(odd) {
                            return fail(seen, format!("a message is {}", short(message)));
                        }
                        if let Some(what) = messages.iter().find_map(|message| misfit(cx, "PromptMessage", message)) {
                            return fail(seen, what);
                        }
                    }
                    if got == 0 { Verdict::skip("every prompt refused the arguments that were made up") } else { Verdict::Pass }
                },
            ),
        Check::should("prompts-unknown", &["PRM-04"], Revisions::ALL, "An unknown prompt is refused with -32602.")
            .sent("`prompts/get` for `taut-check-no-such-prompt`")
            .hosts("A host cannot tell a wrong name from a broken server.")
            .probe(
                |cx| {
                    needs(cx, "prompts")?;
                    Ok(vec![cx.request(0, "prompts/get", json!({ "name": "taut-check-no-such-prompt" }))])
                },
                |cx, seen| verdict(refused(seen, &cx.id(0), &[-32602])),
            ),
        Check::should("prompts-missing-argument", &["PRM-04"], Revisions::ALL,
            "A required argument that is missing is refused with -32602.")
            .sent("`prompts/get` with no arguments, and without `arguments`, for a prompt that requires one; then with all but one of those that it requires")
            .hosts("The model gets a prompt with a hole in it.")
            .probe(
                |cx| {
                    prompt(cx, requires)?;
                    Ok((0..).zip(incomplete(cx)).map(|(n, params)| cx.request(n, "prompts/get", params)).collect())
                },
                |cx, seen| verdict((0..).zip(incomplete(cx)).try_for_each(|(n, _)| refused(seen, &cx.id(n), &[-32602]))),
            ),
        Check::should("prompts-argument-type", &["PRM-05", "RPC-18"], Revisions::ALL,
            "The values of a prompt's arguments are strings: anything else is refused with -32602.")
            .sent("`prompts/get` with the number 5, with true, with an object and with null for the first argument")
            .hosts("No host sends it; a server that goes on does not look at what it gets.")
            .probe(
                |cx| {
                    let prompt = prompt(cx, |prompt| prompt["arguments"].get(0).is_some())?;
                    let values = [json!(5), json!(true), json!({ "a": "b" }), Value::Null];
                    Ok((0..).zip(values).map(|(n, value)| {
                        let mut arguments = filled(prompt);
                        if let Some(name) = prompt["arguments"][0]["name"].as_str() {
                            arguments[name] = value;
                        }
                        cx.request(n, "prompts/get", json!({ "name": prompt["name"], "arguments": arguments }))
                    }).collect())
                },
                |cx, seen| verdict((0..4).try_for_each(|n| refused(seen, &cx.id(n), &[-32602]))),
            ),
        Check::should("prompts-request", &["RPC-18"], Revisions::ALL,
            "`prompts/get` without a name, or with one that is no string, or with arguments that are no object, is refused with -32602.")
            .sent("`prompts/get` with {}, with the name 5, and with lists and a text as the arguments of a prompt that has some")
            .hosts("No host sends it; a server that goes on gives something that nobody named.")
            .after(&["prompts-missing-argument"])
            .probe(
                |cx| {
                    needs(cx, "prompts")?;
                    let mut steps = vec![cx.request(0, "prompts/get", json!({})), cx.request(1, "prompts/get", json!({ "name": 5 }))];
                    let listed = prompt(cx, |prompt| prompt["arguments"].get(0).is_some()).ok();
                    let odd = [json!(["taut"]), json!([]), json!("taut")];
                    steps.extend(listed.into_iter().flat_map(|prompt| (2..).zip(&odd).map(|(n, odd)| cx.request(n, "prompts/get", json!({ "name": prompt["name"], "arguments": odd })))));
                    Ok(steps)
                },
                |cx, seen| verdict((0..5).filter(|n| seen.own.contains(&cx.id(*n))).try_for_each(|n| refused(seen, &cx.id(n), &[-32602]))),
            ),
        Check::must("complete-values", &["CMP-02", "CMP-01", "LIF-17"], Revisions::ALL,
            "`completion/complete` gives at most 100 values, each a string.")
            .sent("`completion/complete` for each argument of a prompt and each variable of a template, 20 at most")
            .hosts("The official SDKs refuse the answer.")
            .probe(
                |cx| {
                    if cx.revision.as_str() != "2024-11-05" {
                        needs(cx, "completions")?;
                    } else if cx.survey.declares("completions") {
                        // Nothing declares it in this revision, so only a server that has it is asked.
                    } else {
                        return Err("this revision has no capability for completion".to_owned());
                    }
                    let params = completions(cx);
                    if params.is_empty() {
                        return Err("no prompt has arguments, and no template has variables".to_owned());
                    }
                    Ok(params.into_iter().zip(0..).flat_map(|(params, n)| [cx.request(n, "completion/complete", params), Step::Await(cx.id(n))]).collect())
                },
                |cx, seen| {
                    let (mut known, mut refused) = (0, None);
                    for id in (0..).zip(0..TRIED).map(|(n, _)| cx.id(n)).take_while(|id| seen.own.contains(id)) {
                        let result = match result(seen, &id) {
                            Ok(result) => result,
                            // An argument may have no suggestions.
                            Err(verdict) => match seen.code(&id) {
                                Some(-32601) => {
                                    refused = Some(verdict);
                                    continue;
                                }
                                Some(_) => {
                                    known += 1;
                                    continue;
                                }
                                None => return verdict,
                            },
                        };
                        known += 1;
                        let completion = &result["completion"];
                        let fits = completion.get("total").is_none_or(is_count) && completion.get("hasMore").is_none_or(Value::is_boolean);
                        match completion["values"].as_array() {
                            Some(values) if completion["hasMore"] == false && completion["total"].as_f64().is_some_and(|total| total > values.len() as f64) => {
                                return fail(seen, format!("there are {} values of {} in all, and hasMore is false", values.len(), completion["total"]));
                            }
                            Some(values) if values.len() <= 100 && values.iter().all(Value::is_string) && fits => {}
                            Some(values) if values.len() > 100 => return fail(seen, format!("there are {} values", values.len())),
                            _ => return fail(seen, format!("the completion is {}", short(completion))),
                        }
                    }
                    // Declared, and no method.
                    refused.filter(|_| known == 0).unwrap_or(Verdict::Pass)
                },
            ),
        Check::must("complete-declared", &["CMP-01"], Revisions::LEGACY_SINCE_0326,
            "A server that completes arguments declares `completions`.")
            .sent("`completion/complete` for the first argument of a prompt, where completions are not declared")
            .hosts("No host asks for completions that are not declared.")
            .probe(
                |cx| {
                    if cx.survey.declares("completions") {
                        return Err("the server declares completions".to_owned());
                    }
                    let prompt = prompt(cx, |prompt| prompt["arguments"].get(0).is_some())?;
                    let params = json!({ "ref": { "type": "ref/prompt", "name": prompt["name"] },
                        "argument": { "name": prompt["arguments"][0]["name"], "value": "" } });
                    Ok(vec![cx.request(0, "completion/complete", params)])
                },
                |cx, seen| match seen.result(&cx.id(0)).and_then(|result| result["completion"]["values"].as_array()) {
                    Some(values) if !values.is_empty() => fail(seen, "completions are not declared, and values came"),
                    _ => Verdict::Pass,
                },
            ),
        Check::should("complete-reference", &["CMP-03", "CMP-05"], Revisions::SINCE_0326,
            "A reference of another type than ref/prompt or ref/resource is refused with -32602.")
            .sent("`completion/complete` with the type `ref/none`")
            .hosts("No host sends it; a server that goes on completes something that nobody named.")
            .after(&["complete-values"])
            .probe(
                |cx| {
                    needs(cx, "completions")?;
                    let params = json!({ "ref": { "type": "ref/none", "name": "x" }, "argument": { "name": "a", "value": "" } });
                    Ok(vec![cx.request(0, "completion/complete", params)])
                },
                |cx, seen| verdict(refused(seen, &cx.id(0), &[-32602])),
            ),
        Check::should("complete-request", &["RPC-18", "CMP-05"], Revisions::SINCE_0326,
            "`completion/complete` without an argument, without a reference, or with a value that is no string is refused with -32602.")
            .sent("`completion/complete` without `argument`, without `ref`, with the values 5 and null, with an argument that has no name, and with references to nothing")
            .hosts("No host sends it; a server that goes on completes something that nobody named.")
            .after(&["complete-reference"])
            .probe(
                |cx| {
                    needs(cx, "completions")?;
                    let known = completions(cx).into_iter().next();
                    let known = known.unwrap_or_else(|| json!({ "ref": { "type": "ref/prompt", "name": "x" }, "argument": { "name": "a", "value": "" } }));
                    let mut number = known.clone();
                    number["argument"]["value"] = json!(5);
                    let mut null = known.clone();
                    null["argument"]["value"] = Value::Null;
                    let nameless = json!({ "ref": known["ref"], "argument": { "value": "" } });
                    let to = |kind: &str| json!({ "ref": { "type": kind }, "argument": known["argument"] });
                    let all = [json!({ "ref": known["ref"] }), json!({ "argument": known["argument"] }), number, nameless, null, to("ref/prompt"), to("ref/resource")];
                    Ok(all.into_iter().zip(0..).map(|(params, n)| cx.request(n, "completion/complete", params)).collect())
                },
                |cx, seen| verdict((0..7).try_for_each(|n| refused(seen, &cx.id(n), &[-32602]))),
            ),
        Check::should("complete-unknown", &["CMP-05"], Revisions::SINCE_0326,
            "A reference to a prompt that does not exist is refused with -32602.")
            .sent("`completion/complete` for `taut-check-no-such-prompt`")
            .hosts("An empty list looks like an argument without suggestions.")
            .after(&["complete-values"])
            .probe(
                |cx| {
                    needs(cx, "completions")?;
                    let params = json!({ "ref": { "type": "ref/prompt", "name": "taut-check-no-such-prompt" }, "argument": { "name": "a", "value": "" } });
                    Ok(vec![cx.request(0, "completion/complete", params)])
                },
                |cx, seen| verdict(refused(seen, &cx.id(0), &[-32602])),
            ),
    ]
}

/// What can be completed: arguments of prompts, and the variables of templates.
pub(super) fn completions(cx: &Cx<'_>) -> Vec<Value> {
    let ask = |reference: Value, name: &str| json!({ "ref": reference, "argument": { "name": name, "value": "" } });
    let prompts = cx.survey.prompts.items.iter().flat_map(|prompt| {
        let names = prompt["arguments"].as_array().into_iter().flatten();
        let names = names.filter_map(|argument| argument["name"].as_str());
        names.map(|name| ask(json!({ "type": "ref/prompt", "name": prompt["name"] }), name))
    });
    let templates = cx.survey.templates.items.iter().filter_map(|item| {
        let template = item["uriTemplate"].as_str()?;
        let (name, _) = template.split_once('{')?.1.split_once('}')?;
        let name = name
            .trim_start_matches(['+', '#', '.', '/', ';', '?', '&'])
            .split([',', '*', ':'])
            .next()?;
        Some(ask(json!({ "type": "ref/resource", "uri": template }), name))
    });
    // Some of both.
    prompts.take(TRIED - 5).chain(templates.take(5)).collect()
}

/// Requests for a prompt that lack one or all of the arguments that it requires.
fn incomplete(cx: &Cx<'_>) -> Vec<Value> {
    let Ok(prompt) = prompt(cx, requires) else { return Vec::new() };
    let name = &prompt["name"];
    let mut all = vec![json!({ "name": name, "arguments": {} }), json!({ "name": name })];
    let needed = prompt["arguments"].as_array().into_iter().flatten();
    for argument in needed.filter(|argument| argument["required"] == true).take(5) {
        let mut arguments = filled(prompt);
        if let (Some(members), Some(name)) = (arguments.as_object_mut(), argument["name"].as_str())
        {
            members.remove(name);
        }
        all.push(json!({ "name": prompt["name"], "arguments": arguments }));
    }
    all
}

fn requires(prompt: &Value) -> bool {
    prompt["arguments"]
        .as_array()
        .is_some_and(|list| list.iter().any(|argument| argument["required"] == true))
}

fn prompt<'a>(cx: &Cx<'a>, fits: impl Fn(&Value) -> bool) -> Result<&'a Value, String> {
    needs(cx, "prompts")?;
    let mut found = cx.survey.prompts.items.iter();
    found
        .find(|prompt| prompt["name"].is_string() && fits(prompt))
        .ok_or_else(|| "the server lists no such prompt".to_owned())
}

pub(super) fn filled(prompt: &Value) -> Value {
    let names = prompt["arguments"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|argument| argument["name"].as_str());
    Value::Object(names.map(|name| (name.to_owned(), json!("taut"))).collect())
}
