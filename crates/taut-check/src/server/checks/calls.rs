//! What needs a call: results of tools, and the tools of the official fixture.

use serde_json::{Value, json};

use super::lists::{is_block, misfit_block};
use super::{fail, kind, result, short, verdict};
use crate::check::{Check, Revisions, Verdict};
use crate::cx::Cx;
use crate::ours::Validator;
use crate::seen::{All, Answered, Step, same};

/// Judges the results of calls, over everything that was said.
fn scan_results(all: &All<'_>, wrong: impl Fn(&Answered<'_>, &Value) -> Option<String>) -> Verdict {
    let mut any = false;
    let mut faults = Vec::new();
    for answer in all.answers().filter(|answer| answer.method == "tools/call") {
        let complete = |result: &&Value| {
            // Who did not ask for a task gets the result itself (TSK-02); the others are judged with the tasks.
            let task = result.get("task").is_some() && answer.params.get("task").is_some();
            let handle = result["taskId"].is_string()
                && (answer.params.get("task").is_some() || super::handles::asked(answer.params));
            let nested = result["task"].is_object() && super::handles::asked(answer.params);
            !["input_required", "task"].iter().any(|other| result["resultType"] == *other)
                && !task
                && !handle
                && !nested
        };
        let Some(result) = answer.result().filter(complete) else { continue };
        any = true;
        faults.extend(wrong(answer, result).map(|what| (what, answer.line.text())));
    }
    match any {
        true => Verdict::from_faults(faults),
        false => Verdict::skip("no call is allowed: --call TOOL --args JSON, or --fixture"),
    }
}

pub(super) fn checks() -> Vec<Check> {
    let mut all = results();
    all.extend(calling());
    all
}

fn results() -> Vec<Check> {
    vec![
        Check::must(
            "tools-content",
            &["TOL-04"],
            Revisions::ALL,
            "The result of a call has an array `content`, maybe empty.",
        )
        .hosts("The official SDKs refuse the answer, and the call fails although the tool worked.")
        .scan(|_, all| {
            scan_results(all, |_, result| {
                (!result["content"].is_array())
                    .then(|| format!("`content` is {}", kind(&result["content"])))
            })
        }),
        Check::must(
            "tools-content-types",
            &["TOL-20", "RES-03"],
            Revisions::ALL,
            "Content blocks are of the types that the revision has, with what each needs.",
        )
        .hosts("One block of an unknown type makes the official SDKs refuse the whole answer.")
        .after(&["tools-content"])
        .scan(|cx, all| {
            scan_results(all, |_, result| {
                let revision = cx.revision.as_str();
                let blocks = result["content"].as_array()?;
                let odd = blocks.iter().find(|block| !is_block(revision, block));
                odd.map(|block| format!("a block does not fit: {}", short(block)))
                    .or_else(|| blocks.iter().find_map(|block| misfit_block(cx, block)))
            })
        }),
        Check::must(
            "tools-structured",
            &["TOL-10"],
            Revisions::STRUCTURED_LEGACY,
            "`structuredContent` is an object in these revisions.",
        )
        .hosts("The official SDKs refuse the answer.")
        .scan(|_, all| {
            scan_results(all, |_, result| {
                let data = result.get("structuredContent")?;
                (!data.is_object()).then(|| format!("`structuredContent` is {}", kind(data)))
            })
        }),
        Check::must(
            "tools-conform",
            &["TOL-12"],
            Revisions::SINCE_0618,
            "The structured result of a tool with an outputSchema fits that schema.",
        )
        .hosts("TypeScript and Python clients validate it and fail the call.")
        .after(&["tools-content", "tools-structured", "tools-output-schema", "frame-match"])
        .scan(|cx, all| {
            scan_results(all, |answer, result| {
                let tool = cx.survey.tool(answer.params["name"].as_str()?)?;
                let schema = tool.get("outputSchema").filter(|_| result["isError"] != true)?;
                let Some(data) = result.get("structuredContent") else {
                    return Some(
                        "the tool has an outputSchema, and its result has no structuredContent"
                            .to_owned(),
                    );
                };
                let validator = Validator::new(&schema.to_string()).ok()?;
                validator
                    .validate(&data.to_string())
                    .err()
                    .map(|fault| format!("structuredContent does not fit: {fault}"))
            })
        }),
        Check::should(
            "tools-text-copy",
            &["TOL-14"],
            Revisions::SINCE_0618,
            "A structured result is also given as JSON in a text block.",
        )
        .hosts("Hosts that do not know structuredContent show the model an empty result.")
        .after(&[
            "tools-content",
            "tools-content-types",
            "tools-structured",
            "tools-conform",
            "frame-match",
        ])
        .scan(|_, all| {
            scan_results(all, |_, result| {
                let data = result.get("structuredContent")?;
                let mut texts =
                    result["content"].as_array()?.iter().filter_map(|block| block["text"].as_str());
                let same = texts.any(|text| {
                    serde_json::from_str::<Value>(text).is_ok_and(|value| same(&value, data))
                });
                (!same).then(|| "no text block has the structured result as JSON".to_owned())
            })
        }),
        Check::must(
            "tools-is-error",
            &["TOL-06", "TOL-32"],
            Revisions::ALL,
            "`isError` is a boolean, or is left out.",
        )
        .hosts("The official SDKs refuse the answer.")
        .scan(|_, all| {
            scan_results(all, |_, result| {
                let flag = result.get("isError")?;
                (!flag.is_boolean()).then(|| format!("`isError` is {}", kind(flag)))
            })
        }),
    ]
}

fn calling() -> Vec<Check> {
    vec![
        Check::must("tools-text", &["STD-02", "STD-12", "STD-01"], Revisions::ALL,
            "Text comes back as it was sent: any script, newlines, separators, quotes.")
            .sent("the allowed tool `echo`, which gives back one of its arguments, with other texts, the last one written in escapes")
            .hosts("Every text that is not plain English.")
            .after(&["frame-match"])
            .probe(
                |cx| {
                    let call = cx.survey.echo()?;
                    Ok(texts().iter().enumerate().map(|(n, text)| {
                        let mut args = call.args.clone();
                        args[call.echoes.as_deref().unwrap_or_default()] = json!(text);
                        let id = cx.id(i64::try_from(n).unwrap_or(0));
                        let message = cx.request_as(&id, "tools/call", json!({ "name": call.tool, "arguments": args }));
                        match n + 1 == texts().len() {
                            true => Step::Raw(format!("{}\n", escaped(&message.to_string())).into_bytes()),
                            false => Step::Send(message),
                        }
                    }).chain([Step::Await(cx.id(i64::try_from(texts().len()).unwrap_or(1) - 1))]).collect())
                },
                |cx, seen| verdict(texts().iter().enumerate().try_for_each(|(n, text)| {
                    let id = cx.id(i64::try_from(n).unwrap_or(0));
                    // The tool may not like a text, and say so.
                    if seen.code(&id) == Some(-32602) || seen.result(&id).is_some_and(|result| result["isError"] == true) {
                        return Ok(());
                    }
                    let result = result(seen, &id)?;
                    let same = result["content"].as_array().is_some_and(|blocks| blocks.iter().any(|block| block["text"] == *text));
                    same.then_some(()).ok_or_else(|| fail(seen, format!("{text:?} came back as {}", short(result))))
                })),
            ),
        Check::must("tools-long", &["STD-01", "STD-02"], Revisions::ALL,
            "A long text comes back whole, on one line.")
            .sent("the allowed tool `echo` with a text of 200 KiB, where its last part is not plain English")
            .hosts("A file that a tool reads is lost, and what is left of its line is noise to the host.")
            .after(&["tools-text", "frame-line", "frame-clean", "frame-utf8"])
            .once()
            .probe(
                |cx| {
                    let call = cx.survey.echo()?;
                    let mut args = call.args.clone();
                    args[call.echoes.as_deref().unwrap_or_default()] = json!(long_text());
                    Ok(vec![cx.request(0, "tools/call", json!({ "name": call.tool, "arguments": args })), Step::Await(cx.id(0))])
                },
                |cx, seen| match seen.reply(&cx.id(0)) {
                    // The protocol sets no bound, and a server may: it says so, or not at all.
                    None if seen.frames().all(|frame| frame.fault.is_none()) => Verdict::skip("it was not answered"),
                    None => fail(seen, "it came back in pieces"),
                    Some(reply) => {
                        let whole = reply["result"]["content"].as_array().is_some_and(|blocks| blocks.iter().any(|block| block["text"] == long_text()));
                        let refused = reply.get("error").is_some() || reply["result"]["isError"] == true;
                        if whole || refused { Verdict::Pass } else { fail(seen, "it came back as another text") }
                    }
                },
            ),
        Check::should("tools-bad-arguments", &["TOL-08"], Revisions::SINCE_1125,
            "Arguments that do not fit the inputSchema give a result with isError, so that a model can correct itself.")
            .sent("the allowed tool `echo` without its text, and with an object for it")
            .hosts("A model sees an error of the protocol, or nothing at all, and cannot correct its call.")
            .probe(
                bad_arguments,
                |cx, seen| verdict((0..2).try_for_each(|n| match result(seen, &cx.id(n)) {
                    Ok(result) if result["isError"] == true => Ok(()),
                    Ok(result) => Err(fail(seen, format!("it was called {}: {}", BAD[n as usize], short(result)))),
                    // The schema of 2026-07-28 still shows it as an example.
                    Err(_) if seen.code(&cx.id(n)) == Some(-32602) && cx.modern() => Ok(()),
                    Err(verdict) => Err(verdict),
                })),
            ),
        Check::should("tools-bad-arguments-old", &["TOL-07"], Revisions::LEGACY,
            "Arguments that do not fit the inputSchema are refused, as an error or as a result with isError.")
            .sent("the allowed tool `echo` without its text, and with an object for it")
            .hosts("A tool runs on input that it did not ask for.")
            .after(&["tools-bad-arguments"])
            .probe(
                bad_arguments,
                |cx, seen| verdict((0..2).try_for_each(|n| match result(seen, &cx.id(n)) {
                    Ok(result) if result["isError"] != true => Err(fail(seen, format!("it was called {}", BAD[n as usize]))),
                    Err(verdict) if seen.code(&cx.id(n)).is_none() => Err(verdict),
                    _ => Ok(()),
                })),
            ),
        Check::must("tools-arguments-type", &["TOL-09"], Revisions::ALL, "`arguments` that are no object are refused, with an error or with a result that is one.")
            .sent("the allowed tool `echo` with a text, with JSON in a text, with a list and with null as arguments; null may be taken for none, and only has to be answered")
            .hosts("No host sends it; a tool that runs all the same runs on nothing.")
            .after(&["rpc-after-error"])
            .probe(
                |cx| {
                    let call = cx.survey.echo()?;
                    Ok(vec![
                        cx.request(0, "tools/call", json!({ "name": call.tool, "arguments": "text" })),
                        cx.request(1, "tools/call", json!({ "name": call.tool, "arguments": ["list"] })),
                        cx.request(2, "tools/call", json!({ "name": call.tool, "arguments": null })),
                        cx.request(3, "tools/call", json!({ "name": call.tool, "arguments": call.args.to_string() })),
                    ])
                },
                |cx, seen| verdict((0..4).try_for_each(|n| match result(seen, &cx.id(n)) {
                    // Who takes it for none answers as its tool does without arguments.
                    _ if n == 2 && seen.reply(&cx.id(n)).is_some() => Ok(()),
                    Ok(result) if result["isError"] != true => Err(fail(seen, "the tool ran")),
                    Ok(_) => Ok(()),
                    Err(verdict) if seen.code(&cx.id(n)).is_none() => Err(verdict),
                    Err(_) => Ok(()),
                })),
            ),
        Check::advice("tools-arguments-code", &["TOL-09"], Revisions::ALL, "`arguments` that are no object are refused with -32602 where they are refused with an error.")
            .sent("the allowed tool `echo` with a text and with a list as arguments")
            .hosts("A host that tells a wrong request from a server that failed by the code shows the wrong one.")
            .after(&["tools-arguments-type"])
            .probe(
                |cx| {
                    let call = cx.survey.echo()?;
                    Ok([json!("text"), json!(["list"])].into_iter().zip(0..).map(|(args, n)| {
                        cx.request(n, "tools/call", json!({ "name": call.tool, "arguments": args }))
                    }).collect())
                },
                |cx, seen| verdict((0..2).filter(|n| seen.code(&cx.id(*n)).is_some()).try_for_each(|n| super::refused(seen, &cx.id(n), &[-32602, -32600]))),
            ),
        Check::must("progress-asked", &["PRG-01", "PRG-07", "PRG-08", "PRG-09"], Revisions::ALL,
            "A call with a progressToken works like one without, and any progress has that token.")
            .sent("each allowed call with an integer and with a string of digits as its token, then without one")
            .hosts("Most hosts send a token with every call.")
            .after(&["progress-known", "rpc-interleaved"])
            .probe(
                |cx| {
                    cx.survey.call(|_| true)?;
                    let mut steps = Vec::new();
                    for (call, n) in cx.survey.calls.iter().filter(|call| call.worked()).take(20).zip((0..).step_by(2)) {
                        // The digits differ, so that a token of the wrong type belongs to none of them.
                        let tokens = [json!(17 + n), json!((18 + n).to_string())];
                        let with = |n: i64, token: &Value| cx.request(n, "tools/call", json!({ "name": call.tool, "arguments": call.args, "_meta": { "progressToken": token } }));
                        // Quick ones one after the other, so that the token of the first is no token of the second.
                        let quick = call.took_ms < crate::cx::SLOW;
                        steps.push(with(n, &tokens[0]));
                        steps.extend(quick.then(|| Step::Await(cx.id(n))));
                        steps.extend([with(n + 1, &tokens[1]), Step::Await(cx.id(n)), Step::Await(cx.id(n + 1))]);
                    }
                    // Progress that comes after the answer comes now.
                    steps.push(Step::Listen(60));
                    // Without a token, after one had it: `progress-known` looks at what comes.
                    for (n, call) in (40..).zip(cx.survey.calls.iter().filter(|call| call.worked()).take(20)) {
                        steps.push(cx.request(n, "tools/call", json!({ "name": call.tool, "arguments": call.args })));
                    }
                    steps.extend((40..).zip(cx.survey.calls.iter().filter(|call| call.worked()).take(20)).map(|(n, _)| Step::Await(cx.id(n))));
                    Ok(steps)
                },
                |cx, seen| verdict((0..40).map(|n| cx.id(n)).take_while(|id| seen.own.contains(id)).try_for_each(|id| result(seen, &id).map(|_| ()))),
            ),
        Check::must("tasks-ignored", &["TSK-02", "TSK-01"], Revisions::ONLY_1125,
            "A server without tasks ignores `task` in a call and answers as always.")
            .sent("an allowed call with `task: {ttl: 60000}`")
            .hosts("A client that tries tasks with every server loses the call.")
            .after(&["init-result", "init-capability-shape"])
            .probe(
                |cx| {
                    let call = cx.survey.call(|_| true)?;
                    // What the tree of requests leaves out is not declared (TSK-01).
                    if cx.survey.declares("tasks/requests/tools/call") {
                        return Err("the server declares tasks".to_owned());
                    }
                    Ok(vec![cx.request(0, "tools/call", json!({ "name": call.tool, "arguments": call.args, "task": { "ttl": 60_000 } }))])
                },
                |cx, seen| match result(seen, &cx.id(0)) {
                    Ok(result) if result.get("content").is_some() => Verdict::Pass,
                    Ok(result) => fail(seen, format!("the result is {}", short(result))),
                    Err(verdict) => verdict,
                },
            ),
        Check::must("tasks-opt-in", &["TSX-01"], Revisions::MODERN,
            "A client that did not declare the tasks extension never gets a task.")
            .hosts("A client that does not know tasks takes the handle for the result.")
            .scan(|_, all| {
                let odd = all.answers().filter(|answer| answer.reply["result"]["resultType"] == "task" && !super::handles::asked(answer.params));
                Verdict::from_faults(odd.map(|answer| ("a call gave a task".to_owned(), answer.line.text())).collect())
            }),
        Check::should("input-stray", &["MRTR-12"], Revisions::MODERN,
            "Answers to questions that were never put are ignored.")
            .sent("each allowed call that is quick, with `inputResponses` for an unknown key")
            .hosts("A client that repeats a call after a restart loses it.")
            .probe(
                |cx| {
                    cx.survey.call(|_| true)?;
                    Ok((0..).zip(unasked(cx)).map(|(n, call)| {
                        let params = json!({ "name": call.tool, "arguments": call.args, "inputResponses": { "taut-check": { "action": "cancel" } } });
                        cx.request(n, "tools/call", params)
                    }).collect())
                },
                |cx, seen| verdict((0..).zip(unasked(cx)).try_for_each(|(n, _)| result(seen, &cx.id(n)).map(|_| ()))),
            ),
    ]
}

/// Allowed calls that worked without an answer from the client.
fn unasked<'a>(cx: &'a Cx<'_>) -> impl Iterator<Item = &'a crate::cx::Called> {
    let quick = |call: &&crate::cx::Called| call.worked() && call.took_ms < crate::cx::SLOW;
    cx.survey.calls.iter().filter(quick).take(10)
}

/// A text that fits into no buffer of a pipe.
fn long_text() -> String {
    format!("{}grün 漢字 🎈", "0123456789abcdef".repeat(200 << 6))
}

/// JSON text where everything beyond ASCII is an escape, as Python and PHP write it.
fn escaped(text: &str) -> String {
    let mut all = String::new();
    for c in text.chars() {
        match c.is_ascii() {
            true => all.push(c),
            false => {
                c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| all += &format!("\\u{unit:04x}"))
            }
        }
    }
    all
}

fn texts() -> [&'static str; 9] {
    [
        "grün und blau",
        "<b>one &amp; 'two'</b>",
        "",
        "漢字かな交じり文 🎈",
        "line\nbreak\r\nand\ttab",
        "a\u{2028}b\u{2029}c\u{85}d",
        "{\"a\":\"\\\\\"}",
        "עברית e\u{301}",
        "gr\u{fc}n \u{6f22}\u{5b57} \u{1F388}",
    ]
}

/// What is wrong with each of the calls below.
const BAD: [&str; 2] = ["without a required argument", "with an object for a text"];

/// The tool `echo` without its text, and with an object for it. Not with a number: some servers make a text of it,
/// which does no harm.
fn bad_arguments(cx: &Cx<'_>) -> crate::check::Sends {
    let required = |call: &crate::cx::Called| {
        let tool = cx.survey.tool(&call.tool)?;
        let names = tool["inputSchema"]["required"].as_array()?.iter();
        names
            .filter_map(Value::as_str)
            .find(|name| call.args.get(*name).is_some())
            .map(str::to_owned)
    };
    let call = cx.survey.echo()?;
    let name = required(call).ok_or("the allowed tool `echo` requires no argument")?;
    let (mut less, mut other) = (call.args.clone(), call.args.clone());
    if let (Some(less), Some(other)) = (less.as_object_mut(), other.as_object_mut()) {
        less.remove(&name);
        other.insert(name, json!({ "taut": [5] }));
    }
    Ok([less, other]
        .into_iter()
        .zip(0..)
        .map(|(args, n)| {
            cx.request(n, "tools/call", json!({ "name": call.tool, "arguments": args }))
        })
        .collect())
}
