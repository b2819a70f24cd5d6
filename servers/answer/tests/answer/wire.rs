//! What taut does for this server: progress, cancelling, both framings, all revisions, debug lines.

use std::io::{Read, Write};
use std::process::Stdio;

use serde_json::json;

use crate::host::{Host, KEY, binary};
use crate::service::{Does, Service};
use crate::{fine, response};

#[test]
fn progress_is_told_while_it_searches_and_cancelling_ends_the_request() {
    let service = Service::that([Does::Waits]);
    let mut host = Host::open(&service, "2025-11-25");
    let params = json!({
        "name": "answer", "arguments": { "query": "q" }, "_meta": { "progressToken": "p" },
    });
    let id = host.request("tools/call", params);
    let progress = host.hear();
    assert_eq!(progress["method"], "notifications/progress");
    assert_eq!(progress["params"]["progressToken"], "p");
    assert!(progress["params"]["message"].as_str().unwrap().starts_with("searching"));
    service.next();
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id },
    });
    host.send(&cancel);
    service.wait_for_hang_up();
    let pong = host.ask("ping", json!({}));
    assert_eq!(pong["result"], json!({}));
    host.end();
}

#[test]
fn a_slow_question_does_not_hold_up_a_quick_one() {
    let service = Service::that([Does::Waits, fine()]);
    let mut host = Host::open(&service, "2025-11-25");
    let slow = json!({ "name": "answer", "arguments": { "query": "slow" } });
    let id = host.request("tools/call", slow);
    service.next();
    assert_eq!(host.answer(json!({ "query": "quick" }))["answer"], "Fine.");
    let params = json!({ "requestId": id });
    host.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    service.wait_for_hang_up();
    host.end();
}

#[test]
fn the_oldest_revision_gets_the_answer_as_text_only() {
    let service = Service::answering(&response("Four.", json!([]), &[]));
    let mut host = Host::open(&service, "2024-11-05");
    let result = host.call("answer", json!({ "query": "2 + 2?" }))["result"].clone();
    assert!(result.get("structuredContent").is_none());
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("{\"answer\":\"Four.\""), "{text}");
    host.end();
}

#[test]
fn the_modern_revision_needs_no_handshake() {
    let service = Service::answering(&response("Four.", json!([]), &[]));
    let mut command = binary();
    command.arg("--stdio").env("OPENAI_BASE_URL", &service.url).env("OPENAI_API_KEY", KEY);
    let mut host = Host::start(&mut command);
    let params = json!({
        "name": "answer_quick",
        "arguments": { "query": "2 + 2?" },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    });
    let answer = host.ask("tools/call", params);
    assert_eq!(answer["result"]["structuredContent"]["answer"], "Four.", "{answer}");
    host.end();
}

#[test]
fn messages_with_headers_are_answered_with_headers_and_told_step_by_step() {
    let mut command = binary();
    command.args(["--stdio", "--debug"]).env("OPENAI_API_KEY", KEY);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let ping = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":"{KEY}"}}}}"#);
    let mut stdin = child.stdin.take().unwrap();
    write!(stdin, "Content-Length: {}\r\n\r\n{ping}", ping.len()).unwrap();
    write!(stdin, "Content-Length: x\r\n\r\n").unwrap();
    drop(stdin);
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert!(
        out.starts_with("Content-Length: 36\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"),
        "{out}"
    );
    let mut log = String::new();
    child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(child.wait().unwrap().success());
    let steps = [
        "stdin chunk=",
        "recv method=ping",
        "headerEnd=found",
        "headerEnd=bad",
        "send (framed) bytes=36",
        "send json={",
    ];
    for step in steps {
        assert!(log.contains(step), "{step} is not in {log}");
    }
    assert!(!log.contains(KEY), "{log}");
}
