//! The two halves of a wire, as the loop sees them: a [`Source`] of bytes and a [`Sink`] for bytes.
//!
//! Knows polling and nothing else: no frame, no message, no descriptor. `stdio.rs` and
//! `process/` implement these over real descriptors; any `AsyncRead` and `AsyncWrite` fits
//! through [`Reader`] and [`Writer`].

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use crate::rpc::Relation;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, DuplexStream, ReadHalf, WriteHalf};

/// Where bytes come from.
pub(crate) trait Source: Send {
    /// Appends what is there to `buf`, into the capacity it has to spare.
    ///
    /// `Ok(0)` is the end of input. A short read proves nothing: the caller asks again until it is
    /// told `Pending`, and only then is its waker kept.
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut Vec<u8>) -> Poll<io::Result<usize>>;

    /// Why the input has ended, if a transport has said that it failed. Asked once, after the end.
    fn take_failure(&mut self) -> Option<io::Error> {
        None
    }
}

/// Where bytes go. Dropping it closes it.
pub(crate) trait Sink: Send {
    /// Whether it wants to be told which request each message belongs to.
    const RELATES: bool = false;

    /// Takes the relations of the messages that are offered next, in their order. Called only if
    /// [`RELATES`](Self::RELATES) is set, and before those messages are offered.
    fn relate(&mut self, _relations: VecDeque<Relation>) {}

    /// Writes some of `bytes`; the rest is the caller's to offer again.
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;

    /// Passes on what the sink itself still holds. Descriptors hold nothing.
    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Says that nothing more will come, where dropping half of a stream does not say it.
    fn poll_close(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Ready once the reader at the other end is gone for good: watched, not found out by writing.
    ///
    /// A sink that cannot watch stays pending, and the loop learns it from the next write.
    fn poll_gone(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

/// Any `AsyncRead` as a [`Source`].
pub(crate) struct Reader<R>(pub(crate) R);

impl<R: AsyncRead + Unpin + Send> Source for Reader<R> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        // The future holds no state between polls, so making a new one each time loses nothing.
        pin!(self.0.read_buf(buf)).poll(cx)
    }
}

/// A source that ends early: once `stop` is ready, nothing more is read from it.
#[cfg(all(feature = "server", feature = "client"))]
pub(crate) struct Until<S, F> {
    source: S,
    stop: Option<Pin<Box<F>>>,
}

#[cfg(all(feature = "server", feature = "client"))]
impl<S, F> Until<S, F> {
    pub(crate) fn new(source: S, stop: F) -> Self {
        Self { source, stop: Some(Box::pin(stop)) }
    }
}

#[cfg(all(feature = "server", feature = "client"))]
impl<S: Source, F: Future<Output = ()> + Send> Source for Until<S, F> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        let stopped = match &mut self.stop {
            Some(stop) => stop.as_mut().poll(cx).is_ready(),
            None => true,
        };
        if stopped {
            self.stop = None;
            return Poll::Ready(Ok(0));
        }
        self.source.poll_read(cx, buf)
    }
}

/// The two ends of a pipe in memory, each as its reader and its writer. It holds as much as a pipe of the system, so
/// that tests meet the same back-pressure.
pub(crate) fn pipe_in_memory() -> [(ReadHalf<DuplexStream>, WriteHalf<DuplexStream>); 2] {
    let (near, far) = tokio::io::duplex(64 << 10);
    [tokio::io::split(near), tokio::io::split(far)]
}

/// Any `AsyncWrite` as a [`Sink`].
pub(crate) struct Writer<W>(pub(crate) W);

impl<W: AsyncWrite + Unpin + Send> Sink for Writer<W> {
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
