//! Bytes that are no messages: what is answered, what is counted, and when it stops.

use super::world::*;
use crate::rpc::peer::TroubleKind;
use crate::rpc::{Config, Fault, NoId, Peer};
use crate::wire::{Frame, Framing};

/// F1: 36 lines of text and one that looks like a log record, with an id and a result at that.
#[test]
fn f1_37_lines_of_junk_are_counted_and_never_matched() {
    let mut client = Side::calling();
    client.call("tools/list", None);
    for n in 0..36 {
        assert_eq!(client.gets(&format!("[{n}] starting up, please wait")), [""; 0]);
    }
    assert_eq!(client.gets(r#"{"level":"info","id":1,"result":"ready"}"#), [""; 0]);
    let troubles = client.troubles();
    assert_eq!(troubles.len(), 37);
    assert!(troubles.iter().all(|kind| matches!(kind, TroubleKind::Malformed(_))));
    assert_eq!(client.gets(&result("1")), ["result 1 {}"]);
    client.bytes();
    assert_eq!(client.says(), [""; 0], "a client answers no garbage");
}

#[test]
fn f1_a_trouble_says_where_and_shows_what_without_control_characters() {
    let mut client = Side::calling();
    client.gets("ok");
    client.gets("\u{1b}[1mBanner\u{7}");
    let trouble = std::iter::from_fn(|| client.peer.poll_trouble()).nth(1).unwrap();
    assert_eq!(trouble.offset, 3);
    assert_eq!(trouble.excerpt, "\\u{1b}[1mBanner\\u{7}");
}

/// F2, F8, F24: one answer for each bad line, and every good one is served.
#[test]
fn f2_f8_f24_each_bad_line_has_its_answer_and_the_next_good_one_is_served() {
    let bad: [(&[u8], &str); 8] = [
        (b"not json", "-32700 null"),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\xff\"}", "-32700 null"),
        (b"{\"a\":1,}", "-32700 null"),
        (br#"{"jsonrpc":"2.0","id":1,"method":"ping"} xyz"#, "-32700 null"),
        (
            br#"{"jsonrpc":"2.0","id":1,"method":"x"}{"jsonrpc":"2.0","id":2,"method":"x"}"#,
            "-32700 null",
        ),
        (br#"{"jsonrpc":"2.0","id":1,"method":"x","params":null}"#, "-32600 1"),
        (b"42", "-32600 null"),
        (b"{}", "-32600 null"),
    ];
    let mut server = Side::serving();
    for (line, want) in bad {
        assert_eq!(server.reads(line), [""; 0]);
        assert_eq!(server.reads(b"\n"), [""; 0]);
        assert_eq!(server.says_in_short(), [want], "{}", String::from_utf8_lossy(line));
        assert_eq!(server.gets(&request("7", "a")), ["request 7 a"]);
        server.answer("7", "{}");
        assert_eq!(server.says_in_short(), ["result 7"]);
    }
}

/// F10: the refusal names the limit and the id; the next line is served.
#[test]
fn f10_a_request_over_the_limit_is_refused_by_its_id_and_names_the_limit() {
    let mut server = Side::with(MCP, true, |config| config.limits.message = 100);
    let long = note("x", &format!("[\"{}\"]", "y".repeat(200)));
    server.gets(&long.replacen('{', "{\"id\":\"big\",", 1));
    let said = server.says();
    assert!(said[0].contains("\"id\":\"big\"") && said[0].contains("100 bytes"), "{said:?}");
    assert_eq!(server.gets(&request("2", "ping")), ["request 2 ping"]);
}

/// F10: on the calling side the one call fails, with the reason, and the others go on.
#[test]
fn f10_an_answer_over_the_limit_fails_its_call_and_no_other() {
    let mut client = Side::with(MCP, false, |config| config.limits.message = 100);
    client.call("a", None);
    client.call("b", None);
    let long = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"text":"{}"}}}}"#, "y".repeat(200));
    assert_eq!(client.gets(&long), ["failed 1 violation TooLong"]);
    assert_eq!(client.gets(&result("2")), ["result 2 {}"]);
}

#[test]
fn f10_an_answer_over_the_limit_is_never_answered() {
    let mut server = Side::with(MCP, true, |config| config.limits.message = 100);
    server.gets(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{}"}}"#, "y".repeat(200)));
    assert_eq!(server.says(), [""; 0]);
}

/// F10: an id, and no sign of a question: if we wait for that id, it is the answer.
#[test]
fn f10_what_is_over_the_limit_and_has_the_id_of_a_call_fails_the_call_and_is_not_answered() {
    let filler = "y".repeat(200);
    let unclear = format!(r#"{{"jsonrpc":"2.0","id":1,"x":"{filler}","result":1}}"#);
    let asked = format!(r#"{{"jsonrpc":"2.0","id":1,"params":["{filler}"],"method":"a"}}"#);
    for serving in [true, false] {
        let mut side = Side::with(MCP, serving, |config| config.limits.message = 100);
        side.call("a", None);
        side.bytes();
        // A question may have the same number as a call of ours.
        assert_eq!(side.gets(&asked), [""; 0]);
        assert_eq!(side.says_in_short(), if serving { &["-32600 1"][..] } else { &[] });
        assert_eq!(side.gets(&unclear), ["failed 1 violation TooLong"]);
        assert_eq!(side.says(), [""; 0]);
    }
    // Nobody waits for it: whoever sent it should hear of it.
    let mut server = Side::with(MCP, true, |config| config.limits.message = 100);
    server.gets(&unclear);
    assert_eq!(server.says_in_short(), ["-32600 1"]);
}

/// A request in a frame with this length.
fn misframed(length: usize, body: &str) -> Vec<u8> {
    format!("Content-Length: {length}\r\n\r\n{body}").into_bytes()
}

#[test]
fn a_wrong_length_is_one_error_with_both_lengths_and_what_follows_is_served() {
    let ping = request("99", "ping");
    for given in [ping.len() - 1, ping.len() + 1, ping.len() + 500] {
        let mut server = Side::serving();
        let mut bytes = misframed(given, &ping);
        bytes.extend(misframed(request("1", "a").len(), &request("1", "a")));
        assert_eq!(server.reads(&bytes), ["request 1 a"]);
        let said = server.bytes();
        let words =
            format!("the length does not fit the payload: {given} given, {} found", ping.len());
        assert!(said.starts_with("Content-Length: ") && said.contains(&words), "{said}");
        assert!(said.contains(r#""id":99,"error":{"code":-32700,"#), "{said}");
        assert_eq!(said.matches("jsonrpc").count(), 1, "{said}");
        assert_eq!(server.troubles(), [TroubleKind::Malformed(Fault::Length)]);
    }
}

#[test]
fn f10_an_answer_with_a_wrong_length_fails_its_call_and_no_other() {
    let mut client = Side::calling();
    client.call("a", None);
    client.call("b", None);
    let mut bytes = misframed(result("1").len() - 1, &result("1"));
    bytes.extend(misframed(result("2").len(), &result("2")));
    assert_eq!(client.reads(&bytes), ["failed 1 violation Length", "result 2 {}"]);
    client.bytes();
    assert_eq!(client.says(), [""; 0], "a client answers no garbage");
}

#[test]
fn a_framed_message_that_is_cut_off_is_answered_before_the_next_one_comes() {
    let mut server = Side::serving();
    server.gets_framed("{\"jsonrpc\":\"2.0\",\"id\":1,");
    assert_eq!(server.says_in_short(), ["-32700 null"]);
    server.gets_framed(&request("1", "a"));
    assert_eq!(server.next(), None);
    assert_eq!(server.tickets.len(), 1);
    assert_eq!(server.says(), [""; 0]);
}

/// F12: one report for the whole of it, whatever stands on its lines.
#[test]
fn f12_a_message_that_spans_lines_is_one_report() {
    let mut server = Side::serving();
    let pretty = "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"params\": [\n    {\"id\": 5, \
                  \"result\": 1},\n    {\"id\": 6}\n    ,\n    []\n,\n    [1]\n  ]\n}";
    for line in pretty.lines() {
        assert_eq!(server.gets(line), [""; 0]);
    }
    assert_eq!(server.says_in_short(), ["-32700 null"]);
    assert_eq!(server.troubles(), [TroubleKind::Malformed(Fault::SpansLines)]);
    assert_eq!(server.gets(&request("2", "a")), ["request 2 a"]);
    server.gets("nope");
    assert_eq!(server.says_in_short(), ["-32700 null"], "and garbage is answered again");
}

#[test]
fn f12_an_unusable_answer_fails_its_call_even_after_half_a_message() {
    let mut client = Side::calling();
    client.call("a", None);
    client.gets("{\"jsonrpc\":");
    let both = r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#;
    assert_eq!(client.gets(both), ["failed 1 violation BadResponse"]);
}

#[test]
fn f12_in_a_header_frame_half_a_message_is_only_bad_json() {
    let mut server = Side::serving();
    server.gets_framed("{\"a\":");
    assert_eq!(server.troubles(), [TroubleKind::Malformed(Fault::Json)]);
    server.gets_framed("{\"b\":");
    assert_eq!(server.says_in_short(), ["-32700 null", "-32700 null"]);
}

/// F21: the id where it can be read, null or nothing where it cannot.
#[test]
fn f21_an_error_without_a_readable_id_has_null_or_none() {
    let mut server = Side::serving();
    server.gets("junk");
    server.gets(r#"{"id":"x","method":"m"}"#);
    server.peer.set_no_id(NoId::Absent);
    server.gets("junk");
    assert_eq!(server.says_in_short(), ["-32700 null", "-32600 \"x\"", "-32700 -"]);
}

#[test]
fn f21_an_error_that_belongs_to_no_call_fails_none() {
    let mut client = Side::calling();
    client.call("a", None);
    for id in ["\"id\":null,", ""] {
        let line = format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":-32700,"message":"no"}}}}"#);
        assert_eq!(client.gets(&line), ["stray -32700"]);
    }
    assert_eq!(client.peer.calls(), 1);
}

/// F22: the second answer has nothing of the first.
#[test]
fn f22_garbage_after_a_request_does_not_inherit_its_id() {
    let mut server = Side::serving();
    server.gets(&request("7", "a"));
    server.gets("junk");
    assert_eq!(server.says_in_short(), ["-32700 null"]);
}

#[test]
fn f3_f23_marks_and_blank_lines_are_no_garbage() {
    let mut server = Side::serving();
    server.reads(b"\n \t\n\r\n");
    assert_eq!(server.troubles(), []);
    server.reads("\u{FEFF}".as_bytes());
    assert_eq!(server.gets(&request("1", "a")), ["request 1 a"]);
    server.reads("\u{FEFF}".as_bytes());
    assert_eq!(server.gets(&request("2", "a")), ["request 2 a"]);
    assert_eq!(server.troubles(), [TroubleKind::ByteOrderMark], "noted once");
    assert_eq!(server.says(), [""; 0]);
}

/// F16: a bad header is garbage like any other.
#[test]
fn f16_a_bad_header_is_answered_and_the_next_frame_served() {
    let mut server = Side::serving();
    server.reads(b"Content-Length: nine\r\n\r\n{}\n");
    assert_eq!(server.says_in_short(), ["-32700 null", "-32600 null"]);
    assert_eq!(server.gets_framed(&request("1", "a")), ["request 1 a"]);
}

/// F26, RPC-21, RPC-33: what could be read as an answer is neither run nor answered.
#[test]
fn f26_a_response_however_broken_is_never_answered() {
    let mut server = Side::serving();
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":7}"#,
        r#"{"id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":1,"error":{}}"#,
        r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":1,"error":7}]"#,
    ] {
        assert_eq!(server.gets(line), [""; 0], "{line}");
        server.peer.allow_batches(false);
        assert_eq!(server.gets(line), [""; 0], "{line}");
        server.peer.allow_batches(true);
        assert_eq!(server.says(), [""; 0], "{line}");
    }
    server.gets(r#"{"jsonrpc":"2.0","id":1,"method":"x","result":null}"#);
    assert_eq!(server.says_in_short(), ["-32600 1"]);
}

/// RPC-11: unknown, malformed or untimely, a notification is met with silence.
#[test]
fn rpc_11_a_notification_is_never_answered() {
    let mut server = Side::mcp();
    for params in ["null", "3", "\"x\"", "{}", "[]"] {
        server.gets(&note("no/such", params));
        server.gets(&note("notifications/cancelled", params));
        server.gets(&note("notifications/progress", params));
    }
    assert_eq!(server.says(), [""; 0]);
}

#[test]
fn two_serving_peers_back_to_back_fall_silent_after_one_bad_line() {
    for line in ["junk", "[1]", "[]", "{}", "{\"jsonrpc\":\"2.0\",\"id\":1}"] {
        for no_id in [NoId::Null, NoId::Absent] {
            let mut pair = Pair::new(Side::serving(), Side::serving());
            pair.client.peer.set_no_id(no_id);
            pair.server.peer.set_no_id(no_id);
            pair.server.gets(line);
            assert!(pair.drive(5) >= 1, "{line}");
        }
    }
}

#[test]
fn after_100_bad_frames_in_a_row_none_is_answered_until_a_good_one() {
    for bad in ["junk", "[1]", "{}"] {
        let mut server = Side::serving();
        for _ in 0..250 {
            server.gets(bad);
        }
        assert_eq!(server.says().len(), 99, "{bad}");
        let mut other = Side::serving();
        (0..99).for_each(|_| drop(other.gets(bad)));
        other.troubles();
        other.gets(bad);
        assert!(other.troubles().contains(&TroubleKind::Storm), "{bad}");
        server.gets(&request("1", "a"));
        server.gets(bad);
        assert_eq!(server.says().len(), 1, "{bad}: sound again");
    }
}

#[test]
fn a_flood_of_garbage_fills_no_log() {
    let mut client = Side::calling();
    for _ in 0..10_000 {
        client.gets("junk");
    }
    assert!(client.troubles().len() <= 64);
}

#[test]
fn an_empty_frame_is_garbage_and_no_panic() {
    let mut peer = Peer::new(Config::new(MCP, true));
    let now = std::time::Instant::now();
    for framing in [Framing::Lines, Framing::Headers] {
        let frame = Frame::Message { bytes: b"", framing, offset: 0, bom: false, cr: false };
        assert_eq!(peer.handle_frame(now, frame).count(), 0);
        let frame = Frame::TooLong { prefix: b"", framing, offset: 0 };
        assert_eq!(peer.handle_frame(now, frame).count(), 0);
    }
    assert!(!peer.output().is_empty());
}
