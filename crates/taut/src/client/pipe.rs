//! Our ends of a child's stdin and stdout, driven by readiness.
//!
//! Knows pipes and the reactor, nothing of frames or of the child behind them. The pipes are ours
//! alone: the other end has a file description of its own, so the non-blocking flag that is set
//! here is not seen there.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use tokio::io::Interest;
use tokio::net::unix::pipe::{Receiver, Sender};

use crate::stream::{Sink, Source};
use crate::width::Width;

/// Room made when the caller offers none: a read into no room would look like the end.
const MIN_ROOM: usize = 4096;

/// What a pipe can hold at most without privileges.
const PIPE_MAX: u64 = 1024 * 1024;

/// What the child writes to its stdout. Dropping it closes our end.
#[derive(Debug)]
pub(crate) struct ChildStdout {
    pipe: Receiver,
    width: Width,
}

impl ChildStdout {
    /// Takes the read end of a pipe.
    pub(crate) fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self { pipe: Receiver::from_owned_fd(fd)?, width: Width::Usual })
    }

    /// How many bytes are there to be read at this moment.
    pub(crate) fn waiting(&self) -> u64 {
        // Where the kernel will not tell: as much as a pipe can hold.
        rustix::io::ioctl_fionread(&self.pipe).unwrap_or(PIPE_MAX)
    }

    /// Reads what is there past the reactor, which may not have heard yet. Nothing there is
    /// `Ok(0)`, as the end is.
    pub(crate) fn read_now(&mut self, buf: &mut Vec<u8>) -> io::Result<usize> {
        buf.reserve(MIN_ROOM);
        loop {
            match rustix::io::read(&self.pipe, rustix::buffer::spare_capacity(buf)) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(0),
                done => return Ok(done?),
            }
        }
    }
}

impl Source for ChildStdout {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        if buf.len() == buf.capacity() {
            buf.reserve(MIN_ROOM);
        }
        loop {
            ready!(self.pipe.poll_read_ready(cx))?;
            match self.pipe.try_read_buf(buf) {
                Ok(bytes) => {
                    self.width.note(bytes);
                    return Poll::Ready(Ok(bytes));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.width.settle(&self.pipe);
                }
                Err(error) if again(&error) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

/// The child's stdin. Dropping it closes it, which is how a server is asked to stop.
pub(crate) struct ChildStdin {
    pipe: Arc<Sender>,
    width: Width,
    /// Finishes when the last reader is gone; none once it has.
    gone: Option<Gone>,
}

type Gone = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

impl ChildStdin {
    /// Takes the write end of a pipe.
    pub(crate) fn new(fd: OwnedFd) -> io::Result<Self> {
        let pipe = Arc::new(Sender::from_owned_fd(fd)?);
        let watched = Arc::clone(&pipe);
        // A pipe's write end reports an error once its last read end is closed, and never before.
        let gone = async move { watched.ready(Interest::ERROR).await.map(|_| ()) };
        Ok(Self { pipe, width: Width::Usual, gone: Some(Box::pin(gone)) })
    }
}

impl Sink for ChildStdin {
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.width.note(bytes.len());
        self.width.settle(&*self.pipe);
        loop {
            ready!(self.pipe.poll_write_ready(cx))?;
            match self.pipe.try_write(bytes) {
                Err(error) if again(&error) => {}
                done => return Poll::Ready(done),
            }
        }
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(gone) = &mut self.gone else { return Poll::Ready(()) };
        // An error means that the reactor goes down: nothing will ever be written here again.
        let _ = ready!(gone.as_mut().poll(cx));
        self.gone = None;
        Poll::Ready(())
    }
}

fn again(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
