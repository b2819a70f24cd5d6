//! A child's stdout and stdin as its user sees them: judged by the process, not by the pipes alone.
//!
//! Knows when an end of output is one: a descendant may hold stdout open (P9), what was written
//! before an exit is still in the pipe, and an end of output is told only once the status is known
//! (C12). Must not know what goes through the pipes, nor the system (`unix.rs`, `windows.rs`).

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::Sleep;

use super::sys::{ReadPipe, WritePipe};
use crate::bell::Bell;
use crate::stream::{Sink, Source};

/// How long an end of the pipes may go before the process does. Both come from the same exit, in
/// either order and moments apart, also on a busy machine. A child that closes its pipes on purpose
/// and lives on costs its user this much.
const LINGER: Duration = Duration::from_millis(250);

/// Is told what happens on a child's pipes. It must not block.
pub(crate) trait PipeEvents: Send + Sync {
    /// So many bytes came from stdout.
    fn read(&self, bytes: usize);

    /// The child no longer reads its stdin.
    fn stdin_unread(&self);

    /// The pipes are there. `stdin` says what the child has read.
    fn joined(&self, stdin: &Arc<StdinGauge>);
}

/// How much a child has read of its stdin, where the system tells it.
pub(crate) struct StdinGauge {
    /// Bytes that went into the pipe.
    written: AtomicU64,
    /// Tells how many of them are still in it, as long as it is open.
    waiting: Box<dyn Fn() -> Option<u64> + Send + Sync>,
    /// What was known last.
    read_nothing: AtomicBool,
}

impl StdinGauge {
    /// Whether the child has read no byte: so far, or before it ended. `false` where nothing is known.
    pub(crate) fn read_nothing(&self) -> bool {
        if let Some(waiting) = (self.waiting)() {
            let nothing = waiting == self.written.load(Ordering::Relaxed);
            self.read_nothing.store(nothing, Ordering::Relaxed);
        }
        self.read_nothing.load(Ordering::Relaxed)
    }
}

/// What the child writes to its stdout. Dropping it closes our end.
pub(crate) struct ChildStdout {
    pipe: Option<ReadPipe>,
    exited: Pin<Box<dyn Future<Output = ()> + Send>>,
    exit_bell: Bell,
    /// Once it has exited: how much of what it wrote is still to be read.
    left: Option<u64>,
    /// Told by [`ChildStdin`] when the child no longer reads; nothing once that can no longer come.
    unread: Option<oneshot::Receiver<()>>,
    unread_bell: Bell,
    stdin_unread: bool,
    gauge: Arc<StdinGauge>,
    linger: Option<Pin<Box<Sleep>>>,
    events: Arc<dyn PipeEvents>,
}

/// The child's stdin. Dropping it closes it, which is how a server is asked to stop.
pub(crate) struct ChildStdin {
    pipe: WritePipe,
    gauge: Arc<StdinGauge>,
    unread: Option<oneshot::Sender<()>>,
    /// Its receivers hear when it is dropped.
    _closed: watch::Sender<()>,
}

/// Joins the two pipes of a child. The receiver hears, by an error, when stdin is closed.
pub(super) fn join(
    (stdout, stdin): (ReadPipe, WritePipe),
    exited: impl Future<Output: Send> + Send + 'static,
    events: Arc<dyn PipeEvents>,
) -> (ChildStdout, ChildStdin, watch::Receiver<()>) {
    let (tell, told) = oneshot::channel();
    let (open, closed) = watch::channel(());
    let gauge = Arc::new(StdinGauge {
        written: AtomicU64::default(),
        waiting: Box::new(stdin.gauge()),
        read_nothing: AtomicBool::default(),
    });
    events.joined(&gauge);
    let stdout = ChildStdout {
        pipe: Some(stdout),
        exited: Box::pin(async { drop(exited.await) }),
        exit_bell: Bell::default(),
        left: None,
        unread: Some(told),
        unread_bell: Bell::default(),
        stdin_unread: false,
        gauge: gauge.clone(),
        linger: None,
        events,
    };
    (stdout, ChildStdin { pipe: stdin, gauge, unread: Some(tell), _closed: open }, closed)
}

impl ChildStdout {
    /// What was in the pipe when the child exited, then the end.
    fn read_rest(&mut self, left: u64, buf: &mut Vec<u8>) -> io::Result<usize> {
        let read = match &mut self.pipe {
            Some(pipe) if left > 0 => pipe.read_now(buf)?,
            _ => 0,
        };
        self.left = Some(left.saturating_sub(read as u64));
        self.events.read(read);
        Ok(read)
    }

    /// Whether the child no longer reads its stdin.
    fn is_unread(&mut self, cx: &mut Context<'_>) -> bool {
        if let Some(unread) = &mut self.unread
            && let Poll::Ready(told) = self.unread_bell.poll(cx, |cx| Pin::new(unread).poll(cx))
        {
            self.unread = None;
            // An error means that we have closed stdin ourselves.
            if told.is_ok() {
                self.stdin_unread = true;
                self.events.stdin_unread();
            }
        }
        self.stdin_unread
    }

    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let linger = self.linger.get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGER)));
        linger.as_mut().poll(cx).map(|()| Ok(0))
    }
}

impl Source for ChildStdout {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        // Before reading: what the child wrote is all there once it has exited.
        let exited = |cx: &mut Context<'_>| self.exited.as_mut().poll(cx);
        if self.left.is_none() && self.exit_bell.poll(cx, exited).is_ready() {
            self.left = Some(self.pipe.as_ref().map_or(0, ReadPipe::waiting));
            // Asked while the pipe is open, for those who ask later.
            self.gauge.read_nothing();
        }
        if let Some(left) = self.left {
            return Poll::Ready(self.read_rest(left, buf));
        }
        if let Some(pipe) = &mut self.pipe {
            match pipe.poll_read(cx, buf) {
                Poll::Ready(Ok(bytes)) if bytes > 0 => {
                    self.events.read(bytes);
                    return Poll::Ready(Ok(bytes));
                }
                Poll::Ready(_) => self.pipe = None,
                Poll::Pending if !self.is_unread(cx) => return Poll::Pending,
                Poll::Pending => {}
            }
        }
        self.poll_linger(cx)
    }
}

impl Sink for ChildStdin {
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.pipe.poll_write(cx, bytes) {
            // P16: a child that is gone may have left an answer behind. Its stdout says when it is over.
            Poll::Ready(Err(error)) => {
                tracing::debug!(%error, "the child no longer reads its stdin");
                if let Some(unread) = self.unread.take() {
                    let _ = unread.send(());
                }
                Poll::Ready(Ok(bytes.len()))
            }
            Poll::Ready(Ok(bytes)) => {
                self.gauge.written.fetch_add(bytes as u64, Ordering::Relaxed);
                Poll::Ready(Ok(bytes))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

// About Unix itself: pipes that are polled, and how much they hold. Windows: `windows.rs`.
#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::future::{pending, poll_fn, ready};
    use std::os::fd::OwnedFd;
    use std::sync::OnceLock;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Counted(AtomicUsize, OnceLock<Arc<StdinGauge>>);

    impl PipeEvents for Counted {
        fn read(&self, bytes: usize) {
            self.0.fetch_add(bytes, Ordering::Relaxed);
        }

        fn stdin_unread(&self) {}

        fn joined(&self, stdin: &Arc<StdinGauge>) {
            let _ = self.1.set(stdin.clone());
        }
    }

    struct Joined {
        stdout: ChildStdout,
        stdin: ChildStdin,
        /// The other end of stdout, which stays open as a descendant of the child would hold it.
        output: OwnedFd,
        /// The other end of stdin.
        input: OwnedFd,
        counted: Arc<Counted>,
    }

    fn joined(exited: impl Future<Output = ()> + Send + 'static) -> Joined {
        let ((read, output), (input, write)) =
            (rustix::pipe::pipe().unwrap(), rustix::pipe::pipe().unwrap());
        let pipes = (ReadPipe::new(read).unwrap(), WritePipe::new(write).unwrap());
        let counted = Arc::<Counted>::default();
        let (stdout, stdin, _) = join(pipes, exited, counted.clone());
        Joined { stdout, stdin, output, input, counted }
    }

    async fn read(stdout: &mut ChildStdout, buf: &mut Vec<u8>) -> usize {
        let read = poll_fn(|cx| stdout.poll_read(cx, buf));
        tokio::time::timeout(Duration::from_secs(20), read).await.unwrap().unwrap()
    }

    /// P9: the other end is never closed, and that is not waited for.
    #[tokio::test]
    async fn p9_what_was_written_before_an_exit_is_read_and_then_it_is_over() {
        let mut child = joined(ready(()));
        let text = b"x".repeat(50_000);
        rustix::io::write(&child.output, &text).unwrap();
        let mut seen = Vec::new();
        while read(&mut child.stdout, &mut seen).await > 0 {}
        assert!(seen == text, "{} bytes", seen.len());
        assert_eq!(child.counted.0.load(Ordering::Relaxed), 50_000);
    }

    /// Linux tells what is in a pipe; elsewhere nothing is known.
    const COUNTED: bool = cfg!(all(target_os = "linux", not(taut_portable)));

    #[tokio::test]
    async fn what_a_child_has_read_is_known_also_when_its_stdin_is_closed() {
        let mut child = joined(pending());
        let gauge = child.counted.1.get().unwrap().clone();
        poll_fn(|cx| child.stdin.poll_write(cx, b"hello")).await.unwrap();
        assert_eq!(gauge.read_nothing(), COUNTED);
        rustix::io::read(&child.input, &mut [0; 2]).unwrap();
        assert!(!gauge.read_nothing());

        let mut child = joined(ready(()));
        let gauge = child.counted.1.get().unwrap().clone();
        poll_fn(|cx| child.stdin.poll_write(cx, b"hello")).await.unwrap();
        assert_eq!(read(&mut child.stdout, &mut Vec::new()).await, 0);
        drop(child.stdin);
        assert_eq!(gauge.read_nothing(), COUNTED, "as it was at the exit");
    }

    /// What a descendant goes on to write is not the child's.
    #[tokio::test]
    async fn nothing_is_read_that_was_written_after_the_exit_was_seen() {
        let mut child = joined(ready(()));
        let mut seen = Vec::new();
        assert_eq!(read(&mut child.stdout, &mut seen).await, 0);
        rustix::io::write(&child.output, b"late").unwrap();
        assert_eq!(read(&mut child.stdout, &mut seen).await, 0);
        assert!(seen.is_empty());
    }

    /// C12: the status is waited for, but not for ever.
    #[tokio::test(start_paused = true)]
    async fn an_end_of_stdout_without_an_exit_is_one_after_a_moment() {
        let mut child = joined(pending());
        drop(child.output);
        let began = tokio::time::Instant::now();
        assert_eq!(read(&mut child.stdout, &mut Vec::new()).await, 0);
        assert!(began.elapsed() >= LINGER);
    }

    /// C12, P16: a child that reads no more ends the output too, after a moment; a stdin that we have
    /// closed ourselves does not.
    #[tokio::test(start_paused = true)]
    async fn an_unread_stdin_is_an_end_after_a_moment_and_one_that_we_closed_is_not() {
        let mut child = joined(pending());
        drop(child.input);
        let written = poll_fn(|cx| child.stdin.poll_write(cx, b"hello")).await.unwrap();
        assert_eq!(written, 5);
        assert_eq!(read(&mut child.stdout, &mut Vec::new()).await, 0);

        let mut child = joined(pending());
        drop(child.stdin);
        let mut seen = Vec::new();
        let one = poll_fn(|cx| Poll::Ready(child.stdout.poll_read(cx, &mut seen))).await;
        assert!(one.is_pending() && child.stdout.linger.is_none());
    }
}
