//! What the specification leaves open and hosts still depend on. These never fail a run.

use serde_json::{Value, json};

use super::{alive, fail, result, short, silent, verdict};
use crate::check::{Check, Revisions, Verdict};
use crate::lint::lint;
use crate::seen::{Step, is_response};

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::advice("frame-crlf", &["STD-09"], Revisions::ALL, "A request that ends with CR LF is served, and answers end with LF alone.")
            .sent("a request that ends with CR LF")
            .hosts("Tools on Windows write CR LF.")
            .probe(
                |cx| Ok(vec![Step::Raw(format!("{}\r\n", cx.harmless_as(&cx.id(0))).into_bytes()), Step::Await(cx.id(0))]),
                |cx, seen| {
                    if seen.frames().any(|frame| frame.cr) {
                        return fail(seen, "an answer ends with CR LF");
                    }
                    verdict(result(seen, &cx.id(0)).map(|_| ()))
                },
            ),
        Check::advice("frame-bom", &["STD-11"], Revisions::ALL, "A byte order mark before a request does not end the server.")
            .sent("a byte order mark and a request, then a plain request")
            .hosts("Redirections on Windows write it.")
            .probe(
                |cx| Ok(vec![Step::Raw(format!("\u{FEFF}{}\n", cx.harmless_as(&cx.id(0))).into_bytes())]),
                |_, seen| verdict(alive(seen)),
            ),
        Check::advice("frame-long", &["STD-16"], Revisions::ALL, "A message of 1 MiB is served.")
            .sent("a request whose `_meta` has a text of 1 MiB")
            .hosts("Files that a model writes are arguments of a call.")
            .probe(
                |cx| {
                    let mut message = cx.harmless_as(&cx.id(0));
                    message["params"]["_meta"]["example.com/text"] = Value::from("x".repeat(1 << 20));
                    Ok(vec![Step::Send(message), Step::Await(cx.id(0))])
                },
                |cx, seen| verdict(result(seen, &cx.id(0)).map(|_| ())),
            ),
        Check::advice("frame-last-line", &["STD-14"], Revisions::ALL, "A last request without LF is answered before the server exits.")
            .sent("a request without LF, then the end of stdin")
            .hosts("A script that pipes one request in gets no answer.")
            .once()
            .fresh(
                |cx| Ok(vec![Step::Open(json!({})), Step::Raw(cx.harmless_as(&cx.id(0)).to_string().into_bytes()), Step::Close]),
                |cx, seen| if seen.result(&cx.id(0)).is_some() { Verdict::Pass } else { fail(seen, "it was not answered") },
            ),
        Check::advice("rpc-extra-members", &["RPC-20"], Revisions::ALL, "Members that nobody knows are ignored.")
            .sent("a request with an unknown member beside `method` and in `params`")
            .hosts("New revisions add members; old servers have to live with them.")
            .probe(
                |cx| {
                    let mut message = cx.harmless_as(&cx.id(0));
                    message["x-extra"] = json!(1);
                    message["params"]["x-extra"] = json!({ "a": [1] });
                    Ok(vec![Step::Send(message)])
                },
                |cx, seen| verdict(result(seen, &cx.id(0)).map(|_| ())),
            ),
        Check::advice("rpc-big-id", &["RPC-28"], Revisions::ALL, "An id above 2^53 comes back digit by digit.")
            .sent("a request with the id 9007199254740993")
            .hosts("Ids made of a time in nanoseconds.")
            .probe(
                |cx| Ok(vec![Step::Send(cx.harmless_as(&json!(9_007_199_254_740_993_i64)))]),
                |_, seen| verdict(result(seen, &json!(9_007_199_254_740_993_i64)).map(|_| ())),
            ),
        Check::advice("rpc-stray-response", &["RPC-21"], Revisions::ALL, "An answer to nothing is dropped.")
            .sent("a result and an error with ids that the server never used")
            .hosts("A host that answers late.")
            .silent()
            .probe(
                |_| Ok(vec![Step::Send(json!({ "jsonrpc": "2.0", "id": 987_654_321, "result": {} })),
                    Step::Send(json!({ "jsonrpc": "2.0", "id": "taut-none", "error": { "code": -32601, "message": "none" } })),
                    Step::Send(json!({ "jsonrpc": "2.0", "error": { "code": -32700, "message": "none" } }))]),
                |_, seen| {
                    let odd = seen.got().find(|value| is_response(value) && (value["id"] == 987_654_321 || value["id"] == "taut-none"));
                    match odd {
                        Some(odd) => fail(seen, format!("it was answered: {}", short(odd))),
                        None => verdict(silent(seen)),
                    }
                },
            ),
        Check::advice("rpc-deep", &["RPC-34"], Revisions::ALL, "A value nested 10 000 deep does not end the server.")
            .sent("a request whose params hold 10 000 arrays within each other")
            .hosts("A model, or who writes into its prompt, ends the server with one call.")
            .probe(
                |cx| {
                    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
                    let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"taut-check/none\",\"params\":{{\"_meta\":{},\"x\":{deep}}}}}\n", cx.id(0), cx.meta());
                    Ok(vec![Step::Raw(line.into_bytes())])
                },
                |_, seen| verdict(alive(seen)),
            ),
        Check::advice("init-before", &["LIF-13", "ERA-07"], Revisions::LEGACY, "A request before the handshake is answered, and the handshake still works.")
            .sent("`tools/list` first, then the handshake")
            .hosts("rmcp ends after the first error; a probe by Claude Code or Copilot costs the server.")
            .once()
            .fresh(
                |cx| Ok(vec![cx.request(0, "tools/list", Value::Null), Step::Listen(150), Step::Open(json!({})), Step::Barrier]),
                |_, seen| match &seen.opened {
                    Some(_) => verdict(alive(seen)),
                    None => fail(seen, "the handshake did not work afterwards"),
                },
            ),
        Check::advice("init-probe", &["DIS-07", "ERA-06", "PRB-04"], Revisions::LEGACY, "`server/discover` as the first message is answered; after an error the handshake still works.")
            .sent("`server/discover` of 2026-07-28, then the handshake")
            .hosts("Claude Code waits 3 s, Copilot and Python 10 s for an answer; if the server ends, Copilot and Python lose it.")
            .once()
            .fresh(
                |cx| {
                    let probe = crate::cx::request(crate::ours::Revision::MODERN, &cx.id(0), "server/discover", Value::Null, &json!({}));
                    Ok(vec![Step::Send(probe), Step::Await(cx.id(0)), Step::Open(json!({})), Step::Barrier])
                },
                |cx, seen| match (seen.reply(&cx.id(0)), &seen.opened) {
                    (None, _) => fail(seen, "the probe was not answered"),
                    // Nobody falls back after a full answer, so the handshake may be refused with the versions.
                    (Some(reply), None) if reply["result"]["supportedVersions"].is_array() && seen.got().any(|it| it["error"]["code"] == -32022) => verdict(alive(seen)),
                    (_, None) => fail(seen, "the handshake did not work afterwards"),
                    _ => verdict(alive(seen)),
                },
            ),
        Check::advice("ping-first", &["PNG-02"], Revisions::LEGACY, "`ping` is answered before the handshake.")
            .sent("`ping` as the first message")
            .hosts("Some hosts ping to see whether a server is up.")
            .once()
            .fresh(
                |cx| Ok(vec![cx.request(0, "ping", Value::Null), Step::Await(cx.id(0))]),
                |cx, seen| verdict(result(seen, &cx.id(0)).map(|_| ())),
            ),
        Check::advice("init-again", &["LIF-14"], Revisions::LEGACY, "A second handshake leaves the session usable.")
            .sent("`initialize` once more in an open session")
            .hosts("supergateway sends it in its stateless mode.")
            .once()
            .fresh(
                |cx| Ok(vec![Step::Open(json!({})), Step::Send(crate::cx::initialize(&cx.id(0), cx.revision.as_str(), &json!({}))), Step::Await(cx.id(0)), Step::Barrier]),
                |_, seen| verdict(alive(seen)),
            ),
        Check::advice("error-undeclared-legacy", &["ERR-14", "LOG-13"], Revisions::LEGACY, "A method behind a capability that is not declared is refused with -32601.")
            .sent("the list of each capability that is not declared")
            .hosts("An empty list looks like a feature that is there.")
            .probe(
                |cx| {
                    let all = [("tools", "tools/list"), ("resources", "resources/list"), ("prompts", "prompts/list")];
                    let steps: Vec<Step> = all.iter().enumerate().filter(|(_, (capability, _))| !cx.survey.declares(capability))
                        .map(|(n, (_, method))| cx.request(i64::try_from(n).unwrap_or(0), method, Value::Null)).collect();
                    if steps.is_empty() { Err("the server declares everything".to_owned()) } else { Ok(steps) }
                },
                |cx, seen| verdict((0..3).filter(|n| seen.own.contains(&cx.id(*n))).try_for_each(|n| super::refused(seen, &cx.id(n), &[-32601]))),
            ),
        Check::advice("tools-hosts", &["TOL-03", "TOL-21"], Revisions::ALL, "The schemas and names of the tools have nothing in them that some hosts cannot use.")
            .hosts("AutoGen loads no tool of a server with one odd format, and the interfaces of models refuse all tools for one. `taut doctor` says what to change.")
            .scan(|cx, _| {
                // Pages are right, and other checks need them: `taut doctor` names the hosts that read one page only.
                let serious = lint(&cx.survey.tools.items, None).into_iter().filter(|found| found.rule.is_serious());
                let told = serious.map(|found| (format!("{}: {found}; it hurts {}", found.rule.name(), found.rule.hurts()), String::new()));
                match Verdict::from_faults(told.collect()) {
                    // The list itself is no news.
                    Verdict::Fail { what, .. } => Verdict::fail(what),
                    verdict => verdict,
                }
            }),
        Check::advice("result-legacy", &["RSL-05"], Revisions::LEGACY, "Results of older revisions carry no resultType, ttlMs or cacheScope.")
            .hosts("Harmless in known hosts; they are members of a later revision.")
            .scan(|_, all| {
                let odd = all.answers().filter(|answer| {
                    let modern = answer.params["_meta"].get(crate::cx::VERSION).is_some();
                    !modern && ["resultType", "ttlMs", "cacheScope"].iter().any(|name| answer.reply["result"].get(*name).is_some())
                });
                Verdict::from_faults(odd.map(|answer| (format!("the result of {} has a member of 2026-07-28", answer.method), answer.line.text())).collect())
            }),
    ]
}
