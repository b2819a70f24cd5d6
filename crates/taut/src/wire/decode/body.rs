//! The payload behind a header: as long as the header says, unless its first bytes show that it ends before.
//!
//! Knows lengths and where values end; must not know what they say.

use super::doubt::{Doubt, LastFrame};
use super::{BOM, DecodeState, DecodeStep, Decoder};
use crate::wire::Framing;
use crate::wire::value::{Extent, ValueScan};

/// How far a payload that has not come whole is searched for its own end. A longer one is waited for.
const EARLY: usize = 64 << 10;

impl Decoder {
    pub(super) fn body(&mut self, length: usize, offset: u64, mut scan: ValueScan) -> DecodeStep {
        if self.rest().len() < length {
            let doubted =
                self.socket.is_none() && (self.ended || self.ends_early(length, &mut scan));
            if doubted {
                return self.enter(DecodeState::Doubt(Doubt::new(offset, length)));
            }
            if self.ended {
                return self.refuse();
            }
            self.state = DecodeState::Body { length, began: offset, scan };
            return DecodeStep::Starved;
        }
        let marked = self.rest().starts_with(BOM) && length >= BOM.len();
        self.bom |= marked;
        let from = self.head + if marked { BOM.len() } else { 0 };
        let to = self.head + length;
        self.take(length);
        self.state = DecodeState::Start;
        let framing = Framing::Headers;
        self.last = Some(LastFrame { framing, taken: length, began: offset });
        DecodeStep::Cut { from, to, framing, offset, too_long: false }
    }

    /// Whether a payload that has not come whole has ended before its length: then the rest of the session need not
    /// be waited for.
    pub(super) fn ends_early(&mut self, given: usize, scan: &mut ValueScan) -> bool {
        let rest = &self.buf[self.head..];
        let near = &rest[..rest.len().min(given).min(EARLY)];
        if self.searched >= EARLY {
            return false;
        }
        let before = scan.at();
        let found = scan.go_on(near, usize::MAX);
        let ends = match found {
            // Blank bytes behind the value belong to it.
            Extent::Ends(at) => !near[at.max(self.searched)..].trim_ascii_start().is_empty(),
            Extent::Cut(_) => true,
            Extent::NoValue | Extent::Open => false,
        };
        self.searched = near.len();
        self.count(scan.at().saturating_sub(before));
        ends
    }
}
