//! A capture from the inside: by a program that is itself one of the two sides, from the steps that the
//! library tells of its connection (`taut::Steps`).
//!
//! Steps come with secrets masked and long messages cut. Several processes may add to one file: each
//! begins with a header.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use crate::format::{Framing, Header, Sent, Side, VERSION, write_message};
use crate::stamp;

/// Writes down what is said.
#[derive(Debug)]
pub struct Transcript {
    file: Mutex<File>,
    began: Instant,
    ours: Side,
}

impl Transcript {
    /// Adds to a file what is said from now on; `ours` is the side that this program is. The file is
    /// made if need be, for its owner only.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened or written.
    pub fn open(path: &Path, ours: Side, recorder: &str) -> io::Result<Self> {
        let mut options = File::options();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        let header = Header {
            version: VERSION,
            started: stamp::rfc3339(SystemTime::now()),
            recorder: recorder.to_owned(),
            masked: true,
            ..Header::default()
        };
        let mut line = Vec::new();
        header.write(&mut line);
        file.write_all(&line)?;
        Ok(Self { file: Mutex::new(file), began: Instant::now(), ours })
    }

    /// Adds a step, if it is a message.
    pub fn step(&self, step: &str) {
        let Some((from, json)) = message(step, self.ours) else { return };
        let at = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let cut = json.ends_with('…');
        let sent = Sent { from, framing: Framing::Lines, bom: false, cr: false, cut, link: None };
        let mut line = Vec::new();
        write_message(&mut line, at, sent, json.as_bytes(), &[]);
        // A full disk costs the transcript, not the session.
        let _ = self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line);
    }
}

/// Who said what, if a step is a message.
fn message(step: &str, ours: Side) -> Option<(Side, &str)> {
    let (way, json) = step.strip_prefix("[mcp] ")?.split_once(" json=")?;
    let from = if way == "send" { ours } else { ours.other() };
    Some((from, json))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_record_and_other_steps_are_none() {
        let server = Side::Server;
        assert_eq!(
            message("[mcp] recv json={\"id\":1}", server),
            Some((Side::Client, "{\"id\":1}"))
        );
        assert_eq!(message("[mcp] send json={}", server), Some((Side::Server, "{}")));
        assert_eq!(message("[mcp] stdin chunk=74", server), None);
        assert_eq!(message("[mcp] send (line) bytes=36 (result) id=1", server), None);
    }
}
