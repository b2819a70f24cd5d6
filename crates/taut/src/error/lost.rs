//! The error for a request whose server is gone.
//!
//! Knows the words: what was lost, how the process ended, what it printed last (P17, C12).

use std::borrow::Cow;
use std::fmt;

use super::words::{LastLines, last_lines};
use crate::ending::Ending;
use crate::process::ExitStatus;

/// A server is gone, and the answer to a request with it.
#[derive(Clone)]
#[non_exhaustive]
pub struct ConnectionLost {
    /// The method of the request; empty if there was none.
    pub method: Cow<'static, str>,
    /// How the process ended; `None` if it has not, or if there is none.
    pub exit: Option<ExitStatus>,
    /// The id of the process, if it has not ended although the connection has.
    pub running: Option<u32>,
    /// How the connection ended.
    pub ending: Ending,
    /// The last lines that the server wrote to stdout and that are no messages, shortened.
    pub stdout: String,
    /// The end of what the server wrote to stderr.
    pub stderr: String,
}

impl fmt::Debug for ConnectionLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionLost")
            .field("method", &self.method)
            .field("exit", &self.exit)
            .field("running", &self.running)
            .field("ending", &self.ending)
            .field("stdout", &LastLines(&self.stdout))
            .field("stderr", &LastLines(&self.stderr))
            .finish()
    }
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
        last_lines(f, &self.stdout, &self.stderr)
    }
}

impl std::error::Error for ConnectionLost {}
