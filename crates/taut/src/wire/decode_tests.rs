//! Tables for each way a stream can be framed, misframed or cut, and properties over all of them.

use proptest::prelude::*;

use super::super::Encoder;
use super::super::value::Extent;
use super::*;

/// A frame, owned and without positions, for comparing.
#[derive(Clone, Debug, PartialEq)]
enum Got {
    Line(String),
    Framed(String),
    TooLong(String),
    Broken(String, usize, Option<usize>),
    Bad(HeaderFault),
    Refused(String),
}

fn own(frame: Frame<'_>) -> Got {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match frame {
        Frame::Message { bytes, framing: Framing::Lines, .. } => Got::Line(text(bytes)),
        Frame::Message { bytes, .. } => Got::Framed(text(bytes)),
        Frame::TooLong { prefix, .. } => Got::TooLong(text(prefix)),
        Frame::Broken { bytes, given, found, .. } => Got::Broken(text(bytes), given, found),
        Frame::BadHeader { fault, .. } => Got::Bad(fault),
        Frame::Refused { prefix, .. } => Got::Refused(text(prefix)),
    }
}

fn decode(pieces: &[&[u8]], limits: Limits) -> Vec<Got> {
    let mut decoder = Decoder::new(limits);
    let mut got = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        take_all(&mut decoder, &mut got);
    }
    decoder.finish();
    take_all(&mut decoder, &mut got);
    got
}

/// Takes the frames out, and doubts what is no JSON by its brackets, as a reader does.
fn take_all(decoder: &mut Decoder, got: &mut Vec<Got>) {
    while let Some(frame) = decoder.poll_frame() {
        let sound = match frame {
            Frame::Message { bytes, .. } => {
                let found = ValueScan::default().go_on(bytes.trim_ascii(), usize::MAX);
                found == Extent::Ends(bytes.trim_ascii().len())
            }
            _ => true,
        };
        let frame = own(frame);
        if sound || !decoder.distrust() {
            got.push(frame);
        }
    }
}

#[track_caller]
fn check(stream: &str, want: &[Got]) {
    assert_eq!(decode(&[stream.as_bytes()], Limits::default()), want);
    let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
    assert_eq!(decode(&bytes, Limits::default()), want, "byte by byte");
}

fn line(text: &str) -> Got {
    Got::Line(text.into())
}

fn framed(text: &str) -> Got {
    Got::Framed(text.into())
}

/// STD-11.
#[test]
fn f3_a_byte_order_mark_before_a_frame_is_dropped_and_kept_inside_a_string() {
    check("\u{FEFF}{1}\n{2}\n\u{FEFF}{3}\r\n", &[line("{1}"), line("{2}"), line("{3}")]);
    check("\u{FEFF}Content-Length: 3\r\n\r\n{1}", &[framed("{1}")]);
    check("Content-Length: 6\r\n\r\n\u{FEFF}{1}", &[framed("{1}")]);
    check("{\"\u{FEFF}\"}\n", &[line("{\"\u{FEFF}\"}")]);
    let mut decoder = Decoder::new(Limits::default());
    decoder.push("\u{FEFF}{}\n{}\n".as_bytes());
    assert!(matches!(decoder.poll_frame(), Some(Frame::Message { bom: true, offset: 3, .. })));
    assert!(matches!(decoder.poll_frame(), Some(Frame::Message { bom: false, offset: 6, .. })));
}

/// STD-09
#[test]
fn f4_a_carriage_return_before_the_newline_is_dropped_and_told() {
    let mut decoder = Decoder::new(Limits::default());
    decoder.push(b"{1}\r\n{2}\n{3}\r\r\n{4}\r");
    decoder.finish();
    let mut seen = Vec::new();
    while let Some(Frame::Message { bytes, cr, .. }) = decoder.poll_frame() {
        seen.push((String::from_utf8_lossy(bytes).into_owned(), cr));
    }
    let expected = [("{1}", true), ("{2}", false), ("{3}\r", true), ("{4}", true)];
    assert_eq!(seen, expected.map(|(text, cr)| (text.to_owned(), cr)));
}

/// STD-09.
#[test]
fn f4_carriage_returns_before_newlines_belong_to_the_delimiter() {
    check("{1}\r\n{2}\n\r\n{3}\r\n", &[line("{1}"), line("{2}"), line("{3}")]);
}

/// STD-12, STD-13.
#[test]
fn f6_only_a_newline_ends_a_line() {
    let text = "{\"\u{2028}\u{2029}\u{85}\u{b}\u{c}\"}";
    check(&format!("{text}\n"), &[line(text)]);
    check("{\"a\":\r1}\n", &[line("{\"a\":\r1}")]);
}

/// STD-16.
#[test]
fn f10_a_message_over_the_limit_is_reported_once_and_the_next_is_read() {
    let limits = Limits::default().message(8);
    let cases: [(&str, &[Got]); 5] = [
        ("{1234567890}\n{2}\n", &[Got::TooLong("{1234567".into()), line("{2}")]),
        ("{123456}\r\n{2}\n", &[line("{123456}"), line("{2}")]),
        ("{1234567}\r\n{2}\n", &[Got::TooLong("{1234567".into()), line("{2}")]),
        (
            "Content-Length: 12\r\n\r\n{1234567890}Content-Length: 3\r\n\r\n{2}",
            &[Got::TooLong("{1234567".into()), framed("{2}")],
        ),
        ("{1234567890", &[Got::TooLong("{1234567".into())]),
    ];
    for (stream, want) in cases {
        assert_eq!(decode(&[stream.as_bytes()], limits), want, "{stream:?}");
        let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
        assert_eq!(decode(&bytes, limits), want, "{stream:?} byte by byte");
    }
}

#[test]
fn f11_many_messages_in_one_piece_and_one_message_in_many() {
    let many: Vec<Got> = (0..500).map(|n| line(&format!("{{{n}}}"))).collect();
    let stream: String = (0..500).map(|n| format!("{{{n}}}\n")).collect();
    check(&stream, &many);
}

#[test]
fn f13_both_framings_are_told_apart_frame_by_frame() {
    check(
        "{1}\nContent-Length: 3\r\n\r\n{2}{3}\ncontent-length:3\n\n{4}\n{5}\n",
        &[line("{1}"), framed("{2}"), line("{3}"), framed("{4}"), line("{5}")],
    );
}

#[test]
fn f15_lengths_count_bytes_and_a_thousand_in_a_row_stay_in_step() {
    let body = "{\"—漢🦀\"}";
    let frame = format!("Content-Length: {}\r\n\r\n{body}", body.len());
    assert_eq!(decode(&[frame.repeat(1000).as_bytes()], Limits::default()).len(), 1000);
    check(&frame.repeat(3), &[framed(body), framed(body), framed(body)]);
}

#[test]
fn f16_header_blocks_of_every_shape_end_in_a_message_or_a_named_fault() {
    let good = [framed("{1}"), framed("{2}")];
    let then = "Content-Length: 3\r\n\r\n{2}";
    for header in [
        "content-length: 3\r\n\r\n",
        "CONTENT-LENGTH:3\r\n\r\n",
        "Content-Length: 3\r\nContent-Type: application/json; charset=utf-8\r\n\r\n",
        "Content-Type: application/json\r\nX-Other: yes\r\nContent-Length: 3\r\n\r\n",
        "Content-Length: 3\n\n",
        "Content-Length: 003\r\n\r\n",
    ] {
        check(&format!("{header}{{1}}{then}"), &good);
    }
    for (header, fault) in [
        ("Content-Type: application/json\r\n\r\n", HeaderFault::NoLength),
        ("Content-Length: -3\r\n\r\n", HeaderFault::BadLength),
        ("Content-Length: three\r\n\r\n", HeaderFault::BadLength),
        ("Content-Length:\r\n\r\n", HeaderFault::BadLength),
        ("Content-Length: 3\r\nContent-Length: 3\r\n\r\n", HeaderFault::TwoLengths),
        ("Content-Length: 99999999999\r\n\r\n", HeaderFault::AbsurdLength),
        ("Content-Length: 99999999999999999999999\r\n\r\n", HeaderFault::AbsurdLength),
        ("Content-Length: 3\r\nnonsense\r\n\r\n", HeaderFault::NotAHeader),
    ] {
        // The body that the bad header left nameless is dropped with it, the next frame is read.
        check(&format!("{header}{{1}}{then}"), &[Got::Bad(fault), framed("{2}")]);
        check(&format!("{header}{{1}}\n{{2}}\n"), &[Got::Bad(fault), line("{1}"), line("{2}")]);
    }
    check(
        "Content-Length: 3\r\n{1}\n{2}\n",
        &[Got::Bad(HeaderFault::NoBlankLine), line("{1}"), line("{2}")],
    );
    check("Content-Length: 0\r\n\r\n{1}\n", &[line("{1}")]);
}

#[test]
fn f16_a_header_block_without_end_is_given_up_after_its_limit() {
    let stream = format!("Content-Length: 3\r\nX: {}\n{{1}}\n", "x".repeat(9000));
    check(&stream, &[Got::Bad(HeaderFault::TooLong), line("{1}")]);
    // The header's limit is not the line's.
    let long = format!("{{{}}}", "1".repeat(10 << 10));
    check(&format!("{long}\n"), &[line(&long)]);
}

#[test]
fn f16_a_line_that_only_looks_like_a_header_is_a_line() {
    check(
        "Content\nContent-Len: 3\n{1}\n",
        &[line("Content"), line("Content-Len: 3"), line("{1}")],
    );
}

#[test]
fn a_stream_that_ends_inside_a_frame_says_so() {
    check("Content-Length: 9\r\n\r\n{1}", &[Got::Broken("{1}".into(), 9, Some(3))]);
    check("Content-Length: 9\r\n\r\n{1", &[Got::Bad(HeaderFault::Unfinished)]);
    check("Content-Length: 9\r\n", &[Got::Bad(HeaderFault::Unfinished)]);
    check("Conten", &[line("Conten")]);
}

#[test]
fn a_line_that_quotes_a_header_is_not_cut_in_resync() {
    let quoting = "{\"text\":\"Content-Length: 3\"}";
    check(
        &format!("Content-Length: x\n\n{quoting}\n{{2}}\n"),
        &[Got::Bad(HeaderFault::BadLength), line(quoting), line("{2}")],
    );
}

/// STD-10.
#[test]
fn f23_blank_lines_are_no_frames() {
    check("\n  \n\t\r\n{1}\n\n \n", &[line("{1}")]);
    check("", &[]);
}

#[test]
fn f24_what_follows_a_value_on_its_line_is_part_of_the_line() {
    check("{1} xyz\n{2}{3}\n{4}\n", &[line("{1} xyz"), line("{2}{3}"), line("{4}")]);
}

/// STD-14.
#[test]
fn f25_the_last_line_counts_without_its_newline() {
    check("{1}\n{2}", &[line("{1}"), line("{2}")]);
    check("{1}\r", &[line("{1}")]);
}

/// STD-16.
#[test]
fn f27_sixty_four_mebibytes_in_small_pieces_cost_work_linear_in_size() {
    for framed in [false, true] {
        for size in [1 << 20, 64 << 20] {
            let mut decoder = Decoder::new(Limits::default());
            if framed {
                decoder.push(format!("Content-Length: {size}\r\n\r\n").as_bytes());
            }
            let piece = [b'1'; 4096];
            for _ in 0..size / piece.len() {
                assert!(decoder.poll_frame().is_none());
                decoder.push(&piece);
            }
            decoder.push(b"\n");
            assert!(matches!(decoder.poll_frame(), Some(Frame::Message { .. })));
            assert!(decoder.work <= 2 * size as u64 + 8192, "{} for {size}", decoder.work);
        }
    }
}

#[test]
fn f27_a_line_full_of_header_names_costs_work_linear_in_size() {
    let size = 4 << 20;
    let mut decoder = Decoder::new(Limits::default());
    decoder.push(&b"Content-Type:".repeat(size / 13));
    decoder.push(b"\n{1}\n");
    let mut got = Vec::new();
    while let Some(frame) = decoder.poll_frame() {
        got.push(own(frame));
    }
    assert_eq!(got, [Got::Bad(HeaderFault::TooLong), line("{1}")]);
    assert!(decoder.work <= 4 * size as u64, "{} for {size}", decoder.work);
}

#[test]
fn limits_of_nothing_and_of_everything_are_kept() {
    let all = Limits::default().message(usize::MAX).header(usize::MAX);
    let pieces: [&[u8]; 2] = [b"{1", b"}\nContent-Length: 3\n\n{2}"];
    assert_eq!(decode(&pieces, all), [line("{1}"), framed("{2}")]);
    let none = Limits::default().message(0).header(0);
    assert_eq!(
        decode(&[b"{1}\nContent-Length: 3\n\n{2}\n"], none),
        [Got::TooLong(String::new()), Got::Bad(HeaderFault::TooLong)]
    );
}

#[test]
fn f9_a_stream_without_newlines_never_fills_memory() {
    let limits = Limits::default().message(1 << 20);
    let mut decoder = Decoder::new(limits);
    let piece = vec![b'x'; 64 << 10];
    let mut reported = 0;
    for _ in 0..16384 {
        decoder.push(&piece);
        while let Some(frame) = decoder.poll_frame() {
            reported += usize::from(matches!(frame, Frame::TooLong { .. }));
        }
        assert!(decoder.buf.len() <= limits.message + piece.len());
    }
    assert_eq!(reported, 1);
}

fn broken(text: &str, given: usize, found: usize) -> Got {
    Got::Broken(text.into(), given, Some(found))
}

/// A header with this length, which need not be that of the message.
fn with_length(length: usize, message: &str) -> String {
    format!("Content-Length: {length}\r\n\r\n{message}")
}

#[test]
fn a_wrong_length_costs_one_message_and_says_what_it_should_have_been() {
    let ping = r#"{"jsonrpc":"2.0","id":99,"method":"ping"}"#;
    let good = with_length(ping.len(), ping);
    // Off by one, much too long, by characters, and a length for the whole rest of the session.
    for given in [1, 40, 42, 43, 60, 100, 4000, 70 << 10, (64 << 20) + 1] {
        let stream = with_length(given, ping) + &good.repeat(2);
        check(&stream, &[broken(ping, given, 41), framed(ping), framed(ping)]);
        if given == 42 {
            // The newline may belong to the payload.
            continue;
        }
        let stream = with_length(given, ping) + &format!("\n{ping}\n{good}");
        check(&stream, &[broken(ping, given, 41), line(ping), framed(ping)]);
        if given <= Limits::default().message {
            check(&with_length(given, ping), &[broken(ping, given, 41)]);
        }
    }
    let text = "{\"a\":\"äöü Content-Length: 3\\r\\n\"}";
    let stream = with_length(text.chars().count(), text) + &good;
    check(&stream, &[broken(text, text.chars().count(), text.len()), framed(ping)]);
    // Bodies may be written over several lines.
    let pretty = "{\n  \"a\": {\n    \"é\": 1\n  }\n}";
    let stream = with_length(pretty.chars().count(), pretty) + &with_length(pretty.len(), pretty);
    check(&stream, &[broken(pretty, pretty.len() - 1, pretty.len()), framed(pretty)]);
}

#[test]
fn a_payload_that_is_no_json_but_as_long_as_its_header_says_keeps_its_place() {
    let fits = |text: &str| Got::Broken(text.into(), text.len(), None);
    for text in ["hello", "{\"a\":", "{\"a\":\"b}", "{\"a\" 1", "{} ]", "{}x"] {
        let stream = with_length(text.len(), text) + &with_length(3, "{1}");
        match text {
            // What stands behind a value is not of its payload.
            "{} ]" | "{}x" => check(&stream, &[broken("{}", text.len(), 2), framed("{1}")]),
            _ => check(&stream, &[fits(text), framed("{1}")]),
        }
    }
    check(&(with_length(5, "hello") + "{1}\n{2}\n"), &[fits("hello"), line("{1}"), line("{2}")]);
    check(&(with_length(5, "{\"a\":") + "{1}\n"), &[fits("{\"a\":"), line("{1}")]);
    // A header that begins inside the payload, and one that was written twice.
    let then = with_length(3, "{1}");
    check(&(with_length(9, "hello") + &then), &[broken("hello", 9, 5), framed("{1}")]);
    check(&(with_length(3, "") + &then), &[broken("", 3, 0), framed("{1}")]);
}

#[test]
fn a_body_right_behind_its_header_costs_itself() {
    let bad = Got::Bad(HeaderFault::NoBlankLine);
    let then = with_length(3, "{2}");
    for body in ["{1}", "{\"a\":\"Content-Length: 9\"}", "{\n  \"a\": 1\n}"] {
        let stream = format!("Content-Length: 3\r\n{body}{then}{then}");
        check(&stream, &[bad.clone(), framed("{2}"), framed("{2}")]);
    }
    // A body without any header is a bad line up to the next header.
    check(
        &format!("{then}{{1}}{then}{then}"),
        &[framed("{2}"), line("{1}Content-Length: 3"), framed("{2}"), framed("{2}")],
    );
}

#[test]
fn f3_a_byte_order_mark_behind_a_bad_header_hides_no_line() {
    let bad = Got::Bad(HeaderFault::BadLength);
    check("Content-Length: zz\r\n\r\n\u{feff}{1}\n{2}\n", &[bad.clone(), line("{1}"), line("{2}")]);
    let marked = "Content-Length: zz\r\n\r\n\u{feff}".to_owned() + &with_length(3, "{1}");
    check(&marked, &[bad, framed("{1}")]);
}

/// What cannot be told before more comes is told when nothing more comes for now, once.
#[test]
fn a_broken_payload_is_reported_before_the_next_frame_is_needed() {
    let mut decoder = Decoder::new(Limits::default());
    decoder.push(with_length(5, "{\"a\":").as_bytes());
    assert!(matches!(decoder.poll_frame(), Some(Frame::Message { .. })));
    assert!(decoder.distrust());
    assert!(decoder.poll_frame().is_none());
    assert!(decoder.pause());
    let got = decoder.poll_frame().map(own);
    assert_eq!(got, Some(Got::Broken("{\"a\":".into(), 5, None)));
    assert!(!decoder.pause() && decoder.poll_frame().is_none());
    decoder.push(with_length(3, "{1}").as_bytes());
    assert_eq!(decoder.poll_frame().map(own), Some(framed("{1}")));
    assert!(decoder.poll_frame().is_none());
}

/// Each header names a payload that holds all others.
#[test]
fn f27_lengths_that_are_all_wrong_cost_work_linear_in_size() {
    for filling in ["x", "{\"", "{", ""] {
        let one = with_length(1 << 20, filling);
        let stream = one.repeat((2 << 20) / one.len());
        let mut decoder = Decoder::new(Limits::default());
        let mut frames = 0;
        for piece in stream.as_bytes().chunks(64 << 10) {
            decoder.push(piece);
            let mut got = Vec::new();
            take_all(&mut decoder, &mut got);
            frames += got.len();
        }
        assert!(frames > 0);
        let bound = 16 * stream.len() as u64;
        assert!(
            decoder.work + decoder.again <= bound,
            "{filling}: {} {}",
            decoder.work,
            decoder.again
        );
    }
}

/// Pieces of stream that are hard on a decoder, to be put together in any order.
fn fragments() -> impl Strategy<Value = Vec<u8>> {
    let fragment = prop_oneof![
        Just(b"{\"id\":1}\n".to_vec()),
        Just(b"Content-Length: 8\r\n\r\n{\"id\":1}".to_vec()),
        Just(b"content-type: x\ncontent-length: 2\n\n{}".to_vec()),
        Just(b"Content-Length: nine\r\n\r\n{}".to_vec()),
        Just(b"Content-Length: 40\r\n\r\n".to_vec()),
        Just(b"Content-Length: 99999999999\r\n\r\n".to_vec()),
        Just(b"\xEF\xBB\xBF".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"{\n  \"a\": 1\n}\n".to_vec()),
        Just("{\"\u{2028}é🦀\"}\n".as_bytes().to_vec()),
        Just(vec![b'x'; 40]),
        Just(b"[[[[\n".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..24),
    ];
    proptest::collection::vec(fragment, 0..12).prop_map(|pieces| pieces.concat())
}

fn cut(stream: &[u8], mut at: Vec<usize>) -> Vec<&[u8]> {
    at.iter_mut().for_each(|at| *at %= stream.len() + 1);
    at.sort_unstable();
    let mut pieces = Vec::new();
    let mut from = 0;
    for to in at {
        pieces.push(&stream[from..to]);
        from = to;
    }
    pieces.push(&stream[from..]);
    pieces
}

proptest! {
    /// F11.
    #[test]
    fn f7_any_stream_cut_at_any_points_gives_the_same_frames(
        stream in fragments(),
        cuts in proptest::collection::vec(any::<usize>(), 0..8),
        limit in prop_oneof![Just(24usize), Just(1 << 20)],
    ) {
        let limits = Limits::default().message(limit).header(64);
        let whole = decode(&[&stream], limits);
        prop_assert_eq!(&decode(&cut(&stream, cuts), limits), &whole);
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        prop_assert_eq!(&decode(&bytes, limits), &whole);
    }

    /// One wrong length among good frames, wherever it stands, however wrong it is, however the bytes are cut.
    #[test]
    fn of_framed_messages_one_of_which_has_a_wrong_length_all_others_arrive(
        texts in proptest::collection::vec("[a-zé🦀\"{}\\[\\]\\\\\n ]{0,30}(Content-Length: 3)?", 1..8),
        at in any::<usize>(),
        off in prop_oneof![-60i64..60, Just(5_000), Just(500_000)],
        pretty in any::<bool>(),
        cuts in proptest::collection::vec(any::<usize>(), 0..8),
    ) {
        let message = |text: &String| {
            let value = serde_json::json!({ "jsonrpc": "2.0", "params": { "text": text } });
            if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() }
        };
        let messages: Vec<String> = texts.iter().map(message).collect();
        let at = at % messages.len();
        let given = usize::try_from(messages[at].len() as i64 + off).unwrap_or(1).max(1);
        prop_assume!(given != messages[at].len());
        let mut stream = String::new();
        let mut want = Vec::new();
        for (n, message) in messages.iter().enumerate() {
            let length = if n == at { given } else { message.len() };
            stream += &with_length(length, message);
            want.push(match n == at {
                true => broken(message, given, message.len()),
                false => framed(message),
            });
        }
        prop_assert_eq!(decode(&cut(stream.as_bytes(), cuts), Limits::default()), want);
    }

    #[test]
    fn encode_then_decode_is_the_identity_in_both_framings(
        messages in proptest::collection::vec(("\\{[^\n\r\u{2028}\u{2029}]{0,40}", any::<bool>()), 0..12),
    ) {
        let mut encoder = Encoder::default();
        let mut want = Vec::new();
        for (text, headers) in &messages {
            let framing = if *headers { Framing::Headers } else { Framing::Lines };
            encoder.frame(framing, |out| out.extend_from_slice(text.as_bytes()));
            want.push(if *headers { framed(text) } else { line(text) });
        }
        let mut decoder = Decoder::new(Limits::default());
        decoder.push(encoder.bytes());
        let got: Vec<Got> = std::iter::from_fn(|| decoder.poll_frame().map(own)).collect();
        prop_assert_eq!(got, want);
    }

    #[test]
    fn f9_no_input_makes_it_hold_more_than_the_limit_and_one_read(
        stream in fragments(),
        size in 1usize..64,
    ) {
        let limits = Limits::default().message(32).header(64);
        let mut decoder = Decoder::new(limits);
        for piece in stream.repeat(8).chunks(size) {
            decoder.push(piece);
            prop_assert!(decoder.buf.len() <= limits.message.max(limits.header) + 1 + size);
            while decoder.poll_frame().is_some() {}
        }
    }
}

/// Issue 19, A5: a message for which there is no memory is reported once and skipped, in both framings,
/// wherever it was given up.
#[test]
fn f9_a_message_that_was_given_up_costs_itself_and_nothing_else() {
    let long = "x".repeat(3 * PREFIX);
    let line_message = format!("{long}\n{{\"a\":1}}\n");
    let framed =
        format!("Content-Length: {}\r\n\r\n{long}Content-Length: 2\r\n\r\n{{}}", long.len());
    for (stream, after) in [(line_message, line("{\"a\":1}")), (framed, Got::Framed("{}".into()))] {
        for held in [100, PREFIX, PREFIX + 1, 2 * PREFIX] {
            let mut decoder = Decoder::new(Limits::default());
            decoder.push(&stream.as_bytes()[..held]);
            assert!(decoder.poll_frame().is_none());
            decoder.room(0);
            decoder.give_up();
            decoder.push(&stream.as_bytes()[held..]);
            let mut got = Vec::new();
            let mut places = Vec::new();
            while let Some(frame) = decoder.poll_frame() {
                if let Frame::Message { offset, .. } = frame {
                    places.push(offset);
                }
                got.push(own(frame));
            }
            assert!(matches!(&got[0], Got::TooLong(text) if long.starts_with(text)), "{got:?}");
            assert_eq!(got[1..], *std::slice::from_ref(&after), "{held}");
            assert_eq!(places.len(), 1);
            let place = usize::try_from(places[0]).unwrap();
            assert!(stream[place..].starts_with(['{', 'C']), "{place}");
        }
    }
}

/// On a socket: the frames, and what was refused; the same however the bytes are cut.
fn on_socket(stream: &str) -> Vec<Got> {
    let decode = |pieces: Vec<&[u8]>| {
        let mut decoder = Decoder::for_socket(Limits::default());
        let mut got = Vec::new();
        for piece in pieces {
            decoder.push(piece);
            while let Some(frame) = decoder.poll_frame() {
                got.push(own(frame));
            }
        }
        decoder.finish();
        while let Some(frame) = decoder.poll_frame() {
            got.push(own(frame));
        }
        got
    };
    let whole = decode(vec![stream.as_bytes()]);
    // What is shown of refused bytes depends on how many have come.
    let kinds = |got: &[Got]| -> Vec<Got> {
        let plain = |got: &Got| match got {
            Got::Refused(_) => Got::Refused(String::new()),
            other => other.clone(),
        };
        got.iter().map(plain).collect()
    };
    let cut = decode(stream.as_bytes().chunks(1).collect());
    assert_eq!(kinds(&cut), kinds(&whole), "byte by byte: {stream:?}");
    whole
}

#[test]
fn on_a_socket_the_first_frame_decides_and_what_does_not_fit_ends_it() {
    let framed = "Content-Length: 2\r\n\r\n{}";
    let refused = |text: &str| Got::Refused(text.to_owned());
    assert_eq!(on_socket("{}\n\r\n [1]\n"), [line("{}"), line("[1]")]);
    assert_eq!(on_socket("\u{feff}{}\n{}"), [line("{}"), line("{}")]);
    assert_eq!(on_socket(&framed.repeat(2)), [Got::Framed("{}".into()), Got::Framed("{}".into())]);
    for (stream, before) in [
        ("POST / HTTP/1.1\r\n\r\n{}\n", vec![]),
        ("GET / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", vec![]),
        ("words\n{}\n", vec![]),
        ("{}\nwords\n{}\n", vec![line("{}")]),
        ("{}\nContent-Length: 2\r\n\r\n{}", vec![line("{}")]),
        ("Content-Length: 2\r\n\r\n{}{}\n", vec![Got::Framed("{}".into())]),
        ("Content-Length: x\r\n\r\n{}\n", vec![]),
        ("Content-Length: 2\r\n{}\n", vec![]),
        ("Content-Le", vec![]),
        ("Content-Length: 9\r\n\r\n{}", vec![]),
    ] {
        let got = on_socket(stream);
        assert_eq!(got[..got.len() - 1], before[..], "{stream:?}");
        assert!(matches!(got.last(), Some(Got::Refused(_))), "{stream:?}: {got:?}");
    }
    assert_eq!(on_socket("hello"), [refused("hello")]);
}
