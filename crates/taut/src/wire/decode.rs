//! Bytes → frames, one by one, in either framing.
//!
//! Knows newlines, header blocks and where brackets close; must not know JSON. The rules it keeps:
//!
//! - Where the bytes were cut never shows: the same stream gives the same frames (F7, F11).
//! - Each byte is searched once and moved at most once, however small the pieces are (F27).
//! - It holds at most the limit and one read. What is longer is reported once and skipped (F9, F10).
//! - No bytes are fatal: after each fault there is a next frame (F2, F16).
//!
//! | state | what it waits for | then |
//! |---|---|---|
//! | `Start` | the first byte that is not blank | `Header` or `Line` |
//! | `Line` | a newline | message; over the limit: too long → `SkipLine` |
//! | `Header` | an empty line, at most 8 KiB away | `Body`; over the limit: `LongBody`; bad: `Resync` |
//! | `Body` | so many bytes | message |
//! | `LongBody` | the first bytes of it | too long → `SkipBody` |
//! | `SkipLine`, `SkipBody` | the end of what was too long | `Start` |
//! | `Resync` | a line that looks like a frame | `Start` |
//! | `Doubt` | where a payload that is no JSON ends (`decode/doubt.rs`) | broken → `Start` or `Resync` |
//! | `GivenUp` | nothing: there was no memory for a message | too long → `SkipLine` or `SkipBody` |

mod body;
mod doubt;
mod room;
mod skip;
mod socket;

use doubt::{Doubt, LastFrame};
use room::{AMPLE, LONG, Room};
use skip::GivenUp;

use super::frame::{Frame, HeaderFault, Limits};
use super::header::{HeaderStart, opens_header, read_header};
use super::value::ValueScan;
use super::{BOM, Framing, find, memory};

/// A length beyond this is a broken header, not a message: skipping by it would swallow the rest of
/// the session.
const ABSURD_LENGTH: u64 = 1 << 32;

/// How much of a message that is too long is kept for finding out whose it was. Peers write the id
/// near the front or not at all before their params.
const PREFIX: usize = 4 << 10;

/// Capacity kept when the buffer runs empty; see the encoder's.
const KEEP: usize = 2 << 20;

/// An incremental reader of frames.
#[derive(Debug, Default)]
pub struct Decoder {
    buf: Vec<u8>,
    /// The first byte that belongs to no frame yet.
    head: usize,
    for_read: Room,
    /// How far behind `head` the current state has searched.
    searched: usize,
    /// Where in the stream `head` is.
    offset: u64,
    state: DecodeState,
    bom: bool,
    cr: bool,
    ended: bool,
    limits: Limits,
    socket: Option<SocketKind>,
    last: Option<LastFrame>,
    /// Bytes that were looked at again, because a payload was no JSON.
    again: u64,
    /// A payload in doubt is to be reported now.
    paused: bool,
    /// Bytes searched and moved, so that a test can tell linear from quadratic.
    #[cfg(test)]
    work: u64,
}

#[derive(Clone, Copy, Debug, Default)]
enum DecodeState {
    #[default]
    Start,
    Line,
    Header(HeaderBlock),
    Body {
        length: usize,
        began: u64,
        scan: ValueScan,
    },
    Doubt(Doubt),
    LongBody {
        length: u64,
        began: u64,
    },
    SkipLine {
        resync: bool,
    },
    SkipBody {
        left: u64,
    },
    Resync,
    Refused,
    /// What is held is the beginning of a message for which there was no memory.
    GivenUp(GivenUp),
}

/// What was read of a header block.
#[derive(Clone, Copy, Debug, Default)]
struct HeaderBlock {
    /// Where the next line begins.
    line: usize,
    length: Option<u64>,
    fault: Option<HeaderFault>,
    /// The offset of the block.
    began: u64,
}

/// What is spoken on a socket: decided by its first bytes, for all that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SocketKind {
    Undecided,
    Decided(Framing),
}

/// What [`Decoder::step`] found, by position, so that the borrow can wait.
enum DecodeStep {
    Cut { from: usize, to: usize, framing: Framing, offset: u64, too_long: bool },
    Fault { fault: HeaderFault, offset: u64 },
    Refused { offset: u64 },
    Broken { from: usize, to: usize, given: usize, found: Option<usize>, offset: u64 },
    Again,
    Starved,
}

impl Decoder {
    /// An empty decoder.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// A decoder for a socket, which anybody on the machine may have opened, a web page included: the
    /// first bytes decide on lines or headers for the whole connection, and what does not fit is
    /// [refused](Frame::Refused) instead of skipped.
    #[must_use]
    pub fn for_socket(limits: Limits) -> Self {
        Self { socket: Some(SocketKind::Undecided), ..Self::new(limits) }
    }

    /// Takes in the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).extend_from_slice(bytes);
    }

    /// The buffer itself, with room for a read behind what it holds. Append to it, nothing else.
    ///
    /// Take out all frames first: what is still undecoded is moved to the front.
    pub fn space(&mut self) -> &mut Vec<u8> {
        let bytes = self.for_read.after(self.buf.len());
        let held = self.room(bytes).len();
        self.for_read.offered(held);
        &mut self.buf
    }

    /// The stream has ended: what is left is all there will be.
    pub fn finish(&mut self) {
        self.ended = true;
    }

    /// How many bytes it holds that belong to no frame yet.
    #[must_use]
    pub fn held(&self) -> usize {
        self.buf.len() - self.head
    }

    /// Whether a message has begun and has not ended.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        use DecodeState::{Body, LongBody};
        self.held() > 0 || matches!(self.state, Body { .. } | LongBody { .. })
    }

    /// The next frame, if it is whole.
    pub fn poll_frame(&mut self) -> Option<Frame<'_>> {
        let (from, to, framing, offset, too_long) = loop {
            match self.step() {
                DecodeStep::Again => {}
                DecodeStep::Starved => return None,
                DecodeStep::Fault { fault, offset } => {
                    return Some(Frame::BadHeader { fault, offset });
                }
                DecodeStep::Refused { offset } => {
                    let to = self.buf.len().min(self.head + PREFIX);
                    return Some(Frame::Refused { prefix: &self.buf[self.head..to], offset });
                }
                DecodeStep::Broken { from, to, given, found, offset } => {
                    self.bom = false;
                    let bytes = &self.buf[from..to];
                    return Some(Frame::Broken { bytes, given, found, offset });
                }
                DecodeStep::Cut { from, to, framing, offset, too_long } => {
                    break (from, to, framing, offset, too_long);
                }
            }
        };
        let bom = std::mem::take(&mut self.bom);
        let cr = std::mem::take(&mut self.cr);
        let bytes = self.buf.get(from..to).unwrap_or_default();
        Some(if too_long || (bytes.len() > LONG && !memory::is_there_for(bytes.len())) {
            Frame::TooLong { prefix: &bytes[..bytes.len().min(PREFIX)], framing, offset }
        } else {
            Frame::Message { bytes, framing, offset, bom, cr }
        })
    }

    fn room(&mut self, bytes: usize) -> &mut Vec<u8> {
        // All whole frames are out by now, so what is left is the start of one, and this is the
        // only time it is moved.
        if self.head > 0 {
            self.count(self.buf.len() - self.head);
            self.last = None;
            self.buf.drain(..self.head);
            self.head = 0;
            if self.buf.is_empty() {
                self.buf.shrink_to(KEEP);
            }
        }
        if self.buf.len() > LONG && self.buf.capacity() - self.buf.len() < bytes {
            let ample = self.limits.message.min(AMPLE) + room::MOST;
            // Where there is not so much, what is needed may still be there.
            let _ = self.buf.try_reserve_exact(ample.saturating_sub(self.buf.len()));
        }
        self.reserve(bytes);
        &mut self.buf
    }

    fn step(&mut self) -> DecodeStep {
        match self.state {
            DecodeState::Start => self.start(),
            DecodeState::Line => self.line(),
            DecodeState::Header(block) => self.header(block),
            DecodeState::Body { length, began, scan } => self.body(length, began, scan),
            DecodeState::Doubt(doubt) => self.doubt(doubt),
            DecodeState::LongBody { length, began } => self.long_body(length, began),
            DecodeState::SkipLine { resync } => self.skip_line(resync),
            DecodeState::SkipBody { left } => self.skip_body(left),
            DecodeState::Resync => self.resync(),
            DecodeState::Refused => {
                self.take(self.rest().len());
                DecodeStep::Starved
            }
            DecodeState::GivenUp(what) => self.given_up(what),
        }
    }

    fn rest(&self) -> &[u8] {
        &self.buf[self.head..]
    }

    fn take(&mut self, bytes: usize) {
        self.head += bytes;
        self.offset += bytes as u64;
        self.searched = 0;
    }

    /// So many bytes were searched or moved.
    #[inline]
    #[cfg_attr(not(test), allow(unused_variables, clippy::unused_self))]
    fn count(&mut self, bytes: usize) {
        #[cfg(test)]
        (self.work += bytes as u64);
    }

    fn enter(&mut self, state: DecodeState) -> DecodeStep {
        self.state = state;
        self.searched = 0;
        DecodeStep::Again
    }

    /// The next newline in the current state, counted from `head`.
    fn newline(&mut self, within: usize) -> Option<usize> {
        let until = self.rest().len().min(within);
        let from = self.searched.min(until);
        let found = find::newline(&self.rest()[from..until]);
        self.searched = found.map_or(until, |at| from + at + 1);
        self.count(self.searched - from);
        found.map(|at| from + at)
    }

    fn start(&mut self) -> DecodeStep {
        if let Some(kind) = self.socket {
            return self.start_on_socket(kind);
        }
        // Nearly every frame is this, and needs no closer look.
        if let Some(b'{') = self.rest().first() {
            self.state = DecodeState::Line;
            return self.line();
        }
        // STD-10, STD-11: blank bytes and a byte-order mark before a frame mean nothing.
        loop {
            let rest = self.rest();
            let blank =
                rest.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n')).count();
            let mark = &rest[blank..];
            let marked = mark.starts_with(BOM);
            let cut_mark = !self.ended && mark.len() < BOM.len() && BOM.starts_with(mark);
            self.take(blank + if marked { BOM.len() } else { 0 });
            self.bom |= marked;
            if !marked {
                if self.rest().is_empty() || cut_mark {
                    return DecodeStep::Starved;
                }
                break;
            }
        }
        match opens_header(self.rest()) {
            HeaderStart::Yes => self.start_header(),
            HeaderStart::Unknown if !self.ended => DecodeStep::Starved,
            HeaderStart::Unknown | HeaderStart::No => self.enter(DecodeState::Line),
        }
    }

    fn line(&mut self) -> DecodeStep {
        let limit = self.limits.message;
        let offset = self.offset;
        if let Some(at) = self.newline(usize::MAX) {
            return self.cut_line(at, at + 1, offset);
        }
        let rest = self.rest();
        if self.ended {
            // F25: the last line counts without its newline.
            let len = rest.len();
            return self.cut_line(len, len, offset);
        }
        // A carriage return that may belong to the delimiter does not count yet.
        let over = rest.len().saturating_sub(limit);
        if over > 1 || (over == 1 && rest.last() != Some(&b'\r')) {
            let from = self.head;
            let to = from + rest.len().min(PREFIX).min(limit);
            self.take(self.rest().len());
            self.state = DecodeState::SkipLine { resync: false };
            return DecodeStep::Cut { from, to, framing: Framing::Lines, offset, too_long: true };
        }
        DecodeStep::Starved
    }

    /// Ends a line of `len` bytes, consuming `taken`.
    fn cut_line(&mut self, len: usize, taken: usize, offset: u64) -> DecodeStep {
        let from = self.head;
        // STD-09: one carriage return before the newline belongs to the delimiter.
        self.cr = self.rest()[..len].ends_with(b"\r");
        let len = len - usize::from(self.cr);
        let too_long = len > self.limits.message;
        let to = from + if too_long { len.min(PREFIX).min(self.limits.message) } else { len };
        self.take(taken);
        self.last = Some(LastFrame { framing: Framing::Lines, taken, began: offset });
        self.state = DecodeState::Start;
        DecodeStep::Cut { from, to, framing: Framing::Lines, offset, too_long }
    }

    fn start_header(&mut self) -> DecodeStep {
        let block = HeaderBlock { began: self.offset, ..HeaderBlock::default() };
        self.enter(DecodeState::Header(block))
    }

    fn header(&mut self, mut block: HeaderBlock) -> DecodeStep {
        let HeaderBlock { line, began, .. } = block;
        let Some(end) = self.newline(self.limits.header) else {
            if self.rest().len() >= self.limits.header {
                let inside = line < self.limits.header || line == 0;
                self.take(self.limits.header);
                let step = self.bad_header(HeaderFault::TooLong, began);
                // F27: the rest of the line is not searched for openers, each of which would look
                // for the same far newline again.
                if inside && self.socket.is_none() {
                    self.state = DecodeState::SkipLine { resync: true };
                }
                return step;
            }
            if self.ended {
                self.take(self.rest().len());
                return self.bad_header(HeaderFault::Unfinished, began);
            }
            return DecodeStep::Starved;
        };
        let text = self.rest()[line..end].trim_ascii();
        if text.is_empty() {
            self.take(end + 1);
            return self.header_done(block);
        }
        if matches!(text[0], b'{' | b'[') {
            if self.socket.is_some() {
                return self.refuse();
            }
            // The body came at once: it is read as the line that it is, or skipped up to the next header.
            self.take(line);
            return self.bad_header(HeaderFault::NoBlankLine, began);
        }
        let found = match read_header(text) {
            Ok(None) => None,
            Ok(Some(_)) if block.length.is_some() => Some(HeaderFault::TwoLengths),
            Ok(length) => {
                block.length = length;
                None
            }
            Err(found) => Some(found),
        };
        block.line = end + 1;
        block.fault = block.fault.or(found);
        self.state = DecodeState::Header(block);
        DecodeStep::Again
    }

    fn header_done(&mut self, block: HeaderBlock) -> DecodeStep {
        let HeaderBlock { length, fault, began, .. } = block;
        let fault = fault.or(match length {
            None => Some(HeaderFault::NoLength),
            Some(length) if length > ABSURD_LENGTH => Some(HeaderFault::AbsurdLength),
            Some(_) => None,
        });
        if let Some(fault) = fault {
            return self.bad_header(fault, began);
        }
        let length = length.unwrap_or_default();
        match usize::try_from(length) {
            Ok(0) => self.enter(DecodeState::Start),
            Ok(length) if length <= self.limits.message => {
                self.enter(DecodeState::Body { length, began, scan: ValueScan::default() })
            }
            _ => self.enter(DecodeState::LongBody { length, began }),
        }
    }

    fn bad_header(&mut self, fault: HeaderFault, offset: u64) -> DecodeStep {
        if self.socket.is_some() {
            return self.refuse();
        }
        self.enter(DecodeState::Resync);
        DecodeStep::Fault { fault, offset }
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
