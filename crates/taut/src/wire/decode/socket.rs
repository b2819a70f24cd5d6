//! The start of a frame on a socket, where the first frame decides and nothing is skipped.

use super::{BOM, DecodeState, DecodeStep, Decoder, SocketKind};
use crate::wire::{Framing, Opening};

impl Decoder {
    /// Whether it stands between two frames: no byte of the next one has come.
    #[must_use]
    pub fn is_between(&self) -> bool {
        matches!(self.state, DecodeState::Start | DecodeState::Refused) && self.held() == 0
    }

    /// The start of a frame on a socket, which has to be of the kind that the first frame was of.
    pub(super) fn start_on_socket(&mut self, kind: SocketKind) -> DecodeStep {
        let blank = self.rest().len() - self.rest().trim_ascii_start().len();
        self.take(blank);
        let framing = match Opening::of(self.rest()) {
            Opening::Undecided if self.ended && !self.rest().is_empty() => return self.refuse(),
            Opening::Undecided => return DecodeStep::Starved,
            Opening::Lines => Framing::Lines,
            Opening::Headers => Framing::Headers,
            _ => return self.refuse(),
        };
        match kind {
            SocketKind::Decided(decided) if decided != framing => return self.refuse(),
            SocketKind::Undecided => {
                self.socket = Some(SocketKind::Decided(framing));
                if self.rest().starts_with(BOM) {
                    self.take(BOM.len());
                    self.bom = true;
                }
            }
            SocketKind::Decided(_) => {}
        }
        match framing {
            Framing::Lines => self.enter(DecodeState::Line),
            Framing::Headers => self.start_header(),
        }
    }

    pub(super) fn refuse(&mut self) -> DecodeStep {
        self.state = DecodeState::Refused;
        DecodeStep::Refused { offset: self.offset }
    }
}
