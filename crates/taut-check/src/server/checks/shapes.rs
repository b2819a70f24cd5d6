//! Requests that do not fit: params, versions of JSON-RPC, and a handshake with holes (RPC, LIF).

use serde_json::{Value, json};

use super::{alive, fail, refused, verdict};
use crate::check::{Check, Revisions};
use crate::cx::Cx;
use crate::seen::Step;

/// Requests whose params lack a member that must be there, or have a number for it, where the server has the method.
fn requests(cx: &Cx<'_>) -> Vec<(&'static str, Value)> {
    let legacy = !cx.modern();
    let subscribes = legacy && cx.survey.declares("resources/subscribe");
    let none = || json!({});
    let all = [
        ("logging/setLevel", none(), legacy && cx.survey.declares("logging")),
        ("resources/subscribe", none(), subscribes),
        ("resources/subscribe", json!({ "uri": 5 }), subscribes),
        ("resources/unsubscribe", none(), subscribes),
        ("completion/complete", none(), cx.survey.declares("completions")),
    ];
    all.into_iter().filter(|(.., has)| *has).map(|(method, params, _)| (method, params)).collect()
}

/// Methods that a server has for certain.
fn methods(cx: &Cx<'_>) -> Vec<&'static str> {
    let lists = super::lists(cx).into_iter().filter(|(_, _, list)| !list.pages.is_empty());
    let lists = lists.map(|(method, ..)| method);
    let call = cx.survey.declares("tools").then_some("tools/call");
    // In 2026-07-28 params without `_meta` are refused for that alone.
    lists.chain(call).chain((!cx.modern()).then_some("ping")).collect()
}

/// Params by position, as JSON-RPC alone has them: those of an allowed call, or none.
fn positional(cx: &Cx<'_>, method: &str) -> Value {
    let call = cx.survey.call(|call| call.took_ms < crate::cx::SLOW).ok();
    let call = call.filter(|_| method == "tools/call");
    call.map_or_else(|| json!([]), |call| json!([call.tool, call.args]))
}

/// A request that is right but for its version of JSON-RPC.
fn versions(cx: &Cx<'_>) -> Vec<Value> {
    let mut all = [json!("1.0"), json!(2.0), Value::Null].to_vec();
    for (version, n) in all.iter_mut().zip(0..) {
        let mut message = cx.harmless_as(&cx.id(n));
        match version.take() {
            Value::Null => message.as_object_mut().and_then(|members| members.remove("jsonrpc")),
            odd => {
                message.as_object_mut().and_then(|members| members.insert("jsonrpc".into(), odd))
            }
        };
        *version = message;
    }
    all
}

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::advice("rpc-params", &["RPC-18", "ERR-01"], Revisions::ALL,
            "Params without what the method needs, or with another type for it, are refused with -32602.")
            .sent("`logging/setLevel`, `resources/subscribe`, `resources/unsubscribe` and `completion/complete` with {}, and a number as the uri, where they are declared")
            .hosts("No host sends it; a server that goes on does something that nobody named.")
            .after(&["log-bad-level", "resources-subscribe", "complete-reference"])
            .probe(
                |cx| match requests(cx) {
                    methods if methods.is_empty() => Err("the server declares none of these".to_owned()),
                    methods => Ok(methods.iter().zip(0..).map(|((method, params), n)| cx.request(n, method, params.clone())).collect()),
                },
                |cx, seen| verdict(requests(cx).iter().zip(0..).try_for_each(|(_, n)| refused(seen, &cx.id(n), &[-32602]))),
            ),
        Check::advice("rpc-params-array", &["RPC-14"], Revisions::ALL,
            "Params are an object; a list or a text is invalid: -32602 or -32600.")
            .sent("each list, `tools/call` and `ping` with a list as params, which names an allowed call, then with a text and with null for them")
            .hosts("No host sends it; a server that serves it does not look at what it gets.")
            .probe(
                |cx| match methods(cx) {
                    methods if methods.is_empty() => Err("the server declares no list".to_owned()),
                    methods => Ok(methods.iter().zip(0..).flat_map(|(method, n)| {
                        [(n, positional(cx, method)), (n + 10, json!("taut-check")), (n + 20, Value::Null)].map(|(n, params)| Step::Send(json!({ "jsonrpc": "2.0", "id": cx.id(n), "method": method, "params": params })))
                    }).collect()),
                },
                |cx, seen| verdict(methods(cx).iter().zip(0..).flat_map(|(method, n)| [(method, n), (method, n + 10), (method, n + 20)]).try_for_each(|(method, n)| match seen.reply(&cx.id(n)) {
                    // Many readers take null for params that are not there.
                    Some(_) if n >= 20 => Ok(()),
                    Some(reply) if super::served(reply) => Err(fail(seen, format!("{method} was served"))),
                    // Dropped as a whole, as what is no message may be.
                    None => alive(seen),
                    // In both eras at once it may be refused for another reason.
                    Some(_) if cx.modern() => Ok(()),
                    Some(_) => refused(seen, &cx.id(n), &[-32602, -32600]),
                })),
            ),
        Check::advice("rpc-version-asked", &["RPC-01"], Revisions::ALL,
            "A request without `jsonrpc: \"2.0\"` is no request: it is refused with -32600, or dropped.")
            .sent("a request with the version \"1.0\", with the number 2.0, and without any")
            .hosts("No host sends it; a server that serves it does not look at what it gets.")
            .probe(
                |cx| Ok(versions(cx).into_iter().map(Step::Send).chain([Step::Barrier]).collect()),
                |cx, seen| verdict((0..3).try_for_each(|n| match seen.reply(&cx.id(n)) {
                    None => alive(seen),
                    Some(_) => refused(seen, &cx.id(n), &[-32600, -32602]),
                })),
            ),
        Check::advice("rpc-invalid-id", &["RPC-16"], Revisions::ALL,
            "What is no request, and has an id, is refused with that id.")
            .sent("an object with an id and without a method")
            .hosts("A client cannot tell which of its messages was wrong.")
            .probe(
                |cx| Ok(vec![Step::Send(json!({ "jsonrpc": "2.0", "id": cx.id(0) })), Step::Barrier, Step::Listen(40)]),
                |cx, seen| match (seen.reply(&cx.id(0)), super::idless(seen)) {
                    (None, Some(_)) => fail(seen, "the id could be read, and the error has none"),
                    _ => verdict(alive(seen)),
                },
            ),
    ]
}
