//! Captures played again: each against its own mock without a difference, and with every kind of
//! difference found.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that goes wrong should say so")]

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};
use taut_trace::{Capture, Finding, Ignore, Mock, Next, Replay};

/// A capture of these messages: `>` from the client, `<` from the server.
fn capture(messages: &[(char, Value)]) -> Capture {
    let mut text = String::from(
        "{\"kind\":\"header\",\"format\":\"taut-trace\",\"version\":1,\"started\":\"x\"}\n",
    );
    for (at, (way, message)) in messages.iter().enumerate() {
        let from = if *way == '>' { "client" } else { "server" };
        let line = json!({ "t": at, "kind": "message", "from": from, "message": message });
        text += &format!("{line}\n");
    }
    text += "{\"t\":99,\"kind\":\"close\",\"from\":\"client\"}\n";
    Capture::read(text.as_bytes()).unwrap()
}

/// Plays a client against a server until both are done.
fn play(client: &Capture, server: &Capture, ignore: &[Ignore]) -> Vec<Finding> {
    let (mut replay, mut mock) = (Replay::new(client), Mock::new(server));
    let mut now = Duration::ZERO;
    let mut to_client = VecDeque::new();
    for _ in 0..10_000 {
        while let Some(text) = mock.poll(now) {
            to_client.push_back(text);
        }
        if let Some(text) = to_client.pop_front() {
            replay.handle(text.as_bytes());
            continue;
        }
        match replay.poll() {
            Next::Send(text, _) => mock.handle(now, text.as_bytes()),
            Next::Close => mock.closed(),
            // Time passes only when nothing else can happen.
            Next::Wait(_) => match mock.deadline().filter(|deadline| *deadline > now) {
                Some(deadline) => now = deadline,
                None => replay.give_up(),
            },
            Next::Done => return replay.findings(ignore),
        }
    }
    panic!("it does not end");
}

fn request(id: impl Into<Value>, method: &str, params: Value) -> (char, Value) {
    ('>', json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params }))
}

fn answer(id: impl Into<Value>, result: Value) -> (char, Value) {
    ('<', json!({ "jsonrpc": "2.0", "id": id.into(), "result": result }))
}

fn tells(method: &str, params: Value) -> (char, Value) {
    ('<', json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}

fn echo(id: i32, text: &str) -> (char, Value) {
    let token = format!("token-{id}");
    let params = json!({ "name": "echo", "arguments": { "text": text }, "_meta": { "progressToken": token } });
    request(id, "tools/call", params)
}

fn said(id: i32, text: &str) -> (char, Value) {
    answer(id, json!({ "content": [{ "type": "text", "text": text }] }))
}

fn progress(id: i32, done: i32) -> (char, Value) {
    tells(
        "notifications/progress",
        json!({ "progressToken": format!("token-{id}"), "progress": done }),
    )
}

fn legacy() -> Vec<(char, Value)> {
    vec![
        request(0, "initialize", json!({ "protocolVersion": "2025-11-25" })),
        answer(0, json!({ "protocolVersion": "2025-11-25", "serverInfo": { "name": "x" } })),
        ('>', json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })),
        echo(1, "a"),
        echo(2, "b"),
        progress(2, 1),
        progress(1, 1),
        said(2, "b"),
        tells("notifications/message", json!({ "level": "info", "data": "hello" })),
        said(1, "a"),
        // The server asks back.
        request("s", "tools/call", json!({ "name": "sample" })),
        (
            '<',
            json!({ "jsonrpc": "2.0", "id": 77, "method": "sampling/createMessage", "params": {} }),
        ),
        ('>', json!({ "jsonrpc": "2.0", "id": 77, "result": { "role": "assistant" } })),
        answer("s", json!({ "content": [] })),
    ]
}

fn modern() -> Vec<(char, Value)> {
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
    vec![
        request(1, "server/discover", json!({ "_meta": meta })),
        answer(1, json!({ "supportedVersions": ["2026-07-28"] })),
        request(2, "subscriptions/listen", json!({ "_meta": meta })),
        tells(
            "notifications/tools/list_changed",
            json!({ "_meta": { "io.modelcontextprotocol/subscriptionId": 2 } }),
        ),
        request(3, "tools/call", json!({ "name": "ask", "_meta": meta })),
        answer(3, json!({ "resultType": "input_required", "requestState": "sealed-by-this-run" })),
        request(
            4,
            "tools/call",
            json!({ "name": "ask", "inputResponses": {}, "requestState": "sealed-by-this-run", "_meta": meta }),
        ),
        answer(4, json!({ "content": [{ "type": "text", "text": "done" }] })),
    ]
}

fn shown(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
}

#[test]
fn a_capture_replays_against_its_own_mock_without_a_difference_in_both_eras() {
    for messages in [legacy(), modern()] {
        let capture = capture(&messages);
        assert_eq!(shown(&play(&capture, &capture, &[])), Vec::<String>::new());
    }
}

#[test]
fn a_changed_answer_is_found() {
    let mut other = legacy();
    other[7] = said(2, "B");
    let found = play(&capture(&legacy()), &capture(&other), &[]);
    assert_eq!(
        shown(&found),
        ["changed: the answer to tools/call echo\n  /result/content/0/text: \"b\" → \"B\""]
    );
    let ignore = [Ignore::parse("/result/content/*/text").unwrap()];
    assert!(play(&capture(&legacy()), &capture(&other), &ignore).is_empty());
}

#[test]
fn a_missing_notification_is_found() {
    let mut other = legacy();
    other.remove(5);
    let found = play(&capture(&legacy()), &capture(&other), &[]);
    assert_eq!(shown(&found), ["missing: notifications/progress"]);
    // And the other way round it is new.
    let found = play(&capture(&other), &capture(&legacy()), &[]);
    assert_eq!(found.iter().map(Finding::kind).collect::<Vec<_>>(), ["new"]);
}

#[test]
fn another_order_of_answers_is_found() {
    let mut other = legacy();
    other.swap(7, 9);
    let found = play(&capture(&legacy()), &capture(&other), &[]);
    assert!(found.iter().all(|finding| finding.kind() == "order"), "{:?}", shown(&found));
    assert!(!found.is_empty());
}

#[test]
fn a_new_error_is_found() {
    let mut other = legacy();
    other[9].1 =
        json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32603, "message": "broken" } });
    let found = play(&capture(&legacy()), &capture(&other), &[]);
    let [Finding::Fails { key, error }] = found.as_slice() else { panic!("{:?}", shown(&found)) };
    assert_eq!(
        (key.to_string().as_str(), &error["message"]),
        ("the answer to tools/call echo", &json!("broken"))
    );
}

/// T7
#[test]
fn a_mock_answers_with_the_callers_ids_and_says_what_it_does_not_know() {
    let mut mock = Mock::new(&capture(&legacy()));
    let now = Duration::ZERO;
    let later = Duration::from_secs(1);
    // Not in the recorded order, and with ids of its own.
    let call = json!({ "jsonrpc": "2.0", "id": "mine", "method": "tools/call",
        "params": { "name": "echo", "arguments": { "text": "b" }, "_meta": { "progressToken": 5 } } });
    mock.handle(now, call.to_string().as_bytes());
    assert_eq!(mock.poll(now), None, "what came before may still come");
    let said: Vec<Value> = std::iter::from_fn(|| mock.poll(later))
        .map(|text| serde_json::from_str(&text).unwrap())
        .collect();
    assert_eq!(said[0]["params"]["progressToken"], json!(5));
    assert!(said.iter().any(|message| message["id"] == "mine" && message["result"].is_object()));
    mock.handle(
        later,
        br#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"other"}}"#,
    );
    let error: Value = serde_json::from_str(&mock.poll(later).unwrap()).unwrap();
    assert_eq!(error["error"]["message"], "the capture has no answer for tools/call other");
    assert_eq!(mock.unknown(), 1);
}

#[test]
fn values_that_the_server_makes_up_are_taken_from_this_session() {
    let mut other = modern();
    other[5] = answer(3, json!({ "resultType": "input_required", "requestState": "another" }));
    let mut replay = Replay::new(&capture(&modern()));
    let mut sent = Vec::new();
    let mut answers = other.iter().filter(|(way, _)| *way == '<');
    loop {
        match replay.poll() {
            Next::Send(text, _) => sent.push(text),
            Next::Wait(_) => replay.handle(answers.next().unwrap().1.to_string().as_bytes()),
            Next::Close => {}
            Next::Done => break,
        }
    }
    assert!(sent.iter().any(|text| text.contains("\"requestState\":\"another\"")), "{sent:?}");
    assert!(replay.findings(&[]).is_empty());
}

/// Calls of a capture that all have the same label and ask for different things, or for the same.
fn many(calls: u64, same: bool) -> Vec<(char, Value)> {
    let mut all = vec![request(0, "initialize", json!({ "protocolVersion": "2025-06-18" }))];
    all.push(answer(0, json!({ "protocolVersion": "2025-06-18" })));
    for call in 1..=calls {
        let n = if same { 0 } else { call };
        let arguments = json!({ "n": n, "state": format!("state-{}", call - 1) });
        all.push(request(call, "tools/call", json!({ "name": "t", "arguments": arguments })));
        all.push((
            '<',
            json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "n": call } }),
        ));
        all.push(('>', json!({ "jsonrpc": "2.0", "method": "notifications/cancelled" })));
        all.push(answer(call, json!({ "n": call, "requestState": format!("state-{call}") })));
    }
    all
}

/// Each call took time that grew with the capture: a thousand took 7 seconds, four thousand two minutes. What is
/// asked for here took a day. T29.
#[test]
fn a_capture_of_twenty_thousand_calls_is_mocked_and_replayed() {
    let began = std::time::Instant::now();
    let calls = 20_000;
    let recorded = capture(&many(calls, false));
    let mut mock = Mock::new(&recorded);
    let now = Duration::ZERO;
    // In the recorded order backwards: each is answered after a moment, all the same.
    for (_, message) in many(calls, false).iter().rev().filter(|(way, _)| *way == '>') {
        mock.handle(now, message.to_string().as_bytes());
        assert!(mock.poll(now).is_none() || message["method"] == "initialize");
    }
    let said = std::iter::from_fn(|| mock.poll(Duration::from_secs(1))).count() as u64;
    assert_eq!((said, mock.unknown()), (2 * calls, 0));
    // In order, against a client that makes up values of its own.
    let mut mock = Mock::new(&recorded);
    let mut replay = Replay::new(&recorded);
    loop {
        match replay.poll() {
            Next::Send(text, _) => {
                assert!(!text.contains("\"state-") || text.contains("\"state-0\""), "{text}");
                mock.handle(now, text.replace("\"other-", "\"state-").as_bytes());
            }
            Next::Wait(_) => {
                let text = mock.poll(now).unwrap().replace("\"state-", "\"other-");
                replay.handle(text.as_bytes());
            }
            Next::Close => mock.closed(),
            Next::Done => break,
        }
    }
    assert_eq!(replay.findings(&[]).len(), 0);
    assert_eq!(replay.heard() as u64, 2 * calls + 1);
    // Equal calls, each with the answer that is next.
    let mut mock = Mock::new(&capture(&many(calls, true)));
    for (_, message) in many(calls, true).iter().filter(|(way, _)| *way == '>') {
        mock.handle(now, message.to_string().as_bytes());
        while mock.poll(now).is_some() {}
    }
    assert_eq!((mock.poll(now), mock.unknown()), (None, 0));
    assert!(began.elapsed() < Duration::from_secs(300), "{:?}", began.elapsed());
}
