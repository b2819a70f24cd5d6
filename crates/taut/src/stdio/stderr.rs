//! One line on stderr, from the library itself, that can never hold it up.
//!
//! Knows that stderr may be closed, full, non-blocking, or a pipe nobody reads (E9, S7, S8): a line
//! that cannot leave at once is dropped and counted.

use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::stdio::stderr;

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
    let room = LINE - "taut: \n".len() - note.len();
    let line = line.replace(['\n', '\r'], " ");
    format!("taut: {}{note}\n", &line[..line.floor_char_boundary(room)])
}

fn offer(bytes: &[u8]) -> rustix::io::Result<()> {
    match rustix::net::send(stderr(), bytes, SendFlags::DONTWAIT) {
        Err(Errno::NOTSOCK) => {}
        done => return done.map(drop),
    }
    let stderr = stderr();
    let mut fds = [PollFd::new(&stderr, PollFlags::OUT)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
    if !fds[0].revents().contains(PollFlags::OUT) {
        return Err(Errno::AGAIN);
    }
    write_at_once(bytes)
}

/// Between the look and the write another thread may have filled the pipe, so the write itself is
/// told not to wait, where the system has a way to say so.
#[cfg(target_os = "linux")]
fn write_at_once(bytes: &[u8]) -> rustix::io::Result<()> {
    use rustix::io::{ReadWriteFlags, pwritev2, write};
    use std::io::IoSlice;

    /// As an offset: wherever the file is.
    const HERE: u64 = u64::MAX;
    match pwritev2(stderr(), &[IoSlice::new(bytes)], HERE, ReadWriteFlags::NOWAIT) {
        // An older system, or a kind of file that knows no such flag (a terminal, a log file).
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => write(stderr(), bytes).map(drop),
        done => done.map(drop),
    }
}

#[cfg(not(target_os = "linux"))]
fn write_at_once(bytes: &[u8]) -> rustix::io::Result<()> {
    rustix::io::write(stderr(), bytes).map(drop)
}

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
