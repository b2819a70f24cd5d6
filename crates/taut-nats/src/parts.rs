//! Long messages in parts, and how many parts may be under way.
//!
//! Pure: bytes in, parts out. Used in the same way by both sides and in both directions. What the other
//! side has not acknowledged is kept, so that it can be sent again after a connection was lost.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::frame::{Frame, Kind};

/// How many messages that carry JSON may be under way in one direction of a call.
pub(crate) const WINDOW: usize = 4;

/// Why parts do not make a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartsError {
    /// One is missing.
    Gap,
    /// One came that belongs to nothing, or more than was announced.
    Unexpected,
    /// The whole is longer than the limit.
    TooLong(usize),
}

impl std::fmt::Display for PartsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Gap => f.write_str("a part of a message was lost"),
            Self::Unexpected => f.write_str("a part came that belongs to no message"),
            Self::TooLong(length) => write!(f, "a message of {length} bytes is too long"),
        }
    }
}

/// Sends messages in one direction of a call: cuts them into parts and keeps the window.
#[derive(Debug)]
pub(crate) struct Sending {
    part: usize,
    /// What is left of the message that is being sent.
    rest: Bytes,
    /// The frame that carries its first part, until that is sent.
    first: Option<Frame>,
    sent: u64,
    /// What was sent and not acknowledged, oldest first; at most a window of it.
    pending: VecDeque<Frame>,
}

impl Sending {
    pub(crate) fn new(part: usize) -> Self {
        let pending = VecDeque::new();
        Self { part: part.max(1), rest: Bytes::new(), first: None, sent: 0, pending }
    }

    /// Whether the next message can be begun.
    pub(crate) fn is_idle(&self) -> bool {
        self.first.is_none() && self.rest.is_empty()
    }

    /// Begins a message; the one before it must be sent.
    pub(crate) fn begin(&mut self, kind: Kind, json: Bytes) {
        debug_assert!(self.is_idle());
        let mut frame = Frame::bare(kind);
        frame.length = (json.len() > self.part).then_some(json.len());
        self.first = Some(frame);
        self.rest = json;
    }

    /// Says in the message that was begun who has taken the call.
    pub(crate) fn name_worker(&mut self, worker: &str, heartbeat: Duration) {
        if let Some(first) = &mut self.first {
            first.taken_by = Some((worker.to_owned(), heartbeat));
        }
    }

    /// The next frame to be sent, if there is one and the window has room.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        if self.is_idle() || self.pending.len() >= WINDOW {
            return None;
        }
        let mut frame = self.first.take().unwrap_or_else(|| Frame::bare(Kind::Part));
        frame.payload = self.rest.split_to(self.rest.len().min(self.part));
        frame.sequence = self.sent;
        self.sent += 1;
        self.pending.push_back(frame.clone());
        Some(frame)
    }

    /// The other side has taken so many.
    pub(crate) fn taken(&mut self, count: u64) {
        while self.pending.front().is_some_and(|frame| frame.sequence < count) {
            self.pending.pop_front();
        }
    }

    /// What was sent and not acknowledged, oldest first.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &Frame> {
        self.pending.iter()
    }

    /// The same, when nothing more is sent.
    pub(crate) fn into_pending(self) -> VecDeque<Frame> {
        self.pending
    }
}

/// Receives messages in one direction of a call.
#[derive(Debug)]
pub(crate) struct Receiving {
    limit: usize,
    received: u64,
    open: Option<(Kind, usize, BytesMut)>,
}

/// What a frame came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// A whole message.
    Whole(Kind, Bytes),
    /// More parts follow.
    Part,
    /// It was taken before: the other side has sent it again.
    Again,
}

impl Receiving {
    /// Takes messages of up to `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, received: 0, open: None }
    }

    /// How many frames were taken.
    pub(crate) fn count(&self) -> u64 {
        self.received
    }

    /// Takes a frame that carries JSON.
    ///
    /// # Errors
    /// It does not follow the one before it, or its message is too long. After a gap the call can go on: the
    /// missing ones can be asked for.
    pub(crate) fn take(&mut self, frame: Frame) -> Result<Received, PartsError> {
        if frame.sequence < self.received {
            return Ok(Received::Again);
        }
        if frame.sequence > self.received {
            return Err(PartsError::Gap);
        }
        self.received += 1;
        match (self.open.take(), frame.kind) {
            (Some((kind, length, mut bytes)), Kind::Part) => {
                if frame.payload.is_empty() || bytes.len() + frame.payload.len() > length {
                    return Err(PartsError::Unexpected);
                }
                bytes.extend_from_slice(&frame.payload);
                if bytes.len() == length {
                    return Ok(Received::Whole(kind, bytes.freeze()));
                }
                self.open = Some((kind, length, bytes));
                Ok(Received::Part)
            }
            (None, Kind::Part) | (Some(_), _) => Err(PartsError::Unexpected),
            (None, kind) => {
                let length = frame.length.unwrap_or(frame.payload.len());
                if length > self.limit {
                    return Err(PartsError::TooLong(length));
                }
                if frame.payload.len() >= length {
                    return Ok(Received::Whole(kind, frame.payload));
                }
                if frame.payload.is_empty() {
                    return Err(PartsError::Unexpected);
                }
                // The length is the other side's word: memory is taken as the bytes arrive.
                self.open = Some((kind, length, BytesMut::from(&frame.payload[..])));
                Ok(Received::Part)
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn carried(json: &'static [u8], part: usize) -> (usize, Bytes) {
        let (mut sending, mut receiving) = (Sending::new(part), Receiving::new(100));
        sending.begin(Kind::Answer, Bytes::from_static(json));
        let mut frames = 0;
        loop {
            let frame = sending.next().unwrap();
            frames += 1;
            match receiving.take(frame).unwrap() {
                Received::Whole(Kind::Answer, bytes) => return (frames, bytes),
                Received::Whole(..) | Received::Again => unreachable!(),
                Received::Part => sending.taken(receiving.count()),
            }
        }
    }

    #[test]
    fn a_message_is_whole_again_however_it_is_cut() {
        let json = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}";
        for part in 1..=json.len() + 1 {
            assert_eq!(carried(json, part), (json.len().div_ceil(part), Bytes::from_static(json)));
        }
        assert_eq!(carried(b"", 5), (1, Bytes::new()));
    }

    #[test]
    fn no_more_than_the_window_is_under_way() {
        let mut sending = Sending::new(1);
        sending.begin(Kind::Answer, Bytes::from_static(b"0123456789ab"));
        let mut sent = 0;
        while sending.next().is_some() {
            sent += 1;
        }
        assert_eq!(sent, WINDOW);
        sending.taken(2);
        assert!(sending.next().is_some() && sending.next().is_some() && sending.next().is_none());
        // More than was sent cannot have been taken.
        sending.taken(u64::MAX);
        let mut sent = 0;
        while sending.next().is_some() {
            sent += 1;
        }
        assert_eq!(sent, WINDOW);
        assert!(!sending.is_idle());
    }

    #[test]
    fn what_was_lost_is_sent_again_and_doubles_are_left_out() {
        let (mut sending, mut receiving) = (Sending::new(1), Receiving::new(100));
        sending.begin(Kind::Answer, Bytes::from_static(b"abcdef"));
        let frames: Vec<_> = std::iter::from_fn(|| sending.next()).collect();
        receiving.take(frames[0].clone()).unwrap();
        // The second is lost, and the ack of the first with it.
        assert_eq!(receiving.take(frames[2].clone()), Err(PartsError::Gap));
        assert_eq!(sending.pending().count(), WINDOW);
        for frame in sending.pending() {
            receiving.take(frame.clone()).unwrap();
        }
        assert_eq!(receiving.take(frames[3].clone()), Ok(Received::Again));
        sending.taken(receiving.count());
        assert_eq!(sending.pending().count(), 0);
        let rest: Vec<_> = std::iter::from_fn(|| sending.next()).collect();
        assert_eq!(receiving.take(rest[0].clone()), Ok(Received::Part));
        let whole = Received::Whole(Kind::Answer, Bytes::from_static(b"abcdef"));
        assert_eq!(receiving.take(rest[1].clone()), Ok(whole));
        assert!(sending.is_idle());
        assert_eq!(sending.into_pending().len(), 2);
    }

    #[test]
    fn what_is_lost_or_too_long_is_found() {
        let frame = |kind, sequence, length, payload: &'static [u8]| Frame {
            kind,
            sequence,
            length,
            taken_by: None,
            payload: Bytes::from_static(payload),
        };
        let first = || frame(Kind::Answer, 0, Some(4), b"ab");
        let table = [
            (frame(Kind::Part, 2, None, b"c"), PartsError::Gap),
            (frame(Kind::Part, 1, None, b"cde"), PartsError::Unexpected),
            (frame(Kind::Part, 1, None, b""), PartsError::Unexpected),
            (frame(Kind::Message, 1, None, b"{}"), PartsError::Unexpected),
        ];
        for (second, error) in table {
            let mut receiving = Receiving::new(10);
            assert_eq!(receiving.take(first()), Ok(Received::Part));
            assert_eq!(receiving.take(second), Err(error));
        }
        let mut receiving = Receiving::new(3);
        assert_eq!(receiving.take(first()), Err(PartsError::TooLong(4)));
        let mut receiving = Receiving::new(3);
        let alone = frame(Kind::Part, 0, None, b"c");
        assert_eq!(receiving.take(alone), Err(PartsError::Unexpected));
    }
}
