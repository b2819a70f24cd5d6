//! What the program itself does to its standard streams never reaches the wire.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::memory::request;
use crate::process::{Server, role};

#[test]
fn s13_s14_s15_nothing_that_a_handler_prints_or_starts_reaches_the_wire() {
    for kind in ["server", "threads"] {
        let mut server = Server::start(role(kind));
        for n in 0..3 {
            let answer = server.ask(&request(n, "noise", &json!([])));
            assert_eq!(answer["id"], n, "{answer}");
            assert_eq!(answer["result"], json!({ "child": true, "read": 0 }), "{answer}");
        }
        assert_eq!(server.ask(&request(9, "echo", &json!([9])))["result"], json!([9]));
        server.to = None;
        assert_eq!(server.rest(), "");
        let said = server.stderr();
        for words in ["printed 3", "written below", "from a child"] {
            assert!(said.contains(words), "{words} in {said}");
        }
        // S19
        assert!(said.contains("ended: "), "{said}");
    }
}

#[test]
fn s16_a_child_that_outlives_the_server_does_not_hold_the_wire() {
    let mut server = Server::start(role("server"));
    let answer = server.ask(&request(1, "leave a child", &json!([])));
    let child = answer["result"].as_i64().unwrap();
    server.to = None;
    // It ends although the child has every descriptor that it could inherit.
    assert_eq!(server.rest(), "");
    server.ends_well();
    let child = Pid::from_raw(i32::try_from(child).unwrap()).unwrap();
    kill_process(child, Signal::KILL).expect("it was still there");
}

#[test]
fn s17_a_second_server_on_stdio_is_refused_and_the_first_goes_on() {
    let mut server = Server::start(role("server"));
    let refused = server.ask(&request(1, "serve again", &json!([])));
    assert!(refused["result"].as_str().unwrap().contains("another connection"), "{refused}");
    assert_eq!(server.ask(&request(2, "echo", &json!([2])))["result"], json!([2]));
}

/// C14, and the warning that a handler which blocks has earned: once.
#[test]
fn c14_a_panic_is_told_on_stderr_and_a_blocking_handler_is_named_once() {
    let mut server = Server::start(role("server"));
    let answer = server.ask(&request(1, "panic", &json!([])));
    assert_eq!(answer["error"]["data"]["exception"], "panic");
    assert!(!answer.to_string().contains("words for the log"), "{answer}");
    for n in 2..5 {
        server.ask(&request(n, "block", &json!([150])));
    }
    server.to = None;
    let said = server.stderr();
    assert!(said.contains("words for the log"), "{said}");
    assert_eq!(said.matches("kept the connection waiting").count(), 1, "{said}");
    assert!(said.contains("\"block\"") && said.contains("spawn_blocking"), "{said}");
}
