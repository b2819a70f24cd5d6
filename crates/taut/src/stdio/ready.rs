//! Pipes and sockets driven by readiness, without changing what others see of them.
//!
//! Knows that the non-blocking flag belongs to the open file description, which the host and its
//! other children share. A pipe is reopened to get a description of our own; a socket cannot be, so
//! each call on it says that it does not wait. Linux only: the reopening goes through `/proc`.

use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::task::{Context, Poll, ready};

use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl, fstat, open, readlink};
use rustix::net::{RecvFlags, SendFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::stream::{Sink, Source};
use crate::width::Width;

/// Room made in a buffer that has none. A read into no room returns 0, which would look like the
/// end of input.
const ROOM: usize = 64 * 1024;

/// How bytes are moved without waiting.
#[derive(Clone, Copy)]
enum Calls {
    /// `read` and `write`: the description is our own and non-blocking.
    ReadWrite,
    /// `recv` and `send` with a flag on each call: the description is shared.
    RecvSend,
}

impl Calls {
    fn read(self, fd: &OwnedFd, buf: &mut Vec<u8>) -> rustix::io::Result<usize> {
        match self {
            Self::ReadWrite => rustix::io::read(fd, spare_capacity(buf)),
            Self::RecvSend => {
                rustix::net::recv(fd, spare_capacity(buf), RecvFlags::DONTWAIT).map(|(n, _)| n)
            }
        }
    }

    fn width(self) -> Width {
        match self {
            Self::ReadWrite => Width::Usual,
            Self::RecvSend => Width::Settled,
        }
    }

    fn write(self, fd: &OwnedFd, bytes: &[u8]) -> rustix::io::Result<usize> {
        match self {
            Self::ReadWrite => rustix::io::write(fd, bytes),
            Self::RecvSend => {
                rustix::net::send(fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
            }
        }
    }
}

/// Finds the way to use `fd` without waiting. `Err` returns it: only a thread will do.
fn without_waiting(fd: OwnedFd) -> Result<(OwnedFd, Calls), OwnedFd> {
    match fstat(&fd).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        Ok(FileType::Fifo) => match reopen(&fd) {
            Some(private) => Ok((private, Calls::ReadWrite)),
            None => Err(fd),
        },
        Ok(FileType::Socket) => Ok((fd, Calls::RecvSend)),
        _ => Err(fd),
    }
}

/// The same pipe through an open file description of our own. `None`: this cannot be done.
fn reopen(fd: &OwnedFd) -> Option<OwnedFd> {
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    // Opening a named FIFO anew has rules of its own: it may fail for want of a reader, and an end
    // of input on it is not final.
    if !readlink(&path, Vec::new()).ok()?.as_bytes().starts_with(b"pipe:[") {
        return None;
    }
    // The mode it has, so that reading from a write end stays the error it was.
    let mode = fcntl_getfl(fd).ok()? & OFlags::RWMODE;
    open(&path, mode | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).ok()
}

/// Hands `fd` to the runtime. `Err` returns it: epoll does not take this kind.
#[allow(
    deprecated,
    reason = "deprecated for types that may close or change what they own; an \
                              OwnedFd does neither, and the successor is unsafe to call"
)]
fn register(fd: OwnedFd, interest: Interest) -> Result<AsyncFd<OwnedFd>, OwnedFd> {
    AsyncFd::try_with_interest(fd, interest).map_err(|refused| refused.into_parts().0)
}

/// The reading half.
pub(crate) struct ReadHalf {
    fd: AsyncFd<OwnedFd>,
    calls: Calls,
    width: Width,
}

impl ReadHalf {
    /// `Err` returns the descriptor: only a thread will do.
    pub(super) fn open(fd: OwnedFd) -> Result<Self, OwnedFd> {
        let (fd, calls) = without_waiting(fd)?;
        Ok(Self { fd: register(fd, Interest::READABLE)?, calls, width: calls.width() })
    }
}

impl Source for ReadHalf {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        if buf.len() == buf.capacity() {
            buf.reserve(ROOM);
        }
        loop {
            // Not by asking for readiness first, which has to be paid for each time: it is known.
            match self.fd.try_io(Interest::READABLE, |fd| Ok(self.calls.read(fd, buf)?)) {
                Ok(bytes) => {
                    self.width.note(bytes);
                    return Poll::Ready(Ok(bytes));
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => {
                        self.width.settle(&self.fd);
                        drop(ready!(self.fd.poll_read_ready(cx))?);
                    }
                    ErrorKind::Interrupted => {}
                    _ => return Poll::Ready(Err(error)),
                },
            }
        }
    }
}

/// The writing half.
pub(crate) struct WriteHalf {
    fd: AsyncFd<OwnedFd>,
    /// A second number for the same description, asked for no event that comes while it is in use:
    /// what is left is the hang-up, which is always told.
    hang_up: AsyncFd<OwnedFd>,
    calls: Calls,
    width: Width,
}

impl WriteHalf {
    /// `Err` returns the descriptor: only a thread will do.
    pub(super) fn open(fd: OwnedFd) -> Result<Self, OwnedFd> {
        let (fd, calls) = without_waiting(fd)?;
        let Ok(watched) = fd.try_clone() else { return Err(fd) };
        let Ok(hang_up) = register(watched, Interest::PRIORITY) else { return Err(fd) };
        Ok(Self { fd: register(fd, Interest::WRITABLE)?, hang_up, calls, width: calls.width() })
    }
}

impl Sink for WriteHalf {
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.width.note(bytes.len());
        self.width.settle(&self.fd);
        loop {
            match self.fd.try_io(Interest::WRITABLE, |fd| Ok(self.calls.write(fd, bytes)?)) {
                Ok(bytes) => return Poll::Ready(Ok(bytes)),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => drop(ready!(self.fd.poll_write_ready(cx))?),
                    ErrorKind::Interrupted => {}
                    _ => return Poll::Ready(Err(error)),
                },
            }
        }
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // Room to write is not watched here, so "write ready" can only mean "write closed": a pipe
        // without a reader, a socket closed in both directions. A peer that has only finished
        // writing (our end of input) is still there to read.
        match ready!(self.hang_up.poll_write_ready(cx)) {
            Ok(guard) if guard.ready().is_write_closed() => Poll::Ready(()),
            // A runtime that is shutting down knows nothing about the reader.
            _ => Poll::Pending,
        }
    }
}
