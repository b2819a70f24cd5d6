//! Finds known texts however their characters are written: with the escapes of JSON, at any depth of JSON in
//! JSON, with percent signs, as in addresses, or with the entities of XML.
//!
//! Knows escapes; must not know which texts are looked for, nor what becomes of them. Pure. Reads byte by
//! byte, so that a text may come in pieces. A depth at which the text reads as at the depth above costs
//! nothing: it is given up at once.

use std::ops::Range;

use super::automaton::{Automaton, Cursor, Unit};

/// How often JSON may stand in a string of JSON.
pub(super) const DEEPEST: usize = 6;

/// What reads as one character, or as one byte of it.
enum Escape {
    /// More bytes decide.
    More,
    Not,
    /// These bytes, written with so many.
    Is([u8; 4], usize, usize),
}

/// Reads an escape that may stand at the front.
type ReadEscape = fn(&[u8]) -> Escape;

/// One depth: the text as it reads there.
#[derive(Clone, Debug, Default)]
struct Depth {
    cursor: Cursor,
    /// The same as it reads in addresses and in XML, where that differs.
    others: [Option<Box<Decoded>>; 2],
}

/// What begins an escape of any kind.
pub(super) const ESCAPES: [u8; 3] = [b'\\', OTHERS[0].0, OTHERS[1].0];

/// What begins an escape of addresses and of XML, and reads it.
const OTHERS: [(u8, ReadEscape); 2] = [(b'%', percent), (b'&', entity)];

#[derive(Clone, Debug, Default)]
struct Decoded {
    /// What may be an escape once more has come.
    pending: Vec<Unit>,
    cursor: Cursor,
}

/// What stands in a string of the depth above.
#[derive(Debug)]
struct Inside {
    pending: Vec<Unit>,
    depth: Depth,
}

/// A reading of one text at all depths.
#[derive(Debug, Default)]
pub(super) struct Spellings {
    text: Depth,
    /// The deeper ones, as far as they differ.
    inside: Vec<Inside>,
}

impl Spellings {
    /// Whether what was read so far has no part in what comes: no text and no escape has begun.
    pub(super) fn is_idle(&self) -> bool {
        self.inside.is_empty()
            && self.text.others.iter().all(Option::is_none)
            && self.text.cursor.depth() == 0
    }

    /// Reads one more byte; adds the places where a text was found.
    pub(super) fn push(&mut self, known: &Automaton, unit: Unit, found: &mut Vec<Range<u64>>) {
        self.feed(known, 0, unit, found);
        while let Some(top) = self.inside.last() {
            let above = match self.inside.len() {
                1 => &self.text,
                deeper => &self.inside[deeper - 2].depth,
            };
            if !top.pending.is_empty() || !top.depth.same(above) {
                break;
            }
            self.inside.pop();
        }
    }

    fn feed(&mut self, known: &Automaton, at: usize, unit: Unit, found: &mut Vec<Range<u64>>) {
        if unit.byte == b'\\' && at == self.inside.len() && at < DEEPEST {
            let depth = self.depth(at).clone();
            self.inside.push(Inside { pending: Vec::new(), depth });
        }
        self.depth(at).step(known, unit, found);
        if at < self.inside.len() {
            self.inside[at].pending.push(unit);
            self.decode(known, at, false, found);
        }
    }

    fn depth(&mut self, at: usize) -> &mut Depth {
        match at {
            0 => &mut self.text,
            deeper => &mut self.inside[deeper - 1].depth,
        }
    }

    fn decode(&mut self, known: &Automaton, at: usize, ended: bool, found: &mut Vec<Range<u64>>) {
        while let Some((bytes, place)) = next(&mut self.inside[at].pending, escape, ended) {
            for byte in bytes.as_slice() {
                let unit = Unit { byte: *byte, from: place.start, to: place.end };
                self.feed(known, at + 1, unit, found);
            }
        }
    }

    /// No more comes: what is half an escape is none.
    pub(super) fn end(&mut self, known: &Automaton, found: &mut Vec<Range<u64>>) {
        for at in 0..=DEEPEST {
            if at > self.inside.len() {
                break;
            }
            self.depth(at).end(known, found);
            if at < self.inside.len() {
                self.decode(known, at, true, found);
            }
        }
    }

    /// From where on what was read may still turn out to be one of the texts.
    pub(super) fn held(&self) -> Option<u64> {
        let inside = self
            .inside
            .iter()
            .flat_map(|inside| [inside.pending.first().map(|unit| unit.from), inside.depth.held()]);
        inside.chain([self.text.held()]).flatten().min()
    }

    /// Where the beginning of a text stands, of at least so many bytes, at which the reading has arrived.
    pub(super) fn begun(&self, least: usize) -> Option<u64> {
        let depths = self.inside.iter().map(|inside| &inside.depth).chain([&self.text]);
        depths.filter_map(|depth| depth.begun(least)).min()
    }
}

impl Depth {
    fn step(&mut self, known: &Automaton, unit: Unit, found: &mut Vec<Range<u64>>) {
        let before = self.others.iter_mut().zip(OTHERS);
        for (other, _) in before.filter(|(other, (byte, _))| unit.byte == *byte && other.is_none())
        {
            let cursor = self.cursor.clone();
            *other = Some(Box::new(Decoded { pending: Vec::new(), cursor }));
        }
        found.extend(self.cursor.step(known, unit));
        for (other, (_, escape)) in self.others.iter_mut().zip(OTHERS) {
            let Some(decoded) = other else { continue };
            decoded.pending.push(unit);
            decoded.decode(known, escape, false, found);
            if decoded.pending.is_empty() && decoded.cursor.same(&self.cursor) {
                *other = None;
            }
        }
    }

    fn end(&mut self, known: &Automaton, found: &mut Vec<Range<u64>>) {
        for (other, (_, escape)) in self.others.iter_mut().zip(OTHERS) {
            if let Some(other) = other {
                other.decode(known, escape, true, found);
            }
        }
    }

    fn held(&self) -> Option<u64> {
        let others =
            self.others.iter().flatten().flat_map(|other| {
                [other.pending.first().map(|unit| unit.from), other.cursor.begun()]
            });
        others.chain([self.cursor.begun()]).flatten().min()
    }

    fn begun(&self, least: usize) -> Option<u64> {
        let others = self.others.iter().flatten().map(|other| &other.cursor);
        let all = others.chain([&self.cursor]);
        all.filter(|cursor| cursor.depth() >= least).filter_map(Cursor::begun).min()
    }

    fn same(&self, other: &Self) -> bool {
        let plain = |depth: &Self| depth.others.iter().all(Option::is_none);
        plain(self) && plain(other) && self.cursor.same(&other.cursor)
    }
}

impl Decoded {
    fn decode(
        &mut self,
        known: &Automaton,
        escape: ReadEscape,
        ended: bool,
        found: &mut Vec<Range<u64>>,
    ) {
        while let Some((bytes, place)) = next(&mut self.pending, escape, ended) {
            for byte in bytes.as_slice() {
                let unit = Unit { byte: *byte, from: place.start, to: place.end };
                found.extend(self.cursor.step(known, unit));
            }
        }
    }
}

/// The bytes of one character.
struct Bytes([u8; 4], usize);

impl Bytes {
    fn as_slice(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

/// Takes what reads as one character from the front, once that is known.
fn next(pending: &mut Vec<Unit>, escape: ReadEscape, ended: bool) -> Option<(Bytes, Range<u64>)> {
    let first = *pending.first()?;
    let mut bytes = [0; 12];
    let long = pending.len().min(bytes.len());
    bytes.iter_mut().zip(pending.iter()).for_each(|(byte, unit)| *byte = unit.byte);
    let (bytes, used) = match escape(&bytes[..long]) {
        Escape::More if !ended => return None,
        Escape::Is(bytes, count, used) => (Bytes(bytes, count), used),
        Escape::More | Escape::Not => (Bytes([first.byte, 0, 0, 0], 1), 1),
    };
    let last = pending[used - 1];
    pending.drain(..used);
    Some((bytes, first.from..last.to))
}

fn one(byte: u8, used: usize) -> Escape {
    Escape::Is([byte, 0, 0, 0], 1, used)
}

fn letter(letter: char, used: usize) -> Escape {
    let mut bytes = [0; 4];
    let count = letter.encode_utf8(&mut bytes).len();
    Escape::Is(bytes, count, used)
}

/// A number of exactly so many hexadecimal digits.
fn hex(digits: &[u8], count: usize) -> Result<u32, Escape> {
    let mut number = 0;
    for digit in digits.iter().take(count) {
        let digit = char::from(*digit).to_digit(16).ok_or(Escape::Not)?;
        number = number << 4 | digit;
    }
    if digits.len() < count { Err(Escape::More) } else { Ok(number) }
}

/// `%XX`, a byte.
fn percent(bytes: &[u8]) -> Escape {
    if bytes[0] != b'%' {
        return Escape::Not;
    }
    match hex(&bytes[1..], 2) {
        Ok(number) => one(u8::try_from(number).unwrap_or(0), 3),
        Err(other) => other,
    }
}

/// `&amp;`, `&#38;` and the like.
fn entity(bytes: &[u8]) -> Escape {
    const NAMES: [(&[u8], u8); 5] =
        [(b"amp;", b'&'), (b"lt;", b'<'), (b"gt;", b'>'), (b"quot;", b'"'), (b"apos;", b'\'')];
    if bytes[0] != b'&' {
        return Escape::Not;
    }
    let rest = &bytes[1..];
    if rest.first() == Some(&b'#') {
        let (from, radix) =
            if matches!(rest.get(1), Some(b'x' | b'X')) { (2, 16) } else { (1, 10) };
        let digit = |byte: &&u8| char::from(**byte).is_digit(radix);
        let digits = rest[from..].iter().take_while(digit).count();
        let number = std::str::from_utf8(&rest[from..from + digits]).unwrap_or_default();
        let number = u32::from_str_radix(number, radix).ok().and_then(char::from_u32);
        return match (rest.get(from + digits), number) {
            (None, _) if digits <= 7 => Escape::More,
            (Some(b';'), Some(c)) => letter(c, 1 + from + digits + 1),
            _ => Escape::Not,
        };
    }
    if let Some((name, byte)) = NAMES.iter().find(|(name, _)| rest.starts_with(name)) {
        return one(*byte, 1 + name.len());
    }
    if NAMES.iter().any(|(name, _)| name.starts_with(rest)) { Escape::More } else { Escape::Not }
}

/// The escapes of JSON, and those of other languages that look like them: `\'`, `\xNN`, `\u{N}`, `\UNNNNNNNN`.
fn escape(bytes: &[u8]) -> Escape {
    if bytes[0] != b'\\' {
        return Escape::Not;
    }
    match bytes.get(1) {
        None => Escape::More,
        Some(byte @ (b'"' | b'\\' | b'/' | b'\'')) => one(*byte, 2),
        Some(b'b') => one(8, 2),
        Some(b'f') => one(12, 2),
        Some(b'n') => one(b'\n', 2),
        Some(b'r') => one(b'\r', 2),
        Some(b't') => one(b'\t', 2),
        Some(b'x') => match hex(&bytes[2..], 2) {
            Ok(number) => one(u8::try_from(number).unwrap_or(0), 4),
            Err(other) => other,
        },
        Some(b'u') if bytes.get(2) == Some(&b'{') => in_braces(&bytes[3..]),
        Some(b'u') => unicode(bytes).unwrap_or_else(|other| other),
        Some(b'U') => hex(&bytes[2..], 8).map_or_else(
            |other| other,
            |number| char::from_u32(number).map_or(Escape::Not, |c| letter(c, 10)),
        ),
        Some(_) => Escape::Not,
    }
}

/// The rest of `\u{N}`.
fn in_braces(bytes: &[u8]) -> Escape {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    match bytes.get(digits) {
        None if digits <= 6 => Escape::More,
        Some(b'}') if (1..=6).contains(&digits) => hex(bytes, digits)
            .ok()
            .and_then(char::from_u32)
            .map_or(Escape::Not, |c| letter(c, digits + 4)),
        _ => Escape::Not,
    }
}

/// `\uXXXX`, or two of them that are one character.
fn unicode(bytes: &[u8]) -> Result<Escape, Escape> {
    let first = hex(&bytes[2..], 4)?;
    if let Some(c) = char::from_u32(first) {
        return Ok(letter(c, 6));
    }
    let rest = &bytes[6..];
    if rest.iter().zip(b"\\u").any(|(byte, wanted)| byte != wanted) {
        return Err(Escape::Not);
    }
    let second = hex(rest.get(2..).ok_or(Escape::More)?, 4)?;
    let unit = |number: u32| u16::try_from(number).unwrap_or(0);
    let pair = [unit(first), unit(second)];
    let c = char::decode_utf16(pair).next().and_then(Result::ok).ok_or(Escape::Not)?;
    Ok(letter(c, 12))
}

/// The beginning of a text as it reads at each depth, with the place after what each byte was written with. Of
/// the text at most so many bytes are read.
pub(super) fn readings(text: &[u8], most: usize) -> Vec<Vec<(u8, usize)>> {
    let text = &text[..text.len().min(most)];
    let mut all = vec![text.iter().copied().zip(1..).collect::<Vec<_>>()];
    let is_escaped = |reading: &[(u8, usize)]| reading.iter().any(|(byte, _)| *byte == b'\\');
    while all.len() <= DEEPEST && all.last().is_some_and(|last| is_escaped(last)) {
        let mut pending = Vec::new();
        let mut reading = Vec::new();
        let last = all.last().map_or(&[][..], Vec::as_slice);
        for (at, (byte, to)) in last.iter().enumerate() {
            pending.push(Unit { byte: *byte, from: 0, to: *to as u64 });
            let ended = at + 1 == last.len();
            while let Some((bytes, place)) = next(&mut pending, escape, ended) {
                let to = usize::try_from(place.end).unwrap_or(usize::MAX);
                reading.extend(bytes.as_slice().iter().map(|byte| (*byte, to)));
            }
        }
        all.push(reading);
    }
    all
}
