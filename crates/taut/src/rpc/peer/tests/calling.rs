//! Calls of ours: who gets which answer, deadlines by table, and that each call ends once.

use std::time::Duration;

use super::world::*;
use crate::rpc::peer::TroubleKind;
use crate::rpc::{Patience, SendError};

fn progress(token: &str) -> String {
    note("notifications/progress", &format!(r#"{{"progressToken":{token},"progress":1}}"#))
}

/// C7, RPC-04, F19: ids rise from one and are never given out again.
/// Also CAN-15, PRG-02, PRB-09.
#[test]
fn c7_ids_never_collide_and_never_return() {
    let mut client = Side::calling();
    let mut last = 0;
    for n in 1..=1000 {
        let call = client.call("m", None);
        assert_eq!(call.number(), n);
        assert!(call.number() > last);
        last = call.number();
        if n % 3 == 0 {
            client.peer.cancel(call, "no");
        } else if n % 3 == 1 {
            client.gets(&result(&n.to_string()));
        }
    }
}

/// C7: both sides count from one, and neither takes the other's number for its own.
#[test]
fn c7_the_two_directions_have_ids_of_their_own() {
    let mut pair = Pair::new(Side::calling(), Side::mcp());
    pair.client.call("up", None);
    pair.server.call("down", None);
    let (client, server) = pair.step();
    assert_eq!((client, server), (vec!["request 1 down".into()], vec!["request 1 up".into()]));
    pair.client.answer("1", "\"from client\"");
    pair.server.answer("1", "\"from server\"");
    let (client, server) = pair.step();
    assert_eq!(client, ["result 1 \"from server\""]);
    assert_eq!(server, ["result 1 \"from client\""]);
}

#[test]
fn answers_in_any_order_find_their_calls() {
    let mut client = Side::calling();
    for _ in 0..3 {
        client.call("m", None);
    }
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-5,"message":"no"}}"#;
    assert_eq!(client.gets(&result("3")), ["result 3 {}"]);
    assert_eq!(client.gets(error), ["failed 1 refused -5"]);
    assert_eq!(client.gets(&result("2")), ["result 2 {}"]);
    assert_eq!(client.peer.calls(), 0);
}

/// C4, CAN-05, RPC-21: dropped, noted once, and nothing else happens.
#[test]
fn c4_a_late_a_second_and_an_unknown_answer_are_dropped_and_noted() {
    let mut client = Side::calling();
    let patience = Patience::new(secs(1));
    client.call("times out", Some(patience));
    client.call("answered", None);
    let cancelled = client.call("cancelled", None);
    client.waits(secs(1));
    client.gets(&result("2"));
    client.peer.cancel(cancelled, "no");
    client.bytes();
    for (id, kind) in [
        ("1", TroubleKind::Late),
        ("2", TroubleKind::Late),
        ("3", TroubleKind::Late),
        ("4", TroubleKind::Unknown),
        ("0", TroubleKind::Unknown),
        ("-1", TroubleKind::Unknown),
        ("\"2\"", TroubleKind::Unknown),
        ("99999999999999999999999", TroubleKind::Unknown),
    ] {
        assert_eq!(client.gets(&result(id)), [""; 0], "{id}");
        assert_eq!(client.troubles(), [kind], "{id}");
    }
    assert_eq!(client.says(), [""; 0]);
    client.call("next", None);
    assert_eq!(client.gets(&result("4")), ["result 4 {}"]);
}

#[test]
fn f18_an_answer_to_our_number_as_a_string_is_not_ours() {
    let mut client = Side::calling();
    client.call("m", None);
    assert_eq!(client.gets(&result("\"1\"")), [""; 0]);
    assert_eq!(client.peer.calls(), 1);
}

/// C5: before, after and without a request.
#[test]
fn c5_progress_with_a_token_that_is_nobodys_is_ignored() {
    let mut client = Side::calling();
    assert_eq!(client.gets(&progress("1")), [""; 0]);
    client.call("m", None);
    for token in ["2", "\"1\"", "null", "1.0", "-1", "{}"] {
        assert_eq!(client.gets(&progress(token)), [""; 0], "{token}");
    }
    assert_eq!(client.gets(&note("notifications/progress", "[1]")), [""; 0]);
    assert_eq!(client.gets(&progress("1")), [r#"progress 1 {"progressToken":1,"progress":1}"#]);
    client.gets(&result("1"));
    assert_eq!(client.gets(&progress("1")), [""; 0]);
    assert_eq!(client.troubles(), []);
}

/// C8, C9, C16: by table. Timeout, ceiling, when progress comes, when it ends and how.
#[test]
fn c8_c9_c16_deadlines() {
    type Row = (u64, Option<u64>, &'static [u64], u64, &'static str);
    let rows: [Row; 8] = [
        (5, None, &[], 5, "1 timed out after 5s"),
        (1, None, &[], 1, "1 timed out after 1s"),
        (5, None, &[2, 4], 5, "1 timed out after 5s"),
        (5, Some(30), &[], 5, "1 timed out after 5s"),
        (5, Some(30), &[2, 4, 8], 13, "1 timed out after 5s"),
        (5, Some(10), &[2, 4, 6, 8, 9], 10, "1 timed out after 10s, ceiling"),
        (5, Some(3), &[], 3, "1 timed out after 3s"),
        (5, Some(3), &[2], 3, "1 timed out after 3s"),
    ];
    for row in rows {
        let (timeout, ceiling, reports, end, want) = row;
        let mut client = Side::calling();
        let mut patience = Patience::new(secs(timeout));
        if let Some(ceiling) = ceiling {
            patience = patience.extended_by_progress(secs(ceiling));
        }
        client.call("m", Some(patience));
        for second in 1..=end {
            assert_eq!(client.lost(), [""; 0], "{row:?} at {second}");
            client.waits(secs(1) - Duration::from_nanos(1));
            assert_eq!(client.lost(), [""; 0], "{row:?} just before {second}");
            assert!(client.peer.poll_timeout().is_some_and(|due| due > client.now), "{row:?}");
            client.waits(Duration::from_nanos(1));
            if reports.contains(&second) {
                client.gets(&progress("1"));
            }
        }
        assert_eq!(client.lost(), [want], "{row:?}");
        assert_eq!(client.peer.poll_timeout(), None, "{row:?}");
    }
}

/// A laptop that slept wakes up long after the ceiling too; but no progress ever came.
#[test]
fn a_timeout_that_is_noticed_late_still_gives_its_own_reason() {
    let mut client = Side::calling();
    client.call("m", Some(Patience::new(secs(5)).extended_by_progress(secs(10))));
    client.waits(secs(3600));
    assert_eq!(client.lost(), ["1 timed out after 5s"]);
}

#[test]
fn patience_without_end_never_times_out_and_never_panics() {
    let mut client = Side::calling();
    let forever = Duration::MAX;
    client.call("a", Some(Patience::new(forever)));
    client.call("b", Some(Patience::new(forever).extended_by_progress(forever)));
    client.call("c", Some(Patience::new(secs(5)).extended_by_progress(forever)));
    client.call("d", Some(Patience::new(forever).extended_by_progress(secs(9))));
    (1..=4).for_each(|call| drop(client.gets(&progress(&call.to_string()))));
    client.waits(secs(4));
    client.gets(&progress("3"));
    client.waits(secs(4));
    assert_eq!(client.lost(), [""; 0]);
    client.waits(secs(1));
    assert_eq!(client.lost(), ["3 timed out after 5s", "4 timed out after 9s"]);
    assert_eq!(client.peer.calls(), 2);
}

#[test]
fn each_call_has_its_own_deadline_and_the_first_is_due_first() {
    let mut client = Side::calling();
    let start = client.now;
    for seconds in [3, 1, 2] {
        client.call("m", Some(Patience::new(secs(seconds))));
    }
    client.call("m", None);
    let mut ends = Vec::new();
    while let Some(due) = client.peer.poll_timeout() {
        client.now = due;
        client.peer.handle_timeout(due);
        ends.extend(client.lost().iter().map(|lost| lost[..1].to_owned()));
        assert!(due - start <= secs(3));
    }
    assert_eq!(ends, ["2", "3", "1"]);
    assert_eq!(client.peer.calls(), 1);
}

/// C10: exactly one withdrawal, with that id.
#[test]
fn c10_a_call_that_times_out_is_withdrawn_once() {
    let mut client = Side::calling();
    let call = client.call("m", Some(Patience::new(secs(1))));
    client.bytes();
    client.waits(secs(1));
    client.waits(secs(1));
    client.peer.cancel(call, "again");
    let want = note("notifications/cancelled", r#"{"requestId":1,"reason":"timed out"}"#);
    let said = client.says();
    assert_eq!(said.len(), 1);
    let value = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    assert_eq!(value(&said[0]), value(&want));
}

/// C12: all of them, at once, in order, and only once.
#[test]
fn c12_the_end_of_input_fails_all_calls() {
    let mut client = Side::calling();
    for _ in 0..10 {
        client.call("m", Some(Patience::new(secs(60))));
    }
    client.gets(&result("4"));
    client.bytes();
    client.peer.handle_eof();
    client.peer.handle_eof();
    let lost: Vec<String> =
        [1, 2, 3, 5, 6, 7, 8, 9, 10].iter().map(|call| format!("{call} ended")).collect();
    assert_eq!(client.lost(), lost);
    assert_eq!((client.peer.calls(), client.peer.poll_timeout()), (0, None));
    client.waits(secs(100));
    assert_eq!(client.lost(), [""; 0]);
    assert_eq!(client.says(), [""; 0], "nobody is left to be told");
}

/// L18: no success is reported where nothing can arrive.
#[test]
fn l18_after_the_end_neither_call_nor_notification_succeeds() {
    let mut client = Side::calling();
    client.peer.handle_eof();
    assert!(matches!(client.peer.notify("n", None), Err(SendError::Closed)));
    let now = client.now;
    assert!(matches!(client.peer.call(now, "m", None, None), Err(SendError::Closed)));
    assert!(client.peer.output().is_empty());
}

/// L14, LIF-16: neither a timeout nor a cancel is written for what is firm.
#[test]
fn l14_initialize_is_never_cancelled_on_the_wire() {
    let mut client = Side::calling();
    client.call("initialize", Some(Patience::new(secs(1))));
    let second = client.call("initialize", None);
    client.bytes();
    client.waits(secs(2));
    client.peer.cancel(second, "no");
    assert_eq!(client.lost(), ["1 timed out after 1s"]);
    assert_eq!(client.says(), [""; 0]);
    client.gets(&result("1"));
    assert_eq!(client.troubles(), [TroubleKind::Late]);
}

/// A request of theirs that is broken says nothing about the call of ours with that number.
#[test]
fn only_a_response_can_fail_a_call() {
    let mut client = Side::calling();
    client.call("m", None);
    let bad = r#"{"jsonrpc":"2.0","id":1,"method":"x","params":3}"#;
    assert_eq!(client.gets(bad), [""; 0]);
    assert_eq!(client.gets(&format!("[{bad}]")), [""; 0]);
    assert_eq!(client.peer.calls(), 1);
    let bad = r#"{"jsonrpc":"2.0","id":1,"result":1,"error":2}"#;
    assert_eq!(client.gets(&format!("[{bad},{bad}]")), ["failed 1 violation BadResponse"]);
}

/// C18: notifications do not push out the answer that comes behind them.
#[test]
fn c18_a_flood_of_notifications_leaves_the_reply_alone() {
    let mut pair = Pair::new(Side::calling(), Side::mcp());
    pair.client.call("m", None);
    pair.step();
    for _ in 0..5_000 {
        pair.server.peer.notify("notifications/message", Some(json("{}").as_json())).unwrap();
    }
    pair.server.answer("1", "{}");
    let (client, _) = pair.step();
    assert_eq!(client.len(), 5_001);
    assert_eq!(client.last().unwrap(), "result 1 {}");
}

/// Elicitation: a person takes as long as a person takes.
#[test]
fn no_time_runs_for_calls_while_the_other_side_waits_for_us() {
    let mut client = Side::calling();
    client.call("slow", Some(Patience::new(secs(5)).extended_by_progress(secs(20))));
    client.now += secs(3);
    let first = client.peer.hold(client.now);
    let second = client.peer.hold(client.now);
    // One that is made meanwhile has nothing to do with it.
    client.call("quick", Some(Patience::new(secs(1))));
    client.waits(secs(600));
    assert_eq!(client.lost(), ["2 timed out after 1s"]);
    client.peer.resume(client.now, first);
    client.waits(secs(600));
    assert_eq!(client.lost(), [""; 0]);
    client.peer.resume(client.now, second);
    client.waits(secs(1));
    assert_eq!(client.lost(), [""; 0]);
    assert!(client.peer.poll_timeout().is_some_and(|due| due <= client.now + secs(1)));
    client.waits(secs(1));
    assert_eq!(client.lost(), ["1 timed out after 5s"]);
}

/// Two questions overlap, and the call between them belongs to the second only: the end of the first
/// does not start its deadline.
#[test]
fn a_hold_releases_only_the_calls_that_no_other_hold_stops() {
    let mut client = Side::calling();
    let patience = || Some(Patience::new(secs(5)));
    client.call("before both", patience());
    let first = client.peer.hold(client.now);
    client.call("between", patience());
    client.now += secs(2);
    let second = client.peer.hold(client.now);
    client.peer.resume(client.now, first);
    client.waits(secs(600));
    assert_eq!(client.lost(), [""; 0]);

    // What was left when they were stopped: the whole of 5 s, and 3 s.
    client.peer.resume(client.now, second);
    client.waits(secs(3));
    assert_eq!(client.lost(), ["2 timed out after 5s"]);
    client.waits(secs(2));
    assert_eq!(client.lost(), ["1 timed out after 5s"]);
}

/// The same questions end in the other order.
#[test]
fn a_hold_that_ends_first_leaves_older_calls_to_the_older_hold() {
    let mut client = Side::calling();
    client.call("before both", Some(Patience::new(secs(5))));
    let first = client.peer.hold(client.now);
    client.call("between", Some(Patience::new(secs(5))));
    let second = client.peer.hold(client.now);
    client.peer.resume(client.now, second);
    client.waits(secs(5));
    assert_eq!(client.lost(), ["2 timed out after 5s"]);
    client.waits(secs(600));
    assert_eq!(client.lost(), [""; 0]);
    client.peer.resume(client.now, first);
    client.waits(secs(5));
    assert_eq!(client.lost(), ["1 timed out after 5s"]);
}

/// C8: progress gives a stopped call its whole timeout, from the moment that it runs again.
#[test]
fn progress_during_a_hold_counts_from_its_end() {
    let mut pair = Pair::new(Side::calling(), Side::mcp());
    pair.client.call("m", Some(Patience::new(secs(5)).extended_by_progress(secs(60))));
    pair.client.now += secs(4);
    let hold = pair.client.peer.hold(pair.client.now);
    pair.client.now += secs(100);
    pair.server
        .peer
        .notify("notifications/progress", Some(json(r#"{"progressToken":1}"#).as_json()))
        .unwrap();
    pair.step();
    pair.client.peer.resume(pair.client.now, hold);
    pair.client.waits(secs(4));
    assert_eq!(pair.client.lost(), [""; 0]);
    pair.client.waits(secs(1));
    assert_eq!(pair.client.lost(), ["1 timed out after 5s"]);
}
