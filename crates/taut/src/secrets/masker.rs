//! Hides secrets in a text that comes in pieces.
//!
//! What may still become a part of a secret is held back until more has come, so that no cut between two
//! pieces lets a part of it through. Everything else stays byte for byte. Pure; memory is bounded by the
//! longest known value, not by the text.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::automaton::Unit;
use super::known::{Patterns, Secrets};
use super::looks::SHORTEST;
use super::named::{BEFORE, End, Finding, Named};
use super::spellings::Spellings;

/// What stands in place of a secret.
pub const MASK: &str = "***";

/// A text is read in pieces of this size.
const PIECE: usize = 64 << 10;

/// The mark of a cut, as excerpts have it.
pub(super) const CUT: &[u8] = "…".as_bytes();

/// Finds and hides secrets.
#[derive(Debug, Default)]
pub struct Masker {
    /// Nothing is hidden without them.
    secrets: Option<Secrets>,
    /// Also values of names that sound secret, and tokens.
    named: Option<Named>,
    text: MaskedText,
}

/// What was read of a text.
#[derive(Default)]
struct MaskedText {
    patterns: Option<Arc<Patterns>>,
    spellings: Spellings,
    /// The text from `base` on, as far as it is needed.
    bytes: Vec<u8>,
    base: u64,
    /// Up to where known values were looked for.
    searched: u64,
    /// Up to where names and tokens were looked for.
    judged: u64,
    /// Up to where the text was given out.
    released: u64,
    masks: VecDeque<Mask>,
    open: Option<OpenMask>,
    /// Where the beginning of a value stands before what may be the mark of a cut.
    before_cut: Option<u64>,
    /// Bytes that were given out, and the places of masks among them.
    given: usize,
    places: Vec<usize>,
}

/// The text may have secrets in it.
impl fmt::Debug for MaskedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaskedText").field("held", &self.bytes.len()).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Mask {
    place: Range<u64>,
    /// Stands around the mask.
    quote: Vec<u8>,
    given: bool,
}

/// A secret whose end has not come yet.
struct OpenMask {
    from: u64,
    quote: Vec<u8>,
    end: End,
}

impl Masker {
    /// Hides nothing.
    #[must_use]
    pub fn off() -> Self {
        Self::default()
    }

    /// Hides the values that are known, those of names that [sound secret](super::is_secret_name), and tokens.
    #[must_use]
    pub fn new(secrets: &Secrets) -> Self {
        Self { named: Some(Named::default()), ..Self::values(secrets) }
    }

    /// Hides the values that are known, and nothing else.
    #[must_use]
    pub fn values(secrets: &Secrets) -> Self {
        Self { secrets: Some(secrets.clone()), ..Self::default() }
    }

    /// Another that hides the same, for another text at the same time.
    #[must_use]
    pub fn another(&self) -> Self {
        let named = self.named.as_ref().map(|_| Named::default());
        Self { secrets: self.secrets.clone(), named, text: MaskedText::default() }
    }

    /// Whether it hides anything.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.secrets.is_some()
    }

    /// How many bytes are held back.
    #[must_use]
    pub fn held(&self) -> usize {
        self.text.held()
    }

    /// Appends a whole text with its secrets hidden, and the place of each mask in what was appended.
    pub fn apply(&mut self, text: &[u8], out: &mut Vec<u8>, places: &mut Vec<usize>) {
        self.apply_all(text, false, out, places);
    }

    /// The same for a text that was cut: its end may be the beginning of a known value.
    pub fn apply_to_cut(&mut self, text: &[u8], out: &mut Vec<u8>, places: &mut Vec<usize>) {
        self.apply_all(text, true, out, places);
    }

    fn apply_all(&mut self, text: &[u8], cut: bool, out: &mut Vec<u8>, places: &mut Vec<usize>) {
        for piece in text.chunks(PIECE) {
            self.take(piece, out);
        }
        self.finish(cut, out);
        places.append(&mut self.text.places);
        self.text = MaskedText::default();
    }

    /// Takes the next piece of a text and appends what can be given out.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        self.take(piece, out);
        self.text.places.clear();
    }

    fn take(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        let Some(secrets) = &self.secrets else {
            out.extend_from_slice(piece);
            return;
        };
        self.text.know(secrets.patterns());
        self.text.bytes.extend_from_slice(piece);
        self.text.search();
        self.text.judge(self.named.as_mut(), false);
        let upto = self.text.safe();
        self.text.release(upto, out);
        self.text.forget();
    }

    /// The text has ended: appends what is left. The next piece begins another text.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        self.finish(false, out);
        self.text = MaskedText::default();
    }

    /// The next text begins in the middle, perhaps of a known value.
    pub(super) fn begins_in_the_middle(&mut self, text: &[u8]) {
        let Some(secrets) = &self.secrets else { return };
        let end = secrets.patterns().end_of_one(text);
        self.text.mask(0..end as u64, Vec::new());
    }

    fn finish(&mut self, cut: bool, out: &mut Vec<u8>) {
        let text = &mut self.text;
        let Some(patterns) = text.patterns.clone() else { return };
        let end = text.base + text.bytes.len() as u64;
        if let Some(from) = text.spellings.begun(SHORTEST).filter(|_| cut) {
            text.mask(from..end, Vec::new());
        }
        let mut found = Vec::new();
        text.spellings.end(&patterns.automaton, &mut found);
        found.into_iter().for_each(|place| text.mask(place, Vec::new()));
        text.judge(self.named.as_mut(), true);
        if let Some(OpenMask { from, quote, .. }) = text.open.take() {
            text.mask(from..end, quote);
        }
        text.release(end, out);
    }
}

impl MaskedText {
    fn held(&self) -> usize {
        let held = self.base + self.bytes.len() as u64 - self.released;
        usize::try_from(held).unwrap_or(usize::MAX)
    }

    /// Looks for these values from now on. If others are known now, what is held back is read again.
    fn know(&mut self, patterns: Arc<Patterns>) {
        if self.patterns.as_ref().is_some_and(|known| !Arc::ptr_eq(known, &patterns)) {
            self.spellings = Spellings::default();
            self.searched = self.released;
            self.before_cut = None;
        }
        self.patterns = Some(patterns);
    }

    /// Where a place of the text is in what is kept.
    fn at(&self, place: u64) -> usize {
        usize::try_from(place - self.base).unwrap_or(usize::MAX)
    }

    /// Looks for known values in what has come.
    fn search(&mut self) {
        let Some(patterns) = self.patterns.clone() else { return };
        let mut found = Vec::new();
        let mut next = self.at(self.searched);
        while next < self.bytes.len() {
            if self.before_cut.is_none() && self.spellings.is_idle() {
                next += patterns.plain(&self.bytes[next..]);
            }
            let at = next;
            next += 1;
            if at == self.bytes.len() {
                break;
            }
            let (byte, from) = (self.bytes[at], self.base + at as u64);
            if byte == CUT[0] {
                self.before_cut = self.spellings.begun(SHORTEST);
            }
            let unit = Unit { byte, from, to: from + 1 };
            self.spellings.push(&patterns.automaton, unit, &mut found);
            if !found.is_empty() {
                found.drain(..).for_each(|place| self.mask(place, Vec::new()));
            }
            if byte == CUT[2] && self.bytes[..=at].ends_with(CUT) {
                if let Some(begun) = self.before_cut.take() {
                    self.mask(begun..from - 2, Vec::new());
                }
                let end = patterns.end_of_one(&self.bytes[at + 1..]) as u64;
                self.mask(from + 1..from + 1 + end, Vec::new());
            } else if byte != CUT[0] && byte != CUT[1] {
                self.before_cut = None;
            }
        }
        self.searched = self.base + self.bytes.len() as u64;
    }

    /// Looks for names and tokens in what has come.
    fn judge(&mut self, named: Option<&mut Named>, whole: bool) {
        let end = self.base + self.bytes.len() as u64;
        let Some(named) = named else {
            self.judged = end;
            return;
        };
        while self.judged < end {
            let at = self.at(self.judged);
            if let Some(mut open) = self.open.take() {
                if open.end.is_at(self.bytes[at]) {
                    let to = self.judged - open.end.behind() as u64;
                    self.mask(open.from..to, open.quote);
                } else {
                    self.open = Some(open);
                    self.judged += 1;
                }
                continue;
            }
            match named.look(&self.bytes, at, whole) {
                Finding::No => self.judged += 1,
                Finding::More => break,
                Finding::Secret { from, quote, end } => {
                    let quote = self.bytes[quote].to_vec();
                    let from = self.base + from as u64;
                    self.judged = from;
                    self.open = Some(OpenMask { from, quote, end });
                }
            }
        }
    }

    /// Up to where nothing can become a part of a secret any more.
    fn safe(&mut self) -> u64 {
        let mut upto = self.judged;
        if let Some(open) = &self.open {
            upto -= open.end.unsure() as u64;
            let (place, quote) = (open.from..upto, open.quote.clone());
            self.mask(place, quote);
        }
        [Some(upto), self.spellings.held(), self.before_cut]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(upto)
    }

    /// Adds a place that is hidden. Those that overlap become one.
    fn mask(&mut self, mut place: Range<u64>, mut quote: Vec<u8>) {
        if place.is_empty() {
            return;
        }
        let mut at = self.masks.len();
        while at > 0 && self.masks[at - 1].place.end > place.start {
            at -= 1;
        }
        let mut given = false;
        while let Some(other) = self.masks.get(at).filter(|other| other.place.start < place.end) {
            place = place.start.min(other.place.start)..place.end.max(other.place.end);
            given |= other.given;
            if let Some(other) = self.masks.remove(at).filter(|_| quote.is_empty()) {
                quote = other.quote;
            }
        }
        self.masks.insert(at, Mask { place, quote, given });
    }

    /// Gives out the text up to a place.
    fn release(&mut self, upto: u64, out: &mut Vec<u8>) {
        let began = out.len();
        while let Some(mask) = self.masks.front_mut().filter(|mask| mask.place.start < upto) {
            let (place, first) = (mask.place.clone(), !mask.given);
            mask.given = true;
            if self.released < place.start {
                let plain = self.at(self.released)..self.at(place.start);
                out.extend_from_slice(&self.bytes[plain]);
            }
            if first {
                let quote = std::mem::take(&mut self.masks[0].quote);
                out.extend_from_slice(&quote);
                self.places.push(self.given + out.len() - began);
                out.extend_from_slice(MASK.as_bytes());
                out.extend_from_slice(&quote);
            }
            self.released = self.released.max(place.end.min(upto));
            let goes_on = self.open.as_ref().is_some_and(|open| open.from < place.end);
            if place.end > upto || goes_on {
                break;
            }
            self.masks.pop_front();
        }
        let inside = self.masks.front().is_some_and(|mask| mask.given);
        if !inside && self.released < upto {
            let plain = self.at(self.released)..self.at(upto);
            out.extend_from_slice(&self.bytes[plain]);
            self.released = upto;
        }
        self.given += out.len() - began;
    }

    /// Lets go of what is not needed any more, once that is the greater part.
    fn forget(&mut self) {
        let needed = self.released.min(self.judged.saturating_sub(BEFORE as u64));
        let gone = usize::try_from(needed.saturating_sub(self.base)).unwrap_or(0);
        if gone > self.bytes.len() / 2 {
            self.bytes.drain(..gone);
            self.base += gone as u64;
        }
    }
}

#[cfg(test)]
#[path = "masker_tests.rs"]
mod tests;
