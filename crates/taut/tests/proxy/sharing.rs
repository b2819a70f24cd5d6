//! Who shares a connection to the server, and what of one client another never sees.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use taut::rpc::Id;
use taut::transport::{MessagePipe, MessageService, Principal, Relation};
use taut::types::Era;
use taut::wire::Framing;
use taut::{Client, ClientBuilder, Proxy, Revision};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::raw::{answer, id_of, legacy, opened_legacy};
use crate::world::{Heard, connect, host, proxy_to, server};

fn modern(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

async fn ask(pipe: &mut MessagePipe, message: Value) -> Value {
    pipe.send(message.to_string().into_bytes()).await.unwrap();
    let answer = tokio::time::timeout(Duration::from_secs(20), pipe.recv()).await.unwrap().unwrap();
    serde_json::from_slice(&answer.json).unwrap()
}

#[tokio::test]
async fn each_legacy_session_has_a_connection_and_each_principal_one_for_all_modern_requests() {
    let (proxy, opened) = proxy_to(server(), Revision::V2025_11_25);
    let proxy = proxy.build();
    for sessions in 1..=3 {
        let legacy = host(&Heard::default()).revision(Revision::V2025_11_25);
        connect(&proxy, legacy).await.unwrap();
        assert_eq!(opened.load(Ordering::SeqCst), sessions);
    }
    for _ in 0..3 {
        for name in ["ann", "bob"] {
            let mut pipe = proxy.open(Principal::new(name));
            ask(&mut pipe, modern(1, "tools/list", json!({}))).await;
        }
    }
    assert_eq!(opened.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn the_connection_of_a_principal_that_has_gone_is_given_up_when_another_comes() {
    for (idle, opened_in_all) in [(Duration::ZERO, 7), (Duration::MAX, 4)] {
        let (proxy, opened) = proxy_to(server(), Revision::V2025_11_25);
        let proxy = proxy.idle(idle).build();
        // This one stays connected, and keeps what it uses.
        let mut kept = proxy.open(Principal::new("kept"));
        for round in 0..2 {
            ask(&mut kept, modern(round, "tools/list", json!({}))).await;
            for name in ["ann", "bob", "cid"] {
                let mut pipe = proxy.open(Principal::new(name));
                ask(&mut pipe, modern(1, "tools/list", json!({}))).await;
                drop(pipe);
                // Its front has gone when nobody but the map has the slot: that takes the loop a moment.
                let mut next = proxy.open(Principal::new("kept"));
                ask(&mut next, modern(1, "tools/list", json!({}))).await;
            }
        }
        // With no patience: kept once, the others anew each time but for what had not gone yet.
        let opened = opened.load(Ordering::SeqCst);
        assert!(opened <= opened_in_all, "{opened}");
        assert_eq!(opened > 4, idle.is_zero(), "{opened}");
    }
}

/// ERA-04: the refusal lists what is served, so that a client of both eras, and another proxy, go on in that era.
#[tokio::test]
async fn who_comes_in_the_era_that_is_not_served_is_told_which_one_is() {
    for (served, other) in [(Era::Modern, Era::Legacy), (Era::Legacy, Era::Modern)] {
        let (inner, _) = proxy_to(server(), Revision::V2025_11_25);
        let inner = inner.era(served).build();
        let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        } });
        let (revision, message) = match other {
            Era::Legacy => (Revision::V2025_06_18, initialize),
            Era::Modern => (Revision::MODERN, modern(1, "server/discover", json!({}))),
        };
        let refused = ask(&mut inner.open(Principal::new("ann")), message).await;
        assert_eq!(refused["error"]["code"], -32022, "{refused}");
        assert_eq!(refused["error"]["data"]["requested"], revision.as_str());
        let supported = refused["error"]["data"]["supported"].as_array().unwrap().clone();
        let listed = |revision: Revision| supported.contains(&json!(revision.as_str()));
        for revision in Revision::ALL {
            assert_eq!(listed(revision), revision.era() == served, "{revision}: {refused}");
        }

        let outer = Proxy::builder(move |client: ClientBuilder| {
            let inner = inner.clone();
            async move { connect(&inner, client).await }
        })
        .build();
        let client = connect(&outer, host(&Heard::default()).revision(revision)).await.unwrap();
        let echo = client.call("echo", json!({ "line": "hi" })).await.unwrap();
        assert_eq!(echo.text().unwrap(), "hi");
    }
}

/// A legacy client that asks for another revision is offered the one that is served, and the server hears of that
/// one alone.
#[tokio::test]
async fn clients_are_served_in_one_revision_where_that_is_wanted() {
    let (builder, mut backs) = crate::raw::proxy();
    let proxy = builder.revision(Revision::V2025_03_26).build();
    let mut front = crate::raw::front(&proxy);
    front.send(crate::raw::INITIALIZE).await;
    let mut back = backs.recv().await.unwrap();
    let initialize = back.next().await;
    assert!(initialize.contains(r#""protocolVersion":"2025-03-26""#), "{initialize}");
    assert!(initialize.contains(r#""x-own":12345678901234567890123456789"#), "{initialize}");
    let welcome = r#"{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"b","version":"2"}}"#;
    back.send(&answer(&initialize, welcome)).await;
    let opened = front.next().await;
    assert!(opened.contains(r#""protocolVersion":"2025-03-26""#), "{opened}");
    front.send(&crate::raw::modern("1", "tools/list", "")).await;
    let refused = front.next().await;
    assert!(refused.contains("-32022") && refused.contains("2025-03-26"), "{refused}");
    assert!(!refused.contains("2025-06-18"), "{refused}");
}

/// The other framing is refused, in the framing that is served; a transport of whole messages has none.
#[tokio::test]
async fn clients_are_served_in_one_framing_where_that_is_wanted() {
    let framed = |text: &str| format!("Content-Length: {}\r\n\r\n{text}", text.len());
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (only, taken, refused) in [
        (Framing::Lines, format!("{ping}\n"), framed(ping)),
        (Framing::Headers, framed(ping), format!("{ping}\n")),
    ] {
        let (builder, _backs) = crate::raw::proxy();
        let proxy = builder.framing(only).build();
        for (bytes, expected) in [(taken, r#""id":1,"result":{}"#), (refused, "-32700")] {
            let (near, far) = tokio::io::duplex(1 << 16);
            let (reader, writer) = tokio::io::split(far);
            let serving = tokio::spawn({
                let proxy = proxy.clone();
                async move { proxy.serve(reader, writer).await }
            });
            let (mut reader, mut writer) = tokio::io::split(near);
            writer.write_all(bytes.as_bytes()).await.unwrap();
            writer.shutdown().await.unwrap();
            let mut said = String::new();
            let read = reader.read_to_string(&mut said);
            tokio::time::timeout(Duration::from_secs(20), read).await.unwrap().unwrap();
            assert!(said.contains(expected), "{only:?}: {said}");
            assert_eq!(said.starts_with("Content-Length"), only == Framing::Headers, "{said}");
            serving.await.unwrap();
        }
        let mut pipe = proxy.open(Principal::ANONYMOUS);
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        assert_eq!(ask(&mut pipe, ping).await["result"], json!({}));
    }
}

/// No probe, and no second try in the other era.
#[tokio::test]
async fn a_server_is_spoken_to_in_one_era_where_that_is_wanted() {
    for era in [Era::Legacy, Era::Modern] {
        let (builder, mut backs) = crate::raw::proxy();
        let proxy = builder.client(Client::builder().era(era)).build();
        for modern in [true, false] {
            let mut front = crate::raw::front(&proxy);
            match modern {
                true => front.send(&crate::raw::modern("1", "tools/list", "")).await,
                false => front.send(crate::raw::INITIALIZE).await,
            }
            let mut back = backs.recv().await.unwrap();
            let opening = back.next().await;
            let (expected, supported) = match era {
                Era::Legacy => ("initialize", "2026-07-28"),
                Era::Modern => ("server/discover", "2025-11-25"),
            };
            assert!(opening.contains(&format!(r#""method":"{expected}""#)), "{opening}");
            let error = format!(
                r#"{{"code":-32022,"message":"no","data":{{"supported":["{supported}"],"requested":"x"}}}}"#
            );
            back.send(&crate::raw::refusal(&opening, &error)).await;
            let failed = front.next().await;
            assert!(failed.contains("no connection to the server"), "{failed}");
            assert_eq!(back.next().await, "");
        }
    }
}

/// T9: with a pool, which somebody asked for, all clients share its servers.
#[tokio::test]
async fn a_pool_is_shared_by_all() {
    let (proxy, opened) = proxy_to(server(), Revision::V2025_11_25);
    let proxy = proxy.children(2).build();
    for _ in 0..4 {
        let client = connect(&proxy, host(&Heard::default())).await.unwrap();
        let echo = client.call("echo", json!({ "line": "hi" })).await.unwrap();
        assert_eq!(echo.text().unwrap(), "hi");
    }
    assert!(opened.load(Ordering::SeqCst) <= 2);
}

#[tokio::test]
async fn a_parked_call_belongs_to_its_principal_and_its_request() {
    let (proxy, _) = proxy_to(server(), Revision::V2025_11_25);
    let proxy = proxy.build();
    let call = json!({ "name": "form", "arguments": {} });
    let mut ann = proxy.open(Principal::new("ann"));
    let asked = ask(&mut ann, modern(1, "tools/call", call.clone())).await;
    let state = asked["result"]["requestState"].as_str().unwrap().to_owned();
    let key = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let retry = |id: u64, name: &str| {
        let answers = json!({ &key: { "action": "accept", "content": { "line": "one" } } });
        let params = json!({
            "name": name, "arguments": {}, "requestState": state, "inputResponses": answers
        });
        modern(id, "tools/call", params)
    };
    let mut bob = proxy.open(Principal::new("bob"));
    let refused = ask(&mut bob, retry(1, "form")).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let refused = ask(&mut ann, retry(2, "roots")).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    // From another connection of the same principal it goes on, once.
    let mut again = proxy.open(Principal::new("ann"));
    let second = ask(&mut again, retry(3, "form")).await;
    assert_eq!(second["result"]["resultType"], "input_required", "{second}");
    let refused = ask(&mut ann, retry(4, "form")).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

#[tokio::test]
async fn parked_calls_are_bounded_in_number_bytes_and_time() {
    for (calls, bytes, fits) in [(1, 1 << 20, 1), (8, 1, 0), (8, 1 << 20, 3)] {
        let (proxy, _) = proxy_to(server(), Revision::V2025_11_25);
        // One call at a time, so that each question has its call.
        let proxy = proxy.parked(Duration::from_secs(60), calls, bytes).build();
        let mut parked = 0;
        for principal in 0..3 {
            let mut pipe = proxy.open(Principal::new(format!("p{principal}")));
            let call = modern(1, "tools/call", json!({ "name": "form", "arguments": {} }));
            let answer = ask(&mut pipe, call).await;
            match &answer["result"]["resultType"] {
                Value::Null => assert_eq!(answer["error"]["code"], -32603, "{answer}"),
                _ => parked += 1,
            }
        }
        assert_eq!(parked, fits, "{calls} calls, {bytes} bytes");
    }
}

#[tokio::test(start_paused = true)]
async fn a_parked_call_that_nobody_goes_on_with_is_given_up() {
    let (proxy, _) = proxy_to(server(), Revision::V2025_11_25);
    let proxy = proxy.parked(Duration::from_secs(60), 8, 1 << 20).build();
    let mut pipe = proxy.open(Principal::ANONYMOUS);
    let call = json!({ "name": "form", "arguments": {} });
    let asked = ask(&mut pipe, modern(1, "tools/call", call)).await;
    let state = asked["result"]["requestState"].clone();
    tokio::time::sleep(Duration::from_secs(61)).await;
    let params = json!({ "name": "form", "arguments": {}, "requestState": state });
    let late = ask(&mut pipe, modern(2, "tools/call", params)).await;
    assert_eq!(late["error"]["code"], -32602, "{late}");
}

/// A server that asks and asks is refused, and told which bound it has met; an answer makes room.
#[tokio::test]
async fn held_questions_are_bounded_in_number_and_bytes() {
    let long = "x".repeat(1 << 10);
    for (at_once, bytes, fit) in [(2, 1 << 20, 2), (100, 3 << 10, 3), (100, 1, 1)] {
        for dedicated in [true, false] {
            let (builder, mut backs) = crate::raw::proxy();
            let proxy = builder.questions(at_once, bytes).build();
            let (mut front, mut back) = if dedicated {
                legacy(&proxy, &mut backs).await
            } else {
                let mut front = crate::raw::front(&proxy);
                // Two at once, so that nobody knows whose the questions are.
                front.send(&crate::raw::modern("1", "tools/call", r#""name":"t","#)).await;
                front.send(&crate::raw::modern("2", "tools/call", r#""name":"t","#)).await;
                let mut back = opened_legacy(&mut backs, r#"{"tools":{}}"#).await;
                back.next().await;
                back.next().await;
                (front, back)
            };
            for id in 0..=fit {
                let params = format!(r#"{{"message":"{long}","requestedSchema":{{}}}}"#);
                back.send(&format!(
                    r#"{{"jsonrpc":"2.0","id":"q{id}","method":"elicitation/create","params":{params}}}"#
                ))
                .await;
            }
            let refused = back.next().await;
            assert!(refused.contains(&format!(r#""id":"q{fit}","error""#)), "{refused}");
            assert!(refused.contains(&format!("of {at_once} questions")), "{refused}");
            assert!(refused.contains(&format!("of {bytes} bytes")), "{refused}");
            if dedicated {
                let asked = front.next().await;
                front.send(&answer(&asked, r#"{"action":"decline"}"#)).await;
                assert!(back.next().await.contains(r#""id":"q0","result""#));
                back.send(r#"{"jsonrpc":"2.0","id":"last","method":"roots/list"}"#).await;
                for _ in 0..fit {
                    let asked = front.next().await;
                    front.send(&answer(&asked, "{}")).await;
                    let answered = back.next().await;
                    assert!(answered.contains(r#""result":{}"#), "{answered}");
                }
            }
        }
    }
}

/// stdio has no link between a question and a call: with several open, a question is held until one is
/// left, and refused when that takes too long.
#[tokio::test(start_paused = true)]
async fn a_question_waits_until_it_is_clear_whose_it_is() {
    let (builder, mut backs) = crate::raw::proxy();
    let proxy = builder.build();
    let mut one = proxy.open(Principal::ANONYMOUS);
    let mut two = proxy.open(Principal::ANONYMOUS);
    let call = json!({ "name": "t", "arguments": {} });
    one.send(modern(1, "tools/call", call.clone()).to_string().into_bytes()).await.unwrap();
    let mut back = backs.recv().await.unwrap();
    let probe = back.next().await;
    back.send(&format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32601,"message":"?"}}}}"#,
        id_of(&probe)
    ))
    .await;
    let initialize = back.next().await;
    let welcome = json!({
        "jsonrpc": "2.0", "id": id_of(&initialize).parse::<u64>().unwrap(),
        "result": { "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "serverInfo": { "name": "b", "version": "1" } }
    });
    back.send(&welcome.to_string()).await;
    back.next().await;
    let first = id_of(&back.next().await);
    two.send(modern(1, "tools/call", call).to_string().into_bytes()).await.unwrap();
    let second = id_of(&back.next().await);
    let question = |id: &str| {
        let form = json!({ "type": "object", "properties": {} });
        let params = json!({ "message": "?", "requestedSchema": form });
        json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params })
    };
    // Several are open, and stay so: refused.
    back.send(&question("q1").to_string()).await;
    let refused = back.next().await;
    assert!(refused.contains(r#""id":"q1","error""#) && refused.contains("--serial"), "{refused}");
    // One of the two ends: it is the other's.
    back.send(&question("q2").to_string()).await;
    back.send(&format!(r#"{{"jsonrpc":"2.0","id":{first},"result":{{"content":[]}}}}"#)).await;
    let answered = one.recv().await.unwrap();
    assert!(String::from_utf8(answered.json).unwrap().contains("complete"));
    let asked = two.recv().await.unwrap();
    assert!(String::from_utf8(asked.json).unwrap().contains("input_required"));
    let _ = second;
}

/// A call that waits for its client asks nothing else, so the next question is another's.
#[tokio::test]
async fn a_parked_call_does_not_take_the_questions_of_others() {
    let (proxy, opened) = proxy_to(server(), Revision::V2025_11_25);
    let proxy = proxy.build();
    let call = json!({ "name": "form", "arguments": {} });
    let mut states = Vec::new();
    for _ in 0..3 {
        let mut pipe = proxy.open(Principal::ANONYMOUS);
        let asked = ask(&mut pipe, modern(1, "tools/call", call.clone())).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        states.push(asked["result"]["requestState"].clone());
    }
    assert_eq!(opened.load(Ordering::SeqCst), 1);
    states.dedup();
    assert_eq!(states.len(), 3);
}

#[tokio::test]
async fn one_request_at_a_time_where_that_is_wanted() {
    let (builder, mut backs) = crate::raw::proxy();
    let proxy = builder.serial(true).build();
    let (mut front, mut back) = legacy(&proxy, &mut backs).await;
    for id in 1..=2 {
        front
            .send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{}}}}"#))
            .await;
    }
    let first = id_of(&back.next().await);
    let early = tokio::time::timeout(Duration::from_millis(50), back.next()).await;
    assert!(early.is_err(), "the second came before the first was answered");
    back.send(&format!(r#"{{"jsonrpc":"2.0","id":{first},"result":{{}}}}"#)).await;
    assert!(back.next().await.contains("tools/call"));
}

/// The same where the client is modern and the server is not: there it is what makes questions certain.
#[tokio::test]
async fn one_modern_request_at_a_time_on_a_legacy_server() {
    let (proxy, _) = proxy_to(server(), Revision::V2025_11_25);
    let proxy = proxy.serial(true).build();
    let one = proxy.open(Principal::ANONYMOUS);
    let mut two = proxy.open(Principal::ANONYMOUS);
    let wait = modern(1, "tools/call", json!({ "name": "wait", "arguments": {} }));
    one.send(wait.to_string().into_bytes()).await.unwrap();
    let echo = json!({ "name": "echo", "arguments": { "line": "two" } });
    two.send(modern(1, "tools/call", echo).to_string().into_bytes()).await.unwrap();
    let early = tokio::time::timeout(Duration::from_millis(100), two.recv()).await;
    assert!(early.is_err(), "the second was served while the first was under way");
    // The first is withdrawn; then it is the turn of the second.
    drop(one);
    let answer = tokio::time::timeout(Duration::from_secs(20), two.recv()).await.unwrap().unwrap();
    assert!(String::from_utf8(answer.json).unwrap().contains("two"));
}

/// C7: ids and tokens of many clients are the same, and one server serves them all. Each client gets its own.
#[tokio::test]
async fn ids_and_tokens_of_fifty_clients_do_not_collide_on_one_server() {
    let (builder, mut backs) = crate::raw::proxy();
    let proxy = builder.children(1).build();
    let mut fronts = Vec::new();
    let mut back = None;
    for _ in 0..50 {
        let mut front = crate::raw::front(&proxy);
        front.send(crate::raw::INITIALIZE).await;
        if back.is_none() {
            let mut opened = backs.recv().await.unwrap();
            let initialize = opened.next().await;
            let welcome = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"b","version":"2"}}"#;
            opened.send(&answer(&initialize, welcome)).await;
            assert_eq!(opened.next().await, crate::raw::INITIALIZED);
            back = Some(opened);
        }
        front.next().await;
        fronts.push(front);
    }
    let mut back = back.unwrap();
    let mut calls = Vec::new();
    for (client, front) in fronts.iter_mut().enumerate() {
        let params = format!(r#"{{"name":"{client}","_meta":{{"progressToken":1}}}}"#);
        front
            .send(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#))
            .await;
        let call = back.next().await;
        assert!(call.contains(&format!(r#""name":"{client}""#)), "{call}");
        calls.push(call);
    }
    let progress = |token: &str, client: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{client}}}}}"#
        )
    };
    // The last first, so that order alone does not tell them apart.
    for client in (0..50).rev() {
        back.send(&progress(&id_of(&calls[client]), client)).await;
        assert_eq!(fronts[client].next().await, progress("1", client));
    }
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    for client in (0..50).filter(|client| client % 2 == 0) {
        fronts[client].send(cancel).await;
        let cancelled = back.next().await;
        let number = format!(r#""requestId":{}"#, id_of(&calls[client]));
        assert!(cancelled.contains(&number), "{client}: {cancelled}");
    }
    for client in (0..50).rev() {
        back.send(&answer(&calls[client], &format!(r#"{{"client":{client}}}"#))).await;
    }
    for (client, front) in fronts.iter_mut().enumerate() {
        let expected = match client % 2 {
            // It was cancelled: the next thing that it hears is the answer to its next request.
            0 => {
                front.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await;
                let list = back.next().await;
                back.send(&answer(&list, r#"{"tools":[]}"#)).await;
                r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#.to_owned()
            }
            _ => format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"client":{client}}}}}"#),
        };
        assert_eq!(front.next().await, expected);
    }
    assert!(backs.try_recv().is_err(), "one server");
}

/// L19: what comes while the server is being opened waits for it, in the order in which it came.
#[tokio::test]
async fn nothing_overtakes_the_handshake() {
    let (builder, mut backs) = crate::raw::proxy();
    let proxy = builder.build();
    let mut front = crate::raw::front(&proxy);
    front.send(crate::raw::INITIALIZE).await;
    front.send(crate::raw::INITIALIZED).await;
    front.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await;
    front.send(r#"{"jsonrpc":"2.0","method":"notifications/own"}"#).await;
    let mut back = backs.recv().await.unwrap();
    let initialize = back.next().await;
    assert!(initialize.contains(r#""method":"initialize""#), "{initialize}");
    let early = tokio::time::timeout(Duration::from_millis(50), back.next()).await;
    assert!(early.is_err(), "{early:?}");
    let welcome = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"b","version":"2"}}"#;
    back.send(&answer(&initialize, welcome)).await;
    assert!(front.next().await.contains(r#""id":"i","result""#));
    assert_eq!(back.next().await, crate::raw::INITIALIZED);
    assert!(back.next().await.contains(r#""method":"tools/list""#));
    assert!(back.next().await.contains(r#""method":"notifications/own""#));
}

/// SEC-12: what a client has proven who it is with stays here.
#[tokio::test]
async fn nothing_of_a_principal_reaches_the_server() {
    for session in [false, true] {
        let (builder, mut backs) = crate::raw::proxy();
        let proxy = builder.build();
        let pipe = proxy.open(Principal::new("token-of-ann"));
        let first = match session {
            true => crate::raw::INITIALIZE.to_owned(),
            false => crate::raw::modern("1", "tools/list", ""),
        };
        pipe.send(first.into_bytes()).await.unwrap();
        let mut back = backs.recv().await.unwrap();
        let mut heard = Vec::new();
        if session {
            heard.push(back.next().await);
            let welcome = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"b","version":"2"}}"#;
            back.send(&answer(&heard[0], welcome)).await;
            pipe.send(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.to_vec()).await.unwrap();
        } else {
            heard.push(back.next().await);
            back.send(&crate::raw::refusal(&heard[0], r#"{"code":-32601,"message":"?"}"#)).await;
            heard.push(back.next().await);
            let welcome = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"b","version":"2"}}"#;
            back.send(&answer(&heard[1], welcome)).await;
            heard.push(back.next().await);
        }
        heard.push(back.next().await);
        assert!(heard.last().unwrap().contains("tools/list"), "{heard:?}");
        assert!(!heard.concat().contains("ann"), "{heard:?}");
    }
}

/// What leaves by a transport of whole messages says which request it belongs to.
#[tokio::test]
async fn what_a_proxy_sends_says_which_request_it_belongs_to() {
    async fn receive(pipe: &mut MessagePipe) -> (String, Relation) {
        let received = tokio::time::timeout(Duration::from_secs(20), pipe.recv()).await;
        let received = received.unwrap().unwrap();
        (String::from_utf8(received.json).unwrap(), received.relation)
    }
    let id = |text: &str| Id::from_json(text).unwrap();
    let (builder, mut backs) = crate::raw::proxy();
    let proxy = builder.build();
    let mut pipe = proxy.open(Principal::ANONYMOUS);
    pipe.send(crate::raw::INITIALIZE.as_bytes().to_vec()).await.unwrap();
    let mut back = backs.recv().await.unwrap();
    let initialize = back.next().await;
    let welcome = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"b","version":"2"}}"#;
    back.send(&answer(&initialize, welcome)).await;
    assert_eq!(receive(&mut pipe).await.1, Relation::Answer(id("\"i\"")));
    // Outside of any request.
    back.send(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#).await;
    assert_eq!(receive(&mut pipe).await.1, Relation::Unrelated);
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"p"}}}"#;
    pipe.send(call.as_bytes().to_vec()).await.unwrap();
    let call = back.next().await;
    let number = id_of(&call);
    for line in [
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{number},"progress":1}}}}"#
        ),
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#
            .to_owned(),
        r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#.to_owned(),
    ] {
        back.send(&line).await;
        let (heard, relation) = receive(&mut pipe).await;
        assert_eq!(relation, Relation::About(id("7")), "{heard}");
    }
    back.send(&answer(&call, "{}")).await;
    let (heard, relation) = receive(&mut pipe).await;
    assert_eq!(relation, Relation::Answer(id("7")), "{heard}");
}
