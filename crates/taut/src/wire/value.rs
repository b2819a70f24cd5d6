//! Where a JSON value ends, as far as its brackets and quotes tell.
//!
//! For payloads whose length is in doubt. Knows brackets, quotes and how a header begins; must not know what JSON
//! says. It goes on where it stopped, so that each byte is looked at once however small the pieces are (F27).

use super::BOM;
use super::header::{HeaderStart, find_opener, opens_header};

/// How far a value was read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ValueScan {
    /// How many bytes were looked at.
    at: usize,
    /// How many brackets are open.
    depth: usize,
    /// Where the open string begins.
    string: Option<usize>,
    /// Where the current line begins.
    line: usize,
    /// Where the value ends.
    end: Option<usize>,
}

/// What a [`ValueScan`] has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// The value ends here.
    Ends(usize),
    /// The value was cut off: here the next frame begins.
    Cut(usize),
    /// There is no object and no array.
    NoValue,
    /// More bytes are needed to tell.
    Open,
}

impl ValueScan {
    /// How many bytes it has looked at.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Goes on in `bytes`, which begin as they did the last time. From `given` on, which is the length that the
    /// header named, whole lines are taken for frames.
    pub(super) fn go_on(&mut self, bytes: &[u8], given: usize) -> Extent {
        if let Some(end) = self.end {
            return Extent::Ends(end);
        }
        if self.depth == 0
            && let Some(found) = self.open(bytes)
        {
            return found;
        }
        while let Some(byte) = bytes.get(self.at) {
            if let Some(start) = self.string {
                if let Some(found) = self.pass_string(bytes, start) {
                    return found;
                }
                continue;
            }
            match byte {
                b'"' => self.string = Some(self.at),
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth -= 1,
                b'\n' => {
                    // Behind the length that was given, a line that is whole is no part of the value.
                    let line = self.line.max(given);
                    if bytes.get(line..self.at).is_some_and(is_whole) {
                        return Extent::Cut(line);
                    }
                    self.line = self.at + 1;
                }
                b'c' | b'C' => match opens_header(&bytes[self.at..]) {
                    HeaderStart::Yes => return Extent::Cut(self.at),
                    HeaderStart::Unknown => return Extent::Open,
                    HeaderStart::No => {}
                },
                _ => {}
            }
            self.at += 1;
            if self.depth == 0 {
                self.end = Some(self.at);
                return Extent::Ends(self.at);
            }
        }
        Extent::Open
    }

    /// The first bracket.
    fn open(&mut self, bytes: &[u8]) -> Option<Extent> {
        let blank = |byte: &&u8| byte.is_ascii_whitespace();
        self.at += bytes[self.at..].iter().take_while(blank).count();
        let rest = &bytes[self.at..];
        let mark = if rest.starts_with(BOM) { BOM.len() } else { 0 };
        match rest.get(mark) {
            Some(b'{' | b'[') => {
                self.at += mark;
                None
            }
            None => Some(Extent::Open),
            Some(_) if mark == 0 && rest.len() < BOM.len() && BOM.starts_with(rest) => {
                Some(Extent::Open)
            }
            Some(_) => Some(match opens_header(&rest[mark..]) {
                HeaderStart::Yes => Extent::Cut(self.at),
                HeaderStart::Unknown => Extent::Open,
                HeaderStart::No => Extent::NoValue,
            }),
        }
    }

    /// Goes on in a string that began at `start`.
    fn pass_string(&mut self, bytes: &[u8], start: usize) -> Option<Extent> {
        // The quote that opens it is passed first.
        self.at = self.at.max(start + 1);
        let Some(found) = memchr::memchr3(b'"', b'\\', b'\n', &bytes[self.at..]) else {
            self.at = bytes.len();
            return None;
        };
        self.at += found;
        match bytes[self.at] {
            b'"' => {
                self.string = None;
                self.at += 1;
            }
            b'\\' => match bytes.get(self.at + 1) {
                Some(b'\n') => self.at += 1,
                Some(_) => self.at += 2,
                None => return Some(Extent::Open),
            },
            // No string holds a newline: this one was cut off, perhaps by the next header.
            _ => {
                self.string = None;
                return find_opener(&bytes[start..self.at]).map(|at| Extent::Cut(start + at));
            }
        }
        None
    }

    /// Where the next header may begin in a value that goes no further.
    pub(super) fn opener_in_the_open_string(&self, bytes: &[u8]) -> Option<usize> {
        let start = self.string?;
        find_opener(&bytes[start..]).map(|at| start + at)
    }
}

/// Whether a line is a message by its looks.
pub(super) fn is_whole(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    matches!((line.first(), line.last()), (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']')))
}

/// Where a header begins in a line that is no message: behind its value if it has one, else anywhere.
pub(super) fn opener_in(line: &[u8]) -> Option<usize> {
    let mut scan = ValueScan::default();
    match scan.go_on(line, usize::MAX) {
        Extent::Ends(at) => find_opener(&line[at..]).map(|found| at + found),
        Extent::Cut(at) => Some(at),
        Extent::NoValue => find_opener(line),
        Extent::Open => scan.opener_in_the_open_string(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found, which is the same however the bytes come.
    fn extent(bytes: &str, given: usize) -> Extent {
        let whole = ValueScan::default().go_on(bytes.as_bytes(), given);
        let mut scan = ValueScan::default();
        let cut = (0..=bytes.len())
            .map(|length| scan.go_on(&bytes.as_bytes()[..length], given))
            .find(|found| *found != Extent::Open);
        assert_eq!(cut.unwrap_or(Extent::Open), whole, "{bytes:?}");
        whole
    }

    #[test]
    fn a_value_ends_where_its_brackets_do_and_strings_have_none() {
        for (text, found) in [
            ("{}x", Extent::Ends(2)),
            (" \n[1,{\"a\":\"}\\\"]\"}] ", Extent::Ends(18)),
            ("\u{feff}{}", Extent::Ends(5)),
            ("{\"a\":\"Content-Length: 3\"}Content", Extent::Ends(25)),
            ("{\"a\":Content-Length: 3\r\n", Extent::Cut(5)),
            ("{\"a\":\"xContent-Length: 3\r\n", Extent::Cut(7)),
            ("{\"a\":\"x\\Content-Length: 3\r\n", Extent::Cut(8)),
            ("Content-Length: 3", Extent::Cut(0)),
            ("hello", Extent::NoValue),
            ("Contents", Extent::NoValue),
            ("", Extent::Open),
            ("\u{feff}", Extent::Open),
            ("{\"a\":1", Extent::Open),
            ("{\"a\":\"\\", Extent::Open),
        ] {
            assert_eq!(extent(text, 100), found, "{text:?}");
        }
    }

    #[test]
    fn behind_the_given_length_a_whole_line_is_a_frame() {
        let text = "{\"a\":\n{\"b\":1}\n{\"c\":1}\n";
        assert_eq!(extent(text, 3), Extent::Cut(6));
        assert_eq!(extent(text, 6), Extent::Cut(6));
        assert_eq!(extent(text, 7), Extent::Cut(14));
        assert_eq!(extent("{\n  \"a\": {\n    \"b\": 1\n  }\n}\n", 5), Extent::Ends(27));
    }
}
