//! What is skipped: the rest of what was too long, and what follows a bad header.

use super::doubt::Doubt;
use super::{DecodeState, DecodeStep, Decoder, PREFIX};
use crate::wire::value::{ValueScan, is_whole, opener_in};
use crate::wire::{BOM, Framing};

/// A message for which there was no memory: its first bytes are held, the rest of what came is not.
#[derive(Clone, Copy, Debug)]
pub(super) struct GivenUp {
    framing: Framing,
    kept: usize,
    dropped: usize,
    /// What has not come yet of a framed one.
    left: u64,
}

impl Decoder {
    /// Makes room for more of a message, or gives it up and has room for what follows it.
    pub(super) fn reserve(&mut self, bytes: usize) {
        if self.buf.try_reserve(bytes).is_err() {
            self.give_up();
            self.buf.reserve(bytes);
        }
    }

    /// There is no memory for the rest of a message: it is given up as one over the limit is. Nothing
    /// else is held.
    pub(super) fn give_up(&mut self) {
        let held = self.buf.len();
        let (framing, left) = match self.state {
            DecodeState::Body { length, .. } => (Framing::Headers, (length - held) as u64),
            _ => (Framing::Lines, 0),
        };
        self.buf.truncate(PREFIX);
        self.buf.shrink_to_fit();
        self.searched = 0;
        let kept = self.buf.len();
        let given_up = GivenUp { framing, kept, dropped: held - kept, left };
        self.state = DecodeState::GivenUp(given_up);
    }

    pub(super) fn given_up(
        &mut self,
        GivenUp { framing, kept, dropped, left }: GivenUp,
    ) -> DecodeStep {
        let (from, offset) = (self.head, self.offset);
        self.take(kept);
        self.offset += dropped as u64;
        self.state = match framing {
            Framing::Lines => DecodeState::SkipLine { resync: false },
            Framing::Headers => DecodeState::SkipBody { left },
        };
        DecodeStep::Cut { from, to: from + kept, framing, offset, too_long: true }
    }

    /// The first bytes of a body that is over the limit; the rest of it is skipped.
    pub(super) fn long_body(&mut self, length: u64, offset: u64) -> DecodeStep {
        let wanted = PREFIX.min(self.limits.message);
        let came = self.rest().len();
        let lost = self.socket.is_none() && self.ends_early(wanted, &mut ValueScan::default());
        if lost && let Ok(given) = usize::try_from(length) {
            return self.enter(DecodeState::Doubt(Doubt::new(offset, given)));
        }
        if came < wanted && !self.ended {
            return DecodeStep::Starved;
        }
        let kept = came.min(wanted);
        let from = self.head;
        self.take(kept);
        self.state = DecodeState::SkipBody { left: length - kept as u64 };
        DecodeStep::Cut { from, to: from + kept, framing: Framing::Headers, offset, too_long: true }
    }

    pub(super) fn skip_line(&mut self, resync: bool) -> DecodeStep {
        match self.newline(usize::MAX) {
            Some(at) => {
                self.take(at + 1);
                self.enter(if resync { DecodeState::Resync } else { DecodeState::Start })
            }
            None => {
                self.take(self.rest().len());
                DecodeStep::Starved
            }
        }
    }

    pub(super) fn skip_body(&mut self, left: u64) -> DecodeStep {
        let came = self.rest().len();
        let skipped = usize::try_from(left).map_or(came, |left| left.min(came));
        self.take(skipped);
        let left = left - skipped as u64;
        if left == 0 {
            return self.enter(DecodeState::Start);
        }
        self.state = DecodeState::SkipBody { left };
        DecodeStep::Starved
    }

    /// After a bad header nothing is known but that lines and header names can be recognised.
    pub(super) fn resync(&mut self) -> DecodeStep {
        let newline = self.newline(usize::MAX);
        let len = newline.unwrap_or_else(|| self.rest().len());
        if len > self.limits.message {
            return self.enter(DecodeState::SkipLine { resync: true });
        }
        let end = match newline {
            Some(at) => at + 1,
            None if self.ended && len > 0 => len,
            None => return DecodeStep::Starved,
        };
        let line = self.rest()[..end].trim_ascii();
        let line = line.strip_prefix(BOM).unwrap_or(line);
        if is_whole(line) {
            return self.enter(DecodeState::Start);
        }
        let opens = matches!(line.first(), Some(b'{' | b'['));
        // The body that the bad header left nameless ends where the next header begins.
        let opener = opener_in(&self.rest()[..end]);
        self.count(end);
        match opener {
            Some(at) => {
                self.take(at);
                self.enter(DecodeState::Start)
            }
            None if opens && newline.is_some() => {
                // It may go on for several lines.
                let doubt = Doubt::after_a_bad_header(self.offset);
                self.enter(DecodeState::Doubt(doubt))
            }
            None => {
                self.take(end);
                DecodeStep::Again
            }
        }
    }
}
