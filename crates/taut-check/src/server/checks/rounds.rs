//! What the fixture's tools that ask back show: every kind of question, several rounds, forms (MRTR, ELI).

use serde_json::{Value, json};

use super::fixture::{answered, asking, asks, every, fixture};
use super::{fail, result, short, verdict};
use crate::check::{Check, Revisions, Verdict};
use crate::cx::Cx;
use crate::seen::{Seen, Step, is_request};

/// Tools that put one round of questions, each with the methods that it asks.
const KINDS: [(&str, &[&str]); 4] = [
    ("test_input_required_result_sampling", &["sampling/createMessage"]),
    ("test_input_required_result_list_roots", &["roots/list"]),
    (
        "test_input_required_result_multiple_inputs",
        &["elicitation/create", "sampling/createMessage", "roots/list"],
    ),
    ("test_input_required_result_request_state", &[]),
];

const ROUNDS: &str = "test_input_required_result_multi_round";
const PROMPT: &str = "test_input_required_result_prompt";
const CHOOSES: &str = "test_input_required_result_capabilities";
const STREAMS: &str = "test_streaming_elicitation";
const ASKS: &str = "test_input_required_result_elicitation";

/// Tools of the older revisions that ask.
const ASKING: [&str; 2] = ["test_elicitation", "test_sampling"];

/// Tools of the older revisions whose forms have defaults, and choices.
const FORMS: [&str; 2] = ["test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums"];

/// What a client declares that can open a page and show no form.
fn pages_only() -> Value {
    json!({ "elicitation": { "url": {} } })
}

fn call(cx: &Cx<'_>, n: i64, tool: &str, caps: &Value) -> Step {
    cx.request_with(n, "tools/call", json!({ "name": tool, "arguments": {} }), caps)
}

/// The fixture's tools of a list that the server has.
fn there<T: Copy>(
    cx: &Cx<'_>,
    all: impl IntoIterator<Item = T>,
    name: fn(T) -> &'static str,
) -> Result<Vec<T>, String> {
    let mut missing = String::new();
    let known = all.into_iter().filter(|one| match fixture(cx, name(*one)) {
        Ok(()) => true,
        Err(why) => {
            missing = why;
            false
        }
    });
    let known: Vec<T> = known.collect();
    if known.is_empty() { Err(missing) } else { Ok(known) }
}

fn kinds(cx: &Cx<'_>) -> Result<Vec<(&'static str, &'static [&'static str])>, String> {
    there(cx, KINDS, |(tool, _)| tool)
}

/// Two of them, which ask differently.
fn pair(cx: &Cx<'_>) -> Result<[&'static str; 2], String> {
    match kinds(cx)?.as_slice() {
        [(first, _), .., (last, _)] => Ok([first, last]),
        _ => Err("the server has only one of the fixture's tools that ask".to_owned()),
    }
}

/// Whether a call asks back in a form that fits, for what was declared.
fn asked<'a>(seen: &Seen<'a>, id: &Value, caps: &Value) -> Result<&'a Value, Verdict> {
    let result = result(seen, id)?;
    if result["resultType"] != "input_required" {
        return Err(fail(seen, format!("it did not ask: {}", short(result))));
    }
    match asks(result, caps) {
        Some(what) => Err(fail(seen, what)),
        None => Ok(result),
    }
}

/// Whether a call is over, and worked.
fn finished(seen: &Seen<'_>, id: &Value) -> Result<(), Verdict> {
    if !seen.own.contains(id) {
        return Err(fail(seen, "the call could not be tried again"));
    }
    match result(seen, id)? {
        // Whether it says so in the right words is judged by other checks.
        result if result["resultType"] != "input_required" && result["isError"] != true => Ok(()),
        result => {
            Err(fail(seen, format!("the answers did not finish the call: {}", short(result))))
        }
    }
}

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::must("input-kinds", &["MRTR-02", "MRTR-03", "MRTR-05", "SAM-02", "ELI-02"], Revisions::MODERN,
            "Each kind of question is put in inputRequests, with what it needs, and its answer finishes the call.")
            .sent("the fixture's tools that ask for a model, for roots, for all three kinds and with a state, and their answers")
            .hosts("A client cannot answer it, so the call never ends.")
            .after(&["input-shape", "input-asks"])
            .probe(
                |cx| Ok((0..).step_by(2).zip(kinds(cx)?).flat_map(|(n, (tool, _))| [
                    call(cx, n, tool, &every()),
                    Step::Follow(cx.id(n), cx.id(n + 1), |reply, id, request| answered(reply, id, request, str::to_owned)),
                    Step::Await(cx.id(n + 1)),
                ]).collect()),
                |cx, seen| verdict((0..).step_by(2).zip(kinds(cx).unwrap_or_default()).try_for_each(|(n, (tool, methods))| {
                    let result = asked(seen, &cx.id(n), &every())?;
                    let put: Vec<&Value> = result["inputRequests"].as_object().into_iter().flatten().map(|(_, entry)| &entry["method"]).collect();
                    if let Some(missing) = methods.iter().find(|method| !put.iter().any(|one| *one == *method)) {
                        return Err(fail(seen, format!("{tool} did not ask {missing}")));
                    }
                    finished(seen, &cx.id(n + 1))
                })),
            ),
        Check::must("input-prompt", &["MRTR-02", "MRTR-03", "MRTR-14", "ELI-02"], Revisions::MODERN,
            "A prompt asks back like a tool: in inputRequests, without cache hints, and the answer finishes the request.")
            .sent("the fixture's prompt `test_input_required_result_prompt`, and its answer")
            .hosts("A client cannot answer it, so the user never gets the prompt.")
            .after(&["input-shape", "frame-flush"])
            .probe(
                |cx| {
                    let listed = cx.survey.prompts.items.iter().any(|prompt| prompt["name"] == PROMPT);
                    if !cx.fixture {
                        return Err("needs --fixture".to_owned());
                    }
                    if !listed {
                        return Err(format!("the server has no prompt {PROMPT}"));
                    }
                    Ok(vec![
                        cx.request_with(0, "prompts/get", json!({ "name": PROMPT }), &every()),
                        Step::Follow(cx.id(0), cx.id(1), |reply, id, request| answered(reply, id, request, str::to_owned)),
                        Step::Await(cx.id(1)),
                    ])
                },
                |cx, seen| verdict(asked(seen, &cx.id(0), &every()).and_then(|_| finished(seen, &cx.id(1)))),
            ),
        Check::should("input-interleaved", &["STD-26", "MRTR-05"], Revisions::MODERN,
            "Two tools may ask at once, and each goes on with its own answer.")
            .sent("the fixture's tools that ask for a model and for all three kinds, both before either is answered")
            .hosts("A gateway serves two users with one process.")
            .after(&["input-shape", "input-kinds"])
            .probe(
                |cx| {
                    let two = pair(cx)?;
                    let mut steps: Vec<Step> = (0..).zip(two).map(|(n, tool)| call(cx, n, tool, &every())).collect();
                    steps.push(Step::Await(cx.id(1)));
                    for n in 0..2 {
                        steps.extend([
                            Step::Follow(cx.id(n), cx.id(n + 10), |reply, id, request| answered(reply, id, request, str::to_owned)),
                            Step::Await(cx.id(n + 10)),
                        ]);
                    }
                    Ok(steps)
                },
                |cx, seen| verdict((0..2).try_for_each(|n| finished(seen, &cx.id(n + 10)))),
            ),
        Check::must("input-rounds", &["MRTR-02", "MRTR-03", "MRTR-05"], Revisions::MODERN,
            "A call may ask again after it was answered, and ends when all is answered.")
            .sent("the fixture's `test_input_required_result_multi_round`, answered twice")
            .hosts("A tool that needs two answers never ends, or asks the first question for ever.")
            .after(&["input-shape", "input-asks"])
            .probe(
                |cx| {
                    fixture(cx, ROUNDS)?;
                    let mut steps = vec![call(cx, 0, ROUNDS, &every())];
                    for n in 0..2 {
                        steps.extend([
                            Step::Follow(cx.id(n), cx.id(n + 1), |reply, id, request| answered(reply, id, request, str::to_owned)),
                            Step::Await(cx.id(n + 1)),
                        ]);
                    }
                    Ok(steps)
                },
                |cx, seen| {
                    let rounds = asked(seen, &cx.id(0), &every()).and_then(|first| {
                        let second = asked(seen, &cx.id(1), &every())?;
                        if first["inputRequests"] == second["inputRequests"] {
                            return Err(fail(seen, "the second round asks what was answered in the first"));
                        }
                        finished(seen, &cx.id(2))
                    });
                    verdict(rounds)
                },
            ),
        Check::must("input-declared", &["MRTR-04", "CAP-01", "CAP-03", "ELI-02", "ELI-04", "SAM-02", "SAM-05", "STD-25"], Revisions::MODERN,
            "A tool that may ask in several ways asks in one that this request declares.")
            .sent("the fixture's `test_input_required_result_capabilities` with sampling declared, after a request that declares everything; then its other tools that ask, with nothing declared, and its forms with the mode url alone declared; allowed calls that ask, with everything declared and then with less")
            .hosts("A client cannot answer what it did not declare, so the call never ends.")
            .after(&["input-shape"])
            .probe(
                |cx| {
                    let asked = super::asked::declaring_less(cx);
                    if let Err(why) = fixture(cx, CHOOSES) {
                        return if asked.is_empty() { Err(format!("{why}, and no allowed call asks back")) } else { Ok(asked) };
                    }
                    let mut steps = vec![cx.request_with(0, "tools/list", Value::Null, &every()), Step::Await(cx.id(0)), call(cx, 1, CHOOSES, &json!({ "sampling": {} }))];
                    steps.extend((2..).zip(kinds(cx).unwrap_or_default()).map(|(n, (tool, _))| call(cx, n, tool, &json!({}))));
                    if fixture(cx, ASKS).is_ok() {
                        steps.push(call(cx, 30, ASKS, &pages_only()));
                    }
                    steps.extend(asked);
                    Ok(steps)
                },
                |cx, seen| {
                    if let Some(what) = super::asked::asks_beyond(cx, seen) {
                        return fail(seen, what);
                    }
                    if fixture(cx, CHOOSES).is_err() {
                        return verdict(super::alive(seen));
                    }
                    // With nothing declared it may refuse or fail, and may not ask.
                    let asks_anyway = (2..).zip(kinds(cx).unwrap_or_default()).find_map(|(n, (tool, _))| {
                        let result = seen.result(&cx.id(n)).filter(|result| result["resultType"] == "input_required")?;
                        asks(result, &json!({})).map(|what| format!("{tool}: {what}"))
                    });
                    let form = seen.result(&cx.id(30)).filter(|result| result["resultType"] == "input_required");
                    let form = form.and_then(|result| asks(result, &pages_only()));
                    match asks_anyway.or(form) {
                        Some(what) => fail(seen, what),
                        None => verdict(asked(seen, &cx.id(1), &json!({ "sampling": {} })).map(|_| ())),
                    }
                },
            ),
        Check::should("input-again", &["MRTR-11"], Revisions::MODERN,
            "A call that is tried again without the answers asks once more; it is no error.")
            .sent("the fixture's `test_input_required_result_elicitation`, or an allowed call that asks, then once more with its state and no answers")
            .hosts("A client that lost an answer cannot ask its user again.")
            .after(&["input-shape", "input-asks"])
            .probe(
                |cx| {
                    let (params, caps) = asking(cx, ASKS, every())?;
                    Ok(vec![cx.request_with(0, "tools/call", params, &caps), Step::Follow(cx.id(0), cx.id(1), |reply, id, request| {
                        let mut again = answered(reply, id, request, str::to_owned)?;
                        again["params"]["inputResponses"] = json!({});
                        Some(again)
                    }), Step::Await(cx.id(1))])
                },
                |cx, seen| {
                    if !seen.own.contains(&cx.id(1)) {
                        return Verdict::skip("the tool did not ask");
                    }
                    let caps = asking(cx, ASKS, every()).map(|(_, caps)| caps).unwrap_or_default();
                    verdict(asked(seen, &cx.id(1), &caps).map(|_| ()))
                },
            ),
        Check::should("input-malformed", &["MRTR-12"], Revisions::MODERN,
            "An answer that has not the form of its question is refused with -32602, or asked for again.")
            .sent("the fixture's `test_input_required_result_elicitation`, or an allowed call that asks, with the number 5 for each answer")
            .hosts("A tool goes on with an answer that nobody gave.")
            .after(&["input-shape", "input-asks", "input-again"])
            .probe(
                |cx| {
                    let (params, caps) = asking(cx, ASKS, every())?;
                    Ok(vec![cx.request_with(0, "tools/call", params, &caps), Step::Follow(cx.id(0), cx.id(1), |reply, id, request| {
                        let mut again = answered(reply, id, request, str::to_owned)?;
                        let answers = again["params"]["inputResponses"].as_object_mut()?;
                        answers.values_mut().for_each(|answer| *answer = json!(5));
                        Some(again).filter(|again| again["params"]["inputResponses"].as_object().is_some_and(|all| !all.is_empty()))
                    }), Step::Await(cx.id(1))])
                },
                |cx, seen| {
                    if !seen.own.contains(&cx.id(1)) {
                        return Verdict::skip("the tool did not ask");
                    }
                    match seen.result(&cx.id(1)) {
                        Some(result) if result["resultType"] == "input_required" || result["isError"] == true => Verdict::Pass,
                        Some(result) => fail(seen, format!("the call went on: {}", short(result))),
                        None => verdict(super::refused(seen, &cx.id(1), &[-32602])),
                    }
                },
            ),
        Check::must("input-no-request", &["STD-21", "DEP-04", "RPC-36"], Revisions::MODERN,
            "A tool that needs an answer at once gets it by input_required, too; the server sends no request.")
            .sent("the fixture's `test_streaming_elicitation`")
            .hosts("Clients of 2026-07-28 have no way to answer; the call hangs.")
            .after(&["input-shape"])
            .probe(
                |cx| {
                    fixture(cx, STREAMS)?;
                    Ok(vec![call(cx, 0, STREAMS, &every()), Step::Await(cx.id(0))])
                },
                |cx, seen| match seen.got().find(|value| is_request(value)) {
                    Some(request) => fail(seen, format!("the server asked {}", request["method"])),
                    None => verdict(asked(seen, &cx.id(0), &every()).map(|_| ())),
                },
            ),
        Check::must("input-forms", &["ELI-10", "ELI-02"], Revisions::ONLY_1125,
            "Forms have the fields of this revision: defaults that fit their type, and choices with and without titles.")
            .sent("the fixture's `test_elicitation_sep1034_defaults` and `test_elicitation_sep1330_enums`")
            .hosts("A client refuses the form, or shows fields without their defaults.")
            .after(&["rpc-own-null"])
            .fresh(
                |cx| {
                    let forms = there(cx, FORMS, |tool| tool)?;
                    let mut steps = vec![Step::Open(json!({ "elicitation": {} }))];
                    for (n, tool) in (0..).zip(forms) {
                        steps.extend([cx.request(n, "tools/call", json!({ "name": tool, "arguments": {} })), Step::Await(cx.id(n))]);
                    }
                    Ok(steps)
                },
                |cx, seen| {
                    let forms = there(cx, FORMS, |tool| tool).unwrap_or_default();
                    let asked: Vec<&Value> = seen.got().filter(|value| is_request(value) && value["method"] == "elicitation/create").collect();
                    if asked.len() < forms.len() {
                        return fail(seen, format!("{} forms came, {} are due", asked.len(), forms.len()));
                    }
                    for form in &asked {
                        if let Some(what) = crate::schema::objection(cx.revision, form, None) {
                            return fail(seen, what);
                        }
                        if let Some(what) = misfitting_default(&form["params"]["requestedSchema"]) {
                            return fail(seen, what);
                        }
                    }
                    verdict((0..).zip(&forms).try_for_each(|(n, _)| result(seen, &cx.id(n)).map(|_| ())))
                },
            ),
        Check::must("input-declared-legacy", &["LIF-12", "LIF-11", "SAM-01", "ELI-01"], Revisions::STRUCTURED_LEGACY,
            "A tool that has to ask does not ask a client that cannot answer; the call ends all the same.")
            .sent("the fixture's `test_elicitation` and `test_sampling` from a client that declares neither")
            .hosts("Codex, Gemini CLI and most SDK hosts declare no sampling: the request fails and the tool with it.")
            .probe(
                |cx| {
                    let tools = there(cx, ASKING, |tool| tool)?;
                    Ok((0..).zip(tools).flat_map(|(n, tool)| [call(cx, n, tool, &json!({})), Step::Await(cx.id(n))]).collect())
                },
                |cx, seen| {
                    let asks = |value: &&Value| is_request(value) && ["elicitation/create", "sampling/createMessage"].iter().any(|method| value["method"] == *method);
                    match seen.got().find(asks) {
                        Some(value) => fail(seen, format!("it asked {}", value["method"])),
                        None => {
                            let tools = there(cx, ASKING, |tool| tool).unwrap_or_default();
                            verdict((0..).zip(tools).try_for_each(|(n, _)| match seen.reply(&cx.id(n)) {
                                Some(_) => Ok(()),
                                None => Err(super::unanswered(seen, &cx.id(n))),
                            }))
                        }
                    }
                },
            ),
        Check::must("listen-cancel-fixture", &["SUB-07", "CAN-10"], Revisions::MODERN,
            "A subscription that was cancelled is told of no change.")
            .sent("`subscriptions/listen` for changes of tools with an integer and with a string as its id, both cancelled, then the fixture's `test_trigger_tool_change`")
            .hosts("A client hears of changes on a stream that it closed.")
            .after(&["listen-ack", "listen-answer", "listen-cancel"])
            .fresh(
                |cx| {
                    fixture(cx, "test_trigger_tool_change")?;
                    super::needs(cx, "tools/listChanged")?;
                    let ids = [cx.id(0), json!("taut-check-listen")];
                    let mut steps = vec![Step::Open(json!({}))];
                    for id in &ids {
                        let params = json!({ "notifications": { "toolsListChanged": true } });
                        steps.extend([
                            Step::Send(cx.request_as(id, "subscriptions/listen", params)),
                            Step::Hear("notifications/subscriptions/acknowledged"),
                        ]);
                    }
                    // Both are open by now.
                    steps.push(Step::Barrier);
                    steps.extend(ids.iter().map(|id| cx.note("notifications/cancelled", json!({ "requestId": id }))));
                    steps.extend([
                        Step::Barrier,
                        call(cx, 1, "test_trigger_tool_change", &json!({})),
                        Step::Await(cx.id(1)),
                        Step::Barrier,
                        Step::Listen(150),
                    ]);
                    Ok(steps)
                },
                |_, seen| match changes_told(seen) {
                    true => fail(seen, "notifications/tools/list_changed came after the cancellation"),
                    false => verdict(super::alive(seen)),
                },
            ),
    ]
}

/// Whether a change of tools was told after the tool that makes one was called.
fn changes_told(seen: &Seen<'_>) -> bool {
    let call = |entry: &crate::process::Entry| match &entry.what {
        crate::process::What::Sent(bytes) => {
            String::from_utf8_lossy(bytes).contains("test_trigger_tool_change")
        }
        _ => false,
    };
    let later = seen.entries.iter().skip_while(|entry| !call(entry));
    later
        .filter_map(crate::process::Entry::value)
        .any(|value| value["method"] == "notifications/tools/list_changed")
}

/// The first field of a form whose choices are no texts, or whose default is no value of it.
fn misfitting_default(schema: &Value) -> Option<String> {
    schema["properties"].as_object()?.iter().find_map(|(name, field)| {
        if field.get("enum").is_some() && field["type"] != "string" {
            return Some(format!("{name} has choices, and is no text"));
        }
        let default = field.get("default")?;
        let fits = match field["type"].as_str().unwrap_or_default() {
            "boolean" => default.is_boolean(),
            "integer" => default.as_f64().is_some_and(|number| number.fract() == 0.0),
            "number" => default.is_number(),
            "array" => default.is_array(),
            _ => {
                default.is_string()
                    && field["enum"].as_array().is_none_or(|all| all.contains(default))
            }
        };
        (!fits).then(|| format!("the default of {name} is {default}"))
    })
}
