//! The values that are known to be secret, and the spellings that are looked for as they are.
//!
//! Shared by all that mask: a value that is hidden later is masked from then on everywhere. Escapes are not
//! spelled out here; `spellings.rs` reads them. Must not print.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex};

use super::automaton::Automaton;
use super::looks::{LONG, SHORTEST, is_secret, parts};
use super::masker::{CUT, Masker};
use super::spellings::{DEEPEST, ESCAPES, readings};
use crate::lock::lock;

/// Values that are longer are not looked for as base64: it would take several times their memory.
const LONGEST_BASE64: usize = 16 << 10;

/// Secret values that are known. Clones share them.
#[derive(Clone, Default)]
pub struct Secrets(Arc<Mutex<KnownValues>>);

#[derive(Default)]
struct KnownValues {
    texts: BTreeSet<Vec<u8>>,
    ready: Option<Arc<Patterns>>,
}

/// What is looked for.
pub(super) struct Patterns {
    pub(super) automaton: Automaton,
    texts: Vec<Vec<u8>>,
    /// All runs of [`SHORTEST`] bytes in them: most texts that follow a cut have none of these.
    runs: HashSet<[u8; SHORTEST]>,
    longest: usize,
    /// The bytes with which a value, an escape or the mark of a cut may begin.
    begins: [bool; 256],
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl Secrets {
    /// None is known.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Hides the value that a server is given under this name from now on, [if it is one](is_secret), and
    /// the parts of it that may be told alone.
    pub fn hide(&self, name: &str, value: &str) {
        if is_secret(name, value) {
            self.hide_always(value);
        }
    }

    /// The same whatever its name and look, unless it is too short.
    pub fn hide_always(&self, value: &str) {
        let mut known = lock(&self.0);
        for text in parts(value).into_iter().flat_map(forms) {
            if known.texts.insert(text) {
                known.ready = None;
            }
        }
    }

    /// The text with all known values hidden, however they are spelled. Where it was cut, marked by `…`, what
    /// is left of a value is hidden, too.
    #[must_use]
    pub fn masked<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.masked_after(text, false)
    }

    /// The same for a text whose beginning was cut off, perhaps in the middle of a value.
    #[must_use]
    pub fn masked_tail<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.masked_after(text, true)
    }

    fn masked_after<'t>(&self, text: &'t str, cut: bool) -> Cow<'t, str> {
        let patterns = self.patterns();
        if patterns.texts.is_empty() {
            return Cow::Borrowed(text);
        }
        let (mut out, mut places) = (Vec::new(), Vec::new());
        let mut masker = Masker::values(self);
        if cut {
            masker.begins_in_the_middle(text.as_bytes());
        }
        masker.apply(text.as_bytes(), &mut out, &mut places);
        if places.is_empty() {
            return Cow::Borrowed(text);
        }
        Cow::Owned(String::from_utf8_lossy(&out).into_owned())
    }

    pub(super) fn patterns(&self) -> Arc<Patterns> {
        let mut known = lock(&self.0);
        let KnownValues { texts, ready } = &mut *known;
        Arc::clone(ready.get_or_insert_with(|| Arc::new(Patterns::new(texts))))
    }
}

impl Patterns {
    fn new(texts: &BTreeSet<Vec<u8>>) -> Self {
        let runs = texts.iter().flat_map(|text| text.windows(SHORTEST));
        let automaton = Automaton::new(texts.iter().map(Vec::as_slice));
        let mut begins = [false; 256];
        for byte in 0..=u8::MAX {
            begins[usize::from(byte)] =
                automaton.begins(byte) || ESCAPES.contains(&byte) || CUT.contains(&byte);
        }
        Self {
            automaton,
            begins,
            runs: runs.filter_map(|run| run.try_into().ok()).collect(),
            longest: texts.iter().map(Vec::len).max().unwrap_or(0),
            texts: texts.iter().cloned().collect(),
        }
    }

    /// How many bytes at the front are no part of a value, of an escape or of the mark of a cut: most of a text, so
    /// they are passed quickly. What follows a percent sign decides whether it is an escape.
    pub(super) fn plain(&self, text: &[u8]) -> usize {
        let mut rest = text;
        while let Some(at) = rest.iter().position(|byte| self.begins[usize::from(*byte)]) {
            rest = &rest[at..];
            match rest {
                [b'%', next, ..]
                    if !self.automaton.begins(b'%')
                        && !next.is_ascii_hexdigit()
                        && *next != b'\\' =>
                {
                    rest = &rest[1..];
                }
                _ => return text.len() - rest.len(),
            }
        }
        text.len()
    }

    /// How much of a text that was cut off before is the end of a value, as it reads at any depth.
    pub(super) fn end_of_one(&self, text: &[u8]) -> usize {
        // Hardly any text goes on as a value does; the others are not read further than this.
        let begins = |reading: &Vec<(u8, usize)>| {
            let mut run = [0; SHORTEST];
            let bytes = reading.iter().map(|(byte, _)| *byte);
            run.iter_mut().zip(bytes).for_each(|(byte, read)| *byte = read);
            self.runs.contains(&run)
        };
        if !readings(text, SHORTEST << DEEPEST).iter().any(begins) {
            return 0;
        }
        readings(text, self.longest.saturating_mul(6))
            .into_iter()
            .filter_map(|reading| {
                let bytes: Vec<u8> = reading.iter().map(|(byte, _)| *byte).collect();
                let long = self.longest_end(&bytes)?;
                Some(reading[long - 1].1)
            })
            .max()
            .unwrap_or(0)
    }

    fn longest_end(&self, bytes: &[u8]) -> Option<usize> {
        let run: [u8; SHORTEST] = bytes.get(..SHORTEST)?.try_into().ok()?;
        if !self.runs.contains(&run) {
            return None;
        }
        let ends = self.texts.iter().flat_map(|text| {
            let cuts = 1..=text.len().saturating_sub(SHORTEST);
            cuts.map(|cut| &text[cut..]).filter(|end| bytes.starts_with(end)).map(<[u8]>::len)
        });
        ends.max()
    }
}

/// A secret as it may stand in a text, apart from escapes: as it is, on one line, as a form has it, as base64.
fn forms(part: &str) -> Vec<Vec<u8>> {
    let on_a_line = part.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut all = vec![part.as_bytes().to_vec()];
    if on_a_line != part {
        all.push(on_a_line.clone().into_bytes());
    }
    if on_a_line.contains(' ') {
        all.push(part.replace(' ', "+").into_bytes());
    }
    if (LONG..=LONGEST_BASE64).contains(&part.len()) {
        all.extend(base64(part.as_bytes()));
    }
    all.retain(|text| text.len() >= SHORTEST);
    all
}

/// A value in base64 wherever it begins in what is encoded: the characters that no other byte has a part in, in
/// both alphabets.
fn base64(value: &[u8]) -> Vec<Vec<u8>> {
    const PLAIN: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut all = Vec::new();
    for (before, skipped) in [(0, 0), (1, 2), (2, 3)] {
        let bytes: Vec<u8> = std::iter::repeat_n(&0, before).chain(value).copied().collect();
        let whole = bytes.len() * 8 / 6;
        let character = |at: usize| {
            let byte = |at: usize| u16::from(bytes.get(at).copied().unwrap_or(0));
            let (first, shift) = (at * 6 / 8, at * 6 % 8);
            let bits = (byte(first) << 8 | byte(first + 1)) >> (10 - shift);
            PLAIN[usize::from(bits & 63)]
        };
        let text: Vec<u8> = (skipped..whole).map(character).collect();
        let url = |byte: &u8| match byte {
            b'+' => b'-',
            b'/' => b'_',
            other => *other,
        };
        all.push(text.iter().map(url).collect());
        all.push(text);
    }
    all
}
