//! How a bridge ends: open calls get time to finish, then the servers are ended.
//!
//! Knows time and the proxy; must not know where the clients come from.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{io, mem};

use taut::Proxy;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;

use crate::signals::Interrupts;

/// How long clients may take to read the errors of calls that were cut off.
const LAST_ERRORS: Duration = Duration::from_secs(1);

/// Waits until `serving`, which takes nothing new any more, has finished what it had accepted. After `limit`
/// the servers are ended, so that the open calls fail and their clients are told. A further signal ends it at
/// once, and what `serving` came to is then not known.
pub(super) async fn finish<T>(
    proxy: &Proxy,
    limit: Duration,
    interrupts: &mut Interrupts,
    serving: impl Future<Output = T>,
) -> Option<T> {
    let mut serving = pin!(serving);
    tokio::select! {
        done = &mut serving => return Some(done),
        () = tokio::time::sleep(limit) => {}
        () = interrupts.next() => return None,
    }
    let ended = async {
        proxy.close().await;
        tokio::time::sleep(LAST_ERRORS).await;
    };
    tokio::select! {
        done = &mut serving => Some(done),
        () = ended => None,
        () = interrupts.next() => None,
    }
}

/// A stream whose input ends when the bridge does.
pub(super) struct Draining<S> {
    stream: S,
    stop: Stop,
}

enum Stop {
    Awaited(Pin<Box<dyn Future<Output = ()> + Send>>),
    Came,
}

impl<S> Draining<S> {
    pub(super) fn new(stream: S, mut stopped: watch::Receiver<bool>) -> Self {
        let stop = async move {
            // Nobody can stop it any more, so it is stopped.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        };
        Self { stream, stop: Stop::Awaited(Box::pin(stop)) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Draining<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stopped = match &mut self.stop {
            Stop::Awaited(stop) => stop.as_mut().poll(cx).is_ready(),
            Stop::Came => true,
        };
        if stopped {
            drop(mem::replace(&mut self.stop, Stop::Came));
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Draining<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
