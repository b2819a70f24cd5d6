//! Requests of the revisions with sessions.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use taut::{ClientBuilder, Proxy};
use taut_http::server::{HttpService, Options};
use tokio::sync::Semaphore;

use crate::support::{Direct, call, direct, fixture, initialize, request};

const LEGACY: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

/// SES-01, ERH-04, HTP-08: `initialize` opens a session, whose id comes with the answer.
#[tokio::test]
async fn ses_01_initialize_gives_a_session_id() {
    let (http, _) = direct(Options::new());
    let mut ids = Vec::new();
    for revision in LEGACY {
        let reply = http.post(&[], initialize(revision)).await;
        assert_eq!(reply.status, 200);
        let id = reply.header("mcp-session-id").unwrap();
        assert!(id.len() >= 32 && id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)), "{id}");
        assert!(!ids.contains(&id));
        ids.push(id);
        assert_eq!(reply.json().await["result"]["protocolVersion"], revision);
    }
    // A handshake that fails leaves none.
    let reply = http.post(&[], request(1, "initialize", json!({}))).await;
    assert_eq!((reply.status.as_u16(), reply.header("mcp-session-id")), (200, None));
    assert_eq!(reply.code().await, -32602);
    crate::support::until("three sessions", || http.0.open_sessions() == 3).await;
}

/// SES-03, SES-04: without an id 400, with an unknown or an ended one 404, on every method.
#[tokio::test]
async fn ses_03_and_04_missing_and_unknown_sessions() {
    let (http, _) = direct(Options::new());
    let methods = [Method::POST, Method::GET, Method::DELETE];
    for method in methods.clone() {
        let reply = http.send(method.clone(), &[], call(1, "echo")).await;
        assert_eq!(reply.status, 400, "{method}");
        assert!(reply.text().await.contains("Mcp-Session-Id"));
    }
    let session = http.open("2025-11-25").await;
    let reply = http.send(Method::DELETE, &[("mcp-session-id", &session)], "").await;
    assert_eq!(reply.status, 204);
    for id in [session.as_str(), "never-was"] {
        for method in methods.clone() {
            let reply = http.send(method.clone(), &[("mcp-session-id", id)], call(1, "echo")).await;
            assert_eq!(reply.status, 404, "{method}");
            assert!(reply.text().await.contains("initialize"));
        }
    }
}

/// HTP-07, HTP-11: what wants no answer is 202 without a body; what is no message is refused.
#[tokio::test]
async fn htp_07_notifications_and_responses_are_202() {
    let (http, _) = direct(Options::new());
    let session = http.open("2025-06-18").await;
    let headers = [("mcp-session-id", session.as_str())];
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" });
    let response = json!({ "jsonrpc": "2.0", "id": 99, "result": {} });
    for accepted in [note, response] {
        let reply = http.post(&headers, accepted).await;
        assert_eq!((reply.status.as_u16(), reply.text().await.as_str()), (202, ""));
    }
    // HTP-11: no message, no JSON.
    let cases =
        [("{\"jsonrpc\":\"2.0\"", -32700), ("hello", -32700), ("{}", -32600), ("[]", -32600)];
    for (body, code) in cases {
        let reply = http.post(&headers, body).await;
        assert_eq!(reply.status, 400, "{body}");
        let error = reply.json().await;
        assert_eq!((&error["error"]["code"], error.get("id")), (&json!(code), None), "{body}");
    }
    // A message over several lines is one message.
    let pretty = serde_json::to_string_pretty(&call(1, "echo")).unwrap();
    assert_eq!(http.post(&headers, pretty).await.status, 200);
}

/// HTP-05, HTP-06: an array is a message in 2025-03-26 only. Its answers come back as one.
#[tokio::test]
async fn htp_05_and_06_arrays_are_for_2025_03_26() {
    let (http, _) = direct(Options::new());
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/x" });
    let batch = json!([call(1, "echo"), note, call("a", "who"), { "jsonrpc": "2.0", "id": 7 }]);
    for revision in LEGACY {
        let session = http.open(revision).await;
        let headers = [("mcp-session-id", session.as_str())];
        let reply = http.post(&headers, &batch).await;
        if revision != "2025-03-26" {
            assert_eq!(reply.status, 400, "{revision}");
            continue;
        }
        let answers = reply.json().await;
        let mut ids: Vec<String> =
            answers.as_array().unwrap().iter().map(|answer| answer["id"].to_string()).collect();
        ids.sort();
        assert_eq!(ids, ["\"a\"", "1", "7"]);
        let notes = http.post(&headers, json!([note, note])).await;
        assert_eq!((notes.status.as_u16(), notes.text().await.as_str()), (202, ""));
        // With something else to say it is a stream, which ends after the last answer.
        let mut stream = http.post(&headers, json!([call(1, "talk"), call(2, "echo")])).await;
        assert!(stream.is_stream());
        let mut answers = 0;
        while let Some(event) = stream.event().await {
            answers += usize::from(event.data.get("result").is_some());
        }
        assert_eq!(answers, 2);
        let opening = http.post(&headers, json!([initialize(revision)])).await;
        assert_eq!(opening.status, 400);
    }
}

/// HTP-08, SSE-01, SSE-02, SSE-05, SSE-07, SSE-14: an answer that comes first is JSON, anything else makes a
/// stream that ends with the answer. Only clients of 2025-11-25 get an event without data first.
#[tokio::test]
async fn htp_08_and_sse_01_02_05_14_json_or_a_stream() {
    let (http, _) = direct(Options::new());
    for revision in LEGACY {
        let session = http.open(revision).await;
        let headers = [("mcp-session-id", session.as_str())];
        let plain = http.post(&headers, call(1, "echo")).await;
        assert_eq!(plain.json().await["result"]["content"][0]["text"], "echoed");
        let mut stream = http.post(&headers, call(2, "talk")).await;
        assert!(stream.is_stream());
        assert_eq!(stream.header("x-accel-buffering").as_deref(), Some("no"));
        if revision == "2025-11-25" {
            let first = stream.event().await.unwrap();
            assert_eq!((first.data, first.id.is_some()), (Value::Null, true));
        }
        let log = stream.event().await.unwrap();
        assert_eq!(log.data["method"], "notifications/message");
        let answer = stream.event().await.unwrap();
        assert_eq!(answer.data["id"], 2);
        // SSE-07: every event has an id of its own.
        assert!(log.id.is_some() && log.id != answer.id);
        assert_eq!(stream.event().await, None);
    }
}

/// GET-03, GET-04, SSE-02: a question is asked on the stream of the call that asks; the answer is a POST.
/// What belongs to no request leaves on the stream of a GET.
#[tokio::test]
async fn get_04_a_question_is_asked_on_the_stream_of_its_call() {
    let (http, _) = direct(Options::new());
    let session = http.open("2025-06-18").await;
    let headers = [("mcp-session-id", session.as_str())];
    let mut general = http.get(&session, None).await;
    let mut stream = http.post(&headers, call(5, "ask")).await;
    let question = stream.event().await.unwrap().data;
    assert_eq!(question["method"], "elicitation/create");
    let content = json!({ "action": "accept", "content": { "name": "Bob" } });
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": content });
    assert_eq!(http.post(&headers, answer).await.status, 202);
    let done = stream.event().await.unwrap().data;
    assert_eq!(done["result"]["content"][0]["text"], "hello \"Bob\"");
    // GET-03, SSE-10: what belongs to no request leaves there, once.
    http.post(&headers, call(6, "change")).await;
    let change = general.event().await.unwrap().data;
    assert_eq!(change["method"], "notifications/tools/list_changed");
}

/// HDR-02, HDR-03: no version is fine, an unknown one is refused, on every method.
#[tokio::test]
async fn hdr_02_and_03_versions() {
    let (http, _) = direct(Options::new());
    let session = http.open("2025-06-18").await;
    for (version, status) in
        [("2025-06-18", 200), ("2025-03-26", 200), ("1999-01-01", 400), ("", 400)]
    {
        let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", version)];
        let reply = http.post(&headers, call(1, "echo")).await;
        assert_eq!(reply.status.as_u16(), status, "{version:?}");
        let reply = http.send(Method::GET, &headers, "").await;
        assert_eq!(reply.status.as_u16(), status, "GET {version:?}");
    }
    let wrong = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "x")];
    assert_eq!(http.send(Method::DELETE, &wrong, "").await.status, 400);
}

/// HTP-01, HTP-13, GET-01, GET-02: the methods of the endpoint, and `Allow` on the others.
#[tokio::test]
async fn htp_01_and_13_other_methods_are_405() {
    let (http, _) = direct(Options::new());
    for method in [Method::PUT, Method::HEAD, Method::PATCH, Method::OPTIONS, Method::TRACE] {
        let reply = http.send(method.clone(), &[], "").await;
        assert_eq!(reply.status, 405, "{method}");
        assert_eq!(reply.header("allow").as_deref(), Some("POST, GET, DELETE, OPTIONS"));
    }
    let session = http.open("2025-11-25").await;
    assert!(http.get(&session, None).await.is_stream());
    let headers = [("mcp-session-id", session.as_str()), ("accept", "application/json")];
    assert_eq!(http.send(Method::GET, &headers, "").await.status, 406);
}

/// A request whose id is in use would take the other's answer.
#[tokio::test]
async fn an_id_that_is_in_use_is_refused() {
    let (http, shared) = direct(Options::new());
    let session = http.open("2025-11-25").await;
    let headers = [("mcp-session-id", session.as_str())];
    let first = http.post(&headers, call(1, "lines")).await;
    let second = http.post(&headers, call(1, "echo")).await;
    assert_eq!((second.status.as_u16(), second.code().await), (400, -32600));
    shared.gate.add_permits(1);
    assert!(first.text().await.contains("done"));
    // Free again.
    assert_eq!(http.post(&headers, call(1, "echo")).await.status, 200);
}

/// HCN-02 from the client's side: a cancelled request ends its stream without an answer.
#[tokio::test]
async fn a_cancelled_request_ends_its_stream() {
    let (http, shared) = direct(Options::new().json_window(Duration::ZERO));
    let session = http.open("2025-06-18").await;
    let headers = [("mcp-session-id", session.as_str())];
    let mut stream = http.post(&headers, call(3, "gated")).await;
    let params = json!({ "requestId": 3 });
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
    assert_eq!(http.post(&headers, cancel).await.status, 202);
    assert_eq!(stream.event().await, None);
    let cancelled = || shared.cancelled.load(std::sync::atomic::Ordering::SeqCst) == 1;
    crate::support::until("the tool hears of it", cancelled).await;
}

/// An MCP server that is not there before the test says so: what a slow start behind a bridge is.
fn slow(gate: &Arc<Semaphore>) -> Proxy {
    let gate = gate.clone();
    let connector = move |client: ClientBuilder| {
        let gate = gate.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            taut::memory_with(&fixture().0, client).await
        }
    };
    Proxy::builder(connector).build()
}

/// SSE-14: a handshake that takes long is answered on a stream without a priming event and without an early close,
/// whatever the client asks for: what it will speak is not agreed yet. The same holds for a stream that is opened
/// before the answer. H17.
#[tokio::test]
async fn sse_14_nothing_is_primed_before_a_revision_is_agreed() {
    for (revision, primed) in
        [("2025-03-26", 0), ("2025-06-18", 0), ("2025-11-25", 1), ("2099-01-01", 1)]
    {
        let gate = Arc::new(Semaphore::new(0));
        let options = Options::new().json_window(Duration::from_millis(10));
        let options = options.poll_after(Duration::from_millis(10), Duration::from_millis(500));
        let http = Direct(HttpService::new(slow(&gate), options));
        let mut opening = http.post(&[], initialize(revision)).await;
        assert!(opening.is_stream(), "{revision}");
        let session = opening.header("mcp-session-id").unwrap();
        let early = http.get(&session, None).await;
        gate.add_permits(2);
        let answer = opening.event().await.unwrap();
        assert_eq!(answer.data["id"], "i", "{revision}: {answer:?}");
        assert_eq!(opening.event().await, None);
        let headers = [("mcp-session-id", session.as_str())];
        assert_eq!(http.send(Method::DELETE, &headers, "").await.status, 204);
        assert_eq!(early.text().await, "", "{revision}");
        let again = http.post(&[], initialize(revision)).await;
        let session = again.header("mcp-session-id").unwrap();
        // Read to its end, so that the revision is agreed.
        assert!(again.text().await.contains("protocolVersion"));
        let late = http.get(&session, None).await;
        http.send(Method::DELETE, &[("mcp-session-id", session.as_str())], "").await;
        let late = late.text().await;
        assert_eq!(late.matches("data: \n\n").count() >= 1, primed == 1, "{revision}: {late}");
    }
}
