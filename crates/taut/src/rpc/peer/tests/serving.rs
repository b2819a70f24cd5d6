//! Requests and their answers: ids, framings, and that each is answered once.

use super::world::*;
use crate::rpc::peer::TroubleKind;
use crate::wire::Framing::{Headers, Lines};

/// F18, F19, F20, RPC-06: all in flight together, each answered with its own value.
#[test]
fn f18_f19_f20_ids_of_every_kind_are_routed_apart_and_echoed() {
    let ids = [
        "1",
        "\"1\"",
        "\"a\"",
        "\"\"",
        "0",
        "-1",
        "2147483648",
        "4294967296",
        "9007199254740993",
        "9223372036854775807",
        "18446744073709551615",
        "100000000000000000000",
        "\"\\u0031\\u0031\"",
    ];
    let mut server = Side::serving();
    for id in ids {
        assert_eq!(server.gets(&request(id, "m")), [format!("request {id} m")]);
    }
    for id in ids.iter().rev() {
        server.answer(id, &format!("[{id}]"));
        assert_eq!(server.says(), [format!(r#"{{"jsonrpc":"2.0","id":{id},"result":[{id}]}}"#)]);
    }
    for id in ["1.5", "1e3", "null", "true", "{}", "[]"] {
        server.gets(&request(id, "m"));
        assert_eq!(server.says_in_short(), ["-32600 null"], "{id}");
    }
}

/// F13, F14: a request is answered as it was framed, whatever came between.
#[test]
fn f13_f14_a_serving_side_answers_each_request_in_its_own_framing() {
    let mut server = Side::serving();
    server.gets(&request("1", "m"));
    server.gets_framed(&request("2", "m"));
    server.gets(&request("3", "m"));
    for id in ["1", "2", "3"] {
        server.answer(id, "{}");
    }
    assert_eq!(framings(&server.bytes()), [Lines, Headers, Lines]);
}

#[test]
fn f14_its_own_messages_are_framed_like_the_last_good_one_it_read() {
    let mut server = Side::serving();
    let speak = |server: &mut Side| {
        server.peer.notify("n", None).unwrap();
        server.call("c", None);
        framings(&server.bytes())
    };
    assert_eq!(speak(&mut server), [Lines, Lines]);
    server.gets_framed("{}");
    server.bytes();
    assert_eq!(speak(&mut server), [Lines, Lines], "garbage changes nothing");
    server.gets_framed(&request("1", "m"));
    assert_eq!(speak(&mut server), [Headers, Headers]);
    server.gets("junk");
    assert_eq!(framings(&server.bytes()), [Headers]);
}

/// F14: it opened in lines, so all that goes to that process is lines.
#[test]
fn f14_a_calling_side_never_mixes_framings() {
    let mut client = Side::calling();
    client.call("a", None);
    client.gets_framed(&request("1", "roots/list"));
    client.gets_framed(&format!("[{}]", request("2", "roots/list")));
    client.answer("1", "{}");
    client.answer("2", "{}");
    client.peer.notify("n", None).unwrap();
    assert_eq!(framings(&client.bytes()), [Lines; 4]);

    let mut client = Side::with(MCP, false, |config| config.framing = Headers);
    client.call("a", None);
    client.gets(&request("1", "roots/list"));
    client.answer("1", "{}");
    assert_eq!(framings(&client.bytes()), [Headers; 2]);
}

/// F12: what a handler gives as raw JSON with newlines leaves as one line.
#[test]
fn f12_an_answer_with_raw_newlines_is_one_line() {
    let mut server = Side::serving();
    server.gets(&request("1", "m"));
    server.answer("1", "{\n  \"a\": [\r\n1]\n}");
    assert_eq!(server.says().len(), 1);
}

#[test]
fn f25_the_last_request_is_served_without_its_newline() {
    let mut decoder = crate::wire::Decoder::new(crate::wire::Limits::default());
    let mut server = Side::serving();
    decoder.push(request("1", "m").as_bytes());
    assert!(decoder.poll_frame().is_none());
    decoder.finish();
    let frame = decoder.poll_frame().unwrap();
    assert_eq!(server.peer.handle_frame(server.now, frame).count(), 1);
}

/// C6, RPC-31: the second is refused, the first is untouched; afterwards the id is free.
#[test]
fn c6_a_duplicate_id_in_flight_is_refused_and_the_first_is_answered() {
    let mut server = Side::mcp();
    server.gets(&request("\"ab\"", "slow"));
    assert_eq!(server.gets(&request("\"\\u0061b\"", "slow")), [""; 0]);
    assert_eq!(server.says_in_short(), ["-32600 \"ab\""]);
    let trouble = server.peer.poll_trouble().unwrap();
    assert_eq!((trouble.kind, trouble.offset), (TroubleKind::DuplicateId, 44));
    server.answer("\"ab\"", "1");
    assert_eq!(server.says_in_short(), ["result \"ab\""]);
    assert_eq!(server.gets(&request("\"ab\"", "slow")), ["request \"ab\" slow"], "RPC-05");
}

#[test]
fn c6_a_queued_id_is_in_flight_too() {
    let mut server = Side::with(MCP, true, |config| config.running = 1);
    server.gets(&request("1", "m"));
    server.gets(&request("2", "m"));
    server.gets(&request("2", "m"));
    assert_eq!(server.says_in_short(), ["-32600 2"]);
    server.answer("1", "{}");
    assert_eq!(server.next(), Some("request 2 m".into()));
    assert_eq!(server.next(), None);
}

/// C20, PRG-07: what a handler sends before its answer leaves before it.
#[test]
fn c19_c20_ten_thousand_reports_leave_in_order_and_before_the_answer() {
    let mut server = Side::mcp();
    server.gets(&request("1", "m"));
    for n in 0..10_000 {
        server
            .peer
            .notify("notifications/progress", Some(json(&format!("[{n}]")).as_json()))
            .unwrap();
    }
    server.answer("1", "{}");
    let said = server.says();
    assert_eq!(said.len(), 10_001);
    for (n, line) in said[..10_000].iter().enumerate() {
        assert_eq!(*line, note("notifications/progress", &format!("[{n}]")));
    }
    assert_eq!(said[10_000], result("1"));
}

#[test]
fn unknown_members_and_methods_are_handed_on() {
    let mut server = Side::mcp();
    let line = r#"{"x":[1],"jsonrpc":"2.0","id":1,"method":"no/such","params":[],"y":null}"#;
    assert_eq!(server.gets(line), ["request 1 no/such"]);
    assert_eq!(server.gets(&note("no/such", "{}")), ["note no/such"]);
    server.refuse("1", -32601);
    assert_eq!(server.says_in_short(), ["-32601 1"]);
}

#[test]
fn a_ticket_of_another_peer_is_answered_by_nobody() {
    let (mut one, mut two) = (Side::mcp(), Side::mcp());
    two.gets(&request("0", "m"));
    one.gets(&request("7", "m"));
    let stranger = one.ticket("7");
    two.peer.answer(stranger, Ok(json("1")));
    assert_eq!(two.says(), [""; 0]);
    two.answer("0", "{}");
    assert_eq!(two.says_in_short(), ["result 0"]);
}

/// L18 is for the side that calls; a server still finishes what it accepted.
#[test]
fn after_the_input_has_ended_a_server_answers_and_reports_what_it_accepted() {
    let mut server = Side::with(MCP, true, |config| config.running = 1);
    server.gets(&request("1", "m"));
    server.gets(&request("2", "m"));
    server.peer.handle_eof();
    server.peer.notify("notifications/progress", Some(json("{}").as_json())).unwrap();
    server.answer("1", "{}");
    assert_eq!(server.next(), Some("request 2 m".into()));
    server.answer("2", "{}");
    assert_eq!(server.says_in_short(), ["note notifications/progress", "result 1", "result 2"]);
    assert_eq!(server.peer.unanswered(), 0);
    assert!(server.peer.call(server.now, "m", None, None).is_err(), "nobody would answer");
}
