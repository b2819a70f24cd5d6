//! What is kept for those that wait: no more than was counted, and not for longer than they do.

use super::super::incoming::Queued;
use super::world::*;

const QUEUE: usize = 1 << 20;

fn server() -> Side {
    Side::with(MCP, true, |config| {
        config.running = 1;
        config.queue = QUEUE;
    })
}

/// Asks until nothing more is read: the ids of what was asked.
fn fill(server: &mut Side, id: fn(usize) -> String, params: &str) -> Vec<String> {
    let mut ids = Vec::new();
    while server.peer.wants_input() {
        ids.push(id(ids.len()));
        let head = format!("{{\"id\":{},", ids[ids.len() - 1]);
        server.gets(&note("tools/call", params).replacen('{', &head, 1));
    }
    ids
}

/// C18: small requests, large ones, and those whose id is most of them.
#[test]
fn c18_the_queue_counts_all_that_it_keeps() {
    let number: fn(usize) -> String = |n| n.to_string();
    let uuid: fn(usize) -> String = |n| format!("\"{n:036}\"");
    // Escaped, so that both what came and what it means are kept.
    let long: fn(usize) -> String = |n| format!("\"\\u0041{n:0900}\"");
    let cases =
        [(number, 0, 0), (number, 100, 0), (number, 5000, 0), (uuid, 100, 38), (long, 0, 1809)];
    for (id, length, id_bytes) in cases {
        let mut server = server();
        let params = format!("[\"{}\"]", "x".repeat(length));
        let ids = fill(&mut server, id, &params);
        let waiting = ids.len() - 1;
        let texts = waiting * ("tools/call".len() + params.len() + 2 * id_bytes);
        let places = server.peer.queue.capacity() * size_of::<Queued>();
        let kept = texts + places + server.peer.requests.bytes();
        let one = QUEUE / waiting;
        assert!(kept <= QUEUE + one, "{kept} kept for {waiting} of {length} and {id_bytes}");
        assert!(kept >= QUEUE / 2, "only {kept} kept for {waiting} of {length} and {id_bytes}");
    }
}

#[test]
fn c18_a_queue_that_was_long_is_given_back_when_it_is_empty() {
    let mut server = server();
    let ids = fill(&mut server, |n| n.to_string(), "[]");
    let held = server.peer.requests.bytes();
    for id in &ids {
        server.answer(id, "{}");
        server.next();
    }
    assert_eq!((server.says().len(), server.peer.unanswered()), (ids.len(), 0));
    assert_eq!((server.next(), server.peer.queued_bytes), (None, 0));
    assert!(server.peer.queue.capacity() <= 128, "{}", server.peer.queue.capacity());
    assert!(server.peer.requests.bytes() < held / 8, "{} of {held}", server.peer.requests.bytes());
}

/// C13: one long answer that is not read yet stops the reading, but while it has to go on, for an
/// answer to a call of ours, nobody is told busy because of it.
#[test]
fn c13_a_long_answer_that_nobody_has_read_refuses_nobody() {
    let mut server = Side::mcp();
    server.gets(&request("1", "m"));
    server.answer("1", &format!("\"{}\"", "x".repeat(1 << 20)));
    assert!(!server.peer.wants_input());
    server.call("sampling/createMessage", None);
    assert!(server.peer.wants_input());
    assert_eq!(server.gets(&request("2", "m")), ["request 2 m"]);
    server.answer("2", &format!("\"{}\"", "x".repeat(4 << 20)));
    assert_eq!(server.gets(&request("3", "m")), [""; 0], "this is too much");
}
