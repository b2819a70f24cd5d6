//! Requests of 2026-07-28.

use std::sync::atomic::Ordering;

use http::Method;
use serde_json::{Value, json};
use taut_http::server::Options;

use crate::support::{direct, modern, running, until, within};

/// HTP-08, HTP-10, HTP-11: answers are JSON, and their status says which error it is.
#[tokio::test]
async fn htp_10_and_11_the_status_follows_the_code() {
    let (http, _) = direct(Options::new());
    let reply = http.modern("tools/call", json!({ "name": "echo" })).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.json().await["result"]["content"][0]["text"], "echoed");
    let cases = [
        ("no/such", json!({}), 404, -32601),
        ("initialize", json!({}), 404, -32601),
        ("ping", json!({}), 404, -32601),
        ("resources/read", json!({ "uri": "x:none" }), 400, -32602),
        ("tools/call", json!({ "name": "none" }), 400, -32602),
    ];
    for (method, params, status, code) in cases {
        let reply = http.modern(method, params).await;
        assert_eq!(reply.status.as_u16(), status, "{method}");
        let body = reply.json().await;
        assert_eq!((&body["error"]["code"], &body["id"]), (&json!(code), &json!(1)), "{method}");
    }
    // HTP-10: what the client lacks, and what `_meta` lacks.
    let bare = json!({ "io.modelcontextprotocol/clientCapabilities": {} });
    let reply = http.modern("tools/call", json!({ "name": "ask", "_meta": bare })).await;
    assert_eq!((reply.status.as_u16(), reply.code().await), (400, -32021));
    let (headers, mut body) = modern("tools/list", json!({}));
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    body["params"] = json!({});
    let reply = http.post(&headers, &body).await;
    assert_eq!((reply.status.as_u16(), reply.code().await), (400, -32602));
}

/// HDR-03, HDR-06, HDR-08, HDR-12: headers repeat the body, are compared without case in their names
/// and with case in their values, and what differs is −32020 before anything else is looked at.
#[tokio::test]
async fn hdr_06_and_08_headers_repeat_the_body() {
    let (http, _) = direct(Options::new());
    let (good, body) = modern("tools/call", json!({ "name": "echo" }));
    let with = |name: &'static str, value: &str| {
        let mut headers = good.clone();
        headers.retain(|(other, _)| *other != name);
        if value != "-" {
            headers.push((name, value.to_owned()));
        }
        headers
    };
    let table = [
        (with("mcp-name", "echo"), 200),
        (with("mcp-name", "  echo  "), 200),
        (with("mcp-name", "=?base64?ZWNobw==?="), 200),
        (with("mcp-name", "=?base64?ZWNobw=?="), 400),
        (with("mcp-name", "=?BASE64?ZWNobw==?="), 400),
        (with("mcp-name", "Echo"), 400),
        (with("mcp-name", "-"), 400),
        (with("mcp-method", "TOOLS/CALL"), 400),
        (with("mcp-method", "tools/list"), 400),
        (with("mcp-method", "-"), 400),
        (with("mcp-protocol-version", "2025-11-25"), 400),
        (with("mcp-protocol-version", "-"), 400),
        ([with("mcp-name", "echo"), vec![("mcp-name", "echo".to_owned())]].concat(), 400),
    ];
    for (headers, status) in table {
        let list: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let reply = http.post(&list, &body).await;
        assert_eq!(reply.status.as_u16(), status, "{headers:?}");
        if status == 400 {
            let body = reply.json().await;
            assert_eq!((&body["error"]["code"], &body["id"]), (&json!(-32020), &json!(1)));
        }
    }
    // HDR-03, HDR-12: the headers agree with the body, and the version is not served.
    let version = json!({ "io.modelcontextprotocol/protocolVersion": "v999.0.0" });
    let (_, body) = modern("tools/list", json!({ "_meta": version }));
    let headers = [("mcp-protocol-version", "v999.0.0"), ("mcp-method", "tools/list")];
    let reply = http.post(&headers, &body).await;
    assert_eq!(reply.status, 400);
    let body = reply.json().await;
    assert_eq!(body["error"]["code"], -32022);
    let data = json!({ "supported": ["2026-07-28"], "requested": "v999.0.0" });
    assert_eq!(body["error"]["data"], data);
}

/// PAR-01 to PAR-05 and HDR-09, as a caller sees them.
#[tokio::test]
async fn par_05_headers_repeat_the_annotated_parameters() {
    let (http, _) = direct(Options::new());
    let all = json!({ "region": "é", "count": 42 });
    let some = json!({ "region": null });
    type Headers<'a> = &'a [(&'static str, &'a str)];
    let table: [(&Value, Headers<'_>, u16); 9] = [
        (&all, &[("mcp-param-region", "=?base64?w6k=?="), ("mcp-param-count", "42")], 200),
        (&all, &[("mcp-param-region", "=?base64?w6k=?="), ("mcp-param-count", "42.0")], 200),
        (&all, &[("mcp-param-region", "=?base64?w6k=?="), ("mcp-param-count", "43")], 400),
        (&all, &[("mcp-param-region", "=?base64?w6?="), ("mcp-param-count", "42")], 400),
        (&all, &[("mcp-param-region", "=?base64?w6k=?=")], 400),
        (&all, &[], 400),
        (&some, &[], 200),
        (&some, &[("mcp-param-region", "x")], 400),
        (&some, &[("mcp-param-unknown", "x")], 200),
    ];
    for (arguments, headers, status) in table {
        let params = json!({ "name": "region", "arguments": arguments });
        let (usual, body) = modern("tools/call", params);
        let usual = usual.iter().map(|(name, value)| (*name, value.as_str()));
        let list: Vec<_> = usual.chain(headers.iter().copied()).collect();
        let reply = http.post(&list, &body).await;
        assert_eq!(reply.status.as_u16(), status, "{arguments} {headers:?}");
        if status == 400 {
            assert_eq!(reply.code().await, -32020);
        }
    }
}

/// SSE-01, SSE-02, SSE-11, SSE-13, HTP-08, HSC-05: what a request has to say before its answer comes on a stream that
/// ends with the answer, without ids; a session or a `Last-Event-ID` means nothing (SES-07).
#[tokio::test]
async fn sse_01_02_and_13_a_modern_stream() {
    let (http, _) = direct(Options::new());
    let level = json!({ "io.modelcontextprotocol/logLevel": "debug" });
    let (headers, body) = modern("tools/call", json!({ "name": "talk", "_meta": level }));
    let headers = headers.iter().map(|(name, value)| (*name, value.as_str()));
    let more = [("mcp-session-id", "never-was"), ("last-event-id", "1.1")];
    let headers: Vec<_> = headers.chain(more).collect();
    let mut reply = http.post(&headers, &body).await;
    assert!(reply.is_stream());
    // SSE-11, HSC-05, SES-07
    assert_eq!(reply.header("x-accel-buffering").as_deref(), Some("no"));
    assert_eq!(reply.header("cache-control").as_deref(), Some("no-cache, no-transform"));
    assert_eq!(reply.header("mcp-session-id"), None);
    let log = reply.event().await.unwrap();
    assert_eq!((log.id, &log.data["method"]), (None, &json!("notifications/message")));
    let answer = reply.event().await.unwrap();
    assert_eq!((answer.id, &answer.data["id"]), (None, &json!(1)));
    assert_eq!(reply.event().await, None);
    // Nobody asked for log lines: one JSON answer.
    assert!(!http.modern("tools/call", json!({ "name": "talk" })).await.is_stream());
}

/// SES-07, ERH-04: modern requests open no session.
#[tokio::test]
async fn ses_07_a_modern_request_leaves_no_session() {
    let (http, _) = direct(Options::new());
    for _ in 0..3 {
        let reply = http.modern("tools/list", json!({})).await;
        assert_eq!((reply.status.as_u16(), reply.header("mcp-session-id")), (200, None));
    }
    assert_eq!(http.0.open_sessions(), 0);
}

/// HCN-04, SSE-03: a question is an answer that ends its POST, never a request on a stream.
#[tokio::test]
async fn hcn_04_and_sse_03_a_question_ends_its_post_and_the_retry_is_a_new_one() {
    let (http, _) = direct(Options::new());
    let reply = http.modern("tools/call", json!({ "name": "ask", "arguments": {} })).await;
    let asked = reply.json().await["result"].take();
    assert_eq!(asked["resultType"], "input_required");
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap();
    let answers = json!({ key: { "action": "accept", "content": { "name": "Ann" } } });
    let retry = json!({
        "name": "ask", "arguments": {}, "inputResponses": answers, "requestState": asked["requestState"]
    });
    let answer = http.modern("tools/call", retry).await.json().await;
    assert_eq!(answer["result"]["content"][0]["text"], "hello \"Ann\"");
}

/// HTP-06, HTP-12, GET-02, HTP-01: what this revision does not have.
#[tokio::test]
async fn htp_06_and_12_no_arrays_no_responses_no_get() {
    let (http, _) = direct(Options::new());
    let version = ("mcp-protocol-version", "2026-07-28");
    let (_, body) = modern("tools/list", json!({}));
    assert_eq!(http.post(&[version], json!([body])).await.status, 400);
    let response = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    assert_eq!(http.post(&[version], response).await.status, 400);
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {} });
    let reply = http.post(&[version], note).await;
    assert_eq!((reply.status.as_u16(), reply.text().await.as_str()), (202, ""));
    for method in [Method::GET, Method::DELETE] {
        let reply = http.send(method, &[version, ("mcp-session-id", "x")], "").await;
        assert_eq!(reply.status, 405);
        assert!(reply.header("allow").unwrap().contains("POST"));
    }
}

/// HCN-05, HCN-06, SSE-10: a subscription is a stream whose first message acknowledges it, and each
/// has its own copy.
#[tokio::test]
async fn hcn_05_and_06_a_subscription_is_a_stream_of_its_own() {
    let (http, _) = direct(Options::new());
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut stream = http.modern("subscriptions/listen", filter.clone()).await;
        assert!(stream.is_stream());
        let ack = stream.event().await.unwrap().data;
        assert_eq!(ack["method"], "notifications/subscriptions/acknowledged");
        streams.push(stream);
    }
    http.modern("tools/call", json!({ "name": "change" })).await;
    for mut stream in streams {
        let change = stream.event().await.unwrap().data;
        assert_eq!(change["method"], "notifications/tools/list_changed");
        let tag = &change["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert_eq!(tag, &json!(1));
    }
}

/// HCN-01, HCN-03: a lost connection cancels the request, whether its answer would be JSON or a stream.
#[tokio::test]
async fn hcn_01_and_03_a_lost_connection_cancels() {
    let server = running(Options::new()).await;
    let shared = server.shared.clone();
    for times in 1..=2 {
        let mut wire = server.connect().await;
        let post = crate::support::modern_post("tools/call", json!({ "name": "gated" }));
        wire.send(post).await;
        until("the tool runs", || shared.running.load(Ordering::SeqCst) == times).await;
        if times == 2 {
            // By now it is a stream: the head has come.
            assert_eq!(wire.line().await, "HTTP/1.1 200 OK");
        }
        drop(wire);
        until("it is cancelled", || shared.cancelled.load(Ordering::SeqCst) == times).await;
    }
    within(server.stop()).await;
}

/// SSE-11: a silent stream gets comments; an answer that takes long gets a stream.
#[tokio::test(start_paused = true)]
async fn sse_11_a_silent_stream_is_kept_open_by_comments() {
    let (http, shared) = direct(Options::new());
    let mut reply = http.modern("tools/call", json!({ "name": "gated" })).await;
    assert!(reply.is_stream());
    for _ in 0..2 {
        assert_eq!(reply.piece().await, Some(Err("keep-alive".to_owned())));
    }
    shared.gate.add_permits(1);
    let answer = reply.event().await.unwrap();
    assert_eq!(answer.data["result"]["content"][0]["text"], "through");
    assert_eq!(reply.event().await, None);
}
