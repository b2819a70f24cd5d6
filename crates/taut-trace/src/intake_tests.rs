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
        Event::Gap(gap) => format!("gap {} of {}", gap.bytes, gap.records),
        other => format!("{other:?}"),
    };
    events(out).into_iter().map(text).collect()
}

fn missed(bytes: &[u8]) -> Missed {
    let mut missed = Missed::default();
    missed.add(bytes);
    missed
}

/// Wherever a stream has holes, each hole is as large as its record says. T28.
#[test]
fn what_is_recorded_and_what_is_missing_are_all_that_passed_at_each_gap() {
    let mut seed = 7_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below
    };
    for round in 0..300 {
        let stream = [Stream::Client, Stream::Server, Stream::Stderr][round % 3];
        let headers = stream != Stream::Stderr && round % 2 == 0;
        let message = |at: usize| {
            let body = format!("{{\"n\":{at},\"x\":\"{}\"}}", "y".repeat(at % 40));
            match headers {
                true => format!("Content-Length: {}\r\n\r\n{body}", body.len()),
                false if at.is_multiple_of(7) && stream != Stream::Stderr => {
                    format!("\r\n \n{body}\r\n")
                }
                false => format!("{body}\n"),
            }
        };
        let all: String = (0..60).map(message).collect();
        let (mut intake, mut out) = (Intake::new(Masker::off()), Vec::new());
        let mut rest = all.as_bytes();
        // The first message says how the others are framed.
        let (first, after) = rest.split_at(message(0).len());
        intake.bytes(1, stream, first, &mut out);
        rest = after;
        while !rest.is_empty() {
            let (piece, later) = rest.split_at((1 + random(90)).min(rest.len()));
            match random(3) {
                0 => intake.gap(1, stream, &missed(piece), &mut out),
                _ => intake.bytes(1, stream, piece, &mut out),
            }
            rest = later;
        }
        intake.closed(1, stream, &mut out);
        let mut next = 0;
        for event in events(&out) {
            let text = match event {
                Event::Message(message) => message.body.text().into_owned(),
                Event::Stderr(body) => body.text().into_owned(),
                Event::Gap(gap) => {
                    next += gap.records;
                    continue;
                }
                _ => continue,
            };
            let value: serde_json::Value =
                serde_json::from_str(&text).unwrap_or_else(|_| panic!("round {round}: {text}"));
            assert_eq!(value["n"], next, "round {round}: {}", String::from_utf8_lossy(&out));
            next += 1;
        }
        assert_eq!(next, 60, "round {round}: {}", String::from_utf8_lossy(&out));
    }
}

/// Plays these pieces, each kept or missing, and checks that what is recorded and what is said to be missing are all
/// `count` messages, in order.
fn holes_are_counted(stream: Stream, pieces: &[(bool, &[u8])], count: u64, bytewise: bool) {
    let (mut intake, mut out) = (Intake::new(Masker::off()), Vec::new());
    for (kept, piece) in pieces {
        match (kept, bytewise) {
            (true, false) => intake.bytes(1, stream, piece, &mut out),
            (true, true) => piece
                .iter()
                .for_each(|byte| intake.bytes(1, stream, std::slice::from_ref(byte), &mut out)),
            (false, _) if piece.is_empty() => {}
            (false, _) => intake.gap(1, stream, &missed(piece), &mut out),
        }
    }
    intake.closed(1, stream, &mut out);
    let told = || format!("{pieces:?}: {}", String::from_utf8_lossy(&out));
    let mut next = 0;
    for event in events(&out) {
        let text = match event {
            Event::Message(message) => message.body.text().into_owned(),
            Event::Stderr(body) => body.text().into_owned(),
            Event::Gap(gap) => {
                next += gap.records;
                continue;
            }
            _ => continue,
        };
        let value: Option<serde_json::Value> = serde_json::from_str(&text).ok();
        let is = value.as_ref().and_then(|value| value["n"].as_u64());
        assert_eq!(is, Some(next), "{}", told());
        next += 1;
    }
    assert_eq!(next, count, "{}", told());
}

/// A hole at each offset with each length, and a second one after it. T28.
#[test]
fn a_hole_of_any_length_at_any_offset_is_counted() {
    for (stream, headers) in
        [(Stream::Server, false), (Stream::Client, true), (Stream::Stderr, false)]
    {
        let message = |at: usize| {
            let body = format!("{{\"n\":{at}}}");
            let end = if at == 2 && stream == Stream::Server { "\r\n\n" } else { "\n" };
            match headers {
                true => format!("Content-Length: {}\r\n\r\n{body}", body.len()),
                false => body + end,
            }
        };
        let count = if headers { 5 } else { 7 };
        let all: String = (0..count).map(message).collect();
        let first = message(0).len();
        let all = all.as_bytes();
        for from in first..all.len() {
            for to in from + 1..=all.len() {
                let (kept, rest) = (&all[..from], &all[to..]);
                let (hole, later) = (&all[from..to], [1, 6, 9, 16, 30]);
                let count = count as u64;
                let (begin, end) = kept.split_at(first);
                for bytewise in [false, true] {
                    let pieces = [(true, begin), (true, end), (false, hole), (true, rest)];
                    holes_are_counted(stream, &pieces, count, bytewise);
                }
                for between in later.into_iter().filter(|between| between < &rest.len()) {
                    for long in later.into_iter().filter(|long| between + long <= rest.len()) {
                        let (then, rest) = rest.split_at(between);
                        let (second, rest) = rest.split_at(long);
                        let pieces = [
                            (true, begin),
                            (true, end),
                            (false, hole),
                            (true, then),
                            (false, second),
                            (true, rest),
                        ];
                        holes_are_counted(stream, &pieces, count, false);
                    }
                }
            }
        }
    }
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
    intake.gap(2, Stream::Server, &missed(b"in\"}\n{\"lost\":1}\n{\"x\""), &mut out);
    intake.bytes(3, Stream::Server, b"middle of a lost line", &mut out);
    intake.bytes(3, Stream::Server, b" end\n{\"b\":2}\n", &mut out);
    assert_eq!(texts(&out), ["{\"a\":1}", "gap 25 of 3", "{\"b\":2}"]);
    // What ended with a line is followed by a whole one.
    let mut out = Vec::new();
    intake.gap(4, Stream::Server, &missed(b"{\"c\":3}\n"), &mut out);
    intake.bytes(5, Stream::Server, b"{\"d\":4}\n", &mut out);
    assert_eq!(texts(&out), ["gap 8 of 1", "{\"d\":4}"]);
}

#[test]
fn after_a_gap_in_header_framing_the_next_header_counts_wherever_it_is_cut() {
    let message = b"Content-Length: 7\r\n\r\n{\"a\":1}";
    let stream = [&b"lost}\n{\"x\":\n 1}"[..], message].concat();
    for cut in 0..stream.len() {
        let mut intake = Intake::new(Masker::off());
        let mut out = Vec::new();
        intake.bytes(1, Stream::Server, message, &mut out);
        intake.gap(2, Stream::Server, &missed(b"Content-Length: 99\r\n\r\n{"), &mut out);
        intake.bytes(3, Stream::Server, &stream[..cut], &mut out);
        intake.bytes(3, Stream::Server, &stream[cut..], &mut out);
        assert_eq!(texts(&out), ["{\"a\":1}", "gap 23 of 1", "{\"a\":1}"], "cut at {cut}");
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

const SECRET: &str = "walrus&carpenter-oyster-0123456789";

fn shown(bytes: &[&[u8]]) -> String {
    let secrets = taut::secrets::Secrets::new();
    secrets.hide("MY_API_TOKEN", SECRET);
    let (mut intake, mut out) = (Intake::new(Masker::new(&secrets)), Vec::new());
    for piece in bytes {
        intake.bytes(1, Stream::Stderr, piece, &mut out);
    }
    intake.closed(1, Stream::Stderr, &mut out);
    let text = |event| match event {
        Event::Stderr(body) => Some(body.text().into_owned()),
        _ => None,
    };
    events(&out).into_iter().filter_map(text).collect::<Vec<_>>().join("|")
}

/// A long line is cut into several; the end of a secret across the cut was shown. E11.
#[test]
fn a_secret_across_the_cut_of_a_long_line_of_stderr_is_masked() {
    for secret in [SECRET, r"walrus\u0026carpenter-oyster-0123456789"] {
        for cut in 0..=secret.len() {
            let line = format!("{}{secret} after\n", "x".repeat(LONGEST_LINE - cut));
            for at in [LONGEST_LINE - 3, LONGEST_LINE, LONGEST_LINE + 3] {
                let (one, two) = line.as_bytes().split_at(at);
                let shown = shown(&[one, two]);
                assert!(shown.replace('|', "").ends_with("x*** after"), "{cut}, {at}: {shown}");
            }
        }
    }
    // A line that ends as a secret begins is whole, nevertheless.
    assert_eq!(shown(&[b"its walrus\n", b"a w"]), "its walrus|a w");
}
