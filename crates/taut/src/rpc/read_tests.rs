//! The envelope, by table: one line in, one outcome out.

use super::*;

/// An outcome in short: `request 1 ping`, `note x`, `result 1`, `error 1`, `-32600 id`, `dropped`.
fn outcome(read: Result<Messages<'_>, Malformed>) -> String {
    match read {
        Ok(Messages::One(message)) => short(Ok(message)),
        Ok(Messages::Batch(entries)) => {
            format!("[{}]", entries.into_iter().map(short).collect::<Vec<_>>().join(", "))
        }
        Err(malformed) => short(Err(malformed)),
    }
}

fn short(message: Result<Message<'_>, Malformed>) -> String {
    let name = |id: Option<Id>| id.map_or_else(|| "-".into(), |id| id.to_string());
    match message {
        Ok(Message::Request { id, method, .. }) => format!("request {id} {method}"),
        Ok(Message::Notification { method, .. }) => format!("note {method}"),
        Ok(Message::Response { id, outcome: Ok(_) }) => format!("result {}", name(id)),
        Ok(Message::Response { id, outcome: Err(e) }) => format!("error {} {}", name(id), e.code),
        Err(bad) if !bad.is_answerable() => format!("dropped {}", name(bad.id)),
        Err(bad) => format!("{} {}", bad.kind.code(), name(bad.id)),
    }
}

#[track_caller]
fn check(line: &str, want: &str) {
    assert_eq!(outcome(read(line.as_bytes())), want, "{line}");
}

/// RPC-02, RPC-03, RPC-29, RPC-30.
#[test]
fn ids_of_every_kind() {
    let long = format!("\"{}\"", "x".repeat(2048));
    for (id, want) in [
        ("1", "request 1 ping"),
        ("0", "request 0 ping"),
        ("-1", "request -1 ping"),
        ("\"\"", "request \"\" ping"),
        ("\"1\"", "request \"1\" ping"),
        ("9007199254740993", "request 9007199254740993 ping"),
        (
            "10000000000000000000000000000000000000000",
            "request 10000000000000000000000000000000000000000 ping",
        ),
        ("null", "-32600 -"),
        ("1.5", "-32600 -"),
        ("1e3", "-32600 -"),
        ("true", "-32600 -"),
        ("{}", "-32600 -"),
        ("[]", "-32600 -"),
        (long.as_str(), "-32600 -"),
    ] {
        check(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#), want);
    }
    check(r#"{"jsonrpc":"2.0","method":"ping"}"#, "note ping");
}

/// F26, RPC-01, RPC-16.
#[test]
fn values_that_are_no_messages() {
    for (line, want) in [
        (r#"["2.0",1,"ping"]"#, "[-32600 -, -32600 -, -32600 -]"),
        ("42", "-32600 -"),
        ("\"x\"", "-32600 -"),
        ("null", "-32600 -"),
        ("true", "-32600 -"),
        ("[]", "-32600 -"),
        ("[[]]", "[-32600 -]"),
        ("[1]", "[-32600 -]"),
        ("{}", "-32600 -"),
        (r#"{"jsonrpc":"2.0","id":5}"#, "-32600 5"),
        (r#"{"jsonrpc":"1.0","id":5,"method":"x"}"#, "-32600 5"),
        (r#"{"jsonrpc":2.0,"id":5,"method":"x"}"#, "-32600 5"),
        (r#"{"id":5,"method":"x"}"#, "-32600 5"),
        (r#"{"jsonrpc":"2.0","id":5,"method":null}"#, "-32600 5"),
        (r#"{"jsonrpc":"2.0","id":5,"method":"x","params":null}"#, "-32600 5"),
        (r#"{"jsonrpc":"2.0","id":5,"method":"x","params":3}"#, "-32600 5"),
    ] {
        check(line, want);
    }
}

/// F2, F8, F24: each is one −32700 and nothing else.
/// Also RPC-15.
#[test]
fn f2_f8_f24_bytes_that_are_no_json() {
    for line in [
        "not json",
        "{",
        "{\"a\":1,}",
        "{\"a\":NaN}",
        "{} xyz",
        "{}{}",
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"} xyz"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
        "// comment",
        "[1,",
        "[",
    ] {
        check(line, "-32700 -");
    }
    let invalid = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"extra\":\"\xFF\"}";
    assert_eq!(outcome(read(invalid)), "-32700 -");
    assert_eq!(read(b"\xFF\xFE{\0}\0").unwrap_err().kind, Fault::Encoding);
}

#[test]
fn f12_a_value_that_is_cut_off_is_told_from_one_that_is_wrong() {
    assert_eq!(read(b"{").unwrap_err().kind, Fault::SpansLines);
    assert_eq!(read(b"{\"jsonrpc\": \"2.0\",").unwrap_err().kind, Fault::SpansLines);
    assert_eq!(read(b"{]").unwrap_err().kind, Fault::Json);
}

/// RPC-33.
#[test]
fn f21_f26_responses_are_read_or_dropped_and_never_answered() {
    for (line, want) in [
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "result 1"),
        (r#"{"jsonrpc":"2.0","id":"a","result":null}"#, "result \"a\""),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}"#, "error 1 -1"),
        (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no"}}"#, "error - -1"),
        (r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"no"}}"#, "error - -1"),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#, "dropped 1"),
        (r#"{"jsonrpc":"2.0","id":1,"error":"no"}"#, "dropped 1"),
        (r#"{"jsonrpc":"2.0","id":1,"error":[-1,"no",null]}"#, "dropped 1"),
        // RPC-11: nor is a notification, whatever its params.
        (r#"{"jsonrpc":"2.0","method":"x","params":null}"#, "dropped -"),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":""}}"#, "dropped 1"),
        (r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, "dropped -"),
        (r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#, "dropped -"),
        (r#"{"id":1,"result":{}}"#, "dropped -"),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#, "dropped -"),
        // Presence of `method` decides, and a message that is both is neither.
        (r#"{"jsonrpc":"2.0","id":1,"method":"x","result":null}"#, "-32600 1"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"x","extra":1}"#, "request 1 x"),
    ] {
        check(line, want);
    }
}

/// RPC-35.
#[test]
fn duplicate_members_are_refused_with_the_first_readable_id() {
    check(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}"#, "-32600 1");
    check(r#"{"jsonrpc":"2.0","id":1,"method":"x","method":"y"}"#, "-32600 1");
    check(r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{},"params":{}}"#, "-32600 1");
    check(r#"{"jsonrpc":"2.0","id":1,"method":"x","a":1,"a":2}"#, "request 1 x");
}

#[test]
fn escaped_names_mean_the_same() {
    check(r#"{"\u006asonrpc":"2.0","\u0069d":1,"m\u0065thod":"p\u0069ng"}"#, "request 1 ping");
    check(r#"{"jsonrpc":"2\u002e0","id":1,"method":"ping"}"#, "request 1 ping");
    check(r#"{"jsonrpc":"2.0","id":1,"method":"ping","\u0069d":2}"#, "-32600 1");
    check(r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#, "-32600 1");
}

/// RPC-34, SEC-05.
#[test]
fn a_million_levels_of_nesting_overflow_no_stack() {
    let deep = |open: &str, close: &str| {
        let levels = 1_000_000;
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{}1{}}}"#,
            open.repeat(levels),
            close.repeat(levels)
        )
    };
    check(&deep("[", "]"), "request 1 x");
    check(&deep("{\"a\":", "}"), "request 1 x");
    check(&deep("[", ""), "-32700 -");
    check(&"[".repeat(1_000_000), "-32700 -");
}

#[test]
fn f17_a_batch_is_read_entry_by_entry() {
    check(
        r#"[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"b"},3,
            {"jsonrpc":"2.0","id":2,"result":{}}]"#,
        "[request 1 a, note b, -32600 -, result 2]",
    );
    let long = format!("[{}]", vec!["1"; MAX_BATCH + 1].join(","));
    assert_eq!(read(long.as_bytes()).unwrap_err().kind, Fault::LongBatch);
    assert_eq!(read(&long.as_bytes()[..long.len() - 1]).unwrap_err().kind, Fault::SpansLines);
    assert_eq!(read(format!("{long}1").as_bytes()).unwrap_err().kind, Fault::Json);
    let full = format!("[{}]", vec!["1"; MAX_BATCH].join(","));
    assert!(
        matches!(read(full.as_bytes()), Ok(Messages::Batch(entries)) if entries.len() == MAX_BATCH)
    );
}

#[test]
fn params_stay_raw() {
    let line = br#" {"params": {"a": [1, 2]}, "method": "x", "id": 1, "jsonrpc": "2.0"} "#;
    let Ok(Messages::One(Message::Request { params, .. })) = read(line) else { panic!() };
    assert_eq!(params.raw().unwrap().get(), r#"{"a": [1, 2]}"#);
}

#[test]
fn f10_the_id_is_found_if_it_stands_before_the_cut() {
    let check = |prefix: &str, id: Option<&str>, response, request| {
        let id = id.and_then(Id::from_json);
        assert_eq!(salvage(prefix.as_bytes()), Salvage { id, response, request }, "{prefix}");
    };
    check(r#"{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":"bbb"#, Some("7"), false, true);
    check(r#"{"id":"s","result":{"content":[{"te"#, Some("\"s\""), true, false);
    check(r#"{"method":"x","params":{"id":3,"a":""#, None, false, true);
    check(r#"{"id":5,"params":{"a":""#, Some("5"), false, true);
    check(r#"{"id":5,"x":{"result":1,"a":""#, Some("5"), false, false);
    check(r#"{"id":12"#, None, false, false);
    check("[[[[", None, false, false);
    check("", None, false, false);
    assert_eq!(salvage(b"{\"id\":1,\"x\":\"\xE2\x80").id, Some(Id::from(1)));
}
