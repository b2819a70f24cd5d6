//! A thread that ends the process when its input has ended and the loop has not: a handler blocks it.
//!
//! Knows time, and the thread that reads the wire, which sees the end of the input while the loop is blocked.
//! What `stdio/watchdog.rs` is on Unix, but for a stderr that nobody reads: that cannot be seen here.

use std::convert::Infallible;
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::stdio::console::GUARD;

/// What the process reports when it was ended here.
const EXIT: i32 = 1;

/// An input that says when it has ended.
pub(super) struct EndTeller<R> {
    input: R,
    ended: Sender<()>,
}

/// The same input, and where its end is told. Nothing is told if it is dropped before.
pub(super) fn watched<R>(input: R) -> (EndTeller<R>, Receiver<()>) {
    let (ended, told) = channel();
    (EndTeller { input, ended }, told)
}

impl<R: Read> Read for EndTeller<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buf);
        let over = match &read {
            Ok(n) => *n == 0,
            Err(error) => error.kind() != io::ErrorKind::Interrupted,
        };
        if over {
            // Without a watchdog nobody hears it.
            let _ = self.ended.send(());
        }
        read
    }
}

/// Watches until it is dropped, which says that the loop has ended.
pub(crate) struct Watchdog {
    _alive: Sender<Infallible>,
}

impl Watchdog {
    /// Begins to watch for the end of the input.
    pub(crate) fn start(ended: Receiver<()>, drain: Duration) -> io::Result<Self> {
        let (alive, dropped) = channel();
        // The loop has its own limit, and a moment to keep it.
        let limit = drain.saturating_add(GUARD);
        std::thread::Builder::new().name("taut-watchdog".into()).spawn(move || {
            if ended.recv().is_ok()
                && dropped.recv_timeout(limit) == Err(RecvTimeoutError::Timeout)
            {
                crate::stdio::say(&format!(
                    "stdin ended more than {drain:?} ago (the drain limit) and a handler still blocks \
                     the loop; ending the process"
                ));
                std::process::exit(EXIT);
            }
        })?;
        Ok(Self { _alive: alive })
    }
}
