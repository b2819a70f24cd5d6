//! What comes out of the decoder, and what it may hold. Plain data.

use super::Framing;

with_defaults! {
    /// What a [`Decoder`](super::Decoder) holds at most.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    #[must_use = "limits do nothing until something is held to them"]
    pub struct Limits {
        /// The longest message, in bytes. 64 MiB: several times the largest payload that hosts are
        /// known to send, and far below what hurts a desktop.
        pub message: usize = 64 << 20,
        /// The longest header block, in bytes. 8 KiB, as HTTP servers have it.
        pub header: usize = 8 << 10,
    }
}

setters! { Limits;
    /// Sets the longest message, in bytes.
    message(bytes: usize) => message;

    /// Sets the longest header block, in bytes.
    header(bytes: usize) => header;
}

/// One unit of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Frame<'a> {
    /// A whole message, not yet looked at.
    Message {
        /// The message, without its newline or header.
        bytes: &'a [u8],
        /// How it was framed.
        framing: Framing,
        /// Where in the stream it began.
        offset: u64,
        /// Whether a byte-order mark stood before it and was dropped.
        bom: bool,
        /// Whether a carriage return stood before its newline and was dropped.
        cr: bool,
    },
    /// A message over the limit. The rest of it is skipped.
    TooLong {
        /// Its first bytes, for finding out whose it was.
        prefix: &'a [u8],
        /// How it was framed.
        framing: Framing,
        /// Where in the stream it began.
        offset: u64,
    },
    /// A framed payload that is no JSON; see [`Decoder::distrust`](super::Decoder::distrust).
    Broken {
        /// Its first bytes.
        bytes: &'a [u8],
        /// The length that its header gave.
        given: usize,
        /// Where it ends by its own looks; nothing if the length fits or nothing tells.
        found: Option<usize>,
        /// Where in the stream its header began.
        offset: u64,
    },
    /// On a socket: bytes that are not what the connection began with, or no messages at all. Nothing
    /// after them is read.
    Refused {
        /// The first of these bytes.
        prefix: &'a [u8],
        /// Where in the stream they began.
        offset: u64,
    },
    /// A header block that names no body. What follows is searched for the next frame.
    BadHeader {
        /// What is wrong with it.
        fault: HeaderFault,
        /// Where in the stream it began.
        offset: u64,
    },
}

worded! {
    /// What is wrong with a header block.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum HeaderFault {
        /// It has no `Content-Length`.
        NoLength = "header block without Content-Length",
        /// The length is not a number of bytes.
        BadLength = "Content-Length is not a number",
        /// There is more than one length.
        TwoLengths = "more than one Content-Length",
        /// The length is beyond anything that could be meant.
        AbsurdLength = "Content-Length is beyond any message",
        /// A line of it has no colon.
        NotAHeader = "header line without a colon",
        /// The body follows without an empty line between.
        NoBlankLine = "no empty line between header and body",
        /// It goes on for too long.
        TooLong = "header block too long",
        /// The stream ended inside it, or inside the body.
        Unfinished = "stream ended inside a framed message",
    }
}
