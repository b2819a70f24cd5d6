//! How a connection is opened: eras, the old transport, refusals.

use serde_json::json;
use taut::{Client, Revision};
use taut_http::client::{HttpError, HttpOptions, HttpTransport, connect};

use crate::server::*;

/// HTP-02 to HTP-04, HDR-01, SES-02, SES-06: what every message of a legacy session looks like.
#[tokio::test]
async fn a_legacy_session_is_opened_used_and_ended() {
    let server = TestServer::start(async |seen| {
        legacy(&seen, "2025-11-25").unwrap_or_else(|| result(&seen, said("hello")))
    })
    .await;
    let options = HttpOptions::new().bearer("secret-token").header("X-Extra", "more");
    let client = connect(&server.url, options).await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_11_25);
    assert_eq!(client.call("t", json!({})).await.unwrap().text().unwrap(), "hello");
    client.close().await.unwrap();

    let all = server.all(|_| true);
    let order: Vec<_> = all.iter().filter(|seen| seen.method == "POST").map(Seen::rpc).collect();
    let wanted = ["server/discover", "initialize", "notifications/initialized", "tools/call"];
    assert_eq!(order, wanted);
    for seen in &all {
        // AUC-01: in the header, and never in the address.
        assert_eq!(seen.header("authorization"), Some("Bearer secret-token"));
        assert_eq!(seen.header("x-extra"), Some("more"));
        assert_eq!(seen.path, "/mcp");
        if seen.method == "POST" {
            assert_eq!(seen.header("accept"), Some("application/json, text/event-stream"));
            assert_eq!(seen.header("content-type"), Some("application/json"));
        }
        let later = !matches!(seen.rpc().as_str(), "server/discover" | "initialize");
        assert_eq!(seen.header("mcp-session-id"), later.then_some("s-1"), "{seen:?}");
        if later {
            assert_eq!(seen.header("mcp-protocol-version"), Some("2025-11-25"));
        }
    }
    assert_eq!(server.all(|seen| seen.method == "DELETE").len(), 1);
}

/// HDR-01: 2025-03-26 has no such header.
#[tokio::test]
async fn hdr_01_a_session_of_2025_03_26_sends_no_version() {
    let server = TestServer::start(async |seen| {
        legacy(&seen, "2025-03-26").unwrap_or_else(|| result(&seen, said("hello")))
    })
    .await;
    let client = connect(&server.url, HttpOptions::new()).await.unwrap();
    client.call("t", json!({})).await.unwrap();
    let calls = server.all(|seen| seen.rpc() == "tools/call");
    assert_eq!(calls[0].header("mcp-protocol-version"), None);
    assert_eq!(calls[0].header("mcp-session-id"), Some("s-1"));
}

/// ERH-01, ERH-03: whatever is no modern error leads to the handshake.
#[tokio::test]
async fn erh_01_and_03_what_is_no_modern_answer_leads_to_the_handshake() {
    for case in 0..7 {
        let server = TestServer::start(move |seen| async move {
            if seen.rpc() != "server/discover" {
                return legacy(&seen, "2025-06-18").unwrap_or_else(|| status(500));
            }
            match case {
                0 => status(404),
                1 => reply(400, &[("content-type", "text/html")], "<h1>Bad</h1>"),
                2 => error(200, &seen, -32601, "no such method"),
                3 => error(404, &seen, -32001, "session not found"),
                4 => status(202),
                5 => reply(200, &[("content-type", "text/html")], "<h1>Hello</h1>"),
                _ => status(500),
            }
        })
        .await;
        let client = connect(&server.url, HttpOptions::new()).await;
        assert_eq!(client.unwrap().revision(), Revision::V2025_06_18, "case {case}");
    }
}

/// ERH-01: an unsupported version with a list is a modern server that is asked again.
#[tokio::test]
async fn erh_01_a_modern_server_that_wants_another_version_is_asked_again() {
    let server = TestServer::start(async |seen| {
        let first = seen.id() == json!(1);
        match seen.rpc().as_str() {
            "server/discover" if first => {
                let error = json!({ "code": -32022, "message": "not this one",
                    "data": { "supported": ["2026-07-28"], "requested": "x" } });
                let body = json!({ "jsonrpc": "2.0", "id": seen.id(), "error": error });
                reply(400, &[("content-type", "application/json")], body.to_string())
            }
            "server/discover" => discovered(&seen),
            _ => status(500),
        }
    })
    .await;
    let client = connect(&server.url, HttpOptions::new()).await.unwrap();
    assert_eq!(client.revision(), Revision::V2026_07_28);
    assert!(server.all(|seen| seen.rpc() == "initialize").is_empty());
}

/// ERH-03: these say nothing about the era, and end the opening with their reason.
#[tokio::test]
async fn erh_03_a_refusal_that_says_nothing_about_the_era_ends_the_opening() {
    for (code, words) in [
        (401, "401 Unauthorized: who are you?; it wants a login or a token"),
        (403, "403 Forbidden: who are you?; the token or the user may not do this"),
        (502, "the server answered 502 Bad Gateway: who are you?"),
    ] {
        let server = TestServer::start(move |_| async move {
            reply(code, &[("content-type", "text/plain")], "who are you?")
        })
        .await;
        let error = connect(&server.url, HttpOptions::new()).await.unwrap_err();
        assert!(error.to_string().ends_with(words), "{error}");
        assert_eq!(HttpError::of(&error).unwrap().status(), Some(code));
        assert_eq!(server.all(|_| true).len(), 1, "nothing else was tried");
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_says_so() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let url = format!("http://{address}/mcp");
    let error = connect(&url, HttpOptions::new().no_proxy()).await.unwrap_err().to_string();
    assert!(error.contains(&format!("http://{address} cannot be reached")), "{error}");
    assert!(error.to_lowercase().contains("connection refused"), "{error}");

    let url = "http://no-such-host.invalid/";
    let error = connect(url, HttpOptions::new().no_proxy()).await.unwrap_err();
    assert!(matches!(HttpError::of(&error), Some(HttpError::Unreachable { .. })), "{error}");
    let error = connect("mcp.example.com", HttpOptions::new()).await.unwrap_err().to_string();
    assert!(error.contains("it has to begin with http:// or https://"), "{error}");
    let options = HttpOptions::new().header("bad name", "x");
    let error = connect("http://localhost/", options).await.unwrap_err().to_string();
    assert!(error.contains("\"bad name\" is no name for a header"), "{error}");
}

/// ERH-02: the next connection does not ask again what this one has found out.
#[tokio::test]
async fn erh_02_the_era_is_remembered_for_the_next_connection() {
    let server =
        TestServer::start(async |seen| legacy(&seen, "2025-11-25").unwrap_or_else(|| status(500)))
            .await;
    let transport = HttpTransport::new(&server.url, HttpOptions::new()).unwrap();
    for _ in 0..2 {
        transport.connect(Client::builder()).await.unwrap();
    }
    assert_eq!(server.all(|seen| seen.rpc() == "server/discover").len(), 1);
    assert_eq!(server.all(|seen| seen.rpc() == "initialize").len(), 2);
}

/// A server of 2024-11-05: GET gives the stream, POSTs go to the address that it names.
async fn old(endpoint: &'static str) -> TestServer {
    let stream: std::sync::Arc<std::sync::Mutex<Option<Feed>>> = Default::default();
    TestServer::start(move |seen| {
        let stream = stream.clone();
        async move {
            match (seen.method.as_str(), seen.path.as_str(), seen.rpc().as_str()) {
                ("GET", "/mcp", _) => {
                    let (feed, reply) = events();
                    feed.send(format!("event: endpoint\ndata: {endpoint}\n\n"));
                    *stream.lock().unwrap() = Some(feed);
                    reply
                }
                ("POST", "/messages?id=7", method) => {
                    let feed = stream.lock().unwrap().clone().unwrap();
                    let answer = match method {
                        "initialize" => Some(json!({ "protocolVersion": "2024-11-05",
                            "capabilities": { "tools": {} },
                            "serverInfo": { "name": "old", "version": "1" } })),
                        "tools/call" => Some(said("from the stream")),
                        "last" => {
                            stream.lock().unwrap().take();
                            None
                        }
                        _ => None,
                    };
                    if let Some(result) = answer {
                        feed.event(&json!({ "jsonrpc": "2.0", "id": seen.id(), "result": result }));
                    }
                    status(202)
                }
                _ => status(405),
            }
        }
    })
    .await
}

/// ERH-05, OSE-01 to OSE-03.
#[tokio::test]
async fn erh_05_the_transport_of_2024_11_05_is_found_and_used_for_everything() {
    let server = old("/messages?id=7").await;
    let client = connect(&server.url, HttpOptions::new().bearer("secret")).await.unwrap();
    assert_eq!(client.revision(), Revision::V2024_11_05);
    assert_eq!(client.call("t", json!({})).await.unwrap().text().unwrap(), "from the stream");
    let posts = server.all(|seen| seen.path.starts_with("/messages"));
    let order: Vec<_> = posts.iter().map(Seen::rpc).collect();
    assert_eq!(order, ["initialize", "notifications/initialized", "tools/call"]);
    assert!(posts.iter().all(|seen| seen.header("authorization") == Some("Bearer secret")));
    // OSE-03: the stream is the session.
    let error = client.request::<serde_json::Value>("last", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("ended the stream of its messages"), "{error}");
}

/// OSE-02: an address of another origin is refused.
#[tokio::test]
async fn ose_02_an_address_of_another_origin_gets_nothing() {
    let other = TestServer::start(async |_| status(202)).await;
    let endpoint: &'static str = Box::leak(other.url.clone().into_boxed_str());
    let server = old(endpoint).await;
    let error = connect(&server.url, HttpOptions::new().bearer("secret")).await.unwrap_err();
    assert!(error.to_string().contains("405 Method Not Allowed"), "{error}");
    assert!(other.all(|_| true).is_empty());
}

/// Field observation 16: what fails is said, not that another transport failed too.
#[tokio::test]
async fn a_refused_handshake_is_told_as_the_server_said_it() {
    let server = TestServer::start(async |seen| match seen.method.as_str() {
        "GET" => status(404),
        _ => reply(404, &[("content-type", "application/json")], r#"{"detail":"Not Found"}"#),
    })
    .await;
    let error = connect(&server.url, HttpOptions::new()).await.unwrap_err().to_string();
    assert_eq!(error, "the connection failed: the server answered 404 Not Found: Not Found");
}
