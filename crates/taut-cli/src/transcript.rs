//! What two sides say to each other, kept in a file: one message to a line.
//!
//! Knows how the library tells its steps, in which secrets are masked by their names; the values of
//! our own environment are masked here. For the owner's eyes only.

use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::debug;
use crate::problem::Problem;
use crate::secrets;

/// Writes down what is said from now on.
pub(crate) fn keep(path: &Path) -> Result<(), Problem> {
    let failed = |error| Problem::File { what: format!("opening {}", path.display()), error };
    let file = debug::open(path).map_err(failed)?;
    secrets::hide_ours();
    let file = Mutex::new(file);
    debug::listen("stdin", move |step: &str| {
        let Some(line) = line(&secrets::masked(step)) else { return };
        // A full disk costs the transcript, not the session.
        let _ = file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
    });
    Ok(())
}

/// A message as a line of the transcript, if this step is one.
fn line(step: &str) -> Option<String> {
    let (way, json) = step.strip_prefix("[mcp] ")?.split_once(" json=")?;
    let sign = if way == "recv" { '>' } else { '<' };
    Some(format!("{sign} {json}\n"))
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn a_message_is_a_line_and_other_steps_are_none() {
        assert_eq!(line("[mcp] recv json={\"id\":1}"), Some("> {\"id\":1}\n".into()));
        assert_eq!(line("[mcp] send json={}"), Some("< {}\n".into()));
        assert_eq!(line("[mcp] stdin chunk=74"), None);
        assert_eq!(line("[mcp] send (line) bytes=36 (result) id=1"), None);
    }
}
