//! What travels: the headers that say what a message is.
//!
//! Knows kinds and headers; must not know a subject, a connection, a clock or what the JSON says. Everything that
//! comes from the network is read here, and what does not fit is an error, never a panic.

use std::fmt;
use std::time::Duration;

use async_nats::{HeaderMap, HeaderName, Message};
use bytes::Bytes;

use crate::names::is_token;

/// The shortest and the longest time between two heartbeats.
pub(crate) const BEATS: (Duration, Duration) =
    (Duration::from_millis(10), Duration::from_secs(600));

/// How many bytes of a message travel at once, at most. Less where the broker allows less.
pub(crate) const PART: usize = 256 << 10;

/// What headers may take of the broker's limit.
const HEADERS: usize = 4 << 10;

const KIND: &str = "Mcp-Fleet";
const SEQUENCE: &str = "Mcp-Sequence";
const LENGTH: &str = "Mcp-Length";
const WORKER: &str = "Mcp-Worker";
const HEARTBEAT: &str = "Mcp-Heartbeat";
const METHOD: &str = "Mcp-Method";
const MAY_HAVE_RUN: &str = "Mcp-May-Have-Run";
const UNACKNOWLEDGED: &str = "Mcp-Unacknowledged";
const DEADLINE: &str = "Mcp-Deadline";
const TRACE_PARENT: &str = "traceparent";
const TRACE_STATE: &str = "tracestate";

/// How many bytes of a message go into one part, where a broker allows `max_payload` bytes.
pub(crate) fn part_size(max_payload: usize) -> usize {
    max_payload.saturating_sub(HEADERS).clamp(1, PART)
}

/// What a message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Edge to worker: a request, or its first part.
    Call {
        /// The method, for who decides without reading the JSON.
        method: String,
        /// How much time is left for it.
        deadline: Option<Duration>,
        trace: Trace,
    },
    /// Worker to edge: the call is taken, by this worker. It has taken the first part.
    Accepted { worker: String, heartbeat: Duration },
    /// Worker to edge: not taken, nothing ran. After *accepted* of a listen: open it elsewhere.
    Bounce,
    /// Worker to edge, some time after a bounce: this worker has a free slot.
    Free { worker: String },
    /// Edge to worker: the free slot is not needed.
    Declined,
    /// Worker to edge: progress, a log line, a change; or its first part.
    Message,
    /// Worker to edge: the answer, or its first part. Nothing follows but its further parts.
    Answer,
    /// Worker to edge: there is no answer; the payload says why, in words. Nothing follows.
    Failed { may_have_run: bool },
    /// Either way: a further part of what came before.
    Part,
    /// Either way: so many messages that carry JSON were taken.
    Ack(u64),
    /// Either way: send again what came after so many messages that carry JSON.
    Again(u64),
    /// Worker to edge: it knows nothing of the call that it was asked about.
    Unknown,
    /// Worker to edge: it still works on the call, and misses an ack or not.
    Heartbeat { unacknowledged: bool },
    /// Edge to worker: nobody waits for the call any more.
    Cancel,
    /// Worker to itself: means nothing to others. When it is back, all that the broker sent before it has come.
    Filler,
}

/// Trace context, passed through as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    pub(crate) parent: Option<String>,
    pub(crate) state: Option<String>,
}

impl Trace {
    fn value(text: Option<&str>) -> Option<String> {
        let usable =
            |text: &&str| text.len() <= 512 && text.bytes().all(|b| (32..127).contains(&b));
        text.filter(usable).map(ToOwned::to_owned)
    }

    /// What is usable of these. A value that is too long for a header is left out.
    pub(crate) fn new(parent: Option<&str>, state: Option<&str>) -> Self {
        Self { parent: Self::value(parent), state: Self::value(state) }
    }
}

/// One message on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    /// The number of this message among those of its direction that carry JSON, from 0.
    pub(crate) sequence: u64,
    /// The length of the whole, if this is its first part.
    pub(crate) length: Option<usize>,
    /// Who answers, and how often it is heard: on an answer in parts, and on one with a state.
    pub(crate) taken_by: Option<(String, Duration)>,
    pub(crate) payload: Bytes,
}

/// Why a message was not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadFrame(pub(crate) &'static str);

impl fmt::Display for BadFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a message with a bad or missing header {}", self.0)
    }
}

impl Frame {
    /// A message that carries no JSON.
    pub(crate) fn bare(kind: Kind) -> Self {
        Self { kind, sequence: 0, length: None, taken_by: None, payload: Bytes::new() }
    }

    /// Whether it carries JSON, and so counts for the window.
    pub(crate) fn is_data(&self) -> bool {
        matches!(self.kind, Kind::Call { .. } | Kind::Message | Kind::Answer | Kind::Part)
    }

    /// Whether it travels without headers: a whole call, or a whole answer, of which nothing else is to be said.
    pub(crate) fn is_plain(&self) -> bool {
        let whole = self.sequence == 0 && self.length.is_none() && self.taken_by.is_none();
        match &self.kind {
            Kind::Call { deadline, trace, .. } => {
                whole && deadline.is_none() && *trace == Trace::default()
            }
            Kind::Answer => whole,
            _ => false,
        }
    }

    /// Its headers, unless it [is plain](Self::is_plain).
    pub(crate) fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        put(&mut headers, KIND, self.kind.word());
        if self.is_data() && self.sequence > 0 {
            put(&mut headers, SEQUENCE, &self.sequence.to_string());
        }
        if let Some(length) = self.length {
            put(&mut headers, LENGTH, &length.to_string());
        }
        if let Some((worker, heartbeat)) = &self.taken_by {
            taken_by(&mut headers, worker, *heartbeat);
        }
        match &self.kind {
            Kind::Call { method, deadline, trace } => {
                put(&mut headers, METHOD, method.as_str());
                if let Some(deadline) = deadline {
                    put(&mut headers, DEADLINE, &deadline.as_millis().to_string());
                }
                if let Some(parent) = &trace.parent {
                    put(&mut headers, TRACE_PARENT, parent.as_str());
                }
                if let Some(state) = &trace.state {
                    put(&mut headers, TRACE_STATE, state.as_str());
                }
            }
            Kind::Accepted { worker, heartbeat } => taken_by(&mut headers, worker, *heartbeat),
            Kind::Free { worker } => put(&mut headers, WORKER, worker.as_str()),
            Kind::Failed { may_have_run } => {
                put(&mut headers, MAY_HAVE_RUN, if *may_have_run { "yes" } else { "no" });
            }
            Kind::Ack(taken) | Kind::Again(taken) => {
                put(&mut headers, SEQUENCE, &taken.to_string());
            }
            Kind::Heartbeat { unacknowledged: true } => put(&mut headers, UNACKNOWLEDGED, "yes"),
            _ => {}
        }
        headers
    }

    /// Reads a message. One without headers is of the kind `plain`.
    ///
    /// # Errors
    /// A header that it needs is missing or cannot be read.
    pub(crate) fn read(message: &Message, plain: impl FnOnce() -> Kind) -> Result<Self, BadFrame> {
        match &message.headers {
            Some(headers) => Self::from_parts(headers, message.payload.clone()),
            None => Ok(Self { payload: message.payload.clone(), ..Self::bare(plain()) }),
        }
    }

    /// Reads headers and a payload.
    ///
    /// # Errors
    /// As in [`read`](Self::read).
    pub(crate) fn from_parts(headers: &HeaderMap, payload: Bytes) -> Result<Self, BadFrame> {
        // They are few: to look at each costs less than to hash a name.
        let text = |name: &'static str| {
            let found = headers.iter().find(|(known, _)| AsRef::<str>::as_ref(known) == name);
            found.and_then(|(_, values)| values.first()).map(|value| value.as_str())
        };
        let number = |name: &'static str| {
            text(name).map(|text| text.parse::<u64>().map_err(|_| BadFrame(name))).transpose()
        };
        let worker = || {
            let worker = text(WORKER).filter(|word| word.len() <= 64 && is_token(word));
            worker.map(ToOwned::to_owned).ok_or(BadFrame(WORKER))
        };
        let heartbeat = || {
            let heartbeat = number(HEARTBEAT)?.filter(|ms| (1..=600_000).contains(ms));
            heartbeat.map(Duration::from_millis).ok_or(BadFrame(HEARTBEAT))
        };
        let kind = match text(KIND).ok_or(BadFrame(KIND))? {
            "call" => Kind::Call {
                method: text(METHOD).ok_or(BadFrame(METHOD))?.to_owned(),
                deadline: number(DEADLINE)?.map(Duration::from_millis),
                trace: Trace::new(text(TRACE_PARENT), text(TRACE_STATE)),
            },
            "accepted" => Kind::Accepted { worker: worker()?, heartbeat: heartbeat()? },
            "bounce" => Kind::Bounce,
            "free" => Kind::Free { worker: worker()? },
            "declined" => Kind::Declined,
            "message" => Kind::Message,
            "answer" => Kind::Answer,
            // Only a clear no is one.
            "failed" => Kind::Failed { may_have_run: text(MAY_HAVE_RUN) != Some("no") },
            "part" => Kind::Part,
            "ack" => Kind::Ack(number(SEQUENCE)?.ok_or(BadFrame(SEQUENCE))?),
            "again" => Kind::Again(number(SEQUENCE)?.ok_or(BadFrame(SEQUENCE))?),
            "unknown" => Kind::Unknown,
            "heartbeat" => Kind::Heartbeat { unacknowledged: text(UNACKNOWLEDGED) == Some("yes") },
            "cancel" => Kind::Cancel,
            "filler" => Kind::Filler,
            _ => return Err(BadFrame(KIND)),
        };
        let length = number(LENGTH)?.map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        let sequence = number(SEQUENCE)?.unwrap_or(0);
        let taken_by = match kind {
            Kind::Answer if text(WORKER).is_some() => Some((worker()?, heartbeat()?)),
            _ => None,
        };
        Ok(Self { kind, sequence, length, taken_by, payload })
    }
}

fn put(headers: &mut HeaderMap, name: &'static str, value: &str) {
    headers.insert(HeaderName::from_static(name), value);
}

fn taken_by(headers: &mut HeaderMap, worker: &str, heartbeat: Duration) {
    put(headers, WORKER, worker);
    put(headers, HEARTBEAT, &heartbeat.as_millis().to_string());
}

impl Kind {
    fn word(&self) -> &'static str {
        match self {
            Self::Call { .. } => "call",
            Self::Accepted { .. } => "accepted",
            Self::Bounce => "bounce",
            Self::Free { .. } => "free",
            Self::Declined => "declined",
            Self::Message => "message",
            Self::Answer => "answer",
            Self::Failed { .. } => "failed",
            Self::Part => "part",
            Self::Ack(_) => "ack",
            Self::Again(_) => "again",
            Self::Unknown => "unknown",
            Self::Heartbeat { .. } => "heartbeat",
            Self::Cancel => "cancel",
            Self::Filler => "filler",
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_as_it_was_written() {
        let trace = Trace::new(Some("00-ab-cd-01"), Some("a=1"));
        let kinds = [
            Kind::Call { method: "a/b".into(), deadline: Some(Duration::from_millis(1500)), trace },
            Kind::Call { method: "c".into(), deadline: None, trace: Trace::default() },
            Kind::Accepted { worker: "w-1".into(), heartbeat: Duration::from_secs(1) },
            Kind::Bounce,
            Kind::Free { worker: "w-1".into() },
            Kind::Declined,
            Kind::Message,
            Kind::Answer,
            Kind::Failed { may_have_run: true },
            Kind::Failed { may_have_run: false },
            Kind::Part,
            Kind::Ack(7),
            Kind::Again(0),
            Kind::Unknown,
            Kind::Heartbeat { unacknowledged: true },
            Kind::Heartbeat { unacknowledged: false },
            Kind::Cancel,
            Kind::Filler,
        ];
        for kind in kinds {
            let mut frame = Frame::bare(kind);
            if frame.is_data() {
                (frame.sequence, frame.length) = (3, Some(9));
                frame.payload = Bytes::from_static(b"{}");
            }
            if frame.kind == Kind::Answer {
                frame.taken_by = Some(("w-1".into(), Duration::from_secs(2)));
            }
            let read = Frame::from_parts(&frame.headers(), frame.payload.clone()).unwrap();
            assert_eq!(read.kind, frame.kind);
            if frame.is_data() {
                assert_eq!(read, frame);
            }
        }
    }

    #[test]
    fn only_what_says_nothing_else_travels_without_headers() {
        let call = |deadline, trace| Kind::Call { method: "m".into(), deadline, trace };
        let second = Duration::from_secs(1);
        assert!(Frame::bare(call(None, Trace::default())).is_plain());
        assert!(Frame::bare(Kind::Answer).is_plain());
        let named = Some(("w".to_owned(), second));
        for frame in [
            Frame::bare(call(Some(second), Trace::default())),
            Frame::bare(call(None, Trace::new(Some("00-1"), None))),
            Frame { sequence: 1, ..Frame::bare(Kind::Answer) },
            Frame { length: Some(9), ..Frame::bare(Kind::Answer) },
            Frame { taken_by: named, ..Frame::bare(Kind::Answer) },
            Frame::bare(Kind::Message),
        ] {
            assert!(!frame.is_plain(), "{frame:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_an_error_that_names_the_header() {
        let table: &[(&[(&str, &str)], &str)] = &[
            (&[], KIND),
            (&[(KIND, "dance")], KIND),
            (&[(KIND, "ack")], SEQUENCE),
            (&[(KIND, "again")], SEQUENCE),
            (&[(KIND, "part"), (SEQUENCE, "-1")], SEQUENCE),
            (&[(KIND, "answer"), (LENGTH, "ten")], LENGTH),
            (&[(KIND, "call")], METHOD),
            (&[(KIND, "call"), (METHOD, "m"), (DEADLINE, "soon")], DEADLINE),
            (&[(KIND, "accepted"), (HEARTBEAT, "1000")], WORKER),
            (&[(KIND, "free")], WORKER),
            (&[(KIND, "answer"), (WORKER, "a")], HEARTBEAT),
            (&[(KIND, "accepted"), (WORKER, "a.>"), (HEARTBEAT, "1000")], WORKER),
            (&[(KIND, "accepted"), (WORKER, "a"), (HEARTBEAT, "0")], HEARTBEAT),
        ];
        for (written, name) in table {
            let mut headers = HeaderMap::new();
            for (name, value) in *written {
                headers.insert(*name, *value);
            }
            let read = Frame::from_parts(&headers, Bytes::new());
            assert_eq!(read.unwrap_err().0, *name, "{written:?}");
        }
    }

    #[test]
    fn a_part_leaves_room_for_headers() {
        assert_eq!(part_size(1 << 20), PART);
        assert_eq!(part_size(64 << 10), 60 << 10);
        assert_eq!(part_size(10), 1);
    }

    #[test]
    fn a_trace_that_would_break_a_header_is_left_out() {
        let trace = Trace::new(Some("00-x\r\nEvil: 1"), Some(&"s".repeat(600)));
        assert_eq!(trace, Trace::default());
    }
}
