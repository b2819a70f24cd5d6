//! Why a server that was there is no longer.
//!
//! Knows the words: what was lost, how the process ended, what it said last (P17, C12).

use std::borrow::Cow;
use std::fmt;

use super::words::last_words;
use crate::ending::Ending;
use crate::process::ExitStatus;

/// A server that is no longer there, and what was lost with it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionLost {
    /// What was asked; empty if nothing was.
    pub method: Cow<'static, str>,
    /// How the process ended; nothing if it has not, or if there is none.
    pub exit: Option<ExitStatus>,
    /// The process, if it has not ended although the connection has.
    pub running: Option<u32>,
    /// How the connection ended.
    pub ending: Ending,
    /// The end of what the server wrote to stderr, if it has one.
    pub stderr: String,
}

impl fmt::Display for ConnectionLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.method.is_empty() {
            write!(f, "{} was not answered: ", self.method)?;
        }
        match (&self.ending, self.exit) {
            (Ending::Closed, _) => return f.write_str("this client is closed"),
            (_, Some(exit)) => write!(f, "the server {exit}")?,
            (ending, None) => {
                write!(f, "{ending}")?;
                if let Some(pid) = self.running {
                    write!(f, ", although its process ({pid}) still runs")?;
                }
            }
        }
        last_words(f, &self.stderr)
    }
}

impl std::error::Error for ConnectionLost {}
