//! Servers that break rules, on purpose or not.

use std::future::IntoFuture as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use taut::{Client, Error};
use taut_http::client::{HttpOptions, connect};

use crate::server::*;

/// A legacy session with a server that answers calls as `answer` does, and the words of the error that
/// comes of one call.
async fn fault<F, Fut>(options: HttpOptions, answer: F) -> (TestServer, Client, String)
where
    F: Fn(Seen) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Reply> + Send + 'static,
{
    let server = TestServer::start(move |seen| {
        let answer = answer.clone();
        async move {
            match legacy(&seen, "2025-11-25") {
                Some(reply) => reply,
                None => answer(seen).await,
            }
        }
    })
    .await;
    let client = connect(&server.url, options).await.unwrap();
    let call = tokio::time::timeout(LONG, client.call("t", json!({})).into_future());
    let error = call.await.expect("the call hangs").unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
    (server, client, error.to_string())
}

/// Section 12 of the ledger: a request that is taken without an answer is an error at once.
#[tokio::test]
async fn a_request_without_an_answer_fails_at_once() {
    for code in [202, 204, 200] {
        let (.., error) = fault(HttpOptions::new(), move |_| async move { status(code) }).await;
        assert!(error.contains("sent no answer") || error.contains("no content type"), "{error}");
    }
    let (.., error) = fault(HttpOptions::new(), async |seen| {
        let body = json!({ "jsonrpc": "2.0", "id": "another", "result": seen.json()["params"] });
        reply(200, &[("content-type", "application/json")], body.to_string())
    })
    .await;
    assert!(error.contains("no answer to this request"), "{error}");
    let (.., error) = fault(HttpOptions::new(), async |_| {
        reply(200, &[("content-type", "application/json")], "this is no JSON")
    })
    .await;
    assert!(error.contains("no JSON"), "{error}");
}

#[tokio::test]
async fn an_answer_of_another_kind_names_the_kind() {
    let (.., error) = fault(HttpOptions::new(), async |_| {
        reply(200, &[("content-type", "text/html; charset=utf-8")], "<h1>Sign in</h1>")
    })
    .await;
    assert!(error.contains("the answer is text/html, neither application/json nor"), "{error}");
}

/// An error without an id is the request's own.
#[tokio::test]
async fn an_error_without_an_id_reaches_the_caller() {
    for code in [200, 400] {
        let (.., error) = fault(HttpOptions::new(), move |_| async move {
            let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"too bad"}}"#;
            reply(code, &[("content-type", "application/json")], body)
        })
        .await;
        assert!(error.contains("too bad (-32000)"), "{error}");
    }
}

#[tokio::test]
async fn a_body_without_end_is_dropped_at_the_limit() {
    let options = HttpOptions::new().max_message_bytes(100_000);
    let (.., error) = fault(options, async |_| {
        let (feed, reply) = feed(200, &[("content-type", "application/json")]);
        tokio::spawn(async move {
            while !feed.is_closed() {
                feed.send("[1,2,3,4,5,6,7,8],".repeat(100));
                tokio::task::yield_now().await;
            }
        });
        reply
    })
    .await;
    assert!(error.contains("the answer is longer than 100000 bytes"), "{error}");
}

#[tokio::test]
async fn an_event_without_end_is_dropped_at_the_limit() {
    let options = HttpOptions::new().max_message_bytes(100_000);
    let (.., error) = fault(options, async |_| {
        let (feed, reply) = events();
        feed.send("data: ");
        tokio::spawn(async move {
            while !feed.is_closed() {
                feed.send("0123456789".repeat(100));
                tokio::task::yield_now().await;
            }
        });
        reply
    })
    .await;
    assert!(error.contains("stream is longer than 100000 bytes"), "{error}");
}

#[tokio::test]
async fn a_body_that_stops_half_way_is_given_up() {
    let options = HttpOptions::new().body_timeout(Duration::from_millis(50));
    let kept: Arc<std::sync::Mutex<Vec<Feed>>> = Arc::default();
    let (_, client, error) = fault(options, move |_| {
        let kept = kept.clone();
        async move {
            let (feed, reply) = feed(200, &[("content-type", "application/json")]);
            feed.send("{\"jsonrpc\"");
            kept.lock().unwrap().push(feed);
            reply
        }
    })
    .await;
    assert!(error.contains("the answer did not come within 50ms"), "{error}");
    client.close().await.unwrap();
}

/// 429 with Retry-After: what may be repeated is repeated then, a call of a tool is not.
#[tokio::test]
async fn a_busy_server_is_asked_again_only_for_what_may_be_repeated() {
    let refused = Arc::new(AtomicUsize::new(0));
    let counted = refused.clone();
    let (server, client, error) = fault(HttpOptions::new(), move |seen| {
        let refused = counted.clone();
        async move {
            if seen.rpc() == "tools/call" || refused.fetch_add(1, Ordering::SeqCst) == 0 {
                return reply(
                    429,
                    &[("retry-after", "1"), ("content-type", "text/plain")],
                    "slow down",
                );
            }
            result(&seen, json!({ "tools": [] }))
        }
    })
    .await;
    assert!(error.contains("429 Too Many Requests: slow down; try again in 1 s"), "{error}");
    assert_eq!(server.all(|seen| seen.rpc() == "tools/call").len(), 1);
    let begun = Instant::now();
    client.tools().await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(950));
    assert_eq!(server.all(|seen| seen.rpc() == "tools/list").len(), 2);
}

/// A pause that is longer than anybody waits is told, not waited for.
#[tokio::test]
async fn a_long_pause_is_told_instead_of_waited_for() {
    let (_, client, _) =
        fault(HttpOptions::new(), async |_| reply(503, &[("retry-after", "3600")], "")).await;
    let error = client.tools().await.unwrap_err().to_string();
    assert!(error.contains("503 Service Unavailable; try again in 3600 s"), "{error}");
}

/// A redirect to another origin gets neither the request nor the token; one within the origin gets both.
#[tokio::test]
async fn a_redirect_takes_no_token_to_another_origin() {
    let other = TestServer::start(async |_| status(200)).await;
    let to = other.url.clone();
    for code in [307, 308, 301, 302, 303] {
        let to = to.clone();
        let server = TestServer::start(move |_| {
            let to = to.clone();
            async move { reply(code, &[("location", &to)], "") }
        })
        .await;
        let options = HttpOptions::new().bearer("secret-token");
        let error = connect(&server.url, options).await.unwrap_err().to_string();
        assert!(error.contains(&format!("points to {}", other.url)), "{error}");
        assert!(!error.contains("secret-token"), "{error}");
    }
    assert!(other.all(|_| true).is_empty(), "nothing was sent there");

    let server = TestServer::start(async |seen| match seen.path.as_str() {
        "/mcp" => reply(307, &[("location", "/mcp/")], ""),
        _ => legacy(&seen, "2025-11-25").unwrap_or_else(|| result(&seen, said("fine"))),
    })
    .await;
    let options = HttpOptions::new().bearer("secret-token");
    let client = connect(&server.url, options).await.unwrap();
    assert_eq!(client.call("t", json!({})).await.unwrap().text().unwrap(), "fine");
    let moved = server.all(|seen| seen.path == "/mcp/");
    assert!(moved.iter().all(|seen| seen.header("authorization") == Some("Bearer secret-token")));

    let server = TestServer::start(async |seen| match seen.method.as_str() {
        "POST" => reply(302, &[("location", "/elsewhere")], ""),
        _ => status(404),
    })
    .await;
    let error = connect(&server.url, HttpOptions::new()).await.unwrap_err().to_string();
    assert!(error.contains("/elsewhere") && error.contains("use that address"), "{error}");

    let server = TestServer::start(async |_| reply(307, &[("location", "/mcp")], "")).await;
    let error = connect(&server.url, HttpOptions::new()).await.unwrap_err().to_string();
    assert!(error.contains("in circles"), "{error}");
}

/// The same server under another name is another origin: whoever has the name may be somebody else.
#[tokio::test]
async fn a_redirect_takes_no_token_to_another_name_of_the_same_machine() {
    let server = TestServer::start(async |seen| {
        let host = seen.header("host").unwrap().replace("127.0.0.1", "localhost");
        match seen.path.as_str() {
            "/mcp" => reply(307, &[("location", &format!("http://{host}/moved"))], ""),
            _ => legacy(&seen, "2025-11-25").unwrap_or_else(|| result(&seen, said("got it"))),
        }
    })
    .await;
    for options in [
        HttpOptions::new().bearer("secret-token"),
        HttpOptions::new().header("X-Api-Key", "secret-token"),
        HttpOptions::new(),
    ] {
        let error = connect(&server.url, options).await.unwrap_err().to_string();
        assert!(error.contains("http://localhost:") && error.contains("/moved"), "{error}");
        assert!(error.contains("another origin") && !error.contains("secret-token"), "{error}");
    }
    assert!(server.all(|seen| seen.path != "/mcp").is_empty(), "nothing was sent there");
}

/// A server that repeats the token in its error does not bring it to the screen. H10.
#[tokio::test]
async fn a_token_that_a_server_repeats_is_taken_out() {
    // As it is, and as writers of JSON and of forms spell it.
    for repeated in [
        "secret+token/0",
        r"secret\u002Btoken\/0",
        r"secret\\u002btoken\\\/0",
        "secret%2Btoken%2f0",
        "secret&#43;token/0",
    ] {
        let server = TestServer::start(move |seen| async move {
            assert_eq!(seen.header("authorization"), Some("Bearer secret+token/0"));
            let challenge =
                format!(r#"Bearer error_description="not for {repeated}""#).replace('\\', r"\\");
            let headers = [("content-type", "text/plain"), ("www-authenticate", &*challenge)];
            reply(403, &headers, format!("no user for {repeated}."))
        })
        .await;
        let options = HttpOptions::new().bearer("secret+token/0");
        let shown = format!("{options:?}");
        let error = connect(&server.url, options).await.unwrap_err();
        assert!(error.to_string().contains("no user for ***.: not for ***"), "{error}");
        assert!(!format!("{error:?} {shown}").contains("secret"), "{error:?}");
    }
}

/// The bytes of requests that wait are bounded; a request beyond the bound fails and others go on.
#[tokio::test]
async fn requests_that_wait_are_bounded_in_bytes() {
    let (told, mut arrived) = tokio::sync::mpsc::unbounded_channel();
    let server = TestServer::start(move |seen| {
        let told = told.clone();
        async move {
            if let Some(reply) = legacy(&seen, "2025-11-25") {
                return reply;
            }
            let (feed, reply) = events();
            told.send((seen.id(), feed)).unwrap();
            reply
        }
    })
    .await;
    let options = HttpOptions::new().max_waiting_bytes(100_000);
    let client = connect(&server.url, options).await.unwrap();
    let big = json!({ "text": "x".repeat(80_000) });
    let first = tokio::spawn(client.call("t", &big).into_future());
    let (id, feed) = arrived.recv().await.unwrap();
    let error = client.call("t", &big).await.unwrap_err().to_string();
    assert!(error.contains("bytes of requests wait"), "{error}");
    feed.event(&json!({ "jsonrpc": "2.0", "id": id, "result": said("first") }));
    assert_eq!(first.await.unwrap().unwrap().text().unwrap(), "first");
}

/// A connection that breaks is told as such, and the next request has another.
#[tokio::test]
async fn a_broken_connection_fails_one_request_only() {
    let (_, client, error) = fault(HttpOptions::new(), async |seen| {
        if seen.json()["params"]["name"] == "fine" {
            return result(&seen, said("fine"));
        }
        let (feed, reply) = feed(200, &[("content-type", "application/json")]);
        feed.cut();
        reply
    })
    .await;
    assert!(error.contains("the connection broke before the answer was complete"), "{error}");
    assert_eq!(client.call("fine", json!({})).await.unwrap().text().unwrap(), "fine");
}

/// A connection that is gone before anything was answered: what may be repeated is asked again, a call is not.
#[tokio::test]
async fn a_connection_that_was_gone_is_noticed_only_by_calls() {
    let lost = Arc::new(AtomicUsize::new(0));
    let counted = lost.clone();
    let (server, client, error) = fault(HttpOptions::new(), move |seen| {
        let lost = counted.clone();
        async move {
            if seen.rpc() == "tools/call" || lost.fetch_add(1, Ordering::SeqCst) == 0 {
                return status(HANG_UP);
            }
            result(&seen, json!({ "tools": [] }))
        }
    })
    .await;
    assert!(error.contains("the connection broke before the answer was complete"), "{error}");
    assert_eq!(server.all(|seen| seen.rpc() == "tools/call").len(), 1);
    client.tools().await.unwrap();
    assert_eq!(server.all(|seen| seen.rpc() == "tools/list").len(), 2);
}

/// A legacy server whose GET streams say `text` and end, and how often it was asked within `time`.
async fn gets_of(text: &'static str, time: Duration) -> usize {
    let server = TestServer::start(move |seen| async move {
        if seen.method == "GET" {
            let (feed, reply) = events();
            feed.send(text);
            return reply;
        }
        legacy(&seen, "2025-11-25").unwrap_or_else(|| result(&seen, json!({})))
    })
    .await;
    let _client = connect(&server.url, HttpOptions::new()).await.unwrap();
    server.wait(1, |seen| seen.method == "GET").await;
    let begun = Instant::now();
    let all = || server.all(|seen| seen.method == "GET").len();
    while begun.elapsed() < time {
        assert!(all() <= 10, "{text:?}: asked {} times in {:?}", all(), begun.elapsed());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    all()
}

/// A server cannot make a client hammer it: whatever pause it asks for, there is one, and what says nothing is a
/// failure, which makes the pause longer. H11.
#[tokio::test]
async fn a_stream_that_says_nothing_is_not_asked_for_again_and_again() {
    let second = Duration::from_secs(1);
    let silent =
        ["id: 1\nretry: 0\ndata: \n\n", "retry: 0\n\n", "id: 1\ndata: \n\n", "retry: 1\n\n"];
    for text in silent {
        let asked = gets_of(text, second).await;
        assert!(asked <= 4, "{text:?}: {asked}");
    }
    // Also if there is something new each time.
    let note = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let text: &'static str = format!("id: 1\nretry: 0\ndata: {note}\n\n").leak();
    let asked = gets_of(text, second).await;
    assert!((2..=10).contains(&asked), "{asked}");
}

/// The same for the stream of a request, and for one that is listened to.
#[tokio::test]
async fn a_stream_of_a_request_is_taken_up_again_with_pauses() {
    let server = TestServer::start(async |seen| {
        if seen.method == "GET" && seen.header("last-event-id").is_none() {
            return status(405);
        }
        if let Some(reply) = legacy(&seen, "2025-11-25").filter(|_| seen.method != "GET") {
            return reply;
        }
        let (feed, reply) = events();
        feed.send("id: 1\nretry: 0\ndata:\n\n");
        reply
    })
    .await;
    let options = HttpOptions::new().reconnects(3).reconnect_delay(Duration::from_millis(20));
    let client = connect(&server.url, options).await.unwrap();
    let begun = Instant::now();
    let error = client.call("t", json!({})).await.unwrap_err().to_string();
    assert!(error.contains("stream ended before the answer came"), "{error}");
    assert_eq!(server.all(|seen| seen.header("last-event-id").is_some()).len(), 3);
    assert!(begun.elapsed() >= Duration::from_millis(140), "{:?}", begun.elapsed());
}

/// A server that ends its streams and asks to be polled is polled, for as long as the answer takes.
#[tokio::test]
async fn a_server_that_asks_to_be_polled_is_polled_until_it_answers() {
    let (polls, call) = (Arc::new(AtomicUsize::new(0)), Arc::new(std::sync::Mutex::new(None)));
    let counted = polls.clone();
    let server = TestServer::start(move |seen| {
        let (polls, call) = (counted.clone(), call.clone());
        async move {
            if seen.header("last-event-id").is_some() {
                let (feed, reply) = events();
                if polls.fetch_add(1, Ordering::SeqCst) < 4 {
                    feed.send("id: 1\nretry: 500\ndata: \n\n");
                } else {
                    let id: serde_json::Value = call.lock().unwrap().take().unwrap();
                    feed.event(&json!({ "jsonrpc": "2.0", "id": id, "result": said("polled") }));
                }
                return reply;
            }
            if let Some(reply) = legacy(&seen, "2025-11-25") {
                return reply;
            }
            *call.lock().unwrap() = Some(seen.id());
            let (feed, reply) = events();
            feed.send("id: 1\nretry: 500\ndata: \n\n");
            reply
        }
    })
    .await;
    let client = connect(&server.url, HttpOptions::new().reconnects(2)).await.unwrap();
    assert_eq!(client.call("t", json!({})).await.unwrap().text().unwrap(), "polled");
    assert_eq!(polls.load(Ordering::SeqCst), 5);
}
