//! Withdrawal, from both ends and in both dialects.

use super::world::*;
use crate::rpc::Dialect;

fn cancelled(id: &str) -> String {
    note("notifications/cancelled", &format!(r#"{{"requestId":{id}}}"#))
}

fn cancel_plain(id: &str) -> String {
    note("$/cancelRequest", &format!(r#"{{"id":{id}}}"#))
}

/// C3, CAN-03, CAN-10: nothing more for that id, and the id is free again.
/// Also F19.
#[test]
fn c3_a_late_answer_to_a_cancelled_request_is_never_written() {
    for id in ["1", "0", "\"1\"", "\"\"", "-1"] {
        let mut server = Side::mcp();
        server.gets(&request(id, "slow"));
        assert!(server.peer.is_live(&server.tickets[0]));
        assert_eq!(server.gets(&cancelled(id)), [format!("withdrawn {id}")], "F19");
        assert!(!server.peer.is_live(&server.tickets[0]));
        server.answer(id, "{}");
        assert_eq!(server.says(), [""; 0]);
        assert_eq!(server.peer.unanswered(), 0);
    }
}

#[test]
fn c3_the_ticket_of_a_cancelled_request_does_not_answer_another_with_its_id() {
    let mut server = Side::mcp();
    server.gets(&request("1", "first"));
    server.gets(&cancelled("1"));
    assert_eq!(server.gets(&request("1", "second")), ["request 1 second"]);
    server.answer("1", "\"of the first\"");
    assert_eq!(server.says(), [""; 0]);
    server.answer("1", "\"of the second\"");
    assert_eq!(server.says(), [r#"{"jsonrpc":"2.0","id":1,"result":"of the second"}"#]);
}

/// In plain JSON-RPC its speakers wait for −32800, once.
#[test]
fn c3_in_plain_json_rpc_a_cancelled_request_is_answered_once() {
    let mut server = Side::serving();
    server.gets(&request("1", "slow"));
    assert_eq!(server.gets(&cancel_plain("1")), ["withdrawn 1"]);
    assert_eq!(server.gets(&cancel_plain("1")), [""; 0]);
    server.answer("1", "{}");
    assert_eq!(server.says_in_short(), ["-32800 1"]);
}

/// CAN-04, CAN-06, CAN-07, CAN-13: unknown, finished, of another type or malformed: silence.
#[test]
fn can_07_a_cancellation_that_names_no_request_is_ignored() {
    let mut server = Side::mcp();
    server.gets(&request("1", "slow"));
    server.gets(&request("2", "quick"));
    server.answer("2", "{}");
    server.bytes();
    for id in ["2", "3", "\"1\"", "null", "{}", "1.0", "[1]"] {
        assert_eq!(server.gets(&cancelled(id)), [""; 0], "{id}");
    }
    for params in ["{}", "[1]", "null", "{\"id\":1}"] {
        assert_eq!(server.gets(&note("notifications/cancelled", params)), [""; 0], "{params}");
    }
    assert_eq!(server.gets(r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#), [""; 0]);
    server.answer("1", "{}");
    assert_eq!(server.says_in_short(), ["result 1"]);
}

/// L14: `initialize` cannot be withdrawn.
#[test]
fn l14_a_firm_request_is_answered_though_it_was_cancelled() {
    let mut server = Side::mcp();
    server.gets(&request("1", "initialize"));
    assert_eq!(server.gets(&cancelled("1")), [""; 0]);
    server.answer("1", "{}");
    assert_eq!(server.says_in_short(), ["result 1"]);
}

/// What was withdrawn still runs until its handler lets go; only then is its place free.
#[test]
fn a_cancelled_request_keeps_its_place_until_its_ticket_returns() {
    let mut server = Side::with(MCP, true, |config| config.running = 1);
    server.gets(&request("1", "m"));
    server.gets(&cancelled("1"));
    assert_eq!(server.gets(&request("2", "m")), [""; 0]);
    assert_eq!(server.next(), None);
    server.answer("1", "{}");
    assert_eq!(server.next(), Some("request 2 m".into()));
}

#[test]
fn a_queued_request_that_is_withdrawn_never_runs_and_holds_nothing() {
    for (dialect, said) in [(MCP, &[][..]), (Dialect::PLAIN, &["-32800 2"][..])] {
        let cancel =
            |id: &str| if dialect.cancel_is_answered { cancel_plain(id) } else { cancelled(id) };
        let mut server = Side::with(dialect, true, |config| {
            config.running = 1;
            config.queue = 4096;
        });
        server.gets(&request("1", "m"));
        let big = format!("[\"{}\"]", "x".repeat(5000));
        server.gets(&note("big", &big).replacen('{', "{\"id\":2,", 1));
        assert!(!server.peer.wants_input(), "the queue is full");
        assert_eq!(server.gets(&cancel("2")), [""; 0], "nobody has seen it");
        assert!(server.peer.wants_input(), "and now it is not");
        assert_eq!(server.says_in_short(), said);
        assert_eq!(server.gets(&request("3", "m")), [""; 0]);
        server.answer("1", "{}");
        assert_eq!(server.next(), Some("request 3 m".into()));
        server.answer("3", "{}");
        assert_eq!(server.next(), None);
        assert_eq!(server.says_in_short(), ["result 1", "result 3"]);
    }
}

#[test]
fn a_queued_request_that_is_withdrawn_may_be_asked_again() {
    let mut server = Side::with(MCP, true, |config| config.running = 1);
    server.gets(&request("1", "m"));
    server.gets(&request("2", "old"));
    server.gets(&cancelled("2"));
    server.gets(&request("2", "new"));
    server.gets(&cancelled("1"));
    server.answer("1", "{}");
    assert_eq!(server.next(), Some("request 2 new".into()));
    assert_eq!(server.next(), None);
    server.answer("2", "{}");
    assert_eq!(server.says_in_short(), ["result 2"]);
}

/// CAN-06: whichever crosses the other on the wire, nothing breaks.
#[test]
fn can_06_a_cancellation_and_an_answer_may_cross() {
    let mut pair = Pair::new(Side::calling(), Side::mcp());
    let call = pair.client.call("m", None);
    pair.step();
    pair.server.answer("1", "{}");
    pair.client.peer.cancel(call, "no");
    assert_eq!(pair.step(), (vec![], vec![]));
    assert!(pair.drive(3) <= 1);
    assert_eq!((pair.client.peer.calls(), pair.server.peer.unanswered()), (0, 0));
}

/// C3 and C10 together: the client gives up, the server stops, nobody speaks out of turn.
#[test]
fn c10_a_timeout_on_one_side_is_a_withdrawal_on_the_other() {
    let mut pair = Pair::new(Side::calling(), Side::mcp());
    pair.client.call("m", Some(crate::rpc::Patience::new(secs(1))));
    pair.step();
    pair.client.waits(secs(1));
    assert_eq!(pair.step().1, ["withdrawn 1"]);
    pair.server.answer("1", "{}");
    assert_eq!(pair.server.says(), [""; 0]);
}
