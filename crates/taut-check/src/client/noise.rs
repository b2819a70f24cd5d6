//! What a played server says without being asked: questions, notifications, and what is odd.
//!
//! Judges nothing.

use std::io::{self, Write as _};

use serde_json::{Value, json};

use super::rounds;

/// What is odd and right, and cancellations that are wrong and do no harm.
pub(super) fn oddness(say: impl Fn(&Value)) {
    for params in [json!({}), json!({ "requestId": null }), json!({ "requestId": { "a": 1 } })] {
        say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    }
    for id in [json!(""), json!(-1), json!("7"), json!("odd-last")] {
        say(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
    }
}

/// Batches, one of which wants no answer.
pub(super) fn batches(say: impl Fn(&Value)) {
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/no_such" });
    let ping = |id: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
    say(&json!([ping("batch-1"), note, ping("batch-2")]));
    say(&json!([note]));
}

/// What a server of 2026-07-28 must not say, and what nobody asked.
pub(super) fn modern(say: impl Fn(&Value)) {
    let note = |method: &str, params: Value| {
        say(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    };
    note("taut-check/note", json!({}));
    note("notifications/tools/list_changed", json!({}));
    note("notifications/progress", json!({ "progressToken": "never-given", "progress": 1 }));
    note("notifications/cancelled", json!({}));
    say(&json!({ "jsonrpc": "2.0", "id": 987_654_321, "result": { "resultType": "complete" } }));
    let content = json!({ "type": "text", "text": "hi" });
    let sampling = json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": 5 });
    let form = json!({ "mode": "form", "message": "Who?", "requestedSchema": rounds::form(true) });
    let asked = [
        ("ask-1", "ping", json!({})),
        ("ask-2", "roots/list", json!({})),
        ("ask-3", "sampling/createMessage", sampling),
        ("ask-4", "elicitation/create", form),
        ("ask-5", "taut-check/none", json!({})),
    ];
    for (id, method, params) in asked {
        say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }
}

/// All that a client has to put up with, and some questions of the revision that was agreed on.
pub(super) fn rudeness(version: &str, say: impl Fn(&Value)) {
    let mut err = io::stderr().lock();
    let _ = err.write_all("a noisy line on stderr\n".repeat(20_000).as_bytes());
    let note = |method: &str, params: Value| {
        say(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    };
    note("notifications/no_such", json!({ "a": 1 }));
    note("taut-check/note", json!({}));
    note("notifications/tools/list_changed", json!({}));
    note("notifications/progress", json!({ "progressToken": "never-given", "progress": 1 }));
    note("notifications/cancelled", json!({ "requestId": "never-asked" }));
    note(
        "notifications/message",
        json!({ "level": "info", "data": "a log that nobody asked for" }),
    );
    say(&json!({ "jsonrpc": "2.0", "id": 987_654_321, "result": {} }));
    let ask = |id: Value, method: &str, params: Value| {
        say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    };
    ask(json!("ping-1"), "ping", json!({}));
    ask(json!(0), "ping", json!({ "_meta": { "progressToken": 78 } }));
    ask(json!("none-1"), "taut-check/none", json!({}));
    ask(json!(7701), "taut-check/none", json!({}));
    ask(json!("case-1"), "Ping", json!({}));
    ask(json!("case-2"), "ping ", json!({}));
    ask(json!("begin-1"), "sampling/none", json!({}));
    ask(json!("tasks-1"), "tasks/list", json!({}));
    ask(json!("roots-1"), "roots/list", json!({}));
    let content = json!({ "type": "text", "text": "hi" });
    let sampling = json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": 5 });
    // One that is not wanted any more as soon as it is asked, and a ping that shows that this was read.
    ask(json!("sampling-0"), "sampling/createMessage", sampling.clone());
    note("notifications/cancelled", json!({ "requestId": "sampling-0" }));
    ask(json!("after-0"), "ping", json!({}));
    let mut told = sampling.clone();
    told["_meta"] = json!({ "progressToken": 77 });
    ask(json!("sampling-1"), "sampling/createMessage", told);
    if version >= "2025-06-18" {
        let form =
            json!({ "message": "Who?", "requestedSchema": rounds::form(version >= "2025-11-25") });
        ask(json!("elicit-1"), "elicitation/create", form.clone());
        if version >= "2025-11-25" {
            // A wish for a task.
            let tasked = |mut params: Value| {
                params["task"] = json!({ "ttl": 60_000 });
                params
            };
            ask(json!("task-1"), "sampling/createMessage", tasked(sampling.clone()));
            ask(json!("task-2"), "elicitation/create", tasked(form));
        }
    }
    if version >= "2025-11-25" {
        // What a client may leave undeclared within a capability that it has.
        let tool = json!({ "name": "echo", "inputSchema": { "type": "object" } });
        let mut tools = sampling;
        tools["tools"] = json!([tool]);
        ask(json!("sampling-2"), "sampling/createMessage", tools);
        ask(
            json!("elicit-2"),
            "elicitation/create",
            json!({ "mode": "url", "message": "Please log in", "url": rounds::LOGIN, "elicitationId": "taut-check" }),
        );
    }
}
