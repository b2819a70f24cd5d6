//! The two ends of a child's pipes as the loop should see them: judged by the process, not by the
//! pipes.
//!
//! Knows when an end of input is one: a descendant may hold stdout open (P9), what was written
//! before an exit is still in the pipe, and an end of output is told only once the status is known
//! (C12). Must not know a message.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;

use super::notice::Notices;
use super::pipe::{ChildStdin, ChildStdout};
use crate::driver::Flag;
use crate::stream::{Sink, Source};

/// How long an end of the pipes may go before the process does. Both come from the same exit, in
/// either order and moments apart, also on a busy machine; who closed its pipes on purpose and lives
/// on costs a caller this much.
const LINGER: Duration = Duration::from_millis(250);

/// What the child says.
pub(super) struct Ear {
    pipe: Option<ChildStdout>,
    exited: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Once it has exited: how much of what it wrote is still to be read.
    left: Option<u64>,
    /// Raised when the child no longer reads what we write.
    deaf: Flag,
    /// Ready when it is raised.
    deafened: Pin<Box<dyn Future<Output = ()> + Send>>,
    linger: Option<Pin<Box<Sleep>>>,
    notices: Arc<Notices>,
}

impl Ear {
    pub(super) fn new(
        pipe: ChildStdout,
        exited: impl Future<Output = ()> + Send + 'static,
        deaf: Flag,
        notices: Arc<Notices>,
    ) -> Self {
        let exited = Box::pin(exited);
        let deafened = Box::pin(deaf.raised());
        Self { pipe: Some(pipe), exited, left: None, deaf, deafened, linger: None, notices }
    }

    /// Whatever was in the pipe when the child exited, then the end.
    fn read_rest(&mut self, left: u64, buf: &mut Vec<u8>) -> io::Result<usize> {
        let read = match &mut self.pipe {
            Some(pipe) if left > 0 => pipe.read_now(buf)?,
            _ => 0,
        };
        self.left = Some(left.saturating_sub(read as u64));
        self.notices.heard(read);
        Ok(read)
    }

    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let linger = self.linger.get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGER)));
        linger.as_mut().poll(cx).map(|()| Ok(0))
    }
}

impl Source for Ear {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        // Before reading: what the child wrote is all there once it has exited.
        if self.left.is_none() && self.exited.as_mut().poll(cx).is_ready() {
            self.left = Some(self.pipe.as_ref().map_or(0, ChildStdout::waiting));
        }
        if let Some(left) = self.left {
            return Poll::Ready(self.read_rest(left, buf));
        }
        if let Some(pipe) = &mut self.pipe {
            match pipe.poll_read(cx, buf) {
                Poll::Ready(Ok(bytes)) if bytes > 0 => {
                    self.notices.heard(bytes);
                    return Poll::Ready(Ok(bytes));
                }
                Poll::Ready(_) => self.pipe = None,
                Poll::Pending
                    if !self.deaf.is_raised() && self.deafened.as_mut().poll(cx).is_pending() =>
                {
                    return Poll::Pending;
                }
                Poll::Pending => self.notices.deaf(),
            }
        }
        self.poll_linger(cx)
    }
}

/// What the child is told.
pub(super) struct Mouth {
    pipe: ChildStdin,
    deaf: Flag,
    /// Raised when it is closed, in whatever way.
    closed: Flag,
}

impl Mouth {
    pub(super) fn new(pipe: ChildStdin, deaf: Flag, closed: Flag) -> Self {
        Self { pipe, deaf, closed }
    }
}

impl Sink for Mouth {
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.pipe.poll_write(cx, bytes) {
            // P16: a child that is gone may have left an answer behind. The ear says when it is over.
            Poll::Ready(Err(error)) => {
                tracing::debug!(%error, "the server no longer reads");
                self.deaf.raise();
                Poll::Ready(Ok(bytes.len()))
            }
            other => other,
        }
    }
}

impl Drop for Mouth {
    fn drop(&mut self) {
        // The pipe itself is closed right after this; nobody looks before the waker has run.
        self.closed.raise();
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn, ready};
    use std::os::fd::OwnedFd;

    use super::*;

    /// An ear on a pipe whose other end stays open, as a descendant of the child would hold it.
    fn ear(exited: impl Future<Output = ()> + Send + 'static, deaf: &Flag) -> (Ear, OwnedFd) {
        let (read, write) = rustix::pipe::pipe().unwrap();
        let stdout = ChildStdout::new(read).unwrap();
        (Ear::new(stdout, exited, deaf.clone(), Arc::default()), write)
    }

    async fn read(ear: &mut Ear, buf: &mut Vec<u8>) -> usize {
        let read = poll_fn(|cx| ear.poll_read(cx, buf));
        tokio::time::timeout(Duration::from_secs(20), read).await.unwrap().unwrap()
    }

    /// P9: the other end is never closed, and nobody waits for that.
    #[tokio::test]
    async fn p9_what_was_written_before_an_exit_is_read_and_then_it_is_over() {
        let (mut ear, pipe) = ear(ready(()), &Flag::default());
        let text = b"x".repeat(50_000);
        rustix::io::write(&pipe, &text).unwrap();
        let mut seen = Vec::new();
        while read(&mut ear, &mut seen).await > 0 {}
        assert!(seen == text, "{} bytes", seen.len());
        assert_eq!(ear.notices.diagnostics().bytes, 50_000);
    }

    /// What a descendant goes on to write is not the child's.
    #[tokio::test]
    async fn nothing_is_read_that_was_written_after_the_exit_was_seen() {
        let (mut ear, pipe) = ear(ready(()), &Flag::default());
        let mut seen = Vec::new();
        assert_eq!(read(&mut ear, &mut seen).await, 0);
        rustix::io::write(&pipe, b"late").unwrap();
        assert_eq!(read(&mut ear, &mut seen).await, 0);
        assert!(seen.is_empty());
    }

    /// C12: the status is waited for, but not for ever.
    #[tokio::test(start_paused = true)]
    async fn an_end_of_the_pipes_without_an_exit_is_one_after_a_moment() {
        let (mut closed, pipe) = ear(pending(), &Flag::default());
        drop(pipe);
        let began = tokio::time::Instant::now();
        assert_eq!(read(&mut closed, &mut Vec::new()).await, 0);
        assert!(began.elapsed() >= LINGER);

        let token = Flag::default();
        let (mut deaf, _pipe) = ear(pending(), &token);
        token.raise();
        assert_eq!(read(&mut deaf, &mut Vec::new()).await, 0);
    }
}
