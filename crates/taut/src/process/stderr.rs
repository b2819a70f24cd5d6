//! A child's stderr: always drained, its end kept, its lines passed on.
//!
//! Knows bytes, lines and one pipe. Must not know what the lines mean (stderr is not an error, E8),
//! nor the system. Each line is logged as well, at the level ERROR under `taut::stderr`, where the reference of stdio
//! clients looks for it.
//! Obeys the scars E1 (drain, or the child freezes), E2 (a line without end), E3, E4, E5 and P9.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use super::sys::{PipeEnd, ReadPipe};
use crate::lock::lock;
use crate::secrets::{Masker, Secrets, masked};
use crate::stream::Source as _;

/// What the lines are logged under.
const TARGET: &str = "taut::stderr";

/// How much of the end of stderr is kept: enough for a stack trace or two, and what one pipe holds.
pub(super) const TAIL_LIMIT: usize = 64 * 1024;

/// A line longer than this is passed on in pieces. Progress bars never end their line (E2).
const LINE_LIMIT: usize = 8 * 1024;

/// How much is read at a time.
const CHUNK: usize = 8 * 1024;

/// Reads in one go before others get their turn: a child that floods stderr must not own the thread.
const READS_PER_TURN: usize = 16;

/// Gets each line of a child's stderr, without its line end. It must not block.
pub(crate) type LineSink = Arc<dyn Fn(&str) + Send + Sync>;

/// The last bytes that a child wrote to stderr.
#[derive(Debug)]
pub(super) struct Tail {
    limit: usize,
    kept: Mutex<Kept>,
    closed: AtomicBool,
}

#[derive(Debug, Default)]
struct Kept {
    bytes: VecDeque<u8>,
    cut: bool,
}

impl Tail {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, kept: Mutex::default(), closed: AtomicBool::new(false) }
    }

    fn push(&self, chunk: &[u8]) {
        let mut kept = lock(&self.kept);
        let new = &chunk[chunk.len().saturating_sub(self.limit)..];
        let excess = (kept.bytes.len() + new.len()).saturating_sub(self.limit);
        kept.cut |= excess > 0 || new.len() < chunk.len();
        kept.bytes.drain(..excess);
        kept.bytes.extend(new);
    }

    /// Whether the pipe has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// The text, with what is no UTF-8 replaced. One that was cut starts at a whole character.
    pub(super) fn text(&self) -> String {
        let kept = lock(&self.kept);
        let (front, back) = kept.bytes.as_slices();
        let bytes = [front, back].concat();
        let torn =
            if kept.cut { bytes.iter().take(3).take_while(|b| is_inner(**b)).count() } else { 0 };
        String::from_utf8_lossy(&bytes[torn..]).into_owned()
    }
}

/// Whether this byte can only stand inside a character.
const fn is_inner(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// Cuts a stream of bytes into lines of bounded length.
struct Lines {
    pid: u32,
    sink: Option<LineSink>,
    partial: Vec<u8>,
}

impl Lines {
    /// Whether a sink or a log takes the lines.
    fn are_wanted(&self) -> bool {
        self.sink.is_some() || tracing::enabled!(target: TARGET, tracing::Level::ERROR)
    }

    fn push(&mut self, mut chunk: &[u8]) -> std::thread::Result<()> {
        while let Some(at) = memchr::memchr(b'\n', chunk) {
            self.extend(&chunk[..at])?;
            self.pass_on(self.partial.len())?;
            chunk = &chunk[at + 1..];
        }
        self.extend(chunk)
    }

    fn extend(&mut self, mut part: &[u8]) -> std::thread::Result<()> {
        while self.partial.len() + part.len() > LINE_LIMIT {
            let (fits, rest) = part.split_at(LINE_LIMIT - self.partial.len());
            self.partial.extend_from_slice(fits);
            self.pass_on(whole_characters(&self.partial))?;
            part = rest;
        }
        self.partial.extend_from_slice(part);
        Ok(())
    }

    fn pass_on(&mut self, len: usize) -> std::thread::Result<()> {
        let line = &self.partial[..len];
        let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
        let (pid, sink) = (self.pid, &self.sink);
        tracing::error!(target: TARGET, pid, line = masked(line.as_bytes()), "stderr");
        // A sink that panics must not take the drain down with it: the child would freeze (E1).
        let passed = match sink {
            Some(sink) => catch_unwind(AssertUnwindSafe(|| sink(&line))),
            None => Ok(()),
        };
        self.partial.drain(..len);
        passed
    }

    fn finish(&mut self) -> std::thread::Result<()> {
        if self.partial.is_empty() { Ok(()) } else { self.pass_on(self.partial.len()) }
    }
}

/// How many of these bytes to pass on so that a character at the end stays in one piece.
fn whole_characters(bytes: &[u8]) -> usize {
    let start = bytes.iter().rposition(|byte| !is_inner(*byte)).unwrap_or(0);
    let missing = match bytes.get(start) {
        Some(0xC0..=0xDF) => 2,
        Some(0xE0..=0xEF) => 3,
        Some(0xF0..=0xF7) => 4,
        _ => 1,
    };
    // Never nothing: bytes that are no UTF-8 at all have to leave too.
    if start > 0 && bytes.len() - start < missing { start } else { bytes.len() }
}

/// Our end of a child's stderr.
pub(super) struct Stderr {
    pipe: Option<ReadPipe>,
    tail: Arc<Tail>,
    lines: Lines,
    /// Hides secrets before anything is cut or kept.
    masker: Option<Masker>,
}

impl Stderr {
    /// Takes the read end of a pipe.
    pub(super) fn new(
        end: PipeEnd,
        tail: Arc<Tail>,
        pid: u32,
        sink: Option<LineSink>,
        secrets: Option<&Secrets>,
    ) -> io::Result<Self> {
        let pipe = Some(ReadPipe::new(end)?);
        let lines = Lines { pid, sink, partial: Vec::new() };
        Ok(Self { pipe, tail, lines, masker: secrets.map(Masker::values) })
    }

    /// Takes in what is there. Never ready: it is done when its owner is.
    pub(super) fn poll_drain(&mut self, cx: &mut Context<'_>) {
        let mut chunk = Vec::with_capacity(CHUNK);
        for _ in 0..READS_PER_TURN {
            let Some(pipe) = &mut self.pipe else { return };
            chunk.clear();
            match pipe.poll_read(cx, &mut chunk) {
                Poll::Pending => return,
                Poll::Ready(Ok(count)) if count > 0 => self.take(&chunk),
                // E3, E5: a stderr that is closed early is harmless, and is not looked at again.
                Poll::Ready(_) => return self.close(),
            }
        }
        cx.waker().wake_by_ref();
    }

    /// Takes in what the pipe holds at this moment, and closes it (E4). A descendant may hold the
    /// other end open and go on writing: it is not waited for (P9).
    pub(super) fn finish(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            let mut left = pipe.waiting();
            let mut chunk = Vec::with_capacity(CHUNK);
            // Past the reactor, which may not have heard yet that there is something to read.
            while left > 0
                && let Ok(count @ 1..) = pipe.read_now(&mut chunk)
            {
                self.take(&chunk);
                chunk.clear();
                left = left.saturating_sub(count as u64);
            }
        }
        self.close();
    }

    fn take(&mut self, chunk: &[u8]) {
        let Some(masker) = &mut self.masker else { return self.keep(chunk) };
        let mut masked = Vec::with_capacity(chunk.len());
        masker.push(chunk, &mut masked);
        self.keep(&masked);
    }

    fn keep(&mut self, chunk: &[u8]) {
        self.tail.push(chunk);
        if self.lines.are_wanted() {
            let passed = self.lines.push(chunk);
            self.check(passed);
        }
    }

    fn close(&mut self) {
        self.pipe = None;
        if let Some(mut masker) = self.masker.take() {
            let mut rest = Vec::new();
            masker.end(&mut rest);
            self.keep(&rest);
        }
        self.tail.closed.store(true, Ordering::Relaxed);
        let passed = self.lines.finish();
        self.check(passed);
    }

    fn check(&mut self, passed: std::thread::Result<()>) {
        if passed.is_err() {
            self.lines.sink = None;
            tracing::warn!("the sink for a child's stderr lines panicked; it gets no more lines");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_keeps_the_end_and_starts_at_a_whole_character() {
        let cases: &[(&[&str], usize, &str)] = &[
            (&["abc"], 8, "abc"),
            (&["abc", "def"], 4, "cdef"),
            (&["abcdefghij"], 4, "ghij"),
            (&["ab", "cdefghij"], 4, "ghij"),
            (&["aä€"], 4, "€"),
            (&["a😀b"], 4, "b"),
            (&["abc"], 0, ""),
        ];
        for (chunks, limit, text) in cases {
            let tail = Tail::new(*limit);
            chunks.iter().for_each(|chunk| tail.push(chunk.as_bytes()));
            assert_eq!(tail.text(), *text, "{chunks:?} in {limit}");
        }
    }

    /// E2
    #[test]
    fn a_long_line_is_cut_between_characters() {
        for pad in 0..4 {
            let text = "x".repeat(pad) + &"😀".repeat(5_000);
            let seen = Arc::new(Mutex::new(Vec::<String>::new()));
            let copy = Arc::clone(&seen);
            let sink: LineSink = Arc::new(move |line| copy.lock().unwrap().push(line.into()));
            let mut lines = Lines { pid: 1, sink: Some(sink), partial: Vec::new() };
            text.as_bytes().chunks(1000).for_each(|chunk| lines.push(chunk).unwrap());
            lines.finish().unwrap();
            let seen = seen.lock().unwrap();
            assert!(seen.iter().all(|piece| piece.len() <= LINE_LIMIT));
            assert_eq!(seen.concat(), text);
        }
    }

    /// E4, P9: the reactor has not told yet, and the other end stays open.
    // About Unix itself: pipes that are polled. Windows: `windows.rs`.
    #[tokio::test]
    #[cfg(unix)]
    async fn the_end_of_stderr_is_read_past_the_reactor_without_waiting() {
        use std::time::Duration;

        use rustix::pipe::PipeFlags;

        let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap();
        let tail = Arc::new(Tail::new(100));
        let seen = Arc::new(Mutex::new(Vec::<String>::new()));
        let copy = Arc::clone(&seen);
        let sink: LineSink = Arc::new(move |line| copy.lock().unwrap().push(line.into()));
        let mut stderr = Stderr::new(read, Arc::clone(&tail), 1, Some(sink), None).unwrap();
        rustix::io::write(&write, b"last\nwords").unwrap();
        stderr.finish();
        assert_eq!(tail.text(), "last\nwords");
        assert_eq!(*seen.lock().unwrap(), ["last", "words"]);
        // Our end is closed. A child that another test is just starting may have it for a moment.
        let is_closed = || rustix::io::write(&write, b"x").is_err();
        assert!((0..1_000).any(|_| {
            is_closed() || {
                std::thread::sleep(Duration::from_millis(1));
                false
            }
        }));
    }

    /// A line is cut at 8 KiB, and both halves of a secret across the cut were shown.
    // About Unix itself: pipes that are polled. Windows: `windows.rs`.
    #[tokio::test]
    #[cfg(unix)]
    async fn a_secret_is_hidden_before_lines_are_cut_and_the_end_is_kept() {
        use rustix::pipe::PipeFlags;

        let secrets = Secrets::new();
        secrets.hide("API_KEY", "walrus-carpenter-oyster");
        for cut in 0..24 {
            let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap();
            let tail = Arc::new(Tail::new(TAIL_LIMIT));
            let seen = Arc::new(Mutex::new(String::new()));
            let copy = Arc::clone(&seen);
            let sink: LineSink = Arc::new(move |line| copy.lock().unwrap().push_str(line));
            let mut stderr =
                Stderr::new(read, Arc::clone(&tail), 1, Some(sink), Some(&secrets)).unwrap();
            let before = "x".repeat(LINE_LIMIT - cut);
            let line = format!("{before}walrus-carpenter-oyster\nwalrus-");
            rustix::io::write(&write, line.as_bytes()).unwrap();
            stderr.finish();
            assert_eq!(*seen.lock().unwrap(), format!("{before}***walrus-"), "cut at {cut}");
            assert_eq!(tail.text(), format!("{before}***\nwalrus-"), "cut at {cut}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_at_all_do_not_pile_up() {
        let sink: LineSink = Arc::new(|_| ());
        let mut lines = Lines { pid: 1, sink: Some(sink), partial: Vec::new() };
        for byte in [0x80, 0xFF, 0xF0] {
            for _ in 0..40 {
                lines.push(&[byte; 1000]).unwrap();
                assert!(lines.partial.len() <= LINE_LIMIT);
            }
        }
    }
}
