//! The exchange that the reference of this server prints, byte for byte, in both framings.

use std::io::{Read, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::fine;
use crate::host::{KEY, binary};
use crate::service::{Does, Service};

const EXCHANGE: [&str; 4] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"answer","arguments":{"query":" "}}}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"ping","params":{}}"#,
];

/// What it answers to these bytes, message by message.
pub(crate) fn answers_to(input: &[u8], framed: bool) -> Vec<Value> {
    let mut child = binary().stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let mut output = String::new();
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    assert!(child.wait().unwrap().success());
    if !framed {
        return output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    }
    let mut messages = Vec::new();
    let mut rest = output.as_str();
    while !rest.is_empty() {
        let (header, after) = rest.split_once("\r\n\r\n").unwrap();
        let length = header.strip_prefix("Content-Length: ").unwrap().parse().unwrap();
        let (body, after) = after.split_at(length);
        messages.push(serde_json::from_str(body).unwrap());
        rest = after;
    }
    messages
}

pub(crate) fn framed(message: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{message}", message.len())
}

/// S21: What was asked before the end of input is answered, however long that takes; a limit says what it drops.
#[test]
fn the_end_of_input_drops_only_what_a_limit_says() {
    let input = format!(
        "{}\n{}\n",
        EXCHANGE[0],
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"answer","arguments":{"query":"q"}}}"#
    );
    let run = |service: &Service, more: &[&str]| {
        let mut command = binary();
        command.args(more).env("OPENAI_BASE_URL", &service.url).env("OPENAI_API_KEY", KEY);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // One that ends for its arguments does not read it.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    };
    let output = run(&Service::that([fine()]), &[]);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("Fine."));
    let output = run(&Service::that([Does::Waits]), &["--set", "server.drain_ms=100"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("unanswered at the drain limit: dropped 7"), "{said}");
    let output = run(&Service::that([fine()]), &["--set", "server.max_message_bytes=90"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_exchange_of_the_reference_works_in_lines_and_with_headers() {
    for with_headers in [false, true] {
        let input: String = match with_headers {
            true => EXCHANGE.map(framed).concat(),
            false => EXCHANGE.map(|line| format!("{line}\n")).concat(),
        };
        let mut answers = answers_to(input.as_bytes(), with_headers);
        answers.sort_by_key(|answer| answer["id"].as_u64());
        let ids: Vec<_> = answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
        assert_eq!(ids, [1, 2, 3, 4], "{answers:?}");
        assert_eq!(answers[0]["result"]["protocolVersion"], "2025-06-18");
        assert_eq!(answers[0]["result"]["serverInfo"]["name"], "taut-answer");
        assert_eq!(answers[1]["result"]["tools"][0]["name"], "answer");
        // As the reference prints it: in place, without a reference.
        let style = json!({ "description": "How the answer should look.", "type": "string",
                            "enum": ["summary", "bullets", "citations-only"] });
        let schema = &answers[1]["result"]["tools"][0]["inputSchema"];
        assert_eq!(schema["properties"]["style"], style);
        assert!(!answers[1].to_string().contains("$ref"), "{}", answers[1]);
        assert_eq!(answers[2]["error"]["code"], -32001);
        assert_eq!(answers[2]["error"]["data"], json!({ "reason": "query is required" }));
        assert_eq!(answers[3]["result"], json!({}));
    }
}
