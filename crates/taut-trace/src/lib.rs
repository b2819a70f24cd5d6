//! Captures of MCP sessions: record them, read them, compare them, play them again.
//!
//! A capture is a file of JSON lines: a header, then one record for each message, line of stderr and
//! other event, with its time (docs/trace-format.md). A [`Recorder`] writes one beside those who carry
//! the bytes, without making them wait; [`Capture`] reads one.
//!
//! Everything but [`Recorder`] is pure: bytes and times are arguments. Of the `taut` library only the
//! decoder of frames is used (`ours.rs`).

mod base64;
mod format;
mod intake;
mod mask;
mod ours;
mod queue;
mod read;
mod recorder;
mod stamp;

pub use format::{
    Body, End, Event, Framing, Gap, Header, Message, Record, Sent, Side, Stream, VERSION,
    write_close, write_end, write_fault, write_gap, write_message, write_start, write_stderr,
};
pub use intake::{Intake, LONGEST_LINE, LONGEST_MESSAGE};
pub use mask::{MASK, Masker, SHORTEST};
pub use read::{Capture, ReadError, Reader, header, record};
pub use recorder::{Recorder, Session, Tap, Watch, create};
pub use stamp::{compact, rfc3339};
