//! How much runs, how much waits, and when reading stops.

use super::world::*;
use crate::rpc::peer::TroubleKind;

fn small() -> Side {
    Side::with(MCP, true, |config| {
        config.running = 2;
        config.queue = 1000;
        config.output = 1000;
        config.output_cap = 4000;
    })
}

/// Fills the places and the queue: how many requests that took.
fn fill(server: &mut Side) -> usize {
    let mut sent = 0;
    while server.peer.wants_input() && !server.troubles().contains(&TroubleKind::Busy) {
        sent += 1;
        server.gets(&request(&format!("\"fill{sent}\""), "m"));
        assert!(sent < 100);
    }
    sent
}

#[test]
fn requests_run_up_to_the_limit_and_wait_in_order_behind_it() {
    let mut server = small();
    assert_eq!(server.gets(&request("1", "a")), ["request 1 a"]);
    assert_eq!(server.gets(&request("2", "b")), ["request 2 b"]);
    assert_eq!(server.gets(&request("3", "c")), [""; 0]);
    assert_eq!(server.gets(&request("4", "d")), [""; 0]);
    assert_eq!((server.next(), server.peer.unanswered()), (None, 4));
    server.answer("2", "{}");
    // A place is free, but those that wait come first.
    assert_eq!(server.gets(&request("5", "e")), [""; 0]);
    assert_eq!(server.next(), Some("request 3 c".into()));
    assert_eq!(server.next(), None);
    server.answer("1", "{}");
    server.answer("3", "{}");
    assert_eq!(server.next(), Some("request 4 d".into()));
    assert_eq!(server.next(), Some("request 5 e".into()));
}

/// C1: whatever runs and waits, what is urgent is handed out at once; what is open-ended takes no
/// place.
#[test]
fn c1_urgent_and_open_ended_requests_never_wait() {
    let mut server = small();
    fill(&mut server);
    assert_eq!(server.gets(&request("1", "ping")), ["request 1 ping"]);
    assert_eq!(
        server.gets(&request("2", "subscriptions/listen")),
        ["request 2 subscriptions/listen"]
    );
    server.answer("1", "{}");
    assert_eq!(server.says_in_short(), ["result 1"]);
    assert_eq!(server.next(), None, "answering a ping frees no place");
}

#[test]
fn open_ended_requests_have_a_bound_of_their_own() {
    let mut server = Side::with(MCP, true, |config| config.open_ended = 2);
    let listen = |id: &str| request(id, "subscriptions/listen");
    assert_eq!(server.gets(&listen("1")).len(), 1);
    assert_eq!(server.gets(&listen("2")).len(), 1);
    assert_eq!(server.gets(&listen("3")), [""; 0]);
    assert_eq!(server.says_in_short(), ["-32603 3"]);
    assert_eq!(server.gets(&request("4", "m")), ["request 4 m"], "others go on");
    server.gets(&note("notifications/cancelled", r#"{"requestId":1}"#));
    server.answer("1", "{}");
    assert_eq!(server.gets(&listen("3")).len(), 1);
}

#[test]
fn a_full_queue_stops_reading_until_there_is_room() {
    let mut server = small();
    fill(&mut server);
    assert!(!server.peer.wants_input());
    server.answer("\"fill1\"", "{}");
    assert!(server.next().is_some());
    server.bytes();
    assert!(server.peer.wants_input());
}

#[test]
fn full_output_stops_reading_until_it_is_written() {
    let mut server = small();
    server.peer.notify("n", Some(json(&format!("\"{}\"", "x".repeat(999))).as_json())).unwrap();
    assert!(!server.peer.wants_input() && !server.peer.is_stuck());
    server.peer.notify("n", Some(json(&format!("\"{}\"", "x".repeat(3000))).as_json())).unwrap();
    assert!(server.peer.is_stuck());
    server.bytes();
    assert!(server.peer.wants_input() && !server.peer.is_stuck());
}

/// A server that asks and never reads: its answers have a bound, whatever else may wait.
#[test]
fn answers_that_are_not_read_give_a_server_up_and_a_long_question_of_ours_does_not() {
    let mut client = Side::with(MCP, false, |config| config.answers = 1000);
    client.peer.notify("n", Some(json(&format!("\"{}\"", "x".repeat(9000))).as_json())).unwrap();
    assert!(!client.peer.is_stuck());
    let mut asked = 0;
    while !client.peer.is_stuck() {
        client.gets(&request(&asked.to_string(), "ping"));
        client.answer(&asked.to_string(), "{}");
        asked += 1;
        assert!(asked < 100, "{} bytes wait", client.peer.output().len());
    }
    assert!(asked > 10);
    // One that reads is asked as often as it likes.
    let mut client = Side::with(MCP, false, |config| config.answers = 1000);
    for id in 0..1000 {
        client.gets(&request(&id.to_string(), "ping"));
        client.answer(&id.to_string(), "{}");
        client.bytes();
    }
    assert!(!client.peer.is_stuck());
}

/// C13: the answer that it waits for may be the next thing on the wire, so it reads on.
#[test]
fn c13_a_full_server_that_waits_for_an_answer_reads_on_and_refuses_as_busy() {
    let mut server = small();
    server.call("sampling/createMessage", None);
    server.bytes();
    fill(&mut server);
    let refusal = server.says();
    assert_eq!(refusal.len(), 1);
    for part in ["-32603", "busy", "\"running\":2", "\"queueBytes\":1000"] {
        assert!(refusal[0].contains(part), "{part} in {refusal:?}");
    }
    assert!(server.peer.wants_input());
    assert_eq!(server.gets(&request("7", "m")), [""; 0]);
    assert_eq!(server.says_in_short(), ["-32603 7"]);
    assert_eq!(server.gets(&request("8", "ping")), ["request 8 ping"]);
    assert_eq!(server.gets(&result("1")), ["result 1 {}"]);
    assert!(!server.peer.wants_input(), "now it may stop");
}

/// C13: a handler on either side that asks the other comes to an end.
#[test]
fn c13_two_sides_that_ask_each_other_both_get_their_answers() {
    let mut pair = Pair::new(Side::calling(), Side::with(MCP, true, |config| config.running = 1));
    pair.client.call("tools/call", None);
    assert_eq!(pair.step().1, ["request 1 tools/call"]);
    pair.server.call("sampling/createMessage", None);
    assert_eq!(pair.step().0, ["request 1 sampling/createMessage"]);
    pair.client.call("tools/call", None);
    assert_eq!(pair.step().1, [""; 0], "it waits, for the first still runs");
    pair.client.answer("1", "{}");
    assert_eq!(pair.step().1, ["result 1 {}"]);
    pair.server.answer("1", "{}");
    assert_eq!(pair.server.next(), Some("request 2 tools/call".into()));
    pair.server.answer("2", "{}");
    assert_eq!(pair.step().0, ["result 1 {}", "result 2 {}"]);
}

#[test]
fn a_side_that_only_calls_never_stops_reading() {
    let mut client = Side::with(MCP, false, |config| {
        config.running = 1;
        config.queue = 1;
        config.output = 1;
    });
    client.peer.notify("n", Some(json(&format!("\"{}\"", "x".repeat(5000))).as_json())).unwrap();
    client.gets(&request("1", "roots/list"));
    assert!(client.peer.wants_input());
}

/// An argument of zero means "as little as possible", not "never".
#[test]
fn bounds_of_zero_still_let_one_request_through() {
    let mut server = Side::with(MCP, true, |config| {
        config.running = 0;
        config.queue = 0;
        config.output = 0;
    });
    assert!(server.peer.wants_input());
    assert_eq!(server.gets(&request("1", "m")), ["request 1 m"]);
    server.answer("1", "{}");
    assert!(!server.peer.wants_input());
    server.bytes();
    assert!(server.peer.wants_input());
}

/// C18: the bound counts bytes, so a few large requests fill it as many small ones do.
#[test]
fn c18_the_queue_is_bounded_by_bytes() {
    let mut server = small();
    server.gets(&request("1", "m"));
    server.gets(&request("2", "m"));
    let line = note("m", &format!("[\"{}\"]", "x".repeat(900))).replacen('{', "{\"id\":3,", 1);
    server.gets(&line);
    assert!(!server.peer.wants_input());
}

#[test]
fn answers_that_fill_the_output_are_all_kept() {
    let mut server = small();
    for n in 0..50 {
        server.gets(&request(&n.to_string(), "ping"));
        server.answer(&n.to_string(), "\"a result of some length, so that it adds up\"");
    }
    assert_eq!(server.says().len(), 50);
}
