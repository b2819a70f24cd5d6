//! A payload that is no JSON: where the next frame begins, and whether the length was at fault.
//!
//! Peers count characters instead of bytes, forget the empty line, or are off by one. Then the payload's end says
//! nothing, so the next frame is looked for from its beginning: one wrong length costs one message. Knows where
//! values end (`value.rs`); must not know what they say: whoever reads the payload tells that it is no JSON.

use super::{DecodeState, DecodeStep, Decoder, PREFIX};
use crate::wire::Framing;
use crate::wire::frame::HeaderFault;
use crate::wire::header::{OPENER_LENGTH, find_opener};
use crate::wire::value::{Extent, ValueScan, opener_in};

/// So many bytes may be looked at again beyond twice what came (F27): else a stream of headers with large
/// lengths, each in the payload of the one before, would cost the square of its size.
const AGAIN: u64 = 1 << 20;

/// The frame that was given out last, as long as its bytes are still there.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastFrame {
    pub(super) framing: Framing,
    /// How many bytes stand before `head`: the payload, or the line with its end.
    pub(super) taken: usize,
    /// Where in the stream its header or line began.
    pub(super) began: u64,
}

/// A payload in doubt; `head` is where it begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doubt {
    began: u64,
    /// The length that the header gave.
    given: usize,
    /// Whether the fault was reported.
    told: bool,
    /// Whether the length counts, whatever stands there.
    trusted: bool,
    scan: ValueScan,
}

impl Doubt {
    pub(super) fn new(began: u64, given: usize) -> Self {
        Self { began, given, told: false, trusted: false, scan: ValueScan::default() }
    }

    /// What a bad header left behind, of any length.
    pub(super) fn after_a_bad_header(began: u64) -> Self {
        Self { told: true, ..Self::new(began, 0) }
    }
}

impl Decoder {
    /// The message that was given out last is no JSON. If it was framed, the next frame is a
    /// [`Broken`](super::Frame::Broken), which says whether the length was wrong; then comes what follows the payload by
    /// its own looks. If it was a line in which a header begins, the next frame is that header's.
    ///
    /// To be called before more bytes are taken in. On a socket it does nothing, because there all has to be as it
    /// says. Returns whether a `Broken` follows.
    pub fn distrust(&mut self) -> bool {
        let Some(LastFrame { framing, taken, began }) = self.last.take() else { return false };
        if self.socket.is_some() {
            return false;
        }
        if framing == Framing::Lines {
            let line = &self.buf[self.head - taken..self.head];
            if let Some(at) = opener_in(line).filter(|at| *at > 0) {
                self.take_back(taken - at);
            }
            return false;
        }
        self.take_back(taken);
        let mut doubt = Doubt::new(began, taken);
        self.again += taken as u64;
        doubt.trusted = self.again > 2 * self.offset + AGAIN;
        self.state = DecodeState::Doubt(doubt);
        true
    }

    /// Nothing more can be read for now: a payload in doubt is reported as it is, instead of when the next bytes tell
    /// how long it is. Says whether there is a frame now.
    pub fn pause(&mut self) -> bool {
        match &mut self.state {
            DecodeState::Doubt(doubt) if !doubt.told => {
                doubt.told = true;
                self.paused = true;
                true
            }
            _ => false,
        }
    }

    fn take_back(&mut self, bytes: usize) {
        self.head -= bytes;
        self.offset -= bytes as u64;
        self.searched = 0;
        self.state = DecodeState::Start;
    }

    pub(super) fn doubt(&mut self, mut doubt: Doubt) -> DecodeStep {
        if std::mem::take(&mut self.paused) {
            return self.broken(doubt, None);
        }
        let before = doubt.scan.at();
        let limit = self.limits.message;
        let rest = &self.buf[self.head..];
        let rest = &rest[..rest.len().min(limit + 1)];
        let found = match doubt.trusted {
            true => Extent::Ends(doubt.given),
            false => doubt.scan.go_on(rest, doubt.given),
        };
        let no_more = self.ended || rest.len() > limit;
        let mut searched = doubt.scan.at().saturating_sub(before);
        let at = match found {
            Extent::Ends(at) | Extent::Cut(at) => Some(at),
            Extent::NoValue => {
                // A header may begin inside the payload and end behind it.
                let enough = (doubt.given + OPENER_LENGTH).min(limit);
                if rest.len() < enough && !no_more {
                    return self.doubt_on(doubt);
                }
                let near = &rest[..rest.len().min(enough)];
                searched += near.len();
                find_opener(near)
            }
            Extent::Open if !no_more => {
                self.count(searched);
                return self.doubt_on(doubt);
            }
            Extent::Open => doubt.scan.opener_in_the_open_string(rest),
        };
        self.count(searched);
        self.decide(doubt, at)
    }

    /// More bytes are needed.
    fn doubt_on(&mut self, doubt: Doubt) -> DecodeStep {
        self.state = DecodeState::Doubt(doubt);
        DecodeStep::Starved
    }

    /// The payload ends here; if nothing tells where, at the length that was given.
    fn decide(&mut self, doubt: Doubt, at: Option<usize>) -> DecodeStep {
        let given = doubt.given;
        let rest = self.rest();
        let Some(at) = at else {
            if rest.len() < given {
                self.take(rest.len());
                return match doubt.told {
                    true => self.enter(DecodeState::Start),
                    false => self.bad_header(HeaderFault::Unfinished, doubt.began),
                };
            }
            return self.leave(doubt, None, given);
        };
        // Blank bytes behind the value belong to it.
        let between = rest.get(at.min(given)..at.max(given));
        match between.is_some_and(|between| between.trim_ascii().is_empty()) {
            true => self.leave(doubt, None, at.max(given)),
            false => self.leave(doubt, Some(at), at),
        }
    }

    /// Reports the payload, unless that was done, and goes on behind it.
    fn leave(&mut self, doubt: Doubt, found: Option<usize>, taken: usize) -> DecodeStep {
        let step = match doubt.told {
            true => DecodeStep::Again,
            false => self.broken(doubt, found),
        };
        self.take(taken);
        // Where the length was right, so is what follows.
        self.state = match found {
            None => DecodeState::Start,
            Some(_) => DecodeState::Resync,
        };
        step
    }

    fn broken(&self, doubt: Doubt, found: Option<usize>) -> DecodeStep {
        let length = found.unwrap_or(doubt.given).min(PREFIX).min(self.rest().len());
        let (from, given) = (self.head, doubt.given);
        DecodeStep::Broken { from, to: from + length, given, found, offset: doubt.began }
    }
}
