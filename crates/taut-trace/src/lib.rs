//! Captures of MCP sessions: record them, read them, compare them, play them again.
//!
//! A capture is a file of JSON lines: a header, then one record for each message, line of stderr and
//! other event, with its time (docs/trace-format.md). A [`Recorder`] writes one beside those who carry
//! the bytes, without making them wait; [`Capture`] reads one.
//!
//! It is the part behind `taut trace` of [`taut-cli`](https://docs.rs/taut-cli). Servers and clients are written with
//! [`taut`](https://docs.rs/taut), and [`taut-check`](https://docs.rs/taut-check) tests them. There are no features to
//! choose. Guides in the repository: `docs/trace.md`, `docs/trace-format.md`.
//!
//! Everything but [`Recorder`] is pure: bytes and times are arguments. Of the `taut` library only the
//! decoder of frames and what hides secrets are used (`ours.rs`).

mod base64;
mod calls;
mod compare;
mod diff;
mod format;
mod intake;
mod json;
mod missed;
mod mock;
mod ours;
mod page;
mod queue;
mod read;
mod recorder;
mod replay;
mod script;
mod stamp;
mod talk;
mod transcript;

pub use calls::{Calls, Figures, Open, Row};
pub use compare::{Difference, Ignore, differences};
pub use diff::{Finding, Said, compare, said};
pub use format::{
    Body, End, Event, Framing, Gap, Header, Message, Record, Sent, Side, Stream, VERSION,
    write_close, write_end, write_fault, write_gap, write_message, write_start, write_stderr,
};
pub use intake::{Intake, LONGEST_LINE, LONGEST_MESSAGE};
pub use mock::Mock;
pub use page::{document, policy};
pub use read::{Capture, ReadError, Reader, header, record};
pub use recorder::{Links, Recorder, Session, Tap, Watch, create};
pub use replay::{Next, Replay};
pub use script::{Key, Names, Step, steps};
pub use stamp::{compact, rfc3339};
pub use talk::{Kind, Talk, arrow, talks};
pub use transcript::Transcript;
