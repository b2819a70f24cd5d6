//! Streams of every kind, whole and with holes, and the records that they become.

use super::*;
use crate::read::record;
use crate::{Body, Event};

fn events(out: &[u8]) -> Vec<Event> {
    let lines = out.split_inclusive(|byte| *byte == b'\n');
    lines.map(|line| record(line).unwrap_or_else(|| panic!("{line:?}")).event).collect()
}

fn texts(out: &[u8]) -> Vec<String> {
    let text = |event: Event| match event {
        Event::Message(message) => message.body.text().into_owned(),
        Event::Stderr(body) => format!("stderr {}", body.text()),
        Event::Gap(gap) => format!("gap {}", gap.bytes),
        other => format!("{other:?}"),
    };
    events(out).into_iter().map(text).collect()
}

#[test]
fn messages_are_kept_verbatim_whatever_they_are() {
    let mut intake = Intake::new(Masker::off());
    let mut out = Vec::new();
    let bodies: [&[u8]; 8] = [
        br#"{"a" : 1.0e5,  "a":2}"#,
        b"null",
        b"not json",
        b"\xff\xfe",
        br#" {"a":1} "#,
        b"[1,2]",
        "{\"a\":\"\u{2028}\"}".as_bytes(),
        br#"{"a":"\ud800"}"#,
    ];
    for body in bodies {
        intake.bytes(1, Stream::Server, body, &mut out);
        intake.bytes(1, Stream::Server, b"\n", &mut out);
    }
    let kept: Vec<Body> = events(&out)
        .into_iter()
        .map(|event| match event {
            Event::Message(message) => message.body,
            other => panic!("{other:?}"),
        })
        .collect();
    for (kept, body) in kept.iter().zip(bodies) {
        // Blanks before a frame belong to no message.
        assert_eq!(kept.bytes(), body.trim_ascii_start());
    }
    assert_eq!(kept.len(), bodies.len());
    assert!(matches!(kept[0], Body::Json(_)) && matches!(kept[3], Body::Bytes(_)));
}

#[test]
fn both_framings_and_a_half_line_at_the_end_are_messages() {
    let mut intake = Intake::new(Masker::off());
    let mut out = Vec::new();
    intake.bytes(1, Stream::Client, b"Content-Length: 8\r\n\r\n{\n\"a\":1}", &mut out);
    intake.bytes(2, Stream::Client, b"{\"b\":2}\r\n{\"half", &mut out);
    intake.closed(3, Stream::Client, &mut out);
    assert_eq!(texts(&out), ["{\n\"a\":1}", "{\"b\":2}", "{\"half", "Close(Client)"]);
}

#[test]
fn after_a_gap_the_next_whole_line_is_the_next_record() {
    let mut intake = Intake::new(Masker::off());
    let mut out = Vec::new();
    intake.bytes(1, Stream::Server, b"{\"a\":1}\n{\"beg", &mut out);
    intake.gap(2, Stream::Server, 100, 3, &mut out);
    intake.bytes(3, Stream::Server, b"middle of a lost line", &mut out);
    intake.bytes(3, Stream::Server, b" end\n{\"b\":2}\n", &mut out);
    assert_eq!(texts(&out), ["{\"a\":1}", "gap 105", "{\"b\":2}"]);
}

#[test]
fn after_a_gap_in_header_framing_the_next_header_counts_wherever_it_is_cut() {
    let message = b"Content-Length: 7\r\n\r\n{\"a\":1}";
    let stream = [&b"lost}\n{\"x\":\n 1}"[..], message].concat();
    for cut in 0..stream.len() {
        let mut intake = Intake::new(Masker::off());
        let mut out = Vec::new();
        intake.bytes(1, Stream::Server, message, &mut out);
        intake.gap(2, Stream::Server, 10, 0, &mut out);
        intake.bytes(3, Stream::Server, &stream[..cut], &mut out);
        intake.bytes(3, Stream::Server, &stream[cut..], &mut out);
        assert_eq!(texts(&out), ["{\"a\":1}", "gap 10", "{\"a\":1}"], "cut at {cut}");
    }
}

#[test]
fn stderr_is_kept_by_line_and_never_grows_without_end() {
    let mut intake = Intake::new(Masker::off());
    let mut out = Vec::new();
    intake.bytes(1, Stream::Stderr, b"one\r\ntw", &mut out);
    intake.bytes(1, Stream::Stderr, b"o\n\xff\nlast", &mut out);
    intake.closed(1, Stream::Stderr, &mut out);
    assert_eq!(
        texts(&out),
        ["stderr one", "stderr two", "stderr \u{fffd}", "stderr last", "Close(Stderr)"]
    );
    let mut out = Vec::new();
    for _ in 0..100 {
        intake.bytes(1, Stream::Stderr, &[b'.'; 1000], &mut out);
        assert!(intake.stderr.len() <= LONGEST_LINE);
    }
    assert_eq!(texts(&out).len(), 100_000 / LONGEST_LINE);
}

#[test]
fn a_message_over_the_limit_is_kept_in_part_and_marked() {
    let mut intake = Intake::new(Masker::off());
    let mut out = Vec::new();
    for _ in 0..17 {
        intake.bytes(1, Stream::Client, &vec![b'x'; 1 << 20], &mut out);
    }
    intake.bytes(1, Stream::Client, b"\n{}\n", &mut out);
    let events = events(&out);
    let Event::Message(cut) = &events[0] else { panic!("{events:?}") };
    assert!(cut.cut && cut.body.bytes().len() == 4096);
    assert_eq!(events.len(), 2);
}

/// What cannot be framed is told, and recording goes on with the next message that can.
#[test]
fn after_a_bad_header_the_next_message_is_recorded() {
    let mut intake = Intake::new(Masker::off());
    let mut out = Vec::new();
    intake.bytes(1, Stream::Server, b"Content-Length: many\r\n\r\n{\"lost\":1}", &mut out);
    intake.bytes(2, Stream::Server, b"Content-Length: 7\r\n\r\n{\"a\":1}", &mut out);
    intake.bytes(3, Stream::Server, b"{\"b\":2}\n", &mut out);
    let all = texts(&out);
    assert!(all[0].starts_with("Fault { from: Server"), "{all:?}");
    assert_eq!(all[all.len() - 2..], ["{\"a\":1}", "{\"b\":2}"], "{all:?}");
}
