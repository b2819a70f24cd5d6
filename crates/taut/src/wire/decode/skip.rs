//! What is skipped: the rest of what was too long, and what follows a bad header.

use super::{DecodeState, DecodeStep, Decoder};
use crate::wire::header::find_opener;

impl Decoder {
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
        let whole = matches!(
            (line.first(), line.last()),
            (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']'))
        );
        if whole {
            return self.enter(DecodeState::Start);
        }
        // The body that the bad header left nameless ends where the next header begins.
        match find_opener(&self.rest()[..end]) {
            Some(at) => {
                self.take(at);
                self.enter(DecodeState::Start)
            }
            None if matches!(line.first(), Some(b'{' | b'[')) => self.enter(DecodeState::Start),
            None => {
                self.take(end);
                DecodeStep::Again
            }
        }
    }
}
