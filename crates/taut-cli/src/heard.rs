//! What a server writes that is no message, while it is waited for: its stderr, and stray lines on stdout.
//!
//! Keeps the last lines: a server that hangs has often said why. Must not know who waits, nor print.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::cells::cut;
use crate::gate::escape;
use crate::secrets;

/// Lines that are kept: the end of a stack trace.
const LINES: usize = 20;

/// How wide a line may be: more says nothing on a screen.
const WIDTH: usize = 400;

/// Bytes of a line that are kept: room for [`WIDTH`] characters, and for a secret that is masked in it.
const BYTES: usize = 4 << 10;

/// The last lines of a server.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    lines: Mutex<VecDeque<Line>>,
    deaf: bool,
}

#[derive(Debug)]
struct Line {
    on_stdout: bool,
    text: String,
}

impl Line {
    fn shown(&self) -> String {
        cut(&escape::line(&secrets::masked(&self.text)), WIDTH).into_owned()
    }
}

impl Heard {
    /// Keeps nothing: of several servers at once nobody would know which it was.
    pub(crate) fn deaf() -> Self {
        Self { deaf: true, ..Self::default() }
    }

    /// Whether it keeps nothing.
    pub(crate) fn is_deaf(&self) -> bool {
        self.deaf
    }

    /// Something else is waited for from now on.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    /// A line of stderr.
    pub(crate) fn add(&self, line: &str) {
        self.keep(line, false);
    }

    /// A line on stdout that is no message.
    pub(crate) fn add_stray(&self, line: &str) {
        self.keep(line, true);
    }

    /// Quickly, because a server may write very much: what is kept is masked and cleaned when it is shown.
    fn keep(&self, line: &str, on_stdout: bool) {
        let line = line.trim();
        if line.is_empty() || self.deaf {
            return;
        }
        let end = line.floor_char_boundary(BYTES);
        let more = if end < line.len() { "…" } else { "" };
        let text = format!("{}{more}", &line[..end]);
        let mut lines = self.lock();
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(Line { on_stdout, text });
    }

    /// The last line.
    pub(crate) fn last(&self) -> Option<String> {
        self.lock().back().map(Line::shown)
    }

    /// How many lines of stderr there are.
    pub(crate) fn said(&self) -> usize {
        self.lock().iter().filter(|line| !line.on_stdout).count()
    }

    /// Those of stdout, each with a line end.
    pub(crate) fn stray(&self) -> String {
        let lines = self.lock();
        let stray = lines.iter().filter(|line| line.on_stdout);
        stray.map(|line| format!("{}\n", line.shown())).collect()
    }

    /// All of them; they are told once.
    pub(crate) fn take(&self) -> Vec<String> {
        self.lock().drain(..).map(|line| line.shown()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_short_and_clean() {
        let heard = Heard::default();
        for number in 0..100 {
            heard.add(&format!("line {number}\x1b[2J{}", "x".repeat(1000)));
            heard.add("  \n");
        }
        assert!(heard.last().unwrap().starts_with("line 99\\u{1b}[2Jxxx"));
        let all = heard.take();
        assert_eq!(all.len(), LINES);
        assert!(all.iter().all(|line| line.chars().count() <= WIDTH));
        assert!(heard.last().is_none());
        heard.add("more");
        heard.add_stray("stray");
        assert_eq!(heard.stray(), "stray\n");
        heard.clear();
        assert!(heard.take().is_empty());
    }
}
