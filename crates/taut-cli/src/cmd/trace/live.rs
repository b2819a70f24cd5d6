//! What passes, as lines on stderr while it passes. Runs in the recorder's thread, and only where
//! nothing else is recorded: a reader of stderr who stops makes it miss records, and nobody wait.

use taut_trace::{Calls, Watch, record};

use super::shown;
use crate::output::Output;

/// Shows lines of a capture on stderr.
pub(super) struct Live {
    output: Output,
    calls: Calls,
    number: usize,
}

impl Live {
    pub(super) fn new(output: &Output) -> Self {
        Self { output: output.clone(), calls: Calls::default(), number: 0 }
    }
}

impl Watch for Live {
    fn lines(&mut self, lines: &[u8]) {
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let Some(record) = record(line) else { continue };
            // What the server writes there is passed on already.
            if matches!(record.event, taut_trace::Event::Stderr(_)) {
                continue;
            }
            self.number += 1;
            for line in shown::lines(self.output.err, self.number, &record, &mut self.calls) {
                self.output.note(&line);
            }
        }
    }
}
