//! Batches: RPC-22 to RPC-27, and F17.

use super::world::*;
use crate::rpc::MAX_BATCH;

fn batch(entries: &[String]) -> String {
    format!("[{}]", entries.join(","))
}

/// RPC-22, RPC-25: one array, one answer for each request, none for notifications.
#[test]
fn rpc_25_a_batch_is_answered_with_one_array_when_the_last_answer_is_in() {
    let mut server = Side::serving();
    let entries =
        [request("1", "a"), note("n", "{}"), request("\"x\"", "b"), "3".into(), result("9")];
    assert_eq!(server.gets(&batch(&entries)), ["request 1 a", "note n", "request \"x\" b"]);
    assert_eq!(server.says(), [""; 0]);
    server.answer("\"x\"", "{}");
    assert_eq!(server.says(), [""; 0]);
    server.refuse("1", -5);
    assert_eq!(server.says_in_short(), ["[-32600 null, result \"x\", -5 1]"]);
}

#[test]
fn rpc_25_a_batch_of_notifications_or_answers_yields_nothing() {
    let mut server = Side::serving();
    server.gets(&batch(&[note("a", "{}"), note("b", "[]"), note("c", "null")]));
    server.gets(&batch(&[result("1"), r#"{"jsonrpc":"2.0","id":2,"error":3}"#.into()]));
    assert_eq!(server.says(), [""; 0]);
}

#[test]
fn rpc_25_an_empty_batch_is_one_error_and_no_array() {
    let mut server = Side::serving();
    server.gets("[]");
    assert_eq!(server.says_in_short(), ["-32600 null"]);
}

#[test]
fn f17_a_batch_of_one_is_answered_as_an_array() {
    let mut server = Side::serving();
    server.gets(&batch(&[request("1", "a")]));
    server.answer("1", "{}");
    server.gets("[1]");
    assert_eq!(server.says_in_short(), ["[result 1]", "[-32600 null]"]);
}

/// RPC-26, F17: one answer, nothing is run, the next line is served.
#[test]
fn rpc_26_where_batches_are_not_allowed_they_are_refused_whole() {
    let mut server = Side::mcp();
    server.peer.allow_batches(false);
    for entries in [vec![], vec![request("1", "a")], vec![request("1", "a"), note("b", "{}")]] {
        assert_eq!(server.gets(&batch(&entries)), [""; 0]);
        assert_eq!(server.says_in_short(), ["-32600 null"]);
    }
    assert_eq!(server.gets(&request("1", "a")), ["request 1 a"]);
}

#[test]
fn a_batch_of_too_many_is_refused_whole_and_one_of_just_enough_is_served() {
    let mut server = Side::serving();
    let many: Vec<String> = (0..=MAX_BATCH).map(|n| request(&n.to_string(), "a")).collect();
    assert_eq!(server.gets(&batch(&many)), [""; 0]);
    assert_eq!(server.says_in_short(), ["-32600 null"]);
    assert_eq!(server.gets(&batch(&many[1..])).len(), MAX_BATCH);
}

#[test]
fn c6_a_batch_that_uses_an_id_twice_has_an_answer_for_each() {
    let mut server = Side::serving();
    assert_eq!(server.gets(&batch(&[request("1", "a"), request("1", "b")])), ["request 1 a"]);
    server.answer("1", "{}");
    assert_eq!(server.says_in_short(), ["[-32600 1, result 1]"]);
}

/// C3 in a batch: the others are answered without it.
#[test]
fn c3_a_withdrawn_entry_is_left_out() {
    let mut server = Side::mcp();
    server.gets(&batch(&[request("1", "a"), request("2", "b")]));
    server.gets(&note("notifications/cancelled", r#"{"requestId":1}"#));
    server.answer("2", "{}");
    assert_eq!(server.says(), [""; 0], "the handler of the first still has its ticket");
    server.answer("1", "{}");
    assert_eq!(server.says_in_short(), ["[result 2]"]);
}

#[test]
fn c3_a_batch_whose_only_request_is_withdrawn_yields_nothing() {
    let mut server = Side::mcp();
    let cancel = note("notifications/cancelled", r#"{"requestId":1}"#);
    assert_eq!(server.gets(&batch(&[request("1", "a"), cancel])), ["request 1 a", "withdrawn 1"]);
    server.answer("1", "{}");
    assert_eq!(server.says(), [""; 0]);
}

#[test]
fn c3_in_plain_json_rpc_a_withdrawn_entry_says_so_in_its_array() {
    let mut server = Side::serving();
    server.gets(&batch(&[request("1", "a"), request("2", "b")]));
    server.gets(&note("$/cancelRequest", r#"{"id":1}"#));
    assert_eq!(server.says(), [""; 0]);
    server.answer("1", "{}");
    server.answer("2", "{}");
    assert_eq!(server.says_in_short(), ["[-32800 1, result 2]"]);
}

/// The batch does not wait for a place for what will never run.
#[test]
fn a_withdrawn_entry_that_was_queued_does_not_hold_up_its_batch() {
    let mut server = Side::with(MCP, true, |config| config.running = 1);
    server.gets(&request("0", "slow"));
    assert_eq!(server.gets(&batch(&[request("1", "a"), "2".into()])), [""; 0]);
    server.gets(&note("notifications/cancelled", r#"{"requestId":1}"#));
    assert_eq!(server.says_in_short(), ["[-32600 null]"]);
    server.answer("0", "{}");
    assert_eq!(server.next(), None);
    assert_eq!(server.says_in_short(), ["result 0"]);
}

#[test]
fn entries_beyond_the_running_limit_wait_and_the_array_waits_for_them() {
    let mut server = Side::with(MCP, true, |config| config.running = 1);
    let entries = [request("1", "a"), request("2", "b"), request("3", "c")];
    assert_eq!(server.gets(&batch(&entries)), ["request 1 a"]);
    for (id, next) in [("1", Some("request 2 b")), ("2", Some("request 3 c")), ("3", None)] {
        assert_eq!(server.says(), [""; 0]);
        server.answer(id, "{}");
        assert_eq!(server.next().as_deref(), next);
    }
    assert_eq!(server.says_in_short(), ["[result 1, result 2, result 3]"]);
}

/// RPC-27, F14: the array is framed like the batch, and is one line.
#[test]
fn rpc_27_a_batch_is_answered_in_its_framing() {
    let mut server = Side::serving();
    server.gets_framed(&batch(&[request("1", "a")]));
    server.gets(&request("2", "b"));
    server.answer("1", "[\n1]");
    assert_eq!(framings(&server.bytes()), [crate::wire::Framing::Headers]);
    server.gets(&batch(&[request("3", "c"), request("4", "d")]));
    server.answer("3", "[\n1]");
    server.answer("4", "[\r\n1]");
    assert_eq!(server.bytes().matches('\n').count(), 1);
}

/// What waits for the last answer of its batch has a bound, all batches together: what is beyond is
/// refused by its id, and the rest of the array is as it would have been.
/// Also F17.
#[test]
fn answers_that_wait_in_batches_have_a_bound_in_bytes() {
    let mut server = Side::with(MCP, true, |config| config.batch = 1000);
    let large = format!("\"{}\"", "x".repeat(600));
    server.gets(&batch(&[request("1", "a"), request("2", "a"), request("3", "a")]));
    server.gets(&batch(&[request("4", "a"), request("5", "a")]));
    server.answer("1", &large);
    server.answer("2", &large);
    server.answer("4", &large);
    server.answer("5", "{}");
    let said = server.says();
    assert!(said[0].contains("more than 1000 bytes"), "{said:?}");
    assert!(said[0].contains("\"id\":5,\"result\":{}"), "{said:?}");
    server.answer("3", "{}");
    assert_eq!(server.says_in_short(), ["[result 1, -32603 2, result 3]"]);
    // What has left is no longer counted.
    server.gets(&batch(&[request("6", "a"), request("7", "a")]));
    server.answer("6", &large);
    server.answer("7", "{}");
    assert_eq!(server.says_in_short(), ["[result 6, result 7]"]);
}

#[test]
fn two_batches_at_once_keep_their_answers_apart() {
    let mut server = Side::serving();
    server.gets(&batch(&[request("1", "a"), request("2", "a")]));
    server.gets(&batch(&[request("3", "a"), request("4", "a")]));
    for id in ["4", "1", "3", "2"] {
        server.answer(id, "{}");
    }
    assert_eq!(server.says_in_short(), ["[result 4, result 3]", "[result 1, result 2]"]);
}

#[test]
fn a_calling_side_reads_answers_from_a_batch_and_answers_no_garbage_in_it() {
    let mut client = Side::calling();
    client.call("a", None);
    client.call("b", None);
    client.bytes();
    let entries = [result("2"), "7".into(), result("1"), note("n", "{}")];
    assert_eq!(client.gets(&batch(&entries)), ["result 2 {}", "result 1 {}", "note n"]);
    assert_eq!(client.says(), [""; 0]);
}
