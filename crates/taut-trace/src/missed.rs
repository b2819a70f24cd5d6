//! What of a stream was not recorded, as far as it has to be known to count the records that are missing.
//!
//! Looks at bytes that are let go of: where lines end, and where headers begin. Pure. Must not know what stood
//! before them or comes after them; `intake.rs` does.

/// How a message with a header begins.
pub(crate) const HEADER: &[u8] = b"Content-Length:";

/// Bytes of one stream, one after the other, that were let go of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Missed {
    pub(crate) bytes: u64,
    /// Lines that ended.
    pub(crate) lines: u64,
    /// Those of them that had nothing but blanks.
    pub(crate) blank: u64,
    /// Whether the first of them had, as far as it was let go of.
    pub(crate) first_blank: bool,
    /// Headers that began.
    pub(crate) headers: u64,
    /// Whether the last byte ends a line.
    pub(crate) ends_line: bool,
    /// Whether something stood in the line that has not ended.
    pub(crate) content: bool,
    /// How much of the beginning of a header the last bytes are.
    pub(crate) header: usize,
    /// The first bytes, as many as a header's beginning has.
    pub(crate) first: Vec<u8>,
}

impl Missed {
    /// More of the stream.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let missing = HEADER.len() - self.first.len();
        self.first.extend_from_slice(&bytes[..bytes.len().min(missing)]);
        for byte in bytes {
            if *byte == b'\n' {
                self.first_blank |= self.lines == 0 && !self.content;
                self.lines += 1;
                self.blank += u64::from(!self.content);
                self.content = false;
            } else {
                self.content |= !byte.is_ascii_whitespace();
            }
            // No beginning of the word stands within it, so what does not go on may only begin again.
            let goes_on = byte.eq_ignore_ascii_case(&HEADER[self.header]);
            self.header = if goes_on { self.header + 1 } else { 0 };
            if !goes_on && byte.eq_ignore_ascii_case(&HEADER[0]) {
                self.header = 1;
            }
            if self.header == HEADER.len() {
                self.headers += 1;
                self.header = 0;
            }
        }
        self.ends_line = bytes.last().map_or(self.ends_line, |byte| *byte == b'\n');
    }

    /// A whole message of a connection whose messages come whole.
    pub(crate) fn add_message(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.lines += 1;
        self.headers += 1;
        self.ends_line = true;
    }
}
