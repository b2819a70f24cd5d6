//! How a connection ended: every ending has a reason that a person can read.

use std::fmt;
use std::io;
use std::sync::Arc;

/// Why a connection is over.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Ending {
    /// The other side closed its end, and everything it had asked was answered.
    Eof,
    /// The other side closed its end; some of what it had asked took longer than the drain limit.
    DrainTimedOut {
        /// How many requests were left unanswered.
        unanswered: usize,
    },
    /// Nobody reads what we write any more.
    ReaderGone,
    /// A signal asked us to stop.
    Signal(i32),
    /// On a socket: what came is no message in the framing that the connection began with.
    Refused,
    /// We closed it ourselves.
    Closed,
    /// The other side has read nothing for so long that its answers filled their bound.
    Stuck {
        /// How many bytes were waiting.
        bytes: usize,
    },
    /// Reading or writing failed.
    Io {
        /// What was being done.
        during: &'static str,
        /// What the system said.
        error: Arc<io::Error>,
    },
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Eof => f.write_str("the other side closed the connection"),
            Self::DrainTimedOut { unanswered } => {
                write!(
                    f,
                    "the other side closed the connection; {unanswered} requests were still unanswered at the drain limit"
                )
            }
            Self::ReaderGone => f.write_str("nobody reads our output any more"),
            Self::Signal(signal) => write!(f, "stopped by signal {signal}"),
            Self::Refused => f.write_str(
                "refused: what came is no JSON-RPC message, or is framed in another way than the first",
            ),
            Self::Closed => f.write_str("closed by this side"),
            Self::Stuck { bytes } => {
                write!(f, "the other side reads nothing: {bytes} bytes of output were waiting")
            }
            Self::Io { during, error } => write!(f, "{during} failed: {error}"),
        }
    }
}
