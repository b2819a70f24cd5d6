//! A byte stream whose first bytes were looked at, and whose writes do not wait for ever.
//!
//! Knows bytes and time; must not know what they say.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use taut::transport::ByteStream;
use taut::wire::Opening;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::{oneshot, watch};
use tokio::time::Sleep;

/// How many blank bytes may stand before the first that tells something.
const BLANKS: usize = 1 << 10;

/// A stream that gives `first` before what it reads.
pub(super) struct Sniffed {
    first: Bytes,
    stream: Box<dyn ByteStream>,
    /// How long the other side may leave what is written unread. Zero: for ever.
    patience: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Sniffed {
    /// Reads the first bytes of a connection, as many as tell what is spoken on it.
    pub(super) async fn read(mut stream: Box<dyn ByteStream>) -> io::Result<(Opening, Self)> {
        let mut first = Vec::new();
        let opening = loop {
            match Opening::of(&first) {
                Opening::Undecided if first.len() < BLANKS => {}
                Opening::Undecided => break Opening::Unknown,
                opening => break opening,
            }
            let mut some = [0; 64];
            match stream.read(&mut some).await? {
                0 => break Opening::Undecided,
                length => first.extend_from_slice(&some[..length]),
            }
        };
        let first = first.into();
        Ok((opening, Self { first, stream, patience: Duration::ZERO, stalled: None }))
    }

    /// Fails writing once the other side has read nothing for so long.
    pub(super) fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sends a last text and closes the connection.
    pub(super) async fn refuse(mut self, text: &str) {
        refuse(&mut self.stream, text).await;
    }

    /// See [`linger`]. A client that did not read for too long would not read now.
    pub(super) async fn linger(mut self) {
        if !self.stalled.is_some_and(|stalled| stalled.is_elapsed()) {
            linger(&mut self.stream).await;
        }
    }

    /// What a write came to, if it waits: an error once it has waited too long.
    fn waited<T>(
        &mut self,
        cx: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() || self.patience.is_zero() {
            self.stalled = None;
            return outcome;
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        std::task::ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Sends a last text and closes the connection.
pub(super) async fn refuse(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), text: &str) {
    // The other side may be gone, which is as well.
    let _ = tokio::time::timeout(SILENCE, stream.write_all(text.as_bytes())).await;
    linger(stream).await;
}

/// How long a client may be silent whose connection is being closed.
const SILENCE: Duration = Duration::from_secs(2);

/// Closes the connection so that what was written arrives: a socket that is closed with unread bytes is reset, and
/// what it has written is lost. Many clients write their whole body before they read. What they send is thrown away,
/// so that it costs no memory.
pub(super) async fn linger(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    /// As long as a message on stdio may be.
    const MOST: usize = 64 << 20;
    /// Time for that over two megabytes a second. The connection has its place so long.
    const LIMIT: Duration = Duration::from_secs(30);
    let drain = async {
        stream.shutdown().await?;
        let (mut read, mut some) = (0, vec![0; 16 << 10]);
        while read < MOST {
            match tokio::time::timeout(SILENCE, stream.read(&mut some)).await?? {
                0 => break,
                length => read += length,
            }
        }
        io::Result::Ok(())
    };
    // Whatever it comes to, the connection is closed.
    let _ = tokio::time::timeout(LIMIT, drain).await;
}

impl AsyncRead for Sniffed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buf);
        }
        let length = self.first.len().min(buf.remaining());
        buf.put_slice(&self.first[..length]);
        self.first.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Sniffed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.waited(cx, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.waited(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(cx);
        self.waited(cx, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.waited(cx, outcome)
    }
}

/// A stream whose input ends when the server stops, so that what was accepted is finished. When it is dropped, what
/// it was made of is given back, so that the connection can be closed with care.
pub(super) struct Draining<S> {
    /// `None` only while it is dropped.
    stream: Option<S>,
    back: Option<oneshot::Sender<S>>,
    /// Ready when the server stops; `None` after that.
    stop: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl<S> Draining<S> {
    pub(super) fn new(
        stream: S,
        mut stopped: watch::Receiver<bool>,
    ) -> (Self, oneshot::Receiver<S>) {
        let stop = async move {
            // Nobody can stop it any more: it is stopped.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        };
        let (back, given_back) = oneshot::channel();
        (Self { stream: Some(stream), back: Some(back), stop: Some(Box::pin(stop)) }, given_back)
    }
}

impl<S> Drop for Draining<S> {
    fn drop(&mut self) {
        if let (Some(stream), Some(back)) = (self.stream.take(), self.back.take()) {
            // Where nobody wants it, it is closed.
            let _ = back.send(stream);
        }
    }
}

/// The stream of a [`Draining`], which is there until that is dropped.
fn there<S: Unpin>(stream: &mut Option<S>) -> io::Result<Pin<&mut S>> {
    stream.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
}

impl<S: AsyncRead + Unpin> AsyncRead for Draining<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stopped = match &mut self.stop {
            Some(stop) => stop.as_mut().poll(cx).is_ready(),
            None => true,
        };
        if stopped {
            self.stop = None;
            return Poll::Ready(Ok(()));
        }
        there(&mut self.stream)?.poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Draining<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        there(&mut self.stream)?.poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        there(&mut self.stream)?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        there(&mut self.stream)?.poll_shutdown(cx)
    }
}
