//! One line on stderr, from the library itself, that can never hold it up.
//!
//! Knows that stderr may be closed, full, non-blocking, or a pipe nobody reads (E9, S7, S8): a line
//! that cannot leave at once is dropped and counted.

use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(unix)]
use unix::offer;
#[cfg(windows)]
use windows::offer;

/// What a pipe takes whole or not at all, so that no line is torn (PIPE_BUF on Linux).
const LINE: usize = 4096;

/// Lines lost since the last one that left.
static LOST: AtomicUsize = AtomicUsize::new(0);

/// Says one line. Never fails, never waits.
pub(crate) fn say(line: &str) {
    let lost = LOST.swap(0, Ordering::Relaxed);
    let text = compose(line, lost);
    if offer(text.as_bytes()).is_err() {
        LOST.fetch_add(lost + 1, Ordering::Relaxed);
    }
}

/// The line as it is written: one, ended, short enough, with the count of those before it that were
/// lost.
fn compose(line: &str, lost: usize) -> String {
    let note = match lost {
        0 => String::new(),
        n => format!(" ({n} lines before this one were lost)"),
    };
    let mut room = LINE - "taut: \n".len() - note.len();
    let line = line.replace(['\n', '\r'], " ");
    // As `floor_char_boundary`, which compilers before 1.91 do not have.
    room = room.min(line.len());
    while !line.is_char_boundary(room) {
        room -= 1;
    }
    format!("taut: {}{note}\n", &line[..room])
}

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_one_line_and_fits_a_pipe() {
        let long = "é\n".repeat(LINE);
        let text = compose(&long, 3);
        assert!(text.len() <= LINE, "{} bytes", text.len());
        assert_eq!(text.matches('\n').count(), 1);
        assert!(text.ends_with(" (3 lines before this one were lost)\n"), "{text:?}");
    }
}
