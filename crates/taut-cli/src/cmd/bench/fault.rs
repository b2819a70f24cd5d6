//! What can be wrong with a server while it is measured, in words.

use std::fmt;
use std::time::Duration;

use crate::problem::Exit;

/// Why a phase has no figures.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fault {
    /// It could not be started.
    Start(String),
    /// It ended, or closed its stdout; with the end of its stderr.
    Died { how: String, words: String },
    /// No answer for so long.
    Silent(Duration),
    /// An error instead of a result.
    Refused { code: i64, message: String },
    /// The tool reported failure.
    Failed(String),
    /// An answer that is not the one to what was asked.
    Wrong(String),
    /// Two answers to one request.
    Twice(u32),
    /// An answer to nothing.
    Stranger(String),
    /// Something that is no message, and too much of it.
    Junk(String),
    /// We were asked to stop.
    Stopped,
}

impl Fault {
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::Start(_) => Exit::NoConnection,
            Self::Silent(_) => Exit::TimedOut,
            Self::Refused { .. } => Exit::Refused,
            Self::Failed(_) => Exit::ToolFailed,
            Self::Stopped => Exit::Interrupted,
            _ => Exit::Violation,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(error) => write!(f, "could not be started: {error}"),
            Self::Died { how, words } if words.is_empty() => f.write_str(how),
            Self::Died { how, words } => write!(f, "{how}: {words}"),
            Self::Silent(time) => write!(f, "no answer within {}", crate::output::time(*time)),
            Self::Refused { code, message } => write!(f, "refused: {code} {message}"),
            Self::Failed(text) => write!(f, "the tool reported failure: {text}"),
            Self::Wrong(what) => write!(f, "wrong answer: {what}"),
            Self::Twice(id) => write!(f, "request {id} was answered twice"),
            Self::Stranger(id) => write!(f, "an answer to {id}, which nobody asked"),
            Self::Junk(what) => write!(f, "no message: {what}"),
            Self::Stopped => f.write_str("interrupted"),
        }
    }
}

/// The beginning of a text that may be long.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    const MOST: usize = 80;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * MOST)]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    crate::cells::cut(&text, MOST).into_owned()
}
