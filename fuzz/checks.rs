//! What must hold for any bytes. Shared by the fuzz targets, which look for bytes where it does
//! not, and by `crates/taut/tests/seeds.rs`, which runs it over the seeds as an ordinary test.
//!
//! Knows only the public API. A check panics where it fails.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde::de::IgnoredAny;
use taut::rpc::{
    CallId, Config, Dialect, ErrorObject, Event, Fault, Id, JsonBuf, Malformed, Message, Messages,
    Patience, Peer, Ticket, read,
};
use taut::wire::{Decoder, Frame, Framing, HeaderFault, Limits};

/// A frame whose length is wrong costs itself and none that follows, wherever the bytes are cut. The first byte picks
/// how far its length is off, the next the size of the pieces; the rest is text that a message carries.
pub(crate) fn wrong_length(data: &[u8]) {
    let Some(([off, size], text)) = data.split_first_chunk::<2>() else { return };
    let text = String::from_utf8_lossy(text);
    let message = serde_json::json!({ "id": 1, "text": text }).to_string();
    let off = i64::from(*off) - 128;
    let length = i64::try_from(message.len()).expect("small") + off;
    if off == 0 || length <= 0 {
        return;
    }
    let good = format!("Content-Length: {}\r\n\r\n{message}", message.len());
    let stream = format!("Content-Length: {length}\r\n\r\n{message}{good}{good}");
    let size = usize::from(*size) + 1;
    let got = frames(stream.as_bytes(), Limits::default(), &[size]);
    let (given, found) = (usize::try_from(length).expect("positive"), Some(message.len()));
    let is_good = |frame: &Owned| matches!(frame, Owned::Message(bytes, Framing::Headers, ..) if *bytes == message.as_bytes());
    assert!(matches!(&got[0], Owned::Broken(_, g, f, 0) if (*g, *f) == (given, found)), "{got:?}");
    assert!(got.len() == 3 && got[1..].iter().all(is_good), "{got:?}");
}

/// The first byte picks the limits, the next three the sizes of the pieces; the rest is the stream.
pub(crate) fn decode(data: &[u8]) {
    let Some((setting, stream)) = data.split_first_chunk::<4>() else { return };
    let message = [24, 100, 4096][usize::from(setting[0]) % 3];
    let limits = Limits::default().message(message).header(64);
    let sizes = [setting[1], setting[2], setting[3]].map(|size| usize::from(size) % 64 + 1);
    let whole = frames(stream, limits, &[usize::MAX]);
    assert_eq!(frames(stream, limits, &sizes), whole, "cut into pieces of {sizes:?}");
    assert_eq!(frames(stream, limits, &[1]), whole, "byte by byte");
}

/// A frame, owned, with its place in the stream.
#[derive(Debug, PartialEq)]
enum Owned {
    Message(Vec<u8>, Framing, u64, bool, bool),
    TooLong(Vec<u8>, Framing, u64),
    Broken(Vec<u8>, usize, Option<usize>, u64),
    Bad(HeaderFault, u64),
}

fn frames(stream: &[u8], limits: Limits, sizes: &[usize]) -> Vec<Owned> {
    let mut decoder = Decoder::new(limits);
    let mut got = Vec::new();
    let mut sizes = sizes.iter().cycle();
    let mut rest = stream;
    loop {
        let size = rest.len().min(*sizes.next().expect("cycles"));
        let (piece, after) = rest.split_at(size);
        rest = after;
        decoder.push(piece);
        let ended = rest.is_empty();
        for finish in [false, true].iter().take(1 + usize::from(ended)) {
            if *finish {
                decoder.finish();
            }
            while let Some(frame) = decoder.poll_frame() {
                let frame = own(frame);
                // A payload that is no JSON is given out again, with what its length should have been.
                let doubted = matches!(&frame, Owned::Message(bytes, ..) if !is_json(bytes));
                if !(doubted && decoder.distrust()) {
                    got.push(frame);
                }
                assert!(got.len() <= stream.len() + 1, "more frames than bytes");
            }
            let bound = limits.message.max(limits.header) + 1;
            assert!(decoder.held() <= bound, "holds {} of {bound}", decoder.held());
        }
        if ended {
            assert_eq!(decoder.held(), 0, "nothing is left when the stream has ended");
            return got;
        }
    }
}

fn own(frame: Frame<'_>) -> Owned {
    match frame {
        Frame::Message { bytes, framing, offset, bom, cr } => {
            Owned::Message(bytes.to_vec(), framing, offset, bom, cr)
        }
        Frame::TooLong { prefix, framing, offset } => {
            Owned::TooLong(prefix.to_vec(), framing, offset)
        }
        Frame::Broken { bytes, given, found, offset } => {
            Owned::Broken(bytes.to_vec(), given, found, offset)
        }
        Frame::BadHeader { fault, offset } => Owned::Bad(fault, offset),
        _ => unreachable!("no other frames"),
    }
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

fn json(text: &str) -> JsonBuf {
    JsonBuf::of(text).expect("text has a JSON form")
}

/// The bytes are one frame.
pub(crate) fn classify(frame: &[u8]) {
    let outcome = read(frame);
    let refused =
        |fault: &Malformed| matches!(fault.kind, Fault::Encoding | Fault::Json | Fault::SpansLines);
    if outcome.as_ref().is_err_and(refused) {
        // What we do not take for JSON, nobody does.
        assert!(serde_json::from_slice::<serde_json::Value>(frame).is_err());
    } else {
        // What we take for JSON is JSON, up to what only a reader of the values could mind.
        assert!(std::str::from_utf8(frame).is_ok());
        assert!(serde_json::from_slice::<IgnoredAny>(frame).is_ok());
    }
    match outcome {
        Ok(Messages::One(message)) => echoes(frame, Ok(&message)),
        Ok(Messages::Batch(entries)) => {
            assert!((1..=taut::rpc::MAX_BATCH).contains(&entries.len()));
            entries.iter().for_each(|entry| echoes(frame, entry.as_ref()));
        }
        Err(malformed) => echoes(frame, Err(&malformed)),
        Ok(_) => unreachable!("no other kinds"),
    }
}

/// The id stands in the frame as it will stand in the answer, and means the same when read again.
fn echoes(frame: &[u8], message: Result<&Message<'_>, &Malformed>) {
    let id = match message {
        Ok(Message::Request { id, .. }) => Some(id),
        Ok(Message::Response { id, .. }) => id.as_ref(),
        Ok(_) => None,
        Err(malformed) => malformed.id.as_ref(),
    };
    let Some(id) = id else { return };
    let text = id.as_json();
    assert!(frame.windows(text.len()).any(|window| window == text.as_bytes()), "{id}");
    assert_eq!(Id::from_json(text).as_ref(), Some(id));
    assert!(serde_json::from_str::<IgnoredAny>(text).is_ok(), "{id}");
}

/// Each line is an action: its first byte says which, the rest is what is read.
///
/// | byte | action |
/// |---|---|
/// | `{` `[` | read the line |
/// | `h` | read the rest as a `Content-Length` frame |
/// | `l` | read the rest as the start of a message over the limit |
/// | `b` | read a bad header |
/// | `a` `z` | answer the oldest, refuse the newest request |
/// | `q` | take a request from the queue |
/// | `c` `x` | call, cancel the oldest call |
/// | `t` | let a second pass |
/// | `w` | write out |
/// | `e` | the input ends |
/// | other | read the line |
pub(crate) fn peer(data: &[u8]) {
    let Some((setting, script)) = data.split_first() else { return };
    let mut dialect = Dialect::PLAIN;
    dialect.cancel_is_answered = setting & 1 == 0;
    dialect.progress = Some("progress");
    dialect.urgent = &["ping"];
    dialect.open_ended = &["listen"];
    dialect.firm = &["init"];
    let mut config = Config::new(dialect, setting & 2 == 0);
    config.running = 2;
    config.queue = 512;
    let mut world = World::new(Peer::new(config));
    for line in script.split(|byte| *byte == b'\n') {
        world.act(line);
        world.check();
    }
    world.close();
}

/// How many answers a frame may have at most: none for notifications and responses.
fn answers_owed(frame: &[u8]) -> usize {
    let one = |entry: Result<&Message<'_>, &Malformed>| match entry {
        Ok(message) => usize::from(matches!(message, Message::Request { .. })),
        Err(malformed) => usize::from(malformed.is_answerable()),
    };
    match read(frame) {
        Ok(Messages::One(message)) => one(Ok(&message)),
        Ok(Messages::Batch(entries)) => entries.iter().map(|entry| one(entry.as_ref())).sum(),
        Ok(_) => unreachable!("no other kinds"),
        Err(malformed) => one(Err(&malformed)),
    }
}

struct World {
    peer: Peer,
    now: Instant,
    tickets: Vec<Ticket>,
    calls: Vec<CallId>,
    /// How often each call of ours has ended.
    ended: HashMap<CallId, usize>,
    /// How many answers were owed, and how many were written.
    asked: usize,
    answered: usize,
}

impl World {
    fn new(peer: Peer) -> Self {
        let (tickets, calls, ended) = (Vec::new(), Vec::new(), HashMap::new());
        Self { peer, now: Instant::now(), tickets, calls, ended, asked: 0, answered: 0 }
    }

    fn act(&mut self, line: &[u8]) {
        let (lines, offset) = (Framing::Lines, 0);
        match line.split_first() {
            Some((b'h', bytes)) => {
                let framing = Framing::Headers;
                self.reads(Frame::Message { bytes, framing, offset, bom: false, cr: false });
            }
            Some((b'l', prefix)) => self.reads(Frame::TooLong { prefix, framing: lines, offset }),
            Some((b'b', _)) => {
                self.reads(Frame::BadHeader { fault: HeaderFault::NoLength, offset });
            }
            Some((b'a', _)) if !self.tickets.is_empty() => {
                let ticket = self.tickets.remove(0);
                self.peer.answer(ticket, Ok(json("yes")));
            }
            Some((b'z', _)) => {
                if let Some(ticket) = self.tickets.pop() {
                    self.peer.answer(ticket, Err(ErrorObject::internal("no")));
                }
            }
            Some((b'q', _)) => {
                self.tickets.extend(self.peer.poll_request().map(|request| request.ticket));
            }
            Some((b'c', _)) => {
                let patience = Patience::new(Duration::from_secs(2))
                    .extended_by_progress(Duration::from_secs(4));
                self.calls.extend(self.peer.call(self.now, "c", None, Some(patience)));
            }
            Some((b'x', _)) if !self.calls.is_empty() => {
                let call = self.calls.remove(0);
                let known = self.peer.calls();
                self.peer.cancel(call, "no");
                *self.ended.entry(call).or_default() += usize::from(known > self.peer.calls());
            }
            Some((b't', _)) => {
                self.now += Duration::from_secs(1);
                self.peer.handle_timeout(self.now);
            }
            Some((b'w', _)) => self.write_out(),
            Some((b'e', _)) => self.peer.handle_eof(),
            _ => self.reads(Frame::Message {
                bytes: line,
                framing: lines,
                offset,
                bom: false,
                cr: false,
            }),
        }
    }

    fn reads(&mut self, frame: Frame<'_>) {
        self.asked += match frame {
            Frame::Message { bytes, .. } => answers_owed(bytes),
            _ => 1,
        };
        for event in self.peer.handle_frame(self.now, frame) {
            match event {
                Event::Request(request) => self.tickets.push(request.ticket),
                Event::Reply { call, .. } => *self.ended.entry(call).or_default() += 1,
                _ => {}
            }
        }
    }

    /// All that leaves is a message that we would read ourselves.
    fn write_out(&mut self) {
        let mut decoder = Decoder::new(Limits::default());
        decoder.push(self.peer.output().bytes());
        while let Some(frame) = decoder.poll_frame() {
            let Frame::Message { bytes, .. } = frame else { panic!("wrote {frame:?}") };
            let entries = match read(bytes).expect("our own words are well-formed") {
                Messages::Batch(entries) => entries,
                Messages::One(message) => vec![Ok(message)],
                _ => unreachable!("no other kinds"),
            };
            for entry in entries {
                let message = entry.expect("our own entries are well-formed");
                self.answered += usize::from(matches!(message, Message::Response { .. }));
            }
        }
        assert_eq!(decoder.held(), 0, "whole frames only");
        let written = self.peer.output().len();
        self.peer.output().consume(written);
    }

    fn check(&mut self) {
        while let Some((call, _)) = self.peer.poll_lost() {
            *self.ended.entry(call).or_default() += 1;
        }
        while self.peer.poll_trouble().is_some() {}
        assert!(self.ended.values().all(|times| *times <= 1), "a call ends once");
        assert!(self.answered <= self.asked, "an answer without a question");
        let live = self.tickets.iter().filter(|ticket| self.peer.is_live(ticket)).count();
        assert!(live <= self.peer.unanswered(), "a live ticket is an unanswered request");
    }

    /// When all is answered, nothing is left, and there is room again for as many as at first.
    fn close(mut self) {
        loop {
            while let Some(ticket) = self.tickets.pop() {
                self.peer.answer(ticket, Ok(JsonBuf::default()));
            }
            let Some(request) = self.peer.poll_request() else { break };
            self.tickets.push(request.ticket);
        }
        self.write_out();
        self.check();
        assert_eq!(self.peer.unanswered(), 0);
        for id in ["\"\\r1\"", "\"\\r2\""] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
            let bytes = line.as_bytes();
            let (framing, offset, bom, cr) = (Framing::Lines, 0, false, false);
            self.reads(Frame::Message { bytes, framing, offset, bom, cr });
        }
        assert_eq!(self.tickets.len(), 2, "no running request was forgotten");
        self.peer.handle_eof();
        assert_eq!(self.peer.calls(), 0);
        self.check();
    }
}
