//! What the first bytes of a connection on a socket say about the rest of it.
//!
//! Knows how each kind begins; must not know what follows. On a socket the kind is decided once: a web
//! page can send HTTP to any local port, and if a decoder looked for messages inside such a request, the
//! page could run tools.

use super::BOM;
use super::header::{HeaderStart, opens_header};

/// What is spoken on a connection, as its first bytes tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Opening {
    /// Too few bytes to tell.
    Undecided,
    /// One line of JSON after the other.
    Lines,
    /// A header block before each message.
    Headers,
    /// HTTP/1.
    Http,
    /// The preface of HTTP/2.
    Http2,
    /// A TLS handshake.
    Tls,
    /// None of these.
    Unknown,
}

/// The methods that open an HTTP/1 request. `PRI` is reserved for the preface of HTTP/2.
const METHODS: [&[u8]; 10] = [
    b"GET ",
    b"POST ",
    b"PUT ",
    b"HEAD ",
    b"DELETE ",
    b"OPTIONS ",
    b"PATCH ",
    b"TRACE ",
    b"CONNECT ",
    b"PRI ",
];

impl Opening {
    /// What is spoken on a connection that begins with `bytes`. Blank bytes in front mean nothing.
    /// [`Undecided`](Self::Undecided) asks for more bytes; 16 that are not blank always decide.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let bytes = bytes.trim_ascii_start();
        match bytes {
            [] => return Self::Undecided,
            [b'{' | b'[', ..] => return Self::Lines,
            [0x16] => return Self::Undecided,
            [0x16, 0x03, ..] => return Self::Tls,
            _ => {}
        }
        if let Some(after) = bytes.strip_prefix(BOM) {
            return match Self::of(after) {
                opening @ (Self::Undecided | Self::Lines | Self::Headers) => opening,
                _ => Self::Unknown,
            };
        }
        match opens_header(bytes) {
            HeaderStart::Yes => return Self::Headers,
            HeaderStart::Unknown => return Self::Undecided,
            HeaderStart::No => {}
        }
        let starts = |name: &&[u8]| name.starts_with(bytes) || bytes.starts_with(name);
        match METHODS.iter().find(|name| starts(name)) {
            Some(name) if name.len() > bytes.len() => Self::Undecided,
            Some(&b"PRI ") => Self::Http2,
            Some(_) => Self::Http,
            None if BOM.starts_with(bytes) => Self::Undecided,
            None => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_decide() {
        let table: [(&[u8], Opening); 24] = [
            (b"", Opening::Undecided),
            (b" \r\n\t", Opening::Undecided),
            (b"\n{", Opening::Lines),
            (b"[", Opening::Lines),
            (b"\xEF\xBB", Opening::Undecided),
            (b"\xEF\xBB\xBF{\"", Opening::Lines),
            (b"\xEF\xBB\xBFGET / HTTP/1.1", Opening::Unknown),
            (b"C", Opening::Undecided),
            (b"Content-Len", Opening::Undecided),
            (b"content-length: 5", Opening::Headers),
            (b"Content-Type: a", Opening::Headers),
            (b"CONNECT a:1", Opening::Http),
            (b"CONTENT", Opening::Undecided),
            (b"GET", Opening::Undecided),
            (b"GET / HTTP/1.1", Opening::Http),
            (b"POST ", Opening::Http),
            (b"PRI * HTTP/2.0", Opening::Http2),
            (b"P", Opening::Undecided),
            (b"get / ", Opening::Unknown),
            (b"\x16", Opening::Undecided),
            (b"\x16\x03\x01", Opening::Tls),
            (b"\x16\x00", Opening::Unknown),
            (b"hello", Opening::Unknown),
            (b"\"text\"", Opening::Unknown),
        ];
        for (bytes, expected) in table {
            assert_eq!(Opening::of(bytes), expected, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn sixteen_bytes_that_are_not_blank_always_decide() {
        for first in 0..=255u8 {
            if !first.is_ascii_whitespace() {
                for rest in *b"{CGP\xBB 3o" {
                    let bytes = [&[first][..], &[rest; 15]].concat();
                    assert_ne!(Opening::of(&bytes), Opening::Undecided, "{bytes:?}");
                }
            }
        }
    }
}
