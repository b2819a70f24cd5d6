//! `taut bridge --record` and `--page`: both sides of a bridge in one capture, used as any other.

use std::collections::BTreeMap;

use taut_trace::{Event, Kind, Record, Side, talks};

use super::*;

/// For each connection: how many requests were sent on it, and how many were answered.
fn counted(capture: &Capture) -> BTreeMap<String, (usize, usize)> {
    let mut all: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (_, message) in capture.messages() {
        let counts = all.entry(message.link.clone().unwrap()).or_default();
        for talk in talks(&message.body) {
            match (message.from, talk.kind()) {
                (Side::Client, Kind::Request) => counts.0 += 1,
                (Side::Server, Kind::Answer) => counts.1 += 1,
                _ => {}
            }
        }
    }
    all
}

fn link(capture: &Capture, kind: &str) -> String {
    let links = capture.links();
    let mut own = links.iter().filter(|link| link.starts_with(kind));
    let link = (*own.next().unwrap_or_else(|| panic!("{links:?}"))).to_owned();
    assert_eq!(own.next(), None, "{links:?}");
    link
}

/// A client of the newest revision, a server of an old one: each side is kept as it was said.
#[test]
fn both_sides_of_a_bridge_are_recorded_and_each_can_be_used_again() {
    let place = Place::new();
    let bridge =
        "--revision 2026-07-28 -- taut bridge --record x.jsonl --revision 2025-06-18 -- taut serve";
    let mut words = vec!["call", "add", "a=2", "b=3"];
    words.extend(bridge.split(' '));
    let (out, _) = place.exits(0, &words);
    assert!(out.contains("\"sum\":5"), "{out}");
    let capture = place.capture("project/x.jsonl");
    let (client, server) = (link(&capture, "client"), link(&capture, "server"));
    for (link, (asked, answered)) in counted(&capture) {
        assert!(asked > 0 && asked == answered, "{link}: {asked} asked, {answered} answered");
    }
    let said = |own: &str, text: &str| {
        let mut messages = capture.messages();
        messages.any(|(_, m)| m.link.as_deref() == Some(own) && m.body.text().contains(text))
    };
    // Only the server was opened the old way, and only the client speaks the new revision.
    assert!(said(&server, "\"initialize\"") && !said(&client, "\"initialize\""));
    assert!(said(&client, "2026-07-28") && !said(&server, "2026-07-28"));
    assert!(capture.records.iter().any(|record| matches!(record.event, Event::Start { .. })));
    assert!(matches!(capture.records.last().unwrap().event, Event::End(_)));

    let (out, _) = place.exits(0, &["trace", "view", "x.jsonl"]);
    assert!(out.contains(&format!("{client} → tools/call add")), "{out}");
    assert!(out.contains(&format!("{server} ← ✓ tools/call add")), "{out}");
    let (out, _) = place.exits(0, &["trace", "view", "x.jsonl", "--stats"]);
    assert!(out.contains(&format!("{client} tools/call add")), "{out}");

    // The bridge's words to the server, said again to that server; and the server as the client saw it.
    let (out, _) =
        place.exits(0, &["trace", "replay", "x.jsonl", "--link", &server, "--", "taut", "serve"]);
    assert!(out.contains("no difference"), "{out}");
    let (out, _) = place.exits(
        0,
        &["call", "add", "a=2", "b=3", "--", "taut", "trace", "mock", "x.jsonl", "--link", &client],
    );
    assert!(out.contains("\"sum\":5"), "{out}");
    // What the bridge has changed is the difference between its sides.
    let (out, _) = place
        .exits(1, &["trace", "diff", "x.jsonl", "x.jsonl", "--link", &client, "--link", &server]);
    assert!(out.contains("initialize"), "{out}");
    for words in
        [vec!["mock", "x.jsonl"], vec!["diff", "x.jsonl", "x.jsonl", "--link", "client 99"]]
    {
        let (_, err) = place.exits(2, &[vec!["trace"], words].concat());
        assert!(err.contains(&client) && err.contains(&server), "{err}");
    }
}

/// Values of the entry, of secret names and tokens, also inside JSON inside JSON.
#[test]
fn a_bridge_masks_as_a_trace_does() {
    let place = Place::new();
    let inner = serde_json::json!({ "password": "hunter2hunter2", "t": "entry-plain-value" });
    let text = serde_json::json!({ "inner": inner.to_string(), "k": "ghp_abcd1234" }).to_string();
    let given = format!("text={text}");
    let words = ["call", "echo", &given, "--", "taut", "bridge", "--record", "x.jsonl"];
    let (out, _) = place.exits(
        0,
        &[&words[..], &["--env", "LEVEL_NAME=entry-plain-value", "--", "taut", "serve"]].concat(),
    );
    assert!(out.contains("entry-plain-value"), "{out}");
    let kept = std::fs::read_to_string(place.at("project/x.jsonl")).unwrap();
    for secret in ["hunter2hunter2", "entry-plain-value", "ghp_abcd1234"] {
        assert!(!kept.contains(secret), "{secret} is in {kept}");
    }
    assert!(kept.contains("***"));
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(place.at("project/x.jsonl")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_full_disk_costs_a_bridge_nothing() {
    let place = Place::new();
    let words = "call add a=2 b=3 -- taut bridge --record /dev/full -- taut serve";
    let (out, _) = place.exits(0, &words.split(' ').collect::<Vec<_>>());
    assert!(out.contains("\"sum\":5"), "{out}");
}

/// Clients over HTTP and over lines at one port, and the stderr of the server.
#[cfg(feature = "http")]
#[test]
fn clients_that_connect_are_recorded_each_by_itself() {
    let place = Place::new();
    let script = "echo warming up >&2; exec taut serve";
    let mut bridge = place
        .taut()
        .args(["bridge", "--listen", "127.0.0.1:0", "--record", "x.jsonl"])
        .args(["--", "sh", "-c", script])
        .spawn()
        .unwrap();
    let mut address = String::new();
    BufReader::new(bridge.stdout.take().unwrap()).read_line(&mut address).unwrap();
    let address = address.trim();
    let url = format!("http://{}/mcp", address.strip_prefix("tcp:").unwrap());
    for (text, whom) in [("text=by-lines", address), ("text=by-http", url.as_str())] {
        place.exits(0, &["call", "echo", text, whom]);
    }
    let pid = rustix::process::Pid::from_raw(bridge.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(ended(&mut bridge).success());
    let capture = place.capture("project/x.jsonl");
    for text in ["by-lines", "by-http"] {
        for kind in ["client", "server"] {
            let is_it = |m: &taut_trace::Message| {
                m.from == Side::Client
                    && m.link.as_ref().unwrap().starts_with(kind)
                    && m.body.text().contains(text)
            };
            assert_eq!(capture.messages().filter(|(_, m)| is_it(m)).count(), 1, "{kind} {text}");
        }
    }
    let warm =
        |record: &Record| matches!(&record.event, Event::Stderr(b) if b.text() == "warming up");
    assert!(capture.records.iter().any(warm));
}
