//! `taut serve` taken at its word: the exchange that clients written by hand send, and what is wrong with their frames.

use serde_json::json;

use super::*;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}"#;

fn framed(message: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{message}", message.len())
}

/// What `taut serve` answers to these bytes and the end of the input, in the order of the answers.
fn answers_to(input: &str) -> Vec<Value> {
    let output = run_with("serve", &[], input).exits(0).out;
    let mut messages = Vec::new();
    let mut rest = output.as_str();
    while !rest.is_empty() {
        let (body, after) = match rest.strip_prefix("Content-Length: ") {
            Some(header) => {
                let (length, after) = header.split_once("\r\n\r\n").unwrap();
                after.split_at(length.parse().unwrap())
            }
            None => rest.split_once('\n').unwrap(),
        };
        messages.push(serde_json::from_str(body).unwrap());
        rest = after;
    }
    messages
}

/// LIF-02, LIF-15.
#[test]
fn a_client_that_says_nothing_of_itself_is_served_in_both_framings() {
    let exchange = [
        INITIALIZE,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"ping","params":{}}"#,
    ];
    for input in [exchange.map(framed).concat(), exchange.map(|line| format!("{line}\n")).concat()]
    {
        let answers = answers_to(&input);
        assert_eq!(answers.len(), 4, "{answers:?}");
        assert_eq!(answers[0]["result"]["protocolVersion"], "2025-06-18");
        assert!(answers[1]["result"]["tools"].as_array().unwrap().len() > 3);
        assert_eq!(answers[2]["result"]["content"][0]["text"], "x");
        assert_eq!(answers[3], json!({ "jsonrpc": "2.0", "id": 4, "result": {} }));
    }
}
