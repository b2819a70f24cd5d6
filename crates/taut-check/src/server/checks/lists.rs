//! What a server offers: tools, resources, prompts, completion, and their pages.

use serde_json::{Value, json};

use super::{alive, fail, kind, lists, needs, refused, refused_somehow, result, short, verdict};
use crate::check::{Check, Revisions, Verdict};
use crate::cx::Cx;
use crate::seen::{All, Step};

/// What is wrong with the items of a list, over all answers to a method.
fn items(all: &All<'_>, method: &str, member: &str, wrong: impl Fn(&Value) -> Option<String>) -> Verdict {
    let mut faults = Vec::new();
    for answer in all.answers() {
        let Some(result) = answer.result().filter(|_| answer.method == method) else { continue };
        let Some(list) = result[member].as_array() else { continue };
        faults.extend(list.iter().filter_map(&wrong).map(|what| (what, answer.line.text())));
    }
    Verdict::from_faults(faults)
}

/// Whether the results of a method have their list.
fn has_list(all: &All<'_>, method: &str, member: &str) -> Verdict {
    let mut faults = Vec::new();
    for answer in all.answers() {
        let Some(result) = answer.result().filter(|_| answer.method == method) else { continue };
        if !result[member].is_array() {
            faults.push((format!("`{member}` is {}", kind(&result[member])), answer.line.text()));
        }
    }
    Verdict::from_faults(faults)
}

fn named(item: &Value, names: &[&str]) -> Option<String> {
    let missing = names.iter().find(|name| !item[**name].is_string())?;
    Some(format!("`{missing}` is {} in {}", kind(&item[*missing]), short(item)))
}

pub(super) fn checks() -> Vec<Check> {
    let mut all = tools();
    all.extend(resources());
    all.extend(prompts());
    all.extend(pages());
    all
}

fn tools() -> Vec<Check> {
    vec![
        Check::must("tools-list", &["TOL-02"], Revisions::ALL, "`tools/list` gives an array `tools`, maybe empty.")
            .hosts("The official SDKs refuse the whole list.")
            .scan(|_, all| has_list(all, "tools/list", "tools")),
        Check::must("tools-shape", &["TOL-03"], Revisions::ALL,
            "Each tool has a name, and an inputSchema that is an object schema.")
            .hosts("One such tool makes the official SDKs refuse the whole list, so the host shows no tools at all.")
            .scan(|_, all| items(all, "tools/list", "tools", |tool| {
                named(tool, &["name"]).or_else(|| {
                    let schema = &tool["inputSchema"];
                    (schema["type"] != "object").then(|| format!("the inputSchema of {} is {}", tool["name"], short(schema)))
                })
            })),
        Check::must("tools-output-schema", &["TOL-15"], Revisions::STRUCTURED_LEGACY,
            "An outputSchema is an object schema in these revisions.")
            .hosts("The official SDKs refuse the whole list.")
            .scan(|_, all| items(all, "tools/list", "tools", |tool| {
                let schema = tool.get("outputSchema")?;
                (schema["type"] != "object").then(|| format!("the outputSchema of {} is {}", tool["name"], short(schema)))
            })),
        Check::should("tools-names", &["TOL-21"], Revisions::SINCE_1125,
            "A tool's name has 1 to 128 of the characters A-Z a-z 0-9 _ - . and is the only one of its kind.")
            .hosts("Model providers refuse other names; hosts cut or change them, or leave the tool out.")
            .after(&["tools-shape", "page-ends"])
            .scan(|cx, all| {
                let names: Vec<&str> = cx.survey.tools.items.iter().filter_map(|tool| tool["name"].as_str()).collect();
                let line = all.answers().find(|answer| answer.method == "tools/list").map(|answer| answer.line.text()).unwrap_or_default();
                let fits = |name: &str| (1..=128).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
                if let Some(name) = names.iter().find(|name| !fits(name)) {
                    return Verdict::from_faults(vec![(format!("the name {name:?} does not fit"), line)]);
                }
                let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
                match twice {
                    Some((_, name)) => Verdict::from_faults(vec![(format!("the name {name:?} stands twice"), line)]),
                    None => Verdict::Pass,
                }
            }),
        Check::must("tools-unknown", &["TOL-05"], Revisions::ALL, "An unknown tool is refused with -32602.")
            .sent("`tools/call` for `taut-check-no-such-tool`")
            .hosts("A result with isError looks to a model like a tool that exists and failed, so it tries again.")
            .probe(
                |cx| {
                    needs(cx, "tools")?;
                    Ok(vec![cx.request(0, "tools/call", json!({ "name": "taut-check-no-such-tool", "arguments": {} }))])
                },
                |cx, seen| verdict(refused(seen, &cx.id(0), &[-32602])),
            ),
        Check::must("tools-request", &["TOL-09", "RPC-18"], Revisions::ALL,
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
            "Tools are listed in the same order each time.")
            .hosts("A changed order spoils the cache of a model's prompt: each turn costs more and starts later.")
            .after(&["tools-same"])
            .scan(|cx, all| listed(cx, all, true)),
        Check::must("tools-same", &["TOL-23"], Revisions::MODERN,
            "The list of tools does not depend on the connection.")
            .hosts("A gateway with several processes shows tools that come and go.")
            .scan(|cx, all| listed(cx, all, false)),
    ]
}

/// Compares the first page of tools over all sessions.
fn listed(cx: &Cx<'_>, all: &All<'_>, ordered: bool) -> Verdict {
    let names = |result: &Value| {
        let mut names: Vec<String> = result["tools"].as_array().into_iter().flatten().map(|tool| tool["name"].to_string()).collect();
        if !ordered {
            names.sort();
        }
        names
    };
    let Some(first) = cx.survey.tools.pages.first().map(names) else {
        return Verdict::skip("the server does not declare tools");
    };
    let mut faults = Vec::new();
    for answer in all.answers() {
        let plain = answer.method == "tools/list" && answer.params.get("cursor").is_none() && super::modern::own(answer.params);
        let Some(result) = answer.result().filter(|_| plain) else { continue };
        if names(result) != first {
            faults.push(("two lists of tools differ".to_owned(), answer.line.text()));
        }
    }
    Verdict::from_faults(faults)
}

/// Whether a text is an address with a scheme.
fn is_uri(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once(':') else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        && !text.contains([' ', '\n', '<', '>', '"'])
}

fn resources() -> Vec<Check> {
    vec![
        Check::must("resources-list", &["RES-02"], Revisions::ALL,
            "`resources/list` gives an array `resources`, each with uri and name.")
            .hosts("The official SDKs refuse the whole list.")
            .scan(|_, all| match has_list(all, "resources/list", "resources") {
                Verdict::Pass => items(all, "resources/list", "resources", |item| named(item, &["uri", "name"])),
                failed => failed,
            }),
        Check::must("resources-templates", &["RES-04"], Revisions::ALL,
            "`resources/templates/list` gives an array `resourceTemplates`, each with uriTemplate and name.")
            .sent("`resources/templates/list`")
            .hosts("Codex asks for it whenever resources are declared.")
            .scan(|cx, all| {
                if let Some(error) = &cx.survey.templates.error {
                    // A server without templates may not know the method; the capability does not say.
                    if error.pointer("/error/code").and_then(Value::as_i64) != Some(-32601) {
                        return Verdict::from_faults(vec![(format!("it was refused: {}", short(&error["error"])), error.to_string())]);
                    }
                }
                match has_list(all, "resources/templates/list", "resourceTemplates") {
                    Verdict::Pass => items(all, "resources/templates/list", "resourceTemplates", |item| named(item, &["uriTemplate", "name"])),
                    failed => failed,
                }
            }),
        Check::must("resources-uri", &["RES-14"], Revisions::SINCE_0618,
            "A resource's uri is one by RFC 3986: a scheme, a colon, no spaces.")
            .hosts("Python hosts parse it as a URL and refuse the whole list.")
            .after(&["resources-list"])
            .scan(|_, all| items(all, "resources/list", "resources", |item| {
                let uri = item["uri"].as_str()?;
                (!is_uri(uri)).then(|| format!("{uri:?} is no uri"))
            })),
        Check::must("resources-read", &["RES-03"], Revisions::ALL,
            "`resources/read` gives an array `contents`, each with a uri and either text or blob.")
            .sent("`resources/read` for the first listed resource")
            .hosts("The official SDKs refuse the answer.")
            .probe(
                |cx| {
                    needs(cx, "resources")?;
                    let first = cx.survey.resources.items.first().and_then(|item| item["uri"].as_str());
                    let uri = first.ok_or("the server lists no resource")?;
                    Ok(vec![cx.request(0, "resources/read", json!({ "uri": uri }))])
                },
                |cx, seen| {
                    let result = match result(seen, &cx.id(0)) {
                        Ok(result) if result["resultType"] == "input_required" => return Verdict::Pass,
                        Ok(result) => result,
                        Err(verdict) => return verdict,
                    };
                    let Some(contents) = result["contents"].as_array() else { return fail(seen, "`contents` is no array") };
                    let whole = |item: &&Value| {
                        let (text, blob) = (item["text"].is_string(), item["blob"].is_string());
                        !item["uri"].is_string() || text == blob || blob && !is_base64(item["blob"].as_str().unwrap_or_default())
                    };
                    match contents.iter().find(whole) {
                        Some(item) => fail(seen, format!("an item has no uri, or not exactly one of text and base64 blob: {}", short(item))),
                        None => Verdict::Pass,
                    }
                },
            ),
        Check::must("resources-request", &["RPC-18", "SEC-07"], Revisions::ALL,
            "`resources/read` without a uri, or with one that is no string, is refused with -32602.")
            .sent("`resources/read` with {} and with the uri 5")
            .hosts("No host sends it; a server that goes on reads something that nobody named.")
            .probe(
                |cx| {
                    needs(cx, "resources")?;
                    Ok(vec![cx.request(0, "resources/read", json!({})), cx.request(1, "resources/read", json!({ "uri": 5 }))])
                },
                |cx, seen| verdict((0..2).try_for_each(|n| refused(seen, &cx.id(n), &[-32602]))),
            ),
        Check::should("resources-missing", &["RES-05", "ERR-02"], Revisions::LEGACY,
            "A resource that does not exist is refused with -32002.")
            .sent("`resources/read` for `taut-check://no-such-resource`")
            .hosts("A host cannot tell a missing resource from a broken server.")
            .probe(
                |cx| {
                    needs(cx, "resources")?;
                    Ok(vec![cx.request(0, "resources/read", json!({ "uri": "taut-check://no-such-resource" }))])
                },
                |cx, seen| verdict(refused(seen, &cx.id(0), &[-32002])),
            ),
        Check::must("resources-missing-modern", &["RES-06", "ERR-03"], Revisions::MODERN,
            "A resource that does not exist is refused with -32602, not with -32002 and not with empty contents.")
            .sent("`resources/read` for `taut-check://no-such-resource`")
            .hosts("-32002 has no meaning any more; empty contents look like an empty file.")
            .probe(
                |cx| {
                    needs(cx, "resources")?;
                    Ok(vec![cx.request(0, "resources/read", json!({ "uri": "taut-check://no-such-resource" }))])
                },
                |cx, seen| verdict(refused(seen, &cx.id(0), &[-32602])),
            ),
        Check::must("resources-traversal", &["RES-11", "SEC-07"], Revisions::ALL,
            "A uri that leads out of what is offered is refused.")
            .sent("`resources/read` for `file:///../../../../etc/passwd`")
            .hosts("Every file of the user is open to any prompt that the model reads.")
            .probe(
                |cx| {
                    needs(cx, "resources")?;
                    Ok(vec![cx.request(0, "resources/read", json!({ "uri": "file:///../../../../etc/passwd" }))])
                },
                |cx, seen| match seen.reply(&cx.id(0)) {
                    Some(reply) if reply.to_string().contains("root:x:0:0") => fail(seen, "it gave /etc/passwd"),
                    _ => verdict(alive(seen)),
                },
            ),
        Check::must("resources-subscribe", &["LIF-17", "RES-07", "RES-08"], Revisions::LEGACY,
            "A server that declares `resources.subscribe` answers subscribe and unsubscribe with an empty result.")
            .sent("`resources/subscribe` and `resources/unsubscribe` for the first listed resource")
            .hosts("A host that trusts the flag waits for updates that never come.")
            .probe(
                |cx| {
                    needs(cx, "resources/subscribe")?;
                    let first = cx.survey.resources.items.first().and_then(|item| item["uri"].as_str());
                    let uri = first.ok_or("the server lists no resource")?;
                    Ok(vec![cx.request(0, "resources/subscribe", json!({ "uri": uri })), Step::Await(cx.id(0)),
                        cx.request(1, "resources/unsubscribe", json!({ "uri": uri }))])
                },
                |cx, seen| verdict((0..2).try_for_each(|n| result(seen, &cx.id(n)).map(|_| ()))),
            ),
    ]
}

/// Whether a text is base64, in its usual alphabet.
pub(super) fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    text.len().is_multiple_of(4) && text.len() - body.len() <= 2
        && body.chars().all(|c| c.is_ascii_alphanumeric() || c == '+' || c == '/')
}

fn prompts() -> Vec<Check> {
    vec![
        Check::must("prompts-list", &["PRM-02"], Revisions::ALL,
            "`prompts/list` gives an array `prompts`, each with a name; arguments have a name, too.")
            .hosts("The official SDKs refuse the whole list.")
            .scan(|_, all| match has_list(all, "prompts/list", "prompts") {
                Verdict::Pass => items(all, "prompts/list", "prompts", |item| {
                    named(item, &["name"]).or_else(|| {
                        let arguments = item.get("arguments")?;
                        let Some(list) = arguments.as_array() else { return Some("`arguments` is no array".to_owned()) };
                        list.iter().find_map(|argument| named(argument, &["name"]))
                    })
                }),
                failed => failed,
            }),
        Check::must("prompts-get", &["PRM-03", "PRM-07"], Revisions::ALL,
            "`prompts/get` gives an array `messages`, each with the role user or assistant and one content block.")
            .sent("`prompts/get` for the first prompt, with a text for each of its arguments")
            .hosts("The official SDKs refuse the answer.")
            .probe(
                |cx| {
                    let prompt = prompt(cx, |_| true)?;
                    Ok(vec![cx.request(0, "prompts/get", json!({ "name": prompt["name"], "arguments": filled(prompt) }))])
                },
                |cx, seen| {
                    let result = match result(seen, &cx.id(0)) {
                        Ok(result) if result["resultType"] == "input_required" => return Verdict::Pass,
                        Ok(result) => result,
                        // It may not like what was filled in.
                        Err(_) if seen.code(&cx.id(0)) == Some(-32602) => return Verdict::skip("the prompt refused the arguments that were made up"),
                        Err(verdict) => return verdict,
                    };
                    let Some(messages) = result["messages"].as_array() else { return fail(seen, "`messages` is no array") };
                    let odd = |message: &&Value| {
                        let content = &message["content"];
                        !["user", "assistant"].iter().any(|role| message["role"] == *role) || !content["type"].is_string()
                            || content.get("data").is_some_and(|data| !data.as_str().is_some_and(is_base64) || !content["mimeType"].is_string())
                    };
                    match messages.iter().find(odd) {
                        Some(message) => fail(seen, format!("a message is {}", short(message))),
                        None => Verdict::Pass,
                    }
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
            .sent("`prompts/get` without arguments, for a prompt that requires one")
            .hosts("The model gets a prompt with a hole in it.")
            .probe(
                |cx| {
                    let prompt = prompt(cx, requires)?;
                    Ok(vec![cx.request(0, "prompts/get", json!({ "name": prompt["name"], "arguments": {} }))])
                },
                |cx, seen| verdict(refused(seen, &cx.id(0), &[-32602])),
            ),
        Check::must("prompts-argument-type", &["PRM-05", "RPC-18"], Revisions::ALL,
            "The values of a prompt's arguments are strings: a number is refused with -32602.")
            .sent("`prompts/get` with the number 5 for the first argument")
            .hosts("No host sends it; a server that goes on does not look at what it gets.")
            .probe(
                |cx| {
                    let prompt = prompt(cx, |prompt| prompt["arguments"].get(0).is_some())?;
                    let mut arguments = filled(prompt);
                    if let Some(name) = prompt["arguments"][0]["name"].as_str() {
                        arguments[name] = json!(5);
                    }
                    Ok(vec![cx.request(0, "prompts/get", json!({ "name": prompt["name"], "arguments": arguments }))])
                },
                |cx, seen| verdict(refused(seen, &cx.id(0), &[-32602])),
            ),
        Check::must("prompts-request", &["RPC-18"], Revisions::ALL,
            "`prompts/get` without a name is refused with -32602.")
            .sent("`prompts/get` with {}")
            .hosts("No host sends it; a server that goes on gives something that nobody named.")
            .probe(
                |cx| {
                    needs(cx, "prompts")?;
                    Ok(vec![cx.request(0, "prompts/get", json!({}))])
                },
                |cx, seen| verdict(refused(seen, &cx.id(0), &[-32602])),
            ),
        Check::must("complete-values", &["CMP-02", "CMP-01"], Revisions::ALL,
            "`completion/complete` gives at most 100 values, each a string.")
            .sent("`completion/complete` for the first argument of a prompt")
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
                    let prompt = prompt(cx, |prompt| prompt["arguments"].get(0).is_some())?;
                    let params = json!({ "ref": { "type": "ref/prompt", "name": prompt["name"] },
                        "argument": { "name": prompt["arguments"][0]["name"], "value": "" } });
                    Ok(vec![cx.request(0, "completion/complete", params)])
                },
                |cx, seen| {
                    let result = match result(seen, &cx.id(0)) {
                        Ok(result) => result,
                        Err(verdict) => return verdict,
                    };
                    let values = result["completion"]["values"].as_array();
                    match values {
                        Some(values) if values.len() <= 100 && values.iter().all(Value::is_string) => Verdict::Pass,
                        Some(values) if values.len() > 100 => fail(seen, format!("there are {} values", values.len())),
                        _ => fail(seen, format!("the completion is {}", short(&result["completion"]))),
                    }
                },
            ),
        Check::must("complete-reference", &["CMP-03", "CMP-05"], Revisions::SINCE_0326,
            "A reference of another type than ref/prompt or ref/resource is refused with -32602.")
            .sent("`completion/complete` with the type `ref/none`")
            .hosts("No host sends it; a server that goes on completes something that nobody named.")
            .probe(
                |cx| {
                    needs(cx, "completions")?;
                    let params = json!({ "ref": { "type": "ref/none", "name": "x" }, "argument": { "name": "a", "value": "" } });
                    Ok(vec![cx.request(0, "completion/complete", params)])
                },
                |cx, seen| verdict(refused(seen, &cx.id(0), &[-32602])),
            ),
        Check::should("complete-unknown", &["CMP-05"], Revisions::SINCE_0326,
            "A reference to a prompt that does not exist is refused with -32602.")
            .sent("`completion/complete` for `taut-check-no-such-prompt`")
            .hosts("An empty list looks like an argument without suggestions.")
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

fn requires(prompt: &Value) -> bool {
    prompt["arguments"].as_array().is_some_and(|list| list.iter().any(|argument| argument["required"] == true))
}

fn prompt<'a>(cx: &Cx<'a>, fits: impl Fn(&Value) -> bool) -> Result<&'a Value, String> {
    needs(cx, "prompts")?;
    let mut found = cx.survey.prompts.items.iter();
    found.find(|prompt| prompt["name"].is_string() && fits(prompt)).ok_or_else(|| "the server lists no such prompt".to_owned())
}

fn filled(prompt: &Value) -> Value {
    let names = prompt["arguments"].as_array().into_iter().flatten().filter_map(|argument| argument["name"].as_str());
    Value::Object(names.map(|name| (name.to_owned(), json!("taut"))).collect())
}

fn pages() -> Vec<Check> {
    vec![
        Check::should("page-bad-cursor", &["PAG-04"], Revisions::ALL, "A cursor that the server did not give is refused with -32602.")
            .sent("each declared list with the cursor `taut-check-no-such-cursor`")
            .hosts("A host that lost its place reads the first page for ever, or misses the rest.")
            .probe(
                |cx| with_cursor(cx, &json!("taut-check-no-such-cursor")),
                |cx, seen| verdict((0..lists(cx).len()).try_for_each(|n| {
                    let id = cx.id(i64::try_from(n).unwrap_or(0));
                    // A server without templates may not know the method.
                    if seen.code(&id) == Some(-32601) { Ok(()) } else { refused(seen, &id, &[-32602]) }
                })),
            ),
        Check::must("page-cursor-type", &["PAG-07", "RPC-18"], Revisions::ALL, "A cursor that is no string is refused with -32602.")
            .sent("each declared list with the cursor 5")
            .hosts("No host sends it; a server that goes on does not look at what it gets.")
            .probe(
                |cx| with_cursor(cx, &json!(5)),
                |cx, seen| verdict((0..lists(cx).len()).try_for_each(|n| {
                    let id = cx.id(i64::try_from(n).unwrap_or(0));
                    if seen.code(&id) == Some(-32601) { Ok(()) } else { refused(seen, &id, &[-32602, -32600]) }
                })),
            ),
        Check::must("page-next", &["PAG-05", "PAG-02"], Revisions::ALL,
            "`nextCursor` is a string or is left out, and the page that it names can be read.")
            .hosts("Hosts that follow it get only a part of the list, or an error.")
            .scan(|cx, all| {
                let mut faults = Vec::new();
                for answer in all.answers() {
                    let Some(next) = answer.result().and_then(|result| result.get("nextCursor")) else { continue };
                    if answer.method.ends_with("/list") && !next.is_string() {
                        faults.push((format!("nextCursor is {}", kind(next)), answer.line.text()));
                    }
                }
                for (method, _, listing) in lists(cx) {
                    if let (Some(error), false) = (&listing.error, listing.pages.is_empty()) {
                        faults.push((format!("the next page of {method} was refused: {}", short(&error["error"])), error.to_string()));
                    }
                }
                Verdict::from_faults(faults)
            }),
        Check::must("page-ends", &["PAG-05"], Revisions::ALL, "A list that is read page by page comes to an end.")
            .hosts("Hosts read for ever, or give up and show nothing.")
            .scan(|cx, _| {
                let endless = lists(cx).into_iter().find(|(_, _, listing)| listing.pages.len() >= 50);
                match endless {
                    Some((method, ..)) => Verdict::fail(format!("{method} has 50 pages and more")),
                    None => Verdict::Pass,
                }
            }),
        Check::must("tasks-absent", &["TSK-13", "RPC-17"], Revisions::NOT_1125,
            "`tasks/get` is refused with -32601 where the server has no tasks.")
            .sent("`tasks/get`")
            .hosts("A client that tries tasks believes that they are there.")
            .after(&["rpc-unknown-method"])
            .probe(
                |cx| {
                    if cx.survey.declares("extensions/io.modelcontextprotocol~1tasks") {
                        return Err("the server declares the tasks extension".to_owned());
                    }
                    Ok(vec![cx.request(0, "tasks/get", json!({ "taskId": "none" }))])
                },
                |cx, seen| verdict(refused(seen, &cx.id(0), &[-32601])),
            ),
        Check::must("tasks-unknown", &["TSK-08"], Revisions::ONLY_1125, "An unknown task is refused with -32602.")
            .sent("`tasks/get`, `tasks/result` and `tasks/cancel` for a task that does not exist")
            .hosts("A client polls a task that it lost for ever.")
            .probe(
                |cx| {
                    needs(cx, "tasks")?;
                    Ok(["tasks/get", "tasks/result", "tasks/cancel"].iter().enumerate().map(|(n, method)| {
                        cx.request(i64::try_from(n).unwrap_or(0), method, json!({ "taskId": "taut-check-no-such-task" }))
                    }).collect())
                },
                |cx, seen| verdict((0..3).try_for_each(|n| {
                    if n == 2 { refused_somehow(seen, &cx.id(n)) } else { refused(seen, &cx.id(n), &[-32602]) }
                })),
            ),
    ]
}

fn with_cursor(cx: &Cx<'_>, cursor: &Value) -> Result<Vec<Step>, String> {
    let lists = lists(cx);
    if lists.is_empty() {
        return Err("the server declares no list".to_owned());
    }
    Ok(lists.iter().enumerate().map(|(n, (method, ..))| {
        cx.request(i64::try_from(n).unwrap_or(0), method, json!({ "cursor": cursor }))
    }).collect())
}
