//! Things that a peer notices besides messages and that belong into a log. Plain data.

use crate::rpc::Fault;

/// Something worth a line in a log.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Trouble {
    /// What kind of trouble it is.
    pub kind: TroubleKind,
    /// Where in the stream.
    pub offset: u64,
    /// The first characters of what came, with control characters escaped.
    pub excerpt: String,
}

/// What kind of [`Trouble`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TroubleKind {
    /// A frame that is no message.
    Malformed(Fault),
    /// A byte-order mark, dropped.
    ByteOrderMark,
    /// A carriage return before a newline, dropped.
    CarriageReturn,
    /// So many bad frames in a row that they are no longer answered.
    Storm,
    /// An answer to a call that had already ended (C4).
    Late,
    /// An answer to a call that was never made.
    Unknown,
    /// An id that is still in use.
    DuplicateId,
    /// A request that found the queue full.
    Busy,
}
