//! The seam for transports that carry whole messages: what leaves says which request it belongs to.

#![allow(clippy::unwrap_used, clippy::panic)]

mod time;

use std::future::IntoFuture as _;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use serde_json::{Value, json};
use taut::transport::{
    MessagePipe, MessageService, Outgoing, Principal, Relation, SendMessageError,
};
use taut::{Call, Client, Level, NoArgs, Server};

fn server() -> Server {
    Server::builder("seam", "1")
        .logging()
        .tool(("talk", "For tests."), async |_: NoArgs, call: Call| {
            call.log(Level::Warning, "a line");
            call.progress(1.0);
            "said"
        })
        .tool(("wait", "For tests."), async |_: NoArgs, call: Call| {
            call.cancelled().await;
            "never seen"
        })
        .tool(("ask", "For tests."), async |_: NoArgs, call: Call| {
            call.roots().await.map(|roots| roots.len().to_string())
        })
        .tool(("who", "For tests."), async |_: NoArgs, call: Call| {
            call.principal().id().unwrap_or("nobody").to_owned()
        })
        .tool(("panic", "For tests."), async |_: NoArgs, _: Call| -> String {
            panic!("on purpose")
        })
        .build()
        .unwrap()
}

async fn send(pipe: &MessagePipe, message: Value) {
    pipe.send(message.to_string().into_bytes()).await.unwrap();
}

async fn receive(pipe: &mut MessagePipe) -> (Value, Relation) {
    let received = tokio::time::timeout(Duration::from_secs(20), pipe.recv()).await;
    let Outgoing { json, relation, .. } = received.unwrap().unwrap();
    (serde_json::from_slice(&json).unwrap_or_default(), relation)
}

/// A legacy session, which is ready for requests.
async fn opened(principal: Principal) -> MessagePipe {
    opened_at(server(), principal).await
}

/// The same at this server.
async fn opened_at(server: Server, principal: Principal) -> MessagePipe {
    let mut pipe = server.open(principal);
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": { "roots": {} },
        "clientInfo": { "name": "test", "version": "1" }
    });
    send(&pipe, json!({ "jsonrpc": "2.0", "id": "i", "method": "initialize", "params": params }))
        .await;
    let (_, relation) = receive(&mut pipe).await;
    assert_eq!(relation, Relation::Answer(id("\"i\"")));
    send(&pipe, json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    pipe
}

fn id(json: &str) -> taut::rpc::Id {
    taut::rpc::Id::from_json(json).unwrap()
}

fn call(id: u64, tool: &str) -> Value {
    let params = json!({ "name": tool, "_meta": { "progressToken": id } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

#[tokio::test]
async fn what_a_call_says_is_marked_with_its_request() {
    let mut pipe = opened(Principal::ANONYMOUS).await;
    for number in [1, 2] {
        send(&pipe, call(number, "talk")).await;
        let about = Relation::About(id(&number.to_string()));
        let (log, relation) = receive(&mut pipe).await;
        assert_eq!((&log["method"], &relation), (&json!("notifications/message"), &about));
        let (progress, relation) = receive(&mut pipe).await;
        assert_eq!((&progress["method"], relation), (&json!("notifications/progress"), about));
        let (answer, relation) = receive(&mut pipe).await;
        assert_eq!(answer["id"], number);
        assert_eq!(relation, Relation::Answer(id(&number.to_string())));
    }
}

#[tokio::test]
async fn a_question_and_its_withdrawal_belong_to_the_call_that_asks() {
    let mut pipe = opened(Principal::ANONYMOUS).await;
    send(&pipe, call(7, "ask")).await;
    let (question, relation) = receive(&mut pipe).await;
    assert_eq!(question["method"], "roots/list");
    assert_eq!(relation, Relation::About(id("7")));
    send(&pipe, json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } }))
        .await;
    // First the note that nothing more comes of the call; then its question is withdrawn.
    let (nothing, relation) = receive(&mut pipe).await;
    assert_eq!((nothing, relation), (Value::Null, Relation::Withdrawn(id("7"))));
    let (withdrawn, relation) = receive(&mut pipe).await;
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(relation, Relation::About(id("7")));
}

#[tokio::test]
async fn a_stream_of_changes_belongs_to_its_listen_request() {
    let server = Server::builder("seam", "1").build().unwrap();
    let mut pipe = server.open(Principal::ANONYMOUS);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    let params = json!({ "_meta": meta, "notifications": { "toolsListChanged": true } });
    send(
        &pipe,
        json!({ "jsonrpc": "2.0", "id": 3, "method": "subscriptions/listen", "params": params }),
    )
    .await;
    let (ack, relation) = receive(&mut pipe).await;
    assert_eq!(ack["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(relation, Relation::About(id("3")));
}

#[tokio::test]
async fn a_message_of_several_lines_is_one_message_and_what_is_no_json_is_not_taken() {
    let mut pipe = opened(Principal::ANONYMOUS).await;
    let pretty = serde_json::to_vec_pretty(&call(1, "who")).unwrap();
    pipe.send(pretty).await.unwrap();
    let (answer, _) = receive(&mut pipe).await;
    assert_eq!(answer["result"]["content"][0]["text"], "nobody");
    let broken = b"{\"id\":\"a\nb\"}".to_vec();
    assert_eq!(pipe.send(broken).await, Err(SendMessageError::NotJson));
    let long = vec![b' '; (64 << 20) + 1];
    assert_eq!(pipe.send(long).await, Err(SendMessageError::TooLong { limit: 64 << 20 }));
}

#[tokio::test]
async fn what_has_no_room_now_is_given_back() {
    let mut pipe = opened(Principal::ANONYMOUS).await;
    let message = serde_json::to_vec(&call(1, "who")).unwrap();
    assert_eq!(pipe.try_send(message.clone()), Ok(None));
    // Together they are more than it holds, and it takes nothing before it runs.
    let long = vec![b' '; 64 << 10];
    assert_eq!(pipe.try_send(long.clone()), Ok(Some(long)));
    let broken = b"{\"id\":\"a\nb\"}".to_vec();
    assert_eq!(pipe.try_send(broken), Err(SendMessageError::NotJson));
    let (answer, _) = receive(&mut pipe).await;
    assert_eq!(answer["id"], 1);
    assert_eq!(pipe.try_send(message), Ok(None));
}

#[tokio::test]
async fn a_handler_knows_who_asks_and_a_panic_costs_one_call() {
    let mut pipe = opened(Principal::new("ann")).await;
    send(&pipe, call(1, "panic")).await;
    let (answer, _) = receive(&mut pipe).await;
    assert_eq!(answer["result"]["isError"], true);
    send(&pipe, call(2, "who")).await;
    let (answer, _) = receive(&mut pipe).await;
    assert_eq!(answer["result"]["content"][0]["text"], "ann");
}

/// A transport that does not read makes the session wait, and the session makes the sender wait.
#[tokio::test(start_paused = true)]
async fn both_directions_are_bounded_in_bytes() {
    let pipe = opened(Principal::ANONYMOUS).await;
    let mut sent = 0;
    let flood = async {
        loop {
            send(&pipe, json!({ "jsonrpc": "2.0", "id": sent, "method": "ping" })).await;
            sent += 1;
        }
    };
    let stopped = tokio::time::timeout(Duration::from_secs(5), flood).await;
    assert!(stopped.is_err() && (100..100_000).contains(&sent), "{sent}");
}

#[tokio::test]
async fn closing_finishes_what_was_accepted_and_dropping_ends_it() {
    let (sender, mut receiver) = opened(Principal::ANONYMOUS).await.split();
    sender.send(call(1, "who").to_string().into_bytes()).await.unwrap();
    sender.close();
    let answer = receiver.recv().await.unwrap();
    assert_eq!(answer.relation, Relation::Answer(id("1")));
    assert!(receiver.recv().await.is_none());
    let late = sender.send(call(2, "who").to_string().into_bytes()).await;
    assert_eq!(late, Err(SendMessageError::Closed));

    let (sender, receiver) = opened(Principal::ANONYMOUS).await.split();
    sender.send(call(1, "wait").to_string().into_bytes()).await.unwrap();
    drop(receiver);
    while sender.send(b"{}".to_vec()).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

/// A session without a task goes on while somebody polls its receiver, and only then.
#[tokio::test]
async fn a_session_in_place_answers_whoever_polls_it_and_ends_when_it_is_dropped() {
    let mut pipe = server().open_in_place(Principal::new("ann"));
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": { "roots": {} },
        "clientInfo": { "name": "test", "version": "1" }
    });
    let opening = json!({ "jsonrpc": "2.0", "id": "i", "method": "initialize", "params": params });
    assert_eq!(pipe.try_send(opening.to_string().into_bytes()), Ok(None));
    // No other task has run meanwhile.
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(Some(answer)) = pipe.poll_recv(&mut cx) else { panic!("it was not answered") };
    assert_eq!(answer.relation, Relation::Answer(id("\"i\"")));
    assert!(pipe.poll_recv(&mut cx).is_pending());
    send(&pipe, json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;

    // A handler that waits is a task of its own, and its end wakes whoever receives.
    send(&pipe, call(1, "ask")).await;
    let (question, _) = receive(&mut pipe).await;
    let roots = json!({ "roots": [] });
    send(&pipe, json!({ "jsonrpc": "2.0", "id": question["id"], "result": roots })).await;
    let (answer, _) = receive(&mut pipe).await;
    assert_eq!(answer["result"]["content"][0]["text"], "0");

    let (sender, mut receiver) = pipe.split();
    sender.send(call(2, "wait").to_string().into_bytes()).await.unwrap();
    assert!(receiver.poll_session(&mut cx) && receiver.poll_recv(&mut cx).is_pending());
    drop(receiver);
    let late = sender.send(call(3, "who").to_string().into_bytes()).await;
    assert_eq!(late, Err(SendMessageError::Closed));

    // Closed, it answers what it has and says that it is over.
    let (sender, mut receiver) = server().open_in_place(Principal::ANONYMOUS).split();
    sender.send(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}".to_vec()).await.unwrap();
    sender.close();
    assert_eq!(receiver.recv().await.unwrap().relation, Relation::Answer(id("1")));
    assert!(receiver.recv().await.is_none() && receiver.recv().await.is_none());
}

#[tokio::test]
async fn a_client_works_over_messages_as_over_bytes() {
    let (near, client) = Client::builder().connect_messages();
    let far = server().open(Principal::new("bob"));
    let (to_client, mut from_client) = near.split();
    let (to_server, mut from_server) = far.split();
    tokio::spawn(async move {
        while let Some(message) = from_client.recv().await {
            if to_server.send(message.json).await.is_err() {
                break;
            }
        }
        to_server.close();
    });
    tokio::spawn(async move {
        while let Some(message) = from_server.recv().await {
            if !message.json.is_empty() && to_client.send(message.json).await.is_err() {
                break;
            }
        }
        to_client.close();
    });
    let client = client.await.unwrap();
    assert!(client.revision().is_modern());
    assert_eq!(client.call("who", json!({})).await.unwrap().text().unwrap(), "bob");
    client.close().await.unwrap();
}

/// What a web page can send to a local port runs nothing, wherever a message hides in it.
#[tokio::test]
async fn a_socket_decides_once_and_refuses_the_rest() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let framed = format!("Content-Length: {}\r\n\r\n{ping}", ping.len());
    let table = [
        (format!("{ping}\n"), true),
        (framed.clone(), true),
        (format!("POST / HTTP/1.1\r\nContent-Length: 40\r\n\r\n{ping}\n"), false),
        (format!("POST / HTTP/1.1\r\n\r\n\n{framed}"), false),
        (format!("hello\n{ping}\n"), false),
        (format!("\x16\x03\x01{ping}\n"), false),
        (format!("Content-Length: x\r\n\r\n{ping}\n"), false),
        (format!("Content-Length: {}\r\n{ping}\n", ping.len()), false),
    ];
    for (bytes, answered) in table {
        let (mut near, far) = tokio::io::duplex(4096);
        let ending = tokio::spawn(server().serve_socket(Box::new(far), Principal::ANONYMOUS));
        near.write_all(bytes.as_bytes()).await.unwrap();
        if answered {
            near.shutdown().await.unwrap();
        }
        let mut out = String::new();
        near.read_to_string(&mut out).await.unwrap();
        let ending = ending.await.unwrap();
        assert_eq!(out.contains("\"result\":{}"), answered, "{bytes:?}: {out:?}");
        assert_eq!(matches!(ending, taut::Ending::Refused), !answered, "{bytes:?}: {ending}");
        assert!(answered || out.is_empty(), "{bytes:?}: {out:?}");
    }
    // A connection that began in one framing does not go on in the other.
    let (mut near, far) = tokio::io::duplex(4096);
    let ending = tokio::spawn(server().serve_socket(Box::new(far), Principal::ANONYMOUS));
    near.write_all(format!("{ping}\n{framed}").as_bytes()).await.unwrap();
    let mut out = String::new();
    near.read_to_string(&mut out).await.unwrap();
    assert_eq!(out.matches("\"result\":{}").count(), 1, "{out}");
    assert!(matches!(ending.await.unwrap(), taut::Ending::Refused));
}

/// What a transport can ask of a service before it opens a session.
#[test]
fn a_service_says_whether_it_speaks_mcp_and_what_its_tools_take() {
    let server = server();
    assert!(server.speaks_mcp());
    let schema = server.tool_schema("talk").unwrap();
    assert!(schema.text().contains("\"type\":\"object\""), "{schema:?}");
    assert!(server.tool_schema("nothing").is_none());
    use taut::service::{Failed, RequestParams, ServiceRequest};
    let plain = taut::service::serve(async |_: String, _: RequestParams, _: ServiceRequest| {
        Ok::<_, Failed>(1)
    });
    assert!(!plain.speaks_mcp() && plain.tool_schema("talk").is_none());
}

/// A transport that cannot go on says why, to who opens and to who waits for an answer.
#[tokio::test]
async fn a_transport_that_fails_says_why() {
    let (mut pipe, client) = Client::builder().connect_messages();
    let opening = tokio::spawn(client);
    receive(&mut pipe).await;
    let (sender, receiver) = pipe.split();
    sender.fail("the server answered 401");
    drop(receiver);
    let error = opening.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "the connection failed: the server answered 401");

    let (mut pipe, client) = Client::builder().connect_messages();
    let mut inner = server().open(Principal::ANONYMOUS);
    let opening = tokio::spawn(client);
    let (asked, _) = receive(&mut pipe).await;
    send(&inner, asked).await;
    pipe.send(inner.recv().await.unwrap().json).await.unwrap();
    let opened = opening.await.unwrap().unwrap();
    let call = tokio::spawn(opened.call("wait", json!({})).into_future());
    receive(&mut pipe).await;
    let (sender, mut receiver) = pipe.split();
    sender.fail("the cable was cut");
    let error = call.await.unwrap().unwrap_err().to_string();
    assert!(error.ends_with("the connection failed: the cable was cut"), "{error}");
    while receiver.recv().await.is_some() {}
}

/// MRTR-10: the state of a question is of no use to anybody but the one who was asked.
#[tokio::test]
async fn mrtr_10_a_state_of_another_principal_is_refused() {
    let server = server();
    let ask = |state: Option<&Value>| {
        let mut params = json!({ "name": "ask", "arguments": {}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { "roots": {} },
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        } });
        if let Some(required) = state {
            let questions = required["inputRequests"].as_object().unwrap();
            let responses = questions.keys().map(|key| (key.clone(), json!({ "roots": [] })));
            params["inputResponses"] = responses.collect::<serde_json::Map<_, _>>().into();
            params["requestState"] = required["requestState"].clone();
        }
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
    };
    let mut ann = server.open(Principal::new("ann"));
    send(&ann, ask(None)).await;
    let required = receive(&mut ann).await.0["result"].take();
    assert_eq!(required["resultType"], "input_required", "{required}");
    for other in [Principal::new("bob"), Principal::ANONYMOUS] {
        let mut bob = server.open(other);
        send(&bob, ask(Some(&required))).await;
        let (refused, _) = receive(&mut bob).await;
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("belongs to another request"), "{refused}");
    }
    // Her own is taken, on another connection as well.
    let mut again = server.open(Principal::new("ann"));
    send(&again, ask(Some(&required))).await;
    let (answer, _) = receive(&mut again).await;
    assert_eq!(answer["result"]["content"][0]["text"], "0", "{answer}");
}

/// The example shows that a transport outside of the crate is a small thing.
#[test]
fn the_example_of_a_transport_is_short() {
    let lines = include_str!("../../examples/transport.rs").lines().count();
    assert!(lines < 120, "{lines} lines");
}
