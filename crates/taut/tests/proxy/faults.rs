//! Servers that die, refuse or never come, and clients that go away.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use taut::{Client, ClientBuilder, Proxy, proxy::ProxyEvent};
use tokio::sync::mpsc;

use crate::raw::{
    INITIALIZE, INITIALIZED, Wire, answer, front, id_of, legacy, legacy_to_modern, proxy, refusal,
};

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_an_error_at_once_and_the_next_try_may_work() {
    let tries = Arc::new(AtomicUsize::new(0));
    let server = crate::world::server();
    let count = tries.clone();
    let connector = move |client: ClientBuilder| {
        let fails = count.fetch_add(1, Ordering::SeqCst) == 0;
        let server = server.clone();
        async move {
            if fails {
                return client.spawn(taut::Command::new("/nonexistent/server")).await;
            }
            taut::memory_with(&server, client).await
        }
    };
    let proxy = Proxy::builder(connector).build();
    let mut front = front(&proxy);
    front.send(INITIALIZE).await;
    let refused = front.next().await;
    assert!(refused.contains("no connection to the server"), "{refused}");
    assert!(refused.contains("/nonexistent/server"), "{refused}");
    assert!(refused.contains(r#""data":{"bridge":"unreachable","mayHaveRun":false}"#), "{refused}");
    front.send(INITIALIZE).await;
    let welcome = front.next().await;
    assert!(welcome.contains(r#""name":"back""#), "{welcome}");
}

#[tokio::test]
async fn open_calls_fail_when_the_server_dies_and_the_session_goes_on_with_a_new_one() {
    let events = Arc::new(Mutex::new(Vec::new()));
    let (builder, mut backs) = proxy();
    let seen = events.clone();
    let builder = builder
        .on_event(move |event| seen.lock().unwrap().push(event.to_string()))
        .restart(taut::RestartPolicy::new().first_delay(Duration::from_millis(1)));
    let proxy = builder.build();
    let (mut front, mut back) = legacy(&proxy, &mut backs).await;
    front
        .send(r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a:b"}}"#)
        .await;
    let id = id_of(&back.next().await);
    back.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)).await;
    front.next().await;
    front.send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}"#).await;
    back.next().await;
    drop(back);
    let failed = front.next().await;
    assert!(failed.contains(r#""id":2,"error""#), "{failed}");
    assert!(failed.contains(r#""data":{"bridge":"lost","mayHaveRun":true}"#), "{failed}");
    // A call that comes meanwhile waits for the new one.
    front.send(r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t"}}"#).await;
    let mut back = backs.recv().await.unwrap();
    let line = back.next().await;
    assert!(line.contains(r#""method":"initialize""#), "{line}");
    let welcome = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"b","version":"2"}}"#;
    back.send(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{welcome}}}"#, id_of(&line))).await;
    assert!(back.next().await.contains("notifications/initialized"));
    assert!(back.next().await.contains("resources/subscribe"));
    let changed = front.next().await;
    assert!(changed.contains("notifications/tools/list_changed"), "{changed}");
    let call = back.next().await;
    assert!(call.contains("tools/call"), "{call}");
    back.send(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[]}}}}"#, id_of(&call)))
        .await;
    assert!(front.next().await.contains(r#""id":3,"result""#));
    let events = events.lock().unwrap().join("\n");
    assert!(events.contains("lost the server"), "{events}");
}

/// T12: a client that leaves before its answer costs nobody else anything.
#[tokio::test]
async fn a_client_that_leaves_ends_its_calls_and_its_server() {
    let (builder, mut backs) = proxy();
    let proxy = builder.drain(Duration::from_millis(10)).build();
    let (mut front, mut back) = legacy(&proxy, &mut backs).await;
    front.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#).await;
    back.next().await;
    drop(front);
    // Withdrawn, and then the connection is closed.
    let line = back.next().await;
    assert!(line.contains("notifications/cancelled"), "{line}");
    assert_eq!(back.next().await, "");
}

#[tokio::test]
async fn a_withdrawn_question_is_withdrawn_at_the_client() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut front, mut back) = legacy(&proxy, &mut backs).await;
    back.send(r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#).await;
    let asked = front.next().await;
    let cancel =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}"#;
    back.send(cancel).await;
    let withdrawn = front.next().await;
    assert!(withdrawn.contains("notifications/cancelled"), "{withdrawn}");
    assert!(withdrawn.contains(&format!(r#""requestId":{}"#, id_of(&asked))), "{withdrawn}");
}

/// A server that takes nothing stops the client from sending more, instead of filling memory.
#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_read_stops_its_client() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut front, _back) = legacy(&proxy, &mut backs).await;
    let line = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/own","params":{{"t":"{}"}}}}"#,
        "x".repeat(64 << 10)
    );
    let mut sent = 0;
    let flood = async {
        loop {
            front.send(&line).await;
            sent += 1;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(5), flood).await.is_err());
    // A mebibyte in each of the two pipes of this test, and what the proxy holds.
    assert!(sent < 100, "{sent} messages of 64 KiB were taken");
}

#[tokio::test]
async fn closing_the_proxy_ends_every_server() {
    let (builder, mut backs) = proxy();
    let (lost, closings) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (lost.clone(), closings.clone());
    let builder = builder.on_event(move |event| match event {
        ProxyEvent::Lost { .. } => drop(counts.0.fetch_add(1, Ordering::SeqCst)),
        ProxyEvent::Closed => drop(counts.1.fetch_add(1, Ordering::SeqCst)),
        _ => {}
    });
    let proxy = builder.client(Client::builder().eof_grace(Duration::from_millis(10))).build();
    let (mut front, mut back) = legacy(&proxy, &mut backs).await;
    let closed = tokio::spawn({
        let proxy = proxy.clone();
        async move { proxy.close().await }
    });
    assert_eq!(back.next().await, "");
    drop(back);
    tokio::time::timeout(Duration::from_secs(20), closed).await.unwrap().unwrap();
    // It was no accident, and nothing is opened again.
    assert_eq!((lost.load(Ordering::SeqCst), closings.load(Ordering::SeqCst)), (0, 1));
    front.send(r#"{"jsonrpc":"2.0","id":9,"method":"tools/list"}"#).await;
    let refused = front.next().await;
    assert!(refused.contains("closed"), "{refused}");
}

/// That many requests are all answered is told, so that a program can give their memory back.
#[tokio::test]
async fn the_end_of_many_requests_is_told_once() {
    let (builder, mut backs) = proxy();
    let calm = Arc::new(AtomicUsize::new(0));
    let count = calm.clone();
    let builder = builder.on_event(move |event| {
        if matches!(event, ProxyEvent::Calm) {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    let proxy = builder.build();
    let (mut front, mut back) = legacy(&proxy, &mut backs).await;
    for (first, many, told) in [(0, 100, 0), (1000, 600, 1), (2000, 100, 1), (3000, 600, 2)] {
        let mut asked = Vec::new();
        for id in first..first + many {
            front.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#)).await;
            asked.push(back.next().await);
        }
        for request in asked {
            let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, id_of(&request));
            back.send(&answer).await;
            front.next().await;
        }
        // The loop says it on its next pass.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(calm.load(Ordering::SeqCst), told, "after {many}");
    }
}

/// How many long messages are sent before anybody reads: more than the proxy holds.
const LATE: usize = 24;

/// Sends them from one end.
async fn tells(mut from: Wire) -> Wire {
    let text = "x".repeat(1 << 20);
    for number in 0..LATE {
        let params = format!(r#"{{"n":{number},"t":"{text}"}}"#);
        let message =
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/own","params":{params}}}"#);
        from.send(&message).await;
    }
    from
}

/// Reads them at the other, once the proxy holds all that it takes and both sides have stopped.
async fn hears_late(mut to: Wire) {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    for number in 0..LATE {
        let line = to.next().await;
        assert!(line.contains(&format!(r#""n":{number},"#)), "{}", &line[..80.min(line.len())]);
    }
}

/// Who reads late gets everything: the other side is read again once there is room.
#[tokio::test]
async fn a_client_and_a_server_that_read_late_get_everything() {
    for from_server in [true, false] {
        let (builder, mut backs) = proxy();
        let proxy = builder.build();
        let (front, back) = legacy(&proxy, &mut backs).await;
        let (from, to) = if from_server { (back, front) } else { (front, back) };
        let told = tokio::spawn(tells(from));
        hears_late(to).await;
        told.await.unwrap();
    }
}

/// A stream of changes of a modern client outlives the connection to a legacy server, and is given up on the
/// connection that it is on then.
#[tokio::test]
async fn a_stream_of_changes_moves_to_the_next_connection_and_ends_there() {
    async fn opened(backs: &mut mpsc::UnboundedReceiver<Wire>) -> Wire {
        let mut back = backs.recv().await.unwrap();
        let line = back.next().await;
        assert!(line.contains(r#""method":"initialize""#), "{line}");
        let welcome = r#"{"protocolVersion":"2025-06-18","capabilities":{"resources":{"subscribe":true}},"serverInfo":{"name":"b","version":"2"}}"#;
        back.send(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{welcome}}}"#, id_of(&line)))
            .await;
        assert!(back.next().await.contains("notifications/initialized"));
        back
    }
    let (builder, mut backs) = proxy();
    let proxy = builder.client(Client::builder().revision(taut::Revision::V2025_06_18)).build();
    let mut front = front(&proxy);
    front
        .send(r#"{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["a:b"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"f","version":"1"}}}}"#)
        .await;
    let mut back = opened(&mut backs).await;
    let subscribe = back.next().await;
    assert!(subscribe.contains("resources/subscribe"), "{subscribe}");
    back.send(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, id_of(&subscribe))).await;
    let acknowledged = front.next().await;
    assert!(acknowledged.contains(r#""resourceSubscriptions":["a:b"]"#), "{acknowledged}");

    drop(back);
    let mut back = opened(&mut backs).await;
    assert!(back.next().await.contains("resources/subscribe"));
    let updated =
        r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:b"}}"#;
    back.send(updated).await;
    let told = front.next().await;
    assert!(told.contains("notifications/resources/updated"), "{told}");

    front
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s"}}"#)
        .await;
    let left = back.next().await;
    assert!(left.contains("resources/unsubscribe") && left.contains("a:b"), "{left}");
}

/// A proxy whose first connection is given out here, whose next `failing` ones fail, and whose later ones are
/// given out again.
pub(crate) fn failing(
    failing: usize,
) -> (taut::proxy::ProxyBuilder, mpsc::UnboundedReceiver<Wire>) {
    let (given, taken) = mpsc::unbounded_channel();
    let tries = AtomicUsize::new(0);
    let connector = move |client: ClientBuilder| {
        let fails = (1..=failing).contains(&tries.fetch_add(1, Ordering::SeqCst));
        let (near, far) = tokio::io::duplex(1 << 20);
        if !fails {
            let _ = given.send(Wire::new(far));
        }
        let (reader, writer) = tokio::io::split(near);
        client.connect(reader, writer)
    };
    (Proxy::builder(connector), taken)
}

/// What a session has said is said again to the connection that a request opens, also where nothing was opened
/// when the old one was lost: the restart failed, or the server has died too often.
#[tokio::test]
async fn a_session_is_taken_up_again_by_the_request_that_opens_the_next_connection() {
    let quick = || taut::RestartPolicy::new().first_delay(Duration::from_millis(1));
    for (fails, policy) in [(1, quick()), (0, quick().max_restarts(0))] {
        let (events, mut told) = mpsc::unbounded_channel();
        let (builder, mut backs) = failing(fails);
        let builder = builder.restart(policy).on_event(move |event| {
            let _ = events.send(event.to_string());
        });
        let proxy = builder.build();
        let (mut front, mut back) = legacy(&proxy, &mut backs).await;
        for (id, method, params) in [
            (1, "resources/subscribe", r#"{"uri":"a:b"}"#),
            (2, "logging/setLevel", r#"{"level":"error"}"#),
        ] {
            front
                .send(&format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
                ))
                .await;
            let request = back.next().await;
            back.send(&answer(&request, "{}")).await;
            front.next().await;
        }
        drop(back);
        let until = if fails > 0 { "no connection" } else { "lost" };
        while !told.recv().await.unwrap().contains(until) {}

        front.send(r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#).await;
        let mut back = backs.recv().await.unwrap();
        let initialize = back.next().await;
        let welcome = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"b","version":"2"}}"#;
        back.send(&answer(&initialize, welcome)).await;
        let mut lines = Vec::new();
        for expected in ["initialized", "resources/subscribe", "logging/setLevel", "tools/list"] {
            lines.push(back.next().await);
            assert!(lines.last().unwrap().contains(expected), "{fails}: {lines:?}");
        }
        let changed = front.next().await;
        assert!(changed.contains("notifications/tools/list_changed"), "{changed}");
        back.send(&answer(lines.last().unwrap(), "{}")).await;
        assert!(front.next().await.contains(r#""id":3,"result""#));
    }
}

/// P4, P19: a server that is still being opened ends with the session that it is for.
#[tokio::test]
async fn a_client_that_leaves_ends_a_server_that_is_not_ready_yet() {
    let (builder, mut backs) = proxy();
    let proxy = builder.drain(Duration::from_millis(10)).build();
    let mut front = front(&proxy);
    front.send(INITIALIZE).await;
    let mut back = backs.recv().await.unwrap();
    assert!(back.next().await.contains(r#""method":"initialize""#));
    drop(front);
    // The end of the connection, long before the server would have to be ready.
    assert_eq!(back.next().await, "");
}

/// A stream of changes that the server refuses at first is asked for again.
#[tokio::test(start_paused = true)]
async fn a_stream_of_changes_that_cannot_be_opened_is_tried_again() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let (mut front, mut back) =
        legacy_to_modern(&proxy, &mut backs, r#"{"tools":{"listChanged":true}}"#).await;
    front.send(INITIALIZED).await;
    let listen = back.next().await;
    assert!(listen.contains("subscriptions/listen"), "{listen}");
    back.send(&refusal(&listen, r#"{"code":-32603,"message":"not now"}"#)).await;
    let listen = back.next().await;
    assert!(listen.contains("subscriptions/listen"), "{listen}");
    let tag = format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{}}}"#, id_of(&listen));
    back.send(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{{tag},"notifications":{{"toolsListChanged":true}}}}}}"#
    ))
    .await;
    // What changed meanwhile was not heard of.
    let changed = front.next().await;
    assert_eq!(changed, r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    back.send(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{{tag}}}}}"#
    ))
    .await;
    let changed = front.next().await;
    assert!(changed.contains("notifications/tools/list_changed"), "{changed}");
}

/// A client in a pool whose first `initialize` failed, because there was no server, has one session afterwards.
#[tokio::test]
async fn a_client_whose_handshake_failed_once_hears_of_a_change_once() {
    let (given, mut backs) = mpsc::unbounded_channel();
    let tries = Arc::new(AtomicUsize::new(0));
    let connector = move |client: ClientBuilder| {
        let fails = tries.fetch_add(1, Ordering::SeqCst) == 0;
        let given = given.clone();
        async move {
            if fails {
                return client.spawn(taut::Command::new("/nonexistent/server")).await;
            }
            let (near, far) = tokio::io::duplex(1 << 20);
            let _ = given.send(Wire::new(far));
            let (reader, writer) = tokio::io::split(near);
            client.connect(reader, writer).await
        }
    };
    let proxy = Proxy::builder(connector).children(1).build();
    let mut front = front(&proxy);
    front.send(INITIALIZE).await;
    assert!(front.next().await.contains("no connection to the server"));
    front.send(INITIALIZE).await;
    let mut back = backs.recv().await.unwrap();
    let initialize = back.next().await;
    let welcome = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"b","version":"2"}}"#;
    back.send(&answer(&initialize, welcome)).await;
    assert!(front.next().await.contains(r#""result""#));
    front.send(INITIALIZED).await;
    back.send(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#).await;
    back.send(r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#).await;
    assert!(front.next().await.contains("tools/list_changed"));
    assert!(front.next().await.contains("prompts/list_changed"));
}

/// Nothing that a server asks or tells reaches a client before its handshake is answered.
#[tokio::test]
async fn a_server_that_asks_before_it_answers_the_handshake_is_refused() {
    let (builder, mut backs) = proxy();
    let proxy = builder.build();
    let mut front = front(&proxy);
    front.send(INITIALIZE).await;
    let mut back = backs.recv().await.unwrap();
    let initialize = back.next().await;
    back.send(r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#).await;
    let refused = back.next().await;
    assert!(refused.contains(r#""id":"q","error""#), "{refused}");
    let welcome = r#"{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"b","version":"2"}}"#;
    back.send(&answer(&initialize, welcome)).await;
    let answered = front.next().await;
    assert!(answered.contains(r#""result""#), "{answered}");
}
