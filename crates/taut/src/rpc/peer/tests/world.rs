//! A peer in a glass: bytes in, events and bytes out as text, and a clock that is moved by hand.

use std::time::{Duration, Instant};

use serde_json::value::RawValue;

use crate::json::JsonBuf;
use crate::rpc::{
    CallId, Config, Dialect, ErrorObject, Event, Events, Failure, Patience, Peer, PeerRequest,
    Ticket, TroubleKind,
};
use crate::wire::{Decoder, Framing};

/// MCP's names, as `mcp` will give them.
pub(super) const MCP: Dialect = Dialect {
    cancel: "notifications/cancelled",
    cancel_member: "requestId",
    cancel_is_answered: false,
    progress: Some("notifications/progress"),
    urgent: &["ping"],
    open_ended: &["subscriptions/listen"],
    firm: &["initialize"],
};

pub(super) fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A raw value from its text.
pub(super) fn json(text: &str) -> JsonBuf {
    JsonBuf::of(&RawValue::from_string(text.to_owned()).unwrap()).unwrap()
}

/// One peer, with what its handlers hold.
pub(super) struct Side {
    pub(super) peer: Peer,
    pub(super) now: Instant,
    pub(super) tickets: Vec<Ticket>,
    decoder: Decoder,
}

impl Side {
    pub(super) fn new(config: Config) -> Self {
        let decoder = Decoder::new(config.limits);
        let mut peer = Peer::new(config);
        peer.doubt_lengths(!config.socket);
        Self { peer, now: Instant::now(), tickets: Vec::new(), decoder }
    }

    pub(super) fn with(dialect: Dialect, serving: bool, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::new(dialect, serving);
        change(&mut config);
        Self::new(config)
    }

    /// A server in plain JSON-RPC.
    pub(super) fn serving() -> Self {
        Self::with(Dialect::PLAIN, true, |_| ())
    }

    /// A server in MCP.
    pub(super) fn mcp() -> Self {
        Self::with(MCP, true, |_| ())
    }

    /// A client in MCP.
    pub(super) fn calling() -> Self {
        Self::with(MCP, false, |_| ())
    }

    /// Reads bytes, and says what happened.
    pub(super) fn reads(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut seen = Vec::new();
        self.decoder.push(bytes);
        loop {
            while let Some(frame) = self.decoder.poll_frame() {
                let events = self.peer.handle_frame(self.now, frame);
                Self::watch(&mut self.tickets, events, &mut seen);
                if self.peer.doubts() {
                    self.decoder.distrust();
                }
            }
            if !self.decoder.pause() {
                return seen;
            }
        }
    }

    fn watch(tickets: &mut Vec<Ticket>, events: Events<'_>, seen: &mut Vec<String>) {
        for event in events {
            seen.push(match event {
                Event::Request(request) => keep(tickets, request),
                Event::Notification { method, .. } => format!("note {method}"),
                Event::Withdrawn(serial) => {
                    let ticket = tickets.iter().find(|ticket| ticket.serial() == serial);
                    format!(
                        "withdrawn {}",
                        ticket.map_or_else(|| "?".into(), |t| t.id().to_string())
                    )
                }
                Event::Progress { call, params } => {
                    format!("progress {} {}", call.number(), params.raw().unwrap().get())
                }
                Event::Reply { call, outcome: Ok(result) } => {
                    format!("result {} {}", call.number(), result.get())
                }
                Event::Reply { call, outcome: Err(failure) } => {
                    format!("failed {} {}", call.number(), why(&failure))
                }
                Event::StrayError(error) => format!("stray {}", error.code),
            });
        }
    }

    /// Reads one line.
    pub(super) fn gets(&mut self, line: &str) -> Vec<String> {
        self.reads(format!("{line}\n").as_bytes())
    }

    /// Reads one message in a `Content-Length` frame.
    pub(super) fn gets_framed(&mut self, body: &str) -> Vec<String> {
        self.reads(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes())
    }

    /// The next request from the queue.
    pub(super) fn next(&mut self) -> Option<String> {
        let request = self.peer.poll_request()?;
        Some(keep(&mut self.tickets, request))
    }

    /// Takes the oldest ticket with this id.
    pub(super) fn ticket(&mut self, id: &str) -> Ticket {
        let at = self.tickets.iter().position(|ticket| ticket.id().as_json() == id).unwrap();
        self.tickets.remove(at)
    }

    /// Answers the oldest request with this id.
    pub(super) fn answer(&mut self, id: &str, result: &str) {
        let ticket = self.ticket(id);
        self.peer.answer(ticket, Ok(json(result)));
    }

    /// Refuses the oldest request with this id.
    pub(super) fn refuse(&mut self, id: &str, code: i64) {
        let ticket = self.ticket(id);
        self.peer.answer(ticket, Err(ErrorObject::new(code, "no")));
    }

    pub(super) fn call(&mut self, method: &str, patience: Option<Patience>) -> CallId {
        self.peer.call(self.now, method, None, patience).unwrap()
    }

    /// All that it has written since last asked, byte for byte.
    pub(super) fn bytes(&mut self) -> String {
        let out = self.peer.output();
        let bytes = out.bytes().to_vec();
        out.consume(bytes.len());
        String::from_utf8(bytes).unwrap()
    }

    /// The lines that it has written since last asked.
    pub(super) fn says(&mut self) -> Vec<String> {
        self.bytes().lines().map(ToOwned::to_owned).collect()
    }

    /// The same in short: `-32700 null`, `result 1`, `note x`, `call 1 x`, `[…]`.
    pub(super) fn says_in_short(&mut self) -> Vec<String> {
        let mut decoder = Decoder::new(crate::wire::Limits::default());
        decoder.push(self.bytes().as_bytes());
        decoder.finish();
        let mut said = Vec::new();
        while let Some(frame) = decoder.poll_frame() {
            let crate::wire::Frame::Message { bytes, .. } = frame else { panic!("{frame:?}") };
            said.push(short(&serde_json::from_slice(bytes).unwrap()));
        }
        said
    }

    /// Lets time pass.
    pub(super) fn waits(&mut self, time: Duration) {
        self.now += time;
        self.peer.handle_timeout(self.now);
    }

    /// The calls that were lost since last asked.
    pub(super) fn lost(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.peer.poll_lost())
            .map(|(call, failure)| format!("{} {}", call.number(), why(&failure)))
            .collect()
    }

    /// What was noted since last asked.
    pub(super) fn troubles(&mut self) -> Vec<TroubleKind> {
        std::iter::from_fn(|| self.peer.poll_trouble()).map(|trouble| trouble.kind).collect()
    }
}

fn keep(tickets: &mut Vec<Ticket>, request: PeerRequest<'_>) -> String {
    let text = format!("request {} {}", request.ticket.id(), request.method);
    tickets.push(request.ticket);
    text
}

fn why(failure: &Failure) -> String {
    match failure {
        Failure::Refused(error) => format!("refused {}", error.code),
        Failure::TimedOut { after, ceiling } => {
            format!("timed out after {after:?}{}", if *ceiling { ", ceiling" } else { "" })
        }
        Failure::Violation(fault) => format!("violation {fault:?}"),
        Failure::Ended => "ended".into(),
    }
}

fn short(message: &serde_json::Value) -> String {
    if let Some(entries) = message.as_array() {
        return format!("[{}]", entries.iter().map(short).collect::<Vec<_>>().join(", "));
    }
    let id = message.get("id").map_or_else(|| "-".into(), ToString::to_string);
    match (message["method"].as_str(), message.get("id"), message.get("error")) {
        (Some(method), Some(_), _) => format!("call {id} {method}"),
        (Some(method), None, _) => format!("note {method}"),
        (None, _, Some(error)) => format!("{} {id}", error["code"]),
        (None, _, None) => format!("result {id}"),
    }
}

/// Two peers and the wire between them. The clock is the client's.
pub(super) struct Pair {
    pub(super) client: Side,
    pub(super) server: Side,
}

impl Pair {
    pub(super) fn new(client: Side, server: Side) -> Self {
        Self { client, server }
    }

    /// Carries what waits on either side over, once: what the client saw, what the server saw.
    pub(super) fn step(&mut self) -> (Vec<String>, Vec<String>) {
        let (up, down) = (self.client.bytes(), self.server.bytes());
        self.server.now = self.client.now;
        (self.client.reads(down.as_bytes()), self.server.reads(up.as_bytes()))
    }

    /// Steps until the wire is silent, at most so often: how often it took.
    pub(super) fn drive(&mut self, at_most: usize) -> usize {
        for steps in 0..at_most {
            if self.client.peer.output().is_empty() && self.server.peer.output().is_empty() {
                return steps;
            }
            self.step();
        }
        panic!("the wire never falls silent")
    }
}

/// A request, a notification and a result, as lines.
pub(super) fn request(id: &str, method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#)
}

pub(super) fn note(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}

pub(super) fn result(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

/// The framing of each frame in some bytes.
pub(super) fn framings(bytes: &str) -> Vec<Framing> {
    let mut decoder = Decoder::new(crate::wire::Limits::default());
    decoder.push(bytes.as_bytes());
    let mut seen = Vec::new();
    while let Some(crate::wire::Frame::Message { framing, .. }) = decoder.poll_frame() {
        seen.push(framing);
    }
    seen
}
